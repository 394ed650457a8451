//! Pure: every module says what it is for.

use crate::tidy::Finding;
use crate::tidy::source::{Area, Source};

/// A finding when a file does not begin with `//!` and a sentence.
pub(crate) fn check(source: &Source) -> Vec<Finding> {
    let doc = source.line(1).strip_prefix("//!").unwrap_or_default().trim();
    let says = doc.trim_start_matches("Pure:").trim();
    if source.area == Area::Fixture || says.chars().filter(|c| c.is_alphabetic()).count() >= 10 {
        return Vec::new();
    }
    let sentence = "The file does not begin by saying what it is for. Make its first line \
                    `//!` and a sentence, and add what it must never do.";
    vec![Finding::new(&source.path, 1, sentence)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rules::{NOTHING, lines_found};

    #[test]
    fn a_module_begins_with_its_purpose() {
        for clean in ["//! Ids of things.\nmod a;", "//! Pure: ids of things.\n"] {
            assert_eq!(lines_found(check, "crates/core/src/a.rs", clean), NOTHING, "{clean:?}");
        }
        for dirty in [
            "",
            "mod a;",
            "\n//! Ids of things.",
            "//!\n//! Ids.",
            "//! Pure:\n",
            "/// Ids of things.",
        ] {
            assert_eq!(lines_found(check, "crates/core/src/a.rs", dirty), [1], "{dirty:?}");
        }
    }
}
