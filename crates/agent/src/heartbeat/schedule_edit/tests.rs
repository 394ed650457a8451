//! Permitted and refused changes of the automaton to its schedule.

use automaton_core::error::chain;
use automaton_core::tier::SurvivalTier;

use super::*;
use crate::heartbeat::task_runner::defaults;
use crate::heartbeat::tasks::TASKS;
use crate::heartbeat::tests::never_ran;

const NOW: Timestamp = Timestamp::from_millis(1_790_002_800_000);

fn offered() -> Vec<(&'static TaskSpec, TaskConfig)> {
    TASKS.iter().copied().zip(defaults()).collect()
}

fn row(task: TaskConfig) -> ScheduledTask {
    let times = ScheduleIter::new(&task.schedule).unwrap().begin(NOW.before(Span::from_secs(60)));
    never_ran(task, times)
}

fn default(name: &str) -> ScheduledTask {
    row(defaults().into_iter().find(|task| task.name == name).unwrap())
}

fn asked(name: &str) -> ScheduleChange {
    let name = name.to_owned();
    ScheduleChange { name, task: None, cron: None, interval: None, enabled: None, action: None }
}

fn cron(name: &str, expression: &str) -> ScheduleChange {
    ScheduleChange { cron: Some(expression.to_owned()), ..asked(name) }
}

fn kept(row: Option<&ScheduledTask>, asked: ScheduleChange) -> (TaskConfig, ScheduleTimes) {
    match change(row, &offered(), asked, NOW).unwrap() {
        ScheduleEdit::Kept(task, times) => (task, times),
        ScheduleEdit::Removed(name) => panic!("{name} was removed"),
    }
}

fn refused(row: Option<&ScheduledTask>, asked: ScheduleChange) -> String {
    chain(&change(row, &offered(), asked, NOW).unwrap_err()).to_string()
}

#[test]
fn an_entry_is_added_or_changed_and_is_its_own_then() {
    let task = Some("health_check".to_owned());
    let interval = Some(Span::from_secs(7200));
    let new = ScheduleChange { task, interval, ..asked("nightly") };
    let (entry, times) = kept(None, new);
    assert_eq!((entry.origin, entry.task.as_str()), (TaskOrigin::Agent, "health_check"));
    assert_eq!((times.anchor, times.next), (NOW, NOW.after(Span::from_secs(7200))));
    assert_eq!((entry.enabled, entry.tier_minimum), (true, SurvivalTier::Dead));
    let (changed, _) =
        kept(Some(&default("heartbeat_ping")), cron("heartbeat_ping", "*/20 * * * *"));
    assert!(
        matches!(changed.schedule, ScheduleRule::Cron { ref expression, .. } if expression == "*/20 * * * *")
    );
    // To turn something off and on again is no reason to count anew.
    let models = default("refresh_models");
    let off = ScheduleChange { enabled: Some(false), ..asked("refresh_models") };
    let (off, times) = kept(Some(&models), off);
    assert_eq!((off.enabled, times), (false, models.times));
}

#[test]
fn an_action_says_what_must_be_there_and_what_becomes_of_it() {
    use ScheduleAction::{Add, Disable, Enable, Remove, Update};
    let to = |action, change| ScheduleChange { action: Some(action), ..change };
    let mine = row(TaskConfig {
        name: "mine".to_owned(),
        origin: TaskOrigin::Agent,
        ..default("health_check").task
    });
    let added = ScheduleChange { task: Some("health_check".to_owned()), ..asked("mine") };
    assert_eq!(kept(None, to(Add, added)).0.name, "mine");
    assert!(!kept(Some(&mine), to(Disable, asked("mine"))).0.enabled);
    assert!(kept(Some(&mine), to(Enable, asked("mine"))).0.enabled);
    assert_eq!(
        kept(Some(&mine), to(Update, cron("mine", "0 3 * * *"))).0.origin,
        TaskOrigin::Agent
    );
    let gone = change(Some(&mine), &offered(), to(Remove, asked("mine")), NOW).unwrap();
    assert!(matches!(gone, ScheduleEdit::Removed(name) if name == "mine"));
    // What keeps it alive is as it was at birth, and does not go.
    let seldom = kept(Some(&default("heartbeat_ping")), cron("heartbeat_ping", "0 * * * *")).0;
    let again = kept(Some(&row(seldom)), to(Remove, asked("heartbeat_ping"))).0;
    assert_eq!(again, default("heartbeat_ping").task);
    let both = ScheduleChange { enabled: Some(true), ..to(Disable, asked("mine")) };
    for ((row, asked), says) in [
        ((Some(&mine), to(Add, asked("mine"))), "there is an entry 'mine' already"),
        ((None, to(Update, asked("mine"))), "there is no entry 'mine'; there are heartbeat_ping,"),
        ((None, to(Remove, asked("mine"))), "there is no entry 'mine'"),
        ((Some(&mine), both), "enabled and disabled at once"),
        (
            (Some(&default("heartbeat_ping")), to(Disable, asked("heartbeat_ping"))),
            "cannot be turned off",
        ),
    ] {
        let why = refused(row, asked);
        assert!(why.contains(says), "{why}");
    }
}

#[test]
fn what_is_out_of_bounds_is_refused_and_says_why() {
    let ping = default("heartbeat_ping");
    let theirs = row(TaskConfig { origin: TaskOrigin::File, ..ping.task.clone() });
    let interval =
        |secs| ScheduleChange { interval: Some(Span::from_secs(secs)), ..asked("heartbeat_ping") };
    let off = |name| ScheduleChange { enabled: Some(false), ..asked(name) };
    let ping_too = |change| (Some(&ping), change);
    for ((row, asked), says) in [
        ((Some(&theirs), cron("heartbeat_ping", "* * * * *")), "only that file changes it"),
        (ping_too(cron("heartbeat_ping", "*/30 * * * * *")), "would run every 30.0 s"),
        (ping_too(interval(59)), "at most once in 60.0 s"),
        (ping_too(interval(3601)), "it must run at least once in 60.0 min"),
        (ping_too(cron("heartbeat_ping", "0 0 1 1 *")), "would wait"),
        (ping_too(cron("heartbeat_ping", "soon")), "is no cron expression"),
        (ping_too(off("heartbeat_ping")), "cannot be turned off"),
        ((Some(&default("state_maintenance")), off("state_maintenance")), "cannot be turned off"),
        ((None, cron("a b", "* * * * *")), "no name of an entry"),
        ((None, cron("mine", "* * * * *")), "there is no task 'mine'; there are heartbeat_ping,"),
        (
            ping_too(ScheduleChange {
                task: Some("health_check".to_owned()),
                ..asked("heartbeat_ping")
            }),
            "another task",
        ),
        (
            ping_too(ScheduleChange {
                interval: Some(Span::from_secs(900)),
                ..cron("heartbeat_ping", "* * * * *")
            }),
            "not both",
        ),
    ] {
        let why = refused(row, asked);
        assert!(why.contains(says), "{why}");
    }
}
