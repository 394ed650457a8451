//! `drill life`: the story of a life, from nothing over death to life again, told with
//! its times in some seconds, and what of it was proved.
//!
//! Everything in it is real but its clock, its model and the money. Nobody's home is
//! ever touched.

use std::sync::{Mutex, PoisonError};

use automaton::cmd::CommandContext;
use automaton::error::CliError;
use automaton::ui::Format;
use automaton_core::event::{Event, StampedEvent};
use automaton_core::record::WakeSource;
use automaton_core::state::AgentState;
use automaton_lab::days::story;

use super::DrillResult;
use crate::product;

/// Tells the story, and each thing that was proved.
///
/// # Errors
/// When it does not go on, or cannot be told.
pub(super) fn run_drill(
    context: &CommandContext,
    mut tell: impl FnMut(DrillResult) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let text = context.format == Format::Text;
    let pretty = Mutex::new(context.pretty());
    let listener = move |stamped: &StampedEvent| {
        if text && matters(&stamped.event) {
            // silent-ok: who went away hears no more of the story, which goes on.
            pretty.lock().unwrap_or_else(PoisonError::into_inner).show(stamped).ok();
        }
    };
    for proof in story::run_story(product()?, Box::new(listener))? {
        let story::PromiseCheck { what, held, found } = proof;
        tell(DrillResult { tried: what.to_owned(), held, found })?;
    }
    Ok(())
}

/// Returns true if an event belongs to the story, and not to every day.
fn matters(event: &Event) -> bool {
    match event {
        Event::StateChanged { from, to, .. } => [*from, *to].contains(&AgentState::Dead),
        // It wakes by itself from each sleep.
        Event::WakeStarted { causes, .. } => {
            causes.iter().any(|cause| cause.source != WakeSource::Timer)
        }
        Event::WalletFunded { .. }
        | Event::TopupDemanded { .. }
        | Event::TopupSettled { .. }
        | Event::TopupFailed { .. }
        | Event::TierChanged { .. }
        | Event::BrokeStarted { .. }
        | Event::PleaSent { .. }
        | Event::MessageReceived { .. }
        | Event::MessageSent { .. }
        | Event::TurnFailed { .. }
        | Event::BooksChecked { .. }
        | Event::ErrorReported { .. } => true,
        _ => false,
    }
}
