//! Pure: items as a prompt shows them: which sentences, and what has replaced them since.
//!
//! A [`MemoryView`] is the little that has to be kept of that to show the same again. What is
//! shown must never be made of another text than the item's own.

use automaton_core::memory::{MemoryId, MemoryItem, MemoryMatches};
use serde::{Deserialize, Serialize};

use crate::excerpt::{ExcerptRanges, excerpt};
use crate::recall::RecallOptions;
use crate::updates::{MemoryUpdate, StatedItem, followers, update_of};

/// An item with how it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownMemory {
    /// The item.
    pub item: MemoryItem,
    /// The parts of its text that are shown; all of it where there are none.
    pub excerpt: ExcerptRanges,
    /// What has replaced it.
    pub update: Option<MemoryUpdate>,
}

/// How an item was shown, without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryView {
    /// The item.
    pub id: MemoryId,
    /// The parts of its text that were shown.
    #[serde(default, skip_serializing_if = "ExcerptRanges::is_empty")]
    pub excerpt: ExcerptRanges,
    /// The item that had replaced it, with the numbers of both sentences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newer: Option<(MemoryId, usize, usize)>,
}

impl From<MemoryItem> for ShownMemory {
    fn from(item: MemoryItem) -> Self {
        Self { item, excerpt: ExcerptRanges::default(), update: None }
    }
}

impl ShownMemory {
    /// Returns how it is shown.
    #[must_use]
    pub fn view(&self) -> MemoryView {
        let newer = |update: &MemoryUpdate| (update.newer, update.places.0, update.places.1);
        MemoryView {
            id: self.item.id,
            excerpt: self.excerpt.clone(),
            newer: self.update.as_ref().map(newer),
        }
    }

    /// Returns what a view shows of these items, or `None` if one of them is not there.
    #[must_use]
    pub fn again(view: &MemoryView, items: &[MemoryItem]) -> Option<Self> {
        let find = |id: MemoryId| items.iter().find(|item| item.id == id);
        let item = find(view.id)?.clone();
        let update = match view.newer {
            Some((newer, was, now)) => Some(MemoryUpdate::again(&item, find(newer)?, (was, now))?),
            None => None,
        };
        Some(Self { item, excerpt: view.excerpt.clone(), update })
    }
}

/// Returns items as a prompt shows them that asks for what these matches were found for.
#[must_use]
pub fn show(
    items: Vec<MemoryItem>,
    matches: &MemoryMatches,
    wanted: &RecallOptions,
) -> Vec<ShownMemory> {
    let updates = updates(&items, matches, wanted);
    let show = |(item, update): (MemoryItem, Option<MemoryUpdate>)| ShownMemory {
        excerpt: excerpt(&item, matches).unwrap_or_default(),
        item,
        update,
    };
    items.into_iter().zip(updates).map(show).collect()
}

/// Returns what has replaced each item: the newest of the others, and of what was said right after
/// it, as far as whoever asks may read that.
fn updates(
    items: &[MemoryItem],
    matches: &MemoryMatches,
    wanted: &RecallOptions,
) -> Vec<Option<MemoryUpdate>> {
    let stated: Vec<StatedItem<'_>> = items.iter().map(StatedItem::of).collect();
    let after = matches.followers.iter().map(|(_, item)| item);
    let mut after: Vec<&MemoryItem> =
        after.filter(|item| item.body.label <= wanted.least_trusted).collect();
    after.sort_by_key(|item| item.id);
    after.dedup_by_key(|item| item.id);
    let after: Vec<StatedItem<'_>> = after.into_iter().map(StatedItem::of).collect();
    let of_item = |older: &StatedItem<'_>| {
        let followers = followers(older.item.id, matches);
        let found = stated.iter().chain(&after);
        let found = found.filter_map(|newer| update_of(older, newer, &followers));
        found.max_by_key(|update| (update.since, update.newer))
    };
    stated.iter().map(of_item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use automaton_core::memory::MemoryTier;
    use automaton_core::time::Timestamp;
    use automaton_core::trust::Label;
    use automaton_testkit::memory::memory_item;

    const ALL: RecallOptions = RecallOptions {
        limit: 10,
        least_trusted: Label::Own,
        strength_min: 0,
        events_before: None,
        now: Timestamp::EPOCH,
    };

    fn said(id: i64, text: &str) -> MemoryItem {
        let item = memory_item(id, MemoryTier::Episodic, "message/", Label::Creator, text);
        MemoryItem { valid_from: Timestamp::from_millis(id * 1000), ..item }
    }

    #[test]
    fn the_newest_change_is_shown_also_where_only_the_old_was_found() {
        let [one, two] = [said(1, "My port is 8080."), said(2, "My port is 9090.")];
        let three = said(3, "I moved it to 7070.");
        let followers = vec![(one.id, two.clone()), (one.id, three.clone()), (two.id, three)];
        let matches = MemoryMatches { followers, ..MemoryMatches::default() };
        let newer = |items: &[MemoryItem]| -> Vec<Option<i64>> {
            let shown = show(items.to_vec(), &matches, &ALL);
            shown.iter().map(|it| it.update.as_ref().map(|update| update.newer.0)).collect()
        };
        assert_eq!(newer(std::slice::from_ref(&one)), [Some(2)]);
        assert_eq!(newer(&[two, one]), [Some(3), Some(2)]);
    }

    #[test]
    fn a_view_shows_the_same_again_and_nothing_where_an_item_is_gone() {
        let long = format!("{}My port is 8080. {}", "Geese. ".repeat(80), "Ducks. ".repeat(30));
        let items = [said(2, "My port is 9090."), said(1, "My port is 8080."), said(3, &long)];
        let frequencies = vec![("port".to_owned(), 1)];
        let matches = MemoryMatches { frequencies, total: 3, ..MemoryMatches::default() };
        let shown = show(items.to_vec(), &matches, &ALL);
        assert!(shown[1].update.is_some() && !shown[2].excerpt.is_empty());
        for shown in &shown {
            let kept = serde_json::to_string(&shown.view()).unwrap();
            let view: MemoryView = serde_json::from_str(&kept).unwrap();
            assert_eq!(ShownMemory::again(&view, &items).as_ref(), Some(shown), "{kept}");
        }
        assert_eq!(ShownMemory::again(&shown[1].view(), &items[1..]), None);
    }
}
