//! Pure: the pieces of a streamed reply out of bytes, however they were cut: server-sent events,
//! or one JSON text a line.

use automaton_net::sse::{Events, SseError};
use serde::de::IgnoredAny;

/// The longest line, in bytes.
const LINE_BYTES_MAX: usize = 1 << 20;

/// A stream that is being read.
#[derive(Debug)]
pub struct ReplyFrames(Framing);

#[derive(Debug)]
enum Framing {
    Events(Events),
    Lines(Vec<u8>),
}

impl Default for ReplyFrames {
    /// Events.
    fn default() -> Self {
        Self(Framing::Events(Events::default()))
    }
}

impl ReplyFrames {
    /// How a body of this media type is cut; nothing where it is no stream.
    #[must_use]
    pub fn of(media_type: Option<&str>) -> Option<Self> {
        match media_type? {
            "text/event-stream" => Some(Self::default()),
            "application/x-ndjson" | "application/jsonl" => Some(Self(Framing::Lines(Vec::new()))),
            _ => None,
        }
    }

    /// Takes the next bytes and gives the data of what is complete with them.
    ///
    /// # Errors
    /// When a piece is too long; the stream is of no use from there on.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, SseError> {
        let line = match &mut self.0 {
            Framing::Events(events) => {
                return Ok(events.push(bytes)?.into_iter().map(|event| event.data).collect());
            }
            Framing::Lines(line) => line,
        };
        let mut complete = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if line.len() + piece.len() > LINE_BYTES_MAX {
                return Err(SseError::LineTooLong(LINE_BYTES_MAX));
            }
            line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                complete.extend(text(&std::mem::take(line)));
            }
        }
        Ok(complete)
    }

    /// What lacks only its end when the stream ends. What is not complete is dropped.
    #[must_use]
    pub fn finish(self) -> Option<String> {
        match self.0 {
            Framing::Events(events) => events.finish().map(|event| event.data),
            Framing::Lines(line) => {
                text(&line).filter(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
            }
        }
    }
}

/// A line that is not blank.
fn text(line: &[u8]) -> Option<String> {
    let line = line.trim_ascii();
    (!line.is_empty()).then(|| String::from_utf8_lossy(line).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_pieces_however_they_are_cut() {
        let told = "{\"a\":\"é\"}\r\n\n  {\"b\":1}\n{\"c\":2}";
        for size in 1..told.len() {
            let mut frames = ReplyFrames::of(Some("application/x-ndjson")).unwrap();
            let pieces = told.as_bytes().chunks(size);
            let mut found: Vec<String> =
                pieces.flat_map(|piece| frames.push(piece).unwrap()).collect();
            found.extend(frames.finish());
            assert_eq!(found, ["{\"a\":\"é\"}", "{\"b\":1}", "{\"c\":2}"], "{size}");
        }
        let mut frames = ReplyFrames::of(Some("application/jsonl")).unwrap();
        assert_eq!(frames.push(b"{\"half").unwrap().len(), 0);
        assert_eq!(frames.finish(), None);
        let mut frames = ReplyFrames::of(Some("application/jsonl")).unwrap();
        assert!((0..1024).try_for_each(|_| frames.push(&[b'x'; 1024]).map(drop)).is_ok());
        assert!(frames.push(b"x").is_err());
        assert!(ReplyFrames::of(Some("application/json")).is_none());
    }
}
