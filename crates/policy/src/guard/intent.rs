//! Pure: scores how much a text resembles attempts to steer its reader, with weights learned from
//! examples.
//!
//! A piece of the text is some sentences. Its features are its words and word pairs, its pairs
//! with one word between, its runs of four letters, and the groups of the guard's word lists and
//! their pairs, which are the same in all languages. Each feature is hashed into a bucket
//! (Weinberger et al., *Feature Hashing for Large Scale Multitask Learning*, 2009). Each bucket
//! has a weight. The score is the sum of the weights over the square root of their number, and
//! the worst piece counts. `intent.md` describes the training data, and what the weights find and
//! miss. A score must only add to the checks' findings: an author who knows the weights can word
//! around them.

use super::lexicon::{ENGLISH, Lexicon};
use super::words::WordScan;

/// The weights, and the score from which a text is flagged.
const WEIGHTS: &[u8] = include_bytes!("intent.bin");

/// The number of buckets.
pub const BUCKETS: usize = 1 << 16;

const _: () = assert!(WEIGHTS.len() == 4 + BUCKETS, "intent.bin has another size");

/// The most words of one piece, unless a single sentence has more.
const PIECE_WORDS: usize = 120;

/// The fewest words for which a text is scored.
const WORDS_MIN: usize = 3;

/// The scale of the square root, for integer arithmetic.
const ROOT_SCALE: u64 = 1_000;

/// Seeds that separate the kinds of features.
const WORD: u32 = 0x811c_9dc5;
const PAIR: u32 = 0x9e37_79b9;
const GAP: u32 = 0x85eb_ca6b;
const LETTERS: u32 = 0xc2b2_ae35;
const GROUP: u32 = 0x27d4_eb2f;
const GROUPS: u32 = 0x1656_67b1;

/// The number of earlier words whose groups form pairs with a word.
const GROUPS_WITHIN: usize = 3;

/// The learned weights, applied to normalised text.
#[derive(Debug)]
pub(super) struct IntentModel {
    /// The score from which a text is flagged, in thousandths.
    threshold: i64,
    weights: &'static [u8],
}

impl IntentModel {
    /// Loads the built-in weights: a threshold in four little-endian bytes, then a signed byte
    /// for each bucket.
    pub(super) fn built_in() -> Self {
        // silent-ok: a file of another size fails the build.
        let (threshold, weights) = WEIGHTS.split_first_chunk::<4>().unwrap_or((&[0; 4], &[]));
        Self { threshold: i64::from(i32::from_le_bytes(*threshold)), weights }
    }

    /// Returns true if a text resembles attempts to steer its reader. A text that discusses
    /// attacks quotes them, so its threshold is half as high again.
    pub(super) fn flags(&self, folded: &str, lexicon: &Lexicon, discusses: bool) -> bool {
        let threshold = self.threshold + if discusses { self.threshold / 2 } else { 0 };
        let mut seen = vec![0_u64; BUCKETS / 64];
        let score = |piece: &[u16]| {
            let weight = |bucket: &u16| self.weights.get(usize::from(*bucket)).copied();
            let sum: i64 =
                piece.iter().filter_map(weight).map(|byte| i64::from(byte.cast_signed())).sum();
            let root = (piece.len() as u64 * ROOT_SCALE * ROOT_SCALE).isqrt().max(1);
            let scale = i64::try_from(ROOT_SCALE * ROOT_SCALE).unwrap_or(i64::MAX);
            sum * scale / i64::try_from(root).unwrap_or(i64::MAX)
        };
        pieces(folded, lexicon, &mut seen).any(|piece| score(&piece) >= threshold)
    }
}

/// Returns the distinct buckets of each piece of a text.
pub(super) fn pieces<'a>(
    folded: &'a str,
    lexicon: &'a Lexicon,
    seen: &'a mut [u64],
) -> impl Iterator<Item = Vec<u16>> + 'a {
    let mut sentences = folded.split_inclusive(['.', '!', '?', '\n']).peekable();
    std::iter::from_fn(move || {
        let mut piece = PieceFeatures { buckets: Vec::new(), words: 0, seen };
        while let Some(sentence) = sentences.peek() {
            let words = sentence.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty());
            let words = words.count();
            if piece.words > 0 && piece.words + words > PIECE_WORDS {
                break;
            }
            piece.add(sentence);
            piece.add_groups(sentence, lexicon);
            sentences.next();
        }
        let done = piece.words == 0 && sentences.peek().is_none();
        (!done).then(|| piece.finish())
    })
    .filter(|buckets| !buckets.is_empty())
}

/// The features of a piece, as they are found.
struct PieceFeatures<'a> {
    buckets: Vec<u16>,
    words: usize,
    /// The set of buckets found so far, one bit each.
    seen: &'a mut [u64],
}

impl PieceFeatures<'_> {
    fn add(&mut self, sentence: &str) {
        let mut last = None;
        let mut before = None;
        let mut hash = WORD;
        let mut length = 0_usize;
        let mut letters = [u32::from(b' '); 4];
        let mut is_digit = false;
        for c in sentence.chars().chain([' ']) {
            if c.is_alphanumeric() {
                let c = match c {
                    _ if c.is_numeric() => '0',
                    _ => c.to_lowercase().next().unwrap_or(c),
                };
                // A number counts as one digit, however long it is.
                if !(c == '0' && is_digit) {
                    hash = mix(hash, u32::from(c));
                    self.letter(&mut letters, c);
                }
                is_digit = c == '0';
                length += 1;
                continue;
            }
            is_digit = false;
            if length == 0 {
                continue;
            }
            self.letter(&mut letters, ' ');
            self.note(hash);
            if let Some(last) = last {
                self.note(mix(mix(PAIR, last), hash));
            }
            if let Some(before) = before {
                self.note(mix(mix(GAP, before), hash));
            }
            (before, last) = (last, Some(hash));
            self.words += 1;
            (hash, length) = (WORD, 0);
        }
    }

    fn add_groups(&mut self, sentence: &str, lexicon: &Lexicon) {
        let scan = WordScan::new(sentence.as_bytes(), lexicon);
        let groups: Vec<u128> = scan.events.iter().map(|event| event.groups & !ENGLISH).collect();
        let bits = |mask: u128| (0..u128::BITS).filter(move |bit| mask >> bit & 1 == 1);
        for (at, mask) in groups.iter().enumerate() {
            let before = groups[at.saturating_sub(GROUPS_WITHIN)..at].iter();
            let before = before.fold(0, |all, mask| all | mask);
            for bit in bits(*mask) {
                self.note(mix(GROUP, bit));
                bits(before).for_each(|last| self.note(mix(mix(GROUPS, last), bit)));
            }
        }
    }

    fn letter(&mut self, letters: &mut [u32; 4], c: char) {
        letters.rotate_left(1);
        letters[3] = u32::from(c);
        let hash = letters.iter().fold(LETTERS, |hash, letter| mix(hash, *letter));
        self.note(hash);
    }

    fn note(&mut self, hash: u32) {
        let hash = hash ^ (hash >> 15);
        let [low, high, ..] = hash.wrapping_mul(0x2c1b_3c6d).rotate_left(16).to_le_bytes();
        let bucket = u16::from_le_bytes([low, high]);
        let word = usize::from(bucket / 64);
        let bit = 1 << (bucket % 64);
        if let Some(word) = self.seen.get_mut(word).filter(|word| **word & bit == 0) {
            *word |= bit;
            self.buckets.push(bucket);
        }
    }

    /// Returns the buckets. Empty if there are too few words.
    fn finish(mut self) -> Vec<u16> {
        for bucket in &self.buckets {
            if let Some(word) = self.seen.get_mut(usize::from(bucket / 64)) {
                *word = 0;
            }
        }
        if self.words < WORDS_MIN { Vec::new() } else { std::mem::take(&mut self.buckets) }
    }
}

/// Returns a step of FNV-1a over numbers instead of bytes.
const fn mix(hash: u32, value: u32) -> u32 {
    (hash ^ value).wrapping_mul(0x0100_0193).rotate_left(5)
}

#[cfg(test)]
#[path = "intent_tests.rs"]
mod tests;
