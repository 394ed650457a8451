//! Models that burn money: the stories that users of other runtimes told.
//!
//! Each is lived twice, with the default limits and with none, over prices of a hosted
//! model. Rests that the runtime takes are a moment here, but for those that only the
//! creator or a whole hour ends: whoever comes to one is stopped.

use std::sync::Arc;
use std::time::Duration;

use automaton_agent::{AgentLimits, Budgets, Pace, UnattendedBudget, live};
use automaton_core::event::Event;
use automaton_core::faults::NoFaults;
use automaton_core::money::Microcents;
use automaton_core::record::StopReason;
use automaton_core::time::Span;
use automaton_core::trust::{Label, Labelled};
use automaton_store::Store;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::brain::{Brain, Move, sleep, write};
use crate::life::{Events, Home, deps, settings, stops};

/// What a story may come to.
const ANSWERS_MAX: usize = 30;
const COST_MAX: Microcents = Microcents::new(25 * Microcents::PER_CENT);
/// Where a story without limits is ended by the test.
const UNLIMITED: usize = 100;
const MOMENT: Span = Span::from_millis(1);

/// Messages that a story may send the creator: not one for each of its wakes.
const TOLD_MAX: usize = 2;

/// How a life burns.
struct Story {
    name: &'static str,
    moves: Vec<Move>,
    last: Move,
    /// Whether peers write without end.
    storm: bool,
    /// Whether the creator asked for it.
    asked: bool,
    /// Its answers, and their cost, while each three turns without a change ended a wake.
    before: Option<(usize, &'static str)>,
}

impl Story {
    fn new(name: &'static str, last: Move) -> Self {
        Self { name, moves: Vec::new(), last, storm: false, asked: false, before: None }
    }

    fn before(self, answers: usize, cost: &'static str) -> Self {
        Self { before: Some((answers, cost)), ..self }
    }
}

fn stories() -> Vec<Story> {
    let call = |tool, arguments: Value| Move::Call(vec![(tool, arguments)]);
    let busy =
        (0..300).map(|n| call("write_file", json!({ "path": "log", "content": n.to_string() })));
    let counts = || (0..300).map(|n| call("recall_facts", json!({ "query": n.to_string() })));
    vec![
        Story::new("asks for its status again and again", call("system_synopsis", json!({})))
            .before(3, "$0.0198558"),
        Story::new("does the same again and again", Move::Call(vec![write("same", "same")]))
            .before(4, "$0.0261246"),
        Story {
            moves: busy.collect(),
            ..Story::new("does something else each time", sleep_long()).before(30, "$0.2030166")
        },
        Story {
            moves: counts().collect(),
            ..Story::new("looks at what is always new", sleep_long())
        },
        Story {
            moves: counts().collect(),
            asked: true,
            ..Story::new("looks at it since it was asked to", sleep_long())
        },
        Story::new("tries what it may not", call("read_file", json!({ "path": "/etc/shadow" })))
            .before(30, "$0.2385306"),
        Story::new("sleeps for a second at a time", Move::Call(vec![sleep()]))
            .before(30, "$0.214389"),
        Story::new("is not paid", Move::Unpaid).before(30, "$0.00"),
        Story {
            storm: true,
            ..Story::new("is woken by everybody", Move::Say("Yes?")).before(30, "$0.2466108")
        },
        Story::new("calls what there is not", call("mine_bitcoin", json!({})))
            .before(3, "$0.0197694"),
    ]
}

fn sleep_long() -> Move {
    Move::Call(vec![("sleep", json!({ "duration_seconds": 86_400 }))])
}

/// The default limits, with rests of a moment.
fn disciplined() -> (AgentLimits, Budgets) {
    let limits = AgentLimits {
        rest_after_turns: MOMENT,
        rest_after_errors: MOMENT,
        rest_after_blocked: MOMENT,
        backoff: MOMENT,
        ..AgentLimits::default()
    };
    let envelope = UnattendedBudget { answers: Some(30), cost: Some(COST_MAX) };
    (limits, Budgets { envelope, ..Budgets::default() })
}

/// None of them.
fn undisciplined() -> (AgentLimits, Budgets) {
    let never = u32::MAX - 1;
    let limits = AgentLimits {
        turns_per_wake: never,
        turns_of_creator: never,
        errors: never,
        silent_turns: never,
        stale_turns: never,
        invalid_turns: never,
        blocked_turns: never,
        repeats: never,
        backoff: Span::ZERO,
        ..disciplined().0
    };
    (limits, Budgets::default())
}

/// How often the model was asked, what that cost, and why it stopped last.
struct Burnt {
    answers: usize,
    cost: Microcents,
    reason: Option<StopReason>,
    /// Messages that the creator was sent.
    told: usize,
}

/// Whether the life has come to a rest that nothing here ends.
fn is_stopped(events: &[Event]) -> bool {
    let last = events.iter().rev().find_map(|event| match event {
        Event::SleepStarted { planned_ms, .. } => Some(planned_ms.is_none_or(|ms| ms > 600_000)),
        Event::SleepEnded { .. } => Some(false),
        _ => None,
    });
    last == Some(true)
}

async fn lives(story: &Story, (limits, budgets): (AgentLimits, Budgets)) -> Burnt {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let brain = Arc::new(Brain::new(128_000, &story.moves, story.last.clone()).that_costs());
    let events = Arc::new(Events::default());
    let deps = deps(&store, Arc::clone(&brain), Arc::clone(&events));
    let (end, shutdown) = watch::channel(false);
    let mut settings = settings(home.path(), 1);
    (settings.limits, settings.budgets) = (limits, budgets);
    // A second that the model asks for is a moment, too, and so is the time to the look
    // that finds a message.
    let naps =
        story.storm || matches!(&story.last, Move::Call(calls) if calls.first() == Some(&sleep()));
    settings.pace = Pace { turns_max: None, sleep_cap: naps.then_some(MOMENT) };
    if story.asked {
        let asked = Labelled::new(Label::Creator, "creator", "Look at everything.");
        store.receive(asked, None).await.unwrap();
    }
    let lived = tokio::task::spawn_blocking(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(live(settings, deps, shutdown)).unwrap()
    });
    let mut quiet = 0;
    for round in 0..3000 {
        tokio::time::sleep(Duration::from_millis(2)).await;
        if story.storm {
            say(&store, round).await;
        }
        // Once more after it has stopped, which a storm would wake it from.
        let stopped = is_stopped(&events.all())
            || (naps && stops(&events.all()).contains(&StopReason::Envelope));
        quiet = if stopped { quiet + 1 } else { 0 };
        if quiet > 40 || brain.seen().len() >= UNLIMITED {
            break;
        }
    }
    end.send_replace(true);
    lived.await.unwrap();
    burnt(&events.all(), &brain)
}

/// What was burnt until the hour's rest, which a nap's cap would cut short.
fn burnt(events: &[Event], brain: &Brain) -> Burnt {
    let rests =
        |event: &Event| matches!(event, Event::WakeEnded { reason: StopReason::Envelope, .. });
    let rest = events.iter().position(rests);
    let until = &events[..rest.map_or(events.len(), |at| at + 1)];
    let costs = until.iter().filter_map(|event| match event {
        Event::InferenceCompleted { cost, .. } => Some(cost.units()),
        _ => None,
    });
    let refused = until.iter().filter(|event| matches!(event, Event::TurnFailed { .. })).count();
    let answers = match rest {
        Some(_) => costs.clone().count() + refused,
        None => brain.seen().len(),
    };
    let reason = stops(until).into_iter().rev().find(|why| *why != StopReason::Shutdown);
    let told = until.iter().filter(|event| matches!(event, Event::MessageSent { .. })).count();
    Burnt { answers, cost: Microcents::new(costs.sum()), reason, told }
}

async fn say(store: &Store, round: u32) {
    let message = Labelled::new(Label::Peer, &format!("0x{round:040x}"), "Hello?");
    store.receive(message, None).await.unwrap();
}

#[tokio::test]
async fn every_story_of_burnt_money_ends_early() {
    println!(
        "{:<36} {:>7} {:>11}   {:>7} {:>11}   {:>7} {:>11}",
        "", "before", "cost", "now", "cost", "without", "cost"
    );
    for story in stories() {
        let with = lives(&story, disciplined()).await;
        let without = lives(&story, undisciplined()).await;
        let (before, cost_before) = story
            .before
            .map_or_else(Default::default, |(answers, cost)| (answers.to_string(), cost));
        println!(
            "{:<36} {before:>7} {cost_before:>11}   {:>7} {:>11}   {:>7} {:>11}   {}",
            story.name,
            with.answers,
            with.cost.to_string(),
            without.answers,
            without.cost.to_string(),
            with.reason.map_or("", StopReason::sentence),
        );
        assert!(with.answers <= ANSWERS_MAX, "{}: {} answers", story.name, with.answers);
        assert!(with.cost <= COST_MAX, "{}: {}", story.name, with.cost);
        assert!(without.answers > ANSWERS_MAX, "{}: a story that burns nothing", story.name);
        assert!(with.told <= TOLD_MAX, "{}: {} messages", story.name, with.told);
    }
}
