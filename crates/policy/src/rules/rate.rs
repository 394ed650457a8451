//! Pure: rules for rate limits.
//!
//! The numbers are in [`crate::rates`]. A rule only compares them with the counts.

use automaton_core::intent::Intent;

use super::{LiftedBy, Rule, RuleCheck, RuleResult, deny_if};
use crate::decision::{ReasonCode, RuleId};
use crate::facts::Facts;

const fn rule(id: &'static str, sentence: &'static str, check: RuleCheck) -> Rule {
    Rule {
        id: RuleId::new(id),
        code: ReasonCode::RateLimitExceeded,
        sentence,
        lifted_by: LiftedBy::Creator,
        check,
    }
}

/// One rule for each limit, in the same order.
pub(super) const RULES: &[Rule] = &[
    rule("rate.commands", "At most 2000 commands are run in an hour.", |i, f| check_limit(0, i, f)),
    rule("rate.messages", "At most 60 messages are sent in an hour.", |i, f| check_limit(1, i, f)),
    rule("rate.facts", "At most 1000 facts are stored in an hour.", |i, f| check_limit(2, i, f)),
    rule("rate.schedule", "The schedule changes at most 10 times in an hour.", |i, f| {
        check_limit(3, i, f)
    }),
    rule("rate.soul", "What it thinks of itself changes at most 20 times in a day.", |i, f| {
        check_limit(4, i, f)
    }),
    rule(
        "rate.genesis_prompt_daily",
        "Its genesis prompt changes at most 1 time in a day.",
        |i, f| check_limit(5, i, f),
    ),
    rule("rate.requests", "At most 120 paid requests are made in an hour.", |i, f| {
        check_limit(6, i, f)
    }),
    rule("rate.machines", "At most 3 machines are rented in an hour.", |i, f| check_limit(7, i, f)),
    rule("rate.wake_requests", "At most 300 paid requests are made in one wake.", |i, f| {
        check_limit(8, i, f)
    }),
    rule("rate.wake_machines", "At most 6 machines are rented in one wake.", |i, f| {
        check_limit(9, i, f)
    }),
    rule("rate.wake_top_ups", "At most 5 purchases of credits are made in one wake.", |i, f| {
        check_limit(10, i, f)
    }),
    rule("rate.wake_transfers", "At most 20 transfers are made in one wake.", |i, f| {
        check_limit(11, i, f)
    }),
];

fn check_limit(place: usize, intent: &Intent, facts: &Facts) -> RuleResult {
    let Some((limit, done)) = facts.attempts.count_of(place) else { return Ok(None) };
    let passed = limit.kind == intent.kind() && done >= limit.max;
    deny_if(passed, || format!("There were {done} already, with those that are not over yet."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rates::{Attempts, LIMITS, Limit};
    use crate::rules::testing::{answering, objections, samples};
    use automaton_core::time::{DAY, HOUR, RateWindow};
    use automaton_core::trust::Label;

    fn sample(kind: &str) -> Intent {
        samples().into_iter().find(|intent| intent.kind() == kind).unwrap()
    }

    #[test]
    fn each_limit_has_its_rule_with_its_figures_and_holds_to_the_last() {
        assert_eq!(RULES.len(), LIMITS.len());
        for (place, (limit, rule)) in LIMITS.iter().zip(RULES).enumerate() {
            assert_eq!(limit.rule, rule.id.as_str());
            assert!(rule.sentence.contains(&format!(" {} ", limit.max)), "{}", rule.sentence);
            let window = match limit.window {
                RateWindow::Last(HOUR) => " in an hour.",
                RateWindow::Last(span) => {
                    assert_eq!(span, DAY);
                    " in a day."
                }
                RateWindow::Wake => " in one wake.",
            };
            assert!(rule.sentence.ends_with(window), "{}", rule.sentence);
            let intent = sample(limit.kind);
            let ids = |count| {
                let mut counts = [0; LIMITS.len()];
                counts[place] = count;
                let attempts = Attempts::new(counts);
                objections(&intent, &Facts { attempts, ..answering(Label::Creator) })
            };
            assert!(ids(limit.max - 1).is_empty(), "{}", limit.rule);
            assert_eq!(ids(limit.max), [limit.rule]);
            assert_eq!(ids(u32::MAX), [limit.rule]);
        }
    }

    #[test]
    fn every_other_kind_has_no_limit_on_purpose() {
        let is_free = |kind: &&str| !LIMITS.iter().any(|limit| limit.kind == *kind);
        let free: Vec<&str> = Intent::KINDS.into_iter().filter(is_free).collect();
        // The other kinds only look, rest, or stay in the sandbox.
        let files = ["read_path", "write_path"];
        let own = ["recall", "sleep", "observe", "plead", "economise", "switch_model"];
        assert_eq!(free, [&files[..], &own, &["egress", "end_machine", "publish"]].concat());
    }

    #[test]
    fn what_was_just_allowed_counts() {
        let mut attempts = Attempts::default();
        let both = [sample("exec"), sample("exec"), Intent::Observe, sample("message")];
        attempts.add(&both);
        assert_eq!(attempts, Attempts::new([1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
        let limits: Vec<&str> = Limit::for_intents(&both).map(|limit| limit.rule).collect();
        assert_eq!(limits, ["rate.commands", "rate.messages"]);
        let both: Vec<&str> =
            Limit::for_intents(&[sample("rent")]).map(|limit| limit.rule).collect();
        assert_eq!(both, ["rate.machines", "rate.wake_machines"]);
        assert_eq!(Limit::for_intents(&[Intent::Observe, Intent::Recall]).count(), 0);
    }
}
