//! Pure: what many vectors have in common, and a question away from it.
//!
//! What resembles all the others is near to whatever is asked, and says little (a hub: Radovanović,
//! Nanopoulos and Ivanović 2010). So half of how similar a vector is to all of them on average is
//! taken off how similar it is to a question, as rare words count more than common ones. That is
//! one more number a text and not a comparison with each: the question alone is moved. What is
//! known of the vectors must never depend on which of them were read.

#![expect(clippy::float_arithmetic, reason = "directions of meaning; nothing of money is here")]

use automaton_core::embedding::{EmbeddingVector, SIMILARITY_MAX, cosine};

use crate::encoder::quantized;
use crate::index::{dot, numbers};

/// How much of the mean similarity to all is taken off. Chosen by two authors' items of
/// `bench memory`.
const MEAN_PART: f32 = 0.5;

/// So many vectors that point anywhere are counted beside those that there were, so that the mean
/// of a few counts for little.
const PRIOR_VECTORS: f32 = 100.0;

/// The sum of the directions of vectors of one model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Centroid {
    count: u32,
    sum: Vec<f32>,
}

impl Centroid {
    /// The one of so many vectors, of four bytes a number as [`Self::to_bytes`] gives them.
    #[must_use]
    pub fn from_bytes(count: u32, bytes: &[u8]) -> Self {
        let (numbers, _) = bytes.as_chunks();
        Self { count, sum: numbers.iter().map(|number| f32::from_le_bytes(*number)).collect() }
    }

    /// The sum, four bytes a number.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.sum.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    /// Of how many.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Adds one; one of another length than the first is left out.
    pub fn add(&mut self, vector: &EmbeddingVector) {
        let vector = numbers(&vector.to_bytes());
        if self.count == 0 {
            self.sum = vec![0.0; vector.len()];
        }
        if vector.len() == self.sum.len() {
            self.count += 1;
            let length = length(&vector);
            let sums = self.sum.iter_mut().zip(&vector);
            sums.for_each(|(sum, number)| *sum += f32::from(*number) / length);
        }
    }

    /// What is asked, away from what all have in common.
    #[must_use]
    pub fn away(&self, asked: &EmbeddingVector) -> CentredQuery {
        let asked = numbers(&asked.to_bytes());
        let unit = length(&asked);
        let mut moved: Vec<f32> = asked.iter().map(|number| f32::from(*number) / unit).collect();
        // What has no direction is like nothing.
        if moved.len() == self.sum.len() && asked.iter().any(|number| *number != 0) {
            let part = MEAN_PART / (float(self.count) + PRIOR_VECTORS);
            moved.iter_mut().zip(&self.sum).for_each(|(number, sum)| *number -= part * sum);
        }
        let square: f32 = moved.iter().map(|number| number * number).sum();
        let vector = numbers(&quantized(&moved).to_bytes());
        CentredQuery { square: dot(&vector, &vector), vector, length: thousandths(square.sqrt()) }
    }
}

/// What is asked, away from what all have in common.
#[derive(Debug, Clone)]
pub struct CentredQuery {
    pub(crate) vector: Vec<i8>,
    square: i32,
    /// How long it is, in thousandths of what was asked.
    length: i32,
}

impl CentredQuery {
    /// The cosine of what was asked with a vector of a number a byte, less its part of the mean, in
    /// thousandths; 0 where one has no direction or they are of different models by their length.
    #[must_use]
    pub fn similarity(&self, vector: &[u8]) -> i32 {
        if vector.len() != self.vector.len() {
            return 0;
        }
        let vector = numbers(vector);
        self.to(&vector, dot(&vector, &vector))
    }

    /// The same with a vector as long as it, of which the square of the length is known.
    pub(crate) fn to(&self, vector: &[i8], square: i32) -> i32 {
        cosine(dot(&self.vector, vector), self.square, square) * self.length / SIMILARITY_MAX
    }
}

/// A length, at least 1, so that what has none stays without one.
fn length(vector: &[i8]) -> f32 {
    float(dot(vector, vector).unsigned_abs()).sqrt().max(1.0)
}

#[expect(clippy::cast_precision_loss, reason = "near enough")]
const fn float(number: u32) -> f32 {
    number as f32
}

#[expect(clippy::cast_possible_truncation, reason = "a length of at most 2")]
const fn thousandths(number: f32) -> i32 {
    (number * 1_000.0).round() as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(vectors: &[[u8; 8]]) -> Centroid {
        let mut centroid = Centroid::default();
        vectors.iter().for_each(|vector| centroid.add(&EmbeddingVector::from_bytes(vector)));
        centroid
    }

    #[test]
    fn what_resembles_all_the_others_comes_after_what_is_as_near_and_does_not() {
        let (all, other) = ([100, 0, 3, 0, 0, 0, 0, 0], [0, 100, 0, 0, 0, 0, 0, 0]);
        let centroid = of(&[all; 1_000]);
        let between = EmbeddingVector::new(vec![71, 70, 0, 0, 0, 0, 0, 0]);
        assert!(between.similarity(&all) > between.similarity(&other));
        let asked = centroid.away(&between);
        assert!(asked.similarity(&all) < asked.similarity(&other));
        assert!((695..=710).contains(&asked.similarity(&other)), "it resembles none of them");
        assert_eq!(centroid.away(&EmbeddingVector::new(vec![0; 8])).similarity(&all), 0);
        assert_eq!(asked.similarity(&[1]), 0);
        // A few are no crowd.
        let few = of(&[all; 2]).away(&EmbeddingVector::from_bytes(&all));
        assert!((980..=995).contains(&few.similarity(&all)), "{}", few.similarity(&all));
    }

    proptest! {
        #[test]
        fn a_similarity_is_the_cosine_less_half_the_mean(
            vectors in prop::collection::vec(prop::array::uniform8(any::<u8>()), 1..40),
            to in prop::collection::vec(any::<i8>(), 8),
        ) {
            let to = EmbeddingVector::new(to);
            let centroid = of(&vectors);
            prop_assert_eq!(&Centroid::from_bytes(centroid.count(), &centroid.to_bytes()), &centroid);
            let asked = centroid.away(&to);
            let all = i32::try_from(vectors.len()).unwrap() + 100;
            for vector in &vectors {
                let own = EmbeddingVector::from_bytes(vector);
                let sum: i32 = vectors.iter().map(|other| own.similarity(other)).sum();
                let is_nothing = to.to_bytes().iter().all(|byte| *byte == 0);
                let wanted = if is_nothing { 0 } else { to.similarity(vector) - sum / all / 2 };
                let found = asked.similarity(vector);
                // Of each of the numbers half a step of 127 may be lost, of a length up to 1.5, and
                // each cosine is cut off.
                prop_assert!((found - wanted).abs() <= 24, "{} and not {}", found, wanted);
            }
        }
    }
}
