//! Pure: a Rust file with its code, its place in the repository and its test lines.

use crate::lexer::{self, Class, Piece, Token};
use crate::tree::TextFile;

use super::items;

/// In which part of a package a file lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Area {
    /// Under `src/`, or a build script.
    Src,
    /// Integration tests, benches, examples.
    Tests,
    /// Input of tests, not compiled with them.
    Fixture,
}

/// A Rust file of a package of ours.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// From the root of the repository.
    pub(crate) path: String,
    /// The crate's folder name; helpers keep their prefix: `helpers/llama`.
    pub(crate) package: String,
    pub(crate) area: Area,
    pub(crate) text: String,
    pub(crate) pieces: Vec<Piece>,
    /// The text with comments and literals blanked.
    pub(crate) code: String,
    /// For each line whether only tests compile it.
    test_lines: Vec<bool>,
    /// Whether it is compiled for the laboratory, wherever it lies.
    pub(crate) is_lab: bool,
}

/// The packages of the laboratory, which no product links.
pub(crate) const LAB: [&str; 2] = ["lab", "testkit"];

impl Source {
    /// The file as a source, or nothing when it is no Rust of a package.
    pub(crate) fn of(file: &TextFile) -> Option<Self> {
        let (package, area) = place(&file.path)?;
        let pieces = lexer::pieces(&file.text);
        let code = lexer::code_only(&file.text, &pieces);
        let mut test_lines = vec![false; file.text.lines().count() + 1];
        for (first, last) in items::test_ranges(&lexer::tokens(&code)) {
            test_lines[first - 1..last].fill(true);
        }
        let mut source = Self {
            path: file.path.clone(),
            is_lab: LAB.contains(&package.as_str()),
            package,
            area,
            text: file.text.clone(),
            pieces,
            code,
            test_lines,
        };
        if area != Area::Src
            || source.path.ends_with("/tests.rs")
            || source.path.contains("/tests/")
        {
            source.mark_as_test();
        }
        Some(source)
    }

    /// From now on the whole file counts as test code.
    pub(crate) fn mark_as_test(&mut self) {
        self.test_lines.fill(true);
    }

    /// Whether only tests compile this line, counted from 1.
    pub(crate) fn is_test_line(&self, line: usize) -> bool {
        self.test_lines.get(line - 1).copied().unwrap_or(false)
    }

    /// Whether only tests compile the whole file.
    pub(crate) fn is_test(&self) -> bool {
        self.test_lines.iter().all(|test| *test)
    }

    /// Whether users run this file: tests, the laboratory, the checks and what the
    /// compiler runs they do not.
    pub(crate) fn is_shipped(&self) -> bool {
        !self.is_test() && !self.is_lab && !["derive", "xtask"].contains(&self.package.as_str())
    }

    /// The tokens of the code.
    pub(crate) fn tokens(&self) -> Vec<Token<'_>> {
        lexer::tokens(&self.code)
    }

    /// The text of a line, counted from 1; empty beyond the end.
    pub(crate) fn line(&self, line: usize) -> &str {
        self.text.lines().nth(line - 1).unwrap_or_default()
    }

    /// The string literals, each with its line and its text with quotes.
    pub(crate) fn literals(&self) -> impl Iterator<Item = (usize, &str)> {
        let texts = self.pieces.iter().filter(|piece| piece.class == Class::Text);
        texts.map(|piece| (self.line_of(piece.start), &self.text[piece.start..piece.end]))
    }

    /// The line, counted from 1, of a byte of the text.
    pub(crate) fn line_of(&self, offset: usize) -> usize {
        1 + self.text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count()
    }
}

fn place(path: &str) -> Option<(String, Area)> {
    if !path.ends_with(".rs") {
        return None;
    }
    let parts: Vec<&str> = path.split('/').collect();
    let (package, rest) = match parts[..] {
        ["crates", name, ..] => (name.to_owned(), &parts[2..]),
        ["helpers", name, ..] => (format!("helpers/{name}"), &parts[2..]),
        ["xtask", ..] => ("xtask".to_owned(), &parts[1..]),
        _ => return None,
    };
    let area = match rest {
        ["tests", "ui" | "fixtures" | "sealed", ..] => Area::Fixture,
        ["tests" | "benches" | "examples", ..] => Area::Tests,
        _ => Area::Src,
    };
    Some((package, area))
}

#[cfg(test)]
impl Source {
    /// A sample for the tests of a rule.
    pub(crate) fn sample(path: &str, text: &str) -> Self {
        let file = TextFile { path: path.to_owned(), text: text.to_owned() };
        Self::of(&file).expect("samples lie in a package")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_know_their_place() {
        let cases = [
            ("crates/core/src/id.rs", Some(("core", Area::Src))),
            ("crates/core/tests/it/main.rs", Some(("core", Area::Tests))),
            ("crates/policy/tests/ui/forge.rs", Some(("policy", Area::Fixture))),
            ("helpers/llama/build.rs", Some(("helpers/llama", Area::Src))),
            ("xtask/src/main.rs", Some(("xtask", Area::Src))),
            ("crates/core/src/x.md", None),
            ("scripts/x.rs", None),
        ];
        for (path, expected) in cases {
            let expected = expected.map(|(package, area)| (package.to_owned(), area));
            assert_eq!(place(path), expected, "{path}");
        }
    }

    #[test]
    fn shipped_code_is_told_from_tests() {
        let text = "//! A.\nfn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        let source = Source::sample("crates/core/src/a.rs", text);
        let lines: Vec<bool> = (1..=7).map(|line| source.is_test_line(line)).collect();
        assert_eq!(lines, [false, false, true, true, true, true, false]);
        assert!(source.is_shipped());
        for path in ["crates/core/src/a/tests.rs", "crates/core/tests/it/main.rs"] {
            assert!(!Source::sample(path, "//! A.\n").is_shipped(), "{path}");
        }
        assert!(!Source::sample("crates/lab/src/a.rs", text).is_shipped());
        assert!(!Source::sample("crates/derive/src/a.rs", text).is_shipped());
    }
}
