//! Pure: many vectors in one block of memory, and the search for the nearest.
//!
//! The search is exact: it compares each vector, which takes some tens of nanoseconds. It only
//! finds vectors that were added.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use automaton_core::embedding::DIMENSIONS_MAX;

use crate::centroid::CentredQuery;

/// Vectors of one model, by id.
#[derive(Debug, Clone, Default)]
pub struct VectorIndex {
    dimensions: usize,
    ids: Vec<i64>,
    /// True for each vector of somebody else's text.
    outside: Vec<bool>,
    /// The squared norm of each vector.
    squares: Vec<i32>,
    numbers: Vec<i8>,
}

impl VectorIndex {
    /// Returns the number of vectors.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ids.len()
    }

    /// Returns true if there are no vectors.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Returns the id that was added last.
    #[must_use]
    pub fn last(&self) -> Option<i64> {
        self.ids.last().copied()
    }

    /// Adds a vector of one byte a number. One of another length than the first is ignored. An id
    /// gets several vectors by being added with each in turn.
    pub fn add(&mut self, id: i64, outside: bool, vector: &[u8]) {
        if self.is_empty() {
            self.dimensions = vector.len();
        }
        if vector.len() != self.dimensions || !(1..=DIMENSIONS_MAX).contains(&vector.len()) {
            return;
        }
        let from = self.numbers.len();
        self.numbers.extend(numbers(vector));
        let added = &self.numbers[from..];
        self.squares.push(dot(added, added));
        self.ids.push(id);
        self.outside.push(outside);
    }

    /// Returns the most similar ids among its own texts or those of others, best first, each with
    /// the similarity of its nearest vector in thousandths. Among equals the last added comes
    /// first. Texts of others never displace its own, since they are searched separately.
    #[must_use]
    pub fn nearest(&self, to: &CentredQuery, others: bool, most: usize) -> Vec<(i64, i32)> {
        if to.vector.len() != self.dimensions || self.is_empty() {
            return Vec::new();
        }
        let mut best = BinaryHeap::with_capacity(most + 1);
        let mut upto = 0;
        for ids in self.ids.chunk_by(|one, next| one == next) {
            let from = upto;
            upto += ids.len();
            if self.outside[from] != others {
                continue;
            }
            let numbers = &self.numbers[from * self.dimensions..upto * self.dimensions];
            let vectors = numbers.chunks_exact(self.dimensions).zip(&self.squares[from..upto]);
            let nearest = vectors.map(|(vector, square)| to.similarity_to(vector, *square)).max();
            best.push(Reverse((nearest, from)));
            if best.len() > most {
                best.pop();
            }
        }
        let found = best.into_sorted_vec().into_iter();
        found.filter_map(|Reverse((nearest, at))| Some((self.ids[at], nearest?))).collect()
    }
}

/// Converts bytes to numbers.
pub(crate) fn numbers(bytes: &[u8]) -> Vec<i8> {
    bytes.iter().map(|byte| byte.cast_signed()).collect()
}

/// Returns the sum of the products, which no vector is long enough to overflow.
pub(crate) fn dot(left: &[i8], right: &[i8]) -> i32 {
    let products = left.iter().zip(right).map(|(left, right)| i32::from(*left) * i32::from(*right));
    products.fold(0, i32::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Centroid;
    use automaton_core::embedding::EmbeddingVector;
    use proptest::prelude::*;

    /// Returns a query without any known vectors.
    fn asked(numbers: Vec<i8>) -> CentredQuery {
        Centroid::default().adjust_query(&EmbeddingVector::new(numbers))
    }

    #[test]
    fn others_are_found_apart_and_odd_ones_are_left_out() {
        let mut index = VectorIndex::default();
        assert!(index.nearest(&asked(vec![1, 2]), true, 9).is_empty());
        for (id, outside, vector) in
            [(1, false, &[1, 0][..]), (2, true, &[9, 0]), (3, false, &[1]), (4, false, &[0, 0])]
        {
            index.add(id, outside, vector);
        }
        assert_eq!((index.len(), index.last()), (3, Some(4)));
        let east = asked(vec![5, 0]);
        assert_eq!(index.nearest(&east, false, 9), [(1, 1_000), (4, 0)]);
        assert_eq!(index.nearest(&east, true, 9), [(2, 1_000)]);
        assert!(index.nearest(&asked(vec![1]), true, 9).is_empty());
    }

    proptest! {
        #[test]
        fn the_nearest_are_those_that_comparing_each_gives(
            all in prop::collection::vec(
                (any::<bool>(), prop::collection::vec(prop::array::uniform8(any::<u8>()), 1..4)),
                0..20,
            ),
            to in prop::collection::vec(any::<i8>(), 8), most in 1..9_usize, others in any::<bool>(),
        ) {
            let mut index = VectorIndex::default();
            let to = asked(to);
            let mut wanted: Vec<(i64, i32)> = Vec::new();
            for (id, (outside, vectors)) in (0..).zip(&all) {
                vectors.iter().for_each(|vector| index.add(id, *outside, vector));
                let nearest = vectors.iter().map(|vector| to.similarity(vector)).max();
                wanted.extend(nearest.filter(|_| *outside == others).map(|nearest| (id, nearest)));
            }
            wanted.sort_by_key(|(id, similarity)| Reverse((*similarity, *id)));
            wanted.truncate(most);
            prop_assert_eq!(index.nearest(&to, others, most), wanted);
        }
    }
}
