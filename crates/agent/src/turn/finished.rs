//! Pure: the event of a call that has ended.

use automaton_core::event::Event;
use automaton_core::id::TurnId;
use automaton_core::record::{CallStatus, FinishedCall};
use automaton_core::trust::Labelled;
use automaton_tools::result::cap;

/// Characters of arguments and results that events show.
pub(super) const SHOWN_CHARS_MAX: usize = 2000;

/// Characters of a tool's name that events show, which a model may write as it likes.
const NAME_CHARS_MAX: usize = 64;

/// Returns the event of a call that has ended; nothing, where it was never started.
pub(super) fn finished_event(turn: TurnId, call: &FinishedCall) -> Option<Event> {
    if call.status == CallStatus::NotStarted {
        return None;
    }
    let text = cap(&call.result.text, SHOWN_CHARS_MAX);
    Some(Event::CallFinished {
        turn,
        call: call.id,
        tool: call.tool.chars().take(NAME_CHARS_MAX).collect(),
        status: call.status,
        result: Labelled { text, ..call.result.clone() },
        duration_ms: call.duration.as_millis(),
    })
}
