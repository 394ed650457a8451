//! What the creator said stays open until it is answered, and no longer.

use automaton_core::message::{CLAIMED_PER_TURN_MAX, MESSAGE_BYTES_MAX};
use automaton_core::time::{Clock, Span};
use automaton_core::trust::{Label, Labelled};
use automaton_store::{OPEN_MESSAGES_MAX, RetentionPolicy, StoreError};

use crate::Steps as _;
use crate::{World, said};

async fn open(world: &World) -> Vec<String> {
    world.store.open_messages().await.unwrap().into_iter().map(|open| open.text).collect()
}

fn words(text: &str) -> Labelled {
    Labelled::new(Label::Own, "agent", text)
}

#[tokio::test]
async fn words_answer_what_a_turn_has_read_and_nothing_else() {
    let world = World::born().await;
    let stranger = Labelled::new(Label::Peer, "0xabc", "Hello!");
    world.store.receive(stranger, None).await.unwrap();
    world.store.receive(said("one"), None).await.unwrap();
    let two = world.store.receive(said("two"), None).await.unwrap();
    let session = world.session().await;
    let turn = world.spoken(session, "Both.\n").await;
    world.store.receive(said("three"), None).await.unwrap();
    let all = world.store.open_messages().await.unwrap();
    let seen: Vec<_> = all.iter().map(|open| (&*open.text, open.seen, open.seq)).collect();
    assert_eq!(seen, [("one", true, Some(1)), ("two", true, Some(1)), ("three", false, None)]);
    let (sent, told) = world.store.commit_turn(turn).await.unwrap().unwrap();
    assert_eq!(told, words("Both."));
    assert_eq!(world.store.commit_turn(turn).await.unwrap(), None);
    let outbox = world.reader().outbox_since(0, 9).unwrap();
    assert_eq!((outbox.len(), outbox[0].id, outbox[0].reply_to), (1, sent, Some(two)));
    assert_eq!(open(&world).await, ["three"], "nobody has read it yet");
    // Words to nobody are sent to nobody.
    world.store.close_message(world.store.open_messages().await.unwrap()[0].id).await.unwrap();
    let turn = world.spoken(session, "Hm.").await;
    assert_eq!(world.store.commit_turn(turn).await.unwrap(), None);
    // The record tells what was open then.
    let then = world.clock.now();
    assert_eq!(world.reader().open_messages(Some(then.before(Span::from_secs(1)))).unwrap(), []);
}

#[tokio::test]
async fn words_that_are_too_long_for_a_message_say_where_the_rest_is() {
    let world = World::born().await;
    world.store.receive(said("Tell me all."), None).await.unwrap();
    let session = world.session().await;
    let turn = world.spoken(session, &"ä".repeat(MESSAGE_BYTES_MAX)).await;
    let (_, told) = world.store.commit_turn(turn).await.unwrap().unwrap();
    let sent = world.reader().outbox_since(0, 9).unwrap().remove(0).body;
    assert_eq!(told, sent, "what is delivered is what is told");
    let sent = sent.text;
    assert!(sent.len() <= MESSAGE_BYTES_MAX && sent.starts_with("ää"), "{}", sent.len());
    assert!(
        sent.ends_with(
            "ä\n[the rest is not in this message: `automaton turn last` shows all of it]"
        )
    );
}

#[tokio::test]
async fn words_that_end_a_wake_are_delivered_once_after_a_crash_before_the_commit() {
    let mut world = World::born().await;
    let asked = world.store.receive(said("How many?"), None).await.unwrap();
    let session = world.session().await;
    let turn = world.spoken(session, "Three.").await;
    world.crash();
    assert_eq!(open(&world).await, ["How many?"]);
    let recovered = world.store.recover().await.unwrap();
    assert_eq!(recovered.committed, [turn]);
    let outbox = world.reader().outbox_since(0, 9).unwrap();
    assert_eq!((outbox.len(), outbox[0].reply_to), (1, Some(asked)));
    assert_eq!(recovered.answers, [(outbox[0].id, words("Three."))]);
    assert!(open(&world).await.is_empty());
    world.crash();
    assert_eq!(world.store.recover().await.unwrap().answers, []);
    assert_eq!(world.store.commit_turn(turn).await.unwrap(), None);
    assert_eq!(world.reader().outbox_since(0, 9).unwrap().len(), 1, "once");
    // What was only thought is nobody's to hear.
    world.store.receive(said("And now?"), None).await.unwrap();
    let session = world.session().await;
    world.judged(session, Vec::new()).await;
    world.crash();
    assert_eq!(world.store.recover().await.unwrap().answers, []);
    assert_eq!(open(&world).await, ["And now?"]);
}

#[tokio::test]
async fn a_reply_answers_the_one_that_it_names() {
    let world = World::born().await;
    let one = world.store.receive(said("one"), None).await.unwrap();
    let two = world.store.receive(said("two"), None).await.unwrap();
    let answer = words("Yes.");
    world.store.send_to_creator(world.ids.id(), answer.clone(), None).await.unwrap();
    assert_eq!(open(&world).await, ["one", "two"]);
    world.store.send_to_creator(world.ids.id(), answer.clone(), Some(two)).await.unwrap();
    assert_eq!(open(&world).await, ["one"]);
    let session = world.session().await;
    let told = world.store.tell_creator(session, answer.clone()).await.unwrap();
    assert_eq!(world.store.tell_creator(session, answer).await.unwrap(), told, "once a cycle");
    assert_eq!(world.reader().outbox_since(0, 9).unwrap().len(), 3);
    world.store.file_message(one, "/root/.messages/one.txt".to_owned()).await.unwrap();
    let filed = world.store.open_messages().await.unwrap().remove(0);
    assert_eq!(filed.file.as_deref(), Some("/root/.messages/one.txt"));
}

#[tokio::test]
async fn one_that_its_creator_closes_is_not_read_any_more() {
    let world = World::born().await;
    let id = world.store.receive(said("never mind"), None).await.unwrap();
    assert!(world.store.close_message(id).await.unwrap());
    assert!(!world.store.close_message(id).await.unwrap());
    let unknown = world.store.close_message(world.ids.id()).await;
    assert!(matches!(unknown, Err(StoreError::Missing { .. })), "{unknown:?}");
    let session = world.session().await;
    let turn = world.store.open_turn(session, Vec::new(), CLAIMED_PER_TURN_MAX).await.unwrap();
    assert_eq!(turn.messages, []);
}

#[tokio::test]
async fn age_takes_no_open_message_away_and_numbers_do() {
    let world = World::born().await;
    for number in 0..OPEN_MESSAGES_MAX + 5 {
        world.store.receive(said(&number.to_string()), None).await.unwrap();
    }
    let session = world.session().await;
    for _ in 0..11 {
        world.answer(session).await;
    }
    let newest = open(&world).await;
    assert_eq!((newest.len(), newest[0].as_str()), (100, "5"), "the newest, oldest first");
    world.advance(1_000_000_000_000);
    let limits = RetentionPolicy {
        keep: Span::ZERO,
        keep_heartbeat: Span::ZERO,
        turns_kept: 0,
        rows_max: 90,
    };
    let deleted = world.store.retention(limits).await.unwrap();
    assert_eq!((deleted.turns, deleted.messages), (11, 15));
    assert_eq!(open(&world).await.len(), 90);
}
