//! The rules at their boundaries, and what becomes of an alert. No test may need a clock.

use super::*;
use proptest::prelude::*;

const LIMITS: Thresholds = Thresholds {
    reserve: Some(Microcents::new(1000 * Microcents::PER_CENT)),
    prompt_room: Some(1000),
    inference_per_day: Some(Microcents::new(500 * Microcents::PER_CENT)),
    turns_per_wake: Some(25),
};

fn cents(cents: i64) -> Microcents {
    Microcents::from_cents(cents).unwrap()
}

fn usdc(cents: u64) -> Option<MicroUsdc> {
    Some(MicroUsdc::from_cents(cents).unwrap())
}

fn holds(rule: AlertRule, signs: AlertInputs) -> Option<bool> {
    match rule.judge(&signs, &LIMITS) {
        AlertFinding::Holds(_) => Some(true),
        AlertFinding::Fine => Some(false),
        AlertFinding::Unknown => None,
    }
}

#[test]
fn each_rule_holds_beyond_its_boundary_and_not_at_it() {
    let reserve = |credits: Option<i64>, usdc| {
        let credits = credits.map(cents);
        holds(
            AlertRule::BalanceBelowReserve,
            AlertInputs { credits, usdc, ..AlertInputs::default() },
        )
    };
    assert_eq!(reserve(Some(500), usdc(1500)), Some(false), "five dollars bought, the rest waits");
    assert_eq!(reserve(Some(500), usdc(500)), Some(false));
    assert_eq!(reserve(Some(500), usdc(499)), Some(true));
    assert_eq!(reserve(Some(1000), None), Some(false));
    assert_eq!(reserve(Some(999), None), None, "the wallet may hold the rest");
    assert_eq!(reserve(None, usdc(1)), None);
    assert_eq!(reserve(Some(-5), usdc(1004)), Some(true), "debt counts");

    let heartbeat_runs = |part, of| {
        let heartbeat_runs = Ratio { part, of };
        holds(
            AlertRule::HeartbeatHighFailureRate,
            AlertInputs { heartbeat_runs, ..AlertInputs::default() },
        )
    };
    assert_eq!(
        [heartbeat_runs(0, 0), heartbeat_runs(1, 5), heartbeat_runs(2, 9)],
        [Some(false), Some(false), Some(true)]
    );

    let denied = |part, of| {
        let decisions = Ratio { part, of };
        holds(AlertRule::PolicyHighDenyRate, AlertInputs { decisions, ..AlertInputs::default() })
    };
    assert_eq!(
        [denied(9, 9), denied(5, 10), denied(6, 10)],
        [Some(false), Some(false), Some(true)]
    );

    let context = |tokens| {
        let signs = AlertInputs { prompt_tokens: tokens, ..AlertInputs::default() };
        holds(AlertRule::ContextNearCapacity, signs)
    };
    assert_eq!(
        [context(None), context(Some(900)), context(Some(901))],
        [None, Some(false), Some(true)]
    );

    let thinking = |units| {
        let thinking = Microcents::new(units);
        holds(AlertRule::InferenceBudgetWarning, AlertInputs { thinking, ..AlertInputs::default() })
    };
    assert_eq!([thinking(400_000_000), thinking(400_000_001)], [Some(false), Some(true)]);

    let idle = |turns, secs| {
        let signs = AlertInputs { turns, owing: Span::from_secs(secs), ..AlertInputs::default() };
        holds(AlertRule::ZeroTurnsLastHour, signs)
    };
    assert_eq!(
        [idle(0, 3599), idle(0, 3600), idle(1, 3600)],
        [Some(false), Some(true), Some(false)]
    );

    let busy = |unattended_turns| {
        let signs = AlertInputs { unattended_turns, turns: 1000, ..AlertInputs::default() };
        holds(AlertRule::ExcessiveTurns, signs)
    };
    assert_eq!([busy(0), busy(100), busy(101)], [Some(false), Some(false), Some(true)]);
}

#[test]
fn what_has_no_limit_is_never_beyond_it() {
    let signs = AlertInputs {
        credits: Some(cents(-1)),
        usdc: usdc(0),
        prompt_tokens: Some(u32::MAX),
        thinking: cents(1_000_000),
        unattended_turns: u64::MAX,
        ..AlertInputs::default()
    };
    for rule in AlertRule::ALL {
        assert_eq!(rule.judge(&signs, &Thresholds::default()), AlertFinding::Fine, "{rule:?}");
    }
}

#[test]
fn only_one_that_could_think_owes_a_thought() {
    let sleep = |reason| Some(SleepState { since: Timestamp::EPOCH, until: None, reason });
    let asleep = |reason, waiting| owes(AgentState::Sleeping, sleep(reason).as_ref(), waiting);
    assert!(owes(AgentState::Running, None, false));
    assert!(asleep(StopReason::Said, true) && asleep(StopReason::Errors, true));
    assert!(!asleep(StopReason::Said, false), "who has nothing to do may sleep");
    for reason in [StopReason::Broke, StopReason::Envelope, StopReason::Budget] {
        assert!(!asleep(reason, true), "{reason:?}");
    }
    assert!(!owes(AgentState::Dead, None, true) && !owes(AgentState::Hibernating, None, true));
}

#[test]
fn an_hour_counts_only_if_it_was_looked_at() {
    let at = |minutes: i64| Timestamp::from_millis(minutes * 60_000);
    let owed = |looks: &[(i64, bool)]| {
        owing(looks.iter().map(|(minutes, owed)| (at(*minutes), *owed))).as_millis() / 60_000
    };
    assert_eq!(owed(&[]), 0);
    assert_eq!(owed(&[(90, true), (80, true), (70, true), (60, false), (50, true)]), 20);
    assert_eq!(owed(&[(90, false), (80, true)]), 0);
    assert_eq!(
        owed(&[(90, true), (66, true), (65, true), (30, true)]),
        25,
        "it was off for a while"
    );
}

/// Renders the steps of a rule: `!` it fires, `+` it began in silence, `.` it continues, `x` it
/// ended, `_` nothing.
fn story(rule: AlertRule, findings: &[(i64, AlertFinding)]) -> String {
    let mut last = None;
    let mut told = String::new();
    for (minutes, finding) in findings {
        let now = Timestamp::from_millis(minutes * 60_000);
        let step = Alert::step(last.clone(), rule, finding.clone(), now);
        told.push(match &step {
            AlertTransition::Nothing => '_',
            AlertTransition::Began(_, AlertVisibility::Fires)
            | AlertTransition::GoesOn(_, AlertVisibility::Fires) => '!',
            AlertTransition::Began(..) => '+',
            AlertTransition::GoesOn(..) => '.',
            AlertTransition::Ended(_) => 'x',
        });
        last = match step {
            AlertTransition::Nothing => last,
            AlertTransition::Began(alert, _)
            | AlertTransition::GoesOn(alert, _)
            | AlertTransition::Ended(alert) => Some(alert),
        };
    }
    told
}

#[test]
fn it_fires_on_the_edge_again_after_its_cooldown_and_ends_by_itself() {
    let bad = || AlertFinding::Holds("bad".to_owned());
    let rule = AlertRule::InferenceBudgetWarning;
    let findings = [
        (0, AlertFinding::Fine),
        (10, bad()),
        (20, bad()),
        (30, AlertFinding::Unknown),
        (39, bad()),
        (40, bad()),
        (50, AlertFinding::Fine),
        (60, AlertFinding::Fine),
        (65, bad()),
        (70, bad()),
        (80, AlertFinding::Fine),
        (200, bad()),
    ];
    assert_eq!(story(rule, &findings), "_!._.!x_+!x!");
    // A clock that is set back neither repeats it for ever nor silences it.
    assert_eq!(story(rule, &[(9000, bad()), (10, bad()), (20, bad()), (40, bad())]), "!!.!");
}

proptest! {
    #[test]
    fn no_rule_fires_more_often_than_its_cooldown_allows(
        steps in prop::collection::vec((1..40_i64, 0..3_u8), 1..60),
    ) {
        for rule in AlertRule::ALL {
            let mut last = None;
            let mut now = Timestamp::EPOCH;
            let mut fired = None::<Timestamp>;
            for (minutes, kind) in &steps {
                now = now.after(Span::from_secs(minutes * 60));
                let finding = match kind {
                    0 => AlertFinding::Fine,
                    1 => AlertFinding::Unknown,
                    _ => AlertFinding::Holds(String::new()),
                };
                last = match Alert::step(last.clone(), rule, finding, now) {
                    AlertTransition::Nothing => last,
                    AlertTransition::Ended(alert) => Some(alert),
                    AlertTransition::Began(alert, voice) | AlertTransition::GoesOn(alert, voice) => {
                        if voice == AlertVisibility::Fires {
                            prop_assert!(fired.is_none_or(|at| now.since(at) >= rule.cooldown()));
                            prop_assert!(*kind == 2 && alert.is_active() && alert.times > 0);
                            fired = Some(now);
                        }
                        Some(alert)
                    }
                };
            }
        }
    }
}
