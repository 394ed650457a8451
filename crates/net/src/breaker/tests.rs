//! The states of a breaker by an injected clock, and what many of them do together.

use super::*;
use automaton_core::error::{Classified as _, ErrorClass};
use proptest::prelude::*;

const REST: Duration = Duration::from_secs(60);

fn origin(name: &str) -> Origin {
    format!("https://{name}").parse().unwrap()
}

/// Sends a request to an origin that fares like this.
fn send(
    breakers: &Arc<CircuitBreakers>,
    to: &Origin,
    verdict: BreakerVerdict,
) -> Result<(), Duration> {
    match breakers.admit(to) {
        Ok(pass) => {
            pass.judge(verdict);
            Ok(())
        }
        Err(NetError::CircuitOpen { again, .. }) => Err(again),
        Err(error) => panic!("{error}"),
    }
}

fn failing(to: &Origin) -> Arc<CircuitBreakers> {
    let breakers = CircuitBreakers::new(REST);
    for _ in 0..FAILURES_MAX {
        assert_eq!(send(&breakers, to, BreakerVerdict::Fails), Ok(()));
    }
    breakers
}

#[tokio::test(start_paused = true)]
async fn five_failures_in_a_row_are_enough_and_cost_no_other_origin_anything() {
    let (one, other) = (origin("one.example"), origin("other.example"));
    let breakers = CircuitBreakers::new(REST);
    for _ in 0..3 {
        for _ in 0..FAILURES_MAX - 1 {
            assert_eq!(send(&breakers, &one, BreakerVerdict::Fails), Ok(()));
        }
        assert_eq!(send(&breakers, &one, BreakerVerdict::Works), Ok(()));
    }
    let breakers = failing(&one);
    let error = breakers.admit(&one).unwrap_err();
    assert_eq!(error.kind(), ErrorClass::Transient);
    let told = "https://one.example failed 5 times in a row and is asked again in 60 s";
    assert_eq!(error.to_string(), told);
    assert_eq!(send(&breakers, &other, BreakerVerdict::Works), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn after_the_rest_one_request_decides() {
    let one = origin("one.example");
    let breakers = failing(&one);
    tokio::time::advance(REST - Duration::from_millis(1)).await;
    assert_eq!(send(&breakers, &one, BreakerVerdict::Works), Err(Duration::from_millis(1)));
    tokio::time::advance(Duration::from_millis(1)).await;
    let probe = breakers.admit(&one).unwrap();
    let error = breakers.admit(&one).unwrap_err();
    assert!(error.to_string().ends_with("is being tried again by another request"), "{error}");
    // A single failure is enough now, and the rest begins anew.
    probe.judge(BreakerVerdict::Fails);
    assert_eq!(send(&breakers, &one, BreakerVerdict::Works), Err(REST));
    tokio::time::advance(REST).await;
    assert_eq!(send(&breakers, &one, BreakerVerdict::Works), Ok(()));
    // Closed, it takes five again.
    for _ in 0..FAILURES_MAX - 1 {
        assert_eq!(send(&breakers, &one, BreakerVerdict::Fails), Ok(()));
    }
    assert_eq!(send(&breakers, &one, BreakerVerdict::Works), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_given_up_leaves_the_probe_to_the_next() {
    let one = origin("one.example");
    let breakers = failing(&one);
    tokio::time::advance(REST).await;
    drop(breakers.admit(&one).unwrap());
    assert_eq!(send(&breakers, &one, BreakerVerdict::Works), Ok(()));
    assert!(breakers.failing().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_began_before_says_nothing_afterwards() {
    let one = origin("one.example");
    let breakers = CircuitBreakers::new(REST);
    let (early, late) = (breakers.admit(&one).unwrap(), breakers.admit(&one).unwrap());
    for _ in 0..FAILURES_MAX {
        send(&breakers, &one, BreakerVerdict::Fails).unwrap();
    }
    tokio::time::advance(REST / 2).await;
    early.judge(BreakerVerdict::Works);
    assert_eq!(send(&breakers, &one, BreakerVerdict::Works), Err(REST / 2));
    tokio::time::advance(REST / 2).await;
    let probe = breakers.admit(&one).unwrap();
    late.judge(BreakerVerdict::Fails);
    probe.judge(BreakerVerdict::Works);
    assert_eq!(send(&breakers, &one, BreakerVerdict::Works), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn only_so_many_origins_are_remembered() {
    let first = origin("first.example");
    let breakers = failing(&first);
    for number in 0..ORIGINS_MAX {
        tokio::time::advance(Duration::from_millis(1)).await;
        send(&breakers, &origin(&format!("host{number}.example")), BreakerVerdict::Fails).unwrap();
    }
    assert_eq!(breakers.failing().len(), ORIGINS_MAX);
    assert_eq!(send(&breakers, &first, BreakerVerdict::Works), Ok(()));
}

proptest! {
    /// However requests overlap and end: no two probes are under way, nothing gets
    /// through before the rest is over, and an origin that works is never lost.
    #[test]
    fn no_history_leads_astray(steps in proptest::collection::vec((0_u8..6, 0_u64..40), 1..200)) {
        let mut now = Instant::now();
        let mut state = BreakerState::Closed { failures: 0 };
        let mut under_way: Vec<ProbeRole> = Vec::new();
        for (step, seconds) in steps {
            now += Duration::from_secs(seconds);
            let verdict = match step {
                0..=2 => {
                    if let Ok((next, role)) = state.admit(now) {
                        let too_early = matches!(state, BreakerState::Open { until } if now < until);
                        prop_assert!(!too_early, "a request within the rest");
                        state = next;
                        under_way.push(role);
                    }
                    let probes = under_way.iter().filter(|role| **role == ProbeRole::Probe).count();
                    prop_assert!(probes <= 1);
                    continue;
                }
                3 => BreakerVerdict::Works,
                4 => BreakerVerdict::Fails,
                _ => BreakerVerdict::Unknown,
            };
            if let Some(role) = under_way.pop() {
                state = state.judge(role, verdict, now + REST);
            }
        }
        // All that is under way is given up: after the rest one gets through.
        for role in under_way {
            state = state.judge(role, BreakerVerdict::Unknown, now + REST);
        }
        let (state, role) = state.admit(now + REST).unwrap();
        prop_assert_eq!(state.judge(role, BreakerVerdict::Works, now), BreakerState::Closed { failures: 0 });
    }
}
