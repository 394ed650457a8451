//! Pure: the attention bias of the distance between two pieces, as MPNet learns it (Song et al.
//! 2020), with the buckets of T5 (Raffel et al. 2020, `relative_position_bucket`).
//!
//! Each near distance has its own bucket, and far ones share buckets logarithmically. A bias must
//! never be that of the other direction: before and behind are distinct.

#![expect(clippy::float_arithmetic, reason = "a neural network; nothing of money is here")]

/// The distance from which all share the last bucket of their direction.
const DISTANCE_MAX: usize = 128;

/// The bias of each head for each distance.
#[derive(Debug)]
pub(crate) struct RelativeBias {
    pieces_max: usize,
    /// For each head, from `pieces_max - 1` before to as many behind.
    by_distance: Vec<f32>,
}

impl RelativeBias {
    /// Creates the biases from a table with a row for each of at least four buckets, half of them
    /// for each direction, and a column for each head.
    pub(crate) fn new(table: &[f32], heads: usize, pieces_max: usize) -> Self {
        let buckets = table.len() / heads;
        let before = (1..pieces_max).rev().map(|far| bucket(far, false, buckets));
        let behind = (0..pieces_max).map(|far| bucket(far, true, buckets));
        let buckets: Vec<usize> = before.chain(behind).collect();
        let of_head = |head| buckets.iter().map(move |bucket| table[bucket * heads + head]);
        Self { pieces_max, by_distance: (0..heads).flat_map(of_head).collect() }
    }

    /// Returns the biases of a head from one piece to each of `pieces` pieces.
    pub(crate) fn row(&self, head: usize, from: usize, pieces: usize) -> &[f32] {
        let start = head * (2 * self.pieces_max - 1) + self.pieces_max - 1 - from;
        &self.by_distance[start..start + pieces]
    }
}

/// Returns the bucket of a distance: linear in the first half of its direction's buckets, then
/// logarithmic.
fn bucket(far: usize, is_behind: bool, buckets: usize) -> usize {
    let half = buckets / 2;
    let near = half / 2;
    // Distances behind have the upper half.
    let direction = if is_behind && far > 0 { half } else { 0 };
    if far < near {
        return direction + far;
    }
    let part = (float(far) / float(near)).ln() / (float(DISTANCE_MAX) / float(near)).ln();
    let more = (part * float(half - near)).max(0.0);
    direction + (near + to_whole(more)).min(half - 1)
}

fn float(number: usize) -> f32 {
    f32::from(u16::try_from(number).unwrap_or(u16::MAX))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0, and small")]
const fn to_whole(number: f32) -> usize {
    number as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_have_the_buckets_that_the_paper_gives_them() {
        // From `relative_position_bucket` with 32 buckets and 128 as the largest distance.
        let before = [
            (0, 0),
            (1, 1),
            (7, 7),
            (8, 8),
            (11, 8),
            (12, 9),
            (15, 9),
            (16, 10),
            (64, 14),
            (91, 15),
            (255, 15),
        ];
        for (far, wanted) in before {
            assert_eq!(bucket(far, false, 32), wanted, "{far} before");
            let behind = if far == 0 { 0 } else { 16 + wanted };
            assert_eq!(bucket(far, true, 32), behind, "{far} behind");
        }
    }

    #[test]
    fn each_head_adds_what_its_column_has_for_where_a_piece_stands() {
        // Two heads, four buckets: here, before, and twice behind.
        let table = [0.0, 10.0, 1.0, 11.0, 2.0, 12.0, 3.0, 13.0];
        let bias = RelativeBias::new(&table, 2, 3);
        assert_eq!(bias.row(0, 1, 3), [1.0, 0.0, 3.0]);
        assert_eq!(bias.row(1, 2, 3), [11.0, 11.0, 10.0]);
        assert_eq!(bias.row(1, 0, 2), [10.0, 13.0]);
    }
}
