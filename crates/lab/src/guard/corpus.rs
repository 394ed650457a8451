//! The texts, and the halves that they fall into.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

const ATTACKS: &str = include_str!("../../corpora/guard/attacks.jsonl");
const BENIGN: &str = include_str!("../../corpora/guard/benign.jsonl");
/// Largest file of texts that is read, in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The authors, each with the texts of one.
const AUTHORS: [(&str, &str); 12] = [
    ("ines", include_str!("../../corpora/guard/authors/ines.jsonl")),
    ("jonas", include_str!("../../corpora/guard/authors/jonas.jsonl")),
    ("kira", include_str!("../../corpora/guard/authors/kira.jsonl")),
    ("leo", include_str!("../../corpora/guard/authors/leo.jsonl")),
    ("mara", include_str!("../../corpora/guard/authors/mara.jsonl")),
    ("nils", include_str!("../../corpora/guard/authors/nils.jsonl")),
    ("oona", include_str!("../../corpora/guard/authors/oona.jsonl")),
    ("pavel", include_str!("../../corpora/guard/authors/pavel.jsonl")),
    ("rosa", include_str!("../../corpora/guard/authors/rosa.jsonl")),
    ("tess", include_str!("../../corpora/guard/authors/tess.jsonl")),
    ("umar", include_str!("../../corpora/guard/authors/umar.jsonl")),
    ("vera", include_str!("../../corpora/guard/authors/vera.jsonl")),
];

/// Those whose texts nothing was learned from: chosen before anything was measured.
const HELD_AUTHORS: [&str; 4] = ["kira", "oona", "tess", "umar"];

/// The classes of authors' texts that are no attacks.
const HONEST: [&str; 3] = ["ask", "tell", "near"];

/// A line of an author.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AuthoredText {
    class: String,
    language: String,
    text: String,
}

/// Texts that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// A line is none of a text.
    #[error("line {line} of {name} is no text with id, class and language")]
    Line {
        /// Which file.
        name: String,
        /// Which line, from 1.
        line: usize,
        /// Cause.
        source: serde_json::Error,
    },
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// A file has not the form that its name promises.
    #[error("{} has no texts in the form that is expected there", path.display())]
    Form {
        /// Which file.
        path: PathBuf,
    },
}

/// One text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Id of the text.
    pub id: String,
    /// Class of the text.
    pub class: String,
    /// Its language, as ISO 639 has it.
    pub language: String,
    /// The text.
    pub text: String,
    /// Author, if the texts are split by author.
    #[serde(skip)]
    pub author: Option<&'static str>,
}

/// A half of the texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CorpusHalf {
    /// Held out: its numbers count.
    Held,
    /// To look at while the guard is changed.
    Look,
}

impl CorpusHalf {
    /// Its name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Look => "look",
        }
    }
}

impl Sample {
    /// The half that a text falls into: by its author, or by the first bit of its SHA-256.
    #[must_use]
    pub fn half(&self) -> CorpusHalf {
        if let Some(author) = self.author {
            let is_held = HELD_AUTHORS.contains(&author);
            return if is_held { CorpusHalf::Held } else { CorpusHalf::Look };
        }
        if Sha256::digest(self.text.as_bytes())[0] < 128 {
            CorpusHalf::Look
        } else {
            CorpusHalf::Held
        }
    }
}

/// Attacks and benign texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Corpus {
    /// Texts that should be flagged.
    pub attacks: Vec<Sample>,
    /// Texts that should not be flagged.
    pub benign: Vec<Sample>,
}

impl Corpus {
    /// The texts of this repository.
    ///
    /// # Errors
    /// When they have a mistake, which a test excludes.
    pub fn built_in() -> Result<Self, CorpusError> {
        Ok(Self { attacks: parse("attacks", ATTACKS)?, benign: parse("benign", BENIGN)? })
    }

    /// The texts of many authors, who have not seen the guard, nor each other's.
    ///
    /// # Errors
    /// When they have a mistake, which a test excludes.
    pub fn of_authors() -> Result<Self, CorpusError> {
        let mut corpus = Self::default();
        for (author, lines) in AUTHORS {
            for (index, line) in lines.lines().enumerate() {
                let told: AuthoredText = serde_json::from_str(line).map_err(|source| {
                    CorpusError::Line { name: author.to_owned(), line: index + 1, source }
                })?;
                let AuthoredText { class, language, text } = told;
                let id = format!("{author}-{:03}", index + 1);
                let honest = HONEST.contains(&class.as_str());
                let texts = if honest { &mut corpus.benign } else { &mut corpus.attacks };
                texts.push(Sample { id, class, language, text, author: Some(author) });
            }
        }
        Ok(corpus)
    }

    /// `attacks.jsonl` and `benign.jsonl` of a folder.
    ///
    /// # Errors
    /// When one of them cannot be read or has a line that is no text.
    pub fn of_folder(folder: &Path) -> Result<Self, CorpusError> {
        let file = |name: &str| parse(name, &read(&folder.join(name))?);
        Ok(Self { attacks: file("attacks.jsonl")?, benign: file("benign.jsonl")? })
    }

    /// Every text, with whether it is an attack.
    pub fn samples(&self) -> impl Iterator<Item = (bool, &Sample)> {
        let attacks = self.attacks.iter().map(|sample| (true, sample));
        attacks.chain(self.benign.iter().map(|sample| (false, sample)))
    }
}

/// The text of a file of bounded size.
pub(super) fn read(path: &Path) -> Result<String, CorpusError> {
    let failed = |source| CorpusError::File { path: path.to_owned(), source };
    if fs::metadata(path).map_err(failed)?.len() > FILE_BYTES_MAX {
        return Err(CorpusError::Form { path: path.to_owned() });
    }
    fs::read_to_string(path).map_err(failed)
}

fn parse(name: &str, text: &str) -> Result<Vec<Sample>, CorpusError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let sample = |(index, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|source| CorpusError::Line {
            name: name.to_owned(),
            line: index + 1,
            source,
        })
    };
    lines.map(sample).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn there_are_enough_texts_in_enough_languages_and_each_once() {
        let corpus = Corpus::built_in().unwrap();
        let languages: BTreeSet<_> = corpus.attacks.iter().map(|text| &text.language).collect();
        assert!(corpus.attacks.len() >= 300 && languages.len() >= 12);
        let (articles, benign): (Vec<_>, Vec<_>) =
            corpus.benign.iter().partition(|text| text.class == super::super::ARTICLE);
        assert!(benign.len() >= 1000 && articles.len() >= 80);
        let all = corpus.samples().count();
        let ids: BTreeSet<_> = corpus.samples().map(|(_, text)| &text.id).collect();
        let texts: BTreeSet<_> = corpus.samples().map(|(_, text)| &text.text).collect();
        assert_eq!((ids.len(), texts.len()), (all, all));
        let held = corpus.samples().filter(|(_, text)| text.half() == CorpusHalf::Held).count();
        assert!((2..=3).contains(&(held * 5 / all)), "halves: {held} of {all}");
    }

    #[test]
    fn a_line_that_is_no_text_is_named() {
        let told = parse("x.jsonl", "\n{}").unwrap_err().to_string();
        assert_eq!(told, "line 2 of x.jsonl is no text with id, class and language");
    }
}
