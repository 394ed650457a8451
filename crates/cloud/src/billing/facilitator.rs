//! Payments: what we ask for, what we take, and how it reaches the chain.
//!
//! Chain, token, payee and price come from our own configuration; of a payment
//! everything is compared with them before anything is stored. Codes of refusal
//! are those that x402's SDKs emit.

use std::future::Future;
use std::pin::Pin;

use alloy_primitives::{Address, B256, Bytes, Signature, U256};
use automaton_core::error::{Classified, Kind};
use automaton_core::money::MicroUsdc;
use automaton_core::time::Timestamp;
use automaton_core::wire::x402::{
    Authorization, ChainId, EXACT, Extra, Payment, TokenDomain, v1, v2,
};

use crate::db::Submission;

/// How long an authorization has to be valid still, in seconds: time for a
/// transaction to reach a block.
const VALID_SECS_MIN: u64 = 6;

/// What a read or write of the chain gives, later.
pub type OnChain<'a, T> = Pin<Box<dyn Future<Output = Result<T, SettlementError>> + Send + 'a>>;

/// The chain, as far as payments need it.
pub trait Settlement: Send + Sync {
    /// Whether the authorization's nonce was used or cancelled.
    fn authorization_used<'a>(&'a self, authorization: &'a Authorization) -> OnChain<'a, bool>;
    /// How much of the token somebody has.
    fn balance(&self, holder: Address) -> OnChain<'_, U256>;
    /// Simulates the transfer and signs its transaction, without sending it.
    fn prepare<'a>(
        &'a self,
        authorization: &'a Authorization,
        signature: &'a Bytes,
    ) -> OnChain<'a, Submission>;
    /// Sends a signed transaction; one that the chain knows is no error.
    fn broadcast<'a>(&'a self, raw: &'a Bytes) -> OnChain<'a, ()>;
    /// What became of a transaction; `None` while it is in no block.
    fn outcome(&self, transaction: B256) -> OnChain<'_, Option<TxOutcome>>;
    /// How many transactions of the account that pays the gas are in blocks.
    fn gas_nonce(&self) -> OnChain<'_, u64>;
    /// The transaction in which this transfer happened, whoever sent it.
    fn transfer_of<'a>(&'a self, authorization: &'a Authorization) -> OnChain<'a, Option<B256>>;
}

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TxOutcome {
    /// It did what it should.
    Succeeded,
    /// It is in a block and did nothing.
    Reverted,
}

/// The chain did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum SettlementError {
    /// The chain could not be asked; nothing is known.
    #[error("the chain cannot be asked")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The chain answered something that we do not understand.
    #[error("the chain's answer to {method} is malformed")]
    Malformed {
        /// What was asked.
        method: &'static str,
    },
    /// The chain refused.
    #[error("the chain refused {method}: {reason}")]
    Rejected {
        /// What was asked.
        method: &'static str,
        /// In its own words.
        reason: String,
    },
}

impl Classified for SettlementError {
    fn kind(&self) -> Kind {
        match self {
            Self::Unavailable(_) => Kind::Transient,
            Self::Malformed { .. } | Self::Rejected { .. } => Kind::Upstream,
        }
    }
}

/// Why a payment is not taken: a code of x402's SDKs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal(pub &'static str);

/// The nonce of the authorization was used before.
pub const NONCE_USED: Refusal = Refusal("invalid_exact_evm_nonce_already_used");
/// The payer has too little.
pub const INSUFFICIENT_BALANCE: Refusal = Refusal("invalid_exact_evm_insufficient_balance");
/// The simulation of the transfer failed.
pub const SIMULATION_FAILED: Refusal = Refusal("invalid_exact_evm_transaction_simulation_failed");
/// The transfer is in a block and did nothing.
pub const TRANSACTION_FAILED: Refusal = Refusal("invalid_exact_evm_transaction_failed");
/// The authorization ends too soon, or has ended.
pub const VALID_BEFORE: Refusal = Refusal("invalid_exact_evm_payload_authorization_valid_before");

/// How we are paid.
#[derive(Debug, Clone)]
pub struct Terms {
    /// The token, with its chain.
    pub token: TokenDomain,
    /// Who is paid.
    pub pay_to: Address,
    /// How long an authorization should be valid, in seconds, at most 300.
    pub timeout_secs: u64,
}

/// What is for sale.
#[derive(Debug, Clone)]
pub struct Offer {
    /// The URL of the purchase.
    pub url: String,
    /// What it is, in words.
    pub description: String,
    /// The price in US dollars, which is that in whole USDC.
    pub usd: u32,
}

impl Offer {
    /// The price in base units of USDC.
    #[must_use]
    pub fn price(&self) -> MicroUsdc {
        MicroUsdc::new(u64::from(self.usd) * 1_000_000)
    }
}

impl Terms {
    /// The demand of version 1, for the body.
    #[must_use]
    pub fn demand_v1(&self, offer: &Offer, error: &str) -> v1::PaymentRequired {
        let one = v1::Requirements {
            scheme: EXACT.to_owned(),
            network: self.token.chain.v1_name(),
            max_amount_required: offer.price().units().to_string(),
            asset: self.token.contract.to_string(),
            pay_to: self.pay_to.to_string(),
            resource: offer.url.clone(),
            description: offer.description.clone(),
            mime_type: "application/json".to_owned(),
            max_timeout_seconds: self.timeout_secs,
            extra: Some(self.extra()),
        };
        v1::PaymentRequired { version: v1::VERSION, error: error.to_owned(), accepts: vec![one] }
    }

    /// The demand of version 2, for the header.
    #[must_use]
    pub fn demand_v2(&self, offer: &Offer, error: &str) -> v2::PaymentRequired {
        v2::PaymentRequired {
            version: v2::VERSION,
            error: Some(error.to_owned()),
            resource: v2::Resource {
                url: offer.url.clone(),
                description: Some(offer.description.clone()),
                mime_type: Some("application/json".to_owned()),
            },
            accepts: vec![self.requirements_v2(offer)],
            extensions: None,
        }
    }

    fn requirements_v2(&self, offer: &Offer) -> v2::Requirements {
        v2::Requirements {
            scheme: EXACT.to_owned(),
            network: self.token.chain.to_string(),
            amount: offer.price().units().to_string(),
            asset: self.token.contract.to_string(),
            pay_to: self.pay_to.to_string(),
            max_timeout_seconds: self.timeout_secs,
            extra: Some(self.extra()),
        }
    }

    fn extra(&self) -> Extra {
        Extra {
            name: Some(self.token.name.clone()),
            version: Some(self.token.version.clone()),
            asset_transfer_method: None,
        }
    }

    /// Compares a payment with what we ask for. What only the chain knows, the
    /// nonce and the balance, is left to the caller.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self, payment: &Payment, offer: &Offer, now: Timestamp) -> Result<(), Refusal> {
        let (scheme, network) = match payment {
            Payment::V1(payment) => (&payment.scheme, &payment.network),
            Payment::V2(payment) => (&payment.accepted.scheme, &payment.accepted.network),
        };
        if scheme != EXACT {
            return Err(Refusal("invalid_exact_evm_scheme"));
        }
        if ChainId::parse(network) != Some(self.token.chain) {
            return Err(Refusal("invalid_exact_evm_network_mismatch"));
        }
        if let Payment::V2(payment) = payment {
            self.check_accepted(&payment.accepted, offer)?;
        }
        let authorization = &payment.payload().authorization;
        if authorization.to != self.pay_to {
            return Err(Refusal("invalid_exact_evm_recipient_mismatch"));
        }
        if authorization.value != U256::from(offer.price().units()) {
            return Err(Refusal("invalid_exact_evm_authorization_value"));
        }
        let now = U256::from(now.as_millis().max(0).unsigned_abs() / 1000);
        if authorization.valid_before < now + U256::from(VALID_SECS_MIN) {
            return Err(VALID_BEFORE);
        }
        if authorization.valid_after > now {
            return Err(Refusal("invalid_exact_evm_payload_authorization_valid_after"));
        }
        // Recovering under our own domain also says that the payer meant our token.
        let signer =
            signer(&payment.payload().signature, self.token.transfer_digest(authorization));
        if signer != Some(authorization.from) {
            return Err(Refusal("invalid_exact_evm_signature"));
        }
        Ok(())
    }

    /// What the client says that it accepted is what we ask for.
    fn check_accepted(&self, accepted: &v2::Requirements, offer: &Offer) -> Result<(), Refusal> {
        let ours = self.requirements_v2(offer);
        // silent-ok: a text that is no address is not ours.
        let is = |text: &str, address: Address| text.parse().ok() == Some(address);
        if accepted.amount != ours.amount {
            return Err(Refusal("invalid_exact_evm_authorization_value"));
        }
        if !is(&accepted.pay_to, self.pay_to) {
            return Err(Refusal("invalid_exact_evm_recipient_mismatch"));
        }
        if !is(&accepted.asset, self.token.contract) {
            return Err(Refusal("invalid_exact_evm_eip3009_not_supported"));
        }
        let method = accepted.extra.as_ref().and_then(|e| e.asset_transfer_method.as_deref());
        if method.is_some_and(|method| method != "eip3009") {
            return Err(Refusal("unsupported_payload_type"));
        }
        Ok(())
    }
}

/// Who signed a hash; `None` when the signature is none of an account: r, s and
/// v, where v is 27 or 28, or 0 or 1 from some wallets.
#[must_use]
pub fn signer(signature: &[u8], digest: B256) -> Option<Address> {
    let shaped = signature.len() == 65 && matches!(signature[64], 0 | 1 | 27 | 28);
    // silent-ok: a signature that does not recover has no signer.
    let signature = shaped.then(|| Signature::from_raw(signature).ok()).flatten()?;
    signature.recover_address_from_prehash(&digest).ok()
}

#[cfg(test)]
mod tests;
