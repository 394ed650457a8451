//! Pure: the tasks: what lies in the workspace, what the creator says and when, what must
//! have come of it, and how a competent model goes about it.
//!
//! All is made from the names of the tasks, so that each run is the same. A solver must
//! never know anything of a case but what it is told or reads: words, names and numbers
//! that are looked for are made here and nowhere else.

mod briefs;
mod doing;
mod memory;
mod reading;
mod talk;

use super::solver::{Solver, SolverContext, SolverResult, missing};
use super::view::between;

/// A task.
pub struct WorkTask {
    /// Its name.
    pub name: &'static str,
    /// Description in a few words.
    pub what: &'static str,
    pub(super) case: fn() -> WorkCase,
    pub(super) solver: Solver,
}

/// Start of a task, and its expected results.
#[derive(Debug, Default)]
pub(super) struct WorkCase {
    /// Files of the workspace.
    pub(super) files: Vec<(String, String)>,
    /// Messages of the creator.
    pub(super) script: Vec<(ScriptTiming, String)>,
    pub(super) wants: Vec<WorkExpectation>,
}

/// Time of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScriptTiming {
    /// At the beginning.
    Start,
    /// After this number of answered requests.
    Turn(u64),
    /// When it sleeps again after the previous message, and this many days later.
    Asleep {
        /// The days.
        days: i64,
    },
}

/// An expected result.
#[derive(Debug)]
pub(super) enum WorkExpectation {
    /// A file holds this text, but for blanks and line ends around it.
    File(String, String),
    /// There is no such file.
    NoFile(String),
    /// A message to the creator holds this text.
    Told(String),
}

/// All tasks.
pub fn all() -> impl Iterator<Item = &'static WorkTask> {
    [briefs::TASKS, reading::TASKS, doing::TASKS, talk::TASKS, memory::TASKS].into_iter().flatten()
}

impl WorkCase {
    /// One thing that the creator says at the beginning.
    fn with_message(words: impl Into<String>) -> Self {
        Self::default().says(ScriptTiming::Start, words)
    }

    fn says(mut self, when: ScriptTiming, words: impl Into<String>) -> Self {
        self.script.push((when, words.into()));
        self
    }

    fn file(mut self, path: impl Into<String>, text: impl Into<String>) -> Self {
        self.files.push((path.into(), text.into()));
        self
    }

    fn wants(mut self, path: impl Into<String>, text: impl Into<String>) -> Self {
        self.wants.push(WorkExpectation::File(path.into(), text.into()));
        self
    }

    fn hears(mut self, text: impl Into<String>) -> Self {
        self.wants.push(WorkExpectation::Told(text.into()));
        self
    }
}

/// A number that looks like chance and is the same in every run.
fn hash(of: &str, n: usize) -> u64 {
    let mut state = n as u64 ^ 0x9E37_79B9_7F4A_7C15;
    for byte in of.bytes() {
        state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    }
    state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ (state >> 31)
}

/// One of so many.
fn choice(of: &str, n: usize, count: usize) -> usize {
    usize::try_from(hash(of, n) % count.max(1) as u64).unwrap_or(0)
}

/// A word that nobody can guess.
fn word(of: &str, n: usize) -> String {
    const SYLLABLES: [&str; 16] = [
        "ba", "ce", "di", "fo", "gu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "wu",
        "za",
    ];
    let hash = hash(of, n);
    let syllables = (0..5).map(|at| SYLLABLES[usize::try_from(hash >> (at * 4) & 15).unwrap_or(0)]);
    syllables.collect()
}

/// Sentences of so many characters at least, without a word that matters.
fn prose(of: &str, n: usize, chars: usize) -> String {
    const WORDS: [&str; 24] = [
        "the", "morning", "report", "was", "kept", "with", "care", "and", "every", "visitor",
        "found", "a", "quiet", "place", "near", "old", "harbour", "where", "boats", "come", "in",
        "late", "after", "rain",
    ];
    let mut text = String::new();
    let mut at = 0;
    while text.len() < chars {
        let new = if at % 11 == 0 { "So " } else { " " };
        text.push_str(if at % 11 == 0 && at > 0 { ". So " } else { new });
        text.push_str(WORDS[choice(of, n * 1009 + at, WORDS.len())]);
        at += 1;
    }
    text.trim_start().to_owned() + "."
}

/// A list of orders to write words into files: the creator's lines, and what comes of them.
fn orders(list: &str, count: usize, folder: &str, chars: usize) -> (String, Vec<(String, String)>) {
    let mut lines = String::new();
    let mut files = Vec::new();
    for n in 1..=count {
        let path = format!("{folder}/{n:02}.txt");
        let word = word(list, n);
        let why = prose(list, n, chars);
        lines.push_str(&format!("{list}{n}. Write the word {word} to the file {path}; {why}\n"));
        files.push((path, word));
    }
    (lines, files)
}

/// Carries out such a list: each order as it is found in the creator's words.
fn carry_out(ctx: &mut SolverContext<'_>, list: &str) -> SolverResult<()> {
    let count = ctx.creator_said("Carry out the ", &format!(" orders of list {list}"))?;
    let Ok(count) = count.parse::<usize>() else { return missing("the number of orders") };
    for n in 1..=count {
        let key = format!("order {list}{n}");
        if ctx.is_done(&key)? {
            continue;
        }
        let order = ctx.item(&format!("{list}{n}"))?;
        let (path, word) = order_of(&order)?;
        ctx.write(&key, &path, &word)?;
    }
    ctx.settle()
}

/// The file and the word of an order.
fn order_of(order: &str) -> SolverResult<(String, String)> {
    let word = between(order, "Write the word ", " to the file ");
    match word.zip(between(order, " to the file ", "; ")) {
        Some((word, path)) => Ok((path.to_owned(), word.to_owned())),
        None => missing(format!("what is to be written by {order:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_made_and_wants_something() {
        let mut names = std::collections::BTreeSet::new();
        for task in all() {
            let case = (task.case)();
            assert!(!case.script.is_empty() && !case.wants.is_empty(), "{}", task.name);
            assert!(names.insert(task.name), "{} is there twice", task.name);
            for (_, words) in &case.script {
                assert!(words.len() < 64_000, "{}: more than a message may have", task.name);
            }
        }
        assert!(names.len() >= 30, "{}", names.len());
    }

    #[test]
    fn the_brief_has_sixty_orders_and_eight_thousand_characters() {
        let brief = &(all().next().unwrap().case)().script[0].1;
        assert!((7_500..=8_500).contains(&brief.len()), "{}", brief.len());
        assert_eq!(brief.matches("Write the word ").count(), 60);
    }
}
