//! Pure: what is known of models: window, strength, prices, dialect.
//!
//! The rows are in `catalogue.json`, prices in microcents per million tokens.
//! A model that no row names gets the last one, which is small and dear, since
//! an unknown price must never count as none.

use automaton_core::wire::cloud::ModelRow;
use serde::Deserialize;

use crate::cost::Prices;
use crate::error::InferenceError;

/// The rows, best match first; the last matches everything.
const ROWS: &str = include_str!("catalogue.json");

/// A model, as far as those who use it have to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// Its id, as the provider wants it.
    pub id: String,
    /// Its window, in tokens.
    pub context_tokens: u32,
    /// Whether it needs leading by the hand.
    pub weak: bool,
    /// Its prices.
    pub prices: Prices,
    /// Which fields a request to it has.
    pub dialect: Dialect,
    /// What a person should know about it.
    pub note: Option<String>,
}

/// Which fields a request has; the wrong ones are refused by some servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// `max_tokens`, `temperature` and `seed`.
    Classic,
    /// As [`Dialect::Classic`]; and all tools stay in the list, with those that
    /// may be called named beside it. For a weak model behind a server of ours,
    /// which keeps what it has read of a prompt that stays the same.
    Guided,
    /// `max_completion_tokens` and no temperature.
    Reasoning,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// Ids in lower case; a `*` at the end matches any ending.
    models: Vec<String>,
    context_tokens: u32,
    dialect: Dialect,
    #[serde(default)]
    weak: bool,
    prices: Prices,
    #[serde(default)]
    note: Option<String>,
}

impl Row {
    fn names(&self, id: &str) -> bool {
        self.models.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(beginning) => id.starts_with(beginning),
            None => id == pattern,
        })
    }

    fn is_default(&self) -> bool {
        self.names("*")
    }
}

/// What is known of a model that somebody serves for money.
///
/// # Errors
/// [`InferenceError::Catalogue`] when the built-in rows are damaged.
pub fn model(id: &str) -> Result<ModelInfo, InferenceError> {
    find(id).map(|(info, _)| info)
}

/// What is known of a model that the creator's own machine serves: as
/// [`model`], but one that no row names costs nothing.
///
/// # Errors
/// As [`model`].
pub fn own_model(id: &str) -> Result<ModelInfo, InferenceError> {
    let (mut info, known) = find(id)?;
    if known == Known::Not {
        info.prices = Prices::default();
        info.note = Some("not in the catalogue: counted with a small window and as free".into());
    }
    Ok(info)
}

/// What a server of ours says of a model that it offers.
#[must_use]
pub fn served(row: &ModelRow) -> ModelInfo {
    let (pricing, weak) = (&row.pricing, row.weak);
    let dialect = match row.parameter_style.as_str() {
        "max_completion_tokens" => Dialect::Reasoning,
        _ if weak => Dialect::Guided,
        _ => Dialect::Classic,
    };
    ModelInfo {
        id: row.id.clone(),
        context_tokens: row.context_window,
        weak,
        prices: Prices {
            input_per_million: pricing.input_microcents_per_million,
            cached_per_million: pricing.cached_microcents_per_million,
            output_per_million: pricing.output_microcents_per_million,
        },
        dialect,
        note: row.note.clone(),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    ByName,
    Not,
}

fn find(id: &str) -> Result<(ModelInfo, Known), InferenceError> {
    let rows: Vec<Row> =
        serde_json::from_str(ROWS).map_err(|source| InferenceError::Catalogue { source })?;
    // A model file's own name has spaces where an id has hyphens; a provider
    // may put its vendor before the id.
    let name = id.to_lowercase().replace([' ', '_'], "-");
    let name = name.rsplit('/').next().unwrap_or(&name);
    let row = rows.into_iter().find(|row| row.names(name));
    let row = row.ok_or_else(|| InferenceError::Catalogue {
        source: serde::de::Error::custom("no row matches every model"),
    })?;
    let known = if row.is_default() { Known::Not } else { Known::ByName };
    let info = ModelInfo {
        id: id.to_owned(),
        context_tokens: row.context_tokens,
        weak: row.weak,
        prices: row.prices,
        dialect: row.dialect,
        note: row.note,
    };
    Ok((info, known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use automaton_core::money::Microcents;

    #[test]
    fn finds_a_row_by_any_spelling() {
        for id in ["gpt-5.2", "GPT-5.2", "openai/gpt-5.2", "gpt-5.2-2025-12-11"] {
            let info = model(id).unwrap();
            assert_eq!((info.dialect, info.note), (Dialect::Reasoning, None), "{id}");
            assert_eq!(info.id, id);
        }
        for id in ["SmolLM2-135M-Instruct", "SmolLM2 135M Instruct", "smollm2-135m"] {
            let info = own_model(id).unwrap();
            assert!(info.weak && info.note.is_some(), "{id}");
            assert_eq!(info.prices, Prices::default());
        }
        assert!(!model("gpt-5.2").unwrap().weak);
    }

    #[test]
    fn an_unknown_model_is_small_dear_and_says_so() {
        for id in ["llama3.3:70b", "gpt-5.20", "*", ""] {
            let info = model(id).unwrap();
            assert_eq!(info.context_tokens, 8192, "{id}");
            assert!(info.prices.output_per_million > Microcents::new(1_400_000_000), "{id}");
            assert!(info.note.is_some_and(|note| note.contains("catalogue")), "{id}");
        }
        assert_eq!(own_model("llama3.3:70b").unwrap().prices, Prices::default());
        assert_ne!(own_model("gpt-5.2").unwrap().prices, Prices::default());
    }
}
