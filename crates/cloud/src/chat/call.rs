//! One call of the upstream, from its request to its charge.
//!
//! The upstream's count of tokens is what is charged. When it gives none, the
//! count is estimated from the bytes and the answer says so. A call that fails
//! costs nothing.

use std::sync::Arc;

use automaton_core::id::HoldId;
use automaton_core::money::MoneyError;
use automaton_inference::providers::local::chat::Byline;
use bytes::Bytes;

use super::hearing::{DONE, Hearing};
use super::upstream::Question;
use super::{ChatBody, Meter, Recording};
use crate::billing::price::{Charge, Metering};
use crate::config::Model;
use crate::error::ApiError;

/// A call that has its credits set aside.
pub(super) struct Call {
    pub(super) meter: Arc<Meter>,
    pub(super) chat: ChatBody,
    pub(super) model: Model,
    pub(super) hold: HoldId,
}

impl Call {
    /// Carries the call out and records its answer.
    pub(super) async fn run(self, recording: &Recording) {
        let Self { meter, chat, model, hold } = self;
        let bill = Bill { meter: &meter, model: &model, hold, prompt_bytes: chat.bytes };
        let mut hearing = Hearing::new(recording, chat.wants_usage);
        let byline = Byline {
            id: format!("chatcmpl-{hold}"),
            model: model.id.clone(),
            created: meter.mint.now().as_millis() / 1000,
        };
        let question = Question { chat, model: &model, byline, report: &meter.report };
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
struct Bill<'a> {
    meter: &'a Meter,
    model: &'a Model,
    hold: HoldId,
    prompt_bytes: usize,
}

impl Bill<'_> {
    /// Charges an answer and then shows what of it was held back: all of it, or
    /// the end of a stream.
    async fn present(&self, hearing: Hearing<'_>, recording: &Recording) -> Result<(), ApiError> {
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
    async fn charge(&self, hearing: &Hearing<'_>) -> Result<Charge, ApiError> {
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
