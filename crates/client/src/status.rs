//! The status that an automaton reports and its creator reads.

use alloy_primitives::Address;
use automaton_core::secret::Secret;
use automaton_core::wire::cloud::{StatusReply, StatusReport};
use automaton_net::HttpMethod;

use crate::{CloudClient, CloudClientError, with_body};

impl CloudClient {
    /// Replaces the automaton's reported status.
    ///
    /// # Errors
    /// Returns [`CloudClientError`].
    pub async fn report_status(
        &self,
        key: &Secret,
        report: &StatusReport,
    ) -> Result<(), CloudClientError> {
        let path = ["v1", "automata", "status"];
        let request = self.request(HttpMethod::Post, &path, Some(key.clone()))?;
        self.reply(with_body(request, report)?).await?;
        Ok(())
    }

    /// Returns the last reported status of an automaton, for a key of its own wallet or of its
    /// creator's.
    ///
    /// # Errors
    /// Returns [`CloudClientError`].
    pub async fn status(&self, key: &Secret, of: Address) -> Result<StatusReply, CloudClientError> {
        let of = of.to_string();
        self.question(&["v1", "automata", "status", &of], key).await
    }
}
