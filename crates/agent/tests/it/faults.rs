//! What is wrong with an answer, or keeps every answer away, is told once to whom it concerns.

use std::sync::Arc;

use automaton_core::event::Event;
use automaton_core::faults::NoFaults;
use automaton_core::inference_budget::InferenceCeilings;
use automaton_core::money::Microcents;
use automaton_core::record::StopReason;
use automaton_store::NewCostReservation;
use serde_json::json;

use crate::brain::{Brain, Move};
use crate::life::{Home, deps, lives, settings, stops};
use crate::town::{DOLLAR, Town};

/// A call as text.
const WRITTEN: &str = "```json\n{\"name\": \"write_file\", \"arguments\": {\"path\": \"a\", \"content\": \"x\"}}\n```";

/// The note of the last wake that ended.
async fn note(home: &Home) -> String {
    home.reader().last_session().unwrap().and_then(|session| session.note).unwrap_or_default()
}

#[tokio::test]
async fn a_call_that_is_written_as_text_never_runs_and_is_told_twice() {
    for (fault, words, creator) in [
        (Move::Say(WRITTEN), "wrote a tool call as text", "--tool-call-parser"),
        (Move::Withheld, "withheld your last answer", "withholds its answers"),
        (Move::Babble, "cut off at the most tokens", "`maxTokensPerTurn`"),
    ] {
        let home = Home::new();
        let store = home.store(Arc::new(NoFaults)).await;
        let brain = Arc::new(Brain::new(8192, &[fault.clone(), fault.clone()], Move::Say("Fine.")));
        let (_, events) = lives(&home, &store, &brain, 2).await;
        assert!(!home.path().join("workspace/a").exists(), "{fault:?}");
        assert_eq!(stops(&events)[0], StopReason::Blocked, "{fault:?}");
        let asked: Vec<String> = brain.seen().iter().map(|all| format!("{all:?}")).collect();
        assert!(!asked[0].contains(words) && asked[1].contains(words), "{fault:?}: {asked:?}");
        assert!(note(&home).await.contains(creator), "{fault:?}: {}", note(&home).await);
        let told = events.iter().any(|event| match event {
            Event::WakeEnded { sentence, .. } => sentence.contains(creator),
            _ => false,
        });
        assert!(told, "{fault:?}: {events:?}");
    }
}

#[tokio::test]
async fn a_key_that_is_refused_is_tried_once_and_ends_the_wake_with_its_remedy() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let brain = Arc::new(Brain::new(8192, &[Move::Locked], Move::Say("Fine.")));
    let (_, events) = lives(&home, &store, &brain, 1).await;
    let failed: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::TurnFailed { hint, retry_ms, .. } => Some((hint.clone().unwrap(), *retry_ms)),
            _ => None,
        })
        .collect();
    assert_eq!(failed, [("set the environment variable KEY".to_owned(), None)]);
    assert_eq!(stops(&events)[0], StopReason::Errors);
}

#[tokio::test]
async fn a_server_that_wants_to_be_left_alone_for_long_ends_the_wake_with_a_sentence() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let brain = Arc::new(Brain::new(8192, &[Move::Busy(3600)], Move::Say("Fine.")));
    let (_, events) = lives(&home, &store, &brain, 1).await;
    let retries: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::TurnFailed { retry_ms, .. } => Some(*retry_ms),
            _ => None,
        })
        .collect();
    assert_eq!((retries, stops(&events)[0]), (vec![None], StopReason::Errors));
    let told = events.iter().any(|event| match event {
        Event::WakeEnded { sentence, .. } => sentence.contains("asks to be left alone"),
        _ => false,
    });
    assert!(told, "{events:?}");
}

#[tokio::test]
async fn an_answer_that_was_not_heard_is_settled_at_the_next_start_by_its_name() {
    let (home, town) = (Home::new(), Town::new(20, 5 * DOLLAR));
    let book = async |cloud: Option<&str>| {
        let store = home.store_by(town.ids(), Arc::new(NoFaults)).await;
        let (turn, most) = (town.ids().id(), Microcents::new(9000));
        let cloud = cloud.map(str::to_owned);
        let asked = store
            .reserve_cost(NewCostReservation {
                turn,
                goal: None,
                most,
                cloud,
                ceilings: InferenceCeilings::default(),
            })
            .await
            .unwrap();
        let asked = asked.unwrap();
        let name = asked.name();
        // The process ends here: nobody hears of the answer.
        drop(asked);
        store.close().await.unwrap();
        name
    };
    let here = town.url.clone();
    let (paid, failed, unknown) =
        (book(Some(&here)).await, book(Some(&here)).await, book(Some(&here)).await);
    let open = book(Some(&here)).await;
    book(Some("http://elsewhere")).await;
    book(None).await;
    {
        let mut counts = town.counts();
        let settled = json!({
            "state": "settled", "charged_microcents": 70, "prompt_tokens": 5,
            "cached_tokens": 1, "completion_tokens": 2,
        });
        counts.calls.insert(paid, settled);
        counts.calls.insert(failed, json!({ "state": "released" }));
        counts.calls.insert(open.clone(), json!({ "state": "open" }));
        assert!(!counts.calls.contains_key(&unknown));
    }
    let store = home.store_by(town.ids(), Arc::new(NoFaults)).await;
    let events = Arc::new(crate::life::Events::default());
    let brain = Arc::new(Brain::new(8192, &[], Move::Say("Fine.")));
    let mut deps = deps(&store, brain, Arc::clone(&events));
    deps.treasury = Some(town.treasury(&store, Arc::new(NoFaults), events.clone()).await);
    let (_keep, shutdown) = tokio::sync::watch::channel(false);
    automaton_agent::live(settings(home.path(), 1), deps, shutdown).await.unwrap();
    let totals = store.totals().await.unwrap();
    // One more answer was heard in this life, for five.
    assert_eq!((totals.answers, totals.cost.units()), (2, 75));
    assert_eq!(totals.unsettled, 3, "the open one, and two of which nobody can be asked");
    let left: Vec<String> =
        store.unsettled_costs().await.unwrap().iter().map(|one| one.reservation.name()).collect();
    assert_eq!(left, [open], "asked about again at the next start");
    let told = events.all().iter().any(|event| {
        matches!(event, Event::ErrorReported { error, .. } if error.contains("never heard: 2"))
    });
    assert!(told, "{:?}", events.all());
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "no method of the store writes nonsense")]
async fn a_record_that_refuses_to_settle_is_told_and_keeps_no_wake_from_beginning() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let (turn, most) = (crate::life::ids().id(), Microcents::new(9000));
    drop(
        store
            .reserve_cost(NewCostReservation {
                turn,
                goal: None,
                most,
                cloud: None,
                ceilings: InferenceCeilings::default(),
            })
            .await
            .unwrap()
            .unwrap(),
    );
    let raw = rusqlite::Connection::open(home.db()).unwrap();
    assert_eq!(raw.execute("UPDATE unsettled_answers SET id = 'nonsense'", []).unwrap(), 1);
    let brain = Arc::new(Brain::new(8192, &[], Move::Say("Fine.")));
    let (ended, events) = lives(&home, &store, &brain, 1).await;
    assert_eq!((ended.turns, stops(&events).len()), (1, 1));
    let told = events.iter().filter_map(|event| match event {
        Event::ErrorReported { error, .. } => Some(error.as_str()),
        _ => None,
    });
    let told: Vec<&str> = told.collect();
    assert!(
        told[0].contains("stay booked at the most that they can have cost: cannot read"),
        "{told:?}"
    );
    let cost = store.thinking_cost().await.unwrap().day;
    assert!(cost.units() >= 9000, "{cost}");
}
