//! What thinking costs is booked before it is known, and who spends or loses too much
//! stops.

use std::sync::Arc;
use std::time::Duration;

use automaton_agent::{Budgets, EndReason, Pace, StopLoss, live};
use automaton_core::event::Event;
use automaton_core::faults::NoFaults;
use automaton_core::inference_budget::InferenceCeilings;
use automaton_core::money::Microcents;
use automaton_core::pnl::PnlGrouping;
use automaton_core::record::{StopReason, WakeCause, WakeSource};
use automaton_core::state::AgentState;
use automaton_core::time::{DAY, Span, Timestamp};
use automaton_core::trust::{Label, Labelled};
use automaton_store::{Revenue, Store};
use tokio::sync::watch;

use crate::brain::{Brain, Move, sleep, write};
use crate::life::{Events, Home, deps, settings, stops};
use crate::town::{DOLLAR, Town};

/// What an answer of the brain costs, in microcents.
const ANSWER: i64 = 5;

fn amount(units: i64) -> Option<Microcents> {
    Some(Microcents::new(units))
}

fn stop_at(total: i64) -> Budgets {
    let stop_loss = StopLoss { total: amount(total), ..StopLoss::default() };
    Budgets { stop_loss, ..Budgets::default() }
}

fn works() -> Brain {
    let moves = (0..9).map(|n| Move::Call(vec![write(&format!("{n}"), "x")]));
    Brain::new(8192, &moves.collect::<Vec<_>>(), Move::Say("Fine."))
}

fn cost(home: &Home) -> i64 {
    home.reader()
        .profit_and_loss(PnlGrouping::Category, Timestamp::EPOCH)
        .unwrap()
        .total
        .cost
        .units()
}

/// A life that somebody watches from outside.
struct Life {
    events: Arc<Events>,
    brain: Arc<Brain>,
    end: watch::Sender<bool>,
    lived: tokio::task::JoinHandle<automaton_agent::AgentRunOutcome>,
}

impl Life {
    async fn begin(home: &Home, store: &Store, brain: Brain, budgets: Budgets) -> Self {
        let (events, brain) = (Arc::new(Events::default()), Arc::new(brain));
        let deps = deps(store, Arc::clone(&brain), Arc::clone(&events));
        Self::with(home, deps, (events, brain), budgets)
    }

    fn with(
        home: &Home,
        deps: automaton_agent::AgentDeps,
        (events, brain): (Arc<Events>, Arc<Brain>),
        budgets: Budgets,
    ) -> Self {
        let (end, shutdown) = watch::channel(false);
        let mut settings = settings(home.path(), 1);
        settings.budgets = budgets;
        settings.pace = Pace::default();
        let lived = tokio::task::spawn_blocking(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(live(settings, deps, shutdown)).unwrap()
        });
        Self { events, brain, end, lived }
    }

    /// Waits until so many events have come that pass.
    async fn until(&self, many: usize, wanted: fn(&Event) -> bool) {
        for _ in 0..2000 {
            if self.events.all().iter().filter(|event| wanted(event)).count() >= many {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("it never came: {:?}", self.events.all());
    }

    async fn end(self) -> Vec<Event> {
        self.end.send_replace(true);
        assert_eq!(self.lived.await.unwrap().reason, EndReason::Shutdown);
        self.events.all()
    }
}

fn hibernates(event: &Event) -> bool {
    matches!(event, Event::HibernationStarted { .. })
}

fn slept(event: &Event) -> bool {
    matches!(event, Event::SleepStarted { .. })
}

async fn say(store: &Store, label: Label, text: &str) {
    store.receive(Labelled::new(label, "someone", text), None).await.unwrap();
}

#[tokio::test]
async fn an_answer_is_booked_at_its_worst_until_it_is_known() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let brain = Brain::new(8192, &[Move::Unpaid, Move::Fail], Move::Say("Fine."));
    // One more, since each of two parts of a prompt may be rounded up.
    let worst_per_answer = 8192 * 180 + 1 + 512 * 1400;
    let life = Life::begin(&home, &store, brain, Budgets::default()).await;
    life.until(1, slept).await;
    life.end().await;
    let totals = store.totals().await.unwrap();
    assert_eq!((totals.answers, totals.unsettled, totals.cost.units()), (1, 1, ANSWER));
    let unsettled = cost(&home) - ANSWER;
    assert!(unsettled > 512 * 1400 && unsettled <= worst_per_answer, "{unsettled}");
}

#[tokio::test]
async fn who_lost_enough_hibernates_and_the_creator_wakes_it() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let life = Life::begin(&home, &store, works(), stop_at(2 * ANSWER)).await;
    life.until(1, hibernates).await;
    say(&store, Label::Peer, "Go on!").await;
    let task = Labelled::new(Label::Own, "task", "something is due");
    store.push_wake(WakeCause { source: WakeSource::Heartbeat, reason: task }).await.unwrap();
    let events = life.end().await;
    assert_eq!((stops(&events), cost(&home)), (vec![StopReason::StopLoss], 2 * ANSWER));
    let change = events.iter().rev().find_map(|event| match event {
        Event::StateChanged { from, to, reason } => Some((*from, *to, reason.clone())),
        _ => None,
    });
    let (from, to, reason) = change.unwrap();
    assert_eq!((from, to), (AgentState::Running, AgentState::Hibernating));
    let words = "$0.0000001 were lost in all, and $0.0000001 is what `stopLoss.totalCents` allows.";
    assert!(reason.starts_with(words) && reason.contains("`automaton wake`"), "{reason}");

    // Neither a restart nor what others say wakes it.
    let life = Life::begin(&home, &store, works(), stop_at(2 * ANSWER)).await;
    life.until(1, hibernates).await;
    assert!(life.brain.seen().is_empty());
    assert_eq!(home.reader().hibernation().unwrap().unwrap().reason, reason);
    // The control socket has the creator's word; a restart finds it as well.
    say(&store, Label::Creator, "Once more.").await;
    life.end().await;
    let life = Life::begin(&home, &store, works(), stop_at(2 * ANSWER)).await;
    life.until(1, hibernates).await;
    let asked = life.brain.asked();
    assert!(asked[0].contains("Your creator ended your hibernation."), "{}", asked[0]);
    assert!(asked[0].contains(words) && asked[0].contains("Once more."), "{}", asked[0]);
    let events = life.end().await;
    assert_eq!((stops(&events), cost(&home)), (vec![StopReason::StopLoss], 4 * ANSWER));
    assert!(home.reader().verify_chain().unwrap().is_whole());
}

#[tokio::test]
async fn a_loss_that_a_sleep_follows_hibernates_all_the_same() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let brain = Brain::new(8192, &[Move::Call(vec![sleep()])], Move::Say("Fine."));
    let life = Life::begin(&home, &store, brain, stop_at(ANSWER)).await;
    life.until(1, hibernates).await;
    let events = life.end().await;
    assert_eq!(stops(&events), [StopReason::StopLoss]);
    assert!(!events.iter().any(slept), "{events:?}");
}

#[tokio::test]
async fn revenue_makes_up_for_costs_and_ends_a_hibernation() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let paid = async |key: &str, units| {
        let (key, from, at) = (key.to_owned(), "0xabc".to_owned(), Timestamp::EPOCH);
        store
            .book_revenue(Revenue { key, amount: Microcents::new(units), from, at })
            .await
            .unwrap();
    };
    paid("one", 2 * ANSWER).await;
    let life = Life::begin(&home, &store, works(), stop_at(ANSWER)).await;
    life.until(1, hibernates).await;
    life.end().await;
    assert_eq!(cost(&home), 3 * ANSWER, "two answers were paid for");
    paid("two", 1).await;
    let life = Life::begin(&home, &store, works(), stop_at(ANSWER)).await;
    life.until(1, hibernates).await;
    let asked = life.brain.asked();
    assert!(asked[0].contains("others paid you $0.00000001"), "{}", asked[0]);
    life.end().await;
}

#[tokio::test]
async fn money_that_it_was_given_ends_a_hibernation_and_what_it_bought_does_not() {
    let (home, town) = (Home::new(), Town::new(20, 6 * DOLLAR));
    let store = home.store_by(town.ids(), Arc::new(NoFaults)).await;
    let begin = async || {
        let (events, brain) = (Arc::new(Events::default()), Arc::new(works()));
        let mut deps = deps(&store, Arc::clone(&brain), Arc::clone(&events));
        deps.ids = town.ids();
        let treasury = town.treasury(&store, Arc::new(NoFaults), events.clone()).await;
        deps.treasury = Some(treasury.clone());
        (Life::with(&home, deps, (events, brain), stop_at(ANSWER)), treasury)
    };
    let (life, treasury) = begin().await;
    life.until(1, hibernates).await;
    treasury.buy(5).await.unwrap();
    life.end().await;
    assert_eq!(town.counts().credits, 11 * DOLLAR);
    let (life, _) = begin().await;
    life.until(1, hibernates).await;
    assert!(life.brain.seen().is_empty(), "credits it bought itself");
    life.end().await;
    town.counts().usdc += 1_000_000;
    let (life, _) = begin().await;
    life.until(1, hibernates).await;
    let asked = life.brain.asked();
    assert!(asked[0].contains("your wallet was given 1.00 USDC"), "{}", asked[0]);
    life.end().await;
}

#[tokio::test]
async fn who_may_not_think_today_sleeps_until_it_may() {
    let (home, town) = (Home::new(), Town::new(0, 0));
    let store = home.store_by(town.ids(), Arc::new(NoFaults)).await;
    let begin = async |limit| {
        let (events, brain) = (Arc::new(Events::default()), Arc::new(works()));
        let mut deps = deps(&store, Arc::clone(&brain), Arc::clone(&events));
        deps.ids = town.ids();
        let ceilings = InferenceCeilings { per_day: amount(limit), ..InferenceCeilings::default() };
        let budgets = Budgets { ceilings, ..Budgets::default() };
        Life::with(&home, deps, (events, brain), budgets)
    };
    // Somewhat more than one answer can cost at its worst.
    let limit = 8192 * 180 + 1 + 512 * 1400;
    let first = town.ids().now();
    let lost = Brain::new(8192, &[Move::Fail], Move::Say("Fine."));
    let life = Life::begin(&home, &store, lost, Budgets::default()).await;
    life.until(1, slept).await;
    life.end().await;
    town.clock.step(Span::from_secs(3600));
    say(&store, Label::Creator, "Think!").await;
    let life = begin(limit).await;
    life.until(1, slept).await;
    assert!(life.brain.seen().is_empty(), "nothing was asked");
    // What comes meanwhile cannot be thought about either, and is not lost.
    say(&store, Label::Creator, "Think now!").await;
    let events = life.end().await;
    let sleep = events.iter().find_map(|event| match event {
        Event::SleepStarted { until, reason, .. } => Some((*until, *reason)),
        _ => None,
    });
    assert_eq!(
        sleep,
        Some((Some(first.after(DAY)), StopReason::Budget)),
        "until the lost one is a day old"
    );
    let told = |event: &Event| matches!(event, Event::TurnFailed { error, .. } if error.contains("maxInferenceDailyCents"));
    assert!(events.iter().any(told), "{events:?}");
    town.clock.set(first.after(DAY));
    let life = begin(limit).await;
    life.until(1, |event| matches!(event, Event::TurnCommitted { .. })).await;
    let asked = life.brain.asked();
    assert!(
        asked[0].contains("Your budget for thinking was used up. answers cost"),
        "{}",
        asked[0]
    );
    assert!(asked[0].contains("Think!") && asked[0].contains("Think now!"), "{}", asked[0]);
    life.end().await;
    // A limit that no answer fits into is told once, and not tried in a circle.
    let life = begin(1).await;
    say(&store, Label::Creator, "And now?").await;
    life.until(1, |event| matches!(event, Event::SleepStarted { reason: StopReason::Budget, .. }))
        .await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let failed = |event: &&Event| matches!(event, Event::TurnFailed { .. });
    let events = life.end().await;
    assert!(events.iter().filter(failed).count() <= 2, "{events:?}");
}
