//! The control socket: the creator's hand on a running automaton.
//!
//! It lies in the home directory with mode 0600, so a program that can open it acts for the
//! creator. Each connection carries one command of bounded length, within a deadline. Some
//! connections may follow events for as long as they keep up, or wait for a purchase.
//! Connections are served side by side, in bounded numbers. This module must never raise a
//! limit or run a command, and no slow client may hold up another one.

mod snapshots;

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use automaton_core::error::{Classified, chain};
use automaton_core::event::{Event, StampedEvent};
use automaton_core::id::{ApprovalId, MessageId};
use automaton_core::memory::MemoryId;
use automaton_core::model::ModelId;
use automaton_core::payment::PaymentReason;
use automaton_core::record::{WakeCause, WakeSource};
use automaton_core::soul::SoulSource;
use automaton_core::trust::{Label, Labelled};
use automaton_core::wire::control::{
    ApprovalVerdict, ControlRequest, ControlResponse, LINE_BYTES_MAX, LiveStatus, MemoryDraft,
    PURCHASE_MAX, PurchaseReport, SOCKET_NAME,
};
use automaton_store::{self as store, ChosenModel};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, broadcast};
use tokio::task::JoinSet;

use self::snapshots::SnapshotWork;
use crate::deps::AgentDeps;
use crate::error::AgentError;
use crate::handles::{Memory, describe_limits};
use crate::heartbeat;
use crate::life::WakeSignals;
use crate::snapshots::WorkspaceSnapshots;
use crate::soul::SoulKeeper;
use crate::tasks::BackgroundTasks;
use crate::toolbox::AgentTools;
use crate::treasury::Treasury;
use crate::turn::AgentContext;

/// The answer to an approval that was given before.
const ALREADY_MADE: &str = " (approved before: the call was made once, and is not made again)";

/// Time that one command may take, from the connection to its answer.
const DEADLINE: Duration = Duration::from_secs(10);

/// Commands that are served at a time. Further connections wait to be accepted.
const COMMANDS_MAX: usize = 16;

/// Purchases that clients may wait for at a time.
const PURCHASES_MAX: usize = 4;

/// Clients that may follow events at a time.
const FOLLOWERS_MAX: usize = 16;

/// Characters of a message that its event shows; the message itself is in the inbox.
const SHOWN_CHARS_MAX: usize = 64_000;

/// Opens the socket and starts serving it.
pub(crate) fn start(
    ctx: &AgentContext,
    signals: &WakeSignals,
    tasks: &mut BackgroundTasks,
) -> Result<(), AgentError> {
    let path = ctx.settings.home.join(SOCKET_NAME);
    let listener =
        open(&path).map_err(|source| AgentError::Control { path: path.clone(), source })?;
    let server = ControlServer {
        deps: ctx.deps.clone(),
        signals: signals.clone(),
        creator: ctx.settings.creator_address.clone(),
        tools: Arc::clone(&ctx.tools),
        memory: Arc::clone(&ctx.handles.memory),
        soul: Arc::clone(&ctx.handles.soul),
        snapshots: ctx.handles.workspace.snapshots().clone(),
        schedule_changed: Arc::clone(&ctx.handles.pulse.editor().changed),
        room: ConnectionRoom::new(),
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

struct ControlServer {
    deps: AgentDeps,
    signals: WakeSignals,
    creator: Option<String>,
    tools: Arc<AgentTools>,
    memory: Arc<Memory>,
    soul: Arc<SoulKeeper>,
    snapshots: WorkspaceSnapshots,
    /// Has the heart look at its schedule.
    schedule_changed: Arc<Notify>,
    room: ConnectionRoom,
}

impl ControlServer {
    /// Serves connections until the agent ends. Each one has a task of its own.
    async fn serve(self, listener: UnixListener) {
        let server = Arc::new(self);
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                // Both arms are cancel-safe: no connection and no end of a task is lost.
                accepted = server.room.accept(&listener) => accepted,
                Some(_) = connections.join_next() => continue,
            };
            match accepted {
                Ok((stream, permit)) => {
                    connections.spawn(Arc::clone(&server).serve_connection(stream, permit));
                }
                Err(error) => {
                    server.report(&error);
                    // A listener that fails at once must not spin.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// Serves one connection to its end. The permit is returned when the command was answered,
    /// so that followers and purchases leave room for other commands.
    async fn serve_connection(self: Arc<Self>, stream: UnixStream, permit: OwnedSemaphorePermit) {
        let talked = tokio::time::timeout(DEADLINE, self.talk(stream)).await;
        drop(permit);
        match talked {
            Ok(Ok(TalkEnd::Over)) => {}
            Ok(Ok(TalkEnd::Follows(follower))) => follower.pass_on().await,
            Ok(Ok(TalkEnd::Buys(purchase))) => purchase.buy(self.deps.treasury.clone()).await,
            Ok(Ok(TalkEnd::Snapshots(client))) => client.serve(self.snapshots.clone()).await,
            Ok(Err(error)) => self.report(&error),
            Err(late) => self.report(&io::Error::new(io::ErrorKind::TimedOut, late)),
        }
    }

    fn report(&self, error: &io::Error) {
        self.deps.emit(Event::ErrorReported {
            kind: automaton_core::error::ErrorClass::Transient,
            error: format!("a connection to the control socket failed: {error}"),
            hint: None,
        });
    }

    /// Answers one command, or says how the connection goes on.
    async fn talk(&self, mut stream: UnixStream) -> io::Result<TalkEnd> {
        let mut line = Vec::new();
        let limit = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
        BufReader::new(&mut stream).take(limit).read_until(b'\n', &mut line).await?;
        if line.is_empty() {
            return Ok(TalkEnd::Over);
        }
        let command = match serde_json::from_slice::<ControlRequest>(&line) {
            Ok(command) => command,
            Err(error) => {
                let reason = format!("that is no command: {error}");
                write_answer(&mut stream, &ControlResponse::Refused { reason }).await?;
                return Ok(TalkEnd::Over);
            }
        };
        if let Some(work) = SnapshotWork::from_command(&command)
            && let Some(permit) = try_permit(&self.room.snapshots)
        {
            return Ok(TalkEnd::Snapshots(SnapshotClient { stream, work, _permit: permit }));
        }
        match command {
            ControlRequest::TopUp { usd } => {
                if let Some(permit) = try_permit(&self.room.purchases) {
                    return Ok(TalkEnd::Buys(Purchase { stream, usd, _permit: permit }));
                }
            }
            ControlRequest::Follow => {
                // The feed begins before the answer, so that no event is missed in between.
                let permit = try_permit(&self.room.followers);
                if let Some((permit, feed)) = permit.zip(self.deps.events.follow()) {
                    write_answer(&mut stream, &ControlResponse::Following).await?;
                    return Ok(TalkEnd::Follows(Follower { stream, feed, _permit: permit }));
                }
            }
            _ => {}
        }
        let stop = matches!(command, ControlRequest::Stop);
        let answer = self.answer(command).await;
        write_answer(&mut stream, &answer).await?;
        stream.shutdown().await?;
        if stop {
            self.signals.stopped.store(true, Ordering::Release);
            self.signals.end();
        }
        Ok(TalkEnd::Over)
    }

    async fn answer(&self, command: ControlRequest) -> ControlResponse {
        match command {
            ControlRequest::Send { text, key } => self.send(text, &key).await,
            ControlRequest::Wake { reason } => self.wake(reason).await,
            ControlRequest::Answer { approval, word, signature } => {
                self.answer_approval(approval, word, signature.as_deref()).await
            }
            ControlRequest::Close { message } => self.close(message).await,
            ControlRequest::RunTask { task } => self.run_task(&task).await,
            ControlRequest::Remember { memory } => self.remember(*memory).await,
            ControlRequest::Forget { memory } => self.forget(memory).await,
            ControlRequest::ChangeSoul { from, soul, reason } => {
                let change = (from, *soul);
                match self.soul.change(change, SoulSource::Human, &reason, None).await {
                    Ok(version) => ControlResponse::SoulChanged { version },
                    Err(error) => ControlResponse::Refused { reason: error.message },
                }
            }
            ControlRequest::Models => match self.deps.store.vitals().await {
                Ok(vitals) => ControlResponse::Models { models: self.deps.model_rows(&vitals) },
                Err(error) => refused(&error),
            },
            ControlRequest::UseModel { model } => self.use_model(model).await,
            ControlRequest::Interrupt => self.interrupt().await,
            ControlRequest::Head => self.head().await,
            ControlRequest::Follow => {
                let reason = format!("it cannot be followed now; {FOLLOWERS_MAX} may at a time");
                ControlResponse::Refused { reason }
            }
            ControlRequest::TopUp { .. } => {
                let reason = format!("{PURCHASES_MAX} purchases are waited for already");
                ControlResponse::Refused { reason }
            }
            ControlRequest::TakeSnapshot | ControlRequest::RestoreWorkspace { .. } => {
                let reason = "another snapshot or restore is going on; try again in a moment";
                ControlResponse::Refused { reason: reason.to_owned() }
            }
            ControlRequest::Stop => ControlResponse::Stopping,
            ControlRequest::Status => ControlResponse::Status(self.status().await),
        }
    }

    async fn send(&self, text: String, key: &str) -> ControlResponse {
        let body = Labelled::new(Label::Creator, "creator", text);
        match self.deps.store.receive(body.clone(), Some(key)).await {
            Ok(message) => {
                let body = Labelled { text: shorten(body.text), ..body };
                self.deps.emit(Event::MessageReceived { message, body });
                self.signals.wake.notify_one();
                ControlResponse::Sent { message }
            }
            Err(error) => refused(&error),
        }
    }

    async fn wake(&self, reason: String) -> ControlResponse {
        let reason = Labelled::new(Label::Creator, "creator", reason);
        let cause = WakeCause { source: WakeSource::Manual, reason };
        match self.deps.store.push_wake(cause).await {
            Ok(()) => {
                self.signals.wake.notify_one();
                ControlResponse::Woken
            }
            Err(error) => refused(&error),
        }
    }

    async fn close(&self, message: MessageId) -> ControlResponse {
        match self.deps.store.close_message(message).await {
            Ok(was_open) => ControlResponse::Closed { was_open },
            Err(error) => refused(&error),
        }
    }

    async fn run_task(&self, task: &str) -> ControlResponse {
        match heartbeat::request_task(&self.deps.store, task).await {
            Ok(()) => {
                self.schedule_changed.notify_one();
                ControlResponse::TaskDue
            }
            Err(error) => refused(&error),
        }
    }

    async fn remember(&self, draft: MemoryDraft) -> ControlResponse {
        self.memory.forget_recalled();
        match self.deps.store.remember(draft.into()).await {
            Ok(outcome) => ControlResponse::Remembered { memory: outcome.id() },
            Err(error) => refused(&error),
        }
    }

    async fn forget(&self, memory: MemoryId) -> ControlResponse {
        self.memory.forget_recalled();
        match self.deps.store.forget(memory).await {
            Ok(was_there) => ControlResponse::Forgotten { was_there },
            Err(error) => refused(&error),
        }
    }

    /// Has a model think that is there.
    async fn use_model(&self, model: Option<ModelId>) -> ControlResponse {
        if let Some(wanted) = &model {
            let none = "`automaton model list` shows those that there are";
            let reason = match self.deps.providers.find(wanted).await {
                Ok(Some(_)) => None,
                Ok(None) => Some(format!("there is no model '{wanted}'; {none}")),
                Err(why) => Some(format!("the model '{wanted}' cannot think: {why}")),
            };
            if let Some(reason) = reason {
                return ControlResponse::Refused { reason };
            }
        }
        let chosen = model.clone().map(|model| ChosenModel { model, by_creator: true });
        match self.deps.store.choose_model(chosen).await {
            Ok(()) => {
                self.deps.providers.choose(model.clone());
                ControlResponse::ModelChosen { model }
            }
            Err(error) => refused(&error),
        }
    }

    /// Ends the present wake, if it is awake.
    async fn interrupt(&self) -> ControlResponse {
        match self.deps.store.life().await {
            Ok(life) => {
                let awake = life.state.is_awake();
                self.signals
                    .interrupt
                    .send_if_modified(|interrupt| awake && !std::mem::replace(interrupt, awake));
                ControlResponse::Interrupting { awake }
            }
            Err(error) => refused(&error),
        }
    }

    async fn answer_approval(
        &self,
        id: ApprovalId,
        word: ApprovalVerdict,
        signature: Option<&str>,
    ) -> ControlResponse {
        let creator = self.creator.as_deref();
        match crate::answer(&self.deps.store, id, word, signature.map(|text| (text, creator))).await
        {
            Ok(store::Approval { summary, state, .. }) => {
                self.signals.wake.notify_one();
                let again = if state == store::ApprovalState::Used { ALREADY_MADE } else { "" };
                ControlResponse::Answered { summary: summary.text + again }
            }
            Err(error) => refused(&error),
        }
    }

    /// The head of the record, signed by the wallet. One without a wallet cannot sign.
    async fn head(&self) -> ControlResponse {
        let Some(treasury) = &self.deps.treasury else {
            return ControlResponse::Refused { reason: "it has no wallet to sign with".to_owned() };
        };
        let head = match self.deps.store.verify_chain().await {
            Ok(report) if report.is_whole() => report,
            Ok(_) => {
                let reason = "its record is broken: `automaton audit verify` says where";
                return ControlResponse::Refused { reason: reason.to_owned() };
            }
            Err(error) => return refused(&error),
        };
        match treasury.sign_head(head.links, head.head).await {
            Ok(text) => ControlResponse::Head { text },
            Err(error) => ControlResponse::Refused { reason: chain(&error).to_string() },
        }
    }

    async fn status(&self) -> LiveStatus {
        // silent-ok: while it cannot be read, the usual model is as good an answer.
        let vitals = self.deps.store.vitals().await.unwrap_or_default();
        let model = self.deps.model(self.deps.thinker(&vitals));
        LiveStatus {
            pid: std::process::id(),
            uptime_ms: self.deps.ids.now().since(self.deps.started_at).as_millis(),
            model: model.id.clone(),
            context_tokens: model.context_tokens,
            tools: self.tools.current().usual.len(),
            enforcement: describe_limits(&self.deps.probe),
        }
    }
}

/// Permits for connections, by how long they last.
struct ConnectionRoom {
    commands: Arc<Semaphore>,
    followers: Arc<Semaphore>,
    purchases: Arc<Semaphore>,
    snapshots: Arc<Semaphore>,
}

impl ConnectionRoom {
    fn new() -> Self {
        Self {
            commands: Arc::new(Semaphore::new(COMMANDS_MAX)),
            followers: Arc::new(Semaphore::new(FOLLOWERS_MAX)),
            purchases: Arc::new(Semaphore::new(PURCHASES_MAX)),
            // Snapshots and restores of one workspace exclude each other.
            snapshots: Arc::new(Semaphore::new(1)),
        }
    }

    /// Accepts the next connection as soon as there is room for its command. Cancel-safe.
    async fn accept(
        &self,
        listener: &UnixListener,
    ) -> io::Result<(UnixStream, OwnedSemaphorePermit)> {
        let permit = Arc::clone(&self.commands).acquire_owned().await.map_err(io::Error::other)?;
        let (stream, _) = listener.accept().await?;
        Ok((stream, permit))
    }
}

/// Returns a permit if one is free.
fn try_permit(room: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    // silent-ok: no room is an answer, which the caller gives.
    Arc::clone(room).try_acquire_owned().ok()
}

/// The end of a command's part of a connection.
enum TalkEnd {
    /// The connection is over.
    Over,
    /// The client receives events.
    Follows(Follower),
    /// The client waits for a purchase.
    Buys(Purchase),
    /// The client waits for a snapshot or a restore.
    Snapshots(SnapshotClient),
}

/// A client that waits for a snapshot or a restore.
struct SnapshotClient {
    stream: UnixStream,
    work: SnapshotWork,
    _permit: OwnedSemaphorePermit,
}

impl SnapshotClient {
    /// Does the work and answers. It continues if the client leaves.
    async fn serve(self, snapshots: WorkspaceSnapshots) {
        let Self { stream, work, _permit } = self;
        snapshots::serve(snapshots, stream, work).await;
    }
}

/// A client that waits for a purchase of credits.
struct Purchase {
    stream: UnixStream,
    usd: u32,
    _permit: OwnedSemaphorePermit,
}

impl Purchase {
    /// Buys credits for the creator and answers. The purchase is judged and limited like every
    /// other one, and continues if the client leaves.
    async fn buy(self, treasury: Option<Arc<Treasury>>) {
        let answer = match &treasury {
            None => ControlResponse::Refused { reason: "it has no wallet to pay with".to_owned() },
            Some(treasury) => {
                let why = PaymentReason::auto_topup("the creator buys credits");
                match treasury.buy_for_creator(self.usd, why, PURCHASE_MAX).await {
                    Ok(bought) => ControlResponse::Bought(PurchaseReport {
                        payment: bought.id,
                        usd: bought.usd,
                        amount: bought.amount,
                        transaction: bought.transaction,
                        settled: bought.settled,
                        held_up: bought.held_up,
                    }),
                    Err(error) => refused(&error),
                }
            }
        };
        send_late(self.stream, &answer).await;
    }
}

/// Answers a client that has waited for a long piece of work. It may have left.
async fn send_late(mut stream: UnixStream, answer: &ControlResponse) {
    // silent-ok: a client that left asks again, and continues the open work.
    tokio::time::timeout(DEADLINE, write_answer(&mut stream, answer)).await.ok();
}

/// A client that follows events.
struct Follower {
    stream: UnixStream,
    feed: broadcast::Receiver<Arc<StampedEvent>>,
    _permit: OwnedSemaphorePermit,
}

impl Follower {
    /// Writes events until the client leaves or is too slow, or no more events come.
    async fn pass_on(self) {
        let Self { stream, mut feed, _permit } = self;
        let (mut reader, mut writer) = stream.into_split();
        loop {
            let event = tokio::select! {
                // Both arms are cancel-safe. A follower sends nothing: a byte or an end is its end.
                _ = reader.read_u8() => return,
                event = feed.recv() => event,
            };
            // silent-ok: a client that lags behind is let go, and may follow anew.
            let Ok(event) = event else { return };
            // silent-ok: an event is plain data, which always has a JSON form.
            let Ok(mut line) = serde_json::to_vec(&*event) else { return };
            line.push(b'\n');
            match tokio::time::timeout(DEADLINE, writer.write_all(&line)).await {
                Ok(Ok(())) => {}
                // silent-ok: the client left, or does not read.
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }
}

/// Writes an answer as one line.
async fn write_answer(stream: &mut UnixStream, answer: &ControlResponse) -> io::Result<()> {
    let mut text = serde_json::to_vec(answer)?;
    text.push(b'\n');
    stream.write_all(&text).await
}

/// Shortens a message for its event.
fn shorten(text: String) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        None => text,
        Some((end, _)) => {
            let left_out = text.len() - end;
            format!("{}\n[{left_out} more bytes are in the inbox]", &text[..end])
        }
    }
}

fn refused(error: &(impl Classified + 'static)) -> ControlResponse {
    let hint = error.hint().map_or_else(String::new, |hint| format!(" ({hint})"));
    ControlResponse::Refused { reason: format!("{}{hint}", chain(error)) }
}
