//! Pure: a statement of SQL that does not fit on two lines is a file.

use crate::tidy::Finding;
use crate::tidy::source::Source;

/// Crates that own tables.
const CRATES: [&str; 4] = ["cloud", "signer", "sqlite", "store"];
const VERBS: [&str; 6] = ["ALTER", "CREATE", "DELETE", "INSERT", "SELECT", "UPDATE"];

/// Breaks of line at which a literal is no longer read at a glance.
const BREAKS: usize = 2;

/// A finding for each long literal that begins like SQL. Tests are free.
pub(crate) fn check(source: &Source) -> Vec<Finding> {
    if !CRATES.contains(&source.package.as_str()) {
        return Vec::new();
    }
    let long = source.literals().filter(|(line, text)| {
        let first = text.trim_start_matches(|c: char| !c.is_alphabetic() || c == 'r');
        let word: String = first.chars().take_while(|c| c.is_alphabetic()).collect();
        text.matches('\n').count() >= BREAKS
            && VERBS.contains(&word.as_str())
            && !source.is_test_line(*line)
    });
    long.map(|(line, _)| {
        let sentence = "SQL over several lines in a literal. Make it a .sql file and use \
                        include_str!.";
        Finding::new(&source.path, line, sentence)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rules::{NOTHING, lines_found};

    #[test]
    fn long_sql_is_a_file() {
        let dirty = "const A: &str = r\"\n  SELECT 1\n  FROM a\";\n\
                     const B: &str = \"INSERT INTO a \\\n (b) \\\n (c)\";";
        assert_eq!(lines_found(check, "crates/store/src/a.rs", dirty), [1, 4]);
        assert_eq!(lines_found(check, "crates/agent/src/a.rs", dirty), NOTHING);
        let clean = "const A: &str = \"SELECT 1 \\\n FROM a\";\n\
                     const B: &str = \"Selected \\\n of \\\n many\";";
        assert_eq!(lines_found(check, "crates/store/src/a.rs", clean), NOTHING);
    }
}
