//! `alerts`: what is wrong, and what was.
//!
//! It only looks, also while the automaton lives.

use automaton_core::alert::{Alert, Severity};
use automaton_core::time::{Clock, SystemClock, Timestamp};
use serde::Serialize;

use super::Context;
use crate::error::Failure;
use crate::ui::text::plain;

/// An alert as `--json` has it.
#[derive(Serialize)]
struct Shown<'a> {
    active: bool,
    severity: Severity,
    #[serde(flatten)]
    alert: &'a Alert,
}

/// Lists the alerts that hold, then those that are over, newest first.
pub(crate) fn run(context: &Context, lines: u32) -> Result<(), Failure> {
    let (.., reader) = context.record()?;
    let now = SystemClock.now();
    let alerts = reader.alerts(lines)?;
    let shown: Vec<Shown<'_>> = alerts
        .iter()
        .map(|alert| Shown { active: alert.is_active(), severity: alert.rule.severity(), alert })
        .collect();
    context.format.answer(&shown, || match alerts.as_slice() {
        [] => "nothing is wrong, and nothing was".to_owned(),
        alerts => alerts.iter().map(|alert| words(alert, now)).collect::<Vec<_>>().join("\n"),
    })
}

fn words(alert: &Alert, now: Timestamp) -> String {
    let Alert { rule, message, since, times, cleared_at, .. } = alert;
    let (rule, severity, message) = (rule.name(), rule.severity().name(), plain(message));
    match cleared_at {
        None => format!(
            "ACTIVE   {severity:<8}  {rule}: {message} (since {since}, for {}, told {times}×)",
            now.since(*since)
        ),
        Some(at) => {
            format!("over     {severity:<8}  {rule}: {message} ({since}, for {})", at.since(*since))
        }
    }
}
