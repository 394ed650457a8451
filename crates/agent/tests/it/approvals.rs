//! What needs the creator's word: asked about, made once and exactly so, or not at all.

use std::sync::Arc;

use automaton_agent::live;
use automaton_core::event::Event;
use automaton_core::faults::NoFaults;
use automaton_core::record::{Authority, CallStatus};
use automaton_core::time::Span;
use automaton_core::trust::{Label, Labelled};
use automaton_core::wire::control::ApprovalVerdict;
use automaton_policy::{Judge, OperatorRules};
use automaton_store::{Approval, ApprovalAuthor, ApprovalState, Store, TurnRef};
use tokio::sync::watch;

use crate::brain::{Brain, Move, write};
use crate::life::{Events, Home, deps, settings};

const RULE: &str = "@id(\"files\") @ask(\"show me first\")\n\
    forbid (principal, action == Action::\"write_path\", resource);";

/// Lives for some turns under the operator's rule.
async fn lives(home: &Home, store: &Store, brain: &Arc<Brain>, turns: u32) -> Vec<Event> {
    let events = Arc::new(Events::default());
    let (rules, _) = OperatorRules::read(RULE, ["write_file"]).unwrap();
    let judge = Judge::new(Some(Arc::new(rules)));
    let deps =
        automaton_agent::AgentDeps { judge, ..deps(store, Arc::clone(brain), events.clone()) };
    let (_keep, shutdown) = watch::channel(false);
    live(settings(home.path(), turns), deps, shutdown).await.unwrap();
    events.all()
}

async fn asked(store: &Store) -> Approval {
    store.approvals(1).await.unwrap().remove(0)
}

#[tokio::test]
async fn a_call_that_was_approved_is_made_once_and_exactly_so() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let text = Labelled::new(Label::Creator, "creator", "Write it.");
    store.receive(text, Some("one")).await.unwrap();
    let moves = [Move::Call(vec![write("a.txt", "exactly this")])];
    let brain = Arc::new(Brain::new(8192, &moves, Move::Say("I go on.")));
    let events = lives(&home, &store, &brain, 2).await;
    assert!(events.iter().any(|event| matches!(event, Event::ApprovalAsked { call: Some(_), .. })));
    let first = &home.turns()[0].calls[0];
    assert_eq!(first.status, CallStatus::Refused);
    let told = &first.result.as_ref().unwrap().text;
    assert!(
        told.contains("needs your creator's approval") && told.contains("show me first"),
        "{told}"
    );
    let path = home.path().join("workspace/a.txt");
    assert!(!path.exists());
    let question = asked(&store).await;
    assert!(question.summary.text.contains("exactly this"), "{question:?}");
    let patience = question.expires_at.since(question.at);
    assert!(patience > Span::from_secs(23 * 3600), "the creator asked for it: {patience}");

    store.answer(question.id, ApprovalVerdict::Approve, ApprovalAuthor::Home).await.unwrap();
    let before = brain.seen().len();
    lives(&home, &store, &brain, 1).await;
    assert_eq!(brain.seen().len(), before, "no model is asked for what it said already");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "exactly this");
    let used = asked(&store).await;
    assert_eq!(used.state, ApprovalState::Used);
    std::fs::remove_file(&path).unwrap();
    lives(&home, &store, &brain, 2).await;
    assert!(!path.exists(), "an approval is used once");
    let shown: String = brain.seen().pop().unwrap().iter().map(|one| one.content.clone()).collect();
    assert!(shown.contains("Your creator approved") && shown.contains("File written"), "{shown}");

    let turns = home.turns();
    let made =
        turns.iter().find(|turn| turn.calls.iter().any(|call| call.status == CallStatus::Done));
    let dossier = home.reader().turn_details(TurnRef::Id(made.unwrap().id)).unwrap().unwrap();
    let decision = &dossier.decisions[0].decision;
    assert_eq!(
        (decision.code.as_str(), decision.rules_triggered[0].as_str()),
        ("APPROVED", "operator.files")
    );
    let under = decision.under;
    assert_eq!((under.approval, under.authority), (Some(question.id), Authority::Own));
    assert!(home.reader().verify_chain().unwrap().is_whole());
}

#[tokio::test]
async fn a_call_that_was_denied_is_not_made_and_told() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let moves = [Move::Call(vec![write("a.txt", "x")])];
    let brain = Arc::new(Brain::new(8192, &moves, Move::Say("I go on.")));
    lives(&home, &store, &brain, 2).await;
    let question = asked(&store).await;
    let patience = question.expires_at.since(question.at);
    assert!(patience <= Span::from_secs(15 * 60), "it came to that by itself: {patience}");
    store.answer(question.id, ApprovalVerdict::Deny, ApprovalAuthor::Home).await.unwrap();
    lives(&home, &store, &brain, 2).await;
    assert!(!home.path().join("workspace/a.txt").exists());
    let shown: String = brain.seen().pop().unwrap().iter().map(|one| one.content.clone()).collect();
    assert!(shown.contains("Your creator denied: write_file"), "{shown}");
    assert!(
        store.answer(question.id, ApprovalVerdict::Approve, ApprovalAuthor::Home).await.is_err()
    );
}
