//! Turns and calls: judged before an effect, final once, read back whole.

use automaton_core::faults::FaultPoint;
use automaton_core::memory::{MemoryQuery, MemoryTier, NewMemory};
use automaton_core::message::CLAIMED_PER_TURN_MAX;
use automaton_core::record::{CallStatus, DecisionOutcome, FinishedCall, StopReason, TurnStatus};
use automaton_core::time::Span;
use automaton_core::trust::{Label, Labelled};
use automaton_store::{FailureCause, JudgedCall, TurnRef};

use crate::Steps as _;
use crate::{World, decision, is_unfit, manual, output, planned, refused, said};

#[tokio::test]
async fn a_turn_is_read_back_as_it_was() {
    let world = World::born().await;
    let message = said("do it");
    world.store.receive(message.clone(), None).await.unwrap();
    let session = world.session().await;
    let (one, two) = (world.planned(), refused(world.ids.id()));
    let turn = world.judged(session, vec![one.clone(), two.clone()]).await;
    world.store.start_call(one.id).await.unwrap();
    let result = output("a\nb");
    let span = Span::from_millis(12);
    world.store.finish_call(one.id, CallStatus::Done, result.clone(), span).await.unwrap();
    world.store.commit_turn(turn).await.unwrap();
    world.store.commit_turn(turn).await.unwrap();

    let turns = world.store.recent_turns(1, 5).await.unwrap();
    let record = &turns[0];
    assert_eq!((record.id, record.seq, record.status), (turn, 1, TurnStatus::Committed));
    assert_eq!(record.inputs, [message]);
    assert_eq!((record.thought.as_str(), &record.usage), ("I think", &Some(crate::usage())));
    let told: Vec<_> = record.calls.iter().map(|c| (c.id, c.status, c.result.clone())).collect();
    let expected =
        [(one.id, CallStatus::Done, Some(result)), (two.id, CallStatus::Refused, two.result)];
    assert_eq!(told, expected);
    assert_eq!(record.calls[0].duration, Some(span.into()));
    assert_eq!(record.calls[0].exit_code, Some(3));
    assert_eq!(world.store.life().await.unwrap().turns, 1, "committing twice counts once");

    let reader = world.reader();
    let dossier = reader.turn_details(TurnRef::Id(turn)).unwrap().unwrap();
    assert_eq!(&dossier.turn, record);
    assert_eq!(reader.turn_details(TurnRef::Seq(1)).unwrap().as_ref(), Some(&dossier));
    assert_eq!(reader.turn_details(TurnRef::Last).unwrap().as_ref(), Some(&dossier));
    assert_eq!(reader.turn_details(TurnRef::Seq(2)).unwrap(), None);
    assert!(dossier.woke.iter().any(|woke| woke.cause == manual("go")));
    assert!(dossier.efforts[0].started_at.is_some() && dossier.efforts[1].started_at.is_none());
    let intents = dossier.efforts[0].intents.iter().map(|intended| &intended.intent);
    assert!(intents.eq(&one.intents));
    let decisions = dossier.decisions;
    let outcomes: Vec<_> = decisions.iter().map(|d| (d.call, d.decision.outcome)).collect();
    assert_eq!(outcomes, [(one.id, DecisionOutcome::Allow), (two.id, DecisionOutcome::Deny)]);
    assert_eq!(
        decisions[0].decision.rules_evaluated,
        decision(DecisionOutcome::Allow).rules_evaluated
    );
}

#[tokio::test]
async fn the_newest_committed_turns_come_in_order() {
    let world = World::born().await;
    let session = world.session().await;
    let mut committed = Vec::new();
    for number in 0..6 {
        let turn = world.answer(session).await;
        committed.push(turn);
        if number == 2 {
            let lost =
                world.store.open_turn(session, Vec::new(), CLAIMED_PER_TURN_MAX).await.unwrap();
            world.store.abandon_turn(lost.id, FailureCause::Turn).await.unwrap();
        }
    }
    let ids = |turns: Vec<automaton_core::record::TurnRecord>| {
        turns.into_iter().map(|turn| turn.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(world.store.recent_turns(0, 100).await.unwrap()), committed);
    assert_eq!(ids(world.store.recent_turns(0, 2).await.unwrap()), committed[4..]);
    assert_eq!(ids(world.store.recent_turns(6, 100).await.unwrap()), committed[4..]);
    assert_eq!(world.reader().turns(100).unwrap().len(), 7, "people see the abandoned one, too");
}

#[tokio::test]
async fn a_call_starts_once_and_ends_once() {
    let world = World::born().await;
    let session = world.session().await;
    let (one, two) = (world.planned(), world.planned());
    let turn = world.judged(session, vec![one.clone(), two.clone()]).await;
    let finish =
        |id, status, text: &str| world.store.finish_call(id, status, output(text), Span::ZERO);
    let early = finish(one.id, CallStatus::Done, "never ran").await;
    assert!(is_unfit(&early, "is planned and cannot become done"));
    world.store.start_call(one.id).await.unwrap();
    let again = world.store.start_call(one.id).await;
    assert!(is_unfit(&again, "is started and cannot become started"));
    let unfinished = world.store.commit_turn(turn).await;
    assert!(is_unfit(&unfinished, "has 2 unfinished calls"));
    finish(one.id, CallStatus::Failed, "exit 1").await.unwrap();
    finish(one.id, CallStatus::Failed, "exit 1").await.unwrap();
    let other = finish(one.id, CallStatus::Failed, "exit 2").await;
    assert!(is_unfit(&other, "was already done differently"));
    let changed = finish(one.id, CallStatus::Done, "exit 1").await;
    assert!(is_unfit(&changed, "is failed and cannot become done"));
    finish(two.id, CallStatus::Skipped, "after sleep").await.unwrap();
    let started = world.store.start_call(two.id).await;
    let skipped = "is skipped and cannot become started";
    assert!(is_unfit(&started, skipped), "what was skipped never runs");
    world.store.commit_turn(turn).await.unwrap();
    assert!(world.store.verify_chain().await.unwrap().is_whole());
}

#[tokio::test]
async fn a_judgement_that_contradicts_itself_is_refused_whole() {
    let world = World::born().await;
    let session = world.session().await;
    let turn = world.store.open_turn(session, Vec::new(), CLAIMED_PER_TURN_MAX).await.unwrap().id;
    let base = || world.planned();
    let bad: [JudgedCall; 7] = [
        JudgedCall { decision: None, ..base() },
        JudgedCall { decision: Some(decision(DecisionOutcome::Ask)), ..base() },
        JudgedCall { intents: Vec::new(), ..base() },
        JudgedCall { result: Some(output("early")), ..base() },
        JudgedCall { status: CallStatus::Done, result: Some(output("early")), ..base() },
        JudgedCall { decision: Some(decision(DecisionOutcome::Allow)), ..refused(world.ids.id()) },
        JudgedCall { status: CallStatus::Invalid, result: None, decision: None, ..base() },
    ];
    let head = world.reader().head().unwrap();
    for call in bad {
        let judged = crate::judgement(turn, vec![base(), call.clone()]);
        let stored = world.store.record_judgement(judged, None).await;
        let error = stored.unwrap_err().to_string();
        let start = format!("the judgement of the call {} is malformed: ", call.id);
        assert!(error.starts_with(&start), "{error} {call:?}");
    }
    assert_eq!(world.reader().head().unwrap(), head, "half a judgement was stored");
    world.store.record_judgement(crate::judgement(turn, vec![base()]), None).await.unwrap();
    let again = world.store.record_judgement(crate::judgement(turn, vec![base()]), None).await;
    assert!(is_unfit(&again, "is judged, not open"));
    let abandoned = world.store.abandon_turn(turn, FailureCause::Turn).await;
    assert!(is_unfit(&abandoned, "is judged, not open"), "its calls may have run");
}

#[tokio::test]
async fn a_provider_s_call_id_may_come_every_turn() {
    let world = World::born().await;
    let session = world.session().await;
    for _ in 0..2 {
        let (one, two) = (world.planned(), world.planned());
        let turn = world.judged(session, vec![one.clone(), two.clone()]).await;
        for call in [one, two] {
            world.store.start_call(call.id).await.unwrap();
            let done = world.store.finish_call(call.id, CallStatus::Done, output("ok"), Span::ZERO);
            done.await.unwrap();
        }
        world.store.commit_turn(turn).await.unwrap();
    }
}

#[tokio::test]
async fn recovery_reports_the_running_call_as_unknown_and_the_later_ones_as_not_started() {
    let mut world = World::born().await;
    world.store.receive(said("do three things"), None).await.unwrap();
    let session = world.session().await;
    let calls = [world.planned(), world.planned(), world.planned()];
    let turn = world.judged(session, calls.to_vec()).await;
    world.store.start_call(calls[0].id).await.unwrap();
    let done = world.store.finish_call(calls[0].id, CallStatus::Done, output("1"), Span::ZERO);
    done.await.unwrap();
    world.store.start_call(calls[1].id).await.unwrap();
    world.crash();

    let recovered = world.store.recover().await.unwrap();
    assert_eq!((recovered.unknown, recovered.not_started, recovered.returned), (1, 1, 0));
    assert_eq!(recovered.session_cut, Some(session));
    assert_eq!(recovered.committed, [turn]);
    let record = world.store.recent_turns(1, 9).await.unwrap().pop().unwrap();
    let statuses: Vec<_> = record.calls.iter().map(|call| call.status).collect();
    assert_eq!(statuses, [CallStatus::Done, CallStatus::Unknown, CallStatus::NotStarted]);
    let told = record.calls[1].result.clone().unwrap();
    assert!(told.text.starts_with("Outcome unknown") && told.label == Label::Own);
    assert_eq!(record.status, TurnStatus::Committed);
    assert_eq!(world.store.owed_ingests().await.unwrap(), [turn]);
    assert_eq!(world.store.inbox_counts().await.unwrap().processed, 1);
    let closed = world.store.last_session().await.unwrap().unwrap();
    assert_eq!((closed.reason, closed.turns), (StopReason::Crash, 1));
    assert!(world.store.verify_chain().await.unwrap().is_whole());
    let again = world.store.recover().await.unwrap();
    assert_eq!(again, automaton_store::RecoverySummary::default(), "a second time finds nothing");
}

#[tokio::test]
async fn ingestion_is_owed_until_it_is_done_once() {
    let mut world = World::born().await;
    let session = world.session().await;
    world.answer(session).await;
    assert_eq!(world.store.owed_ingests().await.unwrap(), [], "it is done with the commit");
    let turn = world.judged(session, Vec::new()).await;
    world.crash();
    world.store.recover().await.unwrap();
    assert_eq!(world.store.owed_ingests().await.unwrap(), [turn]);
    let fact = |name: &str| NewMemory {
        tier: MemoryTier::Semantic,
        kind: "self".to_owned(),
        name: name.to_owned(),
        body: Labelled::new(Label::Own, "ingest", "value"),
        strength: 80,
        turn: Some(turn),
        lasts: None,
    };
    let ingest = |name| world.store.ingest_turn(turn, vec![fact(name)]);
    ingest("once").await.unwrap();
    ingest("twice").await.unwrap();
    assert!(world.store.owed_ingests().await.unwrap().is_empty());
    let query = MemoryQuery { limit: 9, ..Default::default() };
    let items = world.store.memories(query).await.unwrap().items;
    assert_eq!(items.iter().map(|item| item.name.as_str()).collect::<Vec<_>>(), ["once"]);
}

#[tokio::test]
async fn a_message_to_the_creator_goes_out_once_a_call() {
    let world = World::born().await;
    let (one, two) = (world.ids.id(), world.ids.id());
    let text = |text: &str| Labelled::new(Label::Own, "model", text);
    let first = world.store.send_to_creator(one, text("hello"), None).await.unwrap();
    assert_eq!(world.store.send_to_creator(one, text("hello"), None).await.unwrap(), first);
    let other = world.store.send_to_creator(one, text("bye"), None).await;
    assert!(is_unfit(&other, "was already done differently"));
    let second = world.store.send_to_creator(two, text("hello"), None).await.unwrap();
    let sent = world.reader().outbox_since(0, 9).unwrap();
    assert_eq!(sent.iter().map(|m| m.id).collect::<Vec<_>>(), [first, second]);
    assert_eq!(sent[0].body, text("hello"));
    let rest = world.reader().outbox_since(sent[0].seq, 9).unwrap();
    assert_eq!(rest.len(), 1);
}

#[tokio::test]
async fn every_fault_point_lies_right_after_its_commit() {
    let world = World::born().await;
    world.store.receive(said("hi"), None).await.unwrap();
    let session = world.store.open_session(vec![manual("x")]).await.unwrap();
    let turn = world.store.open_turn(session, Vec::new(), CLAIMED_PER_TURN_MAX).await.unwrap().id;
    let call = planned(world.ids.id());
    let judged = crate::judgement(turn, vec![call.clone()]);
    world.store.record_judgement(judged, None).await.unwrap();
    world.store.start_call(call.id).await.unwrap();
    let ended = FinishedCall::by_runtime(call.id, CallStatus::Done, "");
    let end = FinishedCall { result: output("ok"), ..ended };
    let (none, query) = (Vec::new(), automaton_store::WakeQuery::default());
    world.store.finish_turn(turn, vec![end], none, query).await.unwrap();
    world.store.close_session(session, StopReason::Asked, None, None).await.unwrap();
    crate::schedule::schedule(&world, vec![crate::schedule::task("ping")]).await;
    crate::schedule::lease(&world, "ping", 0).await.unwrap();
    let expected = [
        FaultPoint::MessageReceived,
        FaultPoint::SessionOpened,
        FaultPoint::TurnOpened,
        FaultPoint::JudgementStored,
        FaultPoint::CallStarted,
        FaultPoint::CallFinished,
        FaultPoint::TurnCommitted,
        FaultPoint::TurnIngested,
        FaultPoint::SleepStored,
        FaultPoint::TaskLeased,
    ];
    assert_eq!(*world.trap.reached.lock().unwrap(), expected);
}
