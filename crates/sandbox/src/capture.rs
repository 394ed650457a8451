//! Pure: a buffer that keeps the head and the tail of an output within a fixed size.
//!
//! It must never hold more than its limit, whatever the program writes.

use std::collections::VecDeque;
use std::fmt::Write as _;

/// The captured part of an output stream: its head, its tail, and the number of bytes omitted
/// between them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapturedOutput {
    /// The first bytes, or everything if nothing was omitted.
    pub head: Vec<u8>,
    /// The last bytes. Empty if the head holds everything.
    pub tail: Vec<u8>,
    /// The number of bytes dropped between head and tail.
    pub omitted_bytes: u64,
}

impl CapturedOutput {
    /// Returns the captured text, with a line that names the gap. Invalid UTF-8 becomes
    /// replacement characters.
    #[must_use]
    pub fn text_lossy(&self) -> String {
        if self.omitted_bytes == 0 {
            let whole: Vec<u8> = self.head.iter().chain(&self.tail).copied().collect();
            return String::from_utf8_lossy(&whole).into_owned();
        }
        let mut text = String::from_utf8_lossy(&self.head).into_owned();
        // silent-ok: writing to a String cannot fail.
        let _ = write!(text, "\n[… {} bytes omitted …]\n", self.omitted_bytes);
        text.push_str(&String::from_utf8_lossy(&self.tail));
        text
    }

    /// Returns the number of bytes that the program wrote in total.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.head.len() as u64 + self.tail.len() as u64 + self.omitted_bytes
    }
}

/// Collects an output stream into a [`CapturedOutput`].
#[derive(Debug)]
pub struct CaptureBuffer {
    head: Vec<u8>,
    head_max: usize,
    tail: VecDeque<u8>,
    tail_max: usize,
    omitted_bytes: u64,
}

impl CaptureBuffer {
    /// Creates a buffer for at most `bytes_max` bytes, half of them from the beginning.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        let head_max = bytes_max.div_ceil(2);
        Self {
            head: Vec::new(),
            head_max,
            tail: VecDeque::new(),
            tail_max: bytes_max - head_max,
            omitted_bytes: 0,
        }
    }

    /// Adds the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(self.head_max - self.head.len()));
        self.head.extend_from_slice(first);
        // Only the last `tail_max` bytes of this piece can survive.
        let keep = rest.len().min(self.tail_max);
        let surplus = (self.tail.len() + keep).saturating_sub(self.tail_max);
        self.tail.drain(..surplus);
        self.tail.extend(&rest[rest.len() - keep..]);
        self.omitted_bytes += (rest.len() - keep + surplus) as u64;
    }

    /// Returns the bytes captured so far.
    #[must_use]
    pub fn snapshot(&self) -> CapturedOutput {
        CapturedOutput {
            head: self.head.clone(),
            tail: self.tail.iter().copied().collect(),
            omitted_bytes: self.omitted_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keeps_the_ends_and_counts_the_middle(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
            bytes_max in 0usize..64,
        ) {
            let whole: Vec<u8> = pieces.concat();
            let mut keeper = CaptureBuffer::new(bytes_max);
            for piece in &pieces {
                keeper.push(piece);
            }
            let kept = keeper.snapshot();
            prop_assert!(kept.head.len() + kept.tail.len() <= bytes_max);
            prop_assert_eq!(kept.total_bytes(), whole.len() as u64);
            prop_assert!(whole.starts_with(&kept.head));
            prop_assert!(whole.ends_with(&kept.tail));
            if whole.len() <= bytes_max {
                prop_assert_eq!(kept.omitted_bytes, 0);
            } else {
                prop_assert_eq!(kept.head.len() + kept.tail.len(), bytes_max);
            }
        }
    }

    #[test]
    fn names_the_gap() {
        let mut keeper = CaptureBuffer::new(4);
        keeper.push(b"ab123yz");
        assert_eq!(keeper.snapshot().text_lossy(), "ab\n[… 3 bytes omitted …]\nyz");
    }

    #[test]
    fn a_character_across_head_and_tail_survives_when_nothing_is_cut() {
        let mut keeper = CaptureBuffer::new(3);
        keeper.push("é€".as_bytes().split_at(3).0);
        assert_eq!(keeper.snapshot().total_bytes(), 3);
        let mut keeper = CaptureBuffer::new(4);
        keeper.push("aé".as_bytes());
        assert_eq!(keeper.snapshot().text_lossy(), "aé");
    }
}
