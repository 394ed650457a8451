//! One call of the upstream, from its request to its charge.
//!
//! The upstream's count of tokens is charged. If it gives none, or an impossible one, the count is
//! estimated from the bytes, and the answer says so with the very counts that are charged. A call
//! that fails costs nothing. If one of our limits ends a call, the part that was passed on is
//! charged.

use std::sync::Arc;

use automaton_core::id::HoldId;
use automaton_inference::providers::local::chat::ResponseMeta;
use axum::http::StatusCode;

use super::answer::{Answer, answer};
use super::upstream::{UpstreamAnswer, UpstreamRequest};
use super::{ChatBody, ChatService, ClientFormat, Recording};
use crate::billing::price::{BilledTokens, Charge, Metering};
use crate::config::OfferedModel;
use crate::error::ApiError;

/// A call that has its credits set aside.
pub(super) struct MeteredCall {
    pub(super) meter: Arc<ChatService>,
    pub(super) chat: ChatBody,
    pub(super) model: OfferedModel,
    pub(super) hold: HoldId,
}

impl MeteredCall {
    /// Carries the call out and records its answer.
    pub(super) async fn run(self, recording: &Recording) {
        let Self { meter, chat, model, hold } = self;
        let bill = ChargeContext { meter: &meter, model: &model, hold, prompt_bytes: chat.bytes };
        let id = match chat.format {
            ClientFormat::ChatCompletions | ClientFormat::Embeddings => format!("chatcmpl-{hold}"),
            ClientFormat::AnthropicMessages => format!("msg_{hold}"),
            ClientFormat::Responses => format!("resp_{hold}"),
        };
        let created = meter.ids.now().as_millis() / 1000;
        let meta = ResponseMeta { id, model: model.id.clone(), created };
        let bounds = chat.bounds(&model);
        let fresh = |from| answer(recording, &chat, from, (bounds, meta.clone()));
        let question = UpstreamRequest { chat: &chat, model: &model, report: &meter.report };
        let done = match meter.upstreams.answer(&question, fresh).await {
            Ok(UpstreamAnswer { answer, cut_off: None }) => bill.present(answer).await,
            Ok(UpstreamAnswer { answer, cut_off: Some(told) }) => {
                let charged = bill.charge(answer.billed(chat.bytes)).await;
                // What was passed on is charged, and nothing is given back.
                charged.map(|_| recording.refuse(told))
            }
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = done {
            meter.release(hold).await;
            recording.refuse(refusal);
        }
    }
}

/// The values that the charge needs.
struct ChargeContext<'a> {
    meter: &'a ChatService,
    model: &'a OfferedModel,
    hold: HoldId,
    prompt_bytes: usize,
}

impl ChargeContext<'_> {
    /// Charges an answer and then shows what of it was held back.
    async fn present(&self, answer: Box<dyn Answer + '_>) -> Result<(), ApiError> {
        let charge = self.charge(answer.billed(self.prompt_bytes)).await?;
        answer.finish(&charge).map_err(|what| {
            (self.meter.report)(format!(
                "the call {} was charged and not shown: {what}",
                self.hold
            ));
            ApiError::new(StatusCode::BAD_GATEWAY, "UPSTREAM_FAILED", "the model did not answer")
        })
    }

    /// Charges what the upstream reported, or an estimate.
    async fn charge(&self, billed: (BilledTokens, Metering)) -> Result<Charge, ApiError> {
        let charge = self.model.prices().charge(billed);
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
