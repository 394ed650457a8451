//! `check_social_inbox`: looks for messages that nobody woke the automaton for.

use automaton_core::record::{SleepInterrupt, WakeSource};
use automaton_core::state::AgentState;
use automaton_core::time::Span;
use futures_util::FutureExt;

use super::{TaskContext, TaskFailure, TaskReport, TaskSpec, TickContext, always};
use crate::heartbeat::due::Need;
use crate::wake::cause;

pub(super) const TASK: TaskSpec = TaskSpec {
    name: "check_social_inbox",
    need: Need::Essential,
    essential: true,
    cron: "*/2 * * * *",
    timeout: Span::from_secs(30),
    max_retries: 1,
    is_available: always,
    run: |ground, tick| inbox(ground, tick).boxed(),
};

async fn inbox(ground: &TaskContext, tick: &TickContext) -> Result<TaskReport, TaskFailure> {
    let store = &ground.deps.store;
    let waiting = store.inbox_counts().await?.received;
    let life = &tick.life;
    // A rest after failures is not cut short by the messages that wait for it.
    let rests = life.sleep.is_some_and(|sleep| sleep.reason.roused_by() > SleepInterrupt::Anything);
    let asleep = life.state == AgentState::Sleeping && !rests;
    let announced = !store.pending_wakes().await?.is_empty();
    let wake = (waiting > 0 && asleep && !announced)
        .then(|| cause(WakeSource::Inbox, "a message was waiting in the inbox"));
    Ok(TaskReport::done(format!("{waiting} messages waiting")).waking(wake))
}
