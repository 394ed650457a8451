//! A life with the local model: the requests of `docs/asks.md`, five turns each.

use std::collections::BTreeSet;
use std::time::Duration;

use automaton_core::event::{Event, StampedEvent};
use automaton_core::record::CallStatus;

use super::paying_world;

/// Turns of one request.
const TURNS: usize = 5;
/// How long one request may take, on a machine that does other things too.
const LIMIT: Duration = Duration::from_secs(300);

/// The requests, as the documentation lists them.
fn asks() -> Vec<&'static str> {
    let text = include_str!("../../../../docs/asks.md");
    text.lines()
        .filter_map(|line| line.split_once(". ").filter(|(n, _)| n.len() == 1))
        .map(|(_, ask)| ask)
        .collect()
}

/// The tools of which a call has run to its end.
fn tools(events: &[StampedEvent]) -> BTreeSet<&str> {
    let done = events.iter().filter_map(|stamped| match &stamped.event {
        Event::CallFinished { tool, status: CallStatus::Done, .. } => Some(tool.as_str()),
        _ => None,
    });
    done.collect()
}

/// Milliseconds to the first token, turn by turn.
fn first_tokens(events: &[StampedEvent]) -> Vec<i64> {
    let times = events.iter().filter_map(|stamped| match &stamped.event {
        Event::InferenceCompleted { first_token_ms, .. } => Some(*first_token_ms),
        _ => None,
    });
    times.collect()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "whoever starts the test says where they are")]
#[ignore = "takes minutes, and needs the helper and its model: ./test --slow"]
fn the_local_model_carries_out_four_of_six_requests() {
    let path = |name: &str| std::env::var(name).unwrap();
    let (helper, model) = (path("AUTOMATON_TEST_HELPER"), path("AUTOMATON_TEST_MODEL"));
    let (mut carried_out, mut shares) = (0, Vec::new());
    for ask in asks() {
        let world = paying_world();
        let arguments = ["--helper", &helper, "--model", &model, "--turns", "5", "--ask", ask];
        let finished = world.up(&arguments).unwrap().finish_within(LIMIT).unwrap();
        assert_eq!(finished.code, Some(0), "{ask}: {}", finished.stderr);
        let (tools, times) = (tools(&finished.events), first_tokens(&finished.events));
        assert_eq!(times.len(), TURNS, "{ask}");
        let files = std::fs::read_dir(world.home().join("workspace")).unwrap();
        // The runtime's own folders are no work.
        let own = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with('.');
        let files = files.filter(|file| !own(&file.as_ref().unwrap().file_name())).count();
        let passes = tools.len() >= 2 && files > 0;
        carried_out += usize::from(passes);
        shares.push(times[1] * 100 / times[0].max(1));
        println!("{passes}: {ask}: {tools:?}, {files} files, first tokens after {times:?} ms");
    }
    shares.sort_unstable();
    println!("first token of turn 2, in hundredths of turn 1's: {shares:?}");
    assert_eq!(shares.len(), 6);
    assert!(carried_out >= 4, "{carried_out} of 6");
    assert!(shares[5] <= 25, "the cache of the prompt does not hold: {shares:?}");
}
