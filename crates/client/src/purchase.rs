//! Purchases of credits: the payment demand, and the request that pays.
//!
//! Only a complete reply tells the outcome of a payment. After a lost, late or unreadable reply
//! the outcome is unknown, and must never be taken for a refusal.

use alloy_primitives::Address;
use automaton_core::secret::Secret;
use automaton_core::wire::cloud::PurchaseReply;
use automaton_core::wire::x402::{PAYMENT_REQUIRED, X_PAYMENT_REQUIRED};
use automaton_net::{Deadlines, Header, HttpMethod};
use std::time::Duration;

use crate::{CloudClient, CloudClientError};

/// The timeouts of a payment, which a chain has to confirm.
const DEADLINES: Deadlines =
    Deadlines { idle: Duration::from_secs(60), total: Duration::from_secs(90) };

/// The parts of a cloud's reply that may contain its payment demand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurchaseChallenge {
    /// `PAYMENT-REQUIRED`.
    pub payment_required: Option<String>,
    /// `X-Payment-Required`.
    pub x_payment_required: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// The outcome of a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PurchaseOutcome {
    /// The cloud accepted the payment.
    Taken(PurchaseReply),
    /// The cloud refused the payment, with this reason.
    Refused(String),
}

impl CloudClient {
    /// Requests the price of credits for `usd` US dollars.
    ///
    /// # Errors
    /// Returns [`CloudClientError`].
    pub async fn ask_for_credits(
        &self,
        usd: u32,
        to: Address,
    ) -> Result<PurchaseChallenge, CloudClientError> {
        let path = ["pay", &usd.to_string(), &to.to_string()];
        let request = self.request(HttpMethod::Get, &path, None)?;
        let response = self.client.request(request).await?;
        match response.status {
            402 => {}
            status @ 200..=299 => {
                let what = format!("status {status} where it should ask to be paid, with 402");
                return Err(self.malformed(what));
            }
            _ => return Err(self.refused(response).await?),
        }
        let header = |name| response.header(name).map(str::to_owned);
        let payment_required = header(PAYMENT_REQUIRED);
        let x_payment_required = header(X_PAYMENT_REQUIRED);
        let body = response.body.read_to_end().await?;
        Ok(PurchaseChallenge { payment_required, x_payment_required, body })
    }

    /// Pays for credits with an x402 header. Sending the same header again is safe, since it
    /// contains the same authorization.
    ///
    /// # Errors
    /// Returns [`CloudClientError`]. Then it is unknown whether the payment was accepted.
    pub async fn pay_for_credits(
        &self,
        usd: u32,
        to: Address,
        name: &'static str,
        value: String,
    ) -> Result<PurchaseOutcome, CloudClientError> {
        let path = ["pay", &usd.to_string(), &to.to_string()];
        let mut request = self.request(HttpMethod::Get, &path, None)?;
        request.deadlines = DEADLINES;
        request.headers.push(Header::Secret(name, Secret::new(value)));
        let response = self.client.request(request).await?;
        match response.status {
            200..=299 => {
                self.purchase(&response.body.read_to_end().await?).map(PurchaseOutcome::Taken)
            }
            400 | 402 | 422 => match self.refused(response).await? {
                CloudClientError::Refused { text, .. } => Ok(PurchaseOutcome::Refused(text)),
                other => Err(other),
            },
            _ => Err(self.refused(response).await?),
        }
    }

    fn purchase(&self, body: &[u8]) -> Result<PurchaseReply, CloudClientError> {
        serde_json::from_slice(body).map_err(|error| self.malformed(error.to_string()))
    }
}
