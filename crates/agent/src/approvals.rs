//! The creator's answers to what the automaton may not decide alone.
//!
//! Whoever can open the home is the creator, and needs no other proof. A signature of the
//! creator's address does as well, and where one is given it has to hold: for this
//! question, this action and this answer. Nothing here may answer by itself.

use automaton_core::error::{Classified, ErrorClass};
use automaton_core::id::ApprovalId;
use automaton_core::wire::control::{ApprovalVerdict, answer_text};
use automaton_store::{Approval, ApprovalAuthor, Store, StoreError};
use automaton_wallet::signer_of;

/// Why an answer was not taken.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// The question is not there, was answered, or expired.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nobody knows whose signature it should be.
    #[error("no creator's address is known here, so that no signature can be checked")]
    NoCreator,
    /// Somebody else signed it, or something else was signed.
    #[error("the signature is not the creator's ({creator}) of this answer to {id}")]
    Signature {
        /// The creator's address.
        creator: String,
        /// The question.
        id: ApprovalId,
    },
}

impl Classified for AnswerError {
    fn kind(&self) -> ErrorClass {
        match self {
            Self::Store(StoreError::Missing { .. } | StoreError::Unfit { .. }) => ErrorClass::User,
            Self::Store(error) => error.kind(),
            Self::NoCreator => ErrorClass::Config,
            Self::Signature { .. } => ErrorClass::Denied,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Store(StoreError::Missing { .. } | StoreError::Unfit { .. }) => {
                "`automaton approvals list` shows what waits for an answer"
            }
            Self::Store(error) => return error.hint(),
            Self::NoCreator => "set `creatorAddress` in automaton.json, or answer without it",
            Self::Signature { .. } => "`automaton approvals message` prints the text to sign",
        };
        Some(hint.to_owned())
    }
}

/// Answers a question; a signature comes with the creator's address, where that is known.
///
/// # Errors
/// When there is no such question that waits, or the signature does not hold.
pub async fn answer(
    store: &Store,
    id: ApprovalId,
    word: ApprovalVerdict,
    signed: Option<(&str, Option<&str>)>,
) -> Result<Approval, AnswerError> {
    let hand = match signed {
        None => ApprovalAuthor::Home,
        Some((signature, creator)) => {
            let creator = creator.ok_or(AnswerError::NoCreator)?;
            let asked = store.approval(id).await?;
            let text = answer_text(id, &asked.action_sha256, word, asked.expires_at);
            // silent-ok: what is no hexadecimal is nobody's signature.
            let bytes = alloy_primitives::hex::decode(signature).unwrap_or_default();
            let by = signer_of(&text, &bytes);
            if by.is_none() || by != creator.parse().ok() {
                return Err(AnswerError::Signature { creator: creator.to_owned(), id });
            }
            ApprovalAuthor::Signature
        }
    };
    Ok(store.answer(id, word, hand).await?)
}
