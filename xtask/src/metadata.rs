//! What `cargo metadata` says of the workspace, reduced to what the checks need.
//!
//! Must never be read for anything that a lock file does not fix.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::tree;

/// The workspace's packages, or with `resolve` all packages of the build.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) resolve: Option<Resolve>,
}

/// One package: its manifest as cargo understood it.
#[derive(Debug, Default, Clone, Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    /// Where it came from; nothing for a package of this repository.
    pub(crate) source: Option<String>,
    #[serde(default)]
    pub(crate) dependencies: Vec<Dependency>,
    #[serde(default)]
    pub(crate) features: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    pub(crate) targets: Vec<Target>,
    /// From the root of the repository for a package of it.
    #[serde(default)]
    pub(crate) manifest_path: String,
}

/// A dependency as the manifest states it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: Option<DependencyKind>,
    /// Set for a dependency inside the repository.
    pub(crate) path: Option<String>,
}

/// The kinds of dependency other than the normal one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DependencyKind {
    Dev,
    Build,
}

/// A library, binary, test, bench, example or build script.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Target {
    pub(crate) kind: Vec<String>,
    pub(crate) src_path: String,
}

/// The graph that the lock file fixes.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Resolve {
    pub(crate) nodes: Vec<Node>,
}

/// A package in the graph, with the packages that it uses.
#[derive(Debug, Deserialize)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) deps: Vec<NodeEdge>,
}

/// An edge of the graph.
#[derive(Debug, Deserialize)]
pub(crate) struct NodeEdge {
    pub(crate) pkg: String,
    pub(crate) dep_kinds: Vec<NodeEdgeKind>,
}

/// In which role an edge of the graph is there.
#[derive(Debug, Deserialize)]
pub(crate) struct NodeEdgeKind {
    pub(crate) kind: Option<DependencyKind>,
}

/// The members of the main workspace and of each helper's own, without their dependencies.
pub(crate) fn members(root: &Path) -> Result<Vec<Package>> {
    let mut packages = metadata(root, &["--no-deps"])?.packages;
    for manifest in helper_manifests(root)? {
        packages.extend(metadata(root, &["--no-deps", "--manifest-path", &manifest])?.packages);
    }
    Ok(packages)
}

/// All packages of the main workspace's lock file and their graph.
pub(crate) fn graph(root: &Path) -> Result<Metadata> {
    metadata(root, &[])
}

fn metadata(root: &Path, options: &[&str]) -> Result<Metadata> {
    let json = tree::cargo(root, &[&["metadata", "--format-version=1"], options].concat())?;
    let mut metadata: Metadata =
        serde_json::from_str(&json).context("cargo metadata has another shape than expected")?;
    for package in &mut metadata.packages {
        let relative = Path::new(&package.manifest_path).strip_prefix(root);
        if let Ok(relative) = relative.map(|path| path.to_string_lossy().into_owned()) {
            package.manifest_path = relative;
        }
    }
    Ok(metadata)
}

fn helper_manifests(root: &Path) -> Result<Vec<String>> {
    let helpers = root.join("helpers");
    if !helpers.is_dir() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in helpers.read_dir().context("cannot list helpers/")? {
        let manifest = entry.context("cannot list helpers/")?.path().join("Cargo.toml");
        if manifest.is_file() {
            found.push(manifest.to_string_lossy().into_owned());
        }
    }
    found.sort();
    Ok(found)
}
