//! Pure: what an error of a server means.
//!
//! Status and code decide first. The words only tell apart what servers have no status of
//! their own for: a conversation that is too long, a model that is not there or calls no
//! tools. Text comes in already cleaned.

use std::time::Duration;

use automaton_core::model::ModelId;
use automaton_core::wire::cloud::{
    CONTEXT_LENGTH_EXCEEDED, MODEL_NOT_FOUND, TOOLS_UNSUPPORTED, UPSTREAM_KEY,
};
use serde_json::Value;

use super::{reset, window};
use crate::error::InferenceError;
use crate::lenient::strip_byte_order_mark;

/// The longest text of a server that is kept, in bytes.
pub(super) const TEXT_BYTES_MAX: usize = 500;

/// Phrases of servers for a prompt that is too long, in lower case.
const TOO_LONG: [&str; 19] = [
    "context length",
    "context_length",
    "context window",
    "context size",
    "maximum context",
    "context limit",
    "maximum prompt length",
    "maximum model length",
    "model token limit",
    "prompt token count",
    "`max_new_tokens` must be",
    "`inputs` must have less",
    "maximum number of tokens allowed",
    "prompt is too long",
    "input is too long",
    "input length and `max_tokens` exceed",
    "too many tokens",
    "reduce the length of the messages",
    "exceed_context",
];

/// Phrases of servers for a model without tools, in lower case.
const NO_TOOLS: [&str; 16] = [
    "does not support tools",
    "does not support tool",
    "does not support function",
    "doesn't support tool",
    "doesn't support function",
    "support tool use",
    "tools is not supported",
    "tool calling is not supported",
    "tool calling` is not supported",
    "function calling is not supported",
    "function calling is not enabled",
    "not supported for tool",
    "unsupported parameter: 'tools'",
    "argument supplied: tools",
    "enable-auto-tool-choice",
    "tools param requires",
];

/// Phrases of servers without a status of their own for an empty account, in lower case, and
/// their codes.
const NO_CREDITS: [&str; 2] = ["credit balance is too low", "insufficient credits"];
const NO_CREDITS_CODES: [&str; 4] =
    ["insufficient_quota", "billing_error", "billing_not_active", "billing_hard_limit_reached"];

/// Phrases of servers without a status of their own for a wrong key, in lower case, and their
/// codes.
const BAD_KEY: [&str; 2] = ["api key not valid", "api key expired"];
const BAD_KEY_CODES: [&str; 3] = [UPSTREAM_KEY, "API_KEY_INVALID", "invalid_api_key"];

/// Phrases of servers for refused content, in lower case, and their codes.
const UNWANTED: [&str; 4] = [
    "content management policy",
    "potentially violating",
    "violates our usage polic",
    "inappropriate content",
];
const UNWANTED_CODES: [&str; 5] = [
    "content_filter",
    "content_policy_violation",
    "invalid_prompt",
    "data_inspection_failed",
    "moderation_blocked",
];

/// Phrases of servers for a missing model, and phrases that follow its name, in lower case.
const NO_MODEL: [&str; 4] =
    ["no such model", "not a valid model", "unknown model", "invalid model"];
const NO_MODEL_AFTER: [&str; 2] = ["not found", "does not exist"];

/// Distance around its name that is searched, in bytes.
const NEAR_BYTES: usize = 90;

/// Error as a server describes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ProviderErrorBody {
    /// In words.
    pub(super) text: String,
    /// For programs, if it has such a word.
    pub(super) code: String,
    /// The status that it names itself.
    pub(super) status: Option<u16>,
    /// Requested wait.
    pub(super) wait: Option<Duration>,
}

/// Server and model of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestTarget<'a> {
    pub(super) endpoint: &'a str,
    pub(super) model: &'a ModelId,
}

/// Returns the error in a body: the format's own object, a bare string, or the whole text.
pub(super) fn message(body: &[u8]) -> ProviderErrorBody {
    let text = String::from_utf8_lossy(strip_byte_order_mark(body));
    // silent-ok: a body that is no JSON is shown as it is.
    let found = serde_json::from_str::<Value>(&text).ok().and_then(|value| reported_error(&value));
    let whole = || ProviderErrorBody { text: text.into_owned(), ..ProviderErrorBody::default() };
    found.unwrap_or_else(whole)
}

/// Returns the error in a reply, if it reports one.
pub(super) fn reported_error(value: &Value) -> Option<ProviderErrorBody> {
    // Some servers wrap the whole of it into a list.
    let value = value.get(0).unwrap_or(value);
    let error = value.get("error").filter(|error| !is_nothing(error))?;
    Some(read_error(error, value))
}

/// Returns true if the field of an error says that there is none.
fn is_nothing(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

/// Returns the error in a reply or event, in any form that servers use: under the key `error`, as
/// an object that calls itself one, or as words in place of an answer.
pub(super) fn said_in_reply(value: &Value) -> Option<ProviderErrorBody> {
    if let Some(said) = reported_error(value) {
        return Some(said);
    }
    let base = &value["base_resp"];
    if base["status_code"].as_i64().is_some_and(|code| code != 0) {
        return Some(read_error(base, value));
    }
    let calls_itself = |name: &str| {
        let word = value.get(name).and_then(Value::as_str).unwrap_or_default();
        word.eq_ignore_ascii_case("error") || word.ends_with("_error") || word.ends_with("Error")
    };
    let is_named = ["object", "type", "status"].into_iter().any(calls_itself);
    let is_answer = || ANSWERS.iter().any(|name| value.get(name).is_some_and(|it| !it.is_null()));
    let is_typed = || value.get("type").is_some() || value["message"].is_object();
    let has_words = || words_of(value).is_some();
    let is_error =
        if is_named { value.is_object() } else { has_words() && !is_answer() && !is_typed() };
    is_error.then(|| read_error(value, value))
}

/// The fields of which an answer has one, whatever its format.
const ANSWERS: [&str; 12] = [
    "choices",
    "candidates",
    "output",
    "response",
    "delta",
    "content",
    "content_block",
    "item",
    "usage",
    "usageMetadata",
    "promptFeedback",
    "done",
];

/// Fields that hold the words of an error.
const WORDS: [&str; 8] =
    ["message", "msg", "error_msg", "error_message", "status_msg", "detail", "errors", "reason"];

/// The words of an error.
fn words_of(error: &Value) -> Option<String> {
    let words = WORDS.iter().filter_map(|name| error.get(name)).find(|it| !is_nothing(it))?;
    Some(words.as_str().map_or_else(|| words.to_string(), str::to_owned))
}

/// Reads an error, and what stands beside it.
fn read_error(error: &Value, value: &Value) -> ProviderErrorBody {
    let bare = || error.as_str().map_or_else(|| error.to_string(), str::to_owned);
    let mut text = words_of(error).unwrap_or_else(bare);
    // llama.cpp names its window beside its words.
    if let Some(tokens) = error.get("n_ctx").and_then(Value::as_u64)
        && !text.contains(&tokens.to_string())
    {
        text.push_str(&format!(" (n_ctx: {tokens})"));
    }
    // A cloud says more beside the format's own words.
    let details = || error.get("details").and_then(Value::as_array).into_iter().flatten();
    let codes = [value.get("code"), error.get("code"), details().find_map(|it| it.get("reason"))];
    let codes = codes.into_iter().chain([error.get("type"), error.get("status")]);
    let code = codes.flatten().find_map(Value::as_str).unwrap_or_default();
    let delay = details().find_map(|it| it.get("retryDelay")?.as_str());
    let status = |name: &str| match error.get(name)? {
        // silent-ok: a code that is no number is a word.
        Value::String(digits) => digits.parse().ok(),
        other => other.as_u64().and_then(|code| u16::try_from(code).ok()),
    };
    let numbers = ["code", "status", "status_code", "error_code"].into_iter().filter_map(status);
    let named = numbers.into_iter().find(|status| (400..600).contains(status));
    ProviderErrorBody {
        text,
        status: named.or_else(|| status_of(code)),
        code: code.to_owned(),
        wait: delay.and_then(reset::duration),
    }
}

/// The status that a server would have sent whose error has this code.
fn status_of(code: &str) -> Option<u16> {
    match code {
        "rate_limit_exceeded" | "rate_limit_error" | "RESOURCE_EXHAUSTED" => Some(429),
        "overloaded_error" | "overloaded" | "UNAVAILABLE" => Some(503),
        "authentication_error" | "UNAUTHENTICATED" => Some(401),
        "permission_error" | "PERMISSION_DENIED" => Some(403),
        "not_found_error" | "NOT_FOUND" => Some(404),
        "server_error" | "api_error" | "INTERNAL" => Some(500),
        _ => None,
    }
}

/// The error that a status and its text stand for.
pub(super) fn of_status(
    asked: RequestTarget<'_>,
    status: u16,
    said: ProviderErrorBody,
) -> InferenceError {
    let endpoint = asked.endpoint.to_owned();
    let model = asked.model.clone();
    let ProviderErrorBody { text, code, .. } = said;
    let lower = text.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|words| lower.contains(words));
    let too_long = says(&TOO_LONG) || code.eq_ignore_ascii_case(CONTEXT_LENGTH_EXCEEDED);
    let remedy = None;
    match status {
        _ if BAD_KEY_CODES.contains(&code.as_str()) || (status == 400 && says(&BAD_KEY)) => {
            InferenceError::Unauthorised { endpoint, status, text, remedy }
        }
        402 => InferenceError::NoCredits { endpoint, text },
        400 | 403 if says(&NO_CREDITS) => InferenceError::NoCredits { endpoint, text },
        400 | 403 | 429
            if NO_CREDITS_CODES.contains(&code.as_str())
                || lower.contains("insufficient_quota") =>
        {
            InferenceError::NoCredits { endpoint, text }
        }
        400 | 403 | 422 if UNWANTED_CODES.contains(&code.as_str()) || says(&UNWANTED) => {
            InferenceError::ContentRefused { endpoint, status, text }
        }
        400 | 413 | 422 | 500 if too_long || status == 413 => {
            // The limit that a 413 names may be one of bytes.
            let of_tokens = too_long || lower.contains("token");
            let window = window::window_in(&text).filter(|_| of_tokens);
            InferenceError::TooLong { text, window, remedy }
        }
        400..=422 | 500 | 501 if code == TOOLS_UNSUPPORTED || says(&NO_TOOLS) => {
            InferenceError::NoTools { endpoint, model, text, remedy }
        }
        404 => InferenceError::NoModel { endpoint, model, text, listed: Vec::new(), remedy },
        400 | 403 | 422 if is_no_model(&code, &lower) => {
            InferenceError::NoModel { endpoint, model, text, listed: Vec::new(), remedy }
        }
        401 | 403 => InferenceError::Unauthorised { endpoint, status, text, remedy },
        _ => InferenceError::Status { endpoint, status, text },
    }
}

/// The error that a server tells in the middle of its reply.
pub(super) fn in_reply(asked: RequestTarget<'_>, said: ProviderErrorBody) -> InferenceError {
    // A cloud that was silent for long has begun its answer before it refuses.
    let status = said.status.unwrap_or(400);
    let wait = said.wait;
    match of_status(asked, status, said) {
        InferenceError::Status { endpoint, text, .. } => match wait {
            Some(wait) => InferenceError::Busy { endpoint, status, text, wait },
            None => InferenceError::Failed { endpoint, text },
        },
        known => known,
    }
}

fn is_no_model(code: &str, lower: &str) -> bool {
    let named = || {
        lower.split_once("model").is_some_and(|(before, after)| {
            let near = after.get(..after.floor_char_boundary(NEAR_BYTES)).unwrap_or_default();
            before.len() < NEAR_BYTES && NO_MODEL_AFTER.iter().any(|words| near.contains(words))
        })
    };
    [MODEL_NOT_FOUND, "model_not_found"].contains(&code)
        || NO_MODEL.iter().any(|words| lower.contains(words))
        || named()
}

#[cfg(test)]
mod tests {
    use super::*;
    use automaton_core::error::{Classified as _, ErrorClass};

    fn of(status: u16, text: &str) -> InferenceError {
        let asked = RequestTarget { endpoint: "here", model: &"m".into() };
        of_status(asked, status, message(text.as_bytes()))
    }

    #[test]
    fn finds_the_message_in_any_body() {
        let check = |body: &str, text: &str, code: &str| {
            let said = message(body.as_bytes());
            assert_eq!((said.text.as_str(), said.code.as_str()), (text, code), "{body}");
        };
        check(r#"{"error":{"message":"no","type":"x"}}"#, "no", "x");
        check(r#"{"error":{"message":"no","type":"x","code":"y"}}"#, "no", "y");
        check(r#"[{"error":{"message":"no","code":404}}]"#, "no", "");
        check(r#"{"error":"no","code":"UPSTREAM_KEY"}"#, "no", "UPSTREAM_KEY");
        let both = r#"{"error":{"message":"no","code":"upstream_key"},"code":"UPSTREAM_KEY"}"#;
        check(both, "no", "UPSTREAM_KEY");
        check(r#"{"error":"model not found"}"#, "model not found", "");
        check(r#"{"error":{"code":7}}"#, r#"{"code":7}"#, "");
        check(r#"{"detail":"no"}"#, r#"{"detail":"no"}"#, "");
        check("<html>Bad Gateway</html>", "<html>Bad Gateway</html>", "");
        check("", "", "");
        check("\u{FEFF}{\"error\":{\"message\":\"no\"}}", "no", "");
    }

    #[test]
    fn each_status_has_its_kind() {
        let kind = |status, text| of(status, text).kind();
        for status in [408, 429, 500, 502, 503, 504] {
            assert_eq!(kind(status, "busy"), ErrorClass::Transient, "{status}");
        }
        for status in [401, 403, 404] {
            assert_eq!(kind(status, "no"), ErrorClass::Config, "{status}");
        }
        for status in [400, 402, 418] {
            assert_eq!(kind(status, "no"), ErrorClass::Upstream, "{status}");
        }
        let long = "This model's maximum context length is 8192 tokens.";
        for (status, text) in [(400, long), (413, ""), (500, "exceeds the available context size")]
        {
            assert!(of(status, text).is_too_long(), "{status}");
        }
        assert!(!of(429, long).is_too_long());
        assert!(matches!(of(402, ""), InferenceError::NoCredits { .. }));
    }

    #[test]
    fn what_the_creator_has_to_mend_is_known_by_the_words_of_many_servers() {
        let tools = [
            (
                400,
                r#"{"error":{"message":"registry.ollama.ai/library/gemma3:1b does not support tools"}}"#,
            ),
            (
                400,
                r#"{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set"}"#,
            ),
            (500, r#"{"error":{"code":500,"message":"tools param requires --jinja flag"}}"#),
            (404, r#"{"error":{"message":"No endpoints found that support tool use."}}"#),
            (
                400,
                r#"{"error":{"message":"Unsupported parameter: 'tools' is not supported with this model."}}"#,
            ),
            (400, r#"{"message":"Function calling is not enabled for this model"}"#),
            (400, r#"{"error":{"message":"deepseek-reasoner does not support Function Calling"}}"#),
            (400, r#"{"error":"the model cannot","code":"TOOLS_UNSUPPORTED"}"#),
        ];
        for (status, body) in tools {
            let error = of(status, body);
            assert!(matches!(error, InferenceError::NoTools { .. }), "{body}: {error:?}");
        }
        let models = [
            (404, r#"{"error":{"message":"model 'x' not found"}}"#),
            (404, "404 page not found"),
            (
                404,
                r#"{"error":{"message":"The model `x` does not exist","code":"model_not_found"}}"#,
            ),
            (403, r#"{"error":{"message":"Project has no access to x","code":"model_not_found"}}"#),
            (400, r#"{"error":{"message":"x is not a valid model ID"}}"#),
            (400, r#"{"error":{"message":"Invalid model: x"}}"#),
            (400, r#"{"error":"there is no model 'x'","code":"MODEL_NOT_FOUND"}"#),
        ];
        for (status, body) in models {
            let error = of(status, body);
            assert!(matches!(error, InferenceError::NoModel { .. }), "{body}: {error:?}");
        }
        let long = [
            "Please reduce the length of the messages or completion",
            "This model's maximum prompt length is 131072 but the request contains 140000",
            "The input token count (9) exceeds the maximum number of tokens allowed (8)",
            "input length and `max_tokens` exceed context limit: 9 + 9 > 10",
        ];
        for text in long {
            assert!(of(400, text).is_too_long(), "{text}");
        }
        for (status, body) in
            [(401, "no"), (403, "no"), (502, r#"{"error":"no","code":"UPSTREAM_KEY"}"#)]
        {
            let error = of(status, body);
            assert!(matches!(error, InferenceError::Unauthorised { .. }), "{body}: {error:?}");
        }
        // These are none of all that, and may be one message's fault or pass.
        let others = [
            (400, r#"{"error":{"message":"messages.3: tool result without a call"}}"#),
            (400, r#"{"error":{"message":"Invalid schema for function 'exec'"}}"#),
            (400, r#"{"error":{"message":"the model refused: invalid image"}}"#),
            (429, r#"{"error":{"message":"tokens per minute of the model"}}"#),
            (503, r#"{"error":{"message":"the model does not support that now"}}"#),
        ];
        for (status, body) in others {
            let error = of(status, body);
            assert!(matches!(error, InferenceError::Status { .. }), "{body}: {error:?}");
            assert_eq!(error.tries_max(), u32::MAX);
        }
        let quota = r#"{"error":{"message":"You exceeded","code":"insufficient_quota"}}"#;
        assert!(matches!(of(429, quota), InferenceError::NoCredits { .. }));
    }

    #[test]
    fn a_prompt_that_is_too_long_is_known_by_code_and_its_limit_by_field() {
        let by_code = r#"{"error":{"message":"no","code":"context_length_exceeded"}}"#;
        assert!(of(400, by_code).is_too_long());
        let named = |status, body| of(status, body).named_window();
        let beside =
            r#"{"error":{"code":400,"message":"exceeds the available context size","n_ctx":4096}}"#;
        assert_eq!(named(400, beside), Some(4096));
        assert_eq!(named(413, "tokens per minute: Limit 6000, Requested 9000"), Some(6000));
        assert_eq!(named(413, "the body is over the limit of 1048576 bytes"), None);
    }
}
