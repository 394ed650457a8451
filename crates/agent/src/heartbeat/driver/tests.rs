//! Many tasks at once, a tick that hangs, and a change in the middle of a rest.

use std::sync::Mutex;
use std::time::Duration;

use automaton_core::entropy::SystemEntropy;
use automaton_core::faults::NoFaults;
use automaton_core::time::Clock;
use automaton_store::{ScheduleRule, TaskConfig, TaskOrigin};
use tokio::time::sleep;

use super::*;

const BEGIN_MS: i64 = 1_790_002_800_000;

/// A clock that shows the paused time of the runtime.
struct Paused(Instant);

impl Clock for Paused {
    fn now(&self) -> Timestamp {
        let passed = i64::try_from(self.0.elapsed().as_millis()).unwrap();
        Timestamp::from_millis(BEGIN_MS + passed)
    }
}

#[derive(Default)]
struct Heard(Mutex<Vec<Event>>);

impl EventSink for Heard {
    fn emit(&self, event: StampedEvent) {
        self.0.lock().unwrap().push(event.event);
    }
}

/// Tasks that take as many seconds as their names say.
struct Waits {
    look: Duration,
    began: Mutex<Vec<(String, u64)>>,
    from: Instant,
}

impl HeartbeatTasks for Arc<Waits> {
    type Tick = ();

    fn need(&self, _task: &str) -> Option<Need> {
        Some(Need::Essential)
    }

    fn read_tick(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        async { sleep(self.look).await }.map(Ok).boxed()
    }

    fn tier(&self, (): &()) -> Option<SurvivalTier> {
        None
    }

    fn perform(&self, _tick: Arc<()>, row: ScheduledTask) -> BoxFuture<'_, TaskReport> {
        let name = row.task.name;
        let secs = name.split('-').next().unwrap().parse().unwrap();
        self.began.lock().unwrap().push((name, self.from.elapsed().as_secs()));
        async move {
            sleep(Duration::from_secs(secs)).await;
            TaskReport::done("done".to_owned())
        }
        .boxed()
    }
}

fn task(name: &str, priority: u32) -> TaskConfig {
    TaskConfig {
        name: name.to_owned(),
        task: name.to_owned(),
        schedule: ScheduleRule::Every(Span::from_secs(600)),
        enabled: true,
        origin: TaskOrigin::Default,
        priority,
        tier_minimum: SurvivalTier::Dead,
        timeout: Span::from_secs(30),
        max_retries: 0,
    }
}

struct World {
    _home: tempfile::TempDir,
    waits: Arc<Waits>,
    heard: Arc<Heard>,
    around: SchedulerContext,
    driver: HeartbeatScheduler<Arc<Waits>>,
}

async fn world(look: Duration, tasks: Vec<TaskConfig>) -> World {
    let home = tempfile::tempdir().unwrap();
    let ids = IdGenerator::new(Arc::new(Paused(Instant::now())), Arc::new(SystemEntropy));
    let faults: Arc<dyn Faults> = Arc::new(NoFaults);
    let path = home.path().join("state.db");
    let store = Store::open_here(&path, ids.clone(), faults.clone(), Box::new(|| ())).unwrap();
    let offered = tasks.iter().map(|task| task.task.clone()).collect();
    let plan = ConfiguredSchedule::load(home.path().join("heartbeat.yml"), tasks, offered).unwrap();
    store.schedule_upsert(plan.begin(ids.now())).await.unwrap();
    let heard = Arc::new(Heard::default());
    let wake = Arc::default();
    let changed = Arc::default();
    let events = Arc::clone(&heard) as Arc<dyn EventSink>;
    let around = SchedulerContext { store, ids, faults, events, wake, changed };
    let waits = Arc::new(Waits { look, began: Mutex::default(), from: Instant::now() });
    let driver = HeartbeatScheduler::new(Arc::clone(&waits), around.clone(), plan);
    World { _home: home, waits, heard, around, driver }
}

#[tokio::test(start_paused = true)]
async fn four_run_at_once_and_a_slow_one_holds_up_no_other() {
    let tasks = [("90-slow", 0), ("20-a", 1), ("10-b", 2), ("5-c", 3), ("1-d", 4), ("1-e", 5)];
    let tasks = tasks.map(|(name, priority)| task(name, priority)).to_vec();
    let World { waits, around, driver, .. } = world(Duration::ZERO, tasks).await;
    // A rest ends when somebody changes the schedule, not a minute later.
    let change = async {
        sleep(Duration::from_secs(660)).await;
        let now = around.ids.now();
        let times = ScheduleTimes { anchor: now, next: now };
        around.store.schedule_one(task("1-new", 0), times).await.unwrap();
        around.changed.notify_one();
        sleep(Duration::from_secs(1)).await;
    };
    tokio::select! {
        () = driver.run() => panic!("the heart stopped"),
        () = change => {}
    }
    let began = waits.began.lock().unwrap().clone();
    let wanted = [("90-slow", 600), ("20-a", 600), ("10-b", 600), ("5-c", 600)];
    let wanted = wanted.into_iter().chain([("1-d", 605), ("1-e", 606), ("1-new", 660)]);
    assert_eq!(began, wanted.map(|(name, at)| (name.to_owned(), at)).collect::<Vec<_>>());
    let rows = around.store.schedule().await.unwrap();
    let slow = rows.iter().find(|row| row.task.name == "90-slow").unwrap();
    assert_eq!(slow.last_result, Some(TaskResult::Timeout));
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_hangs_is_told_and_goes_on() {
    let World { waits, heard, driver, .. } =
        world(Duration::from_secs(150), vec![task("1-a", 0)]).await;
    tokio::select! {
        () = driver.run() => panic!("the heart stopped"),
        () = sleep(Duration::from_secs(760)) => {}
    }
    let stalled = |event: &Event| match event {
        Event::HeartbeatStalled { waited_ms } => Some(waited_ms / 1000),
        _ => None,
    };
    let told: Vec<i64> = heard.0.lock().unwrap().iter().filter_map(stalled).collect();
    assert_eq!(told, [60, 120]);
    assert_eq!(*waits.began.lock().unwrap(), [("1-a".to_owned(), 750)]);
}
