//! Pure: the history as it was rendered, kept from one turn of a process to the next.
//!
//! A committed turn never changes and is rendered the same way for ever, so each is read
//! once, and rendered once whole and, where something of it is long, once with its arguments and once
//! with its results shortened. None must ever be shown under other caps than those that it was rendered
//! with.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use automaton_core::id::TurnId;
use automaton_core::model::ModelId;
use automaton_core::record::{TurnRecord, tool_name};
use automaton_core::tool::{ToolName, ToolSpec};
use automaton_core::trust::Label;
use automaton_inference::{ChatRole, Message, ModelInfo};
use automaton_memory::tokens;
use automaton_policy::guard::Guard;
use automaton_store::{Hash, HistoryPosition, OpenMessage, PromptLayerRow};
use automaton_tools::ToolFamily;
use automaton_tools::result::FrameNonce;

use super::caps::{PromptCaps, TurnSizes};
use super::digest::{HistoryDigest, TurnDigest};
use super::fit::{self, TURNS_MAX, TurnCost};
use super::history::{self, MessageStyle};
use super::prompt_record::layer_row;
use super::status_turns::{self, OmittedTurns, StatusTurn};
use super::{open, transcript};
use crate::toolbox::ToolSet;

/// The part of the room in which a move of the history is taken to be near, and the turns by
/// which the size of the next one is guessed.
const NEAR: u32 = 8;
const NEWEST: usize = 3;

/// Tokens of telling that, with the status.
const TELL_TOKENS: u32 = 120;

/// The newest turn alone is halved so many times at most.
const TIGHTER_MAX: u32 = 8;

/// Turns as the prompt shows them, oldest first.
#[derive(Debug)]
pub(crate) struct HistoryCache {
    guard: Arc<Guard>,
    tools: Arc<ToolSet>,
    /// Style of the rendered turns: the caps, and whether the model is weak.
    style: Option<(PromptCaps, bool)>,
    turns: VecDeque<CachedTurn>,
    newest: Option<TurnRecord>,
    /// By model, the windows of those whose servers took less than that.
    smaller: BTreeMap<ModelId, Smaller>,
}

/// The window of a server that took less than it was believed to.
#[derive(Debug, Clone, Copy)]
struct Smaller {
    tokens: u32,
    /// Number of times that the window was reduced by a quarter, since the server named no
    /// smaller one.
    quarters: u32,
}

/// Most reductions of a window.
const QUARTERS_MAX: u32 = 3;

/// The smallest window that is taken from a server's words, in tokens: with less no prompt
/// says what it has to.
const NAMED_MIN: u32 = 1024;

/// Tokens that a server read of one request, and those from its cache.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ReadTokens {
    model: String,
    prompt: u32,
    cached: u32,
}

impl ReadTokens {
    /// The figures of the server that answered; none where they are estimated.
    fn from_turn(turn: &TurnRecord) -> Option<Self> {
        let usage = turn.usage.as_ref().filter(|usage| !usage.estimated)?;
        let prompt = usage.prompt_tokens;
        let cached = usage.cached_tokens.min(prompt);
        Some(Self { model: usage.model.clone(), prompt, cached })
    }
}

/// The requests over which it is measured how much of one a server has in its cache, and the
/// fewest by which that is known.
const MEASURED_MAX: usize = 16;
const MEASURED_MIN: usize = 4;

#[derive(Debug)]
struct CachedTurn {
    id: TurnId,
    cost: TurnCost,
    read: Option<ReadTokens>,
    tools: Vec<ToolName>,
    /// The status tools that it called, where it did nothing else.
    status_tools: Option<Vec<String>>,
    heard: Label,
    digest: TurnDigest,
    whole: RenderedTurn,
    /// Nothing, where there is nothing to be shortened.
    lean: Option<RenderedTurn>,
    short: Option<RenderedTurn>,
}

/// A turn in one of its ways, and what is kept of its text.
#[derive(Debug)]
struct RenderedTurn {
    messages: Vec<Arc<Message>>,
    row: PromptLayerRow,
}

impl RenderedTurn {
    fn from_messages(messages: Vec<Message>) -> Self {
        let row = layer_row(&transcript(&messages), history::cost(&messages));
        Self { messages: messages.into_iter().map(Arc::new).collect(), row }
    }
}

/// Returns the row of consecutive turns: the hash of their hashes, so that earlier turns need not
/// be read again.
fn joined_row<'a>(turns: impl Iterator<Item = &'a PromptLayerRow>) -> PromptLayerRow {
    let mut hashes = Vec::new();
    let mut chars = 0_u32;
    let mut tokens = 0_u32;
    for row in turns {
        hashes.extend_from_slice(row.sha256.as_bytes());
        chars = chars.saturating_add(row.chars);
        tokens = tokens.saturating_add(row.tokens);
    }
    PromptLayerRow { sha256: Hash::of(&hashes), chars, tokens }
}

/// Content and room of a history.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HistoryRequest<'a> {
    pub(crate) place: HistoryPosition,
    /// The sum of the turns before that place.
    pub(crate) digest: &'a HistoryDigest,
    /// The creator's open messages, oldest first, without those of this turn.
    pub(crate) open: &'a [OpenMessage],
    /// Tokens that there are.
    pub(crate) room: u32,
    /// Tokens that may be used where the newest turn needs no more.
    pub(crate) affordable: u32,
    /// Tokens that open messages may have.
    pub(crate) open_room: u32,
    /// True if the model can do something about a coming move.
    pub(crate) tells: bool,
    /// This turn.
    pub(crate) turn: TurnId,
}

/// Style in which the past is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct HistoryStyle {
    /// The first turn with its results whole, and the first with its arguments whole, too.
    pub(crate) whole_from: u64,
    #[serde(default)]
    pub(crate) arguments_from: u64,
    /// Number of times that the newest turn was halved.
    pub(crate) tighter: u32,
    pub(crate) weak: bool,
    pub(crate) open_room: u32,
    pub(crate) digest_room: u32,
}

/// Decides which of these turns the history leaves out.
fn left_out<'a>(turns: impl Iterator<Item = &'a CachedTurn>, is_weak: bool) -> OmittedTurns {
    let status = |turn: &'a CachedTurn| StatusTurn {
        seq: turn.cost.seq,
        tools: turn.status_tools.as_deref(),
    };
    status_turns::left_out(&turns.map(status).collect::<Vec<_>>(), is_weak)
}

/// The past as one prompt shows it.
#[derive(Debug)]
pub(crate) struct RenderedHistory {
    pub(crate) place: HistoryPosition,
    /// True if the model must be told now that older turns will be shortened or cut.
    pub(crate) soon: bool,
    /// The sum of the older turns, where it has grown.
    pub(crate) grown: Option<HistoryDigest>,
    pub(crate) how: HistoryStyle,
    pub(crate) from: Option<u64>,
    pub(crate) open: String,
    pub(crate) digest: String,
    pub(crate) messages: Vec<Arc<Message>>,
    /// Stored row of these.
    pub(crate) row: PromptLayerRow,
    /// The least trusted label of what is shown.
    pub(crate) heard: Label,
}

/// Lowest label of the shown texts.
struct BeforeHistory<'a> {
    open: String,
    digest: String,
    /// The least trusted label of what was summed up.
    heard: Label,
    turns: Vec<&'a CachedTurn>,
}

impl CachedTurn {
    /// In the way in which a history of this style has it.
    fn in_style(&self, how: &HistoryStyle) -> &RenderedTurn {
        let shortened = match self.cost.seq {
            seq if seq < how.whole_from => self.short.as_ref(),
            seq if seq < how.arguments_from => self.lean.as_ref(),
            _ => None,
        };
        shortened.unwrap_or(&self.whole)
    }
}

impl HistoryCache {
    /// Begins without turns. The guard looks at all that others wrote in them, and the tools say
    /// how their calls are shown.
    pub(crate) const fn new(guard: Arc<Guard>, tools: Arc<ToolSet>) -> Self {
        Self {
            guard,
            tools,
            style: None,
            turns: VecDeque::new(),
            newest: None,
            smaller: BTreeMap::new(),
        }
    }

    /// Reads the turns that are added from now on by these tools. Turns that were rendered stay
    /// as they are, so that the prompt stays the beginning of the next one.
    pub(crate) fn use_tools(&mut self, tools: &Arc<ToolSet>) {
        self.tools = Arc::clone(tools);
    }

    /// Turns that were just read.
    pub(crate) fn from_turns(
        turns: &[TurnRecord],
        style: (PromptCaps, bool),
        guard: Arc<Guard>,
        tools: Arc<ToolSet>,
    ) -> Self {
        let mut history = Self::new(guard, tools);
        history.retain_from(0, style);
        history.add(turns);
        history
    }

    /// The part of the last requests to a model that its server had in its cache, in
    /// thousandths; nothing while there are too few.
    pub(crate) fn cached_share(&self, model: &ModelId) -> Option<u32> {
        let read = self.turns.iter().rev().filter_map(|turn| turn.read.as_ref());
        let of_model = read.filter(|read| read.model == model.as_str() && read.prompt > 0);
        let newest: Vec<&ReadTokens> = of_model.take(MEASURED_MAX).collect();
        if newest.len() < MEASURED_MIN {
            return None;
        }
        let prompt: u64 = newest.iter().map(|read| u64::from(read.prompt)).sum();
        let cached: u64 = newest.iter().map(|read| u64::from(read.cached)).sum();
        u32::try_from(cached.saturating_mul(1000).checked_div(prompt)?).ok()
    }

    /// The window of a model, in tokens, as far as its server takes one.
    pub(crate) fn window(&self, model: &ModelInfo) -> u32 {
        self.smaller.get(&model.id).map_or(model.context_tokens, |smaller| smaller.tokens)
    }

    /// A server took no prompt made for this window: from now on it is what the server
    /// named, where that is less, or else a quarter smaller.
    pub(crate) fn refuse(&mut self, model: &ModelInfo, named: Option<u32>) {
        let first = Smaller { tokens: model.context_tokens, quarters: 0 };
        let smaller = self.smaller.entry(model.id.clone()).or_insert(first);
        match named.map(|tokens| tokens.max(NAMED_MIN)) {
            Some(tokens) if tokens < smaller.tokens => smaller.tokens = tokens,
            _ if smaller.quarters < QUARTERS_MAX => {
                smaller.tokens = smaller.tokens / 4 * 3;
                smaller.quarters += 1;
            }
            _ => {}
        }
    }

    /// Returns the style of texts with these caps.
    pub(crate) fn message_style(&self, (caps, weak): (PromptCaps, bool)) -> MessageStyle<'_> {
        MessageStyle { guard: &self.guard, weak, ends: caps.ends }
    }

    /// Keeps the turns from a number on, if they were rendered in this style. The number
    /// from which turns are still to be read.
    pub(crate) fn retain_from(&mut self, from: u64, style: (PromptCaps, bool)) -> u64 {
        if self.style.replace(style) != Some(style) {
            self.turns.clear();
        }
        self.turns.retain(|turn| turn.cost.seq >= from);
        self.turns.back().map_or(from, |newest| newest.cost.seq + 1)
    }

    /// The number from which turns are still to be read, if they are shown as before.
    pub(crate) fn next(&self) -> u64 {
        self.turns.back().map_or(0, |newest| newest.cost.seq + 1)
    }

    /// Renders everything anew, since a message of some turn is in a file now.
    pub(crate) fn forget(&mut self) {
        self.style = None;
    }

    /// Adds turns that were read, oldest first.
    pub(crate) fn add(&mut self, turns: &[TurnRecord]) {
        let Some(style) = self.style else { return };
        // Of so many there may be more between these and the ones before.
        if u32::try_from(turns.len()).is_ok_and(|count| count >= TURNS_MAX) {
            self.turns.clear();
        }
        let added: Vec<CachedTurn> = turns.iter().map(|turn| self.render(turn, style)).collect();
        self.turns.extend(added);
        self.newest = turns.last().cloned().or_else(|| self.newest.take());
    }

    fn render(&self, turn: &TurnRecord, style: (PromptCaps, bool)) -> CachedTurn {
        let caps = style.0;
        let calls = turn.calls.len();
        let manner = self.message_style(style);
        let in_way = |sizes| {
            RenderedTurn::from_messages(history::render_turn(turn, sizes, manner, &self.tools))
        };
        let whole = in_way(TurnSizes::full(&caps, calls));
        let shortest = TurnSizes::short(&caps, calls);
        let (lean, short) = match history::is_within(turn, shortest) {
            true => (None, None),
            false => (Some(in_way(TurnSizes::lean(&caps, calls))), Some(in_way(shortest))),
        };
        let tokens = |way: &Option<RenderedTurn>| way.as_ref().unwrap_or(&whole).row.tokens;
        let seq = turn.seq;
        let heard = history::lowest_label(turn);
        CachedTurn {
            id: turn.id,
            cost: TurnCost {
                seq,
                whole: whole.row.tokens,
                lean: tokens(&lean),
                short: tokens(&short),
                stays: 0,
            },
            read: ReadTokens::from_turn(turn),
            tools: turn.calls.iter().filter_map(tool_name).collect(),
            status_tools: status_turns::status_tools(turn),
            heard,
            digest: TurnDigest::from_turn(turn, heard, &self.tools),
            whole,
            lean,
            short,
        }
    }

    /// Returns true if the newest turn ends with a result, so that the model may continue from
    /// there.
    pub(crate) fn ends_with_a_result(&self) -> bool {
        let newest = self.turns.back().and_then(|turn| turn.whole.messages.last());
        newest.is_some_and(|message| message.role == ChatRole::Tool)
    }

    /// The least trusted label of what it may show from there on, with the sum of what was before.
    pub(crate) fn lowest_label(&self, place: HistoryPosition, digest: &HistoryDigest) -> Label {
        let before = if digest.is_empty() { Label::Creator } else { digest.label() };
        let turns = self.turns.iter().filter(|turn| turn.cost.seq >= place.from);
        turns.map(|turn| turn.heard).fold(before, Label::meet)
    }

    /// Lays the past out, so that it fits.
    pub(crate) fn render_to_fit(&self, wanted: &HistoryRequest<'_>) -> RenderedHistory {
        let Some(style) = self.style else {
            return self.show(wanted, &HistoryStyle::default(), None);
        };
        let manner = self.message_style(style);
        let digest_room = style.0.digest.min(wanted.room.min(wanted.affordable) / 8);
        let mut how = HistoryStyle {
            whole_from: wanted.place.whole_from,
            arguments_from: wanted.place.arguments_from,
            tighter: 0,
            weak: style.1,
            open_room: wanted.open_room,
            // So that it is not another one whenever the room is a little smaller.
            digest_room: digest_room + digest_room / 4,
        };
        // What is shown before the history as long as nothing is cut.
        let first = self.before(wanted, &how);
        let digest_tokens = tokens::estimate(&first.digest);
        let before = tokens::estimate(&first.open) + digest_tokens;
        let newest = self.turns.back().map_or(0, |turn| turn.cost.whole);
        let room = wanted.room.min(wanted.affordable.max(newest + before)).saturating_sub(before);
        let costs = self.costs(wanted, manner);
        let reserve = digest_room.saturating_sub(digest_tokens);
        let mut place = fit::fit_history(&costs, wanted.place, room, reserve);
        if let Some(newest) = costs.last().filter(|turn| turn.seq == place.from) {
            let steps = if newest.at(place) > room { self.tighter(style, room) } else { Some(0) };
            how.tighter = steps.unwrap_or(0);
            if steps.is_none() {
                // Not even its least has room: it is summed up like the others.
                let behind = newest.seq + 1;
                let whole_from = place.whole_from.max(behind);
                place = HistoryPosition { from: behind, whole_from, ..place };
            }
        }
        (how.whole_from, how.arguments_from) = (place.whole_from, place.arguments_from);
        let cut: Vec<&CachedTurn> = self
            .turns
            .iter()
            .filter(|turn| (wanted.place.from..place.from).contains(&turn.cost.seq))
            .collect();
        let mut digest = wanted.digest.clone();
        cut.iter().for_each(|turn| digest.add(&turn.digest));
        if !cut.is_empty() {
            digest.take_summaries();
        }
        digest.fit(digest_room);
        let grown = (!cut.is_empty()).then_some(digest);
        let digest = grown.clone().unwrap_or_else(|| wanted.digest.clone());
        let soon = place == wanted.place && wanted.tells && is_near(&costs, place, room);
        place.told |= soon;
        let wanted = HistoryRequest { place, digest: &digest, ..*wanted };
        RenderedHistory { soon, ..self.show(&wanted, &how, grown) }
    }

    /// Returns the costs of the turns. One that is left out costs nothing, but for the sentence in
    /// the place of the first.
    fn costs(&self, wanted: &HistoryRequest<'_>, manner: MessageStyle<'_>) -> Vec<TurnCost> {
        let OmittedTurns { turns: is_left_out, notes } = left_out(self.turns.iter(), manner.weak);
        let cost = |(place, turn): (usize, &CachedTurn)| {
            let open = wanted.open.iter().filter(|open| open.seq == Some(turn.cost.seq));
            let stays = open.map(|open| open::cost(open, manner)).sum();
            if !is_left_out[place] {
                return TurnCost { stays, ..turn.cost };
            }
            let note = notes.get(&place).map(|note| Message::user(note.as_str()));
            let note = note.map_or(0, |note| history::cost(&[note]));
            TurnCost { seq: turn.cost.seq, whole: note, lean: note, short: note, stays }
        };
        self.turns.iter().enumerate().map(cost).collect()
    }

    /// Returns the number of halvings with which the newest turn fits; `None` if it never does.
    fn tighter(&self, style: (PromptCaps, bool), room: u32) -> Option<u32> {
        let fits = |steps: &u32| history::cost(&self.newest_halved(style, *steps)) <= room;
        (1..=TIGHTER_MAX).find(fits)
    }

    fn newest_halved(&self, style: (PromptCaps, bool), steps: u32) -> Vec<Message> {
        let Some(newest) = &self.newest else { return Vec::new() };
        let sizes = TurnSizes::tight(&style.0, newest.calls.len(), steps);
        history::render_turn(newest, sizes, self.message_style(style), &self.tools)
    }

    /// Returns the texts before the history in one style.
    fn before(&self, wanted: &HistoryRequest<'_>, how: &HistoryStyle) -> BeforeHistory<'_> {
        let HistoryRequest { place, digest, open, .. } = *wanted;
        let manner =
            self.message_style(self.style.unwrap_or((PromptCaps::for_window(0, 0), how.weak)));
        let turns: Vec<&CachedTurn> =
            self.turns.iter().filter(|turn| turn.cost.seq >= place.from).collect();
        let seqs: BTreeSet<u64> = turns.iter().map(|turn| turn.cost.seq).collect();
        let out = |open: &&OpenMessage| open.seq.is_none_or(|seq| !seqs.contains(&seq));
        let out: Vec<&OpenMessage> = open.iter().filter(out).collect();
        // Drawn after everything that is summed up was written.
        let nonce = FrameNonce::from_id(turns.first().map_or(wanted.turn, |turn| turn.id));
        let upto = turns.first().map_or(place.from, |turn| turn.cost.seq);
        let mut fitted = digest.clone();
        fitted.fit(how.digest_room);
        BeforeHistory {
            open: open::render(&out, how.open_room, manner),
            digest: fitted.render(upto, &nonce, manner),
            heard: if fitted.is_empty() { Label::Creator } else { fitted.label() },
            turns,
        }
    }

    /// The past as it is shown in one way.
    pub(crate) fn show(
        &self,
        wanted: &HistoryRequest<'_>,
        how: &HistoryStyle,
        grown: Option<HistoryDigest>,
    ) -> RenderedHistory {
        let BeforeHistory { open, digest, heard, turns } = self.before(wanted, how);
        let halved = match (how.tighter, self.style) {
            (1.., Some(style)) => {
                Some(RenderedTurn::from_messages(self.newest_halved(style, how.tighter)))
            }
            _ => None,
        };
        let OmittedTurns { turns: is_left_out, notes } = left_out(turns.iter().copied(), how.weak);
        let note = |(place, note): (&usize, &String)| {
            (*place, RenderedTurn::from_messages(vec![Message::user(note.as_str())]))
        };
        let notes: BTreeMap<usize, RenderedTurn> = notes.iter().map(note).collect();
        let shown: Vec<&RenderedTurn> = match &halved {
            Some(newest) => vec![newest],
            None => {
                let shown =
                    turns.iter().enumerate().map(|(place, turn)| match is_left_out[place] {
                        true => notes.get(&place),
                        false => Some(turn.in_style(how)),
                    });
                shown.flatten().collect()
            }
        };
        RenderedHistory {
            place: wanted.place,
            soon: false,
            grown,
            how: *how,
            from: turns.first().map(|turn| turn.cost.seq),
            open,
            digest,
            messages: shown.iter().flat_map(|turn| &turn.messages).cloned().collect(),
            row: joined_row(shown.iter().map(|turn| &turn.row)),
            heard: turns.iter().map(|turn| turn.heard).fold(heard, Label::meet),
        }
    }

    /// Returns the family of tools that a model goes on with that is offered few at once: the one
    /// that the newest turn chose, or used a tool of. `read` are turns that were just read, newer
    /// than those kept; `usual` are the tools that it is offered first.
    pub(crate) fn family(&self, read: &[TurnRecord], usual: &[ToolSpec]) -> Option<ToolFamily> {
        self.tools.family_after(&read.last().or(self.newest.as_ref())?.calls, usual)
    }

    /// The tools that the newest turns called, each once.
    pub(crate) fn called(&self, turns: usize) -> Vec<ToolName> {
        let newest = self.turns.iter().rev().take(turns);
        let mut called: Vec<ToolName> = newest.flat_map(|turn| turn.tools.clone()).collect();
        called.sort();
        called.dedup();
        called
    }
}

/// Returns true if the next turn may shorten results or cut turns, and the model was not told.
/// The next turn is assumed to be as large as the largest of the newest.
fn is_near(costs: &[TurnCost], place: HistoryPosition, room: u32) -> bool {
    let shown = costs.iter().filter(|turn| turn.seq >= place.from);
    let total: u32 = shown.map(|turn| turn.at(place)).sum();
    let newest = costs.iter().rev().take(NEWEST).map(|turn| turn.whole).max().unwrap_or(0);
    let ahead = newest.max(room / NEAR).saturating_add(TELL_TOKENS);
    let next = fit::fit_history(costs, place, room.saturating_sub(ahead), 0);
    let loses = next.from > place.from || next.whole_from > place.whole_from;
    !place.told && loses && total.saturating_add(TELL_TOKENS) <= room
}

#[cfg(test)]
mod tests;
