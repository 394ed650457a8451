//! One wake cycle: turns until there is a reason to stop.
//!
//! Every stop has a stated reason, in the record and in the next prompt. A
//! failed turn keeps what it was told, and its messages go back to the inbox;
//! the next attempt waits longer each time. A cycle must never end without
//! being closed in the store.

use automaton_core::error::{Classified, chain};
use automaton_core::event::Event;
use automaton_core::id::{SessionId, TurnId};
use automaton_core::record::{Sleep, StopReason, WakeCause};
use automaton_core::state::AgentState;
use automaton_core::time::{DAY, Span};
use automaton_core::trust::Label;
use automaton_policy::budget::OverBudget;

use crate::error::AgentError;
use crate::governor::{Governor, Next, Stop};
use crate::money;
use crate::survival;
use crate::tasks::ending;
use crate::treasury::Moment;
use crate::turn::{self, Body, Claim, Failure, Finished, TurnError, Wake};
use crate::wake::told;

/// How a cycle ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CycleEnd {
    /// Turns that were committed.
    pub(crate) turns: u32,
    /// How many messages the next turn may claim.
    pub(crate) claim: Claim,
}

/// What the next turn of a cycle begins with.
struct Upcoming {
    wake: Wake,
    /// Turns that this start may still commit.
    left: Option<u32>,
}

/// Runs one cycle.
pub(crate) async fn run(
    body: &Body,
    causes: Vec<WakeCause>,
    left: Option<u32>,
    claim: Claim,
) -> Result<CycleEnd, AgentError> {
    let session = open(body, &causes).await?;
    let mut governor = Governor::new(body.settings.limits);
    let told = told(body, &causes).await?;
    let heard = Label::Creator;
    let (wake_turn, nudge, balances, vitals) = (1, None, None, body.deps.store.vitals().await?);
    let (thinker, tier) = (vitals.thinker(), vitals.tier());
    let wake = Wake { session, told, wake_turn, nudge, claim, heard, balances, thinker, tier };
    let mut upcoming = Upcoming { wake, left };
    let (stop, note) = loop {
        let over = *body.shutdown.borrow() || upcoming.left == Some(0);
        if over || money::lost_enough(body).await?.is_some() {
            break (None, None);
        }
        if let Some(used_up) = money::thought_enough(body, upcoming.wake.thinker).await? {
            let stop = Stop { reason: StopReason::Envelope, sleep: Some(used_up.rest) };
            break (Some(stop), Some(used_up.to_string()));
        }
        if let Some(balances) = money::look(body, Moment::Turn).await {
            let vitals = survival::note(&body.deps, &balances).await?;
            money::follow(&body.deps, &balances, vitals.as_ref()).await?;
            upcoming.wake.balances = Some(balances);
        }
        let vitals = body.deps.store.vitals().await?;
        (upcoming.wake.thinker, upcoming.wake.tier) = (vitals.thinker(), vitals.tier());
        if survival::cannot_pay(&body.deps, &vitals) {
            break (Some(Stop { reason: StopReason::Broke, sleep: None }), None);
        }
        let left_in_wake = body.settings.limits.turns_per_wake.saturating_sub(governor.turns());
        body.handles.life.set_turns_left(left_in_wake);
        match turn::run_turn(body, upcoming.wake.clone()).await? {
            Ok(finished) => {
                if let Some(end) = after_turn(&mut governor, &mut upcoming, finished) {
                    break end;
                }
            }
            Err(Failure { error: TurnError::Shutdown, .. }) => break (None, None),
            Err(Failure { turn, error: TurnError::OverBudget(over) }) => {
                break without_budget(body, turn, over).await?;
            }
            Err(failure) => {
                if failure.error.is_broke() {
                    survival::refused(&body.deps).await?;
                }
                let claim = &mut upcoming.wake.claim;
                if failure.error.is_rejection() {
                    *claim = claim.after_rejection();
                }
                if let Some(stop) = after_failure(body, &mut governor, failure).await {
                    break (Some(stop), None);
                }
            }
        }
    };
    let (stop, note) = match money::lost_enough(body).await? {
        // However the cycle ended, the next one is not its own to begin.
        Some(lost) => (Some(Stop { reason: StopReason::StopLoss, sleep: None }), Some(lost)),
        None => (stop, note),
    };
    let turns = governor.turns();
    let unstopped =
        if upcoming.left == Some(0) { StopReason::TurnsUsed } else { StopReason::Shutdown };
    close(body, session, Close { turns, stop, unstopped, note }).await?;
    Ok(CycleEnd { turns, claim: upcoming.wake.claim })
}

/// Opens the session and brings the state to running.
async fn open(body: &Body, causes: &[WakeCause]) -> Result<SessionId, AgentError> {
    let store = &body.deps.store;
    let before = store.life().await?.state;
    let session = store.open_session(causes.to_vec()).await?;
    tell_change(body, before, AgentState::Waking, "a wake cycle begins");
    body.deps.emit(Event::WakeStarted { session, causes: causes.to_vec() });
    let (from, to) = (AgentState::Waking, AgentState::Running);
    store.transition(from, to, "awake").await?;
    tell_change(body, from, to, "awake");
    Ok(session)
}

fn tell_change(body: &Body, from: AgentState, to: AgentState, reason: &str) {
    if from != to {
        body.deps.emit(Event::StateChanged { from, to, reason: reason.to_owned() });
    }
}

/// Prepares the next turn, or gives the end of the cycle.
fn after_turn(
    governor: &mut Governor,
    upcoming: &mut Upcoming,
    finished: Finished,
) -> Option<(Option<Stop>, Option<String>)> {
    upcoming.left = upcoming.left.map(|left| left.saturating_sub(1));
    upcoming.wake.claim = upcoming.wake.claim.after_answer(finished.summary.answered);
    upcoming.wake.heard = finished.heard;
    match governor.after_turn(&finished.summary) {
        Next::Stop(stop) => Some((Some(stop), finished.note)),
        Next::Continue { nudge } => {
            let wake = &mut upcoming.wake;
            wake.told.clear();
            wake.nudge = nudge;
            wake.wake_turn = governor.turns() + 1;
            None
        }
    }
}

/// Tells that an answer is not affordable, and when it will be.
async fn without_budget(
    body: &Body,
    turn: Option<TurnId>,
    over: OverBudget,
) -> Result<(Option<Stop>, Option<String>), AgentError> {
    let room = body.deps.store.thinking_room(over.room()).await?;
    let sleep = room.map_or(DAY, |room| room.since(body.deps.mint.now()).min(DAY));
    let (failure, reason) = (TurnError::OverBudget(over), StopReason::Budget);
    let (kind, error) = (failure.kind(), failure.to_string());
    if let Some(turn) = turn {
        let retry_ms = Some(sleep.as_millis());
        body.deps.emit(Event::TurnFailed { turn, kind, error, retry_ms });
    }
    Ok((Some(Stop { reason, sleep: Some(sleep) }), Some(failure.to_string())))
}

/// Tells of a failed turn and waits; gives the end when there were too many.
async fn after_failure(body: &Body, governor: &mut Governor, failure: Failure) -> Option<Stop> {
    let verdict = governor.after_error();
    let retry_ms = verdict.as_ref().ok().map(|wait| wait.as_millis());
    let (kind, error) = (failure.error.kind(), chain(&failure.error).to_string());
    match failure.turn {
        Some(turn) => body.deps.emit(Event::TurnFailed { turn, kind, error, retry_ms }),
        None => body.deps.emit(Event::ErrorReported { kind, error, hint: failure.error.hint() }),
    }
    match verdict {
        Ok(wait) => {
            rest(body, wait).await;
            None
        }
        Err(stop) => Some(stop),
    }
}

/// Waits, unless the process should end.
async fn rest(body: &Body, span: Span) {
    tokio::select! {
        biased;
        // Both arms are cancel-safe.
        () = ending(&body.shutdown) => {}
        () = tokio::time::sleep(span.to_std()) => {}
    }
}

/// How a session is closed.
struct Close {
    turns: u32,
    stop: Option<Stop>,
    /// The reason where there is no stop and the process ends.
    unstopped: StopReason,
    note: Option<String>,
}

/// Closes the session; without a stop the process ends and nothing sleeps.
async fn close(body: &Body, session: SessionId, close: Close) -> Result<(), AgentError> {
    let Close { turns, stop, unstopped, note } = close;
    let now = body.deps.mint.now();
    let reason = stop.map_or(unstopped, |stop| stop.reason);
    let in_a_row = body.deps.store.in_a_row(reason).await?;
    let sleep = stop.map(|stop| {
        let until = stop.after(in_a_row).sleep.map(|span| now.after(span));
        Sleep { since: now, until, reason }
    });
    let (to, why) = match (reason, &note) {
        (StopReason::StopLoss, Some(lost)) => (AgentState::Hibernating, lost.clone()),
        _ => (AgentState::Sleeping, reason.sentence().to_owned()),
    };
    let store = &body.deps.store;
    let from = store.life().await?.state;
    store.close_session(session, reason, sleep, note).await?;
    body.deps.emit(Event::WakeEnded { session, reason, turns });
    if sleep.is_some() {
        tell_change(body, from, to, &why);
    }
    Ok(())
}
