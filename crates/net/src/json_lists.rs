//! Pure: empties the lists of a JSON text while it arrives.
//!
//! A block of a chain is small but for the list of its transactions, which may be longer than
//! any limit. A reader of the rest never has to hold that list. A text that is no JSON comes
//! out as something else that is none.

/// The place in a JSON text up to which it was read.
#[derive(Debug, Default)]
pub(crate) struct JsonLists {
    /// Lists that are open.
    depth: u64,
    in_text: bool,
    /// The byte before was a backslash that belongs to the next one.
    is_escaped: bool,
}

impl JsonLists {
    /// Reads the next piece, and gives it without the entries of lists.
    pub(crate) fn empty(&mut self, piece: &[u8]) -> Vec<u8> {
        piece.iter().copied().filter(|byte| self.keeps(*byte)).collect()
    }

    fn keeps(&mut self, byte: u8) -> bool {
        let is_kept = self.depth == 0;
        if self.in_text {
            let is_end = byte == b'"' && !self.is_escaped;
            self.in_text = !is_end;
            self.is_escaped = byte == b'\\' && !self.is_escaped;
            return is_kept;
        }
        match byte {
            b'"' => self.in_text = true,
            b'[' => self.depth = self.depth.saturating_add(1),
            b']' => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            _ => {}
        }
        is_kept
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn emptied(text: &[u8], sizes: usize) -> Vec<u8> {
        let mut lists = JsonLists::default();
        text.chunks(sizes).flat_map(|piece| lists.empty(piece)).collect()
    }

    #[test]
    fn only_the_entries_of_lists_are_left_out() {
        for (text, wanted) in [
            (r#"{"a":[1,2,[3]],"b":"x[y]\"z]","c":[]}"#, r#"{"a":[],"b":"x[y]\"z]","c":[]}"#),
            (r#"{"a":["]","\\","\"]"],"b":1}"#, r#"{"a":[],"b":1}"#),
            (r#"{"a":[{"b":[1]},{"c":"]"}]} "#, r#"{"a":[]} "#),
            ("[1,2]", "[]"),
            ("]]{}", "]]{}"),
        ] {
            for sizes in [1, 2, 3, 100] {
                assert_eq!(emptied(text.as_bytes(), sizes), wanted.as_bytes(), "{text} by {sizes}");
            }
        }
    }

    proptest! {
        #[test]
        fn the_rest_is_the_same_however_it_is_cut(
            entries in proptest::collection::vec(".{0,8}", 0..6), text in ".{0,20}", sizes in 1_usize..9,
        ) {
            let whole = json!({ "before": text, "list": entries, "after": { "text": text, "n": 7 } });
            let rest: Value = serde_json::from_slice(&emptied(whole.to_string().as_bytes(), sizes)).unwrap();
            prop_assert_eq!(rest, json!({ "before": text, "list": [], "after": { "text": text, "n": 7 } }));
        }
    }
}
