//! How far a wake goes: as long as there is something new, up to what its creator allows;
//! and what model and creator are told of its limits.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use automaton_agent::{
    AgentLimits, Budgets, EndReason, Pace, Settings, TURNS_MAX, UnattendedBudget, live,
};
use automaton_core::event::Event;
use automaton_core::faults::NoFaults;
use automaton_core::inference_budget::InferenceCeilings;
use automaton_core::money::Microcents;
use automaton_core::record::{CallStatus, StopReason};
use automaton_core::time::Span;
use automaton_core::trust::{Label, Labelled};
use automaton_store::{OutboxMessage, Store};
use serde_json::json;
use tokio::sync::watch;

use crate::brain::{Brain, Move, sleep, write};
use crate::life::{Events, Home, deps, settings, stops};

const CENT: i64 = Microcents::PER_CENT;

fn cents(cents: i64) -> Option<Microcents> {
    Some(Microcents::new(cents * CENT))
}

/// What holds where the file names the envelope and the turns of every wake.
fn usual() -> (AgentLimits, Budgets) {
    let limits = AgentLimits {
        backoff: Span::from_millis(1),
        turns_of_creator: 25,
        ..AgentLimits::default()
    };
    let envelope = UnattendedBudget { answers: Some(30), cost: cents(25) };
    (
        limits,
        Budgets {
            envelope,
            ceilings: InferenceCeilings { per_day: cents(500), ..InferenceCeilings::default() },
            ..Budgets::default()
        },
    )
}

/// What holds where it says nothing, or nothing but what a day may cost.
fn by_the_day(a_day: i64) -> (AgentLimits, Budgets) {
    let (limits, budgets) = usual();
    let limits = AgentLimits { turns_of_creator: TURNS_MAX, ..limits };
    let creators = Some(UnattendedBudget::default());
    (
        limits,
        Budgets {
            creators,
            ceilings: InferenceCeilings { per_day: cents(a_day), ..InferenceCeilings::default() },
            ..budgets
        },
    )
}

/// Lives until it sleeps.
async fn lives(
    home: &Home,
    store: &Store,
    brain: &Arc<Brain>,
    (limits, budgets): (AgentLimits, Budgets),
) -> Vec<Event> {
    let settings = Settings { limits, budgets, ..settings(home.path(), 1) };
    lives_by(settings, store, brain).await
}

async fn lives_by(mut settings: Settings, store: &Store, brain: &Arc<Brain>) -> Vec<Event> {
    let events = Arc::new(Events::default());
    let deps = deps(store, Arc::clone(brain), Arc::clone(&events));
    let (end, shutdown) = watch::channel(false);
    settings.pace = Pace::default();
    let lived = tokio::task::spawn_blocking(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(live(settings, deps, shutdown)).unwrap()
    });
    let sleeps = |event: &Event| matches!(event, Event::SleepStarted { .. });
    for _ in 0..12_000 {
        if events.all().iter().any(sleeps) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    end.send_replace(true);
    lived.await.unwrap();
    assert!(events.all().iter().any(sleeps), "it never slept");
    events.all()
}

async fn ask(store: &Store, text: &str) {
    store.receive(Labelled::new(Label::Creator, "creator", text), None).await.unwrap();
}

fn outbox(home: &Home) -> Vec<OutboxMessage> {
    home.reader().outbox_since(0, 100).unwrap()
}

/// What the runtime told the creator, which has to be one message.
fn told(home: &Home) -> String {
    let mut sent = outbox(home);
    assert_eq!(sent.len(), 1, "{sent:?}");
    let message = sent.remove(0);
    assert_eq!(message.body.source.as_str(), "runtime", "{message:?}");
    message.body.text
}

/// The sentence with which the last wake ended.
fn sentence(events: &[Event]) -> String {
    let ended = events.iter().rev().find_map(|event| match event {
        Event::WakeEnded { sentence, .. } => Some(sentence.clone()),
        _ => None,
    });
    ended.unwrap()
}

/// Calls of which each finds something else.
fn looks(count: u32) -> Vec<Move> {
    let look = |n: u32| Move::Call(vec![("recall_facts", json!({ "query": format!("fact {n}") }))]);
    (0..count).map(look).collect()
}

fn read(path: &str) -> Move {
    Move::Call(vec![("read_file", json!({ "path": path }))])
}

#[tokio::test]
async fn to_read_three_files_is_no_idleness() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    for name in ["a", "b", "c", "d"] {
        std::fs::write(home.path().join("workspace").join(name), name).unwrap();
    }
    ask(&store, "What do they say?").await;
    let moves = ["a", "b", "c", "d"].map(read);
    let brain = Arc::new(Brain::new(32_768, &moves, Move::Say("a, b, c and d.")));
    let events = lives(&home, &store, &brain, usual()).await;
    assert_eq!(stops(&events), [StopReason::Said]);
    let sent = outbox(&home);
    assert_eq!((sent.len(), sent[0].body.text.as_str()), (1, "a, b, c and d."));
    assert!(store.open_messages().await.unwrap().is_empty());
}

#[tokio::test]
async fn what_is_always_new_ends_at_the_envelope_all_the_same() {
    for creators in [false, true] {
        let home = Home::new();
        let store = home.store(Arc::new(NoFaults)).await;
        if creators {
            ask(&store, "Look at everything.").await;
        }
        let brain = Arc::new(Brain::new(8192, &looks(100), Move::Say("Fine.")).that_costs());
        let (limits, budgets) = usual();
        let limits = AgentLimits { turns_per_wake: 500, turns_of_creator: 500, ..limits };
        let events = lives(&home, &store, &brain, (limits, budgets)).await;
        assert_eq!(stops(&events), [StopReason::Envelope]);
        assert!(brain.seen().len() <= 30, "{} answers", brain.seen().len());
        let cost = store.unattended_usage().await.unwrap();
        assert_eq!(cost.answers, 0, "it counts anew after the rest");
        let text = told(&home);
        assert!(text.contains("`wakeEnvelope.") && text.contains("`automaton wake`"), "{text}");
        assert_eq!(text.contains("Not answered"), creators, "{text}");
    }
}

#[tokio::test]
async fn counters_and_clocks_are_no_news() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    ask(&store, "Watch yourself.").await;
    let look = Move::Call(vec![("system_synopsis", json!({}))]);
    let brain = Arc::new(Brain::new(32_768, &[], look));
    let events = lives(&home, &store, &brain, by_the_day(2000)).await;
    assert_eq!(stops(&events), [StopReason::Repetition]);
    let turns = home.turns();
    let results: BTreeSet<&str> =
        turns.iter().map(|turn| turn.calls[0].result.as_ref().unwrap().text.as_str()).collect();
    assert_eq!(results.len(), turns.len(), "each of them is another");
    assert!(turns.len() < 8, "{} turns", turns.len());
}

#[tokio::test]
async fn who_sleeps_on_an_open_message_is_told_once_and_then_the_creator_is() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    ask(&store, "Find the cause.").await;
    let id = store.open_messages().await.unwrap()[0].id.to_string();
    let long = Move::Call(vec![("sleep", json!({ "duration_seconds": 3600 }))]);
    let brain = Arc::new(Brain::new(8192, &[], long));
    let events = lives(&home, &store, &brain, usual()).await;
    assert_eq!(stops(&events), [StopReason::Asked]);
    let asked = brain.asked();
    assert_eq!(asked.len(), 2, "once");
    assert!(asked[1].contains("waits for an answer") && asked[1].contains(&id), "{}", asked[1]);
    let text = told(&home);
    assert!(text.contains("Not answered: \"Find the cause.\""), "{text}");
    assert!(text.contains(&format!("`automaton messages close {id}`")), "{text}");
    assert!(text.starts_with("It chose to sleep. `automaton wake` wakes it."), "{text}");
    // A wake that is not the creator's says nothing of it again.
    let words = Labelled::new(Label::Peer, "0xabc", "Hello?");
    store.receive(words, None).await.unwrap();
    lives(&home, &store, &brain, usual()).await;
    assert_eq!((brain.asked().len(), outbox(&home).len()), (3, 1));
}

#[tokio::test]
async fn who_is_reminded_and_answers_owes_nothing() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    ask(&store, "Find the cause.").await;
    let moves = [Move::Call(vec![sleep()])];
    let brain = Arc::new(Brain::new(8192, &moves, Move::Say("It was the disk.")));
    let events = lives(&home, &store, &brain, usual()).await;
    assert_eq!(stops(&events), [StopReason::Said]);
    let sent = outbox(&home);
    assert_eq!((sent.len(), sent[0].body.text.as_str()), (1, "It was the disk."));
    assert!(sent[0].reply_to.is_some());
}

#[tokio::test]
async fn two_hundred_turns_run_through_where_only_the_day_is_limited() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    ask(&store, "Go through all two hundred.").await;
    let brain = Arc::new(Brain::new(8192, &looks(200), Move::Say("That was all.")).that_costs());
    let events = lives(&home, &store, &brain, by_the_day(2000)).await;
    assert_eq!((stops(&events), brain.seen().len()), (vec![StopReason::Said], 201));
    assert_eq!(outbox(&home)[0].body.text, "That was all.");
    assert_eq!(
        store.unattended_usage().await.unwrap().answers,
        0,
        "others have their own answers left"
    );
    // Nobody else gets as far.
    let peer = Labelled::new(Label::Peer, "0xabc", "Now me.");
    store.receive(peer, None).await.unwrap();
    let brain = Arc::new(Brain::new(8192, &looks(200), Move::Say("Fine.")).that_costs());
    let events = lives(&home, &store, &brain, by_the_day(2000)).await;
    assert_eq!((stops(&events), brain.seen().len()), (vec![StopReason::TurnLimit], 25));
}

#[tokio::test]
async fn an_answer_to_its_creator_is_as_long_as_model_and_budget_allow() {
    for (from, long_answers, a_day, longest) in [
        (Label::Creator, true, 2000, 16_384),
        (Label::Creator, true, 500, 7_142),
        (Label::Creator, true, 25, 512),
        (Label::Creator, false, 2000, 512),
        (Label::Peer, true, 2000, 512),
    ] {
        let home = Home::new();
        let store = home.store(Arc::new(NoFaults)).await;
        store.receive(Labelled::new(from, "somebody", "Write it."), None).await.unwrap();
        let brain = Arc::new(Brain::new(131_072, &[], Move::Say("Written.")));
        let (limits, budgets) = by_the_day(a_day);
        let settings = Settings { limits, budgets, long_answers, ..settings(home.path(), 1) };
        lives_by(settings, &store, &brain).await;
        assert_eq!(brain.longest(), [longest], "{from} {long_answers} {a_day}");
    }
}

#[tokio::test]
async fn near_the_end_of_the_day_answers_are_as_long_as_usual_before_there_are_none() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    ask(&store, "Look at everything.").await;
    let brain = Arc::new(Brain::new(131_072, &looks(500), Move::Say("Fine.")).that_costs());
    let (limits, budgets) = by_the_day(100);
    let long_answers = true;
    let settings = Settings { limits, budgets, long_answers, ..settings(home.path(), 1) };
    lives_by(settings, &store, &brain).await;
    let longest = brain.longest();
    assert_eq!((longest[0], longest.last()), (1_428, Some(&512)), "{longest:?}");
    assert!(store.thinking_cost().await.unwrap().day <= cents(100).unwrap());
}

#[tokio::test]
async fn a_run_of_some_turns_ends_with_the_answer_and_not_while_anything_is_to_come() {
    let nap = |seconds: u32| ("sleep", json!({ "duration_seconds": seconds, "reason": "rest" }));
    for (replies, rest, turns, reason) in [
        (true, 7200, 1, EndReason::Answered),
        // A short rest waits for something, and who sleeps on what is open owes an answer.
        (true, 60, 4, EndReason::TurnsUsed),
        (false, 7200, 4, EndReason::TurnsUsed),
    ] {
        let home = Home::new();
        let store = home.store(Arc::new(NoFaults)).await;
        let said = Labelled::new(Label::Creator, "creator", "Do it.");
        let id = store.receive(said, None).await.unwrap().to_string();
        let reply = json!({ "to_address": "creator", "content": "Done.", "reply_to": id });
        let calls = replies.then_some(("send_message", reply)).into_iter().chain([nap(rest)]);
        let moves = [Move::Call(calls.collect())];
        let brain = Arc::new(Brain::new(32_768, &moves, Move::Call(vec![nap(60)])));
        let (ended, _) = crate::life::lives(&home, &store, &brain, 4).await;
        assert_eq!((ended.turns, ended.reason), (turns, reason), "{replies} {rest}");
    }
}

#[tokio::test]
async fn what_costs_nothing_is_bounded_by_turns_alone() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    ask(&store, "Look at everything.").await;
    let brain = Arc::new(Brain::new(8192, &looks(300), Move::Say("Fine.")).that_is_free());
    let events = lives(&home, &store, &brain, usual()).await;
    assert_eq!((stops(&events), brain.seen().len()), (vec![StopReason::TurnLimit], 200));
    assert!(told(&home).contains("200 turns of one wake used"));
}

#[tokio::test]
async fn a_days_budget_bounds_nothing_where_answers_cost_nothing() {
    for (weak, turns) in [(false, 200), (true, 25)] {
        let home = Home::new();
        let store = home.store(Arc::new(NoFaults)).await;
        ask(&store, "Look at everything.").await;
        let brain = Brain::new(16_384, &looks(300), Move::Say("Fine.")).that_is_free();
        let brain = Arc::new(if weak { brain.that_is_weak() } else { brain });
        let events = lives(&home, &store, &brain, by_the_day(2000)).await;
        assert_eq!((stops(&events), brain.seen().len()), (vec![StopReason::TurnLimit], turns));
    }
}

#[tokio::test]
async fn who_is_started_for_some_turns_is_told_before_they_are_used_and_keeps_its_tools() {
    for (turns, told) in [(1, vec![]), (3, vec![2]), (5, vec![4]), (10, vec![8, 9])] {
        let home = Home::new();
        let store = home.store(Arc::new(NoFaults)).await;
        ask(&store, "Look at everything.").await;
        let brain = Arc::new(Brain::new(32_768, &looks(20), Move::Say("Fine.")));
        crate::life::lives(&home, &store, &brain, turns).await;
        let asked = brain.asked();
        let about = |text: &String| text.contains("turns for which you were started");
        let heard: Vec<usize> =
            asked.iter().enumerate().filter(|(_, text)| about(text)).map(|(nth, _)| nth).collect();
        assert_eq!(heard, told, "of {turns}");
        if let Some(last) = told.last() {
            assert!(asked[*last].contains(&format!("This is the last of the {turns} turns")));
        }
        let made = home.turns().pop().unwrap().calls;
        assert_eq!(made[0].status, CallStatus::Done, "the last turn works");
    }
}

#[tokio::test]
async fn the_last_turn_before_a_limit_hands_over_without_tools() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    ask(&store, "Write them all.").await;
    let mut moves = looks(24);
    moves.push(Move::Say("Done: 24 of them. Next: the other six."));
    let brain = Arc::new(Brain::new(32_768, &moves, Move::Say("Fine.")));
    let events = lives(&home, &store, &brain, usual()).await;
    assert_eq!((stops(&events), brain.seen().len()), (vec![StopReason::TurnLimit], 25));
    let asked = brain.asked();
    let warned = |text: &&String| text.contains("Four fifths of a limit are used: 20 of 25 turns");
    assert_eq!(asked.iter().filter(warned).count(), 1, "{}", asked[20]);
    assert!(asked[20].contains("20 of 25 turns"), "{}", asked[20]);
    assert!(asked[24].contains("last turn before a limit (`maxTurnsPerCycle`)"), "{}", asked[24]);
    assert!(brain.offered().is_empty(), "{:?}", brain.offered());
    let text = told(&home);
    assert!(text.starts_with("Stopped: 25 turns of one wake used. `automaton wake` goes on; `maxTurnsPerCycle` in automaton.json raises it. Thinking cost $"), "{text}");
    assert!(text.ends_with("It hands over:\nDone: 24 of them. Next: the other six."), "{text}");
    assert_eq!(sentence(&events), text.lines().next().unwrap());
    assert_eq!(store.open_messages().await.unwrap().len(), 1, "it is no answer");
}

#[tokio::test]
async fn nothing_is_run_in_the_last_turn() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    ask(&store, "Write it.").await;
    let mut moves = looks(5);
    moves.push(Move::Call(vec![write("late", "x")]));
    let brain = Arc::new(Brain::new(32_768, &moves, Move::Say("Fine.")));
    let (limits, budgets) = usual();
    let limits = AgentLimits { turns_of_creator: 6, ..limits };
    let events = lives(&home, &store, &brain, (limits, budgets)).await;
    assert_eq!(stops(&events), [StopReason::TurnLimit]);
    let call = home.turns().pop().unwrap().calls.remove(0);
    assert_eq!(call.status, CallStatus::Skipped);
    assert!(!home.path().join("workspace/late").exists());
}

#[tokio::test]
async fn the_day_ends_with_a_hand_over_that_it_still_pays_for() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    ask(&store, "Look at everything.").await;
    let brain = Brain::new(8192, &looks(500), Move::Say("Fine.")).that_costs();
    let brain = Arc::new(brain.that_hands_over("Half of it is done."));
    let events = lives(&home, &store, &brain, by_the_day(20)).await;
    assert_eq!(stops(&events), [StopReason::Budget]);
    let spent = store.thinking_cost().await.unwrap().day;
    assert!(spent <= Microcents::new(20 * CENT), "{spent}");
    let text = told(&home);
    let key = "`treasuryPolicy.maxInferenceDailyCents` in automaton.json raises it.";
    assert!(text.contains(key) && text.contains("`automaton wake` goes on"), "{text}");
    assert!(text.ends_with("It hands over:\nHalf of it is done."), "{text}");
    let warned = |text: &&String| text.contains("of $0.20 for answers in 24 hours");
    assert!(brain.asked().iter().filter(warned).count() <= 1);
}

#[tokio::test]
async fn a_day_without_room_for_a_hand_over_says_so() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    ask(&store, "Look at everything.").await;
    let brain = Arc::new(Brain::new(8192, &looks(500), Move::Say("Fine.")).that_costs());
    let events = lives(&home, &store, &brain, by_the_day(1)).await;
    assert_eq!(stops(&events), [StopReason::Budget]);
    let text = told(&home);
    assert!(text.contains("of $0.01 used in 24 hours (the next answer may cost $0."), "{text}");
}

#[tokio::test]
async fn every_end_of_the_creators_work_is_a_sentence_with_a_command() {
    let same = |path: &'static str| Move::Call(vec![write(path, "same")]);
    let absent = |n: u32| read(&format!("absent-{n}"));
    let cases: [(StopReason, Vec<Move>, Move, &str); 4] = [
        (StopReason::Repetition, vec![], same("a"), "`automaton send`"),
        (StopReason::Idle, vec![], Move::Nothing, "`automaton turns`"),
        (StopReason::Blocked, (0..9).map(absent).collect(), Move::Nothing, "`automaton turns`"),
        (StopReason::Errors, vec![], Move::Fail, "`brain` in automaton.json"),
    ];
    for (reason, moves, last, words) in cases {
        let home = Home::new();
        let store = home.store(Arc::new(NoFaults)).await;
        ask(&store, "Do it.").await;
        let brain = Arc::new(Brain::new(32_768, &moves, last));
        let events = lives(&home, &store, &brain, usual()).await;
        assert_eq!(stops(&events), [reason]);
        let text = told(&home);
        assert!(text.starts_with("Stopped: ") && text.contains(words), "{reason}: {text}");
        assert!(text.contains("of $5.00 in 24 hours"), "{reason}: {text}");
    }
}

#[tokio::test]
async fn who_lives_by_itself_does_not_tell_each_of_its_ends() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let brain = Arc::new(Brain::new(8192, &[], Move::Nothing));
    let events = lives(&home, &store, &brain, usual()).await;
    assert_eq!(stops(&events), [StopReason::Idle]);
    assert!(outbox(&home).is_empty(), "nobody waits for it");
    let brain = Arc::new(Brain::new(8192, &[], Move::Fail).that_is_free());
    for round in 0..3 {
        let words = Labelled::new(Label::Peer, &format!("0x{round}"), "Hello?");
        store.receive(words, None).await.unwrap();
        let events = lives(&home, &store, &brain, usual()).await;
        assert_eq!(stops(&events), [StopReason::Errors]);
    }
    assert!(told(&home).contains("Stopped: its turns failed."), "told once, not three times");
}
