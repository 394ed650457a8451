//! Pure: the body of a completion, in any format, as far as it concerns the bill.
//!
//! Fields that are known to cost nothing more are passed on as they came, in whatever form, where
//! the upstream speaks the client's format; elsewhere they are translated. Must never send what costs more than was set aside.

use std::borrow::Cow;
use std::collections::BTreeMap;

use automaton_core::model::ModelId;
use automaton_core::wire::chat::StreamOptions;
use automaton_inference::providers::http::ApiFormat;
use automaton_inference::providers::http::anthropic::chat_from_messages;
use automaton_inference::providers::http::responses::chat_from_responses;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use super::embeddings::VectorForm;
use super::prompt_extra::PromptExtra;
use super::recording::ReplyForm;
use super::reply_limits::{ReplyLimits, ReplyShape};
use super::{chat_request, embeddings, messages_request, responses_request};
use crate::billing::price::{BilledTokens, TokenBounds, prompt_bound};
use crate::config::{OfferedModel, TokenLimitName};
use crate::error::ApiError;

/// Answers that may be asked for at once.
const CHOICES_MAX: u32 = 8;

/// Notes of a client about itself, its session and its request.
const CLIENT_NOTES: [&str; 9] = [
    "client",
    "client_info",
    "client_name",
    "client_request_id",
    "client_version",
    "request_id",
    "session_id",
    "telemetry",
    "trace_id",
];

/// The formats in which a cloud is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientFormat {
    /// Chat completions.
    ChatCompletions,
    /// Anthropic's messages.
    AnthropicMessages,
    /// Responses.
    Responses,
    /// Embeddings.
    Embeddings,
}

/// A request for a completion.
#[derive(Debug)]
pub(crate) struct ChatBody {
    /// The format that it is in, and its answer.
    pub(crate) format: ClientFormat,
    pub(crate) model: ModelId,
    /// The answer comes piece by piece.
    pub(crate) stream: bool,
    /// A stream ends with a piece that only has the usage.
    pub(crate) wants_usage: bool,
    /// Bytes of the request.
    pub(crate) bytes: usize,
    messages: usize,
    choices: u32,
    limit: Option<u32>,
    /// Tokens with probabilities that are listed for each token.
    probabilities: u32,
    /// Tokens of the prompt that its bytes do not bound.
    extra: PromptExtra,
    /// The form that vectors are asked for in.
    pub(super) vectors: VectorForm,
    /// The `anthropic-beta` names of the request.
    pub(super) betas: Vec<String>,
    fields: RequestFields,
}

/// The addressee of a request.
#[derive(Clone, Copy)]
pub(super) struct RequestAddress<'a> {
    /// The format that is spoken there.
    pub(super) format: ApiFormat,
    /// The model's id there.
    pub(super) id: &'a ModelId,
    /// The upstream's name for the limit of tokens.
    pub(super) limit_name: TokenLimitName,
}

impl ChatBody {
    /// Reads a request of this format.
    ///
    /// # Errors
    /// The error for the client.
    pub(crate) fn parse(format: ClientFormat, body: &[u8]) -> Result<Self, ApiError> {
        let wrong = |what: String, param| ApiError::wrong_field(what, param);
        let mut fields: RequestFields = serde_json::from_slice(body)
            .map_err(|error| wrong(format!("the body is no JSON object: {error}"), None))?;
        fields.retain(|name, _| !is_client_note(name));
        let absent = |what: &str, param| wrong(format!("the body {what}"), Some(param));
        let needs_messages =
            matches!(format, ClientFormat::ChatCompletions | ClientFormat::AnthropicMessages);
        if needs_messages && fields.get("messages").is_none_or(|it| it.get() == "null") {
            return Err(absent("has no messages", "messages"));
        }
        let (messages, extra) = match format {
            ClientFormat::ChatCompletions => chat_request::check(&fields)?,
            ClientFormat::AnthropicMessages => messages_request::check(&fields)?,
            ClientFormat::Responses => responses_request::check(&fields)?,
            ClientFormat::Embeddings => (embeddings::check(&fields)?, PromptExtra::NONE),
        };
        let mut asked = Self {
            format,
            model: field(&fields, "model")?.ok_or_else(|| absent("names no model", "model"))?,
            stream: field(&fields, "stream")?.unwrap_or(false),
            wants_usage: true,
            bytes: body.len(),
            messages,
            choices: 1,
            limit: None,
            probabilities: told_probabilities(&fields)?,
            extra,
            vectors: VectorForm::default(),
            betas: Vec::new(),
            fields: BTreeMap::new(),
        };
        for name in format.limits() {
            let limit = field::<u32>(&fields, name)?;
            if limit == Some(0) {
                return Err(wrong("an answer has at least 1 token".to_owned(), Some(name)));
            }
            asked.limit = asked.limit.max(limit);
        }
        if format == ClientFormat::Embeddings {
            asked.vectors = embeddings::vector_form(&fields)?;
        }
        if format == ClientFormat::ChatCompletions {
            asked.choices = field(&fields, "n")?.unwrap_or(1);
            if !(1..=CHOICES_MAX).contains(&asked.choices) {
                return Err(wrong(format!("n must be from 1 to {CHOICES_MAX}"), Some("n")));
            }
            let options: Option<StreamOptions> = field(&fields, "stream_options")?;
            asked.wants_usage = options.is_some_and(|options| options.include_usage);
        }
        Ok(Self { fields, ..asked })
    }

    /// In what form the answer comes.
    pub(crate) const fn reply_form(&self) -> ReplyForm {
        match (self.format, self.stream) {
            (ClientFormat::ChatCompletions | ClientFormat::Embeddings, false) => {
                ReplyForm::ChatDocument
            }
            (ClientFormat::ChatCompletions | ClientFormat::Embeddings, true) => {
                ReplyForm::ChatEvents
            }
            (ClientFormat::AnthropicMessages, false) => ReplyForm::MessagesDocument,
            (ClientFormat::AnthropicMessages, true) => ReplyForm::MessagesEvents,
            (ClientFormat::Responses, false) => ReplyForm::ResponsesDocument,
            (ClientFormat::Responses, true) => ReplyForm::ResponsesEvents,
        }
    }

    /// Returns the limits of the call's tokens: the prompt's highest count, and the request's or
    /// else the model's limit of the answer.
    pub(crate) fn bounds(&self, model: &OfferedModel) -> TokenBounds {
        if self.format == ClientFormat::Embeddings {
            // Each text has a window of its own.
            let prompt = prompt_bound(self.bytes, self.messages);
            let most = BilledTokens { prompt, ..BilledTokens::default() };
            return TokenBounds { most, window: prompt, choices: 1 };
        }
        let window = model.context_window;
        let choices = self.choices;
        let prompt = match self.extra {
            PromptExtra::Tokens(more) => {
                prompt_bound(self.bytes, self.messages).saturating_add(more)
            }
            PromptExtra::Unbounded => window,
        };
        let prompt = prompt.min(window);
        let completion = self.limit(model).min(window).saturating_mul(choices);
        let most = BilledTokens { prompt, completion, ..BilledTokens::default() };
        TokenBounds { most, window, choices }
    }

    /// Returns what an answer may have, by what was asked for.
    pub(super) fn reply_limits(&self, model: &OfferedModel) -> ReplyLimits {
        let is_embedding = self.format == ClientFormat::Embeddings;
        ReplyLimits::new(ReplyShape {
            is_stream: self.stream,
            tokens: self.bounds(model).most.completion,
            choices: self.choices,
            probabilities: self.probabilities,
            // Each text has one.
            vectors: if is_embedding { self.messages } else { 0 },
            question_bytes: self.bytes,
        })
    }

    fn limit(&self, model: &OfferedModel) -> u32 {
        self.limit.unwrap_or(model.max_output_tokens).min(model.max_output_tokens)
    }

    /// The body for an upstream: its own format and name of the model, a limit of tokens
    /// always, and the usage asked for.
    ///
    /// # Errors
    /// The error for the client, if the upstream's format has no form for the request.
    pub(super) fn for_upstream(
        &self,
        model: &OfferedModel,
        to: RequestAddress<'_>,
    ) -> Result<Vec<u8>, ApiError> {
        let unfit = |what: String| ApiError::wrong_field(what, None);
        let unwritten = |error: serde_json::Error| unfit(error.to_string());
        let limit_name = match (self.format, to.format) {
            (ClientFormat::ChatCompletions, ApiFormat::ChatCompletions) => to.limit_name.name(),
            (ClientFormat::Responses, _) => "max_output_tokens",
            _ => TokenLimitName::MaxTokens.name(),
        };
        let limit = to_raw_value(&self.limit(model)).map_err(unwritten)?;
        let id = to_raw_value(to.id).map_err(unwritten)?;
        let options = to_raw_value(&StreamOptions { include_usage: true }).map_err(unwritten)?;
        let mut fields: BTreeMap<&str, &RawValue> =
            self.fields.iter().map(|(name, value)| (name.as_str(), &**value)).collect();
        fields.insert("model", &id);
        if self.format == ClientFormat::Embeddings {
            return serde_json::to_vec(&fields).map_err(unwritten);
        }
        for name in self.format.limits().iter().chain(&["stream_options"]) {
            fields.remove(name);
        }
        fields.retain(|name, _| !chat_request::is_said_anyway(name));
        fields.insert(limit_name, &limit);
        if self.stream && self.format == ClientFormat::ChatCompletions {
            fields.insert("stream_options", &options);
        }
        let body = serde_json::to_vec(&fields).map_err(unwritten)?;
        let body = match (self.format, to.format) {
            (ClientFormat::AnthropicMessages, ApiFormat::AnthropicMessages) => return Ok(body),
            (ClientFormat::AnthropicMessages, _) => {
                chat_from_messages(&body, model.supports_vision)
            }
            (ClientFormat::Responses, _) => chat_from_responses(&body, model.supports_vision),
            (ClientFormat::ChatCompletions | ClientFormat::Embeddings, other) => {
                let body = other.body_from_chat(body, model.context_window);
                return body.map_err(|error| unfit(error.to_string()));
            }
        };
        let body = body.map_err(|error| unfit(error.to_string()))?;
        Self::parse(ClientFormat::ChatCompletions, &body)?.for_upstream(model, to)
    }

    /// Returns the fields of the question that the answer repeats, if its format does that.
    pub(super) fn echoed_fields(&self) -> RequestFields {
        responses_request::echoed_fields(&self.fields)
    }
}

impl ClientFormat {
    /// The fields that limit the tokens of an answer.
    const fn limits(self) -> &'static [&'static str] {
        match self {
            Self::ChatCompletions => &["max_tokens", "max_completion_tokens"],
            Self::AnthropicMessages => &["max_tokens"],
            Self::Responses => &["max_output_tokens"],
            Self::Embeddings => &[],
        }
    }
}

/// Fields of a format that change neither what a token costs nor what of the operator's can be
/// reached.
pub(super) struct SoldFields {
    /// Those with any value.
    pub(super) sold: &'static [&'static str],
    /// Those that are free with one of these values, since they say then what holds anyway.
    pub(super) free_as: &'static [(&'static str, &'static [&'static str])],
}

impl SoldFields {
    /// Refuses all other fields, and tools of other kinds if kinds are listed.
    ///
    /// # Errors
    /// The error for the client.
    pub(super) fn check(
        &self,
        fields: &RequestFields,
        tools: Option<&[&str]>,
    ) -> Result<(), ApiError> {
        for (name, value) in fields.iter().filter(|(_, value)| value.get() != "null") {
            let free = self.free_as.iter().find(|(free, _)| free == name);
            let is_free = free.is_some_and(|(_, values)| values.contains(&value.get()));
            if !self.sold.contains(&name.as_str()) && !is_free {
                let what = format!("the field {name} is not sold here: leave it out");
                return Err(ApiError::wrong_field(what, Some(name)));
            }
        }
        let Some(kinds) = tools else { return Ok(()) };
        for ToolShape { kind } in parts::<ToolShape<'_>>(fields, "tools")? {
            if !kinds.contains(&&*kind) {
                let what = format!("the tool of the type '{kind}' is not sold here: leave it out");
                return Err(ApiError::wrong_field(what, Some("tools")));
            }
        }
        Ok(())
    }
}

/// Returns true if a field is a note of the client about itself, such as `client_metadata`. It
/// asks for nothing, so it is taken and told to nobody.
fn is_client_note(name: &str) -> bool {
    name.ends_with("_metadata") || CLIENT_NOTES.contains(&name)
}

#[derive(Deserialize)]
struct ToolShape<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
}

/// A request as it came.
pub(super) type RequestFields = BTreeMap<String, Box<RawValue>>;

/// A field, where it is there and not null.
pub(super) fn field<T: for<'de> Deserialize<'de>>(
    fields: &RequestFields,
    name: &str,
) -> Result<Option<T>, ApiError> {
    let Some(raw) = fields.get(name) else { return Ok(None) };
    serde_json::from_str(raw.get()).map_err(|error| {
        ApiError::wrong_field(format!("the field {name} is wrong: {error}"), Some(name))
    })
}

/// The parts of a list, none where there is no list.
pub(super) fn parts<'a, T: Deserialize<'a>>(
    fields: &'a RequestFields,
    name: &str,
) -> Result<Vec<T>, ApiError> {
    let Some(raw) = fields.get(name).filter(|raw| raw.get() != "null") else {
        return Ok(Vec::new());
    };
    serde_json::from_str(raw.get()).map_err(|error| {
        ApiError::wrong_field(format!("the field {name} is wrong: {error}"), Some(name))
    })
}

/// Reads the number of tokens with probabilities that are listed for each token: itself and the
/// requested alternatives.
fn told_probabilities(fields: &RequestFields) -> Result<u32, ApiError> {
    let others: Option<u32> = field(fields, "top_logprobs")?;
    let asked = fields.get("logprobs").map_or("null", |it| it.get());
    // Responses ask for them by a name among others.
    let included = fields.get("include").is_some_and(|it| it.get().contains("logprobs"));
    let is_told = included || others.is_some() || !matches!(asked, "null" | "false");
    Ok(if is_told { others.unwrap_or(0).saturating_add(1) } else { 0 })
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

    fn parse(body: &[u8]) -> Result<ChatBody, ApiError> {
        ChatBody::parse(ClientFormat::ChatCompletions, body)
    }

    #[test]
    fn what_is_unknown_is_passed_on() {
        let body = br#"{"model":"a","messages":[{"role":"x","content":[1.50]}],"stream":true,
            "max_completion_tokens":7,"temperature":0.10,"stream_options":null}"#;
        let chat = parse(body).unwrap();
        assert!(chat.stream && !chat.wants_usage);
        assert_eq!(chat.bounds(&model()).most.completion, 7);
        let model = model();
        let to = RequestAddress {
            format: ApiFormat::ChatCompletions,
            id: model.upstream_id(),
            limit_name: TokenLimitName::MaxTokens,
        };
        let sent = chat.for_upstream(&model, to).unwrap();
        assert_eq!(
            String::from_utf8(sent).unwrap(),
            r#"{"max_tokens":7,"messages":[{"role":"x","content":[1.50]}],"model":"b","stream":true,"stream_options":{"include_usage":true},"temperature":0.10}"#
        );
    }

    #[test]
    fn a_note_of_the_client_goes_no_further_and_a_capability_is_refused() {
        let bodies = [
            (ClientFormat::ChatCompletions, r#""messages":[{"role":"user","content":"x"}]"#),
            (ClientFormat::AnthropicMessages, r#""messages":[{"role":"user","content":"x"}]"#),
            (ClientFormat::Responses, r#""input":"x""#),
        ];
        for (format, body) in bodies {
            let asked = |more: &str| {
                let body = format!(r#"{{"model":"a",{body},{more}}}"#);
                ChatBody::parse(format, body.as_bytes())
            };
            for note in ["client_metadata", "turn_metadata", "session_id", "client_version"] {
                let chat = asked(&format!(r#""{note}":{{"installation_id":"i-1"}}"#)).unwrap();
                let model = model();
                let to = RequestAddress {
                    format: ApiFormat::ChatCompletions,
                    id: model.upstream_id(),
                    limit_name: TokenLimitName::MaxTokens,
                };
                let sent = String::from_utf8(chat.for_upstream(&model, to).unwrap()).unwrap();
                assert!(!sent.contains(note) && !sent.contains("i-1"), "{note}: {sent}");
            }
            for capability in ["web_search_options", "container", "agents", "context_window"] {
                let refusal = asked(&format!(r#""{capability}":{{}}"#)).unwrap_err().body.error;
                assert!(refusal.contains(capability), "{format:?} {capability}: {refusal}");
            }
        }
    }

    #[test]
    fn there_is_always_a_limit() {
        for (limit, wanted) in [("", 100), (r#","max_tokens":9999"#, 100), (r#","n":3"#, 300)] {
            let body = format!(r#"{{"model":"a","messages":[]{limit}}}"#);
            let chat = parse(body.as_bytes()).unwrap();
            assert_eq!(chat.bounds(&model()).most.completion, wanted, "{limit}");
        }
        for bad in [
            "[]",
            "{}",
            r#"{"model":"a"}"#,
            r#"{"model":"a","messages":[],"n":9}"#,
            r#"{"model":"a","messages":[],"max_tokens":0}"#,
            r#"{"model":"a","messages":[],"max_completion_tokens":-1}"#,
        ] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_larger_answer_is_let_through_where_more_was_asked_for() {
        let bytes = |more: &str| {
            let body = format!(r#"{{"model":"a","messages":[],"stream":true{more}}}"#);
            let chat = parse(body.as_bytes()).unwrap();
            chat.reply_limits(&model()).bytes - 4 * body.len() as u64 - (1 << 20)
        };
        let each = 1024;
        assert_eq!(bytes(r#","max_tokens":10"#), 10 * each);
        assert_eq!(bytes(""), 100 * each, "as many as the model has");
        assert_eq!(bytes(r#","max_tokens":10,"n":8"#), 80 * each);
        assert_eq!(bytes(r#","max_tokens":10,"logprobs":null"#), 10 * each);
        assert_eq!(bytes(r#","max_tokens":10,"logprobs":true"#), 10 * (each + 256));
        let most = r#","max_tokens":10,"logprobs":true,"top_logprobs":20"#;
        assert_eq!(bytes(most), 10 * (each + 21 * 256));
    }

    #[test]
    fn no_more_is_set_aside_than_the_request_and_the_window_allow() {
        let most = |text: &str, more: &str| {
            let body = format!(r#"{{"model":"a","messages":[{{"content":"{text}"}}]{more}}}"#);
            let bounds = parse(body.as_bytes()).unwrap().bounds(&model());
            (bounds.most.prompt, bounds.most.completion)
        };
        let limits = r#","max_tokens":3,"max_completion_tokens":7"#;
        assert_eq!(most("", limits).1, 7);
        assert_eq!(most("", r#","max_tokens":null"#).1, 100);
        assert_eq!(most(&"x".repeat(100_000), "").0, 8192, "no prompt has more");
        assert!(most("x", "").0 < 400);
    }
}
