//! The outer loop: wake, work, sleep, for as long as the process lives.
//!
//! A start first puts in order what a crash left behind. Sleep is a row, so it
//! survives a restart. Nothing here may wake the automaton without a cause.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use automaton_core::event::Event;
use automaton_core::record::{Sleep, StopReason, WakeCause, WakeSource};
use automaton_core::state::AgentState;
use automaton_core::time::Span;
use automaton_inference::Checker;
use tokio::sync::{Notify, watch};

use crate::control;
use crate::cycle;
use crate::deps::Deps;
use crate::error::AgentError;
use crate::handles::Handles;
use crate::heartbeat;
use crate::money;
use crate::settings::Settings;
use crate::tasks::{Tasks, ending};
use crate::treasury::Moment;
use crate::turn::{self, Body, Claim};
use crate::wake::cause;

/// The longest stretch of sleep between two looks at the wake events, should a
/// bell have been missed and should the clock have jumped.
const LOOK_AT_LEAST_EVERY: Span = Span::from_secs(30);

/// The time between two looks at the balances while it hibernates.
const LOOK_FOR_MONEY_EVERY: Duration = Duration::from_secs(60);

/// How a life, or this part of it, ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Turns that were committed since the start.
    pub turns: u32,
    /// Why it ended.
    pub reason: EndReason,
}

/// Why the process ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// The wanted number of turns is committed.
    TurnsUsed,
    /// The supervisor asked for it.
    Shutdown,
    /// The creator asked for it.
    Stopped,
}

/// What background tasks and the outer loop share.
#[derive(Clone)]
pub(crate) struct Bells {
    /// Rings when there may be a reason to wake.
    pub(crate) wake: Arc<Notify>,
    /// Becomes true when the process should end.
    pub(crate) end: watch::Sender<bool>,
    /// Whether it was the creator who asked for the end.
    pub(crate) stopped: Arc<AtomicBool>,
}

/// Lives until the turns are used up, or until somebody asks for the end.
///
/// # Errors
/// When a table, the workspace or the control socket cannot be used, or a task
/// that must not end has ended.
pub async fn live(
    settings: Settings,
    deps: Deps,
    shutdown: watch::Receiver<bool>,
) -> Result<Ended, AgentError> {
    let (end, ending) = watch::channel(false);
    let bells = Bells { wake: Arc::new(Notify::new()), end, stopped: Arc::default() };
    let tools = money::offered(deps.provider.model(), deps.treasury.as_ref());
    let body = Body {
        handles: Handles::new(&settings, &deps, tools.len(), ending.clone())?,
        checker: Checker::new(&tools).map_err(AgentError::Tools)?,
        tools,
        settings,
        deps,
        shutdown: ending,
    };
    let recovered = recover(&body).await?;
    let mut tasks = Tasks::default();
    control::start(&body, &bells, &mut tasks)?;
    heartbeat::start(&body, &bells, &mut tasks).await?;
    tasks.start("watch over the supervisor", forward(shutdown, bells.end.clone()));
    let ended = tokio::select! {
        biased;
        // A cancelled life is a process that ends; the store recovers it.
        ended = days(&body, &bells, recovered) => ended,
        name = tasks.ended() => Err(AgentError::TaskEnded(name)),
    };
    tasks.end().await;
    if let (Ok(_), Some(treasury)) = (&ended, &body.deps.treasury) {
        treasury.check_books().await;
    }
    ended
}

/// Puts in order what a crash left behind; how many turns that brought to an end.
async fn recover(body: &Body) -> Result<u32, AgentError> {
    let store = &body.deps.store;
    let recovered = store.recover().await?;
    for message in &recovered.given_up {
        let reason = "the process died each time that it was read".to_owned();
        body.deps.emit(Event::MessageFailed { message: *message, reason });
    }
    let committed = u32::try_from(recovered.committed.len()).unwrap_or(u32::MAX);
    let turns = store.recent_turns(1, committed).await?;
    for turn in turns.into_iter().filter(|turn| recovered.committed.contains(&turn.id)) {
        body.deps.emit(turn::told(turn));
    }
    for turn in store.owed_ingests().await? {
        let nothing = automaton_store::Ingest::default();
        store.ingest_turn(turn, nothing).await?;
    }
    if recovered.session_cut.is_some() {
        body.deps.emit(Event::RecoveryDone {
            unknown: recovered.unknown,
            not_started: recovered.not_started,
            returned: recovered.returned,
        });
    }
    Ok(committed)
}

/// Hands the supervisor's wish on.
async fn forward(shutdown: watch::Receiver<bool>, end: watch::Sender<bool>) {
    ending(&shutdown).await;
    end.send_replace(true);
    std::future::pending().await
}

/// One wake cycle after the other.
async fn days(body: &Body, bells: &Bells, recovered: u32) -> Result<Ended, AgentError> {
    let (mut turns, mut claim) = (recovered, Claim::default());
    let turns_max = body.settings.pace.turns_max;
    money::look(body, Moment::Start).await;
    loop {
        if turns_max.is_some_and(|max| turns >= max) {
            return Ok(Ended { turns, reason: EndReason::TurnsUsed });
        }
        let Some(causes) = wait_for_causes(body, bells).await? else {
            return Ok(Ended { turns, reason: end_reason(bells) });
        };
        let left = turns_max.map(|max| max.saturating_sub(turns));
        let end = cycle::run(body, causes, left, claim).await?;
        (turns, claim) = (turns.saturating_add(end.turns), end.claim);
    }
}

fn end_reason(bells: &Bells) -> EndReason {
    if bells.stopped.load(Ordering::Acquire) { EndReason::Stopped } else { EndReason::Shutdown }
}

/// Waits until there is a cause to wake; nothing when the process should end.
async fn wait_for_causes(body: &Body, bells: &Bells) -> Result<Option<Vec<WakeCause>>, AgentError> {
    if *body.shutdown.borrow() {
        return Ok(None);
    }
    let life = body.deps.store.life().await?;
    if life.state == AgentState::Hibernating {
        return hibernate(body, bells).await;
    }
    let mut pending = pending(body, life.sleep).await?;
    if life.state == AgentState::Setup {
        pending.insert(0, cause(WakeSource::Birth, "born"));
    }
    // More messages may wait than one turn claims; while it rests they do, too.
    let rests = life.sleep.is_some_and(|sleep| sleep.reason.rests());
    if pending.is_empty() && !rests && waiting(body).await? {
        pending.push(cause(WakeSource::Inbox, "more messages are waiting"));
    }
    if !pending.is_empty() {
        return Ok(Some(pending));
    }
    match (life.state, life.sleep) {
        (AgentState::Sleeping, Some(sleep)) => sleep_through(body, bells, sleep).await,
        (AgentState::Dead, _) => {
            let now = body.deps.mint.now();
            let until = now.after(Span::from_millis(i64::MAX));
            let sleep = Sleep { since: now, until, reason: StopReason::Errors };
            sleep_through(body, bells, sleep).await
        }
        _ => Ok(Some(vec![cause(WakeSource::Recovery, "started again while awake")])),
    }
}

async fn waiting(body: &Body) -> Result<bool, AgentError> {
    Ok(body.deps.store.inbox_counts().await?.received > 0)
}

/// The causes to wake, when there is one that may end this sleep: a rest after
/// failures goes on until something new comes.
async fn pending(body: &Body, sleep: Option<Sleep>) -> Result<Vec<WakeCause>, AgentError> {
    let pending = body.deps.store.pending_wakes().await?;
    let rests = sleep.filter(|sleep| sleep.reason.rests());
    let wakes = rests.is_none_or(|rest| pending.iter().any(|(at, _)| *at > rest.since));
    Ok(pending.into_iter().filter(|_| wakes).map(|(_, cause)| cause).collect())
}

/// Waits for money or the creator: nothing else ends a hibernation, and no restart.
async fn hibernate(body: &Body, bells: &Bells) -> Result<Option<Vec<WakeCause>>, AgentError> {
    let mut told = false;
    loop {
        let now = money::holdings(body).await;
        let Some(hibernation) = body.deps.store.hibernation(now).await? else {
            return Ok(Some(vec![cause(WakeSource::Recovery, "no hibernation is on record")]));
        };
        if let Some(waker) = hibernation.ended_by(now) {
            let mut causes = pending(body, None).await?;
            causes.insert(0, cause(WakeSource::Heartbeat, &waker.to_string()));
            return Ok(Some(causes));
        }
        if !std::mem::replace(&mut told, true) {
            let (since, reason) = (hibernation.since, hibernation.reason);
            body.deps.emit(Event::HibernationStarted { since, reason });
        }
        tokio::select! {
            biased;
            // All arms are cancel-safe: a notify keeps its permit.
            () = ending(&body.shutdown) => return Ok(None),
            () = bells.wake.notified() => {}
            () = tokio::time::sleep(LOOK_FOR_MONEY_EVERY) => {}
        }
    }
}

/// Sleeps until the sleep is over or something wakes the automaton.
async fn sleep_through(
    body: &Body,
    bells: &Bells,
    sleep: Sleep,
) -> Result<Option<Vec<WakeCause>>, AgentError> {
    let began = body.deps.mint.now();
    let planned = sleep.left(began);
    let cap = body.settings.pace.sleep_cap.unwrap_or(planned);
    let until = began.after(planned.min(cap));
    let (planned_ms, reason) = (planned.as_millis(), sleep.reason);
    body.deps.emit(Event::SleepStarted { until: sleep.until, planned_ms, reason });
    let causes = loop {
        let mut causes = pending(body, Some(sleep)).await?;
        if !causes.is_empty() {
            break Some(causes);
        }
        let left = until.since(body.deps.mint.now());
        if left == Span::ZERO {
            causes = pending(body, None).await?;
            causes.insert(0, cause(WakeSource::Timer, "the time of sleep is over"));
            break Some(causes);
        }
        tokio::select! {
            biased;
            // All arms are cancel-safe: a notify keeps its permit.
            () = ending(&body.shutdown) => break None,
            () = bells.wake.notified() => {}
            () = tokio::time::sleep(left.min(LOOK_AT_LEAST_EVERY).to_std()) => {}
        }
    };
    let actual_ms = body.deps.mint.now().since(began).as_millis();
    body.deps.emit(Event::SleepEnded { planned_ms, actual_ms });
    Ok(causes)
}
