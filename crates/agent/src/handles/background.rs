//! Background processes: commands in a sandbox that stays open for them.
//!
//! There is one such sandbox at most, and it is closed soon after nothing goes on in it any
//! more, with whatever was sent off in it. All that is sent out of it is judged as the least trusted of its commands would be.
//! Nothing in it outlives the automaton's process.

use std::net::TcpListener as StdListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use automaton_core::error::ErrorClass;
use automaton_core::time::Span;
use automaton_core::trust::Label;
use automaton_net::Proxy;
use automaton_sandbox::{
    LaunchError, PROXY_PORT, Program, RunHandle, RunOutcome, Session, SessionProgram,
};
use automaton_tools::HandleError;
use automaton_tools::context::{BackgroundProcess, CallProvenance};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::task::{self, JoinSet};
use tokio::time::sleep;

use super::disk_reserve::{DiskReserve, note_end};
use super::workspace::{CAPTURE, broken};
use crate::egress::EgressGate;

/// Commands that go on at a time.
const RUNNING_MAX: usize = 8;
/// Commands that are known, the ended ones among them.
const KNOWN_MAX: usize = 16;
/// Interval at which the end of a process is checked, with and without a waiting caller.
const LOOK: Duration = Duration::from_millis(20);
const IDLE_LOOK: Duration = Duration::from_secs(1);

/// The commands that go on.
#[derive(Default)]
pub(super) struct Background {
    open: Arc<Mutex<Option<OpenSandbox>>>,
    known: Arc<Mutex<CommandTable>>,
}

/// A sandbox that is open, and whose words are in it.
#[derive(Clone)]
pub(super) struct SharedSandbox {
    session: Arc<Session>,
    pub(super) words: InputSources,
}

/// Sources of text that a command may read besides its caller's.
#[derive(Clone)]
pub(super) struct InputSources {
    /// The gate of the way out.
    egress_gate: Option<Arc<EgressGate>>,
    /// True if a visitor came in by a port.
    visited: Arc<AtomicBool>,
}

impl InputSources {
    pub(super) fn label(&self) -> Label {
        match self.visited.load(Ordering::Acquire) {
            true => Label::Web,
            false => self.egress_gate.as_ref().map_or(Label::Tool, |gate| gate.label()),
        }
    }
}

impl SharedSandbox {
    /// A connection to a port inside, for somebody outside: from now on all that is heard in
    /// here may be theirs.
    pub(super) async fn connect_visitor(&self, port: u16) -> Option<TcpStream> {
        // What is ours on its loopback is no port of the commands.
        if port == PROXY_PORT && self.words.egress_gate.is_some() {
            return None;
        }
        self.words.visited.store(true, Ordering::Release);
        let session = Arc::clone(&self.session);
        // silent-ok: whatever kept it, nobody is reached there.
        let stream = task::spawn_blocking(move || session.connect(port)).await.ok()?.ok()?;
        let stream = TcpStream::from_std(stream).ok()?;
        stream.writable().await.ok()?;
        matches!(stream.take_error(), Ok(None)).then_some(stream)
    }

    /// Starts a command in it.
    pub(super) async fn start(
        &self,
        command: &str,
        wall: Option<Duration>,
    ) -> Result<RunHandle, HandleError> {
        let program = Program::Shell(command.to_owned());
        let task = SessionProgram { wall, capture: CAPTURE, ..SessionProgram::new(program) };
        let session = Arc::clone(&self.session);
        let started = task::spawn_blocking(move || session.run(&task)).await;
        let started = started.map_err(|_| broken("the start of a command broke down"))?;
        started.map_err(|error| HandleError::from_error(&error))
    }
}

/// The sandbox that they share.
struct OpenSandbox {
    place: SharedSandbox,
    /// Serves the way out, and looks whether it can be closed; cut off when this is dropped.
    _serving: JoinSet<()>,
}

/// Closes it; its end is waited for, but not here.
fn close(open: &mut Option<OpenSandbox>) {
    let closed = open.take();
    drop(task::spawn_blocking(move || drop(closed)));
}

/// Closes the sandbox once no command is left that is known, and none that uses it. Ends all
/// that are known where the disk is nearly full.
async fn close_when_idle(
    open: Arc<Mutex<Option<OpenSandbox>>>,
    known: Arc<Mutex<CommandTable>>,
    reserve: DiskReserve,
) {
    loop {
        sleep(IDLE_LOOK).await;
        let mut open = open.lock().await;
        let mut known = known.lock().await;
        if let Some(note) = reserve.exceeded() {
            known.end_all(&note);
        }
        known.notice_ends();
        let is_used = |open: &OpenSandbox| Arc::strong_count(&open.place.session) > 1;
        if known.running() == 0 && !open.as_ref().is_some_and(is_used) {
            close(&mut open);
            return;
        }
    }
}

#[derive(Default)]
struct CommandTable {
    last: u32,
    commands: Vec<BackgroundCommand>,
}

struct BackgroundCommand {
    id: u32,
    line: String,
    words: InputSources,
    state: CommandState,
    /// Reason for an end that neither the process nor the automaton caused.
    note: Option<String>,
}

enum CommandState {
    Runs(RunHandle),
    Ended(Result<RunOutcome, Arc<LaunchError>>),
}

impl BackgroundCommand {
    /// Notices its end.
    fn notice_end(&mut self) {
        let over = matches!(&self.state, CommandState::Runs(running) if running.is_over());
        if over {
            let nothing = CommandState::Ended(Err(Arc::new(LaunchError::Lost)));
            if let CommandState::Runs(running) = std::mem::replace(&mut self.state, nothing) {
                self.state = CommandState::Ended(running.wait().map_err(Arc::new));
            }
        }
    }

    const fn runs(&self) -> bool {
        matches!(self.state, CommandState::Runs(_))
    }

    fn snapshot(&self) -> Result<BackgroundProcess, HandleError> {
        let (stdout, mut stderr, ended) = match &self.state {
            CommandState::Runs(running) => {
                let (stdout, stderr) = running.output();
                (stdout, stderr, None)
            }
            CommandState::Ended(Ok(outcome)) => {
                (outcome.stdout.clone(), outcome.stderr.clone(), Some(outcome.status))
            }
            // Of a command that goes on this is no failure of ours to run it.
            CommandState::Ended(Err(error)) => {
                return Err(HandleError {
                    kind: ErrorClass::Transient,
                    ..HandleError::from_error(&**error)
                });
            }
        };
        if let Some(note) = &self.note {
            note_end(&mut stderr, note);
        }
        let label = self.words.label();
        let command = self.line.clone();
        Ok(BackgroundProcess { id: self.id, command, ended, stdout, stderr, label })
    }
}

impl CommandTable {
    fn notice_ends(&mut self) {
        self.commands.iter_mut().for_each(BackgroundCommand::notice_end);
    }

    fn end_all(&mut self, why: &str) {
        for command in &mut self.commands {
            if let CommandState::Runs(running) = &command.state {
                running.kill();
                command.note = Some(why.to_owned());
            }
        }
    }

    fn running(&self) -> usize {
        self.commands.iter().filter(|command| command.runs()).count()
    }

    /// Keeps one more, and forgets what ended first where there is no room.
    fn insert(&mut self, line: &str, words: InputSources, running: RunHandle) -> u32 {
        let ended = self.commands.iter().position(|command| !command.runs());
        if let (true, Some(place)) = (self.commands.len() >= KNOWN_MAX, ended) {
            self.commands.remove(place);
        }
        self.last += 1;
        let id = self.last;
        let line = line.to_owned();
        let state = CommandState::Runs(running);
        self.commands.push(BackgroundCommand { id, line, words, state, note: None });
        id
    }
}

impl Background {
    /// The sandbox that is open, if something still goes on in it; from now on on this
    /// behalf too.
    pub(super) async fn join_sandbox(&self, behalf: CallProvenance) -> Option<SharedSandbox> {
        let mut open = self.open.lock().await;
        let mut known = self.known.lock().await;
        known.notice_ends();
        if known.running() == 0 || open.as_ref().is_some_and(|open| open.place.session.is_over()) {
            close(&mut open);
        }
        let place = open.as_ref().map(|open| open.place.clone())?;
        if let Some(gate) = &place.words.egress_gate {
            gate.join(behalf);
        }
        Some(place)
    }

    /// The sandbox that is open.
    pub(super) async fn here(&self) -> Option<SharedSandbox> {
        let open = self.open.lock().await;
        let place = open.as_ref().map(|open| open.place.clone());
        place.filter(|place| !place.session.is_over())
    }

    /// Takes a sandbox that was just opened, with its way out.
    pub(super) async fn adopt_sandbox(
        &self,
        session: Session,
        way: Option<(StdListener, Arc<EgressGate>)>,
        proxy: &Proxy,
        reserve: DiskReserve,
    ) -> Result<SharedSandbox, HandleError> {
        let mut serving = JoinSet::new();
        let gate = way.as_ref().map(|(_, gate)| Arc::clone(gate));
        if let Some((listener, gate)) = way {
            let listener = TcpListener::from_std(listener)
                .map_err(|_| broken("the way out of a command broke down"))?;
            let proxy = proxy.clone();
            let never = std::future::pending();
            serving.spawn(async move { proxy.serve(listener, gate, never).await });
        }
        serving.spawn(close_when_idle(Arc::clone(&self.open), Arc::clone(&self.known), reserve));
        let words = InputSources { egress_gate: gate, visited: Arc::default() };
        let place = SharedSandbox { session: Arc::new(session), words };
        *self.open.lock().await = Some(OpenSandbox { place: place.clone(), _serving: serving });
        Ok(place)
    }

    /// Checks that there is room for one more process.
    pub(super) async fn has_room(&self) -> Result<(), HandleError> {
        let mut known = self.known.lock().await;
        known.notice_ends();
        if known.running() < RUNNING_MAX {
            return Ok(());
        }
        let message = format!("{RUNNING_MAX} processes go on already");
        let hint = Some("End one with stop_process.".to_owned());
        Err(HandleError { kind: ErrorClass::User, message, hint })
    }

    /// Keeps what goes on from now on; its number.
    pub(super) async fn register(
        &self,
        line: &str,
        running: RunHandle,
        words: InputSources,
    ) -> u32 {
        self.known.lock().await.insert(line, words, running)
    }

    /// Returns the commands that go on, each once, in the order of their starts.
    pub(super) async fn running_commands(&self) -> Vec<String> {
        let mut known = self.known.lock().await;
        known.notice_ends();
        let mut lines: Vec<String> = Vec::new();
        for command in known.commands.iter().filter(|command| command.runs()) {
            if !lines.contains(&command.line) {
                lines.push(command.line.clone());
            }
        }
        lines
    }

    pub(super) async fn all(&self) -> Result<Vec<BackgroundProcess>, HandleError> {
        let mut known = self.known.lock().await;
        known.notice_ends();
        known.commands.iter().map(BackgroundCommand::snapshot).collect()
    }

    /// One of them, after so long or at its end.
    pub(super) async fn wait_for(
        &self,
        id: u32,
        wait: Span,
        end: bool,
    ) -> Result<BackgroundProcess, HandleError> {
        let mut left = wait.to_std();
        loop {
            let mut known = self.known.lock().await;
            known.notice_ends();
            let command = known.commands.iter().find(|command| command.id == id);
            let Some(command) = command else {
                let message = format!("there is no process {id}");
                let hint = "read_process without a number lists those that there are; all end \
                            when the automaton restarts.";
                return Err(HandleError {
                    kind: ErrorClass::User,
                    message,
                    hint: Some(hint.to_owned()),
                });
            };
            match &command.state {
                CommandState::Runs(running) if end => running.kill(),
                CommandState::Runs(_) | CommandState::Ended(_) => {}
            }
            if !command.runs() || left.is_zero() {
                return command.snapshot();
            }
            drop(known);
            let pause = left.min(LOOK);
            sleep(pause).await;
            left -= pause;
        }
    }
}
