//! Pure: where a JSON object or list ends that comes byte by byte.
//!
//! It looks at brackets and quotes alone. Whether the text is JSON is for the parser to say.

/// Deeper nesting than any reply has.
const DEPTH_MAX: usize = 128;

/// Progress of an object or list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScanState {
    /// It goes on.
    Open,
    /// This byte is its last.
    Closed,
    /// Its brackets do not match, or nest too deep.
    Broken,
}

/// An object or a list that is being read.
#[derive(Debug, Clone, Default)]
pub(super) struct JsonScan {
    /// The brackets that are open, as the bytes that close them.
    open: Vec<u8>,
    in_string: bool,
    is_escaped: bool,
}

impl JsonScan {
    /// Takes the next byte, of which the first is a bracket.
    pub(super) fn feed(&mut self, byte: u8) -> ScanState {
        if self.in_string {
            self.in_string = self.is_escaped || byte != b'"';
            self.is_escaped = byte == b'\\' && !self.is_escaped;
            return ScanState::Open;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' => self.open.push(b'}'),
            b'[' => self.open.push(b']'),
            b'}' | b']' if self.open.pop() != Some(byte) => return ScanState::Broken,
            _ => {}
        }
        match self.open.len() {
            0 => ScanState::Closed,
            1..=DEPTH_MAX => ScanState::Open,
            _ => ScanState::Broken,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_ends_at_its_own_bracket() {
        let scan = |text: &str| {
            let mut scan = JsonScan::default();
            let states = text.bytes().map(|byte| scan.feed(byte));
            let mut ends = states.enumerate().filter(|(_, state)| *state != ScanState::Open);
            ends.next()
        };
        let closed = |at| Some((at, ScanState::Closed));
        assert_eq!(scan("{}{}"), closed(1));
        assert_eq!(scan(r#"{"a}":["\"}]"]} rest"#), closed(14));
        assert_eq!(scan(r#"{"a\\":1}"#), closed(8));
        assert_eq!(scan("[[1],{}]"), closed(7));
        assert_eq!(scan("{\"a\":[}"), Some((6, ScanState::Broken)));
        assert_eq!(scan(&"[".repeat(200)), Some((DEPTH_MAX, ScanState::Broken)));
        assert_eq!(scan("{\"a\": \"}"), None);
    }
}
