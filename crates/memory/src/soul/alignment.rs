//! Pure: how far a purpose is from what it was made of, by its words.
//!
//! It compares words, and reads none: a faithful paraphrase scores low, and a lie in the same
//! words high. So it is told, and never decides.

use std::collections::BTreeSet;
use std::fmt;

use automaton_core::terms::terms;
use serde::{Deserialize, Serialize};

/// How much a purpose says what another text says, in ten-thousandths: 10,000 where it is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Alignment(pub u32);

impl Alignment {
    /// The same words.
    pub const WHOLE: Self = Self(10_000);
}

impl fmt::Display for Alignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:04}", self.0 / 10_000, self.0 % 10_000)
    }
}

/// Words after which the rest of a clause says what is not to be, as `terms` has them.
const NEGATIONS: [&str; 16] = [
    "not", "never", "no", "don", "dont", "nor", "without", "avoid", "cannot", "nie", "nicht",
    "kein", "pas", "jamais", "nunca", "不",
];

/// The alignment of a purpose with a genesis prompt: the mean of the share of their words that
/// they have together, and of the share of the genesis prompt's that the purpose has. A word that
/// is denied is another word. Nothing says nothing: an empty text aligns with none.
#[must_use]
pub fn alignment(purpose: &str, genesis: &str) -> Alignment {
    let ours = words(purpose);
    let theirs = words(genesis);
    let common = ours.intersection(&theirs).count();
    let all = ours.union(&theirs).count();
    if ours.is_empty() || theirs.is_empty() {
        return Alignment(0);
    }
    let part = |of: usize| common.saturating_mul(10_000) / of.max(1);
    let mean = usize::midpoint(part(all), part(theirs.len()));
    Alignment(u32::try_from(mean).unwrap_or(0))
}

/// The words of a text, each with whether its clause denies it.
fn words(text: &str) -> BTreeSet<(bool, String)> {
    let ends = |c: char| ".,;:!?\n…—()。，；：！？、".contains(c);
    let mut words = BTreeSet::new();
    for clause in text.split(ends) {
        let mut denied = false;
        for word in terms(clause) {
            denied |= NEGATIONS.contains(&word.as_str());
            words.insert((denied, word));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_whole_in_every_script_and_nothing_is_none() {
        for text in ["Build useful tools for people.", "不断学习并帮助人们", "Строй лодки", "أبني"]
        {
            assert_eq!(alignment(text, text), Alignment::WHOLE, "{text}");
        }
        for (one, other) in [("", "Build"), ("Build", ""), ("Build", "Sing"), ("?!", "?!")] {
            assert_eq!(alignment(one, other), Alignment(0), "{one} {other}");
        }
        assert_eq!(Alignment(9_670).to_string(), "0.9670");
    }

    #[test]
    fn what_says_the_reverse_in_the_same_words_is_far_away() {
        let genesis = "Always build open tools for people. Never trade crypto with borrowed money.";
        let reverse = "Always trade crypto with borrowed money. Never build open tools for people.";
        assert!(alignment(reverse, genesis) < Alignment(3_000), "{}", alignment(reverse, genesis));
        let more = format!("{genesis} I do it in Rust.");
        assert!(alignment(&more, genesis) > Alignment(8_000));
    }
}
