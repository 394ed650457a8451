//! Pure: what the documentation refers to exists.
//!
//! A code span such as `core/src/id.rs` names a file or folder of a crate, and
//! `core/src/id.rs#name` a test in it; a link that is no address names a file
//! beside the document. In `docs/SAFETY.md` a row that says something holds must
//! name a test.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::TextFile;

use super::Finding;

const SAFETY: &str = "docs/SAFETY.md";
/// Folders of the root below which a span names a path of the repository.
const ROOT_FOLDERS: [&str; 6] = ["crates", "docs", "helpers", "scripts", "xtask", ".ci"];
/// Folders of a crate below which a span names a path of that crate.
const CRATE_FOLDERS: [&str; 6] = ["src", "tests", "migrations", "benches", "stories", "assets"];

/// A finding for each reference that leads nowhere.
pub(crate) fn check(files: &[TextFile]) -> Vec<Finding> {
    let texts: BTreeMap<&str, &str> =
        files.iter().map(|file| (file.path.as_str(), file.text.as_str())).collect();
    let folders: BTreeSet<&str> = texts.keys().flat_map(|path| above(path)).collect();
    let documents = files.iter().filter(|file| {
        file.path.ends_with(".md") && (file.path.starts_with("docs/") || !file.path.contains('/'))
    });
    let mut findings = Vec::new();
    for document in documents {
        for (line, text) in prose(&document.text) {
            let faults = spans(text).filter_map(|span| reference_fault(span, &texts, &folders));
            let links = links(text).filter(|link| {
                let path = beside(&document.path, link);
                !texts.contains_key(path.as_str()) && !folders.contains(path.as_str())
            });
            let links = links.map(|link| format!("The link `{link}` leads nowhere. Mend it."));
            let unproved = (document.path == SAFETY && claims_without_test(text)).then(|| {
                "The row says that it holds and names no test. Name one, or say no.".to_owned()
            });
            let sentences = faults.chain(links).chain(unproved);
            findings.extend(sentences.map(|one| Finding::new(&document.path, line, one)));
        }
    }
    findings
}

/// What is wrong with a code span that names a path of ours.
fn reference_fault(
    span: &str,
    texts: &BTreeMap<&str, &str>,
    folders: &BTreeSet<&str>,
) -> Option<String> {
    let (path, name) = span.split_once('#').map_or((span, None), |(path, name)| (path, Some(name)));
    let path = repository_path(path)?;
    match (texts.get(path.as_str()), name) {
        (Some(source), Some(name)) if !defines(source, name) => {
            Some(format!("`{path}` has no function `{name}`. Name one that is there."))
        }
        (None, _) if name.is_some() || !folders.contains(path.as_str()) => {
            Some(format!("`{path}` does not exist. Name a path that is there."))
        }
        _ => None,
    }
}

/// The targets of links that are no addresses and no places of the same document.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let paths = targets.map(|(target, _)| target.split('#').next().unwrap_or_default());
    paths.filter(|path| !path.is_empty() && !path.contains(':'))
}

/// The path from the root of what a document links to.
fn beside(document: &str, link: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in link.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Each folder that a path lies in.
fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

/// The lines, counted from 1, that stand in no fenced block.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((index + 1, line))
    })
}

/// What stands between backticks.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The path that a span names, or nothing when it is no path of ours.
fn repository_path(span: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
    if !span.chars().all(plain) {
        return None;
    }
    let span = span.trim_end_matches('/');
    let parts: Vec<&str> = span.split('/').collect();
    match parts[..] {
        [first, _, ..] if ROOT_FOLDERS.contains(&first) => Some(span.to_owned()),
        [_, second, ..] if CRATE_FOLDERS.contains(&second) => Some(format!("crates/{span}")),
        _ => None,
    }
}

fn defines(source: &str, name: &str) -> bool {
    source
        .split("fn ")
        .skip(1)
        .any(|rest| rest.strip_prefix(name).is_some_and(|after| after.starts_with(['(', '<'])))
}

/// Whether a table row has a cell `yes` and no reference to a test.
fn claims_without_test(line: &str) -> bool {
    line.starts_with('|')
        && line.split('|').any(|cell| cell.trim() == "yes")
        && !spans(line).any(|span| span.contains('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_document(path: &str, text: &str) -> Vec<String> {
        let file =
            |path: &str, text: &str| TextFile { path: path.to_owned(), text: text.to_owned() };
        let files = [
            file("crates/core/src/id.rs", "#[test]\nfn ids_differ() {}"),
            file("crates/store/migrations/0001.sql", ""),
            file("docs/first-run.md", ""),
            file(path, text),
        ];
        check(&files).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_exists_passes() {
        let text = "[a](first-run.md#x), [b](../crates/core/src/id.rs), [c](https://d.e/f), [d](#g)\n\
                    `core/src/id.rs`, `core/src/`, `store/migrations/`, `docs/first-run.md`,\n\
                    `core/src/id.rs#ids_differ`, `a/b`, `target/model/x`, `~/x/src/y`, `x/src/{y}`\n\
                    ```\n`core/src/gone.rs`\n```\n";
        assert_eq!(check_document("docs/ARCHITECTURE.md", text), Vec::<String>::new());
    }

    #[test]
    fn what_does_not_exist_is_named() {
        let cases = [
            ("a\n`core/src/gone.rs`", "docs/A.md:2: `crates/core/src/gone.rs` does not exist"),
            ("`docs/gone.md`", "`docs/gone.md` does not exist"),
            ("`core/src/id.rs#gone`", "has no function `gone`"),
            ("`core/src/id.rs#ids`", "has no function `ids`"),
            ("[a](gone.md)", "The link `gone.md` leads nowhere"),
            ("`core/src#ids_differ`", "`crates/core/src` does not exist"),
        ];
        for (text, sentence) in cases {
            let found = check_document("docs/A.md", text).join("\n");
            assert!(found.contains(sentence), "{text:?} gives {found:?}");
        }
    }

    #[test]
    fn safety_claims_nothing_without_a_test() {
        let clean = "| holds |\n| yes | `core/src/id.rs#ids_differ` |\n| no | nothing |\n";
        assert_eq!(check_document(SAFETY, clean), Vec::<String>::new());
        assert_eq!(check_document(SAFETY, "| the model | yes | `core/src/id.rs` |\n").len(), 1);
    }
}
