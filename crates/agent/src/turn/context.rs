//! Stage 2: the prompt is made of history, memory and inputs.
//!
//! Reading is all that happens here. Facts are recalled by the words of the
//! inputs, and none of a label below the inputs' enters by itself.

use automaton_core::faults::FaultPoint;
use automaton_core::tool::ToolName;
use automaton_core::trust::{Label, Labelled};
use automaton_memory::{Fact, recall};
use automaton_store::FactQuery;

use super::inbox::Claimed;
use super::{Body, TurnError};
use crate::error::AgentError;
use crate::prompt::{self, Material, Prompt};

/// Facts that are looked at for one prompt.
const CANDIDATES_MAX: u32 = 200;

/// Facts that one prompt shows at most.
const FACTS_MAX: usize = 20;

/// Turns whose tools a weak model is not offered again at once: it would call one of
/// them for ever. With eight tools and one call a turn there are always some left.
const LEFT_OUT_TURNS: usize = 5;

/// Characters of the inputs that are used as the query of the memory.
const QUERY_CHARS_MAX: usize = 2000;

/// A turn with its prompt.
#[derive(Debug)]
pub(super) struct Prompted {
    pub(super) claimed: Claimed,
    pub(super) prompt: Prompt,
    /// Tools that a weak model is not offered this time.
    pub(super) left_out: Vec<ToolName>,
}

/// Builds the prompt of a turn.
pub(super) async fn prompt(body: &Body, claimed: Claimed) -> Result<Prompted, TurnError> {
    let store = &body.deps.store;
    let from = store.history_from().await?;
    let mut past = body.past.lock().await;
    let model = body.deps.mind(claimed.wake.thinker).model();
    let next = past.keep(from, prompt::caps_of(&body.settings, model));
    past.add(&store.recent_turns(next, prompt::TURNS_MAX).await?);
    let query = query_of(&claimed.inputs);
    let candidates = store.facts(fact_query(&query)).await?;
    let facts = facts_for(&query, candidates, claimed.label);
    let vitals = if claimed.wake.balances.is_some() { Some(store.vitals().await?) } else { None };
    let prompt = prompt::build(&Material {
        settings: &body.settings,
        model,
        tools: &body.tools,
        past: &past,
        facts: &facts,
        inputs: &claimed.inputs,
        now: body.deps.mint.now(),
        turn_id: claimed.turn,
        turn: claimed.seq,
        wake_turn: claimed.wake.wake_turn,
        nudge: claimed.wake.nudge,
        balances: claimed.wake.balances,
        vitals,
    });
    if let Some(first) = prompt.history_from.filter(|first| *first > from) {
        store.set_history_from(first).await?;
    }
    body.deps.faults.reach(FaultPoint::PromptBuilt);
    let left_out = if model.weak { past.called(LEFT_OUT_TURNS) } else { Vec::new() };
    Ok(Prompted { claimed, prompt, left_out })
}

/// The words by which the memory is asked.
pub(crate) fn query_of(inputs: &[Labelled]) -> String {
    let texts: Vec<&str> = inputs.iter().map(|input| input.text.as_str()).collect();
    texts.join(" ").chars().take(QUERY_CHARS_MAX).collect()
}

/// The facts among which the best are chosen.
pub(crate) fn fact_query(query: &str) -> FactQuery {
    let text = if query.trim().is_empty() { None } else { Some(query.to_owned()) };
    FactQuery { category: None, text, limit: CANDIDATES_MAX }
}

/// The facts that a prompt may show, best first.
pub(crate) fn facts_for(query: &str, found: Vec<automaton_store::Fact>, label: Label) -> Vec<Fact> {
    let wanted = recall::Wanted { limit: FACTS_MAX, least_trusted: label.meet(Label::Own) };
    recall::rank(query, found.into_iter().map(into_memory).collect(), &wanted)
}

/// A row of the memory as the memory crate knows it.
pub(crate) fn into_memory(fact: automaton_store::Fact) -> Fact {
    Fact {
        category: fact.category,
        key: fact.key,
        value: fact.value,
        confidence_percent: fact.confidence_percent,
        updated_at: fact.updated_at,
    }
}

/// Lets the history begin at its newer half, after a model found it too long.
pub(super) async fn forget_half(body: &Body) -> Result<(), AgentError> {
    let store = &body.deps.store;
    let from = store.history_from().await?;
    let turns = store.recent_turns(from, prompt::TURNS_MAX).await?;
    let middle = turns.get(turns.len() / 2).map(|turn| turn.seq).filter(|seq| *seq > from);
    let behind = turns.last().map(|turn| turn.seq + 1);
    if let Some(seq) = middle.or(behind) {
        store.set_history_from(seq).await?;
    }
    Ok(())
}
