//! Pure: the values that an effect is aimed at, and who has named them.
//!
//! What a turn answers says what it may do at all; this says whom the automaton has an
//! address, a URL, a command or a path from. A value that only strangers have named is
//! theirs, in whose words ever it is used. Must never take a value for the creator's that
//! the creator has not written.

use std::collections::BTreeMap;

use crate::names::Names;
use crate::trust::Label;

/// The shortest command that is anybody's: shorter ones everybody writes.
const COMMAND_BYTES_MIN: usize = 12;
/// The shortest path that is anybody's.
const PATH_BYTES_MIN: usize = 6;
/// Longest value that is looked for, in bytes; of a longer one its beginning is.
const VALUE_BYTES_MAX: usize = 300;

/// Kind of a value. Its [`name`](Self::name) is its name in a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Names)]
pub enum ValueKind {
    /// Whom money or a message goes to.
    Recipient,
    /// Address of a request.
    #[names(rename = "URL")]
    Url,
    /// Command.
    Command,
    /// Which file is written.
    Path,
}

impl ValueKind {
    /// Returns true if a stranger's value stays theirs for as long as the record has it. Other
    /// kinds stay theirs only while the model sees the text, because many texts name the same
    /// commands and files.
    #[must_use]
    pub const fn is_lasting(self) -> bool {
        matches!(self, Self::Recipient | Self::Url)
    }
}

/// One value that an effect is aimed at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetValue {
    /// Kind of the value.
    pub kind: ValueKind,
    /// Form for the search in texts: ASCII letters in lower case, each white space as one blank.
    pub text: String,
}

impl TargetValue {
    fn new(kind: ValueKind, text: &str) -> Self {
        let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        words.make_ascii_lowercase();
        words.truncate(words.floor_char_boundary(VALUE_BYTES_MAX));
        Self { kind, text: words }
    }

    /// Makes the value of a recipient, as the model wrote it.
    #[must_use]
    pub fn recipient(name: &str) -> Self {
        Self::new(ValueKind::Recipient, name)
    }

    /// Makes the value of a URL, without its scheme and last slash: a text that names a place
    /// often leaves them out.
    #[must_use]
    pub fn url(url: &str) -> Self {
        let place = url.split_once("://").map_or(url, |(_, place)| place);
        Self::new(ValueKind::Url, place.trim().trim_end_matches('/'))
    }

    /// Makes the value of a path as others would write it, without the workspace's own name;
    /// nothing, where the path is too short to be anybody's.
    #[must_use]
    pub fn path(path: &str) -> Option<Self> {
        let inside = path.strip_prefix("/root/").or(path.strip_prefix("~/")).unwrap_or(path);
        (inside.len() >= PATH_BYTES_MIN).then(|| Self::new(ValueKind::Path, inside))
    }

    /// Makes the values of a script: its commands as they stand in it, and the URLs and addresses
    /// in them. Quotes and variables do not matter here: what is taken over is taken over as it
    /// is.
    #[must_use]
    pub fn in_script(script: &str) -> Vec<Self> {
        let parts = script.split(['\n', ';', '|', '&', '(', ')', '`']).map(str::trim);
        let commands = parts.filter(|part| part.len() >= COMMAND_BYTES_MIN && part.contains(' '));
        let mut values: Vec<Self> =
            commands.map(|part| Self::new(ValueKind::Command, part)).collect();
        let is_edge = |c: char| c.is_whitespace() || "\"'`<>|;()".contains(c);
        for word in script.split(is_edge) {
            if word.contains("://") {
                values.push(Self::url(word.trim_end_matches(['.', ','])));
            } else if is_address(word) {
                values.push(Self::recipient(word));
            }
        }
        values
    }

    /// Returns true if a text names the value.
    #[must_use]
    pub fn is_in(&self, text: &str) -> bool {
        let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        words.make_ascii_lowercase();
        words.contains(&self.text)
    }
}

fn is_address(word: &str) -> bool {
    let digits = word.strip_prefix("0x").unwrap_or_default();
    digits.len() == 40 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Origin of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueOrigin {
    /// The creator, in a message or in the configuration.
    Creator,
    /// Nobody whose words are on record: the automaton has it from itself.
    Own,
    /// Only others, of whom this is the least trusted.
    Outside(Label),
}

/// Origins of the values of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origins {
    known: BTreeMap<TargetValue, ValueOrigin>,
    otherwise: Option<ValueOrigin>,
}

impl Origins {
    /// Creates the origins from search results.
    #[must_use]
    pub fn found(found: impl IntoIterator<Item = (TargetValue, ValueOrigin)>) -> Self {
        Self { known: found.into_iter().collect(), otherwise: None }
    }

    /// The same for every value, for a case that is thought up.
    #[must_use]
    pub const fn assumed(origin: ValueOrigin) -> Self {
        Self { known: BTreeMap::new(), otherwise: Some(origin) }
    }

    /// Returns the origin of a value; `None` if it was not looked up.
    #[must_use]
    pub fn of(&self, value: &TargetValue) -> Option<ValueOrigin> {
        self.known.get(value).copied().or(self.otherwise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_looked_for_is_not_known() {
        let value = TargetValue::new(ValueKind::Url, "https://a.example");
        assert_eq!(Origins::default().of(&value), None);
        let outside = ValueOrigin::Outside(Label::Web);
        assert_eq!(Origins::assumed(outside).of(&value), Some(outside));
        let found = Origins::found([(value.clone(), ValueOrigin::Creator)]);
        assert_eq!(found.of(&value), Some(ValueOrigin::Creator));
    }
}
