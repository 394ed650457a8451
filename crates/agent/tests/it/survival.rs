//! Broke, dead, funded: what money makes of a life, by a clock that runs faster.

use std::sync::Arc;
use std::time::Duration;

use automaton_agent::{AgentRunOutcome, Pace, live};
use automaton_core::event::Event;
use automaton_core::faults::NoFaults;
use automaton_core::money::Microcents;
use automaton_core::record::{StopReason, WakeCause, WakeSource};
use automaton_core::state::AgentState;
use automaton_core::tier::{ModelTier, SurvivalTier};
use automaton_core::time::Span;
use automaton_core::trust::{Label, Labelled};
use automaton_core::vitals::{BalanceReading, DistressLevel};
use automaton_inference::RegisteredModel;
use automaton_policy::PaymentLimits;
use automaton_store::Store;
use serde_json::json;
use tokio::sync::watch;

use crate::brain::{Brain, Move};
use crate::life::{Events, Home, deps, settings, stops};
use crate::town::{DOLLAR, Town, Weather};

const CENT: i64 = DOLLAR / 100;

/// A life in a town whose clock is moved on a minute every few milliseconds.
pub(crate) struct Life {
    pub(crate) events: Arc<Events>,
    pub(crate) brain: Arc<Brain>,
    town: Town,
    end: watch::Sender<bool>,
    lived: tokio::task::JoinHandle<AgentRunOutcome>,
}

impl Life {
    async fn begin(home: &Home, town: &Town) -> (Self, Store) {
        Self::begin_with(home, town, Microcents::ZERO).await
    }

    /// The same with a model of its own for when it is poor.
    async fn begin_as(home: &Home, town: &Town, brain: Brain, cheap: Brain) -> (Self, Store) {
        Self::begin_by(home, town, Microcents::ZERO, (brain, Some(cheap))).await
    }

    /// The same with a reserve that its creator wants it to have.
    pub(crate) async fn begin_with(home: &Home, town: &Town, reserve: Microcents) -> (Self, Store) {
        let brain = Brain::new(8192, &[], Move::Say("Fine."));
        Self::begin_by(home, town, reserve, (brain, None)).await
    }

    async fn begin_by(
        home: &Home,
        town: &Town,
        reserve: Microcents,
        (brain, cheap): (Brain, Option<Brain>),
    ) -> (Self, Store) {
        let store = home.store_by(town.ids(), Arc::new(NoFaults)).await;
        let events = Arc::new(Events::default());
        let brain = Arc::new(brain);
        let mut deps = deps(&store, Arc::clone(&brain), Arc::clone(&events));
        if let Some(cheap) = cheap {
            deps.providers = deps.providers.with(RegisteredModel {
                provider: Arc::new(cheap),
                seller: "the cheap one".to_owned(),
                roles: vec![ModelTier::LowCompute],
            });
        }
        deps.ids = town.ids();
        let treasury = town.treasury(&store, Arc::new(NoFaults), events.clone()).await;
        let limits = PaymentLimits { reserve, ..town.limits() };
        let treasury = Arc::into_inner(treasury).unwrap().with_limits(limits).unwrap();
        deps.treasury = Some(Arc::new(treasury));
        let (end, shutdown) = watch::channel(false);
        let mut settings = settings(home.path(), 1);
        // It looks often: a minute of its clock is a moment.
        settings.limits.look = Span::from_millis(5);
        settings.limits.look_for_money = Span::from_millis(2);
        settings.pace = Pace::default();
        let lived = tokio::task::spawn_blocking(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(live(settings, deps, shutdown)).unwrap()
        });
        let town = town.clone();
        (Self { events, brain, town, end, lived }, store)
    }

    /// Waits for an event, while the clock goes on.
    pub(crate) async fn until(&self, what: &str, wanted: impl Fn(&Event) -> bool) {
        for _ in 0..2000 {
            if self.events.all().iter().any(&wanted) {
                return;
            }
            self.minute().await;
        }
        panic!("{what} never came: {:?}", self.events.all());
    }

    /// Moves the clock on by a minute, once the balances were read in the last one. A
    /// slow machine must not make a payment void.
    async fn minute(&self) {
        let reads = || {
            let events = self.events.all();
            events.iter().filter(|event| matches!(event, Event::BalancesRead { .. })).count()
        };
        let before = reads();
        self.town.clock.step(Span::from_secs(60));
        for _ in 0..50 {
            if reads() > before {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    pub(crate) async fn end(self) -> Vec<Event> {
        self.end.send_replace(true);
        self.lived.await.unwrap();
        self.events.all()
    }
}

pub(crate) async fn say(store: &Store, text: &str) {
    store.receive(Labelled::new(Label::Creator, "creator", text), None).await.unwrap();
}

fn becomes(state: AgentState) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::StateChanged { to, .. } if *to == state)
}

fn pleas(events: &[Event]) -> Vec<DistressLevel> {
    let plea = |event: &Event| match event {
        Event::PleaSent { plea, .. } => Some(*plea),
        _ => None,
    };
    events.iter().filter_map(plea).collect()
}

#[tokio::test]
async fn who_is_broke_thinks_no_more_dies_after_an_hour_and_is_revived_by_funding() {
    let home = Home::new();
    let town = Town::new(0, CENT);
    let (life, store) = Life::begin(&home, &town).await;
    let broke = |event: &Event| matches!(event, Event::BrokeStarted { can_buy: false, .. });
    life.until("broke", broke).await;
    assert_eq!(life.brain.seen().len(), 0, "a newborn without credits asks no model");
    town.counts().credits = 12 * CENT;
    life.until("a first thought", |event| matches!(event, Event::TurnCommitted { .. })).await;
    town.counts().credits = 0;
    let began = town.ids().now();
    for (id, status) in [("sbx-one", "running"), ("sbx-two", "stopped")] {
        town.counts().machines.insert(id.to_owned(), status);
    }
    say(&store, "Are you there?").await;
    life.until("death", becomes(AgentState::Dead)).await;
    assert!(town.ids().now().since(began) >= Span::from_secs(3600));
    assert_eq!(life.brain.seen().len(), 1, "whatever wakes it, it asks no model");
    life.until("a plea of the dead", |event| {
        matches!(event, Event::PleaSent { plea: DistressLevel::Dead, text } if text.contains("Send USDC to 0x"))
    })
    .await;

    let released = |event: &Event| matches!(event, Event::MessageSent { body, .. } if body.text.contains("stopped my sandbox sbx-one"));
    life.until("a machine given back", released).await;
    let tried = town.counts().stops;
    assert_eq!(tried, 2, "once more where it failed, and what is stopped never");

    town.counts().usdc = 20_000_000;
    life.until("a purchase", |event| matches!(event, Event::TopupSettled { .. })).await;
    for _ in 0..500 {
        if life.brain.seen().len() > 1 {
            break;
        }
        life.minute().await;
    }
    let asked = life.brain.asked();
    assert!(asked.last().unwrap().contains("You were dead, and you were funded."), "{asked:?}");
    assert!(asked.last().unwrap().contains("Are you there?"), "{asked:?}");
    let events = life.end().await;
    let tiers: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::TierChanged { to, .. } => Some(*to),
            _ => None,
        })
        .collect();
    let wanted = [SurvivalTier::Critical, SurvivalTier::LowCompute, SurvivalTier::Critical];
    assert_eq!(tiers[..3], wanted, "{tiers:?}");
    let ends = [StopReason::Broke, StopReason::Said, StopReason::Broke];
    assert_eq!(stops(&events)[..3], ends);
    assert!(pleas(&events).len() < 8, "pleas have cooldowns: {:?}", pleas(&events));
    assert_eq!(town.counts().moved.len(), 1, "one purchase brought it back");
    assert!(home.reader().verify_chain().unwrap().is_whole());
}

#[tokio::test]
async fn a_cloud_out_of_reach_for_six_hours_kills_nobody_and_buys_nothing() {
    let home = Home::new();
    let town = Town::new(20, 300 * CENT);
    let (life, store) = Life::begin(&home, &town).await;
    life.until("a first thought", |event| matches!(event, Event::TurnCommitted { .. })).await;
    let bought = town.counts().moved.len();
    life.end().await;
    town.counts().weather = Weather::BalanceDown;
    town.clock.step(Span::from_secs(6 * 3600));
    say(&store, "Go on.").await;
    store.close().await.unwrap();
    let (life, _store) = Life::begin(&home, &town).await;
    life.until("a second thought", |event| matches!(event, Event::TurnCommitted { .. })).await;
    let asked = life.brain.asked();
    let wanted = "Your credits: unknown ($3.00 were there 36";
    assert!(asked[0].contains(wanted), "{}", asked[0]);
    let events = life.end().await;
    assert_eq!(town.counts().moved.len(), bought, "unknown buys nothing");
    assert!(!events.iter().any(becomes(AgentState::Dead)));
    assert_eq!(pleas(&events), []);
}

#[tokio::test]
async fn one_that_a_crash_left_awake_dies_of_it_too() {
    let home = Home::new();
    let town = Town::new(0, CENT);
    let store = home.store_by(town.ids(), Arc::new(NoFaults)).await;
    let reading = BalanceReading {
        at: town.ids().now(),
        credits: Some(Microcents::ZERO),
        usdc: None,
        least: Microcents::new(1),
    };
    store.take_reading(reading).await.unwrap();
    use AgentState::{Critical, Dead, Running, Setup, Waking};
    for (from, to) in [(Setup, Waking), (Waking, Running)] {
        store.transition(from, to, "awake").await.unwrap();
    }
    store.close().await.unwrap();
    let (life, _store) = Life::begin(&home, &town).await;
    life.until("death", becomes(Dead)).await;
    let events = life.end().await;
    assert!(events.iter().any(becomes(Critical)), "{events:?}");
}

impl Life {
    /// Waits until so many turns are committed, while the clock goes on.
    async fn turns(&self, turns: usize) {
        for _ in 0..2000 {
            let events = self.events.all();
            let committed = |event: &&Event| matches!(event, Event::TurnCommitted { .. });
            if events.iter().filter(committed).count() >= turns {
                return;
            }
            self.minute().await;
        }
        panic!("{turns} turns never came: {:?}", self.events.all());
    }
}

/// Has the heart look at its schedule every second, by any clock.
fn fast(home: &Home, entries: &str) {
    let schedule = format!("defaultIntervalMs: 1000\n{entries}");
    std::fs::write(home.path().join("heartbeat.yml"), schedule).unwrap();
}

/// What the calls of a life gave, in order.
fn results(home: &Home) -> Vec<String> {
    let calls = home.turns().into_iter().flat_map(|turn| turn.calls);
    calls.map(|call| call.result.map_or_else(String::new, |result| result.text)).collect()
}

#[tokio::test]
async fn it_says_how_it_is_lives_cheaply_and_begs_only_when_it_is_poor() {
    let home = Home::new();
    fast(&home, "");
    let town = Town::new(0, 300 * CENT);
    let call = |tool, arguments| Move::Call(vec![(tool, arguments)]);
    let beg = || call("distress_signal", json!({ "message": "I nearly\nfinished it." }));
    let usual = [beg(), call("enter_low_compute", json!({ "reason": "to last" }))];
    let rest = call("sleep", json!({ "duration_seconds": 300_000 }));
    let cheap = [call("heartbeat_ping", json!({})), rest, beg(), beg()];
    let brain = Brain::new(8192, &usual, Move::Say("Fine."));
    let cheap = Brain::new(8192, &cheap, Move::Say("Fine.")).called("cheap");
    let (life, store) = Life::begin_as(&home, &town, brain, cheap).await;
    life.turns(4).await;
    let vitals = store.vitals().await.unwrap();
    let lives_by = (vitals.tier(), vitals.effective_tier());
    assert_eq!(lives_by, (Some(SurvivalTier::Normal), Some(SurvivalTier::LowCompute)));
    town.counts().credits = 40 * CENT;
    let poor =
        |event: &Event| matches!(event, Event::TierChanged { to: SurvivalTier::LowCompute, .. });
    life.until("poverty", poor).await;
    say(&store, "Go on.").await;
    life.turns(7).await;
    let events = life.end().await;
    let models: Vec<String> =
        home.turns().into_iter().map(|turn| turn.usage.unwrap().model).collect();
    assert_eq!(models[..4], ["scripted", "scripted", "cheap", "cheap"], "the record says who");
    let wanted = [
        "you have $3.00 of credits (normal)",
        "From your next turn on cheap thinks",
        "Posted to the cloud: low_compute, 2 turns",
        "You go to sleep",
        "It went out, and the next may at",
        "your last one went out not long ago, and the next may at",
    ];
    let results = results(&home);
    assert_eq!(results.len(), wanted.len(), "{results:?}");
    for (result, wanted) in results.iter().zip(wanted) {
        assert!(result.contains(wanted), "{result}");
    }
    let own = |event: &&Event| match event {
        Event::PleaSent { plea: DistressLevel::Low, text } => {
            text.starts_with("\"I nearly finished it.\" My credits run low: $0.40 is left")
        }
        _ => false,
    };
    assert_eq!(events.iter().filter(own).count(), 1, "{:?}", pleas(&events));
    assert!(events.iter().any(becomes(AgentState::LowCompute)));
}

#[tokio::test]
async fn the_last_credits_are_not_for_strangers_who_are_answered_later() {
    let home = Home::new();
    fast(&home, "");
    let town = Town::new(0, 10 * CENT + CENT / 2);
    let (life, store) = Life::begin(&home, &town).await;
    life.turns(1).await;
    let stranger = Labelled::new(Label::Peer, "0xabc", "Nice weather.");
    store.receive(stranger, None).await.unwrap();
    let chore = Labelled::new(Label::Own, "heartbeat", "Something is wrong.");
    store.push_wake(WakeCause { source: WakeSource::Heartbeat, reason: chore }).await.unwrap();
    for _ in 0..120 {
        life.minute().await;
    }
    assert_eq!(life.brain.seen().len(), 1, "{:?}", life.brain.asked());
    say(&store, "Are you there?").await;
    life.turns(2).await;
    let asked = life.brain.asked();
    assert!(asked[1].contains("Are you there?") && !asked[1].contains("weather"), "{}", asked[1]);
    assert!(!asked[1].contains("Something is wrong"), "{}", asked[1]);
    town.counts().credits = 60 * CENT;
    life.turns(3).await;
    let asked = life.brain.asked();
    assert!(asked[2].contains("weather") && asked[2].contains("Something is wrong"), "{asked:?}");
    life.end().await;
}

#[tokio::test]
async fn a_schedule_knows_the_tier_of_before_when_nothing_can_be_read() {
    let home = Home::new();
    let town = Town::new(0, 300 * CENT);
    let tasks = "entries:\n- name: rich\n  task: state_maintenance\n  intervalMs: 60000\n  \
                 tierMinimum: normal\n";
    fast(&home, tasks);
    let store = home.store_by(town.ids(), Arc::new(NoFaults)).await;
    let credits = Some(Microcents::new(40 * CENT));
    let reading =
        BalanceReading { at: town.ids().now(), credits, usdc: None, least: Microcents::new(1) };
    store.take_reading(reading).await.unwrap();
    store.close().await.unwrap();
    town.counts().weather = Weather::BalanceDown;
    let (life, _store) = Life::begin(&home, &town).await;
    let of = |name: &'static str| move |event: &Event| matches!(event, Event::HeartbeatRan { task, .. } if task == name);
    life.until("a look at the credits", of("check_credits")).await;
    for _ in 0..30 {
        life.minute().await;
    }
    assert!(!life.events.all().iter().any(of("rich")), "it was poor when that was last known");
    town.counts().weather = Weather::Fine;
    life.until("a task of the rich", of("rich")).await;
    life.end().await;
}

/// No sandbox runs in these tests, which is another reason to wake.
const NO_CHORE: &str = "entries:\n- name: health_check\n  enabled: false\n";

/// Moves the clock on by a quarter of an hour, in which nothing more is thought.
async fn quiet(life: &Life, thoughts: usize) {
    for _ in 0..15 {
        life.minute().await;
    }
    assert_eq!(life.brain.asked().len(), thoughts, "{:?}", life.brain.asked());
}

#[tokio::test]
async fn a_fall_to_the_last_credits_is_told_once_to_one_that_sleeps() {
    let home = Home::new();
    fast(&home, NO_CHORE);
    let town = Town::new(0, 300 * CENT);
    let (life, store) = Life::begin(&home, &town).await;
    life.turns(1).await;
    let fall = "check_credits: Your credits fell from normal to critical while you slept: $0.105";
    for thoughts in [2, 3] {
        town.counts().credits = 10 * CENT + CENT / 2;
        life.turns(thoughts).await;
        let asked = life.brain.asked();
        assert!(asked[thoughts - 1].contains(fall), "{}", asked[thoughts - 1]);
        quiet(&life, thoughts).await;
        town.counts().credits = 300 * CENT;
        quiet(&life, thoughts).await;
    }
    let woken = |event: &&Event| match event {
        Event::WakeStarted { causes, .. } => causes.iter().any(|cause| {
            cause.source == WakeSource::Money
                && (cause.reason.label, cause.reason.source.as_str())
                    == (Label::Own, "check_credits")
        }),
        _ => false,
    };
    assert_eq!(life.events.all().iter().filter(woken).count(), 2);
    // One that is awake sees it for itself.
    town.counts().credits = 10 * CENT + CENT / 2;
    town.clock.step(Span::from_secs(31));
    say(&store, "Go on.").await;
    for _ in 0..1000 {
        if life.brain.asked().len() > 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    quiet(&life, 4).await;
    let told = &life.brain.asked()[3];
    assert!(told.contains("Go on.") && !told.contains("while you slept"), "{told}");
    life.end().await;
}

#[tokio::test]
async fn a_top_up_that_comes_or_fails_wakes_one_that_sleeps_once() {
    let home = Home::new();
    fast(&home, NO_CHORE);
    let town = Town::new(0, 300 * CENT);
    let (life, _store) = Life::begin(&home, &town).await;
    life.turns(1).await;
    let came = "check_usdc_balance: A top-up came in: 5.00 USDC bought credits of that worth";
    let refused = "check_usdc_balance: A top-up failed, and nothing was bought or paid: see that";
    let void = "check_usdc_balance: A top-up of 5.00 USDC came to nothing, and cost nothing";
    let weathers = [Weather::Fine, Weather::Fine, Weather::Greedy, Weather::NoBlocks];
    for (thoughts, (weather, told)) in
        (2..).zip(weathers.into_iter().zip([came, came, refused, void]))
    {
        {
            let mut counts = town.counts();
            (counts.weather, counts.usdc, counts.credits) = (weather, 20_000_000, 40 * CENT);
        }
        if weather == Weather::NoBlocks {
            let pending = |event: &Event| matches!(event, Event::TopupPending { .. });
            life.until("a purchase under way", pending).await;
            let mut counts = town.counts();
            (counts.usdc, counts.later) = (0, counts.later + 3600);
        }
        life.turns(thoughts).await;
        let asked = life.brain.asked();
        assert!(asked[thoughts - 1].contains(told), "{weather:?}: {}", asked[thoughts - 1]);
        quiet(&life, thoughts).await;
    }
    let events = life.end().await;
    let bought = |event: &&Event| matches!(event, Event::TopupSettled { .. });
    assert_eq!(events.iter().filter(bought).count(), 2);
}

#[tokio::test]
async fn a_machine_that_was_stopped_before_a_crash_is_told_of_at_the_next_start() {
    let (home, town) = (Home::new(), Town::new(0, CENT));
    town.counts().machines.insert("sbx-one".to_owned(), "stopped");
    town.counts().machines.insert("sbx-two".to_owned(), "running");
    {
        let store = home.store_by(town.ids(), Arc::new(NoFaults)).await;
        // The process dies here: one was stopped, the other was only about to be.
        for machine in ["sbx-one", "sbx-two"] {
            store.begin_release(machine, "shop").await.unwrap();
            store.begin_release(machine, "again").await.unwrap();
        }
        store.close().await.unwrap();
    }
    let told = |machine: &'static str| move |event: &Event| matches!(event, Event::MessageSent { body, .. } if body.text.contains(&format!("stopped my sandbox {machine} (shop)")));
    let (life, store) = Life::begin(&home, &town).await;
    life.until("a machine that was stopped", told("sbx-one")).await;
    let broke = |event: &Event| matches!(event, Event::BrokeStarted { .. });
    life.until("broke", broke).await;
    let open = store.releases().await.unwrap();
    assert_eq!(open.iter().map(|one| one.machine.as_str()).collect::<Vec<_>>(), ["sbx-two"]);
    life.until("death", becomes(AgentState::Dead)).await;
    life.until("a machine given back", told("sbx-two")).await;
    assert_eq!(store.releases().await.unwrap(), []);
    let events = life.end().await;
    for machine in ["sbx-one", "sbx-two"] {
        assert_eq!(events.iter().filter(|event| told(machine)(event)).count(), 1, "{machine}");
    }
}
