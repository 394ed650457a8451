//! Pure: reduces a normalised text to the words that matter to a rule.
//!
//! It makes one pass, whose work is bounded for each byte. Positions are counted in half words,
//! since a character of a script without blanks is about half a word. The result is advice: a
//! word in an unforeseen spelling is not found, and nothing may depend on it.

use super::fold::{is_unspaced, looks_like};
use super::lexicon::{FormGroups, Lexicon, PhraseRule, is_word};

/// The longest word that is checked for disguises, in bytes.
const DISGUISED_BYTES_MAX: usize = 24;
/// The length of an address on an EVM chain, `0x` and 40 digits.
const ADDRESS_BYTES: usize = 42;
/// The shortest word that may be an encoding.
pub(super) const LONG_BYTES: usize = 16;
/// The bytes after `rm` that are searched for its arguments.
const REMOVAL_BYTES_MAX: usize = 64;
/// The longest quotation, in bytes.
const QUOTED_BYTES_MAX: usize = 400;

/// The half words after `never` or `not` that are denied.
const DENIED_WITHIN: u32 = 4;

/// The bytes before a quotation in which a word can announce it.
const ANNOUNCED_WITHIN: usize = 20;

/// A word that belongs to a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct WordMatch {
    /// The start and end position, in half words.
    at: u32,
    end: u32,
    pub(super) groups: u128,
    /// The start in the normalised text, in bytes.
    byte: usize,
    /// True if the word was found only without its disguise.
    pub(super) disguised: bool,
}

/// The result of one pass over a text.
#[derive(Debug, Default)]
pub(super) struct WordScan {
    pub(super) events: Vec<WordMatch>,
    /// True if there is a word that may be an encoding.
    pub(super) has_long: bool,
    /// The number of words of two hex digits.
    pub(super) pairs: u32,
    /// The longest run of single letters.
    pub(super) spelled: u32,
    /// The set of different words about attacks, one bit each (hashed).
    discussed: u64,
}

impl WordScan {
    /// Scans a normalised text.
    pub(super) fn new(bytes: &[u8], lexicon: &Lexicon) -> Self {
        let mut words = Self::default();
        let mut at = 0;
        let mut place = 0;
        let mut letters = 0;
        while let Some(&b) = bytes.get(at) {
            if !is_word(b) {
                if words.read_separator(bytes, at, place, lexicon) {
                    place += 4;
                }
                at += 1;
                continue;
            }
            let (end, odd) = word_end(bytes, at);
            let word = &bytes[at..end];
            words.pairs += u32::from(word.len() == 2 && word.iter().all(u8::is_ascii_hexdigit));
            words.has_long |= word.len() >= LONG_BYTES;
            letters = if word.len() == 1 { letters + 1 } else { 0 };
            words.spelled = words.spelled.max(letters);
            let (mut groups, entry_end) = lexicon.look_up(bytes, at);
            let mut disguised = false;
            if groups == 0 && odd {
                groups = undisguised_groups(word, lexicon);
                disguised = groups != 0;
            }
            groups |= form_groups(bytes, at, end, lexicon);
            if groups & lexicon.forms.discuss != 0 {
                words.discussed |= 1
                    << (word.iter().fold(7_u32, |sum, b| sum.wrapping_mul(31) ^ u32::from(b | 32))
                        % 64);
            }
            let is_short = word[0] >= 0x80 && unspaced_at(bytes, at);
            let width = if is_short { 1 } else { 2 };
            if groups != 0 {
                let tail = bytes.get(end..entry_end).unwrap_or_default();
                let more = if is_short {
                    tail.iter().filter(|b| **b & 0xc0 != 0x80).count()
                } else {
                    2 * tail.windows(2).filter(|pair| !is_word(pair[0]) && is_word(pair[1])).count()
                };
                let more = u32::try_from(more).unwrap_or(0);
                words.events.push(WordMatch {
                    at: place,
                    end: place + more,
                    groups,
                    byte: at,
                    disguised,
                });
            }
            place += width;
            at = end;
        }
        words
    }

    /// Handles a byte between words. Returns true if a sentence or paragraph ends there.
    fn read_separator(&mut self, bytes: &[u8], at: usize, place: u32, lexicon: &Lexicon) -> bool {
        let next = bytes.get(at + 1).copied().unwrap_or(b'\n');
        if bytes[at] == b':'
            && self
                .events
                .last()
                .is_some_and(|last| place <= last.end + 6 && last.groups & lexicon.forms.colon == 0)
        {
            self.events.push(WordMatch {
                at: place,
                end: place,
                groups: lexicon.forms.colon | super::lexicon::ENGLISH,
                byte: at,
                disguised: false,
            });
        }
        match bytes[at] {
            b'.' | b'!' | b'?' => next.is_ascii_whitespace(),
            b'\n' => next == b'\n' || matches!(next, b'-' | b'#' | b'|'),
            _ => false,
        }
    }

    /// Returns the number of different words about attacks.
    pub(super) fn discusses(&self) -> u32 {
        self.discussed.count_ones()
    }

    /// Returns the quoted ranges of bytes, sorted: every quotation in a text about attacks, and
    /// each one that a word such as `says` announces.
    pub(super) fn quoted_ranges(&self, bytes: &[u8], forms: &FormGroups) -> Vec<(usize, usize)> {
        let mut ranges = quotations(bytes);
        if self.discusses() == 0 {
            ranges.retain(|(start, _)| {
                let after = self.events.partition_point(|event| event.byte < *start);
                let announced = self.events[..after].iter().rev().take(3);
                let mut announced = announced.filter(|event| event.groups & forms.report != 0);
                announced.any(|event| event.byte + ANNOUNCED_WITHIN >= *start)
            });
        }
        ranges
    }

    /// Finds the first place outside of `skip` where a rule matches. Returns the common groups of
    /// its first and last word, and whether a word was disguised.
    pub(super) fn match_rule(
        &self,
        rule: &PhraseRule,
        skip: &[(usize, usize)],
        deny: u128,
    ) -> Option<(u128, bool)> {
        let (first, rest) = rule.steps.split_first()?;
        self.events.iter().enumerate().find_map(|(index, event)| {
            let before = index.checked_sub(1).map(|before| &self.events[before]);
            let denied = before.is_some_and(|before| {
                before.groups & deny != 0 && event.at <= before.end + DENIED_WITHIN
            });
            if event.groups & first.0 == 0
                || is_within(skip, event.byte)
                || (denied && first.0 & deny == 0)
            {
                return None;
            }
            let mut reached = vec![index];
            for (mask, gap) in rest {
                reached = self.step(&reached, *mask, *gap);
                if reached.is_empty() {
                    return None;
                }
            }
            let last = self.events.get(*reached.first()?)?;
            let all = &self.events[index..=*reached.first()?];
            let foreign =
                [event, last].into_iter().fold(u128::MAX, |all, event| all & event.groups);
            Some((
                foreign,
                all.iter().any(|event| event.disguised && event.groups & rule.mask() != 0),
            ))
        })
    }

    /// Returns the events of a group that are near enough to one of `before`.
    fn step(&self, before: &[usize], mask: u128, gap: u32) -> Vec<usize> {
        let mut found = Vec::new();
        let mut from = 0;
        for index in before {
            let end = self.events[*index].end;
            from = from.max(index + 1);
            while let Some(event) = self.events.get(from).filter(|event| event.at <= end + gap) {
                if event.groups & mask != 0 {
                    found.push(from);
                }
                from += 1;
            }
        }
        found
    }
}

impl PhraseRule {
    fn mask(&self) -> u128 {
        self.steps.iter().fold(0, |all, (mask, _)| all | mask)
    }
}

/// Returns the end of a word: at a separator, or after each character of a script without blanks.
/// Also returns true if the word has a digit, a letter three times in a row, or a character
/// beyond ASCII, as disguises have.
fn word_end(bytes: &[u8], start: usize) -> (usize, bool) {
    let mut at = start;
    let mut odd = false;
    let mut last = 0;
    let mut same = 0;
    while let Some(&b) = bytes.get(at) {
        if b < 0x80 {
            if !is_word(b) {
                return (at, odd);
            }
            same = if b == last { same + 1 } else { 0 };
            last = b;
            odd |= b.is_ascii_digit() || same == 2;
            at += 1;
            continue;
        }
        odd = true;
        if unspaced_at(bytes, at) {
            return if at == start { (at + width(b), false) } else { (at, odd) };
        }
        at += width(b);
    }
    (at.min(bytes.len()), odd)
}

/// Returns the length of a character, given its first byte (RFC 3629).
fn width(first: u8) -> usize {
    match first {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    }
}

fn unspaced_at(bytes: &[u8], at: usize) -> bool {
    let end = (at + width(bytes[at])).min(bytes.len());
    let c = std::str::from_utf8(&bytes[at..end]).ok().and_then(|text| text.chars().next());
    c.is_some_and(is_unspaced)
}

/// Returns the groups of a word's form: an address, or the removal of everything.
fn form_groups(bytes: &[u8], start: usize, end: usize, lexicon: &Lexicon) -> u128 {
    let word = &bytes[start..end];
    let is_address = word.len() == ADDRESS_BYTES
        && word[..2].eq_ignore_ascii_case(b"0x")
        && word[2..].iter().all(u8::is_ascii_hexdigit);
    if is_address {
        return lexicon.forms.address | super::lexicon::ENGLISH;
    }
    let removes = word.eq_ignore_ascii_case(b"rm") && removes_much(&bytes[end..]);
    if removes { lexicon.forms.rm_root | super::lexicon::ENGLISH } else { 0 }
}

/// Returns true if the arguments of `rm` name a root, a home or everything, recursively.
fn removes_much(after: &[u8]) -> bool {
    let near = after.get(..REMOVAL_BYTES_MAX).unwrap_or(after);
    let line = near.split(|b| *b == b'\n').next().unwrap_or_default();
    let mut recursive = false;
    for word in line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
        if word.starts_with(b"-") {
            recursive |= word.iter().any(|b| matches!(b, b'r' | b'R'));
            continue;
        }
        let target = word
            .split(|b| matches!(b, b'"' | b';' | b'`' | b'\'' | b'&'))
            .next()
            .unwrap_or_default();
        let much = matches!(target, b"/" | b"/*" | b"*" | b"." | b"./" | b"$HOME")
            || target.starts_with(b"~");
        return recursive && much;
    }
    false
}

/// Returns the groups of a word with replaced or repeated letters, as in `1gn0r3` and `ignooore`,
/// or wholly in look-alikes of Latin letters.
fn undisguised_groups(word: &[u8], lexicon: &Lexicon) -> u128 {
    if word.len() > DISGUISED_BYTES_MAX || word.len() < 2 {
        return 0;
    }
    if !word.is_ascii() {
        let text = std::str::from_utf8(word).unwrap_or("");
        let latin: Option<String> = text.chars().map(looks_like).collect();
        return latin.map_or(0, |latin| exact_groups(latin.as_bytes(), lexicon));
    }
    let digits = word.iter().filter(|b| b.is_ascii_digit()).count();
    let mut found = 0;
    if digits > 0 && digits < word.len() {
        for one in [b'i', b'l'] {
            let letters: Vec<u8> = word.iter().map(|b| unleet(*b, one)).collect();
            found |= exact_groups(&letters, lexicon);
        }
    }
    if word.windows(3).any(|run| run[0] == run[1] && run[1] == run[2]) {
        for kept in [1, 2] {
            let mut letters: Vec<u8> = Vec::with_capacity(word.len());
            for b in word {
                if !letters.iter().rev().take(kept).all(|last| last == b) || letters.len() < kept {
                    letters.push(*b);
                }
            }
            found |= exact_groups(&letters, lexicon);
        }
    }
    found
}

/// Returns the groups of exactly this word.
fn exact_groups(word: &[u8], lexicon: &Lexicon) -> u128 {
    let (groups, end) = lexicon.look_up(word, 0);
    if end == word.len() { groups } else { 0 }
}

fn unleet(b: u8, one: u8) -> u8 {
    match b {
        b'0' => b'o',
        b'1' => one,
        b'3' => b'e',
        b'4' => b'a',
        b'5' => b's',
        b'7' => b't',
        b'8' => b'b',
        b'9' => b'g',
        b => b,
    }
}

/// Returns the ranges of bytes in quotes, sorted.
fn quotations(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut ranges = Vec::new();
    for quote in [b'"', b'`'] {
        let mut open: Option<usize> = None;
        for at in memchr::memchr_iter(quote, bytes) {
            open = match open {
                Some(start) if at - start <= QUOTED_BYTES_MAX => {
                    ranges.push((start, at));
                    None
                }
                _ => Some(at),
            };
        }
    }
    ranges.sort_unstable();
    ranges
}

/// Returns true if a position is in one of the ranges.
pub(super) fn is_within(ranges: &[(usize, usize)], at: usize) -> bool {
    let after = ranges.partition_point(|(start, _)| *start <= at);
    ranges[..after].iter().rev().take(2).any(|(_, end)| at < *end)
}
