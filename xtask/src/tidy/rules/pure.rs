//! Pure: files that say they are pure are, and pure crates say it in every file.
//!
//! Pure is: no async, no I/O, no environment, no clock, no chance. Test code may
//! be otherwise.

use crate::tidy::Finding;
use crate::tidy::paths::{NamedPath, paths};
use crate::tidy::source::{Area, Source};

/// Crates that are pure in every file.
const CRATES: [&str; 3] = ["core", "memory", "policy"];
/// The files that hold an injected trait with its one system implementation.
const IMPURE: [&str; 3] =
    ["crates/core/src/entropy.rs", "crates/core/src/faults.rs", "crates/core/src/time.rs"];
/// What a pure file does not name.
const FORBIDDEN: [&[&str]; 9] = [
    &["tokio"],
    &["rand"],
    &["getrandom"],
    &["std", "fs"],
    &["std", "env"],
    &["std", "net"],
    &["std", "process"],
    &["std", "time", "SystemTime"],
    &["std", "time", "Instant"],
];

/// A finding for each impurity of a file that says it is pure, or that has to be.
pub(crate) fn check(source: &Source) -> Vec<Finding> {
    if source.is_test() {
        return Vec::new();
    }
    let says_pure = source.line(1).starts_with("//! Pure:");
    let must_be = source.area == Area::Src
        && CRATES.contains(&source.package.as_str())
        && !IMPURE.contains(&source.path.as_str());
    if !says_pure {
        let sentence = "This crate is pure in every file. Begin the file with `//! Pure:`, and \
                        take time, chance and I/O from outside.";
        return must_be.then(|| Finding::new(&source.path, 1, sentence)).into_iter().collect();
    }
    let tokens = source.tokens();
    let asynchronous = tokens
        .iter()
        .filter(|token| ["async", "await"].contains(&token.text))
        .map(|token| (token.line, format!("`{}`", token.text)));
    let named = paths(&tokens).into_iter().filter(is_forbidden);
    let named = named.map(|path| (path.line, format!("`{}`", path.segments.join("::"))));
    asynchronous
        .chain(named)
        .filter(|(line, _)| !source.is_test_line(*line))
        .map(|(line, what)| {
            let sentence = format!(
                "A pure file has {what}. Take the value as a parameter, or move this out of the file."
            );
            Finding::new(&source.path, line, sentence)
        })
        .collect()
}

fn is_forbidden(path: &NamedPath<'_>) -> bool {
    // A single name is a variable or a function of this file.
    path.segments.len() > 1
        && FORBIDDEN.iter().any(|prefix| path.is_below(prefix) || path.imports_parent_of(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rules::{NOTHING, lines_found};

    fn check_pure(code: &str) -> Vec<usize> {
        lines_found(check, "crates/agent/src/a.rs", &format!("//! Pure: a sample.\n{code}"))
    }

    #[test]
    fn pure_code_passes() {
        for clean in [
            "use std::time::Duration;\nuse std::{fmt, str};",
            "// std::fs, tokio and .await in words\nconst A: &str = \"std::env::var\";",
            "use core::net::IpAddr;\nfn tokio(fs: u8) -> u8 { fs }",
            "#[cfg(test)]\nmod tests {\n    use std::fs;\n}",
        ] {
            assert_eq!(check_pure(clean), NOTHING, "{clean:?}");
        }
    }

    #[test]
    fn each_impurity_is_found() {
        for dirty in [
            "async fn a() {}",
            "fn a() { b.await }",
            "use tokio::sync::mpsc;",
            "use std::{fmt, fs};",
            "use std::{io, net::{IpAddr}};",
            "fn a() { std::env::var(\"A\"); }",
            "fn a() { ::std::process::exit(1) }",
            "use std::time::{Duration, SystemTime as Now};",
            "use std::time;",
            "use std::time::{self, Duration};",
            "use std::*;",
            "fn a() { rand::random::<u8>() }",
        ] {
            assert_eq!(check_pure(dirty), [2], "{dirty:?}");
        }
    }

    #[test]
    fn pure_crates_say_so_in_every_file() {
        let silent = "//! A sample.\n";
        let at = |path: &str| lines_found(check, path, silent);
        assert_eq!(at("crates/policy/src/lib.rs"), [1]);
        for path in [
            "crates/core/src/time.rs",
            "crates/store/src/lib.rs",
            "crates/memory/src/recall/tests.rs",
            "crates/memory/tests/it/main.rs",
        ] {
            assert_eq!(at(path), NOTHING, "{path}");
        }
    }
}
