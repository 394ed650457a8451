//! Pure: the beginning and the end of a text, by whole lines, and what lies between them.
//!
//! A line that alone is too long is cut by characters. Must never cut a notice, and never
//! leave out anything without saying how much of what.

use automaton_memory::tokens::estimate;

/// Tokens that the notice about a gap may cost, and one that names no lines.
const GAP_TOKENS: u32 = 40;
const SHORT_GAP_TOKENS: u32 = 20;
/// Notices that close a result, at most, and their longest in bytes: whoever writes lines in
/// brackets gets no more room by it.
const CLOSING_MAX: usize = 8;
/// Tokens that they may have however little room there is: more than the runtime's own take.
const CLOSING_TOKENS: u32 = 160;
const NOTICE_BYTES_MAX: usize = 1_000;
/// Words of the notice about a gap after the number of lines.
const GAP: &str = " lines left out here";

/// Share of the room for the beginning of a text, in percent; its end gets the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeadShare(u32);

impl HeadShare {
    /// Share for the output of a command, whose end matters most.
    pub(crate) const COMMAND: Self = Self(20);
    /// Share for a text that is read from its beginning.
    pub(crate) const HEAD: Self = Self(100);
    const HALF: Self = Self(50);
}

/// A text cut to size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Excerpt<'a> {
    text: &'a str,
    /// End of the first part, and beginning of the last; equal if nothing is left out.
    cut: (usize, usize),
}

impl<'a> Excerpt<'a> {
    /// As much of a text as fits into so many tokens, with the notice about the gap.
    pub(crate) fn new(text: &'a str, tokens: u32, share: HeadShare) -> Self {
        Self::beside(text, tokens, GAP_TOKENS, share)
    }

    /// The same, with a notice that costs at most so many tokens.
    fn beside(text: &'a str, tokens: u32, notice: u32, share: HeadShare) -> Self {
        let whole = Self { text, cut: (text.len(), text.len()) };
        if estimate(text) <= tokens {
            return whole;
        }
        let room = tokens.saturating_sub(notice);
        let head_room = u64::from(room) * u64::from(share.0) / 100;
        let head = head_len(text, u32::try_from(head_room).unwrap_or(room));
        let rest = &text[head..];
        let tail_room = match share {
            HeadShare::HEAD => 0,
            _ => room.saturating_sub(estimate(&text[..head])),
        };
        let tail = tail_len(rest, tail_room);
        if tail >= rest.len() { whole } else { Self { text, cut: (head, text.len() - tail) } }
    }

    /// Returns true if it is the whole text.
    pub(crate) const fn is_whole(&self) -> bool {
        self.cut.0 == self.cut.1
    }

    /// The line in which the gap begins, from 1.
    pub(crate) fn gap_line(&self) -> usize {
        newlines(&self.text[..self.cut.0]) + 1
    }

    /// The text with its gap named, in lines of a file in which so many stand before it.
    pub(crate) fn render(&self, lines_before: usize) -> String {
        if self.is_whole() {
            return self.text.to_owned();
        }
        let (from, to) = self.cut;
        let first = self.gap_line() + lines_before;
        let bytes = to - from;
        let last = lines_before + lines(&self.text[..to]);
        let gap = if self.is_between_lines() {
            let count = lines(&self.text[from..to]);
            format!("[{count}{GAP}: lines {first} to {last}, {bytes} bytes]")
        } else {
            format!("[{bytes} bytes left out here, from within line {first} to line {last}]")
        };
        self.around(&gap)
    }

    fn is_between_lines(&self) -> bool {
        let ends_line = |at: usize| at == 0 || self.text[..at].ends_with('\n');
        ends_line(self.cut.0) && (ends_line(self.cut.1) || self.cut.1 == self.text.len())
    }

    /// Beginning, gap and end.
    fn around(&self, gap: &str) -> String {
        let head = &self.text[..self.cut.0];
        let tail = &self.text[self.cut.1..];
        let open = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
        let close = if tail.is_empty() { "" } else { "\n" };
        format!("{head}{open}{gap}{close}{tail}")
    }
}

/// A result cut to so many tokens: as many of its first and last lines as fit, a notice of how
/// many are left out between them, and the notices that close it, whole. Where these alone
/// have no room it is them that are shown.
#[must_use]
pub fn shorten(text: &str, tokens: u32) -> String {
    if estimate(text) <= tokens {
        return text.to_owned();
    }
    let (body, closing) = closing(text, (tokens / 2).max(CLOSING_TOKENS));
    let left = tokens.saturating_sub(estimate(closing));
    let excerpt = Excerpt::beside(body, left, SHORT_GAP_TOKENS, HeadShare::HALF);
    if excerpt.is_whole() {
        return text.to_owned();
    }
    let gone = &body[excerpt.cut.0..excerpt.cut.1];
    // What was left out of what is now left out itself.
    let earlier = gone.lines().filter_map(told_gap).fold(0, u64::saturating_add);
    let gaps = gone.lines().filter(|line| told_gap(line).is_some()).count();
    let gap = if excerpt.is_between_lines() {
        let count = (lines(gone) - gaps) as u64;
        format!("[{}{GAP}]", count.saturating_add(earlier))
    } else {
        format!("[{} bytes left out here]", gone.len())
    };
    let short = excerpt.around(&gap);
    let open = if closing.is_empty() || short.ends_with('\n') { "" } else { "\n" };
    format!("{short}{open}{closing}")
}

/// A text, and the notices that close it, as far as they cost no more than so many tokens.
fn closing(text: &str, tokens: u32) -> (&str, &str) {
    let mut at = text.trim_end_matches('\n').len();
    let mut rest = &text[..at];
    for _ in 0..CLOSING_MAX {
        let line = rest.rsplit('\n').next().unwrap_or(rest);
        let from = rest.len() - line.len();
        if !is_notice(line) || estimate(&text[from..]) > tokens {
            break;
        }
        at = from;
        rest = rest[..at].strip_suffix('\n').unwrap_or(&rest[..at]);
    }
    text.split_at(at)
}

fn is_notice(line: &str) -> bool {
    line.starts_with('[') && line.ends_with(']') && line.len() <= NOTICE_BYTES_MAX
}

/// Returns the number of lines in a notice about a gap.
fn told_gap(line: &str) -> Option<u64> {
    let (count, rest) = line.strip_prefix('[')?.split_once(GAP)?;
    // silent-ok: a line that only looks like one.
    let count: u32 = count.parse().ok()?;
    (is_notice(line) && rest.starts_with([':', ']'])).then_some(count.into())
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

/// Lines of a text, the last of which may have no end.
fn lines(text: &str) -> usize {
    newlines(text) + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// Returns the bytes of a text that fit from its beginning: whole lines, and a part of a line
/// that alone would take most of the room.
fn head_len(text: &str, tokens: u32) -> usize {
    let mut left = tokens;
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        let cost = estimate(line);
        if cost > left {
            let part = if left > tokens / 2 { part(line, left, false) } else { 0 };
            return end + part;
        }
        left -= cost;
        end += line.len();
    }
    end
}

/// The same from its end.
fn tail_len(text: &str, tokens: u32) -> usize {
    let mut left = tokens;
    let mut length = 0;
    for line in text.split_inclusive('\n').rev() {
        let cost = estimate(line);
        if cost > left {
            let part = if left > tokens / 2 { part(line, left, true) } else { 0 };
            return length + part;
        }
        left -= cost;
        length += line.len();
    }
    length
}

/// Bytes of a long line, from its end or its beginning, that fit; none of a notice.
fn part(line: &str, tokens: u32, from_end: bool) -> usize {
    if is_notice(line.trim_end_matches('\n')) {
        return 0;
    }
    // No text costs less than a quarter of its characters.
    let most = (tokens as usize).saturating_mul(4);
    let lengths: Vec<usize> = match from_end {
        false => line.char_indices().map(|(at, c)| at + c.len_utf8()).take(most).collect(),
        true => line.char_indices().rev().map(|(at, _)| line.len() - at).take(most).collect(),
    };
    let piece = |length: usize| match from_end {
        false => &line[..length],
        true => &line[line.len() - length..],
    };
    let fitting = lengths.partition_point(|length| estimate(piece(*length)) <= tokens);
    fitting.checked_sub(1).map_or(0, |last| lengths[last])
}

#[cfg(test)]
mod tests;
