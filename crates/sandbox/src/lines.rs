//! Pure: reads a range of lines of a text in blocks.
//!
//! It must never hold more than was asked for, however long the text or one of its lines is.

use std::io::{self, Read};

/// The number of bytes read at once.
const BLOCK: usize = 64 << 10;

/// A range of lines to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineRange {
    /// The number of the first line, from 1.
    pub first: u64,
    /// The most lines.
    pub lines_max: usize,
    /// The most bytes kept of each line.
    pub line_bytes_max: usize,
    /// The most bytes kept in total. The line that reaches this limit is the last.
    pub bytes_max: usize,
}

/// A line without its end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextLine {
    /// The beginning of the line, or all of it.
    pub bytes: Vec<u8>,
    /// The full length in bytes.
    pub total_bytes: u64,
}

/// The result of reading lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinesRead {
    /// The requested lines that exist and fit.
    pub lines: Vec<TextLine>,
    /// The number of lines of the whole text. The last one may be unterminated.
    pub total_lines: u64,
    /// The length of the whole text in bytes.
    pub total_bytes: u64,
    /// True if the first block contains a NUL byte, so that this is not a text.
    pub has_nul: bool,
}

/// Reads a text to its end and keeps the requested lines.
///
/// # Errors
/// Fails if the text cannot be read.
pub fn read_lines(mut text: impl Read, wanted: LineRange) -> io::Result<LinesRead> {
    let mut read = LinesRead::default();
    let mut block = vec![0; BLOCK];
    let mut number = 1_u64;
    let mut is_open = false;
    let mut is_full = false;
    let mut kept = 0;
    loop {
        let count = match text.read(&mut block) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let block = &block[..count];
        read.has_nul |= read.total_bytes == 0 && block.contains(&0);
        read.total_bytes += count as u64;
        let ends = block.iter().filter(|byte| **byte == b'\n').count() as u64;
        if is_full || number + ends < wanted.first {
            number += ends;
            is_open = !block.ends_with(b"\n");
            continue;
        }
        for piece in block.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            if !is_open {
                is_full |= read.lines.len() >= wanted.lines_max || kept >= wanted.bytes_max;
                if number >= wanted.first && !is_full {
                    read.lines.push(TextLine::default());
                }
            }
            if let Some(line) = read.lines.last_mut().filter(|_| !is_full) {
                let room = wanted.line_bytes_max.saturating_sub(line.bytes.len()).min(text.len());
                line.bytes.extend_from_slice(&text[..room]);
                line.total_bytes += text.len() as u64;
                kept += room + usize::from(ends);
            }
            is_open = !ends;
            number += u64::from(ends);
        }
    }
    read.total_lines = number - 1 + u64::from(is_open);
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: LineRange =
        LineRange { first: 1, lines_max: 1_000, line_bytes_max: 1 << 20, bytes_max: 1 << 30 };

    fn texts(read: &LinesRead) -> Vec<&str> {
        read.lines.iter().map(|line| std::str::from_utf8(&line.bytes).unwrap()).collect()
    }

    #[test]
    fn lines_are_counted_and_long_ones_cut() {
        let text = b"one\n\nthree four\nfive";
        let read = read_lines(&text[..], LineRange { line_bytes_max: 5, ..ALL }).unwrap();
        assert_eq!(texts(&read), ["one", "", "three", "five"]);
        assert_eq!((read.lines[2].total_bytes, read.total_lines, read.total_bytes), (10, 4, 20));
        let read = read_lines(&text[..], LineRange { first: 2, lines_max: 2, ..ALL }).unwrap();
        assert_eq!((texts(&read), read.total_lines), (vec!["", "three four"], 4));
        let read = read_lines(&text[..], LineRange { first: 9, ..ALL }).unwrap();
        assert_eq!((texts(&read), read.total_lines), (vec![], 4));
        let read = read_lines(&text[..], LineRange { bytes_max: 4, ..ALL }).unwrap();
        assert_eq!((texts(&read), read.total_lines), (vec!["one"], 4));
        assert!(!read.has_nul && read_lines(&b"a\0"[..], ALL).unwrap().has_nul);
        assert_eq!(read_lines(&b""[..], ALL).unwrap(), LinesRead::default());
    }

    #[test]
    fn any_place_of_a_text_of_many_megabytes_is_reached() {
        let text: String = (1..=500_000).map(|nth| format!("line {nth}\n")).collect();
        for first in [1, 9_000, 499_999] {
            let wanted = LineRange { first, lines_max: 2, ..ALL };
            let read = read_lines(text.as_bytes(), wanted).unwrap();
            let expected = [first, first + 1].map(|nth| format!("line {nth}"));
            assert_eq!(texts(&read), expected);
            assert_eq!(read.total_lines, 500_000);
        }
    }

    proptest! {
        #[test]
        fn pages_are_the_text(text in "[ab\n]{0,200}", size in 1usize..9, chunk in 1usize..40) {
            // For every division into blocks.
            struct Slow<'a>(&'a [u8], usize);
            impl Read for Slow<'_> {
                fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                    let count = self.1.min(self.0.len()).min(buffer.len());
                    buffer[..count].copy_from_slice(&self.0[..count]);
                    self.0 = &self.0[count..];
                    Ok(count)
                }
            }
            let lines: Vec<&str> = text.lines().collect();
            let mut pages = Vec::new();
            for first in (1..=lines.len().max(1)).step_by(size) {
                let wanted = LineRange { first: first as u64, lines_max: size, ..ALL };
                let read = read_lines(Slow(text.as_bytes(), chunk), wanted).unwrap();
                prop_assert_eq!(read.total_lines, lines.len() as u64);
                pages.extend(texts(&read).into_iter().map(str::to_owned));
            }
            prop_assert_eq!(pages, lines);
        }
    }
}
