//! The control socket: the creator's hand on a running automaton.
//!
//! It lies in the home directory with mode 0600, so whoever can open it is the
//! creator. One command a connection, with a deadline and a bounded line. It
//! must never raise a limit or run a command.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use automaton_core::error::{Classified, chain};
use automaton_core::event::Event;
use automaton_core::id::ApprovalId;
use automaton_core::record::{WakeCause, WakeSource};
use automaton_core::time::Timestamp;
use automaton_core::trust::{Label, Labelled};
use automaton_core::wire::control::{
    Answer, Command, LINE_BYTES_MAX, LiveStatus, SOCKET_NAME, Word,
};
use automaton_store as store;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

use crate::deps::Deps;
use crate::error::AgentError;
use crate::handles::describe_limits;
use crate::life::Bells;
use crate::tasks::Tasks;
use crate::turn::Body;

/// How long one connection may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// Opens the socket and starts serving it.
pub(crate) fn start(body: &Body, bells: &Bells, tasks: &mut Tasks) -> Result<(), AgentError> {
    let path = body.settings.home.join(SOCKET_NAME);
    let listener =
        open(&path).map_err(|source| AgentError::Control { path: path.clone(), source })?;
    let server = Server {
        deps: body.deps.clone(),
        bells: bells.clone(),
        creator: body.settings.creator_address.clone(),
        started: body.deps.mint.now(),
    };
    tasks.start("control socket", server.serve(listener));
    Ok(())
}

/// A stale socket of a process that died is replaced: the home's lock is ours.
fn open(path: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

struct Server {
    deps: Deps,
    bells: Bells,
    creator: Option<String>,
    started: Timestamp,
}

impl Server {
    /// One connection after the other: commands are short and rare.
    async fn serve(self, listener: UnixListener) {
        loop {
            let talk = async {
                let (stream, _) = listener.accept().await?;
                let talked = tokio::time::timeout(DEADLINE, self.talk(stream)).await;
                talked.unwrap_or_else(|late| Err(io::Error::new(io::ErrorKind::TimedOut, late)))
            };
            if let Err(error) = talk.await {
                self.deps.emit(Event::ErrorReported {
                    kind: automaton_core::error::Kind::Transient,
                    error: format!("a connection to the control socket failed: {error}"),
                    hint: None,
                });
                // A listener that fails at once must not spin.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }

    async fn talk(&self, stream: UnixStream) -> io::Result<()> {
        let (reader, mut writer) = stream.into_split();
        let mut line = Vec::new();
        let limit = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
        BufReader::new(reader).take(limit).read_until(b'\n', &mut line).await?;
        if line.is_empty() {
            return Ok(());
        }
        let (answer, stop) = match serde_json::from_slice::<Command>(&line) {
            Ok(command) => self.answer(command).await,
            Err(error) => {
                (Answer::Refused { reason: format!("that is no command: {error}") }, false)
            }
        };
        let mut text = serde_json::to_vec(&answer)?;
        text.push(b'\n');
        writer.write_all(&text).await?;
        writer.shutdown().await?;
        if stop {
            self.bells.stopped.store(true, Ordering::Release);
            self.bells.end.send_replace(true);
        }
        Ok(())
    }

    /// The answer, and whether the process should end after it.
    async fn answer(&self, command: Command) -> (Answer, bool) {
        match command {
            Command::Send { text, key } => (self.send(text, &key).await, false),
            Command::Wake { reason } => (self.wake(reason).await, false),
            Command::Answer { approval, word, signature } => {
                (self.heed(approval, word, signature.as_deref()).await, false)
            }
            Command::Head => (self.head().await, false),
            Command::Stop => (Answer::Stopping, true),
            Command::Status => (Answer::Status(self.status().await), false),
        }
    }

    async fn send(&self, text: String, key: &str) -> Answer {
        let body = Labelled::new(Label::Creator, "creator", text);
        match self.deps.store.receive(body.clone(), Some(key)).await {
            Ok(message) => {
                self.deps.emit(Event::MessageReceived { message, body });
                self.bells.wake.notify_one();
                Answer::Sent { message }
            }
            Err(error) => refused(&error),
        }
    }

    async fn wake(&self, reason: String) -> Answer {
        let reason = Labelled::new(Label::Creator, "creator", reason);
        let cause = WakeCause { source: WakeSource::Manual, reason };
        match self.deps.store.push_wake(cause).await {
            Ok(()) => {
                self.bells.wake.notify_one();
                Answer::Woken
            }
            Err(error) => refused(&error),
        }
    }

    async fn heed(&self, id: ApprovalId, word: Word, signature: Option<&str>) -> Answer {
        let creator = self.creator.as_deref();
        match crate::answer(&self.deps.store, (id, word), signature.map(|text| (text, creator)))
            .await
        {
            Ok(store::Approval { summary, .. }) => {
                self.bells.wake.notify_one();
                Answer::Answered { summary: summary.text }
            }
            Err(error) => refused(&error),
        }
    }

    /// The head of the record, signed by the wallet. One without a wallet cannot sign.
    async fn head(&self) -> Answer {
        let Some(treasury) = &self.deps.treasury else {
            return Answer::Refused { reason: "it has no wallet to sign with".to_owned() };
        };
        let head = match self.deps.store.verify_chain().await {
            Ok(report) if report.is_whole() => report,
            Ok(_) => {
                let reason = "its record is broken: `automaton audit verify` says where";
                return Answer::Refused { reason: reason.to_owned() };
            }
            Err(error) => return refused(&error),
        };
        match treasury.sign_head(head.links, head.head).await {
            Ok(text) => Answer::Head { text },
            Err(error) => Answer::Refused { reason: chain(&error).to_string() },
        }
    }

    async fn status(&self) -> LiveStatus {
        // silent-ok: while it cannot be read, the usual model is as good an answer.
        let thinker = self.deps.store.vitals().await.unwrap_or_default().thinker();
        LiveStatus {
            pid: std::process::id(),
            uptime_ms: self.deps.mint.now().since(self.started).as_millis(),
            model: self.deps.mind(thinker).model().id.clone(),
            enforcement: describe_limits(&self.deps.probe),
        }
    }
}

fn refused(error: &(impl Classified + 'static)) -> Answer {
    let hint = error.hint().map_or_else(String::new, |hint| format!(" ({hint})"));
    Answer::Refused { reason: format!("{}{hint}", chain(error)) }
}
