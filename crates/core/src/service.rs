//! Pure: the processes that an automaton lives from, by name.

use serde::{Deserialize, Serialize};

use crate::names::Names;

/// A process that an automaton lives from.
/// Its [`name`](Self::name) is what it is called in a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Names)]
#[serde(rename_all = "snake_case")]
pub enum Service {
    /// The dev chain.
    #[names(rename = "dev chain")]
    Chain,
    /// The cloud.
    Cloud,
    /// The signer.
    Signer,
}
