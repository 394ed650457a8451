//! Pure: finds forms that only a program around a model may write.
//!
//! These are control tokens of chat templates, prompt tags, tool calls, and imitations of our
//! marks. [`find`] sees them in a normalised text, in whatever letters they are written, and
//! gives the replacement of each. Replacements are evidence too: a cleaned text shows what was
//! removed. It must look at each byte only a bounded number of times.

use automaton_core::trust::Label;

use super::GuardCheck;
use super::fold::{HIDDEN_TOKEN, NormalizedText};

/// The most bytes of a tag, a bracket or a line.
const TAG_BYTES_MAX: usize = 200;
const BRACKET_BYTES_MAX: usize = 72;
const LINE_BYTES_MAX: usize = 96;
/// The most bytes in which the keys of a call must appear.
const CALL_BYTES_MAX: usize = 256;
/// The most words of a role line that is not a conversation turn.
const TURN_WORDS_MIN: usize = 2;

/// The action for a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkerAction {
    /// Leave it. It is plain text for every model, or was made so.
    Leave,
    /// Insert a blank after its first character, which makes it plain text.
    Loosen,
    /// Replace it by this text.
    Replace(&'static str),
}

/// A marker in a normalised text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marker {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The check that it counts for, or `None` if honest pages contain it too.
    pub(super) check: Option<GuardCheck>,
    pub(super) remedy: MarkerAction,
}

const CHATML: &str = "[chatml-removed]";
const SYSTEM: &str = "[system-tag-removed]";
const PROMPT: &str = "[prompt-tag-removed]";
const TEMPLATE: &str = "[template-tag-removed]";
const INST: &str = "[inst-tag-removed]";
const SYS: &str = "[sys-tag-removed]";
const FRAME: &str = "[frame-mark-removed]";
const CALL: &str = "[tool-call-removed]";

/// The replacements, each with the check that it counts for.
const TOKENS: [(&str, GuardCheck); 9] = [
    (CHATML, GuardCheck::ChatmlMarkers),
    (SYSTEM, GuardCheck::BoundaryManipulation),
    (PROMPT, GuardCheck::BoundaryManipulation),
    (TEMPLATE, GuardCheck::BoundaryManipulation),
    (INST, GuardCheck::BoundaryManipulation),
    (SYS, GuardCheck::BoundaryManipulation),
    (FRAME, GuardCheck::BoundaryManipulation),
    (CALL, GuardCheck::BoundaryManipulation),
    (HIDDEN_TOKEN, GuardCheck::ChatmlMarkers),
];

/// Tags by name, each with its replacement. Tags of honest pages have none and are loosened.
const TAGS: [(&str, Option<&str>); 22] = [
    ("system", Some(SYSTEM)),
    ("prompt", Some(PROMPT)),
    ("system_prompt", Some(PROMPT)),
    ("instructions", Some(PROMPT)),
    ("instruction", Some(PROMPT)),
    ("assistant", Some(TEMPLATE)),
    ("human", Some(TEMPLATE)),
    ("untrusted", Some(TEMPLATE)),
    ("tool_call", Some(TEMPLATE)),
    ("tool_calls", Some(TEMPLATE)),
    ("tool_response", Some(TEMPLATE)),
    ("function_call", Some(TEMPLATE)),
    ("function_calls", Some(TEMPLATE)),
    ("start_of_turn", Some(TEMPLATE)),
    ("end_of_turn", Some(TEMPLATE)),
    ("function", None),
    ("think", None),
    ("s", None),
    ("bos", None),
    ("eos", None),
    ("pad", None),
    ("unk", None),
];

/// The words that rules around sections of a prompt name.
const SECTIONS: [&str; 9] = [
    "prompt",
    "system",
    "skills",
    "instructions",
    "untrusted",
    "genesis",
    "soul",
    "worklog",
    "context",
];

/// Returns the markers of a text, sorted and without overlaps. `calls` is the action for objects
/// with the form of a tool call.
pub(super) fn find(
    folded: &NormalizedText<'_>,
    original: &str,
    calls: MarkerAction,
) -> Vec<Marker> {
    let bytes = folded.bytes();
    let mut found: Vec<Marker> = Vec::new();
    for at in memchr::memchr3_iter(b'<', b'[', b'{', bytes) {
        let marker = match bytes[at] {
            b'<' => match_tag(bytes, at),
            b'[' => match_bracket(bytes, at, !original[folded.origin(at)..].starts_with('[')),
            _ => match_call(bytes, at, calls),
        };
        found.extend(marker);
    }
    find_lines(bytes, &mut found);
    found.sort_by_key(|marker| (marker.start, std::cmp::Reverse(marker.end)));
    let mut free_from = 0;
    found.retain(|marker| {
        let is_free = marker.start >= free_from;
        free_from = if is_free { marker.end } else { free_from };
        is_free
    });
    found
}

/// Removes the markers from a text. Returns `None` if nothing has to change.
pub(super) fn clean(text: &str, folded: &NormalizedText<'_>, markers: &[Marker]) -> Option<String> {
    if markers.iter().all(|marker| marker.remedy == MarkerAction::Leave) {
        return None;
    }
    let mut cleaned = String::with_capacity(text.len() + 64);
    let mut copied = 0;
    for marker in markers {
        let start = folded.origin(marker.start);
        let end = folded.origin(marker.end);
        cleaned.push_str(text.get(copied..start).unwrap_or(""));
        match marker.remedy {
            MarkerAction::Leave => cleaned.push_str(text.get(start..end).unwrap_or("")),
            MarkerAction::Loosen => {
                let first = text[start..].chars().next().map_or(0, char::len_utf8);
                cleaned.push_str(text.get(start..start + first).unwrap_or(""));
                cleaned.push(' ');
                cleaned.push_str(text.get(start + first..end).unwrap_or(""));
            }
            MarkerAction::Replace(token) => cleaned.push_str(token),
        }
        copied = end.max(copied);
    }
    cleaned.push_str(text.get(copied..).unwrap_or(""));
    Some(cleaned)
}

fn marker(start: usize, end: usize, check: GuardCheck, remedy: MarkerAction) -> Marker {
    Marker { start, end, check: Some(check), remedy }
}

/// Matches a tag, or a token between bars.
fn match_tag(bytes: &[u8], start: usize) -> Option<Marker> {
    let window = &bytes[start..bytes.len().min(start + TAG_BYTES_MAX)];
    let skip = |from: usize, also: u8| {
        let rest = window.get(from..).unwrap_or_default();
        from + rest.iter().take(4).take_while(|b| **b == b' ' || **b == also).count()
    };
    let bar = skip(1, b' ');
    if window.get(bar) == Some(&b'|') {
        let name = window[bar + 1..].iter().take(40);
        let name = name.take_while(|b| b.is_ascii_alphanumeric() || b" _-=./".contains(b)).count();
        let close = skip(bar + 1 + name + 1, b' ');
        if name > 0 && window.get(bar + 1 + name) == Some(&b'|') && window.get(close) == Some(&b'>')
        {
            let end = start + close + 1;
            return Some(marker(
                start,
                end,
                GuardCheck::ChatmlMarkers,
                MarkerAction::Replace(CHATML),
            ));
        }
        let loose = Marker { start, end: start + 2, check: None, remedy: MarkerAction::Loosen };
        return (bar == 1).then_some(loose);
    }
    let name_at = skip(1, b'/');
    let rest = &window[name_at.min(window.len())..];
    if rest.first() == Some(&b'<') {
        let name = skip(name_at + 1, b'/');
        let is_sys =
            window.get(name..name + 3).is_some_and(|name| name.eq_ignore_ascii_case(b"sys"));
        let close = window.get(name + 3..)?.iter().take(4).take_while(|b| **b == b' ').count();
        let closes = window.get(name + 3 + close..)?.starts_with(b">>");
        let end = start + name + 3 + close + 2;
        let found =
            marker(start, end, GuardCheck::BoundaryManipulation, MarkerAction::Replace(SYS));
        return (is_sys && closes).then_some(found);
    }
    let length =
        rest.iter().take_while(|b| b.is_ascii_alphanumeric() || b"_-.:".contains(b)).count();
    let name = std::str::from_utf8(&rest[..length]).ok()?.to_ascii_lowercase();
    let (_, token) = TAGS.into_iter().find(|(tag, _)| *tag == name)?;
    let Some(token) = token else {
        let loose = Marker { start, end: start + 1, check: None, remedy: MarkerAction::Loosen };
        return (name_at == 1 || window.get(1) == Some(&b'/')).then_some(loose);
    };
    let close = rest.iter().position(|b| matches!(b, b'>' | b'<')).filter(|at| rest[*at] == b'>');
    let end = start + name_at + close.map_or(length, |at| at + 1);
    Some(marker(start, end, GuardCheck::BoundaryManipulation, MarkerAction::Replace(token)))
}

/// Matches a form in brackets. `disguised` is true if the bracket is not ASCII.
fn match_bracket(bytes: &[u8], start: usize, disguised: bool) -> Option<Marker> {
    let window = &bytes[start..bytes.len().min(start + BRACKET_BYTES_MAX)];
    let close = window.iter().position(|b| *b == b']');
    let inner = &window[1..close.unwrap_or(window.len())];
    let raw = std::str::from_utf8(inner).unwrap_or("").trim();
    let text = raw.to_ascii_lowercase();
    let end = start + close.map_or(window.len(), |at| at + 1);
    let boundary = |remedy| Some(marker(start, end, GuardCheck::BoundaryManipulation, remedy));
    if close.is_some() {
        if let Some((_, check)) = TOKENS.iter().find(|(token, _)| token[1..token.len() - 1] == text)
        {
            return Some(marker(start, end, *check, MarkerAction::Leave));
        }
        if matches!(text.trim_start_matches('/').trim(), "inst") {
            return boundary(MarkerAction::Replace(INST));
        }
        let loud = disguised || raw.bytes().any(|b| b.is_ascii_uppercase());
        if loud
            && matches!(
                text.trim_start_matches('/').trim(),
                "system" | "system message" | "system prompt"
            )
        {
            return boundary(MarkerAction::Leave);
        }
    }
    let starts_line = start == 0 || bytes[start - 1] == b'\n';
    let names_other = text.starts_with("message from ") || text.starts_with("end skill");
    let words: Vec<&str> = text.split_ascii_whitespace().take(3).collect();
    let nonce = |word: Option<&&str>| {
        word.is_some_and(|word| {
            (8..=16).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_alphanumeric())
        })
    };
    let is_frame = match words.first() {
        Some(&"data") => {
            nonce(words.get(1)) && words.get(2).is_some_and(|label| Label::by_name(label).is_some())
        }
        Some(&"/data") => true,
        _ => false,
    };
    if is_frame || (starts_line && names_other) {
        let short = if close.is_some() { end } else { start + 1 + 5 };
        return Some(marker(
            start,
            short,
            GuardCheck::BoundaryManipulation,
            MarkerAction::Replace(FRAME),
        ));
    }
    None
}

/// Matches an object with the keys of a tool call, in any order and quotes.
fn match_call(bytes: &[u8], start: usize, remedy: MarkerAction) -> Option<Marker> {
    let window = &bytes[start..bytes.len().min(start + CALL_BYTES_MAX)];
    let mut depth = 0_u32;
    let mut at = 0;
    let mut end = None;
    let mut named = false;
    let mut argued = false;
    while let Some(&b) = window.get(at) {
        match b {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' | b'\'' | b'a'..=b'z' if depth == 1 => {
                let word = window[at..]
                    .iter()
                    .take_while(|b| !b",:{}[]".contains(b) && **b != b'\n')
                    .count();
                let key = std::str::from_utf8(&window[at..at + word]).unwrap_or("");
                let key = key.trim_matches(|c| c == '"' || c == '\'' || c == ' ');
                let is_key = window.get(at + word) == Some(&b':');
                named |= is_key && key == "name";
                argued |= is_key && key == "arguments";
                at += word.max(1);
                continue;
            }
            _ => {}
        }
        at += 1;
        if depth == 0 {
            end = Some(at);
            break;
        }
        if depth > 4 {
            break;
        }
    }
    let whole = start + end.unwrap_or(1);
    (named && argued).then(|| marker(start, whole, GuardCheck::BoundaryManipulation, remedy))
}

/// Finds lines that imitate a program: role headings, rules around sections, fences, and
/// conversation turns.
fn find_lines(bytes: &[u8], found: &mut Vec<Marker>) {
    let mut start = 0;
    let mut turns = (false, false);
    let mut first_turn = None;
    let mut is_first = true;
    while start < bytes.len() {
        let end =
            memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |length| start + length);
        let line = &bytes[start..end.min(start + LINE_BYTES_MAX)];
        let at = start + line.iter().take_while(|b| **b == b' ').count();
        let line = &bytes[at.min(end)..end.min(at + LINE_BYTES_MAX)];
        let stop = at + line.len();
        let leave = marker(at, stop, GuardCheck::BoundaryManipulation, MarkerAction::Leave);
        match line.first() {
            Some(b'#' | b'-' | b'=' | b'*') => found.extend(match_rule_line(line, at, stop)),
            Some(b'`') if begins(line, b"```system") => found.push(leave),
            Some(b'{' | b'r' | b'"') if is_first && claims_role(line) => found.push(leave),
            Some(b'h' | b'H' | b'u' | b'U' | b'a' | b'A') => {
                let words =
                    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count();
                let talks = words > TURN_WORDS_MIN || line.ends_with(b":");
                turns.0 |= talks && (begins(line, b"human:") || begins(line, b"user:"));
                turns.1 |= talks && begins(line, b"assistant:");
                if turns.0 && turns.1 && first_turn.is_none() {
                    first_turn = Some(leave);
                }
            }
            _ => {}
        }
        is_first &= line.is_empty() || line == b"---";
        start = end + 1;
    }
    found.extend(first_turn);
}

fn begins(line: &[u8], with: &[u8]) -> bool {
    line.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
}

fn claims_role(line: &[u8]) -> bool {
    let kept = line.iter().filter(|b| !b" \"'{".contains(b)).take(11);
    begins(&kept.copied().collect::<Vec<u8>>(), b"role:system")
}

/// Matches a line that begins like a heading or a rule.
fn match_rule_line(line: &[u8], at: usize, stop: usize) -> Option<Marker> {
    let sign = line[0];
    let signs = line.iter().take_while(|b| **b == sign).count();
    let text = std::str::from_utf8(&line[signs..]).unwrap_or("").to_ascii_lowercase();
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == char::from(sign) || c == ':');
    let is_role = matches!(text, "system" | "assistant" | "system prompt" | "system message");
    let first = text.split(' ').next().unwrap_or("");
    let names = text.split(' ').any(|word| SECTIONS.contains(&word));
    let ends = matches!(first, "end" | "begin") && names && text.len() < 60;
    let is_rule = sign == b'#' || signs >= 3;
    if is_rule && ends {
        return Some(marker(
            at,
            stop,
            GuardCheck::BoundaryManipulation,
            MarkerAction::Replace(FRAME),
        ));
    }
    (is_rule && is_role)
        .then(|| marker(at, stop, GuardCheck::BoundaryManipulation, MarkerAction::Leave))
}
