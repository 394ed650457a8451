//! Commands and files, over the sandbox.
//!
//! A command runs in the sandbox or not at all; there is no other way in this
//! file, and there must never be one. Files are reached through handles beneath
//! the workspace.

use std::fs::DirBuilder;
use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use automaton_core::error::ErrorClass;
use automaton_core::id::{CallId, MessageId, TurnId};
use automaton_core::secret::Secret;
use automaton_core::time::Span;
use automaton_core::trust::{Label, Labelled};
use automaton_net::Proxy;
use automaton_sandbox::{
    Capture, CgroupBase, Enforcement, Feature, FsError, HOME_INSIDE, KillHandle, LaunchError,
    Launcher, LineRange, ListOptions, Listing, Network, Plan, Probe, Program, RunHandle, RunLimits,
    RunOutcome, SandboxSpec, WorkspaceDir, WorkspacePath, plan, read_lines,
};
use automaton_store::{Hash, Store, StoreError};
use automaton_tools::HandleError;
use automaton_tools::context::{
    self, BackgroundProcess, CallProvenance, CommandOutput, FileContent, FileLines, HandleFuture,
};
use tokio::sync::watch;
use tokio::task;

mod worklog;

use super::background::{Background, SharedSandbox};
use super::disk_reserve::{DiskReserve, note_end};
use super::file_backend::FileBackend;
use super::machines::rented;
use super::rented_machine::ExecFailure;
use super::reserved_paths;
use super::workspace_snapshot::WorkspaceSnapshot;
use crate::deps::AgentDeps;
use crate::egress::{EgressConfig, EgressGate, run_with_egress};
use crate::error::AgentError;
use crate::settings::Settings;
use crate::snapshots::{CommandPass, SnapshotPlaces, WorkspaceSnapshots};
use crate::tasks::shutdown_requested;
use crate::worklog as worklog_file;

/// Part of a command's outputs that is kept. A longer one goes into a file.
pub(super) const CAPTURE: Capture =
    Capture { stdout_bytes_max: 4 << 20, stderr_bytes_max: 1 << 20 };

/// The workspace of one automaton.
pub(crate) struct Workspace {
    root: PathBuf,
    files: Arc<WorkspaceDir>,
    backend: FileBackend,
    /// Outputs in others' words, beside the workspace.
    outputs_backend: FileBackend,
    store: Store,
    launcher: Arc<Launcher>,
    probe: Probe,
    shutdown: watch::Receiver<bool>,
    egress: EgressConfig,
    proxy: Proxy,
    background: Arc<Background>,
    snapshots: WorkspaceSnapshots,
    deps: AgentDeps,
}

impl Workspace {
    pub(crate) fn open(
        settings: &Settings,
        deps: &AgentDeps,
        shutdown: watch::Receiver<bool>,
    ) -> Result<Self, AgentError> {
        let root = settings.workspace.clone();
        let failed = |path: &Path, source| AgentError::Workspace { path: path.to_owned(), source };
        let files = Arc::new(WorkspaceDir::open(&root).map_err(|source| failed(&root, source))?);
        for folder in reserved_paths::SEALED {
            files.free_folder_name(folder).map_err(|source| failed(&root, source))?;
        }
        // A folder of the home that commands do not see.
        let apart = settings.home.join("others");
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&apart);
        let made = made.map_err(|source| FsError::Root { path: apart.clone(), source });
        let opened =
            made.and_then(|()| WorkspaceDir::open(&apart)).map_err(|it| failed(&apart, it))?;
        let here = || FileBackend::Here(Arc::clone(&files));
        let ground =
            rented(settings, deps).map_or_else(here, |it| FileBackend::There(Box::new(it)));
        Ok(Self {
            root,
            files,
            backend: ground,
            outputs_backend: FileBackend::Here(Arc::new(opened)),
            store: deps.store.clone(),
            launcher: Arc::clone(&deps.launcher),
            probe: deps.probe.clone(),
            shutdown,
            egress: settings.egress.clone(),
            proxy: settings.egress.proxy().map_err(AgentError::Proxy)?,
            background: Arc::default(),
            snapshots: WorkspaceSnapshots::new(
                SnapshotPlaces::from_settings(settings),
                deps.store.clone(),
                deps.ids.clone(),
                Arc::clone(&deps.events),
            ),
            deps: deps.clone(),
        })
    }

    /// Returns the commands that go on beside the turns.
    pub(crate) async fn running_commands(&self) -> Vec<String> {
        self.background.running_commands().await
    }

    /// The snapshots of what is on this machine.
    pub(crate) const fn snapshots(&self) -> &WorkspaceSnapshots {
        &self.snapshots
    }

    /// Lets a command begin, after a snapshot where one is due.
    async fn pass(
        &self,
        command: &str,
        behalf: Option<CallProvenance>,
    ) -> Result<CommandPass, HandleError> {
        let here = self.backend.rented()?.is_none();
        Ok(self.snapshots.before_command(command, behalf.filter(|_| here)).await)
    }

    /// Returns the background processes.
    pub(super) fn background(&self) -> Arc<Background> {
        Arc::clone(&self.background)
    }

    /// Plans a command. Without a complete sandbox it is refused.
    fn plan(&self, program: Program, timeout: Span, network: Network) -> Result<Plan, HandleError> {
        let mut spec = command_spec(&self.root, program, timeout);
        spec.network = network;
        if spec.program == Program::Later {
            spec.limits = RunLimits::service();
        }
        plan(&spec, &self.probe).map_err(|refusal| HandleError::from_error(&refusal))
    }

    /// Opens a sandbox for what goes on beside the turns.
    async fn open_background_sandbox(
        &self,
        behalf: CallProvenance,
    ) -> Result<SharedSandbox, HandleError> {
        let plan = self.plan(Program::Later, Span::ZERO, self.egress.network())?;
        let mut session = self.off_thread(move |launcher| launcher.open(&plan)).await?;
        let way = session.take_proxy().map(|way| (way, Arc::new(self.egress_gate(behalf))));
        let reserve = DiskReserve::begin(&self.root);
        self.background.adopt_sandbox(session, way, &self.proxy, reserve).await
    }

    /// Takes away the label of a file that was just written again.
    async fn clear_label(&self, name: String) -> Result<(), StoreError> {
        match self.store.path_label(name.clone()).await? {
            Some(_) => self.store.clear_path(name).await,
            None => Ok(()),
        }
    }

    /// The message that a file is, as long as it is that word for word. What is read of it is
    /// what was compared: on a rented machine it may be another a moment later.
    async fn message_at(&self, path: &WorkspacePath) -> Result<Option<Labelled>, HandleError> {
        let Some(message) = reserved_paths::message_of(path) else { return Ok(None) };
        let said = self.store.message_body(message).await;
        let said = said.map_err(|error| HandleError::from_error(&error))?;
        let Some(said) = said else { return Ok(None) };
        match self.backend.read(path, said.text.len() as u64 + 1).await {
            Ok((bytes, _)) => Ok(Some(said).filter(|said| bytes == said.text.as_bytes())),
            // A file that could not be written, or is gone, is read from the record.
            Err(_) => Ok(Some(said)),
        }
    }

    /// Returns the place of a file.
    fn backend_of(&self, path: &WorkspacePath) -> &FileBackend {
        if reserved_paths::label_apart(path).is_some() {
            &self.outputs_backend
        } else {
            &self.backend
        }
    }

    /// Returns the label of a file's text.
    async fn label_of(&self, path: &WorkspacePath) -> Result<Label, HandleError> {
        if let Some(others) = reserved_paths::label_apart(path) {
            return Ok(others);
        }
        let written = self.store.path_label(path.to_string()).await;
        let written = written.map_err(|error| HandleError::from_error(&error))?;
        Ok(Label::Tool.meet(written.unwrap_or(Label::Tool)))
    }

    /// Keeps a message for which a prompt has no room, where nothing changes it; its path.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) async fn keep_message(
        &self,
        message: MessageId,
        text: &str,
    ) -> Result<WorkspacePath, HandleError> {
        let path = reserved_paths::message_path(message)?;
        self.backend.write(&path, text.as_bytes()).await?;
        Self::prune(&self.backend, &format!("~/{}", reserved_paths::MESSAGES), None).await;
        Ok(path)
    }

    /// Takes the oldest files of a folder away where there are too many, but none that the
    /// turns from `shown` on may name; what it took. What cannot be taken away stays until
    /// the next time.
    async fn prune(
        ground: &FileBackend,
        folder: &str,
        shown: Option<TurnId>,
    ) -> Vec<WorkspacePath> {
        let pruned = match WorkspacePath::parse(folder) {
            Ok(folder) => {
                ground.prune(folder, move |all| reserved_paths::surplus(all, shown)).await
            }
            Err(error) => Err(HandleError::from_error(&error)),
        };
        pruned.unwrap_or_else(|error| {
            tracing::warn!(%error, folder, "old files were not taken away");
            Vec::new()
        })
    }

    /// Labels a machine's output: others' words, once there can be any.
    async fn labelled(
        &self,
        ran: Result<CommandOutput, ExecFailure>,
    ) -> Result<CommandOutput, HandleError> {
        let unstored = |error: StoreError| HandleError::from_error(&error);
        let is_others = match &ran {
            Ok(ran) => ran.label > Label::Tool,
            Err(none) => none.may_have_run,
        };
        if is_others {
            let labelled = self.store.label_path(HOME_INSIDE.to_owned(), Label::Web).await;
            labelled.map_err(unstored)?;
        }
        let ran = ran.map_err(|none| none.error)?;
        let known = self.store.path_label(HOME_INSIDE.to_owned()).await.map_err(unstored)?;
        let label = ran.label.meet(known.unwrap_or(Label::Tool));
        Ok(CommandOutput { label, ..ran })
    }

    /// Has the launcher do something; off the runtime's threads, since it waits for `execve`.
    async fn off_thread<T: Send + 'static>(
        &self,
        start: impl FnOnce(&Launcher) -> Result<T, LaunchError> + Send + 'static,
    ) -> Result<T, HandleError> {
        let launcher = Arc::clone(&self.launcher);
        let started = task::spawn_blocking(move || start(&launcher)).await;
        let started = started.map_err(|_| broken("the start of a command broke down"))?;
        started.map_err(|error| HandleError::from_error(&error))
    }

    /// Waits for the end of a command, and serves its way out meanwhile.
    async fn wait_for_end(
        &self,
        running: RunHandle,
        way: Option<(TcpListener, Arc<EgressGate>)>,
    ) -> Result<RunOutcome, HandleError> {
        let killer = KillOnDrop(running.killer());
        let reserve = DiskReserve::begin(&self.root);
        let mut waiting = task::spawn_blocking(move || running.wait());
        let command = async {
            let note = tokio::select! {
                biased;
                // Cancel-safe.
                () = shutdown_requested(&self.shutdown) => None,
                // Cancel-safe: awaited by reference, and again below.
                ended = &mut waiting => return (ended, None),
                // Cancel-safe: it only waits.
                note = reserve.wait() => Some(note),
            };
            killer.0.kill();
            (waiting.await, note)
        };
        let served = run_with_egress(&self.proxy, way, command).await;
        let (ended, note) = served.map_err(|_| broken("the way out of a command broke down"))?;
        let outcome = ended.map_err(|_| broken("the wait for a command broke down"))?;
        let mut outcome = outcome.map_err(|error| HandleError::from_error(&error))?;
        if let Some(note) = note {
            note_end(&mut outcome.stderr, &note);
        }
        Ok(outcome)
    }

    /// Runs a command and waits for its end.
    async fn run(
        &self,
        command: &str,
        timeout: Span,
        behalf: Option<CallProvenance>,
    ) -> Result<CommandOutput, HandleError> {
        if let Some(rented) = self.backend.rented()? {
            let call = behalf.map_or_else(|| self.deps.ids.id(), |behalf| behalf.call);
            let ran = rented.exec(command, timeout, &call.to_string()).await;
            return self.labelled(ran).await;
        }
        // Without a behalf it has no way out, so it shares no sandbox that has one.
        let beside = match behalf {
            Some(behalf) => self.background.join_sandbox(behalf).await,
            None => None,
        };
        if let Some(place) = beside {
            let running = place.start(command, Some(timeout.to_std())).await?;
            let outcome = self.wait_for_end(running, None).await?;
            let label = place.words.label();
            return Ok(ran(outcome, label));
        }
        let network = behalf.map_or(Network::Loopback, |_| self.egress.network());
        let plan = self.plan(Program::Shell(command.to_owned()), timeout, network)?;
        let unstored = |error: StoreError| HandleError::from_error(&error);
        let before = match network {
            Network::Proxied => {
                Some(WorkspaceSnapshot::take(&self.files, &self.store).await.map_err(unstored)?)
            }
            Network::None | Network::Loopback | Network::Served => None,
        };
        let mut running = self.off_thread(move |launcher| launcher.launch(&plan)).await?;
        let way = running.take_proxy().zip(behalf.map(|behalf| Arc::new(self.egress_gate(behalf))));
        let gate = way.as_ref().map(|(_, gate)| Arc::clone(gate));
        let outcome = self.wait_for_end(running, way).await?;
        let label = gate.map_or(Label::Tool, |gate| gate.label());
        if let (Label::Web, Some(before)) = (label, before) {
            before.settle(&self.files, &self.store).await.map_err(unstored)?;
        }
        Ok(ran(outcome, label))
    }

    /// The gate of a command's way out.
    fn egress_gate(&self, behalf: CallProvenance) -> EgressGate {
        let treasury = self.deps.treasury.as_ref();
        let own = treasury.and_then(|treasury| treasury.own_secret());
        let own = own.map(|own| Secret::new(own.to_owned())).into_iter().collect();
        let judge = self.deps.judge.clone();
        let ids = self.deps.ids.clone();
        EgressGate::new(&self.egress, judge, ids, behalf, own, Some(self.store.clone()))
    }
}

/// Ends a command that nobody waits for any more.
struct KillOnDrop(KillHandle);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}

impl context::WorkspaceHandle for Workspace {
    fn exec<'a>(
        &'a self,
        command: &'a str,
        timeout: Span,
        behalf: Option<CallProvenance>,
    ) -> HandleFuture<'a, CommandOutput> {
        Box::pin(async move {
            let pass = self.pass(command, behalf).await?;
            let before = self.distrust_worklog(behalf).await?;
            let mut output = self.run(command, timeout, behalf).await;
            self.settle_worklog(before).await?;
            if let (Ok(output), Some(note)) = (&mut output, &pass.note) {
                note_end(&mut output.stderr, note);
            }
            output
        })
    }

    fn start<'a>(&'a self, command: &'a str, behalf: CallProvenance) -> HandleFuture<'a, u32> {
        Box::pin(async move {
            if self.backend.rented()?.is_some() {
                let message = "a rented machine keeps what a command leaves running".to_owned();
                let hint = Some("Use exec: `nohup COMMAND > log 2>&1 &`.".to_owned());
                return Err(HandleError { kind: ErrorClass::User, message, hint });
            }
            self.background.has_room().await?;
            let _pass = self.pass(command, Some(behalf)).await?;
            // What goes on beside the turns may change it at any time.
            self.distrust_worklog(Some(behalf)).await?;
            let place = match self.background.join_sandbox(behalf).await {
                Some(place) => place,
                None => self.open_background_sandbox(behalf).await?,
            };
            let running = place.start(command, None).await?;
            Ok(self.background.register(command, running, place.words).await)
        })
    }

    fn processes(&self) -> HandleFuture<'_, Vec<BackgroundProcess>> {
        Box::pin(self.background.all())
    }

    fn process(&self, id: u32, wait: Span, end: bool) -> HandleFuture<'_, BackgroundProcess> {
        Box::pin(self.background.wait_for(id, wait, end))
    }

    fn read<'a>(
        &'a self,
        path: &'a WorkspacePath,
        bytes_max: u64,
    ) -> HandleFuture<'a, FileContent> {
        Box::pin(async move {
            if let Some(Labelled { text, label, .. }) = self.message_at(path).await? {
                let mut bytes = text.into_bytes();
                let total_bytes = bytes.len() as u64;
                bytes.truncate(usize::try_from(bytes_max).unwrap_or(usize::MAX));
                return Ok(FileContent { bytes, total_bytes, label });
            }
            let (bytes, total_bytes) = self.backend_of(path).read(path, bytes_max).await?;
            let label = self.label_of(path).await?;
            Ok(FileContent { bytes, total_bytes, label })
        })
    }

    fn read_lines<'a>(
        &'a self,
        path: &'a WorkspacePath,
        wanted: LineRange,
    ) -> HandleFuture<'a, FileLines> {
        Box::pin(async move {
            if let Some(Labelled { text, label, .. }) = self.message_at(path).await? {
                let read = read_lines(text.as_bytes(), wanted);
                let read = read.map_err(|_| broken("the reading of a message broke down"))?;
                return Ok(FileLines { read, label });
            }
            let read = self.backend_of(path).read_lines(path, wanted).await?;
            let label = self.label_of(path).await?;
            Ok(FileLines { read, label })
        })
    }

    fn list<'a>(
        &'a self,
        path: &'a WorkspacePath,
        reach: ListOptions,
    ) -> HandleFuture<'a, Listing> {
        Box::pin(self.backend_of(path).list(path, reach))
    }

    fn write<'a>(
        &'a self,
        path: &'a WorkspacePath,
        bytes: &'a [u8],
        voice: Label,
    ) -> HandleFuture<'a, ()> {
        Box::pin(async move {
            reserved_paths::check_writable(path)?;
            let name = path.to_string();
            let is_others = voice > Label::Tool;
            if is_others {
                let hash = worklog_file::is_at(path).then(|| Hash::of(bytes));
                let labelled = self.store.label_bytes(name, voice, hash).await;
                labelled.map_err(|error| HandleError::from_error(&error))?;
            }
            self.backend.write(path, bytes).await?;
            if is_others {
                return Ok(());
            }
            self.wrote(path, bytes, voice).await.map_err(|error| HandleError::from_error(&error))
        })
    }

    fn keep<'a>(
        &'a self,
        call: CallId,
        text: &'a str,
        label: Label,
    ) -> HandleFuture<'a, WorkspacePath> {
        Box::pin(async move {
            let path = reserved_paths::log_path(call, label)?;
            let ground = self.backend_of(&path);
            ground.write(&path, text.as_bytes()).await?;
            let shown = self.store.first_shown().await;
            let shown = shown.map_err(|error| HandleError::from_error(&error))?;
            let gone = Self::prune(ground, &format!("~/{}", reserved_paths::LOGS), shown).await;
            if gone.contains(&path) { Err(reserved_paths::too_much()) } else { Ok(path) }
        })
    }
}

fn ran(outcome: RunOutcome, label: Label) -> CommandOutput {
    let limits = match outcome.enforcement {
        Enforcement::Cgroup { .. } => String::new(),
        Enforcement::Rlimits => "rlimits + watcher".to_owned(),
    };
    let RunOutcome { status, stdout, stderr, .. } = outcome;
    CommandOutput { status, stdout, stderr, limits, label }
}

/// Returns the sandbox of a command: a workspace and nothing else of the host.
#[must_use]
pub fn command_spec(workspace: &Path, program: Program, timeout: Span) -> SandboxSpec {
    let mut spec = SandboxSpec::new(program);
    spec.workspace = Some(workspace.to_owned());
    spec.sealed = reserved_paths::SEALED.map(str::to_owned).to_vec();
    let wall: Duration = timeout.to_std();
    spec.capture = CAPTURE;
    spec.network = Network::Loopback;
    spec.limits = RunLimits { wall: Some(wall), cpu: wall, ..RunLimits::default() };
    spec
}

pub(super) fn broken(message: &str) -> HandleError {
    HandleError { kind: ErrorClass::Internal, message: message.to_owned(), hint: None }
}

/// Describes the limits of memory and processes of commands here.
pub fn describe(probe: &Probe) -> String {
    let words = match &probe.cgroup {
        Feature::Available(CgroupBase::V1 { .. }) => "cgroup v1",
        Feature::Available(CgroupBase::V2 { .. }) => "cgroup v2",
        Feature::Missing(_) => "rlimits and a watcher",
    };
    words.to_owned()
}
