//! Breakers of several origins by an injected clock.

use super::*;
use automaton_core::error::{Classified as _, ErrorClass};

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
    let one = origin("one.example");
    let other = origin("other.example");
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
    let early = breakers.admit(&one).unwrap();
    let late = breakers.admit(&one).unwrap();
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
