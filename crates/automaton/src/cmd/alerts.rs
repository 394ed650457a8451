//! `alerts`: what is wrong, and what was.
//!
//! It only looks, also while the automaton lives.

use automaton_core::alert::Alert;
use automaton_core::time::{Clock, SystemClock, Timestamp};

use super::CommandContext;
use crate::error::CliError;
use crate::ui::text::plain;
use crate::ui::units::{many, span};
use crate::ui::when::WallClock;
use crate::ui::{phrases, wrap};
use crate::view::alerts::AlertView;

/// Lists the alerts that hold, then those that are over, newest first.
pub(crate) fn run(context: &CommandContext, lines: u32) -> Result<(), CliError> {
    let (.., reader) = context.record()?;
    let now = SystemClock.now();
    let alerts = reader.alerts(lines)?;
    let shown: Vec<AlertView> = alerts.iter().map(AlertView::from).collect();
    context.format.answer(&shown, || match alerts.as_slice() {
        [] => "No alerts".to_owned(),
        alerts => {
            let screen = context.screen();
            let words = |alert| wrap::hanging(&words(alert, &screen.when, now), screen.width());
            let mut told: Vec<String> = alerts.iter().map(words).collect();
            if !alerts.iter().any(Alert::is_active) {
                told.insert(0, "No alerts now. Earlier ones:".to_owned());
            }
            told.join("\n")
        }
    })
}

fn words(alert: &Alert, clock: &WallClock, now: Timestamp) -> String {
    let Alert { rule, message, since, times, cleared_at, .. } = alert;
    let severity = phrases::severity(rule.severity());
    let message = plain(message);
    let rule = phrases::rule(*rule);
    let begun = clock.near(*since, now);
    match cleared_at {
        None => {
            let lasts = span(now.since(*since));
            let times = many(*times, "time");
            format!(
                "NOW ({severity}): {rule}: {message} (since {begun}, for {lasts}, reported {times})"
            )
        }
        Some(at) => {
            let lasted = span(at.since(*since));
            format!("Over ({severity}): {rule}: {message} (from {begun}, for {lasted})")
        }
    }
}
