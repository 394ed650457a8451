//! A week asleep, with the configuration that everybody has: the heart beats, the
//! sandbox is tried, the balances are read, and no model is asked.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use automaton_agent::{Budgets, UnattendedBudget};
use automaton_core::event::Event;
use automaton_core::inference_budget::InferenceCeilings;
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::time::{DAY, Span, Timestamp};
use automaton_lab::days::{DaysConfig, SimulatedDays, Tariff, lived};
use automaton_script::story::Story;
use automaton_store::TaskResult;
use automaton_testkit::world::TempDir;

/// 22 November 2026, 03:13 UTC.
const BEGIN_MS: i64 = 1_795_317_180_000;
const HOUR: Span = Span::from_secs(3600);
/// Bytes by which the record may grow in a week. It grows by five million, of which up to half
/// a million are the log that SQLite has not yet folded into the file.
const GROWTH_MAX: u64 = 6_000_000;

const STORY: &str = r#"
title = "a week"
[[step]]
say = "There is nothing to do."
[[step.call]]
tool = "sleep"
arguments = { duration_seconds = 604800, reason = "nothing to do" }
[[step]]
say = "A week is over."
"#;

/// The usual prices and limits.
fn beginning(place: &Path, runs: &Arc<AtomicU64>) -> DaysConfig {
    let runs = Arc::clone(runs);
    let cents = |cents| Some(Microcents::from_cents(cents).unwrap());
    DaysConfig {
        place: place.to_owned(),
        program: super::product(),
        at: Timestamp::from_millis(BEGIN_MS),
        story: Story::parse("week", STORY).unwrap(),
        provider: None,
        creator: None,
        tariff: Tariff {
            input: Microcents::new(10_000_000),
            output: Microcents::new(40_000_000),
            answer_max: 4096,
        },
        budgets: Budgets {
            ceilings: InferenceCeilings { per_day: cents(500), ..InferenceCeilings::default() },
            envelope: UnattendedBudget { answers: Some(30), cost: cents(25) },
            ..Budgets::default()
        },
        listener: Box::new(move |stamped| {
            let ran = matches!(stamped.event, Event::HeartbeatRan { .. });
            runs.fetch_add(u64::from(ran), Ordering::Relaxed);
        }),
    }
}

/// Bytes of a database with its log.
fn bytes(database: &Path) -> u64 {
    let size = |end: &str| {
        let file = format!("{}{end}", database.display());
        fs::metadata(file).map_or(0, |found| found.len())
    };
    size("") + size("-wal")
}

#[test]
fn a_week_asleep_asks_no_model_and_writes_little() {
    #[expect(clippy::disallowed_methods, reason = "how long a week takes is what is told")]
    let watch = std::time::Instant::now();
    let dir = TempDir::in_memory().unwrap();
    let runs = Arc::default();
    for line in lived(sleep_a_week(dir.path(), &runs)).unwrap() {
        println!("{line}");
    }
    println!("{} runs in {:.1} s", runs.load(Ordering::Relaxed), watch.elapsed().as_secs_f32());
}

/// Sleeps, and tells in lines what there was after each day.
async fn sleep_a_week(place: &Path, runs: &Arc<AtomicU64>) -> Vec<String> {
    let mut days = SimulatedDays::begin(beginning(place, runs)).await.unwrap();
    days.give(MicroUsdc::new(20_000_000)).await.unwrap();
    let asleep = |event: &Event| matches!(event, Event::SleepStarted { .. });
    days.until("sleep", HOUR, asleep).await.unwrap();
    let database = days.home().join("state.db");
    let before = days.events().len();
    let (start, began) = (bytes(&database), runs.load(Ordering::Relaxed));
    let mut told = vec![format!("asleep: {start} bytes")];
    for day in 1..=7 {
        // The last second is not slept through: the week ends with it.
        let second = if day == 7 { Span::from_secs(1) } else { Span::ZERO };
        days.pass(Span::from_millis(DAY.as_millis() - second.as_millis())).await;
        let (now, ran) = (bytes(&database), runs.load(Ordering::Relaxed) - began);
        let [cloud, chain] = ["cloud.db", "chain/chain.log"].map(|file| bytes(&place.join(file)));
        told.push(format!("day {day}: {now} bytes, {ran} runs; cloud {cloud}, chain {chain}"));
    }
    let grown = bytes(&database).saturating_sub(start);
    assert!(grown < GROWTH_MAX, "it grew by {grown} bytes");
    let events = days.events();
    let asked = events[before..].iter().filter(|stamped| {
        let event = &stamped.event;
        matches!(event, Event::WakeStarted { .. } | Event::InferenceCompleted { .. })
    });
    assert_eq!(asked.count(), 0);
    let record = days.record().unwrap();
    for task in record.schedule().unwrap() {
        assert!(task.runs >= 7 * 24 && task.failures == 0, "{task:?}");
        assert_eq!(task.last_result, Some(TaskResult::Success), "{task:?}");
    }
    let wakes = |event: &Event| matches!(event, Event::WakeStarted { .. });
    days.until("the end of the week", HOUR, wakes).await.unwrap();
    let ended = days.end().await.unwrap();
    let answers = ended.iter().filter(|it| matches!(it.event, Event::InferenceCompleted { .. }));
    told.push(format!("{} answers of the model in all", answers.count()));
    told
}
