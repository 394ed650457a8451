//! Pure: what is known of models: window, longest answer, strength, prices, dialect.
//!
//! The rows are in `catalogue.json`, each with the month of its figures, prices in microcents
//! per million tokens; where a provider asks more for long prompts, it is that price. A model
//! that no row names gets the last one, which is small and dear, since an unknown price must
//! never count as none: whoever could set it to zero would switch the budgets off.

use automaton_core::model::ModelId;
use automaton_core::wire::cloud::ModelRow;
use serde::{Deserialize, Serialize};

use crate::cost::ModelPrices;
use crate::error::InferenceError;

/// The rows, best match first; the last matches everything.
const ROWS: &str = include_str!("catalogue.json");

/// A model, as far as those who use it have to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// Its id, as the provider wants it.
    pub id: ModelId,
    /// Its window, in tokens.
    pub context_tokens: u32,
    /// The longest answer that it gives, in tokens, where that is known.
    pub max_output_tokens: Option<u32>,
    /// True if it needs more guidance than others.
    pub weak: bool,
    /// True if it runs on the processors of this machine, which read some tens of tokens a
    /// second. Its prompts are short, and it is offered few tools at once.
    pub compact: bool,
    /// Its prices.
    pub prices: ModelPrices,
    /// Which fields a request to it has.
    pub dialect: RequestDialect,
    /// Note for a person.
    pub note: Option<String>,
}

/// Which fields a request has; the wrong ones are refused by some servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestDialect {
    /// `max_tokens`, `temperature` and `seed`.
    Classic,
    /// As [`RequestDialect::Classic`]; and all tools stay in the list, with those that
    /// may be called named beside it. For a weak model behind a server of ours,
    /// which keeps what it has read of a prompt that stays the same.
    Guided,
    /// `max_tokens` alone, for servers that refuse a seed, or a temperature.
    Plain,
    /// `max_completion_tokens` and no temperature.
    Reasoning,
}

/// Location of a model's server, which decides whose claims are believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelHosting {
    /// On this machine. It is believed everything.
    Here,
    /// On a machine of the creator's: unencrypted, at an address that is spelled out.
    Own,
    /// With somebody who sells it.
    Hosted,
}

/// Claims about a model; an absent claim is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ModelClaims {
    /// Its window, in tokens.
    pub context_tokens: Option<u32>,
    /// The longest answer that it gives, in tokens.
    pub max_output_tokens: Option<u32>,
    /// Prices.
    pub prices: Option<ModelPrices>,
    /// Which fields a request to it has; only its creator says that.
    pub dialect: Option<RequestDialect>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CatalogueRow {
    /// Ids in lower case; a `*` at the end matches any ending.
    models: Vec<String>,
    /// The month of its figures.
    #[cfg_attr(not(test), expect(dead_code, reason = "for whoever reads the file, and checked"))]
    at: String,
    /// The seller's table that its price of what is cached is from, or that has none.
    #[cfg_attr(not(test), expect(dead_code, reason = "for whoever reads the file, and checked"))]
    #[serde(default)]
    source: Option<String>,
    context_tokens: u32,
    max_output_tokens: Option<u32>,
    dialect: RequestDialect,
    #[serde(default)]
    weak: bool,
    /// True if anybody may run the model. On this machine it then costs nothing, and only its
    /// server knows its window.
    #[serde(default)]
    open: bool,
    prices: ModelPrices,
    note: Option<String>,
}

impl CatalogueRow {
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

/// Returns the known properties of a model that somebody sells.
///
/// # Errors
/// [`InferenceError::Catalogue`] when the built-in rows are damaged.
pub fn model(id: &str) -> Result<ModelInfo, InferenceError> {
    merge_claims(id, ModelHosting::Hosted, &ModelClaims::default(), &ModelClaims::default())
}

/// Returns the known properties of a model on this machine: as [`model`], but a model without a
/// row, or with open weights, costs nothing and has a small window.
///
/// # Errors
/// As [`model`].
pub fn own_model(id: &str) -> Result<ModelInfo, InferenceError> {
    merge_claims(id, ModelHosting::Here, &ModelClaims::default(), &ModelClaims::default())
}

/// Merges the claims about a model: first the creator's configuration, then its server's, then
/// the catalogue's. A server on another machine must never set a price below the catalogue's, or
/// a window above the catalogue's.
///
/// # Errors
/// As [`model`].
pub fn merge_claims(
    id: &str,
    place: ModelHosting,
    configured: &ModelClaims,
    served: &ModelClaims,
) -> Result<ModelInfo, InferenceError> {
    let row = find(id)?;
    let named = !row.is_default();
    let anybodys = row.open || !named;
    let at_home = anybodys && place != ModelHosting::Hosted;
    let window = if at_home { row.context_tokens.min(SMALL_TOKENS) } else { row.context_tokens };
    let free = anybodys && place == ModelHosting::Here;
    let usual = (window, if free { ModelPrices::default() } else { row.prices });
    let window = match (served.context_tokens, place) {
        (Some(window), ModelHosting::Own | ModelHosting::Hosted) if named => {
            Some(window.min(row.context_tokens))
        }
        (window, _) => window,
    };
    let prices = match (served.prices, place) {
        (Some(prices), ModelHosting::Own | ModelHosting::Hosted) => {
            Some(prices.or_dearer(&usual.1))
        }
        (prices, _) => prices,
    };
    let said = configured.context_tokens.or(window);
    let longest =
        configured.max_output_tokens.or(served.max_output_tokens).or(row.max_output_tokens);
    let context_tokens = said.unwrap_or(usual.0);
    let priced = configured.prices.is_some();
    let prices = configured.prices.or(prices).unwrap_or(usual.1);
    Ok(ModelInfo {
        id: id.into(),
        context_tokens,
        max_output_tokens: longest.map(|tokens| tokens.min(context_tokens)),
        weak: row.weak,
        compact: false,
        prices,
        dialect: configured.dialect.unwrap_or(row.dialect),
        note: row.note.or_else(|| {
            let smaller = at_home && usual.0 < row.context_tokens;
            let guessed = said.is_none() && (smaller || !named);
            let counted = match (priced || prices != usual.1, named) {
                (false, false) if !free => Some(Counted::Unknown),
                (false, true) if at_home && !free => Some(Counted::Sold),
                _ => None,
            };
            unknown(id, guessed.then_some(context_tokens), counted)
        }),
    })
}

/// The window of a model of which nobody says one, in tokens.
const SMALL_TOKENS: u32 = 8192;

/// At which prices a model counts of which nobody says any.
enum Counted {
    /// At those of a dear one.
    Unknown,
    /// At the catalogue's, though a machine of the creator's may serve it for nothing.
    Sold,
}

/// Returns a note on properties that nobody stated, and where to state them.
fn unknown(id: &str, guessed: Option<u32>, counted: Option<Counted>) -> Option<String> {
    let window = guessed.map(|tokens| {
        format!(
            "neither its server nor the catalogue tells the window of {id}, so {tokens} tokens \
             are used: `brain.contextTokens` or --context-tokens says how many it has"
        )
    });
    let prices = counted.map(|counted| {
        let counts = match counted {
            Counted::Unknown => {
                format!("the catalogue has no prices of {id}, so it counts as a dear model")
            }
            Counted::Sold => format!(
                "the server of {id} is not on this machine, so it costs what others sell it for"
            ),
        };
        format!(
            "{counts}: `brain.prices` or --prices says what it costs, as `--prices 0,0` where \
             that is nothing"
        )
    });
    let notes: Vec<String> = window.into_iter().chain(prices).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// Returns the properties of a model that one of our clouds offers. The cloud bills, so its
/// claims are believed.
#[must_use]
pub fn served(row: &ModelRow) -> ModelInfo {
    let pricing = &row.pricing;
    let weak = row.weak;
    let dialect = match row.parameter_style.as_str() {
        "max_completion_tokens" => RequestDialect::Reasoning,
        _ if weak => RequestDialect::Guided,
        // Behind the cloud is the server whose dialect the catalogue knows.
        _ => match find(row.id.as_str()) {
            Ok(CatalogueRow { dialect: RequestDialect::Plain, .. }) => RequestDialect::Plain,
            _ => RequestDialect::Classic,
        },
    };
    ModelInfo {
        id: row.id.clone(),
        context_tokens: row.context_window,
        max_output_tokens: (row.max_tokens > 0).then_some(row.max_tokens),
        weak,
        compact: false,
        prices: ModelPrices {
            input_per_million: pricing.input_microcents_per_million,
            cached_per_million: pricing.cached_microcents_per_million,
            cache_write_per_million: pricing.cache_write_microcents_per_million,
            output_per_million: pricing.output_microcents_per_million,
        },
        dialect,
        note: row.note.clone(),
    }
}

/// The row of a model; the last row where none names it.
fn find(id: &str) -> Result<CatalogueRow, InferenceError> {
    let rows: Vec<CatalogueRow> =
        serde_json::from_str(ROWS).map_err(|source| InferenceError::Catalogue { source })?;
    // A model file's own name has spaces where an id has hyphens; a provider
    // may put its vendor before the id.
    let name = id.to_lowercase().replace([' ', '_'], "-");
    let name = name.rsplit('/').next().unwrap_or(&name);
    let name = name.rsplit_once("anthropic.").map_or(name, |(_, name)| name);
    let row = rows.into_iter().find(|row| row.names(name));
    row.ok_or_else(|| InferenceError::Catalogue {
        source: serde::de::Error::custom("no row matches every model"),
    })
}

#[cfg(test)]
#[path = "catalogue_tests.rs"]
mod tests;
