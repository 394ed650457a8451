//! A year in the life: twenty thousand turns, after which it knows what it was told in the first
//! week, and is no larger than it may be.
//!
//! It takes minutes, and prints how quick turns were at first and at the end: no test may depend on
//! that.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use automaton_core::faults::NoFaults;
use automaton_core::id::IdGenerator;
use automaton_core::time::{Span, Timestamp};
use automaton_core::trust::{Label, Labelled};
use automaton_inference::BuiltInEmbedder;
use automaton_testkit::clock::FakeClock;
use automaton_testkit::entropy::SeededEntropy;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::brain::{Brain, Move, sleep};
use crate::life::{Events, Home, deps, settings};

const DAYS: u32 = 365;
/// With them a year has twenty thousand turns.
const TURNS_PER_DAY: u32 = 55;
const SUBJECTS: [&str; 12] = [
    "the fence",
    "the barley",
    "the ferry",
    "our ledger",
    "the north field",
    "two letters",
    "the well",
    "a boat",
    "the mill",
    "some wool",
    "the harbour",
    "an old map",
];
const DEEDS: [&str; 9] =
    ["paint", "count", "repair", "sell", "measure", "describe", "clean", "insure", "photograph"];

/// What a day brings: its creator's words, and what it does about them.
fn day(nth: u32) -> (String, Vec<Move>) {
    let of =
        |words: &[&'static str], salt: u32| words[((nth * 7 + salt * 5) as usize) % words.len()];
    let said = match nth {
        3 => "My sister Runa keeps bees in Alta.".to_owned(),
        _ => format!("Please {} {}, it is day {nth}.", of(&DEEDS, 1), of(&SUBJECTS, 2)),
    };
    let mut moves = Vec::new();
    for turn in 0..TURNS_PER_DAY - 2 {
        let (deed, subject) = (of(&DEEDS, turn), of(&SUBJECTS, turn + 3));
        moves.push(Move::Call(match turn % 9 {
            0 => vec![(
                "remember_fact",
                json!({
                "category": "work", "key": format!("{deed} {subject}"),
                "value": format!("On day {nth} I had to {deed} {subject} {turn} times.") }),
            )],
            4 => vec![("recall_facts", json!({ "query": format!("{deed} {subject}") }))],
            _ => vec![(
                "write_file",
                json!({
                "path": format!("{turn}.txt"),
                "content": format!("Day {nth}: {deed} {subject}. ").repeat(20) }),
            )],
        }));
    }
    moves.push(Move::Say("It is done."));
    moves.push(Move::Call(vec![sleep()]));
    (said, moves)
}

fn median(mut of: Vec<Duration>) -> Duration {
    of.sort();
    of[of.len() / 2]
}

#[tokio::test]
#[ignore = "takes minutes"]
async fn after_a_year_it_knows_the_first_week_and_is_no_larger_than_it_may_be() {
    let home = Home::new();
    let clock = FakeClock::at(Timestamp::from_millis(1_770_000_000_000));
    let ids = IdGenerator::new(Arc::new(clock.clone()), Arc::new(SeededEntropy::new(1)));
    let store = home.store_by(ids.clone(), Arc::new(NoFaults)).await;
    let live = async |brain: Brain, turns: u32| {
        let brain = Arc::new(brain);
        let mut deps = deps(&store, Arc::clone(&brain), Arc::<Events>::default());
        deps.ids = ids.clone();
        deps.embedder = Some(Arc::new(BuiltInEmbedder));
        let (_keep, shutdown) = watch::channel(false);
        // What waits for a moment to pass waits for this clock.
        let goes_on = async {
            loop {
                tokio::time::sleep(Duration::from_millis(1)).await;
                clock.step(Span::from_millis(50));
            }
        };
        let life = automaton_agent::live(settings(home.path(), turns), deps, shutdown);
        tokio::select! {
            ended = life => { ended.unwrap(); }
            () = goes_on => {}
        }
        brain
    };
    let (mut took, mut turns) = (Vec::new(), 0);
    for nth in 1..=DAYS {
        clock.step(Span::from_secs(86_400));
        let (said, moves) = day(nth);
        store.receive(Labelled::new(Label::Creator, "creator", said), None).await.unwrap();
        let brain = Brain::new(32_768, &moves, Move::Say("Fine."));
        let begun = Instant::now();
        turns += live(brain, TURNS_PER_DAY).await.seen().len();
        took.push(begun.elapsed() / TURNS_PER_DAY);
        if nth % 73 == 0 {
            let size = fs::metadata(home.db()).unwrap().len() >> 10;
            println!("day {nth}: {turns} turns, {:?} a turn, {size} KiB", took[took.len() - 1]);
        }
    }
    let (first, last) = (median(took[5..35].to_vec()), median(took[335..].to_vec()));
    let bytes = fs::metadata(home.db()).unwrap().len();
    println!("a turn at first {first:?}, at the end {last:?}; {} MiB", bytes >> 20);
    store
        .receive(Labelled::new(Label::Creator, "creator", "What does my sister keep?"), None)
        .await
        .unwrap();
    let brain = live(Brain::new(32_768, &[], Move::Say("Bees.")), 1).await;
    let told = brain.seen()[0].last().unwrap().content.clone();
    assert!(told.contains("(from creator) My sister Runa keeps bees in Alta."), "{told}");
    assert!(turns >= 20_000, "{turns}");
    // Older turns go; what is remembered of them stays.
    assert!(bytes < 48 << 20, "{bytes} bytes");
    store.close().await.unwrap();
}
