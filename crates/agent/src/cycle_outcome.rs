//! The end of a wake cycle: it is closed in the store, and told.
//!
//! No limit ends the creator's work without a message that names the command and the
//! key. One wake sends at most one such message, and wakes that the creator did not cause
//! send one where it is the creator's to mend and the last wake did not end alike.

use automaton_core::event::Event;
use automaton_core::message::MESSAGE_BYTES_MAX;
use automaton_core::record::{SleepState, StopReason};
use automaton_core::state::AgentState;
use automaton_core::stop::{ExhaustedLimit, WakeEnd};
use automaton_core::time::Span;
use automaton_core::trust::{Label, Labelled};
use automaton_store::OpenMessage;

use crate::cycle::{Cycle, tell_change};
use crate::error::AgentError;
use crate::governor::CycleStop;
use crate::turn::{self, AgentContext};
use crate::wake::one_line;

/// Characters of an open message, and of an error, that the creator is shown.
const SHOWN_CHARS_MAX: usize = 80;
const ERROR_CHARS_MAX: usize = 400;

/// Outcome of a cycle. Without a stop the process ends, and nothing sleeps.
#[derive(Debug, Default)]
pub(crate) struct CycleOutcome {
    pub(crate) stop: Option<CycleStop>,
    /// Further note for the next prompt.
    pub(crate) note: Option<String>,
    /// The limit that ended it.
    pub(crate) used_up: Option<ExhaustedLimit>,
    /// Hand-over of the model.
    pub(crate) handed_over: Option<String>,
    /// Failure, for the creator.
    pub(crate) why: Option<String>,
}

impl CycleOutcome {
    pub(crate) fn stop(reason: StopReason, sleep: Option<Span>) -> Self {
        Self { stop: Some(CycleStop { reason, sleep }), ..Self::default() }
    }
}

/// Returns the creator's messages that a turn has read and nobody has answered, oldest first.
pub(crate) async fn open(ctx: &AgentContext) -> Result<Vec<OpenMessage>, AgentError> {
    let open = ctx.deps.store.open_messages().await?;
    Ok(open.into_iter().filter(|message| message.seen).collect())
}

/// Closes the session, after so many turns. `unstopped` is the reason where the process
/// ends.
pub(crate) async fn close(
    cycle: &Cycle<'_>,
    end: CycleOutcome,
    turns: u32,
    unstopped: StopReason,
) -> Result<(), AgentError> {
    let ctx = cycle.ctx;
    let session = cycle.wake.session;
    let store = &ctx.deps.store;
    let reason = end.stop.map_or(unstopped, |stop| stop.reason);
    let end = if reason == StopReason::Interrupted { drop_request(ctx, end).await? } else { end };
    let in_a_row = store.in_a_row(reason).await?;
    let bounds = cycle.bounds();
    let limit = ctx.settings.budgets.ceilings.per_day.filter(|_| bounds.costs);
    let day = cycle.used().await?.spend.day;
    let why = end.why.as_deref().map(|why| one_line(why).chars().take(ERROR_CHARS_MAX).collect());
    let used_up = end.used_up;
    let day = limit.map(|limit| (day, limit));
    let told = WakeEnd { reason, turns, used_up, day, why };
    let sentence = told.to_string();
    tell_creator(cycle, &told, end.handed_over.as_deref(), in_a_row).await?;
    if cycle.wake.creators && ctx.settings.budgets.creators.is_some() {
        store.reset_unattended_usage().await?;
    }
    let now = ctx.deps.ids.now();
    let sleep = end.stop.map(|stop| {
        let until = stop.after(in_a_row).sleep.map(|span| now.after(span));
        SleepState { since: now, until, reason }
    });
    let (to, why) = match (reason, &end.note) {
        (StopReason::StopLoss, Some(lost)) => (AgentState::Hibernating, lost.clone()),
        _ => (AgentState::Sleeping, reason.sentence().to_owned()),
    };
    let from = store.life().await?.state;
    store.close_session(session, reason, sleep, end.note).await?;
    ctx.deps.emit(Event::WakeEnded { session, reason, turns, sentence });
    if sleep.is_some() {
        tell_change(ctx, from, to, &why);
    }
    Ok(())
}

/// Drops what the creator had asked for until the interruption. The creator is told with the
/// end of the wake, and the model once, when it wakes again. A message that no turn has read
/// stays: it is what the automaton wakes for next.
async fn drop_request(ctx: &AgentContext, end: CycleOutcome) -> Result<CycleOutcome, AgentError> {
    let dropped = ctx.deps.store.drop_read_messages().await?;
    if dropped.is_empty() {
        return Ok(end);
    }
    let shown = |text: &str| -> String { one_line(text).chars().take(SHOWN_CHARS_MAX).collect() };
    let texts: Vec<String> = dropped.iter().map(|(_, text)| format!("{:?}", shown(text))).collect();
    let ids: Vec<String> = dropped.iter().map(|(id, _)| id.to_string()).collect();
    let note = format!(
        "It drops what it had asked for and you had not answered ({}): do not go on with that \
         unless it asks again.",
        ids.join(", ")
    );
    Ok(CycleOutcome { why: Some(texts.join(", ")), note: Some(note), ..end })
}

/// Sends the creator the end of a wake, where it is one that the creator should know.
async fn tell_creator(
    cycle: &Cycle<'_>,
    told: &WakeEnd,
    handed_over: Option<&str>,
    in_a_row: u32,
) -> Result<(), AgentError> {
    let ctx = cycle.ctx;
    let creators = cycle.wake.creators;
    let sleeps = !told.is_usual() || told.reason == StopReason::Asked;
    let open = if creators && sleeps { open(ctx).await? } else { Vec::new() };
    let is_news = in_a_row == 0 || (creators && told.reason != StopReason::Errors);
    let is_theirs = if creators { !told.is_usual() } else { told.is_creators_to_mend() };
    if !(is_theirs && is_news) && open.is_empty() {
        return Ok(());
    }
    let mut text = told.to_string();
    for OpenMessage { id, text: asked, .. } in &open {
        let asked: String = one_line(asked).chars().take(SHOWN_CHARS_MAX).collect();
        text += &format!(
            "\nNot answered: {asked:?}. `automaton send` says how to go on, `automaton messages \
             close {id}` closes it."
        );
    }
    let mut label = Label::Own;
    if let Some(words) = handed_over {
        // What it says it may have from what it has read.
        label = label.meet(cycle.wake.heard);
        text += &format!("\n\nIt hands over:\n{}", words.trim());
    }
    text.truncate(text.floor_char_boundary(MESSAGE_BYTES_MAX));
    let words = Labelled::new(label, "runtime", text);
    let message = ctx.deps.store.tell_creator(cycle.wake.session, words.clone()).await?;
    ctx.deps.emit(turn::sent((message, words)));
    Ok(())
}
