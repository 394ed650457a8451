//! Holds the crates to the table in `xtask/layers.toml`.
//!
//! Edges between our crates go strictly down and only as listed; packages of
//! others are named only by the crates that may; what is for rehearsals is in no
//! product build. It must never learn an
//! exception in code: the table is the one place to change.

mod drawn;
mod edges;
mod packages;
mod product;
mod table;
mod within;

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::{Outcome, metadata, tree};

use table::Table;

const DRAWN_IN: &str = "docs/ARCHITECTURE.md";
/// What the product is linked from when it is built as `./up` builds it, for this machine.
const PRODUCT: [&str; 9] = [
    "tree",
    "--package",
    "automaton",
    "--edges",
    "normal",
    "--prefix",
    "none",
    "--format",
    product::FORMAT,
];

/// Compares the manifests, and the table in the documentation, with the layers.
pub(crate) fn run(root: &Path) -> Result<Outcome> {
    let path = root.join("xtask/layers.toml");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path:?}"))?;
    let table = Table::parse(&text)?;
    let members = metadata::members(root)?;
    let graph = metadata::graph(root)?;
    let drawing = fs::read_to_string(root.join(DRAWN_IN))
        .with_context(|| format!("cannot read {DRAWN_IN}"))?;

    let built = edges::Built::of(&members);
    let mut findings = edges::check(&table, &built);
    findings.extend(packages::check(&table, &members));
    findings.extend(packages::check_graph(&table, &graph));
    findings.extend(drawn::check(&table, &drawing));
    let linked = tree::cargo(root, &PRODUCT)?;
    let linked = product::Linked::of(&linked);
    findings.extend(product::check(&table, &linked, &graph));
    for file in tree::text_files(root)? {
        findings.extend(within::check(&table, &file));
    }
    let size = built.size(&table);
    let report = format!(
        "layers: {} crates, {} internal edges of {}, depth {} of {}; {} packages in the product\n",
        members.len(),
        size.edges,
        table.edges_max,
        size.depth,
        table.depth_max,
        linked.len()
    );
    Ok(Outcome { findings, report })
}
