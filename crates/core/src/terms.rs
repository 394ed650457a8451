//! Pure: the words of a text by which it is found again.
//!
//! Whatever is indexed and whatever is asked goes through [`terms`], so that both sides
//! agree. It must never fail on any text, and gives the same words on every machine.

use std::collections::BTreeSet;

/// First character of the scripts without spaces between words: CJK and later ones.
const FIRST_UNSPACED: char = '\u{2e80}';

/// Longest word that is kept, in characters; a longer one is cut.
const WORD_CHARS_MAX: usize = 40;

/// Words that say nothing about what a text is about.
const STOP_WORDS: &str = include_str!("stop_words.txt");

/// The words of a text in their order: letters and digits in lower case, without the endings of
/// English. Where a script puts no space between words each character is one, and each pair.
#[must_use]
pub fn terms(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let mut words = Vec::new();
    for run in lower.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty()) {
        let mut word = String::new();
        let mut before: Option<char> = None;
        for c in run.chars() {
            if c < FIRST_UNSPACED {
                word.push(c);
                before = None;
                continue;
            }
            if !word.is_empty() {
                words.push(stem(&std::mem::take(&mut word)));
            }
            words.push(c.to_string());
            words.extend(before.map(|before| format!("{before}{c}")));
            before = Some(c);
        }
        if !word.is_empty() {
            words.push(stem(&word));
        }
    }
    words
}

/// The words of a question that say what it is about, each once, in their order. All of them
/// where none does.
#[must_use]
pub fn asked_terms(text: &str, most: usize) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let all: Vec<String> = terms(text).into_iter().filter(|w| seen.insert(w.clone())).collect();
    let empty: BTreeSet<String> = STOP_WORDS.split_whitespace().map(stem).collect();
    let telling: Vec<String> = all.iter().filter(|word| !empty.contains(*word)).cloned().collect();
    let mut kept = if telling.is_empty() { all } else { telling };
    kept.truncate(most);
    kept
}

/// Which of these words stand in a text, by their places in the list: those that [`terms`] would
/// give of it, without making all of them.
#[must_use]
pub fn found_terms(text: &str, asked: &[&str]) -> Vec<usize> {
    // Whatever becomes this word begins with all of it but its last letter.
    let begins = |word: &str| word.char_indices().next_back().map_or(0, |(at, _)| at);
    let begins: Vec<&str> = asked.iter().map(|word| &word[..begins(word)]).collect();
    let mut found = vec![false; asked.len()];
    let lower = text.to_lowercase();
    for run in lower.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty()) {
        // Few texts have both scripts in one run.
        let may_be = match run.chars().all(|c| c < FIRST_UNSPACED) {
            true => begins.iter().any(|begin| run.starts_with(begin)),
            false => true,
        };
        if may_be {
            for word in terms(run) {
                let places = asked.iter().enumerate().filter(|(_, asked)| **asked == word);
                places.for_each(|(place, _)| found[place] = true);
            }
        }
    }
    (0..asked.len()).filter(|place| found[*place]).collect()
}

/// A word without the commonest endings of English. Both sides of a comparison lose the same,
/// so that a wrong cut costs precision and never a find.
fn stem(word: &str) -> String {
    let word: String = word.chars().take(WORD_CHARS_MAX).collect();
    if !word.is_ascii() || word.bytes().any(|b| b.is_ascii_digit()) {
        return word;
    }
    let long = |kept: &str, least: usize| kept.len() >= least;
    if let Some(kept) = word.strip_suffix("ies").filter(|kept| long(kept, 2)) {
        return format!("{kept}y");
    }
    let word = match word.strip_suffix('s') {
        Some(kept) if long(kept, 3) && !kept.ends_with(['s', 'u', 'i']) => kept,
        _ => &word,
    };
    let cut = ["ing", "ed", "ly"].into_iter().find_map(|end| word.strip_suffix(end));
    let has_vowel = |kept: &&str| kept.contains(['a', 'e', 'i', 'o', 'u', 'y']);
    let kept = cut.filter(|kept| long(kept, 3)).filter(has_vowel).unwrap_or(word);
    let doubled = cut.is_some() && kept.len() > 3 && kept.len() < word.len() && {
        let end = &kept.as_bytes()[kept.len() - 2..];
        end[0] == end[1] && !b"lsz".contains(&end[0])
    };
    let kept = if doubled { &kept[..kept.len() - 1] } else { kept };
    kept.strip_suffix('e').filter(|kept| long(kept, 3)).unwrap_or(kept).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn forms_of_a_word_are_one() {
        for forms in [
            &["deploy", "deploys", "deployed", "deploying"][..],
            &["city", "cities"],
            &["plan", "plans", "planned", "planning"],
            &["move", "moved", "moves", "moving"],
            &["server", "servers"],
        ] {
            let words: BTreeSet<String> = forms.iter().flat_map(|form| terms(form)).collect();
            assert_eq!(words.len(), 1, "{words:?}");
        }
        assert_eq!(terms("red bus, glass; v1.2s"), ["red", "bus", "glass", "v1", "2s"]);
    }

    #[test]
    fn unspaced_scripts_fall_into_characters_and_pairs() {
        assert_eq!(terms("東京都x"), ["東", "京", "東京", "都", "京都", "x"]);
    }

    #[test]
    fn a_question_is_what_it_is_about() {
        assert_eq!(
            asked_terms("Where do we deploy the weather API to?", 9),
            ["deploy", "weather", "api"]
        );
        assert_eq!(asked_terms("what is the", 9), ["what", "is", "the"]);
        assert_eq!(asked_terms("apples apples pears", 1), ["appl"]);
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_the_text_has(
            text in ".{0,60}|([a-z]{0,6}(ing|ed|s|ly|ies|e|nned)? ){0,9}|(東|京|a|é| ){0,12}",
            others in prop::collection::vec("[a-z]{1,5}|東|京|東京|é", 0..6),
        ) {
            let mut asked: Vec<String> = terms(&text).into_iter().chain(others).collect();
            asked.sort();
            asked.dedup();
            let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
            let has = terms(&text);
            let wanted: Vec<usize> =
                (0..asked.len()).filter(|at| has.iter().any(|word| word == asked[*at])).collect();
            prop_assert_eq!(found_terms(&text, &asked), wanted);
        }

        #[test]
        fn no_text_breaks_it_and_no_word_is_empty(text in ".{0,60}|[a-z]{0,12}(ing|ed|s|ly|ies){0,3}") {
            prop_assert!(terms(&text).iter().all(|word| !word.is_empty() && !word.contains(' ')));
        }
    }
}
