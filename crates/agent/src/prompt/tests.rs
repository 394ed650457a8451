//! Tests of the prompt as a whole.

use std::sync::Arc;

use automaton_core::entropy::SystemEntropy;
use automaton_core::id::Mint;
use automaton_core::record::{CallRecord, CallStatus, TurnRecord, TurnStatus};
use automaton_core::time::SystemClock;
use automaton_inference::{Role, catalogue};
use automaton_policy::guard::Guard;
use automaton_tools::list;

use super::*;
use crate::settings::tests::settings;

fn guard() -> Arc<Guard> {
    Arc::new(Guard::new().unwrap())
}

fn mint() -> Mint {
    Mint::new(Arc::new(SystemClock), Arc::new(SystemEntropy))
}

/// A prompt for a turn that answers `input`, after the given turns.
fn prompt(settings: &Settings, turns: &[TurnRecord], input: &str) -> Prompt {
    let model = catalogue::model("gpt-5.2").unwrap();
    let inputs = [Labelled::new(Label::Creator, "creator", input)];
    build(&Material {
        settings,
        model: &model,
        tools: &list::moneyless(),
        past: &Past::of(turns, caps_of(settings, &model), guard()),
        facts: &[Fact {
            category: "creator".to_owned(),
            key: "colour".to_owned(),
            value: Labelled::new(Label::Own, "memory", "green"),
            confidence_percent: 100,
            updated_at: Timestamp::EPOCH,
        }],
        inputs: &inputs,
        now: Timestamp::from_millis(1_771_509_802_123),
        turn_id: mint().id(),
        turn: 8,
        wake_turn: 2,
        nudge: None,
        balances: None,
        vitals: None,
    })
}

fn past_turn(seq: u64, text: &str) -> TurnRecord {
    let result = Labelled::new(Label::Tool, "exec", text);
    TurnRecord {
        id: mint().id(),
        seq,
        session: mint().id(),
        status: TurnStatus::Committed,
        inputs: vec![Labelled::new(Label::Creator, "creator", "Go.")],
        thought: "I run it.".to_owned(),
        calls: vec![CallRecord {
            id: mint().id(),
            tool: "exec".to_owned(),
            arguments: r#"{"command":"true"}"#.to_owned(),
            status: CallStatus::Done,
            result: Some(result),
            duration: None,
        }],
        usage: None,
        opened_at: Timestamp::EPOCH,
        committed_at: None,
    }
}

#[test]
fn the_whole_prompt_reads_like_this() {
    let prompt = prompt(&settings(), &[], "What is my favourite colour?");
    let text: Vec<String> =
        prompt.messages.iter().map(|m| format!("=== {:?}\n{}", m.role, m.content)).collect();
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn a_prompt_is_the_beginning_of_the_next_one_but_for_its_last_message() {
    let settings = settings();
    let turns: Vec<_> = (1..=3).map(|seq| past_turn(seq, "fine")).collect();
    let before = prompt(&settings, &turns[..2], "One").messages;
    let after = prompt(&settings, &turns, "Two").messages;
    let stable = before.len() - 1;
    let texts = |messages: &[Message]| -> Vec<String> {
        messages.iter().map(|message| message.content.clone()).collect()
    };
    assert_eq!(texts(&before[..stable]), texts(&after[..stable]));
}

#[test]
fn every_layer_keeps_its_cap_whatever_it_is_given() {
    let long = "All work and no play makes a dull automaton. ".repeat(3000);
    let settings = Settings {
        genesis: long.clone(),
        soul: long.clone(),
        constitution: long.clone(),
        ..settings()
    };
    let turns: Vec<_> = (1..=40).map(|seq| past_turn(seq, &long)).collect();
    let prompt = prompt(&settings, &turns, &long);
    for layer in &prompt.layers {
        assert!(layer.tokens <= layer.cap_tokens, "{layer:?}");
    }
    assert!(history::cost(&prompt.messages) + prompt.answer_tokens <= prompt.window_tokens);
    assert!(prompt.history_from > Some(1), "the history was cut");
}

#[test]
fn a_name_or_purpose_cannot_open_a_section_of_its_own() {
    let settings = Settings { genesis: "{{tools}} and {{name}}".to_owned(), ..settings() };
    let system = &prompt(&settings, &[], "Hi").messages[0];
    assert_eq!(system.role, Role::System);
    assert!(system.content.ends_with("{{tools}} and {{name}}"), "{}", system.content);
}

#[test]
fn what_the_runtime_tells_takes_nothing_from_a_message_and_a_stranger_does() {
    let input = |label| Labelled::new(label, "x", "text");
    let check = |labels: &[Label], expected: Label| {
        let inputs: Vec<_> = labels.iter().map(|label| input(*label)).collect();
        assert_eq!(input_label(&inputs), expected, "{labels:?}");
    };
    check(&[], Label::Own);
    check(&[Label::Own], Label::Own);
    check(&[Label::Own, Label::Creator], Label::Creator);
    check(&[Label::Own, Label::Creator, Label::Peer], Label::Peer);
}
