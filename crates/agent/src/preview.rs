//! The prompt that the model would see now, for a command that only reads.
//!
//! It shows what a turn would be told if it began at this moment. Nothing is
//! claimed, consumed or written.

use std::sync::Arc;

use automaton_core::id::{Mint, TurnId};
use automaton_core::record::{WakeCause, WakeSource};
use automaton_core::state::AgentState;
use automaton_core::trust::Labelled;
use automaton_inference::ModelInfo;
use automaton_policy::guard::Guard;
use automaton_store::Reader;

use crate::error::AgentError;
use crate::money::offered;
use crate::prompt::{self, Material, Past, Prompt, caps_of, input_label};
use crate::settings::Settings;
use crate::treasury::Balances;
use crate::turn::{fact_query, facts_for, query_of};
use crate::wake::{cause, compose, slept_because};

/// Builds the prompt of a turn that would begin now. Balances stand for one that
/// has money.
///
/// # Errors
/// When a table cannot be read.
pub fn preview(
    settings: &Settings,
    reader: &Reader,
    model: &ModelInfo,
    mint: &Mint,
    balances: Option<Balances>,
) -> Result<Prompt, AgentError> {
    let guard = Arc::new(Guard::new()?);
    let life = reader.life()?;
    let from = reader.history_from()?;
    let turns = reader.recent_turns(from, prompt::TURNS_MAX)?;
    let inputs = inputs_now(reader, life.state)?;
    let query = query_of(&inputs);
    let found = reader.facts(&fact_query(&query))?;
    let facts = facts_for(&query, found, input_label(&inputs));
    let turn_id: TurnId = mint.id();
    Ok(prompt::build(&Material {
        settings,
        model,
        tools: &offered(model, balances.as_ref(), &settings.egress),
        past: &Past::of(&turns, caps_of(settings, model), guard),
        facts: &facts,
        inputs: &inputs,
        now: mint.now(),
        turn_id,
        turn: life.turns + 1,
        wake_turn: 1,
        nudge: None,
        balances,
        vitals: None,
    }))
}

/// What a wake at this moment would be told, and the messages it would answer.
fn inputs_now(reader: &Reader, state: AgentState) -> Result<Vec<Labelled>, AgentError> {
    let pending = reader.pending_wakes()?;
    let mut causes: Vec<WakeCause> = pending.into_iter().map(|(_, cause)| cause).collect();
    if causes.is_empty() {
        let source = if state == AgentState::Setup { WakeSource::Birth } else { WakeSource::Timer };
        causes.push(cause(source, ""));
    }
    let last = reader.last_session()?;
    let slept = last.map(|last| slept_because(last.reason, last.note.as_deref()));
    let mut inputs = compose(&causes, slept);
    let most = automaton_core::message::CLAIMED_PER_TURN_MAX;
    let waiting = reader.waiting_messages(most)?;
    inputs.extend(waiting.into_iter().map(|(_, _, body)| body));
    Ok(inputs)
}
