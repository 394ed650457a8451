//! Pure: a type's name is unique among the crates.
//!
//! Whoever searches for a type should find one. What only tests compile is free, and so
//! are associated types, which belong to their trait. It must never look at what a name
//! means: that it is the field's term is for a reader to judge.

use std::collections::BTreeMap;

use super::Finding;
use super::source::{Area, Source};

/// Names that several crates may define.
const SHARED: [&str; 0] = [];

/// Finds each definition after the first of the same name.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut first: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
    let mut findings = Vec::new();
    let crates = |source: &&Source| source.area == Area::Src && source.package != "xtask";
    for source in sources.iter().filter(crates) {
        if source.path.starts_with("helpers/") {
            continue;
        }
        for (name, line) in definitions(source) {
            match first.get(name) {
                None => drop(first.insert(name, (&source.path, line))),
                Some((path, at)) if !SHARED.contains(&name) => {
                    let sentence = format!(
                        "The type `{name}` is defined in {path}:{at}, too. Qualify one by what it is about."
                    );
                    findings.push(Finding::new(&source.path, line, sentence));
                }
                Some(_) => {}
            }
        }
    }
    findings
}

/// The types that a file defines outside of tests, each with its line.
fn definitions(source: &Source) -> Vec<(&str, usize)> {
    let tokens = source.tokens();
    let (mut found, mut blocks, mut associated) = (Vec::new(), Vec::new(), false);
    for (at, token) in tokens.iter().enumerate() {
        let inside = blocks.last().copied().unwrap_or(false);
        match token.text {
            "impl" | "trait" if !inside => associated = true,
            "{" => blocks.push(std::mem::take(&mut associated)),
            "}" => drop(blocks.pop()),
            ";" => associated = false,
            _ => {}
        }
        let defines = match token.text {
            "struct" | "enum" | "trait" | "union" => true,
            "type" => !inside,
            _ => false,
        };
        let name = tokens.get(at + 1).filter(|name| {
            name.text.starts_with(|first: char| first.is_ascii_uppercase())
                && !source.is_test_line(name.line)
        });
        if let Some(name) = name.filter(|_| defines) {
            found.push((&source.code[name.start..name.start + name.text.len()], name.line));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> =
            files.iter().map(|(path, text)| Source::sample(path, text)).collect();
        check(&sources).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_second_definition_is_found_wherever_it_is() {
        for second in ["struct Row;", "enum Row {}", "trait Row {}", "pub(crate) type Row = u8;"] {
            let found = found(&[
                ("crates/core/src/a.rs", "//! A.\npub struct Row(u8);\n"),
                ("crates/lab/src/b.rs", &format!("//! B.\nfn f() {{\n    {second}\n}}\n")),
            ]);
            assert_eq!(found.len(), 1, "{second}");
            assert!(found[0].starts_with("crates/lab/src/b.rs:3: "), "{found:?}");
            assert!(found[0].contains("crates/core/src/a.rs:2"), "{found:?}");
        }
    }

    #[test]
    fn associated_types_tests_and_other_workspaces_are_free() {
        let clean = [
            ("crates/core/src/a.rs", "//! A.\npub struct Row(u8);\n"),
            ("crates/core/src/b.rs", "//! B.\nimpl From<u8> for X {\n    type Row = u8;\n}\n"),
            ("crates/core/src/c.rs", "//! C.\ntrait Y {\n    type Row;\n}\n"),
            ("crates/core/src/d.rs", "//! D.\n#[cfg(test)]\nmod tests {\n    struct Row;\n}\n"),
            ("crates/core/tests/it/e.rs", "//! E.\nstruct Row;\n"),
            ("xtask/src/f.rs", "//! F.\nstruct Row;\n"),
            ("helpers/llama/src/g.rs", "//! G.\nstruct Row;\n"),
        ];
        assert_eq!(found(&clean), Vec::<String>::new());
    }
}
