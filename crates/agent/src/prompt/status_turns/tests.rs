//! Runs of status turns: few are shown, and what is shown is seldom another.

use proptest::prelude::*;

use super::*;

/// Turns from number `first` on: `true` is one that only read the status.
fn decided(first: u64, turns: &[bool]) -> OmittedTurns {
    let tools = ["check_credits".to_owned()];
    let turn = |(seq, is_status): (u64, &bool)| StatusTurn {
        seq,
        tools: is_status.then_some(tools.as_slice()),
    };
    let turns: Vec<StatusTurn<'_>> = (first..).zip(turns).map(turn).collect();
    left_out(&turns, false)
}

/// Returns the shown numbers of turns, and sentences.
fn shown(first: u64, turns: &[bool]) -> Vec<String> {
    let OmittedTurns { turns: is_left_out, notes } = decided(first, turns);
    let mut shown = Vec::new();
    for (place, seq) in (first..).take(turns.len()).enumerate() {
        if let Some(note) = notes.get(&place) {
            shown.push(note.clone());
        }
        if !is_left_out[place] {
            shown.push(seq.to_string());
        }
    }
    shown
}

#[test]
fn of_sixteen_turns_few_are_shown_and_the_others_are_counted() {
    let note = "(12 turns that only read your own status are left out here: check_credits 12x.)";
    let mut turns = vec![true; 16];
    assert_eq!(shown(0, &turns), [note, "12", "13", "14", "15"]);
    // What follows changes nothing of it.
    turns.extend([false, true, true]);
    assert_eq!(shown(0, &turns), [note, "12", "13", "14", "15", "16", "17", "18"]);
    assert_eq!(shown(1, &[true, true, false, true]), ["1", "2", "3", "4"]);
    assert_eq!(
        shown(3, &[true; 3]),
        ["(A turn that only read your own status is left out here: check_credits 1x.)", "4", "5"]
    );
}

#[test]
fn a_turn_that_did_or_was_told_anything_else_is_none_of_a_run() {
    for name in [
        "check_credits",
        "check_usdc_balance",
        "system_synopsis",
        "heartbeat_ping",
        "list_models",
        "list_sandboxes",
        "check_inference_spending",
    ] {
        assert!(list::reads_status(name), "{name}");
    }
    for name in ["exec", "read_file", "recall_facts", "sleep", "choose_tools", "topup_credits", "x"]
    {
        assert!(!list::reads_status(name), "{name}");
    }
}

proptest! {
    /// As a life goes on, what was shown before the present run stays, and within the run it
    /// changes once in a block of turns.
    #[test]
    fn what_is_shown_is_the_beginning_of_what_is_shown_next(
        first in 0_u64..9,
        life in prop::collection::vec(prop::bool::weighted(0.8), 1..60),
    ) {
        let mut changes = 0;
        for end in 1..life.len() {
            let now = shown(first, &life[..end]);
            let next = shown(first, &life[..=end]);
            let run = life[..end].iter().rev().take_while(|is_status| **is_status).count();
            let before = shown(first, &life[..end - run]);
            prop_assert!(next.starts_with(&before), "{before:?} {next:?}");
            if !next.starts_with(&now) {
                changes += 1;
            }
            let newest = decided(first, &life[..=end]).turns;
            prop_assert!(newest.iter().rev().take(2).all(|is_left_out| !is_left_out));
        }
        prop_assert!(changes <= life.len() / usize::try_from(BLOCK).unwrap() + 1, "{changes}");
    }

    /// Wherever the history begins, the same turns are left out.
    #[test]
    fn a_cut_changes_no_decision(
        life in prop::collection::vec(prop::bool::weighted(0.8), 1..60),
        cut in 0_usize..60,
    ) {
        let cut = cut.min(life.len());
        let all = decided(0, &life).turns;
        let rest = decided(u64::try_from(cut).unwrap(), &life[cut..]).turns;
        prop_assert_eq!(&all[cut..], &rest[..]);
    }
}
