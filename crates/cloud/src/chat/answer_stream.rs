//! Passes an answer in the format of chat completions to the recording, and measures it for the
//! bill on the way.
//!
//! Fields that clients look for and the upstream left out are filled in. Everything before the
//! first word of an answer is held back until that word is there, so that another upstream can
//! still be asked. It must never show the end of an answer, which comes after the charge, nor a
//! count of tokens that is not the one that is charged.

use std::collections::BTreeMap;

use automaton_core::wire::chat::ChatUsage;
use automaton_inference::providers::http::{inspect_chat, to_plain_text};
use automaton_inference::providers::local::chat::ResponseMeta;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::Recording;
use super::answer::Answer;
use super::held_back::HeldBack;
use crate::billing::price::{BilledTokens, Charge, Metering, TokenBounds};

/// The marker at the end of a stream.
const DONE: &str = "[DONE]";

/// The fields that each part of an answer repeats.
const META: [&str; 4] = ["id", "object", "created", "model"];

/// An answer, or a piece of one, as it came: a number may be beyond all that can be computed
/// with, and is passed on.
pub(super) type AnswerFields = BTreeMap<String, Box<RawValue>>;

/// An answer as it comes.
pub(super) struct AnswerStream<'a> {
    shown: HeldBack<'a>,
    /// A piece that only has the usage is passed on.
    wants_usage: bool,
    bounds: TokenBounds,
    /// The values for fields that the upstream leaves out.
    meta: ResponseMeta,
    /// The repeated fields of the last piece.
    said: AnswerFields,
    /// The upstream's count of tokens, if it is possible.
    usage: Option<ChatUsage>,
    /// Bytes of what was generated.
    bytes: usize,
    /// The ends of a stream's answers.
    ends: AnswerEnds,
    /// An answer in one piece.
    document: Option<AnswerDocument>,
}

/// An answer in one piece.
struct AnswerDocument {
    body: Bytes,
    fields: AnswerFields,
    is_changed: bool,
}

/// The part of a choice that concerns the bill.
#[derive(Deserialize)]
struct UsageChoice {
    #[serde(alias = "delta")]
    message: Option<UsageText>,
}

#[derive(Deserialize)]
struct UsageText {
    content: Option<Box<RawValue>>,
    /// Thoughts, by the two names that they have, and refusals are generated as words are.
    reasoning_content: Option<Box<RawValue>>,
    reasoning: Option<Box<RawValue>>,
    refusal: Option<Box<RawValue>>,
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
        // Some tell the same thoughts by both names.
        let thoughts = text.reasoning_content.or(text.reasoning);
        let words = text.content.into_iter().chain(thoughts).chain(text.refusal);
        words.chain(calls.flat_map(|it| it.name.into_iter().chain(it.arguments)))
    });
    let bytes = |raw: Box<RawValue>| {
        serde_json::from_str::<String>(raw.get()).map_or(raw.get().len(), |text| text.len())
    };
    parts.filter(|raw| raw.get() != "null").map(bytes).sum()
}

/// The answers of a stream by their numbers, and whether each has ended.
#[derive(Debug, Default)]
struct AnswerEnds {
    has_ended: BTreeMap<u64, bool>,
    /// The stream said that it is over.
    is_done: bool,
}

impl AnswerEnds {
    /// Notes the choices of a piece that begin, and those that end.
    fn note(&mut self, choices: &RawValue) {
        #[derive(Deserialize)]
        struct EndingChoice {
            #[serde(default)]
            index: u64,
            finish_reason: Option<Box<RawValue>>,
        }
        // silent-ok: choices in another form say of no answer that it ended.
        for choice in serde_json::from_str::<Vec<EndingChoice>>(choices.get()).unwrap_or_default() {
            let told = choice.finish_reason.is_some_and(|it| !matches!(it.get(), "null" | "\"\""));
            *self.has_ended.entry(choice.index).or_default() |= told;
        }
    }

    /// Returns whether the stream ended all of its answers.
    fn are_told(&self) -> bool {
        self.is_done || (!self.has_ended.is_empty() && self.has_ended.values().all(|ended| *ended))
    }
}

/// Returns whether choices only open an answer, without any of its text.
fn is_opening(choices: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct OpeningChoice {
        delta: BTreeMap<String, Box<RawValue>>,
        finish_reason: Option<Box<RawValue>>,
    }
    let Ok(choices) = serde_json::from_str::<Vec<OpeningChoice>>(choices.get()) else {
        return false;
    };
    choices.iter().all(|choice| {
        let said = choice.delta.iter().filter(|(name, _)| *name != "role");
        let is_nothing = |value: &RawValue| matches!(value.get(), "null" | "\"\"" | "[]");
        choice.finish_reason.is_none() && said.into_iter().all(|(_, value)| is_nothing(value))
    })
}

impl<'a> AnswerStream<'a> {
    pub(super) fn new(
        recording: &'a Recording,
        wants_usage: bool,
        bounds: TokenBounds,
        meta: ResponseMeta,
    ) -> Self {
        let shown = HeldBack::new(recording);
        Self {
            shown,
            wants_usage,
            bounds,
            meta,
            said: BTreeMap::new(),
            usage: None,
            bytes: 0,
            ends: AnswerEnds::default(),
            document: None,
        }
    }

    /// A last piece, which only has the usage.
    fn push_usage(&mut self, usage: Box<RawValue>) {
        let mut fields = self.said.clone();
        fields.extend(raw(&[(); 0]).map(|none| ("choices".to_owned(), none)));
        fields.insert("usage".to_owned(), usage);
        self.complete(&mut fields, "chat.completion.chunk");
        // silent-ok: texts and numbers always have a JSON form.
        if let Ok(json) = serde_json::to_string(&fields) {
            self.push(&json, true);
        }
    }

    fn push(&mut self, data: &str, has_content: bool) {
        let data = to_plain_text(data);
        self.shown.push(format!("data: {data}\n\n").into(), has_content);
    }

    /// Weighs an answer, or a piece of one, takes a count out that is not charged, and fills in
    /// what is left out; gives whether that changed anything.
    fn weigh(&mut self, fields: &mut AnswerFields, object: &str, told: Option<ChatUsage>) -> bool {
        self.bytes += fields.get("choices").map_or(0, |choices| generated(choices));
        let mut is_changed = fields.contains_key("choices") && self.complete(fields, object);
        let is_told = fields.get("usage").is_some_and(|usage| usage.get() != "null");
        if is_told || told.is_some() {
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

impl Answer for AnswerStream<'_> {
    fn is_shown(&self) -> bool {
        self.shown.is_shown()
    }

    fn recording(&self) -> &Recording {
        self.shown.recording()
    }

    fn meta(&self) -> &ResponseMeta {
        &self.meta
    }

    fn is_whole(&self) -> bool {
        self.document.is_some() || self.ends.are_told()
    }

    fn event(&mut self, data: &str) -> Result<bool, String> {
        if data.trim() == DONE {
            self.ends.is_done = true;
            return Ok(true);
        }
        let Ok(mut fields) = serde_json::from_str::<AnswerFields>(data) else {
            // What we cannot read is passed on all the same.
            self.push(data, true);
            return Ok(false);
        };
        // One that fails before it says anything may be another's to answer.
        let told = inspect_chat(data)?;
        let is_empty = fields.get("choices").is_none_or(|it| matches!(it.get(), "[]" | "null"));
        let only_usage = is_empty && fields.contains_key("usage");
        let has_content = !fields.get("choices").is_some_and(|it| is_opening(it));
        fields.get("choices").into_iter().for_each(|choices| self.ends.note(choices));
        let is_changed = self.weigh(&mut fields, "chat.completion.chunk", told);
        if !only_usage || (self.wants_usage && fields.contains_key("usage")) {
            match is_changed.then(|| serde_json::to_string(&fields)) {
                Some(Ok(changed)) => self.push(&changed, has_content),
                Some(Err(_)) | None => self.push(data, has_content),
            }
        }
        fields.retain(|name, _| META.contains(&name.as_str()));
        self.said = fields;
        Ok(false)
    }

    fn document(&mut self, body: Bytes) -> Result<(), String> {
        let mut fields: AnswerFields =
            serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        if !fields.contains_key("choices") {
            // Some servers refuse with a status that says that all is well.
            return Err("it has no choices".to_owned());
        }
        let told = inspect_chat(&String::from_utf8_lossy(&body))?;
        let is_changed = self.weigh(&mut fields, "chat.completion", told);
        self.document = Some(AnswerDocument { body, fields, is_changed });
        Ok(())
    }

    fn billed(&self, prompt_bytes: usize) -> (BilledTokens, Metering) {
        self.bounds.billed(self.usage.as_ref(), prompt_bytes, self.bytes)
    }

    fn finish(mut self: Box<Self>, charge: &Charge) -> Result<(), String> {
        let estimate = match charge.metering {
            Metering::Estimated => raw(&charge.tokens.as_estimate()),
            Metering::Reported => None,
        };
        if let Some(AnswerDocument { body, mut fields, is_changed }) = self.document.take() {
            let is_changed = is_changed || estimate.is_some();
            fields.extend(estimate.map(|usage| ("usage".to_owned(), usage)));
            let changed = is_changed.then(|| serde_json::to_vec(&fields));
            // silent-ok: what was read is written again.
            let whole = changed.and_then(Result::ok).map_or(body, Bytes::from);
            self.shown.finish(whole, charge.metering);
            return Ok(());
        }
        if let Some(usage) = estimate {
            // A comment, which readers of event streams skip, for who wants no usage.
            let BilledTokens { prompt, completion, .. } = charge.tokens;
            let comment = format!(
                ": usage was not reported; charged for an estimate of {prompt} and {completion} \
                 tokens\n\n"
            );
            self.shown.push(comment.into(), true);
            if self.wants_usage {
                self.push_usage(usage);
            }
        }
        self.shown.finish(format!("data: {DONE}\n\n").into(), Metering::Reported);
        Ok(())
    }
}

pub(super) fn raw<T: Serialize + ?Sized>(value: &T) -> Option<Box<RawValue>> {
    // silent-ok: texts and numbers always have a JSON form.
    to_raw_value(value).ok()
}
