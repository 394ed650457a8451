//! Both sides of the conversation, and what answers what.

use automaton_core::id::{CallId, MessageId};
use automaton_core::trust::{Label, Labelled};
use automaton_store::{MessageStatus, Speaker};

use crate::Steps as _;
use crate::{World, said};

fn own(text: &str) -> Labelled {
    Labelled::new(Label::Own, "agent", text)
}

fn standing(world: &World, id: MessageId) -> MessageStatus {
    world.reader().utterance(id).unwrap().unwrap().standing.unwrap()
}

#[tokio::test]
async fn a_message_goes_from_waiting_over_open_to_its_answer() {
    let world = World::born().await;
    let peer = Labelled::new(Label::Peer, "0xabc", "not for the creator's eyes");
    world.store.receive(peer, None).await.unwrap();
    let first = world.store.receive(said("first"), None).await.unwrap();
    let second = world.store.receive(said("second"), None).await.unwrap();
    assert_eq!([first, second].map(|id| standing(&world, id)), [MessageStatus::Waiting; 2]);
    let session = world.session().await;
    let turn = world.spoken(session, "both").await;
    assert_eq!(standing(&world, first), MessageStatus::Open);
    let third = world.store.receive(said("third"), None).await.unwrap();
    let (words, _) = world.store.commit_turn(turn).await.unwrap().unwrap();
    for id in [first, second] {
        assert_eq!(standing(&world, id), MessageStatus::Answered);
        assert_eq!(world.reader().answer_to(id).unwrap().unwrap().id, words, "of one answer");
    }
    assert_eq!(standing(&world, third), MessageStatus::Waiting);
    assert_eq!(world.reader().answer_to(third).unwrap(), None);
    let said = world.reader().conversation(10).unwrap();
    let texts: Vec<_> = said.iter().map(|it| (it.from, it.body.text.as_str())).collect();
    let (you, it) = (Speaker::Creator, Speaker::Automaton);
    let all = [(you, "first"), (you, "second"), (you, "third"), (it, "both")];
    assert_eq!(texts.len(), all.len());
    assert!(all.iter().all(|said| texts.contains(said)), "{texts:?}");
    assert_eq!(world.reader().conversation(1).unwrap().len(), 1);
    assert_eq!(world.reader().outbox_end().unwrap(), 1);
}

#[tokio::test]
async fn a_reply_answers_what_it_names_and_the_creator_closes_the_rest() {
    let world = World::born().await;
    let first = world.store.receive(said("first"), None).await.unwrap();
    let second = world.store.receive(said("second"), None).await.unwrap();
    let call: CallId = world.ids.id();
    let reply = world.store.send_to_creator(call, own("to the first"), Some(first)).await.unwrap();
    assert_eq!(world.reader().answer_to(first).unwrap().unwrap().id, reply);
    assert_eq!(standing(&world, first), MessageStatus::Answered);
    assert!(world.store.close_message(second).await.unwrap());
    assert_eq!(standing(&world, second), MessageStatus::Closed);
    assert_eq!(world.reader().answer_to(second).unwrap(), None);
    assert!(!world.store.close_message(second).await.unwrap(), "it was closed already");
}
