//! The agent's client of the signer: one request at a time over a connected socket.
//!
//! Calls block. After [`SignerConnectionError::Gone`] the client must be dropped, since a late
//! reply would be taken for the reply to the next request. The client must never be given a key.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use alloy_primitives::{Address, B256};
use automaton_core::error::{Classified, ErrorClass};
use automaton_core::time::Timestamp;
use automaton_core::wire::x402::ExactPayload;

use crate::ceiling::SignerStatus;
use crate::error::{SignerRefusal, SignerRefusalCode};
use crate::key::Signature;
use crate::payload::{
    AgentWalletSet, AuditHead, PaymentIntent, RegistrationFields, RelaySend, SignInFields,
    SignedTransaction, TransactionIntent,
};
use crate::protocol::{LineStream, SignerRequest, SignerResponse, VERSION};

/// The timeout of a reply. Committing to a slow disk takes far less.
const REPLY_MAX: Duration = Duration::from_secs(30);

/// The signer gave no signature.
#[derive(Debug, thiserror::Error, Classified)]
pub enum SignerConnectionError {
    /// A rule or a ceiling refused. A retry is refused too.
    #[error(transparent)]
    Refused(#[from] SignerRefusal),
    /// The intent was signed before with other content.
    #[error("the signer has a conflict: {}", .0.reason)]
    #[class(kind = _0.kind())]
    Conflict(SignerRefusal),
    /// The signer could not open its key.
    #[error("the signer is locked: {reason}")]
    #[class(kind = *kind, hint = hint.clone())]
    Locked {
        /// The reason.
        reason: String,
        /// The error class, which says who has to act.
        kind: ErrorClass,
        /// The remedy.
        hint: Option<String>,
    },
    /// The signer hung up, timed out or sent an unexpected reply. It may have signed or not:
    /// retry with the same intent.
    #[error("the signer is gone")]
    #[class(Transient)]
    Gone(#[from] io::Error),
}

/// A connection to the signer.
pub struct SignerConnection {
    lines: LineStream<UnixStream>,
    address: Address,
}

impl SignerConnection {
    /// Connects and waits without a timeout until the signer is unlocked.
    ///
    /// # Errors
    /// Returns `Locked` if the signer cannot be unlocked, and `Gone` if it ended or speaks
    /// another version.
    pub fn connect(stream: UnixStream) -> Result<Self, SignerConnectionError> {
        stream.set_read_timeout(None)?;
        let settings = stream.try_clone()?;
        let (lines, address) = greet(stream)?;
        settings.set_read_timeout(Some(REPLY_MAX))?;
        settings.set_write_timeout(Some(REPLY_MAX))?;
        Ok(Self { lines, address })
    }

    /// Returns the wallet's address.
    #[must_use]
    pub const fn address(&self) -> Address {
        self.address
    }

    /// Signs a payment. The same intent gets the same bytes and counts once.
    ///
    /// # Errors
    /// See [`SignerConnectionError`].
    pub fn sign_payment(
        &mut self,
        intent: &PaymentIntent,
    ) -> Result<ExactPayload, SignerConnectionError> {
        match self.ask(&SignerRequest::Pay(intent.clone()))? {
            SignerResponse::Paid(payment) => Ok(payment),
            other => Err(unexpected(other)),
        }
    }

    /// Signs a sign-in. Returns its text and the signature.
    ///
    /// # Errors
    /// See [`SignerConnectionError`].
    pub fn sign_in(
        &mut self,
        fields: &SignInFields,
    ) -> Result<(String, Signature), SignerConnectionError> {
        match self.ask(&SignerRequest::SignIn(fields.clone()))? {
            SignerResponse::SignedIn { message, signature } => Ok((message, signature)),
            other => Err(unexpected(other)),
        }
    }

    /// Signs a registration. Returns its hash and the signature.
    ///
    /// # Errors
    /// See [`SignerConnectionError`].
    pub fn register(
        &mut self,
        fields: &RegistrationFields,
    ) -> Result<(B256, Signature), SignerConnectionError> {
        match self.ask(&SignerRequest::Register(fields.clone()))? {
            SignerResponse::Registered { payload_hash, signature } => Ok((payload_hash, signature)),
            other => Err(unexpected(other)),
        }
    }

    /// Signs a message for a relay.
    ///
    /// # Errors
    /// See [`SignerConnectionError`].
    pub fn relay_send(&mut self, message: &RelaySend) -> Result<Signature, SignerConnectionError> {
        self.signature(&SignerRequest::RelaySend(message.clone()))
    }

    /// Signs a request to read this wallet's messages, or their number, from a relay.
    ///
    /// # Errors
    /// See [`SignerConnectionError`].
    pub fn relay_read(&mut self, at: Timestamp) -> Result<Signature, SignerConnectionError> {
        self.signature(&SignerRequest::RelayRead { at })
    }

    /// Signs the consent to be an agent's wallet.
    ///
    /// # Errors
    /// See [`SignerConnectionError`].
    pub fn agent_wallet(
        &mut self,
        asked: &AgentWalletSet,
    ) -> Result<Signature, SignerConnectionError> {
        self.signature(&SignerRequest::AgentWallet(asked.clone()))
    }

    /// Signs the head of the audit log.
    ///
    /// # Errors
    /// See [`SignerConnectionError`].
    pub fn audit_head(&mut self, head: &AuditHead) -> Result<Signature, SignerConnectionError> {
        self.signature(&SignerRequest::AuditHead(head.clone()))
    }

    /// Signs a transaction. The same intent keeps its nonce. It gets the same bytes unless the
    /// call raises the gas price.
    ///
    /// # Errors
    /// See [`SignerConnectionError`].
    pub fn transact(
        &mut self,
        asked: &TransactionIntent,
    ) -> Result<SignedTransaction, SignerConnectionError> {
        match self.ask(&SignerRequest::Transact(asked.clone()))? {
            SignerResponse::Transacted(signed) => Ok(signed),
            other => Err(unexpected(other)),
        }
    }

    /// Returns the ceilings and the totals counted against them.
    ///
    /// # Errors
    /// See [`SignerConnectionError`].
    pub fn limits(&mut self) -> Result<SignerStatus, SignerConnectionError> {
        match self.ask(&SignerRequest::Limits {})? {
            SignerResponse::Limits(standing) => Ok(*standing),
            other => Err(unexpected(other)),
        }
    }

    fn signature(&mut self, request: &SignerRequest) -> Result<Signature, SignerConnectionError> {
        match self.ask(request)? {
            SignerResponse::Signed(signature) => Ok(signature),
            other => Err(unexpected(other)),
        }
    }

    fn ask(&mut self, request: &SignerRequest) -> Result<SignerResponse, SignerConnectionError> {
        self.lines.send(request)?;
        Ok(self.lines.receive()?)
    }
}

/// Reads the signer's hello. Returns the stream and the wallet's address.
pub(crate) fn greet(
    stream: UnixStream,
) -> Result<(LineStream<UnixStream>, Address), SignerConnectionError> {
    let mut lines = LineStream::new(stream);
    match lines.receive()? {
        SignerResponse::Hello { version: VERSION, address } => Ok((lines, address)),
        other => Err(unexpected(other)),
    }
}

/// Converts a reply of an unexpected kind to an error.
pub(crate) fn unexpected(reply: SignerResponse) -> SignerConnectionError {
    match reply {
        SignerResponse::Refused(refusal) if refusal.code == SignerRefusalCode::Conflict => {
            SignerConnectionError::Conflict(refusal)
        }
        SignerResponse::Refused(refusal) => SignerConnectionError::Refused(refusal),
        SignerResponse::Locked { reason, kind, hint } => {
            SignerConnectionError::Locked { reason, kind, hint }
        }
        _ => {
            let error = "the signer answered another question, or speaks another version";
            SignerConnectionError::Gone(io::Error::new(io::ErrorKind::InvalidData, error))
        }
    }
}
