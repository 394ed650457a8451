//! `send`, `wake`, `stop`: what the creator says to the automaton.
//!
//! A running automaton is spoken to over its control socket. Where none runs,
//! `send` and `wake` take the home's lock and store what was said, so that it
//! is there at the next start; two processes never write to one life.

use std::path::Path;
use std::time::Duration;

use automaton_core::error::Kind;
use automaton_core::id::{MessageId, Mint, RunId};
use automaton_core::message::MESSAGE_BYTES_MAX;
use automaton_core::record::{WakeCause, WakeSource};
use automaton_core::time::{Clock, Span, SystemClock};
use automaton_core::trust::{Label, Labelled};
use automaton_core::wire::control::{Answer, Command};
use automaton_sandbox::process::LockGuard;
use serde_json::json;

use super::{Context, mint, with_store};
use crate::control::{self, Silence, unexpected};
use crate::error::Failure;
use crate::home::{self, DATABASE};

/// How often an automaton is asked again that starts, or is being started
/// again.
const POLL: Duration = Duration::from_millis(100);
/// Characters of the reason of a wake that are kept.
const REASON_CHARS_MAX: usize = 500;
/// How long it is asked in all.
const PATIENCE: Span = Span::from_secs(30);

/// Sends a message.
pub(crate) fn run(context: &Context, text: &str) -> Result<(), Failure> {
    let (home, _) = context.inhabited()?;
    if text.trim().is_empty() || text.len() > MESSAGE_BYTES_MAX {
        let what = format!("a message has 1 to {MESSAGE_BYTES_MAX} bytes, not {}", text.len());
        return Err(Failure::user(what).hint("write more, put it into a file, or send it in parts"));
    }
    let message = deliver(&home, text, &new_key(&mint()))?;
    context.format.answer(&json!({ "message": message }), || format!("stored as message {message}"))
}

/// Wakes it.
pub(crate) fn wake(context: &Context, reason: &str) -> Result<(), Failure> {
    let (home, _) = context.inhabited()?;
    let reason = reason.chars().take(REASON_CHARS_MAX).collect();
    match reach(&home, &Command::Wake { reason })? {
        Answer::Woken => {
            context.format.answer(&json!({ "woken": true }), || "it will wake".to_owned())
        }
        other => Err(unexpected(other)),
    }
}

/// Ends its process.
pub(crate) fn stop(context: &Context) -> Result<(), Failure> {
    let (home, _) = context.inhabited()?;
    match control::ask(&home, &Command::Stop)? {
        Answer::Stopping => {
            let words = || "it stops after the step it is in".to_owned();
            context.format.answer(&json!({ "stopping": true }), words)
        }
        other => Err(unexpected(other)),
    }
}

/// A key under which a message is stored once.
pub(crate) fn new_key(mint: &Mint) -> String {
    format!("send:{}", mint.id::<RunId>())
}

/// Delivers a message of the creator, once, however often it has to be tried.
///
/// # Errors
/// When it is refused, or cannot be stored.
pub(crate) fn deliver(home: &Path, text: &str, key: &str) -> Result<MessageId, Failure> {
    match reach(home, &Command::Send { text: text.to_owned(), key: key.to_owned() })? {
        Answer::Sent { message } => Ok(message),
        other => Err(unexpected(other)),
    }
}

/// Has a command carried out by the running automaton, or stores it where none
/// runs. Tried until one of the two succeeds: an automaton that starts, or was
/// just killed, has the lock and does not answer.
pub(super) fn reach(home: &Path, command: &Command) -> Result<Answer, Failure> {
    let begun = SystemClock.now();
    loop {
        let silence = match control::ask(home, command) {
            Ok(answer) => return Ok(answer),
            Err(silence) => silence,
        };
        if matches!(silence, Silence::NotRunning)
            && let Ok(Some(lock)) = home::lock_now(home)
        {
            return store_alone(home, &lock, command);
        }
        if !silence.may_pass() || SystemClock.now().since(begun) > PATIENCE {
            return Err(match silence {
                Silence::NotRunning => {
                    Failure::new(Kind::Transient, "the automaton is busy starting")
                        .hint("try again in a moment; `automaton logs` shows what it does")
                }
                lost @ Silence::Lost(_) => lost.into(),
            });
        }
        std::thread::sleep(POLL);
    }
}

/// Writes to a life that nobody lives. The lock shows that nobody does.
fn store_alone(home: &Path, _lock: &LockGuard, command: &Command) -> Result<Answer, Failure> {
    if !home.join(DATABASE).exists() {
        return Err(Failure::user(format!("the automaton in {} is not born yet", home.display()))
            .hint("start it with `automaton up`, or make it with `automaton init`"));
    }
    let by_creator = |text: &String| Labelled::new(Label::Creator, "creator", text);
    with_store(home, async |store| match command {
        Command::Send { text, key } => {
            let message = store.receive(by_creator(text), Some(key)).await?;
            Ok(Answer::Sent { message })
        }
        Command::Wake { reason } => {
            let reason = by_creator(reason);
            store.push_wake(WakeCause { source: WakeSource::Manual, reason }).await?;
            Ok(Answer::Woken)
        }
        Command::Answer { approval, word, signature } => {
            let creator = home::read(home)?.creator_address;
            let signed = signature.as_deref().map(|signature| (signature, creator.as_deref()));
            let answered = automaton_agent::answer(store, (*approval, *word), signed).await?;
            Ok(Answer::Answered { summary: answered.summary.text })
        }
        Command::Stop | Command::Status | Command::Head => Err(Silence::NotRunning.into()),
    })
}
