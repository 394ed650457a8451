//! Pure: characters that a server cut in two, and sends in two pieces.
//!
//! A server that cuts its stream by UTF-16 units sends half a surrogate pair in each of two JSON texts; one that
//! cuts by bytes sends a part of the UTF-8 form. Neither half is text. It is carried through the readers behind a
//! mark, which is a noncharacter of Unicode, and joined with its other half where pieces of one field meet.
//! A half that stays alone becomes U+FFFD. Text must never be lost with it.

use std::borrow::Cow;

/// Stands before a half. Unicode reserves it for use within a program.
const MARK: char = '\u{10FFFE}';

/// Behind the mark: the first character that stands for a surrogate, which is U+D800.
const HALVES: u32 = 0xF_0000;

/// Behind the mark: the character that stands for the byte 0.
const BYTES: u32 = 0xF_1000;

/// The first surrogate and the first that is a second half.
const SURROGATES: u16 = 0xD800;
const LOW: u16 = 0xDC00;
const SURROGATES_MAX: u16 = 0xDFFF;

/// Replacement for a half that stays alone.
const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// A part of a character.
enum CharPart {
    Surrogate(u16),
    Byte(u8),
}

/// Returns true if a UTF-16 unit is half a character.
pub(crate) fn is_surrogate(unit: u16) -> bool {
    (SURROGATES..=SURROGATES_MAX).contains(&unit)
}

/// The character that two surrogates are, if they are a pair.
fn pair(high: u16, low: u16) -> Option<char> {
    let is_pair = (SURROGATES..LOW).contains(&high) && (LOW..=SURROGATES_MAX).contains(&low);
    let code = 0x1_0000 + (u32::from(high & 0x3FF) << 10) + u32::from(low & 0x3FF);
    if is_pair { char::from_u32(code) } else { None }
}

/// Writes half a surrogate pair behind its mark.
pub(crate) fn push_surrogate(text: &mut String, unit: u16) {
    let code = HALVES + u32::from(unit - SURROGATES);
    text.extend([MARK, char::from_u32(code).unwrap_or(REPLACEMENT)]);
}

/// Reads bytes as text. Bytes that are no UTF-8 by themselves stand behind marks.
pub(crate) fn read_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let code = BYTES + u32::from(*byte);
            text.extend([MARK, char::from_u32(code).unwrap_or(REPLACEMENT)]);
        }
    }
    text
}

/// The part of a character that a character behind a mark stands for.
fn part_of(marked: char) -> Option<CharPart> {
    let code = u32::from(marked);
    let surrogate = code.checked_sub(HALVES).and_then(|it| u16::try_from(it).ok());
    if let Some(offset) = surrogate.filter(|it| *it <= SURROGATES_MAX - SURROGATES) {
        return Some(CharPart::Surrogate(SURROGATES + offset));
    }
    let byte = code.checked_sub(BYTES).and_then(|it| u8::try_from(it).ok());
    byte.map(CharPart::Byte)
}

/// Joins the halves of one text, which is complete.
pub(crate) fn join_text(text: &str) -> Cow<'_, str> {
    if !text.contains(MARK) {
        return Cow::Borrowed(text);
    }
    let mut joiner = HalfJoiner::default();
    let mut joined = joiner.push(text);
    joined.push_str(&joiner.finish());
    Cow::Owned(joined)
}

/// Joins the halves of one field that comes in pieces.
#[derive(Debug, Default)]
pub(crate) struct HalfJoiner {
    /// The last character of the text before, if it was a mark.
    after_mark: bool,
    /// The first half of a pair.
    high: Option<u16>,
    /// The first bytes of a character.
    bytes: Vec<u8>,
    has_lost: bool,
}

impl HalfJoiner {
    /// Takes the next piece and gives all that is complete with it.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        if self.is_empty() && !piece.contains(MARK) {
            return piece.to_owned();
        }
        let mut joined = String::with_capacity(piece.len());
        for it in piece.chars() {
            match std::mem::take(&mut self.after_mark).then(|| part_of(it)) {
                Some(Some(CharPart::Surrogate(unit))) => {
                    self.end_bytes(&mut joined);
                    self.add_surrogate(unit, &mut joined);
                }
                Some(Some(CharPart::Byte(byte))) => self.add_byte(byte, &mut joined),
                // The server itself wrote what is a mark here.
                Some(None) => self.add_char(MARK, it, &mut joined),
                None if it == MARK => self.after_mark = true,
                None => {
                    self.end(&mut joined);
                    joined.push(it);
                }
            }
        }
        joined
    }

    /// Ends the field and gives what stands for a half that stayed alone.
    pub(crate) fn finish(&mut self) -> String {
        let mut joined = String::new();
        if std::mem::take(&mut self.after_mark) {
            self.end(&mut joined);
            joined.push(MARK);
        }
        self.end(&mut joined);
        joined
    }

    /// Returns true if nothing waits for its other half.
    pub(crate) fn is_empty(&self) -> bool {
        !self.after_mark && self.high.is_none() && self.bytes.is_empty()
    }

    /// Returns true if some bytes were no text, whatever follows them.
    pub(crate) const fn has_lost(&self) -> bool {
        self.has_lost
    }

    fn add_char(&mut self, first: char, second: char, joined: &mut String) {
        self.end(joined);
        joined.push(first);
        match second == MARK {
            true => self.after_mark = true,
            false => joined.push(second),
        }
    }

    fn add_surrogate(&mut self, unit: u16, joined: &mut String) {
        if let Some(high) = self.high.take() {
            match pair(high, unit) {
                Some(whole) => return joined.push(whole),
                None => joined.push(REPLACEMENT),
            }
        }
        if unit < LOW {
            self.high = Some(unit);
        } else {
            joined.push(REPLACEMENT);
        }
    }

    fn add_byte(&mut self, byte: u8, joined: &mut String) {
        self.bytes.push(byte);
        match self.bytes[..] {
            // A surrogate in the form of UTF-8, as some write it.
            [0xED, 0xA0..=0xBF] => {}
            [0xED, second @ 0xA0..=0xBF, third @ 0x80..=0xBF] => {
                self.bytes.clear();
                let unit = 0xD000 | (u16::from(second & 0x3F) << 6) | u16::from(third & 0x3F);
                self.add_surrogate(unit, joined);
            }
            _ => match std::str::from_utf8(&self.bytes) {
                Ok(whole) => {
                    if self.high.take().is_some() {
                        joined.push(REPLACEMENT);
                    }
                    joined.push_str(whole);
                    self.bytes.clear();
                }
                Err(error) if error.error_len().is_none() => {}
                Err(_) => {
                    self.bytes.pop();
                    let is_first = self.bytes.is_empty();
                    self.end_bytes(joined);
                    match is_first {
                        true => self.lose(joined),
                        false => self.add_byte(byte, joined),
                    }
                }
            },
        }
    }

    /// Ends whatever waits: it stays alone.
    fn end(&mut self, joined: &mut String) {
        self.end_bytes(joined);
        if self.high.take().is_some() {
            joined.push(REPLACEMENT);
        }
    }

    fn end_bytes(&mut self, joined: &mut String) {
        if !std::mem::take(&mut self.bytes).is_empty() {
            self.lose(joined);
        }
    }

    fn lose(&mut self, joined: &mut String) {
        if self.high.take().is_some() {
            joined.push(REPLACEMENT);
        }
        joined.push(REPLACEMENT);
        self.has_lost = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A text in UTF-16 units, each surrogate behind its mark.
    fn marked(text: &str) -> String {
        let mut marked = String::new();
        for unit in text.encode_utf16() {
            match is_surrogate(unit) {
                true => push_surrogate(&mut marked, unit),
                false => marked.extend(char::from_u32(unit.into())),
            }
        }
        marked
    }

    fn join<'a>(pieces: impl IntoIterator<Item = &'a str>) -> (String, bool) {
        let mut joiner = HalfJoiner::default();
        let mut joined: String = pieces.into_iter().map(|piece| joiner.push(piece)).collect();
        joined.push_str(&joiner.finish());
        (joined, joiner.has_lost())
    }

    #[test]
    fn a_half_that_stays_alone_takes_no_text_with_it() {
        let mut high = String::new();
        push_surrogate(&mut high, 0xD83D);
        let mut low = String::new();
        push_surrogate(&mut low, 0xDE00);
        for (pieces, wanted) in [
            (vec!["a ", &high, &low, " b"], "a \u{1F600} b"),
            (vec!["a ", &high, " b"], "a \u{FFFD} b"),
            (vec!["a ", &low, " b"], "a \u{FFFD} b"),
            (vec![&high, &high, &low], "\u{FFFD}\u{1F600}"),
            (vec!["a", &high], "a\u{FFFD}"),
        ] {
            assert_eq!(join(pieces.clone()), (wanted.to_owned(), false), "{pieces:?}");
            assert_eq!(join_text(&pieces.concat()), wanted, "{pieces:?}");
        }
    }

    #[test]
    fn bytes_are_joined_and_bytes_that_are_no_text_are_told() {
        let read = |bytes: &[&[u8]]| {
            let pieces: Vec<String> = bytes.iter().map(|it| read_bytes(it)).collect();
            join(pieces.iter().map(String::as_str))
        };
        let whole = ("é \u{1F600}".to_owned(), false);
        assert_eq!(read(&[b"\xC3", b"\xA9 \xF0\x9F", b"\x98\x80"]), whole);
        // A pair whose halves each have the form of UTF-8.
        assert_eq!(read(&[b"\xC3\xA9 \xED\xA0\xBD", b"\xED\xB8\x80"]), whole);
        assert_eq!(read(&[b"caf\xE9 au lait"]), ("caf\u{FFFD} au lait".to_owned(), true));
        assert_eq!(read(&[b"\xF0\x9F", b"a"]), ("\u{FFFD}a".to_owned(), true));
        assert_eq!(read(&[b"\xFF\xFE"]), ("\u{FFFD}\u{FFFD}".to_owned(), true));
        assert_eq!(read(&[b"\xF0\x9F"]), ("\u{FFFD}".to_owned(), true));
    }

    proptest! {
        #[test]
        fn text_is_the_same_however_it_is_cut(
            text in "[a-c😀🧹é\u{10FFFE}\u{F0001}]{0,12}", size in 1_usize..5,
        ) {
            let marked: Vec<char> = marked(&text).chars().collect();
            let pieces: Vec<String> = marked.chunks(size).map(|it| it.iter().collect()).collect();
            let (joined, has_lost) = join(pieces.iter().map(String::as_str));
            prop_assume!(!text.contains("\u{10FFFE}\u{F0001}"));
            prop_assert_eq!((joined, has_lost), (text.clone(), false));
            let pieces: Vec<String> = text.as_bytes().chunks(size).map(read_bytes).collect();
            prop_assert_eq!(join(pieces.iter().map(String::as_str)), (text, false));
        }

        #[test]
        fn nothing_else_is_lost_with_bytes_that_are_no_text(bytes in proptest::collection::vec(any::<u8>(), 0..30)) {
            let (joined, _) = join([read_bytes(&bytes).as_str()]);
            let kept: String = joined.chars().filter(char::is_ascii).collect();
            let wanted: String = bytes.iter().filter(|it| it.is_ascii()).map(|it| char::from(*it)).collect();
            prop_assert_eq!(kept, wanted);
        }
    }
}
