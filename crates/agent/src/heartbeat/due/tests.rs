//! The rule, asked at times that clocks of every kind may show.

use automaton_store::{ScheduleRule, TaskConfig, TaskOrigin};
use proptest::prelude::*;

use super::*;
use crate::heartbeat::tests::never_ran;

const MINUTE: i64 = 60_000;
const DAY: i64 = 86_400_000;
/// A time on a full hour.
const T0: i64 = 1_790_002_800_000;

fn t(millis: i64) -> Timestamp {
    Timestamp::from_millis(T0 + millis)
}

/// A task that stands at T0.
fn row(schedule: ScheduleRule) -> ScheduledTask {
    let times = ScheduleIter::new(&schedule).unwrap().begin(t(0));
    let task = TaskConfig {
        name: "a".to_owned(),
        task: "a".to_owned(),
        schedule,
        enabled: true,
        origin: TaskOrigin::Default,
        priority: 0,
        tier_minimum: SurvivalTier::Dead,
        timeout: Span::from_secs(30),
        max_retries: 2,
    };
    never_ran(task, times)
}

fn every(minutes: i64) -> ScheduledTask {
    row(ScheduleRule::Every(Span::from_millis(minutes * MINUTE)))
}

fn cron(expression: &str) -> ScheduledTask {
    row(ScheduleRule::Cron { expression: expression.to_owned(), zone: "UTC".to_owned() })
}

fn ask(row: &ScheduledTask, now: i64, tier: SurvivalTier) -> DueDecision {
    verdict(row, Need::Other, DueContext { now: t(now), tier, interval_multiplier: 4 }).unwrap()
}

fn rich(row: &ScheduledTask, now: i64) -> DueDecision {
    ask(row, now, SurvivalTier::Normal)
}

fn run(anchor: i64, next: i64) -> DueDecision {
    DueDecision::Run { times: ScheduleTimes { anchor: t(anchor), next: t(next) }, attempt: 0 }
}

#[test]
fn missed_times_are_one_run_and_late_ones_do_not_drift() {
    let task = every(2);
    assert_eq!(rich(&task, 2 * MINUTE - 1), DueDecision::Wait(t(2 * MINUTE)));
    assert_eq!(rich(&task, 2 * MINUTE + 777), run(2 * MINUTE, 4 * MINUTE));
    assert_eq!(rich(&task, 11 * MINUTE), run(10 * MINUTE, 12 * MINUTE));
    let task = cron("*/15 * * * *");
    assert_eq!(rich(&task, 14 * MINUTE), DueDecision::Wait(t(15 * MINUTE)));
    assert_eq!(rich(&task, 50 * MINUTE), run(50 * MINUTE, 60 * MINUTE));
}

#[test]
fn one_that_is_off_held_or_beyond_the_means_rests() {
    let off = ScheduledTask { task: TaskConfig { enabled: false, ..every(1).task }, ..every(1) };
    assert_eq!(rich(&off, DAY), DueDecision::Rest);
    let held = ScheduledTask { leased: Some((t(0), t(MINUTE * 5))), ..every(1) };
    assert_eq!(rich(&held, MINUTE), DueDecision::Rest);
    assert_eq!(rich(&held, 5 * MINUTE), run(5 * MINUTE, 6 * MINUTE), "its lease is over");
    let held = ScheduledTask { leased: Some((t(DAY), t(DAY + MINUTE))), ..every(1) };
    assert_eq!(rich(&held, MINUTE), run(MINUTE, 2 * MINUTE), "a lease of the future is none");
    let task = TaskConfig { tier_minimum: SurvivalTier::Normal, ..every(1).task };
    let dear = ScheduledTask { task, ..every(1) };
    assert_eq!(ask(&dear, MINUTE, SurvivalTier::LowCompute), DueDecision::Rest);
    assert_eq!(ask(&dear, MINUTE, SurvivalTier::Normal), run(MINUTE, 2 * MINUTE));
}

#[test]
fn the_poor_keep_every_fourth_time_of_what_is_not_essential() {
    for task in [every(15), cron("*/15 * * * *")] {
        assert_eq!(
            ask(&task, 45 * MINUTE, SurvivalTier::LowCompute),
            DueDecision::Wait(t(60 * MINUTE))
        );
        assert_eq!(ask(&task, 60 * MINUTE, SurvivalTier::Dead), run(60 * MINUTE, 75 * MINUTE));
        let context = DueContext {
            now: t(15 * MINUTE),
            tier: SurvivalTier::Critical,
            interval_multiplier: 4,
        };
        let essential = verdict(&task, Need::Essential, context).unwrap();
        assert_eq!(essential, run(15 * MINUTE, 30 * MINUTE));
    }
}

#[test]
fn a_retry_gives_way_to_the_schedules_next_time() {
    let failed = ScheduledTask { retry_at: Some(t(30_000)), attempt: 1, ..every(2) };
    assert_eq!(rich(&failed, 29_999), DueDecision::Wait(t(30_000)));
    let times = failed.times;
    assert_eq!(rich(&failed, 30_000), DueDecision::Run { times, attempt: 2 });
    assert_eq!(rich(&failed, 2 * MINUTE), run(2 * MINUTE, 4 * MINUTE), "a first try again");
    let late = ScheduledTask { retry_at: Some(t(3 * MINUTE)), ..every(2) };
    assert_eq!(rich(&late, MINUTE), DueDecision::Wait(t(2 * MINUTE)));
}

#[test]
fn a_clock_that_is_set_back_is_followed_unless_it_is_only_put_right() {
    let task = cron("*/15 * * * *");
    let DueDecision::Follow(times) = rich(&task, -DAY) else { panic!("a day is much") };
    assert_eq!(times, ScheduleTimes { anchor: t(-DAY), next: t(-DAY + 15 * MINUTE) });
    assert_eq!(rich(&task, -59_999), DueDecision::Wait(t(15 * MINUTE)), "served is served");
}

proptest! {
    /// Checks for every clock that a task that is polled at each named time runs within two of
    /// its periods, and never twice for one time.
    #[test]
    fn no_clock_starves_or_storms(
        jumps in prop::collection::vec((-2 * DAY..2 * DAY, 1_u8..20), 1..12),
        period in 1_i64..120,
    ) {
        let mut task = every(period);
        let mut now = 0;
        for (jump, steps) in jumps {
            now += jump;
            let begun = now;
            let mut runs = 0_i64;
            for _ in 0..steps {
                match rich(&task, now) {
                    DueDecision::Run { times, .. } => {
                        prop_assert!(times.next > t(now));
                        task.times = times;
                        runs += 1;
                    }
                    DueDecision::Follow(times) => task.times = times,
                    DueDecision::Wait(at) => {
                        prop_assert!(at > t(now));
                        prop_assert!(at.since(t(now)) <= Span::from_millis(period * MINUTE + MINUTE));
                        now = at.as_millis() - T0;
                    }
                    DueDecision::Rest => prop_assert!(false, "nothing holds it"),
                }
            }
            prop_assert!(runs <= (now - begun) / (period * MINUTE) + 2, "{runs}");
        }
    }
}
