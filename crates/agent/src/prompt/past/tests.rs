//! What is kept from turn to turn is what would be rendered anew.

use std::sync::Arc;

use automaton_core::entropy::SystemEntropy;
use automaton_core::id::Mint;
use automaton_core::record::{CallRecord, CallStatus, TurnStatus};
use automaton_core::time::{SystemClock, Timestamp};
use automaton_core::trust::{Label, Labelled};

use super::*;

fn guard() -> Arc<Guard> {
    Arc::new(Guard::new().unwrap())
}

const BUDGET: u32 = 2000;

fn turn(seq: u64) -> TurnRecord {
    let mint = Mint::new(Arc::new(SystemClock), Arc::new(SystemEntropy));
    let tool = if seq.is_multiple_of(2) { "exec" } else { "sleep" };
    TurnRecord {
        id: mint.id(),
        seq,
        session: mint.id(),
        status: TurnStatus::Committed,
        inputs: vec![Labelled::new(Label::Creator, "creator", "Go.")],
        thought: format!(
            "Thought {seq}. {}",
            "word ".repeat(usize::try_from(seq).unwrap() * 7 % 90)
        ),
        calls: vec![CallRecord {
            id: mint.id(),
            tool: tool.to_owned(),
            arguments: "{}".to_owned(),
            status: CallStatus::Done,
            result: Some(Labelled::new(Label::Tool, "exec", "fine")),
            duration: None,
        }],
        usage: None,
        opened_at: Timestamp::EPOCH,
        committed_at: None,
    }
}

fn caps(window: u32) -> Caps {
    Caps::for_window(window, 1000)
}

#[test]
fn turn_by_turn_it_shows_what_a_fresh_start_would() {
    let (life, mut past, mut from) =
        ((1..=150).map(turn).collect::<Vec<_>>(), Past::new(guard()), 0);
    let mut cuts = 0;
    for now in 1..=life.len() {
        let next = past.keep(from, caps(8192));
        let until = u64::try_from(now).unwrap();
        let read = |from: u64| -> Vec<TurnRecord> {
            let read = life.iter().filter(|turn| (from..=until).contains(&turn.seq));
            let read: Vec<_> = read.cloned().collect();
            let most = usize::try_from(TURNS_MAX).unwrap();
            read[read.len().saturating_sub(most)..].to_vec()
        };
        let unread = read(next);
        assert!(now == 1 || unread.len() == 1, "each is read once");
        past.add(&unread);
        let fresh = Past::of(&read(from), caps(8192), guard());
        assert_eq!(past.fitting(BUDGET), fresh.fitting(BUDGET), "after turn {now}");
        assert_eq!(past.called(5), fresh.called(5));
        let first = past.fitting(BUDGET).0.unwrap();
        cuts += u32::from(first > from.max(1));
        from = first;
    }
    assert!(cuts > 3, "the history was cut {cuts} times");
}

#[test]
fn another_models_room_is_filled_anew() {
    let life: Vec<_> = (1..=20).map(turn).collect();
    let mut past = Past::of(&life, caps(8192), guard());
    assert_eq!(past.keep(3, caps(8192)), 21);
    assert_eq!(past.keep(3, caps(2048)), 3, "all of it is read again");
    past.add(&life[2..]);
    assert_eq!(past.fitting(BUDGET), Past::of(&life[2..], caps(2048), guard()).fitting(BUDGET));
}

#[test]
fn behind_as_many_as_are_read_at_once_there_may_be_a_gap() {
    let life: Vec<_> = (1..=100).map(turn).collect();
    let mut past = Past::of(&life[..2], caps(8192), guard());
    past.add(&life[40..]);
    assert_eq!(
        past.fitting(u32::MAX),
        Past::of(&life[40..], caps(8192), guard()).fitting(u32::MAX)
    );
}
