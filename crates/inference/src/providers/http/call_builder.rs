//! Pure: one call out of its pieces.
//!
//! A server may send `{}` before the arguments, all of the arguments once more, or with each piece all that came
//! so far. Where that can mean one thing only, it is one object. Two objects that differ stay two, and are for the
//! checker to refuse. Must never leave out a part of an object.

use automaton_core::wire::chat::ChunkCall;
use serde_json::{Deserializer, Value};

use super::json_scan::{JsonScan, ScanState};
use crate::lenient;
use crate::provider::RawCall;

/// A call that is being written.
#[derive(Debug)]
pub(super) struct CallBuilder {
    pub(super) index: u32,
    pub(super) id: Option<String>,
    pub(super) name: String,
    arguments: ArgumentPieces,
}

impl CallBuilder {
    pub(super) fn new(piece: ChunkCall) -> Self {
        let mut arguments = ArgumentPieces::default();
        arguments.push(&piece.function.arguments.unwrap_or_default());
        let name = piece.function.name.unwrap_or_default();
        Self { index: piece.index, id: piece.id, name, arguments }
    }

    /// Adds a piece that belongs to this call.
    pub(super) fn add(&mut self, piece: ChunkCall) {
        let name = piece.function.name.unwrap_or_default();
        // Some servers repeat the name with each piece.
        if self.name != name {
            self.name.push_str(&name);
        }
        self.arguments.push(&piece.function.arguments.unwrap_or_default());
        self.id = self.id.take().or(piece.id);
    }

    /// Returns true if a piece with the index of this call belongs to another call, because some
    /// servers give every call the index 0. Only a piece with a name can begin a call.
    pub(super) fn is_other_than(&self, piece: &ChunkCall) -> bool {
        let name = piece.function.name.as_deref().unwrap_or_default();
        let arguments = piece.function.arguments.as_deref().unwrap_or_default();
        if name.is_empty() {
            return false;
        }
        let is_complete = self.arguments.is_complete();
        match (self.id.as_deref(), piece.id.as_deref()) {
            (Some(known), Some(id)) if known == id => {
                let is_same =
                    name == self.name && is_same_json(self.arguments.settled(), arguments);
                is_complete && is_object(arguments) && !is_same
            }
            // Between the pieces of its arguments no other call of the same tool begins.
            (Some(_), Some(_)) => {
                is_complete || self.arguments.text.is_empty() || name != self.name
            }
            // A server that named the call may name it again at its end.
            (Some(_), None) if name == self.name && arguments.trim().is_empty() => false,
            _ => is_complete,
        }
    }

    /// The arguments that will not change any more.
    pub(super) fn settled_arguments(&self) -> &str {
        self.arguments.settled()
    }

    /// The call. One without arguments has an empty object, unless it may have been cut off.
    pub(super) fn call(&self, is_cut: bool) -> RawCall {
        let arguments = self.arguments.finish();
        let has_none = matches!(arguments.trim(), "" | "null" | "\"\"");
        let arguments = match lenient::arguments_to_json(&arguments) {
            Some(json) => json,
            None if has_none && !is_cut => "{}".to_owned(),
            None => arguments,
        };
        RawCall { provider_id: self.id.clone(), tool: self.name.clone(), arguments }
    }
}

/// Arguments that come in pieces.
#[derive(Debug, Default)]
struct ArgumentPieces {
    /// The first object, as far as it came, or all that came where it is no object.
    text: String,
    /// Position of that object; nothing before it begins.
    scan: Option<JsonScan>,
    is_closed: bool,
    /// All that came after the object.
    after: String,
    /// The last piece, as long as each one begins with all of the one before.
    snapshot: SnapshotState,
}

#[derive(Debug, Default)]
enum SnapshotState {
    #[default]
    None,
    Last(String),
    Broken,
}

impl ArgumentPieces {
    fn push(&mut self, piece: &str) {
        self.note_snapshot(piece);
        for it in piece.chars() {
            self.push_char(it);
        }
    }

    fn push_char(&mut self, it: char) {
        if self.is_closed {
            // An empty object before another one says nothing.
            if it != '{' || !self.is_empty_object() || !self.after.trim().is_empty() {
                self.after.push(it);
                return;
            }
            *self = Self { snapshot: std::mem::take(&mut self.snapshot), ..Self::default() };
        }
        if self.scan.is_none() && it == '{' && self.text.trim().is_empty() {
            self.scan = Some(JsonScan::default());
        }
        self.text.push(it);
        let Some(scan) = &mut self.scan else { return };
        // A scan looks at single bytes alone, and no other character has such a byte.
        let mut bytes = [0; 4];
        for byte in it.encode_utf8(&mut bytes).bytes() {
            self.is_closed |= scan.feed(byte) == ScanState::Closed;
        }
    }

    fn note_snapshot(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        self.snapshot = match std::mem::take(&mut self.snapshot) {
            SnapshotState::None => SnapshotState::Last(piece.to_owned()),
            SnapshotState::Last(last) if piece.starts_with(&last) => {
                SnapshotState::Last(piece.to_owned())
            }
            SnapshotState::Last(_) | SnapshotState::Broken => SnapshotState::Broken,
        };
    }

    fn is_empty_object(&self) -> bool {
        self.text.chars().filter(|it| !it.is_whitespace()).eq("{}".chars())
    }

    fn is_complete(&self) -> bool {
        self.is_closed
    }

    /// Returns the text that will not change any more. An empty object may still change.
    fn settled(&self) -> &str {
        let said = self.text.trim();
        let may_change = "{}".starts_with(said) || self.is_empty_object();
        if may_change { "" } else { &self.text }
    }

    /// All of them as one text.
    fn finish(&self) -> String {
        let is_alone = self.after.trim().is_empty();
        if self.is_closed && (is_alone || repeats(&self.text, &self.after)) {
            return self.text.clone();
        }
        match &self.snapshot {
            SnapshotState::Last(last) if is_object(last) => last.clone(),
            _ => format!("{}{}", self.text, self.after),
        }
    }
}

/// Returns true if a text is a complete object.
fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && lenient::read_arguments(text).is_ok()
}

fn is_same_json(one: &str, other: &str) -> bool {
    match (lenient::read_arguments(one), lenient::read_arguments(other)) {
        (Ok(Ok(one)), Ok(Ok(other))) => one == other,
        _ => false,
    }
}

/// Returns true if a text is the same object, once or several times.
fn repeats(object: &str, text: &str) -> bool {
    if is_same_json(object, text) {
        return true;
    }
    // silent-ok: what is no JSON repeats nothing.
    let Ok(wanted) = serde_json::from_str::<Value>(object) else { return false };
    let mut values = Deserializer::from_str(text).into_iter::<Value>();
    values.all(|value| value.is_ok_and(|value| value == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn finish(pieces: &[&str]) -> String {
        let mut arguments = ArgumentPieces::default();
        pieces.iter().for_each(|piece| arguments.push(piece));
        arguments.finish()
    }

    #[test]
    fn arguments_that_are_sent_twice_are_one_object() {
        let whole = r#"{"path":"a","text":"{}"}"#;
        let (half, rest) = whole.split_at(9);
        for pieces in [
            vec![whole],
            vec!["{}", whole],
            vec!["", " {} \n", half, rest],
            vec!["{", "}", half, rest],
            vec![whole, whole],
            vec![half, rest, whole],
            vec![half, rest, whole, "\n", whole],
            vec!["{}", whole, whole],
            vec![whole, r#" { "text" : "{}", "path" : "a" }"#],
            vec![r#"{"pa"#, r#"{"path":"a","te"#, whole],
            vec!["{", "{\"path\":\"a\"", whole],
        ] {
            let read = finish(&pieces);
            assert!(is_same_json(&read, whole), "{pieces:?}: {read}");
        }
        assert_eq!(finish(&["{}", "{}"]), "{}");
    }

    #[test]
    fn two_objects_that_differ_are_no_call() {
        for pieces in [
            vec![r#"{"a":1}"#, r#"{"a":2}"#],
            vec![r#"{"a":1}"#, r#"{"a":1}"#, r#"{"a":2}"#],
            vec![r#"{"a":1}"#, "{}"],
            vec![r#"{"a":1}"#, r#"{"a""#],
            vec![r#"{"a":1}"#, "</tool_call>"],
            vec!["{}", "x"],
        ] {
            let read = finish(&pieces);
            assert!(!is_object(&read), "{pieces:?}: {read}");
            assert_eq!(read, pieces.concat(), "nothing of it is left out");
        }
    }

    #[test]
    fn what_is_settled_never_changes() {
        let whole = r#"{"path":"a"}"#;
        for pieces in [vec!["{}", whole], vec!["{", "}", whole], vec![whole, whole], vec!["{}"]] {
            let mut arguments = ArgumentPieces::default();
            let mut settled = String::new();
            for piece in pieces {
                arguments.push(piece);
                assert!(arguments.settled().starts_with(&settled), "{settled}");
                arguments.settled().clone_into(&mut settled);
            }
            assert!(arguments.finish().starts_with(&settled), "{settled}");
        }
    }

    proptest! {
        #[test]
        fn arguments_are_the_same_however_they_are_cut(
            text in "[a-z{}\"\\\\ é]{0,12}", empty in any::<bool>(), again in any::<bool>(),
            sizes in proptest::collection::vec(1_usize..9, 1..9),
        ) {
            let whole = serde_json::json!({ "a": text, "b": {"c": [1]} }).to_string();
            let told = format!("{}{whole}{}", if empty { "{}" } else { "" }, if again { &whole } else { "" });
            let all: Vec<char> = told.chars().collect();
            let mut arguments = ArgumentPieces::default();
            let mut rest = &all[..];
            for size in sizes.iter().cycle() {
                let (piece, after) = rest.split_at((*size).min(rest.len()));
                arguments.push(&piece.iter().collect::<String>());
                rest = after;
                if rest.is_empty() { break }
            }
            prop_assert_eq!(arguments.finish(), whole);
        }
    }
}
