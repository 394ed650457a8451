//! Pure: what the model sees.
//!
//! Ten layers, ordered by how seldom they change: rules, identity,
//! constitution, tools, soul and genesis stand first and are the same bytes
//! over a whole wake; then the history, which only grows until it is cut in a
//! block; the status, the memory and what the turn answers stand last. Each layer is
//! a file with a cap. Text of others appears only in the history and the last
//! message, marked with its origin, never among the first six layers.

mod caps;
mod fragment;
mod history;
mod past;
mod sent;

use automaton_core::id::TurnId;
use automaton_core::time::Timestamp;
use automaton_core::tool::ToolSpec;
use automaton_core::trust::{Label, Labelled};
use automaton_core::vitals::Vitals;
use automaton_inference::{Message, MessageCall, ModelInfo};
use automaton_memory::{Fact, render, tokens};

use self::caps::Caps;
pub(crate) use self::caps::room;
pub(crate) use self::history::TURNS_MAX;
pub(crate) use self::past::Past;
pub(crate) use self::sent::kept;
pub use self::sent::{Sent, SentLayer, sent};

use self::fragment::{cap, fill};
use crate::settings::Settings;
use crate::treasury::Balances;

/// Everything a prompt is made of.
#[derive(Debug, Clone)]
pub(crate) struct Material<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) model: &'a ModelInfo,
    pub(crate) tools: &'a [ToolSpec],
    /// The turns that history may show.
    pub(crate) past: &'a Past,
    /// Facts that were recalled, best first.
    pub(crate) facts: &'a [Fact],
    /// What this turn answers, the wake's cause included.
    pub(crate) inputs: &'a [Labelled],
    pub(crate) now: Timestamp,
    pub(crate) turn_id: TurnId,
    /// The number of this turn in the automaton's life.
    pub(crate) turn: u64,
    /// The number of this turn in its wake, from 1.
    pub(crate) wake_turn: u32,
    /// A sentence from the governor.
    pub(crate) nudge: Option<&'a str>,
    /// The automaton's money, if it has any.
    pub(crate) balances: Option<Balances>,
    /// What is known of its means, and what it chose.
    pub(crate) vitals: Option<Vitals>,
}

/// A finished prompt.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// The conversation.
    pub messages: Vec<Message>,
    /// Its layers, in the order of the prompt.
    pub layers: Vec<Layer>,
    /// The model's window in tokens.
    pub window_tokens: u32,
    /// The most tokens that the answer may have.
    pub answer_tokens: u32,
    /// The first turn that the history shows.
    pub history_from: Option<u64>,
}

/// One layer of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Its name.
    pub name: &'static str,
    /// Its size in estimated tokens.
    pub tokens: u32,
    /// What it may have at most.
    pub cap_tokens: u32,
    /// Its text; that of the history is a [`transcript`].
    pub text: String,
}

/// Builds the prompt.
pub(crate) fn build(material: &Material<'_>) -> Prompt {
    let caps = caps_of(material.settings, material.model);
    let head = head_layers(material, &caps);
    let mut messages = vec![Message::system(joined(&head))];
    let mut layers = Vec::from(head);

    let (history_from, tokens, shown) = material.past.fitting(caps.history);
    let (text, cap_tokens) = (transcript(&shown), caps.history);
    layers.push(Layer { name: "history", tokens, cap_tokens, text });
    messages.extend(shown);

    let last = last_layers(material, &caps);
    messages.push(Message::user(joined(&last)));
    layers.extend(last);
    Prompt {
        messages,
        layers,
        window_tokens: material.model.context_tokens,
        answer_tokens: caps.answer,
        history_from,
    }
}

/// How much each part may have with a model.
pub(crate) fn caps_of(settings: &Settings, model: &ModelInfo) -> Caps {
    Caps::for_window(model.context_tokens, settings.max_tokens_per_turn)
}

fn layer(name: &'static str, text: String, cap_tokens: u32) -> Layer {
    Layer { name, tokens: tokens::estimate(&text), cap_tokens, text }
}

/// Layers as one text.
fn joined(layers: &[Layer]) -> String {
    let texts = layers.iter().map(|layer| layer.text.as_str()).filter(|text| !text.is_empty());
    texts.collect::<Vec<_>>().join("\n\n")
}

/// Messages as one text: who speaks, what is said, and the calls.
#[must_use]
pub fn transcript(messages: &[Message]) -> String {
    let mut text = String::new();
    for message in messages {
        let role = format!("{:?}", message.role).to_lowercase();
        text.push_str(&format!("--- {role}\n{}\n", message.content));
        for MessageCall { tool, arguments, .. } in &message.calls {
            text.push_str(&format!("    calls {tool} {arguments}\n"));
        }
    }
    text
}

/// The layers that stay the same over a wake.
const HEAD: usize = 6;

/// The first layers.
fn head_layers(material: &Material<'_>, caps: &Caps) -> [Layer; HEAD] {
    let settings = material.settings;
    let creator = settings.creator_address.as_deref().unwrap_or("the one who started you");
    let identity = [("name", settings.name.as_str()), ("creator", creator)];
    let index = tool_index(material.tools);
    let parts = [
        ("rules", include_str!("rules.md").trim_end().to_owned(), caps.rules),
        ("identity", fill(include_str!("identity.md"), &identity), caps.identity),
        ("constitution", section("constitution", &settings.constitution), caps.constitution),
        ("tools", fill(include_str!("tools.md"), &[("tools", &index)]), caps.tools),
        ("soul", section("soul", &settings.soul), caps.soul),
        ("genesis", section("genesis", &settings.genesis), caps.genesis),
    ];
    parts.map(|(name, text, limit)| layer(name, cap(&text, limit), limit))
}

/// A layer with one value of the creator's or its own; nothing when it is empty.
fn section(name: &str, value: &str) -> String {
    let template = match name {
        "constitution" => include_str!("constitution.md"),
        "soul" => include_str!("soul.md"),
        _ => include_str!("genesis.md"),
    };
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
fn last_layers(material: &Material<'_>, caps: &Caps) -> [Layer; 3] {
    let guard = material.past.guard();
    let input = history::render_inputs(material.turn_id, material.inputs, caps, guard);
    [
        layer("status", status_layer(material, caps), caps.status),
        layer("memory", memory_layer(material.facts, caps), caps.memory),
        layer("input", input, caps.input),
    ]
}

fn memory_layer(facts: &[Fact], caps: &Caps) -> String {
    let room = caps.memory.saturating_sub(tokens::estimate(include_str!("memory.md")));
    let lines = render::block(facts, room);
    if lines.is_empty() {
        return String::new();
    }
    cap(&fill(include_str!("memory.md"), &[("memory", lines.trim_end())]), caps.memory)
}

/// The time, the turn and the money. A weak model is told neither the time nor
/// the money: it copies the digits into its calls.
fn status_layer(material: &Material<'_>, caps: &Caps) -> String {
    let weak = material.model.weak;
    let status = fill(
        if weak { include_str!("status_weak.md") } else { include_str!("status.md") },
        &[
            ("time", &material.now.to_string()),
            ("turn", &material.turn.to_string()),
            ("wake_turn", &material.wake_turn.to_string()),
            ("wake_turns", &material.settings.limits.turns_per_wake.to_string()),
        ],
    );
    let money = material.balances.filter(|_| !weak).map_or_else(String::new, |balances| {
        let (credits, usdc) = (balances.credits_shown(), balances.usdc_shown());
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
    let nudge = material.nudge.map_or_else(String::new, |nudge| format!("\n{nudge}"));
    cap(&format!("{status}{money}{nudge}"), caps.status)
}

/// The label of everything that a turn answers: the least trusted of all that
/// others wrote, and its own where it goes on by itself. What the runtime tells
/// beside a message takes nothing away from it.
pub(crate) fn input_label(inputs: &[Labelled]) -> Label {
    let others = inputs.iter().map(|input| input.label).filter(|label| *label != Label::Own);
    others.reduce(Label::meet).unwrap_or(Label::Own)
}

#[cfg(test)]
mod tests;
