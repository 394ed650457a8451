//! A tool that is added while the automaton lives is a tool like any other, and can go again.

use std::sync::{Arc, Mutex};

use automaton_agent::{AgentDeps, EventSink, Toolbox, live};
use automaton_core::event::{Event, StampedEvent};
use automaton_core::faults::NoFaults;
use automaton_core::memory::MemoryQuery;
use automaton_core::record::{CallStatus, DecisionOutcome};
use automaton_core::trust::{Label, Labelled};
use serde_json::json;
use tokio::sync::watch;

use crate::bell::{self, Bell};
use crate::brain::{Brain, Move, write};
use crate::life::{Home, deps, settings};

/// Adds the bell while the first turn thinks, and removes it while the third does.
struct Tinkerer {
    toolbox: Arc<Toolbox>,
    brain: Arc<Brain>,
    events: Mutex<Vec<Event>>,
    /// True for each question with which the bell was offered.
    offered: Mutex<Vec<bool>>,
}

impl EventSink for Tinkerer {
    fn emit(&self, StampedEvent { event, .. }: StampedEvent) {
        let asked = self.offered.lock().unwrap().len();
        match event {
            Event::InferenceStarted { .. } if asked == 0 => {
                self.toolbox.add(Arc::new(Bell::new())).unwrap();
            }
            Event::InferenceStarted { .. } if asked == 2 => {
                self.toolbox.remove(&bell::NAME.parse().unwrap()).unwrap();
            }
            Event::InferenceCompleted { .. } => {
                let is_offered = self.brain.offered().iter().any(|tool| tool == bell::NAME);
                self.offered.lock().unwrap().push(is_offered);
            }
            _ => {}
        }
        self.events.lock().unwrap().push(event);
    }
}

#[tokio::test]
async fn a_tool_added_at_run_time_is_offered_judged_run_recorded_shown_and_removed() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let asked = Labelled::new(Label::Creator, "creator", "Ring the bell.");
    store.receive(asked, None).await.unwrap();
    let ring = |arguments| Move::Call(vec![(bell::NAME, arguments)]);
    let moves = [
        ring(json!({ "times": 1 })),
        Move::Call(vec![(bell::NAME, json!({ "times": 2 })), write("late.txt", "x")]),
        ring(json!({ "count": 3 })),
        ring(json!({ "times": 4 })),
        Move::Say("I rang it."),
    ];
    let brain = Arc::new(Brain::new(100_000, &moves, Move::Say("Fine.")).that_is_free());
    let toolbox = Arc::new(Toolbox::built_in().unwrap());
    let tinkerer = Arc::new(Tinkerer {
        toolbox: Arc::clone(&toolbox),
        brain: Arc::clone(&brain),
        events: Mutex::default(),
        offered: Mutex::default(),
    });
    let events = Arc::clone(&tinkerer) as Arc<dyn EventSink>;
    let deps = AgentDeps { toolbox, events, ..deps(&store, Arc::clone(&brain), Arc::default()) };
    let (_keep, shutdown) = watch::channel(false);
    live(settings(home.path(), 5), deps, shutdown).await.unwrap();

    // A turn keeps the tools that it began with: the first one has no bell yet, and the third
    // one still has it.
    assert_eq!(*tinkerer.offered.lock().unwrap(), [false, true, true, false, false]);
    let turns = home.turns();
    let calls = |turn: usize| -> Vec<(CallStatus, String)> {
        let calls = turns[turn].calls.iter();
        calls.map(|call| (call.status, call.result.clone().unwrap().text)).collect()
    };
    let unknown = "There is no tool 'ring_bell'. Nothing was run. The tools are: ";
    for turn in [0, 3] {
        let [(status, text)] = calls(turn).try_into().unwrap();
        assert_eq!(status, CallStatus::Invalid);
        assert!(text.starts_with(unknown) && !text[unknown.len()..].contains("bell"), "{text}");
    }
    let rang = |times| (CallStatus::Done, format!("It rang {times} times."));
    let late = (CallStatus::Skipped, "Not run: the bell has rung.".to_owned());
    assert_eq!(calls(1), [rang(2), late]);
    assert_eq!(calls(2), [rang(3)], "under the other name of its argument");

    let events = tinkerer.events.lock().unwrap().clone();
    let judged = events.iter().filter(|event| {
        let of = |tool: &str, outcome| tool == bell::NAME && outcome == DecisionOutcome::Allow;
        matches!(event, Event::DecisionMade { tool, outcome, .. } if of(tool, *outcome))
    });
    assert_eq!(judged.count(), 2);
    assert!(home.reader().verify_chain().unwrap().is_whole());

    // Its calls and results are in every later prompt, and nothing before them changes.
    let seen = brain.seen();
    let shown = |question: usize| -> Vec<String> {
        let results = seen[question].iter().filter(|message| message.answers.is_some());
        results.map(|message| message.content.clone()).collect()
    };
    assert!(shown(4)[1].contains("It rang 2 times.") && shown(4)[3].contains("It rang 3 times."));
    assert_eq!(shown(4)[..shown(3).len()], shown(3), "the prompt is the beginning of the next");
    let query = MemoryQuery { text: Some("ring_bell".to_owned()), limit: 10, ..Default::default() };
    let found = home.reader().memories(&query).unwrap();
    let found = format!("{found:?}");
    assert!(found.contains("\"work\"") && found.contains("ring_bell"), "{found}");
}
