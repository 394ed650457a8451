//! Pure: the turns of the past as a conversation.
//!
//! A turn is rendered the same way for ever, so that a prompt is the beginning
//! of the next one and a model's cache holds. Every call shows its result
//! exactly once. When the turns no longer fit, the older half is cut at once
//! rather than a turn each time, or the cache would be lost each time.

use automaton_core::id::TurnId;
use automaton_core::record::{CallRecord, TurnRecord};
use automaton_core::trust::{Label, Labelled};
use automaton_inference::{Message, MessageCall};
use automaton_memory::tokens;
use automaton_policy::guard::{self, Guard};
use automaton_tools::result::Nonce;
use serde_json::Value;

use super::caps::Caps;
use super::fragment::cap;

/// Turns that are shown at most. At that number the older half is cut, too.
pub(crate) const TURNS_MAX: u32 = 60;

/// Tokens that a message costs beyond its text.
const MESSAGE_TOKENS: u32 = 8;

/// Tokens that the marks around a text of others cost, with the guard's warning.
const FRAME_TOKENS: u32 = 44;
/// Bytes of one text that may be shown: more than any part of a prompt has room for.
const SHOWN_BYTES_MAX: usize = 1 << 20;

/// What a turn without input is introduced by.
pub(crate) const GO_ON: &str = "(Go on.)";

/// The inputs of a turn as one text.
pub(crate) fn render_inputs(
    turn: TurnId,
    inputs: &[Labelled],
    caps: &Caps,
    guard: &Guard,
) -> String {
    if inputs.is_empty() {
        return GO_ON.to_owned();
    }
    let each = caps.input / u32::try_from(inputs.len()).unwrap_or(u32::MAX).max(1);
    let nonce = Nonce::of(turn);
    let texts = inputs.iter().map(|input| {
        let framed = render_labelled(input, each, &nonce, guard);
        if input.label == Label::Creator {
            format!("Message from your creator:\n{framed}")
        } else {
            framed
        }
    });
    texts.collect::<Vec<String>>().join("\n\n")
}

/// A text that is safe to show with its origin: others' text stands between
/// marks that its writer could not know.
fn render_labelled(text: &Labelled, tokens: u32, nonce: &Nonce, guard: &Guard) -> String {
    let short = cap(text.text.trim_end(), tokens.saturating_sub(FRAME_TOKENS).max(8));
    // Our own words and the creator's are not doubted, only made fit to be shown.
    let source = match text.label {
        Label::Creator | Label::Own => guard::Source::Creator,
        other => other.into(),
    };
    let report = guard.scan(&short, source, SHOWN_BYTES_MAX);
    guard::frame(&report, text.label, &text.source, nonce.as_str())
}

/// A committed turn as messages.
///
/// However many calls it has, it takes no more than half of the history's room:
/// their shares depend on the turn alone, so they never change afterwards.
pub(crate) fn render_turn(turn: &TurnRecord, caps: &Caps, guard: &Guard) -> Vec<Message> {
    let caps = &caps.for_calls(turn.calls.len());
    let mut messages = vec![Message::user(render_inputs(turn.id, &turn.inputs, caps, guard))];
    let calls = turn.calls.iter().map(|call| MessageCall {
        id: call.id,
        tool: presentable(&call.tool),
        arguments: shorten_arguments(&call.arguments, caps.arguments),
    });
    let thought = cap(turn.thought.trim(), caps.thought);
    messages.push(Message::assistant(thought, calls.collect()));
    messages.extend(turn.calls.iter().map(|call| render_result(call, caps, guard)));
    messages
}

fn render_result(call: &CallRecord, caps: &Caps, guard: &Guard) -> Message {
    let text = match &call.result {
        Some(result) => render_labelled(result, caps.result, &Nonce::of(call.id), guard),
        None => format!("({})", call.status),
    };
    Message::tool(call.id, text)
}

/// A tool's name as every provider takes it. What the model really wrote is in
/// the call's result; a name that a server refuses would be refused for ever.
fn presentable(name: &str) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let name: String = name.chars().take(64).map(legal).collect();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

/// The arguments with their long texts shortened, as JSON of the same shape;
/// an empty object when they are no JSON object, since providers insist on one.
fn shorten_arguments(arguments: &str, tokens: u32) -> String {
    // silent-ok: what is no JSON is shown to the model in the call's result.
    let Ok(Value::Object(map)) = serde_json::from_str(arguments) else { return "{}".to_owned() };
    if tokens::estimate(arguments) <= tokens {
        return arguments.to_owned();
    }
    let each = tokens / u32::try_from(map.len()).unwrap_or(u32::MAX).max(1);
    let short = map.into_iter().map(|(key, value)| match value {
        Value::String(text) => (key, Value::String(cap(&text, each.saturating_sub(8).max(8)))),
        other if tokens::estimate(&other.to_string()) <= each => (key, other),
        _ => (key, Value::String("[…]".to_owned())),
    });
    let shortened = Value::Object(short.collect()).to_string();
    if tokens::estimate(&shortened) <= tokens * 2 { shortened } else { "{}".to_owned() }
}

/// Estimated tokens of messages.
pub(crate) fn cost(messages: &[Message]) -> u32 {
    messages.iter().map(message_cost).sum()
}

fn message_cost(message: &Message) -> u32 {
    let calls: u32 = message
        .calls
        .iter()
        .map(|call| {
            tokens::estimate(&call.tool) + tokens::estimate(&call.arguments) + MESSAGE_TOKENS
        })
        .sum();
    MESSAGE_TOKENS + tokens::estimate(&message.content) + calls
}

/// The first turn that history shows, given each turn's number and cost from
/// the first one shown so far. Nothing is cut while everything fits; else as
/// many old turns as it takes to fill no more than half of the budget, but
/// never the newest.
pub(crate) fn first_shown(costs: &[(u64, u32)], budget: u32) -> Option<u64> {
    let total: u32 = costs.iter().map(|(_, cost)| cost).sum();
    let (first, newest) = (costs.first()?.0, costs.last()?.0);
    if total <= budget {
        let full = u32::try_from(costs.len()).is_ok_and(|turns| turns >= TURNS_MAX);
        return if full { costs.get(costs.len() / 2).map(|(seq, _)| *seq) } else { Some(first) };
    }
    let mut left = total;
    for (seq, cost) in costs {
        if left <= budget / 2 {
            return Some(*seq);
        }
        left -= cost;
    }
    Some(newest)
}

#[cfg(test)]
mod tests;
