//! Pure: one line about a recorded call, for turns that the prompt does not show any more.
//!
//! Arguments are read leniently: the record also keeps calls that never fitted their schema.

use automaton_core::record::CallRecord;
use serde_json::Value;

/// The kind of a call, as the digest of the history groups it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// A file was written.
    Wrote,
    /// A file or a folder was read.
    Read,
    /// A command ran.
    Ran,
    /// A fact was stored.
    Stored,
    /// A message was sent.
    Sent,
    /// Anything else.
    Called,
}

/// One line about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallDigest {
    /// The group that the line belongs to.
    pub kind: CallKind,
    /// The file, command, fact or message that the call was about.
    pub subject: String,
    /// The end of a call that was done, where there is more to say; else empty.
    pub end: String,
    /// True if a call that was done did not do what it was made for, such as a command that failed.
    pub failed: bool,
}

impl CallDigest {
    /// Returns the line of a call that ended as its status says.
    #[must_use]
    pub fn new(kind: CallKind, subject: impl Into<String>) -> Self {
        Self { kind, subject: subject.into(), end: String::new(), failed: false }
    }

    /// Returns the line of a call about which nothing is known but its tool and its arguments.
    #[must_use]
    pub fn call(call: &CallRecord) -> Self {
        Self::new(CallKind::Called, format!("{} {}", call.tool, call.arguments))
    }
}

/// Returns a text argument of a recorded call, or nothing where there is none.
pub(crate) fn argument(call: &CallRecord, name: &str) -> Option<String> {
    // silent-ok: arguments of another form belong to a call that never ran.
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    arguments.get(name)?.as_str().map(str::to_owned)
}

/// Returns the path that a recorded call names, or the workspace where it names none.
pub(crate) fn path(call: &CallRecord) -> String {
    argument(call, "path").unwrap_or_else(|| ".".to_owned())
}

/// Returns the line of a call that wrote a file.
pub(crate) fn written_file(call: &CallRecord) -> Option<CallDigest> {
    Some(CallDigest::new(CallKind::Wrote, path(call)))
}

/// Returns the line of a call that read a file or a folder.
pub(crate) fn read_path(call: &CallRecord) -> Option<CallDigest> {
    Some(CallDigest::new(CallKind::Read, path(call)))
}
