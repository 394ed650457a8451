//! One that hibernates stays so over restarts, and knows what happened meanwhile.

use automaton_core::hibernation::{Hibernation, HibernationWaker, Holdings};
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::payment::{Money, NewPayment, Purpose, SignedPayment};
use automaton_core::record::StopReason;
use automaton_core::state::AgentState;
use automaton_core::time::Timestamp;
use automaton_core::trust::{Label, Labelled};
use automaton_core::wire::control::ApprovalVerdict;
use automaton_store::{ApprovalAuthor, ApprovalRequest, PaymentStep, Revenue};

use super::{World, five_dollars, manual, said};

const DOLLAR: i64 = 100_000_000;

fn holds(credits: i64, usdc: u64) -> Holdings {
    Holdings { credits: Some(Microcents::new(credits)), usdc: Some(MicroUsdc::new(usdc)) }
}

/// A world whose automaton has lost enough.
async fn hibernating() -> World {
    let world = World::born().await;
    world.store.receive(said("hello"), None).await.unwrap();
    world.store.push_wake(manual("up!")).await.unwrap();
    let session = world.store.open_session(Vec::new()).await.unwrap();
    world.advance(1);
    let note = Some("$5 are gone".to_owned());
    world.store.close_session(session, StopReason::StopLoss, None, note).await.unwrap();
    world
}

async fn look(world: &World, now: Holdings) -> Hibernation {
    world.store.hibernation(now).await.unwrap().unwrap()
}

async fn ended_by(world: &World, now: Holdings) -> Option<HibernationWaker> {
    look(world, now).await.ended_by(now)
}

#[tokio::test]
async fn it_begins_with_its_reason_and_outlives_a_restart() {
    let mut world = hibernating().await;
    world.crash();
    world.store.recover().await.unwrap();
    let life = world.store.life().await.unwrap();
    assert_eq!((life.state, life.sleep), (AgentState::Hibernating, None));
    let seen = world.reader().hibernation().unwrap().unwrap();
    assert_eq!((seen.reason.as_str(), seen.since.as_millis()), ("$5 are gone", 1_000_001));
    assert!(!seen.called, "what was said before it began does not end it");
    assert_eq!(ended_by(&world, holds(0, 0)).await, None);
    world.session().await;
    assert_eq!(world.store.life().await.unwrap().state, AgentState::Waking);
    assert_eq!(world.store.hibernation(holds(0, 0)).await.unwrap(), None);
}

#[tokio::test]
async fn the_creator_is_heard_and_nobody_else() {
    let nobody = Holdings::default();
    let world = hibernating().await;
    let peer = Labelled::new(Label::Peer, "0xabc", "wake up");
    world.store.receive(peer, None).await.unwrap();
    assert_eq!(ended_by(&world, nobody).await, None);
    world.store.receive(said("wake up"), None).await.unwrap();
    assert_eq!(ended_by(&world, nobody).await, Some(HibernationWaker::Creator));

    for again in ["up!", "now!"] {
        let world = hibernating().await;
        world.advance(1);
        world.store.push_wake(manual(again)).await.unwrap();
        assert_eq!(ended_by(&world, nobody).await, Some(HibernationWaker::Creator), "{again}");
    }

    for (answer, waker) in
        [(ApprovalVerdict::Deny, None), (ApprovalVerdict::Approve, Some(HibernationWaker::Creator))]
    {
        let world = hibernating().await;
        let money = Money::Credits { amount: Microcents::new(DOLLAR) };
        let gift = NewPayment { purpose: Purpose::Transfer, money, ..five_dollars() };
        let question = ApprovalRequest {
            summary: "a gift".to_owned(),
            code: "X".to_owned(),
            reason: "it is large".to_owned(),
            expires_at: Timestamp::from_millis(i64::MAX),
        };
        world.store.propose_payment(gift, Some(question)).await.unwrap();
        let asked = world.store.approvals(1).await.unwrap();
        world.store.answer(asked[0].id, answer, ApprovalAuthor::Home).await.unwrap();
        assert_eq!(ended_by(&world, nobody).await, waker);
    }
}

#[tokio::test]
async fn what_others_pay_ends_it_and_what_they_paid_before_does_not() {
    let world = hibernating().await;
    let amount = Microcents::new(7);
    let (key, from) = ("a".to_owned(), "0xabc".to_owned());
    // It was settled before, and is heard of only now.
    let revenue = Revenue { key, amount, from, at: Timestamp::EPOCH };
    world.store.book_revenue(revenue).await.unwrap();
    assert_eq!(
        ended_by(&world, Holdings::default()).await,
        Some(HibernationWaker::Revenue(amount))
    );
    let session = world.session().await;
    let note = Some("again".to_owned());
    world.store.close_session(session, StopReason::StopLoss, None, note).await.unwrap();
    assert_eq!(ended_by(&world, Holdings::default()).await, None);
}

#[tokio::test]
async fn the_least_that_was_seen_is_what_more_is_compared_with() {
    let mut world = hibernating().await;
    assert_eq!(ended_by(&world, Holdings::default()).await, None);
    assert_eq!(ended_by(&world, holds(5 * DOLLAR, 20)).await, None, "the first look knows nothing");
    assert_eq!(
        ended_by(&world, holds(4 * DOLLAR, 30)).await,
        Some(HibernationWaker::Usdc(MicroUsdc::new(10)))
    );
    world.crash();
    assert_eq!(look(&world, Holdings::default()).await.had, holds(4 * DOLLAR, 20));
    let more = Some(HibernationWaker::Credits(Microcents::new(1)));
    assert_eq!(ended_by(&world, holds(4 * DOLLAR + 1, 20)).await, more);
}

async fn buy(world: &World) {
    let id = world.store.propose_payment(five_dollars(), None).await.unwrap();
    let (header, value) = ("x-payment".to_owned(), "v".to_owned());
    let valid_before = Timestamp::from_millis(9);
    let signed = SignedPayment { header, value, nonce: [1; 32].into(), valid_before };
    world.store.store_signed_payment(id, signed).await.unwrap();
    world.store.advance_payment(id, PaymentStep::Submitted).await.unwrap();
    world.advance(1000);
    world.store.advance_payment(id, PaymentStep::Settled(None)).await.unwrap();
}

#[tokio::test]
async fn credits_that_it_bought_itself_are_no_gift_however_late_they_come() {
    // A moment before the first look, and after it.
    for late in [true, false] {
        let world = hibernating().await;
        if !late {
            ended_by(&world, holds(0, 20_000_000)).await;
        }
        buy(&world).await;
        assert_eq!(ended_by(&world, holds(0, 15_000_000)).await, None);
        world.advance(59_000);
        assert_eq!(ended_by(&world, holds(5 * DOLLAR, 15_000_000)).await, None, "{late}");
        let more = Some(HibernationWaker::Credits(Microcents::new(DOLLAR)));
        assert_eq!(ended_by(&world, holds(6 * DOLLAR, 15_000_000)).await, more, "{late}");
    }
    // What was bought long before is there already.
    let world = hibernating().await;
    buy(&world).await;
    world.advance(61_000);
    assert_eq!(ended_by(&world, holds(5 * DOLLAR, 0)).await, None);
    let more = Some(HibernationWaker::Credits(Microcents::new(1)));
    assert_eq!(ended_by(&world, holds(5 * DOLLAR + 1, 0)).await, more);
}
