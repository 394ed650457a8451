//! The supervisor's reports to the operator: webhook and collector of traces.
//!
//! Each is there only where the configuration names it. None of them may delay the
//! supervisor, or end what it does.

use std::future::pending;

use automaton_core::event::{Event, StampedEvent};

use automaton_inference::providers::http::ApiFormat;

use crate::config::resolve::{Brain, ResolvedConfig};
use crate::error::CliError;
use crate::http::origin;
use crate::traces::{ModelServer, TraceExporter};
use crate::webhook::Webhook;

/// The outlets of one automaton.
#[derive(Debug, Default)]
pub(crate) struct EventExporters {
    webhook: Option<Webhook>,
    traces: Option<TraceExporter>,
}

/// Returns the server of the model as the conventions for generative AI name it.
fn model_server(brain: &Brain) -> ModelServer {
    let Brain::Http(http) = brain else {
        return ModelServer { provider: "local", place: None };
    };
    let provider = match http.format {
        ApiFormat::ChatCompletions | ApiFormat::Responses => "openai",
        ApiFormat::AnthropicMessages => "anthropic",
        ApiFormat::Gemini => "gcp.gemini",
        ApiFormat::Ollama => "ollama",
    };
    // silent-ok: an address that is none is refused where the model is asked.
    let place = origin(&http.url).ok().map(|origin| (origin.host().to_owned(), origin.port()));
    ModelServer { provider, place }
}

impl EventExporters {
    /// Opens those that the configuration names.
    ///
    /// # Errors
    /// When an address is none.
    pub(crate) fn open(resolved: &ResolvedConfig) -> Result<Self, CliError> {
        let ResolvedConfig { allowed_origins, name, home, .. } = resolved;
        let webhook = resolved.webhook.as_ref();
        let webhook = webhook.map(|to| Webhook::start(to, allowed_origins, name)).transpose()?;
        let traces = resolved.traces.as_ref();
        let server = || model_server(&resolved.brain);
        let begin = |to| TraceExporter::start(to, allowed_origins, home, name, server());
        let traces = traces.map(begin).transpose()?;
        Ok(Self { webhook, traces })
    }

    /// Takes an event; what is to be told when somebody who wants it cannot have it.
    pub(crate) fn take(&self, stamped: &StampedEvent) -> Option<Event> {
        let webhook = self.webhook.as_ref().and_then(|webhook| webhook.take(stamped));
        // No event is for both.
        webhook.or_else(|| self.traces.as_ref().and_then(|traces| traces.take(stamped)))
    }

    /// Returns the next failed delivery. Cancel-safe.
    pub(crate) async fn next_failure(&mut self) -> Event {
        let Self { webhook, traces } = self;
        let hooked = async {
            match webhook {
                Some(webhook) => webhook.next_failure().await,
                None => pending().await,
            }
        };
        let traced = async {
            match traces {
                Some(traces) => traces.next_failure().await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            failed = hooked => failed,
            failed = traced => failed,
        }
    }

    /// Waits a moment for what is not delivered yet, and ends.
    pub(crate) async fn end(self) {
        let Self { webhook, traces } = self;
        if let Some(webhook) = webhook {
            webhook.end().await;
        }
        if let Some(traces) = traces {
            traces.end().await;
        }
    }
}
