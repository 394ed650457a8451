//! Reads the text of the sources and holds it to the style budget.
//!
//! A rule is here when neither the compiler nor clippy can make it. Rules look
//! at one file and give findings; what needs the whole tree (dead files, sizes,
//! references from the documentation) stands beside them.

mod budget;
mod dead;
mod docs;
mod functions;
mod items;
mod measure;
mod names;
mod paths;
mod plain;
mod providers;
mod report;
mod retention;
mod rules;
mod source;
mod tool_names;

use std::path::Path;

use anyhow::Result;

use crate::{Outcome, metadata, tree};

use budget::Budget;
use source::Source;

/// A place and what is wrong there. The sentence says how to mend it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) path: String,
    /// Counted from 1.
    pub(crate) line: usize,
    pub(crate) sentence: String,
}

impl Finding {
    fn new(path: &str, line: usize, sentence: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, sentence: sentence.into() }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.sentence)
    }
}

/// Runs every rule over every file of the repository.
pub(crate) fn run(root: &Path) -> Result<Outcome> {
    let files = tree::text_files(root)?;
    let roots = dead::roots(root, &metadata::members(root)?);
    let mut sources: Vec<Source> = files.iter().filter_map(Source::of).collect();
    let reached = dead::walk(&sources, &roots);
    for source in &mut sources {
        if reached.in_tests(&source.path) {
            source.mark_as_test();
        }
        source.is_lab |= reached.in_lab(&source.path);
    }

    let mut findings = dead::check(&sources, &reached);
    for source in &sources {
        findings.extend(rules::check_source(source));
    }
    for file in &files {
        findings.extend(rules::check_text(file));
    }
    findings.extend(docs::check(&files));
    findings.extend(names::check(&sources));
    findings.extend(retention::check(&files));
    findings.extend(providers::check(&sources));
    findings.extend(tool_names::check(&sources));

    let sizes = measure::Sizes::of(&sources, &files);
    let budget = Budget::read(root)?;
    findings.extend(budget.check(&sizes));
    findings.extend(budget.check_ratchet(Budget::previous(root)?.as_ref()));
    findings.sort();
    Ok(Outcome {
        findings: findings.iter().map(ToString::to_string).collect(),
        report: report::table(&sizes, &budget),
    })
}
