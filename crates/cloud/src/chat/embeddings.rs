//! Embeddings: what of a request concerns the bill, and the answer until it is charged.
//!
//! Only the prompt costs something. The vectors are passed on as they came, but for the model's
//! name and the count of tokens. Must never show an answer before its charge.

use automaton_core::wire::chat::ChatUsage;
use automaton_inference::providers::local::chat::ResponseMeta;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Recording;
use super::answer::Answer;
use super::answer_stream::{AnswerFields, raw};
use super::held_back::HeldBack;
use super::request::{RequestFields, SoldFields, parts};
use crate::billing::price::{BilledTokens, Charge, Metering, TokenBounds};
use crate::error::ApiError;

const FIELDS: SoldFields =
    SoldFields { sold: &["dimensions", "encoding_format", "input", "model", "user"], free_as: &[] };

/// Texts that one request may have, as at OpenAI.
const INPUTS_MAX: usize = 2_048;

/// The count of tokens of embeddings, as OpenAI has it.
#[derive(Serialize, Deserialize)]
struct EmbeddingUsage {
    prompt_tokens: u32,
    total_tokens: u32,
}

/// Refuses what is not sold; gives how many texts there are.
///
/// # Errors
/// What the client is told.
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

/// An answer as it comes, all at once.
pub(super) struct EmbeddingsAnswer<'a> {
    shown: HeldBack<'a>,
    bounds: TokenBounds,
    meta: ResponseMeta,
    usage: Option<ChatUsage>,
    fields: Option<AnswerFields>,
}

impl<'a> EmbeddingsAnswer<'a> {
    pub(super) const fn new(
        recording: &'a Recording,
        bounds: TokenBounds,
        meta: ResponseMeta,
    ) -> Self {
        Self { shown: HeldBack::new(recording), bounds, meta, usage: None, fields: None }
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
        let has_data = fields.get("data").is_some_and(|data| data.get().starts_with('['));
        if !has_data {
            return Err("it holds no embeddings".to_owned());
        }
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
        let checked = |body: &str| check(&serde_json::from_str(body).unwrap());
        assert_eq!(checked(r#"{"model":"a","input":"x"}"#).unwrap(), 1);
        assert_eq!(checked(r#"{"input":["x","y"],"encoding_format":"base64"}"#).unwrap(), 2);
        assert_eq!(checked(r#"{"input":[[1,2],[3]]}"#).unwrap(), 2);
        for bad in [
            r#"{"model":"a"}"#,
            r#"{"input":[]}"#,
            r#"{"input":7}"#,
            r#"{"input":"x","stream":true}"#,
            &format!(r#"{{"input":[{}1]}}"#, "1,".repeat(INPUTS_MAX)),
        ] {
            assert!(checked(bad).is_err(), "{bad:.60}");
        }
    }
}
