//! What the account with the cloud is good for besides money.
//!
//! It goes through the treasury, since nobody else has the account's key.

use automaton_client::ClientError;
use automaton_core::wire::cloud::{ModelsReply, StatusReport};

use super::Treasury;

impl Treasury {
    /// Says at the cloud how the automaton is; whether there is an account to say it
    /// with.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn report_status(&self, status: &StatusReport) -> Result<bool, ClientError> {
        let Some(key) = &self.till.key else { return Ok(false) };
        self.till.cloud.report_status(key, status).await?;
        Ok(true)
    }

    /// The models that the cloud sells; none without an account.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn models(&self) -> Result<Option<ModelsReply>, ClientError> {
        let Some(key) = &self.till.key else { return Ok(None) };
        Ok(Some(self.till.cloud.models(key).await?))
    }

    /// Whether there is an account.
    #[must_use]
    pub const fn has_account(&self) -> bool {
        self.till.key.is_some()
    }
}
