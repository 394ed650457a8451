//! Transfers of credits to another wallet, and the account's history.
//!
//! Only a reply that confirms exactly the request is a success, and only an error code of the
//! cloud's ledger is a refusal. After anything else (no reply, a proxy's page, another amount)
//! the outcome is unknown. A retry under the same key is safe, and must use the same key.

use alloy_primitives::Address;
use automaton_core::secret::Secret;
use automaton_core::wire::cloud::{
    CeilingReply, ErrorBody, ErrorDetails, HistoryReply, IDEMPOTENCY_KEY, INSUFFICIENT_CREDITS,
    INVALID_REQUEST, TRANSFER_CEILING, TransferReply, TransferRequest,
};
use automaton_net::{Header, HttpMethod, redact};

use crate::{CloudClient, CloudClientError, WORDS_CHARS_MAX, with_body};

/// The error codes after which nothing has moved.
const REFUSALS: [&str; 3] = [INSUFFICIENT_CREDITS, TRANSFER_CEILING, INVALID_REQUEST];

/// A page of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryPage {
    /// The number of entries, 1 to 100.
    pub limit: u32,
    /// The number of newer entries to skip.
    pub offset: u64,
}

/// The outcome of a transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CreditTransferOutcome {
    /// The cloud has recorded the transfer.
    Completed(TransferReply),
    /// The cloud refused the transfer.
    Refused(TransferRefusal),
}

/// The refusal of a transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferRefusal {
    /// The HTTP status.
    pub status: u16,
    /// The cloud's error code.
    pub code: String,
    /// The cloud's message.
    pub text: String,
    /// The numbers of the refusal: the balance, the needed amount, the ceiling.
    pub details: ErrorDetails,
}

impl CloudClient {
    /// Transfers `cents` of the key's credits to another wallet under an idempotency key. The
    /// same key with the same content is the same transfer, however often it is sent.
    ///
    /// # Errors
    /// Returns [`CloudClientError`]. Then it is unknown whether the credits moved.
    pub async fn transfer(
        &self,
        key: &Secret,
        asked: &TransferRequest,
        idempotency_key: &str,
    ) -> Result<CreditTransferOutcome, CloudClientError> {
        let path = ["v1", "credits", "transfer"];
        let mut request = self.request(HttpMethod::Post, &path, Some(key.clone()))?;
        request.headers.push(Header::Open(IDEMPOTENCY_KEY, idempotency_key.to_owned()));
        let response = self.client.request(with_body(request, asked)?).await?;
        match response.status {
            200..=299 => {
                let body = response.body.read_to_end().await?;
                let reply: TransferReply = serde_json::from_slice(&body)
                    .map_err(|error| self.malformed(error.to_string()))?;
                self.check_reply(&reply, asked)?;
                Ok(CreditTransferOutcome::Completed(reply))
            }
            // A conflict means that something else happened under this key.
            status @ (400 | 402 | 403 | 422) => {
                let body = response.body.read_to_end().await?;
                let told: ErrorBody = serde_json::from_slice(&body)
                    .map_err(|error| self.malformed(format!("status {status}, {error}")))?;
                let code = told.code;
                let details = told.details;
                // A proxy in front of the cloud uses no error code of its ledger.
                if !REFUSALS.contains(&code.as_str()) {
                    return Err(self.malformed(format!("status {status} without a reason")));
                }
                let text = redact::text(&told.error, &[], WORDS_CHARS_MAX);
                Ok(CreditTransferOutcome::Refused(TransferRefusal { status, code, text, details }))
            }
            _ => Err(self.refused(response).await?),
        }
    }

    /// Returns the amount that the key may transfer in any 24 hours, and the amount transferred
    /// by its wallet.
    ///
    /// # Errors
    /// Returns [`CloudClientError`]. A cloud may have no such ceiling.
    pub async fn transfer_ceiling(&self, key: &Secret) -> Result<CeilingReply, CloudClientError> {
        self.question(&["v1", "credits", "ceiling"], key).await
    }

    fn check_reply(
        &self,
        reply: &TransferReply,
        asked: &TransferRequest,
    ) -> Result<(), CloudClientError> {
        // Addresses are compared as values, so letter case does not matter.
        let to = |text: &str| text.parse::<Address>();
        let same = match (to(&reply.to_address), to(&asked.to_address)) {
            (Ok(told), Ok(wanted)) => told == wanted,
            _ => reply.to_address == asked.to_address,
        };
        if reply.transfer_id.is_empty() || !same || reply.amount_cents != asked.amount_cents {
            let what = format!(
                "it tells of {} cents to {} instead of {} to {}",
                reply.amount_cents, reply.to_address, asked.amount_cents, asked.to_address
            );
            return Err(self.malformed(redact::text(&what, &[], WORDS_CHARS_MAX)));
        }
        Ok(())
    }

    /// Returns the history of the key's account, newest first.
    ///
    /// # Errors
    /// Returns [`CloudClientError`].
    pub async fn history(
        &self,
        key: &Secret,
        page: HistoryPage,
    ) -> Result<HistoryReply, CloudClientError> {
        let path = ["v1", "credits", "history"];
        let mut request = self.request(HttpMethod::Get, &path, Some(key.clone()))?;
        request
            .url
            .query_pairs_mut()
            .append_pair("limit", &page.limit.to_string())
            .append_pair("offset", &page.offset.to_string());
        self.json(request).await
    }
}
