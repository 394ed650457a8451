//! The prompt of a turn as it was sent, made again from the record.
//!
//! The record holds what nothing else gives again, and hashes of the rest: open messages,
//! the sum of older turns, history, memory and input are made anew and shown only where
//! their hash is that of what was sent. A layer that came out otherwise must never be shown as the one that was.

use std::sync::Arc;

use automaton_core::record::TurnRecord;
use automaton_core::time::Timestamp;
use automaton_memory::shown::{MemoryView, ShownMemory};
use automaton_memory::tokens;
use automaton_policy::guard::Guard;
use automaton_store::{
    Hash, HistoryPosition, OpenMessage, PromptLayerRow, PromptRow, Reader, StoreError,
};
use serde::{Deserialize, Serialize};

use super::caps::PromptCaps;
use super::history_cache::{HistoryRequest, HistoryStyle, RenderedHistory};
use super::{
    HEAD, HistoryCache, HistoryDigest, Prompt, TURNS_MAX, history, memory_layer, transcript,
    waiting, worklog_layer,
};
use crate::toolbox::ToolSet;

/// A prompt that was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PromptRecord {
    /// Time.
    pub at: Timestamp,
    /// Its layers, in the order of the prompt.
    pub layers: Vec<PromptLayerRecord>,
    /// The model's window in tokens.
    pub window_tokens: u32,
    /// The most tokens that the answer could have.
    pub answer_tokens: u32,
    /// The first turn that the history showed.
    pub history_from: Option<u64>,
}

/// One layer of a prompt that was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PromptLayerRecord {
    /// Its name.
    pub name: String,
    /// Characters of its text.
    pub chars: u32,
    /// Its size in estimated tokens.
    pub tokens: u32,
    /// True if the record yields exactly the text that was sent.
    pub on_record: bool,
    /// That text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl PromptLayerRecord {
    /// Leaves the text out, which may be long.
    pub fn drop_text(&mut self) {
        self.text = None;
    }
}

/// Style in which a prompt showed its parts.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ShownStyle {
    history: HistoryStyle,
    /// The items of the memory and which parts of them were shown, best first.
    #[serde(default)]
    memory: Vec<MemoryView>,
}

/// Returns the stored row of a prompt that is about to be sent.
pub(crate) fn prompt_row(prompt: &Prompt) -> PromptRow {
    let text = |name: &str| prompt.layers.iter().find(|layer| layer.name == name);
    let kept = |name| {
        text(name).map_or_else(|| layer_row("", 0), |layer| layer_row(&layer.text, layer.tokens))
    };
    let head = prompt.layers.iter().take(HEAD);
    let shown = ShownStyle { history: prompt.how, memory: prompt.remembered.clone() };
    PromptRow {
        head: head.map(|layer| (layer.name.to_owned(), layer.text.clone())).collect(),
        status: text("status").map(|layer| layer.text.clone()).unwrap_or_default(),
        history_from: prompt.history_from,
        // silent-ok: without it only the history of this prompt cannot be shown again.
        shown: serde_json::to_string(&shown).ok(),
        open: kept("open"),
        digest: kept("digest"),
        history: prompt.history,
        // silent-ok: without it only the worklog of this prompt cannot be shown again.
        worklog_view: prompt.worklog.as_ref().and_then(|view| serde_json::to_string(view).ok()),
        worklog: kept("worklog"),
        memory: kept("memory"),
        input: kept("input"),
        window_tokens: prompt.window_tokens,
        answer_tokens: prompt.answer_tokens,
    }
}

/// The prompt that a turn was asked with; nothing where it never asked, or where that
/// was not kept yet.
///
/// # Errors
/// When a table cannot be read.
pub fn recorded_prompt(
    reader: &Reader,
    turn: &TurnRecord,
    guard: &Arc<Guard>,
    tools: &Arc<ToolSet>,
) -> Result<Option<PromptRecord>, StoreError> {
    let Some((at, kept)) = reader.prompt(turn.id)? else { return Ok(None) };
    let caps = PromptCaps::for_window(kept.window_tokens, kept.answer_tokens);
    // silent-ok: of a prompt from before this was kept the history is not shown again.
    let how = kept.shown.as_deref().and_then(|how| serde_json::from_str(how).ok());
    let ShownStyle { history: how, memory } = how.unwrap_or_default();
    let turns = match kept.history_from {
        None => Vec::new(),
        Some(from) => reader.turns_between(from, turn.seq, TURNS_MAX)?,
    };
    let style = (caps, how.weak);
    let history = HistoryCache::from_turns(&turns, style, Arc::clone(guard), Arc::clone(tools));
    let mut open = reader.open_messages(Some(at))?;
    open.retain(|open| open.seq.is_none_or(|seq| seq < turn.seq));
    let open = waiting(&open, &turn.inputs);
    let laid = history_at(reader, turn, &open, &history, kept.history_from, &how)?;
    let memory = shown_memory(reader, &memory)?;
    let mut layers: Vec<PromptLayerRecord> =
        kept.head.into_iter().map(|(name, text)| full_layer(&name, text)).collect();
    layers.push(again("open", laid.open, kept.open));
    layers.push(again("digest", laid.digest, kept.digest));
    layers.push(again_of("history", transcript(&laid.messages), laid.row.sha256, kept.history));
    layers.push(full_layer("status", kept.status));
    let manner = history.message_style((caps, how.weak));
    // silent-ok: as above.
    let view = kept.worklog_view.as_deref().and_then(|view| serde_json::from_str(view).ok());
    let worklog = worklog_layer(view.as_ref(), &caps, turn.id, manner);
    layers.push(again("worklog", worklog, kept.worklog));
    layers.push(again("memory", memory_layer(&memory, &caps), kept.memory));
    let mut input = history::render_inputs(turn.id, &turn.inputs, caps.input, manner);
    if input.is_empty() && how.weak {
        history::GO_ON.clone_into(&mut input);
    }
    layers.push(again("input", input, kept.input));
    let PromptRow { window_tokens, answer_tokens, history_from, .. } = kept;
    Ok(Some(PromptRecord { at, layers, window_tokens, answer_tokens, history_from }))
}

/// The items of the memory as they were shown. What was forgotten since is missing, and the hash
/// of the layer says so.
fn shown_memory(reader: &Reader, views: &[MemoryView]) -> Result<Vec<ShownMemory>, StoreError> {
    let newer = views.iter().filter_map(|view| view.newer.map(|(id, ..)| id));
    let ids: Vec<_> = views.iter().map(|view| view.id).chain(newer).collect();
    let items = reader.memories_of(&ids)?;
    Ok(views.iter().filter_map(|view| ShownMemory::again(view, &items)).collect())
}

/// The past as it was shown to a turn, as far as it is what it was.
fn history_at(
    reader: &Reader,
    turn: &TurnRecord,
    open: &[OpenMessage],
    history: &HistoryCache,
    from: Option<u64>,
    how: &HistoryStyle,
) -> Result<RenderedHistory, StoreError> {
    let digest = HistoryDigest::from_row(reader.digest(Some(from.unwrap_or(turn.seq)))?.as_ref());
    let wanted = HistoryRequest {
        place: HistoryPosition { from: from.unwrap_or(0), ..HistoryPosition::default() },
        digest: &digest,
        open,
        room: 0,
        affordable: 0,
        open_room: how.open_room,
        tells: false,
        turn: turn.id,
    };
    Ok(history.show(&wanted, how, None))
}

fn full_layer(name: &str, text: String) -> PromptLayerRecord {
    let name = name.to_owned();
    let chars = chars(&text);
    let tokens = tokens::estimate(&text);
    PromptLayerRecord { name, chars, tokens, on_record: true, text: Some(text) }
}

fn again(name: &str, text: String, kept: PromptLayerRow) -> PromptLayerRecord {
    let hash = Hash::of(text.as_bytes());
    again_of(name, text, hash, kept)
}

/// A layer that was made anew and has this hash.
fn again_of(name: &str, text: String, hash: Hash, kept: PromptLayerRow) -> PromptLayerRecord {
    let PromptLayerRow { sha256, chars, tokens } = kept;
    let text = (hash == sha256).then_some(text);
    PromptLayerRecord { name: name.to_owned(), chars, tokens, on_record: text.is_some(), text }
}

/// Returns the stored row of a text of this size.
pub(super) fn layer_row(text: &str, tokens: u32) -> PromptLayerRow {
    PromptLayerRow { sha256: Hash::of(text.as_bytes()), chars: chars(text), tokens }
}

fn chars(text: &str) -> u32 {
    u32::try_from(text.chars().count()).unwrap_or(u32::MAX)
}
