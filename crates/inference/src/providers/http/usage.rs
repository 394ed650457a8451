//! Pure: the counts of tokens that servers tell, in every format.
//!
//! Each count is read by itself: `null`, or a count that is none, says nothing and spoils no other. A count of the
//! prompt or the answer that is missing is never taken for 0.

use automaton_core::wire::chat::{ChatUsage, PromptTokensDetails};
use serde_json::Value;

/// The largest whole number that a floating-point number holds without rounding.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// The names of the counts in chat completions, and in gateways that mix the formats.
const PROMPT: [&str; 2] = ["prompt_tokens", "input_tokens"];
const COMPLETION: [&str; 2] = ["completion_tokens", "output_tokens"];
const DETAILS: [&str; 2] = ["prompt_tokens_details", "input_tokens_details"];

/// A count of tokens; nothing where it is none.
pub(super) fn count(of: &Value, name: &str) -> Option<u32> {
    let number = of.get(name)?;
    let whole = number.as_u64().or_else(|| match number.as_f64() {
        Some(it) if it.fract() == 0.0 && (0.0..EXACT_MAX).contains(&it) => {
            // silent-ok: it is a whole number within those that a text shows exactly.
            format!("{it:.0}").parse().ok()
        }
        _ => None,
    });
    whole.and_then(|count| u32::try_from(count).ok())
}

fn first_count(of: &Value, names: &[&str]) -> Option<u32> {
    names.iter().find_map(|name| count(of, name))
}

/// The tokens of a prompt and those of it that came out of a cache and were written into it, and of
/// the answer.
pub(super) fn counts(prompt: u32, cached: u32, cache_write: u32, completion: u32) -> ChatUsage {
    let details = PromptTokensDetails { cached_tokens: cached, cache_write_tokens: cache_write };
    ChatUsage {
        prompt_tokens: prompt,
        completion_tokens: completion,
        total_tokens: prompt.saturating_add(completion),
        prompt_tokens_details: Some(details),
        ..ChatUsage::default()
    }
}

/// Reads the `usage` of chat completions or responses. Nothing where the tokens of the prompt or of the answer
/// are not told, not even by their sum.
pub(super) fn read_chat_usage(told: &Value) -> Option<ChatUsage> {
    let prompt = first_count(told, &PROMPT);
    let completion = first_count(told, &COMPLETION);
    let total = count(told, "total_tokens");
    let rest = |known: u32| total.and_then(|total| total.checked_sub(known));
    let (prompt, completion) = match (prompt, completion) {
        (Some(prompt), Some(completion)) => (prompt, completion),
        (Some(prompt), None) => (prompt, rest(prompt)?),
        (None, Some(completion)) => (rest(completion)?, completion),
        (None, None) => return None,
    };
    let details = DETAILS.iter().find_map(|name| told.get(name).filter(|it| it.is_object()));
    let detail = |name| details.and_then(|details| count(details, name));
    let cached = detail("cached_tokens")
        .or_else(|| count(told, "prompt_cache_hit_tokens"))
        .or_else(|| count(told, "cached_tokens"));
    let is_detailed = details.is_some() || cached.is_some();
    let usage =
        counts(prompt, cached.unwrap_or(0), detail("cache_write_tokens").unwrap_or(0), completion);
    Some(ChatUsage {
        total_tokens: total.unwrap_or(usage.total_tokens),
        prompt_tokens_details: usage.prompt_tokens_details.filter(|_| is_detailed),
        first_token_ms: count(told, "first_token_ms"),
        estimated: told.get("estimated").and_then(Value::as_bool).unwrap_or(false),
        ..usage
    })
}

/// The counts of a reply that tells them more than once: a later count holds, unless it says nothing.
pub(super) fn later_usage(
    before: Option<ChatUsage>,
    later: Option<ChatUsage>,
) -> Option<ChatUsage> {
    let is_empty = |usage: &ChatUsage| usage.prompt_tokens == 0 && usage.completion_tokens == 0;
    match (before, later) {
        (Some(before), Some(later)) if is_empty(&later) => Some(before),
        (before, later) => later.or(before),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(told: &Value) -> Option<(u32, u32, u32)> {
        let usage = read_chat_usage(told)?;
        let details = usage.prompt_tokens_details.unwrap_or_default();
        Some((usage.prompt_tokens, usage.completion_tokens, details.cached_tokens))
    }

    #[test]
    fn each_count_is_read_by_itself() {
        let both = json!({"prompt_tokens": 1234, "completion_tokens": 56});
        let with = |more: Value| {
            let mut told = both.clone();
            told.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            told
        };
        for more in [
            json!({}),
            json!({"total_tokens": null}),
            json!({"prompt_tokens_details": null, "completion_tokens_details": {"reasoning_tokens": null}}),
            json!({"prompt_tokens_details": {"cached_tokens": null, "audio_tokens": null}}),
            json!({"prompt_tokens_details": {"cached_tokens": -1}}),
            json!({"prompt_tokens_details": [], "total_tokens": "many", "cost": 1.5}),
            json!({"prompt_tokens": 1234.0}),
            json!({"estimated": null, "first_token_ms": "soon"}),
        ] {
            assert_eq!(read(&with(more.clone())), Some((1234, 56, 0)), "{more}");
        }
        let cached = json!({"prompt_tokens_details": {"cached_tokens": 34, "audio_tokens": null}});
        assert_eq!(read(&with(cached)), Some((1234, 56, 34)));
        assert_eq!(read(&with(json!({"prompt_cache_hit_tokens": 34}))), Some((1234, 56, 34)));
        assert_eq!(read(&json!({"input_tokens": 7, "output_tokens": 2})), Some((7, 2, 0)));
        assert_eq!(
            read(&json!({"prompt_tokens": 7, "completion_tokens": null, "total_tokens": 9})),
            Some((7, 2, 0))
        );
        assert_eq!(read(&json!({"completion_tokens": 2, "total_tokens": 9})), Some((7, 2, 0)));
    }

    #[test]
    fn a_count_that_is_missing_is_never_0() {
        for told in [
            json!(null),
            json!({}),
            json!({"prompt_tokens": 7}),
            json!({"prompt_tokens": 7, "completion_tokens": null}),
            json!({"prompt_tokens": 7, "completion_tokens": -1}),
            json!({"prompt_tokens": 7.5, "completion_tokens": 2}),
            json!({"completion_tokens": 7, "total_tokens": 2}),
            json!("many"),
            json!([7, 2]),
        ] {
            assert_eq!(read(&told), None, "{told}");
        }
    }

    #[test]
    fn a_later_count_holds_unless_it_says_nothing() {
        let usage = |prompt, completion| Some(counts(prompt, 0, 0, completion));
        assert_eq!(later_usage(usage(7, 1), usage(7, 2)), usage(7, 2));
        assert_eq!(later_usage(usage(7, 1), usage(0, 0)), usage(7, 1));
        assert_eq!(later_usage(usage(7, 1), None), usage(7, 1));
        assert_eq!(later_usage(None, usage(0, 0)), usage(0, 0));
    }
}
