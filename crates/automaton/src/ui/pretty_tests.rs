//! What a person reads.

use std::sync::Arc;

use automaton_core::entropy::SystemEntropy;
use automaton_core::id::Mint;
use automaton_core::money::Microcents;
use automaton_core::record::{StopReason, WakeCause, WakeSource};
use automaton_core::time::{SystemClock, Timestamp};
use automaton_core::trust::{Label, Labelled};

use super::*;

fn story() -> Vec<Event> {
    let mint = Mint::new(Arc::new(SystemClock), Arc::new(SystemEntropy));
    let (turn, call, session) = (mint.id(), mint.id(), mint.id());
    let tool = "write_file".to_owned();
    let reason = Labelled::new(Label::Creator, "creator", "hello\u{1b}[2J there");
    vec![
        Event::WakeStarted {
            session,
            causes: vec![WakeCause { source: WakeSource::Inbox, reason: reason.clone() }],
        },
        Event::MessageReceived { message: mint.id(), body: reason },
        Event::TurnStarted { turn, seq: 1, session },
        Event::ThoughtDelta { turn, text: "I will\nwrite".to_owned() },
        Event::ThoughtDelta { turn, text: " it down.".to_owned() },
        Event::InferenceCompleted {
            turn,
            model: "m".to_owned(),
            prompt_tokens: 900,
            cached_tokens: 800,
            completion_tokens: 20,
            cost: Microcents::new(12_000),
            first_token_ms: 200,
            total_ms: 1500,
            left_out: vec!["sleep".to_owned()],
        },
        Event::DecisionMade {
            turn,
            call,
            tool: tool.clone(),
            outcome: Outcome::Deny,
            code: "PATH".to_owned(),
            reason: "outside the workspace".to_owned(),
        },
        Event::CallStarted {
            turn,
            call,
            tool: tool.clone(),
            arguments: "{\"path\":\"a\"}".to_owned(),
        },
        Event::CallFinished {
            turn,
            call,
            tool,
            status: CallStatus::Done,
            result: Labelled::new(Label::Own, "self", "x".repeat(300)),
            duration_ms: 12,
        },
        Event::TurnCommitted {
            turn,
            seq: 1,
            session,
            thought: "I will\nwrite it down.".to_owned(),
            calls: 1,
            cost: Microcents::new(12_000),
        },
        Event::SleepStarted {
            until: Some(Timestamp::from_millis(61_000)),
            planned_ms: Some(60_000),
            reason: StopReason::Asked,
        },
        Event::SleepEnded { planned_ms: Some(60_000), actual_ms: 1000 },
    ]
}

fn shown(thoughts: Thoughts, paint: Paint) -> String {
    let mut out = Vec::new();
    let mut pretty = Pretty::new(&mut out, paint, thoughts, Times::Hidden);
    for event in story() {
        pretty.show(&Stamped { at: Timestamp::EPOCH, event }).unwrap();
    }
    String::from_utf8(out).unwrap()
}

#[test]
fn a_turn_as_it_comes() {
    insta::assert_snapshot!(shown(Thoughts::Streamed, Paint::Plain));
}

#[test]
fn a_thought_is_shown_once_either_way() {
    for thoughts in [Thoughts::Streamed, Thoughts::Whole] {
        let text = shown(thoughts, Paint::Plain);
        assert_eq!(text.matches("write it down.").count(), 1, "{text}");
        assert!(!text.contains('\u{1b}'));
    }
    assert!(shown(Thoughts::Whole, Paint::Ansi).contains("\u{1b}[31m  ✗ write_file is refused"));
}
