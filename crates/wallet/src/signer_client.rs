//! The wallet's side of the signer: what was chosen becomes a signed payment.
//!
//! The signer is another process behind a socket, and blocks; it is asked on a
//! thread for such work, one question at a time, but for simulations. What it gives is checked
//! against what was asked, since the two are built apart.

use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use alloy_primitives::{Address, U256};
use automaton_core::error::Classified;
use automaton_core::id::{PaymentId, TransactionId};
use automaton_core::time::Timestamp;
use automaton_core::wire::cloud;
use automaton_core::wire::sign_in::SignIn;
use automaton_core::wire::x402::{ExactPayload, TokenDomain};
use automaton_signer::payload::{
    self, AuditHead, PaymentIntent, RegistrationFields, SignedTransaction, TransactionCall,
    TransactionIntent,
};
use automaton_signer::{SignerConnection, SignerConnectionError, SignerStatus, signer_of};

use crate::x402::SelectedOffer;

/// Nothing was signed, or it is unknown whether it was.
#[derive(Debug, thiserror::Error, Classified)]
pub enum SignerClientError {
    /// The signer refused, or is gone.
    #[error(transparent)]
    Signer(#[from] SignerConnectionError),
    /// The signer signed something else than was asked.
    #[error("the signer signed something else than it was asked for")]
    #[class(Internal)]
    Other,
    /// A thread that asked it panicked.
    #[error("asking the signer was cut short")]
    #[class(Internal)]
    Cut,
}

/// A wallet whose key is in the signer.
#[derive(Clone)]
pub struct SignerClient {
    signer: Arc<Mutex<SignerConnection>>,
    address: Address,
    in_caller: bool,
}

impl std::fmt::Debug for SignerClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignerClient").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A signed payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedAuthorization {
    /// The payload of the header that pays.
    pub payload: ExactPayload,
    /// The end of its validity.
    pub valid_before: Timestamp,
}

impl SignerClient {
    /// Waits until the signer at the other end is unlocked.
    ///
    /// # Errors
    /// Fails if it cannot be unlocked or is gone.
    pub async fn open(socket: UnixStream) -> Result<Self, SignerClientError> {
        let opened = tokio::task::spawn_blocking(move || Self::open_here(socket)).await;
        let client = opened.map_err(|_| SignerClientError::Cut)??;
        Ok(Self { in_caller: false, ..client })
    }

    /// A signer that is asked where the question is put, which blocks whatever else runs
    /// on that thread: for simulations, in which two threads must not race.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_here(socket: UnixStream) -> Result<Self, SignerClientError> {
        let client = SignerConnection::connect(socket)?;
        let address = client.address();
        Ok(Self { signer: Arc::new(Mutex::new(client)), address, in_caller: true })
    }

    /// The wallet's address.
    #[must_use]
    pub const fn address(&self) -> Address {
        self.address
    }

    /// Signs what was chosen, for an intent. The same intent gets the same bytes.
    ///
    /// # Errors
    /// Fails if the signer refuses, is gone, or signs something else.
    pub async fn pay(
        &self,
        intent: PaymentId,
        chosen: &SelectedOffer,
        token: &TokenDomain,
    ) -> Result<SignedAuthorization, SignerClientError> {
        let asked = PaymentIntent {
            intent,
            chain_id: token.chain.0,
            asset: token.contract,
            payee: chosen.payee,
            amount: chosen.amount,
            // At most 600, by the choice.
            deadline_s: u32::try_from(chosen.seconds).unwrap_or(u32::MAX),
        };
        let question = asked.clone();
        let payload = self.ask(move |signer| signer.sign_payment(&question)).await?;
        let signed = &payload.authorization;
        // The nonce makes it one payment, however often it is signed.
        let nonce = crate::nonce(self.address, asked.chain_id, intent);
        let wanted = (self.address, asked.payee, U256::from(asked.amount.units()), nonce);
        let good_for = signed.valid_before.checked_sub(signed.valid_after);
        let most = U256::from(asked.deadline_s) + U256::from(payload::BEGINS_BEFORE_S);
        if (signed.from, signed.to, signed.value, signed.nonce) != wanted
            || good_for.is_none_or(|seconds| seconds > most)
        {
            return Err(SignerClientError::Other);
        }
        let seconds = i64::try_from(signed.valid_before).map_err(|_| SignerClientError::Other)?;
        let valid_before = Timestamp::from_millis(seconds.saturating_mul(1000));
        Ok(SignedAuthorization { payload, valid_before })
    }

    /// Signs a transaction to a contract that the signer knows, for an intent. The
    /// same intent keeps its nonce, and gets the same bytes unless it offers more for
    /// gas.
    ///
    /// # Errors
    /// Fails if the signer refuses, is gone, or signs something else.
    pub async fn transact(
        &self,
        intent: TransactionId,
        call: &TransactionCall,
    ) -> Result<SignedTransaction, SignerClientError> {
        let asked = TransactionIntent { intent, call: call.clone() };
        let signed = self.ask(move |signer| signer.transact(&asked)).await?;
        if signed.matches_call(call) { Ok(signed) } else { Err(SignerClientError::Other) }
    }

    /// Signs a sign-in; the text that was signed, and the signature in hexadecimal.
    ///
    /// # Errors
    /// Fails if the signer refuses, is gone, or signs something else.
    pub async fn sign_in(&self, message: &SignIn) -> Result<String, SignerClientError> {
        let asked = payload::SignInFields {
            audience: payload::Audience {
                domain: message.domain.clone(),
                uri: message.uri.clone(),
                chain_id: message.chain_id,
            },
            nonce: message.nonce.clone(),
            issued_at: message.issued_at,
            expires_at: message.expiration,
        };
        let (text, signature) = self.ask(move |signer| signer.sign_in(&asked)).await?;
        let is_same = text == message.to_string();
        if is_same { Ok(signature.to_string()) } else { Err(SignerClientError::Other) }
    }

    /// Signs a registration; what the cloud is sent.
    ///
    /// # Errors
    /// Fails if the signer refuses, is gone, or signs something else.
    pub async fn register(
        &self,
        asked: RegistrationFields,
    ) -> Result<cloud::RegistrationRequest, SignerClientError> {
        let body = asked.unsigned(self.address).map_err(|_| SignerClientError::Other)?;
        let (hash, signature) = self.ask(move |signer| signer.register(&asked)).await?;
        let signed = cloud::RegistrationRequest { signature: signature.to_string(), ..body };
        if hash == signed.payload_hash { Ok(signed) } else { Err(SignerClientError::Other) }
    }

    /// Signs how a record ends; the text that was signed, with the signature as its last line.
    ///
    /// # Errors
    /// Fails if the signer refuses, is gone, or signs something else.
    pub async fn audit_head(&self, head: AuditHead) -> Result<String, SignerClientError> {
        let text = head.text(self.address);
        let signature = self.ask(move |signer| signer.audit_head(&head)).await?.to_string();
        let bytes =
            alloy_primitives::hex::decode(&signature).map_err(|_| SignerClientError::Other)?;
        if signer_of(&text, &bytes) != Some(self.address) {
            return Err(SignerClientError::Other);
        }
        Ok(format!("{text}\nSignature: {signature}"))
    }

    /// Reads the signer's remaining limits and its totals.
    ///
    /// # Errors
    /// Fails if the signer is gone, or its ledger cannot be read; then it is unknown.
    pub async fn standing(&self) -> Result<SignerStatus, SignerClientError> {
        self.ask(SignerConnection::limits).await
    }

    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut SignerConnection) -> Result<T, SignerConnectionError>
        + Send
        + 'static,
    ) -> Result<T, SignerClientError> {
        let signer = Arc::clone(&self.signer);
        let asked = move || match signer.lock() {
            Ok(mut signer) => Ok(question(&mut signer)?),
            Err(_poisoned) => Err(SignerClientError::Cut),
        };
        if self.in_caller {
            return asked();
        }
        tokio::task::spawn_blocking(asked).await.map_err(|_| SignerClientError::Cut)?
    }
}

#[cfg(test)]
mod tests;
