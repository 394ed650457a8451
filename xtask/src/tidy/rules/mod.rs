//! Pure: the rules that look at one file at a time.
//!
//! To add one: a file here with a violating and a clean sample, and a line below.

mod expect;
mod json_value;
mod machine_paths;
mod markers;
mod module_doc;
mod pure;
mod silent;
mod sql;

use crate::tree::TextFile;

use super::Finding;
use super::source::{Area, Source};

const SOURCE_RULES: [fn(&Source) -> Vec<Finding>; 7] = [
    expect::check,
    json_value::check,
    markers::check_macros,
    module_doc::check,
    pure::check,
    silent::check,
    sql::check,
];

const TEXT_RULES: [fn(&TextFile) -> Vec<Finding>; 2] = [machine_paths::check, markers::check_words];

/// Applies every rule for Rust to a file. What tests feed to the compiler is free.
pub(crate) fn check_source(source: &Source) -> Vec<Finding> {
    if source.area == Area::Fixture {
        return Vec::new();
    }
    SOURCE_RULES.iter().flat_map(|rule| rule(source)).collect()
}

/// Applies every rule for any text to a file.
pub(crate) fn check_text(file: &TextFile) -> Vec<Finding> {
    TEXT_RULES.iter().flat_map(|rule| rule(file)).collect()
}

/// The lines found in a clean sample.
#[cfg(test)]
const NOTHING: [usize; 0] = [];

/// The lines in which a rule finds something in a sample.
#[cfg(test)]
fn lines_found(rule: fn(&Source) -> Vec<Finding>, path: &str, text: &str) -> Vec<usize> {
    rule(&Source::sample(path, text)).iter().map(|finding| finding.line).collect()
}
