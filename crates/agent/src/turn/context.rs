//! Stage 2: the prompt is made of history, memory and inputs.
//!
//! Reading is all that happens here. Facts are recalled by the words of the
//! inputs, and none of a label below the inputs' enters by itself.

use automaton_core::faults::FaultPoint;
use automaton_core::record::{TurnRecord, tool_name};
use automaton_core::tool::ToolName;
use automaton_core::trust::{Label, Labelled};
use automaton_memory::{Fact, recall};
use automaton_store::FactQuery;

use super::inbox::Claimed;
use super::{Body, TurnError};
use crate::error::AgentError;
use crate::prompt::{self, Material, Prompt};

/// Turns that are read for the history at most.
pub(crate) const HISTORY_TURNS_MAX: u32 = prompt::TURNS_MAX;

/// Facts that are looked at for one prompt.
const CANDIDATES_MAX: u32 = 200;

/// Facts that one prompt shows at most.
const FACTS_MAX: usize = 20;

/// Turns whose tools a weak model is not offered again at once. With eight
/// tools and one call a turn there are always some left.
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
    let turns = store.recent_turns(from, HISTORY_TURNS_MAX).await?;
    let query = query_of(&claimed.inputs);
    let candidates = store.facts(fact_query(&query)).await?;
    let facts = facts_for(&query, candidates, claimed.label);
    let prompt = prompt::build(&Material {
        settings: &body.settings,
        model: body.deps.provider.model(),
        tools: &body.tools,
        turns: &turns,
        facts: &facts,
        inputs: &claimed.inputs,
        now: body.deps.mint.now(),
        turn_id: claimed.turn,
        turn: claimed.seq,
        wake_turn: claimed.wake.wake_turn,
        nudge: claimed.wake.nudge,
        balances: claimed.wake.balances,
    });
    if let Some(first) = prompt.history_from.filter(|first| *first > from) {
        store.set_history_from(first).await?;
    }
    body.deps.faults.reach(FaultPoint::PromptBuilt);
    let left_out =
        if body.deps.provider.model().weak { recently_called(&turns) } else { Vec::new() };
    Ok(Prompted { claimed, prompt, left_out })
}

/// The tools of the newest turns: a weak model would call one of them for ever.
fn recently_called(turns: &[TurnRecord]) -> Vec<ToolName> {
    let newest = turns.iter().rev().take(LEFT_OUT_TURNS);
    let mut called: Vec<ToolName> =
        newest.flat_map(|turn| turn.calls.iter().filter_map(tool_name)).collect();
    called.sort();
    called.dedup();
    called
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
    let turns = store.recent_turns(from, HISTORY_TURNS_MAX).await?;
    let middle = turns.get(turns.len() / 2).map(|turn| turn.seq).filter(|seq| *seq > from);
    let behind = turns.last().map(|turn| turn.seq + 1);
    if let Some(seq) = middle.or(behind) {
        store.set_history_from(seq).await?;
    }
    Ok(())
}
