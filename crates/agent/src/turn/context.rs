//! Stage 2: the prompt is made of history, memory and inputs.
//!
//! What is remembered is recalled by the words of the inputs, and none of a label below the inputs'
//! enters by itself. What the creator said and has no room goes into a file of the
//! workspace. All that is shown counts as heard: a wake must never be worth more than the
//! least trusted text in its history.

use std::sync::Arc;

use automaton_core::event::Event;
use automaton_core::faults::FaultPoint;
use automaton_core::memory::{MemoryItem, MemoryMatches, MemoryQuery, MemoryTier};
use automaton_core::record::TurnInput;
use automaton_core::tier::SurvivalTier;
use automaton_core::time::Timestamp;
use automaton_core::tool::{ToolName, ToolSpec};
use automaton_core::trust::Label;
use automaton_core::vitals::Vitals;
use automaton_inference::ModelInfo;
use automaton_memory::recall;
use automaton_memory::shown::{ShownMemory, show};
use automaton_store::{DigestRow, HistoryPosition, OpenMessage, Store, StoreError};

use super::AgentContext;
use super::inbox::ClaimedTurn;
use crate::metered::NotAnswered;
use crate::prompt::{self, HistoryCache, HistoryDigest, Prompt, PromptMaterial, input_label};
use crate::survival;
use crate::toolbox::OfferRequest;

/// Items that are looked at for one prompt.
const CANDIDATES_MAX: u32 = 200;

/// Items that one prompt shows at most, besides what is being done.
const ITEMS_MAX: usize = 30;

/// A fact of less confidence enters no prompt by itself, in percent.
const CONFIDENCE_MIN: u8 = 20;

/// Turns whose tools a weak model is not offered again at once: it would call one of
/// them for ever. With eight tools and one call a turn there are always some left.
const LEFT_OUT_TURNS: usize = 5;

/// Characters of the inputs that are used as the query of the memory.
const QUERY_CHARS_MAX: usize = 2000;

/// Request for one model.
#[derive(Debug)]
pub(super) struct PromptedTurn {
    pub(super) prompt: Prompt,
    /// The tools that go beside it.
    pub(super) tools: Arc<[ToolSpec]>,
    /// New beginning of the history, if this prompt moved it.
    pub(super) moved: Option<(HistoryPosition, Option<DigestRow>)>,
}

impl PromptedTurn {
    /// Keeps where the history begins, once its model has answered. What is left out for a model
    /// that stands in with a smaller window is not left out for good.
    pub(super) async fn keep_place(
        store: &Store,
        moved: Option<(HistoryPosition, Option<DigestRow>)>,
        model: &ModelInfo,
        usual: &ModelInfo,
    ) -> Result<(), StoreError> {
        match moved.filter(|_| model.context_tokens >= usual.context_tokens) {
            Some((place, grown)) => store.move_history(place, grown).await,
            None => Ok(()),
        }
    }
}

/// Input of a prompt besides the rendered turns.
struct TurnMaterial {
    model: ModelInfo,
    tools: Arc<[ToolSpec]>,
    place: HistoryPosition,
    digest: HistoryDigest,
    /// The creator's unanswered messages, those of this turn included.
    open: Vec<OpenMessage>,
    memory: Vec<ShownMemory>,
    vitals: Option<Vitals>,
    sales: Option<String>,
    now: Timestamp,
}

impl TurnMaterial {
    fn material<'a>(
        &'a self,
        ctx: &'a AgentContext,
        history: &'a HistoryCache,
        claimed: &'a ClaimedTurn,
    ) -> PromptMaterial<'a> {
        let wake = &claimed.wake;
        PromptMaterial {
            settings: &ctx.settings,
            model: &self.model,
            tools: &self.tools,
            history,
            place: self.place,
            digest: &self.digest,
            open: &self.open,
            memory: &self.memory,
            soul: claimed.started.soul.as_ref().and_then(|version| version.soul.as_ref()),
            worklog: claimed.worklog.as_ref(),
            heard: wake.heard,
            inputs: &claimed.inputs,
            now: self.now,
            turn_id: claimed.turn,
            turn: claimed.seq,
            wake_turn: wake.wake_turn,
            wake_turns: wake.wake_turns,
            creators: wake.creators,
            last: wake.last,
            nudge: wake.nudge.as_deref(),
            balances: wake.balances,
            vitals: self.vitals,
            sales: self.sales.as_deref(),
            per_call: claimed.per_call,
        }
    }
}

/// Builds the prompt of a turn for the model that is to think. Another may be asked with what
/// was read for it.
pub(super) async fn prompt(
    ctx: &AgentContext,
    claimed: &mut ClaimedTurn,
) -> Result<PromptedTurn, NotAnswered> {
    let mut gathered = gather(ctx, claimed);
    let mut history = ctx.history_cache.lock().await;
    history.use_tools(&claimed.tools.set);
    claimed.offered = tools(ctx, &history, claimed);
    gathered.tools = told_tools(&gathered.model, &claimed.offered).into();
    read_on(ctx, &mut history, claimed, gathered.place).await?;
    let head = prompt::head_layers(&gathered.material(ctx, &history, claimed));
    let too_long = prompt::too_long(&gathered.material(ctx, &history, claimed), &head);
    if !too_long.is_empty() {
        for message in &too_long {
            file(ctx, message, &mut gathered.open).await?;
        }
        name_files(&mut claimed.inputs, &gathered.open);
        history.forget();
        read_on(ctx, &mut history, claimed, gathered.place).await?;
    }
    let prompt = prompt::build(&gathered.material(ctx, &history, claimed), head);
    let moved = match prompt.place != gathered.place {
        true => {
            let grown = prompt.grown.as_ref().map(|grown| grown.digest_row(prompt.place));
            let what = "the sum of older turns";
            let grown = grown.transpose().map_err(|source| StoreError::Json { what, source })?;
            Some((prompt.place, grown))
        }
        false => None,
    };
    claimed.wake.heard = claimed.wake.heard.meet(prompt.heard);
    ctx.deps.faults.reach(FaultPoint::PromptBuilt);
    claimed.left_out = left_out(&gathered.model, &history);
    (claimed.started.open, claimed.found) = (gathered.open, gathered.memory);
    Ok(PromptedTurn { prompt, tools: gathered.tools, moved })
}

/// Returns the tools that are offered: where a model stands in that is weaker than the usual one,
/// or a server takes less than its model was believed to, those of a smaller one. A weak one gets
/// those of the family that it has chosen, for as long as it uses them.
fn tools(ctx: &AgentContext, history: &HistoryCache, claimed: &ClaimedTurn) -> Arc<[ToolSpec]> {
    let model = ctx.deps.model(claimed.wake.model);
    let usual = ctx.deps.providers.usual();
    let usual = usual.provider.model();
    let context_tokens = history.window(&model);
    let is_usual = context_tokens >= usual.context_tokens.min(model.context_tokens)
        && model.weak <= usual.weak;
    let chooses = model.weak && usual.weak || model.compact && usual.compact;
    let family = match chooses && claimed.wake.wake_turn > 1 {
        true => history.family(&claimed.started.turns, &claimed.tools.usual),
        false => None,
    };
    let tier = survival::paying_tier(&ctx.deps, &claimed.wake);
    let smaller = ModelInfo { context_tokens, ..model };
    let asked = OfferRequest {
        model: &smaller,
        is_usual,
        family,
        is_critical: tier.is_some_and(SurvivalTier::is_last),
    };
    ctx.tools.offered(&claimed.tools, &asked)
}

/// Returns the tools as a model is told of them: briefly where its prompt is compact. Calls are
/// checked against the whole schemas.
pub(crate) fn told_tools(model: &ModelInfo, offered: &[ToolSpec]) -> Vec<ToolSpec> {
    match model.compact && !model.weak {
        true => offered.iter().map(ToolSpec::brief).collect(),
        false => offered.to_vec(),
    }
}

/// The tools that a model is not offered after these turns.
pub(crate) fn left_out(model: &ModelInfo, history: &HistoryCache) -> Vec<ToolName> {
    if model.weak { history.called(LEFT_OUT_TURNS) } else { Vec::new() }
}

fn gather(ctx: &AgentContext, claimed: &mut ClaimedTurn) -> TurnMaterial {
    let started = &mut claimed.started;
    let open = std::mem::take(&mut started.open);
    if claimed.found.is_empty() {
        let moment = RecallMoment {
            label: claimed.label,
            history_since: started.recall.history_since,
            now: ctx.deps.ids.now(),
        };
        let working = std::mem::take(&mut started.recall.working);
        let matches = ctx.handles.memory.matches(&mut started.recall);
        claimed.found = recalled(working, &matches, &moment);
    }
    let has_money = claimed.wake.balances.is_some();
    TurnMaterial {
        model: ctx.deps.model(claimed.wake.model),
        tools: Arc::clone(&claimed.tools.usual),
        place: started.place,
        digest: HistoryDigest::from_row(started.digest.as_ref()),
        memory: std::mem::take(&mut claimed.found),
        vitals: has_money.then_some(claimed.wake.vitals),
        sales: ctx.deps.treasury.as_ref().and_then(|treasury| treasury.sales_in_words()),
        now: ctx.deps.ids.now(),
        open,
    }
}

/// By what the memory is asked for a turn that answers these inputs.
pub(super) fn recall_for(inputs: &[TurnInput], open: &[OpenMessage]) -> MemoryQuery {
    memory_query(inputs, &prompt::waiting(open, inputs))
}

/// Adds the turns that the history does not have yet; they are read once more where it begins
/// elsewhere than when the turn was opened.
async fn read_on(
    ctx: &AgentContext,
    history: &mut HistoryCache,
    claimed: &ClaimedTurn,
    place: HistoryPosition,
) -> Result<(), NotAnswered> {
    let model = ctx.deps.model(claimed.wake.model);
    let style = prompt::style_of(&ctx.settings, &model, history);
    let next = history.retain_from(place.from, style);
    if next == claimed.started.turns_from {
        history.add(&claimed.started.turns);
    } else {
        history.add(&ctx.deps.store.recent_turns(next, prompt::TURNS_MAX).await?);
    }
    Ok(())
}

/// Writes a message into its file. Where that fails it is tried again at the next turn, and
/// the creator is told.
async fn file(
    ctx: &AgentContext,
    message: &OpenMessage,
    open: &mut [OpenMessage],
) -> Result<(), StoreError> {
    let path = prompt::file_of(message);
    match ctx.handles.workspace.keep_message(message.id, &message.text).await {
        Ok(_) => {
            ctx.deps.store.file_message(message.id, path.clone()).await?;
            ctx.deps.emit(Event::MessageFiled { message: message.id, path: path.clone() });
        }
        Err(error) => ctx.deps.emit(Event::ErrorReported {
            kind: error.kind,
            error: format!("a message is too long for the model, and {path}: {}", error.message),
            hint: error.hint,
        }),
    }
    let filed = open.iter_mut().filter(|open| open.id == message.id);
    filed.for_each(|open| open.file = Some(path.clone()));
    Ok(())
}

/// Names the files of the messages that a turn answers.
pub(crate) fn name_files(inputs: &mut [TurnInput], open: &[OpenMessage]) {
    for input in inputs {
        let message = open.iter().find(|open| input.message == Some(open.id));
        input.file = message.and_then(|open| open.file.clone()).or_else(|| input.file.take());
    }
}

/// By what the memory is asked: the words of what is answered and of what still waits for it,
/// and who says them where that is another agent.
pub(crate) fn memory_query(inputs: &[TurnInput], waiting: &[OpenMessage]) -> MemoryQuery {
    let texts = inputs.iter().filter(|input| input.message.is_some()).map(|input| &input.said);
    let peers = texts.clone().filter(|said| said.label == Label::Peer);
    let peers = peers.map(|said| said.source.as_str());
    let texts = texts.map(|said| said.text.as_str());
    let waits = waiting.iter().map(|open| open.text.as_str());
    let words: Vec<&str> = texts.chain(peers).chain(waits).collect();
    let text: String = words.join(" ").chars().take(QUERY_CHARS_MAX).collect();
    MemoryQuery {
        text: Some(text).filter(|text| !text.trim().is_empty()),
        least_trusted: Some(input_label(inputs).meet(Label::Own)),
        limit: CANDIDATES_MAX,
        ..MemoryQuery::default()
    }
}

/// Time and reader of a recall.
pub(crate) struct RecallMoment {
    /// The least trusted label of what is answered.
    pub(crate) label: Label,
    /// Since when events are in the history.
    pub(crate) history_since: Option<Timestamp>,
    pub(crate) now: Timestamp,
}

/// Selects the memories for a prompt: the working memory, and the best matches, best first.
pub(crate) fn recalled(
    working: Vec<MemoryItem>,
    matches: &MemoryMatches,
    moment: &RecallMoment,
) -> Vec<ShownMemory> {
    let least_trusted = moment.label.meet(Label::Own);
    let wanted = recall::RecallOptions {
        limit: ITEMS_MAX,
        least_trusted,
        strength_min: CONFIDENCE_MIN,
        events_before: moment.history_since,
        now: moment.now,
    };
    let mut items = working;
    items.retain(|item| item.body.label <= least_trusted);
    let mut found = recall::rank(matches, &wanted);
    found.retain(|item| item.tier != MemoryTier::Working);
    let working = items.into_iter().map(ShownMemory::from);
    working.chain(show(found, matches, &wanted)).collect()
}
