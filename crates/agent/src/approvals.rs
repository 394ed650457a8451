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

/// Reason for which an answer was refused.
#[derive(Debug, thiserror::Error, Classified)]
pub enum AnswerError {
    /// The question is not there, was answered, or expired.
    #[error(transparent)]
    #[class(kind = match _0 {
        StoreError::Missing { .. } | StoreError::Unfit { .. } => ErrorClass::User,
        error => error.kind(),
    }, hint = match _0 {
        StoreError::Missing { .. } | StoreError::Unfit { .. } => {
            Some("`automaton approvals list` shows what waits for an answer".to_owned())
        }
        error => error.hint(),
    })]
    Store(#[from] StoreError),
    /// Nobody knows whose signature it should be.
    #[error("no creator's address is known here, so that no signature can be checked")]
    #[class(Config, hint = "set `creatorAddress` in automaton.json, or answer without it")]
    NoCreator,
    /// Somebody else signed it, or something else was signed.
    #[error("the signature is not the creator's ({creator}) of this answer to {id}")]
    #[class(Denied, hint = "`automaton approvals message` prints the text to sign")]
    Signature {
        /// The creator's address.
        creator: String,
        /// The question.
        id: ApprovalId,
    },
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
