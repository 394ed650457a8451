//! Pure: the words of a text without their English endings, of which vectors are made.
//!
//! [`crate::search_terms`] makes of them what is indexed and looked up. It must never fail on any
//! text, and gives the same words on every machine.

/// First character of the scripts without spaces between words: CJK and later ones.
pub(crate) const FIRST_UNSPACED: char = '\u{2e80}';

/// Longest word that is kept, in characters; a longer one is cut.
const WORD_CHARS_MAX: usize = 40;

/// The words of a text in their order: letters and digits in lower case, without the endings of
/// English. Where a script puts no space between words each character is one, and each pair.
#[must_use]
pub fn terms(text: &str) -> Vec<String> {
    split(text, stem)
}

/// Splits a text into its words, and gives each the form that both sides of a search share.
pub(crate) fn split(text: &str, form: impl Fn(&str) -> String) -> Vec<String> {
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
                words.push(form(&std::mem::take(&mut word)));
            }
            words.push(c.to_string());
            words.extend(before.map(|before| format!("{before}{c}")));
            before = Some(c);
        }
        if !word.is_empty() {
            words.push(form(&word));
        }
    }
    words
}

/// A word without the commonest endings of English. Both sides of a comparison lose the same,
/// so that a wrong cut costs precision and never a find.
pub(crate) fn stem(word: &str) -> String {
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
    use std::collections::BTreeSet;

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

    proptest! {
        #[test]
        fn no_text_breaks_it_and_no_word_is_empty(text in ".{0,60}|[a-z]{0,12}(ing|ed|s|ly|ies){0,3}") {
            prop_assert!(terms(&text).iter().all(|word| !word.is_empty() && !word.contains(' ')));
        }
    }
}
