//! The memory: what the automaton stores and looks up by itself.
//!
//! What is stored has the label of what the model's words are worth in its turn; a model must
//! never be able to choose that label, nor take away what somebody more trusted said.

mod category;
pub(crate) mod complete_goal;
pub(crate) mod forget;
pub(crate) mod note_about_agent;
mod percent;
pub(crate) mod recall_facts;
pub(crate) mod recall_procedure;
pub(crate) mod remember_fact;
pub(crate) mod review_memory;
pub(crate) mod save_procedure;
pub(crate) mod set_goal;

use automaton_core::intent::Intent;
use automaton_core::memory::{MemoryId, MemoryItem, MemoryTier, NewMemory, StoreOutcome};
use automaton_core::trust::{Label, Labelled};

use crate::context::ToolContext;
use crate::error::ToolError;

/// The source of what the model stores, where its call names none.
const SOURCE: &str = "agent";

/// Something to remember in the words of this turn.
fn new_memory(
    context: &ToolContext<'_>,
    (tier, kind, name): (MemoryTier, &str, &str),
    text: String,
    strength: u8,
) -> NewMemory {
    let turn = Some(context.provenance.turn);
    let kind = kind.to_owned();
    let name = name.to_owned();
    let body = Labelled::new(context.voice, SOURCE, text);
    NewMemory { tier, kind, name, body, strength, turn, lasts: None }
}

/// Stores it.
async fn store(context: &ToolContext<'_>, memory: NewMemory) -> Result<StoreOutcome, ToolError> {
    let key = memory.name.clone();
    let stored = context.memory.remember(memory).await;
    stored.map_err(|source| ToolError::Remember { key, source })
}

/// Describes the outcome.
const fn describe(outcome: StoreOutcome) -> &'static str {
    match outcome {
        StoreOutcome::New(_) => "new",
        StoreOutcome::Superseded(_) => "in the place of an older one, which is kept",
        StoreOutcome::Known(_) => "known already",
        StoreOutcome::Beside(_) => {
            "beside what somebody more trusted said under this name, which holds"
        }
    }
}

/// The intent of storing so much; a name alone is something, too.
fn stores(category: &str, key: &str, bytes: usize) -> Vec<Intent> {
    let category = category.to_owned();
    let key = key.to_owned();
    vec![Intent::Remember { category, key, bytes: (bytes as u64).max(1) }]
}

/// The item with this id, where the words of this turn may change it: what is worth more than
/// they are stays, and so does what the creator said.
async fn changeable(context: &ToolContext<'_>, id: &str) -> Result<MemoryItem, ToolError> {
    let refused = |why| ToolError::MemoryChange { id: id.to_owned(), why };
    let Ok(number) = id.trim().parse::<MemoryId>() else {
        return Err(refused("an id is an m and a number"));
    };
    let found = context.memory.item(number).await.map_err(ToolError::Recall)?;
    let found = found.filter(|item| item.valid_to.is_none());
    let item = found.ok_or_else(|| refused("there is no such memory"))?;
    if item.body.label == Label::Creator || item.kind == "creator" {
        return Err(refused("it is the creator's"));
    }
    if item.body.label < context.voice {
        return Err(refused("this turn has read text of others, which may not take it away"));
    }
    Ok(item)
}
