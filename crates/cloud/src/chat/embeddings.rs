//! Embeddings: what of a request concerns the bill, and the answer until it is charged.
//!
//! Only the prompt costs something. The vectors are passed on in the form that was asked for, with
//! the model's name and the count of tokens. Must never show an answer before its charge.

use std::borrow::Cow;

use automaton_core::wire::chat::ChatUsage;
use automaton_inference::providers::local::chat::ResponseMeta;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::Recording;
use super::answer::Answer;
use super::answer_stream::{AnswerFields, raw};
use super::held_back::HeldBack;
use super::request::{RequestFields, SoldFields, field, parts};
use crate::billing::price::{BilledTokens, Charge, Metering, TokenBounds};
use crate::error::ApiError;

const FIELDS: SoldFields =
    SoldFields { sold: &["dimensions", "encoding_format", "input", "model", "user"], free_as: &[] };

/// Texts that one request may have, as at OpenAI.
const INPUTS_MAX: usize = 2_048;

/// The forms of a vector that a client can ask for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum VectorForm {
    /// A list of numbers.
    #[default]
    Float,
    /// 32-bit numbers, the lowest byte first, as base64.
    Base64,
}

impl VectorForm {
    /// Returns a vector in this form. Upstreams answer in whichever they know.
    fn write(self, vector: &RawValue) -> Result<Box<RawValue>, serde_json::Error> {
        let is_text = vector.get().starts_with('"');
        match (self, is_text) {
            (Self::Float, false) | (Self::Base64, true) => Ok(vector.to_owned()),
            (Self::Base64, false) => {
                let numbers: Vec<f32> = serde_json::from_str(vector.get())?;
                let bytes: Vec<u8> = numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
                to_raw_value(&STANDARD.encode(bytes))
            }
            (Self::Float, true) => {
                let text: Cow<'_, str> = serde_json::from_str(vector.get())?;
                let bytes = STANDARD.decode(text.as_bytes()).map_err(serde::de::Error::custom)?;
                let (numbers, rest) = bytes.as_chunks::<4>();
                if !rest.is_empty() {
                    return Err(serde::de::Error::custom("a vector ends within a number"));
                }
                to_raw_value(&numbers.iter().map(|it| f32::from_le_bytes(*it)).collect::<Vec<_>>())
            }
        }
    }

    /// Returns the rows of an answer with their vectors in this form.
    fn write_rows(self, data: &RawValue) -> Result<Box<RawValue>, serde_json::Error> {
        let mut rows: Vec<AnswerFields> = serde_json::from_str(data.get())?;
        for row in &mut rows {
            if let Some(vector) = row.get("embedding") {
                let vector = self.write(vector)?;
                row.insert("embedding".to_owned(), vector);
            }
        }
        to_raw_value(&rows)
    }
}

/// The count of tokens of embeddings, as OpenAI has it.
#[derive(Serialize, Deserialize)]
struct EmbeddingUsage {
    prompt_tokens: u32,
    total_tokens: u32,
}

/// Refuses what is not sold; gives how many texts there are.
///
/// # Errors
/// The error for the client.
pub(super) fn check(fields: &RequestFields) -> Result<usize, ApiError> {
    let wrong = |what: String, param| Err(ApiError::wrong_field(what, Some(param)));
    FIELDS.check(fields, None)?;
    let first = fields.get("input").map(|input| input.get().as_bytes()[0]);
    let inputs = match first {
        Some(b'"') => 1,
        Some(b'[') => parts::<&RawValue>(fields, "input")?.len(),
        _ => return wrong("the body has no input: a text, or several".to_owned(), "input"),
    };
    if !(1..=INPUTS_MAX).contains(&inputs) {
        return wrong(format!("input has {inputs} texts, of 1 to {INPUTS_MAX}"), "input");
    }
    Ok(inputs)
}

/// Returns the form that the vectors are asked for in.
///
/// # Errors
/// The error for the client.
pub(super) fn vector_form(fields: &RequestFields) -> Result<VectorForm, ApiError> {
    Ok(field(fields, "encoding_format")?.unwrap_or_default())
}

/// An answer as it comes, all at once.
pub(super) struct EmbeddingsAnswer<'a> {
    shown: HeldBack<'a>,
    form: VectorForm,
    bounds: TokenBounds,
    meta: ResponseMeta,
    usage: Option<ChatUsage>,
    fields: Option<AnswerFields>,
}

impl<'a> EmbeddingsAnswer<'a> {
    pub(super) const fn new(
        recording: &'a Recording,
        form: VectorForm,
        bounds: TokenBounds,
        meta: ResponseMeta,
    ) -> Self {
        Self { shown: HeldBack::new(recording), form, bounds, meta, usage: None, fields: None }
    }
}

impl Answer for EmbeddingsAnswer<'_> {
    fn is_shown(&self) -> bool {
        self.shown.is_shown()
    }

    fn recording(&self) -> &Recording {
        self.shown.recording()
    }

    fn meta(&self) -> &ResponseMeta {
        &self.meta
    }

    fn event(&mut self, _: &str) -> Result<bool, String> {
        Err("embeddings come all at once".to_owned())
    }

    fn document(&mut self, body: Bytes) -> Result<(), String> {
        let mut fields: AnswerFields =
            serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        let data = fields.get("data").filter(|data| data.get().starts_with('['));
        let data = data.ok_or_else(|| "it holds no embeddings".to_owned())?;
        let rows = self.form.write_rows(data);
        let rows = rows.map_err(|error| format!("its embeddings cannot be read: {error}"))?;
        fields.insert("data".to_owned(), rows);
        fields.extend(raw(&self.meta.model).map(|model| ("model".to_owned(), model)));
        // silent-ok: a count that cannot be read is none.
        let told = fields.get("usage").and_then(|told| serde_json::from_str(told.get()).ok());
        self.usage = told.map(|EmbeddingUsage { prompt_tokens, .. }| ChatUsage {
            prompt_tokens,
            total_tokens: prompt_tokens,
            ..ChatUsage::default()
        });
        self.usage = self.usage.filter(|told| self.bounds.allow(told));
        self.fields = Some(fields);
        Ok(())
    }

    fn is_whole(&self) -> bool {
        self.fields.is_some()
    }

    fn billed(&self, prompt_bytes: usize) -> (BilledTokens, Metering) {
        self.bounds.billed(self.usage.as_ref(), prompt_bytes, 0)
    }

    fn finish(self: Box<Self>, charge: &Charge) -> Result<(), String> {
        let mut fields = self.fields.unwrap_or_default();
        let prompt_tokens = charge.tokens.prompt;
        let count = EmbeddingUsage { prompt_tokens, total_tokens: prompt_tokens };
        fields.extend(raw(&count).map(|count| ("usage".to_owned(), count)));
        let whole = serde_json::to_vec(&fields).map_err(|error| error.to_string())?;
        self.shown.finish(whole.into(), charge.metering);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_counted_and_what_is_not_sold_is_refused() {
        let checked = |body: &str| {
            let fields = serde_json::from_str(body).unwrap();
            check(&fields).and_then(|count| vector_form(&fields).map(|_| count))
        };
        assert_eq!(checked(r#"{"model":"a","input":"x"}"#).unwrap(), 1);
        assert_eq!(checked(r#"{"input":["x","y"],"encoding_format":"base64"}"#).unwrap(), 2);
        assert_eq!(checked(r#"{"input":[[1,2],[3]]}"#).unwrap(), 2);
        for bad in [
            r#"{"model":"a"}"#,
            r#"{"input":[]}"#,
            r#"{"input":7}"#,
            r#"{"input":"x","stream":true}"#,
            r#"{"input":"x","encoding_format":"hex"}"#,
            r#"{"input":"x","encoding_format":1}"#,
            &format!(r#"{{"input":[{}1]}}"#, "1,".repeat(INPUTS_MAX)),
        ] {
            assert!(checked(bad).is_err(), "{bad:.60}");
        }
    }

    #[test]
    fn a_vector_comes_in_the_form_that_was_asked_for() {
        let written = |form: VectorForm, data: &str| {
            let data: Box<RawValue> = serde_json::from_str(data).unwrap();
            form.write_rows(&data).map(|rows| rows.get().to_owned())
        };
        let numbers = r#"[{"embedding":[0.5,-0.25],"index":0}]"#;
        let packed = r#"[{"embedding":"AAAAPwAAgL4=","index":0}]"#;
        for (form, expected) in [(VectorForm::Float, numbers), (VectorForm::Base64, packed)] {
            assert_eq!(written(form, numbers).unwrap(), expected);
            assert_eq!(written(form, packed).unwrap(), expected);
        }
        // Numbers that are passed on keep their digits.
        let long = r#"[{"embedding":[0.10000000000000000001]}]"#;
        assert_eq!(written(VectorForm::Float, long).unwrap(), long);
        for bad in [r#"[{"embedding":["x"]}]"#, r#"[{"embedding":{}}]"#, "[1]"] {
            assert!(written(VectorForm::Base64, bad).is_err(), "{bad}");
        }
        assert!(written(VectorForm::Float, r#"[{"embedding":"AAAA"}]"#).is_err());
        assert!(written(VectorForm::Float, r#"[{"embedding":"?"}]"#).is_err());
    }

    #[test]
    fn numbers_are_asked_for_where_nothing_is_said() {
        let form = |body: &str| vector_form(&serde_json::from_str(body).unwrap()).unwrap();
        assert_eq!(form("{}"), VectorForm::Float);
        assert_eq!(form(r#"{"encoding_format":null}"#), VectorForm::Float);
        assert_eq!(form(r#"{"encoding_format":"base64"}"#), VectorForm::Base64);
    }
}
