//! Holds the packages of others to `xtask/deps.toml`: licence, source, duplicates.
//!
//! Must never look anything up beyond what cargo already has.

mod license;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::metadata::Package;
use crate::{Outcome, metadata};

/// `xtask/deps.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    sources: BTreeSet<String>,
    licenses: BTreeSet<String>,
    single: BTreeSet<String>,
}

/// Checks every package of the lock file.
pub(crate) fn run(root: &Path) -> Result<Outcome> {
    let text =
        fs::read_to_string(root.join("xtask/deps.toml")).context("cannot read xtask/deps.toml")?;
    let rules: Rules = toml::from_str(&text).context("xtask/deps.toml cannot be read")?;
    let graph = metadata::graph(root)?;
    let report = format!("deps: {} packages\n", graph.packages.len());
    Ok(Outcome { findings: check(&rules, &graph.packages), report })
}

fn check(rules: &Rules, packages: &[Package]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        let Some(source) = &package.source else { continue };
        let Package { name, version, .. } = package;
        versions.entry(name).or_default().insert(version);
        if !rules.sources.contains(source) {
            findings.push(format!(
                "Cargo.lock: {name} {version} comes from {source}. Take it from crates.io."
            ));
        }
        let license = package.license.as_deref().unwrap_or("none");
        if !license::allows(license, &rules.licenses) {
            findings.push(format!(
                "Cargo.lock: {name} {version} is under the licence `{license}`. Do without it, \
                 or allow the licence in xtask/deps.toml."
            ));
        }
    }
    for (name, versions) in versions {
        if versions.len() > 1 && rules.single.contains(name) {
            findings.push(format!(
                "Cargo.lock: {name} is there in versions {}. Bring who asks for them to one.",
                versions.into_iter().collect::<Vec<_>>().join(" and ")
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = r#"
        sources = ["crates.io"]
        licenses = ["MIT"]
        single = ["tokio"]
    "#;

    fn package(name: &str, version: &str, license: Option<&str>, source: Option<&str>) -> Package {
        Package {
            name: name.to_owned(),
            version: version.to_owned(),
            license: license.map(str::to_owned),
            source: source.map(str::to_owned),
            ..Package::default()
        }
    }

    fn check_packages(packages: &[Package]) -> Vec<String> {
        check(&toml::from_str(RULES).expect("the sample rules are whole"), packages)
    }

    #[test]
    fn packages_within_the_rules_pass() {
        let found = check_packages(&[
            package("automaton-core", "1.0.0", None, None),
            package("tokio", "1.0.0", Some("MIT OR Apache-2.0"), Some("crates.io")),
            package("syn", "1.0.0", Some("MIT"), Some("crates.io")),
            package("syn", "2.0.0", Some("MIT"), Some("crates.io")),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn each_breach_is_named() {
        let found = check_packages(&[
            package("a", "1.0.0", Some("GPL-3.0"), Some("crates.io")),
            package("b", "1.0.0", None, Some("crates.io")),
            package("c", "1.0.0", Some("MIT"), Some("git+elsewhere")),
            package("tokio", "1.0.0", Some("MIT"), Some("crates.io")),
            package("tokio", "2.0.0", Some("MIT"), Some("crates.io")),
        ]);
        let sentences = ["`GPL-3.0`", "`none`", "git+elsewhere", "1.0.0 and 2.0.0"];
        assert_eq!(found.len(), sentences.len(), "{found:?}");
        for (found, sentence) in found.iter().zip(sentences) {
            assert!(found.contains(sentence), "{found:?} lacks {sentence:?}");
        }
    }
}
