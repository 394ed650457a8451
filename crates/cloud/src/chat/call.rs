//! One call of the upstream, from its request to its charge.
//!
//! The upstream's count of tokens is what is charged. When it gives none that can
//! be, the count is estimated from the bytes, and the answer says so with the very
//! counts that are charged. A call that fails costs nothing.

use std::sync::Arc;

use automaton_core::id::HoldId;
use automaton_inference::providers::local::chat::ResponseMeta;

use super::answer_stream::AnswerStream;
use super::upstream::UpstreamRequest;
use super::{ChatBody, ChatService, Recording};
use crate::billing::price::Charge;
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
        let meta = ResponseMeta {
            id: format!("chatcmpl-{hold}"),
            model: model.id.clone(),
            created: meter.ids.now().as_millis() / 1000,
        };
        let bounds = chat.bounds(&model);
        let mut hearing = AnswerStream::new(recording, chat.wants_usage, bounds, meta.clone());
        let question = UpstreamRequest { chat, model: &model, byline: meta, report: &meter.report };
        let done = match meter.upstream.answer(question, &mut hearing).await {
            Ok(()) => bill.present(hearing).await,
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = done {
            meter.release(hold).await;
            recording.refuse(refusal);
        }
    }
}

/// What the charge needs.
struct ChargeContext<'a> {
    meter: &'a ChatService,
    model: &'a OfferedModel,
    hold: HoldId,
    prompt_bytes: usize,
}

impl ChargeContext<'_> {
    /// Charges an answer and then shows what of it was held back.
    async fn present(&self, hearing: AnswerStream<'_>) -> Result<(), ApiError> {
        let charge = self.charge(&hearing).await?;
        hearing.finish(&charge);
        Ok(())
    }

    /// Charges what the upstream reported, or an estimate.
    async fn charge(&self, hearing: &AnswerStream<'_>) -> Result<Charge, ApiError> {
        let charge = self.model.prices().charge(hearing.billed(self.prompt_bytes));
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
