//! `report_metrics`: keeps a snapshot of what is measured, and raises alerts.
//!
//! A critical alert wakes the automaton once, when it begins. One that could not pay for
//! the thought is not woken: that would spend what the alert warns of. Nothing here may
//! read a balance or count anything by itself; all comes from the record.

use automaton_core::alert::{Alert, Severity, Thresholds};
use automaton_core::event::Event;
use automaton_core::record::WakeSource;
use automaton_core::time::Span;
use futures_util::FutureExt;

use super::{TaskContext, TaskFailure, TaskReport, TaskSpec, always};
use crate::deps::AgentDeps;
use crate::heartbeat::due::Need;
use crate::prompt::prompt_room;
use crate::settings::Settings;
use crate::survival;
use crate::wake::cause;

pub(super) const TASK: TaskSpec = TaskSpec {
    name: "report_metrics",
    need: Need::Other,
    essential: true,
    cron: "*/10 * * * *",
    timeout: Span::from_secs(30),
    max_retries: 1,
    is_available: always,
    run: |ground, _tick| report(ground).boxed(),
};

/// Takes the snapshot, judges the rules and tells of what changed.
async fn report(ground: &TaskContext) -> Result<TaskReport, TaskFailure> {
    let TaskContext { deps, settings, .. } = ground;
    let news = deps.store.judge_alerts(thresholds(deps, settings)).await?;
    let raised: Vec<&Alert> = news.iter().filter(|alert| alert.is_active()).collect();
    for alert in &news {
        deps.emit(alert_event(alert));
    }
    let begins = |alert: &&&Alert| alert.rule.severity() == Severity::Critical && alert.times == 1;
    let wake = match raised.iter().find(begins) {
        Some(_) if survival::is_broke(deps).await? => None,
        Some(alert) => {
            Some(cause(WakeSource::Heartbeat, &format!("Something is wrong: {}.", alert.message)))
        }
        None => None,
    };
    let note = format!("{} alerts raised, {} over", raised.len(), news.len() - raised.len());
    Ok(TaskReport::done(note).waking(wake))
}

/// Returns the limits of the rules. If thinking costs nothing, no reserve is needed.
fn thresholds(deps: &AgentDeps, settings: &Settings) -> Thresholds {
    let room = prompt_room(
        deps.providers.usual().provider.model().context_tokens,
        settings.max_tokens_per_turn,
    );
    Thresholds {
        reserve: survival::payer(deps).map(|treasury| treasury.limits().reserve),
        prompt_room: Some(room),
        inference_per_day: settings.budgets.ceilings.per_day,
        turns_per_wake: Some(settings.limits.turns_per_wake),
    }
}

fn alert_event(alert: &Alert) -> Event {
    let Alert { rule, message, since, times, cleared_at, .. } = alert.clone();
    match cleared_at {
        Some(at) => Event::AlertCleared { rule, message, lasted_ms: at.since(since).as_millis() },
        None => Event::AlertRaised { rule, severity: rule.severity(), message, since, times },
    }
}
