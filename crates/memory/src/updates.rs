//! Pure: a statement that a later one has replaced.
//!
//! "My port is 8080", and later "I moved it to 9090". Two sentences are compared by fixed rules:
//! each has one value of the same shape, and they say it of the same thing. Questions, plans,
//! denials and what somebody else says count for nothing. A statement that still holds must never
//! be marked, so that a change that is not plain stays unmarked.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use automaton_core::memory::{MemoryId, MemoryItem, MemoryMatches, MemoryTier};
use automaton_core::search_terms::subject_terms;
use automaton_core::time::Timestamp;
use automaton_core::trust::Label;

use crate::parts::sentences;

/// Words that tell what a sentence is, by their groups.
const WORDS: &str = include_str!("statement_words.txt");

/// Sentences of a text that are read; of a longer text nothing is marked.
const SENTENCES_MAX: usize = 6;

/// What has replaced a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryUpdate {
    /// The newer item.
    pub newer: MemoryId,
    /// When it was learned.
    pub since: Timestamp,
    /// The sentence of the older item that holds no more.
    pub was: String,
    /// The sentence of the newer item.
    pub now: String,
    /// The numbers of these sentences, from 0.
    pub places: (usize, usize),
}

impl MemoryUpdate {
    /// Returns the update of a prompt that was sent, or `None` if there are no such sentences.
    #[must_use]
    pub fn again(older: &MemoryItem, newer: &MemoryItem, places: (usize, usize)) -> Option<Self> {
        let sentence = |item: &MemoryItem, place: usize| -> Option<String> {
            let text = stated_text(item);
            stated_sentences(&text).get(place).cloned()
        };
        Some(Self {
            newer: newer.id,
            since: newer.valid_from,
            was: sentence(older, places.0)?,
            now: sentence(newer, places.1)?,
            places,
        })
    }

    /// Returns true if the older item says more than the sentence that holds no more.
    #[must_use]
    pub fn is_partial(&self, older: &MemoryItem) -> bool {
        stated_sentences(&stated_text(older)).len() > 1
    }
}

/// A group of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordGroup {
    State,
    Change,
    Open,
    Month,
    Weekday,
    Number,
    Pronoun,
    Person,
    Place,
}

impl WordGroup {
    const ALL: [(&'static str, Self); 9] = [
        ("[state]", Self::State),
        ("[change]", Self::Change),
        ("[open]", Self::Open),
        ("[month]", Self::Month),
        ("[weekday]", Self::Weekday),
        ("[number]", Self::Number),
        ("[pronoun]", Self::Pronoun),
        ("[person]", Self::Person),
        ("[place]", Self::Place),
    ];

    fn has(self, word: &str) -> bool {
        static GROUPS: LazyLock<HashMap<&str, Vec<WordGroup>>> = LazyLock::new(|| {
            let mut groups: HashMap<&str, Vec<WordGroup>> = HashMap::new();
            for line in WORDS.lines() {
                let mut words = line.split_whitespace();
                let head = words.next();
                let of_line = WordGroup::ALL.iter().find(|(name, _)| Some(*name) == head);
                for (word, (_, group)) in words.zip(std::iter::repeat(of_line).flatten()) {
                    groups.entry(word).or_default().push(*group);
                }
            }
            groups
        });
        GROUPS.get(word).is_some_and(|groups| groups.contains(&self))
    }
}

/// A value in a sentence: a number, a date, a time, a day or a place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StatedValue {
    /// The same for values that may replace each other.
    shape: String,
    text: String,
}

/// A sentence that says something of something.
#[derive(Debug, Clone)]
struct StatedSentence {
    /// The number of the sentence in its text, from 0.
    number: usize,
    values: Vec<StatedValue>,
    /// The words that say of what, without values.
    subject: BTreeSet<String>,
    /// A verb of state stands before the value.
    states: bool,
    /// A word of change stands in it.
    changes: bool,
    has_pronoun: bool,
    /// It is about who says it: "I live in Bergen".
    is_personal: bool,
}

/// An item with its statements.
pub(crate) struct StatedItem<'a> {
    pub(crate) item: &'a MemoryItem,
    statements: Vec<StatedSentence>,
}

impl<'a> StatedItem<'a> {
    /// Reads what an item states: a message of the creator, or a fact.
    pub(crate) fn of(item: &'a MemoryItem) -> Self {
        let text = stated_text(item);
        let sentences = stated_sentences(&text);
        let read = sentences.len() <= SENTENCES_MAX;
        let numbered = sentences.into_iter().enumerate().filter(|_| read);
        let statements = numbered.filter_map(|(number, it)| statement(number, &it)).collect();
        Self { item, statements }
    }
}

/// Returns the sentences of a text; the point of a German date, as in "3. Mai", ends none.
fn stated_sentences(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for sentence in sentences(text) {
        let first = sentence.split_whitespace().next().map(|word| trimmed(word).to_lowercase());
        let is_month = first.is_some_and(|word| WordGroup::Month.has(&word));
        let is_day = |before: &&mut String| {
            before.strip_suffix('.').is_some_and(|day| day.ends_with(|c: char| c.is_ascii_digit()))
        };
        match found.last_mut().filter(|_| is_month).filter(is_day) {
            Some(before) => {
                before.push(' ');
                before.push_str(sentence);
            }
            None => found.push(sentence.to_owned()),
        }
    }
    found
}

/// Returns the text of what an item states, empty where nothing of it is read.
fn stated_text(item: &MemoryItem) -> String {
    match item.tier {
        MemoryTier::Episodic if is_message(item) => item.body.text.clone(),
        MemoryTier::Semantic if item.body.label <= Label::Own => {
            format!("{} is {}", item.name.replace(['_', '-'], " "), item.body.text)
        }
        _ => String::new(),
    }
}

/// Returns true for what the creator said.
pub(crate) fn is_message(item: &MemoryItem) -> bool {
    item.tier == MemoryTier::Episodic && item.kind == "message" && item.body.label == Label::Creator
}

/// Returns the messages that the creator sent right after one, as far as they were looked up.
pub(crate) fn followers(of: MemoryId, matches: &MemoryMatches) -> Vec<&MemoryItem> {
    let of_it = matches.followers.iter().filter(|(older, _)| *older == of);
    of_it.map(|(_, follower)| follower).collect()
}

/// Returns what in a newer item has replaced a statement of an older one, if it plainly has.
pub(crate) fn update_of(
    older: &StatedItem<'_>,
    newer: &StatedItem<'_>,
    followers: &[&MemoryItem],
) -> Option<MemoryUpdate> {
    let is_later = (older.item.valid_from, older.item.id) < (newer.item.valid_from, newer.item.id);
    if !is_later || newer.item.body.label > older.item.body.label {
        return None;
    }
    let follows = |was: &StatedSentence| is_next(was, newer.item, followers);
    for was in &older.statements {
        let now = newer
            .statements
            .iter()
            .find(|now| is_replaced(was, now) || is_replaced_by_pronoun(was, now) && follows(was));
        if let Some(now) = now {
            let places = (was.number, now.number);
            return MemoryUpdate::again(older.item, newer.item, places);
        }
    }
    None
}

/// Returns true if a message is the first after a statement that has a value of its shape.
fn is_next(was: &StatedSentence, newer: &MemoryItem, followers: &[&MemoryItem]) -> bool {
    let Some(shape) = was.values.first().map(|value| &value.shape) else { return false };
    let has_shape = |item: &MemoryItem| {
        let sentences = sentences(&item.body.text);
        sentences.iter().any(|it| values(it).iter().any(|(value, _)| value.shape == *shape))
    };
    followers.iter().find(|follower| has_shape(follower)).is_some_and(|it| it.id == newer.id)
}

/// Returns true if the newer statement says another value of the same thing.
fn is_replaced(was: &StatedSentence, now: &StatedSentence) -> bool {
    if other_value(was, now).is_none() {
        return false;
    }
    let is_same = !was.subject.is_empty() && was.subject == now.subject;
    let moved = was.subject.is_empty() && now.subject.is_empty() && is_place(was);
    was.states
        && (is_same && (now.states || now.changes)
            || moved && was.is_personal && now.is_personal && now.changes && !now.has_pronoun)
}

/// Returns true if the newer statement says a change of something that it does not name, and the
/// older one may be about that.
fn is_replaced_by_pronoun(was: &StatedSentence, now: &StatedSentence) -> bool {
    let is_about = was.states && !was.subject.is_empty();
    let names_nothing = now.changes && now.has_pronoun && now.subject.is_empty();
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).count();
    let is_near = |value: &StatedValue| {
        was.values.iter().all(|old| digits(&old.text).abs_diff(digits(&value.text)) <= 1)
    };
    is_about && names_nothing && other_value(was, now).is_some_and(is_near)
}

fn is_place(statement: &StatedSentence) -> bool {
    statement.values.iter().all(|value| value.shape == "place")
}

/// Returns the value that the newer statement has in place of the one of the older.
fn other_value<'a>(was: &StatedSentence, now: &'a StatedSentence) -> Option<&'a StatedValue> {
    let [old] = was.values.as_slice() else { return None };
    let new = match now.values.as_slice() {
        [new] => new,
        // "from 8080 to 9090"
        [first, new] if first == old => new,
        _ => return None,
    };
    (new.shape == old.shape && new.text != old.text).then_some(new)
}

/// Reads a sentence that states something; a question, a plan or a denial states nothing.
fn statement(number: usize, sentence: &str) -> Option<StatedSentence> {
    if sentence.contains('?') {
        return None;
    }
    let lower = sentence.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
    let any = |group: WordGroup| words.iter().any(|word| group.has(word));
    let found = values(sentence);
    if found.is_empty() || any(WordGroup::Open) {
        return None;
    }
    let first_value = found.iter().map(|(_, at)| *at).min()?;
    let before = lower.get(..first_value).unwrap_or_default();
    let states = before.split(|c: char| !c.is_alphanumeric()).any(|it| WordGroup::State.has(it));
    let is_kept = |word: &&str| {
        let is_value = found.iter().any(|(value, _)| value.text.split(' ').any(|it| it == *word));
        !is_value && !WordGroup::State.has(word) && !WordGroup::Change.has(word)
    };
    let trimmed = lower.split_whitespace().map(trimmed);
    let rest: Vec<&str> = trimmed.filter(is_kept).collect();
    Some(StatedSentence {
        number,
        values: found.into_iter().map(|(value, _)| value).collect(),
        subject: subject_terms(&rest.join(" ")),
        states,
        changes: any(WordGroup::Change),
        has_pronoun: any(WordGroup::Pronoun),
        is_personal: any(WordGroup::Person),
    })
}

/// Returns a word without the marks around it.
fn trimmed(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

/// Returns the values of a sentence, each with the byte at which it stands.
fn values(sentence: &str) -> Vec<(StatedValue, usize)> {
    let mut words: Vec<(usize, &str)> = Vec::new();
    let mut at = 0;
    for word in sentence.split_inclusive(char::is_whitespace) {
        let kept = trimmed(word);
        if !kept.is_empty() {
            words.push((at + word.find(kept).unwrap_or(0), kept));
        }
        at += word.len();
    }
    let lower: Vec<String> = words.iter().map(|(_, word)| word.to_lowercase()).collect();
    let mut found: Vec<(StatedValue, usize)> = Vec::new();
    let mut place = 0;
    while let (Some((at, word)), Some(low)) = (words.get(place), lower.get(place)) {
        let next = lower.get(place + 1).map(String::as_str).unwrap_or_default();
        let is_number = |word: &str| word.chars().any(|c| c.is_ascii_digit());
        let is_month = |word: &str| WordGroup::Month.has(word);
        let pair = is_number(low) && is_month(next) || is_month(low) && is_number(next);
        let is_capital = |word: &&(usize, &str)| word.1.starts_with(char::is_uppercase);
        let named = words.get(place + 1).filter(is_capital).map(|(at, _)| *at);
        if pair {
            push(&mut found, "date", format!("{low} {next}"), *at);
            place += 1;
        } else if WordGroup::Place.has(low)
            && let Some(at) = named.filter(|_| !WordGroup::Weekday.has(next) && !is_month(next))
        {
            push(&mut found, "place", next.to_owned(), at);
            place += 1;
        } else if WordGroup::Weekday.has(low) {
            push(&mut found, "weekday", low.clone(), *at);
        } else if is_number(low) {
            push(&mut found, &shape(word), low.clone(), *at);
        } else if WordGroup::Number.has(low) {
            push(&mut found, "9", low.clone(), *at);
        }
        place += 1;
    }
    found
}

fn push(found: &mut Vec<(StatedValue, usize)>, shape: &str, text: String, at: usize) {
    found.push((StatedValue { shape: shape.to_owned(), text }, at));
}

/// Returns a number with each run of digits as one.
fn shape(word: &str) -> String {
    let mut shape = String::new();
    for c in word.chars() {
        match c.is_ascii_digit() {
            true if shape.ends_with('9') => {}
            true => shape.push('9'),
            false => shape.push(c),
        }
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;
    use automaton_testkit::memory::memory_item;
    use proptest::prelude::*;

    fn said(id: i64, text: &str) -> MemoryItem {
        let item = memory_item(id, MemoryTier::Episodic, "message/", Label::Creator, text);
        MemoryItem { valid_from: Timestamp::from_millis(id * 1000), ..item }
    }

    /// The update of one message by the next.
    fn next(older: &str, newer: &str) -> Option<MemoryUpdate> {
        let older = said(1, older);
        let newer = said(2, newer);
        update_of(&StatedItem::of(&older), &StatedItem::of(&newer), &[&newer])
    }

    #[test]
    fn a_plain_change_is_seen() {
        for (older, newer) in [
            ("My port is 8080.", "I moved it to 9090."),
            ("My port is 8080.", "My port is 9090."),
            ("My port is 8080.", "The port moved from 8080 to 9090."),
            ("Mein Port ist 8080.", "Ich habe den Port auf 9090 verlegt."),
            ("Our standup is at 9:30.", "We moved the standup to 10:00."),
            ("The rent for the shed is 60 euros.", "The rent for the shed is now 75 euros."),
            (
                "Das Treffen der Imker ist am 3. Mai.",
                "Das Treffen der Imker wurde auf den 10. Mai verschoben.",
            ),
            ("Der Laden öffnet um neun.", "Der Laden öffnet jetzt schon um acht."),
            ("My boat lies in Bergen.", "My boat now lies in Oslo."),
            ("I live in Bergen.", "I moved to Oslo."),
            ("Hello there. My port is 8080.", "And I moved it to 9090."),
        ] {
            assert!(next(older, newer).is_some(), "{older} / {newer}");
        }
    }

    #[test]
    fn what_still_holds_is_not_marked() {
        for (older, newer) in [
            ("My boat is called Ilse and lies in Bergen.", "My boat Ilse now has a new engine."),
            ("My port is 8080.", "Is my port 9090?"),
            ("My port is 8080.", "Maybe I should move it to 9090."),
            ("My port is 8080.", "I did not move it to 9090."),
            ("My port is 8080.", "Anna says my port is 9090."),
            ("My port is 8080.", "The printer's port is 9100."),
            ("My port is 8080.", "The new printer port is 9100."),
            ("My port is 8080.", "I moved the cat to room 12."),
            ("My port is 8080.", "We meet at 9:30."),
            ("My port is 8080.", "Tomorrow it is 9090."),
            ("Invoice 17 is paid.", "Invoice 18 is paid."),
            ("I ran 5 km.", "I ran 8 km."),
            ("The kitchen lamp costs 40 euros.", "The kitchen table costs 90 euros."),
            ("My meeting with Anna is at 9.", "My meeting with Bob is at 10."),
            ("Max is 12.", "Lena is 9."),
            ("He is 12.", "He is 9."),
            ("The train leaves at 9:15.", "The train leaves at 17:40."),
            ("My sister lives in Bergen.", "My brother lives in Oslo."),
            ("My sister lives in Bergen.", "I moved to Oslo."),
            ("My port is 8080.", "My port is 8080 now."),
            ("My port is 8080 and 8081.", "My port is 9090."),
            ("The shop opens at 9.", "The shop opens at 10 on Saturday."),
        ] {
            assert_eq!(next(older, newer), None, "{older} / {newer}");
        }
    }

    #[test]
    fn a_pronoun_means_the_statement_right_before_it() {
        let messages = [
            said(1, "My port is 8080."),
            said(2, "My code is 4711."),
            said(3, "I moved it to 9090."),
        ];
        let [port, code, moved] = messages.each_ref().map(StatedItem::of);
        let of_port = [&messages[1], &messages[2]];
        assert_eq!(update_of(&port, &moved, &of_port), None);
        let update = update_of(&code, &moved, &[&messages[2]]).unwrap();
        assert_eq!((update.newer, update.now.as_str()), (MemoryId(3), "I moved it to 9090."));
        // Without knowing what came next it may be about anything.
        assert_eq!(update_of(&code, &moved, &[]), None);
    }

    #[test]
    fn a_fact_and_a_message_replace_each_other_and_nobody_less_trusted_does() {
        let fact = |label, id, text| {
            let item = memory_item(id, MemoryTier::Semantic, "creator/port", label, text);
            MemoryItem { valid_from: Timestamp::from_millis(id * 1000), ..item }
        };
        let update = |older: &MemoryItem, newer: &MemoryItem| {
            update_of(&StatedItem::of(older), &StatedItem::of(newer), &[]).is_some()
        };
        assert!(update(&fact(Label::Own, 1, "8080"), &said(2, "My port is 9090.")));
        assert!(update(&said(1, "My port is 8080."), &fact(Label::Creator, 2, "9090")));
        assert!(!update(&said(1, "My port is 8080."), &fact(Label::Own, 2, "9090")));
        assert!(!update(&said(1, "My port is 8080."), &fact(Label::Peer, 2, "9090")));
        assert!(!update(&said(3, "My port is 8080."), &said(2, "My port is 9090.")));
    }

    #[test]
    fn an_update_is_made_again_by_the_numbers_of_its_sentences() {
        let older = said(1, "Hello. My port is 8080.");
        let newer = said(2, "My port is 9090.");
        let update = update_of(&StatedItem::of(&older), &StatedItem::of(&newer), &[]).unwrap();
        assert_eq!(update.places, (1, 0));
        assert!(update.is_partial(&older) && !update.is_partial(&newer));
        assert_eq!(MemoryUpdate::again(&older, &newer, (1, 0)).as_ref(), Some(&update));
        assert_eq!(MemoryUpdate::again(&older, &newer, (7, 0)), None);
    }

    proptest! {
        #[test]
        fn no_text_replaces_itself_or_breaks_it(text in ".{0,60}|(my |port |is |8080 |in |Oslo |May |now |it |\\. ){0,12}") {
            prop_assert_eq!(next(&text, &text), None);
        }
    }
}
