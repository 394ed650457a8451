//! The heartbeat of a life: what it does by itself, what its creator's file says, and
//! what the automaton does to it.

use std::sync::Arc;
use std::time::Duration;

use automaton_agent::{AgentError, Pace, Settings, live};
use automaton_core::error::{Classified, ErrorClass, chain};
use automaton_core::event::Event;
use automaton_core::faults::NoFaults;
use automaton_store::{TaskOrigin, TaskResult};
use serde_json::json;
use tokio::sync::watch;

use crate::brain::{Brain, Move};
use crate::life::{Events, Home, deps, settings};

fn patient(home: &Home) -> Settings {
    let pace = Pace { turns_max: None, sleep_cap: None };
    Settings { pace, ..settings(home.path(), 1) }
}

/// Lives until something is true, for half a minute at most.
async fn lives_until(
    home: &Home,
    brain: &Arc<Brain>,
    done: impl Fn(&[Event]) -> bool,
) -> Vec<Event> {
    let store = home.store(Arc::new(NoFaults)).await;
    let events = Arc::new(Events::default());
    let deps = deps(&store, Arc::clone(brain), Arc::clone(&events));
    let (end, shutdown) = watch::channel(false);
    let watching = async {
        for _ in 0..1200 {
            tokio::time::sleep(Duration::from_millis(25)).await;
            if done(&events.all()) {
                break;
            }
        }
        end.send(true).unwrap();
    };
    let (ended, ()) = tokio::join!(live(patient(home), deps, shutdown), watching);
    ended.unwrap();
    events.all()
}

fn ran(events: &[Event], name: &str) -> usize {
    let of = |event: &&Event| matches!(event, Event::HeartbeatRan { task, .. } if task == name);
    events.iter().filter(of).count()
}

#[tokio::test]
async fn a_sandbox_that_fails_is_told_once_and_a_file_that_changes_is_followed() {
    let home = Home::new();
    let file = home.path().join("heartbeat.yml");
    // At no quarter of an hour in which the test may run.
    let fast = "defaultIntervalMs: 1000\nentries:\n- name: heartbeat_ping\n  schedule: 0 0 1 1 *\n\
                - name: health_check\n  intervalMs: 1000\n";
    std::fs::write(&file, fast).unwrap();
    let brain = Arc::new(Brain::new(8192, &[], Move::Say("Fine.")));
    let told = |events: &[Event]| ran(events, "health_check") >= 3 && brain.asked().len() >= 2;
    let events = lives_until(&home, &brain, told).await;
    assert_eq!(ran(&events, "heartbeat_ping"), 1, "it says at birth that it is there");
    let runs = home.reader().task_runs("health_check", 100).unwrap();
    assert!(runs.iter().all(|run| run.result == TaskResult::Failure), "{runs:?}");
    assert_eq!(runs.iter().filter(|run| run.woke).count(), 1, "{runs:?}");
    let asked = brain.asked();
    assert!(asked[1].contains("Commands do not run in your sandbox any more."), "{}", asked[1]);
    assert_eq!(asked.len(), 2, "the second failure wakes nobody");

    // What stays of it is how it went; a mistake changes nothing and is told once.
    std::fs::write(&file, format!("{fast}  maxRetries: 0\n")).unwrap();
    let broken = |events: &[Event]| {
        if ran(events, "health_check") == 1 {
            std::fs::write(&file, "entries: [{name: fly}]").unwrap();
        }
        ran(events, "health_check") >= 4
    };
    let events = lives_until(&home, &brain, broken).await;
    let mistakes = events.iter().filter(|event| {
        matches!(event, Event::ErrorReported { error, .. } if error.contains("line 1: the task of an entry is 'fly'"))
    });
    assert_eq!(mistakes.count(), 1);
    let rows = home.reader().schedule().unwrap();
    let row = rows.iter().find(|row| row.task.name == "health_check").unwrap();
    assert!(row.runs >= 7 && row.task.max_retries == 0, "{row:?}");
}

#[tokio::test]
async fn a_file_that_cannot_be_used_ends_the_start_with_its_line() {
    let home = Home::new();
    let bad = "entries:\n- name: heartbeat_ping\n  schedule: every day\n";
    std::fs::write(home.path().join("heartbeat.yml"), bad).unwrap();
    let store = home.store(Arc::new(NoFaults)).await;
    let brain = Arc::new(Brain::new(8192, &[], Move::Say("Fine.")));
    let deps = deps(&store, brain, Arc::new(Events::default()));
    let (_keep, shutdown) = watch::channel(false);
    let error = live(patient(&home), deps, shutdown).await.unwrap_err();
    assert!(matches!(error, AgentError::Heartbeat(_)), "{error:?}");
    assert_eq!(error.kind(), ErrorClass::Config);
    let text = chain(&error).to_string();
    assert!(
        text.contains("line 2: the entry 'heartbeat_ping' cannot run: 'every day' is no cron"),
        "{text}"
    );
}

#[tokio::test]
async fn it_may_change_its_own_schedule_but_not_what_its_creator_set() {
    let home = Home::new();
    let modify = |arguments| ("modify_heartbeat", arguments);
    let moves = [Move::Call(vec![
        modify(json!({ "name": "heartbeat_ping", "schedule": "*/20 * * * *" })),
        modify(json!({ "name": "nightly", "task": "state_maintenance", "schedule": "0 3 * * *" })),
        modify(json!({ "name": "health_check", "enabled": true })),
        modify(json!({ "name": "heartbeat_ping", "enabled": false })),
    ])];
    let brain = Arc::new(Brain::new(8192, &moves, Move::Say("Fine.")));
    lives_until(&home, &brain, |_| brain.asked().len() >= 2).await;
    let calls: Vec<_> = home.turns().into_iter().flat_map(|turn| turn.calls).collect();
    let results: Vec<_> =
        calls.iter().map(|call| call.result.as_ref().unwrap().text.clone()).collect();
    for (result, says) in results.iter().zip([
        "'heartbeat_ping' is on: */20 * * * * UTC, next at ",
        "'nightly' is on: 0 3 * * * UTC, next at ",
        "your creator has set 'health_check' in heartbeat.yml",
        "'heartbeat_ping' keeps you alive or your record whole",
    ]) {
        assert!(result.contains(says), "{result}");
    }
    // A restart keeps both.
    let brain = Arc::new(Brain::new(8192, &[], Move::Say("Fine.")));
    lives_until(&home, &brain, |_| true).await;
    let rows = home.reader().schedule().unwrap();
    let schedule = |name: &str| {
        let row = rows.iter().find(|row| row.task.name == name).unwrap();
        (row.task.schedule.to_string(), row.task.origin)
    };
    assert_eq!(schedule("heartbeat_ping"), ("*/20 * * * * UTC".to_owned(), TaskOrigin::Agent));
    assert_eq!(schedule("nightly"), ("0 3 * * * UTC".to_owned(), TaskOrigin::Agent));
    assert_eq!(schedule("health_check").1, TaskOrigin::File);
}
