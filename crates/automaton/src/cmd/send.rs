//! `send`, `wake`, `stop`: what the creator says to the automaton.
//!
//! What is sent is stored before anything else is told of it: who waits for an answer in
//! vain has lost nothing.
//!
//! A running automaton is spoken to over its control socket. Where none runs,
//! `send` and `wake` take the home's lock and store what was said, so that it
//! is there at the next start; two processes never write to one life.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use automaton_core::error::ErrorClass;
use automaton_core::file_text;
use automaton_core::id::{IdGenerator, MessageId, RunId};
use automaton_core::message::CREATOR_MESSAGE_BYTES_MAX;
use automaton_core::record::{SleepState, StopReason, WakeCause, WakeSource};
use automaton_core::soul::{Soul, SoulChange, SoulSource};
use automaton_core::state::AgentState;
use automaton_core::time::{Clock, Span, SystemClock};
use automaton_core::trust::{Label, Labelled};
use automaton_core::wire::control::{ControlRequest, ControlResponse, MemoryDraft};
use automaton_memory::tokens;
use automaton_sandbox::{HOME_INSIDE, process::LockGuard};
use automaton_store::{ChosenModel, OutboxMessage, Reader};
use clap::{Args, ValueHint};
use tokio::task::spawn_blocking;

use super::chat::spoken;
use super::{CommandContext, id_generator, with_store};
use crate::chat_session::{ChatSession, MessageOutcome, PendingMessage, hold};
use crate::control::{self, ANSWER_MAX, ControlError, EventFeed, unexpected};
use crate::descriptor::StopSignals;
use crate::error::CliError;
use crate::home::{self, DATABASE};
use crate::ui::text::plain;
use crate::ui::wrap::hanging;
use crate::ui::{self, Format};
use crate::view::send::{
    AnswerView, AnsweredMessageView, SendOutput, StoppingView, StoredMessageView,
    UnansweredMessageView, WokenView,
};

/// Interval at which a starting automaton is asked again.
const POLL: Duration = Duration::from_millis(100);
/// Characters of the reason of a wake that are kept.
const REASON_CHARS_MAX: usize = 500;
/// Time for which it is asked.
const PATIENCE: Span = Span::from_secs(30);

/// Arguments of `send`.
#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// The message
    #[arg(required_unless_present = "file", value_parser = message)]
    text: Option<String>,
    /// Send what is in a file of UTF-8 text, up to 1 MiB; `-` reads the standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "text")]
    file: Option<PathBuf>,
    /// Show what it does, wait for the answer and print it
    #[arg(long)]
    wait: bool,
    /// Wait no longer than so many seconds
    #[arg(long, value_name = "SECONDS", requires = "wait", value_parser = clap::value_parser!(u32).range(1..))]
    timeout: Option<u32>,
}

/// A message that the inbox takes.
pub(crate) fn message(text: &str) -> Result<String, String> {
    match text.len() {
        _ if text.trim().is_empty() => Err("the message is empty".to_owned()),
        bytes if bytes > CREATOR_MESSAGE_BYTES_MAX => {
            Err(format!("the message has {bytes} bytes, of at most {CREATOR_MESSAGE_BYTES_MAX}"))
        }
        _ => Ok(text.to_owned()),
    }
}

impl SendArgs {
    fn message(&self) -> Result<String, CliError> {
        match (&self.file, &self.text) {
            (Some(path), _) => in_file(path),
            (None, text) => Ok(text.clone().unwrap_or_default()),
        }
    }
}

/// The message in a file.
fn in_file(path: &Path) -> Result<String, CliError> {
    let name = path.display();
    let mut bytes = Vec::new();
    let most = CREATOR_MESSAGE_BYTES_MAX as u64 + 1;
    let read = if path == Path::new("-") {
        io::stdin().lock().take(most).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes))
    };
    read.map_err(|error| CliError::user(format!("cannot read {name}")).because(&error))?;
    let workspace = "or put the file into the automaton's workspace and send its name";
    if bytes.len() > CREATOR_MESSAGE_BYTES_MAX {
        let what = format!("{name} has more than {CREATOR_MESSAGE_BYTES_MAX} bytes");
        return Err(CliError::user(what).hint(format!("send it in parts, {workspace}")));
    }
    let text = file_text::decode(&bytes).map_err(|defect| {
        let what = format!("cannot send {name}");
        let hint = format!("convert it, as with `iconv -t UTF-8`, {workspace}");
        CliError::user(what).because(&defect).hint(hint)
    })?;
    message(text).map_err(|why| CliError::user(format!("{name}: {why}")))
}

/// Sends a message.
pub(crate) fn run(context: &CommandContext, args: &SendArgs) -> Result<(), CliError> {
    let (home, _) = context.inhabited()?;
    let text = args.message()?;
    if args.wait {
        let within = args.timeout.map(|secs| Duration::from_secs(u64::from(secs)));
        return hold(async |signals| wait(context, &home, text, within, signals).await);
    }
    let before = when_read(&home);
    let delivered = deliver(&home, &text, &new_key(&id_generator()))?;
    let (next, file) = delivery_outlook(&home, delivered, &text, before);
    let DeliveryReceipt { message, running } = delivered;
    let view = StoredMessageView { message, running, next: next.clone(), file };
    context.format.answer(&SendOutput::Stored(view), || {
        hanging(&stored(message, &next), context.screen().width())
    })
}

/// Sends a message, and waits for the answer.
async fn wait(
    context: &CommandContext,
    home: &Path,
    text: String,
    within: Option<Duration>,
    signals: StopSignals,
) -> Result<(), CliError> {
    let Ok(feed) = signals.unless(EventFeed::open(home)).await? else {
        return Err(CliError::user("nothing was sent: you left before the automaton answered"));
    };
    let when = when_read(home);
    let Ok(delivered) = signals.unless(deliver_message(home.to_owned(), text)).await? else {
        return Err(CliError::user("you left while the message was being sent")
            .hint("`automaton messages` shows whether it was stored"));
    };
    let delivered = delivered?;
    let message = delivered.message;
    if !delivered.running {
        let why = CliError::user("nobody runs this automaton now, so that nobody answers");
        let hint =
            format!("message {message} is stored; `automaton run` or `automaton up` starts it");
        return unanswered(context, message, why.hint(hint));
    }
    // silent-ok: whether somebody runs it was seen by sending; what it does is shown if it can be.
    let mut talk = ChatSession::begin(context, home, feed.ok(), signals)?;
    let Some(sent) = sent(talk.reader(), message)? else {
        return Err(CliError::new(
            ErrorClass::Internal,
            format!("message {message} is not on record"),
        ));
    };
    let by_eye = context.format == Format::Text;
    if by_eye {
        // The file of one that is too long is told when it is written.
        ui::say(&stored(message, when));
    }
    let aside = |mail: &OutboxMessage| {
        if by_eye {
            let width = context.screen().of_stderr().width();
            ui::say(&spoken("Message to you", &mail.body.text, width));
        }
    };
    match talk.answer_to(sent, within, aside).await? {
        MessageOutcome::Answered(answer) => {
            if by_eye && talk.has_shown(&answer.body.text) {
                return Ok(());
            }
            let file = talk.reader().utterance(message)?.and_then(|sent| sent.file);
            let text = answer.body.text.clone();
            let reply = AnswerView { id: answer.id, text, at: answer.at };
            let view = AnsweredMessageView { message, file, answer: reply };
            context.format.answer(&SendOutput::Answered(view), || plain(&answer.body.text))
        }
        MessageOutcome::Unanswered(why) => unanswered(context, message, why),
    }
}

/// Describes a stored message for its sender.
fn stored(message: MessageId, next: &str) -> String {
    format!("Stored as message {message}: {next}.")
}

/// The end of a wait without an answer.
fn unanswered(context: &CommandContext, message: MessageId, why: CliError) -> Result<(), CliError> {
    if context.format == Format::Json {
        let view = UnansweredMessageView { message, answer: (), reason: why.line() };
        ui::json(&SendOutput::Unanswered(view))?;
    }
    Err(why)
}

/// Delivers a message from within a runtime.
///
/// # Errors
/// As [`deliver`].
pub(crate) async fn deliver_message(
    home: PathBuf,
    text: String,
) -> Result<DeliveryReceipt, CliError> {
    let delivered = spawn_blocking(move || deliver(&home, &text, &new_key(&id_generator()))).await;
    delivered.map_err(|error| CliError::internal("the delivery broke down", &error))?
}

/// The message as it is waited for.
///
/// # Errors
/// When the record cannot be read.
pub(crate) fn sent(
    reader: &Reader,
    message: MessageId,
) -> Result<Option<PendingMessage>, CliError> {
    Ok(reader.utterance(message)?.map(|stored| PendingMessage { id: message, at: stored.at }))
}

/// Returns the next step of a message, in a sentence, and the file that holds it if the model
/// sees only its ends.
fn delivery_outlook(
    home: &Path,
    delivered: DeliveryReceipt,
    text: &str,
    when: &str,
) -> (String, Option<String>) {
    if !delivered.running {
        let next = "nobody runs this automaton now; it reads the message when `automaton run` or \
                    `automaton up` starts it";
        return (next.to_owned(), None);
    }
    let window = match control::ask(home, &ControlRequest::Status) {
        Ok(ControlResponse::Status(live)) => live.context_tokens,
        // silent-ok: the message is stored; how it is shown, `automaton messages` tells later.
        Ok(_) | Err(_) => return (when.to_owned(), None),
    };
    // What is open may take half the window, and an eighth whatever else is in it.
    let (is, is_filed) = match tokens::estimate(text) {
        tokens if tokens <= window / 8 => return (when.to_owned(), None),
        tokens if tokens <= window / 2 => ("may be", false),
        _ => ("is", true),
    };
    let file = format!("{HOME_INSIDE}/.messages/{}.txt", delivered.message);
    let next = format!(
        "{when}. It {is} too long to be shown whole to a model with a window of {window} tokens, \
         which then sees its beginning and end, and reads the rest in {file}, in its workspace"
    );
    (next, is_filed.then_some(file))
}

/// Returns the time at which the automaton of a home reads a message that is sent now, if it
/// runs. Read before sending, since that wakes it.
fn when_read(home: &Path) -> &'static str {
    let found = Reader::open(&home.join(DATABASE)).and_then(|reader| {
        let life = reader.life()?;
        let broke = life.state == AgentState::Dead || reader.vitals()?.is_broke();
        Ok((life.state, life.sleep, broke))
    });
    // silent-ok: of one that is being born there is nothing to read yet.
    found.map_or("it reads it in its first turn", |(state, sleep, broke)| {
        read_time_words(state, sleep, broke)
    })
}

const fn read_time_words(
    state: AgentState,
    sleep: Option<SleepState>,
    broke: bool,
) -> &'static str {
    match (state, sleep) {
        _ if broke => {
            "it has too few credits to think, and reads it when it has more: `automaton fund` gives \
             its wallet USDC, `automaton topup 5` buys credits"
        }
        (AgentState::Hibernating, _) => "it hibernated after its losses; your message ends that",
        (AgentState::Sleeping, Some(SleepState { reason: StopReason::Budget, .. })) => {
            "its budget for thinking was used up: it reads it as soon as there is room again, or \
             after a restart with a larger `treasuryPolicy.maxInferenceDailyCents`"
        }
        (AgentState::Sleeping, _) => "it was asleep and wakes for it",
        (AgentState::Setup, _) => "it reads it in its first turn",
        _ => "it is awake and reads it in its next turn",
    }
}

/// Wakes it.
pub(crate) fn wake(context: &CommandContext, reason: &str) -> Result<(), CliError> {
    let (home, _) = context.inhabited()?;
    let reason = reason.chars().take(REASON_CHARS_MAX).collect();
    match send_or_store(&home, &ControlRequest::Wake { reason })?.0 {
        ControlResponse::Woken => {
            context.format.answer(&WokenView { woken: true }, || "it will wake".to_owned())
        }
        other => Err(unexpected(other)),
    }
}

/// Ends its process.
pub(crate) fn stop(context: &CommandContext) -> Result<(), CliError> {
    let (home, _) = context.inhabited()?;
    match control::ask(&home, &ControlRequest::Stop)? {
        ControlResponse::Stopping => {
            let words = || "it stops after the step it is in".to_owned();
            context.format.answer(&StoppingView { stopping: true }, words)
        }
        other => Err(unexpected(other)),
    }
}

/// A key under which a message is stored once.
pub(crate) fn new_key(ids: &IdGenerator) -> String {
    format!("send:{}", ids.id::<RunId>())
}

/// A message that is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeliveryReceipt {
    pub(crate) message: MessageId,
    /// True if the automaton runs.
    pub(crate) running: bool,
}

/// Delivers a message of the creator, once, however often it has to be tried.
///
/// # Errors
/// When it is refused, or cannot be stored.
pub(crate) fn deliver(home: &Path, text: &str, key: &str) -> Result<DeliveryReceipt, CliError> {
    match send_or_store(home, &ControlRequest::Send { text: text.to_owned(), key: key.to_owned() })?
    {
        (ControlResponse::Sent { message }, running) => Ok(DeliveryReceipt { message, running }),
        (other, _) => Err(unexpected(other)),
    }
}

/// Has a command carried out by the running automaton, or stores it where none
/// runs; and whether one runs. Tried until one of the two succeeds: an automaton that
/// starts, or was just killed, has the lock and does not answer.
pub(super) fn send_or_store(
    home: &Path,
    command: &ControlRequest,
) -> Result<(ControlResponse, bool), CliError> {
    reach_within(home, command, ANSWER_MAX)
}

/// The same, for a command whose answer may take longer.
///
/// # Errors
/// As [`reach`].
pub(super) fn reach_within(
    home: &Path,
    command: &ControlRequest,
    within: Duration,
) -> Result<(ControlResponse, bool), CliError> {
    let begun = SystemClock.now();
    loop {
        let silence = match control::ask_within(home, command, within) {
            Ok(answer) => return Ok((answer, true)),
            Err(silence) => silence,
        };
        if matches!(silence, ControlError::NotRunning)
            && let Ok(Some(lock)) = home::lock_now(home)
        {
            return Ok((store_alone(home, &lock, command)?, false));
        }
        if !silence.may_pass() || SystemClock.now().since(begun) > PATIENCE {
            return Err(match silence {
                ControlError::NotRunning => {
                    CliError::new(ErrorClass::Transient, "the automaton is busy starting")
                        .hint("try again in a moment; `automaton logs` shows what it does")
                }
                lost @ ControlError::Lost(_) => lost.into(),
            });
        }
        std::thread::sleep(POLL);
    }
}

/// Writes to a life that nobody lives. The lock shows that nobody does.
fn store_alone(
    home: &Path,
    _lock: &LockGuard,
    command: &ControlRequest,
) -> Result<ControlResponse, CliError> {
    if !home.join(DATABASE).exists() {
        return Err(CliError::user(format!("the automaton in {} is not born yet", home.display()))
            .hint("start it with `automaton up`, or make it with `automaton init`"));
    }
    let by_creator = |text: &String| Labelled::new(Label::Creator, "creator", text);
    with_store(home, async |store| match command {
        ControlRequest::Send { text, key } => {
            let message = store.receive(by_creator(text), Some(key)).await?;
            Ok(ControlResponse::Sent { message })
        }
        ControlRequest::Wake { reason } => {
            let reason = by_creator(reason);
            store.push_wake(WakeCause { source: WakeSource::Manual, reason }).await?;
            Ok(ControlResponse::Woken)
        }
        ControlRequest::Answer { approval, word, signature } => {
            let creator = home::read(home)?.creator_address;
            let signed = signature.as_deref().map(|signature| (signature, creator.as_deref()));
            let answered = automaton_agent::answer(store, *approval, *word, signed).await?;
            Ok(ControlResponse::Answered { summary: answered.summary.text })
        }
        ControlRequest::Close { message } => {
            Ok(ControlResponse::Closed { was_open: store.close_message(*message).await? })
        }
        ControlRequest::UseModel { model } => {
            let chosen = model.clone().map(|model| ChosenModel { model, by_creator: true });
            store.choose_model(chosen).await?;
            Ok(ControlResponse::ModelChosen { model: model.clone() })
        }
        ControlRequest::Remember { memory } => {
            let outcome = store.remember(MemoryDraft::clone(memory).into()).await?;
            Ok(ControlResponse::Remembered { memory: outcome.id() })
        }
        ControlRequest::Forget { memory } => {
            Ok(ControlResponse::Forgotten { was_there: store.forget(*memory).await? })
        }
        ControlRequest::ChangeSoul { from, soul, reason } => {
            let change = SoulChange {
                soul: Soul::clone(soul),
                from: *from,
                source: SoulSource::Human,
                reason: reason.clone(),
                approved_by: None,
            };
            Ok(ControlResponse::SoulChanged { version: store.change_soul(change).await? })
        }
        ControlRequest::RunTask { task } => {
            automaton_agent::request_task(store, task).await?;
            Ok(ControlResponse::TaskDue)
        }
        ControlRequest::TakeSnapshot | ControlRequest::RestoreWorkspace { .. } => {
            super::workspace::work_alone(home, store, command).await
        }
        ControlRequest::Stop
        | ControlRequest::Status
        | ControlRequest::Models
        | ControlRequest::Head
        | ControlRequest::Follow
        | ControlRequest::TopUp { .. }
        | ControlRequest::Interrupt => Err(ControlError::NotRunning.into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use automaton_core::time::Timestamp;

    #[test]
    fn the_sender_is_told_what_comes_next() {
        let check = |state, reason: Option<StopReason>, broke, words: &str| {
            let sleep =
                reason.map(|reason| SleepState { since: Timestamp::EPOCH, until: None, reason });
            let told = read_time_words(state, sleep, broke);
            assert!(told.contains(words), "{told}");
        };
        check(AgentState::Running, None, false, "awake");
        check(AgentState::Sleeping, Some(StopReason::Asked), false, "wakes for it");
        check(AgentState::Sleeping, Some(StopReason::Budget), false, "maxInferenceDailyCents");
        check(AgentState::Hibernating, None, false, "your message ends that");
        check(AgentState::Sleeping, Some(StopReason::Broke), true, "automaton topup 5");
        check(AgentState::Dead, None, true, "automaton fund");
    }

    #[test]
    fn a_file_is_sent_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("brief.md");
        let sent = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            in_file(&path).map_err(|failure| failure.line())
        };
        let most = "x".repeat(CREATOR_MESSAGE_BYTES_MAX);
        assert_eq!(sent(most.as_bytes()).as_deref(), Ok(most.as_str()));
        assert!(
            sent(format!("{most}x").as_bytes()).unwrap_err().contains("more than 1048576 bytes")
        );
        assert!(sent(b" \n").unwrap_err().contains("empty"));
        assert!(sent(b"abc\xff").unwrap_err().contains("byte 4"));
        assert!(in_file(&folder.path().join("none")).unwrap_err().line().contains("cannot read"));
        assert!(in_file(folder.path()).unwrap_err().line().contains("cannot read"));
    }
}
