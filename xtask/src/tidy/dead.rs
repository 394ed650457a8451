//! Pure: which files the compiler sees, and which of them only for tests or the laboratory.
//!
//! Follows `mod` from the root file of every target. A file that no target
//! reaches is dead. It must never guess: what the walk cannot follow
//! (`include!` of Rust) is not allowed in this repository.

use std::collections::BTreeMap;
use std::path::Path;

use crate::lexer::Token;
use crate::metadata::Package;

use super::source::{Area, Source};
use super::{Finding, items};

/// The first file of a library, binary, test, bench, example or build script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RootFile {
    path: String,
    role: Role,
}

/// For whom a file is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Tests,
    /// Behind a feature.
    Lab,
    Users,
}

/// The files that some target reaches.
#[derive(Debug, Default)]
pub(crate) struct Reached(BTreeMap<String, Role>);

impl Reached {
    /// Whether a file is compiled, and for tests alone.
    pub(crate) fn in_tests(&self, path: &str) -> bool {
        self.0.get(path) == Some(&Role::Tests)
    }

    /// Whether a file is compiled, and for the laboratory and tests alone.
    pub(crate) fn in_lab(&self, path: &str) -> bool {
        self.0.get(path) == Some(&Role::Lab)
    }
}

/// The root files of all targets, with paths from the repository's root.
pub(crate) fn roots(root: &Path, members: &[Package]) -> Vec<RootFile> {
    let targets = members.iter().flat_map(|package| &package.targets);
    let files = targets.filter_map(|target| {
        let path = Path::new(&target.src_path).strip_prefix(root).ok()?;
        let tests =
            target.kind.iter().any(|kind| ["test", "bench", "example"].contains(&kind.as_str()));
        let role = if tests { Role::Tests } else { Role::Users };
        Some(RootFile { path: path.to_string_lossy().into_owned(), role })
    });
    files.collect()
}

/// Follows `mod` from each root.
pub(crate) fn walk(sources: &[Source], roots: &[RootFile]) -> Reached {
    let by_path: BTreeMap<&str, &Source> =
        sources.iter().map(|source| (source.path.as_str(), source)).collect();
    let mut reached = Reached::default();
    let mut waiting: Vec<(String, String, Role)> = roots
        .iter()
        .map(|file| (file.path.clone(), parent(&file.path).to_owned(), file.role))
        .collect();
    while let Some((path, children_in, role)) = waiting.pop() {
        let Some(source) = by_path.get(path.as_str()) else { continue };
        // A file that is seen again for users ceases to be for tests alone.
        if reached.0.get(&path).is_some_and(|known| *known >= role) {
            continue;
        }
        reached.0.insert(path.clone(), role);
        for declared in declared(source) {
            let role = role.min(declared.role);
            for (candidate, folder) in declared.candidates(&path, &children_in) {
                if by_path.contains_key(candidate.as_str()) {
                    waiting.push((candidate, folder, role));
                }
            }
        }
    }
    reached
}

/// A finding for each file that nothing reaches.
pub(crate) fn check(sources: &[Source], reached: &Reached) -> Vec<Finding> {
    let dead = sources
        .iter()
        .filter(|source| source.area != Area::Fixture && !reached.0.contains_key(&source.path));
    dead.map(|source| {
        let sentence = "No `mod` reaches this file, so nobody compiles it. Declare or delete it.";
        Finding::new(&source.path, 1, sentence)
    })
    .collect()
}

/// A module declared with a file of its own.
#[derive(Debug)]
struct Declared {
    name: String,
    /// The inline modules around the declaration.
    within: Vec<String>,
    role: Role,
    /// The value of `#[path = "…"]`.
    path: Option<String>,
}

impl Declared {
    /// Where the file may lie, each with the folder of its own children.
    fn candidates(&self, declared_in: &str, children_in: &str) -> Vec<(String, String)> {
        if let Some(path) = &self.path {
            let file = format!("{}/{path}", parent(declared_in));
            let folder = parent(&file).to_owned();
            return vec![(file, folder)];
        }
        let mut folder = children_in.to_owned();
        for part in self.within.iter().chain([&self.name]) {
            folder = format!("{folder}/{part}");
        }
        vec![(format!("{folder}.rs"), folder.clone()), (format!("{folder}/mod.rs"), folder)]
    }
}

fn declared(source: &Source) -> Vec<Declared> {
    let tokens = source.tokens();
    let mut found = Vec::new();
    let mut around: Vec<(String, usize)> = Vec::new();
    let (mut at, mut role, mut path) = (0, Role::Users, None);
    while at < tokens.len() {
        around.retain(|(_, end)| at < *end);
        if let Some((inner, end)) = items::attribute(&tokens, at) {
            if items::is_for_tests(inner) {
                role = Role::Tests;
            } else if items::is_for_lab(inner) {
                role = role.min(Role::Lab);
            }
            path = path.or_else(|| path_attribute(source, inner));
            at = end;
            continue;
        }
        match &tokens[at..] {
            [keyword, name, end, ..] if keyword.text == "mod" && end.text == ";" => {
                found.push(Declared {
                    name: name.text.to_owned(),
                    within: around.iter().map(|(name, _)| name.clone()).collect(),
                    role: if source.is_test_line(keyword.line) { Role::Tests } else { role },
                    path: path.take(),
                });
            }
            [keyword, name, open, ..] if keyword.text == "mod" && open.text == "{" => {
                around.push((name.text.to_owned(), items::after_group(&tokens, at + 2)));
            }
            _ => {}
        }
        if !is_visibility(&tokens[at]) {
            (role, path) = (Role::Users, None);
        }
        at += 1;
    }
    found
}

fn is_visibility(token: &Token<'_>) -> bool {
    ["pub", "(", ")", "crate", "super", "in"].contains(&token.text)
}

fn path_attribute(source: &Source, inner: &[Token<'_>]) -> Option<String> {
    match inner {
        [name, equals, open, close] if name.text == "path" && equals.text == "=" => {
            source.text.get(open.start + 1..close.start).map(str::to_owned)
        }
        _ => None,
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const CLEAN: &[(&str, &str)] = &[
        ("crates/a/src/lib.rs", "pub mod one; mod two;\n#[cfg(test)] mod kit;\nmod x { mod y; }"),
        (
            "crates/a/src/one.rs",
            "#[cfg(test)] mod tests;\n#[path = \"other.rs\"]\npub(crate) mod z;",
        ),
        ("crates/a/src/one/tests.rs", ""),
        ("crates/a/src/other.rs", ""),
        ("crates/a/src/two/mod.rs", "mod three;"),
        ("crates/a/src/two/three.rs", ""),
        ("crates/a/src/kit.rs", "mod more;"),
        ("crates/a/src/kit/more.rs", ""),
        ("crates/a/src/x/y.rs", ""),
        ("crates/a/tests/it/main.rs", "mod part;"),
        ("crates/a/tests/it/part.rs", ""),
        ("crates/a/tests/ui/forge.rs", ""),
    ];

    /// The files that a walk over the samples calls dead, and those it calls tests.
    fn walk_samples(samples: &[(&str, &str)]) -> (BTreeSet<String>, BTreeSet<String>) {
        let sources: Vec<Source> =
            samples.iter().map(|(path, text)| Source::sample(path, text)).collect();
        let root = |path: &str, role| RootFile { path: path.to_owned(), role };
        let roots = [
            root("crates/a/src/lib.rs", Role::Users),
            root("crates/a/tests/it/main.rs", Role::Tests),
        ];
        let reached = walk(&sources, &roots);
        let dead = check(&sources, &reached).into_iter().map(|finding| finding.path).collect();
        let tests = reached.0.into_iter().filter(|(_, role)| *role == Role::Tests);
        (dead, tests.map(|(path, _)| path).collect())
    }

    #[test]
    fn every_form_of_mod_is_followed() {
        let (dead, tests) = walk_samples(CLEAN);
        assert_eq!(dead, BTreeSet::new());
        let expected = [
            "crates/a/src/kit.rs",
            "crates/a/src/kit/more.rs",
            "crates/a/src/one/tests.rs",
            "crates/a/tests/it/main.rs",
            "crates/a/tests/it/part.rs",
        ];
        assert_eq!(tests.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_is_behind_a_feature_is_the_laboratorys() {
        let samples = [
            (
                "crates/a/src/lib.rs",
                "#[cfg(feature = \"drill\")]\npub mod drill;\n#[cfg(any(test, feature = \"b\"))]\n\
                 mod b;\n#[cfg(not(feature = \"drill\"))]\nmod c;",
            ),
            ("crates/a/src/drill.rs", "mod more;\n#[cfg(test)]\nmod tests;"),
            ("crates/a/src/drill/more.rs", ""),
            ("crates/a/src/drill/tests.rs", ""),
            ("crates/a/src/b.rs", ""),
            ("crates/a/src/c.rs", ""),
        ];
        let sources = samples.map(|(path, text)| Source::sample(path, text));
        let root = RootFile { path: "crates/a/src/lib.rs".to_owned(), role: Role::Users };
        let reached = walk(&sources, &[root]);
        let lab: Vec<&str> =
            samples.iter().map(|(path, _)| *path).filter(|path| reached.in_lab(path)).collect();
        let expected = ["crates/a/src/drill.rs", "crates/a/src/drill/more.rs", "crates/a/src/b.rs"];
        assert_eq!(lab, expected);
        assert!(reached.in_tests("crates/a/src/drill/tests.rs"));
    }

    #[test]
    fn a_file_that_nobody_declares_is_dead() {
        let strays = [
            ("crates/a/src/stray.rs", ""),
            ("crates/a/src/two/four.rs", "mod three;"),
            ("crates/a/src/three.rs", "// mod stray; in words alone"),
            ("crates/a/tests/it/stray.rs", ""),
        ];
        let (dead, _) = walk_samples(&[CLEAN, &strays].concat());
        let mut expected: Vec<&str> = strays.iter().map(|(path, _)| *path).collect();
        expected.sort_unstable();
        assert_eq!(dead.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    }
}
