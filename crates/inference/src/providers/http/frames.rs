//! Pure: the pieces of a reply out of its bytes, whatever the server calls it and however they were cut.
//!
//! The first bytes of a line say what it is. A line that begins with `{` or `[` is a JSON document, or one of several,
//! and ends where its brackets close. All else is a field of an event, as the HTML standard has them
//! (§ 9.2.6). An event ends at a blank line, at the end of the stream, or where its data is complete and another
//! event begins. Must never give a piece that is cut off, and never skip one without an error.

use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::json_scan::{JsonScan, ScanState};
use crate::halves;

/// The longest line of an event, and the longest data of one, in bytes.
const LINE_BYTES_MAX: usize = 1 << 20;

/// The longest document, in bytes. A whole reply may be one.
const DOCUMENT_BYTES_MAX: usize = 32 << 20;

/// The data that says that a stream of events is over.
pub(super) const DONE: &str = "[DONE]";

/// Reasons for which bytes are no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A line is too long.
    #[error("a line of the stream is longer than {0} bytes")]
    LineTooLong(usize),
    /// An event is too long.
    #[error("an event of the stream is longer than {0} bytes")]
    EventTooLong(usize),
    /// A document is too long.
    #[error("a document of the stream is longer than {0} bytes")]
    DocumentTooLong(usize),
    /// A line is neither a field of an event nor JSON.
    #[error("it is neither a stream of events nor JSON")]
    NotAStream,
    /// The stream ends within a piece.
    #[error("the stream ended too early")]
    Cut,
}

/// A reply that is being read.
#[derive(Debug, Default)]
pub struct ReplyFrames {
    line: Vec<u8>,
    event: PendingEvent,
    document: Option<BareDocument>,
    /// True if documents are in a list.
    in_list: bool,
    /// True if the last byte was CR; a following LF belongs to it.
    after_cr: bool,
    /// True if anything but a byte order mark has come.
    has_begun: bool,
    /// True if any piece was a document, or a part of one came.
    has_documents: bool,
    failed: Option<FrameError>,
}

/// An event of which not all lines have come.
#[derive(Debug, Default)]
struct PendingEvent {
    name: String,
    data: Option<String>,
    is_error: bool,
}

/// A document that does not stand in an event.
#[derive(Debug, Default)]
struct BareDocument {
    bytes: Vec<u8>,
    scan: JsonScan,
}

impl PendingEvent {
    /// Returns true if the data is complete by itself.
    fn is_complete(&self) -> bool {
        let is_complete =
            |data: &String| data.trim() == DONE || serde_json::from_str::<IgnoredAny>(data).is_ok();
        self.data.as_ref().is_some_and(is_complete)
    }

    /// The data, which of an error has the key `error`; nothing where there is none.
    fn into_data(self) -> Option<String> {
        let data = self.data.filter(|data| !data.trim().is_empty())?;
        let is_error = self.is_error || self.name.eq_ignore_ascii_case("error");
        Some(if is_error { wrap_error(data) } else { data })
    }
}

/// The data of an event that says that the server failed, with the key that errors have.
fn wrap_error(data: String) -> String {
    match serde_json::from_str::<Value>(&data) {
        Ok(value) if value.get("error").is_some_and(|error| !error.is_null()) => data,
        Ok(value) => json!({ "error": value }).to_string(),
        Err(_) => json!({ "error": { "message": data } }).to_string(),
    }
}

/// The data of an event for whoever passes it on as it came: bytes that are no text are U+FFFD.
#[must_use]
pub fn to_plain_text(data: &str) -> std::borrow::Cow<'_, str> {
    halves::join_text(data)
}

/// Returns true if a byte may occur in the name of a field.
const fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

impl ReplyFrames {
    /// Takes the next bytes and gives the data of what is complete with them.
    ///
    /// # Errors
    /// When it is no reply, or too long; the rest is of no use.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, FrameError> {
        let mut complete = Vec::new();
        for &byte in bytes {
            if self.failed.is_some() {
                break;
            }
            self.failed = self.take(byte, &mut complete).err();
        }
        match self.failed {
            // What is complete before it counts, however the bytes were cut.
            Some(error) if complete.is_empty() => Err(error),
            _ => Ok(complete),
        }
    }

    /// Returns true if documents come instead of events.
    #[must_use]
    pub const fn has_documents(&self) -> bool {
        self.has_documents
    }

    /// Returns the pieces that lack only their end when the stream ends.
    ///
    /// # Errors
    /// When the stream ends within a piece.
    pub fn finish(mut self) -> Result<Vec<String>, FrameError> {
        let mut complete = Vec::new();
        if let Some(error) = self.failed {
            return Err(error);
        }
        if self.document.is_some() || self.in_list {
            return Err(FrameError::Cut);
        }
        if !self.line.is_empty() {
            // What may be the beginning of a field is one.
            let is_name = self.line.iter().all(|it| is_of_name(*it));
            self.end_line(&mut complete)
                .map_err(|it| if is_name { FrameError::Cut } else { it })?;
        }
        let is_cut = self.event.data.is_some() && !self.event.is_complete();
        // Text that is no JSON may be what an error says.
        let says_error = self.event.is_error || self.event.name.eq_ignore_ascii_case("error");
        if is_cut && !says_error {
            return Err(FrameError::Cut);
        }
        self.end_event(&mut complete);
        Ok(complete)
    }

    fn take(&mut self, byte: u8, complete: &mut Vec<String>) -> Result<(), FrameError> {
        if self.document.is_some() {
            return self.take_document(byte, complete);
        }
        let begins_line = self.line.iter().all(u8::is_ascii_whitespace);
        if self.in_list && begins_line && matches!(byte, b',' | b']') {
            self.in_list = byte == b',';
            return Ok(());
        }
        if begins_line && matches!(byte, b'{' | b'[') {
            self.end_event(complete);
            self.line.clear();
            self.has_begun = true;
            self.after_cr = false;
            self.document = Some(BareDocument::default());
            self.has_documents = true;
            return self.take_document(byte, complete);
        }
        let ends = byte == b'\r' || (byte == b'\n' && !self.after_cr);
        self.after_cr = byte == b'\r';
        if ends {
            return self.end_line(complete);
        }
        if byte == b'\n' {
            return Ok(());
        }
        if self.line.len() >= LINE_BYTES_MAX {
            return Err(FrameError::LineTooLong(LINE_BYTES_MAX));
        }
        self.line.push(byte);
        if !self.has_begun && self.line == "\u{FEFF}".as_bytes() {
            self.line.clear();
            self.has_begun = true;
        }
        Ok(())
    }

    fn take_document(&mut self, byte: u8, complete: &mut Vec<String>) -> Result<(), FrameError> {
        let Some(document) = &mut self.document else { return Ok(()) };
        // A list of documents comes document by document.
        let begins_list = document.bytes == b"[" && byte == b'{' && !self.in_list;
        if begins_list {
            self.in_list = true;
            *document = BareDocument::default();
        } else if document.bytes == b"[" && byte.is_ascii_whitespace() {
            return Ok(());
        }
        if document.bytes.len() >= DOCUMENT_BYTES_MAX {
            return Err(FrameError::DocumentTooLong(DOCUMENT_BYTES_MAX));
        }
        document.bytes.push(byte);
        match document.scan.feed(byte) {
            ScanState::Open => {}
            // Of what is broken the parser says where.
            ScanState::Closed | ScanState::Broken => {
                complete.push(halves::read_bytes(&document.bytes));
                self.document = None;
            }
        }
        Ok(())
    }

    fn end_line(&mut self, complete: &mut Vec<String>) -> Result<(), FrameError> {
        let line = halves::read_bytes(&std::mem::take(&mut self.line));
        self.has_begun = true;
        if line.is_empty() {
            self.end_event(complete);
            return Ok(());
        }
        if line.starts_with(':') || line.trim().is_empty() {
            return Ok(());
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field.trim_start() {
            "data" => self.add_data(value, complete),
            "event" => {
                if self.event.is_complete() {
                    self.end_event(complete);
                }
                value.trim().clone_into(&mut self.event.name);
                Ok(())
            }
            field if field.eq_ignore_ascii_case("error") => {
                if self.event.is_complete() {
                    self.end_event(complete);
                }
                self.event.is_error = true;
                self.add_data(value, complete)
            }
            // Numbers of events, times to wait, and fields that are new.
            "id" | "retry" => Ok(()),
            field if line.contains(':') && field.bytes().all(is_of_name) => Ok(()),
            _ => Err(FrameError::NotAStream),
        }
    }

    fn add_data(&mut self, value: &str, complete: &mut Vec<String>) -> Result<(), FrameError> {
        if self.event.is_complete() {
            self.end_event(complete);
        }
        // Some put the field's name before an event that has it already.
        let mut value = value;
        while let Some(rest) = value.trim_start().strip_prefix("data:") {
            value = rest.strip_prefix(' ').unwrap_or(rest);
        }
        let data = match self.event.data.take() {
            Some(before) => format!("{before}\n{value}"),
            None => value.to_owned(),
        };
        if data.len() > LINE_BYTES_MAX {
            return Err(FrameError::EventTooLong(LINE_BYTES_MAX));
        }
        self.event.data = Some(data);
        Ok(())
    }

    fn end_event(&mut self, complete: &mut Vec<String>) {
        complete.extend(std::mem::take(&mut self.event).into_data());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(told: &str, size: usize) -> Result<Vec<String>, FrameError> {
        let mut frames = ReplyFrames::default();
        let mut found = Vec::new();
        for piece in told.as_bytes().chunks(size) {
            found.extend(frames.push(piece)?);
        }
        found.extend(frames.finish()?);
        Ok(found)
    }

    #[test]
    fn a_reply_is_read_whatever_it_is_called_and_however_it_is_cut() {
        for (told, wanted) in [
            // One document a line, with and without a mark, a list of them, and one over lines.
            (
                "{\"a\":\"é\"}\r\n\n  {\"b\":1}\n{\"c\":2}",
                vec!["{\"a\":\"é\"}", "{\"b\":1}", "{\"c\":2}"],
            ),
            ("\u{FEFF}{\"a\":1}", vec!["{\"a\":1}"]),
            ("[{\"a\":1},\r\n{\"b\":[{}]}\n]\n", vec!["{\"a\":1}", "{\"b\":[{}]}"]),
            ("{\n \"a\": [1,\n 2]\n}\n", vec!["{\n \"a\": [1,\n 2]\n}"]),
            ("{\"a\":\"}\"}data: [DONE]\n\n", vec!["{\"a\":\"}\"}", DONE]),
            ("[]\n", vec!["[]"]),
            ("[DONE]", vec![DONE]),
            // Events: as they should be, without blank lines, without an end, with fields twice.
            ("data: {\"a\":1}\n\ndata: {\"b\":2}\n\n", vec!["{\"a\":1}", "{\"b\":2}"]),
            (
                "data: {\"a\":1}\r\ndata:{\"b\":2}\r\ndata: [DONE]\r\n",
                vec!["{\"a\":1}", "{\"b\":2}", DONE],
            ),
            (
                "event: x\ndata: {\"a\":1}\nevent: y\ndata: {\"b\":2}",
                vec!["{\"a\":1}", "{\"b\":2}"],
            ),
            ("data: {\"a\":\rdata: 1}\r\r", vec!["{\"a\":\n1}"]),
            ("data: data: {\"a\":1}\n\n", vec!["{\"a\":1}"]),
            ("\u{FEFF}data: {\"a\":1}\n\n", vec!["{\"a\":1}"]),
            (": ping\n\nid: 7\nretry: 5\nx-new: z\ndata:\n\n\n", vec![]),
            ("data: no json\n\n", vec!["no json"]),
            // Errors, under one key.
            (
                "event: error\ndata: {\"message\":\"m\"}\n\n",
                vec!["{\"error\":{\"message\":\"m\"}}"],
            ),
            (
                "event: error\ndata: {\"error\":{\"message\":\"m\"}}\n\n",
                vec!["{\"error\":{\"message\":\"m\"}}"],
            ),
            ("error: {\"code\":400}\n\n", vec!["{\"error\":{\"code\":400}}"]),
            (
                "data: {\"a\":1}\nerror: out of room",
                vec!["{\"a\":1}", "{\"error\":{\"message\":\"out of room\"}}"],
            ),
        ] {
            for size in 1..=told.len() {
                let found = read(told, size);
                assert_eq!(
                    found,
                    Ok(wanted.iter().map(|it| (*it).to_owned()).collect()),
                    "{told:?} {size}"
                );
            }
        }
    }

    #[test]
    fn a_piece_that_is_cut_off_is_never_given_nor_skipped() {
        for cut in [
            "{\"half",
            "[{\"a\":1},",
            "data: {\"half",
            "data: {\"a\":1}\n\ndata: {\"b\":",
            "dat",
            "data: {\"a\":\n",
        ] {
            assert_eq!(read(cut, 3), Err(FrameError::Cut), "{cut}");
        }
        for strange in [
            "<html>",
            "<html>\n",
            "Internal Server Error\n",
            "7\n",
            "nul\n",
            "data: {\"a\":\"b\nc\"}\n",
        ] {
            assert_eq!(read(strange, 2), Err(FrameError::NotAStream), "{strange}");
        }
        let mut frames = ReplyFrames::default();
        assert!((0..1024).try_for_each(|_| frames.push(&[b'x'; 1024]).map(drop)).is_ok());
        assert_eq!(frames.push(b"x"), Err(FrameError::LineTooLong(LINE_BYTES_MAX)));
        // What stands before it counts.
        let mut frames = ReplyFrames::default();
        assert_eq!(frames.push(b"data: [DONE]\n\n<html>\ndata: x\n\n"), Ok(vec![DONE.to_owned()]));
        assert!(frames.push(b"data: x\n\n").is_err() && frames.finish().is_err());
        let half = format!("data: {{{}\n", " ".repeat(LINE_BYTES_MAX / 2));
        let error = ReplyFrames::default().push(format!("{half}{half}").as_bytes());
        assert_eq!(error, Err(FrameError::EventTooLong(LINE_BYTES_MAX)));
    }

    proptest! {
        #[test]
        fn where_the_bytes_are_cut_makes_no_difference(
            lines in proptest::collection::vec(
                "((data: ?|event:|error: |: |x: )?[a-zü\"{}\\[\\],1:\u{FEFF}]{0,8}(\r\n|\n|\r|\n\n|))", 0..8),
            size in 1_usize..9,
        ) {
            let told = lines.concat();
            prop_assert_eq!(read(&told, size), read(&told, told.len().max(1)));
        }

        #[test]
        fn what_was_written_is_read(texts in proptest::collection::vec("[a-z\n\"{}]{0,12}", 0..5)) {
            let wanted: Vec<String> = texts.iter().map(|it| json!({ "a": it }).to_string()).collect();
            for end in ["\n", "\n\n", "\r\n\r\n"] {
                let events: String = wanted.iter().map(|it| format!("data: {it}{end}")).collect();
                prop_assert_eq!(read(&events, 5), Ok(wanted.clone()));
                let lines: String = wanted.iter().map(|it| format!("{it}{end}")).collect();
                prop_assert_eq!(read(&lines, 5), Ok(wanted.clone()));
            }
        }
    }
}
