//! Commands and files, over the sandbox.
//!
//! A command runs in the sandbox or not at all; there is no other way in this
//! file, and there must never be one. Files are reached through handles beneath
//! the workspace.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use automaton_core::error::Kind;
use automaton_core::time::Span;
use automaton_core::trust::Label;
use automaton_sandbox::{
    Beneath, CgroupBase, Feature, Killer, Launcher, Limits, Listing, Outcome, Plan, Probe, Program,
    Reach, Running, Spec, WorkspacePath, plan,
};
use automaton_store::{Store, StoreError};
use automaton_tools::HandleError;
use automaton_tools::context::{self, Answer, FileContent};
use tokio::sync::watch;
use tokio::task;

use crate::deps::Deps;
use crate::error::AgentError;
use crate::settings::Settings;
use crate::tasks::ending;

/// The largest file that a tool may write, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The workspace of one automaton.
pub(crate) struct Workspace {
    root: PathBuf,
    files: Arc<Beneath>,
    store: Store,
    launcher: Arc<Launcher>,
    probe: Probe,
    shutdown: watch::Receiver<bool>,
}

impl Workspace {
    pub(crate) fn open(
        settings: &Settings,
        deps: &Deps,
        shutdown: watch::Receiver<bool>,
    ) -> Result<Self, AgentError> {
        let root = settings.workspace.clone();
        let files = Beneath::open(&root)
            .map_err(|source| AgentError::Workspace { path: root.clone(), source })?;
        Ok(Self {
            root,
            files: Arc::new(files),
            store: deps.store.clone(),
            launcher: Arc::clone(&deps.launcher),
            probe: deps.probe.clone(),
            shutdown,
        })
    }

    /// What it takes to run a command. Without all of it, a refusal.
    fn plan(&self, command: &str, timeout: Span) -> Result<Plan, HandleError> {
        let spec = command_spec(&self.root, Program::Shell(command.to_owned()), timeout);
        plan(&spec, &self.probe).map_err(|refusal| HandleError::of(&refusal))
    }

    /// Takes away the label of a file that was just written again.
    async fn is_own_now(&self, name: String) -> Result<(), StoreError> {
        match self.store.path_label(name.clone()).await? {
            Some(_) => self.store.clear_path(name).await,
            None => Ok(()),
        }
    }

    /// Starts a command; off the runtime's threads, since it waits for `execve`.
    async fn start(&self, plan: Plan) -> Result<Running, HandleError> {
        let launcher = Arc::clone(&self.launcher);
        let launched = task::spawn_blocking(move || launcher.launch(&plan)).await;
        let launched = launched.map_err(|_| broken("the start of a command broke down"))?;
        launched.map_err(|error| HandleError::of(&error))
    }
}

/// Ends a command that nobody waits for any more.
struct Leash(Killer);

impl Drop for Leash {
    fn drop(&mut self) {
        self.0.kill();
    }
}

impl context::Workspace for Workspace {
    fn exec<'a>(&'a self, command: &'a str, timeout: Span) -> Answer<'a, Outcome> {
        Box::pin(async move {
            let running = self.start(self.plan(command, timeout)?).await?;
            let killer = Leash(running.killer());
            let mut waiting = task::spawn_blocking(move || running.wait());
            let ended = tokio::select! {
                biased;
                // Cancel-safe.
                () = ending(&self.shutdown) => None,
                // Cancel-safe: awaited by reference, and again below.
                ended = &mut waiting => Some(ended),
            };
            let ended = match ended {
                Some(ended) => ended,
                None => {
                    killer.0.kill();
                    waiting.await
                }
            };
            let outcome = ended.map_err(|_| broken("the wait for a command broke down"))?;
            outcome.map_err(|error| HandleError::of(&error))
        })
    }

    fn read<'a>(&'a self, path: &'a WorkspacePath, bytes_max: u64) -> Answer<'a, FileContent> {
        Box::pin(async move {
            let (files, path, name) = (Arc::clone(&self.files), path.clone(), path.to_string());
            let read = task::spawn_blocking(move || files.read(&path, bytes_max)).await;
            let read = read.map_err(|_| broken("the reading of a file broke down"))?;
            let read = read.map_err(|error| HandleError::of(&error))?;
            let written = self.store.path_label(name).await;
            let written = written.map_err(|error| HandleError::of(&error))?;
            let label = Label::Tool.meet(written.unwrap_or(Label::Tool));
            Ok(FileContent { bytes: read.bytes, total_bytes: read.total, label })
        })
    }

    fn list<'a>(&'a self, path: &'a WorkspacePath, reach: Reach) -> Answer<'a, Listing> {
        Box::pin(async move {
            let (files, path) = (Arc::clone(&self.files), path.clone());
            let listed = task::spawn_blocking(move || files.list(&path, reach)).await;
            let listed = listed.map_err(|_| broken("the listing of a folder broke down"))?;
            listed.map_err(|error| HandleError::of(&error))
        })
    }

    fn write<'a>(
        &'a self,
        path: &'a WorkspacePath,
        bytes: &'a [u8],
        voice: Label,
    ) -> Answer<'a, ()> {
        Box::pin(async move {
            let (name, is_others) = (path.to_string(), voice > Label::Tool);
            if is_others {
                let labelled = self.store.label_path(name.clone(), voice).await;
                labelled.map_err(|error| HandleError::of(&error))?;
            }
            let (files, path, bytes) = (Arc::clone(&self.files), path.clone(), bytes.to_vec());
            let written =
                task::spawn_blocking(move || files.write(&path, &bytes, FILE_BYTES_MAX)).await;
            let written = written.map_err(|_| broken("the writing of a file broke down"))?;
            written.map_err(|error| HandleError::of(&error))?;
            if is_others {
                return Ok(());
            }
            self.is_own_now(name).await.map_err(|error| HandleError::of(&error))
        })
    }
}

/// What a command gets, whoever has it run: a workspace and nothing else of the host.
#[must_use]
pub fn command_spec(workspace: &Path, program: Program, timeout: Span) -> Spec {
    let mut spec = Spec::new(program);
    spec.workspace = Some(workspace.to_owned());
    let wall: Duration = timeout.to_std();
    spec.limits = Limits { wall: Some(wall), cpu: wall, ..Limits::default() };
    spec
}

fn broken(message: &str) -> HandleError {
    HandleError { kind: Kind::Internal, message: message.to_owned(), hint: None }
}

/// How memory and processes of commands are limited here, in words.
pub fn describe(probe: &Probe) -> String {
    let words = match &probe.cgroup {
        Feature::Available(CgroupBase::V1 { .. }) => "cgroup v1",
        Feature::Available(CgroupBase::V2 { .. }) => "cgroup v2",
        Feature::Missing(_) => "rlimits and a watcher",
    };
    words.to_owned()
}
