//! Each rule over a real record: its boundary, its edge, its cooldown, its end, a restart.

use automaton_core::alert::{Alert, AlertRule, Thresholds};
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::record::{CallStatus, SleepState, StopReason, Usage, WakeCause, WakeSource};
use automaton_core::time::{Clock, Span};
use automaton_core::trust::{Label, Labelled};
use automaton_core::vitals::BalanceReading;
use automaton_store::TaskResult;

use crate::Steps as _;
use crate::schedule::{finish, run, schedule, task};
use crate::{World, judgement, output, planned, refused, said, usage};

const MINUTE: i64 = 60_000;

const LIMITS: Thresholds = Thresholds {
    reserve: Some(Microcents::new(1000 * Microcents::PER_CENT)),
    prompt_room: Some(1000),
    inference_per_day: Some(Microcents::new(500 * Microcents::PER_CENT)),
    turns_per_wake: Some(1),
};

/// Judges; the rules that fire, and in brackets those that are over.
async fn judge(world: &World) -> Vec<String> {
    let news = world.store.judge_alerts(LIMITS).await.unwrap();
    let name = |alert: &Alert| match alert.is_active() {
        true => alert.rule.name().to_owned(),
        false => format!("({})", alert.rule.name()),
    };
    news.iter().map(name).collect()
}

fn fires(rule: AlertRule) -> Vec<String> {
    vec![rule.name().to_owned()]
}

fn over(rule: AlertRule) -> Vec<String> {
    vec![format!("({})", rule.name())]
}

async fn reads(world: &World, cents: Option<i64>, dollars: Option<u64>) {
    let credits = cents.map(|cents| Microcents::from_cents(cents).unwrap());
    let usdc = dollars.map(|dollars| MicroUsdc::new(dollars * 1_000_000));
    let reading = BalanceReading {
        at: world.clock.now(),
        credits,
        usdc,
        least: Microcents::from_cents(10).unwrap(),
    };
    world.store.take_reading(reading).await.unwrap();
}

#[tokio::test]
async fn five_dollars_of_credits_with_fifteen_in_the_wallet_are_no_reason() {
    let world = World::born().await;
    assert!(judge(&world).await.is_empty(), "an unknown balance is no empty one");
    reads(&world, Some(500), Some(15)).await;
    for _ in 0..50 {
        world.advance(10 * MINUTE);
        assert!(judge(&world).await.is_empty());
    }
    assert!(world.reader().alerts(10).unwrap().is_empty());
}

#[tokio::test]
async fn a_balance_below_the_reserve_fires_on_its_edge_and_ends_by_itself() {
    let mut world = World::born().await;
    let rule = AlertRule::BalanceBelowReserve;
    reads(&world, Some(500), Some(5)).await;
    assert!(judge(&world).await.is_empty(), "exactly the reserve is enough");
    reads(&world, Some(499), Some(5)).await;
    assert_eq!(judge(&world).await, fires(rule));
    world.crash();
    world.advance(5 * MINUTE - 1);
    assert!(judge(&world).await.is_empty(), "a restart fires nothing twice");
    world.advance(1);
    assert_eq!(judge(&world).await, fires(rule));
    let alerts = world.reader().alerts(10).unwrap();
    assert_eq!((alerts.len(), alerts[0].times, alerts[0].is_active()), (1, 2, true));
    let message = "$4.99 of credits and 5.00 USDC are $9.99, below the reserve of $10.00";
    assert_eq!(alerts[0].message, message);
    reads(&world, None, None).await;
    world.advance(10 * MINUTE);
    assert_eq!(judge(&world).await, fires(rule), "what was read last still holds");
    reads(&world, Some(500), None).await;
    world.crash();
    assert_eq!(judge(&world).await, over(rule));
    assert!(judge(&world).await.is_empty());
    reads(&world, Some(100), None).await;
    assert!(judge(&world).await.is_empty(), "its cooldown outlives its end");
    world.advance(5 * MINUTE);
    assert_eq!(judge(&world).await, fires(rule));
    let alerts = world.reader().alerts(10).unwrap();
    assert_eq!(alerts.iter().map(|alert| alert.times).collect::<Vec<_>>(), [1, 3]);
}

#[tokio::test]
async fn a_heartbeat_that_fails_alerts_until_the_hour_has_passed() {
    let world = World::born().await;
    let rule = AlertRule::HeartbeatHighFailureRate;
    schedule(&world, vec![task("ping")]).await;
    for _ in 0..4 {
        run(&world, "ping", 0, finish(TaskResult::Success)).await;
        world.advance(MINUTE);
    }
    run(&world, "ping", 0, finish(TaskResult::Failure)).await;
    assert!(judge(&world).await.is_empty(), "one of five is tolerated");
    world.advance(MINUTE);
    run(&world, "ping", 0, finish(TaskResult::Timeout)).await;
    assert_eq!(judge(&world).await, fires(rule));
    world.advance(15 * MINUTE);
    assert_eq!(judge(&world).await, fires(rule), "it goes on");
    world.advance(46 * MINUTE);
    assert_eq!(judge(&world).await, over(rule), "nothing failed in the last hour");
}

#[tokio::test]
async fn refusals_alert_from_ten_decisions_on() {
    let world = World::born().await;
    let rule = AlertRule::PolicyHighDenyRate;
    let session = world.session().await;
    let call = |denied: bool| match denied {
        true => refused(world.ids.id()),
        false => planned(world.ids.id()),
    };
    let turn = world.judged(session, (0..9).map(|_| call(true)).collect()).await;
    assert!(judge(&world).await.is_empty(), "nine decisions are too few");
    world.store.commit_turn(turn).await.unwrap();
    let turn = world.judged(session, vec![call(false)]).await;
    assert_eq!(judge(&world).await, fires(rule));
    let open =
        world.reader().turn_details(automaton_store::TurnRef::Id(turn)).unwrap().unwrap().turn;
    world.store.start_call(open.calls[0].id).await.unwrap();
    let done =
        world.store.finish_call(open.calls[0].id, CallStatus::Done, output("ok"), Span::ZERO);
    done.await.unwrap();
    world.store.commit_turn(turn).await.unwrap();
    world.judged(session, (0..8).map(|_| call(false)).collect()).await;
    assert_eq!(judge(&world).await, over(rule), "nine of eighteen is half, not more");
}

#[tokio::test]
async fn a_prompt_that_fills_its_room_alerts() {
    let world = World::born().await;
    let rule = AlertRule::ContextNearCapacity;
    let session = world.session().await;
    for (prompt_tokens, wanted) in [(900, Vec::new()), (901, fires(rule)), (1, over(rule))] {
        let turn = world.store.open_turn(session, Vec::new(), 10).await.unwrap().id;
        let told = automaton_store::Judgement {
            usage: Usage { prompt_tokens, ..usage() },
            ..judgement(turn, Vec::new())
        };
        world.store.record_judgement(told, None).await.unwrap();
        world.store.commit_turn(turn).await.unwrap();
        assert_eq!(judge(&world).await, wanted, "{prompt_tokens}");
    }
}

#[tokio::test]
async fn thinking_beyond_four_fifths_of_a_day_alerts_for_that_day() {
    let mut world = World::born().await;
    let rule = AlertRule::InferenceBudgetWarning;
    let session = world.session().await;
    let turn = world.answer(session).await;
    let cost = |units| Usage { cost: Microcents::new(units), ..usage() };
    world.store.settle_cost(None, turn, &cost(400 * Microcents::PER_CENT)).await.unwrap();
    assert!(judge(&world).await.is_empty());
    world.advance(MINUTE);
    world.store.settle_cost(None, turn, &cost(1)).await.unwrap();
    world.crash();
    assert_eq!(judge(&world).await, fires(rule));
    world.advance(24 * 60 * MINUTE - MINUTE);
    assert_eq!(judge(&world).await, over(rule), "the first answer is a day old");
}

#[tokio::test]
async fn more_turns_of_its_own_accord_than_four_wakes_may_have_alert() {
    let world = World::born().await;
    let rule = AlertRule::ExcessiveTurns;
    let of_creator = world.session().await;
    for _ in 0..9 {
        world.answer(of_creator).await;
    }
    assert!(judge(&world).await.is_empty(), "the creator may ask for as many as he likes");
    world.store.close_session(of_creator, StopReason::Said, None, None).await.unwrap();
    let reason = Labelled::new(Label::Own, "heartbeat", "It is time.");
    let wake = WakeCause { source: WakeSource::Heartbeat, reason };
    let session = world.store.open_session(vec![wake]).await.unwrap();
    for _ in 0..4 {
        world.answer(session).await;
    }
    assert!(judge(&world).await.is_empty());
    world.answer(session).await;
    assert_eq!(judge(&world).await, fires(rule));
    world.advance(60 * MINUTE + 1);
    assert_eq!(judge(&world).await, over(rule));
}

#[tokio::test]
async fn an_hour_without_a_turn_alerts_only_if_one_was_due() {
    let mut world = World::born().await;
    let rule = AlertRule::ZeroTurnsLastHour;
    let session = world.session().await;
    world.answer(session).await;
    let sleep = SleepState { since: world.clock.now(), until: None, reason: StopReason::Said };
    world.store.close_session(session, StopReason::Said, Some(sleep), None).await.unwrap();
    for _ in 0..30 {
        world.advance(10 * MINUTE);
        assert!(judge(&world).await.is_empty(), "who has nothing to do may sleep");
    }
    world.store.receive(said("Are you there?"), None).await.unwrap();
    for _ in 0..6 {
        assert!(judge(&world).await.is_empty());
        world.advance(10 * MINUTE);
        world.crash();
    }
    assert_eq!(judge(&world).await, fires(rule));
    let session = world.session().await;
    world.answer(session).await;
    assert_eq!(judge(&world).await, over(rule));
}

#[tokio::test]
async fn a_machine_that_was_off_owes_nothing_and_snapshots_are_kept_for_a_week() {
    let world = World::born().await;
    world.session().await;
    assert!(judge(&world).await.is_empty());
    world.advance(12 * 60 * MINUTE);
    assert!(judge(&world).await.is_empty(), "it was off");
    let snapshots = || -> (u32, u32) {
        let statement = "SELECT count(DISTINCT at), count(DISTINCT name) FROM metric_snapshots";
        world.raw().query_row(statement, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
    };
    let (times, names) = snapshots();
    assert_eq!(times, 2);
    assert!(names >= 10, "{names}");
    for _ in 0..40 {
        world.advance(6 * 60 * MINUTE);
        judge(&world).await;
    }
    assert_eq!(snapshots().0, 29, "seven days at four a day, both ends");
}
