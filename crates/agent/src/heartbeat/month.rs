//! Thirty days of a heartbeat under a paused clock, with everything that goes wrong:
//! tasks that fail, hang, break down and take longer than their period; a clock that
//! jumps by a day, forward and back; a change to winter time; 200 restarts; a tier
//! that falls and one that cannot be read; a file that changes.

mod check;

use std::collections::{BTreeMap, HashSet};
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use automaton_core::faults::NoFaults;
use automaton_core::id::IdGenerator;
use automaton_core::record::WakeSource;
use automaton_core::tier::SurvivalTier;
use automaton_core::time::{Clock, DAY, Span, Timestamp};
use automaton_store::{
    Hash, NewAutomaton, RetentionPolicy, ScheduleRule, ScheduledTask, Store, StoreError,
    TaskConfig, TaskOrigin,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep};

use super::driver::HeartbeatTasks;
use super::due::Need;
use super::tasks::TaskReport;
use super::*;
use crate::deps::NoEvents;
use crate::wake::cause;

/// 5 October 2026, 00:00 UTC. Berlin's clocks go back on the 25th at 01:00 UTC.
const BEGIN_MS: i64 = 1_791_158_400_000;
const DAYS: i64 = 30;
const RESTARTS: u32 = 200;
const DAY_MS: i64 = DAY.as_millis();

/// Jumps of the wall clock, in true days, and their size.
const JUMPS: [(i64, i64); 4] = [(3, DAY_MS), (7, -DAY_MS), (17, -DAY_MS), (22, DAY_MS)];

/// A wall clock over the paused time of the runtime.
struct Wall {
    begun: Instant,
    off_ms: AtomicI64,
}

impl Wall {
    fn true_ms(&self) -> i64 {
        i64::try_from(self.begun.elapsed().as_millis()).unwrap()
    }
}

impl Clock for Wall {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(BEGIN_MS + self.true_ms() + self.off_ms.load(Ordering::SeqCst))
    }
}

/// A run: when it began, in true time and on the wall.
#[derive(Debug, Clone, Copy)]
struct Ran {
    true_ms: i64,
    at: Timestamp,
}

/// The tasks of the month, and what they saw.
#[derive(Clone)]
struct Chores {
    wall: Arc<Wall>,
    store: Store,
    active: Arc<Mutex<HashSet<String>>>,
    ran: Arc<Mutex<BTreeMap<String, Vec<Ran>>>>,
    looks: Arc<AtomicI64>,
}

/// Is there while a task runs, however its run ends.
struct Running<'a>(&'a Chores, String);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.active.lock().unwrap().remove(&self.1);
    }
}

impl Chores {
    async fn run(&self, name: &str) -> TaskReport {
        assert!(self.active.lock().unwrap().insert(name.to_owned()), "{name} runs twice at once");
        let _running = Running(self, name.to_owned());
        let ran = Ran { true_ms: self.wall.true_ms(), at: self.wall.now() };
        self.ran.lock().unwrap().entry(name.to_owned()).or_default().push(ran);
        sleep(Duration::from_millis(200)).await;
        match name {
            "fails" => return TaskReport::failed("as always".to_owned()),
            "hangs" => std::future::pending().await,
            "slow" => sleep(Duration::from_secs(25 * 60)).await,
            "panics" => resume_unwind(Box::new("broken")),
            "wakes" => {
                let cause = cause(WakeSource::Heartbeat, "It still burns.");
                return TaskReport::done(String::new()).waking(Some(cause));
            }
            "tidy" => {
                let keep_heartbeat = Span::from_millis(7 * DAY_MS);
                let keep = Span::from_millis(90 * DAY_MS);
                let limits =
                    RetentionPolicy { keep, keep_heartbeat, turns_kept: 100, rows_max: 100_000 };
                while self.store.retention(limits).await.unwrap().more {}
            }
            _ => {}
        }
        TaskReport::done("done".to_owned())
    }
}

impl HeartbeatTasks for Chores {
    type Tick = Option<SurvivalTier>;

    fn need(&self, task: &str) -> Option<Need> {
        Some(if task == "optional" { Need::Other } else { Need::Essential })
    }

    fn read_tick(&self) -> BoxFuture<'_, Result<Self::Tick, StoreError>> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        let tier = match self.wall.true_ms() / DAY_MS {
            10 | 11 => Some(SurvivalTier::LowCompute),
            20 => None,
            _ => Some(SurvivalTier::Normal),
        };
        async move { Ok(tier) }.boxed()
    }

    fn tier(&self, tick: &Self::Tick) -> Option<SurvivalTier> {
        *tick
    }

    fn perform(&self, _tick: Arc<Self::Tick>, row: ScheduledTask) -> BoxFuture<'_, TaskReport> {
        async move { self.run(&row.task.name).await }.boxed()
    }
}

fn task(name: &str, schedule: ScheduleRule) -> TaskConfig {
    TaskConfig {
        name: name.to_owned(),
        task: name.to_owned(),
        schedule,
        enabled: true,
        origin: TaskOrigin::Default,
        priority: 0,
        tier_minimum: SurvivalTier::Dead,
        timeout: Span::from_secs(30),
        max_retries: 0,
    }
}

fn cron(expression: &str, zone: &str) -> ScheduleRule {
    ScheduleRule::Cron { expression: expression.to_owned(), zone: zone.to_owned() }
}

fn chores() -> Vec<TaskConfig> {
    let minutes = |count: i64| ScheduleRule::Every(Span::from_secs(count * 60));
    vec![
        task("steady", cron("*/2 * * * *", "UTC")),
        task("daily", cron("30 2 * * *", "UTC")),
        task("every", minutes(15)),
        TaskConfig { max_retries: 2, ..task("fails", minutes(30)) },
        task("hangs", cron("5 * * * *", "UTC")),
        TaskConfig { timeout: Span::from_secs(1800), ..task("slow", minutes(10)) },
        TaskConfig { max_retries: 1, ..task("panics", minutes(60)) },
        task("optional", cron("*/30 * * * *", "UTC")),
        TaskConfig { tier_minimum: SurvivalTier::Normal, ..task("dear", minutes(15)) },
        task("wakes", minutes(30)),
        task("tidy", cron("40 * * * *", "UTC")),
    ]
}

/// The month's machine: what outlives a restart.
struct Machine {
    home: tempfile::TempDir,
    wall: Arc<Wall>,
    ids: IdGenerator,
    chores: Option<Chores>,
    /// Times of clock jumps and process starts, in true time.
    disturbed: Arc<Mutex<Vec<i64>>>,
}

impl Machine {
    fn path(&self) -> PathBuf {
        self.home.path().join("state.db")
    }

    /// Starts a process, as the life does.
    async fn start(&mut self) -> HeartbeatScheduler<Chores> {
        self.disturbed.lock().unwrap().push(self.wall.true_ms());
        let ids = self.ids.clone();
        let faults = Arc::new(NoFaults);
        let store = Store::open_here(&self.path(), ids, faults.clone(), Box::new(|| ())).unwrap();
        let genesis_sha256 = Hash::of(b"a");
        let constitution_sha256 = Hash::of(b"b");
        let born = NewAutomaton { name: "Ada".to_owned(), genesis_sha256, constitution_sha256 };
        store.birth(born).await.unwrap();
        store.recover().await.unwrap();
        let file = self.home.path().join("heartbeat.yml");
        let offered = chores().into_iter().map(|task| task.task).collect();
        let plan = ConfiguredSchedule::load(file, chores(), offered).unwrap();
        store.schedule_upsert(plan.begin(self.ids.now())).await.unwrap();
        let chores = match self.chores.take() {
            Some(before) => Chores { store: store.clone(), ..before },
            None => Chores {
                wall: Arc::clone(&self.wall),
                store: store.clone(),
                active: Arc::default(),
                ran: Arc::default(),
                looks: Arc::default(),
            },
        };
        self.chores = Some(chores.clone());
        let around = SchedulerContext {
            store,
            ids: self.ids.clone(),
            faults,
            events: Arc::new(NoEvents),
            wake: Arc::default(),
            changed: Arc::default(),
        };
        HeartbeatScheduler::new(chores, around, plan)
    }

    /// Jumps and changes that are due in true time.
    fn disturb(&self, done: &mut usize) {
        let home = self.home.path();
        let now = self.wall.true_ms();
        while let Some((day, by)) = JUMPS.get(*done).filter(|(day, _)| day * DAY_MS <= now) {
            self.wall.off_ms.fetch_add(*by, Ordering::SeqCst);
            self.disturbed.lock().unwrap().push(now);
            *done += 1;
            assert!(*day < DAYS);
        }
        if now >= 15 * DAY_MS {
            write(
                home,
                "timezone: Europe/Berlin\nentries:\n- name: optional\n  schedule: '0 * * * *'\n",
            );
        }
    }
}

fn write(home: &Path, text: &str) {
    std::fs::write(home.join("heartbeat.yml"), text).unwrap();
}

/// Lives the month; how long it took.
async fn run_month(machine: &mut Machine) -> Duration {
    #[expect(clippy::disallowed_methods, reason = "how long the test takes is what it measures")]
    let watch = std::time::Instant::now();
    write(machine.home.path(), "timezone: Europe/Berlin\n");
    let mut dice = 1_u64;
    let mut jumps = 0;
    for life in 0..=RESTARTS {
        let driver = machine.start().await;
        // A life is 0 to 7.2 hours long, so that they fill the month.
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let share = i64::try_from((dice >> 33) % 7200).unwrap();
        let planned = DAYS * DAY_MS * i64::from(life + 1) / i64::from(RESTARTS + 1);
        let last = DAYS * DAY_MS - 30_000;
        let end = if life == RESTARTS { last } else { planned + share * 1000 - 3_600_000 };
        let mut running = Box::pin(driver.run());
        while machine.wall.true_ms() < end {
            machine.disturb(&mut jumps);
            let next = JUMPS.get(jumps).map_or(i64::MAX, |(day, _)| day * DAY_MS);
            let file = Some(15 * DAY_MS).filter(|at| *at > machine.wall.true_ms());
            let until = end.min(next).min(file.unwrap_or(i64::MAX)) - machine.wall.true_ms();
            tokio::select! {
                () = &mut running => panic!("the heart stopped"),
                () = sleep(Duration::from_millis(until.unsigned_abs())) => {}
            }
        }
        // The process dies with all its tasks, and is gone for some seconds.
        drop(running);
        sleep(Duration::from_secs(dice % 20)).await;
    }
    watch.elapsed()
}
