//! Pure: where the keys of a JSON text are, for errors with their place and for changes that leave
//! the rest of the text as it is.
//!
//! The text has been read as JSON before; this only finds places in it.

use std::ops::Range;

/// A key of an object in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyPlace {
    /// Its path, as `brain.prices.inputPerMillion` or `networks[0].name`.
    pub(super) path: String,
    /// The place of its first quote, in bytes.
    pub(super) at: usize,
    /// Its value.
    pub(super) value: Range<usize>,
}

/// Finds a key: the one at the path `read`, else the first of that name below it.
pub(super) fn find_key(text: &str, read: &str, key: &str) -> Option<KeyPlace> {
    let all = keys(text);
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default() == key;
    let is_below = |path: &str| {
        read.is_empty() || path.strip_prefix(read).is_some_and(|rest| rest.starts_with(['.', '[']))
    };
    let exact = all.iter().find(|found| found.path == read && last(&found.path));
    let below = || all.iter().find(|found| is_below(&found.path) && last(&found.path));
    exact.or_else(below).cloned()
}

/// Returns line and column of a place, both from 1; a column counts characters.
pub(super) fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    (line, before.get(start..).unwrap_or_default().chars().count() + 1)
}

/// Lists every key of the text, each object before what is in it.
pub(super) fn keys(text: &str) -> Vec<KeyPlace> {
    let mut scanner = Scanner { bytes: text.as_bytes(), text, at: 0, found: Vec::new() };
    scanner.value("");
    scanner.found
}

/// Reads a JSON text from its beginning to its end.
struct Scanner<'a> {
    bytes: &'a [u8],
    text: &'a str,
    at: usize,
    found: Vec<KeyPlace>,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Skips spaces, and returns true after skipping this byte too.
    fn takes(&mut self, byte: u8) -> bool {
        self.skip_space();
        let is_it = self.peek() == Some(byte);
        self.at += usize::from(is_it);
        is_it
    }

    fn value(&mut self, path: &str) {
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.object(path),
            Some(b'[') => self.array(path),
            Some(b'"') => drop(self.string()),
            _ => {
                let ends = |byte: u8| byte.is_ascii_whitespace() || b",]}".contains(&byte);
                while self.peek().is_some_and(|byte| !ends(byte)) {
                    self.at += 1;
                }
            }
        }
    }

    fn object(&mut self, path: &str) {
        self.at += 1;
        while !self.takes(b'}') && self.peek().is_some() {
            let begin = self.at;
            let key = self.string();
            self.takes(b':');
            self.skip_space();
            let path = if path.is_empty() { key } else { format!("{path}.{key}") };
            let nth = self.found.len();
            let value = self.at;
            self.found.push(KeyPlace { path: path.clone(), at: begin, value: value..value });
            self.value(&path);
            if let Some(found) = self.found.get_mut(nth) {
                found.value.end = self.at;
            }
            if !self.takes(b',') && self.peek() != Some(b'}') {
                return;
            }
            self.skip_space();
        }
    }

    fn array(&mut self, path: &str) {
        self.at += 1;
        let mut nth = 0_usize;
        while !self.takes(b']') && self.peek().is_some() {
            self.value(&format!("{path}[{nth}]"));
            nth += 1;
            if !self.takes(b',') && self.peek() != Some(b']') {
                return;
            }
        }
    }

    /// Passes a string, and returns what it says.
    fn string(&mut self) -> String {
        let begin = self.at;
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'"' => break,
                _ => {}
            }
        }
        let literal = self.text.get(begin..self.at).unwrap_or_default();
        // silent-ok: the text was read as JSON before; a string that is none has no name.
        serde_json::from_str(literal).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "{\n  \"a\" : {\"b\": [1, {\"c\": \"x]}\\\"\"}], \"d\": null},\n  \"ä\": -1.5e3}\n";

    #[test]
    fn every_key_has_its_path_and_its_value() {
        let found = keys(TEXT);
        let told: Vec<(&str, &str)> =
            found.iter().map(|it| (it.path.as_str(), &TEXT[it.value.clone()])).collect();
        assert_eq!(
            told,
            [
                ("a", "{\"b\": [1, {\"c\": \"x]}\\\"\"}], \"d\": null}"),
                ("a.b", "[1, {\"c\": \"x]}\\\"\"}]"),
                ("a.b[1].c", "\"x]}\\\"\""),
                ("a.d", "null"),
                ("ä", "-1.5e3"),
            ]
        );
        assert_eq!(line_and_column(TEXT, found[0].at), (2, 3));
        assert_eq!(line_and_column(TEXT, found[4].at), (3, 3));
    }

    #[test]
    fn a_key_is_found_at_its_path_or_below() {
        let at = |read: &str, key: &str| find_key(TEXT, read, key).map(|found| found.path);
        assert_eq!(at("a.d", "d").as_deref(), Some("a.d"));
        assert_eq!(at("a", "c").as_deref(), Some("a.b[1].c"));
        assert_eq!(at("", "ä").as_deref(), Some("ä"));
        assert_eq!(at("a", "ä"), None);
    }

    #[test]
    fn nothing_that_is_no_json_hangs_the_scanner() {
        for text in
            ["", "{", "{\"", "{\"a\"", "{\"a\":", "[", "[1", "{\"a\" 1}", "{1:2}", "{\"a\":\\"]
        {
            assert!(keys(text).len() <= 1, "{text}");
        }
    }
}
