//! Properties that must hold after the month.

use automaton_core::entropy::SystemEntropy;
use automaton_core::time::Clock;
use automaton_store::{Reader, TaskResult};

use super::*;

/// Largest deviation by a jump, a death or the end of the month.
const SLACK: i64 = 6;

fn count(machine: &Machine, name: &str) -> i64 {
    let chores = machine.chores.as_ref().unwrap();
    i64::try_from(chores.ran.lock().unwrap()[name].len()).unwrap()
}

/// The runs of a task that nothing disturbed: no jump and no start of a process was
/// within the minute before.
fn quiet(machine: &Machine, name: &str) -> Vec<Ran> {
    let chores = machine.chores.as_ref().unwrap();
    let begun = machine.disturbed.lock().unwrap().clone();
    let ran = chores.ran.lock().unwrap()[name].clone();
    let disturbed = |ran: &Ran| begun.iter().any(|at| (0..61_000).contains(&(ran.true_ms - at)));
    ran.into_iter().filter(|ran| !disturbed(ran)).collect()
}

#[tokio::test(start_paused = true)]
async fn thirty_days_with_everything_that_goes_wrong() {
    let wall = Arc::new(Wall { begun: Instant::now(), off_ms: AtomicI64::new(0) });
    let clock: Arc<dyn Clock> = Arc::clone(&wall) as Arc<dyn Clock>;
    let ids = IdGenerator::new(clock, Arc::new(SystemEntropy));
    let home = tempfile::tempdir().unwrap();
    let mut machine = Machine { home, wall, ids, chores: None, disturbed: Arc::default() };
    let took = run_month(&mut machine).await;
    as_often_as_their_schedules_say(&machine);
    at_the_times_of_their_zones(&machine);
    as_the_tier_allows(&machine);
    let runs = on_record_and_bounded(&machine);
    let millis = i64::try_from(took.as_millis()).unwrap().max(1);
    // Everything runs on this thread. What it takes is told, and is no failure: no machine
    // is as quick in each hour.
    let busy = busy_ms().unwrap_or(millis).max(1);
    println!("{runs} runs in {millis} ms, {busy} ms of CPU: {} runs a second", runs * 1000 / busy);
}

/// Returns the processor time of this thread, if the kernel tells it.
fn busy_ms() -> Option<i64> {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(schedstat.split(' ').next()?.parse::<i64>().ok()? / 1_000_000)
}

fn as_often_as_their_schedules_say(machine: &Machine) {
    let near = |name: &str, wanted: i64, slack: i64| {
        let found = count(machine, name);
        assert!((found - wanted).abs() <= slack, "{name}: {found} runs, not {wanted}");
    };
    near("steady", DAYS * 720, SLACK);
    near("daily", DAYS, SLACK);
    near("every", DAYS * 96, SLACK);
    near("hangs", DAYS * 24, SLACK);
    near("wakes", DAYS * 48, SLACK);
    near("tidy", DAYS * 24, SLACK);
    // One first try and two retries each; a retry follows a run that died, too.
    near("fails", DAYS * 48 * 3, 3 * SLACK);
    near("panics", DAYS * 24 * 2, 2 * SLACK);
    // It takes 25 minutes and begins again at once; a death cuts it short.
    let slow = count(machine, "slow");
    assert!((1700..=1728 + i64::from(RESTARTS)).contains(&slow), "slow: {slow}");
}

fn at_the_times_of_their_zones(machine: &Machine) {
    let steady = quiet(machine, "steady");
    assert!(steady.len() > 21_000);
    for ran in steady {
        let late = ran.at.as_millis() % 120_000;
        assert!(late <= 2000, "{late} ms late at {}", ran.at);
    }
    // Half past two in Berlin; the night of the change has two of them and one run.
    let daily: Vec<String> =
        quiet(machine, "daily").iter().map(|ran| ran.at.to_string()[..16].to_owned()).collect();
    assert!(daily.len() > 20, "{daily:?}");
    for time in &daily {
        let hour = if time.as_str() < "2026-10-25T01:00" { "T00:30" } else { "T01:30" };
        assert!(time.ends_with(hour), "{daily:?}");
    }
    let night = daily.iter().filter(|time| time.starts_with("2026-10-25")).count();
    assert_eq!(night, 1, "{daily:?}");
}

fn as_the_tier_allows(machine: &Machine) {
    let within = |name: &str, days: std::ops::Range<i64>| {
        let chores = machine.chores.as_ref().unwrap();
        let ran = chores.ran.lock().unwrap()[name].clone();
        ran.iter().filter(|ran| days.contains(&(ran.true_ms / DAY_MS))).count()
    };
    assert!((22..=26).contains(&within("optional", 10..12)), "every fourth half-hour");
    assert!((94..=98).contains(&within("optional", 12..14)), "every half-hour");
    assert!((23..=26).contains(&within("optional", 25..26)), "as the file says now");
    assert!(within("dear", 10..12) <= 1, "it is beyond the means");
    assert!((94..=98).contains(&within("dear", 20..21)), "an unknown tier is the last known");
}

fn on_record_and_bounded(machine: &Machine) -> i64 {
    let reader = Reader::open(&machine.path()).unwrap();
    let rows = reader.schedule().unwrap();
    assert_eq!(rows.len(), chores().len());
    for row in &rows {
        // A run that died at the very end is not on record before the next start.
        let recorded = row.runs.cast_signed();
        let ran = count(machine, &row.task.name);
        assert!((0..=1).contains(&(ran - recorded)), "{}: {recorded} of {ran}", row.task.name);
        assert!(row.task.name == "slow" || row.leased.is_none(), "{row:?}");
    }
    let last = |name: &str| rows.iter().find(|row| row.task.name == name).unwrap().last_result;
    assert_eq!(last("hangs"), Some(TaskResult::Timeout));
    assert_eq!(last("panics"), Some(TaskResult::Failure));
    assert_eq!(reader.pending_wakes().unwrap().len(), 1, "one row for one cause");
    let runs: i64 = rows.iter().map(|row| row.runs.cast_signed()).sum();
    for row in &rows {
        let kept = reader.task_runs(&row.task.name, 100_000).unwrap();
        let a_week = row.runs * 9 / u64::try_from(DAYS).unwrap() + 20;
        assert!(u64::try_from(kept.len()).unwrap() <= a_week, "{}: {}", row.task.name, kept.len());
        // The same cause is told again after a day.
        let woken = kept.iter().filter(|run| run.woke).count();
        assert_eq!(
            (6..=9).contains(&woken),
            row.task.name == "wakes",
            "{}: {woken}",
            row.task.name
        );
    }
    assert!(reader.db_bytes().unwrap() < 5 << 20, "{}", reader.db_bytes().unwrap());
    runs
}
