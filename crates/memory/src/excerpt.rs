//! Pure: the sentences of a long text that fit a question.
//!
//! A line of the prompt has little room, and the beginning of a text seldom says what is asked
//! for. Sentences are chosen by the words of the question, rare words before common ones, and by
//! the part of the text that means the most alike. Where neither tells, the text begins at its
//! beginning. An excerpt must never join two sentences without a mark between them.

use std::ops::Range;

use automaton_core::memory::{MemoryItem, MemoryMatches};
use automaton_core::search_terms::found_terms;
use serde::{Deserialize, Serialize};

use crate::parts::{part, sentences};
use crate::recall::rarity;
use crate::render::TEXT_CHARS_MAX;

/// Stands for what is left out.
const LEFT_OUT: &str = "…";
/// Characters of a mark with the blanks around it.
const MARK_CHARS: usize = 3;

/// The parts of a text that are shown, as ranges of its bytes in their order. Without any the
/// text is shown from its beginning.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExcerptRanges(Vec<Range<usize>>);

impl ExcerptRanges {
    /// Returns true if the text is shown from its beginning.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the text that is shown, with a mark where something is left out. A range that is
    /// none of this text shows nothing.
    #[must_use]
    pub fn of(&self, text: &str) -> String {
        if self.is_empty() {
            return text.to_owned();
        }
        let is_blank = |range: Range<usize>| text.get(range).is_none_or(|it| it.trim().is_empty());
        let mut shown: Vec<&str> = Vec::new();
        let mut end = 0;
        for range in &self.0 {
            if !is_blank(end..range.start) {
                shown.push(LEFT_OUT);
            }
            shown.extend(text.get(range.clone()));
            end = range.end;
        }
        if !is_blank(end..text.len()) {
            shown.push(LEFT_OUT);
        }
        shown.join(" ")
    }
}

/// A sentence, and how well it fits.
struct RatedSentence<'a> {
    text: &'a str,
    /// Where it stands in the text.
    range: Range<usize>,
    chars: usize,
    fit: u64,
}

/// Returns the sentences of an item that fit the question, or `None` if all of it has room or
/// none fits.
pub(crate) fn excerpt(item: &MemoryItem, matches: &MemoryMatches) -> Option<ExcerptRanges> {
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
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (sentence, _) in rated.iter().zip(&chosen).filter(|(_, is_chosen)| **is_chosen) {
        match ranges.last_mut().filter(|last| is_gap_blank(text, last.end, &sentence.range)) {
            Some(last) => last.end = sentence.range.end,
            None => ranges.push(sentence.range.clone()),
        }
    }
    if ranges.is_empty() {
        ranges.push(cut_around(rated.get(first)?, matches));
    }
    Some(ExcerptRanges(ranges))
}

/// Returns true if nothing but white space is between the end of one range and the next.
fn is_gap_blank(text: &str, end: usize, next: &Range<usize>) -> bool {
    text.get(end..next.start).is_some_and(|gap| gap.trim().is_empty())
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
    let mut end = 0;
    let mut rated = Vec::new();
    for (sentence, says) in words {
        // Sentences are parts of the text, in its order.
        let start = text.get(end..).and_then(|rest| rest.find(sentence)).map_or(end, |at| end + at);
        end = start + sentence.len();
        rated.push(RatedSentence {
            text: sentence,
            range: start..end,
            chars: sentence.chars().count(),
            fit: says + if is_alike(sentence) { 1 + most / 2 } else { 0 },
        });
    }
    rated
}

/// Returns the range around the first word of the question of a sentence that is too long itself.
fn cut_around(sentence: &RatedSentence<'_>, matches: &MemoryMatches) -> Range<usize> {
    let room = TEXT_CHARS_MAX - 2 * MARK_CHARS;
    let asked: Vec<&str> = matches.frequencies.iter().map(|(word, _)| word.as_str()).collect();
    let mut lead = 0;
    for word in sentence.text.split_inclusive(char::is_whitespace) {
        if !found_terms(word, &asked).is_empty() {
            break;
        }
        lead += word.chars().count();
    }
    // Without any such word it begins at its beginning.
    let lead = if lead == sentence.chars { 0 } else { lead };
    let byte = |chars: usize| {
        let at = sentence.text.char_indices().nth(chars);
        sentence.range.start + at.map_or(sentence.text.len(), |(at, _)| at)
    };
    let from = lead.saturating_sub(room / 2);
    byte(from)..byte(from + room)
}

#[cfg(test)]
mod tests {
    use super::*;
    use automaton_core::memory::{MemoryId, MemoryTier};
    use automaton_core::search_terms::{asked_terms, index_terms};
    use automaton_core::trust::Label;
    use automaton_testkit::memory::memory_item;
    use proptest::prelude::*;

    fn item(text: &str) -> MemoryItem {
        memory_item(1, MemoryTier::Episodic, "message/", Label::Creator, text)
    }

    fn asked(question: &str, parts: Vec<(MemoryId, u32)>) -> MemoryMatches {
        let words = asked_terms(question, 24).into_iter().map(|word| (word, 1));
        MemoryMatches { frequencies: words.collect(), total: 8, parts, ..MemoryMatches::default() }
    }

    fn shown(text: &str, question: &str, parts: Vec<(MemoryId, u32)>) -> String {
        excerpt(&item(text), &asked(question, parts)).unwrap_or_default().of(text)
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
                let all = index_terms(&text);
                let words = line.split_whitespace().filter(|word| *word != LEFT_OUT);
                prop_assert!(words.flat_map(index_terms).all(|word| all.contains(&word) || text.contains(&word)));
            }
        }
    }
}
