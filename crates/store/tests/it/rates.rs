//! Places under a limit: taken with the decision, given back by an outcome.

use automaton_core::record::CallStatus;
use automaton_core::time::{RateWindow, Span};
use automaton_store::{JudgedCall, RateLimit, StoreError};

use crate::Steps as _;
use crate::{World, output};

fn three_in_an_hour() -> RateLimit {
    RateLimit {
        rule: "rate.test".to_owned(),
        max: 3,
        window: RateWindow::Last(Span::from_secs(3600)),
    }
}

fn limited(world: &World) -> JudgedCall {
    JudgedCall { limits: vec![three_in_an_hour()], ..world.planned() }
}

async fn used(world: &World) -> u32 {
    uses(world, vec![three_in_an_hour()]).await[0]
}

/// How often each limit was used, as a turn would read it.
async fn uses(world: &World, limits: Vec<RateLimit>) -> Vec<u32> {
    let started = world.store.start(world.last_session(), limits).await.unwrap();
    world.store.abandon_turn(started.id, automaton_store::FailureCause::Turn).await.unwrap();
    started.uses
}

#[tokio::test]
async fn no_more_than_the_limit_is_stored_and_a_restart_frees_nothing() {
    let mut world = World::born().await;
    let session = world.session().await;
    world.judged(session, vec![limited(&world), limited(&world)]).await;
    assert_eq!(used(&world).await, 2);
    world.crash();
    assert_eq!(used(&world).await, 2, "the limit survives a restart");
    let turn = world.store.open_turn(session, vec![], 10).await.unwrap().id;
    // Two more were judged by the same count: none of them is stored, as if not judged.
    let both = crate::judgement(turn, vec![limited(&world), limited(&world)]);
    let error = world.store.record_judgement(both, None).await.unwrap_err();
    assert!(
        matches!(&error, StoreError::Unfit { why, .. } if why.contains("rate.test")),
        "{error}"
    );
    assert_eq!(used(&world).await, 2);
    let one = crate::judgement(turn, vec![limited(&world)]);
    world.store.record_judgement(one, None).await.unwrap();
    assert_eq!(used(&world).await, 3);
}

#[tokio::test]
async fn what_came_to_nothing_gives_its_place_back() {
    let world = World::born().await;
    let session = world.session().await;
    let calls = [limited(&world), limited(&world), limited(&world)];
    world.judged(session, calls.to_vec()).await;
    let ends = [CallStatus::Done, CallStatus::Failed];
    for (call, end) in calls.iter().zip(ends) {
        world.store.start_call(call.id).await.unwrap();
        world.store.finish_call(call.id, end, output("x"), Span::ZERO).await.unwrap();
    }
    assert_eq!(used(&world).await, 2, "one is done, one still waits");
    let end = CallStatus::NotStarted;
    world.store.finish_call(calls[2].id, end, output("x"), Span::ZERO).await.unwrap();
    assert_eq!(used(&world).await, 1);
}

#[tokio::test]
async fn uses_are_counted_within_the_window_and_kept_as_they_are() {
    let world = World::born().await;
    let session = world.session().await;
    world.judged(session, vec![limited(&world)]).await;
    let other = RateLimit { rule: "rate.other".to_owned(), ..three_in_an_hour() };
    assert_eq!(uses(&world, vec![three_in_an_hour(), other]).await, [1, 0]);
    world.advance(3_599_999);
    assert_eq!(used(&world).await, 1);
    world.advance(1);
    assert_eq!(used(&world).await, 0);
    assert!(world.raw().execute("UPDATE rate_uses SET at = 0", []).is_err());
}

#[tokio::test]
async fn a_limit_of_a_wake_ends_with_it_and_not_with_time() {
    let mut world = World::born().await;
    let wake =
        RateLimit { rule: "rate.wake".to_owned(), window: RateWindow::Wake, ..three_in_an_hour() };
    let call = |world: &World| JudgedCall { limits: vec![wake.clone()], ..world.planned() };
    let session = world.session().await;
    world.judged(session, vec![call(&world), call(&world), call(&world)]).await;
    world.advance(24 * 3_600_000);
    assert_eq!(uses(&world, vec![wake.clone()]).await, [3]);
    let turn = world.store.open_turn(session, vec![], 10).await.unwrap().id;
    let more = crate::judgement(turn, vec![call(&world)]);
    let error = world.store.record_judgement(more, None).await.unwrap_err();
    assert!(error.to_string().contains("has no place left under rate.wake"), "{error}");
    world.crash();
    world.store.recover().await.unwrap();
    world.advance(1);
    let session = world.session().await;
    assert_eq!(uses(&world, vec![wake.clone()]).await, [0], "another wake begins anew");
    world.judged(session, vec![call(&world)]).await;
    assert_eq!(uses(&world, vec![wake.clone()]).await, [1]);
}
