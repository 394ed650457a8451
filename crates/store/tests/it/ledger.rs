//! Costs are booked before they arise, and sums over them are exact.

use automaton_core::id::TurnId;
use automaton_core::inference_budget::InferenceCeilings;
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::payment::{Money, NewPayment, PaymentReason, Purpose, SignedPayment};
use automaton_core::pnl::{Losses, PnlGrouping, PnlLine, ProfitAndLoss};
use automaton_core::record::{StopReason, Usage};
use automaton_core::time::{DAY, HOUR, Timestamp};
use automaton_core::trust::Label;
use automaton_store::{NewCostReservation, PaymentStep, Revenue, Store};
use proptest::prelude::*;

use super::{World, five_dollars, usage};

fn amount(units: i64) -> Microcents {
    Microcents::new(units)
}

fn costing(units: i64) -> Usage {
    Usage { cost: amount(units), ..usage() }
}

fn answer(turn: TurnId, most: i64) -> NewCostReservation {
    NewCostReservation {
        turn,
        goal: None,
        most: amount(most),
        cloud: None,
        ceilings: InferenceCeilings::default(),
    }
}

fn paid(key: &str, units: i64, at: i64) -> Revenue {
    let (key, from) = (key.to_owned(), "0xabc".to_owned());
    Revenue { key, amount: amount(units), from, at: Timestamp::from_millis(at) }
}

fn gift(store: &Store, goal: Option<&str>, cents: i64) -> impl Future<Output = ()> {
    let money = Money::Credits { amount: Microcents::from_cents(cents).unwrap() };
    let payment = NewPayment {
        purpose: Purpose::Transfer,
        request: format!("{goal:?} {cents}"),
        money,
        why: PaymentReason { goal: goal.map(str::to_owned), ..PaymentReason::auto_topup("a gift") },
        ..five_dollars()
    };
    let store = store.clone();
    async move {
        let id = store.propose_payment(payment, None).await.unwrap();
        store.advance_payment(id, PaymentStep::Submitted).await.unwrap();
    }
}

/// The sum over all bookings of answers.
fn booked(world: &World) -> i64 {
    let statement = "SELECT coalesce(sum(amount), 0) FROM ledger WHERE category = 'inference'";
    world.raw().query_row(statement, [], |row| row.get(0)).unwrap()
}

fn account(world: &World, by: PnlGrouping) -> ProfitAndLoss {
    world.reader().profit_and_loss(by, Timestamp::EPOCH).unwrap()
}

/// Name, revenue and cost of each line.
fn lines(account: &ProfitAndLoss) -> Vec<(Option<&str>, i64, i64)> {
    let line = |line: &'_ PnlLine| (line.sums.revenue.units(), line.sums.cost.units());
    account.lines.iter().map(|one| (one.name.as_deref(), line(one).0, line(one).1)).collect()
}

/// What happens to an answer that was asked for.
#[derive(Debug, Clone, Copy)]
enum CostOutcome {
    Heard(i64),
    Refused,
    Lost,
    Crash,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn what_was_heard_counts_as_it_was_and_the_rest_at_its_worst(
        questions in prop::collection::vec((1_i64..1 << 40, prop_oneof![
            (0_i64..1 << 41).prop_map(CostOutcome::Heard),
            Just(CostOutcome::Refused),
            Just(CostOutcome::Lost),
            Just(CostOutcome::Crash),
        ], any::<bool>()), 1..12)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut world = World::born().await;
            let (mut expected, mut heard, mut unsettled, mut open) = (0, 0, 0, Vec::new());
            for (most, outcome, waits) in questions {
                let turn = world.ids.id();
                let asked = world.store.reserve_cost(answer(turn, most)).await.unwrap().unwrap();
                assert!(booked(&world) <= expected - most, "booked before it is asked for");
                open.push((asked, turn, most, outcome));
                // Several may be under way, and come to their ends in any order.
                for (asked, turn, most, outcome) in open.split_off(if waits { open.len() } else { 0 }) {
                    world.advance(1);
                    match outcome {
                        CostOutcome::Heard(cost) => {
                            world.store.settle_cost(Some(asked), turn, &costing(cost)).await.unwrap();
                            expected -= cost;
                            heard += cost;
                        }
                        CostOutcome::Refused => world.store.release_cost(asked).await.unwrap(),
                        CostOutcome::Lost => (expected, unsettled) = (expected - most, unsettled + 1),
                        CostOutcome::Crash => {
                            (expected, unsettled) = (expected - most, unsettled + 1);
                            world.crash();
                        }
                    }
                }
                let waiting: i64 = open.iter().map(|(_, _, most, _)| most).sum();
                assert_eq!(booked(&world), expected - waiting);
            }
            let totals = world.store.totals().await.unwrap();
            let waiting = u64::try_from(open.len()).unwrap();
            assert_eq!((totals.cost.units(), totals.unsettled), (heard, unsettled + waiting));
            let sums = account(&world, PnlGrouping::Category);
            assert_eq!(sums.total.cost.units(), -booked(&world));
        });
    }
}

#[tokio::test]
async fn what_costs_without_having_been_booked_is_booked_all_the_same() {
    let world = World::born().await;
    let turn = world.ids.id();
    world.store.settle_cost(None, turn, &costing(0)).await.unwrap();
    assert_eq!(booked(&world), 0);
    world.store.settle_cost(None, turn, &costing(7)).await.unwrap();
    let free = world.store.reserve_cost(answer(turn, 0)).await.unwrap().unwrap();
    world.store.settle_cost(Some(free), turn, &costing(5)).await.unwrap();
    assert_eq!(booked(&world), -12);
    assert_eq!(world.store.totals().await.unwrap().unsettled, 0);
}

#[tokio::test]
async fn revenue_is_booked_once_and_only_what_is_one() {
    let world = World::born().await;
    let store = &world.store;
    assert!(store.book_revenue(paid("a", 500, 90)).await.unwrap());
    assert!(!store.book_revenue(paid("a", 500, 91)).await.unwrap(), "no news");
    assert!(store.book_revenue(paid("a", 501, 90)).await.is_err(), "another amount is another");
    for units in [0, -1, i64::MIN] {
        assert!(store.book_revenue(paid("b", units, 90)).await.is_err(), "{units}");
    }
    let sums = account(&world, PnlGrouping::Category);
    assert_eq!(lines(&sums), [(Some("revenue"), 500, 0)]);
    assert_eq!((sums.net, sums.left_out), (amount(500), None));
    let later =
        world.reader().profit_and_loss(PnlGrouping::Day, Timestamp::from_millis(91)).unwrap();
    assert!(later.lines.is_empty(), "it counts when it was settled: {later:?}");
}

#[tokio::test]
async fn the_account_is_the_ledger_by_category_day_goal_and_turn() {
    let world = World::born().await;
    let store = &world.store;
    let session = world.session().await;
    let turn = world.answer(session).await;
    let asked = store.reserve_cost(answer(turn, 900)).await.unwrap().unwrap();
    // The answer comes on the next day, and still belongs to the day it was asked for.
    world.advance(DAY.as_millis());
    store.settle_cost(Some(asked), turn, &costing(30)).await.unwrap();
    let next = store.open_turn(session, Vec::new(), 0).await.unwrap().id;
    let unsettled = NewCostReservation { goal: Some("fly".to_owned()), ..answer(next, 70) };
    let lost = store.reserve_cost(unsettled).await.unwrap().unwrap();
    drop(lost);
    gift(store, Some("fly"), 1).await;
    store.book_revenue(paid("a", 5_000_000, 5)).await.unwrap();

    let by = account(&world, PnlGrouping::Category);
    let expected = [
        (Some("transfer"), 0, 1_000_000),
        (Some("inference"), 0, 100),
        (Some("revenue"), 5_000_000, 0),
    ];
    assert_eq!(lines(&by), expected);
    assert_eq!((by.total.cost, by.net), (amount(1_000_100), amount(3_999_900)));
    let (today, yesterday) = (Some("1970-01-02"), Some("1970-01-01"));
    assert_eq!(
        lines(&account(&world, PnlGrouping::Day)),
        [(today, 0, 1_000_070), (yesterday, 5_000_000, 30)]
    );
    let (fly, none) = ((Some("fly"), 0, 1_000_070), (None, 5_000_000, 30));
    assert_eq!(lines(&account(&world, PnlGrouping::Goal)), [fly, none]);
    let of = account(&world, PnlGrouping::Turn);
    assert_eq!(lines(&of), [(None, 5_000_000, 1_000_000), (Some("2"), 0, 70), (Some("1"), 0, 30)]);
    assert!(world.store.verify_chain().await.unwrap().is_whole());
}

#[tokio::test]
async fn more_lines_than_are_shown_are_one_sum() {
    let world = World::born().await;
    for cost in 1..=1003 {
        world.advance(1);
        let goal = Some(format!("goal {cost}"));
        let asked = NewCostReservation { goal, ..answer(world.ids.id(), cost) };
        drop(world.store.reserve_cost(asked).await.unwrap().unwrap());
    }
    let by = account(&world, PnlGrouping::Goal);
    assert_eq!((by.lines.len(), by.lines[0].sums.cost), (1000, amount(1003)));
    assert_eq!(by.left_out.unwrap().cost, amount(1 + 2 + 3));
    assert_eq!(by.total.cost, amount(1003 * 1004 / 2));
}

#[tokio::test]
async fn credits_that_were_bought_are_an_exchange() {
    let world = World::born().await;
    let why = PaymentReason { label: Label::Creator, ..PaymentReason::auto_topup("credits") };
    let five = NewPayment { why, ..five_dollars() };
    let id = world.store.propose_payment(five, None).await.unwrap();
    let (header, value) = ("x-payment".to_owned(), "v".to_owned());
    let valid_before = Timestamp::from_millis(9);
    let signed = SignedPayment { header, value, nonce: [1; 32].into(), valid_before };
    world.store.store_signed_payment(id, signed).await.unwrap();
    world.store.advance_payment(id, PaymentStep::Submitted).await.unwrap();
    assert_eq!(
        account(&world, PnlGrouping::Day).exchanged.paid,
        MicroUsdc::ZERO,
        "not before it is settled"
    );
    world.store.advance_payment(id, PaymentStep::Settled(None)).await.unwrap();
    let account = account(&world, PnlGrouping::Day);
    let exchanged = account.exchanged;
    assert_eq!((exchanged.paid.units(), exchanged.got.units()), (5_000_000, 500_000_000));
    assert_eq!((account.net, account.lines), (Microcents::ZERO, Vec::new()));
}

/// What answers cost in a day, an hour and the wake cycle, added up from the bookings.
fn thought(world: &World) -> [i64; 3] {
    let statement = "SELECT coalesce(sum(-amount), 0), \
         coalesce(sum(-amount) FILTER (WHERE at > ?2), 0), \
         coalesce(sum(-amount) FILTER (WHERE turn IN (SELECT seq FROM turns WHERE session = \
             (SELECT seq FROM sessions WHERE ended_at IS NULL))), 0) \
         FROM ledger WHERE category = 'inference' AND at > ?1";
    let now = world.ids.now();
    let since = [DAY, HOUR].map(|span| now.before(span).as_millis());
    let read = |row: &rusqlite::Row<'_>| Ok([row.get(0)?, row.get(1)?, row.get(2)?]);
    world.raw().query_row(statement, since, read).unwrap()
}

#[tokio::test]
async fn what_was_thought_before_there_were_sums_is_in_them() {
    let mut world = World::born().await;
    world.advance(400 * HOUR.as_millis());
    let session = world.session().await;
    for cost in [7, 20, 300] {
        let turn = world.answer(session).await;
        for (turn, most) in [(turn, 500), (world.ids.id(), 40)] {
            let asked = world.store.reserve_cost(answer(turn, most)).await.unwrap().unwrap();
            world.store.settle_cost(Some(asked), turn, &costing(cost)).await.unwrap();
        }
        world.advance(2 * HOUR.as_millis());
    }
    world.store.clone().close().await.unwrap();
    let before = "DROP TRIGGER ledger_thinking; DROP TABLE thinking_hours; PRAGMA user_version = 7";
    world.raw().execute_batch(before).unwrap();
    world.crash();
    let spend = world.store.thinking_cost().await.unwrap();
    let found = [spend.day, spend.hour, spend.session].map(Microcents::units);
    assert_eq!(found, thought(&world));
    assert_eq!(found, [654, 0, 327], "of which half were of the wake's turns");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whenever answers came, and whatever was booked for them first.
    #[test]
    fn what_thinking_cost_is_the_sum_of_its_bookings(
        answers in prop::collection::vec(
            (-90_i64..400, 1_i64..1000, 0_i64..1000, any::<bool>(), any::<bool>()),
            1..24,
        ),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let world = World::born().await;
            let store = &world.store;
            world.advance(400 * HOUR.as_millis());
            let mut session = world.session().await;
            for (minutes, most, cost, wakes, is_turns) in answers {
                world.advance(minutes * 60_000 + most);
                if wakes {
                    let asked = StopReason::Asked;
                    store.close_session(session, asked, None, None).await.unwrap();
                    session = world.session().await;
                }
                let turn = match is_turns {
                    true => world.answer(session).await,
                    false => world.ids.id(),
                };
                let asked = store.reserve_cost(answer(turn, most)).await.unwrap().unwrap();
                world.advance(cost * 1000);
                store.settle_cost(Some(asked), turn, &costing(cost)).await.unwrap();
                let spend = store.thinking_cost().await.unwrap();
                let found = [spend.day, spend.hour, spend.session].map(Microcents::units);
                assert_eq!(found, thought(&world));
            }
        });
    }
}

#[tokio::test]
async fn thinking_has_room_when_what_it_cost_is_a_day_old() {
    let world = World::born().await;
    let store = &world.store;
    let begin = world.ids.now().as_millis();
    for cost in [10, 20, 30] {
        let turn = world.ids.id();
        let asked = store.reserve_cost(answer(turn, 999)).await.unwrap().unwrap();
        store.settle_cost(Some(asked), turn, &costing(cost)).await.unwrap();
        world.advance(100);
    }
    let room = async |left| {
        store.thinking_room(DAY, amount(left)).await.unwrap().map(Timestamp::as_millis)
    };
    let day = DAY.as_millis();
    assert_eq!(store.thinking_cost().await.unwrap().day, amount(60));
    for (left, at) in [(59, 0), (50, 0), (49, 100), (30, 100), (29, 200), (0, 200)] {
        assert_eq!(room(left).await, Some(begin + at + day), "{left}");
    }
    assert_eq!(room(-1).await, None, "what is more than all never fits");
    world.advance(day - 200);
    assert_eq!(store.thinking_cost().await.unwrap().day, amount(30), "the first two are a day old");
    // A clock that was set back frees nothing.
    world.advance(-2 * day);
    assert_eq!(store.thinking_cost().await.unwrap().day, amount(60));
}

#[tokio::test]
async fn losses_count_by_day_goal_and_in_all_until_they_are_forgiven() {
    let world = World::born().await;
    let store = &world.store;
    let cents = |cents| Microcents::from_cents(cents).unwrap();
    let losses = async || store.losses().await.unwrap();
    assert_eq!(losses().await, Losses::default());
    gift(store, Some("fly"), 40).await;
    gift(store, Some("swim"), 60).await;
    world.advance(DAY.as_millis());
    gift(store, Some("fly"), 25).await;
    gift(store, None, 5).await;
    let goal = Some(("fly".to_owned(), cents(65)));
    assert_eq!(losses().await, Losses { day: cents(30), goal, total: cents(130) });
    store.book_revenue(paid("a", cents(31).units(), world.ids.now().as_millis())).await.unwrap();
    let found = losses().await;
    assert_eq!((found.day, found.total), (cents(-1), cents(99)), "revenue makes up for it");

    let session = world.session().await;
    let open = store.reserve_cost(answer(world.ids.id(), 500)).await.unwrap().unwrap();
    let note = Some("it lost enough".to_owned());
    store.close_session(session, StopReason::StopLoss, None, note).await.unwrap();
    world.session().await;
    assert_eq!(losses().await, Losses::default(), "who wakes it forgives");
    // What comes back of a loss that is forgiven is no gain, whatever the clock says.
    store.release_cost(open).await.unwrap();
    world.advance(-9 * DAY.as_millis());
    gift(store, None, 7).await;
    assert_eq!(losses().await, Losses { day: cents(7), goal: None, total: cents(7) });
    // The sum that is kept is the one that the bookings give.
    let sums = "SELECT lost, (SELECT sum(-amount) FROM ledger WHERE seq > losses_from
        AND coalesce(corrects, seq) > losses_from AND category <> 'funding') FROM automaton";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
    let (kept, counted) = world.raw().query_row(sums, [], read).unwrap();
    assert_eq!((kept, kept), (counted, cents(7).units()));
}

/// They are asked for before each turn: a life that is long must not be read whole for a day.
#[tokio::test]
async fn the_losses_of_a_day_are_found_by_their_time() {
    let world = World::born().await;
    let statement = format!("EXPLAIN QUERY PLAN {}", include_str!("../../src/sql/losses.sql"));
    let raw = world.raw();
    let mut plan = raw.prepare(&statement).unwrap();
    let steps = plan.query_map([0], |row| row.get::<_, String>(3)).unwrap();
    let steps: Vec<String> = steps.map(Result::unwrap).collect();
    assert!(steps.iter().any(|step| step.contains("INDEX ledger_at (at>?)")), "{steps:?}");
}

/// The heartbeat asks while a wake begins, which settles what was not heard: neither may settle
/// what is the other's.
#[tokio::test]
async fn an_answer_that_somebody_waits_for_is_none_that_was_not_heard() {
    let world = World::born().await;
    let (store, turn) = (&world.store, world.ids.id());
    let open = async || store.unsettled_costs().await.unwrap().len();
    let asked = store.reserve_cost(answer(turn, 900)).await.unwrap().unwrap();
    assert_eq!((open().await, store.totals().await.unwrap().unsettled), (0, 1));
    store.settle_cost(Some(asked), turn, &costing(30)).await.unwrap();
    assert_eq!((open().await, booked(&world)), (0, -30));
    let lost = store.reserve_cost(answer(turn, 70)).await.unwrap().unwrap();
    drop(lost);
    let found = store.unsettled_costs().await.unwrap().pop().unwrap();
    assert_eq!(open().await, 1, "looking at it changes nothing");
    store.settle_cost(Some(found.reservation), turn, &costing(5)).await.unwrap();
    assert_eq!((open().await, booked(&world)), (0, -35));
}

/// However many are asked for at once, and however each ends: no ceiling is passed.
#[tokio::test]
async fn ten_calls_at_once_pass_no_ceiling() {
    let world = World::born().await;
    let turn = world.ids.id();
    let limit = 1_000;
    for most in [90, 100, 101, 333, 1_000, 1_001] {
        let ceilings =
            InferenceCeilings { per_hour: Some(amount(limit)), ..InferenceCeilings::default() };
        let ask = || {
            let store = world.store.clone();
            let asked = NewCostReservation { ceilings, ..answer(turn, most) };
            async move { store.reserve_cost(asked).await.unwrap() }
        };
        let mut asking: tokio::task::JoinSet<_> = (0..20).map(|_| ask()).collect();
        let mut booked = Vec::new();
        while let Some(asked) = asking.join_next().await {
            match asked.unwrap() {
                Ok(reservation) => booked.push(reservation),
                Err(over) => assert_eq!((over.limit, over.most), (amount(limit), amount(most))),
            }
        }
        assert_eq!(booked.len() as i64, limit / most);
        assert_eq!(world.store.thinking_cost().await.unwrap().hour, amount(most * (limit / most)));
        for reservation in booked {
            world.store.release_cost(reservation).await.unwrap();
        }
        assert_eq!(world.store.thinking_cost().await.unwrap().hour, amount(0));
    }
}
