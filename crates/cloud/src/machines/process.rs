//! Machines as sandboxes of processes on this host.
//!
//! A machine's own are its folders (`disk`): `/root`, `/usr/local`, `/opt`, `/srv`,
//! `/home` and `/var/lib`. The rest of its system is the host's programs and libraries, shared
//! and read-only, and a `/tmp` in memory that ends with its processes. Its network is a loopback
//! interface of its own, with one address on it that leads to the cloud's API, and is the proxy to
//! what the operator lists (`egress`). Must never run anything outside of a session.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use automaton_core::error::chain;
use automaton_core::id::MachineId;
use automaton_core::wire::cloud::{ExecReply, FileEntry, FileEntryKind};
use automaton_net::NetError;
use automaton_sandbox::{
    Capture, FsError, Launcher, ListOptions, Network, PROXY_PORT, Program, RunLimits, SandboxSpec,
    Session, SessionProgram, SessionUsage, WorkspaceDir, WorkspacePath, fs, plan, probe,
};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};

use super::dial::{Dialer, apart};
use super::disk::{MachineDisks, TMP, display_path, failed, resolve_path};
use super::driver::{
    BootRequest, DriverError, DriverFuture, ENTRIES_MAX, FileRead, FileWrite, FolderListing,
    MachineCommand, MachineDriver, MachineStream, MachineUsage, OUTPUT_BYTES_MAX, PROCESSES,
    Pieces, replied,
};
use super::egress::{CLOUD_INSIDE, CLOUD_VARIABLE, MachineEgress, MachineEgressConfig};
use super::memory::{self, FilesInMemory};
use crate::tasks::TaskSet;

/// Bytes of a file that are read at a time.
const PIECE_BYTES: usize = 64 << 10;
/// Open descriptors of each process.
const OPEN_FILES: u32 = 4096;
/// The pause between checks, and their number, until killed processes are gone.
const LOOK_EVERY: Duration = Duration::from_millis(5);
const LOOKS: u32 = 2_000;

/// The driver.
#[derive(Clone)]
pub struct ProcessDriver(Arc<ProcessDriverState>);

struct ProcessDriverState {
    launcher: Launcher,
    disk: MachineDisks,
    /// The template of each new machine's files.
    template: Option<PathBuf>,
    // A std mutex, since nothing is awaited while it is held.
    up: Mutex<RunningMachines<Arc<RunningMachine>>>,
    dialer: Dialer,
    egress: MachineEgressConfig,
    /// The address of the cloud's own API.
    cloud: SocketAddr,
    /// Those of machines that were up: to be started again frees nobody of a limit.
    // A std mutex, since nothing is awaited while it is held.
    ways: Mutex<HashMap<MachineId, Arc<MachineEgress>>>,
    tasks: TaskSet,
}

/// The resources of this host for machines.
pub(crate) struct MachineHost {
    /// The folder of their files.
    pub(crate) folder: PathBuf,
    /// The folder that each new one begins with a copy of.
    pub(crate) template: Option<PathBuf>,
    /// The hosts that they may reach.
    pub(crate) egress: MachineEgressConfig,
    /// The address of the cloud's own API.
    pub(crate) cloud: SocketAddr,
}

/// A machine that is up.
pub(super) struct RunningMachine {
    pub(super) session: Session,
    /// Its way to the cloud and out, which is served until this is dropped.
    way: Option<(Arc<MachineEgress>, oneshot::Sender<()>)>,
    /// A turn for each file in memory that may be on its way.
    pub(super) files: Semaphore,
}

impl RunningMachine {
    fn new(session: Session, way: Option<(Arc<MachineEgress>, oneshot::Sender<()>)>) -> Self {
        Self { session, way, files: Semaphore::new(memory::AT_ONCE_MAX) }
    }
}

/// The machines that are up, and the tickets of those that are starting. A machine that was stopped
/// meanwhile must not come up late, when nobody watches it any more.
struct RunningMachines<T> {
    sessions: HashMap<MachineId, T>,
    tickets: HashMap<MachineId, u64>,
    last: u64,
}

impl<T> Default for RunningMachines<T> {
    fn default() -> Self {
        Self { sessions: HashMap::new(), tickets: HashMap::new(), last: 0 }
    }
}

impl<T> RunningMachines<T> {
    /// A start begins; its ticket is good until the next one or a stop.
    fn begin(&mut self, id: MachineId) -> u64 {
        self.last += 1;
        self.tickets.insert(id, self.last);
        self.last
    }

    /// Puts what was started among what is up, or gives it back to be ended.
    fn arrive(&mut self, id: MachineId, ticket: u64, session: T) -> Result<(), T> {
        if self.tickets.get(&id) != Some(&ticket) {
            return Err(session);
        }
        self.tickets.remove(&id);
        self.sessions.insert(id, session);
        Ok(())
    }
}

impl ProcessDriver {
    /// Machines on this host.
    pub(crate) fn new(launcher: Launcher, host: MachineHost, tasks: TaskSet) -> Self {
        let MachineHost { folder, template, egress, cloud } = host;
        let disk = MachineDisks(folder);
        let up = Mutex::default();
        let ways = Mutex::default();
        let dialer = Dialer::default();
        Self(Arc::new(ProcessDriverState {
            launcher,
            disk,
            template,
            up,
            dialer,
            egress,
            cloud,
            ways,
            tasks,
        }))
    }

    /// Does something that blocks for a short while.
    fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce(&ProcessDriverState) -> Result<T, DriverError> + Send + 'static,
    ) -> DriverFuture<'static, T> {
        let own = Arc::clone(&self.0);
        Box::pin(apart(move || work(&own)))
    }
}

impl ProcessDriverState {
    fn up(&self) -> MutexGuard<'_, RunningMachines<Arc<RunningMachine>>> {
        self.up.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened(&self, id: MachineId) -> Result<Arc<RunningMachine>, DriverError> {
        let open = self.up().sessions.get(&id).map(Arc::clone);
        open.filter(|open| !open.session.is_over()).ok_or(DriverError::Down)
    }

    /// Returns the files that a running machine has in memory.
    fn in_memory(&self, id: MachineId) -> Result<FilesInMemory, DriverError> {
        let open = self.opened(id).map(FilesInMemory);
        let why = || format!("{TMP} is in memory, and there only while the sandbox runs");
        open.map_err(|_down| DriverError::Path(why()))
    }

    fn start(&self, boot: BootRequest, ticket: u64) -> Result<(), DriverError> {
        if self.opened(boot.id).is_ok() {
            return Ok(());
        }
        self.end(boot.id)?;
        if let Some(template) = self.template.as_ref().filter(|_| boot.is_new) {
            self.disk.fill(boot.id, template)?;
        }
        self.disk.make(boot.id, boot.is_new)?;
        let failed_boot = |error: &(dyn std::error::Error + 'static)| {
            DriverError::Unavailable(chain(error).to_string())
        };
        let way = self.way(boot.id).map_err(|error| failed_boot(&error))?;
        let plan = plan(&self.spec(boot), &probe(&self.launcher));
        let session = self.launcher.open(&plan.map_err(|refusal| failed_boot(&refusal))?);
        let mut session = session.map_err(|error| failed_boot(&error))?;
        let proxy = session.take_proxy();
        let way = proxy.map(|proxy| self.serve(way, proxy)).transpose()?;
        let arrived =
            self.up().arrive(boot.id, ticket, Arc::new(RunningMachine::new(session, way)));
        arrived.map_err(|_late| DriverError::Down)
    }

    fn ways(&self) -> MutexGuard<'_, HashMap<MachineId, Arc<MachineEgress>>> {
        self.ways.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The way of a machine to the cloud and out.
    fn way(&self, id: MachineId) -> Result<Arc<MachineEgress>, NetError> {
        Ok(match self.ways().entry(id) {
            Entry::Occupied(known) => Arc::clone(known.get()),
            Entry::Vacant(free) => {
                let way = MachineEgress::new(id, self.egress.clone(), self.cloud)?;
                Arc::clone(free.insert(Arc::new(way)))
            }
        })
    }

    /// Serves a way out until what is given back with it is dropped.
    fn serve(
        &self,
        way: Arc<MachineEgress>,
        listener: std::net::TcpListener,
    ) -> Result<(Arc<MachineEgress>, oneshot::Sender<()>), DriverError> {
        let listener = TcpListener::from_std(listener).map_err(failed("serve the way out"))?;
        let (end, ended) = oneshot::channel();
        let served = Arc::clone(&way);
        // That the sender is gone is what is waited for.
        self.tasks.spawn(async move { served.serve(listener, async { drop(ended.await) }).await });
        Ok((way, end))
    }

    fn spec(&self, BootRequest { id, tier, .. }: BootRequest) -> SandboxSpec {
        SandboxSpec {
            workspace: Some(self.disk.root(id)),
            kept: self.disk.writable_binds(id),
            network: if self.egress.leads_nowhere() { Network::Served } else { Network::Proxied },
            limits: RunLimits {
                memory_bytes: tier.memory_bytes(),
                processes: PROCESSES.saturating_mul(tier.vcpu),
                cpus: Some(tier.vcpu),
                tmp_bytes: tier.memory_bytes() / 4,
                file_bytes: tier.disk_bytes(),
                open_files: OPEN_FILES,
                ..RunLimits::service()
            },
            ..SandboxSpec::new(Program::Later)
        }
    }

    /// Ends the processes of a machine, and blocks until they are gone.
    fn end(&self, id: MachineId) -> Result<(), DriverError> {
        let Some(open) = self.up().sessions.remove(&id) else { return Ok(()) };
        open.session.killer().kill();
        // Whoever follows a command of it has the session, too, so dropping it may end nothing.
        for _ in 0..LOOKS {
            if open.session.is_over() {
                return Ok(());
            }
            std::thread::sleep(LOOK_EVERY);
        }
        self.up().sessions.insert(id, open);
        let why = "they did not end when they were killed".to_owned();
        Err(DriverError::Failed { what: "end the machine's processes", why })
    }
}

fn run(session: &Session, command: MachineCommand) -> Result<ExecReply, DriverError> {
    let kept = OUTPUT_BYTES_MAX;
    let mut task = SessionProgram::new(Program::Shell(command.line));
    task.wall = Some(command.wall);
    task.env = vec![(CLOUD_VARIABLE.to_owned(), CLOUD_INSIDE.to_owned())];
    task.capture = Capture { stdout_bytes_max: kept, stderr_bytes_max: kept };
    let told = |error: automaton_sandbox::LaunchError| DriverError::Failed {
        what: "run the command",
        why: chain(&error).to_string(),
    };
    let outcome = session.run(&task).map_err(told)?.wait().map_err(told)?;
    Ok(replied(&outcome.stdout, &outcome.stderr, outcome.status))
}

impl MachineDriver for ProcessDriver {
    fn boot(&self, boot: BootRequest) -> DriverFuture<'_, ()> {
        let ticket = self.0.up().begin(boot.id);
        self.apart(move |own| own.start(boot, ticket))
    }

    fn is_up(&self, id: MachineId) -> DriverFuture<'_, bool> {
        Box::pin(async move { Ok(self.0.opened(id).is_ok()) })
    }

    fn exec(&self, id: MachineId, command: MachineCommand) -> DriverFuture<'_, ExecReply> {
        Box::pin(async move {
            let open = self.0.opened(id)?;
            apart(move || run(&open.session, command)).await
        })
    }

    fn read(&self, id: MachineId, path: String) -> DriverFuture<'_, FileRead> {
        self.apart(move |own| {
            let (path, inside) = resolve_path(&path)?;
            let Some(host) = own.disk.folder(id, inside) else {
                return own.in_memory(id)?.read(&path);
            };
            let opened = WorkspaceDir::open(&host).and_then(|beneath| beneath.open_file(&path));
            let (file, bytes) = opened.map_err(|error| driver_error(&error, &path, inside))?;
            Ok(FileRead { bytes, pieces: pieces(file) })
        })
    }

    fn write(&self, id: MachineId, file: FileWrite) -> DriverFuture<'_, (String, u64)> {
        Box::pin(async move {
            let FileWrite { path, mut pieces, bytes_max } = file;
            let (path, inside) = resolve_path(&path)?;
            let shown = display_path(&path, inside);
            let Some(host) = self.0.disk.folder(id, inside) else {
                let whole = memory::collect_pieces(pieces, bytes_max).await?;
                let open = self.0.in_memory(id)?;
                return apart(move || open.write(&path, whole).map(|sum| (shown, sum))).await;
            };
            let begun = path.clone();
            let mut draft = apart(move || {
                let draft = WorkspaceDir::open(&host).and_then(|beneath| beneath.draft(&begun));
                draft.map_err(|error| driver_error(&error, &begun, inside))
            })
            .await?;
            let mut sum = 0_u64;
            while let Some(piece) = pieces.next().await {
                let piece: Bytes = piece?;
                sum = sum.saturating_add(piece.len() as u64);
                if sum > bytes_max {
                    let why = format!("the disk has room for {bytes_max} bytes, and it is more");
                    return Err(DriverError::Full(why));
                }
                draft = apart(move || {
                    let written = draft.write(&piece);
                    written.map(|()| draft).map_err(failed("write the file"))
                })
                .await?;
            }
            apart(move || draft.commit().map_err(|error| driver_error(&error, &path, inside)))
                .await?;
            Ok((shown, sum))
        })
    }

    fn list(&self, id: MachineId, path: String) -> DriverFuture<'_, FolderListing> {
        self.apart(move |own| {
            let (path, inside) = resolve_path(&path)?;
            let Some(host) = own.disk.folder(id, inside) else {
                return own.in_memory(id)?.list(&path);
            };
            let reach = ListOptions { depth: 1, entries_max: ENTRIES_MAX, is_closed: |_, _| false };
            let listed = WorkspaceDir::open(&host).and_then(|beneath| beneath.list(&path, reach));
            let listed = listed.map_err(|error| driver_error(&error, &path, inside))?;
            let files = listed.entries.iter().map(|it| entry(it, inside)).collect();
            Ok(FolderListing { path: display_path(&path, inside), files, is_cut: listed.cut })
        })
    }

    fn connect(&self, id: MachineId, port: u16) -> DriverFuture<'_, Box<dyn MachineStream>> {
        Box::pin(async move {
            let open = self.0.opened(id)?;
            // What is ours on its loopback is no port of its own.
            if open.way.is_some() && port == PROXY_PORT {
                return Err(DriverError::Refused);
            }
            // silent-ok: whatever kept it, nobody is reached there.
            let dial = move || open.session.connect(port).map_err(|_| DriverError::Refused);
            self.0.dialer.dial(id, dial).await
        })
    }

    fn usage(&self, id: MachineId) -> DriverFuture<'_, MachineUsage> {
        Box::pin(async move {
            let open = self.0.opened(id)?;
            let leads_out = self.leads_out();
            apart(move || {
                let SessionUsage { memory_bytes, processes, cpu } = open.session.usage();
                let way = open.way.as_ref().filter(|_| leads_out);
                let egress = way.map(|(way, _)| way.used());
                Ok(MachineUsage { memory_bytes, cpu, processes, egress })
            })
            .await
        })
    }

    fn disk(&self, id: MachineId) -> DriverFuture<'_, u64> {
        self.apart(move |own| Ok(own.disk.count(id)))
    }

    fn disk_room(&self) -> DriverFuture<'_, (u64, u64)> {
        self.apart(|own| own.disk.read_room())
    }

    fn stop(&self, id: MachineId) -> DriverFuture<'_, ()> {
        self.0.up().tickets.remove(&id);
        self.apart(move |own| own.end(id))
    }

    fn delete(&self, id: MachineId) -> DriverFuture<'_, ()> {
        self.0.up().tickets.remove(&id);
        self.apart(move |own| {
            own.end(id)?;
            own.ways().remove(&id);
            own.disk.erase(id)
        })
    }

    fn set_aside(&self, id: MachineId) -> DriverFuture<'_, Option<String>> {
        self.0.up().tickets.remove(&id);
        self.apart(move |own| {
            own.end(id)?;
            Ok(own.disk.set_aside(id)?.map(|aside| aside.display().to_string()))
        })
    }

    fn existing(&self) -> DriverFuture<'_, Vec<MachineId>> {
        self.apart(move |own| {
            let mut found = own.disk.existing()?;
            found.extend(own.up().sessions.keys());
            Ok(found)
        })
    }

    fn leads_out(&self) -> bool {
        !self.0.egress.leads_nowhere()
    }

    fn leave(&self) {
        let mut up = self.0.up();
        up.tickets.clear();
        for (_, open) in up.sessions.drain() {
            open.session.killer().kill();
        }
    }
}

fn pieces(file: std::fs::File) -> Pieces {
    Box::pin(stream::try_unfold(file, |file| {
        apart(move || {
            let mut piece = vec![0; PIECE_BYTES];
            let count = io::Read::read(&mut &file, &mut piece).map_err(failed("read the file"))?;
            piece.truncate(count);
            Ok((count > 0).then(|| (Bytes::from(piece), file)))
        })
    }))
}

fn entry(entry: &automaton_sandbox::FolderEntry, inside: &str) -> FileEntry {
    let kind = match entry.kind {
        None => FileEntryKind::File,
        Some(fs::FileKind::Directory) => FileEntryKind::Directory,
        Some(fs::FileKind::Link) => FileEntryKind::Link,
        Some(fs::FileKind::Special) => FileEntryKind::Special,
    };
    let name = entry.path.names().last().unwrap_or_default().to_owned();
    FileEntry { name, path: display_path(&entry.path, inside), kind, size: entry.bytes }
}

/// Returns the driver's error for a file, with its path as the machine sees it.
fn driver_error(error: &FsError, path: &WorkspacePath, inside: &str) -> DriverError {
    let shown = display_path(path, inside);
    match error {
        FsError::Missing { .. } => DriverError::Missing(format!("{shown} does not exist")),
        FsError::Escapes { .. } => {
            let why = "leads through a link, and no link is followed: name the file itself";
            DriverError::Path(format!("{shown} {why}"))
        }
        FsError::NotAFile { kind, .. } => {
            DriverError::Path(format!("{shown} is {kind}, not a file"))
        }
        // A folder of a machine that is being removed.
        FsError::Root { .. } => DriverError::Gone,
        FsError::Read { source, .. } | FsError::Write { source, .. } if is_odd(source) => {
            DriverError::Path(format!("{shown} cannot be used: {source}"))
        }
        other => failed("use the file")(other),
    }
}

/// Returns whether the system objects to the path itself.
fn is_odd(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, InvalidInput, IsADirectory, NotADirectory};
    matches!(error.kind(), InvalidFilename | InvalidInput | IsADirectory | NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_was_stopped_meanwhile_does_not_come_up_late() {
        let mut up = RunningMachines::default();
        let id: MachineId = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
        let late = up.begin(id);
        up.tickets.remove(&id);
        assert_eq!(up.arrive(id, late, "late"), Err("late"));
        let first = up.begin(id);
        let second = up.begin(id);
        assert_eq!(up.arrive(id, second, "second"), Ok(()));
        assert_eq!(up.arrive(id, first, "first"), Err("first"));
        assert_eq!(up.sessions.get(&id), Some(&"second"));
        assert_eq!(up.tickets.len(), 0);
    }
}
