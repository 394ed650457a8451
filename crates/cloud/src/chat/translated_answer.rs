//! Translates an answer in chat completions for a client that speaks another format.
//!
//! Must never show the end of an answer, which comes after the charge and reports the charged
//! tokens.

use automaton_core::wire::chat::ChatUsage;
use automaton_inference::providers::http::anthropic::MessagesCount;
use automaton_inference::providers::http::{EventFrame, ReplyWriter, inspect_chat};
use automaton_inference::providers::local::chat::ResponseMeta;
use bytes::Bytes;

use super::Recording;
use super::answer::Answer;
use super::held_back::HeldBack;
use crate::billing::price::{BilledTokens, Charge, Metering, TokenBounds};

/// An answer as it comes.
pub(super) struct TranslatedAnswer<'a> {
    shown: HeldBack<'a>,
    is_stream: bool,
    bounds: TokenBounds,
    meta: ResponseMeta,
    /// The upstream's count of tokens, if it is possible.
    usage: Option<ChatUsage>,
    writer: ReplyWriter,
}

impl<'a> TranslatedAnswer<'a> {
    pub(super) fn new(
        recording: &'a Recording,
        is_stream: bool,
        (bounds, meta): (TokenBounds, ResponseMeta),
        writer: ReplyWriter,
    ) -> Self {
        Self { shown: HeldBack::new(recording), is_stream, bounds, meta, usage: None, writer }
    }

    /// A piece of chat completions, or a whole answer of them; gives whether it was the last.
    ///
    /// # Errors
    /// Fails if it is none, or says that the upstream failed.
    fn take(&mut self, data: &str) -> Result<bool, String> {
        let told = inspect_chat(data)?;
        self.usage = told.filter(|told| self.bounds.allow(told)).or(self.usage);
        let (frames, is_done) = self.writer.take(data)?;
        if self.is_stream {
            let has_content = self.writer.has_output();
            frames.iter().for_each(|frame| self.shown.push(framed(frame), has_content));
        }
        Ok(is_done)
    }
}

impl Answer for TranslatedAnswer<'_> {
    fn is_shown(&self) -> bool {
        self.shown.is_shown()
    }

    fn recording(&self) -> &Recording {
        self.shown.recording()
    }

    fn meta(&self) -> &ResponseMeta {
        &self.meta
    }

    fn event(&mut self, data: &str) -> Result<bool, String> {
        self.take(data)
    }

    fn document(&mut self, body: Bytes) -> Result<(), String> {
        self.take(&String::from_utf8_lossy(&body))?;
        self.writer.done();
        Ok(())
    }

    fn is_whole(&self) -> bool {
        self.writer.is_whole()
    }

    fn billed(&self, prompt_bytes: usize) -> (BilledTokens, Metering) {
        self.bounds.billed(self.usage.as_ref(), prompt_bytes, self.writer.bytes())
    }

    fn finish(mut self: Box<Self>, charge: &Charge) -> Result<(), String> {
        let count = charged(charge);
        if !self.is_stream {
            let whole = self.writer.finish_whole(&count)?;
            self.shown.finish(whole.into(), charge.metering);
            return Ok(());
        }
        let mut last = self.writer.end(&count)?;
        let end = last.pop().map(|frame| framed(&frame)).unwrap_or_default();
        last.iter().for_each(|frame| self.shown.push(framed(frame), true));
        self.shown.finish(end, charge.metering);
        Ok(())
    }
}

/// The counts that are charged.
fn charged(charge: &Charge) -> ChatUsage {
    let estimated = charge.metering == Metering::Estimated;
    ChatUsage { estimated, ..charge.tokens.as_estimate() }
}

/// The same as Anthropic tells them.
pub(super) fn counted(charge: &Charge) -> MessagesCount {
    MessagesCount::from(&charged(charge))
}

fn framed(frame: &EventFrame) -> Bytes {
    format!("event: {}\ndata: {}\n\n", frame.name, frame.data).into()
}
