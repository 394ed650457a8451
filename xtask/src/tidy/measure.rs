//! Pure: the sizes of files and crates.

use std::collections::BTreeMap;

use crate::lexer::Class;
use crate::tree::TextFile;

use super::functions::{Function, functions};
use super::paths::paths;
use super::plain::{self, PlainCounts};
use super::source::{Area, LAB, Source};

/// Counts over the lines of some code that are not compiled for tests alone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    /// All lines, blank ones and comments too.
    pub(crate) lines: usize,
    pub(crate) code: usize,
    /// Characters of the code, without comments and indentation.
    pub(crate) characters: usize,
    pub(crate) comments: usize,
    /// Lines that only tests compile, wherever they stand.
    pub(crate) test_lines: usize,
    pub(crate) structs: usize,
    pub(crate) newtypes: usize,
    /// Positions typed `&str` or `String`.
    pub(crate) strings: usize,
    /// Mentions of the type of any JSON.
    pub(crate) values: usize,
    pub(crate) plain: PlainCounts,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.lines += other.lines;
        self.code += other.code;
        self.characters += other.characters;
        self.comments += other.comments;
        self.test_lines += other.test_lines;
        self.structs += other.structs;
        self.newtypes += other.newtypes;
        self.strings += other.strings;
        self.values += other.values;
        self.plain.add(other.plain);
    }
}

/// A file with its counts and its functions.
#[derive(Debug, Clone)]
pub(crate) struct FileSize {
    pub(crate) path: String,
    /// Whose it counts as.
    pub(crate) package: String,
    pub(crate) shipped: bool,
    pub(crate) counts: Counts,
    /// Those that are not for tests alone.
    pub(crate) functions: Vec<Function>,
}

/// Everything that the budget and the report speak of.
#[derive(Debug, Default)]
pub(crate) struct Sizes {
    pub(crate) files: Vec<FileSize>,
    /// Packages in the lock file of the main workspace.
    pub(crate) packages: usize,
}

impl Sizes {
    /// Measures every file.
    pub(crate) fn of(sources: &[Source], files: &[TextFile]) -> Self {
        let measured = sources.iter().filter(|source| source.area != Area::Fixture).map(measure);
        let lock = files.iter().find(|file| file.path == "Cargo.lock");
        let packages = lock.map_or(0, |lock| lock.text.matches("[[package]]").count());
        Self { files: measured.collect(), packages }
    }

    /// The counts of each package, in order of name.
    pub(crate) fn by_package(&self) -> BTreeMap<&str, Counts> {
        let mut packages: BTreeMap<&str, Counts> = BTreeMap::new();
        for file in &self.files {
            packages.entry(&file.package).or_default().add(&file.counts);
        }
        packages
    }

    /// The counts of all that users run.
    pub(crate) fn shipped(&self) -> Counts {
        let mut total = Counts::default();
        for file in self.files.iter().filter(|file| self.ships(&file.package)) {
            total.add(&file.counts);
        }
        total
    }

    /// The counts of the laboratory.
    pub(crate) fn lab(&self) -> Counts {
        let mut total = Counts::default();
        for file in self.files.iter().filter(|file| LAB.contains(&file.package.as_str())) {
            total.add(&file.counts);
        }
        total
    }

    /// The counts of riddling forms in all crates, the laboratory's too.
    pub(crate) fn plain(&self) -> PlainCounts {
        let mut total = PlainCounts::default();
        for file in &self.files {
            total.add(file.counts.plain);
        }
        total
    }

    /// The length that nine in ten shipped files keep within.
    pub(crate) fn file_p90(&self) -> usize {
        let shipped = self.files.iter().filter(|file| file.shipped);
        let mut lengths: Vec<usize> = shipped.map(|file| file.counts.lines).collect();
        lengths.sort_unstable();
        lengths.get(lengths.len() * 9 / 10).or(lengths.last()).copied().unwrap_or(0)
    }

    /// Whether any file of a package is for users.
    pub(crate) fn ships(&self, package: &str) -> bool {
        self.files.iter().any(|file| file.package == package && file.shipped)
    }
}

fn measure(source: &Source) -> FileSize {
    let mut counts = count_lines(source);
    count_types(source, &mut counts);
    counts.characters = plain::count_characters(source);
    counts.plain = plain::count(source);
    let functions = functions(&source.tokens())
        .into_iter()
        .filter(|function| !source.is_test_line(function.line))
        .collect();
    // What no product build compiles is the laboratory's, wherever it lies.
    let elsewhere = source.is_lab && !LAB.contains(&source.package.as_str());
    let package = if elsewhere { LAB[0] } else { &source.package };
    FileSize {
        path: source.path.clone(),
        package: package.to_owned(),
        shipped: source.is_shipped(),
        counts,
        functions,
    }
}

fn count_lines(source: &Source) -> Counts {
    let mut commented = vec![false; source.text.lines().count() + 1];
    for piece in source.pieces.iter().filter(|piece| piece.class == Class::Comment) {
        commented[source.line_of(piece.start) - 1..source.line_of(piece.end)].fill(true);
    }
    let mut counts = Counts::default();
    for (index, (text, code)) in source.text.lines().zip(source.code.lines()).enumerate() {
        if source.is_test_line(index + 1) {
            counts.test_lines += 1;
            continue;
        }
        counts.lines += 1;
        if commented[index] && code.trim().is_empty() {
            counts.comments += 1;
        } else if !text.trim().is_empty() {
            counts.code += 1;
        }
    }
    counts
}

fn count_types(source: &Source, counts: &mut Counts) {
    let tokens = source.tokens();
    let names_value = paths(&tokens).iter().any(|path| path.is_below(&["serde_json", "Value"]));
    for (at, token) in tokens.iter().enumerate() {
        if source.is_test_line(token.line) {
            continue;
        }
        let after: Vec<&str> = tokens[at + 1..].iter().take(3).map(|next| next.text).collect();
        match (token.text, &after[..]) {
            (":", ["String", ..] | ["&", "str", ..]) => counts.strings += 1,
            (":", ["&", life, "str"]) if life.starts_with('\'') => counts.strings += 1,
            ("Value", _) if names_value => counts.values += 1,
            ("struct", [_, next, ..]) => {
                counts.structs += 1;
                if *next == "(" || *next == "<" {
                    counts.newtypes += usize::from(has_one_field(&tokens[at + 2..]));
                }
            }
            _ => {}
        }
    }
}

/// Whether a struct's tail, from its generics on, is a tuple of one field.
fn has_one_field(tail: &[crate::lexer::Token<'_>]) -> bool {
    let mut depth = 0_usize;
    let mut fields = 0;
    for (at, token) in tail.iter().enumerate() {
        match token.text {
            "(" | "[" | "<" => {
                if depth == 0 && token.text == "(" {
                    fields = 1;
                }
                depth += 1;
            }
            ")" | "]" | ">" => depth = depth.saturating_sub(1),
            "," if depth == 1 && fields > 0 => {
                let last = tail.get(at + 1).is_some_and(|next| next.text == ")");
                fields += usize::from(!last);
            }
            "{" | ";" if depth == 0 => return fields == 1 && token.text == ";",
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(text: &str) -> Counts {
        measure(&Source::sample("crates/core/src/a.rs", text)).counts
    }

    #[test]
    fn lines_are_code_comment_blank_or_test() {
        let text = "//! Doc.\n\nfn a() {} // why\n/* b\n c */\nlet d = \"\n// no comment\n\";\n\
                    #[cfg(test)]\nmod tests {}\n";
        let found = counts(text);
        assert_eq!((found.lines, found.code, found.comments), (8, 4, 3));
        assert_eq!(found.test_lines, 2);
    }

    #[test]
    fn types_are_counted() {
        let text = "use serde_json::Value;\nstruct A(u8);\nstruct B<'a, T>(pub(crate) &'a [T; 2],);\n\
                    struct C(u8, u8);\nstruct D { a: String, b: &'static str, c: Value }\nstruct E;\n\
                    fn f(a: &str, b: &String) {}\n";
        let found = counts(text);
        assert_eq!((found.structs, found.newtypes), (5, 2));
        assert_eq!((found.strings, found.values), (3, 2));
        assert_eq!(counts("struct Value; fn f(a: Value) {}").values, 0);
    }

    #[test]
    fn totals_leave_out_the_laboratory() {
        let line = "fn a() {}\n";
        let sources = [
            Source::sample("crates/core/src/a.rs", &line.repeat(10)),
            Source::sample("crates/core/src/tests.rs", &line.repeat(5)),
            Source::sample("crates/lab/src/a.rs", &line.repeat(100)),
            {
                let mut gated = Source::sample("crates/core/src/drill.rs", &line.repeat(7));
                gated.is_lab = true;
                gated
            },
        ];
        let lock = TextFile { path: "Cargo.lock".to_owned(), text: "[[package]]\n".repeat(3) };
        let sizes = Sizes::of(&sources, &[lock]);
        let shipped = sizes.shipped();
        assert_eq!((shipped.lines, shipped.test_lines), (10, 5));
        assert_eq!(sizes.lab().lines, 107);
        assert_eq!((sizes.packages, sizes.file_p90()), (3, 10));
    }
}
