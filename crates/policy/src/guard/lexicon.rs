//! Pure: the words and rules of `phrases.txt`, ready to be looked up.
//!
//! Words of all languages lie in one trie over folded bytes; a text is read along it
//! once. Must never take longer for a word than the word is long.

use std::collections::{BTreeMap, HashMap};

use super::GuardCheck;
use super::fold::{NormalizedText, is_unspaced};

/// The phrases that the guard is built with.
const PHRASES: &str = include_str!("phrases.txt");
/// Set on what an English word, or one that needs no language, was found by.
pub(super) const ENGLISH: u128 = 1 << 127;
/// Groups that a mask has room for.
const GROUPS_MAX: usize = 120;
/// Words of a sentence that may stand between two groups of a rule.
const GAP_MAX: u32 = 16;
/// Bytes that may stand between two words of one entry.
const SEPARATORS_MAX: usize = 4;
/// Bytes of a word that say whether an entry may begin so, and bits to say it in.
const START_BYTES: usize = 3;
const START_BITS: usize = 1 << 16;
/// Edges from which on a node is searched otherwise than one by one.
const EDGES_MANY: usize = 8;
/// Groups that no list of words makes: they are found by their form.
const FORMS: [&str; 5] = ["colon", "addr", "rmroot", "rot", "reversed"];
/// Groups whose English words are known in rot13 and backwards, too.
const DISGUISED: [&str; 7] = ["ignore", "prior", "instr", "reveal", "send", "funds", "delete"];
/// Letters below which a disguised word could be any word.
const DISGUISED_LETTERS_MIN: usize = 5;

/// A mistake in the list of phrases.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, automaton_core::error::Classified)]
#[error("line {line} of the guard's phrases: {what}")]
#[class(Internal)]
pub struct PhraseListError {
    line: usize,
    what: String,
}

/// How much a rule says by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    Weak,
    Strong,
}

/// Groups of words that follow each other.
#[derive(Debug)]
pub(super) struct PhraseRule {
    pub(super) check: GuardCheck,
    pub(super) weight: Weight,
    /// For each of the groups, in half words, how far it may be from the one before.
    pub(super) steps: Vec<(u128, u32)>,
    /// As it was written, for whoever reads a finding.
    pub(super) words: String,
}

/// Groups that are found by their form, each as a mask.
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

#[derive(Debug, Default, Clone, Copy)]
struct TrieNode {
    first: u32,
    edges: u16,
    /// Which of the masks a word has that ends here, and one that goes on; 0 is none.
    exact: u16,
    stem: u16,
}

/// Everything that is looked for in words.
#[derive(Debug)]
pub(super) struct Lexicon {
    nodes: Vec<TrieNode>,
    /// How entries begin, as bits of [`start_bit`]: most words end here.
    starts: Vec<u64>,
    /// The node of each first byte.
    roots: Vec<u32>,
    labels: Vec<u8>,
    targets: Vec<u32>,
    masks: Vec<u128>,
    pub(super) rules: Vec<PhraseRule>,
    pub(super) forms: FormGroups,
}

#[derive(Debug, Default)]
struct TrieBuilderNode {
    edges: BTreeMap<u8, TrieBuilderNode>,
    exact: u128,
    stem: u128,
}

impl Lexicon {
    /// Reads the phrases.
    ///
    /// # Errors
    /// When a line of them is neither words nor a rule.
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
        let mut root = TrieBuilder::default();
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
                    rules.push(rule(line, &groups).map_err(|what| bad(at, &what))?);
                    continue;
                }
            };
            let mask = groups.get(current).copied().ok_or_else(|| bad(at, "words of no group"))?;
            let hints = DISGUISED.contains(&current).then(|| (groups["rot"], groups["reversed"]));
            root.add_line(words, mask, hints);
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
        let mut lexicon = Self {
            nodes: vec![TrieNode::default()],
            starts: vec![0; START_BITS / 64],
            roots: vec![0; 256],
            labels: Vec::new(),
            targets: Vec::new(),
            masks: vec![0],
            rules,
            forms,
        };
        lexicon.lay_out(&root.sprout);
        for (word, goes_on) in &root.heads {
            lexicon.mark(word, *goes_on);
        }
        Ok(lexicon)
    }

    /// Lays the trie out flat, children beside each other.
    fn lay_out(&mut self, root: &TrieBuilderNode) {
        let mut known = HashMap::from([(0, 0)]);
        let mut queue = std::collections::VecDeque::from([(0_usize, root)]);
        while let Some((at, sprout)) = queue.pop_front() {
            let mut index = |mask: u128| {
                *known.entry(mask).or_insert_with(|| {
                    self.masks.push(mask);
                    u16::try_from(self.masks.len() - 1).unwrap_or(0)
                })
            };
            let (exact, stem) = (index(sprout.exact), index(sprout.stem));
            let first = u32::try_from(self.labels.len()).unwrap_or(0);
            let edges = u16::try_from(sprout.edges.len()).unwrap_or(0);
            self.nodes[at] = TrieNode { first, edges, exact, stem };
            for (label, child) in &sprout.edges {
                self.labels.push(*label);
                let target = u32::try_from(self.nodes.len()).unwrap_or(0);
                if at == 0 {
                    self.roots[usize::from(*label)] = target;
                }
                self.targets.push(target);
                queue.push_back((self.nodes.len(), child));
                self.nodes.push(TrieNode::default());
            }
        }
    }

    /// Notes how an entry begins whose first word is this, or begins like this.
    fn mark(&mut self, word: &[u8], goes_on: bool) {
        let mut bits = vec![0];
        for offset in 0..START_BYTES {
            let next = match word.get(offset) {
                Some(byte) => *byte..=*byte,
                None if goes_on => 0..=u8::MAX,
                None => b' '..=b' ',
            };
            bits =
                next.flat_map(|next| bits.iter().map(move |bit| start_bit(*bit, next))).collect();
        }
        for bit in bits {
            self.starts[bit / 64] |= 1 << (bit % 64);
        }
    }

    /// Whether an entry may begin at a place: sometimes wrongly, never wrongly no.
    fn may_start(&self, bytes: &[u8], start: usize) -> bool {
        let (mut bit, mut ended) = (0, false);
        for offset in 0..START_BYTES {
            let byte = bytes.get(start + offset).filter(|b| !ended && is_word(**b));
            ended = byte.is_none();
            bit = start_bit(bit, byte.map_or(b' ', u8::to_ascii_lowercase));
        }
        self.starts.get(bit / 64).is_some_and(|bits| bits >> (bit % 64) & 1 == 1)
    }

    /// What the word at a place of a folded text is, alone and with what follows it:
    /// the groups, and where the longest entry ends.
    pub(super) fn look_up(&self, bytes: &[u8], start: usize) -> (u128, usize) {
        if !self.may_start(bytes, start) {
            return (0, start);
        }
        let Some(first) = bytes.get(start).map(u8::to_ascii_lowercase) else { return (0, start) };
        let root = usize::try_from(self.roots[usize::from(first)]).unwrap_or(0);
        if root == 0 {
            return (0, start);
        }
        let (mut node, mut at, mut mask, mut end) = (self.nodes[root], start + 1, 0, start);
        loop {
            if node.stem != 0 {
                mask |= self.masks[usize::from(node.stem)];
                end = at;
            }
            let next = bytes.get(at).copied();
            let label = match next {
                Some(b) if is_word(b) => {
                    at += 1;
                    b.to_ascii_lowercase()
                }
                _ => {
                    if node.exact != 0 {
                        mask |= self.masks[usize::from(node.exact)];
                        end = at;
                    }
                    let rest = bytes.get(at..).unwrap_or_default();
                    let skipped = rest.iter().take_while(|b| !is_word(**b)).count();
                    if skipped == 0 || skipped > SEPARATORS_MAX || at == start {
                        return (mask, end);
                    }
                    at += skipped;
                    b' '
                }
            };
            let first = usize::try_from(node.first).unwrap_or(0);
            let edges = &self.labels[first..first + usize::from(node.edges)];
            let edge = match edges.len() {
                ..EDGES_MANY => edges.iter().position(|edge| *edge == label),
                _ => memchr::memchr(label, edges),
            };
            let Some(edge) = edge else { return (mask, end) };
            let target = usize::try_from(self.targets[first + edge]).unwrap_or(0);
            node = self.nodes[target];
        }
    }
}

/// The trie while it grows, with the first word of each entry and whether more of it
/// may follow.
#[derive(Debug, Default)]
struct TrieBuilder {
    sprout: TrieBuilderNode,
    heads: Vec<(Vec<u8>, bool)>,
}

impl TrieBuilder {
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
        let mut node = &mut self.sprout;
        let words = entry.split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        for (index, word) in words.iter().enumerate() {
            if index == 0 {
                self.heads.push((word.as_bytes().to_vec(), is_stem && words.len() == 1));
            } else {
                node = node.edges.entry(b' ').or_default();
            }
            for byte in word.bytes() {
                node = node.edges.entry(byte).or_default();
            }
        }
        if is_stem {
            node.stem |= mask;
        } else {
            node.exact |= mask;
        }
    }
}

/// The bit of a beginning, byte for byte.
fn start_bit(bit: usize, next: u8) -> usize {
    (bit * 37 + usize::from(next)) % START_BITS
}

/// Bytes of a folded text that belong to words.
const WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut at = 0;
    while at < 256 {
        table[at] = at >= 0x80 || matches!(at, 0x30..=0x39 | 0x41..=0x5a | 0x61..=0x7a);
        at += 1;
    }
    table
};

/// Whether a byte of a folded text belongs to a word.
#[inline]
pub(super) fn is_word(b: u8) -> bool {
    WORD[usize::from(b)]
}

/// The group that a line begins.
fn group_name(line: &str) -> Option<&str> {
    let (name, _) = line.split_once(':')?;
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase());
    is_name.then_some(name)
}

/// A line that is a rule.
fn rule(line: &str, groups: &HashMap<&str, u128>) -> Result<PhraseRule, String> {
    let mut parts = line.split_whitespace();
    let (check, weight) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    let check = GuardCheck::by_name(check);
    let check = check.ok_or_else(|| format!("'{line}' names no check"))?;
    let weight = match weight {
        "strong" => Weight::Strong,
        "weak" => Weight::Weak,
        other => return Err(format!("'{other}' is no weight: strong or weak")),
    };
    let (mut steps, mut gap) = (Vec::new(), 0);
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
        assert!(lexicon.rules.len() > 60 && lexicon.nodes.len() > 3000);
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
