//! Pure: what a text means to a model, as a vector of small whole numbers.
//!
//! Only the direction of a vector counts, so that all is whole and the same on every machine.
//! Vectors of different models must never be compared: each goes with its model's name.

use std::fmt;

/// The most numbers of a vector.
pub const DIMENSIONS_MAX: usize = 4096;

/// A similarity of two vectors that point the same way; the opposite is its negative.
pub const SIMILARITY_MAX: i32 = 1_000;

/// The direction of a vector.
#[derive(Clone, PartialEq, Eq)]
pub struct EmbeddingVector(Box<[i8]>);

impl EmbeddingVector {
    /// The vector of these numbers.
    #[must_use]
    pub fn new(numbers: Vec<i8>) -> Self {
        Self(numbers.into())
    }

    /// The vector of a number a byte.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.iter().map(|byte| byte.cast_signed()).collect())
    }

    /// A byte for each number.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().map(|number| number.cast_unsigned()).collect()
    }

    /// Returns true if the vector is not zero. A zero vector is similar to nothing.
    #[must_use]
    pub fn has_direction(&self) -> bool {
        self.0.iter().any(|number| *number != 0)
    }

    /// Returns the number of dimensions.
    #[must_use]
    pub fn dimensions(&self) -> usize {
        self.0.len()
    }

    /// The cosine of the angle between two vectors, in thousandths; 0 where one has no direction
    /// or they are of different models by their length.
    #[must_use]
    pub fn similarity(&self, other: &[u8]) -> i32 {
        if self.0.len() != other.len() || self.0.len() > DIMENSIONS_MAX {
            return 0;
        }
        let mut product = 0_i32;
        let mut own = 0_i32;
        let mut others = 0_i32;
        for (left, right) in self.0.iter().zip(other) {
            let left = i32::from(*left);
            let right = i32::from(right.cast_signed());
            product += left * right;
            own += left * left;
            others += right * right;
        }
        cosine(product, own, others)
    }
}

/// The cosine of the angle between two vectors, in thousandths: of their product and the squares
/// of their lengths; 0 where one has no direction.
#[must_use]
pub fn cosine(product: i32, left_square: i32, right_square: i32) -> i32 {
    let length = (i64::from(left_square) * i64::from(right_square)).isqrt();
    let cosine = (i64::from(product) * i64::from(SIMILARITY_MAX)).checked_div(length);
    cosine.and_then(|cosine| i32::try_from(cosine).ok()).unwrap_or(0)
}

impl fmt::Debug for EmbeddingVector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EmbeddingVector({} numbers)", self.0.len())
    }
}

/// Source of a vector, and with it the weight of the vector beside the words that two texts
/// share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EmbeddingKind {
    /// The whole text, read by an encoder.
    #[default]
    Text,
    /// The sum of its words.
    Words,
}

/// A text's vector, with the model that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Embedding {
    /// Which model; two of one name give the same vectors.
    pub model: String,
    /// Source of the vector.
    pub kind: EmbeddingKind,
    /// Vector of the text.
    pub vector: EmbeddingVector,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn directions_are_compared_and_lengths_are_not() {
        let vector = |numbers: &[i8]| EmbeddingVector::new(numbers.to_vec());
        let similarity =
            |left: &[i8], right: &[i8]| vector(left).similarity(&vector(right).to_bytes());
        assert_eq!(similarity(&[1, 2, 3], &[10, 20, 30]), 1_000);
        assert_eq!(similarity(&[1, 2, 3], &[-1, -2, -3]), -1_000);
        assert_eq!(similarity(&[1, 0], &[0, 1]), 0);
        assert_eq!(similarity(&[1, 0], &[1, 1]), 1_000);
        assert_eq!(similarity(&[0, 0], &[1, 1]), 0);
        assert!(!vector(&[0, 0]).has_direction() && vector(&[0, 1]).has_direction());
        assert_eq!(similarity(&[1], &[1, 1]), 0);
    }

    proptest! {
        #[test]
        fn a_vector_survives_its_bytes_and_none_is_nearer_than_itself(
            left in prop::collection::vec(-127_i8..=127, 24), right in prop::collection::vec(any::<i8>(), 24),
        ) {
            let left = EmbeddingVector::new(left);
            let right = EmbeddingVector::new(right);
            prop_assert_eq!(&EmbeddingVector::from_bytes(&left.to_bytes()), &left);
            let found = left.similarity(&right.to_bytes());
            prop_assert!((-1_001..=1_001).contains(&found));
            prop_assert_eq!(found, right.similarity(&left.to_bytes()));
        }
    }
}
