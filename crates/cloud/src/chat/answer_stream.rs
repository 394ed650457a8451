//! What is heard of an answer, whoever gives it: passed on to the recording,
//! and weighed for the bill on the way.
//!
//! What clients look for and the upstream left out is filled in. It must never
//! show the end of an answer, which comes after the charge, nor a count of
//! tokens that is not the one that is charged.

use std::collections::BTreeMap;

use automaton_core::wire::chat::ChatUsage;
use automaton_inference::providers::local::chat::ResponseMeta;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::Recording;
use crate::billing::price::{BilledTokens, Charge, Metering, TokenBounds};

/// The marker at the end of a stream.
pub(super) const DONE: &str = "[DONE]";

/// What each part of an answer says of the whole.
const META: [&str; 4] = ["id", "object", "created", "model"];

/// An answer, or a piece of one, as it came: a number may be beyond all that can be computed
/// with, and is passed on.
type AnswerFields = BTreeMap<String, Box<RawValue>>;

/// An answer as it comes.
pub(super) struct AnswerStream<'a> {
    recording: &'a Recording,
    /// Whether a piece that only has the usage is passed on.
    wants_usage: bool,
    bounds: TokenBounds,
    /// What is said of the answer where the upstream does not.
    meta: ResponseMeta,
    /// What the last piece said of the whole.
    said: AnswerFields,
    /// What the upstream counted, where that can be.
    usage: Option<ChatUsage>,
    /// Bytes of what was generated.
    bytes: usize,
    /// An answer in one piece.
    document: Option<AnswerDocument>,
}

/// An answer in one piece.
struct AnswerDocument {
    body: Bytes,
    fields: AnswerFields,
    is_changed: bool,
}

/// What of an answer concerns the bill.
#[derive(Deserialize)]
struct UsageChoice {
    #[serde(alias = "delta")]
    message: Option<UsageText>,
}

#[derive(Deserialize)]
struct UsageText {
    content: Option<Box<RawValue>>,
    tool_calls: Option<Vec<UsageCall>>,
}

#[derive(Deserialize)]
struct UsageCall {
    function: Option<UsageFunction>,
}

#[derive(Deserialize)]
struct UsageFunction {
    name: Option<Box<RawValue>>,
    arguments: Option<Box<RawValue>>,
}

/// Bytes of what was generated: of texts, where the choices have the usual form.
fn generated(choices: &RawValue) -> usize {
    let Ok(choices) = serde_json::from_str::<Vec<UsageChoice>>(choices.get()) else {
        return choices.get().len();
    };
    let texts = choices.into_iter().filter_map(|choice| choice.message);
    let parts = texts.flat_map(|text| {
        let calls = text.tool_calls.into_iter().flatten().filter_map(|call| call.function);
        text.content.into_iter().chain(calls.flat_map(|it| it.name.into_iter().chain(it.arguments)))
    });
    let bytes = |raw: Box<RawValue>| {
        serde_json::from_str::<String>(raw.get()).map_or(raw.get().len(), |text| text.len())
    };
    parts.map(bytes).sum()
}

impl<'a> AnswerStream<'a> {
    pub(super) const fn new(
        recording: &'a Recording,
        wants_usage: bool,
        bounds: TokenBounds,
        meta: ResponseMeta,
    ) -> Self {
        let said = BTreeMap::new();
        Self { recording, wants_usage, bounds, meta, said, usage: None, bytes: 0, document: None }
    }

    /// A stream begins, though nothing of it has come.
    pub(super) fn begin(&self) {
        self.recording.begin(Metering::Reported);
    }

    /// A piece of a stream.
    pub(super) fn event(&mut self, data: &str) {
        self.begin();
        let Ok(mut fields) = serde_json::from_str::<AnswerFields>(data) else {
            // What we cannot read is passed on all the same.
            return self.push(data);
        };
        let is_empty = fields.get("choices").is_none_or(|it| matches!(it.get(), "[]" | "null"));
        let only_usage = is_empty && fields.contains_key("usage");
        let is_changed = self.weigh(&mut fields, "chat.completion.chunk");
        if !only_usage || (self.wants_usage && fields.contains_key("usage")) {
            match is_changed.then(|| serde_json::to_string(&fields)) {
                Some(Ok(changed)) => self.push(&changed),
                Some(Err(_)) | None => self.push(data),
            }
        }
        fields.retain(|name, _| META.contains(&name.as_str()));
        self.said = fields;
    }

    /// A whole answer.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn document(&mut self, body: Bytes) -> Result<(), serde_json::Error> {
        let mut fields: AnswerFields = serde_json::from_slice(&body)?;
        if !fields.contains_key("choices") {
            // Some servers refuse with a status that says that all is well.
            return Err(serde::de::Error::missing_field("choices"));
        }
        let is_changed = self.weigh(&mut fields, "chat.completion");
        self.document = Some(AnswerDocument { body, fields, is_changed });
        Ok(())
    }

    /// The tokens that are charged, for a question of so many bytes.
    pub(super) fn billed(&self, prompt_bytes: usize) -> (BilledTokens, Metering) {
        self.bounds.billed(self.usage.as_ref(), prompt_bytes, self.bytes)
    }

    /// Shows what was held back until the charge: all of a whole answer, or the end of a stream.
    pub(super) fn finish(self, charge: &Charge) {
        let estimate = match charge.metering {
            Metering::Estimated => raw(&charge.tokens.as_estimate()),
            Metering::Reported => None,
        };
        if let Some(AnswerDocument { body, mut fields, is_changed }) = self.document {
            let is_changed = is_changed || estimate.is_some();
            fields.extend(estimate.map(|usage| ("usage".to_owned(), usage)));
            let changed = is_changed.then(|| serde_json::to_vec(&fields));
            self.recording.begin(charge.metering);
            // silent-ok: what was read is written again.
            self.recording.finish(changed.and_then(Result::ok).map_or(body, Bytes::from));
            return;
        }
        if let Some(usage) = estimate {
            // A comment, which readers of event streams skip, for who wants no usage.
            let BilledTokens { prompt, completion, .. } = charge.tokens;
            self.recording.push(Bytes::from(format!(
                ": usage was not reported; charged for an estimate of {prompt} and {completion} \
                 tokens\n\n"
            )));
            if self.wants_usage {
                self.push_usage(usage);
            }
        }
        self.recording.finish(Bytes::from(format!("data: {DONE}\n\n")));
    }

    /// A last piece, which only has the usage.
    fn push_usage(&self, usage: Box<RawValue>) {
        let mut fields = self.said.clone();
        fields.extend(raw(&[(); 0]).map(|none| ("choices".to_owned(), none)));
        fields.insert("usage".to_owned(), usage);
        self.complete(&mut fields, "chat.completion.chunk");
        // silent-ok: texts and numbers always have a JSON form.
        if let Ok(json) = serde_json::to_string(&fields) {
            self.push(&json);
        }
    }

    fn push(&self, data: &str) {
        self.recording.push(Bytes::from(format!("data: {data}\n\n")));
    }

    /// Weighs an answer, or a piece of one, takes a count out that is not charged, and fills in
    /// what is left out; gives whether that changed anything.
    fn weigh(&mut self, fields: &mut AnswerFields, object: &str) -> bool {
        self.bytes += fields.get("choices").map_or(0, |choices| generated(choices));
        let mut is_changed = fields.contains_key("choices") && self.complete(fields, object);
        let usage = fields.get("usage").filter(|usage| usage.get() != "null");
        if let Some(usage) = usage {
            // silent-ok: a count that cannot be read is none.
            let told: Option<ChatUsage> = serde_json::from_str(usage.get()).ok();
            let told = told.filter(|told| self.bounds.allow(told));
            let exact = told
                .is_some_and(|told| self.bounds.billed(Some(&told), 0, 0).1 == Metering::Reported);
            if !exact {
                fields.remove("usage");
                is_changed = true;
            }
            self.usage = told.or(self.usage);
        }
        is_changed
    }

    /// Fills in what clients look for; gives whether anything was missing.
    fn complete(&self, fields: &mut AnswerFields, object: &str) -> bool {
        let ResponseMeta { id, model, created } = &self.meta;
        let ours = [raw(id), raw(&object), raw(created), raw(model)];
        let mut is_changed = false;
        for (name, value) in META.into_iter().zip(ours) {
            if fields.get(name).is_none_or(|it| it.get() == "null") {
                fields.extend(value.map(|value| (name.to_owned(), value)));
                is_changed = true;
            }
        }
        is_changed
    }
}

fn raw<T: Serialize + ?Sized>(value: &T) -> Option<Box<RawValue>> {
    // silent-ok: texts and numbers always have a JSON form.
    to_raw_value(value).ok()
}
