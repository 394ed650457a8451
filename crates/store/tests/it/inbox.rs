//! Messages: claimed, answered, given back, given up; never lost, never twice.

use std::collections::BTreeSet;

use automaton_core::message::CLAIMED_PER_TURN_MAX;
use automaton_core::message::{ATTEMPTS_MAX, CREATOR_MESSAGE_BYTES_MAX, MESSAGE_BYTES_MAX};
use automaton_core::trust::{Label, Labelled};
use automaton_store::{CRASHES_MAX, FailureCause, INBOX_WAITING_MAX, InboxCounts, StoreError};

use crate::Steps as _;
use crate::{World, is_unfit, said};

async fn counts(world: &World) -> [u64; 4] {
    let InboxCounts { received, in_progress, processed, failed } =
        world.store.inbox_counts().await.unwrap();
    [received, in_progress, processed, failed]
}

#[tokio::test]
async fn ten_are_claimed_oldest_first_and_processed_with_their_turn() {
    let world = World::born().await;
    let mut sent = Vec::new();
    for number in 0..12 {
        sent.push(world.store.receive(said(&format!("message {number}")), None).await.unwrap());
    }
    let session = world.session().await;
    let turn =
        world.store.open_turn(session, vec![said("a nudge")], CLAIMED_PER_TURN_MAX).await.unwrap();
    let claimed: Vec<_> = turn.messages.iter().map(|message| message.id).collect();
    assert_eq!(claimed, sent[..10]);
    assert_eq!(turn.messages[0].attempt, 1);
    assert_eq!(counts(&world).await, [2, 10, 0, 0]);
    world.store.record_judgement(crate::judgement(turn.id, Vec::new()), None).await.unwrap();
    world.store.commit_turn(turn.id).await.unwrap();
    assert_eq!(counts(&world).await, [2, 0, 10, 0]);

    let record = &world.store.recent_turns(0, 9).await.unwrap()[0];
    assert_eq!(record.inputs.len(), 11);
    assert_eq!(record.inputs[0], said("a nudge"));
    assert_eq!(record.inputs[10], said("message 9"));
}

#[tokio::test]
async fn a_known_message_is_stored_and_wakes_once() {
    let world = World::born().await;
    let first = world.store.receive(said("hi"), Some("relay-1")).await.unwrap();
    world.session().await;
    let causes: Vec<_> = world.store.pending_wakes().await.unwrap();
    assert_eq!(causes.len(), 1);
    assert_eq!(world.store.receive(said("hi"), Some("relay-1")).await.unwrap(), first);
    assert_ne!(world.store.receive(said("hi"), None).await.unwrap(), first);
    assert_eq!(counts(&world).await, [2, 0, 0, 0]);
}

#[tokio::test]
async fn what_is_too_long_or_too_much_is_refused() {
    let world = World::born().await;
    for (label, most) in [
        (Label::Creator, CREATOR_MESSAGE_BYTES_MAX),
        (Label::Peer, MESSAGE_BYTES_MAX),
        (Label::Web, MESSAGE_BYTES_MAX),
    ] {
        let longest = Labelled::new(label, "x", "x".repeat(most));
        world.store.receive(longest, None).await.unwrap();
        let longer = Labelled::new(label, "x", "x".repeat(most + 1));
        let error = world.store.receive(longer, None).await.unwrap_err().to_string();
        let bytes = most + 1;
        assert_eq!(error, format!("the message has {bytes} bytes; at most {most} are accepted"));
    }
    let fill = "WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) \
        INSERT INTO inbox_messages (id, body, label, source, received_at) \
        SELECT 'filler ' || i, '', 'peer', 'x', 0 FROM n";
    world.raw().execute(fill, [INBOX_WAITING_MAX]).unwrap();
    let refused = world.store.receive(said("one more"), None).await;
    assert!(matches!(refused, Err(StoreError::Full { limit: INBOX_WAITING_MAX, .. })));
}

#[tokio::test]
async fn an_outage_costs_no_attempt_but_the_message_s_own_failures_do() {
    let world = World::born().await;
    let bad = world.store.receive(said("poison"), None).await.unwrap();
    let good = world.store.receive(said("fine"), None).await.unwrap();
    let session = world.session().await;
    for _ in 0..20 {
        let turn = world.store.open_turn(session, Vec::new(), CLAIMED_PER_TURN_MAX).await.unwrap();
        assert!(world.store.abandon_turn(turn.id, FailureCause::Turn).await.unwrap().is_empty());
    }
    assert_eq!(counts(&world).await, [2, 0, 0, 0], "an outage never gives a message up");
    for attempt in 1..=ATTEMPTS_MAX {
        let turn = world.store.open_turn(session, Vec::new(), CLAIMED_PER_TURN_MAX).await.unwrap();
        assert_eq!(turn.messages[0].attempt, 20 + attempt);
        let given_up = world.store.abandon_turn(turn.id, FailureCause::Message(bad)).await.unwrap();
        assert_eq!(given_up, if attempt == ATTEMPTS_MAX { vec![bad] } else { vec![] });
    }
    assert_eq!(counts(&world).await, [1, 0, 0, 1]);
    let turn = world.store.open_turn(session, Vec::new(), CLAIMED_PER_TURN_MAX).await.unwrap();
    assert_eq!(turn.messages[0].id, good);
}

#[tokio::test]
async fn a_message_that_always_kills_is_given_up() {
    let mut world = World::born().await;
    let deadly = world.store.receive(said("deadly"), None).await.unwrap();
    for crash in 1..=CRASHES_MAX {
        let session = world.session().await;
        let turn = world.store.open_turn(session, Vec::new(), CLAIMED_PER_TURN_MAX).await.unwrap();
        assert_eq!(turn.messages.len(), 1);
        world.crash();
        let recovered = world.store.recover().await.unwrap();
        let last = crash == CRASHES_MAX;
        assert_eq!(recovered.returned, u32::from(!last));
        assert_eq!(recovered.given_up, if last { vec![deadly] } else { vec![] });
    }
    assert_eq!(counts(&world).await, [0, 0, 0, 1]);
}

#[tokio::test]
async fn a_stale_claim_goes_back_and_its_turn_finds_no_ear() {
    let world = World::born().await;
    let message = world.store.receive(said("hello"), None).await.unwrap();
    let session = world.session().await;
    let slow = world.store.open_turn(session, Vec::new(), CLAIMED_PER_TURN_MAX).await.unwrap();
    world.advance(3_599_999);
    assert!(
        world
            .store
            .open_turn(session, Vec::new(), CLAIMED_PER_TURN_MAX)
            .await
            .unwrap()
            .messages
            .is_empty()
    );
    world.advance(1);
    let next = world.store.open_turn(session, Vec::new(), CLAIMED_PER_TURN_MAX).await.unwrap();
    assert_eq!(next.messages[0].id, message);
    let late = world.store.record_judgement(crate::judgement(slow.id, Vec::new()), None).await;
    assert!(is_unfit(&late, "is abandoned, not open"), "{late:?}");

    // A judged turn keeps its claims however long its calls run.
    world.store.record_judgement(crate::judgement(next.id, Vec::new()), None).await.unwrap();
    world.advance(100_000_000);
    assert!(
        world
            .store
            .open_turn(session, Vec::new(), CLAIMED_PER_TURN_MAX)
            .await
            .unwrap()
            .messages
            .is_empty()
    );
    world.store.commit_turn(next.id).await.unwrap();
    assert_eq!(counts(&world).await, [0, 0, 1, 0]);
}

#[tokio::test]
async fn no_two_turns_claim_the_same_message() {
    let world = World::born().await;
    for number in 0..35 {
        world.store.receive(said(&format!("{number}")), None).await.unwrap();
    }
    let session = world.session().await;
    // A second handle is a second writer with a connection of its own.
    let other = world.open();
    let (a, b, c, d) = tokio::join!(
        world.store.open_turn(session, Vec::new(), CLAIMED_PER_TURN_MAX),
        other.open_turn(session, Vec::new(), CLAIMED_PER_TURN_MAX),
        world.store.open_turn(session, Vec::new(), CLAIMED_PER_TURN_MAX),
        other.open_turn(session, Vec::new(), CLAIMED_PER_TURN_MAX),
    );
    let turns = [a.unwrap(), b.unwrap(), c.unwrap(), d.unwrap()];
    let claimed: Vec<_> = turns.iter().flat_map(|turn| &turn.messages).map(|m| m.id).collect();
    assert_eq!(claimed.len(), 35);
    assert_eq!(claimed.iter().collect::<BTreeSet<_>>().len(), 35);
}
