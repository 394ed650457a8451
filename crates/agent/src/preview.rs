//! The prompt that the model would see now, for a command that only reads.
//!
//! It shows what a turn would be told if it began at this moment. Nothing is
//! claimed, consumed or written.

use std::sync::Arc;

use automaton_core::id::{IdGenerator, TurnId};
use automaton_core::record::{TurnInput, WakeCause, WakeSource};
use automaton_core::soul::Soul;
use automaton_core::state::AgentState;
use automaton_core::time::Timestamp;
use automaton_core::tool::{ToolName, ToolSpec};
use automaton_core::trust::Labelled;
use automaton_core::vitals::Vitals;
use automaton_inference::{Embedder, ModelInfo};
use automaton_memory::shown::ShownMemory;
use automaton_policy::guard::Guard;
use automaton_store::{AutomatonRow, HistoryPosition, OpenMessage, Reader};

use crate::error::AgentError;
use crate::handles::add_meaning;
use crate::prompt::{self, HistoryCache, HistoryDigest, Prompt, PromptMaterial, input_label};
use crate::settings::Settings;
use crate::toolbox::{OfferRules, ToolSet};
use crate::treasury::{Balances, status_sentence};
use crate::turn::{RecallMoment, left_out, memory_query, name_files, recalled, told_tools};
use crate::wake::{cause, compose, slept_because};
use crate::worklog::worklog;

/// Source of a prompt besides messages.
struct PreviewContext<'a> {
    settings: &'a Settings,
    model: &'a ModelInfo,
    tools: Vec<ToolSpec>,
    place: HistoryPosition,
    digest: HistoryDigest,
    memory: Vec<ShownMemory>,
    soul: Soul,
    worklog: Option<Labelled>,
    now: Timestamp,
    turn_id: TurnId,
    turn: u64,
    wake_turns: u32,
    creators: bool,
    balances: Option<Balances>,
    vitals: Option<Vitals>,
    sales: Option<String>,
}

impl PreviewContext<'_> {
    fn material<'b>(
        &'b self,
        history: &'b HistoryCache,
        open: &'b [OpenMessage],
        inputs: &'b [TurnInput],
    ) -> PromptMaterial<'b> {
        PromptMaterial {
            settings: self.settings,
            model: self.model,
            tools: &self.tools,
            history,
            place: self.place,
            digest: &self.digest,
            open,
            memory: &self.memory,
            soul: Some(&self.soul),
            worklog: self.worklog.as_ref(),
            heard: input_label(inputs),
            inputs,
            now: self.now,
            turn_id: self.turn_id,
            turn: self.turn,
            wake_turn: 1,
            wake_turns: self.wake_turns,
            creators: self.creators,
            last: false,
            nudge: None,
            balances: self.balances,
            vitals: self.vitals,
            sales: self.sales.as_deref(),
            per_call: None,
        }
    }
}

/// Content of the next request.
#[derive(Debug, Clone)]
pub struct Preview {
    /// The prompt.
    pub prompt: Prompt,
    /// The tools that go beside it.
    pub tools: Vec<ToolSpec>,
    /// Those of them that may not be called this time.
    pub left_out: Vec<ToolName>,
}

/// Builds the prompt of a turn that would begin now. One that has money is told what was
/// last known of it. What is asked of the memory is compared by this embedder, too.
///
/// # Errors
/// When a table or the workspace cannot be read.
pub async fn preview(
    settings: &Settings,
    reader: &Reader,
    model: &ModelInfo,
    ids: &IdGenerator,
    has_money: bool,
    embedder: Option<&dyn Embedder>,
) -> Result<Preview, AgentError> {
    let life = reader.life()?;
    let mut inputs = inputs_now(reader, &life)?;
    let mut open = reader.open_messages(None)?;
    // The messages that this turn would claim are as good as read.
    open.iter_mut().for_each(|it| it.seen |= inputs.iter().any(|said| said.message == Some(it.id)));
    let mut query = memory_query(&inputs, &prompt::waiting(&open, &inputs));
    add_meaning(embedder, &mut query).await;
    let found = reader.memories(&query)?;
    let place = reader.place()?;
    let moment = RecallMoment {
        label: input_label(&inputs),
        history_since: reader.history_since(place.from)?,
        now: ids.now(),
    };
    let memory = recalled(reader.working_memory()?, &found, &moment);
    let called = reader.pending_wakes()?.iter().any(|(_, cause)| cause.is_creators());
    let creators = called || reader.is_creators_wake()?;
    let vitals = if has_money { Some(reader.vitals()?) } else { None };
    let known =
        |known: Vitals| Balances { at: ids.now(), credits: known.credits, usdc: known.usdc };
    let balances = vitals.map(known);
    let soul = reader.soul()?.and_then(|version| version.soul);
    let set = Arc::new(ToolSet::built_in()?);
    let rules = OfferRules { has_money, network: settings.egress.words() };
    let moment = PreviewContext {
        settings,
        model,
        tools: told_tools(model, &set.available(model, &rules)),
        place,
        digest: HistoryDigest::from_row(reader.digest(None)?.as_ref()),
        memory,
        soul: soul.unwrap_or_else(|| Soul::of_genesis(&settings.genesis)),
        worklog: worklog(&settings.workspace, reader)?,
        now: ids.now(),
        turn_id: ids.id(),
        turn: life.turns + 1,
        wake_turns: settings.limits.turns_of(creators, model),
        creators,
        balances,
        vitals,
        sales: status_sentence(&reader.port_sales()?),
    };
    let mut history = HistoryCache::new(Arc::new(Guard::new()?), set);
    let style = prompt::style_of(settings, model, &history);
    let mut turns = reader.recent_turns(moment.place.from, prompt::TURNS_MAX)?;
    history.retain_from(moment.place.from, style);
    history.add(&turns);
    let head = prompt::head_layers(&moment.material(&history, &open, &inputs));
    let too_long = prompt::too_long(&moment.material(&history, &open, &inputs), &head);
    if !too_long.is_empty() {
        let filed = open.iter_mut().filter(|open| too_long.iter().any(|it| it.id == open.id));
        filed.for_each(|open| open.file = Some(prompt::file_of(open)));
        name_files(&mut inputs, &open);
        turns.iter_mut().for_each(|turn| name_files(&mut turn.inputs, &open));
        history.forget();
        history.retain_from(moment.place.from, style);
        history.add(&turns);
    }
    let prompt = prompt::build(&moment.material(&history, &open, &inputs), head);
    Ok(Preview { prompt, left_out: left_out(model, &history), tools: moment.tools })
}

/// Returns the inputs of a wake at this moment, with the messages that it would answer.
fn inputs_now(reader: &Reader, life: &AutomatonRow) -> Result<Vec<TurnInput>, AgentError> {
    let pending = reader.pending_wakes()?;
    let mut causes: Vec<WakeCause> = pending.into_iter().map(|(_, cause)| cause).collect();
    let waiting = reader.waiting_messages(automaton_core::message::CLAIMED_PER_TURN_MAX)?;
    if life.state == AgentState::Setup {
        causes.insert(0, cause(WakeSource::Birth, ""));
    }
    if causes.is_empty() {
        let source = match life.state {
            _ if !waiting.is_empty() => WakeSource::Inbox,
            AgentState::Sleeping => WakeSource::Timer,
            _ => WakeSource::Recovery,
        };
        causes.push(cause(source, ""));
    }
    let last = reader.last_session()?;
    let slept = last.map(|last| slept_because(last.reason, last.note.as_deref()));
    let told = compose(&causes, slept).into_iter().map(TurnInput::from);
    let messages =
        waiting.into_iter().map(|(id, _, said)| TurnInput { said, message: Some(id), file: None });
    Ok(told.chain(messages).collect())
}
