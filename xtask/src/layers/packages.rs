//! Pure: which of our crates may use which packages of others.

use std::collections::{BTreeMap, BTreeSet};

use crate::metadata::{DependencyKind, Metadata, Package};

use super::table::{PackageRule, Table, short, shorten};

/// A sentence for each package that a manifest names and may not. Tests are free.
pub(crate) fn check(table: &Table, members: &[Package]) -> Vec<String> {
    let mut findings = Vec::new();
    for rule in &table.packages {
        for package in members {
            let name = short(package);
            if allowed(rule, name) {
                continue;
            }
            let shipped =
                package.dependencies.iter().filter(|one| one.kind != Some(DependencyKind::Dev));
            for dependency in shipped.filter(|one| rule.names.contains(&one.name)) {
                findings.push(format!(
                    "{}: `{name}` may not depend on `{}`: {}. Go through the crate that may, or \
                     change xtask/layers.toml with the reason.",
                    package.manifest_path, dependency.name, rule.reason
                ));
            }
        }
    }
    findings
}

fn allowed(rule: &PackageRule, name: &str) -> bool {
    let listed = rule.only.as_ref().is_none_or(|only| only.contains(name));
    let banned = rule.never.as_ref().is_some_and(|never| never.contains(name));
    listed && !banned
}

/// A sentence for each package that a crate reaches through others and must never.
pub(crate) fn check_graph(table: &Table, graph: &Metadata) -> Vec<String> {
    let names: BTreeMap<&str, &str> =
        graph.packages.iter().map(|one| (one.id.as_str(), one.name.as_str())).collect();
    let mut findings = Vec::new();
    for package in graph.packages.iter().filter(|one| one.source.is_none()) {
        let name = short(package);
        let rules = table
            .packages
            .iter()
            .filter(|rule| rule.never.as_ref().is_some_and(|never| never.contains(name)));
        let mut rules = rules.peekable();
        if rules.peek().is_none() {
            continue;
        }
        let reached = reached(graph, &names, &package.id);
        for rule in rules {
            for (to, through) in reached.iter().filter(|(to, _)| rule.names.contains(**to)) {
                findings.push(format!(
                    "{}: `{name}` reaches `{to}` through `{through}`: {}. Drop the package or its \
                     feature, or change xtask/layers.toml with the reason.",
                    package.manifest_path, rule.reason
                ));
            }
        }
    }
    findings
}

/// Every package below one, each with the package that names it.
fn reached<'a>(
    graph: &'a Metadata,
    names: &BTreeMap<&'a str, &'a str>,
    from: &'a str,
) -> BTreeMap<&'a str, &'a str> {
    let nodes = graph.resolve.iter().flat_map(|resolve| &resolve.nodes);
    let nodes: BTreeMap<&str, _> = nodes.map(|node| (node.id.as_str(), node)).collect();
    let (mut seen, mut waiting) = (BTreeSet::from([from]), vec![from]);
    let mut found = BTreeMap::new();
    while let Some(id) = waiting.pop() {
        let edges = nodes.get(id).into_iter().flat_map(|node| &node.deps);
        for edge in edges {
            let shipped = edge.dep_kinds.iter().any(|one| one.kind != Some(DependencyKind::Dev));
            if shipped && seen.insert(&edge.pkg) {
                waiting.push(&edge.pkg);
                let name = names.get(edge.pkg.as_str()).copied().unwrap_or(&edge.pkg);
                found.insert(name, names.get(id).map_or(id, |name| shorten(name)));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TABLE: &str = r#"
        edges_max = 9
        depth_max = 9
        uncounted = []
        dev_edges = []
        [crates]
        [[packages]]
        names = ["reqwest"]
        only = ["net"]
        reason = "egress"
        [[packages]]
        names = ["tokio"]
        never = ["core"]
        reason = "synchronous"
    "#;

    fn table() -> Table {
        Table::parse(TABLE).expect("the sample table is whole")
    }

    fn member(name: &str, dependency: &str, kind: Option<&str>) -> Package {
        let json = json!({
            "id": name, "name": name, "license": null, "source": null,
            "dependencies": [{"name": dependency, "kind": kind, "path": null}],
        });
        serde_json::from_value(json).expect("a package of cargo metadata")
    }

    #[test]
    fn packages_go_where_the_table_says() {
        let clean = [
            member("automaton-net", "reqwest", None),
            member("automaton-net", "tokio", None),
            member("automaton-tools", "reqwest", Some("dev")),
            member("automaton-core", "tokio", Some("dev")),
        ];
        assert_eq!(check(&table(), &clean), Vec::<String>::new());
    }

    #[test]
    fn a_package_outside_its_crates_is_named() {
        let dirty = [
            member("automaton-tools", "reqwest", None),
            member("automaton-tools", "reqwest", Some("build")),
            member("automaton-core", "tokio", None),
        ];
        let found = check(&table(), &dirty);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("`tools` may not depend on `reqwest`: egress"), "{found:?}");
    }

    fn graph(kind: Option<&str>) -> Metadata {
        let edge =
            |to: &str, kind: Option<&str>| json!([{"pkg": to, "dep_kinds": [{"kind": kind}]}]);
        let package = |id: &str, name: &str, source: Option<&str>| json!({"id": id, "name": name, "license": null, "source": source});
        let json = json!({
            "packages": [
                package("1", "automaton-core", None),
                package("2", "middle", Some("registry")),
                package("3", "tokio", Some("registry")),
            ],
            "resolve": {"nodes": [
                {"id": "1", "deps": edge("2", kind)},
                {"id": "2", "deps": edge("3", None)},
                {"id": "3", "deps": []},
            ]},
        });
        serde_json::from_value(json).expect("the shape of cargo metadata")
    }

    #[test]
    fn never_means_through_others_too() {
        let found = check_graph(&table(), &graph(None));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("`core` reaches `tokio` through `middle`"), "{found:?}");
    }

    #[test]
    fn what_only_tests_reach_is_free() {
        assert_eq!(check_graph(&table(), &graph(Some("dev"))), Vec::<String>::new());
    }
}
