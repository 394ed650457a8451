//! Pure: checks a request in Anthropic's format for anything that costs extra.
//!
//! Searches and containers, which Anthropic sells beside tokens, and options that make tokens
//! dearer are refused by name: they have no price here. Must never let through a field that is not
//! known to be free.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::prompt_extra::PromptExtra;
use super::request::{RequestFields, SoldFields, field, parts};
use crate::error::ApiError;

const FIELDS: SoldFields = SoldFields {
    sold: &[
        "cache_control",
        "context_management",
        "max_tokens",
        "messages",
        "metadata",
        "model",
        "output_config",
        "output_format",
        "service_tier",
        "stop_sequences",
        "stream",
        "system",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
    ],
    free_as: &[],
};

/// The beginnings of the kinds of tools that a client runs itself.
const CLIENT_TOOLS: [&str; 4] = ["bash_", "computer_", "memory_", "text_editor_"];

/// The beginnings of the names that a client may ask for in `anthropic-beta`. They change the
/// format or the cache, and neither the price nor access to anything of the operator's.
const BETAS: [&str; 12] = [
    "adaptive-thinking-",
    "claude-code-",
    "computer-use-",
    "context-management-",
    "effort-",
    "extended-cache-ttl-",
    "fine-grained-tool-streaming-",
    "interleaved-thinking-",
    "output-128k-",
    "prompt-caching-",
    "structured-outputs-",
    "token-efficient-tools-",
];

/// The lifetime of a cache for which writing has a price.
const CACHE_TTL: &str = "5m";

#[derive(Deserialize)]
struct MessagesToolShape<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Cow<'a, str>>,
    cache_control: Option<CacheMark>,
}

#[derive(Deserialize)]
struct TurnShape<'a> {
    #[serde(borrow)]
    content: &'a RawValue,
}

/// A block as far as it concerns the bill. What it holds is looked at one level deep and copied
/// nowhere: a body costs no more memory than it has bytes, however it is nested.
#[derive(Deserialize)]
struct BlockShape<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    cache_control: Option<CacheMark>,
}

/// The lifetime in the server's cache that a prompt asks for.
#[derive(Deserialize)]
struct CacheMark {
    ttl: Option<String>,
}

/// Refuses what is not sold, and tells how many messages there are and how large the prompt may be.
///
/// # Errors
/// The error for the client.
pub(super) fn check(fields: &RequestFields) -> Result<(usize, PromptExtra), ApiError> {
    if fields.get("thread").is_some_and(|thread| thread.get() != "null") {
        return Err(ApiError::no_threads());
    }
    FIELDS.check(fields, None)?;
    for tool in parts::<MessagesToolShape<'_>>(fields, "tools")? {
        let kind = tool.kind.unwrap_or_default();
        let is_clients = CLIENT_TOOLS.iter().any(|begin| kind.starts_with(begin));
        if !(kind.is_empty() || kind == "custom" || is_clients) {
            let what = format!("the tool of the type '{kind}' is not sold here: leave it out");
            return Err(ApiError::wrong_field(what, Some("tools")));
        }
        mark(tool.cache_control.as_ref(), "tools")?;
    }
    mark(field::<CacheMark>(fields, "cache_control")?.as_ref(), "cache_control")?;
    if let Some(system) = fields.get("system") {
        extra(system, "system", true)?;
    }
    let turns = parts::<TurnShape<'_>>(fields, "messages")?;
    let mut sum = PromptExtra::NONE;
    for turn in &turns {
        sum = sum.plus(extra(turn.content, "messages", true)?);
    }
    Ok((turns.len(), sum))
}

/// Refuses a cache that is kept longer than the one that has a price.
fn mark(mark: Option<&CacheMark>, place: &str) -> Result<(), ApiError> {
    match mark.and_then(|mark| mark.ttl.as_deref()) {
        None | Some(CACHE_TTL) => Ok(()),
        Some(ttl) => {
            let what = format!(
                "a cache_control of {place} asks for ttl {ttl}, which is not sold here: leave it \
                 out, or say {CACHE_TTL}"
            );
            Err(ApiError::wrong_field(what, Some(place)))
        }
    }
}

/// The betas of a header that are passed on.
pub(crate) fn betas<'a>(headers: impl Iterator<Item = &'a str>) -> Vec<String> {
    let names = headers.flat_map(|value| value.split(',')).map(str::trim);
    let known = |name: &&str| BETAS.iter().any(|begin| name.starts_with(begin));
    names.filter(known).map(str::to_owned).collect()
}

/// The tokens that a content may have beyond its bytes. What stands in a result of a call is
/// looked at, too, and nothing deeper.
fn extra(content: &RawValue, place: &str, is_outer: bool) -> Result<PromptExtra, ApiError> {
    match content.get().as_bytes().first() {
        Some(b'"') => return Ok(PromptExtra::NONE),
        Some(b'[') => {}
        _ => return Ok(PromptExtra::Unbounded),
    }
    let blocks: Vec<BlockShape<'_>> = match serde_json::from_str(content.get()) {
        Ok(blocks) => blocks,
        Err(_) => return Ok(PromptExtra::Unbounded),
    };
    let mut sum = PromptExtra::NONE;
    for block in &blocks {
        mark(block.cache_control.as_ref(), place)?;
        let of = match (&*block.kind, block.content) {
            ("image", _) => PromptExtra::IMAGE,
            ("text" | "tool_use" | "thinking" | "redacted_thinking", _) | ("tool_result", None) => {
                PromptExtra::NONE
            }
            ("tool_result", Some(content)) if is_outer => extra(content, place, false)?,
            _ => PromptExtra::Unbounded,
        };
        sum = sum.plus(of);
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use crate::chat::request::ClientFormat;

    use super::*;
    use crate::chat::ChatBody;

    fn extra_of(messages: &str) -> PromptExtra {
        let body = format!(r#"{{"messages":{messages}}}"#);
        check(&serde_json::from_str(&body).unwrap()).unwrap().1
    }

    #[test]
    fn pictures_and_documents_are_larger_than_their_bytes() {
        let picture = r#"{"type":"image","source":{"type":"url","url":"u"}}"#;
        let text = r#"{"type":"text","text":"t"}"#;
        let result = format!(r#"{{"type":"tool_result","content":[{picture},{picture}]}}"#);
        let document = r#"{"type":"document","source":{}}"#;
        let turn = |blocks: &str| format!(r#"[{{"role":"user","content":{blocks}}}]"#);
        let tokens =
            |pictures| (0..pictures).fold(PromptExtra::NONE, |sum, _| sum.plus(PromptExtra::IMAGE));
        assert_eq!(extra_of(&turn(r#""text""#)), tokens(0));
        assert_eq!(extra_of(&turn(&format!("[{text},{picture}]"))), tokens(1));
        assert_eq!(extra_of(&turn(&format!("[{picture},{result}]"))), tokens(3));
        assert_eq!(extra_of(&turn(&format!("[{picture},{document}]"))), PromptExtra::Unbounded);
        assert_eq!(extra_of(&turn("{}")), PromptExtra::Unbounded);
    }

    #[test]
    fn depth_and_many_small_parts_cost_nothing() {
        let nested = |depth: usize| {
            let open = r#"[{"type":"tool_result","content":"#;
            let close = "}]";
            format!("{}\"x\"{}", open.repeat(depth), close.repeat(depth))
        };
        let turn = |content: &str| format!(r#"[{{"role":"user","content":{content}}}]"#);
        assert_eq!(extra_of(&turn(&nested(1))), PromptExtra::NONE);
        assert_eq!(extra_of(&turn(&nested(40_000))), PromptExtra::Unbounded);
        let numbers = format!("[{}0]", "0,".repeat(100_000));
        assert_eq!(extra_of(&turn(&numbers)), PromptExtra::Unbounded);
    }

    #[test]
    fn a_cache_that_is_kept_longer_has_no_price() {
        for place in [
            r#""messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]"#,
            r#""messages":[],"system":[{"type":"text","text":"a","cache_control":{"ttl":"1h"}}]"#,
            r#""messages":[],"tools":[{"name":"a","cache_control":{"ttl":"1h"}}]"#,
            r#""messages":[],"cache_control":{"ttl":"1h"}"#,
        ] {
            let checked =
                |body: &str| check(&serde_json::from_str(&format!("{{{body}}}")).unwrap());
            assert!(checked(place).is_err(), "{place}");
            assert!(checked(&place.replace("1h", "5m")).is_ok(), "{place}");
        }
    }

    #[test]
    fn what_has_no_price_is_refused_by_name() {
        let asked = |more: &str| {
            let body = format!(r#"{{"model":"a","max_tokens":5,"messages":[],{more}}}"#);
            ChatBody::parse(ClientFormat::AnthropicMessages, body.as_bytes())
        };
        for good in [
            r#""tools":[{"name":"a"},{"type":"custom","name":"b"},{"type":"bash_20250124"}]"#,
            r#""speed":null"#,
            r#""tools":null"#,
        ] {
            assert!(asked(good).is_ok(), "{good}");
        }
        for (bad, named) in [
            (r#""tools":[{"type":"web_search_20250305","name":"s"}]"#, "web_search"),
            (r#""tools":[{"type":"code_execution_20250522","name":"s"}]"#, "code_execution"),
            (r#""mcp_servers":[]"#, "mcp_servers"),
            (r#""speed":"fast""#, "speed"),
            (r#""what_is_new":1"#, "what_is_new"),
        ] {
            let refusal = asked(bad).err().map(|error| error.body.error);
            let refusal = refusal.unwrap_or_default();
            assert!(refusal.contains(named), "{bad}: {refusal}");
        }
    }

    #[test]
    fn a_thread_is_refused_in_the_form_that_clients_understand() {
        let asked = |more: &str| {
            let body = format!(r#"{{"model":"a","max_tokens":5,"messages":[],{more}}}"#);
            ChatBody::parse(ClientFormat::AnthropicMessages, body.as_bytes())
        };
        assert!(asked(r#""thread":null"#).is_ok());
        for thread in [r#"{"type":"create"}"#, r#"{"type":"continue","id":"t"}"#, "true"] {
            // Another field is refused only once the client goes on without a thread.
            let refusal = asked(&format!(r#""speed":"fast","thread":{thread}"#)).err().unwrap();
            let error = refusal.for_messages().error;
            assert_eq!(
                (refusal.status.as_u16(), error.kind.as_str()),
                (400, "invalid_request_error")
            );
            let told = serde_json::to_value(error.details).unwrap();
            let agreed = serde_json::json!({
                "error_code": "thread_unsupported_request", "unsupported": ["thread"]
            });
            assert_eq!(told, agreed, "{thread}");
        }
        let other = asked(r#""speed":"fast""#).err().unwrap().for_messages().error;
        assert_eq!(other.details, None);
    }

    #[test]
    fn a_beta_is_passed_on_where_it_costs_nothing() {
        let told = ["interleaved-thinking-2025-05-14, context-1m-2025-08-07", "fast-mode-2026"];
        assert_eq!(betas(told.into_iter()), ["interleaved-thinking-2025-05-14"]);
    }
}
