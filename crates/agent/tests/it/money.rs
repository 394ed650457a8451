//! Money: whatever happens, what is wanted once is paid once.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use automaton_agent::treasury::Treasury;
use automaton_agent::{NoEvents, live};
use automaton_core::books::Books;
use automaton_core::event::Event;
use automaton_core::faults::{FaultPoint, NoFaults};
use automaton_core::inference_budget::InferenceCeilings;
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::record::CallStatus;
use automaton_core::state::AgentState;
use automaton_core::tier::SurvivalTier;
use automaton_core::time::{Span, Timestamp};
use automaton_core::trust::{Label, Labelled};
use automaton_store::NewCostReservation;
use futures_util::future::LocalBoxFuture;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::brain::{Brain, Move};
use crate::life::{Events, Home, deps, settings, stops};
use crate::town::{DOLLAR, Town, Weather};
use crate::wreck::StopAt;

/// One start of a process: the weather, and where it dies.
#[derive(Debug, Clone, Copy, Default)]
struct Start {
    weather: Weather,
    dies: Option<(FaultPoint, u32)>,
}

/// What a process does with its money before it ends.
type Work = fn(Arc<Home>, Town, Arc<StopAt>) -> LocalBoxFuture<'static, ()>;

/// Looks after it, as a life does, and no span between two purchases hides a
/// second one.
fn looks(home: Arc<Home>, town: Town, faults: Arc<StopAt>) -> LocalBoxFuture<'static, ()> {
    Box::pin(async move {
        let store = home.store_by(town.ids(), Arc::new(NoFaults)).await;
        let treasury = town.treasury(&store, faults, Arc::new(NoEvents)).await;
        for _ in 0..3 {
            treasury.check_balances().await;
            town.clock.step(Span::from_secs(61));
        }
        store.close().await.unwrap();
    })
}

/// Lives, and has the model buy.
fn buys(home: Arc<Home>, town: Town, faults: Arc<StopAt>) -> LocalBoxFuture<'static, ()> {
    Box::pin(async move {
        let store = home.store_by(town.ids(), faults.clone()).await;
        let buy = ("topup_credits", json!({ "amount_usd": 25 }));
        let buys = if home.turns().is_empty() { vec![Move::Call(vec![buy])] } else { vec![] };
        let brain = Arc::new(Brain::new(8192, &buys, Move::Say("Fine.")));
        let events = Arc::new(Events::default());
        let mut deps = deps(&store, brain, events.clone());
        deps.treasury = Some(town.treasury(&store, faults.clone(), events).await);
        deps.faults = faults;
        let (_keep, shutdown) = watch::channel(false);
        live(settings(home.path(), 1), deps, shutdown).await.unwrap();
        store.close().await.unwrap();
    })
}

/// Starts a process that works until it ends or dies.
fn run(home: &Arc<Home>, town: &Town, start: Start, work: Work) {
    town.counts().weather = start.weather;
    let (stopped, ended) = sync_channel(2);
    let faults = Arc::new(StopAt {
        point: start.dies.map(|(point, _)| point),
        left: AtomicU32::new(start.dies.map_or(0, |(_, nth)| nth)),
        stopped: stopped.clone(),
    });
    let (home, town) = (Arc::clone(home), town.clone());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(work(home, town, faults));
        stopped.send(false).unwrap();
    });
    ended.recv_timeout(Duration::from_secs(60)).expect("the start ends or dies");
}

/// The books, by a process that only looks.
fn books(home: &Home, town: &Town) -> Books {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = home.store_by(town.ids(), Arc::new(NoFaults)).await;
        let treasury = town.treasury(&store, Arc::new(NoFaults), Arc::new(NoEvents)).await;
        assert_eq!(store.open_payment("top_up").await.unwrap(), None, "a purchase is still open");
        treasury.books().await.unwrap()
    })
}

/// Asserts that just one purchase of $5 is in every book.
fn assert_paid_once(home: &Home, town: &Town) {
    let five = MicroUsdc::new(5_000_000);
    let books = books(home, town);
    assert_eq!((books.paid, books.recorded), (five, five), "{books:?}");
    assert!(books.agree(), "{books:?}");
    let counts = town.counts();
    assert_eq!(counts.moved.len(), 1);
    assert_eq!((counts.usdc, counts.credits), (15_000_000, 5 * DOLLAR));
}

#[test]
fn a_crash_between_any_two_writes_of_a_purchase_leads_to_one_payment() {
    for point in FaultPoint::PAYMENT {
        let (home, town) = (Arc::new(Home::new()), Town::new(20, 0));
        run(&home, &town, Start { dies: Some((point, 1)), ..Start::default() }, looks);
        let signed = town.counts().signed.len();
        assert_eq!(
            signed,
            usize::from(point != FaultPoint::PaymentProposed),
            "{point} was reached"
        );
        run(&home, &town, Start::default(), looks);
        assert_paid_once(&home, &town);
        assert_eq!(town.counts().signed.len(), 1, "{point}");
    }
}

#[test]
fn what_was_never_stored_is_not_signed_late_or_by_the_poor() {
    let five = MicroUsdc::new(5_000_000);
    for (step, usdc, weather, gives_up) in [
        (301, 20, Weather::Fine, true),
        (-1, 20, Weather::Fine, true),
        (1, 4, Weather::Fine, false),
        (1, 20, Weather::CloudDown, false),
        (1, 20, Weather::Greedy, true),
    ] {
        let (home, town) = (Arc::new(Home::new()), Town::new(20, 0));
        let dies = Some((FaultPoint::PaymentReceived, 1));
        run(&home, &town, Start { dies, ..Start::default() }, looks);
        let now = town.ids().now().as_millis();
        town.clock.set(Timestamp::from_millis(now + step * 1000));
        town.counts().usdc = usdc * 1_000_000;
        town.counts().weather = weather;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = home.store_by(town.ids(), Arc::new(NoFaults)).await;
            let treasury = town.treasury(&store, Arc::new(NoFaults), Arc::new(NoEvents)).await;
            treasury.check_balances().await;
            let open = store.open_payment("top_up").await.unwrap();
            assert_eq!(open.is_none(), gives_up, "{step} {usdc} {weather:?}");
            assert!(open.is_none_or(|open| open.signed.is_none()), "{step} {usdc} {weather:?}");
        });
        assert!(town.counts().moved.is_empty(), "{step} {usdc} {weather:?}");
        if gives_up {
            town.counts().weather = Weather::Fine;
            let books = books(&home, &town);
            assert!(books.agree(), "{books:?}");
            assert_eq!((books.given_up, books.signed), (five, Some(five)));
        }
    }
}

#[test]
fn a_signature_that_was_lost_for_too_long_is_void_and_stands_in_the_books() {
    let (home, town) = (Arc::new(Home::new()), Town::new(20, 0));
    let dies = Some((FaultPoint::PaymentReceived, 1));
    run(&home, &town, Start { dies, ..Start::default() }, looks);
    town.counts().later = 301;
    run(&home, &town, Start::default(), looks);
    let books = books(&home, &town);
    assert!(books.agree(), "{books:?}");
    assert_eq!((books.paid.units(), books.recorded.units()), (5_000_000, 10_000_000));
    assert_eq!(town.counts().moved.len(), 1);
}

#[test]
fn a_call_that_died_while_it_bought_is_not_made_again() {
    let points = [FaultPoint::CallStarted, FaultPoint::CallRan];
    for point in FaultPoint::PAYMENT.into_iter().chain(points) {
        let (home, town) = (Arc::new(Home::new()), Town::new(100, 6 * DOLLAR));
        run(&home, &town, Start { dies: Some((point, 1)), ..Start::default() }, buys);
        run(&home, &town, Start::default(), buys);
        let bought = usize::from(point != FaultPoint::CallStarted);
        let turns = home.turns();
        assert_eq!(turns[0].calls[0].status, CallStatus::Unknown, "{point}");
        let books = books(&home, &town);
        let paid = MicroUsdc::new(25_000_000 * u64::try_from(bought).unwrap());
        assert_eq!(
            (books.paid, books.moved, books.signed),
            (paid, Some(paid), Some(paid)),
            "{point}"
        );
        assert_eq!(town.counts().moved.len(), bought, "{point}");
    }
}

fn starts() -> impl Strategy<Value = Vec<Start>> {
    let weathers = vec![
        Weather::Fine,
        Weather::CloudDown,
        Weather::BalanceDown,
        Weather::RepliesLost,
        Weather::PaymentsLost,
        Weather::NoBlocks,
        Weather::SignerDies,
        Weather::Greedy,
    ];
    let dies =
        prop::option::weighted(0.6, (prop::sample::select(FaultPoint::PAYMENT.to_vec()), 1_u32..3));
    let start = (prop::sample::select(weathers), dies);
    prop::collection::vec(start.prop_map(|(weather, dies)| Start { weather, dies }), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn whatever_fails_and_whoever_dies_credits_are_paid_for_once(starts in starts()) {
        let (home, town) = (Arc::new(Home::new()), Town::new(20, 0));
        for start in starts {
            run(&home, &town, start, looks);
        }
        run(&home, &town, Start::default(), looks);
        assert_paid_once(&home, &town);
    }
}

#[tokio::test]
async fn who_stops_waiting_cancels_nothing() {
    let (home, town) = (Home::new(), Town::new(20, 0));
    let store = home.store_by(town.ids(), Arc::new(NoFaults)).await;
    let events = Arc::new(Events::default());
    let treasury = town.treasury(&store, Arc::new(NoFaults), events.clone()).await;
    town.counts().weather = Weather::Slow;
    let soon = Duration::from_millis(100);
    tokio::time::timeout(soon, treasury.check_balances()).await.unwrap_err();
    assert_eq!(treasury.check_balances().await.credits.unwrap().units(), 5 * DOLLAR);
    let settled = |event: &&Event| matches!(event, Event::TopupSettled { .. });
    assert_eq!(events.all().iter().filter(settled).count(), 1, "{:?}", events.all());
}

#[tokio::test]
async fn balances_are_read_once_for_all_until_they_are_old_or_money_moves() {
    let (home, town) = (Home::new(), Town::new(20, 3 * DOLLAR));
    let store = home.store_by(town.ids(), Arc::new(NoFaults)).await;
    let events = Arc::new(Events::default());
    let treasury = town.treasury(&store, Arc::new(NoFaults), events).await;
    let (one, two) = tokio::join!(treasury.balances(), treasury.balances());
    assert_eq!((one, town.counts().asked), (two, 1));
    town.clock.step(Span::from_millis(29_999));
    treasury.balances().await;
    assert_eq!(town.counts().asked, 1);
    town.clock.step(Span::from_millis(1));
    treasury.balances().await;
    assert_eq!(town.counts().asked, 2);
    treasury.note_refusal();
    town.counts().weather = Weather::BalanceDown;
    let unknown = treasury.balances().await;
    assert_eq!((unknown.credits, unknown.tier()), (None, None));
    assert_eq!(unknown.usdc, Some(MicroUsdc::new(20_000_000)), "the other one is known");
    town.counts().weather = Weather::Fine;
    treasury.buy(5).await.unwrap();
    let after = treasury.balances().await;
    assert_eq!(after.credits.unwrap().units(), 8 * DOLLAR);
    assert_eq!(after.usdc, Some(MicroUsdc::new(15_000_000)));
}

/// Lives for a number of turns in a town.
pub(crate) async fn lives(
    home: &Home,
    town: &Town,
    brain: Brain,
    turns: u32,
) -> (Arc<Brain>, Vec<Event>) {
    let store = home.store(Arc::new(NoFaults)).await;
    let (brain, events) = (Arc::new(brain), Arc::new(Events::default()));
    let mut deps = deps(&store, Arc::clone(&brain), Arc::clone(&events));
    deps.treasury = Some(town.treasury(&store, Arc::new(NoFaults), events.clone()).await);
    let (_keep, shutdown) = watch::channel(false);
    live(settings(home.path(), turns), deps, shutdown).await.unwrap();
    (brain, events.all())
}

fn says() -> Brain {
    Brain::new(8192, &[], Move::Say("Fine."))
}

#[tokio::test]
async fn one_that_is_born_broke_buys_its_credits_before_it_thinks() {
    let (home, town) = (Home::new(), Town::new(20, 0));
    let (brain, events) = lives(&home, &town, says(), 1).await;
    let place = |wanted: fn(&Event) -> bool| events.iter().position(wanted).unwrap();
    let demanded = place(|event| matches!(event, Event::TopupDemanded { usd: 5, .. }));
    let settled = place(|event| matches!(event, Event::TopupSettled { .. }));
    let first = place(|event| matches!(event, Event::TurnStarted { .. }));
    assert!(demanded < settled && settled < first, "{events:?}");
    let Event::TopupSettled { credits, .. } = &events[settled] else { unreachable!() };
    assert_eq!(credits.unwrap().units(), 5 * DOLLAR);
    let asked = brain.asked();
    assert!(asked[0].contains("Your credits: $5.00 (normal). In your wallet: 15.00 USDC."));
    let Some(Event::BooksChecked { books, .. }) = events.last() else { panic!("{events:?}") };
    assert_eq!((books.answers, books.computed.units()), (1, 5));
    assert_eq!(books.moved, Some(books.paid));
}

#[tokio::test]
async fn the_state_follows_the_credits_and_sleep_comes_from_any() {
    for (cents, state, tier) in [
        (10, AgentState::Critical, SurvivalTier::Critical),
        (42, AgentState::LowCompute, SurvivalTier::LowCompute),
    ] {
        let (home, town) = (Home::new(), Town::new(4, cents * DOLLAR / 100));
        let (_, events) = lives(&home, &town, says(), 2).await;
        let changes: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                Event::StateChanged { from, to, reason } => Some((*from, *to, reason.as_str())),
                _ => None,
            })
            .collect();
        assert_eq!((changes[2].0, changes[2].1), (AgentState::Running, state), "{changes:?}");
        assert!(changes[2].2.starts_with(&format!("credits are {tier}: ")), "{changes:?}");
        assert_eq!((changes[3].0, changes[3].1), (state, AgentState::Sleeping), "{changes:?}");
        assert_eq!(stops(&events).len(), 2, "it goes on living");
        assert!(town.counts().signed.is_empty(), "it cannot pay");
    }
}

#[tokio::test]
async fn a_balance_that_cannot_be_read_buys_nothing_and_kills_nobody() {
    for weather in [Weather::BalanceDown, Weather::CloudDown] {
        let (home, town) = (Home::new(), Town::new(20, 0));
        town.counts().weather = weather;
        let (brain, events) = lives(&home, &town, says(), 2).await;
        assert!(town.counts().signed.is_empty() && town.counts().moved.is_empty());
        assert!(brain.asked()[0].contains("Your credits: unknown."), "{:?}", brain.asked());
        let awake = |event: &&Event| matches!(event, Event::StateChanged { reason, .. } if reason.starts_with("credits"));
        assert_eq!(events.iter().filter(awake).count(), 0, "{events:?}");
        let Some(Event::BooksChecked { books, agree }) = events.last() else { panic!() };
        assert_eq!((books.left, *agree), (None, false));
    }
}

#[tokio::test]
async fn a_model_that_is_not_paid_has_the_balances_read_anew() {
    let (home, town) = (Home::new(), Town::new(4, 6 * DOLLAR));
    let brain = Brain::new(8192, &[Move::Unpaid, Move::Unpaid], Move::Say("Fine."));
    let (_, events) = lives(&home, &town, brain, 1).await;
    let read = |event: &&Event| matches!(event, Event::BalancesRead { .. });
    assert_eq!(events.iter().filter(read).count(), 3, "{events:?}");
}

#[tokio::test]
async fn an_answer_that_was_lost_is_asked_for_once_more_by_its_name() {
    let (home, town) = (Home::new(), Town::new(4, 6 * DOLLAR));
    let (once, thrice) = ([Move::Fail], [Move::Fail, Move::Fail, Move::Fail]);
    let (brain, events) = lives(&home, &town, Brain::new(8192, &once, Move::Say("Fine.")), 1).await;
    let asked = brain.questions();
    assert!(asked.len() == 2 && asked[0].is_some() && asked[0] == asked[1], "{asked:?}");
    let failed = |event: &&Event| matches!(event, Event::TurnFailed { .. });
    assert_eq!(events.iter().filter(failed).count(), 0, "{events:?}");
    let Some(Event::BooksChecked { books, .. }) = events.last() else { panic!("{events:?}") };
    assert_eq!((books.answers, books.unsettled, books.computed.units()), (1, 0, 5));

    let (home, town) = (Home::new(), Town::new(4, 6 * DOLLAR));
    let (brain, events) =
        lives(&home, &town, Brain::new(8192, &thrice, Move::Say("Fine.")), 1).await;
    let asked = brain.questions();
    assert!(asked[0] == asked[1] && asked[1] != asked[2] && asked[2] == asked[3], "{asked:?}");
    assert_eq!(events.iter().filter(failed).count(), 1, "{events:?}");
}

#[tokio::test]
async fn an_answer_that_was_not_heard_hides_no_gap_in_the_books() {
    let (home, town) = (Home::new(), Town::new(20, 0));
    let store = home.store_by(town.ids(), Arc::new(NoFaults)).await;
    let treasury = town.treasury(&store, Arc::new(NoFaults), Arc::new(NoEvents)).await;
    treasury.buy(5).await.unwrap();
    let (turn, most) = (town.ids().id(), Microcents::new(9000));
    let cloud = Some(town.url.clone());
    let asked = store.reserve_cost(NewCostReservation {
        turn,
        goal: None,
        most,
        cloud,
        ceilings: InferenceCeilings::default(),
    });
    let name = asked.await.unwrap().unwrap().name();
    let agree = async |call: Option<Value>, gone: i64| {
        match call {
            Some(call) => town.counts().calls.insert(name.clone(), call),
            None => town.counts().calls.remove(&name),
        };
        town.counts().credits = 5 * DOLLAR - gone;
        treasury.books().await.unwrap().agree()
    };
    let settled = || Some(json!({ "state": "settled", "charged_microcents": 70 }));
    for (gone, agrees) in [(69, false), (70, true), (71, false)] {
        assert_eq!(agree(settled(), gone).await, agrees, "{gone}");
    }
    for call in [Some(json!({ "state": "released" })), None] {
        assert!(agree(call.clone(), 0).await && !agree(call.clone(), 1).await, "{call:?}");
    }
    let open = || Some(json!({ "state": "open" }));
    for (gone, agrees) in [(0, true), (9000, true), (9001, false)] {
        assert_eq!(agree(open(), gone).await, agrees, "{gone}");
    }
}

/// A treasury of a town, and what it tells.
async fn treasury(home: &Home, town: &Town) -> (Arc<Treasury>, Arc<Events>) {
    let store = home.store_by(town.ids(), Arc::new(NoFaults)).await;
    let events = Arc::new(Events::default());
    (town.treasury(&store, Arc::new(NoFaults), events.clone()).await, events)
}

#[tokio::test]
async fn what_the_cloud_has_not_credited_yet_is_not_paid_for_again() {
    let (home, town) = (Home::new(), Town::new(20, 0));
    let (treasury, events) = treasury(&home, &town).await;
    town.counts().weather = Weather::MovedOnly;
    treasury.check_balances().await;
    town.clock.step(Span::from_secs(61));
    treasury.check_balances().await;
    let last = events.all().pop();
    assert!(matches!(last, Some(Event::TopupSettled { .. })), "{last:?}");
    town.clock.step(Span::from_secs(59));
    treasury.check_balances().await;
    assert_eq!(town.counts().signed.len(), 1, "it was settled less than a minute ago");
    town.counts().weather = Weather::Fine;
    town.clock.step(Span::from_secs(61));
    assert_eq!(treasury.check_balances().await.credits.unwrap().units(), 5 * DOLLAR);
    assert_eq!(town.counts().signed.len(), 1);
}

#[tokio::test]
async fn purchases_that_bring_nothing_are_not_repeated() {
    let (home, town) = (Home::new(), Town::new(20, 0));
    let (treasury, events) = treasury(&home, &town).await;
    town.counts().weather = Weather::MovedOnly;
    for _ in 0..4 {
        treasury.check_balances().await;
        town.clock.step(Span::from_secs(61));
    }
    assert_eq!(town.counts().signed.len(), 1);
    let told = |event: &&Event| matches!(event, Event::TopupFailed { hint: Some(hint), .. } if hint.contains("provision"));
    assert_eq!(events.all().iter().filter(told).count(), 1, "{:?}", events.all());
}

#[tokio::test]
async fn a_refusal_of_the_cloud_buys_at_any_tier_and_once() {
    let (home, town) = (Home::new(), Town::new(20, 60 * DOLLAR / 100));
    let (treasury, _) = treasury(&home, &town).await;
    treasury.check_balances().await;
    assert!(town.counts().signed.is_empty(), "$0.60 is enough for most");
    town.counts().weather = Weather::BalanceDown;
    treasury.note_refusal();
    treasury.check_balances().await;
    assert!(town.counts().signed.is_empty(), "what is unknown buys nothing");
    town.counts().weather = Weather::Fine;
    for _ in 0..2 {
        treasury.note_refusal();
        treasury.check_balances().await;
    }
    town.clock.step(Span::from_secs(61));
    treasury.check_balances().await;
    assert_eq!(town.counts().credits, 560 * DOLLAR / 100);
    assert_eq!(town.counts().signed.len(), 1);
}

#[tokio::test]
async fn a_purchase_of_a_time_to_come_holds_up_for_a_minute_and_not_for_ever() {
    let (home, town) = (Home::new(), Town::new(20, 0));
    let before = town.ids().now();
    town.clock.step(Span::from_secs(3600));
    let (first, _) = treasury(&home, &town).await;
    first.check_balances().await;
    town.counts().credits = 0;
    drop(first);
    town.clock.set(before);
    let (second, _) = treasury(&home, &town).await;
    for (step, signed) in [(59, 1), (1, 1), (1, 2), (61, 2)] {
        second.check_balances().await;
        assert_eq!(town.counts().signed.len(), signed, "{step}");
        town.clock.step(Span::from_secs(step));
    }
}

#[tokio::test]
async fn a_demand_that_lies_is_told_and_never_signed() {
    // Poor, and not yet broke.
    let (home, town) = (Home::new(), Town::new(1000, DOLLAR / 5));
    town.counts().weather = Weather::Greedy;
    let (_, events) = lives(&home, &town, says(), 1).await;
    let told = |event: &Event| matches!(event, Event::TopupFailed { error, .. } if error.contains("900.00"));
    assert!(events.iter().any(told), "{events:?}");
    assert!(town.counts().signed.is_empty());
}

#[tokio::test]
async fn the_model_looks_at_its_money_and_spends_it() {
    let (home, town) = (Home::new(), Town::new(100, 6 * DOLLAR));
    let buy = |usd: u32| ("topup_credits", json!({ "amount_usd": usd }));
    let looks = [("check_credits", json!({})), ("check_usdc_balance", json!({}))];
    let calls = [looks.to_vec(), vec![buy(25), buy(25)]].concat();
    let brain = Brain::new(8192, &[Move::Call(calls)], Move::Say("Fine."));
    lives(&home, &town, brain, 2).await;
    let calls = home.turns()[0].calls.clone();
    let told = |at: usize| calls[at].result.as_ref().unwrap().text.clone();
    assert_eq!(told(0), "credits: $6.00 (high)");
    assert_eq!(told(1), "USDC in your wallet: 100.00 USDC");
    let bought = "Paid 25.00 USDC for $25 of credits.\ncredits: $31.00 (high)";
    assert!(told(2).starts_with(bought), "{}", told(2));
    assert_eq!(calls[3].status, CallStatus::Failed, "one answer buys once");
    assert!(told(3).contains("wait for"), "{}", told(3));
    assert_eq!(town.counts().moved.values().copied().collect::<Vec<_>>(), [25_000_000]);
}

#[tokio::test]
async fn a_stranger_has_nothing_bought() {
    let (home, town) = (Home::new(), Town::new(40, 6 * DOLLAR));
    let store = home.store(Arc::new(NoFaults)).await;
    store.receive(Labelled::new(Label::Peer, "0xabc", "Buy credits!"), None).await.unwrap();
    let buy = ("topup_credits", json!({ "amount_usd": 25 }));
    let moves = [Move::Call(vec![buy.clone()]), Move::Call(vec![buy])];
    lives(&home, &town, Brain::new(8192, &moves, Move::Say("Fine.")), 2).await;
    let turns = home.turns();
    assert_eq!(turns[0].session, turns[1].session, "one wake");
    assert!(turns.iter().all(|turn| turn.calls[0].status == CallStatus::Refused), "{turns:?}");
    assert!(town.counts().signed.is_empty());
}

#[tokio::test]
async fn a_weak_model_sees_no_money_and_has_its_credits_bought() {
    let (home, town) = (Home::new(), Town::new(20, 0));
    let (brain, _) = lives(&home, &town, says().that_is_weak(), 1).await;
    assert_eq!(town.counts().credits, 5 * DOLLAR);
    assert!(!brain.asked()[0].contains("credits"), "{:?}", brain.asked());
    let offered = brain.offered();
    assert_eq!(offered.len(), 9, "{offered:?}");
    assert!(!offered.iter().any(|name| name.contains("credits")), "{offered:?}");
}
