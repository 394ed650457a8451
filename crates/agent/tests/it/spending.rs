//! Money that goes to others: once, within the limits, and never in doubt for ever.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use alloy_primitives::Address;
use automaton_agent::treasury::{PaidFetch, Treasury, TreasuryError};
use automaton_agent::{EventSink, NoEvents};
use automaton_core::event::Event;
use automaton_core::faults::{FaultPoint, NoFaults};
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::payment::{Payment, PaymentReason, PaymentState};
use automaton_core::pnl::{PnlGrouping, PnlLine};
use automaton_core::time::{Clock as _, Span, Timestamp};
use automaton_core::wire::control::ApprovalVerdict;
use automaton_net::{HttpMethod, HttpRequest};
use automaton_policy::PaymentLimits;
use automaton_store::{ApprovalAuthor, Store};
use serde_json::{Value, json};

use crate::life::{Events, Home};
use crate::town::{DOLLAR, NOBODY, Town, Weather};
use crate::wreck::StopAt;

const FRIEND: Address = Address::repeat_byte(0xF1);
/// Who made the automaton.
pub(crate) const CREATOR: Address = Address::repeat_byte(0xCC);
const CENT: i64 = Microcents::PER_CENT;

/// What a process spends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// A quarter for a friend.
    Gift,
    /// A cent for a request.
    Weather,
}

impl Wish {
    async fn come_true(self, treasury: &Arc<Treasury>, town: &Town) -> Result<(), TreasuryError> {
        let why = PaymentReason::auto_topup("a wish");
        match self {
            Self::Gift => treasury.transfer(FRIEND, 25, why).await.map(|_| ()),
            Self::Weather => {
                let url = format!("{}/weather", town.url).parse().unwrap();
                let (request, cap) =
                    (HttpRequest::new(HttpMethod::Get, url), MicroUsdc::new(10_000));
                treasury.fetch(PaidFetch { request, cap, why }).await.map(|_| ())
            }
        }
    }

    /// What it costs, in microcents.
    const fn cost(self) -> i64 {
        match self {
            Self::Gift => 25 * CENT,
            Self::Weather => CENT,
        }
    }
}

/// Runs a process that wishes once, looks after its payments, and may die.
fn run(home: &Arc<Home>, town: &Town, wish: Option<Wish>, dies: Option<FaultPoint>) {
    let (stopped, ended) = sync_channel(2);
    let left = AtomicU32::new(1);
    let faults = Arc::new(StopAt { point: dies, left, stopped: stopped.clone() });
    let (home, town) = (Arc::clone(home), town.clone());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = home.store_by(town.ids(), Arc::new(NoFaults)).await;
            let treasury = town.treasury(&store, faults, Arc::new(NoEvents)).await;
            treasury.check_balances().await;
            if let Some(wish) = wish {
                // What fails is looked after by the next process.
                wish.come_true(&treasury, &town).await.ok();
            }
            store.close().await.unwrap();
        });
        stopped.send(false).unwrap();
    });
    ended.recv_timeout(Duration::from_secs(60)).expect("the start ends or dies");
}

/// Asks something of the record of a home.
fn with<T>(home: &Home, town: &Town, ask: impl AsyncFnOnce(&Store, &Arc<Treasury>) -> T) -> T {
    with_events(home, town, Arc::new(NoEvents), ask)
}

/// The same, with somebody who hears of it.
fn with_events<T>(
    home: &Home,
    town: &Town,
    events: Arc<dyn EventSink>,
    ask: impl AsyncFnOnce(&Store, &Arc<Treasury>) -> T,
) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = home.store_by(town.ids(), Arc::new(NoFaults)).await;
        let treasury = town.treasury(&store, Arc::new(NoFaults), events).await;
        ask(&store, &treasury).await
    })
}

fn payments(home: &Home, town: &Town) -> Vec<Payment> {
    with(home, town, async |store, _| store.payments().await.unwrap())
}

/// What others have got, in microcents.
fn given(town: &Town) -> i64 {
    let counts = town.counts();
    let moved: u64 = counts.moved.values().sum();
    let gifts: i64 = counts.given.values().map(|(_, cents)| cents * CENT).sum();
    gifts + i64::try_from(moved).unwrap() * 100
}

#[test]
fn a_crash_at_any_point_of_a_payment_pays_at_most_once_and_leaves_nothing_open() {
    for wish in [Wish::Gift, Wish::Weather] {
        // Credits move without a signature.
        let signs = [FaultPoint::PaymentReceived, FaultPoint::PaymentSigned];
        let reached = |point: &FaultPoint| wish == Wish::Weather || !signs.contains(point);
        for point in FaultPoint::PAYMENT.into_iter().filter(reached) {
            let (home, town) = (Arc::new(Home::new()), Town::new(20, 5 * DOLLAR));
            run(&home, &town, Some(wish), Some(point));
            town.counts().later = 400;
            run(&home, &town, None, None);
            let ended = payments(&home, &town);
            assert!(ended.iter().all(|one| one.state.is_over()), "{wish:?} {point} {ended:?}");
            let settled = ended.iter().filter(|one| one.state == PaymentState::Settled).count();
            let paid = i64::try_from(settled).unwrap() * wish.cost();
            assert_eq!(given(&town), paid, "{wish:?} {point}: the record says what moved");
            assert!(settled <= 1);
            // The same wish is paid for now, or hears that it was; and another one is another.
            for times in 1..=2 {
                run(&home, &town, Some(wish), None);
                assert_eq!(given(&town), times * wish.cost(), "{wish:?} {point}");
            }
        }
    }
}

#[test]
fn a_lost_reply_is_asked_about_and_an_equal_wish_goes_on_with_it() {
    for wish in [Wish::Gift, Wish::Weather] {
        let (home, town) = (Arc::new(Home::new()), Town::new(20, 5 * DOLLAR));
        town.counts().weather = Weather::RepliesLost;
        run(&home, &town, Some(wish), None);
        assert_eq!(given(&town), wish.cost(), "{wish:?}: it was taken");
        town.counts().weather = Weather::Fine;
        if wish == Wish::Gift {
            run(&home, &town, Some(wish), None);
            let all = payments(&home, &town);
            let states: Vec<_> = all.iter().map(|one| one.state).collect();
            // The look has ended it; the wish was not told, and is that one.
            assert_eq!(states, [PaymentState::Settled]);
        }
        run(&home, &town, None, None);
        assert_eq!(given(&town), wish.cost(), "{wish:?}");
        run(&home, &town, Some(wish), None);
        assert_eq!(given(&town), 2 * wish.cost(), "{wish:?}: told, it is another one");
        let all = payments(&home, &town);
        assert!(all.iter().all(|one| one.state == PaymentState::Settled), "{wish:?} {all:?}");
        let count = i64::try_from(all.len()).unwrap();
        assert_eq!(given(&town), count * wish.cost());
    }
}

#[test]
fn a_payment_that_never_arrived_is_sent_again_with_the_same_bytes() {
    let (home, town) = (Arc::new(Home::new()), Town::new(20, 5 * DOLLAR));
    town.counts().weather = Weather::PaymentsLost;
    for _ in 0..3 {
        run(&home, &town, Some(Wish::Weather), None);
    }
    assert_eq!((given(&town), town.counts().signed.len()), (0, 1));
    town.counts().weather = Weather::Fine;
    run(&home, &town, Some(Wish::Weather), None);
    assert_eq!((given(&town), town.counts().signed.len()), (CENT, 1));
    // A signature that nobody used is void when its time is over, and not before.
    town.counts().weather = Weather::PaymentsLost;
    run(&home, &town, Some(Wish::Weather), None);
    run(&home, &town, None, None);
    assert_eq!(payments(&home, &town)[1].state, PaymentState::Unknown);
    town.counts().later = 301;
    run(&home, &town, None, None);
    assert_eq!(payments(&home, &town)[1].state, PaymentState::Expired);
    assert_eq!(given(&town), CENT);
}

#[test]
fn an_answer_that_is_lost_keeps_why() {
    let (home, town) = (Arc::new(Home::new()), Town::new(20, 5 * DOLLAR));
    town.counts().weather = Weather::RepliesLost;
    let error = with(&home, &town, async |_, treasury| {
        Wish::Weather.come_true(treasury, &town).await.unwrap_err()
    });
    assert!(matches!(error, TreasuryError::AnswerLost { .. }), "{error}");
    assert!(std::error::Error::source(&error).is_some(), "{error:?}");
}

#[test]
fn an_open_payment_is_sent_again_only_within_what_may_be_paid_now() {
    let (home, town) = (Arc::new(Home::new()), Town::new(20, 5 * DOLLAR));
    let asks = |cap: u64, most_cents: i64| {
        with(&home, &town, async |store, _| {
            let treasury = town.treasury(store, Arc::new(NoFaults), Arc::new(NoEvents)).await;
            let x402_max = Microcents::new(most_cents * CENT);
            let limits = PaymentLimits { x402_max, ..town.limits() };
            let treasury = Arc::into_inner(treasury).unwrap().with_limits(limits).unwrap();
            let url = format!("{}/weather", town.url).parse().unwrap();
            let request = HttpRequest::new(HttpMethod::Get, url);
            let (cap, why) = (MicroUsdc::new(cap), PaymentReason::auto_topup("a wish"));
            treasury.fetch(PaidFetch { request, cap, why }).await
        })
    };
    (town.counts().weather, town.counts().price) = (Weather::PaymentsLost, 900_000);
    assert!(matches!(asks(900_000, 100).unwrap_err(), TreasuryError::NoReply { .. }));
    (town.counts().weather, town.counts().price) = (Weather::Fine, 10_000);
    // A smaller cap, and the creator's limit that was lowered.
    for (cap, most_cents) in [(20_000, 100), (899_999, 100), (900_000, 2), (900_000, 89)] {
        let error = asks(cap, most_cents).unwrap_err();
        assert!(matches!(error, TreasuryError::OpenDearer { .. }), "{error}");
        let told = error.to_string();
        let id = payments(&home, &town)[0].id.to_string();
        assert!(told.contains(&id) && told.contains("0.90 USDC"), "{told}");
    }
    assert_eq!((given(&town), town.counts().signed.len()), (0, 1));
    let brought = asks(900_000, 90).unwrap();
    assert_eq!(brought.paid.map(|paid| paid.amount), Some(MicroUsdc::new(900_000)));
    assert_eq!((given(&town), town.counts().signed.len()), (90 * CENT, 1));

    // One that is over is in nobody's way.
    (town.counts().weather, town.counts().price) = (Weather::PaymentsLost, 900_000);
    asks(900_000, 100).unwrap_err();
    (town.counts().weather, town.counts().price, town.counts().later) = (Weather::Fine, 0, 301);
    let brought = asks(20_000, 100).unwrap();
    assert_eq!(brought.paid.map(|paid| paid.amount), Some(MicroUsdc::new(10_000)));
}

#[test]
fn a_payment_that_is_refused_for_an_unknown_balance_says_why_it_is_unknown() {
    let (home, town) = (Arc::new(Home::new()), Town::new(20, 5 * DOLLAR));
    town.counts().weather = Weather::WalletUnread;
    let error = with(&home, &town, async |_, treasury| {
        Wish::Weather.come_true(treasury, &town).await.unwrap_err()
    });
    let told = automaton_core::error::chain(&error).to_string();
    assert!(told.contains("refused eth_call: the state is not here (-32000)"), "{told}");
    assert!(town.counts().signed.is_empty());
}

#[test]
fn what_is_refused_is_on_record_and_books_nothing() {
    let (home, town) = (Arc::new(Home::new()), Town::new(20, 5 * DOLLAR));
    let check = |weather: Weather, wish: Wish, expected: &str| {
        town.counts().weather = weather;
        let error = with(&home, &town, async |_, treasury| {
            wish.come_true(treasury, &town).await.unwrap_err()
        });
        assert!(error.to_string().contains(expected), "{error}");
    };
    check(Weather::Greedy, Wish::Weather, "10.00 USDC, more than the cap of 0.01 USDC");
    check(Weather::BalanceDown, Wish::Gift, "BALANCE_UNKNOWN");
    let (to, why) = (FRIEND, PaymentReason::auto_topup("a wish"));
    town.counts().weather = Weather::Fine;
    for (cents, code) in [(251, "SPEND_LIMIT_EXCEEDED"), (600, "MINIMUM_RESERVE")] {
        let error = with(&home, &town, async |_, treasury| {
            treasury.transfer(to, cents, why.clone()).await.unwrap_err()
        });
        assert!(error.to_string().contains(code), "{cents}: {error}");
    }
    let nobody = with(&home, &town, async |_, treasury| {
        treasury.transfer(NOBODY, 1, why.clone()).await.unwrap_err()
    });
    assert!(matches!(nobody, TreasuryError::NotDone { .. }), "{nobody}");
    assert_eq!((given(&town), town.counts().signed.len()), (0, 0), "the signer was never asked");
    let left: Vec<_> = payments(&home, &town).into_iter().map(|one| one.state).collect();
    assert_eq!(left, [PaymentState::Failed], "the one that the cloud refused");
    with(&home, &town, async |store, treasury| {
        let report = store.verify_chain().await.unwrap();
        // Four demands, and the steps of the transfer to nobody, of which two are one transaction.
        assert!(report.is_whole() && report.links == 7, "{report:?}");
        assert!(treasury.books().await.unwrap().sent == Microcents::ZERO);
    });
}

#[test]
fn what_needs_a_yes_waits_for_it_and_is_done_once() {
    let (home, town) = (Arc::new(Home::new()), Town::new(20, 100 * DOLLAR));
    let why = PaymentReason::auto_topup("a large gift");
    for yes in [true, false] {
        let cents = if yes { 1_100 } else { 1_200 };
        for _ in 0..2 {
            let error = with(&home, &town, async |_, treasury| {
                treasury.transfer(FRIEND, cents, why.clone()).await.unwrap_err()
            });
            assert!(matches!(error, TreasuryError::Asked { .. }), "{error}");
        }
        run(&home, &town, None, None);
        assert_eq!(given(&town), if yes { 0 } else { 1_100 * CENT }, "nothing without an answer");
        with(&home, &town, async |store, _| {
            let asked = store.approvals(1).await.unwrap().remove(0);
            assert!(asked.summary.text.contains("a large gift"), "{asked:?}");
            let answer = if yes { ApprovalVerdict::Approve } else { ApprovalVerdict::Deny };
            store.answer(asked.id, answer, ApprovalAuthor::Home).await.unwrap();
        });
        for _ in 0..2 {
            run(&home, &town, None, None);
        }
        assert_eq!(given(&town), 1_100 * CENT);
    }
    let late = with(&home, &town, async |_, treasury| {
        treasury.transfer(FRIEND, 1_300, why.clone()).await.unwrap_err()
    });
    assert!(matches!(late, TreasuryError::Asked { .. }));
    town.clock.step(Span::from_secs(25 * 60 * 60));
    run(&home, &town, None, None);
    let states: Vec<_> = payments(&home, &town).into_iter().map(|one| one.state).collect();
    assert_eq!(states, [PaymentState::Settled, PaymentState::Failed, PaymentState::Failed]);
}

#[test]
fn two_at_once_pass_no_limit_together() {
    let (home, town) = (Arc::new(Home::new()), Town::new(20, 1_000 * DOLLAR));
    with(&home, &town, async |_, treasury| {
        // Ten each, of which the hour takes ten: the eleventh is one too many.
        let give = |cents| treasury.transfer(FRIEND, cents, PaymentReason::auto_topup("a gift"));
        let all = futures_util::future::join_all((0..11).map(|more| give(1_000 - more))).await;
        let passed = all.iter().filter(|one| one.is_ok()).count();
        assert_eq!(passed, 10, "{all:?}");
    });
    assert!(given(&town) <= 100 * DOLLAR);
}

/// A home that has given away all that an hour allows, ten dollars at a time.
fn spent() -> (Arc<Home>, Town) {
    let (home, town) = (Arc::new(Home::new()), Town::new(20, 1_000 * DOLLAR));
    with(&home, &town, async |_, treasury| {
        treasury.balances().await;
        for _ in 0..10 {
            assert!(gives(treasury).await);
        }
        assert!(!gives(treasury).await);
    });
    (home, town)
}

/// Whether the limits allow ten dollars more.
async fn gives(treasury: &Arc<Treasury>) -> bool {
    match treasury.transfer(FRIEND, 1_000, PaymentReason::auto_topup("a gift")).await {
        Ok(_) => true,
        Err(TreasuryError::Denied { .. }) => false,
        Err(other) => panic!("{other}"),
    }
}

/// The same of a process that begins now, and reads the balances first.
fn would_give(home: &Home, town: &Town) -> bool {
    with(home, town, async |_, treasury| {
        treasury.balances().await;
        gives(treasury).await
    })
}

const DAY_AND_HOUR: i64 = 25 * 60 * 60;

#[test]
fn a_clock_that_is_set_forward_frees_nothing() {
    let (home, town) = spent();
    town.clock.step(Span::from_secs(DAY_AND_HOUR));
    assert!(!would_give(&home, &town), "between two runs");
    town.counts().later = DAY_AND_HOUR;
    assert!(!would_give(&home, &town), "one clock after the other");
    with(&home, &town, async |_, treasury| {
        treasury.balances().await;
        town.clock.step(Span::from_secs(DAY_AND_HOUR));
        assert!(!gives(treasury).await, "within a run");
    });
    // What both tell has passed.
    town.clock.step(Span::from_secs(3_600));
    town.counts().later += 3_600 + 120;
    assert!(would_give(&home, &town));
}

#[test]
fn a_clock_that_is_set_back_holds_nothing_for_longer() {
    let (home, town) = spent();
    let back = Timestamp::from_millis(town.clock.now().as_millis() - DAY_AND_HOUR * 1_000);
    with(&home, &town, async |_, treasury| {
        treasury.balances().await;
        town.boot.step(Span::from_secs(1_800));
        town.clock.set(back);
        assert!(!gives(treasury).await);
    });
    // Another run goes on where that one ended, on a machine that was started anew.
    town.boot.set(Timestamp::EPOCH);
    with(&home, &town, async |_, treasury| {
        treasury.balances().await;
        town.boot.step(Span::from_millis(1_799_999));
        assert!(!gives(treasury).await);
        town.boot.step(Span::from_millis(1));
        assert!(gives(treasury).await, "a real hour");
    });
}

#[test]
fn without_a_clock_that_nobody_can_set_nothing_is_given() {
    let (home, town) = (Arc::new(Home::new()), Town::new(20, 5 * DOLLAR));
    town.boot.set(Timestamp::from_millis(-1));
    with(&home, &town, async |_, treasury| {
        let error =
            treasury.transfer(FRIEND, 25, PaymentReason::auto_topup("a gift")).await.unwrap_err();
        assert!(matches!(error, TreasuryError::NoTime), "{error}");
    });
    assert_eq!(given(&town), 0);
}

#[test]
fn what_others_give_is_revenue_once_and_the_creators_is_not() {
    let (home, town) = (Arc::new(Home::new()), Town::new(20, 5 * DOLLAR));
    let gift = |id: i64, from: Address, cents: i64| {
        json!({
            "id": id, "type": "transfer", "amount_cents": cents, "at_ms": 7,
            "amount_microcents": cents * CENT, "balance_after_microcents": 0,
            "counterparty": from.to_string(),
        })
    };
    town.counts().history = vec![gift(3, FRIEND, 40), gift(2, CREATOR, 500), gift(1, FRIEND, -9)];
    let tick = || {
        with(&home, &town, async |store, treasury| {
            treasury.reconcile_open().await.unwrap();
            let account =
                home.reader().profit_and_loss(PnlGrouping::Category, Timestamp::EPOCH).unwrap();
            (account.total.revenue, store.received().await.unwrap())
        })
    };
    let cents = |cents| Microcents::from_cents(cents).unwrap();
    for _ in 0..2 {
        assert_eq!(tick(), (cents(40), cents(540)));
    }
    town.counts().history.insert(0, gift(4, FRIEND, 2));
    assert_eq!(tick(), (cents(42), cents(542)));
}

/// A sale of a cent by the account's machine, as the cloud's history tells it.
fn sale_of(id: i64, port: u16) -> Value {
    json!({
        "id": id, "machine": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "port": port, "at_ms": id * 1_000,
        "amount_micro_usdc": 10_000, "payer": FRIEND.to_string(), "transaction": "0x1",
    })
}

#[test]
fn the_first_sale_is_told_at_once_and_thousands_later_ones_in_a_digest_an_hour() {
    let (home, town) = (Arc::new(Home::new()), Town::new(20, 5 * DOLLAR));
    let events = Arc::new(Events::default());
    let look = || {
        let heard = events.clone();
        with_events(&home, &town, heard, async |_, treasury| {
            treasury.reconcile_open().await.unwrap();
        });
        let told: Vec<Event> = events.all();
        let sales = told.iter().filter(|it| matches!(it, Event::SaleSettled { .. })).count();
        let messages = told.iter().filter_map(|event| match event {
            Event::MessageSent { body, .. } => Some(body.text.clone()),
            _ => None,
        });
        (sales, messages.collect::<Vec<_>>())
    };
    assert_eq!(look(), (0, Vec::new()), "nothing is told of nothing");
    town.counts().sales = vec![sale_of(1, 8081)];
    let (sales, messages) = look();
    assert_eq!((sales, messages.len()), (1, 1));
    assert!(messages[0].starts_with("Sold: 1 request to port 8081 for 0.01 USDC."), "{messages:?}");
    // A crowd within the hour: an event for each reading and port, and no message.
    town.counts().sales =
        (1..=3_000).rev().map(|id| sale_of(id, if id % 2 == 0 { 8080 } else { 8081 })).collect();
    for _ in 0..3 {
        let (sales, messages) = look();
        assert!(sales < 100, "the events of a crowd are summed up: {sales}");
        assert_eq!(messages.len(), 1);
    }
    town.clock.step(Span::from_secs(60 * 60));
    let (_, messages) = look();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(messages[1].contains("2999 requests for 29.99 USDC in all"), "{messages:?}");
    assert_eq!(look().1.len(), 2, "and nothing is told twice");
    let sold = home.reader().port_sales().unwrap();
    let sums: Vec<_> = sold.iter().map(|it| (it.port, it.sales, it.amount.units())).collect();
    assert_eq!(sums, [(8080, 1_500, 15_000_000), (8081, 1_500, 15_000_000)]);
}

#[test]
fn machines_are_a_cost_and_what_they_sell_is_revenue_each_booked_once_and_together() {
    let (home, town) = (Arc::new(Home::new()), Town::new(20, 5 * DOLLAR));
    let minute = |id: i64| {
        json!({
            "id": id, "type": "machine", "amount_cents": 0, "at_ms": id * 60_000,
            "amount_microcents": -1000, "balance_after_microcents": 0,
            "description": "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        })
    };
    let sale = |id: i64, payer: Address| {
        json!({
            "id": id, "machine": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "port": 8080, "at_ms": 60_000,
            "amount_micro_usdc": 10_000, "payer": payer.to_string(), "transaction": "0x1",
        })
    };
    let look = || {
        with(&home, &town, async |store, treasury| {
            treasury.reconcile_open().await.unwrap();
            let account =
                home.reader().profit_and_loss(PnlGrouping::Category, Timestamp::EPOCH).unwrap();
            let line =
                |name: &str| account.lines.iter().find(|it| it.name.as_deref() == Some(name));
            let cost = line("machine").map_or(Microcents::ZERO, |line| line.sums.cost);
            assert_eq!(store.rented().await.unwrap(), cost);
            // What was sold was paid in USDC, and is no credits.
            assert_eq!(store.received().await.unwrap(), Microcents::ZERO);
            (cost.units(), account.total.revenue.units() / CENT)
        })
    };
    // Nearly three pages, and a minute goes by with each page that is read.
    town.counts().history = (1..=270).rev().map(minute).collect();
    town.counts().sales = vec![sale(3, CREATOR), sale(2, FRIEND), sale(1, FRIEND)];
    town.counts().coming = (271..=290).rev().map(minute).collect();
    let (cost, sold) = look();
    assert!((270_000..=290_000).contains(&cost) && sold == 2, "{cost} {sold}");
    // Every page is one of a few more.
    while !town.counts().coming.is_empty() {
        look();
    }
    assert_eq!(look(), (290_000, 2));
    town.counts().sales.insert(0, sale(4, FRIEND));
    assert_eq!(look(), (290_000, 3), "a new process goes on from there");
    let pages = town.counts().pages;
    assert_eq!(look(), (290_000, 3));
    assert!(town.counts().pages - pages <= 2, "nothing old is read again");
    let days = with(&home, &town, async |_, _| {
        home.reader().profit_and_loss(PnlGrouping::Day, Timestamp::EPOCH).unwrap().lines.len()
    });
    assert_eq!(days, 1);
    let by = home.reader().profit_and_loss(PnlGrouping::Service, Timestamp::EPOCH).unwrap();
    let of = |line: &PnlLine| (line.name.clone().unwrap(), line.sums.revenue.units() / CENT);
    let expected =
        [("machine 01ARZ3NDEKTSV4RRFFQ69G5FAV", 0), ("machine 01ARZ3NDEKTSV4RRFFQ69G5FAV:8080", 3)];
    let mut found: Vec<_> = by.lines.iter().map(of).collect();
    found.sort();
    assert_eq!(found, expected.map(|(name, cents)| (name.to_owned(), cents)));
}
