//! Relays an answer if client and upstream both speak Anthropic's format.
//!
//! It is passed on as it came, thoughts and all, but for the model's name and the counts of tokens.
//! Must never show the end of an answer, which comes after the charge and reports the charged
//! tokens.

use automaton_core::wire::chat::ChatUsage;
use automaton_inference::providers::http::anthropic::MessagesCount;
use automaton_inference::providers::http::{ApiFormat, FormatReader, StreamPiece, to_plain_text};
use automaton_inference::providers::local::chat::ResponseMeta;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Recording;
use super::answer::Answer;
use super::answer_stream::{AnswerFields, raw};
use super::held_back::HeldBack;
use super::translated_answer::counted;
use crate::billing::price::{BilledTokens, Charge, Metering, TokenBounds};

/// The last event of a stream.
const STOP: &str = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

/// An answer as it comes.
pub(super) struct RelayedAnswer<'a> {
    shown: HeldBack<'a>,
    is_stream: bool,
    bounds: TokenBounds,
    meta: ResponseMeta,
    reader: FormatReader,
    /// The upstream's count of tokens, if it is possible.
    usage: Option<ChatUsage>,
    /// Bytes of what was generated.
    bytes: usize,
    /// The events that tell the usage, or the whole answer.
    last: Vec<AnswerFields>,
    is_whole: bool,
}

#[derive(Deserialize)]
struct EventShape {
    #[serde(rename = "type")]
    kind: String,
    delta: Option<AnswerFields>,
}

impl<'a> RelayedAnswer<'a> {
    pub(super) fn new(
        recording: &'a Recording,
        is_stream: bool,
        bounds: TokenBounds,
        meta: ResponseMeta,
    ) -> Self {
        let shown = HeldBack::new(recording);
        let reader = ApiFormat::AnthropicMessages.reader();
        let usage = None;
        let bytes = 0;
        let last = Vec::new();
        let is_whole = false;
        Self { shown, is_stream, bounds, meta, reader, usage, bytes, last, is_whole }
    }

    /// The count of tokens that an event, or a whole answer, tells.
    fn token_count(&mut self, data: &str) -> Result<Option<ChatUsage>, String> {
        Ok(match self.reader.passed_on(data)? {
            StreamPiece::Chunk(chunk) | StreamPiece::Last(chunk) => chunk.usage,
            StreamPiece::Done => None,
        })
    }

    fn push(&mut self, kind: &str, json: &str, has_content: bool) {
        let frame = format!("event: {kind}\ndata: {}\n\n", to_plain_text(json));
        self.shown.push(frame.into(), has_content);
    }

    /// Says of an answer that it is by the model that was asked for, and takes a count out that
    /// cannot be charged.
    fn sign(&self, message: &mut AnswerFields) {
        message.extend(raw(&self.meta.model).map(|model| ("model".to_owned(), model)));
        // silent-ok: a count that cannot be read is none.
        let told = message.get("usage").and_then(|told| serde_json::from_str(told.get()).ok());
        let is_possible = |told: &MessagesCount| {
            let prompt = u64::from(told.input_tokens)
                + u64::from(told.cache_creation_input_tokens)
                + u64::from(told.cache_read_input_tokens);
            prompt <= self.bounds.most.prompt.into()
        };
        if !told.as_ref().is_some_and(is_possible) {
            message.remove("usage");
            set_usage(message, &MessagesCount::default());
        }
    }
}

impl Answer for RelayedAnswer<'_> {
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
        let unread = |error: serde_json::Error| error.to_string();
        let told = self.token_count(data)?;
        self.usage = told.filter(|told| self.bounds.allow(told)).or(self.usage);
        let EventShape { kind, delta } = serde_json::from_str(data).map_err(unread)?;
        let texts = delta.into_iter().flatten().filter(|(name, _)| name != "type");
        self.bytes += texts.map(|(_, value)| bytes(&value)).sum::<usize>();
        match kind.as_str() {
            "message_stop" => self.is_whole = !self.last.is_empty(),
            "message_delta" => self.last.push(serde_json::from_str(data).map_err(unread)?),
            // We have our own.
            "ping" => {}
            "message_start" => {
                let mut fields: AnswerFields = serde_json::from_str(data).map_err(unread)?;
                let message = fields.get("message").map_or("{}", |message| message.get());
                let mut message = serde_json::from_str(message).map_err(unread)?;
                self.sign(&mut message);
                fields.extend(raw(&message).map(|message| ("message".to_owned(), message)));
                let json = serde_json::to_string(&fields).map_err(unread)?;
                self.push(&kind, &json, false);
            }
            _ => self.push(&kind, data, kind != "content_block_start"),
        }
        Ok(kind == "message_stop")
    }

    fn document(&mut self, body: Bytes) -> Result<(), String> {
        let body = &String::from_utf8_lossy(&body);
        let told = self.token_count(body)?;
        self.usage = told.filter(|told| self.bounds.allow(told));
        let mut fields: AnswerFields =
            serde_json::from_str(body).map_err(|error| error.to_string())?;
        let content = fields.get("content").ok_or_else(|| "it holds no answer".to_owned())?;
        self.bytes = content.get().len();
        self.sign(&mut fields);
        self.last.push(fields);
        self.is_whole = true;
        Ok(())
    }

    fn is_whole(&self) -> bool {
        self.is_whole
    }

    fn billed(&self, prompt_bytes: usize) -> (BilledTokens, Metering) {
        self.bounds.billed(self.usage.as_ref(), prompt_bytes, self.bytes)
    }

    fn finish(mut self: Box<Self>, charge: &Charge) -> Result<(), String> {
        let count = counted(charge);
        let mut whole = Bytes::new();
        for mut fields in std::mem::take(&mut self.last) {
            set_usage(&mut fields, &count);
            let json = serde_json::to_string(&fields).map_err(|error| error.to_string())?;
            match self.is_stream {
                true => self.push("message_delta", &json, true),
                false => whole = json.into(),
            }
        }
        let end = if self.is_stream { Bytes::from_static(STOP.as_bytes()) } else { whole };
        self.shown.finish(end, charge.metering);
        Ok(())
    }
}

/// Puts the counts that are charged into the usage of a message; what else it says stays.
fn set_usage(fields: &mut AnswerFields, count: &MessagesCount) {
    let object = |value: &RawValue| serde_json::from_str::<AnswerFields>(value.get()).ok();
    // silent-ok: a usage that is no object says nothing.
    let mut usage = fields.get("usage").and_then(|usage| object(usage)).unwrap_or_default();
    if count.estimated {
        usage.clear();
    }
    let counts = raw(count).and_then(|count| object(&count));
    usage.extend(counts.unwrap_or_default());
    fields.extend(raw(&usage).map(|usage| ("usage".to_owned(), usage)));
}

/// Bytes of a text, or of what else there is.
fn bytes(value: &RawValue) -> usize {
    serde_json::from_str::<String>(value.get()).map_or(value.get().len(), |text| text.len())
}
