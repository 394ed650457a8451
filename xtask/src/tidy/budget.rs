//! The ceilings of `xtask/budget.toml`, and the ratchet that only lowers them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::tree;

use super::Finding;
use super::measure::Sizes;

const FILE: &str = "xtask/budget.toml";

/// Names of the ceilings, as in [`Ceilings`].
const CEILINGS: [&str; 7] = [
    "longest_file",
    "file_p90",
    "longest_function",
    "packages",
    "question_docs",
    "bare_names",
    "tuple_lets",
];

/// `xtask/budget.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Budget {
    pub(crate) ceilings: Ceilings,
    /// Ceilings that were raised on purpose.
    #[serde(default)]
    raised: Vec<Raised>,
}

/// The largest sizes that pass.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ceilings {
    /// Lines of one file, without its tests.
    pub(crate) longest_file: usize,
    /// Lines that nine in ten shipped files keep within.
    pub(crate) file_p90: usize,
    /// Lines of one function.
    pub(crate) longest_function: usize,
    /// Packages in `Cargo.lock`.
    pub(crate) packages: usize,
    /// Doc comments that begin with a question word.
    pub(crate) question_docs: usize,
    /// Functions with a name that says nothing.
    pub(crate) bare_names: usize,
    /// Statements that bind several names to as many values.
    pub(crate) tuple_lets: usize,
}

/// A ceiling that is higher than before, to what, and why.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raised {
    ceiling: String,
    to: usize,
    reason: String,
}

impl Ceilings {
    fn named(self) -> BTreeMap<&'static str, usize> {
        BTreeMap::from([
            ("longest_file", self.longest_file),
            ("file_p90", self.file_p90),
            ("longest_function", self.longest_function),
            ("packages", self.packages),
            ("question_docs", self.question_docs),
            ("bare_names", self.bare_names),
            ("tuple_lets", self.tuple_lets),
        ])
    }
}

impl Budget {
    /// Reads the budget of the work tree.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(root.join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
        Self::parse(&text)
    }

    /// Reads the budget as it stood before its latest change, if there was one.
    pub(crate) fn previous(root: &Path) -> Result<Option<Self>> {
        tree::previous_text(root, FILE)?.map(|text| Self::parse_previous(&text)).transpose()
    }

    /// Reads an older budget, without ceilings that are held no more. A ceiling that it did not
    /// hold yet counts as unlimited.
    fn parse_previous(text: &str) -> Result<Self> {
        let unreadable = || format!("{FILE} as it was cannot be read");
        let mut table: toml::Table = toml::from_str(text).with_context(unreadable)?;
        if let Some(ceilings) = table.get_mut("ceilings").and_then(toml::Value::as_table_mut) {
            ceilings.retain(|name, _| CEILINGS.contains(&name));
            for name in CEILINGS {
                ceilings.entry(name).or_insert(toml::Value::Integer(i64::MAX));
            }
        }
        table.try_into().with_context(unreadable)
    }

    fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).with_context(|| format!("{FILE} cannot be read"))
    }

    /// A finding for each size above its ceiling.
    pub(crate) fn check(&self, sizes: &Sizes) -> Vec<Finding> {
        let ceilings = self.ceilings;
        let mut findings = Vec::new();
        for file in &sizes.files {
            if file.counts.lines > ceilings.longest_file {
                findings.push(Finding::new(&file.path, ceilings.longest_file, format!(
                    "The file has {} lines without its tests, {} are allowed. Split it by noun or \
                     stage.",
                    file.counts.lines, ceilings.longest_file
                )));
            }
            for function in &file.functions {
                if function.lines > ceilings.longest_function {
                    findings.push(Finding::new(&file.path, function.line, format!(
                        "`{}` has {} lines, {} are allowed. Move a pure leaf with a name from the \
                         domain out of it.",
                        function.name, function.lines, ceilings.longest_function
                    )));
                }
            }
        }
        let totals = [
            ("file_p90", sizes.file_p90(), ceilings.file_p90),
            ("packages", sizes.packages, ceilings.packages),
            ("question_docs", sizes.plain().question_docs, ceilings.question_docs),
            ("bare_names", sizes.plain().bare_names, ceilings.bare_names),
            ("tuple_lets", sizes.plain().tuple_lets, ceilings.tuple_lets),
        ];
        for (name, size, ceiling) in totals {
            if size > ceiling {
                findings.push(Finding::new(
                    FILE,
                    1,
                    format!("`{name}` is {size}, the ceiling is {ceiling}. Take something away."),
                ));
            }
        }
        findings
    }

    /// A finding for each ceiling that rose without a reason.
    pub(crate) fn check_ratchet(&self, previous: Option<&Self>) -> Vec<Finding> {
        let Some(previous) = previous else { return Vec::new() };
        let before = previous.ceilings.named();
        let risen = self.ceilings.named().into_iter().filter(|(name, now)| *now > before[name]);
        let unexplained = risen.filter(|(name, now)| {
            !self
                .raised
                .iter()
                .any(|one| one.ceiling == *name && one.to == *now && !one.reason.trim().is_empty())
        });
        unexplained
            .map(|(name, now)| {
                Finding::new(
                    FILE,
                    1,
                    format!(
                        "The ceiling `{name}` rose from {} to {now}. Lower it again, or add a \
                     [[raised]] entry with `ceiling`, `to` and `reason`.",
                        before[name]
                    ),
                )
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::source::Source;
    use crate::tree::TextFile;

    const SMALL: &str = "
        [ceilings]
        longest_file = 8
        file_p90 = 8
        longest_function = 3
        packages = 2
        question_docs = 0
        bare_names = 0
        tuple_lets = 0
    ";

    fn budget(text: &str) -> Budget {
        Budget::parse(text).expect("the sample budget is whole")
    }

    fn check(files: &[(&str, &str)], packages: usize) -> Vec<String> {
        let sources: Vec<Source> =
            files.iter().map(|(path, text)| Source::sample(path, text)).collect();
        let lock =
            TextFile { path: "Cargo.lock".to_owned(), text: "[[package]]\n".repeat(packages) };
        let found = budget(SMALL).check(&Sizes::of(&sources, &[lock]));
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn sizes_at_the_ceiling_pass() {
        let file = "fn a() {\n\n}\n\n\n\n\n\n#[cfg(test)]\nmod tests {\n fn b() {\n\n\n }\n}\n";
        let found =
            check(&[("crates/core/src/a.rs", file), ("crates/core/src/b.rs", "\n\n\n\n")], 2);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn sizes_above_it_are_named_with_their_place() {
        let found = check(
            &[
                ("crates/core/src/a.rs", "fn a() {}\nfn b() {\n\n\n}\n\n\n\n\n"),
                ("crates/core/src/b.rs", "\n\n\n\n"),
            ],
            3,
        )
        .join("\n");
        for sentence in [
            "crates/core/src/a.rs:8: The file has 9 lines",
            "crates/core/src/a.rs:2: `b` has 4 lines",
            "`file_p90` is 9",
            "`packages` is 3",
        ] {
            assert!(found.contains(sentence), "{found} lacks {sentence:?}");
        }
    }

    #[test]
    fn a_ceiling_that_is_held_no_more_is_passed_over_in_an_older_budget() {
        let older = SMALL.replace("packages = 2", "packages = 1\n        shipped_lines = 9");
        let previous = Budget::parse_previous(&older).unwrap();
        assert_eq!(budget(SMALL).check_ratchet(Some(&previous)).len(), 1, "packages rose");
        Budget::parse(&older).unwrap_err();
        let names: Vec<&str> = budget(SMALL).ceilings.named().into_keys().collect();
        let mut known = CEILINGS;
        known.sort_unstable();
        assert_eq!(names, known);
    }

    #[test]
    fn a_ceiling_that_is_new_did_not_rise() {
        let older = SMALL.replace("tuple_lets = 0", "");
        let previous = Budget::parse_previous(&older).unwrap();
        let now = SMALL.replace("tuple_lets = 0", "tuple_lets = 9");
        assert_eq!(budget(&now).check_ratchet(Some(&previous)).len(), 0);
        assert_eq!(budget(&now).check_ratchet(Some(&budget(SMALL))).len(), 1);
    }

    #[test]
    fn riddling_forms_above_their_ceilings_are_found() {
        let text = "/// What.\nfn told() {\n    let (a, b) = (1, 2);\n}\n";
        let found = check(&[("crates/core/src/a.rs", text)], 1).join("\n");
        for name in ["question_docs", "bare_names", "tuple_lets"] {
            assert!(found.contains(&format!("`{name}` is 1, the ceiling is 0")), "{found}");
        }
    }

    #[test]
    fn a_ceiling_only_rises_with_a_reason() {
        let raised = SMALL.replace("packages = 2", "packages = 20");
        let previous = budget(SMALL);
        let ratchet = |text: &str| budget(text).check_ratchet(Some(&previous)).len();
        assert_eq!(ratchet(SMALL), 0);
        assert_eq!(ratchet(&SMALL.replace("packages = 2", "packages = 1")), 0);
        assert_eq!(ratchet(&raised), 1);
        let entry = |to: usize, reason: &str| {
            format!(
                "{raised}\n[[raised]]\nceiling = \"packages\"\nto = {to}\nreason = \"{reason}\"\n"
            )
        };
        assert_eq!(ratchet(&entry(20, "the wallet")), 0);
        assert_eq!(ratchet(&entry(20, " ")), 1);
        assert_eq!(ratchet(&entry(19, "the wallet")), 1);
        assert_eq!(budget(&raised).check_ratchet(None).len(), 0);
    }
}
