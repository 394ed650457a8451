//! One call of the upstream, from its request to its charge.
//!
//! The upstream's count of tokens is what is charged. When it gives none, the
//! count is estimated from the bytes and the answer says so. A call that fails
//! costs nothing.

use std::sync::Arc;

use automaton_core::id::HoldId;
use automaton_core::money::MoneyError;
use automaton_inference::providers::local::chat::ResponseMeta;
use bytes::Bytes;

use super::answer_stream::{AnswerStream, DONE};
use super::upstream::UpstreamRequest;
use super::{ChatBody, ChatService, Recording};
use crate::billing::price::{Charge, Metering};
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
        let mut hearing = AnswerStream::new(recording, chat.wants_usage);
        let byline = ResponseMeta {
            id: format!("chatcmpl-{hold}"),
            model: model.id.clone(),
            created: meter.ids.now().as_millis() / 1000,
        };
        let question = UpstreamRequest { chat, model: &model, byline, report: &meter.report };
        let done = match meter.upstream.answer(question, &mut hearing).await {
            Ok(()) => bill.present(hearing, recording).await,
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
    /// Charges an answer and then shows what of it was held back: all of it, or
    /// the end of a stream.
    async fn present(
        &self,
        hearing: AnswerStream<'_>,
        recording: &Recording,
    ) -> Result<(), ApiError> {
        let charge = self.charge(&hearing).await?;
        if let Some(body) = hearing.document {
            recording.begin(charge.metering);
            recording.finish(body);
            return Ok(());
        }
        if charge.metering == Metering::Estimated {
            // A comment, which readers of event streams skip.
            let tokens = charge.tokens;
            recording.push(Bytes::from(format!(
                ": usage was not reported; charged for an estimate of {} and {} tokens\n\n",
                tokens.prompt, tokens.completion
            )));
        }
        recording.finish(Bytes::from(format!("data: {DONE}\n\n")));
        Ok(())
    }

    /// Charges what the upstream reported, or an estimate.
    async fn charge(&self, hearing: &AnswerStream<'_>) -> Result<Charge, ApiError> {
        let prices = self.model.prices();
        let charge: Result<Charge, MoneyError> = match &hearing.usage {
            Some(usage) => prices.reported(usage),
            None => prices.estimated(self.prompt_bytes, hearing.bytes),
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
