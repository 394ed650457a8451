//! Pure: the common direction of many vectors, and queries adjusted by it.
//!
//! A vector that resembles all others is similar to every query and says little (a hub:
//! Radovanović, Nanopoulos and Ivanović 2010). So half of a vector's average similarity to all is
//! subtracted from its similarity to a query, as rare words count more than common ones. This
//! costs one number for each text instead of a comparison with each: only the query is adjusted.
//! The centroid must never depend on which vectors were read.

#![expect(clippy::float_arithmetic, reason = "directions of meaning; nothing of money is here")]

use automaton_core::embedding::{EmbeddingVector, SIMILARITY_MAX, cosine};

use crate::encoder::quantized;
use crate::index::{dot, numbers};

/// The part of the mean similarity that is subtracted. Chosen with two authors' items of `bench
/// memory`.
const MEAN_PART: f32 = 0.5;

/// The number of random vectors that are assumed in addition to the real ones, so that the mean
/// of a few counts for little.
const PRIOR_VECTORS: f32 = 100.0;

/// The sum of the directions of vectors of one model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Centroid {
    count: u32,
    sum: Vec<f32>,
}

impl Centroid {
    /// Creates the centroid of `count` vectors, from the bytes of [`Self::to_bytes`].
    #[must_use]
    pub fn from_bytes(count: u32, bytes: &[u8]) -> Self {
        let (numbers, _) = bytes.as_chunks();
        Self { count, sum: numbers.iter().map(|number| f32::from_le_bytes(*number)).collect() }
    }

    /// Returns the sum, as four bytes a number.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.sum.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    /// Returns the number of vectors.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Adds a vector. One of another length than the first is ignored.
    pub fn add(&mut self, vector: &EmbeddingVector) {
        let vector = numbers(&vector.to_bytes());
        if self.count == 0 {
            self.sum = vec![0.0; vector.len()];
        }
        if vector.len() == self.sum.len() {
            self.count += 1;
            let length = norm(&vector);
            let sums = self.sum.iter_mut().zip(&vector);
            sums.for_each(|(sum, number)| *sum += f32::from(*number) / length);
        }
    }

    /// Returns the query, adjusted by the common direction.
    #[must_use]
    pub fn adjust_query(&self, asked: &EmbeddingVector) -> CentredQuery {
        let asked = numbers(&asked.to_bytes());
        let unit = norm(&asked);
        let mut moved: Vec<f32> = asked.iter().map(|number| f32::from(*number) / unit).collect();
        // A vector without a direction is similar to nothing.
        if moved.len() == self.sum.len() && asked.iter().any(|number| *number != 0) {
            let part = MEAN_PART / (float(self.count) + PRIOR_VECTORS);
            moved.iter_mut().zip(&self.sum).for_each(|(number, sum)| *number -= part * sum);
        }
        let square: f32 = moved.iter().map(|number| number * number).sum();
        let vector = numbers(&quantized(&moved).to_bytes());
        CentredQuery { square: dot(&vector, &vector), vector, length: thousandths(square.sqrt()) }
    }
}

/// A query, adjusted by the common direction of all vectors.
#[derive(Debug, Clone)]
pub struct CentredQuery {
    pub(crate) vector: Vec<i8>,
    square: i32,
    /// The length, in thousandths of the original query's.
    length: i32,
}

impl CentredQuery {
    /// Returns the cosine of the query with a vector (one byte a number), minus its part of the
    /// mean, in thousandths. Returns 0 if one has no direction or their lengths differ.
    #[must_use]
    pub fn similarity(&self, vector: &[u8]) -> i32 {
        if vector.len() != self.vector.len() {
            return 0;
        }
        let vector = numbers(vector);
        self.similarity_to(&vector, dot(&vector, &vector))
    }

    /// Returns the similarity to a vector of the same length, given the square of its norm.
    pub(crate) fn similarity_to(&self, vector: &[i8], square: i32) -> i32 {
        cosine(dot(&self.vector, vector), self.square, square) * self.length / SIMILARITY_MAX
    }
}

/// Returns the norm, at least 1, so that a vector without direction stays without one.
fn norm(vector: &[i8]) -> f32 {
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
        let all = [100, 0, 3, 0, 0, 0, 0, 0];
        let other = [0, 100, 0, 0, 0, 0, 0, 0];
        let centroid = of(&[all; 1_000]);
        let between = EmbeddingVector::new(vec![71, 70, 0, 0, 0, 0, 0, 0]);
        assert!(between.similarity(&all) > between.similarity(&other));
        let asked = centroid.adjust_query(&between);
        assert!(asked.similarity(&all) < asked.similarity(&other));
        assert!((695..=710).contains(&asked.similarity(&other)), "it resembles none of them");
        assert_eq!(centroid.adjust_query(&EmbeddingVector::new(vec![0; 8])).similarity(&all), 0);
        assert_eq!(asked.similarity(&[1]), 0);
        // A few vectors have little effect.
        let few = of(&[all; 2]).adjust_query(&EmbeddingVector::from_bytes(&all));
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
            let asked = centroid.adjust_query(&to);
            let all = i32::try_from(vectors.len()).unwrap() + 100;
            for vector in &vectors {
                let own = EmbeddingVector::from_bytes(vector);
                let sum: i32 = vectors.iter().map(|other| own.similarity(other)).sum();
                let is_nothing = to.to_bytes().iter().all(|byte| *byte == 0);
                let wanted = if is_nothing { 0 } else { to.similarity(vector) - sum / all / 2 };
                let found = asked.similarity(vector);
                // Each number may lose half a step of 127, of a length up to 1.5, and each cosine
                // is truncated.
                prop_assert!((found - wanted).abs() <= 24, "{} and not {}", found, wanted);
            }
        }
    }
}
