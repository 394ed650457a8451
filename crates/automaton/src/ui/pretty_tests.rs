//! Screens for people.

use std::sync::Arc;

use automaton_core::entropy::SystemEntropy;
use automaton_core::error::ErrorClass;
use automaton_core::event::Service;
use automaton_core::id::IdGenerator;
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::record::{CallStatus, DecisionOutcome, StopReason, WakeCause, WakeSource};
use automaton_core::tier::SurvivalTier;
use automaton_core::time::{SystemClock, Timestamp};
use automaton_core::trust::{Label, Labelled};

use super::*;

fn story() -> Vec<Event> {
    let ids = IdGenerator::new(Arc::new(SystemClock), Arc::new(SystemEntropy));
    let turn = ids.id();
    let call = ids.id();
    let session = ids.id();
    let tool = "write_file".to_owned();
    let reason = Labelled::new(Label::Creator, "creator", "hello\u{1b}[2J there");
    vec![
        Event::WakeStarted {
            session,
            causes: vec![WakeCause { source: WakeSource::Inbox, reason: reason.clone() }],
        },
        Event::MessageReceived { message: ids.id(), body: reason },
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
            estimated: false,
            first_token_ms: 200,
            total_ms: 1500,
            unknown_end: None,
            left_out: vec!["sleep".to_owned()],
        },
        Event::DecisionMade {
            turn,
            call,
            tool: tool.clone(),
            outcome: DecisionOutcome::Deny,
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

fn money() -> Vec<Event> {
    let ids = IdGenerator::new(Arc::new(SystemClock), Arc::new(SystemEntropy));
    let address = "0x9b95Ceee0A5aEE6663E21929423dE818537aC302".to_owned();
    let hash = "0x27fdb744ff6c07a0bca569febac97296e040fdff73fb01c409dbf79cd3938ff0".to_owned();
    let usdc = MicroUsdc::new(20_000_000);
    let credits = Microcents::new(500_000_000);
    let amount = MicroUsdc::new(5_000_000);
    let url = || Some("http://127.0.0.1:4".to_owned());
    let read = |credits, tier| Event::BalancesRead {
        credits: Some(credits),
        usdc: Some(usdc),
        tier: Some(tier),
    };
    vec![
        Event::WalletCreated { address: address.clone() },
        Event::WalletFunded { address: address.clone(), amount: usdc, transaction: hash.clone() },
        Event::ServiceReady { service: Service::Chain, url: url(), took_ms: 6 },
        Event::AgentStarted {
            automaton: ids.id(),
            name: "Ada".to_owned(),
            home: "/home/ada/.automaton".to_owned(),
            version: "0.1.0".to_owned(),
        },
        Event::AccountOpened { cloud: "http://127.0.0.1:4".to_owned(), address: address.clone() },
        Event::BrainReady {
            model: "SmolLM2".into(),
            context_tokens: 8192,
            note: None,
            took_ms: 508,
        },
        read(Microcents::ZERO, SurvivalTier::Critical),
        Event::TopupDemanded { usd: 5, amount, payee: address },
        read(credits, SurvivalTier::Normal),
        Event::TopupSettled {
            payment: ids.id(),
            amount,
            transaction: Some(hash),
            credits: Some(credits),
        },
    ]
}

/// Renders events without the ids of this run.
fn shown_of(
    events: Vec<Event>,
    (thoughts, paint, times): (ThoughtDisplay, ColorMode, TimeColumn),
    width: usize,
) -> String {
    let mut out = Vec::new();
    let screen = Viewport { user_home: Some("/home/ada".to_owned()), ..Viewport::default() };
    let mut pretty = EventPrinter::new(&mut out, paint, thoughts, times).on(screen.fixed(width));
    for event in events {
        pretty.show(&StampedEvent { at: Timestamp::EPOCH, event }).unwrap();
    }
    let text = String::from_utf8(out).unwrap();
    let ids = |word: &str| word.len() >= 26 && word.starts_with("(01");
    let words: Vec<&str> =
        text.split(' ').map(|word| if ids(word) { "(ID)" } else { word }).collect();
    words.join(" ")
}

fn shown(thoughts: ThoughtDisplay, paint: ColorMode) -> String {
    shown_of(story(), (thoughts, paint, TimeColumn::Hidden), 80)
}

#[test]
fn a_turn_as_it_comes() {
    insta::assert_snapshot!(shown(ThoughtDisplay::Streamed, ColorMode::Plain));
    let wide =
        shown_of(story(), (ThoughtDisplay::Whole, ColorMode::Plain, TimeColumn::Hidden), 120);
    insta::assert_snapshot!("a_turn_in_a_wide_window", wide);
}

#[test]
fn a_log_tells_everything_with_its_time() {
    let events = money().into_iter().chain(story()).collect();
    let log = (ThoughtDisplay::Whole, ColorMode::Plain, TimeColumn::Shown);
    insta::assert_snapshot!(shown_of(events, log, 120));
}

#[test]
fn the_test_wallet_and_what_it_buys_are_one_line_each() {
    let text =
        shown_of(money(), (ThoughtDisplay::Streamed, ColorMode::Plain, TimeColumn::Hidden), 80);
    assert_eq!(
        text,
        "Test wallet 0x9b95…C302 with 20.00 USDC on a chain of its own\n\
         Ada starts: version 0.1.0, home ~/.automaton\n\
         Thinks with SmolLM2: a window of 8,192 tokens, ready in 508 ms\n\
         Bought $5.00 of credits for 5.00 USDC\n"
    );
    let mut unfunded = money();
    unfunded.remove(1);
    let text =
        shown_of(unfunded, (ThoughtDisplay::Streamed, ColorMode::Plain, TimeColumn::Hidden), 80);
    assert!(text.starts_with("New wallet 0x9b95…C302\nAda starts"), "{text}");
}

#[test]
fn why_it_stopped_is_told_once() {
    let ids = IdGenerator::new(Arc::new(SystemClock), Arc::new(SystemEntropy));
    let sentence = "Stopped: 30 answers used. `automaton wake` goes on.".to_owned();
    let body = Labelled::new(Label::Own, "self", &sentence);
    let session = ids.id();
    let reason = StopReason::Envelope;
    let ended = Event::WakeEnded { session, reason, turns: 3, sentence: sentence.clone() };
    let told = Event::MessageSent { message: ids.id(), recipient: "creator".to_owned(), body };
    let brief = (ThoughtDisplay::Streamed, ColorMode::Plain, TimeColumn::Hidden);
    let text = shown_of(vec![told, ended.clone()], brief, 120);
    assert_eq!(text.matches("30 answers used").count(), 1, "{text}");
    assert_eq!(shown_of(vec![ended], brief, 120).trim_end(), sentence);
}

#[test]
fn an_answer_that_was_its_last_words_is_shown_once() {
    let ids = IdGenerator::new(Arc::new(SystemClock), Arc::new(SystemEntropy));
    let sent = |text: &str| Event::MessageSent {
        message: ids.id(),
        recipient: "creator".to_owned(),
        body: Labelled::new(Label::Own, "self", text),
    };
    for thoughts in [ThoughtDisplay::Streamed, ThoughtDisplay::Whole] {
        let of = |times, said: &str| {
            let events = story().into_iter().chain([sent(said)]).collect();
            shown_of(events, (thoughts, ColorMode::Plain, times), 120)
        };
        let text = of(TimeColumn::Hidden, "I will\nwrite it down.");
        assert_eq!(text.matches("write it down.").count(), 1, "{text}");
        assert!(text.ends_with("\nMessage to you: what it said above\n"), "{text}");
        assert!(of(TimeColumn::Hidden, "Another.").ends_with("Message to you: Another.\n"));
        let log = of(TimeColumn::Shown, "I will\nwrite it down.");
        assert!(log.ends_with("Message to you: I will write it down.\n"), "{log}");
    }
}

#[test]
fn no_line_is_wider_than_the_window() {
    for width in [80, 120] {
        for times in [TimeColumn::Hidden, TimeColumn::Shown] {
            let events = money().into_iter().chain(story()).collect();
            let text = shown_of(events, (ThoughtDisplay::Streamed, ColorMode::Plain, times), width);
            for line in text.lines() {
                assert!(columns(line) <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn a_thought_is_shown_once_either_way() {
    for thoughts in [ThoughtDisplay::Streamed, ThoughtDisplay::Whole] {
        let text = shown(thoughts, ColorMode::Plain);
        assert_eq!(text.matches("write it down.").count(), 1, "{text}");
        assert!(!text.contains('\u{1b}'));
    }
    let painted = shown(ThoughtDisplay::Whole, ColorMode::Ansi);
    assert!(painted.contains("\u{1b}[31m  ✗ write_file refused by policy"), "{painted}");
}

#[test]
fn what_takes_its_time_is_shown_until_the_next_event() {
    let ids = IdGenerator::new(Arc::new(SystemClock), Arc::new(SystemEntropy));
    let turn = ids.id();
    let session = ids.id();
    let mut out = Vec::new();
    let mut pretty =
        EventPrinter::new(&mut out, ColorMode::Plain, ThoughtDisplay::Streamed, TimeColumn::Hidden);
    let show = |pretty: &mut EventPrinter<_>, event| {
        pretty.show(&StampedEvent { at: Timestamp::EPOCH, event }).unwrap();
    };
    pretty.pulse(Span::from_secs(9)).unwrap();
    show(&mut pretty, Event::TurnStarted { turn, seq: 1, session });
    let started =
        |prompt_tokens| Event::InferenceStarted { turn, model: "m".into(), prompt_tokens };
    show(&mut pretty, started(1039));
    pretty.pulse(Span::from_millis(6400)).unwrap();
    show(&mut pretty, Event::ThoughtDelta { turn, text: "So ".to_owned() });
    pretty.pulse(Span::from_secs(9)).unwrap();
    show(
        &mut pretty,
        Event::TurnFailed {
            turn,
            kind: ErrorClass::Upstream,
            error: "x".into(),
            hint: None,
            retry_ms: None,
        },
    );
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "Turn 1\n\r\u{1b}[2K  reading 1,039 tokens … 6 s\r\u{1b}[2K  │ So\n  The turn failed: x\n"
    );
}
