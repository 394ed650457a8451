//! The states of a breaker over all histories.

use proptest::prelude::*;

use super::*;

const REST: Duration = Duration::from_secs(60);
const POLICY: BreakerPolicy =
    BreakerPolicy { failures_max: 5, rest: REST, counts: CountedRequests::Probe };

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Returns a breaker after these verdicts of usual requests.
fn judged(verdicts: &[BreakerVerdict], policy: BreakerPolicy) -> Breaker {
    let mut breaker = Breaker::default();
    for verdict in verdicts {
        breaker.judge(ProbeRole::Usual, *verdict, secs(0), policy);
    }
    breaker
}

#[test]
fn a_success_begins_the_count_anew() {
    use BreakerVerdict::{Fails, Unknown, Works};
    let breaker = judged(&[Fails, Fails, Fails, Fails, Unknown], POLICY);
    assert_eq!(breaker, Breaker::Closed { failures: 4 });
    assert_eq!(judged(&[Fails, Fails, Works, Fails], POLICY), Breaker::Closed { failures: 1 });
    assert_eq!(judged(&[Fails; 5], POLICY), Breaker::Open { until: REST });
}

#[test]
fn a_service_that_asks_for_rest_gets_it_at_once() {
    let breaker = judged(&[BreakerVerdict::FailsFor(secs(7))], POLICY);
    assert_eq!(breaker, Breaker::Open { until: secs(7) });
}

#[test]
fn a_late_request_counts_by_the_policy_alone() {
    let all = BreakerPolicy { counts: CountedRequests::All, ..POLICY };
    let mut open = judged(&[BreakerVerdict::Fails; 5], POLICY);
    open.judge(ProbeRole::Usual, BreakerVerdict::Works, secs(1), POLICY);
    assert!(!open.is_closed());
    let mut failed = open;
    failed.judge(ProbeRole::Usual, BreakerVerdict::Fails, secs(1), all);
    assert_eq!(failed, Breaker::Open { until: secs(61) });
    open.judge(ProbeRole::Usual, BreakerVerdict::Works, secs(1), all);
    assert!(open.is_closed());
}

fn verdict() -> impl Strategy<Value = BreakerVerdict> {
    prop_oneof![
        Just(BreakerVerdict::Works),
        Just(BreakerVerdict::Fails),
        (0_u64..90).prop_map(|rest| BreakerVerdict::FailsFor(secs(rest))),
        Just(BreakerVerdict::Unknown),
    ]
}

proptest! {
    /// However requests overlap and end: no two probes are under way, no request is admitted
    /// before the rest is over, and a service that works is never lost.
    #[test]
    fn no_history_leads_astray(
        steps in proptest::collection::vec((any::<bool>(), verdict(), 0_u64..40), 1..200),
    ) {
        let mut now = secs(0);
        let mut breaker = Breaker::default();
        let mut under_way: Vec<ProbeRole> = Vec::new();
        for (is_request, verdict, seconds) in steps {
            now += secs(seconds);
            if is_request {
                let before = breaker;
                if let Ok(role) = breaker.admit(now) {
                    let too_early = matches!(before, Breaker::Open { until } if now < until);
                    prop_assert!(!too_early, "a request within the rest");
                    under_way.push(role);
                }
                let probes = under_way.iter().filter(|role| **role == ProbeRole::Probe).count();
                prop_assert!(probes <= 1);
            } else if let Some(role) = under_way.pop() {
                breaker.judge(role, verdict, now, POLICY);
            }
        }
        // All that is under way is given up: after the longest rest one gets through.
        for role in under_way {
            breaker.judge(role, BreakerVerdict::Unknown, now, POLICY);
        }
        let role = breaker.admit(now + secs(90)).unwrap();
        breaker.judge(role, BreakerVerdict::Works, now, POLICY);
        prop_assert_eq!(breaker, Breaker::default());
    }

    /// A probe that is given up leaves the probe to the next request, whichever requests count.
    #[test]
    fn a_probe_that_is_given_up_is_nobodys(counts_all in any::<bool>(), waited in 60_u64..99) {
        let counts = if counts_all { CountedRequests::All } else { CountedRequests::Probe };
        let policy = BreakerPolicy { counts, ..POLICY };
        let mut breaker = judged(&[BreakerVerdict::Fails; 5], policy);
        let now = secs(waited);
        prop_assert_eq!(breaker.admit(now), Ok(ProbeRole::Probe));
        prop_assert_eq!(breaker.admit(now), Err(Duration::ZERO));
        breaker.judge(ProbeRole::Probe, BreakerVerdict::Unknown, now, policy);
        prop_assert_eq!(breaker.admit(now), Ok(ProbeRole::Probe));
    }
}
