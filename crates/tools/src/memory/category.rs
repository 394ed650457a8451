//! Pure: what facts can be about.
//!
//! The list is closed, so that a model cannot scatter what it knows over names
//! that it will not find again.

use automaton_core::names::Names;
use schemars::JsonSchema;
use serde::Deserialize;

// What a fact is about. A doc comment here would be in the schema, and so in
// every prompt.
// Its `name` is the one in the database and for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema, Names)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FactCategory {
    #[serde(rename = "self")]
    #[names(rename = "self")]
    Own,
    Environment,
    Financial,
    Agent,
    Domain,
    ProceduralRef,
    Creator,
}
