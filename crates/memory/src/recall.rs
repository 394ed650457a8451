//! Pure: which items belong to a question, best first.
//!
//! An item belongs to it when they share a word, or mean something alike where there are
//! vectors. Orders are fused by rank, never by their scores: that of the index, that of how much
//! of the question an item covers, where rare words count more than common ones, and a word in
//! the name more than one in the text, and that of how similar they are (reciprocal rank fusion,
//! Cormack, Clarke and Büttcher 2009). What the words say counts by the square of the share of
//! the question that they cover, and by how much that is: one common word says little, and a long
//! question in the item's own words all. Then strength, age and trust decide between items that fit about as well. All numbers are whole, so that
//! the order is the same on every machine. An item less trusted than wanted must never come
//! back, however well it fits.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use automaton_core::embedding::EmbeddingKind;
use automaton_core::memory::{MemoryId, MemoryItem, MemoryMatches, MemoryTier};
use automaton_core::search_terms::found_terms;
use automaton_core::time::{DAY, Timestamp};
use automaton_core::trust::Label;

use crate::updates::{StatedItem, followers, update_of};

/// Which items are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecallOptions {
    /// The most that come back.
    pub limit: usize,
    /// The least trusted label that may come back.
    pub least_trusted: Label,
    /// Facts of less confidence are left out, in percent.
    pub strength_min: u8,
    /// Events from then on are left out: the history shows them.
    pub events_before: Option<Timestamp>,
    /// What time it is.
    pub now: Timestamp,
}

/// The constant of reciprocal rank fusion, for the orders by words.
const WORD_RANK_OFFSET: u64 = 60;

/// The same for the order by meaning, of which the first places say more.
const MEANING_RANK_OFFSET: u64 = 10;

/// What the first rank is worth; large, so that whole numbers tell ranks apart.
const RANK_UNIT: u64 = 1_000_000;

/// How much a word counts by where it stands.
const NAME_WEIGHT: u64 = 3;
const KIND_WEIGHT: u64 = 2;
const TEXT_WEIGHT: u64 = 1;

/// An item that covers less than this part of what the best one covers is left out.
const COVERAGE_PART: u64 = 4;

/// Items at most that only their meaning has found, and as many of others: some resembles
/// whatever is asked.
const MEANING_ALONE_MAX: usize = 10;

/// Items below which there is room for some that resemble the question less.
const FILLED_MIN: usize = 5;

/// How words are fused with vectors of a kind.
struct Fusion {
    /// What an order by words counts at most, where the one by meaning counts 1.
    words_most: u64,
    /// What has to be covered for half of that.
    evidence_half: u64,
    /// An item that shares too few words is left out if it is less similar than this, in
    /// thousandths of the cosine.
    similarity_min: i32,
    /// The same while fewer than [`FILLED_MIN`] items were found.
    similarity_low: i32,
}

/// Chosen by two authors' items of `bench memory`, for encoders by half of two public sets, too.
const fn fusion(kind: EmbeddingKind) -> Fusion {
    match kind {
        EmbeddingKind::Text => {
            Fusion { words_most: 4, evidence_half: 300, similarity_min: 180, similarity_low: 90 }
        }
        EmbeddingKind::Words => {
            Fusion { words_most: 8, evidence_half: 100, similarity_min: 220, similarity_low: 120 }
        }
    }
}

/// The whole of a question, in thousandths.
const WHOLE: u64 = 1_000;

/// The matches of a question, best first. Without words the newest come first, as they were read.
#[must_use]
pub fn rank(matches: &MemoryMatches, wanted: &RecallOptions) -> Vec<MemoryItem> {
    let is_wanted = |(_, item): &(usize, &MemoryItem)| {
        item.body.label <= wanted.least_trusted
            && (item.tier != MemoryTier::Semantic || item.strength >= wanted.strength_min)
            && (item.tier != MemoryTier::Episodic
                || wanted.events_before.is_none_or(|before| item.valid_from < before))
    };
    let covered = |at: usize| matches.covered.get(at).copied();
    let counted = |(at, item)| (item, covered(at).unwrap_or_else(|| coverage(item, matches)));
    let wanted_items = matches.items.iter().enumerate().filter(is_wanted);
    let (items, covered): (Vec<&MemoryItem>, Vec<u64>) = wanted_items.map(counted).unzip();
    if matches.frequencies.is_empty() && matches.similarities.is_empty() {
        return items.into_iter().take(wanted.limit).cloned().collect();
    }
    let alike = similarities(&items, matches);
    let best = covered.iter().copied().max().unwrap_or(0);
    let by_coverage = places(&items, &covered);
    let by_similarity = places(&items, &alike);
    let rank_of = |offset: u64, place: usize| RANK_UNIT * offset / (offset + place as u64);
    let by_words = |place: usize| rank_of(WORD_RANK_OFFSET, place);
    let whole = coverage_max(matches);
    let fusion = fusion(matches.embedding_kind);
    let score = |at: usize| {
        // The index gives what shares a word first, in its own order.
        let share = (covered[at] * WHOLE / whole).min(WHOLE);
        let says = share * share * covered[at] / (covered[at] + fusion.evidence_half);
        let words = fusion.words_most * says * (by_words(at) + by_words(by_coverage[at]));
        let meaning = alike[at].map_or(0, |_| rank_of(MEANING_RANK_OFFSET, by_similarity[at]));
        (words + WHOLE * WHOLE * meaning) * (100 + favour(items[at], wanted.now)) / 100
    };
    let by_words_alone = |at: usize| covered[at] > 0 && covered[at] * COVERAGE_PART >= best;
    let is_alike = |at: usize| alike[at].is_some_and(|it| it >= fusion.similarity_min);
    let belongs = |at: &usize| by_words_alone(*at) || is_alike(*at);
    let mut order: Vec<usize> = (0..items.len()).filter(belongs).collect();
    order.sort_by_key(|at| (Reverse(score(*at)), Reverse(items[*at].id)));
    let mut by_meaning_alone = [0; 2];
    order.retain(|at| {
        let of_these = &mut by_meaning_alone[usize::from(items[*at].body.label > Label::Own)];
        *of_these += usize::from(!by_words_alone(*at));
        by_words_alone(*at) || *of_these <= MEANING_ALONE_MAX
    });
    if order.len() < FILLED_MIN {
        let is_near = |at: &usize| alike[*at].is_some_and(|it| it >= fusion.similarity_low);
        let mut more: Vec<usize> = (0..items.len()).filter(|at| !order.contains(at)).collect();
        more.retain(is_near);
        more.sort_by_key(|at| (Reverse(alike[*at]), Reverse(items[*at].id)));
        order.extend(more.into_iter().take(FILLED_MIN - order.len()));
    }
    let found = order.into_iter().map(|at| items[at].clone()).collect();
    newer_first(found, matches, wanted)
}

/// Returns the first items in their order, but what has replaced a statement before that
/// statement, also what no word of the question has found.
fn newer_first(
    found: Vec<MemoryItem>,
    matches: &MemoryMatches,
    wanted: &RecallOptions,
) -> Vec<MemoryItem> {
    let mut items = found;
    items.truncate(wanted.limit);
    let mut order: Vec<MemoryId> = items.iter().map(|item| item.id).collect();
    let is_shown = |item: &MemoryItem| {
        item.body.label <= wanted.least_trusted
            && wanted.events_before.is_none_or(|before| item.valid_from < before)
    };
    let added: Vec<MemoryItem> = {
        let stated: Vec<StatedItem<'_>> = items.iter().map(StatedItem::of).collect();
        let others = matches.followers.iter().map(|(_, item)| item);
        let others = others.filter(|it| is_shown(it) && !order.contains(&it.id));
        let others: Vec<StatedItem<'_>> = others.map(StatedItem::of).collect();
        let mut added = Vec::new();
        for older in &stated {
            let followers = followers(older.item.id, matches);
            for newer in stated.iter().chain(&others) {
                if update_of(older, newer, &followers).is_none() {
                    continue;
                }
                let place = |id: MemoryId| order.iter().position(|it| *it == id);
                let newer_place = place(newer.item.id);
                let Some(older_place) = place(older.item.id) else { continue };
                if newer_place.is_none() {
                    added.push(newer.item.clone());
                }
                if newer_place.is_none_or(|place| place > older_place) {
                    order.retain(|id| *id != newer.item.id);
                    order.insert(older_place, newer.item.id);
                }
            }
        }
        added
    };
    items.extend(added);
    order.truncate(wanted.limit);
    order.into_iter().filter_map(|id| items.iter().find(|it| it.id == id).cloned()).collect()
}

/// Counts how much each item covers, for who ranks the same matches again and again: to read all
/// their texts takes far longer than to order them.
pub fn count_coverage(matches: &mut MemoryMatches) {
    matches.covered = matches.items.iter().map(|item| coverage(item, matches)).collect();
}

/// At which place each item is, by these scores; of the same score the newest first.
fn places<T: Ord + Copy>(items: &[&MemoryItem], scores: &[T]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|at| (Reverse(scores[*at]), Reverse(items[*at].seen_at)));
    let mut places = vec![0; items.len()];
    for (place, at) in order.into_iter().enumerate() {
        places[at] = place;
    }
    places
}

/// How similar each item is to what is asked, where that is known and it is at all.
fn similarities(items: &[&MemoryItem], matches: &MemoryMatches) -> Vec<Option<i32>> {
    let known: BTreeMap<MemoryId, i32> = matches.similarities.iter().copied().collect();
    items.iter().map(|item| known.get(&item.id).copied().filter(|it| *it > 0)).collect()
}

/// What speaks for an item besides its words, in percent: how strong, how new, how trusted.
fn favour(item: &MemoryItem, now: Timestamp) -> u64 {
    let days = now.since(item.seen_at).as_millis().max(0) / DAY.as_millis().max(1);
    let newness = match days {
        0..=1 => 10,
        2..=7 => 7,
        8..=30 => 4,
        31..=365 => 2,
        _ => 0,
    };
    let trust = match item.body.label {
        Label::Creator => 12,
        Label::Own => 6,
        Label::Tool | Label::Peer | Label::Web => 0,
    };
    u64::from(item.strength) / 8 + newness + trust
}

/// How much of the question an item covers: rare words count more.
fn coverage(item: &MemoryItem, matches: &MemoryMatches) -> u64 {
    let origin = item.body.origin_words();
    let places = [
        (&item.body.text, TEXT_WEIGHT),
        (&origin, TEXT_WEIGHT),
        (&item.kind, KIND_WEIGHT),
        (&item.name, NAME_WEIGHT),
    ];
    let asked: Vec<&str> = matches.frequencies.iter().map(|(word, _)| word.as_str()).collect();
    let mut weights = vec![0; asked.len()];
    for (text, weight) in places {
        // Later places weigh more.
        found_terms(text, &asked).into_iter().for_each(|place| weights[place] = weight);
    }
    let found = matches.frequencies.iter().zip(weights).filter(|(_, weight)| *weight > 0);
    found.map(|((_, frequency), weight)| (2 + weight) * rarity(*frequency, matches.total)).sum()
}

/// What an item covers that has each word of the question in its text.
fn coverage_max(matches: &MemoryMatches) -> u64 {
    let rarities =
        matches.frequencies.iter().map(|(_, frequency)| rarity(*frequency, matches.total));
    (rarities.sum::<u64>() * (2 + TEXT_WEIGHT)).max(1)
}

/// How much a word says that stands in so many of all items.
pub(crate) fn rarity(frequency: u32, total: u64) -> u64 {
    let ratio = (total / u64::from(frequency.max(1))).max(1);
    1 + u64::from(ratio.ilog2())
}

#[cfg(test)]
mod tests {
    use super::*;
    use automaton_core::memory::MemoryId;
    use automaton_core::search_terms::{FORM_MARK, asked_terms, index_terms};
    use automaton_testkit::memory::memory_item;
    use proptest::prelude::*;

    fn item(id: i64, name: &str, text: &str) -> MemoryItem {
        MemoryItem {
            valid_from: Timestamp::from_millis(id),
            seen_at: Timestamp::from_millis(id),
            ..memory_item(id, MemoryTier::Semantic, name, Label::Own, text)
        }
    }

    const ALL: RecallOptions = RecallOptions {
        limit: 100,
        least_trusted: Label::Web,
        strength_min: 0,
        events_before: None,
        now: Timestamp::from_millis(1000),
    };

    /// What an index would give: all that shares a word, in any order.
    fn matches(query: &str, items: &[MemoryItem]) -> MemoryMatches {
        let words = |item: &MemoryItem| {
            index_terms(&format!(
                "{} {} {} {}",
                item.name,
                item.kind,
                item.body.text,
                item.body.origin_words()
            ))
        };
        let has = |item: &MemoryItem, word: &String| {
            word.split(FORM_MARK).any(|form| words(item).iter().any(|it| it == form))
        };
        let asked = asked_terms(query, 24);
        let holds = |word: &String| items.iter().filter(|item| has(item, word)).count();
        let frequencies = asked.iter().map(|w| (w.clone(), u32::try_from(holds(w)).unwrap()));
        let shares = |item: &&MemoryItem| asked.iter().any(|word| has(item, word));
        MemoryMatches {
            items: items.iter().filter(shares).cloned().collect(),
            frequencies: frequencies.collect(),
            total: items.len() as u64,
            ..MemoryMatches::default()
        }
    }

    fn names(query: &str, items: &[MemoryItem], wanted: &RecallOptions) -> Vec<String> {
        rank(&matches(query, items), wanted).into_iter().map(|item| item.name).collect()
    }

    #[test]
    fn a_question_in_other_words_finds_its_fact() {
        let items = [
            item(1, "environment/deploy_target", "servers in Oslo"),
            item(2, "self/favourite_colour", "the colour of rust"),
            item(3, "domain/weather", "the API is rate limited"),
        ];
        let found = names("Where do we deploy the weather API to?", &items, &ALL);
        assert_eq!(found, ["weather", "deploy_target"]);
        assert_eq!(names("Server?", &items, &ALL), ["deploy_target"]);
        assert!(names("volcano", &items, &ALL).is_empty());
    }

    #[test]
    fn rare_words_names_strength_and_trust_count_more() {
        let items = [item(1, "a/1", "red apple"), item(2, "a/2", "red red"), item(3, "a/3", "red")];
        assert_eq!(names("red apple", &items, &ALL)[0], "1");
        let items = [item(1, "a/c", "blue"), item(2, "a/blue", "x"), item(3, "blue/b", "x")];
        assert_eq!(names("blue", &items, &ALL)[0], "blue");
        let unsure = MemoryItem { strength: 10, ..item(9, "a/unsure", "blue") };
        assert_eq!(names("blue", &[unsure.clone(), item(1, "a/sure", "blue")], &ALL)[0], "sure");
        let sure_enough = RecallOptions { strength_min: 20, ..ALL };
        assert!(names("blue", &[unsure], &sure_enough).is_empty());
        let mut creators = item(1, "a/creators", "blue");
        creators.body.label = Label::Creator;
        assert_eq!(names("blue", &[item(2, "a/own", "blue"), creators], &ALL)[0], "creators");
    }

    #[test]
    fn without_a_question_they_come_as_they_were_read_up_to_the_limit() {
        let items = vec![item(3, "a/new", "y"), item(2, "a/mid", "z"), item(1, "a/old", "x")];
        let found = MemoryMatches { items, ..MemoryMatches::default() };
        let two = RecallOptions { limit: 2, ..ALL };
        let found: Vec<i64> = rank(&found, &two).iter().map(|item| item.id.0).collect();
        assert_eq!(found, [3, 2]);
    }

    #[test]
    fn what_was_counted_before_is_ranked_alike_whoever_may_see_it() {
        let mut items: Vec<MemoryItem> = (1..9)
            .map(|id| item(id, "a/x", if id % 3 == 0 { "red apple" } else { "red" }))
            .collect();
        items[1].body.label = Label::Web;
        let apart = matches("red apple", &items);
        let mut counted = apart.clone();
        count_coverage(&mut counted);
        assert_eq!(counted.covered.len(), 8);
        for least_trusted in [Label::Web, Label::Own] {
            let wanted = RecallOptions { least_trusted, ..ALL };
            assert_eq!(rank(&counted, &wanted), rank(&apart, &wanted));
        }
    }

    #[test]
    fn an_event_that_the_history_shows_is_left_out() {
        let event = |at| MemoryItem { tier: MemoryTier::Episodic, ..item(at, "message/x", "blue") };
        let wanted = RecallOptions { events_before: Some(Timestamp::from_millis(2)), ..ALL };
        let found = rank(&matches("blue", &[event(1), event(2)]), &wanted);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].id, MemoryId(1));
    }

    #[test]
    fn what_means_the_same_is_found_without_a_word_and_what_does_not_is_left_out() {
        let items =
            [item(1, "a/1", "I drive a Skoda"), item(2, "a/2", "the car park closes at nine")];
        let mut found = matches("Which vehicle is mine?", &items);
        assert!(found.items.is_empty());
        found.items.extend(items);
        found.items.push(item(3, "a/3", "the moon"));
        found.similarities = vec![(MemoryId(1), 620), (MemoryId(2), 340), (MemoryId(3), 89)];
        let ids: Vec<i64> = rank(&found, &ALL).iter().map(|item| item.id.0).collect();
        assert_eq!(ids, [1, 2]);
        // Some resembles whatever is asked; not all of it comes.
        found.items = (1..=30).map(|id| item(id, "a/x", "the moon")).collect();
        found.similarities = found.items.iter().map(|item| (item.id, 400)).collect();
        assert_eq!(rank(&found, &ALL).len(), MEANING_ALONE_MAX);
        // What others say takes none of these places.
        found.items[..20].iter_mut().for_each(|item| item.body.label = Label::Peer);
        let labels = |label| rank(&found, &ALL).iter().filter(|it| it.body.label == label).count();
        assert_eq!([labels(Label::Own), labels(Label::Peer)], [MEANING_ALONE_MAX; 2]);
    }

    #[test]
    fn what_is_less_alike_comes_last_and_only_while_there_is_room() {
        let items: Vec<MemoryItem> = (1..=12).map(|id| item(id, "a/x", "the moon")).collect();
        let mut found = MemoryMatches { items, ..MemoryMatches::default() };
        let ids = |found: &MemoryMatches| -> Vec<i64> {
            rank(found, &ALL).iter().map(|item| item.id.0).collect()
        };
        // The least that is enough, and less.
        let kinds = [(EmbeddingKind::Text, 180, 90), (EmbeddingKind::Words, 220, 120)];
        for (kind, enough, low) in kinds {
            found.embedding_kind = kind;
            found.similarities = vec![
                (MemoryId(4), enough),
                (MemoryId(7), low),
                (MemoryId(2), enough - 1),
                (MemoryId(9), low - 1),
            ];
            assert_eq!(ids(&found), [4, 2, 7], "{kind:?}");
            found.similarities = (1..=5).map(|id| (MemoryId(id), enough)).collect();
            found.similarities.push((MemoryId(6), enough - 1));
            assert_eq!(ids(&found).len(), FILLED_MIN, "{kind:?}");
        }
    }

    #[test]
    fn what_has_changed_stands_behind_the_change_also_where_no_word_finds_that() {
        let said = |id, text: &str| MemoryItem {
            tier: MemoryTier::Episodic,
            ..memory_item(id, MemoryTier::Episodic, "message/", Label::Creator, text)
        };
        let items = [said(1, "My port is 8080."), said(2, "I moved it to 9090.")];
        let mut found = matches("Which port is mine?", &items);
        assert_eq!(found.items.len(), 1);
        found.followers = vec![(MemoryId(1), items[1].clone())];
        let ids = |wanted: &RecallOptions| -> Vec<i64> {
            rank(&found, wanted).iter().map(|item| item.id.0).collect()
        };
        assert_eq!(ids(&ALL), [2, 1]);
        assert_eq!(ids(&RecallOptions { limit: 1, ..ALL }), [2]);
    }

    #[test]
    fn who_said_it_counts_as_a_word_of_it() {
        let mut annas = item(1, "a/x", "the deadline is the ninth");
        annas.body.source = automaton_core::trust::Source::new("anna");
        let items = [annas, item(2, "a/y", "the deadline is the tenth")];
        assert_eq!(names("What did Anna say about the deadline?", &items, &ALL)[0], "x");
    }

    #[test]
    fn what_is_like_nothing_gains_nothing_by_being_compared() {
        let items = [item(1, "a/1", "blue boat"), item(2, "a/2", "blue")];
        let mut found = matches("a blue boat", &items);
        let apart = rank(&found, &ALL);
        found.similarities = vec![(MemoryId(2), 0)];
        assert_eq!(rank(&found, &ALL), apart);
    }

    #[test]
    fn a_word_that_nothing_else_has_outweighs_what_means_as_much() {
        let items = [item(1, "a/1", "web7 runs nginx"), item(2, "a/2", "web8 runs nginx")];
        let mut found = matches("web8?", &items);
        found.items.push(items[0].clone());
        found.similarities = vec![(MemoryId(1), 500), (MemoryId(2), 498)];
        assert_eq!(rank(&found, &ALL)[0].id, MemoryId(2));
    }

    #[test]
    fn scripts_without_spaces_are_searched_by_character() {
        let items = [item(1, "a/tokyo", "東京は首都"), item(2, "a/osaka", "大阪")];
        assert_eq!(names("首都", &items, &ALL), ["tokyo"]);
    }

    proptest! {
        #[test]
        fn nothing_less_trusted_comes_back_and_nothing_twice(query in "[a-z ]{0,30}|some words", labels in prop::collection::vec(prop::sample::select(Label::ALL.to_vec()), 0..8), floor in prop::sample::select(Label::ALL.to_vec()), limit in 0..10_usize) {
            let make = |(at, label): (usize, &Label)| {
                let mut made = item(i64::try_from(at).unwrap() + 1, &format!("a/{at}"), "some common words");
                made.body.label = *label;
                made
            };
            let items: Vec<MemoryItem> = labels.iter().enumerate().map(make).collect();
            let found = rank(&matches(&query, &items), &RecallOptions { limit, least_trusted: floor, ..ALL });
            prop_assert!(found.len() <= limit);
            prop_assert!(found.iter().all(|item| item.body.label <= floor));
            let ids: std::collections::BTreeSet<_> = found.iter().map(|item| item.id).collect();
            prop_assert_eq!(ids.len(), found.len());
            prop_assert!(found.iter().all(|item| items.contains(item)));
        }
    }
}
