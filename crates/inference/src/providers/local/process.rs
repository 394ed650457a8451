//! The helper as a process in the sandbox.
//!
//! It gets its executable and the model's file to read, one end of a socket
//! pair, and nothing else. Must never outlive its [`LocalModelProcess`].

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use automaton_core::wire::brain::{LocalModelHello, VERSION};
use automaton_net::redact;
use automaton_sandbox::{
    Bind, Inherit, LaunchError, Launcher, Plan, Program, RunHandle, RunLimits, SandboxSpec, plan,
};
use tokio::net::UnixStream;
use tokio::task::spawn_blocking;

use crate::error::LocalModelError;
use crate::file_hash::sha256_of;

use super::LocalModelConfig;
use super::connection::{LocalModelConnection, LocalModelConnectionError};

/// Path of the helper's executable inside.
const HELPER_INSIDE: &str = "/automaton/automaton-llama";

/// Path of the model inside.
const MODEL_INSIDE: &str = "/automaton/model.gguf";

/// The number of the socket inside.
const SOCKET_INSIDE: i32 = 3;

/// Time that a helper that hung up has to end by itself, so that its last output and status are
/// read.
const GRACE: Duration = Duration::from_secs(2);

/// Bytes of the helper's last output that are kept.
const SAID_BYTES_MAX: usize = 400;

/// A helper that runs, with the model loaded.
pub(super) struct LocalModelProcess {
    run: LocalModelRun,
    link: LocalModelConnection<UnixStream>,
    hello: LocalModelHello,
}

/// The sandboxed run. Dropping it ends the helper, which takes milliseconds.
struct LocalModelRun {
    running: RunHandle,
    /// The model's path on the host, for messages.
    model: String,
}

impl LocalModelProcess {
    /// Starts a helper and waits for its greeting.
    pub(super) async fn start(
        config: &Arc<LocalModelConfig>,
        sha256: &str,
    ) -> Result<Self, LocalModelError> {
        let (ours, theirs) =
            StdStream::pair().map_err(|source| LocalModelError::Channel { source })?;
        let model = text(&config.model)?;
        let plan = plan(&spec(config, sha256, theirs.into())?, &config.probe)
            .map_err(|source| LocalModelError::Sandbox { source })?;
        let running = launch(config.launcher.clone(), plan).await?;
        let run = LocalModelRun { running, model };
        let stream = ours.set_nonblocking(true).and_then(|()| UnixStream::from_std(ours));
        let mut link = LocalModelConnection::new(
            stream.map_err(|source| LocalModelError::Channel { source })?,
        );
        match link.hello(config.deadlines.hello).await {
            Ok(hello) => Ok(Self { run, link, hello }),
            // A file that cannot be loaded ends the helper with its reason.
            Err(LocalModelConnectionError::Closed | LocalModelConnectionError::Answer { .. }) => {
                let (status, said) = run.end(GRACE).await;
                Err(LocalModelError::NotReady { status, said })
            }
            Err(error) => Err(run.post_mortem(error).await),
        }
    }

    /// Returns its greeting.
    pub(super) const fn hello(&self) -> &LocalModelHello {
        &self.hello
    }

    /// The way to ask it.
    pub(super) const fn link(&mut self) -> &mut LocalModelConnection<UnixStream> {
        &mut self.link
    }

    /// Returns true if it has ended by itself.
    pub(super) fn is_over(&self) -> bool {
        self.run.running.is_over()
    }

    /// Ends it after it failed in this way, and says what happened.
    pub(super) async fn post_mortem(self, error: LocalModelConnectionError) -> LocalModelError {
        drop(self.link);
        self.run.post_mortem(error).await
    }

    /// Ends it.
    pub(super) async fn stop(self) {
        // It ends when its peer hangs up.
        drop(self.link);
        self.run.end(GRACE).await;
    }
}

impl LocalModelRun {
    async fn post_mortem(self, error: LocalModelConnectionError) -> LocalModelError {
        let grace = if error == LocalModelConnectionError::Closed { GRACE } else { Duration::ZERO };
        let (status, said) = self.end(grace).await;
        match error {
            LocalModelConnectionError::Closed => LocalModelError::Died { status, said },
            LocalModelConnectionError::Hung(limit) => LocalModelError::Hung { limit },
            LocalModelConnectionError::Slow(limit) => LocalModelError::Slow { limit },
            LocalModelConnectionError::Version(found) => {
                LocalModelError::Version { found, wanted: VERSION }
            }
            LocalModelConnectionError::Protocol(what) => LocalModelError::Protocol { what },
            LocalModelConnectionError::Answer { code, message } => {
                LocalModelError::Answer { code, message }
            }
        }
    }

    /// Ends the helper, if it does not end by itself in time, and gives its
    /// status and its last words.
    async fn end(self, grace: Duration) -> (String, String) {
        let Self { running, model } = self;
        let over = async {
            while !running.is_over() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(grace, over).await.is_err() {
            running.kill();
        }
        let ended = spawn_blocking(move || running.wait()).await;
        let Ok(Ok(outcome)) = ended else {
            return ("how is not known".to_owned(), "nothing".to_owned());
        };
        let said = outcome.stderr.text_lossy().replace(MODEL_INSIDE, &model);
        let said = match redact::text(&said, &[], SAID_BYTES_MAX) {
            nothing if nothing.is_empty() => "it said nothing".to_owned(),
            said => said,
        };
        (outcome.status.to_string(), said)
    }
}

/// Returns the sandbox of the helper. The socket is the only way in or out.
fn spec(
    config: &LocalModelConfig,
    sha256: &str,
    socket: OwnedFd,
) -> Result<SandboxSpec, LocalModelError> {
    text(&config.helper)?;
    let arguments = [
        HELPER_INSIDE,
        "--model",
        MODEL_INSIDE,
        "--sha256",
        sha256,
        "--fd",
        &SOCKET_INSIDE.to_string(),
        "--threads",
        &config.threads.to_string(),
        "--context-tokens",
        &config.context_tokens.to_string(),
        "--memory-bytes",
        &config.memory_bytes.to_string(),
    ];
    let bind = |host: &Path, inside: &str| Bind { host: host.into(), inside: inside.into() };
    Ok(SandboxSpec {
        read_only: vec![bind(&config.helper, HELPER_INSIDE), bind(&config.model, MODEL_INSIDE)],
        inherit: vec![Inherit { descriptor: Arc::new(socket), target: SOCKET_INSIDE }],
        limits: RunLimits {
            wall: None,
            memory_bytes: config.memory_bytes,
            processes: config.threads.saturating_mul(2).saturating_add(8),
            cpus: None,
            tmp_bytes: 1 << 20,
            file_bytes: 1 << 20,
            open_files: 64,
            // It computes for as long as the agent lives: the deadlines of
            // each answer bound it, not a sum over all of them.
            cpu: Duration::from_secs(u32::MAX.into()),
        },
        ..SandboxSpec::new(Program::Argv(arguments.map(str::to_owned).to_vec()))
    })
}

async fn launch(launcher: Launcher, plan: Plan) -> Result<RunHandle, LocalModelError> {
    // The plan holds the helper's end of the socket: it goes with the closure,
    // so that the helper's death is heard as the end of the stream.
    let launched = spawn_blocking(move || launcher.launch(&plan)).await;
    let launched = launched.unwrap_or(Err(LaunchError::Lost));
    launched.map_err(|source| LocalModelError::Launch { source })
}

fn text(path: &Path) -> Result<String, LocalModelError> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| LocalModelError::PathNotText { path: path.to_owned() })
}

/// The SHA-256 of the model's file, compared with the one that is configured.
pub(super) async fn checked_sha256(config: &LocalModelConfig) -> Result<String, LocalModelError> {
    let path = config.model.clone();
    let hashed = spawn_blocking(move || sha256_of(File::open(path)?)).await;
    let hashed = hashed.unwrap_or_else(|lost| Err(lost.into()));
    let path = || config.model.clone();
    let unread = |source| LocalModelError::Unreadable { path: path(), source };
    let found = hex::encode(hashed.map_err(unread)?);
    let wanted = config.sha256.as_ref().map(|wanted| wanted.to_ascii_lowercase());
    match wanted.filter(|wanted| *wanted != found) {
        Some(wanted) => Err(LocalModelError::Changed { path: path(), wanted, found }),
        None => Ok(found),
    }
}
