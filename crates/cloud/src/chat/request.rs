//! Pure: the body of a completion, as far as it concerns the bill.
//!
//! All that we do not know is passed on as it came, in whatever form.

use std::collections::BTreeMap;

use automaton_core::model::ModelId;
use automaton_core::wire::chat::StreamOptions;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::{RawValue, to_raw_value};

use super::recording::Media;
use crate::billing::price::{BilledTokens, TokenBounds, prompt_bound};
use crate::config::{OfferedModel, TokenLimitName};
use crate::error::ApiError;

/// Answers that may be asked for at once.
const CHOICES_MAX: u32 = 8;
const LIMITS: [&str; 2] = ["max_tokens", "max_completion_tokens"];

/// A request for a completion.
#[derive(Debug)]
pub(crate) struct ChatBody {
    pub(crate) model: ModelId,
    /// Whether the answer comes piece by piece.
    pub(crate) stream: bool,
    /// Whether a stream ends with a piece that only has the usage.
    pub(crate) wants_usage: bool,
    /// Bytes of the request.
    pub(crate) bytes: usize,
    messages: usize,
    choices: u32,
    limit: Option<u32>,
    fields: BTreeMap<String, Box<RawValue>>,
}

impl ChatBody {
    /// Reads a request.
    ///
    /// # Errors
    /// What the client is told.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let wrong = |what: String, param| ApiError::wrong_field(what, param);
        let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(body)
            .map_err(|error| wrong(format!("the body is no JSON object: {error}"), None))?;
        let absent = |what: &str, param| wrong(format!("the body {what}"), Some(param));
        let messages: Vec<IgnoredAny> =
            field(&fields, "messages")?.ok_or_else(|| absent("has no messages", "messages"))?;
        let mut limits = Vec::new();
        for name in LIMITS {
            limits.extend(field::<u32>(&fields, name)?);
        }
        let choices: u32 = field(&fields, "n")?.unwrap_or(1);
        if !(1..=CHOICES_MAX).contains(&choices) {
            return Err(wrong(format!("n must be from 1 to {CHOICES_MAX}"), Some("n")));
        }
        let options: Option<StreamOptions> = field(&fields, "stream_options")?;
        Ok(Self {
            model: field(&fields, "model")?.ok_or_else(|| absent("names no model", "model"))?,
            stream: field(&fields, "stream")?.unwrap_or(false),
            wants_usage: options.is_some_and(|options| options.include_usage),
            bytes: body.len(),
            messages: messages.len(),
            choices,
            limit: limits.into_iter().max(),
            fields,
        })
    }

    /// In what form the answer comes.
    pub(crate) const fn media(&self) -> Media {
        if self.stream { Media::Events } else { Media::Document }
    }

    /// What the tokens of the call can be: the prompt's worst count, and as many of the answer
    /// as the request allows, or else the model.
    pub(crate) fn bounds(&self, model: &OfferedModel) -> TokenBounds {
        let (window, choices) = (model.context_window, self.choices);
        let prompt = prompt_bound(self.bytes, self.messages).min(window);
        let completion = self.limit(model).min(window).saturating_mul(choices);
        let most = BilledTokens { prompt, completion, ..BilledTokens::default() };
        TokenBounds { most, window, choices }
    }

    fn limit(&self, model: &OfferedModel) -> u32 {
        self.limit.unwrap_or(model.max_output_tokens).min(model.max_output_tokens)
    }

    /// The body for the upstream: its own name of the model, a limit of tokens
    /// always, and the usage asked for.
    ///
    /// # Errors
    /// Never for what was read; `serde_json` could in principle fail.
    pub(crate) fn for_upstream(
        mut self,
        model: &OfferedModel,
        limit_name: TokenLimitName,
    ) -> Result<Vec<u8>, serde_json::Error> {
        let limit = to_raw_value(&self.limit(model))?;
        for name in LIMITS {
            self.fields.remove(name);
        }
        self.fields.insert(limit_name.name().to_owned(), limit);
        self.fields.insert("model".to_owned(), to_raw_value(model.upstream_id())?);
        if self.stream {
            let options = to_raw_value(&StreamOptions { include_usage: true })?;
            self.fields.insert("stream_options".to_owned(), options);
        } else {
            self.fields.remove("stream_options");
        }
        serde_json::to_vec(&self.fields)
    }
}

/// A field, where it is there and not null.
fn field<T: for<'de> Deserialize<'de>>(
    fields: &BTreeMap<String, Box<RawValue>>,
    name: &str,
) -> Result<Option<T>, ApiError> {
    let Some(raw) = fields.get(name) else { return Ok(None) };
    serde_json::from_str(raw.get()).map_err(|error| {
        ApiError::wrong_field(format!("the field {name} is wrong: {error}"), Some(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> OfferedModel {
        serde_json::from_str(
            r#"{"id":"a","upstream_id":"b","input_microcents_per_million":1000000,
                "output_microcents_per_million":2000000,"context_window":8192,
                "max_output_tokens":100}"#,
        )
        .unwrap()
    }

    #[test]
    fn what_is_unknown_is_passed_on() {
        let body = br#"{"model":"a","messages":[{"role":"x","content":[1.50]}],"stream":true,
            "max_completion_tokens":7,"temperature":0.10,"stream_options":null}"#;
        let chat = ChatBody::parse(body).unwrap();
        assert!(chat.stream && !chat.wants_usage);
        assert_eq!(chat.bounds(&model()).most.completion, 7);
        let sent = chat.for_upstream(&model(), TokenLimitName::MaxTokens).unwrap();
        assert_eq!(
            String::from_utf8(sent).unwrap(),
            r#"{"max_tokens":7,"messages":[{"role":"x","content":[1.50]}],"model":"b","stream":true,"stream_options":{"include_usage":true},"temperature":0.10}"#
        );
    }

    #[test]
    fn there_is_always_a_limit() {
        for (limit, wanted) in [("", 100), (r#","max_tokens":9999"#, 100), (r#","n":3"#, 300)] {
            let body = format!(r#"{{"model":"a","messages":[]{limit}}}"#);
            let chat = ChatBody::parse(body.as_bytes()).unwrap();
            assert_eq!(chat.bounds(&model()).most.completion, wanted, "{limit}");
        }
        for bad in ["[]", "{}", r#"{"model":"a"}"#, r#"{"model":"a","messages":[],"n":9}"#] {
            assert!(ChatBody::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_more_is_set_aside_than_the_request_and_the_window_allow() {
        let most = |text: &str, more: &str| {
            let body = format!(r#"{{"model":"a","messages":[{{"content":"{text}"}}]{more}}}"#);
            let bounds = ChatBody::parse(body.as_bytes()).unwrap().bounds(&model());
            (bounds.most.prompt, bounds.most.completion)
        };
        let limits = r#","max_tokens":3,"max_completion_tokens":7"#;
        assert_eq!(most("", limits).1, 7);
        assert_eq!(most("", r#","max_tokens":null"#).1, 100);
        assert_eq!(most(&"x".repeat(100_000), "").0, 8192, "no prompt has more");
        assert!(most("x", "").0 < 400);
    }
}
