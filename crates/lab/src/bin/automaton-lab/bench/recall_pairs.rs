//! Pure but for reading files: what was said once, and the questions that ask for it in other words.
//!
//! Ours are a file for each author, so that what was tuned by some is measured by others. A line
//! that is no pair is told with its number, and never skipped.

use std::fs;
use std::path::PathBuf;

use automaton::error::CliError;
use automaton_core::trust::Label;

/// Our own, by author. What is tuned is tuned by the first two.
const AUTHORS: [(&str, &str); 8] = [
    ("first", include_str!("../../../../assets/bench/memory/first.tsv")),
    ("anna", include_str!("../../../../assets/bench/memory/anna.tsv")),
    ("bo", include_str!("../../../../assets/bench/memory/bo.tsv")),
    ("carlos", include_str!("../../../../assets/bench/memory/carlos.tsv")),
    ("dara", include_str!("../../../../assets/bench/memory/dara.tsv")),
    ("eliza", include_str!("../../../../assets/bench/memory/eliza.tsv")),
    ("greta", include_str!("../../../../assets/bench/memory/greta.tsv")),
    ("sources", include_str!("../../../../assets/bench/memory/sources.tsv")),
];

/// Separator between an older fact and its replacement.
const REPLACED_BY: &str = " || ";

/// A fact and a question for it.
#[derive(Debug)]
pub(super) struct RecallPair {
    /// Author.
    pub(super) author: String,
    /// Difficulty.
    pub(super) kind: String,
    pub(super) language: String,
    /// Earlier fact.
    pub(super) older: Option<String>,
    pub(super) said: String,
    /// From whom that came; the creator says most.
    pub(super) label: Label,
    pub(super) source: String,
    /// Empty for what is only in the way.
    pub(super) asked: String,
}

impl RecallPair {
    pub(super) const fn is_asked(&self) -> bool {
        !self.asked.is_empty()
    }
}

/// The pairs of these files, or ours.
///
/// # Errors
/// When a file cannot be read, or a line is no pair.
pub(super) fn read(files: &[PathBuf]) -> Result<Vec<RecallPair>, CliError> {
    let mut pairs = Vec::new();
    for file in files {
        let author = file.file_stem().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(file).map_err(|error| {
            CliError::user(format!("cannot read {}", file.display())).because(&error)
        })?;
        of_author(&author, &text, &mut pairs)?;
    }
    if files.is_empty() {
        for (author, text) in AUTHORS {
            of_author(author, text, &mut pairs)?;
        }
    }
    Ok(pairs)
}

fn of_author(author: &str, text: &str, pairs: &mut Vec<RecallPair>) -> Result<(), CliError> {
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        pairs.push(pair(author, at + 1, line)?);
    }
    Ok(())
}

fn pair(author: &str, line: usize, text: &str) -> Result<RecallPair, CliError> {
    let parts: Vec<&str> = text.split('\t').collect();
    let [kind, language, said, asked] = parts[..] else {
        let count = parts.len();
        let what = format!("line {line} of {author} is no pair: it has {count} parts, not 4");
        return Err(CliError::user(what).hint("kind, language, what was said, the question"));
    };
    let (older, said) = match said.split_once(REPLACED_BY) {
        Some((older, said)) => (Some(older.to_owned()), said),
        None => (None, said),
    };
    let (label, source, said) = origin(said).ok_or_else(|| {
        let what = format!("line {line} of {author} is no pair: nobody can be who says it");
        CliError::user(what).hint("[peer anna], with the name of a label and of the sender")
    })?;
    Ok(RecallPair {
        author: author.to_owned(),
        kind: kind.to_owned(),
        language: language.to_owned(),
        older,
        said: said.to_owned(),
        label,
        source: source.to_owned(),
        asked: asked.to_owned(),
    })
}

/// Returns from whom a text comes, by the place before it, and the text; nothing if that place
/// names nobody.
fn origin(text: &str) -> Option<(Label, &str, &str)> {
    let Some((place, said)) = text.strip_prefix('[').and_then(|text| text.split_once("] ")) else {
        return Some((Label::Creator, "creator", text));
    };
    let (label, source) = place.split_once(' ')?;
    Some((Label::by_name(label)?, source, said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_pairs_are_pairs_and_bad_ones_are_told_by_their_line() {
        let pairs = read(&[]).unwrap();
        assert!(pairs.len() >= 600 && pairs.iter().any(|pair| pair.older.is_some()));
        let error = pair("me", 3, "a\tb").unwrap_err().to_string();
        assert!(error.contains("line 3"), "{error}");
        let error = pair("me", 4, "a\ten\t[king anna] Hello.\tb").unwrap_err().to_string();
        assert!(error.contains("line 4"), "{error}");
        let annas = pair("me", 4, "a\ten\t[peer anna] Hello.\tb").unwrap();
        assert_eq!(
            (annas.label, annas.source.as_str(), annas.said.as_str()),
            (Label::Peer, "anna", "Hello.")
        );
        let in_the_way = pair("me", 1, "talk\ten\tHello there.\t").unwrap();
        assert!(!in_the_way.is_asked() && pairs.iter().all(RecallPair::is_asked));
    }
}
