//! Pure: the words and rules of `phrases.txt`, prepared for lookup.
//!
//! The words of all languages are in one automaton over normalised bytes, which reads a text
//! once. A lookup must never take longer than the word is long.

use std::collections::{BTreeMap, HashMap};

use aho_corasick::automaton::Automaton as _;
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, MatchKind};

use super::GuardCheck;
use super::fold::{NormalizedText, is_unspaced};

/// The built-in phrases.
const PHRASES: &str = include_str!("phrases.txt");
/// The mask bit of an English word, or of a word that needs no language.
pub(super) const ENGLISH: u128 = 1 << 127;
/// The most groups that a mask can hold.
const GROUPS_MAX: usize = 120;
/// The most words of a sentence between two groups of a rule.
const GAP_MAX: u32 = 16;
/// The most bytes between two words of one entry.
const SEPARATORS_MAX: usize = 4;
/// Groups without word lists: they are found by their form.
const FORMS: [&str; 5] = ["colon", "addr", "rmroot", "rot", "reversed"];
/// Groups whose English words are also known in rot13 and reversed.
const DISGUISED: [&str; 7] = ["ignore", "prior", "instr", "reveal", "send", "funds", "delete"];
/// The fewest letters of a disguised word. A shorter one could be any word.
const DISGUISED_LETTERS_MIN: usize = 5;

/// A mistake in the phrase list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, automaton_core::error::Classified)]
#[error("line {line} of the guard's phrases: {what}")]
#[class(Internal)]
pub struct PhraseListError {
    line: usize,
    what: String,
}

/// The weight of a rule by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    Weak,
    Strong,
}

/// A sequence of word groups.
#[derive(Debug)]
pub(super) struct PhraseRule {
    pub(super) check: GuardCheck,
    pub(super) weight: Weight,
    /// The groups, each with its largest distance from the one before, in half words.
    pub(super) steps: Vec<(u128, u32)>,
    /// The rule as written, for readers of a finding.
    pub(super) words: String,
}

/// The masks of groups that are found by their form.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FormGroups {
    pub(super) colon: u128,
    pub(super) address: u128,
    pub(super) rm_root: u128,
    pub(super) rot: u128,
    pub(super) reversed: u128,
    pub(super) discuss: u128,
    pub(super) deny: u128,
    pub(super) report: u128,
}

/// The word lists and rules.
#[derive(Debug)]
pub(super) struct Lexicon {
    /// The entries. The words of an entry are separated by a blank.
    entries: NFA,
    masks: Vec<EntryMasks>,
    pub(super) rules: Vec<PhraseRule>,
    pub(super) forms: FormGroups,
}

/// The groups of a word that equals an entry, and of one that starts with it.
#[derive(Debug, Default, Clone, Copy)]
struct EntryMasks {
    exact: u128,
    stem: u128,
}

impl Lexicon {
    /// Loads the phrases.
    ///
    /// # Errors
    /// Fails if a line is neither words nor a rule.
    pub(super) fn new() -> Result<Self, PhraseListError> {
        Self::parse(PHRASES)
    }

    fn parse(text: &str) -> Result<Self, PhraseListError> {
        let mut groups: HashMap<&str, u128> = HashMap::new();
        for name in FORMS.into_iter().chain(text.lines().filter_map(group_name)) {
            let mask = 1 << groups.len().min(GROUPS_MAX);
            groups.insert(name, mask);
        }
        let bad =
            |line: usize, what: &str| PhraseListError { line: line + 1, what: what.to_owned() };
        if groups.len() > GROUPS_MAX {
            return Err(bad(0, "there are more groups than a mask has room for"));
        }
        let mut entries = Entries::default();
        let mut rules = Vec::new();
        let mut current = "";
        for (at, line) in text.lines().enumerate() {
            let words = match (group_name(line), line.chars().next()) {
                (Some(name), _) => {
                    current = name;
                    &line[name.len() + 1..]
                }
                (None, None | Some('#')) => continue,
                (None, Some(' ')) => line,
                (None, Some(_)) => {
                    rules.push(parse_rule(line, &groups).map_err(|what| bad(at, &what))?);
                    continue;
                }
            };
            let mask = groups.get(current).copied().ok_or_else(|| bad(at, "words of no group"))?;
            let hints = DISGUISED.contains(&current).then(|| (groups["rot"], groups["reversed"]));
            entries.add_line(words, mask, hints);
        }
        let mask = |name: &str| groups.get(name).copied().unwrap_or(0);
        let forms = FormGroups {
            colon: mask("colon"),
            address: mask("addr"),
            rm_root: mask("rmroot"),
            rot: mask("rot"),
            reversed: mask("reversed"),
            discuss: mask("discuss"),
            deny: mask("dont"),
            report: mask("report"),
        };
        let (words, masks): (Vec<String>, Vec<EntryMasks>) = entries.0.into_iter().unzip();
        let entries = NFA::builder().match_kind(MatchKind::Standard).build(&words);
        let entries = entries.map_err(|error| bad(0, &error.to_string()))?;
        Ok(Self { entries, masks, rules, forms })
    }

    /// Looks up the word at a position of a normalised text, alone and with the words after it.
    /// Returns the groups and the end of the longest entry.
    pub(super) fn look_up(&self, bytes: &[u8], start: usize) -> (u128, usize) {
        let mut at = start;
        let mut mask = 0;
        let mut end = start;
        let mut length = 0;
        let Ok(mut state) = self.entries.start_state(Anchored::Yes) else { return (0, start) };
        loop {
            let label = match bytes.get(at) {
                Some(b) if is_word(*b) => {
                    at += 1;
                    b.to_ascii_lowercase()
                }
                _ => {
                    let rest = bytes.get(at..).unwrap_or_default();
                    let skipped = rest.iter().take_while(|b| !is_word(**b)).count();
                    if skipped == 0 || skipped > SEPARATORS_MAX || at == start {
                        return (mask, end);
                    }
                    at += skipped;
                    b' '
                }
            };
            state = self.entries.next_state(Anchored::Yes, state, label);
            length += 1;
            if self.entries.is_dead(state) {
                return (mask, end);
            }
            if !self.entries.is_match(state) {
                continue;
            }
            // The longest entry that ends here. Others began within the word.
            let entry = self.entries.match_pattern(state, 0);
            if self.entries.pattern_len(entry) == length {
                let EntryMasks { exact, stem } = self.masks[entry.as_usize()];
                let is_end = !bytes.get(at).copied().is_some_and(is_word);
                let found = stem | if is_end { exact } else { 0 };
                if found != 0 {
                    (mask, end) = (mask | found, at);
                }
            }
        }
    }
}

/// The entries while they are read.
#[derive(Debug, Default)]
struct Entries(BTreeMap<String, EntryMasks>);

impl Entries {
    /// Adds the words of a line.
    fn add_line(&mut self, words: &str, mask: u128, hints: Option<(u128, u128)>) {
        let mut language = "en";
        for word in words.split_whitespace() {
            if let Some(name) = word.strip_suffix(':').filter(|name| name.len() == 2) {
                language = name;
                continue;
            }
            let (word, is_stem) = word.strip_suffix('*').map_or((word, false), |word| (word, true));
            let folded = NormalizedText::new(word).as_str().to_lowercase();
            let is_stem = is_stem || folded.chars().next().is_some_and(is_unspaced);
            let english = if language == "en" { ENGLISH } else { 0 };
            self.add(&folded, mask | english, is_stem);
            let letters = folded.bytes().all(|b| b.is_ascii_lowercase());
            if let Some((rot, reversed)) = hints
                && language == "en"
                && letters
                && folded.len() >= DISGUISED_LETTERS_MIN
            {
                self.add(&super::decode::rot13(&folded), rot | ENGLISH, false);
                let backwards: String = folded.chars().rev().collect();
                self.add(&backwards, reversed | ENGLISH, false);
            }
        }
    }

    fn add(&mut self, entry: &str, mask: u128, is_stem: bool) {
        let words = entry.split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let masks = self.0.entry(words.join(" ")).or_default();
        *if is_stem { &mut masks.stem } else { &mut masks.exact } |= mask;
    }
}

/// The bytes of a normalised text that belong to words.
const WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut at = 0;
    while at < 256 {
        table[at] = at >= 0x80 || matches!(at, 0x30..=0x39 | 0x41..=0x5a | 0x61..=0x7a);
        at += 1;
    }
    table
};

/// Returns true if a byte of a normalised text belongs to a word.
#[inline]
pub(super) fn is_word(b: u8) -> bool {
    WORD[usize::from(b)]
}

/// Returns the name of the group that a line starts, if it starts one.
fn group_name(line: &str) -> Option<&str> {
    let (name, _) = line.split_once(':')?;
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase());
    is_name.then_some(name)
}

/// Parses a line that is a rule.
fn parse_rule(line: &str, groups: &HashMap<&str, u128>) -> Result<PhraseRule, String> {
    let mut parts = line.split_whitespace();
    let check = parts.next().unwrap_or("");
    let weight = parts.next().unwrap_or("");
    let check = GuardCheck::by_name(check);
    let check = check.ok_or_else(|| format!("'{line}' names no check"))?;
    let weight = match weight {
        "strong" => Weight::Strong,
        "weak" => Weight::Weak,
        other => return Err(format!("'{other}' is no weight: strong or weak")),
    };
    let mut steps = Vec::new();
    let mut gap = 0;
    for part in parts {
        if let Ok(words) = part.parse::<u32>() {
            gap = words.min(GAP_MAX);
            continue;
        }
        let mut mask = 0;
        for name in part.split('|') {
            mask |= groups.get(name).ok_or_else(|| format!("'{name}' is no group"))?;
        }
        steps.push((mask, 2 * (gap + 1)));
        gap = 0;
    }
    let words = line.split_whitespace().skip(2).filter(|part| part.parse::<u32>().is_err());
    let words = words.collect::<Vec<_>>().join(" ");
    if steps.is_empty() {
        Err("a rule without groups".to_owned())
    } else {
        Ok(PhraseRule { check, weight, steps, words })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_phrases_can_be_read() {
        let lexicon = Lexicon::new().unwrap();
        assert!(lexicon.rules.len() > 60 && lexicon.masks.len() > 1500);
    }

    #[test]
    fn words_stems_and_entries_of_two_words_are_found() {
        let lexicon = Lexicon::parse("a: send* set_aside\nb: set 忽略").unwrap();
        let found = |text: &str| lexicon.look_up(text.as_bytes(), 0);
        let a = found("sending it");
        assert_eq!((a.0 != 0, a.1), (true, 4));
        let (both, end) = found("Set  aside now");
        assert_eq!((both.count_ones(), end), (3, 10), "both groups and English");
        assert_eq!(found("setting").0, 0);
        assert_eq!(found("忽略之前").1, 6);
    }

    #[test]
    fn mistakes_are_named() {
        let told = |text: &str| Lexicon::parse(text).unwrap_err().to_string();
        assert_eq!(
            told("a: b\nnothing strong a"),
            "line 2 of the guard's phrases: 'nothing strong a' names no check"
        );
        assert!(told("authority_claims strong zzz").contains("'zzz' is no group"));
        assert!(told("authority_claims grave a").contains("'grave' is no weight"));
    }
}
