//! `egress`: what commands in the sandbox have sent out, and what came of it.
//!
//! It only looks, also while the automaton lives.

use automaton_core::egress::Came;
use automaton_core::record::Outcome;
use automaton_store::EgressRecord;

use super::Context;
use crate::error::Failure;
use crate::ui::text::plain;

/// Lists the last requests of commands, newest first.
pub(crate) fn run(context: &Context, lines: u32) -> Result<(), Failure> {
    let (.., reader) = context.record()?;
    let requests = reader.egress(lines)?;
    context.format.answer(&requests, || match requests.as_slice() {
        [] => "no command has sent anything".to_owned(),
        requests => requests.iter().map(words).collect::<Vec<_>>().join("\n"),
    })
}

fn words(request: &EgressRecord) -> String {
    let EgressRecord { call, at, method, origin, outcome, code, came, .. } = request;
    let became = match (outcome, came) {
        (Outcome::Deny | Outcome::Ask, _) => format!("refused ({code})"),
        (Outcome::Allow, None) => "sent; what came of it is not known".to_owned(),
        (Outcome::Allow, Some(Came { status, bytes_up, bytes_down, end })) => {
            let status = status.map_or("no answer".to_owned(), |status| status.to_string());
            format!("{status}, {bytes_up} bytes up, {bytes_down} down, {}", end.name())
        }
    };
    format!("{at}  {call}  {:<7} {}  {became}", plain(method), plain(origin))
}
