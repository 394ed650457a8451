//! Any sequence of turns, crashes and restarts.
//!
//! A crash is a thread that stops for ever at a fault point: whatever it had
//! not written is lost with it, as with a process that is killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use automaton_agent::live;
use automaton_core::faults::{FaultPoint, Faults};
use automaton_core::record::CallStatus;
use automaton_core::trust::{Label, Labelled};
use proptest::prelude::*;
use serde_json::json;
use tokio::sync::watch;

use crate::brain::{Brain, Move, sleep, write};
use crate::life::{Events, Home, deps, settings};

/// Stops the thread for ever at the n-th arrival at a point.
pub(crate) struct StopAt {
    pub(crate) point: Option<FaultPoint>,
    pub(crate) left: AtomicU32,
    pub(crate) stopped: SyncSender<bool>,
}

impl Faults for StopAt {
    fn reach(&self, point: FaultPoint) {
        if Some(point) == self.point && self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.stopped.send(true).unwrap();
            loop {
                std::thread::park();
            }
        }
    }
}

/// One start of the process: what is sent to it first, and where it dies.
#[derive(Debug, Clone)]
struct Start {
    messages: u8,
    moves: Vec<Move>,
    dies: Option<(FaultPoint, u32)>,
}

/// Runs one start to its end or to its death.
fn run(home: &Arc<Home>, start: &Start, number: usize, window: u32) {
    let (stopped, ended) = sync_channel(2);
    let faults = Arc::new(StopAt {
        point: start.dies.map(|(point, _)| point),
        left: AtomicU32::new(start.dies.map_or(0, |(_, nth)| nth)),
        stopped: stopped.clone(),
    });
    let (home, start) = (Arc::clone(home), start.clone());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = home.store(faults.clone()).await;
            for message in 0..start.messages {
                let text = format!("message {number}-{message}");
                let body = Labelled::new(Label::Creator, "creator", text.clone());
                store.receive(body, Some(&text)).await.unwrap();
            }
            let turns = u32::try_from(start.moves.len()).unwrap() + 1;
            let brain = Arc::new(Brain::new(window, &start.moves, Move::Say("Fine.")));
            let mut deps = deps(&store, brain, Arc::new(Events::default()));
            deps.faults = faults;
            let (_keep, shutdown) = watch::channel(false);
            live(settings(home.path(), turns), deps, shutdown).await.unwrap();
            store.close().await.unwrap();
        });
        stopped.send(false).unwrap();
    });
    ended.recv_timeout(Duration::from_secs(60)).expect("the start ends or dies");
}

fn moves() -> impl Strategy<Value = Move> {
    prop_oneof![
        4 => (0_u32..1000).prop_map(|n| Move::Call(vec![write(&format!("{n}.txt"), &"text ".repeat(400))])),
        2 => (0_u32..1000).prop_map(|n| Move::Call(vec![
            ("remember_fact", json!({ "category": "self", "key": format!("k{n}"), "value": "v" })),
            ("recall_facts", json!({ "query": "v" })),
            ("send_message", json!({ "to_address": "creator", "content": format!("news {n}") })),
        ])),
        1 => Just(Move::Call(vec![sleep()])),
        1 => Just(Move::Garble),
        1 => Just(Move::Babble),
        1 => Just(Move::Nothing),
        1 => Just(Move::Fail),
        1 => Just(Move::Say("Done.")),
    ]
}

fn starts() -> impl Strategy<Value = Vec<Start>> {
    let dies =
        prop::option::weighted(0.8, (prop::sample::select(FaultPoint::AGENT.to_vec()), 1_u32..4));
    let start = (0_u8..4, prop::collection::vec(moves(), 1..5), dies);
    let start = start.prop_map(|(messages, moves, dies)| Start { messages, moves, dies });
    prop::collection::vec(start, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// The chain stays valid, every message is answered exactly once, and every
    /// call has come to an end; the brain checks each prompt that it is shown.
    #[test]
    fn nothing_is_lost_or_done_twice(starts in starts(), window in prop::sample::select(vec![4096_u32, 8192])) {
        let home = Arc::new(Home::new());
        for (number, start) in starts.iter().enumerate() {
            run(&home, start, number, window);
        }
        // A last start without a death answers whatever is left.
        let last = Start { messages: 1, moves: vec![Move::Say("Fine."); 6], dies: None };
        run(&home, &last, starts.len(), window);

        let reader = home.reader();
        prop_assert!(reader.verify_chain().unwrap().is_whole());
        let inbox = reader.inbox_counts().unwrap();
        prop_assert_eq!((inbox.received, inbox.in_progress, inbox.failed), (0, 0, 0));
        let turns = home.turns();
        let inputs = turns.iter().flat_map(|turn| &turn.inputs);
        let mut answered: Vec<&str> = inputs
            .filter(|input| input.said.label == Label::Creator)
            .map(|input| input.said.text.as_str())
            .collect();
        let all = answered.len();
        answered.sort_unstable();
        answered.dedup();
        prop_assert_eq!(answered.len(), all, "a message was answered twice");
        prop_assert_eq!(u64::try_from(all).unwrap(), inbox.processed, "a message was lost");
        let calls = turns.iter().flat_map(|turn| &turn.calls);
        let unknown = calls.clone().filter(|call| call.status == CallStatus::Unknown).count();
        let deaths = starts.iter().filter(|start| start.dies.is_some()).count();
        prop_assert!(unknown <= deaths, "{unknown} unknown calls after {deaths} deaths");
        prop_assert!(calls.clone().all(|call| call.status.is_final() && call.result.is_some()));
    }
}

#[test]
fn words_that_end_a_wake_reach_their_reader_once_wherever_it_dies() {
    for point in [FaultPoint::JudgementStored, FaultPoint::TurnCommitted, FaultPoint::TurnIngested]
    {
        let home = Arc::new(Home::new());
        let start = |messages, last: Move, dies| Start { messages, moves: vec![last], dies };
        run(&home, &start(1, Move::Say("Three."), Some((point, 1))), 0, 8192);
        for number in 1..3 {
            run(&home, &start(0, Move::Call(vec![sleep()]), None), number, 8192);
        }
        let sent = home.reader().outbox_since(0, 9).unwrap();
        let said: Vec<&str> = sent.iter().map(|sent| sent.body.text.as_str()).collect();
        assert_eq!(said, ["Three."], "{point}");
        assert!(home.reader().open_messages(None).unwrap().is_empty(), "{point}");
    }
}
