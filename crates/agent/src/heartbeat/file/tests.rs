//! Files that are right, and every way to be wrong, with its line.

use automaton_core::error::{Classified, chain};
use proptest::prelude::*;

use super::*;

fn default(name: &str, cron: &str) -> TaskConfig {
    TaskConfig {
        name: name.to_owned(),
        task: name.to_owned(),
        schedule: ScheduleRule::Cron { expression: cron.to_owned(), zone: "UTC".to_owned() },
        enabled: true,
        origin: TaskOrigin::Default,
        priority: 3,
        tier_minimum: SurvivalTier::Dead,
        timeout: Span::from_secs(30),
        max_retries: 1,
    }
}

fn parsed(text: &str) -> Result<ScheduleConfig, HeartbeatError> {
    let defaults = [default("ping", "*/15 * * * *"), default("tidy", "40 * * * *")];
    read(Path::new("/home/heartbeat.yml"), text, &defaults)
}

fn refused(text: &str) -> String {
    let error = parsed(text).unwrap_err();
    assert!(error.hint().is_some());
    chain(&error).to_string()
}

#[test]
fn nothing_in_a_file_is_the_defaults() {
    for text in ["", "\n# nothing yet\n", "entries: []\n", "entries:\n#  - name: a\n", "{}"] {
        let settled = parsed(text).unwrap();
        assert_eq!(
            (settled.tick, settled.interval_multiplier),
            (Span::from_secs(60), 4),
            "{text:?}"
        );
        assert!(settled.tasks.iter().all(|task| task.origin == TaskOrigin::Default));
    }
}

#[test]
fn an_entry_says_what_is_other_than_the_default() {
    let settled = parsed(
        "defaultIntervalMs: 5000\nlowComputeMultiplier: 2.0\ntimezone: Europe/Berlin\nentries:\n\
         - name: ping\n  schedule: '* * * * *'\n  enabled: false\n  params: {}\n\
         - name: nightly\n  task: tidy\n  intervalMs: 86400000\n  timeoutMs: 60000\n  \
         maxRetries: 3\n  tierMinimum: normal\n  priority: 9\n",
    );
    let settled = settled.unwrap();
    assert_eq!((settled.tick, settled.interval_multiplier), (Span::from_secs(5), 2));
    let zone = "Europe/Berlin".to_owned();
    let schedule = ScheduleRule::Cron { expression: "* * * * *".to_owned(), zone: zone.clone() };
    let ping =
        TaskConfig { schedule, enabled: false, origin: TaskOrigin::File, ..default("ping", "") };
    let tidy = ScheduleRule::Cron { expression: "40 * * * *".to_owned(), zone };
    let tidy = TaskConfig { schedule: tidy, ..default("tidy", "") };
    let nightly = TaskConfig {
        name: "nightly".to_owned(),
        schedule: ScheduleRule::Every(Span::from_secs(86_400)),
        origin: TaskOrigin::File,
        timeout: Span::from_secs(60),
        max_retries: 3,
        tier_minimum: SurvivalTier::Normal,
        priority: 9,
        ..tidy.clone()
    };
    assert_eq!(settled.tasks, [ping, tidy, nightly]);
}

#[test]
fn what_cannot_run_is_refused_with_its_entry_and_line() {
    let bad = refused("entries:\n- name: ping\n- name: tidy\n  schedule: 61 * * * *\n");
    assert!(bad.starts_with("/home/heartbeat.yml, line 3: the entry 'tidy' cannot run"), "{bad}");
    assert!(bad.contains("'61 * * * *' is no cron expression"), "{bad}");
    let bad = refused("entries:\n- name: ping\n  intervalMs: 0\n");
    assert!(bad.contains("line 2: the entry 'ping' cannot run: an interval of 0 ms"), "{bad}");
    for (text, says) in [
        ("defaultIntervalMs: 0\n", "line 1: defaultIntervalMs is '0', and must be 1000 to 3600000"),
        ("defaultIntervalMs: -5\n", "defaultIntervalMs is '-5'"),
        ("defaultIntervalMs: 3600001\n", "defaultIntervalMs is '3600001'"),
        ("defaultIntervalMs: soon\n", "heartbeat.yml: "),
        ("\nlowComputeMultiplier: 0\n", "line 2: lowComputeMultiplier is '0'"),
        ("lowComputeMultiplier: 1.5\n", "lowComputeMultiplier is '1.5'"),
        ("timezone: Mars/Olympus\n", "line 1: timezone is 'Mars/Olympus'"),
        ("entries:\n- task: ping\n", "missing field"),
        ("entries:\n- name: fly\n", "line 2: the task of an entry is 'fly'"),
        ("entries:\n- name: a b\n", "the name of an entry is 'a b'"),
        ("entries:\n- name: ping\n- name: ping\n", "line 3: the name of an entry is 'ping'"),
        ("entries:\n- name: ping\n  schedule: '* * * * *'\n  intervalMs: 5000\n", "either"),
        ("entries:\n- name: ping\n  timeoutMs: 0\n", "timeoutMs is '0'"),
        ("entries:\n- name: ping\n  maxRetries: 11\n", "maxRetries is '11'"),
        ("entries:\n- name: ping\n  sched: x\n", "unknown field `sched`"),
        ("entries:\n- name: ping\n  params: {a: 1}\n", "a param of an entry is 'a'"),
        ("entries: [\n", "heartbeat.yml: "),
    ] {
        let bad = refused(text);
        assert!(bad.contains(says), "{text:?}: {bad}");
    }
    let many = (0..65).map(|n| format!("- name: n{n}\n  task: ping\n")).collect::<String>();
    assert!(refused(&format!("entries:\n{many}")).contains("64 at most"));
}

proptest! {
    /// Checks that every file is read or refused by name, and that a file that is read can run.
    #[test]
    fn no_text_breaks_the_file(
        text in "(name|task|entries|schedule|intervalMs|enabled|timezone|ping|[-0-9*/:{}\\[\\],&#'\"!|>% \n]|[a-zé]){0,60}",
    ) {
        match parsed(&text) {
            Ok(settled) => {
                for task in settled.tasks {
                    prop_assert!(ScheduleIter::new(&task.schedule).is_ok());
                }
            }
            Err(error) => prop_assert!(error.to_string().contains("/home/heartbeat.yml")),
        }
    }

    #[test]
    fn every_schedule_in_an_entry_is_kept_or_refused(expression in "[-0-9*/,LW#a-z ]{1,20}") {
        let text = format!("entries: [{{name: ping, schedule: '{expression}'}}]");
        if let Ok(settled) = parsed(&text) && !expression.trim().is_empty() {
            let ScheduleRule::Cron { expression: kept, .. } = &settled.tasks[0].schedule else { panic!("{text}") };
            prop_assert_eq!(kept, &expression);
        }
    }
}
