//! Tests of when a wake goes on and when it stops.

use super::*;
use proptest::prelude::*;

fn call(print: u8) -> CallOutcome {
    CallOutcome { print: [print; 32], failed: None }
}

/// A turn with one call, which gave something new or something known.
fn work(print: u8) -> TurnSummary {
    TurnSummary {
        answered: false,
        spoke: false,
        fault: None,
        calls: 1,
        invalid: 0,
        done: 1,
        sleep: None,
        made: vec![call(print)],
    }
}

/// A turn whose one call failed.
fn fails(print: u8, error: &str) -> TurnSummary {
    let failed = Some(error.to_owned());
    TurnSummary { done: 0, made: vec![CallOutcome { failed, ..call(print) }], ..work(print) }
}

fn silence() -> TurnSummary {
    TurnSummary { calls: 0, done: 0, made: Vec::new(), ..work(0) }
}

/// Runs the turns and gives the turn and reason of the stop, if there is one.
fn stop_of(turns: &[TurnSummary]) -> Option<(usize, StopReason)> {
    let mut governor = Governor::new(AgentLimits::default());
    turns.iter().enumerate().find_map(|(at, turn)| match governor.after_turn(turn) {
        NextAction::Stop(stop) => Some((at + 1, stop.reason)),
        NextAction::Continue { .. } => None,
    })
}

/// Returns the nudge after each of the turns.
fn nudges(turns: &[TurnSummary]) -> Vec<Option<String>> {
    let mut governor = Governor::new(AgentLimits::default());
    let next = turns.iter().map(|turn| governor.after_turn(turn));
    next.map(|next| match next {
        NextAction::Continue { nudge } => nudge,
        NextAction::Stop(stop) => Some(stop.reason.name().to_owned()),
    })
    .collect()
}

#[test]
fn reading_is_progress() {
    let turns: Vec<_> = (0..200).map(work).collect();
    assert_eq!(stop_of(&turns), None, "each read something else");
    let with_known: Vec<_> = (0..100)
        .map(|turn| TurnSummary { made: vec![call(255), call(turn)], ..work(turn) })
        .collect();
    assert_eq!(stop_of(&with_known), None, "one new call of several is enough");
}

#[test]
fn what_was_all_seen_before_ends_the_wake_after_some_turns() {
    // Longer than any repetition that is recognised as one.
    let circle: Vec<_> = (0..50).map(|turn| work(turn % 5)).collect();
    assert_eq!(stop_of(&circle), Some((5 + 8, StopReason::Idle)));
    let told = nudges(&circle);
    assert_eq!(told[5 + 4], None);
    assert!(told[5 + 5].as_ref().unwrap().contains("had not seen before"), "{told:?}");
    // To read again what was forgotten is fine, as long as something comes of it.
    let again = [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3, 4, 1, 2, 3, 6].map(work);
    assert_eq!(stop_of(&again), None);
    // A message is news.
    let mut heard: Vec<_> = circle;
    heard[10].answered = true;
    assert_eq!(stop_of(&heard), Some((10 + 1 + 8, StopReason::Idle)));
}

#[test]
fn silence_ends_the_wake_and_nudges_do_not_reset() {
    let cut = TurnSummary { fault: Some(AnswerFault::CutOff), spoke: true, ..silence() };
    assert_eq!(stop_of(&[silence(), cut.clone(), silence()]), Some((3, StopReason::Idle)));
    let mixed = [silence(), cut, work(1), silence(), silence(), work(2), silence()];
    assert_eq!(stop_of(&mixed), None);
}

#[test]
fn alternating_calls_are_recognised_by_arguments_and_results() {
    let same: Vec<_> = (0..20).map(|_| work(1)).collect();
    assert_eq!(stop_of(&same), Some((4, StopReason::Repetition)));
    let alternating: Vec<_> = (0..20).map(|turn| work(turn % 2)).collect();
    assert_eq!(stop_of(&alternating), Some((8, StopReason::Repetition)));
    let different: Vec<_> = (0..20).map(work).collect();
    assert_eq!(stop_of(&different), None, "the same tool with other results is work");
}

#[test]
fn a_repetition_is_told_before_it_ends_the_wake() {
    let told = nudges(&[work(1), work(1), work(1), work(1)]);
    assert_eq!(told[..2], [None, None]);
    assert!(told[2].as_ref().unwrap().contains("same calls"), "{told:?}");
    assert_eq!(told[3].as_deref(), Some("repetition"));
}

#[test]
fn a_call_that_fails_alike_is_told_with_its_error_and_then_ends_the_wake() {
    let failing = || fails(1, "no such file: a.txt");
    let told = nudges(&[failing(), failing(), failing(), failing()]);
    assert!(told[2].as_ref().unwrap().contains("3 times: \"no such file: a.txt\""), "{told:?}");
    assert_eq!(told[3].as_deref(), Some("repetition"));
    // Beside others, too, unless one of those did something new.
    let beside = |known| {
        let mut turn = failing();
        (turn.calls, turn.done) = (2, 1);
        turn.made.push(call(known));
        turn
    };
    let known = [beside(7), work(7), beside(7), work(8), beside(7), beside(7)];
    assert_eq!(stop_of(&known), Some((6, StopReason::Repetition)));
    let new: Vec<_> = (10..30).map(beside).collect();
    assert_eq!(stop_of(&new), None);
    assert!(nudges(&new)[4].as_ref().unwrap().contains("5 times"), "it is told all the same");
    // Not the same failure after a long while.
    let rare = (0..40).map(|turn| if turn % 5 == 0 { failing() } else { work(turn + 50) });
    assert_eq!(stop_of(&rare.collect::<Vec<_>>()), None);
    let quiet = nudges(&[fails(1, ""), fails(1, ""), fails(1, "")]).pop().flatten().unwrap();
    assert!(quiet.contains("its result says why"), "others' words are not quoted: {quiet}");
}

#[test]
fn turns_of_which_nothing_is_done_are_told_and_then_end_the_wake() {
    let turns: Vec<_> = (0..9).map(|turn| fails(turn, "not allowed")).collect();
    assert_eq!(stop_of(&turns), Some((6, StopReason::Blocked)));
    let told = nudges(&turns[..3]);
    assert_eq!(told[1], None);
    assert!(told[2].as_ref().unwrap().contains("Nothing that you tried"), "{told:?}");
}

#[test]
fn malformed_calls_go_back_to_the_model_twice_at_most() {
    let bad = |print| TurnSummary { invalid: 1, answered: true, ..fails(print, "no such tool") };
    assert_eq!(stop_of(&[bad(1), bad(2)]), None);
    assert_eq!(stop_of(&[bad(1), bad(2), bad(3)]), Some((3, StopReason::Idle)));
}

#[test]
fn a_last_word_rests_but_a_cut_one_goes_on() {
    let said = TurnSummary { spoke: true, ..silence() };
    assert_eq!(stop_of(std::slice::from_ref(&said)), Some((1, StopReason::Said)));
    let cut = TurnSummary { fault: Some(AnswerFault::CutOff), ..said };
    assert_eq!(stop_of(std::slice::from_ref(&cut)), None);
    let fine = work(1);
    assert_eq!(stop_of(&[cut.clone(), fine, cut.clone()]), None, "not in a row");
    assert_eq!(stop_of(&[cut.clone(), cut]), Some((2, StopReason::Blocked)));
}

#[test]
fn failures_wait_longer_and_longer_and_five_end_the_wake() {
    let mut governor = Governor::new(AgentLimits::default());
    let waits: Vec<_> =
        (0..4).map(|_| governor.after_error(u32::MAX, None).unwrap().as_millis()).collect();
    assert_eq!(waits, [1000, 2000, 4000, 8000]);
    let stop = governor.after_error(u32::MAX, None).unwrap_err();
    assert_eq!((stop.reason, stop.sleep), (StopReason::Errors, Some(Span::from_secs(300))));
}

#[test]
fn what_the_creator_has_to_mend_ends_the_wake_at_once() {
    let mut governor = Governor::new(AgentLimits::default());
    assert_eq!(governor.after_error(1, None).unwrap_err().reason, StopReason::Errors);
    let mut governor = Governor::new(AgentLimits::default());
    assert!(governor.after_error(2, None).is_ok());
    assert!(governor.after_error(2, None).is_err());
}

#[test]
fn a_server_that_asks_to_wait_is_heard_up_to_a_minute() {
    let seconds = |seconds| Some(Span::from_secs(seconds));
    let wait = |asked| Governor::new(AgentLimits::default()).after_error(u32::MAX, asked);
    assert_eq!(wait(seconds(0)), Ok(Span::from_secs(1)), "never sooner than without");
    assert_eq!(wait(seconds(7)), Ok(Span::from_secs(7)));
    assert_eq!(wait(seconds(60)), Ok(Span::from_secs(60)));
    let sleep = |asked| wait(asked).unwrap_err().sleep;
    assert_eq!(sleep(seconds(61)), Some(Span::from_secs(300)));
    assert_eq!(sleep(seconds(1200)), Some(Span::from_secs(1200)), "it sleeps until then");
    assert_eq!(sleep(seconds(86_400)), Some(ERRORS_MAX));
}

proptest! {
    /// A model that only ever does what it did before, or nothing, soon sleeps.
    #[test]
    fn nothing_new_ends_every_wake(turns in prop::collection::vec(
        (any::<[bool; 2]>(), 0_u32..3, 0_u8..4), 30..40,
    )) {
        let turns: Vec<_> = turns.into_iter().map(|([spoke, cut], calls, print)| {
            let made = (0..calls).map(|nth| call(print + u8::try_from(nth).unwrap())).collect();
            let fault = cut.then_some(AnswerFault::CutOff);
            TurnSummary { spoke, fault, calls, done: calls, made, ..work(print) }
        }).collect();
        let (at, _) = stop_of(&turns).expect("the wake ends");
        // Six different calls, each new once, and eight turns without news after the last.
        prop_assert!(at <= 6 * 8 + 8);
    }
}
