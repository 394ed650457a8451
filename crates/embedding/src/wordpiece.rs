//! Pure: splits texts into the word pieces of a BERT-like model, by its `vocab.txt`.
//!
//! The steps are those of the uncased BERT models (Devlin et al. 2019, the basic tokenizer and
//! `WordPiece` of its reference implementation). Control characters are removed, and ideographs
//! and punctuation stand alone. Letters are lower case without accents. A word is split into the
//! longest known pieces, from its beginning. A text must never become more pieces than requested.

use std::collections::HashMap;

use icu_normalizer::{DecomposingNormalizer, DecomposingNormalizerBorrowed};
use unicode_general_category::{GeneralCategory, get_general_category};

use crate::{EmbeddingModelError, EncoderConfig};

/// The piece of an unknown word.
const UNKNOWN: &str = "[UNK]";

/// The prefix of a piece that continues a word.
const WITHIN: &str = "##";

/// The longest word that can be known, in characters.
const WORD_CHARS_MAX: usize = 100;

/// A vocabulary.
#[derive(Debug)]
pub struct WordPieces {
    ids: HashMap<String, usize>,
    count: usize,
    begin: usize,
    end: usize,
    unknown: usize,
}

impl WordPieces {
    /// Reads the vocabulary of a model, one piece a line.
    ///
    /// # Errors
    /// Fails if the model is not supported, or one of the three special pieces is missing.
    pub fn read(text: &str, config: &EncoderConfig) -> Result<Self, EmbeddingModelError> {
        Self::with_marks(text, config.family()?.special_pieces())
    }

    fn with_marks(
        text: &str,
        [begin, end]: [&'static str; 2],
    ) -> Result<Self, EmbeddingModelError> {
        let pieces = text.lines().enumerate();
        let ids: HashMap<String, usize> =
            pieces.map(|(id, piece)| (piece.to_owned(), id)).collect();
        let special = |piece: &'static str| {
            let missing = EmbeddingModelError::Vocabulary { piece };
            ids.get(piece).copied().ok_or(missing)
        };
        let begin = special(begin)?;
        let end = special(end)?;
        let unknown = special(UNKNOWN)?;
        Ok(Self { begin, end, unknown, ids, count: text.lines().count() })
    }

    /// Returns the number of pieces. Duplicates count twice.
    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    /// Splits a text into its pieces, including the first and the last special piece. Returns at
    /// most `most` pieces, but at least these two.
    pub(crate) fn split_text(&self, text: &str, most: usize) -> Vec<usize> {
        let mut pieces = vec![self.begin];
        for word in words(text) {
            if pieces.len() >= most {
                break;
            }
            self.add(&word, &mut pieces);
        }
        pieces.truncate(most.saturating_sub(1).max(1));
        pieces.push(self.end);
        pieces
    }

    /// Adds the pieces of one word.
    fn add(&self, word: &str, pieces: &mut Vec<usize>) {
        let before = pieces.len();
        let mut rest = word;
        if word.chars().count() > WORD_CHARS_MAX {
            pieces.push(self.unknown);
            return;
        }
        while !rest.is_empty() {
            let prefix = if rest.len() == word.len() { "" } else { WITHIN };
            let ends = rest.char_indices().map(|(at, char)| at + char.len_utf8()).rev();
            let known = ends
                .filter_map(|end| Some((*self.ids.get(&format!("{prefix}{}", &rest[..end]))?, end)))
                .next();
            let Some((id, end)) = known else {
                pieces.truncate(before);
                pieces.push(self.unknown);
                return;
            };
            pieces.push(id);
            rest = &rest[end..];
        }
    }
}

/// Splits a text into words: lower case, without accents, with punctuation and ideographs alone.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let clean = text.chars().filter(|char| !is_removed(*char));
    let parts: DecomposingNormalizerBorrowed<'_> = DecomposingNormalizer::new_nfd();
    let small = parts.normalize_iter(clean.flat_map(char::to_lowercase));
    let plain = small.filter(|char| get_general_category(*char) != GeneralCategory::NonspacingMark);
    for char in plain {
        if char.is_whitespace() {
            words.push(String::new());
        } else if is_punctuation(char) || is_ideograph(char) {
            words.push(char.to_string());
            words.push(String::new());
        } else if let Some(word) = words.last_mut() {
            word.push(char);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn is_removed(char: char) -> bool {
    let is_space = matches!(char, '\t' | '\n' | '\r');
    let other = matches!(
        get_general_category(char),
        GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::PrivateUse
            | GeneralCategory::Surrogate
            | GeneralCategory::Unassigned
    );
    char == '\u{fffd}' || (other && !is_space)
}

fn is_punctuation(char: char) -> bool {
    use GeneralCategory as Category;
    char.is_ascii_punctuation()
        || matches!(
            get_general_category(char),
            Category::ConnectorPunctuation
                | Category::DashPunctuation
                | Category::OpenPunctuation
                | Category::ClosePunctuation
                | Category::InitialPunctuation
                | Category::FinalPunctuation
                | Category::OtherPunctuation
        )
}

/// The blocks of CJK ideographs, as BERT's tokenizer lists them.
const fn is_ideograph(char: char) -> bool {
    matches!(
        char,
        '\u{4e00}'..='\u{9fff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{20000}'..='\u{2a6df}'
            | '\u{2a700}'..='\u{2b73f}'
            | '\u{2b740}'..='\u{2b81f}'
            | '\u{2b820}'..='\u{2ceaf}'
            | '\u{f900}'..='\u{faff}'
            | '\u{2f800}'..='\u{2fa1f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::EncoderFamily;
    use proptest::prelude::*;

    fn vocabulary() -> WordPieces {
        let lines =
            "[PAD]\n[UNK]\n[CLS]\n[SEP]\nboat\n##s\nun\n##able\n.\n東\n京\ncafe\nwant\n##ed";
        WordPieces::with_marks(lines, EncoderFamily::Bert.special_pieces()).unwrap()
    }

    #[test]
    fn a_text_becomes_the_longest_pieces_that_are_known() {
        let pieces = |text: &str| vocabulary().split_text(text, 16);
        assert_eq!(pieces("BOATS."), [2, 4, 5, 8, 3]);
        assert_eq!(pieces("unable café\u{200b}"), [2, 6, 7, 11, 3]);
        assert_eq!(pieces("東京 \u{1} xyz"), [2, 9, 10, 1, 3]);
        assert_eq!(pieces("wanteds unwanted"), [2, 12, 13, 5, 1, 3]);
        assert_eq!(pieces(&"a".repeat(101)), [2, 1, 3]);
        assert_eq!(pieces(""), [2, 3]);
        assert_eq!(vocabulary().split_text("boat boat boat", 4), [2, 4, 4, 3]);
    }

    #[test]
    fn a_vocabulary_without_its_special_pieces_is_none() {
        let missing = |family: EncoderFamily| {
            WordPieces::with_marks("[CLS]\n[UNK]\n<s>", family.special_pieces())
                .unwrap_err()
                .to_string()
        };
        assert!(missing(EncoderFamily::Bert).contains("[SEP]"));
        assert!(missing(EncoderFamily::Mpnet).contains("</s>"));
    }

    proptest! {
        #[test]
        fn no_text_becomes_too_many(text in "\\PC{0,40}|[a-z .]{0,80}", most in 2..20_usize) {
            let pieces = vocabulary().split_text(&text, most);
            prop_assert!((2..=most).contains(&pieces.len()));
            prop_assert_eq!((pieces[0], pieces[pieces.len() - 1]), (2, 3));
        }
    }
}
