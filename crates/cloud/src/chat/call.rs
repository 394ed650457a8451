//! One call of the upstream, from its request to its charge.
//!
//! The upstream's count of tokens is what is charged. When it gives none, the
//! count is estimated from the bytes and the answer says so. A call that fails
//! costs nothing.

use std::sync::Arc;
use std::time::Duration;

use automaton_core::error::chain;
use automaton_core::id::HoldId;
use automaton_core::money::MoneyError;
use automaton_core::secret::Secret;
use automaton_core::wire::chat::ChatUsage;
use automaton_net::sse::Events;
use automaton_net::{Deadlines, Header, Method, Request, Response};
use axum::http::StatusCode;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{ChatBody, Meter, Recording};
use crate::billing::price::{Charge, Metering};
use crate::config::Model;
use crate::error::ApiError;

/// How long the upstream may think and answer.
const DEADLINES: Deadlines =
    Deadlines { idle: Duration::from_secs(300), total: Duration::from_secs(900) };
/// The largest answer, in bytes.
const ANSWER_BYTES_MAX: u64 = 8 << 20;
/// The marker at the end of a stream.
const DONE: &str = "[DONE]";

/// A call that has its credits set aside.
pub(super) struct Call {
    pub(super) meter: Arc<Meter>,
    pub(super) chat: ChatBody,
    pub(super) model: Model,
    pub(super) hold: HoldId,
}

/// What of an answer, or of a piece of one, concerns the bill.
#[derive(Deserialize)]
struct Seen {
    #[serde(default)]
    choices: Vec<SeenChoice>,
    #[serde(default)]
    usage: Option<ChatUsage>,
}

#[derive(Deserialize)]
struct SeenChoice {
    #[serde(alias = "delta")]
    message: Option<SeenText>,
}

#[derive(Deserialize)]
struct SeenText {
    #[serde(default)]
    content: Option<Box<RawValue>>,
    #[serde(default)]
    tool_calls: Option<Box<RawValue>>,
}

impl Seen {
    /// Bytes of what was generated.
    fn bytes(&self) -> usize {
        let texts = self.choices.iter().filter_map(|choice| choice.message.as_ref());
        let parts = texts.flat_map(|text| [&text.content, &text.tool_calls]);
        parts.flatten().map(|raw| raw.get().len()).sum()
    }
}

impl Call {
    /// Carries the call out and records its answer.
    pub(super) async fn run(self, recording: &Recording) {
        let Self { meter, chat, model, hold } = self;
        let bill = Bill { meter: Arc::clone(&meter), model, hold, prompt_bytes: chat.bytes };
        let (stream, wants_usage) = (chat.stream, chat.wants_usage);
        let done = match bill.ask(chat).await {
            Ok(response) if stream => bill.stream(response, wants_usage, recording).await,
            Ok(response) => bill.whole(response, recording).await,
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = done {
            meter.release(hold).await;
            recording.refuse(refusal);
        }
    }
}

/// What the charge needs.
struct Bill {
    meter: Arc<Meter>,
    model: Model,
    hold: HoldId,
    prompt_bytes: usize,
}

impl Bill {
    async fn ask(&self, chat: ChatBody) -> Result<Response, ApiError> {
        let upstream = &self.meter.upstream;
        let body = chat.for_upstream(&self.model, upstream.limit_name);
        let mut request = Request::new(Method::Post, upstream.url.clone());
        request.body = body.map_err(|error| ApiError::internal(&self.meter.report, &error))?;
        request.headers.push(Header::Open("content-type", "application/json".to_owned()));
        if let Some(key) = &upstream.key {
            let bearer = Secret::new(format!("Bearer {}", key.reveal()));
            request.headers.push(Header::Secret("authorization", bearer));
        }
        (request.deadlines, request.body_bytes_max) = (DEADLINES, ANSWER_BYTES_MAX);
        let response =
            upstream.client.request(request).await.map_err(|error| self.broken(&error))?;
        match response.status {
            200..300 => Ok(response),
            status => Err(self.refused(status, response).await),
        }
    }

    /// The upstream refused. What the client can mend is told to it; the rest
    /// is the operator's.
    async fn refused(&self, status: u16, response: Response) -> ApiError {
        let body = response.body.whole().await.unwrap_or_default();
        let said: String = String::from_utf8_lossy(&body).chars().take(500).collect();
        (self.meter.report)(format!("the upstream refused with status {status}: {said}"));
        let code = "UPSTREAM_REFUSED";
        match status {
            400 | 413 | 422 => ApiError::new(StatusCode::BAD_REQUEST, code, said),
            429 if !said.contains("insufficient_quota") => {
                ApiError::new(StatusCode::TOO_MANY_REQUESTS, code, "the model is busy")
            }
            _ => ApiError::new(StatusCode::BAD_GATEWAY, code, "the model cannot be used now"),
        }
    }

    fn broken(&self, error: &(dyn std::error::Error + 'static)) -> ApiError {
        (self.meter.report)(format!("the upstream failed: {}", chain(error)));
        let sentence = "the model did not answer";
        ApiError::new(StatusCode::BAD_GATEWAY, "UPSTREAM_FAILED", sentence)
    }

    /// An answer in one piece.
    async fn whole(&self, response: Response, recording: &Recording) -> Result<(), ApiError> {
        let body = response.body.whole().await.map_err(|error| self.broken(&error))?;
        let seen: Seen = serde_json::from_slice(&body).map_err(|error| self.broken(&error))?;
        let charge = self.charge(seen.usage, seen.bytes()).await?;
        recording.begin("application/json", charge.metering == Metering::Estimated);
        recording.push(body.into());
        Ok(())
    }

    /// An answer piece by piece. The end is held back until it is charged.
    async fn stream(
        &self,
        mut response: Response,
        wants_usage: bool,
        recording: &Recording,
    ) -> Result<(), ApiError> {
        let mut events = Events::default();
        let (mut usage, mut bytes, mut done) = (None, 0, false);
        recording.begin("text/event-stream", false);
        while !done {
            let chunk = response.body.chunk().await.map_err(|error| self.broken(&error))?;
            let Some(chunk) = chunk else { break };
            for event in events.push(&chunk).map_err(|error| self.broken(&error))? {
                if event.data.trim() == DONE {
                    done = true;
                    break;
                }
                // silent-ok: a piece that we cannot read is passed on all the same.
                let seen: Option<Seen> = serde_json::from_str(&event.data).ok();
                let only_usage = seen
                    .as_ref()
                    .is_some_and(|seen| seen.choices.is_empty() && seen.usage.is_some());
                if let Some(seen) = seen {
                    bytes += seen.bytes();
                    usage = seen.usage.or(usage);
                }
                if wants_usage || !only_usage {
                    recording.push(Bytes::from(format!("data: {}\n\n", event.data)));
                }
            }
        }
        let charge = self.charge(usage, bytes).await?;
        if charge.metering == Metering::Estimated {
            // A comment, which readers of event streams skip.
            let tokens = charge.tokens;
            recording.push(Bytes::from(format!(
                ": usage was not reported; charged for an estimate of {} and {} tokens\n\n",
                tokens.prompt, tokens.completion
            )));
        }
        recording.push(Bytes::from(format!("data: {DONE}\n\n")));
        Ok(())
    }

    /// Charges what the upstream reported, or an estimate.
    async fn charge(&self, usage: Option<ChatUsage>, bytes: usize) -> Result<Charge, ApiError> {
        let prices = self.model.prices();
        let charge: Result<Charge, MoneyError> = match &usage {
            Some(usage) => prices.reported(usage),
            None => prices.estimated(self.prompt_bytes, bytes),
        };
        let internal = |error: &(dyn std::error::Error + 'static)| {
            ApiError::internal(&self.meter.report, error)
        };
        let charge = charge.map_err(|error| internal(&error))?;
        let charged = self.meter.db.settle_hold(self.hold, charge).await;
        let charged = charged.map_err(|error| internal(&error))?;
        if charged < charge.cost {
            (self.meter.report)(format!(
                "the call {} cost {} but only {charged} was set aside and charged",
                self.hold, charge.cost
            ));
        }
        Ok(charge)
    }
}
