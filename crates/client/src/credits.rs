//! Giving credits to another wallet, and what happened to the account.
//!
//! Only a reply that names exactly what was asked for is a success, and only a
//! refusal in the cloud's own words is one. Whatever else comes back, nothing, a
//! proxy's page, another amount, is an error after which the transfer is unknown:
//! asking again under the same key is safe, and must be under the same key.

use alloy_primitives::Address;
use automaton_core::secret::Secret;
use automaton_core::wire::cloud::{
    CeilingReply, ErrorBody, ErrorDetails, HistoryReply, IDEMPOTENCY_KEY, INSUFFICIENT_CREDITS,
    INVALID_REQUEST, TRANSFER_CEILING, TransferReply, TransferRequest,
};
use automaton_net::{Header, HttpMethod, redact};

use crate::{CloudClient, CloudClientError, WORDS_CHARS_MAX, with_body};

/// The codes of refusals after which nothing has moved.
const REFUSALS: [&str; 3] = [INSUFFICIENT_CREDITS, TRANSFER_CEILING, INVALID_REQUEST];

/// Which part of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryPage {
    /// How many entries, 1 to 100.
    pub limit: u32,
    /// How many newer ones to leave out.
    pub offset: u64,
}

/// What became of a transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CreditTransferOutcome {
    /// The cloud's ledger has it.
    Completed(TransferReply),
    /// The cloud did not do it, and says why.
    Refused(TransferRefusal),
}

/// Why nothing was transferred.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferRefusal {
    /// The status of the reply.
    pub status: u16,
    /// The cloud's code for programs.
    pub code: String,
    /// What it says.
    pub text: String,
    /// Its numbers: what is there, what would be needed, the ceiling.
    pub details: ErrorDetails,
}

impl CloudClient {
    /// Gives `cents` of the key's credits to another wallet, under an idempotency
    /// key: the same key with the same content is the same transfer, whenever it
    /// is repeated.
    ///
    /// # Errors
    /// [`CloudClientError`]; then it is unknown whether the credits moved.
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
                self.is_as_asked(&reply, asked)?;
                Ok(CreditTransferOutcome::Completed(reply))
            }
            // A conflict says that something else happened under this key.
            status @ (400 | 402 | 403 | 422) => {
                let body = response.body.read_to_end().await?;
                let told: ErrorBody = serde_json::from_slice(&body)
                    .map_err(|error| self.malformed(format!("status {status}, {error}")))?;
                let (code, details) = (told.code, told.details);
                // Whoever stands before the cloud knows no transfer, and names no code
                // of its ledger.
                if !REFUSALS.contains(&code.as_str()) {
                    return Err(self.malformed(format!("status {status} without a reason")));
                }
                let text = redact::text(&told.error, &[], WORDS_CHARS_MAX);
                Ok(CreditTransferOutcome::Refused(TransferRefusal { status, code, text, details }))
            }
            _ => Err(self.refused(response).await?),
        }
    }

    /// What the key may transfer in any 24 hours, and what its wallet has transferred.
    ///
    /// # Errors
    /// [`CloudClientError`]; a cloud may keep no such ceiling.
    pub async fn transfer_ceiling(&self, key: &Secret) -> Result<CeilingReply, CloudClientError> {
        self.question(&["v1", "credits", "ceiling"], key).await
    }

    fn is_as_asked(
        &self,
        reply: &TransferReply,
        asked: &TransferRequest,
    ) -> Result<(), CloudClientError> {
        // Addresses are compared as such: letter case is no difference.
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

    /// What happened to the key's account, newest first.
    ///
    /// # Errors
    /// [`CloudClientError`].
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
