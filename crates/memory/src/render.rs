//! Pure: items as lines that the model reads.
//!
//! One item is one line, whatever stands in it, so that no text can look like another item or
//! like a heading. Text of others says whose it is. What is rendered here must never be given
//! to the model as an instruction.

use automaton_core::memory::{MemoryItem, MemoryTier};
use automaton_core::trust::Label;

use crate::budget;
use crate::tokens::estimate;

/// Longest name that is shown, in characters.
const NAME_CHARS_MAX: usize = 80;
/// Longest text that is shown, in characters.
pub(crate) const TEXT_CHARS_MAX: usize = 400;

/// One item on one line: `- [m12 category/key] text`, with whose word it is where neither the
/// automaton wrote it nor the creator told a fact.
#[must_use]
pub fn line(item: &MemoryItem) -> String {
    format!("- {}{}", heading(item), one_line(&item.body.text, TEXT_CHARS_MAX))
}

/// The same with the whole text, for whoever asked for this very item.
#[must_use]
pub fn whole(item: &MemoryItem) -> String {
    let ended = item.valid_to.map(|end| end.to_string());
    let ended = ended.map_or_else(String::new, |end| {
        let reason = if item.superseded_by.is_some() { "was replaced" } else { "ended" };
        format!("({reason} {}) ", end.get(..10).unwrap_or(&end))
    });
    format!("{}{ended}{}", heading(item), item.body.text)
}

/// The id, what the item is, and whose word.
fn heading(item: &MemoryItem) -> String {
    let (id, kind) = (item.id, one_line(&item.kind, NAME_CHARS_MAX));
    let name = one_line(&item.name, NAME_CHARS_MAX);
    let what = match item.tier {
        MemoryTier::Working => kind,
        MemoryTier::Episodic => {
            let time = item.valid_from.to_string();
            format!("{kind}, {}", time.get(..10).unwrap_or(&time))
        }
        MemoryTier::Semantic => format!("{kind}/{name}"),
        MemoryTier::Procedural => {
            let tries = item.successes.saturating_add(item.failures);
            format!("procedure {name}, worked {} of {tries}", item.successes)
        }
        MemoryTier::Relationship => format!("{kind} {name}, trust {} %", item.strength),
    };
    let origin = match item.body.label {
        Label::Own => String::new(),
        Label::Creator if item.tier != MemoryTier::Episodic => String::new(),
        label => format!("(from {label}) "),
    };
    format!("[{id} {what}] {origin}")
}

/// The items that fit into a number of tokens, a line each. Empty when none does.
#[must_use]
pub fn block(items: &[MemoryItem], tokens_max: u32) -> String {
    let lines: Vec<_> = items.iter().map(|item| (item.tier, line(item) + "\n")).collect();
    let kept = budget::pack(lines, tokens_max, |(tier, _)| *tier, |(_, line)| estimate(line));
    kept.into_iter().map(|(_, line)| line).collect()
}

/// A text with every run of white space and control characters as one blank,
/// cut to a length.
fn one_line(text: &str, chars_max: usize) -> String {
    let blank = |c: char| c.is_whitespace() || c.is_control();
    let joined = text.split(blank).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    match joined.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &joined[..end]),
        None => joined,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use automaton_core::memory::MemoryId;
    use automaton_core::time::Timestamp;
    use automaton_core::trust::Labelled;
    use proptest::prelude::*;

    fn item(label: Label, text: &str) -> MemoryItem {
        MemoryItem {
            id: MemoryId(3),
            tier: MemoryTier::Semantic,
            kind: "domain".to_owned(),
            name: "api\nkey".to_owned(),
            body: Labelled::new(label, "test", text),
            strength: 90,
            seen: 1,
            successes: 3,
            failures: 1,
            turn: None,
            valid_from: Timestamp::EPOCH,
            valid_to: None,
            seen_at: Timestamp::EPOCH,
            superseded_by: None,
        }
    }

    #[test]
    fn an_item_is_one_line_that_names_its_origin() {
        assert_eq!(
            line(&item(Label::Own, "a\n- [x/y] b\u{1b}\t c")),
            "- [m3 domain/api key] a - [x/y] b c"
        );
        assert_eq!(line(&item(Label::Peer, "hi")), "- [m3 domain/api key] (from peer) hi");
        let long = line(&item(Label::Creator, &"ä".repeat(500)));
        assert_eq!(long.chars().filter(|c| *c == 'ä').count(), 400);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn an_item_that_holds_no_longer_says_so() {
        let ended = |superseded_by| {
            let valid_to = Some(Timestamp::EPOCH);
            whole(&MemoryItem { valid_to, superseded_by, ..item(Label::Own, "x") })
        };
        assert_eq!(ended(None), "[m3 domain/api key] (ended 1970-01-01) x");
        let replaced = "[m3 domain/api key] (was replaced 1970-01-01) x";
        assert_eq!(ended(Some(MemoryId(4))), replaced);
    }

    #[test]
    fn each_tier_says_what_it_is() {
        let shown = |tier, kind: &str| {
            line(&MemoryItem { tier, kind: kind.to_owned(), ..item(Label::Creator, "x") })
        };
        assert_eq!(shown(MemoryTier::Working, "goal"), "- [m3 goal] x");
        let event = "- [m3 message, 1970-01-01] (from creator) x";
        assert_eq!(shown(MemoryTier::Episodic, "message"), event);
        assert_eq!(shown(MemoryTier::Procedural, ""), "- [m3 procedure api key, worked 3 of 4] x");
        assert_eq!(shown(MemoryTier::Relationship, "peer"), "- [m3 peer api key, trust 90 %] x");
    }

    #[test]
    fn a_long_item_does_not_keep_out_a_short_one() {
        let items = [item(Label::Own, &"long ".repeat(60)), item(Label::Own, "short")];
        assert_eq!(block(&items, 14), "- [m3 domain/api key] short\n");
        assert_eq!(block(&items, 1), "");
    }

    proptest! {
        #[test]
        fn as_many_lines_as_items_within_the_budget(texts in prop::collection::vec(".{0,40}|(\n|- ){0,9}", 0..6), tokens_max in 0..200_u32) {
            let items: Vec<MemoryItem> = texts.iter().map(|text| item(Label::Tool, text)).collect();
            let shown = block(&items, tokens_max);
            prop_assert!(estimate(&shown) <= tokens_max);
            prop_assert!(shown.lines().all(|line| line.starts_with("- [m3 domain/api key] (from tool)")));
            let all = block(&items, u32::MAX);
            prop_assert_eq!(all.lines().count(), items.len());
        }
    }
}
