//! Pure: text vectors as the sum of word vectors, from a built-in table.
//!
//! It takes microseconds and no model. It knows a text's words but not their order, so it finds
//! less than an encoder and far more than shared words. Words are those of [`terms`], and rare
//! ones have more weight. All numbers are integers, so a text has the same vector on every
//! machine. `word_vectors.md` beside the table describes its sources. A word that is missing in
//! the table must count for nothing.

use automaton_core::embedding::EmbeddingVector;
use automaton_core::terms::terms;

/// The table: the number of words and dimensions, the end of each word, the words in order, the
/// weight of each, and its numbers from -7 to 7, two a byte, the first in the lower half.
/// Integers are little-endian.
const TABLE: &[u8] = include_bytes!("word_vectors.bin");

/// The model name of the vectors. Another table is another model.
pub const WORD_VECTORS: &str = "built-in word vectors 1";

/// The most words of a text that count.
const TERMS_MAX: usize = 512;

/// A text has a vector only if more than one in this many of the words that identify its language
/// are known. Otherwise it is in another language.
const KNOWN_PART: usize = 2;

/// A table of words.
#[derive(Debug, Clone, Copy)]
pub struct WordVectors<'a> {
    ends: &'a [[u8; 4]],
    words: &'a [u8],
    weights: &'a [[u8; 2]],
    dimensions: usize,
    numbers: &'a [u8],
}

impl WordVectors<'static> {
    /// Returns the built-in table, or an empty one if it were invalid.
    #[must_use]
    pub fn built_in() -> Self {
        Self::read(TABLE).unwrap_or(WordVectors {
            ends: &[],
            words: &[],
            weights: &[],
            dimensions: 2,
            numbers: &[],
        })
    }
}

impl<'a> WordVectors<'a> {
    /// Parses a table. Returns `None` if the bytes are not one.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (&count, bytes) = bytes.split_first_chunk::<4>()?;
        let (&dimensions, bytes) = bytes.split_first_chunk::<4>()?;
        let count = size(count)?;
        let dimensions = size(dimensions)?;
        let (ends, bytes) = bytes.split_at_checked(count.checked_mul(4)?)?;
        let (ends, _) = ends.as_chunks();
        let (words, bytes) =
            bytes.split_at_checked(ends.last().map_or(Some(0), |end| size(*end))?)?;
        let (weights, numbers) = bytes.split_at_checked(count * 2)?;
        let (weights, _) = weights.as_chunks();
        let is_whole = dimensions > 0
            && dimensions.is_multiple_of(2)
            && numbers.len() == count.checked_mul(dimensions / 2)?;
        is_whole.then_some(Self { ends, words, weights, dimensions, numbers })
    }

    /// Returns the vector of a text. It has no direction if too few words are known.
    #[must_use]
    pub fn encode(&self, text: &str) -> EmbeddingVector {
        let mut words = terms(text);
        words.truncate(TERMS_MAX);
        let mut sums = vec![0_i64; self.dimensions];
        let telling: Vec<&String> = words.iter().filter(|word| tells_language(word)).collect();
        let known = telling.iter().filter(|word| self.index_of(word).is_some()).count();
        if known * KNOWN_PART > telling.len() {
            let places = words.iter().filter_map(|word| self.index_of(word));
            places.for_each(|place| self.add(place, &mut sums));
        }
        let most = sums.iter().map(|sum| sum.abs()).max().unwrap_or(0).max(1);
        let scaled = |sum: &i64| i8::try_from(sum * i64::from(i8::MAX) / most).unwrap_or(0);
        EmbeddingVector::new(sums.iter().map(scaled).collect())
    }

    /// Adds a word's numbers, multiplied by its weight.
    fn add(&self, place: usize, sums: &mut [i64]) {
        let weight = i64::from(u16::from_le_bytes(self.weights[place]));
        let row = &self.numbers[place * self.dimensions / 2..][..self.dimensions / 2];
        let numbers =
            row.iter().flat_map(|pair| [(pair << 4).cast_signed() >> 4, pair.cast_signed() >> 4]);
        sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += weight * i64::from(number));
    }

    /// Returns the index of a word in the table.
    fn index_of(&self, word: &str) -> Option<usize> {
        let mut range = 0..self.ends.len();
        while !range.is_empty() {
            let middle = range.start + range.len() / 2;
            match self.word(middle)?.cmp(word.as_bytes()) {
                std::cmp::Ordering::Less => range.start = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => range.end = middle,
            }
        }
        None
    }

    fn word(&self, place: usize) -> Option<&'a [u8]> {
        let begin = place.checked_sub(1).map_or(Some(0), |before| size(self.ends[before]))?;
        self.words.get(begin..size(self.ends[place])?)
    }
}

/// Returns true if a word identifies the language of a text. Numbers, names with digits and
/// single letters occur in all languages.
fn tells_language(word: &str) -> bool {
    !word.is_ascii() || (word.len() > 1 && !word.bytes().any(|byte| byte.is_ascii_digit()))
}

fn size(bytes: [u8; 4]) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(bytes)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns a table of words with two numbers each.
    fn table(words: &[(&str, u16, [i8; 2])]) -> Vec<u8> {
        let number = |number: usize| u32::try_from(number).unwrap().to_le_bytes();
        let mut end = 0;
        let ends = words.iter().flat_map(|(word, ..)| {
            end += word.len();
            number(end)
        });
        let mut table: Vec<u8> = [number(words.len()), number(2)].concat();
        table.extend(ends);
        table.extend(words.iter().flat_map(|(word, ..)| word.bytes()));
        table.extend(words.iter().flat_map(|(_, weight, _)| weight.to_le_bytes()));
        let pair = |[first, second]: [i8; 2]| (first & 15) | (second << 4);
        table.extend(words.iter().map(|(.., row)| pair(*row).cast_unsigned()));
        table
    }

    #[test]
    fn a_text_is_the_sum_of_its_known_words_by_their_weight() {
        let table = table(&[("boat", 2, [0, 6]), ("car", 1, [-3, 0]), ("vehicl", 3, [-7, 0])]);
        let vectors = WordVectors::read(&table).unwrap();
        let encoded = |text: &str| <[u8; 2]>::try_from(vectors.encode(text).to_bytes()).unwrap();
        assert_eq!(encoded("Boats!"), [0, 127]);
        assert_eq!(encoded("a car, a boat").map(u8::cast_signed), [-31, 127]);
        assert_eq!(encoded("2 vehicles, v1.2 x 0x5290").map(u8::cast_signed), [-127, 0]);
        assert_eq!(encoded("boat boat zeppelin"), [0, 127]);
        assert_eq!(encoded("ein car"), [0, 0]);
        assert_eq!(encoded("12.50 8443 a"), [0, 0]);
        assert_eq!(encoded(""), [0, 0]);
        assert_eq!(vectors.encode("cars!").similarity(&encoded("vehicles")), 1_000);
    }

    #[test]
    fn the_table_of_the_program_is_whole_in_order_and_knows_what_is_alike() {
        let vectors = WordVectors::built_in();
        assert_eq!((vectors.ends.len(), vectors.dimensions), (28_000, 192));
        // Another table needs another name.
        let fnv = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        assert_eq!(
            (WORD_VECTORS, TABLE.iter().fold(0xcbf2_9ce4_8422_2325, fnv)),
            ("built-in word vectors 1", 15_686_756_184_311_298_819)
        );
        let words: Vec<_> = (0..vectors.ends.len()).map(|at| vectors.word(at).unwrap()).collect();
        assert!(words.is_sorted_by(|left, right| left < right));
        let similarity = |left: &str, right: &str| {
            vectors.encode(left).similarity(&vectors.encode(right).to_bytes())
        };
        let alike = similarity("What do I drive?", "My car is a Skoda.");
        assert!(alike > similarity("What do I drive?", "The moon is made of cheese."), "{alike}");
    }

    proptest! {
        #[test]
        fn bytes_that_are_no_table_are_none_and_no_text_breaks_one(
            cut in 0..60_usize, text in "\\PC{0,40}|[a-z ]{0,40}",
        ) {
            let whole = table(&[("boat", u16::MAX, [-7, 7]), ("car", 1, [5, 0])]);
            let cut = cut.min(whole.len() - 1);
            prop_assert!(WordVectors::read(&whole[..cut]).is_none());
            prop_assert_eq!(WordVectors::read(&whole).unwrap().encode(&text).dimensions(), 2);
        }
    }
}
