//! Pure: what of a request in the responses format concerns the bill.
//!
//! The cloud keeps no conversation, and runs no tool for its caller: what would need that is refused
//! by name, as is what has no price here. Must never let through what is not known to be free.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::prompt_extra::PromptExtra;
use super::request::{RequestFields, SoldFields, field, parts};
use crate::error::ApiError;

const FIELDS: SoldFields = SoldFields {
    sold: &[
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "metadata",
        "model",
        "parallel_tool_calls",
        "prompt_cache_key",
        "reasoning",
        "safety_identifier",
        "stream",
        "stream_options",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_p",
        "user",
    ],
    free_as: &[
        ("background", &["false"]),
        ("service_tier", &["\"auto\"", "\"default\"", "\"flex\""]),
        ("store", &["false"]),
        ("truncation", &["\"disabled\""]),
    ],
};

/// The one addition to an answer that may be asked for. It comes if there is some.
const INCLUDED: &str = "reasoning.encrypted_content";

/// Kinds of parts that are no larger than their bytes.
const TEXTS: [&str; 4] = ["input_text", "output_text", "text", "refusal"];

/// Fields that an answer tells back.
const TOLD_BACK: [&str; 9] = [
    "max_output_tokens",
    "metadata",
    "parallel_tool_calls",
    "reasoning",
    "temperature",
    "text",
    "tool_choice",
    "top_p",
    "user",
];
/// The most that one of them may hold, in bytes; an answer tells them back three times.
const TOLD_BACK_BYTES_MAX: usize = 16 << 10;

/// An item of the input, as far as it concerns the bill.
#[derive(Deserialize)]
struct ItemShape<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    /// The kind of item. The fields that are there decide it; of other kinds nothing is known.
    #[serde(rename = "type", borrow)]
    kind: Option<Cow<'a, str>>,
}

/// Refuses what is not sold, and tells how many items the input has and how large it may be.
///
/// # Errors
/// The error for the client.
pub(super) fn check(fields: &RequestFields) -> Result<(usize, PromptExtra), ApiError> {
    FIELDS.check(fields, Some(&["function"]))?;
    let included: Vec<String> = field(fields, "include")?.unwrap_or_default();
    if let Some(other) = included.iter().find(|name| *name != INCLUDED) {
        let what = format!("'{other}' of include is not to be had here: leave it out");
        return Err(ApiError::wrong_field(what, Some("include")));
    }
    let Some(input) = fields.get("input").filter(|input| input.get() != "null") else {
        return Err(ApiError::wrong_field("the body has no input", Some("input")));
    };
    if input.get().starts_with('"') {
        return Ok((1, PromptExtra::NONE));
    }
    let items = parts::<ItemShape<'_>>(fields, "input")?;
    let extra = items.iter().map(ItemShape::extra).fold(PromptExtra::NONE, PromptExtra::plus);
    Ok((items.len(), extra))
}

impl ItemShape<'_> {
    fn extra(&self) -> PromptExtra {
        match self.kind.as_deref() {
            None | Some("message" | "function_call" | "function_call_output" | "reasoning") => {}
            Some(_) => return PromptExtra::Unbounded,
        }
        let of = |content: &RawValue| PromptExtra::of_parts(content, "input_image", &TEXTS);
        let of = |content: Option<&RawValue>| content.map_or(PromptExtra::NONE, of);
        of(self.content).plus(of(self.output))
    }
}

/// Returns the fields of the question that the answer repeats, except those that are too large.
pub(super) fn echoed_fields(fields: &RequestFields) -> RequestFields {
    let told = TOLD_BACK.into_iter().filter_map(|name| {
        let value = fields.get(name)?;
        let is_told = value.get().len() <= TOLD_BACK_BYTES_MAX && value.get() != "null";
        is_told.then(|| (name.to_owned(), value.clone()))
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{ChatBody, ClientFormat};

    fn asked(more: &str) -> Result<(usize, PromptExtra), String> {
        let body = format!(r#"{{"model":"a",{more}}}"#);
        check(&serde_json::from_str(&body).unwrap()).map_err(|error| error.body.error)
    }

    #[test]
    fn what_needs_a_memory_or_a_tool_of_the_cloud_is_refused_by_name() {
        for good in [
            r#""input":"Go","store":false,"background":false,"truncation":"disabled""#,
            r#""input":"Go","previous_response_id":null,"include":["reasoning.encrypted_content"]"#,
            r#""input":"Go","tools":[{"type":"function","name":"a","parameters":{}}]"#,
        ] {
            assert_eq!(asked(good), Ok((1, PromptExtra::NONE)), "{good}");
        }
        for (bad, named) in [
            (r#""input":"Go","store":true"#, "store"),
            (r#""input":"Go","previous_response_id":"resp_1""#, "previous_response_id"),
            (r#""input":"Go","conversation":"c""#, "conversation"),
            (r#""input":"Go","background":true"#, "background"),
            (r#""input":"Go","truncation":"auto""#, "truncation"),
            (r#""input":"Go","prompt":{"id":"p"}"#, "prompt"),
            (r#""input":"Go","service_tier":"priority""#, "service_tier"),
            (r#""input":"Go","include":["message.output_text.logprobs"]"#, "logprobs"),
            (r#""input":"Go","tools":[{"type":"web_search"}]"#, "web_search"),
            (r#""input":"Go","tools":[{"type":"mcp"}]"#, "mcp"),
            (r#""input":"Go","what_is_new":1"#, "what_is_new"),
            (r#""stream":true"#, "input"),
            (r#""input":null"#, "input"),
            (r#""input":7"#, "input"),
        ] {
            let refusal = asked(bad).unwrap_err();
            assert!(refusal.contains(named), "{bad}: {refusal}");
        }
    }

    #[test]
    fn pictures_and_what_is_not_known_are_larger_than_their_bytes() {
        let picture = r#"{"type":"input_image","image_url":"u"}"#;
        let said = |parts: &str| format!(r#"{{"role":"user","content":[{parts}]}}"#);
        let result = format!(r#"{{"type":"function_call_output","output":[{picture}]}}"#);
        let of = |items: &str| asked(&format!(r#""input":[{items}]"#)).unwrap();
        let both = format!("{},{result}", said(picture));
        assert_eq!(of(&both), (2, PromptExtra::IMAGE.plus(PromptExtra::IMAGE)));
        assert_eq!(of(&said(r#"{"type":"input_file"}"#)).1, PromptExtra::Unbounded);
        assert_eq!(of(r#"{"type":"item_reference","id":"i"}"#).1, PromptExtra::Unbounded);
        assert_eq!(of(r#"{"type":"reasoning","summary":[]}"#).1, PromptExtra::NONE);
    }

    #[test]
    fn what_is_told_back_is_small() {
        let large = "x".repeat(TOLD_BACK_BYTES_MAX);
        let body = format!(
            r#"{{"model":"a","input":"Go","metadata":{{"a":"b"}},"user":"{large}","top_p":null}}"#
        );
        let asked = ChatBody::parse(ClientFormat::Responses, body.as_bytes()).unwrap();
        let told = asked.echoed_fields();
        assert_eq!(told.keys().collect::<Vec<_>>(), ["metadata"]);
    }
}
