//! Tests of when a wake goes on and when it stops.

use super::*;
use proptest::prelude::*;

fn work(print: u8) -> TurnSummary {
    TurnSummary {
        answered: false,
        spoke: false,
        cut: false,
        calls: 1,
        invalid: 0,
        done: 1,
        changed: true,
        sleep: None,
        fingerprint: [print; 32],
    }
}

fn look(print: u8) -> TurnSummary {
    TurnSummary { changed: false, ..work(print) }
}

/// Runs the turns and gives the turn and reason of the stop, if there is one.
fn stop_of(turns: &[TurnSummary]) -> Option<(usize, StopReason)> {
    let mut governor = Governor::new(Limits::default());
    turns.iter().enumerate().find_map(|(at, turn)| match governor.after_turn(turn) {
        Next::Stop(stop) => Some((at + 1, stop.reason)),
        Next::Continue { .. } => None,
    })
}

#[test]
fn three_turns_that_change_nothing_end_the_wake_and_nudges_do_not_reset() {
    let turns: Vec<_> = (0..9).map(look).collect();
    assert_eq!(stop_of(&turns), Some((3, StopReason::Idle)));
}

#[test]
fn a_message_or_a_change_resets_the_idle_count() {
    let answered = TurnSummary { answered: true, ..look(7) };
    let turns = [look(1), look(2), answered, look(3), look(4), work(5), look(6), look(8)];
    assert_eq!(stop_of(&turns), None);
}

#[test]
fn alternating_calls_are_recognised_by_arguments_and_results() {
    let alternating: Vec<_> = (0..20).map(|turn| work(turn % 2)).collect();
    assert_eq!(stop_of(&alternating), Some((8, StopReason::Repetition)));
    let same: Vec<_> = (0..20).map(|_| work(1)).collect();
    assert_eq!(stop_of(&same), Some((4, StopReason::Repetition)));
    let different: Vec<_> = (0..20).map(work).collect();
    assert_eq!(stop_of(&different), None, "the same tool with other results is work");
}

#[test]
fn a_repetition_is_told_before_it_ends_the_wake() {
    let mut governor = Governor::new(Limits::default());
    let nexts: Vec<_> = (0..4).map(|_| governor.after_turn(&work(1))).collect();
    assert_eq!(nexts[1], Next::Continue { nudge: None });
    assert!(
        matches!(nexts[2], Next::Continue { nudge: Some(text) } if text.contains("same calls"))
    );
    assert!(matches!(nexts[3], Next::Stop(Stop { reason: StopReason::Repetition, .. })));
}

#[test]
fn malformed_calls_go_back_to_the_model_twice_at_most() {
    let bad = |print| TurnSummary { calls: 2, invalid: 2, answered: true, ..look(print) };
    assert_eq!(stop_of(&[bad(1), bad(2)]), None);
    assert_eq!(stop_of(&[bad(1), bad(2), bad(3)]), Some((3, StopReason::Idle)));
}

#[test]
fn a_last_word_rests_but_a_cut_one_goes_on() {
    let said = TurnSummary { calls: 0, spoke: true, changed: false, ..work(0) };
    assert_eq!(stop_of(std::slice::from_ref(&said)), Some((1, StopReason::Said)));
    let cut = TurnSummary { cut: true, ..said };
    assert_eq!(stop_of(std::slice::from_ref(&cut)), None);
    assert_eq!(stop_of(&[cut.clone(), cut.clone(), cut]), Some((3, StopReason::Idle)));
}

#[test]
fn failures_wait_longer_and_longer_and_five_end_the_wake() {
    let mut governor = Governor::new(Limits::default());
    let waits: Vec<_> = (0..4).map(|_| governor.after_error().unwrap().as_millis()).collect();
    assert_eq!(waits, [1000, 2000, 4000, 8000]);
    let stop = governor.after_error().unwrap_err();
    assert_eq!((stop.reason, stop.sleep), (StopReason::Errors, Some(Span::from_secs(300))));
}

proptest! {
    /// Whatever a model does, a wake ends within its limit of turns.
    #[test]
    fn every_wake_ends(turns in prop::collection::vec(
        (any::<[bool; 4]>(), 0_u32..3, 0_u8..4), 25..40,
    )) {
        let turns: Vec<_> = turns.into_iter().map(|([answered, spoke, cut, changed], calls, print)| {
            TurnSummary { answered, spoke, cut, calls, changed: changed && calls > 0, ..work(print) }
        }).collect();
        let (at, _) = stop_of(&turns).expect("the wake ends");
        prop_assert!(at <= 25);
    }
}
