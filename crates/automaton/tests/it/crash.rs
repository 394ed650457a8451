//! `kill -9` at every fault point, and the story goes on.
//!
//! The story counts what it does in files of the workspace: a call that ran
//! twice leaves two lines. It repeats nothing whose outcome is unknown.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use automaton_core::event::{Event, StampedEvent};
use automaton_core::faults::FaultPoint;
use automaton_core::record::{CallStatus, TurnRecord, TurnStatus};
use automaton_store::Reader;
use automaton_testkit::world::World;

use super::world;

/// Long enough for a loaded machine and a heartbeat after half a minute.
const LIMIT: Duration = Duration::from_secs(90);

/// Three calls in one turn, then a word to the creator, sleep, and an answer.
const STORY: &str = r#"
title = "crashes"
[[step]]
what = "does three things at once"
say = "Three things."
[[step.call]]
tool = "exec"
arguments = { command = "echo ran >> first" }
[[step.call]]
tool = "exec"
arguments = { command = "echo ran >> second" }
[[step.call]]
tool = "exec"
arguments = { command = "echo ran >> third" }
[[step]]
what = "tells its creator"
say = "I tell."
[[step.call]]
tool = "send_message"
arguments = { to_address = "creator", content = "Done." }
[[step]]
what = "sleeps"
say = "I sleep."
if_unknown = "again"
[[step.call]]
tool = "sleep"
arguments = { duration_seconds = 3600, reason = "done" }
[[step]]
what = "is asked"
creator = "What have you done?"
after = "asleep"
[[step]]
what = "answers"
expect.news = "What have you done?"
say = "Three things, once each."
"#;

/// The calls of one name in the record, by command.
fn execs(turns: &[TurnRecord]) -> BTreeMap<String, Vec<CallStatus>> {
    let mut found: BTreeMap<String, Vec<CallStatus>> = BTreeMap::new();
    for call in turns.iter().flat_map(|turn| &turn.calls).filter(|call| call.tool == "exec") {
        let file = ["first", "second", "third"].into_iter().find(|f| call.arguments.contains(f));
        found.entry(file.unwrap().to_owned()).or_default().push(call.status);
    }
    found
}

fn lines(world: &World, file: &str) -> usize {
    let path = world.home().join("workspace").join(file);
    fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

fn count(events: &[StampedEvent], wanted: impl Fn(&Event) -> bool) -> usize {
    events.iter().filter(|stamped| wanted(&stamped.event)).count()
}

fn crash_at(charge: &str) -> (World, Vec<StampedEvent>) {
    let world = world().story(STORY).unwrap();
    let run = world.up(&["--ask", "Do three things.", "--fault", charge]).unwrap();
    let finished = run.finish_within(LIMIT).unwrap();
    assert_eq!(finished.code, Some(0), "{charge}:\n{}\n{}", finished.stdout, finished.stderr);
    let fired = fs::read_to_string(world.home().join(".rehearsal-fired")).unwrap_or_default();
    assert_eq!(fired.trim(), charge.split(':').next().unwrap(), "the crash came");
    let restarts = count(&finished.events, |event| matches!(event, Event::AgentRestarted { .. }));
    assert_eq!(restarts, 1, "{charge}");
    let told = |event: &Event| matches!(event, Event::StoryEnded { unmet: None });
    assert_eq!(count(&finished.events, told), 1, "{charge}");
    (world, finished.events)
}

/// Nothing ran twice, nothing was lost or answered twice, whatever crashed.
fn check_once(world: &World, charge: &str) -> Vec<TurnRecord> {
    let reader = Reader::open(&world.state_db()).unwrap();
    let turns = reader.turns(1000).unwrap();
    let settled = |turn: &&TurnRecord| turn.status == TurnStatus::Committed;
    let committed: Vec<TurnRecord> = turns.iter().filter(settled).cloned().collect();
    for (file, statuses) in execs(&committed) {
        let ran = lines(world, &file);
        let done = statuses.iter().filter(|status| **status == CallStatus::Done).count();
        let unknown = statuses.iter().filter(|status| **status == CallStatus::Unknown).count();
        assert!(ran <= 1, "{charge}: {file} ran {ran} times: {statuses:?}");
        assert!(
            done <= ran && ran <= done + unknown,
            "{charge}: {file}: {statuses:?}, {ran} lines"
        );
        assert!(done + unknown == 1, "{charge}: {file}: {statuses:?}");
    }
    for message in ["Do three things.", "What have you done?"] {
        let answered =
            |turn: &&TurnRecord| turn.inputs.iter().any(|input| input.said.text == message);
        let times = committed.iter().filter(answered).count();
        assert_eq!(times, 1, "{charge}: '{message}' was answered {times} times");
    }
    let counts = reader.inbox_counts().unwrap();
    assert_eq!(
        (counts.received, counts.in_progress, counts.processed, counts.failed),
        (0, 0, 2, 0),
        "{charge}"
    );
    assert!(reader.verify_chain().unwrap().is_whole(), "{charge}");
    let outbox = reader.outbox_since(0, 100).unwrap();
    assert_eq!(outbox.iter().filter(|sent| sent.body.text == "Done.").count(), 1, "{charge}");
    committed
}

/// How the three calls of the first turn that was judged ended.
fn first_calls(turns: &[TurnRecord]) -> Vec<CallStatus> {
    let first = turns.iter().find(|turn| !turn.calls.is_empty()).unwrap();
    first.calls.iter().map(|call| call.status).collect()
}

#[test]
fn the_story_goes_on_after_a_crash_at_every_point() {
    for point in FaultPoint::AGENT {
        let charge = point.to_string();
        let (world, _) = crash_at(&charge);
        let turns = check_once(&world, &charge);
        use CallStatus::{Done, NotStarted, Unknown};
        let expected = match point {
            // The first call starts with its judgement.
            FaultPoint::JudgementStored | FaultPoint::CallStarted | FaultPoint::CallRan => {
                [Unknown, NotStarted, NotStarted]
            }
            // With its outcome the next call starts.
            FaultPoint::CallFinished => [Done, Unknown, NotStarted],
            FaultPoint::MessageReceived
            | FaultPoint::SessionOpened
            | FaultPoint::TurnOpened
            | FaultPoint::PromptBuilt
            | FaultPoint::ThoughtReceived
            | FaultPoint::TurnCommitted
            | FaultPoint::TurnIngested
            | FaultPoint::SleepStored
            | FaultPoint::TaskLeased
            | FaultPoint::TaskRan => [Done, Done, Done],
            other => unreachable!("{other} is no point of a turn"),
        };
        assert_eq!(first_calls(&turns), expected, "{charge}");
        let statuses = turns.iter().flat_map(|turn| &turn.calls).map(|call| call.status);
        let unknown = statuses.filter(|status| *status == Unknown).count();
        assert_eq!(unknown, expected.iter().filter(|s| **s == Unknown).count(), "{charge}");
    }
}

#[test]
fn every_fault_point_is_in_a_table_that_tests_walk() {
    // Those of a port are walked in `background`, those of money in `livelihood`.
    let tables: [&[FaultPoint]; 6] = [
        &FaultPoint::AGENT,
        &FaultPoint::PORT,
        &FaultPoint::PAYMENT,
        &FaultPoint::SIGNER,
        &FaultPoint::CLOUD,
        &FaultPoint::CHAIN,
    ];
    assert_eq!(tables.concat(), FaultPoint::ALL);
}

#[test]
fn a_crash_in_the_middle_of_several_calls_and_of_the_second_message() {
    use CallStatus::{Done, NotStarted, Unknown};
    let (world, _) = crash_at("call-ran:2");
    assert_eq!(first_calls(&check_once(&world, "call-ran:2")), [Done, Unknown, NotStarted]);
    let (world, _) = crash_at("message-received:2");
    check_once(&world, "message-received:2");
}

#[test]
fn a_kill_from_outside_while_a_command_runs() {
    let story = STORY.replace("echo ran >> second", "echo ran >> second; sleep 3");
    let world = world().story(&story).unwrap();
    let mut run = world.up(&["--ask", "Do three things."]).unwrap();
    let second = |event: &Event| matches!(event, Event::CallStarted { arguments, .. } if arguments.contains("second"));
    run.wait_for(second, LIMIT).unwrap();
    let workspace = world.home().join("workspace/second");
    for _ in 0..500 {
        if workspace.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    run.kill_agent().unwrap();
    let finished = run.finish_within(LIMIT).unwrap();
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.stdout, finished.stderr);
    let turns = check_once(&world, "kill");
    let calls = first_calls(&turns);
    assert_eq!(calls, [CallStatus::Done, CallStatus::Unknown, CallStatus::NotStarted]);
}

#[test]
fn a_supervisor_that_was_killed_leaves_nothing_behind_but_the_life() {
    let world = world();
    let mut first = world.up(&["--brain", "script"]).unwrap();
    first.wait_for(|event| matches!(event, Event::TurnCommitted { .. }), LIMIT).unwrap();
    first.kill().unwrap();
    drop(first);
    let rest = "title = \"rest\"\n[[step]]\nsay = \"I am still here.\"\n";
    fs::write(world.dir().join("rest.toml"), rest).unwrap();
    let finished = world.up(&["--brain", "script:rest.toml"]).unwrap().finish().unwrap();
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.stdout, finished.stderr);
    assert!(Reader::open(&world.state_db()).unwrap().verify_chain().unwrap().is_whole());
}

#[test]
fn an_agent_that_dies_again_and_again_is_given_up() {
    let world = world().story(STORY).unwrap();
    let mut run = world.up(&[]).unwrap();
    for _ in 0..5 {
        let ready = |event: &Event| matches!(event, Event::BrainReady { .. });
        run.wait_for(ready, LIMIT).unwrap();
        run.kill_agent().unwrap();
    }
    let finished = run.finish_within(LIMIT).unwrap();
    assert_eq!(finished.code, Some(2), "{}", finished.stderr);
    let sentence = "error: the agent died 5 times within 60 seconds, at last: ended by signal 9";
    assert!(finished.stderr.contains(sentence), "{}", finished.stderr);
}
