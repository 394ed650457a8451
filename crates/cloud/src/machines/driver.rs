//! The drivers of machines: processes of our own, containers, a cluster.
//!
//! A driver knows nothing of owners, prices or states; its caller has decided. All that it does can
//! be repeated. It must never run a command elsewhere than in the named machine: if that one is not
//! up, the call fails.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use automaton_core::error::Classified;
use automaton_core::id::MachineId;
use automaton_core::wire::cloud::{EgressMetrics, ExecReply, FileEntry};
use automaton_sandbox::{CapturedOutput, ExitStatus};
use bytes::Bytes;
use futures_util::Stream;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::tier::MachineTierSpec;

/// Bytes of each output of a command that are kept: the beginning and the end.
pub(super) const OUTPUT_BYTES_MAX: usize = 256 << 10;
/// Processes for each processor.
pub(super) const PROCESSES: u32 = 512;
/// Entries of a folder that are listed.
pub(super) const ENTRIES_MAX: usize = 10_000;
/// The longest time for a health check.
const HEALTH_WITHIN: Duration = Duration::from_secs(10);

/// The result of a driver's work.
pub type DriverResult<T> = Result<T, DriverError>;
/// A driver's work under way.
pub type DriverFuture<'a, T> = Pin<Box<dyn Future<Output = DriverResult<T>> + Send + 'a>>;
/// The content of a file, piece by piece.
pub type Pieces = Pin<Box<dyn Stream<Item = Result<Bytes, DriverError>> + Send>>;

/// A connection into a machine.
pub trait MachineStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> MachineStream for T {}

/// A driver of machines.
pub trait MachineDriver: Send + Sync {
    /// Starts a machine with its files, or with none when it is new. One that is up stays so.
    fn boot(&self, boot: BootRequest) -> DriverFuture<'_, ()>;
    /// Returns whether the machine's processes are there; cheap.
    fn is_up(&self, id: MachineId) -> DriverFuture<'_, bool>;
    /// Returns whether the machine runs a command.
    fn health(&self, id: MachineId) -> DriverFuture<'_, bool> {
        Box::pin(async move {
            let command = MachineCommand { line: "true".to_owned(), wall: HEALTH_WITHIN };
            // silent-ok: what cannot run it in time is not well; whoever asked finds out why.
            let run = timeout(HEALTH_WITHIN, self.exec(id, command)).await;
            Ok(matches!(run, Ok(Ok(reply)) if reply.code() == 0))
        })
    }
    /// Runs a command in its shell, in `/root`, to its end. What that leaves running stays.
    fn exec(&self, id: MachineId, command: MachineCommand) -> DriverFuture<'_, ExecReply>;
    /// Returns whether the files of a machine that is not up can be reached.
    fn shows_what_is_down(&self) -> bool {
        true
    }
    /// Begins to read a file.
    fn read(&self, id: MachineId, path: String) -> DriverFuture<'_, FileRead>;
    /// Writes a whole file, all or nothing; its path inside and its size.
    fn write(&self, id: MachineId, file: FileWrite) -> DriverFuture<'_, (String, u64)>;
    /// Lists a folder.
    fn list(&self, id: MachineId, path: String) -> DriverFuture<'_, FolderListing>;
    /// Connects to a port of its loopback interface.
    fn connect(&self, id: MachineId, port: u16) -> DriverFuture<'_, Box<dyn MachineStream>>;
    /// Returns the current usage.
    fn usage(&self, id: MachineId) -> DriverFuture<'_, MachineUsage>;
    /// Counts its files, in bytes.
    fn disk(&self, id: MachineId) -> DriverFuture<'_, u64>;
    /// Returns the free and the total bytes for the files of all machines; cheap.
    fn disk_room(&self) -> DriverFuture<'_, (u64, u64)>;
    /// Ends its processes, and keeps its files.
    fn stop(&self, id: MachineId) -> DriverFuture<'_, ()>;
    /// Ends its processes and removes its files.
    fn delete(&self, id: MachineId) -> DriverFuture<'_, ()>;
    /// Ends the processes of one that nobody knows, and puts its files aside: where they are then,
    /// if it has any.
    fn set_aside(&self, id: MachineId) -> DriverFuture<'_, Option<String>>;
    /// All of which there is anything.
    fn existing(&self) -> DriverFuture<'_, Vec<MachineId>>;
    /// Returns whether programs of a machine may reach anything outside of it.
    fn leads_out(&self) -> bool;
    /// We end: so does what cannot outlive us.
    fn leave(&self);
}

/// Returns the reply to the client of a command that ended.
pub(super) fn replied(
    stdout: &CapturedOutput,
    stderr: &CapturedOutput,
    status: ExitStatus,
) -> ExecReply {
    let mut stderr = stderr.text_lossy();
    if !status.exited_by_itself() {
        let line = if stderr.is_empty() || stderr.ends_with('\n') { "" } else { "\n" };
        stderr = format!("{stderr}{line}[{status}]\n");
    }
    ExecReply::new(stdout.text_lossy(), stderr, status.code())
}

/// A machine to be started.
#[derive(Debug, Clone, Copy)]
pub struct BootRequest {
    /// The machine.
    pub id: MachineId,
    /// Its size.
    pub tier: MachineTierSpec,
    /// It has no files yet.
    pub is_new: bool,
}

/// A command.
#[derive(Debug, Clone)]
pub struct MachineCommand {
    /// For the shell.
    pub line: String,
    /// The time limit.
    pub wall: Duration,
}

/// A file that is read.
pub struct FileRead {
    /// Its size when it was opened, in bytes.
    pub bytes: u64,
    /// Its content.
    pub pieces: Pieces,
}

/// A file to be written.
pub struct FileWrite {
    /// Its path.
    pub path: String,
    /// Its content.
    pub pieces: Pieces,
    /// The most that there is room for, in bytes.
    pub bytes_max: u64,
}

/// The content of a folder.
#[derive(Debug)]
pub struct FolderListing {
    /// Its path inside.
    pub path: String,
    /// The entries, by name.
    pub files: Vec<FileEntry>,
    /// There are more.
    pub is_cut: bool,
}

/// The usage of a machine; unknown values are left out.
#[derive(Debug, Clone, Copy, Default)]
pub struct MachineUsage {
    /// Memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// Processor time since it was started.
    pub cpu: Option<Duration>,
    /// Processes and threads.
    pub processes: Option<u64>,
    /// The traffic that it sent out, if it has a way.
    pub egress: Option<EgressMetrics>,
}

/// A driver could not do it.
#[derive(Debug, thiserror::Error, Classified)]
pub enum DriverError {
    /// Nothing can be run here.
    #[error("no machine can run here: {0}")]
    #[class(Config)]
    Unavailable(String),
    /// A machine that had files has none any more.
    #[error("its files are not there any more")]
    #[class(Internal)]
    Gone,
    /// Its processes are not there.
    #[error("the machine is not up")]
    #[class(Transient)]
    Down,
    /// A path that cannot be meant, or leads out.
    #[error("{0}")]
    #[class(User)]
    Path(String),
    /// There is no such file.
    #[error("{0}")]
    #[class(User)]
    Missing(String),
    /// The disk has no room for it.
    #[error("{0}")]
    #[class(User)]
    Full(String),
    /// Nobody listens.
    #[error("nobody listens there")]
    #[class(Transient)]
    Refused,
    /// As many files as may be on their way at once.
    #[error("other files of the sandbox are under way")]
    #[class(Transient)]
    Busy,
    /// The content to be written stopped coming.
    #[error("the upload broke off: {0}")]
    #[class(Transient)]
    Cut(String),
    /// Something else.
    #[error("cannot {what}: {why}")]
    #[class(Internal)]
    Failed {
        /// The operation, to complete "cannot …".
        what: &'static str,
        /// The system's words.
        why: String,
    },
}
