//! Pure: server-sent events out of bytes, however they were cut.
//!
//! The format is that of the HTML standard, § 9.2.6
//! (<https://html.spec.whatwg.org/multipage/server-sent-events.html>). Bytes
//! come in pieces of any size; a line and an event each have a cap, so that a
//! server cannot fill the memory. Must never see the network.

/// The longest line, and the longest data of one event, in bytes.
const BYTES_MAX: usize = 1 << 20;

/// The stream goes beyond a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// A line is too long.
    #[error("a line of the event stream is longer than {0} bytes")]
    LineTooLong(usize),
    /// An event is too long.
    #[error("an event of the stream is longer than {0} bytes")]
    EventTooLong(usize),
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    /// The event's type, when it names one.
    pub name: Option<String>,
    /// The lines of its data, joined with LF.
    pub data: String,
}

/// The parser, at first at the beginning of a stream: bytes in, events out.
#[derive(Debug, Default)]
pub struct Events {
    line: Vec<u8>,
    event: SseEvent,
    /// The event has a data line; an empty one counts.
    has_data: bool,
    /// The last byte was CR, so an LF that follows belongs to it.
    after_cr: bool,
    /// A line has ended already. Only the first may begin with a byte order mark.
    begun: bool,
}

impl Events {
    /// Takes the next bytes and gives the events that are complete with them.
    ///
    /// # Errors
    /// Fails if a limit is passed; the stream is of no use from there on.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, SseError> {
        let mut complete = Vec::new();
        for &byte in bytes {
            let ends = byte == b'\r' || (byte == b'\n' && !self.after_cr);
            if ends {
                complete.extend(self.end_line()?);
            } else if byte != b'\n' {
                if self.line.len() >= BYTES_MAX {
                    return Err(SseError::LineTooLong(BYTES_MAX));
                }
                self.line.push(byte);
            }
            self.after_cr = byte == b'\r';
        }
        Ok(complete)
    }

    /// The event that lacks only its blank line when the stream ends. The
    /// standard drops it, but servers of models often leave the last blank line
    /// out. A line that is not complete is dropped.
    #[must_use]
    pub fn finish(mut self) -> Option<SseEvent> {
        self.dispatch()
    }

    fn end_line(&mut self) -> Result<Option<SseEvent>, SseError> {
        let taken = std::mem::take(&mut self.line);
        let mut line = taken.as_slice();
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            return Ok(self.dispatch());
        }
        let colon = line.iter().position(|&b| b == b':').unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
        match field {
            b"data" => self.add_data(&value)?,
            b"event" => self.event.name = Some(value.into_owned()),
            // Comments, ids, retry times and what is unknown.
            _ => {}
        }
        Ok(None)
    }

    fn add_data(&mut self, value: &str) -> Result<(), SseError> {
        if self.event.data.len() + value.len() > BYTES_MAX {
            return Err(SseError::EventTooLong(BYTES_MAX));
        }
        if self.has_data {
            self.event.data.push('\n');
        }
        self.event.data.push_str(value);
        self.has_data = true;
        Ok(())
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        let event = std::mem::take(&mut self.event);
        std::mem::take(&mut self.has_data).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(pieces: &[&[u8]]) -> Vec<SseEvent> {
        let mut parser = Events::default();
        let mut events = Vec::new();
        for piece in pieces {
            events.extend(parser.push(piece).unwrap());
        }
        events
    }

    fn data(text: &str) -> Vec<String> {
        parse(&[text.as_bytes()]).into_iter().map(|event| event.data).collect()
    }

    #[test]
    fn reads_the_format_of_the_standard() {
        let check = |text: &str, wanted: &[&str]| assert_eq!(data(text), wanted, "{text:?}");
        check("data: a\n\ndata: b\n\n", &["a", "b"]);
        check("data: a\r\ndata: b\r\n\r\n", &["a\nb"]);
        check("data: a\rdata: b\r\r", &["a\nb"]);
        check("data:a\n\n", &["a"]);
        check("data:  a\n\n", &[" a"]);
        check("data\n\n", &[""]);
        check("data\ndata\n\n", &["\n"]);
        check(": comment\n\n", &[]);
        check("id: 1\nretry: 5\nother: x\n\n", &[]);
        check("\u{feff}data: a\n\n", &["a"]);
        check("data: no end\n", &[]);
    }

    #[test]
    fn an_event_without_its_blank_line_is_kept_at_the_end() {
        let mut parser = Events::default();
        assert_eq!(parser.push(b"event: ping\ndata: [DONE]\ndata: cut"), Ok(Vec::new()));
        let last = parser.finish();
        assert_eq!(last, Some(SseEvent { name: Some("ping".into()), data: "[DONE]".into() }));
    }

    #[test]
    fn lines_and_events_have_caps() {
        let fails = |text: &str| Events::default().push(text.as_bytes()).unwrap_err();
        assert_eq!(fails(&"x".repeat(BYTES_MAX + 1)), SseError::LineTooLong(BYTES_MAX));
        let half = format!("data:{}\n", "x".repeat(BYTES_MAX / 2 + 1));
        assert_eq!(fails(&format!("{half}{half}")), SseError::EventTooLong(BYTES_MAX));
    }

    proptest! {
        #[test]
        fn where_the_bytes_are_cut_makes_no_difference(
            text in "(data: ?|event:|: |x)?[a-zü]{0,6}(\r\n|\n|\r|\r\n\r\n|\n\n){0,2}",
            more in "((data: ?|event:|: |x)?[a-zü]{0,6}(\r\n|\n|\r|\n\n)){0,8}",
            size in 1_usize..9,
        ) {
            let bytes = format!("{text}{more}").into_bytes();
            let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
            prop_assert_eq!(parse(&pieces), parse(&[&bytes]));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Events::default().push(&bytes).is_ok());
        }

        #[test]
        fn what_was_written_is_read(lines in proptest::collection::vec("[^\r\n]{0,20}", 1..5)) {
            let text: String = lines.iter().map(|line| format!("data: {line}\n")).collect();
            prop_assert_eq!(data(&format!("{text}\n")), vec![lines.join("\n")]);
        }
    }
}
