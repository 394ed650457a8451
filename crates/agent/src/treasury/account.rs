//! Uses of the account with the cloud besides money.
//!
//! It goes through the treasury, since nobody else has the account's key.

use automaton_client::CloudClientError;
use automaton_core::wire::cloud::{ModelsReply, StatusReport};

use super::Treasury;

impl Treasury {
    /// Says at the cloud how the automaton is; whether there is an account to say it
    /// with.
    ///
    /// # Errors
    /// [`CloudClientError`].
    pub async fn report_status(&self, status: &StatusReport) -> Result<bool, CloudClientError> {
        let Some(key) = &self.payment_context.key else { return Ok(false) };
        self.payment_context.cloud.report_status(key, status).await?;
        Ok(true)
    }

    /// The models that the cloud sells; none without an account.
    ///
    /// # Errors
    /// [`CloudClientError`].
    pub async fn models(&self) -> Result<Option<ModelsReply>, CloudClientError> {
        let Some(key) = &self.payment_context.key else { return Ok(None) };
        Ok(Some(self.payment_context.cloud.models(key).await?))
    }

    /// Returns true if there is an account.
    #[must_use]
    pub const fn has_account(&self) -> bool {
        self.payment_context.key.is_some()
    }
}
