//! Pure: checks a request in the format of chat completions for anything that costs extra.
//!
//! Searches and sound, which upstreams sell beside tokens, faster lanes, which make tokens dearer,
//! and fields that have another model answer are refused by name: they have no price here. Must
//! never let through a field that is not known to be free.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::prompt_extra::PromptExtra;
use super::request::{RequestFields, SoldFields, parts};
use crate::error::ApiError;

const FIELDS: SoldFields = SoldFields {
    sold: &[
        "cache_prompt",
        "chat_template_kwargs",
        "frequency_penalty",
        "function_call",
        "functions",
        "grammar",
        "include_reasoning",
        "json_schema",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "metadata",
        "min_p",
        "model",
        "n",
        "parallel_tool_calls",
        "presence_penalty",
        "prompt_cache_key",
        "reasoning",
        "reasoning_effort",
        "repetition_penalty",
        "response_format",
        "safety_identifier",
        "seed",
        "stop",
        "stream",
        "stream_options",
        "temperature",
        "think",
        "tool_choice",
        "tools",
        "top_k",
        "top_logprobs",
        "top_p",
        "user",
    ],
    free_as: &[
        ("service_tier", &["\"auto\"", "\"default\"", "\"flex\""]),
        ("store", &["false"]),
        ("modalities", &["[\"text\"]"]),
        ("verbosity", &["\"low\"", "\"medium\"", "\"high\""]),
    ],
};

/// A message as far as it concerns the bill.
#[derive(Deserialize)]
struct MessageShape<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// Refuses what is not sold, and tells how many messages there are and how large the prompt may be.
///
/// # Errors
/// The error for the client.
pub(super) fn check(fields: &RequestFields) -> Result<(usize, PromptExtra), ApiError> {
    FIELDS.check(fields, Some(&["function", "custom"]))?;
    let messages = parts::<MessageShape<'_>>(fields, "messages")?;
    let of = |content: &RawValue| PromptExtra::of_parts(content, "image_url", &["text", "refusal"]);
    let of = |message: &MessageShape<'_>| message.content.map_or(PromptExtra::NONE, of);
    Ok((messages.len(), messages.iter().map(of).fold(PromptExtra::NONE, PromptExtra::plus)))
}

/// Returns whether a field is left out of a request, since it is free and only states the default.
pub(super) fn is_said_anyway(name: &str) -> bool {
    name != "verbosity" && FIELDS.free_as.iter().any(|(free, _)| *free == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(more: &str) -> Result<(usize, PromptExtra), ApiError> {
        let body = format!(r#"{{"model":"a","messages":[],{more}}}"#);
        check(&serde_json::from_str(&body).unwrap())
    }

    #[test]
    fn what_makes_an_answer_dearer_or_another_ones_is_refused_by_name() {
        for good in [
            r#""temperature":0.5,"seed":1,"user":"a","reasoning_effort":"low""#,
            r#""service_tier":"auto","store":false,"modalities":["text"]"#,
            r#""tools":[{"type":"function","function":{"name":"a"}}],"audio":null"#,
        ] {
            assert!(checked(good).is_ok(), "{good}");
        }
        for (bad, named) in [
            (r#""service_tier":"priority""#, "service_tier"),
            (r#""store":true"#, "store"),
            (r#""web_search_options":{}"#, "web_search_options"),
            (r#""modalities":["text","audio"]"#, "modalities"),
            (r#""prediction":{"type":"content"}"#, "prediction"),
            (r#""models":["dear"]"#, "models"),
            (r#""route":"fallback""#, "route"),
            (r#""plugins":[{"id":"web"}]"#, "plugins"),
            (r#""provider":{"sort":"price"}"#, "provider"),
            (r#""what_is_new":1"#, "what_is_new"),
            (r#""tools":[{"type":"web_search"}]"#, "web_search"),
        ] {
            let refusal = checked(bad).err().map(|error| error.body.error).unwrap_or_default();
            assert!(refusal.contains(named), "{bad}: {refusal}");
        }
    }
}
