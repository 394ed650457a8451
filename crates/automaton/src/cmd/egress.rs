//! `egress`: what commands in the sandbox have sent out, and what came of it.
//!
//! It only looks, also while the automaton lives.

use automaton_core::egress::EgressOutcome;
use automaton_core::record::DecisionOutcome;
use automaton_store::EgressRecord;

use super::CommandContext;
use crate::error::CliError;
use crate::ui::text::plain;
use crate::ui::units::size;
use crate::ui::when::WallClock;
use crate::ui::{phrases, table};
use crate::view::alerts::EgressRequestView;

/// Lists the last requests of commands, newest first.
pub(crate) fn run(context: &CommandContext, lines: u32) -> Result<(), CliError> {
    let (.., reader) = context.record()?;
    let requests = reader.egress(lines)?;
    let shown: Vec<EgressRequestView> = requests.iter().map(EgressRequestView::from).collect();
    context.format.answer(&shown, || match requests.as_slice() {
        [] => "No command has sent anything".to_owned(),
        requests => {
            let screen = context.screen();
            let rows: Vec<_> = requests.iter().map(|sent| words(sent, &screen.when)).collect();
            table::list(&rows, screen.width())
        }
    })
}

fn words(request: &EgressRecord, clock: &WallClock) -> [String; 4] {
    let EgressRecord { call, at, method, origin, outcome, code, came, .. } = request;
    let became = match (outcome, came) {
        (DecisionOutcome::Deny | DecisionOutcome::Ask, _) => format!("refused ({code})"),
        (DecisionOutcome::Allow, None) => "sent; what came of it is not known".to_owned(),
        (DecisionOutcome::Allow, Some(EgressOutcome { status, bytes_up, bytes_down, end })) => {
            let status = status.map_or("no answer".to_owned(), |status| status.to_string());
            let up = size(*bytes_up);
            let down = size(*bytes_down);
            let end = phrases::request(*end);
            format!("{status}, {up} sent, {down} received, {end}")
        }
    };
    let asked = format!("{} {}", plain(method), plain(origin));
    [clock.at(*at), asked, became, format!("call {call}")]
}
