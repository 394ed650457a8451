//! Pure: the turns of the past as a conversation.
//!
//! A turn is rendered in one of three ways, whole, with its arguments shortened or with its
//! results shortened, too, and each way is the same for ever, so that a prompt is the
//! beginning of the next one and a model's cache holds. What the creator said stands in all
//! of them as it was said. Every call
//! shows its result exactly once.

use std::borrow::Borrow;

use automaton_core::id::{MessageId, TurnId};
use automaton_core::record::{CallRecord, TurnInput, TurnRecord};
use automaton_core::trust::{Label, Labelled};
use automaton_inference::{Message, MessageCall};
use automaton_memory::tokens;
use automaton_policy::guard::{self, Guard};
use automaton_tools::result::{FrameNonce, shorten};
use serde_json::Value;

use super::caps::TurnSizes;
use super::fragment::{CUT_MARK, cap};
use crate::toolbox::ToolSet;

/// Tokens that a message costs beyond its text.
const MESSAGE_TOKENS: u32 = 8;

/// Tokens that the marks around a text of others cost, with the guard's warning.
pub(super) const FRAME_TOKENS: u32 = 44;
/// Bytes of one text that may be shown: more than any part of a prompt has room for.
const SHOWN_BYTES_MAX: usize = 1 << 20;

/// Introduction of a turn without input, if the model has just spoken.
pub(crate) const GO_ON: &str = "(Go on.)";

/// Style in which texts are shown to a model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageStyle<'a> {
    pub(crate) guard: &'a Guard,
    /// To one that needs leading by the hand: without ids, which it would copy.
    pub(crate) weak: bool,
    /// Tokens of the beginning and the end of a message that is in a file.
    pub(crate) ends: u32,
}

impl MessageStyle<'_> {
    /// Returns the creator's words as they were; of a message in a file its ends.
    pub(crate) fn creators(
        &self,
        text: &str,
        message: Option<MessageId>,
        file: Option<&str>,
    ) -> String {
        let report = self.guard.scan(text.trim_end(), guard::TextSource::Creator, SHOWN_BYTES_MAX);
        let text = &report.sanitised;
        let shown = file.map_or_else(|| text.clone(), |file| ends(text, file, self.ends));
        match message.filter(|_| !self.weak) {
            Some(id) => format!("Message from your creator (id {id}):\n{shown}"),
            None => format!("Message from your creator:\n{shown}"),
        }
    }

    /// A text that is safe to show with its origin: others' text stands between
    /// marks that its writer could not know.
    pub(crate) fn labelled(&self, text: &Labelled, short: &str, nonce: &FrameNonce) -> String {
        // Our own words and the creator's are not doubted, only made fit to be shown.
        let source = match text.label {
            Label::Creator | Label::Own => guard::TextSource::Creator,
            other => other.into(),
        };
        let report = self.guard.scan(short, source, SHOWN_BYTES_MAX);
        guard::frame(&report, text.label, &text.source, nonce.as_str())
    }
}

/// The beginning and the end of a message, and where the whole is.
fn ends(text: &str, file: &str, tokens: u32) -> String {
    let lines = text.lines().count();
    let bytes = text.len();
    let notice = format!(
        "[the whole message is in {file}: {lines} lines, {bytes} bytes; read all of it with \
         `read_file`, and `offset` to go on]"
    );
    shorten(&format!("{text}\n{notice}"), tokens.saturating_add(tokens::estimate(&notice)))
}

/// The inputs of a turn as one text; nothing, where it went on by itself.
pub(crate) fn render_inputs(
    turn: TurnId,
    inputs: &[TurnInput],
    tokens: u32,
    manner: MessageStyle<'_>,
) -> String {
    let others = inputs.iter().filter(|input| input.said.label != Label::Creator).count();
    let each = tokens / u32::try_from(others).unwrap_or(u32::MAX).max(1);
    let nonce = FrameNonce::from_id(turn);
    let texts = inputs.iter().map(|TurnInput { said, message, file }| match said.label {
        Label::Creator => manner.creators(&said.text, *message, file.as_deref()),
        _ => {
            let room = each.saturating_sub(FRAME_TOKENS).max(8);
            manner.labelled(said, &cap(said.text.trim_end(), room), &nonce)
        }
    });
    texts.collect::<Vec<String>>().join("\n\n")
}

/// A committed turn as messages, with parts of these sizes. A turn without input has no
/// message of the user's side.
pub(crate) fn render_turn(
    turn: &TurnRecord,
    sizes: TurnSizes,
    manner: MessageStyle<'_>,
    tools: &ToolSet,
) -> Vec<Message> {
    let inputs = render_inputs(turn.id, &turn.inputs, sizes.input, manner);
    let mut messages = Vec::with_capacity(turn.calls.len() + 2);
    if !inputs.is_empty() || manner.weak {
        let text = if inputs.is_empty() { GO_ON.to_owned() } else { inputs };
        messages.push(Message::user(text));
    }
    let calls = turn.calls.iter().map(|call| MessageCall {
        id: call.id,
        tool: presentable(&call.tool),
        arguments: shorten_arguments(call, sizes.arguments, tools.shortened_note(call)),
    });
    let thought = cap(turn.thought.trim(), sizes.thought);
    messages.push(Message::assistant(thought, calls.collect()));
    messages.extend(turn.calls.iter().map(|call| render_result(call, sizes, manner)));
    messages
}

/// Returns true if these sizes shorten no part of a turn.
pub(crate) fn is_within(turn: &TurnRecord, sizes: TurnSizes) -> bool {
    let fits = |text: &str, room: u32| tokens::estimate(text) <= room;
    let result = |result: &Labelled| fits(result.text.trim_end(), sizes.result);
    turn.inputs.iter().all(|input| input.said.label == Label::Creator)
        && fits(turn.thought.trim(), sizes.thought)
        && turn.calls.iter().all(|call| {
            fits(&call.arguments, sizes.arguments) && call.result.as_ref().is_none_or(result)
        })
}

fn render_result(call: &CallRecord, sizes: TurnSizes, manner: MessageStyle<'_>) -> Message {
    let text = match &call.result {
        Some(result) => {
            let short = shorten(result.text.trim_end(), sizes.result);
            manner.labelled(result, &short, &FrameNonce::from_id(call.id))
        }
        None => format!("({})", call.status),
    };
    Message::tool(call.id, text)
}

/// Tokens of what is said in place of the rest of an argument.
const NOTICE_TOKENS: u32 = 32;

/// The least trusted label of what a turn has brought.
pub(crate) fn lowest_label(turn: &TurnRecord) -> Label {
    let results = turn.calls.iter().filter_map(|call| call.result.as_ref());
    let inputs = turn.inputs.iter().map(|input| &input.said);
    inputs.chain(results).map(|text| text.label).fold(Label::Creator, Label::meet)
}

/// A tool's name as every provider takes it. What the model really wrote is in
/// the call's result; a name that a server refuses would be refused for ever.
fn presentable(name: &str) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let name: String = name.chars().take(64).map(legal).collect();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

/// The arguments with their long texts shortened, as JSON of the same shape;
/// an empty object when they are no JSON object, since providers insist on one. What the
/// short ones leave is the long ones' room. The note says where the rest can be read.
fn shorten_arguments(call: &CallRecord, tokens: u32, note: &str) -> String {
    let arguments = call.arguments.as_str();
    // silent-ok: what is no JSON is shown to the model in the call's result.
    let Ok(Value::Object(map)) = serde_json::from_str(arguments) else { return "{}".to_owned() };
    if tokens::estimate(arguments) <= tokens {
        return arguments.to_owned();
    }
    let share = |room: u32, of: usize| room / u32::try_from(of).unwrap_or(u32::MAX).max(1);
    let each = share(tokens, map.len());
    let costs = map.values().map(|value| tokens::estimate(&value.to_string()));
    let (small, large): (Vec<u32>, Vec<u32>) = costs.partition(|cost| *cost <= each);
    let each = share(tokens.saturating_sub(small.iter().sum()), large.len());
    let short = map.into_iter().map(|(key, value)| match value {
        Value::String(text) => (key, Value::String(shorten_argument(&text, each, note))),
        other if tokens::estimate(&other.to_string()) <= each => (key, other),
        _ => (key, Value::String("[…]".to_owned())),
    });
    let shortened = Value::Object(short.collect()).to_string();
    if tokens::estimate(&shortened) <= tokens * 2 { shortened } else { "{}".to_owned() }
}

/// The beginning of a text that was an argument, and how much of it is not shown: nobody
/// should take what is left for what was sent.
fn shorten_argument(text: &str, tokens: u32, note: &str) -> String {
    let room = tokens.saturating_sub(8).max(8);
    if room < 2 * NOTICE_TOKENS || tokens::estimate(text) <= room {
        return cap(text, room);
    }
    let kept = cap(text, room - NOTICE_TOKENS);
    let kept = kept.strip_suffix(CUT_MARK).unwrap_or(&kept);
    let left = text.chars().count().saturating_sub(kept.chars().count());
    format!("{kept} [{left} characters more, which the call had, are not shown any more{note}]")
}

/// Estimated tokens of messages.
pub(crate) fn cost<M: Borrow<Message>>(messages: &[M]) -> u32 {
    messages.iter().map(|message| message_cost(message.borrow())).sum()
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

#[cfg(test)]
mod tests;
