//! Questions about calls: asked once, answered once, used once.

use automaton_core::record::{CallStatus, WakeSource};
use automaton_core::time::{RateWindow, Timestamp};
use automaton_core::trust::Label;
use automaton_core::wire::control::ApprovalVerdict;
use automaton_store::{
    Approval, ApprovalAuthor, ApprovalRequest, ApprovalState, ApprovalSubject, CallApprovalRequest,
    JudgedCall, RateLimit, StoreError, call_sha256,
};

use crate::Steps as _;
use crate::{World, output, refused};

const ARGUMENTS: &str = "{\"command\":\"ls\"}";

/// A refused call that is asked about, and lapses then.
fn asked(world: &World, arguments: &str, expires_at: i64) -> JudgedCall {
    let question = ApprovalRequest {
        summary: format!("exec {arguments}"),
        code: "OPERATOR_RULE".to_owned(),
        reason: "It is night.".to_owned(),
        expires_at: Timestamp::from_millis(expires_at),
    };
    let (arguments, label) = (arguments.to_owned(), Label::Peer);
    let question = Some(CallApprovalRequest { question, arguments, label });
    JudgedCall { question, ..refused(world.ids.id()) }
}

async fn waiting(world: &World) -> Vec<Approval> {
    world.store.approvals(10).await.unwrap()
}

#[tokio::test]
async fn one_call_is_asked_about_once_and_made_once() {
    let world = World::born().await;
    let session = world.session().await;
    let calls = vec![asked(&world, ARGUMENTS, i64::MAX), asked(&world, ARGUMENTS, i64::MAX)];
    let first = calls[0].id;
    world.judged(session, calls).await;
    let found = waiting(&world).await;
    assert_eq!(found.len(), 1, "the same call is one question");
    let Approval { id, subject, action_sha256, state, .. } = found[0].clone();
    let (tool, arguments) = ("exec".to_owned(), ARGUMENTS.to_owned());
    assert_eq!(subject, ApprovalSubject::Call { id: first, tool, arguments });
    assert_eq!(action_sha256, call_sha256("exec", ARGUMENTS));
    assert_eq!((state, approved_call(&world).await), (ApprovalState::Waiting, None));

    for _ in 0..2 {
        world.store.answer(id, ApprovalVerdict::Approve, ApprovalAuthor::Home).await.unwrap();
    }
    let approved = approved_call(&world).await.unwrap();
    assert_eq!((approved.id, approved.state), (id, ApprovalState::Approved));
    let (_, cause) = world.store.pending_wakes().await.unwrap().pop().unwrap();
    assert_eq!((cause.source, cause.reason.label), (WakeSource::Manual, Label::Peer));
    assert!(cause.reason.text.starts_with("Your creator approved: exec"), "{cause:?}");

    // What the creator approved has a place where a limit leaves none.
    let window = RateWindow::Last(automaton_core::time::HOUR);
    let full = RateLimit { rule: "rate.test".to_owned(), max: 0, window };
    let call = JudgedCall { approval: Some(id), limits: vec![full], ..world.planned() };
    let made = call.id;
    let turn = world.judged(session, vec![call]).await;
    world.store.start_call(made).await.unwrap();
    let none = automaton_core::time::Span::ZERO;
    world.store.finish_call(made, CallStatus::Done, output("ok"), none).await.unwrap();
    world.store.commit_turn(turn).await.unwrap();
    let used = world.store.approval(id).await.unwrap();
    assert_eq!((used.state, used.used_by), (ApprovalState::Used, Some(made)));
    assert_eq!(approved_call(&world).await, None);
    let same = world.store.answer(id, ApprovalVerdict::Approve, ApprovalAuthor::Home).await;
    assert_eq!(same.unwrap(), used, "the same answer again changes nothing");
    let other = world.store.answer(id, ApprovalVerdict::Deny, ApprovalAuthor::Home).await;
    assert!(matches!(other, Err(StoreError::Unfit { .. })), "{other:?}");
    let again = JudgedCall { approval: Some(id), ..world.planned() };
    let turn = world.store.open_turn(session, Vec::new(), 1).await.unwrap().id;
    let again = world.store.record_judgement(crate::judgement(turn, vec![again]), None).await;
    assert!(matches!(again, Err(StoreError::Unfit { .. })), "{again:?}");
    assert!(world.store.verify_chain().await.unwrap().is_whole());
    // Asked, approved and used.
    let raw = world.raw();
    let count = "SELECT count(*) FROM approval_steps WHERE link IS NOT NULL";
    assert_eq!(raw.query_row(count, [], |row| row.get::<_, i64>(0)), Ok(3));
}

#[tokio::test]
async fn a_question_that_nobody_answers_is_a_no_and_told() {
    let world = World::born().await;
    let session = world.session().await;
    world.judged(session, vec![asked(&world, ARGUMENTS, 0)]).await;
    let id = waiting(&world).await[0].id;
    let late = world.store.answer(id, ApprovalVerdict::Approve, ApprovalAuthor::Home).await;
    assert!(matches!(late, Err(StoreError::Unfit { .. })), "{late:?}");
    let expired = [world.store.expire_approvals().await, world.store.expire_approvals().await];
    assert_eq!(expired.map(Result::unwrap), [1, 0]);
    assert_eq!(world.store.approval(id).await.unwrap().state, ApprovalState::Expired);
    assert_eq!(approved_call(&world).await, None);
    let (_, cause) = world.store.pending_wakes().await.unwrap().pop().unwrap();
    assert_eq!(cause.source, WakeSource::Heartbeat, "nobody called");
    // It may be asked again.
    world.judged(session, vec![asked(&world, ARGUMENTS, i64::MAX)]).await;
    assert_eq!(waiting(&world).await.len(), 2);
}

#[tokio::test]
async fn questions_have_a_limit() {
    let world = World::born().await;
    let session = world.session().await;
    for many in 0..6 {
        let calls = (0..10).map(|n| asked(&world, &format!("[{many},{n}]"), i64::MAX)).collect();
        world.judged(session, calls).await;
    }
    assert_eq!(world.store.approvals(100).await.unwrap().len(), 50);
}

/// What a turn that begins now would be told to make.
async fn approved_call(world: &World) -> Option<Approval> {
    let started = world.store.start(world.last_session(), Vec::new()).await.unwrap();
    world.store.abandon_turn(started.id, automaton_store::FailureCause::Turn).await.unwrap();
    started.approved
}
