//! A rented machine in the place of the sandbox here.
//!
//! It is the one that the creator has named. When it cannot be reached nothing runs and
//! nothing is read: this machine must never stand in for it, nor another one. Others' words
//! may be in it, unless the cloud says that nothing of theirs can come in.

use std::collections::VecDeque;

use automaton_client::{CloudClient, CloudClientError, MachineRef};
use automaton_core::error::ErrorClass;
use automaton_core::id::RemoteMachineId;
use automaton_core::secret::Secret;
use automaton_core::time::Span;
use automaton_core::trust::Label;
use automaton_core::wire::cloud::{
    ExecRequest, ExposePortRequest, FileEntry, FileEntryKind as Wired,
};
use automaton_sandbox::{
    CapturedOutput, ExitStatus, FileKind, FolderEntry, ListOptions, Listing, WorkspacePath,
};
use automaton_tools::HandleError;
use automaton_tools::context::CommandOutput;

/// The largest file that is fetched, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Folders that are asked for in one listing.
const FOLDERS_MAX: usize = 100;

/// The machine that commands run on.
#[derive(Debug, Clone)]
pub(super) struct RentedMachine {
    pub(super) cloud: CloudClient,
    pub(super) key: Secret,
    pub(super) id: RemoteMachineId,
}

/// A request that was not refused may have been carried out: its reply is lost, not its
/// effect. Whoever does it again has to know that.
pub(super) fn unknown(error: &CloudClientError, look: &str) -> HandleError {
    let told = failed(error);
    if is_refusal(error) {
        return told;
    }
    let message = format!("{}; it is not known whether it was done", told.message);
    HandleError { message, hint: Some(look.to_owned()), ..told }
}

/// Returns true if it certainly had no effect.
const fn is_refusal(error: &CloudClientError) -> bool {
    matches!(error, CloudClientError::Refused { status: 400..=499, .. })
}

/// Reason for a missing result of a command, and whether it may have run.
pub(super) struct ExecFailure {
    pub(super) error: HandleError,
    pub(super) may_have_run: bool,
}

/// A failure of the cloud.
pub(super) fn failed(error: &CloudClientError) -> HandleError {
    // A machine is somebody else's program: its failures never end a turn.
    let told = HandleError::from_error(error);
    let kind = if told.kind == ErrorClass::Internal { ErrorClass::Upstream } else { told.kind };
    HandleError { kind, ..told }
}

impl RentedMachine {
    pub(super) const fn machine(&self) -> MachineRef<'_> {
        MachineRef { key: &self.key, id: &self.id }
    }

    /// Runs a command, once for this call.
    pub(super) async fn exec(
        &self,
        command: &str,
        timeout: Span,
        call: &str,
    ) -> Result<CommandOutput, ExecFailure> {
        let timeout = u64::try_from(timeout.as_millis()).unwrap_or(0);
        let asked = ExecRequest { command: command.to_owned(), timeout: Some(timeout) };
        let look = "Look at what the command would have changed before you run it again.";
        let mut reply = self.cloud.exec(self.machine(), &asked, call).await;
        if let Err(error) = &reply
            && self.was_started(error).await
        {
            reply = self.cloud.exec(self.machine(), &asked, call).await;
        }
        let reply = reply.map_err(|error| ExecFailure {
            error: unknown(&error, look),
            may_have_run: !is_refusal(&error),
        })?;
        let status = match reply.code() {
            124 => ExitStatus::TimedOut,
            137 => ExitStatus::Killed,
            code => ExitStatus::Exited(code),
        };
        let whole =
            |text: String| CapturedOutput { head: text.into_bytes(), ..CapturedOutput::default() };
        let stdout = whole(reply.stdout);
        let stderr = whole(reply.stderr);
        let limits = format!("those of machine {}", self.id);
        let label = if reply.isolated == Some(true) { Label::Tool } else { Label::Web };
        Ok(CommandOutput { status, stdout, stderr, limits, label })
    }

    /// Starts the machine where it was refused something because it was stopped, as when its
    /// credits had run out; whether it runs now.
    async fn was_started(&self, refusal: &CloudClientError) -> bool {
        let may_be_stopped = matches!(refusal, CloudClientError::Refused { status: 409, .. });
        may_be_stopped && self.cloud.start_machine(self.machine()).await.is_ok()
    }

    /// The beginning of a file, and its size.
    pub(super) async fn read(
        &self,
        path: &WorkspacePath,
        bytes_max: u64,
    ) -> Result<(Vec<u8>, u64), HandleError> {
        let path = path.to_string();
        let read = self.cloud.read_file(self.machine(), &path, FILE_BYTES_MAX).await;
        let mut bytes = read.map_err(|error| failed(&error))?;
        let total = bytes.len() as u64;
        bytes.truncate(usize::try_from(bytes_max).unwrap_or(usize::MAX));
        Ok((bytes, total))
    }

    pub(super) async fn write(
        &self,
        path: &WorkspacePath,
        bytes: &[u8],
    ) -> Result<(), HandleError> {
        let path = path.to_string();
        self.cloud
            .write_file(self.machine(), &path, bytes.to_vec())
            .await
            .map_err(|error| failed(&error))
    }

    /// Lists a folder with its subfolders.
    pub(super) async fn list(
        &self,
        path: &WorkspacePath,
        reach: ListOptions,
    ) -> Result<Listing, HandleError> {
        let mut listing = Listing::default();
        let mut open = VecDeque::from([(path.clone(), reach.depth)]);
        let mut asked = 0;
        while let Some((folder, depth)) = open.pop_front() {
            asked += 1;
            if asked > FOLDERS_MAX {
                listing.cut = true;
                break;
            }
            let told = self.cloud.list_folder(self.machine(), &folder.to_string()).await;
            let told = told.map_err(|error| failed(&error))?;
            listing.cut |= told.truncated;
            for file in told.files {
                let Some(found) = entry(&folder, &file) else {
                    listing.cut = true;
                    continue;
                };
                if listing.entries.len() >= reach.entries_max {
                    listing.cut = true;
                    return Ok(listing);
                }
                let is_closed = depth <= 1 || (reach.is_closed)(&found.path, &file.name);
                match found.kind {
                    Some(FileKind::Directory) if is_closed => listing.closed += 1,
                    Some(FileKind::Directory) => open.push_back((found.path.clone(), depth - 1)),
                    _ => {}
                }
                listing.entries.push(found);
            }
        }
        Ok(listing)
    }

    /// Opens a port to everybody; where it is reached.
    pub(super) async fn open(
        &self,
        port: u16,
        price_usdc: Option<String>,
    ) -> Result<String, HandleError> {
        let wanted = ExposePortRequest { port, price_usdc };
        let reply = self
            .cloud
            .expose_port(self.machine(), &wanted)
            .await
            .map_err(|error| failed(&error))?;
        // A name below `localhost` is not resolved by every program.
        let path = reply.path_url.filter(|path| *path != reply.public_url);
        Ok(match path {
            Some(path) => format!("{} or {path}", reply.public_url),
            None => reply.public_url,
        })
    }

    /// Closes it again.
    pub(super) async fn close(&self, port: u16) -> Result<(), HandleError> {
        let closed = self.cloud.remove_port(self.machine(), port).await;
        closed.map(drop).map_err(|error| failed(&error))
    }
}

/// Converts a machine's file entry; `None` if the name is not below the folder.
fn entry(folder: &WorkspacePath, file: &FileEntry) -> Option<FolderEntry> {
    if file.name.is_empty() || file.name.contains('/') || file.name == "." || file.name == ".." {
        return None;
    }
    // silent-ok: a name that cannot be used cannot be told.
    let path = WorkspacePath::parse(&format!("{folder}/{}", file.name)).ok()?;
    let kind = match file.kind {
        Wired::File => None,
        Wired::Directory => Some(FileKind::Directory),
        Wired::Link => Some(FileKind::Link),
        Wired::Special => Some(FileKind::Special),
    };
    let bytes = if kind.is_none() { file.size } else { 0 };
    Some(FolderEntry { path, kind, bytes, changed: (0, 0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_refused_may_have_been_done() {
        let cloud = "http://cloud".to_owned();
        let refused = |status| {
            let cloud = cloud.clone();
            let code = String::new();
            let text = "no".to_owned();
            unknown(&CloudClientError::Refused { cloud, status, code, text }, "Look first.")
        };
        assert!(!refused(402).message.contains("not known"), "{}", refused(402));
        let broken = CloudClientError::Malformed { cloud: cloud.clone(), what: "html".to_owned() };
        for lost in [refused(502), unknown(&broken, "Look first.")] {
            assert!(lost.message.ends_with("it is not known whether it was done"), "{lost}");
            assert_eq!(lost.hint.as_deref(), Some("Look first."));
            assert_ne!(lost.kind, ErrorClass::Internal, "a machine's failure ends no turn");
        }
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_no_entry() {
        let folder = WorkspacePath::parse("~/a").unwrap();
        let file = |name: &str| FileEntry {
            name: name.to_owned(),
            path: "/etc/passwd".to_owned(),
            kind: Wired::File,
            size: 3,
        };
        assert_eq!(entry(&folder, &file("b")).unwrap().path.to_string(), "/root/a/b");
        for name in ["", ".", "..", "../b", "/etc/passwd", "b/c"] {
            assert!(entry(&folder, &file(name)).is_none(), "{name}");
        }
    }
}
