//! Pure: what is remembered of a turn, by fixed rules: what it was told, what it did, with whom.
//!
//! Results of tools are never remembered here, whatever they say: an error text is no fact, and
//! what was recalled is known already. Each text keeps its label, and secrets are left out.

use automaton_core::id::TurnId;
use automaton_core::memory::{MemoryTier, NewMemory};
use automaton_core::record::{CallStatus, FinishedCall, TurnInput, TurnRecord};
use automaton_core::time::{DAY, Span};
use automaton_core::trust::{Label, Labelled};
use automaton_policy::guard::secrets;
use automaton_tools::WorkClass;

use crate::prompt::input_label;
use crate::toolbox::ToolSet;

/// Characters of a message that are remembered.
const SAID_CHARS_MAX: usize = 2_000;

/// Characters of what the automaton said or thought.
const THOUGHT_CHARS_MAX: usize = 600;

/// Calls that an event names.
const CALLS_MAX: usize = 12;

/// Time for which the automaton's note about its sleep stays in working memory.
const SLEEP_NOTE_LASTS: Span = Span::from_secs(7 * DAY.as_millis() / 1000);

/// Class of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TurnClass {
    Failed,
    Strategic,
    Communication,
    Productive,
    Maintenance,
    Idle,
}

impl From<WorkClass> for TurnClass {
    fn from(class: WorkClass) -> Self {
        match class {
            WorkClass::Strategic => Self::Strategic,
            WorkClass::Communication => Self::Communication,
            WorkClass::Productive => Self::Productive,
            WorkClass::Maintenance => Self::Maintenance,
        }
    }
}

impl TurnClass {
    /// The name, and how important such a turn is, in percent.
    const fn traits(self) -> (&'static str, u8) {
        match self {
            Self::Failed => ("failure", 80),
            Self::Strategic => ("decision", 90),
            Self::Communication => ("conversation", 60),
            Self::Productive => ("work", 70),
            Self::Maintenance => ("upkeep", 30),
            Self::Idle => ("idle", 10),
        }
    }
}

/// A turn as the memory sees it.
pub(super) struct RememberedTurn<'a> {
    pub(super) id: TurnId,
    pub(super) inputs: &'a [TurnInput],
    pub(super) thought: &'a str,
    /// Its calls, of which results are never remembered.
    pub(super) calls: Vec<&'a FinishedCall>,
    pub(super) tools: &'a ToolSet,
    /// Reason for the sleep, in the automaton's words.
    pub(super) sleep_note: Option<&'a str>,
}

/// Returns the memories of a turn that recovery has committed.
pub(crate) fn ingestion_of(turn: &TurnRecord, tools: &ToolSet) -> Vec<NewMemory> {
    let calls: Vec<FinishedCall> = turn.calls.iter().map(FinishedCall::from).collect();
    remember(&RememberedTurn {
        id: turn.id,
        inputs: &turn.inputs,
        thought: &turn.thought,
        calls: calls.iter().collect(),
        tools,
        sleep_note: None,
    })
}

/// Returns the memories of a turn.
pub(super) fn remember(turn: &RememberedTurn<'_>) -> Vec<NewMemory> {
    let said = turn.inputs.iter().filter(|input| input.message.is_some());
    let mut memories: Vec<NewMemory> = Vec::new();
    for Labelled { label, source, text } in said.map(|input| &input.said) {
        let strength = if *label == Label::Creator { 80 } else { 60 };
        let text = without_secrets(text, SAID_CHARS_MAX);
        let body = Labelled { label: *label, source: source.clone(), text };
        memories.push(item(turn, MemoryTier::Episodic, "message", "", body, strength));
        if *label == Label::Peer {
            let body = Labelled { label: *label, source: source.clone(), text: String::new() };
            let tier = MemoryTier::Relationship;
            let name = source.as_str();
            memories.push(item(turn, tier, "wrote to us", name, body, 50));
        }
    }
    memories.extend(event(turn));
    let note = turn.sleep_note.map(|note| without_secrets(note, THOUGHT_CHARS_MAX));
    if let Some(note) = note.filter(|note| !note.trim().is_empty()) {
        let body = Labelled::new(label_of(turn), "agent", note);
        let note = item(turn, MemoryTier::Working, "note", "why I slept", body, 30);
        memories.push(NewMemory { lasts: Some(SLEEP_NOTE_LASTS), ..note });
    }
    memories
}

/// The turn itself, where it did or said anything that is worth finding again.
fn event(turn: &RememberedTurn<'_>) -> Option<NewMemory> {
    let class = class_of(turn);
    let (name, strength) = class.traits();
    let thought = turn.thought.trim();
    if class == TurnClass::Idle || (class == TurnClass::Maintenance && thought.is_empty()) {
        return None;
    }
    let mark = |call: &&FinishedCall| match call.status {
        CallStatus::Done => call.tool.clone(),
        status => format!("{} ({})", call.tool, status.name()),
    };
    let mut calls: Vec<String> = turn.calls.iter().take(CALLS_MAX).map(mark).collect();
    calls.dedup();
    let thought = without_secrets(thought, THOUGHT_CHARS_MAX);
    let parts = [calls.join(", "), thought];
    let parts: Vec<&str> = parts.iter().map(String::as_str).filter(|p| !p.is_empty()).collect();
    let body = Labelled::new(label_of(turn), "agent", parts.join(": "));
    Some(item(turn, MemoryTier::Episodic, name, "", body, strength))
}

/// The class of the whole turn: a failure first, then what matters most.
fn class_of(turn: &RememberedTurn<'_>) -> TurnClass {
    let failed = |call: &&FinishedCall| {
        matches!(call.status, CallStatus::Failed | CallStatus::Refused | CallStatus::Unknown)
    };
    if turn.calls.iter().any(failed) {
        return TurnClass::Failed;
    }
    match turn.calls.iter().map(|call| turn.tools.class_of(&call.tool)).max() {
        Some(class) => class.into(),
        // Words that end a wake are an answer to somebody.
        None if !turn.thought.trim().is_empty() => TurnClass::Communication,
        None => TurnClass::Idle,
    }
}

/// Returns the label of the automaton's words in this turn. They may come from texts that it
/// read.
fn label_of(turn: &RememberedTurn<'_>) -> Label {
    let results = turn.calls.iter().map(|call| call.result.label);
    results.fold(Label::Own.meet(input_label(turn.inputs)), Label::meet)
}

fn item(
    turn: &RememberedTurn<'_>,
    tier: MemoryTier,
    kind: &str,
    name: &str,
    body: Labelled,
    strength: u8,
) -> NewMemory {
    let kind = kind.to_owned();
    let name = name.to_owned();
    NewMemory { tier, kind, name, body, strength, turn: Some(turn.id), lasts: None }
}

/// The beginning of a text, without the secrets in it.
pub(crate) fn without_secrets(text: &str, chars_max: usize) -> String {
    let mut open = String::with_capacity(text.len().min(chars_max * 4));
    let mut from = 0;
    for secret in secrets::find(text, &[]) {
        open.push_str(&text[from..secret.start]);
        open.push_str("[a secret]");
        from = secret.end;
    }
    open.push_str(&text[from..]);
    match open.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &open[..end]),
        None => open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(label: Label, source: &str, text: &str) -> TurnInput {
        let message = Some("01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap());
        TurnInput { said: Labelled::new(label, source, text), message, file: None }
    }

    type Call<'a> = (&'a str, CallStatus, Label);

    fn remembered(inputs: &[TurnInput], thought: &str, calls: &[Call<'_>]) -> Vec<String> {
        let finished = |(tool, status, label): &Call<'_>| {
            let id = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
            let result = Labelled::new(*label, "test", "A result.");
            let tool = (*tool).to_owned();
            FinishedCall { tool, result, ..FinishedCall::by_runtime(id, *status, "") }
        };
        let calls: Vec<FinishedCall> = calls.iter().map(finished).collect();
        shown(&RememberedTurn {
            id: "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap(),
            inputs,
            thought,
            calls: calls.iter().collect(),
            tools: &ToolSet::built_in().unwrap(),
            sleep_note: None,
        })
    }

    fn shown(turn: &RememberedTurn<'_>) -> Vec<String> {
        let line = |it: NewMemory| {
            format!("{} {} {} {}: {}", it.tier, it.kind, it.name, it.body.label, it.body.text)
        };
        remember(turn).into_iter().map(line).collect()
    }

    #[test]
    fn what_was_said_and_done_is_remembered_with_whose_word_it_is() {
        let inputs = [told(Label::Creator, "creator", "My boat is called Ilse.")];
        let done = [("write_file", CallStatus::Done, Label::Own)];
        assert_eq!(
            remembered(&inputs, "I wrote it down.", &done),
            [
                "episodic message  creator: My boat is called Ilse.",
                "episodic work  self: write_file: I wrote it down.",
            ]
        );
        let inputs = [told(Label::Peer, "0xabc", "Pay me.")];
        assert_eq!(
            remembered(&inputs, "No.", &[]),
            [
                "episodic message  peer: Pay me.",
                "relationship wrote to us 0xabc peer: ",
                "episodic conversation  peer: No.",
            ]
        );
    }

    #[test]
    fn an_error_text_is_no_fact_and_what_was_read_keeps_its_label() {
        let failed = [("exec", CallStatus::Failed, Label::Web)];
        let thought = "It failed.";
        assert_eq!(
            remembered(&[], thought, &failed),
            ["episodic failure  web: exec (failed): It failed."]
        );
    }

    #[test]
    fn nothing_is_remembered_of_turns_in_which_nothing_happened() {
        assert!(remembered(&[], " ", &[]).is_empty());
        let looked = [("recall_facts", CallStatus::Done, Label::Own)];
        assert!(remembered(&[], "", &looked).is_empty(), "what was recalled is known");
    }

    #[test]
    fn secrets_are_left_out_and_long_texts_cut() {
        let key = format!("sk-{}", "a1B2c3D4".repeat(6));
        let text = format!("use {key} for it, {}", "x".repeat(3_000));
        let inputs = [told(Label::Creator, "creator", &text)];
        let line = &remembered(&inputs, "", &[])[0];
        assert!(line.contains("use [a secret] for it") && !line.contains("sk-"), "{line}");
        assert!(line.chars().count() < 2_100);
    }
}
