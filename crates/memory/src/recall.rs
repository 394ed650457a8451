//! Pure: which facts belong to a question, best first.
//!
//! A fact belongs to it when they share a word. Rare words count more than
//! common ones, a word in the key more than one in the category or the value,
//! and a sure fact more than a doubtful one. Scores are whole numbers, so that
//! the order is the same on every machine. A fact less trusted than wanted must
//! never come back, however well it fits.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use automaton_core::trust::Label;

use crate::Fact;

/// Which facts are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecallOptions {
    /// The most that come back.
    pub limit: usize,
    /// The least trusted label that may come back.
    pub least_trusted: Label,
}

/// How much a word counts by where it stands in the fact.
const KEY_WEIGHT: u64 = 3;
const CATEGORY_WEIGHT: u64 = 2;
const VALUE_WEIGHT: u64 = 1;

/// Words that say nothing about what a question is about.
const EMPTY_WORDS: [&str; 40] = [
    "a", "about", "an", "and", "any", "are", "as", "at", "be", "can", "did", "do", "for", "from",
    "have", "how", "i", "in", "is", "it", "me", "my", "of", "on", "or", "our", "that", "the", "to",
    "was", "we", "what", "when", "where", "which", "who", "with", "you", "your", "will",
];

/// The facts that share a word with the question, best first and of equally
/// good ones the newest first. A question without words gets the newest facts.
#[must_use]
pub fn rank(query: &str, mut facts: Vec<Fact>, wanted: &RecallOptions) -> Vec<Fact> {
    facts.retain(|fact| fact.value.label <= wanted.least_trusted);
    let asked: BTreeSet<String> =
        words(query).filter(|word| !EMPTY_WORDS.contains(&word.as_str())).collect();
    let total = facts.len();
    // Without a question no word counts.
    let weigh = |fact| if asked.is_empty() { BTreeMap::new() } else { weights(fact) };
    let entries: Vec<(&Fact, BTreeMap<String, u64>)> =
        facts.iter().map(|fact| (fact, weigh(fact))).collect();
    let rarity: BTreeMap<&str, u64> = asked
        .iter()
        .map(|word| {
            let holders = entries.iter().filter(|(_, weights)| weights.contains_key(word)).count();
            let ratio = total.checked_div(holders).unwrap_or(1).max(1);
            (word.as_str(), 1 + u64::from(ratio.ilog2()))
        })
        .collect();
    let score = |fact: &Fact, weights: &BTreeMap<String, u64>| -> u64 {
        let sum: u64 =
            rarity.iter().filter_map(|(word, rarity)| Some(weights.get(*word)? * rarity)).sum();
        // A fact of no confidence still comes before one that does not fit.
        sum * (1 + u64::from(fact.confidence_percent))
    };
    let mut ranked: Vec<(u64, &Fact)> =
        entries.iter().map(|(fact, weights)| (score(fact, weights), *fact)).collect();
    ranked.retain(|(score, _)| *score > 0 || asked.is_empty());
    ranked.sort_by_key(|(score, fact)| {
        (Reverse(*score), Reverse(fact.updated_at), &fact.category, &fact.key)
    });
    ranked.into_iter().take(wanted.limit).map(|(_, fact)| fact.clone()).collect()
}

/// The words of a fact, each with the greatest weight of a place where it stands.
fn weights(fact: &Fact) -> BTreeMap<String, u64> {
    let places = [
        (&fact.value.text, VALUE_WEIGHT),
        (&fact.category, CATEGORY_WEIGHT),
        (&fact.key, KEY_WEIGHT),
    ];
    // Later places weigh more, so the last entry for a word is the greatest.
    places.into_iter().flat_map(|(text, weight)| words(text).map(move |w| (w, weight))).collect()
}

/// The words of a text: letters and digits in lower case, without a plural `s`.
/// Where a script puts no space between words each character is one.
fn words(text: &str) -> impl Iterator<Item = String> {
    const FIRST_UNSPACED: char = '\u{2e80}';
    let lower = text.to_lowercase();
    let mut words = Vec::new();
    for run in lower.split(|c: char| !c.is_alphanumeric()) {
        let mut rest = run;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| *c >= FIRST_UNSPACED) {
            words.extend([rest[..at].to_owned(), c.to_string()]);
            rest = &rest[at + c.len_utf8()..];
        }
        let plural = rest.len() > 3 && rest.ends_with('s') && !rest.ends_with("ss");
        words.push(if plural { rest[..rest.len() - 1].to_owned() } else { rest.to_owned() });
    }
    words.into_iter().filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use automaton_core::time::Timestamp;
    use automaton_core::trust::Labelled;
    use proptest::prelude::*;

    fn fact(name: &str, text: &str, at: i64) -> Fact {
        let (category, key) = name.split_once('/').unwrap();
        Fact {
            category: category.to_owned(),
            key: key.to_owned(),
            value: Labelled::new(Label::Own, "test", text),
            confidence_percent: 100,
            updated_at: Timestamp::from_millis(at),
        }
    }

    const ALL: RecallOptions = RecallOptions { limit: 100, least_trusted: Label::Web };

    fn keys(query: &str, facts: &[Fact], wanted: &RecallOptions) -> Vec<String> {
        rank(query, facts.to_vec(), wanted).into_iter().map(|fact| fact.key).collect()
    }

    #[test]
    fn a_question_in_other_words_finds_its_fact() {
        let facts = [
            fact("environment/deploy_target", "servers in Oslo", 1),
            fact("self/favourite_colour", "the colour of rust", 2),
            fact("domain/weather", "the API is rate limited", 3),
        ];
        let found = keys("Where do we deploy the weather API to?", &facts, &ALL);
        assert_eq!(found, ["weather", "deploy_target"]);
        assert_eq!(keys("Server?", &facts, &ALL), ["deploy_target"]);
        assert!(keys("what is the", &facts, &ALL).len() == 3, "no words: the newest");
        assert!(keys("volcano", &facts, &ALL).is_empty());
    }

    #[test]
    fn rare_words_keys_and_confidence_count_more() {
        let facts = [fact("a/1", "red apple", 1), fact("a/2", "red red", 2), fact("a/3", "red", 3)];
        assert_eq!(keys("red apple", &facts, &ALL), ["1", "3", "2"]);
        let facts = [fact("a/blue", "x", 1), fact("blue/b", "x", 2), fact("a/c", "blue", 3)];
        assert_eq!(keys("blue", &facts, &ALL), ["blue", "b", "c"]);
        let unsure = Fact { confidence_percent: 0, ..fact("a/unsure", "blue", 9) };
        assert_eq!(keys("blue", &[unsure, fact("a/sure", "blue", 1)], &ALL), ["sure", "unsure"]);
    }

    #[test]
    fn without_a_question_the_newest_come_first_up_to_the_limit() {
        let facts = [fact("a/old", "x", 1), fact("a/new", "y", 3), fact("a/mid", "z", 2)];
        assert_eq!(keys(" ?! ", &facts, &RecallOptions { limit: 2, ..ALL }), ["new", "mid"]);
    }

    #[test]
    fn scripts_without_spaces_are_searched_by_character() {
        let facts = [fact("a/tokyo", "東京は首都", 1), fact("a/osaka", "大阪", 2)];
        assert_eq!(keys("首都", &facts, &ALL), ["tokyo"]);
    }

    proptest! {
        #[test]
        fn nothing_less_trusted_comes_back_and_nothing_twice(query in ".{0,30}", labels in prop::collection::vec(prop::sample::select(Label::ALL.to_vec()), 0..8), floor in prop::sample::select(Label::ALL.to_vec()), limit in 0..10_usize) {
            let make = |(at, label): (usize, &Label)| {
                let mut made = fact(&format!("a/{at}"), "some common words", i64::try_from(at).unwrap());
                made.value.label = *label;
                made
            };
            let facts: Vec<Fact> = labels.iter().enumerate().map(make).collect();
            let found = rank(&query, facts.clone(), &RecallOptions { limit, least_trusted: floor });
            prop_assert!(found.len() <= limit);
            prop_assert!(found.iter().all(|fact| fact.value.label <= floor));
            let keys: BTreeSet<&str> = found.iter().map(|fact| fact.key.as_str()).collect();
            prop_assert_eq!(keys.len(), found.len());
            prop_assert!(found.iter().all(|fact| facts.contains(fact)));
        }
    }
}
