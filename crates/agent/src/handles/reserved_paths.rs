//! Files that the runtime keeps in the workspace: long outputs, and long messages.
//!
//! Commands can only read these folders and no tool writes there, so what a notice names
//! stays as it was. Outputs in others' words only look as if they were there: they stand
//! apart, where no command sees them, since what one reads loses its label. The oldest files
//! go when there are too many, but none that a turn may name which is still shown; none of
//! them may ever be changed.

use std::collections::VecDeque;

use automaton_core::error::ErrorClass;
use automaton_core::id::{CallId, MessageId, TurnId};
use automaton_core::trust::Label;
use automaton_sandbox::{FolderEntry, WorkspacePath};
use automaton_tools::HandleError;

/// The folder of outputs.
pub(super) const LOGS: &str = ".logs";
/// The folder of messages.
pub(super) const MESSAGES: &str = ".messages";
/// The folders that commands can only read.
pub(crate) const SEALED: [&str; 2] = [LOGS, MESSAGES];

/// Files that are kept in one of the folders, and their bytes together. Only files that are
/// still named may be more, and never more bytes. A log has some 5 MB at most.
const FILES_MAX: usize = 2_000;
const BYTES_MAX: u64 = 512 << 20;

/// Returns the path of a call's output; words of others have a folder of their own.
pub(super) fn log_path(call: CallId, label: Label) -> Result<WorkspacePath, HandleError> {
    let name = call.to_string().to_ascii_lowercase();
    let of = if label > Label::Tool { format!("{}/", label.name()) } else { String::new() };
    path(&format!("~/{LOGS}/{of}{name}.log"))
}

/// Returns the label of a path among others' outputs, which are kept apart.
pub(super) fn label_apart(path: &WorkspacePath) -> Option<Label> {
    let names: Vec<&str> = path.names().collect();
    let [LOGS, folder, ..] = names.as_slice() else { return None };
    let mut others = Label::ALL.into_iter().filter(|label| *label > Label::Tool);
    others.find(|label| label.name() == *folder)
}

/// Returns the path of a message.
pub(super) fn message_path(message: MessageId) -> Result<WorkspacePath, HandleError> {
    path(&format!("~/{MESSAGES}/{message}.txt"))
}

/// The message whose file this would be.
pub(super) fn message_of(path: &WorkspacePath) -> Option<MessageId> {
    let names: Vec<&str> = path.names().collect();
    let [MESSAGES, name] = names.as_slice() else { return None };
    // silent-ok: another name is no message.
    name.strip_suffix(".txt")?.parse().ok()
}

fn path(text: &str) -> Result<WorkspacePath, HandleError> {
    WorkspacePath::parse(text).map_err(|error| HandleError::from_error(&error))
}

/// Refuses to let a tool write in these folders.
///
/// # Errors
/// When the path is in one of them.
pub(super) fn check_writable(path: &WorkspacePath) -> Result<(), HandleError> {
    if !path.names().next().is_some_and(|name| SEALED.contains(&name)) {
        return Ok(());
    }
    let message =
        format!("~/{LOGS} and ~/{MESSAGES} are kept for you to read, and nothing changes them");
    let hint = Some("Write a copy elsewhere, such as in notes/.".to_owned());
    Err(HandleError { kind: ErrorClass::User, message, hint })
}

/// The files that are too many, oldest first. None goes that a turn from `shown` on may name;
/// where these alone are too large together, it is the newest of them, of which nobody was
/// told yet.
pub(super) fn surplus(mut entries: Vec<FolderEntry>, shown: Option<TurnId>) -> Vec<WorkspacePath> {
    entries.retain(|entry| entry.kind.is_none());
    // Newest first. Ids sort by their time where the system's does not tell them apart.
    entries.sort_by(|one, other| (other.changed, &other.path).cmp(&(one.changed, &one.path)));
    let is_shown = |entry: &FolderEntry| shown.is_some_and(|turn| is_since(&entry.path, turn));
    let mut bytes = 0_u64;
    let mut count = 0;
    let mut full = false;
    let mut kept = VecDeque::new();
    let mut gone = VecDeque::new();
    for entry in entries {
        full |= count >= FILES_MAX || bytes.saturating_add(entry.bytes) > BYTES_MAX;
        if !full || is_shown(&entry) {
            (bytes, count) = (bytes.saturating_add(entry.bytes), count + 1);
            kept.push_back(entry);
        } else {
            gone.push_front(entry.path);
        }
    }
    while bytes > BYTES_MAX
        && let Some(newest) = kept.pop_front()
    {
        bytes = bytes.saturating_sub(newest.bytes);
        gone.push_back(newest.path);
    }
    gone.into()
}

/// Returns true if a log belongs to a call since a turn began: ids begin with their time.
fn is_since(log: &WorkspacePath, turn: TurnId) -> bool {
    const TIME_CHARS: usize = 10;
    let name = log.names().last().and_then(|name| name.strip_suffix(".log"));
    // silent-ok: another name is no log.
    let Some(Ok(call)) = name.map(|name| name.to_ascii_uppercase().parse::<CallId>()) else {
        return false;
    };
    let call = call.to_string();
    let turn = turn.to_string();
    call.get(..TIME_CHARS) >= turn.get(..TIME_CHARS)
}

/// Returns the error for an output that is not kept.
pub(super) fn too_much() -> HandleError {
    let message = format!(
        "the outputs that your last turns name have all of the {} MB that there are for them",
        BYTES_MAX >> 20
    );
    let hint = Some("send long output to a file of your own, and read parts of it".to_owned());
    HandleError { kind: ErrorClass::User, message, hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, changed: i64, bytes: u64) -> FolderEntry {
        FolderEntry { path: path(name).unwrap(), kind: None, bytes, changed: (changed, 0) }
    }

    #[test]
    fn every_call_has_a_log_of_its_own_and_others_words_a_folder() {
        let id: CallId = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
        let log = |label| log_path(id, label).unwrap().to_string();
        assert_eq!(log(Label::Tool), "/root/.logs/01arz3ndektsv4rrffq69g5fav.log");
        assert_eq!(log(Label::Web), "/root/.logs/web/01arz3ndektsv4rrffq69g5fav.log");
        assert_eq!(log(Label::Peer), "/root/.logs/peer/01arz3ndektsv4rrffq69g5fav.log");
        for label in Label::ALL {
            let apart = label_apart(&log_path(id, label).unwrap());
            assert_eq!(apart, (label > Label::Tool).then_some(label));
        }
        assert_eq!(label_apart(&path("~/.logs/web").unwrap()), Some(Label::Web));
        for other in ["~/.logs", "~/.logs/x", "~/web/x", "~/a/.logs/web/x", "~/.messages/web/x"] {
            assert_eq!(label_apart(&path(other).unwrap()), None, "{other}");
        }
    }

    #[test]
    fn a_message_is_told_by_its_file_s_name() {
        let id: MessageId = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
        assert_eq!(message_of(&message_path(id).unwrap()), Some(id));
        for other in [
            "~/.messages",
            "~/.messages/a.txt",
            "~/01ARZ3NDEKTSV4RRFFQ69G5FAV.txt",
            "~/.messages/a/01ARZ3NDEKTSV4RRFFQ69G5FAV.txt",
            "~/.messages/01ARZ3NDEKTSV4RRFFQ69G5FAV",
        ] {
            assert_eq!(message_of(&path(other).unwrap()), None, "{other}");
        }
    }

    #[test]
    fn no_tool_writes_in_what_is_kept() {
        for text in ["~/.logs/a", ".messages/b/c", "/root/.logs", "a/../.logs/x"] {
            let error = check_writable(&path(text).unwrap()).unwrap_err();
            assert_eq!(error.kind, ErrorClass::User);
        }
        for text in ["~", "logs/a", "a/.logs/b", ".logsx"] {
            assert!(check_writable(&path(text).unwrap()).is_ok(), "{text}");
        }
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many_or_too_large_ones() {
        let many = (0..2_003).map(|nth| entry(&format!("{nth:05}"), nth / 2, 1)).collect();
        let gone: Vec<String> = surplus(many, None).iter().map(ToString::to_string).collect();
        assert_eq!(gone, ["/root/00000", "/root/00001", "/root/00002"]);
        let large = ["a", "b", "c"].iter().zip(1..).map(|(name, at)| entry(name, at, 200 << 20));
        assert_eq!(surplus(large.collect(), None), [path("a").unwrap()]);
        assert!(surplus(Vec::new(), None).is_empty());
    }

    /// A log of a call that was made at a time, in the text of ids.
    fn log(time: &str, bytes: u64) -> FolderEntry {
        let call: CallId = format!("{time}TSV4RRFFQ69G5FAV").parse().unwrap();
        let changed = time.bytes().fold(0, |sum, byte| sum * 2 + i64::from(byte));
        FolderEntry {
            path: log_path(call, Label::Tool).unwrap(),
            kind: None,
            bytes,
            changed: (changed, 0),
        }
    }

    #[test]
    fn what_a_turn_that_is_shown_may_name_stays() {
        let turn: Option<TurnId> = Some("01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap());
        let [old, older] = ["01ARZ3ND9K", "01ARZ3ND8K"].map(|time| log(time, 1));
        // Of the same moment, and later.
        let mut all: Vec<FolderEntry> = (0..2_010)
            .map(|nth| FolderEntry { changed: (i64::MAX - nth, 0), ..log("01ARZ3NDEK", 1) })
            .collect();
        all.extend([old.clone(), older.clone()]);
        let gone = surplus(all, turn);
        assert_eq!(gone, [older.path.clone(), old.path.clone()], "however many are named");
        let large: Vec<FolderEntry> =
            ["01ARZ3NDEK", "01ARZ3NDFK", "01ARZ3NDGK"].map(|time| log(time, 200 << 20)).into();
        let newest = large[2].path.clone();
        let gone = surplus([large.clone(), vec![old.clone()]].concat(), turn);
        assert_eq!(gone, [old.path, newest], "the newest was not named yet");
        assert_eq!(surplus(large.clone(), None), [large[0].path.clone()]);
    }
}
