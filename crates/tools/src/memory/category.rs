//! Pure: what facts can be about.
//!
//! The list is closed, so that a model cannot scatter what it knows over names
//! that it will not find again.

use schemars::JsonSchema;
use serde::Deserialize;

// What a fact is about. A doc comment here would be in the schema, and so in
// every prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FactCategory {
    #[serde(rename = "self")]
    Own,
    Environment,
    Financial,
    Agent,
    Domain,
    ProceduralRef,
    Creator,
}

automaton_core::names! {
    /// The category's name in the database and for the model.
    FactCategory {
        Own => "self", Environment => "environment", Financial => "financial", Agent => "agent",
        Domain => "domain", ProceduralRef => "procedural_ref", Creator => "creator",
    }
}
