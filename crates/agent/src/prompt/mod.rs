//! Pure: what the model sees.
//!
//! Thirteen layers, ordered by how seldom they change: rules, identity, constitution, tools,
//! soul and genesis stand first and are the same bytes over a whole wake; then what the
//! creator waits for and the sum of older turns, which change only when history is cut; then
//! the history, which only grows until then; the status, the worklog, the memory and what the
//! turn answers stand last. Each layer has a cap, and what the others leave is the history's. Text of
//! others appears only behind the first six layers, marked with its origin. The creator's
//! words are never cut: what has no room is in a file that is named.

mod caps;
mod digest;
mod fit;
mod fragment;
mod history;
mod history_cache;
mod open;
mod prompt_record;
mod status_turns;
mod summary;

use std::borrow::Borrow;
use std::sync::Arc;

use automaton_core::id::TurnId;
use automaton_core::money::Microcents;
use automaton_core::record::TurnInput;
use automaton_core::soul::Soul;
use automaton_core::time::Timestamp;
use automaton_core::tool::ToolSpec;
use automaton_core::trust::{Label, Labelled};
use automaton_core::vitals::Vitals;
use automaton_inference::{ChatRole, Message, MessageCall, ModelInfo};
use automaton_memory::shown::{MemoryView, ShownMemory};
use automaton_memory::soul::prompt_text;
use automaton_memory::{render, tokens};
use automaton_sandbox::HOME_INSIDE;
use automaton_store::{HistoryPosition, OpenMessage, PromptLayerRow};
use automaton_tools::result::{FrameNonce, shorten};

use self::caps::long_answer;
use self::caps::{PromptCaps, affordable, affordable_call};
pub(crate) use self::caps::{prompt_room, result_room};
pub(crate) use self::digest::HistoryDigest;
pub(crate) use self::fit::TURNS_MAX;
use self::history::MessageStyle;
pub(crate) use self::history_cache::HistoryCache;
use self::history_cache::{HistoryRequest, HistoryStyle};
use self::open::FOLDER;
pub(crate) use self::open::file_of;
pub(crate) use self::prompt_record::prompt_row;
pub use self::prompt_record::{PromptLayerRecord, PromptRecord, recorded_prompt};
pub(crate) use self::summary::{ANSWER_TOKENS, SUMMARIZED_MAX, SummaryRequest, summary_request};

use self::fragment::{cap, fill};
use crate::settings::Settings;
use crate::treasury::Balances;
use crate::worklog::WorklogView;

/// Everything a prompt is made of.
#[derive(Debug, Clone)]
pub(crate) struct PromptMaterial<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) model: &'a ModelInfo,
    pub(crate) tools: &'a [ToolSpec],
    /// The turns that history may show.
    pub(crate) history: &'a HistoryCache,
    /// Beginning of the history, and the summary of the turns before.
    pub(crate) place: HistoryPosition,
    pub(crate) digest: &'a HistoryDigest,
    /// The creator's messages that an earlier turn has read and nobody has answered.
    pub(crate) open: &'a [OpenMessage],
    /// Recalled memories, best first.
    pub(crate) memory: &'a [ShownMemory],
    /// Its soul; the creator's genesis prompt if there is none yet.
    pub(crate) soul: Option<&'a Soul>,
    /// Content of its worklog, if it is shown.
    pub(crate) worklog: Option<&'a Labelled>,
    /// The least trusted label of what the wake heard before this prompt.
    pub(crate) heard: Label,
    /// Texts that this turn answers, with the cause of the wake.
    pub(crate) inputs: &'a [TurnInput],
    pub(crate) now: Timestamp,
    pub(crate) turn_id: TurnId,
    /// The number of this turn in the automaton's life.
    pub(crate) turn: u64,
    /// The number of this turn in its wake, from 1.
    pub(crate) wake_turn: u32,
    /// The most turns of this wake.
    pub(crate) wake_turns: u32,
    /// True if the creator caused the wake.
    pub(crate) creators: bool,
    /// True if this turn has no tools, and hands over.
    pub(crate) last: bool,
    /// Sentences of the runtime.
    pub(crate) nudge: Option<&'a str>,
    /// The automaton's money, if it has any.
    pub(crate) balances: Option<Balances>,
    /// Its means, and its chosen mode.
    pub(crate) vitals: Option<Vitals>,
    /// The sentence about what its ports sold, if they did.
    pub(crate) sales: Option<&'a str>,
    /// Estimated limit for the cost of the answer.
    pub(crate) per_call: Option<Microcents>,
}

/// A finished prompt.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// The conversation.
    pub messages: Vec<Arc<Message>>,
    /// Its layers, in the order of the prompt.
    pub layers: Vec<PromptLayer>,
    /// The tokens that the tools' schemas have beside it.
    pub tools_tokens: u32,
    /// The model's window in tokens.
    pub window_tokens: u32,
    /// The most tokens that an answer usually has.
    pub answer_tokens: u32,
    /// The most tokens that this answer may have.
    pub longest_tokens: u32,
    /// The first turn that the history shows.
    pub history_from: Option<u64>,
    /// New beginning of the history, and the summary of the turns before, if it has grown.
    pub(crate) place: HistoryPosition,
    pub(crate) grown: Option<HistoryDigest>,
    pub(crate) how: HistoryStyle,
    /// Memories that fitted, best first.
    pub(crate) remembered: Vec<MemoryView>,
    /// Shown part of the worklog.
    pub(crate) worklog: Option<WorklogView>,
    /// Stored row of the shown history.
    pub(crate) history: PromptLayerRow,
    /// The least trusted label of what the history and its sum show.
    pub(crate) heard: Label,
}

impl Prompt {
    /// Its size in estimated tokens, the tools' schemas included.
    #[must_use]
    pub fn tokens(&self) -> u32 {
        cost(&self.layers).saturating_add(self.tools_tokens)
    }
}

/// One layer of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptLayer {
    /// Its name.
    pub name: &'static str,
    /// Its size in estimated tokens.
    pub tokens: u32,
    /// Most tokens.
    pub cap_tokens: u32,
    /// Its text; that of the history is its messages'.
    pub text: String,
}

/// Builds the prompt.
pub(crate) fn build(material: &PromptMaterial<'_>, head: [PromptLayer; HEAD]) -> Prompt {
    let history = material.history;
    let model = material.model;
    let style @ (caps, _) = style_of(material.settings, model, history);
    let tools_tokens = schemas_cost(material.tools);
    let begun = cost(&head) + tools_tokens + FRAMES_TOKENS;
    let mut last = last_layers(material, style, begun);
    let taken = begun + cost(&last);
    let room = caps.history_room(taken);
    let per_day = material.settings.budgets.ceilings.per_day;
    let cached = history.cached_share(&model.id);
    let own = material.settings.budgets.ceilings.per_call;
    let paid = [
        affordable(per_day, &model.prices, cached),
        affordable_call(material.per_call, &model.prices, caps.answer, 1),
        affordable_call(own, &model.prices, caps.answer, BYTES_PER_TOKEN),
    ];
    let paid = paid.into_iter().flatten().min();
    let affordable = paid.map_or(room, |paid| paid.saturating_sub(taken)).max(caps.floor());
    let open = waiting(material.open, material.inputs);
    let laid = history.render_to_fit(&HistoryRequest {
        place: material.place,
        digest: material.digest,
        open: &open,
        room,
        affordable,
        open_room: caps.open(taken),
        tells: !model.weak && !material.last,
        turn: material.turn_id,
    });
    let before =
        [layer("open", laid.open, caps.open(taken)), layer("digest", laid.digest, caps.digest)];
    let tokens = laid.row.tokens;
    let shown = PromptLayer { name: "history", tokens, cap_tokens: room, text: String::new() };

    let mut talk = ConversationBuilder(vec![Message::system(joined(&head)).into()]);
    talk.user(joined(&before));
    let asked = history::cost(&talk.0).saturating_add(tokens);
    laid.messages.into_iter().for_each(|message| talk.push(message));
    // In the smallest of windows the answer gives way, and nothing else is left to.
    let beside = tools_tokens + caps.margin() + MORE_TOKENS;
    let asked = asked.saturating_add(beside + cost(&last));
    let rest = caps.window.saturating_sub(asked);
    let answer_tokens = caps.answer.min(rest.max(ANSWER_MIN));
    let longest_tokens = longest_answer(material, answer_tokens, rest);
    if laid.soon || !last[0].text.is_empty() {
        let text = status_text(material, &caps, longest_tokens, laid.soon);
        last[0] = layer("status", text, caps.status);
    }
    let view = worklog_view(material).filter(|_| !last[1].text.is_empty());
    let heard = view.as_ref().map_or(laid.heard, |view| laid.heard.meet(view.label()));
    talk.user(joined(&last));
    let layers = head.into_iter().chain(before).chain([shown]).chain(last).collect();
    Prompt {
        messages: talk.ended(),
        layers,
        tools_tokens,
        window_tokens: caps.window,
        answer_tokens,
        longest_tokens,
        history_from: laid.from,
        place: laid.place,
        grown: laid.grown,
        how: laid.how,
        remembered: material.memory.iter().map(ShownMemory::view).collect(),
        worklog: view,
        history: laid.row,
        heard,
    }
}

/// A ceiling of the creator's counts a token for each byte of a request.
const BYTES_PER_TOKEN: i64 = 4;

/// The least that is left to an answer.
const ANSWER_MIN: u32 = 64;

/// Tokens that the status may have beyond its first estimate, with the frame of its message
/// and a word between two answers.
const MORE_TOKENS: u32 = 32;

/// Warning before a move of the history.
const SOON: &str = "Older turns will soon be shortened or summed up: write into a file what you \
    need of them.";

/// The most tokens of an answer: where its creator waits and has not said how long one may
/// be, as many as the model gives, its window leaves and the day's budget allows. The words
/// of a hand-over need no more than usual.
fn longest_answer(material: &PromptMaterial<'_>, usual: u32, left: u32) -> u32 {
    let PromptMaterial { model, settings, creators, last, .. } = material;
    let is_long = *creators && !last && settings.long_answers;
    let Some(longest) = model.max_output_tokens.filter(|_| is_long) else { return usual };
    let paid = long_answer(settings.budgets.ceilings.per_day, &model.prices);
    longest.min(left).min(paid).max(usual)
}

/// Tokens of what stands around the layers.
const FRAMES_TOKENS: u32 = 32;

/// The open messages that a turn has read, and that are not what this one answers.
pub(crate) fn waiting(open: &[OpenMessage], inputs: &[TurnInput]) -> Vec<OpenMessage> {
    let is_here = |open: &OpenMessage| inputs.iter().any(|it| it.message == Some(open.id));
    open.iter().filter(|open| open.seen && !is_here(open)).cloned().collect()
}

/// A conversation in the making. Servers want sides that take turns: what the same side
/// says twice is one message, and between two answers without a call there is a word.
struct ConversationBuilder(Vec<Arc<Message>>);

impl ConversationBuilder {
    fn user(&mut self, text: String) {
        if !text.is_empty() {
            self.push(Message::user(text).into());
        }
    }

    fn push(&mut self, message: Arc<Message>) {
        match (self.0.last_mut(), message.role) {
            (Some(last), ChatRole::User) if last.role == ChatRole::User => {
                let last = Arc::make_mut(last);
                last.content.push_str("\n\n");
                last.content.push_str(&message.content);
                return;
            }
            (Some(last), ChatRole::Assistant)
                if last.role == ChatRole::System || last.role == ChatRole::Assistant =>
            {
                self.0.push(Message::user(history::GO_ON).into());
            }
            _ => {}
        }
        self.0.push(message);
    }

    /// The whole, in which the model never has the last word.
    fn ended(mut self) -> Vec<Arc<Message>> {
        let last = self.0.last().map(|message| message.role);
        if last != Some(ChatRole::User) && last != Some(ChatRole::Tool) {
            self.0.push(Message::user(history::GO_ON).into());
        }
        self.0
    }
}

/// Tokens of the tools' names, descriptions and schemas, which go beside the prompt.
pub(crate) fn schemas_cost(tools: &[ToolSpec]) -> u32 {
    const EACH: u32 = 16;
    let each = tools.iter().map(|tool| {
        let texts = [tool.name.as_str(), &tool.description, tool.parameters.text()];
        texts.iter().map(|text| tokens::estimate(text)).sum::<u32>() + EACH
    });
    each.sum()
}

fn cost(layers: &[PromptLayer]) -> u32 {
    layers.iter().map(|layer| layer.tokens).sum()
}

/// The caps of a prompt, and whether it is for a weak model.
pub(crate) fn style_of(
    settings: &Settings,
    model: &ModelInfo,
    history: &HistoryCache,
) -> (PromptCaps, bool) {
    let answer_max = model.max_output_tokens.unwrap_or(u32::MAX);
    (
        PromptCaps::for_window(history.window(model), settings.max_tokens_per_turn.min(answer_max)),
        model.weak,
    )
}

/// The messages, oldest first, that have to go to files to have room in a prompt.
pub(crate) fn too_long(material: &PromptMaterial<'_>, head: &[PromptLayer]) -> Vec<OpenMessage> {
    let seen: Vec<OpenMessage> = material.open.iter().filter(|open| open.seen).cloned().collect();
    if seen.is_empty() {
        return seen;
    }
    let style @ (caps, _) = style_of(material.settings, material.model, material.history);
    let begun = cost(head) + schemas_cost(material.tools) + FRAMES_TOKENS;
    let is_others = |input: &&TurnInput| input.said.label != Label::Creator;
    let others: Vec<TurnInput> = material.inputs.iter().filter(is_others).cloned().collect();
    // What the creator says now is open as well.
    let beside = PromptMaterial { inputs: &others, ..material.clone() };
    let taken = begun + cost(&last_layers(&beside, style, begun));
    open::too_long(&seen, caps.open(taken), material.history.message_style(style))
}

fn layer(name: &'static str, text: String, cap_tokens: u32) -> PromptLayer {
    PromptLayer { name, tokens: tokens::estimate(&text), cap_tokens, text }
}

/// Layers as one text.
fn joined(layers: &[PromptLayer]) -> String {
    let texts = layers.iter().map(|layer| layer.text.as_str()).filter(|text| !text.is_empty());
    texts.collect::<Vec<_>>().join("\n\n")
}

/// Messages as one text: who speaks, what is said, and the calls.
#[must_use]
pub fn transcript<M: Borrow<Message>>(messages: &[M]) -> String {
    let mut text = String::new();
    for message in messages.iter().map(Borrow::borrow) {
        let role = format!("{:?}", message.role).to_lowercase();
        text.push_str(&format!("--- {role}\n{}\n", message.content));
        for MessageCall { tool, arguments, .. } in &message.calls {
            text.push_str(&format!("    calls {tool} {arguments}\n"));
        }
    }
    text
}

/// The layers that stay the same over a wake.
const HEAD: usize = 7;

/// The first layers.
pub(crate) fn head_layers(material: &PromptMaterial<'_>) -> [PromptLayer; HEAD] {
    let settings = material.settings;
    let (caps, _) = style_of(settings, material.model, material.history);
    let creator = settings.creator_address.as_deref().unwrap_or("the one who started you");
    let wallet = section("wallet", settings.wallet_address.as_deref().unwrap_or_default());
    let identity = [("name", settings.name.as_str()), ("creator", creator), ("wallet", &wallet)];
    let genesis = material.soul.map_or(&settings.genesis, |soul| &soul.genesis);
    let soul = material.soul.map(prompt_text).unwrap_or_default();
    let model = material.model;
    // A model that can read schemas has them beside the prompt.
    let (rules, operations, tools, soul) = if model.weak {
        let tools = fill(include_str!("tools.md"), &[("tools", &tool_index(material.tools))]);
        (include_str!("rules_weak.md"), "", tools, soul)
    } else if model.compact {
        // Each token of these costs seconds, and the genesis prompt says what the soul begins with.
        (include_str!("rules_compact.md"), "", String::new(), String::new())
    } else {
        (include_str!("rules.md"), include_str!("operations.md").trim_end(), String::new(), soul)
    };
    let is_changed = material.soul.is_some_and(|soul| soul.genesis != soul.anchor);
    let purpose = if is_changed { "changed_genesis" } else { "genesis" };
    let parts = [
        ("rules", rules.trim_end().to_owned(), caps.rules),
        ("identity", fill(include_str!("identity.md"), &identity), caps.identity),
        ("constitution", section("constitution", &settings.constitution), caps.constitution),
        ("operations", operations.to_owned(), caps.operations),
        ("tools", tools, caps.tools),
        ("soul", section("soul", &soul), caps.soul),
        ("genesis", section(purpose, genesis), caps.genesis),
    ];
    parts.map(|(name, text, limit)| layer(name, cap(&text, limit), limit))
}

/// A layer with one value of the creator's or its own; nothing when it is empty.
fn section(name: &str, value: &str) -> String {
    let template = match name {
        "constitution" => include_str!("constitution.md"),
        "soul" => include_str!("soul.md"),
        "wallet" => include_str!("wallet.md"),
        "changed_genesis" => include_str!("changed_genesis.md"),
        _ => include_str!("genesis.md"),
    };
    let name = if name == "changed_genesis" { "genesis" } else { name };
    if value.trim().is_empty() { String::new() } else { fill(template, &[(name, value.trim())]) }
}

/// One line a tool: its name, its arguments with an example where there is one,
/// and its purpose. The schemas go to the model beside the prompt.
fn tool_index(tools: &[ToolSpec]) -> String {
    let lines: Vec<String> = tools.iter().map(tool_line).collect();
    lines.join("\n")
}

fn tool_line(tool: &ToolSpec) -> String {
    let properties = tool.parameters.get("properties").and_then(|found| found.as_object());
    let required = tool.parameters.get("required").and_then(|found| found.as_array());
    let needed: Vec<&str> =
        required.into_iter().flatten().filter_map(|name| name.as_str()).collect();
    let all = properties.into_iter().flat_map(|found| found.keys().map(String::as_str));
    let optional = all.filter(|name| !needed.contains(name)).map(|name| format!("{name}?"));
    let with_example = |name: &str| {
        let example = properties.and_then(|found| found.get(name)?.get("examples")?.get(0));
        example.map_or_else(|| name.to_owned(), |example| format!("{name}: {example}"))
    };
    let shown: Vec<String> = needed.iter().map(|name| with_example(name)).chain(optional).collect();
    format!("- {}({}): {}", tool.name, shown.join(", "), tool.description)
}

/// The layers of the message that the model answers: what it should answer stands last.
/// Who goes on from a result, and has nothing to be told, needs no such message. So much is
/// taken already.
fn last_layers(
    material: &PromptMaterial<'_>,
    style: (PromptCaps, bool),
    begun: u32,
) -> [PromptLayer; 4] {
    let (caps, weak) = style;
    let history = material.history;
    let inputs = material.inputs;
    let memory = memory_layer(material.memory, &caps);
    let view = worklog_view(material);
    let manner = history.message_style(style);
    let mut worklog = worklog_layer(view.as_ref(), &caps, material.turn_id, manner);
    let beside = tokens::estimate(&memory) + tokens::estimate(&worklog);
    let taken = begun + caps.status + beside;
    let mut input =
        input_layer(material, style, caps.remaining(taken + INPUT_RESERVE, caps.window / 8));
    if input.is_empty() && weak {
        history::GO_ON.clone_into(&mut input);
    }
    let goes_on = input.is_empty() && memory.is_empty() && material.nudge.is_none();
    let status = match goes_on && history.ends_with_a_result() {
        true => {
            worklog.clear();
            String::new()
        }
        // No answer is longer than the window.
        false => status_text(material, &caps, caps.window, false),
    };
    let creators = inputs.iter().filter(|input| input.said.label == Label::Creator);
    let creators = creators.map(|input| tokens::estimate(&input.said.text)).sum::<u32>();
    [
        layer("status", status, caps.status),
        layer("worklog", worklog, caps.worklog),
        layer("memory", memory, caps.memory),
        layer("input", input, caps.input + creators),
    ]
}

/// Tokens beside the input of a turn that are left for earlier texts.
const INPUT_RESERVE: u32 = 120;

/// Renders the input of the turn. If there is no room for the ends of messages in files, only the
/// files are named; of more the newest ones, and the others are counted.
fn input_layer(
    material: &PromptMaterial<'_>,
    style @ (caps, _): (PromptCaps, bool),
    room: u32,
) -> String {
    let turn = material.turn_id;
    let inputs = material.inputs;
    let manner = material.history.message_style(style);
    let whole = history::render_inputs(turn, inputs, caps.input, manner);
    let fits = |text: &String| tokens::estimate(text) <= room;
    let named = MessageStyle { ends: 0, ..manner };
    let others = caps.input.min(room / 2);
    let fewer = |skipped: usize| {
        let rest = history::render_inputs(turn, &inputs[skipped..], others, named);
        let count = format!("[{skipped} more came before; messages are in {HOME_INSIDE}/{FOLDER}]");
        if skipped == 0 { rest } else { format!("{count}\n\n{rest}") }
    };
    let all = inputs.len();
    let short = || (0..all).map(fewer).find(fits).unwrap_or_else(|| fewer(all));
    if fits(&whole) { whole } else { short() }
}

/// Returns the view of the worklog for the turn.
fn worklog_view(material: &PromptMaterial<'_>) -> Option<WorklogView> {
    let heard = material.heard.meet(material.history.lowest_label(material.place, material.digest));
    material.worklog.map(|worklog| WorklogView::for_reader(worklog, heard))
}

fn worklog_layer(
    view: Option<&WorklogView>,
    caps: &PromptCaps,
    turn: TurnId,
    manner: MessageStyle<'_>,
) -> String {
    let worklog = match view {
        None => return String::new(),
        Some(WorklogView::Withheld) => {
            return cap(include_str!("worklog_withheld.md").trim_end(), caps.worklog);
        }
        Some(WorklogView::Shown(worklog)) => worklog,
    };
    let template = include_str!("worklog.md");
    let around = tokens::estimate(template) + history::FRAME_TOKENS;
    let short = shorten(&worklog.text, caps.worklog.saturating_sub(around));
    let framed = manner.labelled(worklog, &short, &FrameNonce::from_id(turn));
    cap(&fill(template, &[("worklog", &framed)]), caps.worklog)
}

fn memory_layer(items: &[ShownMemory], caps: &PromptCaps) -> String {
    let room = caps.memory.saturating_sub(tokens::estimate(include_str!("memory.md")));
    let lines = render::block(items, room);
    if lines.is_empty() {
        return String::new();
    }
    cap(&fill(include_str!("memory.md"), &[("memory", lines.trim_end())]), caps.memory)
}

/// The time, the turn, the money, and in a wake's first turn how long an answer may be. A weak
/// model is told no numbers: it copies the digits into its calls.
fn status_text(
    material: &PromptMaterial<'_>,
    caps: &PromptCaps,
    answer: u32,
    soon: bool,
) -> String {
    let weak = material.model.weak;
    let status = fill(
        if weak { include_str!("status_weak.md") } else { include_str!("status.md") },
        &[
            ("time", &material.now.to_string()),
            ("turn", &material.turn.to_string()),
            ("wake_turn", &material.wake_turn.to_string()),
            ("wake_turns", &material.wake_turns.to_string()),
        ],
    );
    let money = material.balances.filter(|_| !weak).map_or_else(String::new, |balances| {
        let credits = balances.credits_shown();
        let usdc = balances.usdc_shown();
        let before = material.vitals.filter(|_| balances.credits.is_none());
        let before = before.and_then(|before| before.credits.zip(before.read_at));
        let before = before.map_or_else(String::new, |(credits, at)| {
            format!(" ({credits} were there {} ago)", material.now.since(at))
        });
        let thrift = material.vitals.and_then(|vitals| vitals.thrift);
        let thrift = thrift.map_or_else(String::new, |thrift| {
            format!(" You live cheaply since {}, by your own choice.", thrift.since)
        });
        format!("\nYour credits: {credits}{before}. In your wallet: {usdc}.{thrift}")
    });
    let is_told = !weak && material.wake_turn == 1;
    let answer = is_told.then(|| format!(" One answer may have up to {answer} tokens."));
    let answer = answer.unwrap_or_default();
    let sales = material.sales.filter(|_| !weak);
    let said = sales.into_iter().chain(material.nudge).chain(soon.then_some(SOON));
    let said: String = said.map(|text| format!("\n{text}")).collect();
    cap(&format!("{status}{answer}{money}{said}"), caps.status)
}

/// The label of everything that a turn answers: the least trusted of all that
/// others wrote, and its own where it goes on by itself. What the runtime tells
/// beside a message takes nothing away from it.
pub(crate) fn input_label(inputs: &[TurnInput]) -> Label {
    let others = inputs.iter().map(|input| input.said.label).filter(|label| *label != Label::Own);
    others.reduce(Label::meet).unwrap_or(Label::Own)
}

#[cfg(test)]
mod tests;
