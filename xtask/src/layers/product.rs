//! Pure: what must be in no product build is in none.

use std::collections::{BTreeMap, BTreeSet};

use crate::metadata::Metadata;

use super::table::Table;

/// How `cargo tree` is to write each package: name and version, a bar, features.
pub(crate) const FORMAT: &str = "{p}|{f}";

/// The packages that a tree links, each with its features.
#[derive(Debug)]
pub(crate) struct Linked<'a>(BTreeMap<&'a str, BTreeSet<&'a str>>);

impl<'a> Linked<'a> {
    /// Reads a tree whose lines are [`FORMAT`].
    pub(crate) fn of(tree: &'a str) -> Self {
        let mut linked: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (package, features) in tree.lines().filter_map(|line| line.split_once('|')) {
            let name = package.split(' ').next().unwrap_or(package);
            let features = features.trim_end_matches("(*)").trim().split(',');
            linked.entry(name).or_default().extend(features.filter(|name| !name.is_empty()));
        }
        Self(linked)
    }

    /// How many packages.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// A sentence for each feature that the product has and must not, and for each rule that
/// holds nothing.
pub(crate) fn check(table: &Table, linked: &Linked<'_>, graph: &Metadata) -> Vec<String> {
    let mut findings = Vec::new();
    for rule in &table.absent {
        let (package, feature) = (rule.package.as_str(), rule.feature.as_str());
        let is_there = |one: &&crate::metadata::Package| one.name == package;
        let has =
            graph.packages.iter().filter(is_there).any(|one| one.features.contains_key(feature));
        match linked.0.get(package) {
            Some(features) if has && !features.contains(feature) => {}
            Some(_) if has => findings.push(format!(
                "the product is built with the feature `{feature}` of `{package}`: {}. Find who \
                 asks for it: cargo tree --package automaton --edges normal,features --invert \
                 {package}",
                rule.reason
            )),
            _ => findings.push(format!(
                "xtask/layers.toml: the product links no `{package}` that has a feature \
                 `{feature}`. Mend the rule, which holds nothing."
            )),
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TABLE: &str = r#"
        edges_max = 9
        depth_max = 9
        uncounted = []
        dev_edges = []
        [crates]
        [[absent]]
        package = "tokio"
        feature = "test-util"
        reason = "a clock for tests"
    "#;

    fn check_tree(tree: &str) -> Vec<String> {
        let tokio = json!({"id": "1", "name": "tokio", "license": null, "source": "registry",
            "features": {"net": [], "test-util": ["net"]}});
        let graph = serde_json::from_value(json!({"packages": [tokio], "resolve": null}))
            .expect("the shape of cargo metadata");
        let table = Table::parse(TABLE).expect("the sample table is whole");
        check(&table, &Linked::of(tree), &graph)
    }

    #[test]
    fn a_feature_that_must_be_absent_is_named() {
        assert_eq!(check_tree("automaton v1 (/x)|\ntokio v1.2.3|net,rt (*)"), Vec::<String>::new());
        let found = check_tree("tokio v1.2.3|net,test-util (*)");
        assert!(found[0].contains("`test-util` of `tokio`: a clock for tests"), "{found:?}");
        let found = check_tree("tokyo v1.2.3|net");
        assert!(found[0].contains("holds nothing"), "{found:?}");
    }
}
