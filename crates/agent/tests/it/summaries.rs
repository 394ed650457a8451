//! What no prompt shows any more is summed up by a model, within every budget.

use std::sync::Arc;
use std::time::Duration;

use automaton_agent::{Budgets, Pace, Settings, live};
use automaton_core::event::Event;
use automaton_core::faults::NoFaults;
use automaton_core::inference_budget::InferenceCeilings;
use automaton_core::memory::MemoryQuery;
use automaton_core::money::Microcents;
use automaton_core::trust::{Label, Labelled};
use automaton_store::Store;
use tokio::sync::watch;

use crate::brain::{Brain, Move, write};
use crate::life::{Events, Home, deps, lives, settings};

const SUMMARY: &str =
    "- It keeps a log in notes.md, as Ada asked.\n- It paid $7341.25 for /srv/vault.key.";

/// A home whose history was cut in its last turn, with a model that sums up in these words.
async fn lived(words: &'static str) -> (Home, Store, Arc<Brain>) {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let order = Labelled::new(Label::Creator, "creator", "Keep a log in notes.md, says Ada.");
    store.receive(order, None).await.unwrap();
    let works = Move::Call(vec![write("notes.md", &"The tide is high. ".repeat(60))]);
    let brain = Arc::new(Brain::new(8192, &[], works).that_hands_over(words));
    lives(&home, &store, &brain, 40).await;
    let from = store.place().await.unwrap().from;
    assert!(from > 7, "its history was never cut");
    for _ in 0..40 {
        if store.place().await.unwrap().from > from {
            break;
        }
        lives(&home, &store, &brain, 1).await;
    }
    (home, store, brain)
}

/// Lives on until the task has run, and gives what it said.
async fn summarizes(home: &Home, store: &Store, brain: &Arc<Brain>, settings: Settings) -> String {
    let file = "entries:\n- {name: health_check, enabled: false}\n\
                - {name: summarize_history, intervalMs: 1000}\n";
    std::fs::write(home.path().join("heartbeat.yml"), file).unwrap();
    let events = Arc::new(Events::default());
    let deps = deps(store, Arc::clone(brain), Arc::clone(&events));
    let (end, shutdown) = watch::channel(false);
    let ran = |event: &Event| matches!(event, Event::HeartbeatRan { task, .. } if task == "summarize_history");
    let watching = async {
        for _ in 0..1200 {
            tokio::time::sleep(Duration::from_millis(25)).await;
            if events.all().iter().any(ran) {
                break;
            }
        }
        end.send(true).unwrap();
    };
    let pace = Pace { turns_max: None, sleep_cap: None };
    let (ended, ()) = tokio::join!(live(Settings { pace, ..settings }, deps, shutdown), watching);
    ended.unwrap();
    let runs = home.reader().task_runs("summarize_history", 100).unwrap();
    runs.first().unwrap().note.clone()
}

#[tokio::test]
async fn a_summary_takes_the_place_of_what_the_rules_say_and_is_remembered() {
    let (home, store, brain) = lived(SUMMARY).await;
    let spent = store.totals().await.unwrap();
    let note = summarizes(&home, &store, &brain, settings(home.path(), 1)).await;
    assert!(note.contains("turns 1 to ") && note.contains(" tokens to "), "{note}");
    assert!(store.totals().await.unwrap().answers > spent.answers, "it is counted");
    let asked = brain.seen().into_iter().find(|seen| seen[0].content.contains("You sum up"));
    let asked = asked.expect("no model was asked");
    assert!(asked[1].content.contains("Keep a log in notes.md, says Ada."));

    let query =
        MemoryQuery { text: Some("log notes Ada".to_owned()), limit: 50, ..Default::default() };
    let items = store.memories(query).await.unwrap().items;
    let event = items.iter().find(|found| found.kind == "summary").unwrap();
    assert_eq!(event.body.text, "- It keeps a log in notes.md, as Ada asked.");
    assert_eq!(event.body.label, Label::Tool);

    // It is shown when the history is cut again, and not before.
    let heading = "as a model sums them up:\n- It keeps a log in notes.md, as Ada asked.";
    let from = store.place().await.unwrap().from;
    let order = Labelled::new(Label::Creator, "creator", "Go on.");
    store.receive(order, None).await.unwrap();
    let shown = |seen: &[Arc<automaton_inference::Message>]| {
        seen.iter().any(|message| message.content.contains(heading))
    };
    let (mut turns, mut cut) = (0, false);
    while !cut {
        lives(&home, &store, &brain, 1).await;
        cut = store.place().await.unwrap().from > from;
        assert_eq!(shown(brain.seen().last().unwrap()), cut, "in turn {turns}");
        turns += 1;
        assert!(turns < 40, "its history was never cut again");
    }
    assert!(turns > 1, "its history was cut at once");
}

#[tokio::test]
async fn what_is_of_no_use_is_paid_for_once_and_not_shown() {
    let (home, store, brain) = lived("I am sorry, I cannot do that.").await;
    let note = summarizes(&home, &store, &brain, settings(home.path(), 1)).await;
    assert!(note.contains("of no use"), "{note}");
    let waiting = store.unsummarized(40).await.unwrap();
    let first = waiting.turns.first().map_or(u64::MAX, |turn| turn.seq);
    assert!(first > 1, "the same turns are asked for again");
    assert!(store.digest().await.unwrap().unwrap().summaries.is_empty());
}

#[tokio::test]
async fn nobody_is_asked_where_the_creator_or_a_budget_says_no_or_the_model_is_weak() {
    let (home, store, brain) = lived(SUMMARY).await;
    let settings = || settings(home.path(), 1);
    let off = Settings { summaries: false, ..settings() };
    let note = summarizes(&home, &store, &brain, off).await;
    assert_eq!(note, "summarizeHistory is false");

    let ceilings = InferenceCeilings { per_call: Some(Microcents::new(1)), ..Default::default() };
    let poor = Settings { budgets: Budgets { ceilings, ..Budgets::default() }, ..settings() };
    let note = summarizes(&home, &store, &brain, poor).await;
    assert!(note.contains("it waits: "), "{note}");
    let weak = Arc::new(Brain::new(8192, &[], Move::Say("Fine.")).that_is_weak());
    let note = summarizes(&home, &store, &weak, settings()).await;
    assert_eq!(note, "there is no model for it");
    assert!(brain.seen().iter().all(|seen| !seen[0].content.contains("You sum up")));
    assert_eq!(store.unsummarized(1).await.unwrap().turns[0].seq, 1, "nothing was lost");
}
