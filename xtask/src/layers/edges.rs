//! Pure: the edges between our crates against the table.

use std::collections::{BTreeMap, BTreeSet};

use crate::metadata::{DependencyKind, Package};

use super::table::{Table, short, shorten};

/// The crates that exist, each with its edges.
#[derive(Debug, Default)]
pub(crate) struct Built {
    crates: BTreeMap<String, Edges>,
}

#[derive(Debug, Default)]
struct Edges {
    /// Where they are written.
    manifest: String,
    /// Of the library or binary and of its build script.
    shipped: BTreeSet<String>,
    /// Of tests alone.
    dev: BTreeSet<String>,
}

/// How large the graph of counted crates is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) edges: usize,
    /// Crates on the longest path.
    pub(crate) depth: usize,
}

impl Built {
    /// Reads the edges from the manifests.
    pub(crate) fn of(members: &[Package]) -> Self {
        let mut crates: BTreeMap<String, Edges> = BTreeMap::new();
        for package in members {
            let edges = crates.entry(short(package).to_owned()).or_default();
            edges.manifest.clone_from(&package.manifest_path);
            for dependency in package.dependencies.iter().filter(|one| one.path.is_some()) {
                let to = shorten(&dependency.name).to_owned();
                match dependency.kind {
                    Some(DependencyKind::Dev) => edges.dev.insert(to),
                    Some(DependencyKind::Build) | None => edges.shipped.insert(to),
                };
            }
        }
        Self { crates }
    }

    /// Counts edges and depth, without the crates that the table does not count.
    pub(crate) fn size(&self, table: &Table) -> Size {
        let counted = |name: &&String| !table.uncounted.contains(name.as_str());
        let names: Vec<&String> = self.crates.keys().filter(counted).collect();
        let edges =
            names.iter().map(|name| self.crates[*name].shipped.iter().filter(counted).count());
        let depth = names.iter().map(|name| self.depth(name, names.len()));
        Size { edges: edges.sum(), depth: depth.max().unwrap_or(0) }
    }

    /// Crates on the longest path down from `name`. `fuel` ends the walk of a cycle.
    fn depth(&self, name: &str, fuel: usize) -> usize {
        let below = self.crates.get(name).into_iter().flat_map(|edges| &edges.shipped);
        let deepest = below.map(|to| if fuel == 0 { 0 } else { self.depth(to, fuel - 1) }).max();
        1 + deepest.unwrap_or(0)
    }
}

/// A sentence for each crate and edge that the table does not have.
pub(crate) fn check(table: &Table, built: &Built) -> Vec<String> {
    let mut findings = Vec::new();
    for (name, edges) in &built.crates {
        let Some(row) = table.crates.get(name) else {
            findings.push(format!(
                "xtask/layers.toml: the crate `{name}` is not in the table. Give it a layer and \
                 its edges there and in docs/ARCHITECTURE.md, with the reason."
            ));
            continue;
        };
        for to in &edges.shipped {
            if let Some(fault) = fault(table, name, to, row.may.names(to)) {
                findings.push(format!("{}: {fault}", edges.manifest));
            }
        }
        for to in edges.dev.iter().filter(|to| !table.dev_edges.contains(*to)) {
            if !row.may.names(to) && to != name {
                findings.push(format!(
                    "{}: the tests of `{name}` use `{to}`, which the table does not allow. Test it \
                     through `testkit`, or from a crate above both.",
                    edges.manifest
                ));
            }
        }
    }
    for name in table.crates.keys().filter(|name| !built.crates.contains_key(*name)) {
        findings.push(format!(
            "xtask/layers.toml: the table has a row for `{name}`, which is no crate. Remove it."
        ));
    }
    findings.extend(oversize(table, built.size(table)));
    findings
}

fn fault(table: &Table, from: &str, to: &str, listed: bool) -> Option<String> {
    if !listed {
        return Some(format!(
            "the edge from `{from}` to `{to}` is not in the table. \
             Remove it, or list it in xtask/layers.toml and docs/ARCHITECTURE.md with the reason."
        ));
    }
    let (above, below) = (table.crates.get(from)?.layer, table.crates.get(to)?.layer);
    (below >= above).then(|| {
        format!(
            "the edge from `{from}` (layer {above}) to `{to}` (layer \
             {below}) does not go down. Move what is needed into a lower crate, or change the \
             layers in xtask/layers.toml."
        )
    })
}

fn oversize(table: &Table, size: Size) -> Vec<String> {
    let mut findings = Vec::new();
    if size.edges > table.edges_max {
        findings.push(format!(
            "xtask/layers.toml: {} edges between crates, {} are allowed. Remove one.",
            size.edges, table.edges_max
        ));
    }
    if size.depth > table.depth_max {
        findings.push(format!(
            "xtask/layers.toml: the longest path has {} crates, {} are allowed. Shorten it.",
            size.depth, table.depth_max
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Dependency;

    const TABLE: &str = r#"
        edges_max = 3
        depth_max = 3
        uncounted = ["automaton", "lab"]
        dev_edges = ["lab"]
        [crates]
        core = { layer = 0, may = [] }
        net = { layer = 1, may = ["core"] }
        tools = { layer = 2, may = ["core", "net", "lab"] }
        lab = { layer = 5, may = "any below" }
        automaton = { layer = 6, may = "any below" }
    "#;

    type Edge<'a> = (&'a str, &'a str, Option<DependencyKind>);

    fn built(edges: &[Edge<'_>]) -> Built {
        let packages: Vec<Package> = ["core", "net", "tools", "lab"]
            .into_iter()
            .map(|name| package(&format!("automaton-{name}"), name, edges))
            .chain([package("automaton", "automaton", edges)])
            .collect();
        Built::of(&packages)
    }

    fn package(name: &str, short: &str, edges: &[Edge<'_>]) -> Package {
        let ours = edges.iter().filter(|(from, ..)| *from == short);
        let dependencies = ours.map(|(_, to, kind)| Dependency {
            name: format!("automaton-{to}"),
            kind: *kind,
            path: Some(format!("crates/{to}")),
        });
        Package {
            name: name.to_owned(),
            dependencies: dependencies.collect(),
            ..Package::default()
        }
    }

    fn check_edges(edges: &[Edge<'_>]) -> Vec<String> {
        check(&Table::parse(TABLE).expect("the sample table is whole"), &built(edges))
    }

    #[test]
    fn edges_of_the_table_pass() {
        let edges = [
            ("net", "core", None),
            ("tools", "net", Some(DependencyKind::Build)),
            ("core", "lab", Some(DependencyKind::Dev)),
            ("lab", "tools", None),
            ("automaton", "lab", None),
        ];
        assert_eq!(check_edges(&edges), Vec::<String>::new());
    }

    #[test]
    fn an_edge_that_is_not_listed_is_named() {
        for kind in [None, Some(DependencyKind::Build), Some(DependencyKind::Dev)] {
            let found = check_edges(&[("net", "tools", kind)]);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains("`net`") && found[0].contains("`tools`"), "{found:?}");
        }
    }

    #[test]
    fn a_listed_edge_must_still_go_down() {
        let found = check_edges(&[("tools", "lab", None)]);
        assert!(found[0].contains("does not go down"), "{found:?}");
    }

    #[test]
    fn crates_and_rows_must_match() {
        let table = Table::parse(&TABLE.replace("net = ", "web = ")).expect("a whole table");
        let found = check(&table, &built(&[])).join("\n");
        assert!(found.contains("the crate `net` is not in the table"), "{found}");
        assert!(found.contains("a row for `web`"), "{found}");
    }

    #[test]
    fn edges_and_depth_are_counted_without_the_top() {
        let table = Table::parse(TABLE).expect("the sample table is whole");
        let edges = [
            ("net", "core", None),
            ("tools", "net", None),
            ("tools", "core", None),
            ("lab", "tools", None),
        ];
        assert_eq!(built(&edges).size(&table), Size { edges: 3, depth: 3 });
        let small = TABLE
            .replace("edges_max = 3", "edges_max = 2")
            .replace("depth_max = 3", "depth_max = 2");
        let table = Table::parse(&small).expect("a whole table");
        assert_eq!(check(&table, &built(&edges)).len(), 2);
    }

    #[test]
    fn a_cycle_ends_the_walk() {
        let table = Table::parse(TABLE).expect("the sample table is whole");
        let size = built(&[("core", "net", None), ("net", "core", None)]).size(&table);
        assert_eq!(size.edges, 2);
    }
}
