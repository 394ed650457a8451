//! What commands send: written down before, ended once, part of the record.

use automaton_core::egress::{EgressEndReason, EgressOutcome};
use automaton_core::id::CallId;
use automaton_core::intent::Intent;
use automaton_core::record::DecisionOutcome;
use automaton_core::time::Span;
use automaton_store::{NewEgress, RetentionPolicy};

use crate::{World, decision};

const CAME: EgressOutcome = EgressOutcome {
    status: Some(200),
    bytes_up: 100,
    bytes_down: 2000,
    end: EgressEndReason::Done,
};

async fn sent(world: &World, origin: &str, outcome: DecisionOutcome) -> (CallId, CallId) {
    let session = world.session().await;
    let call = world.planned();
    let id = call.id;
    let turn = world.judged(session, vec![call]).await;
    let new = NewEgress {
        call: id,
        turn,
        method: "GET".to_owned(),
        origin: origin.to_owned(),
        intent: Intent::Egress {
            method: "GET".to_owned(),
            url: format!("{origin}/x"),
            origin: origin.to_owned(),
        },
        decision: decision(outcome),
    };
    (id, world.store.record_egress(new).await.unwrap())
}

#[tokio::test]
async fn a_request_is_in_the_chain_before_it_is_sent_and_ends_once() {
    let world = World::born().await;
    let (call, id) = sent(&world, "https://pypi.org", DecisionOutcome::Allow).await;
    let row = world.reader().egress(10).unwrap().remove(0);
    assert_eq!((row.call, row.id, row.came), (call, id, None));
    let judged = world.reader().decision(&id.to_string()).unwrap().unwrap();
    assert_eq!(
        (judged.tool.as_str(), judged.decision),
        ("egress", decision(DecisionOutcome::Allow))
    );
    world.store.end_egress(id, CAME).await.unwrap();
    assert_eq!(world.reader().egress(10).unwrap()[0].came, Some(CAME));
    assert!(world.store.end_egress(id, CAME).await.is_err(), "it has ended");
    assert!(world.store.verify_chain().await.unwrap().is_whole());
    let raw = world.raw();
    raw.execute_batch("DROP TRIGGER tool_calls_decisions_fixed").unwrap();
    let elsewhere = "UPDATE tool_calls SET intents = json_set(intents, '$[0].url', 'x') \
                     WHERE tool = 'egress'";
    assert_eq!(raw.execute(elsewhere, []), Ok(1));
    assert!(!world.store.verify_chain().await.unwrap().is_whole(), "where it went was edited");
}

#[tokio::test]
async fn what_was_refused_has_no_end_and_old_rows_go_without_the_chain() {
    let world = World::born().await;
    let (_, refused) = sent(&world, "https://evil.example", DecisionOutcome::Deny).await;
    assert!(world.store.end_egress(refused, CAME).await.is_err());
    assert!(world.store.end_egress(world.ids.id(), CAME).await.is_err());
    world.advance(10_000);
    let kept = RetentionPolicy {
        keep: Span::from_millis(5_000),
        keep_heartbeat: Span::ZERO,
        turns_kept: 10,
        rows_max: 100,
    };
    assert_eq!(world.store.retention(kept).await.unwrap().egress, 1);
    assert!(world.reader().egress(10).unwrap().is_empty());
    assert!(world.reader().decision(&refused.to_string()).unwrap().is_some());
    assert!(world.store.verify_chain().await.unwrap().is_whole());
}
