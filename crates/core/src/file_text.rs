//! Pure: the text of files that people write or bring, and mistakes in their keys.
//!
//! Editors may put a byte order mark before a text, or save it as UTF-16. The mark is skipped;
//! UTF-16 is named, since a guess at what was meant could change a setting.

use std::fmt;

/// The byte order mark of UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// The fewest letters that a key and its correction have in common, in percent.
const LIKENESS_MIN: usize = 60;

/// Bytes that are no UTF-8 text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TextDefect {
    /// They are UTF-16.
    #[error("it is UTF-16, and must be UTF-8: save it as UTF-8 in your editor")]
    Utf16,
    /// They are UTF-32.
    #[error("it is UTF-32, and must be UTF-8: save it as UTF-8 in your editor")]
    Utf32,
    /// They are in another encoding, or no text.
    #[error("it is no UTF-8 text: byte {0} is none of it")]
    Other(usize),
}

/// Returns the text of a file without its byte order mark.
///
/// # Errors
/// [`TextDefect`] when the bytes are not UTF-8.
pub fn decode(bytes: &[u8]) -> Result<&str, TextDefect> {
    let text = bytes.strip_prefix(MARK).unwrap_or(bytes);
    if let Some(wide) = wide_encoding(text) {
        return Err(wide);
    }
    let skipped = bytes.len() - text.len();
    std::str::from_utf8(text).map_err(|error| TextDefect::Other(skipped + error.valid_up_to() + 1))
}

/// Returns a copy of the text that [`decode`] finds.
///
/// # Errors
/// As [`decode`].
pub fn decode_owned(bytes: &[u8]) -> Result<String, TextDefect> {
    decode(bytes).map(ToOwned::to_owned)
}

/// Returns the encoding of a text whose characters take two or four bytes: by its mark, or by
/// the zero bytes that its first character has.
fn wide_encoding(bytes: &[u8]) -> Option<TextDefect> {
    match bytes {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Some(TextDefect::Utf32),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some(TextDefect::Utf16),
        [0, 0, 0, last, ..] | [last, 0, 0, 0, ..] if *last != 0 => Some(TextDefect::Utf32),
        [0, second, 0, fourth, ..] if *second != 0 && *fourth != 0 => Some(TextDefect::Utf16),
        [first, 0, third, 0, ..] if *first != 0 && *third != 0 => Some(TextDefect::Utf16),
        _ => None,
    }
}

/// A key that a reader of JSON, TOML or YAML does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKey {
    /// The key.
    pub key: String,
    /// The known key that is most like it, if one is.
    pub nearest: Option<String>,
}

impl UnknownKey {
    /// Finds the key in the message of a derived reader, which lists the known ones:
    /// ``unknown field `a`, expected one of `b`, `c` ``.
    #[must_use]
    pub fn of_message(message: &str) -> Option<Self> {
        let rest = message.split_once("unknown field `")?.1;
        let (key, known) = rest.split_once('`')?;
        // Every second part lies between two quotes.
        let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
        let nearest = nearest_name(key, known.iter().copied()).map(ToOwned::to_owned);
        Some(Self { key: key.to_owned(), nearest })
    }
}

impl fmt::Display for UnknownKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key: String = self.key.chars().filter(|c| !c.is_control()).take(60).collect();
        write!(f, "unknown key \"{key}\"")?;
        match &self.nearest {
            Some(nearest) => write!(f, ". Did you mean \"{nearest}\"?"),
            None => Ok(()),
        }
    }
}

/// Returns the message of a derived reader with the correction of an unknown key, and any other
/// message as it is.
#[must_use]
pub fn with_correction(message: &str) -> String {
    match UnknownKey::of_message(message).map(|unknown| unknown.nearest) {
        Some(Some(nearest)) => format!("{message}. Did you mean \"{nearest}\"?"),
        _ => message.to_owned(),
    }
}

/// Returns the name that is most like the one that was written, if any is like it.
pub fn nearest_name<'a>(written: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold(written);
    let ranked = names.filter_map(|name| {
        let other = fold(name);
        let longest = folded.len().max(other.len());
        let distance = edit_distance(&folded, &other);
        let alike = (longest - distance.min(longest)) * 100;
        (alike >= longest * LIKENESS_MIN).then_some((distance, name))
    });
    ranked.min().map(|(_, name)| name)
}

/// The letters and digits of a name in lower case.
fn fold(name: &str) -> Vec<char> {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).take(80).collect()
}

/// Counts the letters that have to be added, removed, replaced or swapped with their neighbour.
fn edit_distance(one: &[char], other: &[char]) -> usize {
    let width = other.len() + 1;
    let mut rows: Vec<Vec<usize>> = vec![vec![0; width]; one.len() + 1];
    for (nth, row) in rows.iter_mut().enumerate() {
        row[0] = nth;
    }
    rows[0] = (0..width).collect();
    for i in 1..=one.len() {
        for j in 1..width {
            let replaced = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
            let shorter = rows[i - 1][j].min(rows[i][j - 1]) + 1;
            let is_swap =
                i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
            let swapped = if is_swap { rows[i - 2][j - 2] + 1 } else { usize::MAX };
            rows[i][j] = replaced.min(shorter).min(swapped);
        }
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str, mark: bool, big: bool) -> Vec<u8> {
        let units = mark.then_some(0xfeff).into_iter().chain(text.encode_utf16());
        units.flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
    }

    #[test]
    fn a_mark_is_skipped_and_wide_encodings_are_named() {
        assert_eq!(decode(b"\xef\xbb\xbf{\"a\": 1}"), Ok("{\"a\": 1}"));
        assert_eq!(decode("Grüße".as_bytes()), Ok("Grüße"));
        assert_eq!(decode(b""), Ok(""));
        assert_eq!(decode(b"\xef\xbb\xbf"), Ok(""));
        for (mark, big) in [(true, true), (true, false), (false, true), (false, false)] {
            assert_eq!(decode(&utf16("{\"a\": 1}", mark, big)), Err(TextDefect::Utf16));
        }
        assert_eq!(decode(b"\xff\xfe\0\0{\0\0\0"), Err(TextDefect::Utf32));
        assert_eq!(decode(b"{\0\0\0}\0\0\0"), Err(TextDefect::Utf32));
        assert_eq!(decode(b"caf\xe9"), Err(TextDefect::Other(4)));
        assert_eq!(decode(b"\xef\xbb\xbfcaf\xe9"), Err(TextDefect::Other(7)));
    }

    #[test]
    fn an_unknown_key_is_corrected_by_the_most_alike() {
        let known = ["brain", "name", "genesisPrompt", "maxInferenceDailyCents", "maxChildren"];
        for (written, nearest) in [
            ("brian", Some("brain")),
            ("Brain", Some("brain")),
            ("maxInferenceDailyCent", Some("maxInferenceDailyCents")),
            ("genesis_prompt", Some("genesisPrompt")),
            ("nmae", Some("name")),
            ("zeal", None),
            ("", None),
        ] {
            assert_eq!(nearest_name(written, known.into_iter()), nearest, "{written}");
        }
    }

    #[test]
    fn the_message_of_a_reader_gets_its_correction() {
        let message = "unknown field `brian`, expected one of `name`, `brain` at line 1 column 9";
        let unknown = UnknownKey::of_message(message).unwrap();
        assert_eq!(unknown.to_string(), "unknown key \"brian\". Did you mean \"brain\"?");
        assert!(with_correction(message).ends_with("column 9. Did you mean \"brain\"?"));
        let single = UnknownKey::of_message("unknown field `hots`, expected `hosts`").unwrap();
        assert_eq!(single.nearest.as_deref(), Some("hosts"));
        let none = UnknownKey::of_message("unknown field `zeal`, there are no fields").unwrap();
        assert_eq!(none.to_string(), "unknown key \"zeal\"");
        assert_eq!(with_correction("missing field `a`"), "missing field `a`");
    }
}
