//! Pure: the table of crates, layers, allowed edges and allowed packages.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::metadata::Package;

/// `xtask/layers.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    pub(crate) edges_max: usize,
    pub(crate) depth_max: usize,
    /// Crates whose edges do not count against the two maxima.
    pub(crate) uncounted: BTreeSet<String>,
    /// Crates that the tests of every crate may use.
    pub(crate) dev_edges: BTreeSet<String>,
    pub(crate) crates: BTreeMap<String, Row>,
    #[serde(default)]
    pub(crate) packages: Vec<PackageRule>,
    #[serde(default)]
    pub(crate) absent: Vec<AbsentRule>,
    #[serde(default)]
    pub(crate) within: Vec<WithinRule>,
}

/// One crate: its layer and what it may depend on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    pub(crate) layer: u32,
    pub(crate) may: May,
}

/// The edges that a crate may have.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum May {
    Listed(BTreeSet<String>),
    Word(AnyBelow),
}

/// The one word that stands for every crate of a lower layer.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) enum AnyBelow {
    #[serde(rename = "any below")]
    AnyBelow,
}

/// Who may name some packages of others, or who may not.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PackageRule {
    pub(crate) names: BTreeSet<String>,
    pub(crate) only: Option<BTreeSet<String>>,
    pub(crate) never: Option<BTreeSet<String>>,
    pub(crate) reason: String,
}

/// A feature that no product build has.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AbsentRule {
    pub(crate) package: String,
    pub(crate) feature: String,
    pub(crate) reason: String,
}

/// A module of a crate that some of its other modules may not name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WithinRule {
    #[serde(rename = "crate")]
    pub(crate) krate: String,
    pub(crate) from: BTreeSet<String>,
    pub(crate) never: String,
    pub(crate) reason: String,
}

impl Table {
    /// Reads the table and refuses rows that contradict each other.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).context("xtask/layers.toml cannot be read")
    }
}

impl May {
    /// Whether an edge to this crate is listed.
    pub(crate) fn names(&self, to: &str) -> bool {
        match self {
            Self::Listed(list) => list.contains(to),
            Self::Word(AnyBelow::AnyBelow) => true,
        }
    }
}

/// The name that the table uses for a package of ours: without the prefix.
pub(crate) fn short(package: &Package) -> &str {
    shorten(&package.name)
}

/// `automaton-core` is `core`; `automaton` and `xtask` are themselves.
pub(crate) fn shorten(name: &str) -> &str {
    name.strip_prefix("automaton-").unwrap_or(name)
}
