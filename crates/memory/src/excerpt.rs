//! Pure: the sentences of a long text that fit a question.
//!
//! A line of the prompt has little room, and the beginning of a text seldom says what is asked
//! for. Sentences are chosen by the words of the question, rare words before common ones, and by
//! the part of the text that means the most alike. Where neither tells, the text begins at its
//! beginning. An excerpt must never join two sentences without a mark between them.

use automaton_core::memory::{MemoryItem, MemoryMatches};
use automaton_core::terms::found_terms;

use crate::parts::{part, sentences};
use crate::recall::rarity;
use crate::render::TEXT_CHARS_MAX;

/// Stands for what is left out.
const LEFT_OUT: &str = "…";
/// Characters of a mark with the blanks around it.
const MARK_CHARS: usize = 3;

/// Returns items with the sentences that fit the question in the place of each text that is too
/// long for a line.
#[must_use]
pub fn excerpts(items: Vec<MemoryItem>, matches: &MemoryMatches) -> Vec<MemoryItem> {
    let mut items = items;
    for item in &mut items {
        if let Some(text) = excerpt(item, matches) {
            item.body.text = text;
        }
    }
    items
}

/// A sentence, and how well it fits.
struct RatedSentence<'a> {
    text: &'a str,
    chars: usize,
    fit: u64,
}

/// Returns the sentences of an item that fit the question, or `None` if all of it has room.
fn excerpt(item: &MemoryItem, matches: &MemoryMatches) -> Option<String> {
    let text = item.body.text.as_str();
    if text.chars().count() <= TEXT_CHARS_MAX {
        return None;
    }
    let rated = rate(item, matches);
    let best = rated.iter().map(|sentence| sentence.fit).max().filter(|best| *best > 0)?;
    let mut order: Vec<usize> = (0..rated.len()).filter(|at| rated[*at].fit > 0).collect();
    order.sort_by_key(|at| (best.saturating_sub(rated[*at].fit), *at));
    let first = *order.first()?;
    // What surrounds the best one helps to understand it.
    order.extend([first + 1, first.wrapping_sub(1), first + 2]);
    let mut left = TEXT_CHARS_MAX;
    let mut chosen = vec![false; rated.len()];
    for at in order {
        let Some(sentence) = rated.get(at).filter(|_| !chosen[at]) else { continue };
        let takes = sentence.chars + MARK_CHARS;
        if takes <= left {
            chosen[at] = true;
            left -= takes;
        }
    }
    match chosen.contains(&true) {
        true => Some(join(&rated, &chosen)),
        false => Some(cut_around(rated.get(first)?.text, matches)),
    }
}

/// Rates each sentence by the words of the question in it, and by the part that it stands in.
fn rate<'a>(item: &'a MemoryItem, matches: &MemoryMatches) -> Vec<RatedSentence<'a>> {
    let text = item.body.text.as_str();
    let asked: Vec<&str> = matches.frequencies.iter().map(|(word, _)| word.as_str()).collect();
    let says = |sentence: &str| -> u64 {
        let found = found_terms(sentence, &asked).into_iter();
        let frequencies = found.filter_map(|place| matches.frequencies.get(place));
        frequencies.map(|(_, frequency)| rarity(*frequency, matches.total)).sum()
    };
    let words: Vec<(&str, u64)> = sentences(text).into_iter().map(|it| (it, says(it))).collect();
    let most = words.iter().map(|(_, says)| *says).max().unwrap_or(0);
    let alike = matches.parts.iter().find(|(id, _)| *id == item.id);
    let alike = alike.and_then(|(_, number)| part(text, *number));
    let is_alike = |sentence: &str| alike.is_some_and(|part| part.contains(sentence));
    let rated = words.into_iter().map(|(text, says)| RatedSentence {
        text,
        chars: text.chars().count(),
        fit: says + if is_alike(text) { 1 + most / 2 } else { 0 },
    });
    rated.collect()
}

/// Returns the chosen sentences in their order, with a mark where others are left out.
fn join(rated: &[RatedSentence<'_>], chosen: &[bool]) -> String {
    let mut shown: Vec<&str> = Vec::new();
    for (sentence, is_chosen) in rated.iter().zip(chosen) {
        if *is_chosen {
            shown.push(sentence.text);
        } else if shown.last() != Some(&LEFT_OUT) {
            shown.push(LEFT_OUT);
        }
    }
    shown.join(" ")
}

/// Returns the part around the first word of the question of a sentence that is too long itself.
fn cut_around(sentence: &str, matches: &MemoryMatches) -> String {
    let room = TEXT_CHARS_MAX - 2 * MARK_CHARS;
    let asked: Vec<&str> = matches.frequencies.iter().map(|(word, _)| word.as_str()).collect();
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let at = words.iter().position(|word| !found_terms(word, &asked).is_empty()).unwrap_or(0);
    let before: Vec<&str> = words.iter().copied().take(at).collect();
    let lead = before.join(" ").chars().count();
    let from = lead.saturating_sub(room / 2);
    let cut: String = words.join(" ").chars().skip(from).take(room).collect();
    let begin = if from > 0 { "… " } else { "" };
    format!("{begin}{cut} {LEFT_OUT}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use automaton_core::memory::{MemoryId, MemoryTier};
    use automaton_core::terms::{asked_terms, terms};
    use automaton_core::time::Timestamp;
    use automaton_core::trust::{Label, Labelled};
    use proptest::prelude::*;

    fn item(text: &str) -> MemoryItem {
        MemoryItem {
            id: MemoryId(1),
            tier: MemoryTier::Episodic,
            kind: "message".to_owned(),
            name: String::new(),
            body: Labelled::new(Label::Creator, "test", text),
            strength: 50,
            seen: 1,
            successes: 0,
            failures: 0,
            turn: None,
            valid_from: Timestamp::EPOCH,
            valid_to: None,
            seen_at: Timestamp::EPOCH,
            superseded_by: None,
        }
    }

    fn asked(question: &str, parts: Vec<(MemoryId, u32)>) -> MemoryMatches {
        let words = asked_terms(question, 24).into_iter().map(|word| (word, 1));
        MemoryMatches { frequencies: words.collect(), total: 8, parts, ..MemoryMatches::default() }
    }

    fn shown(text: &str, question: &str, parts: Vec<(MemoryId, u32)>) -> String {
        let found = excerpts(vec![item(text)], &asked(question, parts));
        found.into_iter().next().unwrap().body.text
    }

    fn story(days: u32) -> String {
        let day = |day| format!("On day {day} we walked and counted {} geese there. ", day * 3);
        (1..=days).map(day).collect()
    }

    #[test]
    fn the_sentence_that_is_asked_for_is_shown_with_its_neighbours() {
        let text = format!("{}The torch lies behind the blue flour tin. {}", story(9), story(9));
        let line = shown(&text, "Behind what does the torch lie?", vec![]);
        assert_eq!(
            line,
            "… On day 9 we walked and counted 27 geese there. The torch lies behind the blue flour \
             tin. On day 1 we walked and counted 3 geese there. On day 2 we walked and counted 6 \
             geese there. …"
        );
    }

    #[test]
    fn sentences_apart_have_a_mark_between_them() {
        let text = format!("My boat is green. {}The boat's name is Ada. {}", story(9), story(4));
        let line = shown(&text, "What colour and name has my boat?", vec![]);
        assert!(line.starts_with("My boat is green. … On day 9 "), "{line}");
        assert!(line.contains(" The boat's name is Ada. "), "{line}");
        assert!(line.ends_with(" …"), "{line}");
    }

    #[test]
    fn a_question_in_other_words_shows_the_part_that_means_alike() {
        let text = format!("{}The torch lies behind the blue flour tin. {}", story(9), story(9));
        let parts = crate::parts::embedded_texts(&item(&text));
        let number = parts.iter().skip(1).position(|part| part.contains("torch")).unwrap() + 1;
        let alike = vec![(MemoryId(1), u32::try_from(number).unwrap())];
        assert!(shown(&text, "flashlight", alike).contains("blue flour tin"));
        // Nothing tells: it begins at its beginning, and is cut where it is rendered.
        assert_eq!(shown(&text, "flashlight", vec![]), text);
    }

    #[test]
    fn a_short_text_stays_whole() {
        let text = "One. ".repeat(80);
        assert_eq!(shown(&text, "one", vec![]), text);
    }

    #[test]
    fn a_sentence_without_an_end_is_cut_around_the_word() {
        let text = format!("{} torch {}", "goose ".repeat(200).trim(), "goose ".repeat(200).trim());
        let line = shown(&text, "torch", vec![]);
        assert!(line.starts_with("… ") && line.ends_with(" …") && line.contains("torch"), "{line}");
    }

    proptest! {
        #[test]
        fn an_excerpt_has_room_and_nothing_of_its_own(text in "([a-z]{1,9} ){1,12}[.!?]( ?([a-z]{1,9} ){1,12}[.!?]){0,40}", question in "[a-z]{1,9} [a-z]{1,9}") {
            let line = shown(&text, &question, vec![]);
            if line != text {
                prop_assert!(line.chars().count() <= TEXT_CHARS_MAX, "{}", line.chars().count());
                let all = terms(&text);
                let words = line.split_whitespace().filter(|word| *word != LEFT_OUT);
                prop_assert!(words.flat_map(terms).all(|word| all.contains(&word) || text.contains(&word)));
            }
        }
    }
}
