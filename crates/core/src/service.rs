//! Pure: the processes that an automaton lives from, by name.

use serde::{Deserialize, Serialize};

/// A process that an automaton lives from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Service {
    /// The dev chain.
    Chain,
    /// The cloud.
    Cloud,
    /// The signer.
    Signer,
}

crate::names! {
    /// What it is called in a sentence.
    Service {
        Chain => "dev chain", Cloud => "cloud", Signer => "signer",
    }
}
