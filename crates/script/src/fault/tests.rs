//! The fault fires once, at the right arrival, and only on a marked home.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use automaton_core::error::ErrorClass;
use tempfile::TempDir;

/// Creates a marked home in a directory of its own.
fn marked(dir: &TempDir) -> PathBuf {
    let home = dir.path().join("home");
    mark_home(&home).unwrap();
    home
}

#[test]
fn an_unmarked_home_takes_no_part() {
    let dir = TempDir::new().unwrap();
    let charge = "call-ran".parse().unwrap();
    let error = ArmedFaults::arm(charge, dir.path(), || {}).unwrap_err();
    assert!(matches!(error, FaultError::Unmarked { .. }), "{error}");
    assert_eq!(error.kind(), ErrorClass::Denied);
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join(MARKER)).unwrap();
    assert!(!is_marked(dir.path()), "a link is no marker");
}

#[test]
fn a_home_that_holds_something_cannot_be_marked() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("state.db"), "precious").unwrap();
    let error = mark_home(dir.path()).unwrap_err();
    assert!(matches!(error, FaultError::NotEmpty { .. }), "{error}");
    assert!(!is_marked(dir.path()));
}

#[test]
fn fires_at_its_arrival_over_processes_and_never_again() {
    static KILLED: AtomicU32 = AtomicU32::new(0);
    let dir = TempDir::new().unwrap();
    let home = marked(&dir);
    let process = || {
        let kill = || {
            KILLED.fetch_add(1, Ordering::SeqCst);
        };
        ArmedFaults::arm("call-ran:3".parse().unwrap(), &home, kill).unwrap()
    };
    let first = process();
    for point in [FaultPoint::CallRan, FaultPoint::CallStarted, FaultPoint::CallRan] {
        first.reach(point);
    }
    assert_eq!(KILLED.load(Ordering::SeqCst), 0);
    let second = process();
    second.reach(FaultPoint::CallRan);
    assert_eq!(KILLED.load(Ordering::SeqCst), 1, "the third arrival, in the second process");
    let third = process();
    for _ in 0..5 {
        third.reach(FaultPoint::CallRan);
    }
    assert_eq!(KILLED.load(Ordering::SeqCst), 1);
    assert_eq!(arrivals(&home).len(), 9);
    assert_eq!(arrivals(&home)[1], FaultPoint::CallStarted);
}

#[test]
fn fires_once_even_where_the_record_was_lost() {
    static KILLED: AtomicU32 = AtomicU32::new(0);
    let dir = TempDir::new().unwrap();
    let home = marked(&dir);
    for _ in 0..2 {
        let kill = || {
            KILLED.fetch_add(1, Ordering::SeqCst);
        };
        ArmedFaults::arm("task-ran".parse().unwrap(), &home, kill)
            .unwrap()
            .reach(FaultPoint::TaskRan);
        fs::remove_file(home.join(ARRIVALS)).unwrap();
    }
    assert_eq!(KILLED.load(Ordering::SeqCst), 1);
}

#[test]
fn a_charge_is_a_point_and_a_number_from_one() {
    let charge: FaultSpec = "sleep-stored:12".parse().unwrap();
    let nth = |arrival| FaultAction::Die(NonZeroU32::new(arrival).unwrap());
    assert_eq!((charge.point, charge.act), (FaultPoint::SleepStored, nth(12)));
    assert_eq!("turn-opened".parse::<FaultSpec>().unwrap().act, nth(1));
    let slow: FaultSpec = "signer-signed+200ms".parse().unwrap();
    assert_eq!(slow.point, FaultPoint::SignerSigned);
    assert_eq!(slow.act, FaultAction::Wait(Duration::from_millis(200)));
    let refused = |text: &str| text.parse::<FaultSpec>().unwrap_err().to_string();
    assert_eq!(refused("call-ran:0"), "'0' is no number of arrivals (1 to 4294967295)");
    for wait in ["", "200", "ms", "-1ms", "65536ms"] {
        let why = format!("'{wait}' is no time such as 200ms (at most 65535ms)");
        assert_eq!(refused(&format!("call-ran+{wait}")), why);
    }
    assert_eq!(refused("call-ran:"), "'' is no number of arrivals (1 to 4294967295)");
    assert_eq!(refused("lunch"), "'lunch' is no fault point");
}
