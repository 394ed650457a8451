//! Pure: counts forms of English and of code that readers stumble over.
//!
//! The counts are held by ceilings that may only fall. This module never judges whether a
//! sentence is good: `docs/STYLE.md` says that, and readers do.

use crate::lexer::Class;

use super::functions::functions;
use super::items::after_group;
use super::source::{Area, Source};

/// First words of a comment that hide its subject.
const QUESTION_WORDS: [&str; 11] =
    ["What", "Whatever", "Whether", "Who", "Whoever", "Whose", "How", "Of", "Where", "When", "Why"];

/// Names of functions that say neither what is done nor what is returned.
const BARE_NAMES: [&str; 36] = [
    "asked", "fall", "follow", "found", "given", "gone", "heard", "held", "keep", "kept", "known",
    "left", "likelier", "live", "look", "made", "most", "named", "of", "one", "own", "place",
    "prospect", "reach", "room", "said", "say", "seen", "shown", "sold", "spelled", "taken",
    "tell", "tend", "told", "whole",
];

/// Counts of one file or of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PlainCounts {
    /// Doc comments whose first word is a question word.
    pub(crate) question_docs: usize,
    /// Functions with a name of [`BARE_NAMES`].
    pub(crate) bare_names: usize,
    /// Statements `let (a, b) = (x, y);`.
    pub(crate) tuple_lets: usize,
}

impl PlainCounts {
    pub(crate) fn add(&mut self, other: Self) {
        self.question_docs += other.question_docs;
        self.bare_names += other.bare_names;
        self.tuple_lets += other.tuple_lets;
    }
}

/// Counts a file of a crate. Tests and the checks themselves count as nothing.
pub(crate) fn count(source: &Source) -> PlainCounts {
    if source.area != Area::Src || source.package == "xtask" {
        return PlainCounts::default();
    }
    PlainCounts {
        question_docs: count_question_docs(source),
        bare_names: count_bare_names(source),
        tuple_lets: count_tuple_lets(source),
    }
}

/// Returns the number of doc comments that begin with a question word.
fn count_question_docs(source: &Source) -> usize {
    let mut count = 0;
    let mut inside = false;
    for (index, line) in source.text.lines().enumerate() {
        let text = doc_text(line);
        let begins = text.is_some() && !inside;
        inside = text.is_some();
        if begins && !source.is_test_line(index + 1) {
            let first = text.unwrap_or_default().split(|c: char| !c.is_alphanumeric()).next();
            count += usize::from(first.is_some_and(|word| QUESTION_WORDS.contains(&word)));
        }
    }
    count
}

/// Returns the text of a line that is a doc comment.
fn doc_text(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = line.strip_prefix("//!").or_else(|| line.strip_prefix("///"))?;
    (!text.starts_with('/')).then(|| text.trim_start())
}

/// Returns the number of functions whose name is on the list.
fn count_bare_names(source: &Source) -> usize {
    let functions = functions(&source.tokens());
    let shipped = functions.iter().filter(|function| !source.is_test_line(function.line));
    shipped.filter(|function| BARE_NAMES.contains(&function.name.as_str())).count()
}

/// Returns the number of statements that bind several names to as many written values.
fn count_tuple_lets(source: &Source) -> usize {
    let tokens = source.tokens();
    let text_at = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let mut count = 0;
    for (at, token) in tokens.iter().enumerate() {
        if token.text != "let" || text_at(at + 1) != "(" || source.is_test_line(token.line) {
            continue;
        }
        let equals = after_group(&tokens, at + 1);
        if text_at(equals) != "=" || text_at(equals + 1) != "(" {
            continue;
        }
        let end = after_group(&tokens, equals + 1);
        count += usize::from(text_at(end) == ";");
    }
    count
}

/// Returns the characters of a file's code: no comments, no blanks at either end of a line.
pub(crate) fn count_characters(source: &Source) -> usize {
    let mut text = source.text.clone().into_bytes();
    for piece in source.pieces.iter().filter(|piece| piece.class == Class::Comment) {
        for byte in &mut text[piece.start..piece.end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    let text = String::from_utf8_lossy(&text);
    let lines = text.lines().enumerate().filter(|(index, _)| !source.is_test_line(index + 1));
    lines.map(|(_, line)| line.trim().chars().count()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(text: &str) -> PlainCounts {
        count(&Source::sample("crates/core/src/a.rs", text))
    }

    #[test]
    fn a_doc_comment_counts_by_its_first_line() {
        let text = "//! What it is.\n\n/// Whether it is so.\n/// Who asks.\nfn a() {}\n\
                    /// Returns it.\n/// What else.\nfn b() {}\n// What a plain comment says.\n\
                    //// What a rule says.\nfn c() {}\n";
        assert_eq!(counts(text).question_docs, 2);
        assert_eq!(counts("/// Whatsoever.\nfn a() {}\n").question_docs, 0);
    }

    #[test]
    fn a_bare_name_counts_wherever_it_is_defined() {
        let text = "impl A {\n    fn told(&self) {}\n    fn told_again(&self) {}\n}\n\
                    fn of<T>(a: T) {}\nfn call() { told(); }\n";
        assert_eq!(counts(text).bare_names, 2);
    }

    #[test]
    fn a_tuple_let_counts_where_both_sides_are_written_out() {
        let text = "fn f() {\n    let (a, b) = (1, 2);\n    let (c, mut d): (u8, u8) = g();\n\
                    let (e, f) = (g(), h()).swap();\n    let (x, (y, z)) = (\n 1,\n (2, 3),\n);\n}\n";
        assert_eq!(counts(text).tuple_lets, 2);
    }

    #[test]
    fn tests_and_other_packages_count_as_nothing() {
        let text = "/// What.\nfn told() { let (a, b) = (1, 2); }\n";
        for path in ["crates/core/tests/it/a.rs", "xtask/src/a.rs"] {
            assert_eq!(count(&Source::sample(path, text)), PlainCounts::default(), "{path}");
        }
        let inline = format!("fn a() {{}}\n#[cfg(test)]\nmod tests {{\n{text}}}\n");
        assert_eq!(counts(&inline), PlainCounts::default());
    }

    #[test]
    fn characters_leave_out_comments_and_indentation() {
        let text = "// A comment.\nfn f() {\n    g(\"//\"); // why\n}\n";
        let source = Source::sample("crates/core/src/a.rs", text);
        assert_eq!(count_characters(&source), "fn f() {".len() + "g(\"//\");".len() + 1);
    }
}
