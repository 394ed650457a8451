//! What the model is shown of what its creator said, and of what it did.

use std::sync::Arc;

use automaton_agent::{live, preview};
use automaton_core::event::Event;
use automaton_core::faults::NoFaults;
use automaton_core::id::MessageId;
use automaton_core::message::AnsweredBy;
use automaton_core::record::CallStatus;
use automaton_core::trust::{Label, Labelled};
use automaton_inference::{Message, Provider as _};
use automaton_store::{Store, TurnRef};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::brain::{Brain, Move, write};
use crate::life::{Home, deps, ids, lives, settings};

async fn say(store: &Store, text: &str) -> MessageId {
    let said = Labelled::new(Label::Creator, "creator", text);
    store.receive(said, None).await.unwrap()
}

/// A brief of 7,889 characters.
fn brief() -> String {
    let mut text: String =
        (1..).map(|n| format!("{n}. Requirement {n} of the brief.\n")).take(300).collect();
    text.truncate(7888);
    text.push('!');
    text
}

/// Moves that each do something new, with a long result.
fn work(count: usize) -> Vec<Move> {
    let step = |n: usize| {
        let text: &'static str = format!("{n} {}", "word ".repeat(400)).leak();
        Move::Call(vec![write("log.txt", text)])
    };
    (0..count).map(step).collect()
}

fn whole(messages: &[Arc<Message>], text: &str) -> bool {
    messages.iter().filter(|message| message.content.contains(text)).count() == 1
}

#[tokio::test]
async fn a_brief_arrives_whole_in_every_request_of_sixty_turns() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let (brief, id) = (brief(), say(&store, &brief()).await);
    let brain = Arc::new(Brain::new(32_768, &work(70), Move::Say("Done.")));
    lives(&home, &store, &brain, 70).await;
    let seen = brain.seen();
    assert!(seen.len() >= 60, "{}", seen.len());
    for (turn, messages) in seen.iter().enumerate() {
        assert!(whole(messages, &brief), "turn {}", turn + 1);
        assert!(whole(messages, &id.to_string()), "its id is shown once, in turn {}", turn + 1);
    }
}

#[tokio::test]
async fn it_is_still_there_when_the_turn_that_it_came_with_is_cut() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    say(&store, "Whatever you do, tell me what came of it.").await;
    let brain = Arc::new(Brain::new(8192, &work(60), Move::Nothing));
    lives(&home, &store, &brain, 60).await;
    assert!(store.place().await.unwrap().from > 1);
    assert!(brain.seen().iter().all(|it| whole(it, "Whatever you do, tell me what came of it.")));
}

#[tokio::test]
async fn five_messages_at_once_are_all_whole() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let texts: Vec<String> =
        (1..=5).map(|n| format!("Wish {n}: {}", "please ".repeat(300)).trim().to_owned()).collect();
    for text in &texts {
        say(&store, text).await;
    }
    let brain = Arc::new(Brain::new(32_768, &work(20), Move::Say("Done.")));
    lives(&home, &store, &brain, 20).await;
    for messages in brain.seen() {
        assert!(texts.iter().all(|text| whole(&messages, text)));
    }
}

#[tokio::test]
async fn one_that_is_too_large_is_in_a_file_and_its_sender_is_told() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let lines: Vec<String> = (1..=2000).map(|n| format!("Line {n} of a long story")).collect();
    let id = say(&store, &lines.join("\n")).await;
    let brain = Arc::new(Brain::new(16_384, &work(3), Move::Say("Read.")));
    let (_, events) = lives(&home, &store, &brain, 4).await;
    let path = format!("/root/.messages/{id}.txt");
    let told = |event: &&Event| matches!(event, Event::MessageFiled { message, path: told } if (*message, told) == (id, &path));
    assert_eq!(events.iter().filter(told).count(), 1, "told once");
    let file = home.path().join(format!("workspace/.messages/{id}.txt"));
    assert_eq!(std::fs::read_to_string(file).unwrap(), lines.join("\n"));
    for messages in brain.seen() {
        assert!(whole(&messages, &format!("[the whole message is in {path}: 2000 lines, ")));
        assert!(whole(&messages, "Line 1 of") && whole(&messages, "Line 2000 of"));
        assert!(whole(&messages, " lines left out here]"));
    }
}

async fn answered(store: &Store) -> bool {
    store.open_messages().await.unwrap().is_empty()
}

#[tokio::test]
async fn words_at_the_end_of_a_wake_are_delivered_and_answer_what_was_read() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    say(&store, "One?").await;
    let two = say(&store, "Two?").await;
    let brain = Arc::new(Brain::new(32_768, &work(2), Move::Say("Both are three.")));
    let (_, events) = lives(&home, &store, &brain, 3).await;
    let sent = home.reader().outbox_since(0, 9).unwrap();
    let bodies: Vec<_> = sent.iter().map(|sent| sent.body.text.as_str()).collect();
    assert_eq!(bodies, ["Both are three."]);
    assert_eq!(sent[0].reply_to, Some(two));
    let told = |event: &Event| matches!(event, Event::MessageSent { body, .. } if body.text == "Both are three.");
    assert_eq!(events.iter().filter(|event| told(event)).count(), 1);
    assert!(answered(&store).await);
    // With nothing open its words are its own.
    lives(&home, &store, &brain, 1).await;
    assert_eq!(home.reader().outbox_since(0, 9).unwrap().len(), 1);
}

fn send(reply_to: Option<MessageId>) -> (&'static str, Value) {
    let mut letter = json!({ "to_address": "creator", "content": "It is four." });
    if let Some(id) = reply_to {
        letter["reply_to"] = json!(id.to_string());
    }
    ("send_message", letter)
}

#[tokio::test]
async fn a_message_that_names_it_answers_it_and_the_creator_closes_it() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let (one, two) = (say(&store, "One?").await, say(&store, "Two?").await);
    let open = async || -> Vec<MessageId> {
        store.open_messages().await.unwrap().iter().map(|open| open.id).collect()
    };
    let moves = [Move::Call(vec![send(None)]), Move::Call(vec![send(Some(one))])];
    let brain = Arc::new(Brain::new(32_768, &moves, Move::Call(vec![crate::brain::sleep()])));
    lives(&home, &store, &brain, 1).await;
    assert_eq!(open().await, [one, two], "one that names none answers none");
    lives(&home, &store, &brain, 2).await;
    assert_eq!(open().await, [two], "a sleep answers nothing");
    assert!(store.close_message(two).await.unwrap());
    assert!(!store.close_message(two).await.unwrap(), "{:?}", AnsweredBy::Creator);
    assert!(answered(&store).await);
    lives(&home, &store, &brain, 1).await;
    let last = brain.seen().pop().unwrap();
    assert!(!last.iter().any(|message| message.content.contains("Not answered yet")), "{last:?}");
}

#[tokio::test]
async fn the_sum_of_older_turns_survives_a_restart_and_names_files() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    say(&store, "Keep a log.").await;
    let mut brain = Arc::new(Brain::new(8192, &work(57), Move::Nothing));
    lives(&home, &store, &brain, 57).await;
    // Another process: nothing but the tables is left. Where the history moves in the turn
    // between the two, the next two are compared.
    let (again, from) = loop {
        let place = store.place().await.unwrap();
        assert!(place.from > 2, "{place:?}");
        let again = Arc::new(Brain::new(8192, &work(1), Move::Nothing));
        lives(&home, &store, &again, 1).await;
        if store.place().await.unwrap() == place {
            break (again, place.from);
        }
        brain = again;
    };
    let (before, after) = (brain.seen().pop().unwrap(), again.seen().pop().unwrap());
    let sum = &after[1].content;
    assert!(
        sum.contains("turns are not shown") || sum.contains("are not shown any more."),
        "{sum}"
    );
    // In the last turn of a wake nothing is written any more.
    let wrote = if (from - 1) % 25 == 0 { from - 2 } else { from - 1 };
    assert!(sum.contains(&format!("- log.txt (turn {wrote}, ")), "{sum}");
    // What was shown is shown again, byte for byte, as far as both go.
    let same = before.iter().zip(&after).take_while(|(one, two)| one == two).count();
    assert!(same + 2 >= before.len(), "{same} of {}", before.len());
}

#[tokio::test]
async fn what_its_history_shows_was_heard_from_the_first_call_on() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let peers = Labelled::new(Label::Peer, "0xabc", "Hello from afar.");
    store.receive(peers, None).await.unwrap();
    let moves = [Move::Say("Hello."), Move::Call(vec![write("a.txt", "a")])];
    let brain = Arc::new(Brain::new(32_768, &moves, Move::Say("Done.")));
    lives(&home, &store, &brain, 1).await;
    say(&store, "Write a.").await;
    lives(&home, &store, &brain, 1).await;
    let dossier = home.reader().turn_details(TurnRef::Seq(2)).unwrap().unwrap();
    assert_eq!(dossier.turn.calls[0].status, CallStatus::Done);
    let under = dossier.decisions[0].decision.under;
    assert_eq!((under.input, under.heard), (Label::Creator, Label::Peer));
}

#[tokio::test]
async fn a_server_that_takes_less_is_asked_with_less() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    say(&store, &brief()).await;
    let brain = Brain::new(65_536, &work(200), Move::Say("Done.")).that_takes(130_000);
    let brain = Arc::new(brain);
    let (ended, events) = lives(&home, &store, &brain, 110).await;
    assert_eq!(ended.turns, 110);
    let failures = failures(&events);
    assert!((1..=3).contains(&failures.len()), "{failures:?}");
    assert!(failures[0].contains("tokens as too long; its window is taken to be 65536"));
}

fn failures(events: &[Event]) -> Vec<&String> {
    let failed = events.iter().filter_map(|event| match event {
        Event::TurnFailed { error, .. } => Some(error),
        _ => None,
    });
    failed.collect()
}

#[tokio::test]
async fn a_server_that_names_its_window_is_believed_at_once() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    say(&store, "Hello.").await;
    let brain = Brain::new(50_000, &work(1), Move::Say("Done.")).that_names(2048);
    let brain = Arc::new(brain);
    let (ended, events) = lives(&home, &store, &brain, 2).await;
    assert_eq!(ended.turns, 2, "{events:?}");
    let failures = failures(&events);
    let [failure] = failures.as_slice() else { panic!("{failures:?}") };
    assert!(failure.contains("taken to be 50000, and its server says 2048"), "{failure}");
}

#[tokio::test]
async fn a_window_that_no_prompt_fits_into_ends_with_both_numbers_and_the_key() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    say(&store, "Hello.").await;
    let brain = Arc::new(Brain::new(50_000, &[], Move::Say("Done.")).that_names(300));
    let (_, events) = lives(&home, &store, &brain, 1).await;
    assert_eq!(failures(&events).len(), 4);
    let told = events.iter().find_map(|event| match event {
        Event::WakeEnded { sentence, .. } => Some(sentence.clone()),
        _ => None,
    });
    let told = told.unwrap_or_default();
    for words in ["taken to be 50000, and its server says 300", "`brain.contextTokens`"] {
        assert!(told.contains(words), "{told}");
    }
}

/// Times, ids of turns and what is drawn from them.
fn settled(messages: &[Arc<Message>]) -> Vec<String> {
    let line = |line: &str| match line.starts_with("Now: ") || line.starts_with("[") {
        true => line.split_once(". Turn").map_or(String::new(), |(_, rest)| rest.to_owned()),
        false => line.to_owned(),
    };
    messages.iter().map(|it| it.content.lines().map(line).collect::<Vec<_>>().join("\n")).collect()
}

#[tokio::test]
async fn what_the_prompt_shows_is_what_the_next_request_holds() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let brain = Arc::new(Brain::new(16_384, &work(40), Move::Say("Done.")));
    for (turns, said) in [(1, "Begin."), (30, ""), (1, &*brief()), (1, "And that.")] {
        if !said.is_empty() {
            say(&store, said).await;
        }
        let settings = settings(home.path(), turns);
        let shown = preview(&settings, &home.reader(), brain.model(), &ids(), false, None)
            .await
            .unwrap()
            .prompt;
        let before = brain.seen().len();
        lives(&home, &store, &brain, turns).await;
        let asked = &brain.seen()[before];
        assert_eq!(settled(&shown.messages), settled(asked), "before {turns} turns");
    }
}

#[tokio::test]
async fn of_sixteen_turns_that_only_read_the_status_the_model_sees_few() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let mut moves = vec![Move::Call(vec![write("a.txt", "x")])];
    moves.extend((0..16).map(|_| Move::Call(vec![("system_synopsis", json!({}))])));
    moves.push(Move::Call(vec![write("b.txt", "x")]));
    say(&store, "Look after yourself.").await;
    let brain = Arc::new(Brain::new(32_768, &moves, Move::Say("Done.")));
    let mut settings = settings(home.path(), 19);
    (settings.limits.stale_turns, settings.limits.repeats) = (40, 40);
    let (_keep, shutdown) = watch::channel(false);
    live(settings, deps(&store, Arc::clone(&brain), Arc::default()), shutdown).await.unwrap();
    let seen = brain.seen();
    let statuses = |messages: &[Arc<Message>]| {
        let calls = messages.iter().flat_map(|message| &message.calls);
        calls.filter(|call| call.tool == "system_synopsis").count()
    };
    let newest = seen.last().unwrap();
    assert!((2..=5).contains(&statuses(newest)), "{}", statuses(newest));
    assert!(whole(newest, "turns that only read your own status are left out here"));
    // Every call that is shown has its result, and only its own.
    for messages in &seen {
        let called = messages.iter().flat_map(|message| &message.calls).map(|call| call.id);
        let answered = messages.iter().filter_map(|message| message.answers);
        assert_eq!(called.collect::<Vec<_>>(), answered.collect::<Vec<_>>());
    }
    // The record has them all.
    let turns = home.turns();
    let calls = turns.iter().flat_map(|turn| &turn.calls);
    assert_eq!(calls.filter(|call| call.tool == "system_synopsis").count(), 16);
}
