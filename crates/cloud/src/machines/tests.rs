//! Tests of machines with an obedient driver and with a failing one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64};

use alloy_primitives::{Address, B256};
use automaton_core::id::IdGenerator;
use automaton_core::money::Microcents;
use automaton_core::time::{Span, Timestamp};
use automaton_core::wire::cloud::ExecReply;
use automaton_sqlite::chain::Hash;
use automaton_testkit::clock::FakeClock;
use automaton_testkit::entropy::SeededEntropy;
use bytes::Bytes;
use futures_util::{FutureExt as _, TryStreamExt as _, stream};

use super::driver::{
    DriverError, DriverFuture, FileRead, FileWrite, FolderListing, MachineCommand, MachineStream,
    MachineUsage, Pieces,
};
use super::tier::TIERS;
use super::*;
use crate::db::conformance::payment;
use crate::db::machines::{CreateOutcome, MachineQuota, NewMachine};
use crate::db::{BeginPaymentOutcome, Db, SettledBy};

type Told = Box<dyn Fn(MachineId) + Send>;

/// Machines that are only said to be there.
#[derive(Default)]
struct Said {
    up: Mutex<BTreeMap<MachineId, bool>>,
    /// Folders of machines.
    folders: Mutex<BTreeSet<MachineId>>,
    refusal: Mutex<Option<&'static str>>,
    ill: Mutex<bool>,
    /// Commands do not end.
    hangs: Mutex<bool>,
    stays: Mutex<bool>,
    /// Running machines do not answer.
    silent: AtomicBool,
    disk: AtomicU64,
    /// Those that have another.
    disks: Mutex<BTreeMap<MachineId, u64>>,
    /// Free bytes of the file system.
    free: AtomicU64,
    /// An upload that began leaves nothing.
    eaten: AtomicBool,
    /// Bytes freed by each machine that is stopped.
    freed: AtomicU64,
    /// The room that each upload was given; uploads under way, and the most there were.
    writes: Mutex<Vec<u64>>,
    writing: Mutex<(usize, usize)>,
    /// Told when something is stopped.
    stops: Mutex<Option<Told>>,
}

impl Said {
    fn ready<'a, T: Send + 'a>(value: Result<T, DriverError>) -> DriverFuture<'a, T> {
        Box::pin(std::future::ready(value))
    }

    fn nobody() -> DriverError {
        DriverError::Failed { what: "ask", why: "nobody answers".to_owned() }
    }
}

impl MachineDriver for Arc<Said> {
    fn boot(&self, boot: BootRequest) -> DriverFuture<'_, ()> {
        if let Some(why) = *self.refusal.lock().unwrap() {
            return Said::ready(Err(DriverError::Unavailable(why.to_owned())));
        }
        let is_new = self.folders.lock().unwrap().insert(boot.id);
        if is_new && !boot.is_new {
            return Said::ready(Err(DriverError::Gone));
        }
        self.up.lock().unwrap().insert(boot.id, true);
        Said::ready(Ok(()))
    }

    fn is_up(&self, id: MachineId) -> DriverFuture<'_, bool> {
        if self.silent.load(Ordering::Relaxed) {
            return Said::ready(Err(Said::nobody()));
        }
        Said::ready(Ok(self.up.lock().unwrap().contains_key(&id)))
    }

    fn health(&self, id: MachineId) -> DriverFuture<'_, bool> {
        let ill = *self.ill.lock().unwrap();
        Said::ready(Ok(self.up.lock().unwrap().contains_key(&id) && !ill))
    }

    fn exec(&self, _: MachineId, command: MachineCommand) -> DriverFuture<'_, ExecReply> {
        if *self.hangs.lock().unwrap() {
            return Box::pin(std::future::pending());
        }
        Said::ready(Ok(ExecReply::new(command.line, String::new(), 0)))
    }

    fn read(&self, _: MachineId, _: String) -> DriverFuture<'_, FileRead> {
        Said::ready(Err(DriverError::Down))
    }

    fn write(&self, _: MachineId, file: FileWrite) -> DriverFuture<'_, (String, u64)> {
        self.writes.lock().unwrap().push(file.bytes_max);
        if self.eaten.load(Ordering::Relaxed) {
            self.free.store(0, Ordering::Relaxed);
        }
        let (now, most) = *self.writing.lock().unwrap();
        *self.writing.lock().unwrap() = (now + 1, most.max(now + 1));
        Box::pin(async move {
            let pieces: Result<Vec<_>, _> = file.pieces.try_collect().await;
            self.writing.lock().unwrap().0 -= 1;
            Ok((file.path, pieces?.iter().map(|piece| piece.len() as u64).sum()))
        })
    }

    fn list(&self, _: MachineId, _: String) -> DriverFuture<'_, FolderListing> {
        Said::ready(Err(DriverError::Down))
    }

    fn connect(&self, _: MachineId, _: u16) -> DriverFuture<'_, Box<dyn MachineStream>> {
        Said::ready(Err(DriverError::Refused))
    }

    fn usage(&self, _: MachineId) -> DriverFuture<'_, MachineUsage> {
        Said::ready(Ok(MachineUsage::default()))
    }

    fn disk(&self, id: MachineId) -> DriverFuture<'_, u64> {
        let own = self.disks.lock().unwrap().get(&id).copied();
        Said::ready(Ok(own.unwrap_or(self.disk.load(Ordering::Relaxed))))
    }

    fn stop(&self, id: MachineId) -> DriverFuture<'_, ()> {
        if self.silent.load(Ordering::Relaxed) {
            return Said::ready(Err(Said::nobody()));
        }
        if let Some(told) = &*self.stops.lock().unwrap() {
            told(id);
        }
        if self.up.lock().unwrap().remove(&id).is_some() {
            self.free.fetch_add(self.freed.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        Said::ready(Ok(()))
    }

    fn disk_room(&self) -> DriverFuture<'_, (u64, u64)> {
        Said::ready(Ok((self.free.load(Ordering::Relaxed), u64::MAX)))
    }

    fn delete(&self, id: MachineId) -> DriverFuture<'_, ()> {
        if *self.stays.lock().unwrap() {
            let what = "remove the machine's files";
            let why = "the disk is read-only".to_owned();
            return Said::ready(Err(DriverError::Failed { what, why }));
        }
        self.up.lock().unwrap().remove(&id);
        self.folders.lock().unwrap().remove(&id);
        Said::ready(Ok(()))
    }

    fn set_aside(&self, id: MachineId) -> DriverFuture<'_, Option<String>> {
        let was = self.folders.lock().unwrap().remove(&id);
        Said::ready(Ok(was.then(|| "aside".to_owned())))
    }

    fn existing(&self) -> DriverFuture<'_, Vec<MachineId>> {
        Said::ready(Ok(self.folders.lock().unwrap().iter().copied().collect()))
    }

    fn leads_out(&self) -> bool {
        false
    }

    fn leave(&self) {
        self.up.lock().unwrap().clear();
    }
}

struct Place {
    machines: Arc<Machines>,
    driver: Arc<Said>,
    clock: FakeClock,
    ids: IdGenerator,
    told: Arc<Mutex<Vec<String>>>,
    _home: tempfile::TempDir,
}

impl Place {
    async fn new() -> Self {
        Self::of(9).await
    }

    async fn of(in_all: u32) -> Self {
        let home = tempfile::tempdir().unwrap();
        let clock = FakeClock::at(Timestamp::from_millis(1_767_323_105_000));
        let shared: Arc<dyn Clock> = Arc::new(clock.clone());
        let db = Db::open(&home.path().join("cloud.db"), Arc::clone(&shared)).unwrap();
        let BeginPaymentOutcome::New(id) = db.begin_payment(payment(1, 5)).await.unwrap() else {
            panic!()
        };
        db.mark_settled(id, SettledBy::transaction(B256::repeat_byte(1))).await.unwrap();
        let driver = Arc::new(Said::default());
        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&told);
        let report: OperatorNotifier =
            Arc::new(move |sentence| heard.lock().unwrap().push(sentence));
        let ids = IdGenerator::new(Arc::clone(&shared), Arc::new(SeededEntropy::new(1)));
        let shown: Arc<dyn MachineDriver> = Arc::new(Arc::clone(&driver));
        let bounds = MachineCapacity { in_all, free_min: Some(1_000) };
        driver.free.store(u64::MAX, Ordering::Relaxed);
        let machines = Machines::new(db, shown, shared, report, TaskSet::default(), bounds);
        Self { machines, driver, clock, ids, told, _home: home }
    }

    async fn machine(&self) -> Machine {
        let new = NewMachine {
            id: self.ids.id(),
            owner: Address::repeat_byte(1),
            name: "m".to_owned(),
            tier: TIERS[0],
            request_name: None,
            request: Hash::of(b"m"),
            limits: MachineQuota { per_owner: 9, in_all: 9, disk_gib: None, has_room: true },
        };
        let outcome = self.machines.db.create_machine(new).await.unwrap();
        let CreateOutcome::Created(machine) = outcome else { panic!("{outcome:?}") };
        self.machines.change(machine.id, None, None).await.unwrap().unwrap()
    }

    async fn now(&self, id: MachineId) -> Machine {
        self.machines.db.machine(id).await.unwrap().unwrap()
    }

    async fn round(&self, is_thorough: bool) {
        self.machines.round(is_thorough).await.unwrap();
    }

    async fn balance(&self) -> Microcents {
        self.machines.db.balance(Address::repeat_byte(1)).await.unwrap().available
    }
}

#[tokio::test]
async fn a_machine_that_cannot_be_started_costs_nothing_and_says_why() {
    let place = Place::new().await;
    *place.driver.refusal.lock().unwrap() = Some("no namespaces");
    let machine = place.machine().await;
    assert_eq!((machine.state, machine.billed_minutes), (MachineState::Failed, 0));
    assert!(machine.reason.unwrap().contains("no namespaces"));
    assert_eq!(place.balance().await, Microcents::from_cents(500).unwrap());
    *place.driver.refusal.lock().unwrap() = None;
    let started = place.machines.change(machine.id, Some(MachineEvent::StartAsked), None).await;
    let started = started.unwrap().unwrap();
    assert_eq!(
        (started.state, started.billed_minutes, started.reason),
        (MachineState::Running, 1, None)
    );
}

#[tokio::test]
async fn one_whose_processes_are_gone_is_started_again_and_billed_once() {
    let place = Place::new().await;
    let machine = place.machine().await;
    place.driver.up.lock().unwrap().clear();
    place.round(false).await;
    let again = place.now(machine.id).await;
    assert_eq!((again.state, again.billed_minutes), (MachineState::Running, 1));
    assert!(again.reason.unwrap().contains("were gone"));
    // Its files with them: it is not started as if it were new.
    place.driver.up.lock().unwrap().clear();
    place.driver.folders.lock().unwrap().clear();
    place.round(false).await;
    let lost = place.now(machine.id).await;
    assert_eq!((lost.state, lost.billed_minutes), (MachineState::Failed, 1));
    assert_eq!(lost.reason.as_deref(), Some("its files are not there any more"));
}

#[tokio::test]
async fn what_outlived_the_cloud_goes_on_and_is_billed_for_no_gap() {
    let place = Place::new().await;
    let stays = place.machine().await;
    let ends = place.machine().await;
    place.machines.db.step_machine(ends.id, MachineEvent::StopAsked, None).await.unwrap();
    for gap in [240, 0] {
        place.clock.step(Span::from_secs(gap));
        place.machines.db.restart_machines(Bytes::new()).await.unwrap();
        assert_eq!(place.driver.up.lock().unwrap().contains_key(&ends.id), gap > 0);
        place.round(true).await;
        let now = place.now(stays.id).await;
        assert_eq!((now.state, now.billed_minutes), (MachineState::Running, 2), "after {gap} s");
        // Its end was asked for before; what is not billed is not up.
        assert_eq!(place.now(ends.id).await.state, MachineState::Stopped);
    }
    assert_eq!(place.driver.up.lock().unwrap().keys().collect::<Vec<_>>(), [&stays.id]);
    assert_eq!(place.machines.db.check_books().await.unwrap().faults, 0);
}

#[tokio::test]
async fn of_what_nobody_answers_nothing_is_believed() {
    let place = Place::new().await;
    let runs = place.machine().await;
    let ends = place.machine().await;
    place.driver.silent.store(true, Ordering::Relaxed);
    place.round(true).await;
    let now = place.now(runs.id).await;
    assert_eq!((now.state, now.reason), (MachineState::Running, None), "it may be up");
    let stopping = place.machines.change(ends.id, Some(MachineEvent::StopAsked), None).await;
    assert_eq!(stopping.unwrap().unwrap().state, MachineState::Stopping);
    assert!(place.told.lock().unwrap().iter().any(|it| it.contains("nobody answers")));
    place.clock.step(Span::from_secs(120));
    place.round(true).await;
    assert_eq!(place.now(ends.id).await.state, MachineState::Stopping, "it may be up");
    *place.driver.ill.lock().unwrap() = true;
    place.machines.db.step_machine(runs.id, MachineEvent::Lost, None).await.unwrap();
    place.round(true).await;
    let now = place.now(runs.id).await;
    assert_eq!(now.state, MachineState::Stopping, "it came up, and nobody ended it");
    place.driver.silent.store(false, Ordering::Relaxed);
    place.round(true).await;
    for id in [runs.id, ends.id] {
        assert_eq!(place.now(id).await.state, MachineState::Stopped);
    }
    let why = place.now(runs.id).await.reason.unwrap();
    assert!(why.contains("health check"), "{why}");
}

#[tokio::test]
async fn one_that_is_ill_is_billed_while_it_is_up_and_started_again_at_last() {
    let place = Place::new().await;
    let machine = place.machine().await;
    *place.driver.ill.lock().unwrap() = true;
    place.clock.step(Span::from_secs(120));
    place.round(false).await;
    let ill = place.now(machine.id).await;
    assert_eq!((ill.state, ill.billed_minutes), (MachineState::Running, 3), "it can be used");
    for _ in 0..2 {
        place.clock.step(Span::from_secs(100));
        place.round(false).await;
    }
    let failed = place.now(machine.id).await;
    assert_eq!((failed.state, failed.billed_minutes), (MachineState::Failed, 6), "it is ill still");
}

#[tokio::test]
async fn one_that_is_ill_has_no_more_disk_than_another() {
    let place = Place::new().await;
    let machine = place.machine().await;
    *place.driver.ill.lock().unwrap() = true;
    place.driver.disk.store((5 << 30) + 1, Ordering::Relaxed);
    place.clock.step(Span::from_secs(60));
    place.round(false).await;
    assert_eq!(place.now(machine.id).await.state, MachineState::Stopped);
}

#[tokio::test]
async fn nobody_else_is_at_a_machine_while_the_keeper_stops_it() {
    let place = Place::new().await;
    let machine = place.machine().await;
    let machines = Arc::clone(&place.machines);
    let free = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&free);
    *place.driver.stops.lock().unwrap() = Some(Box::new(move |id| {
        seen.lock().unwrap().push(machines.live_machine(id).drive.try_lock().is_ok());
    }));
    *place.driver.ill.lock().unwrap() = true;
    place.clock.step(Span::from_secs(320));
    place.round(false).await;
    assert_eq!(place.now(machine.id).await.state, MachineState::Failed);
    // As it is ill, and as it is ill still after it was started again.
    assert_eq!(*free.lock().unwrap(), [false, false]);
    *place.driver.stops.lock().unwrap() = None;
}

#[tokio::test]
async fn an_owner_has_so_many_commands_under_way_whatever_the_machines() {
    let place = Place::new().await;
    *place.driver.hangs.lock().unwrap() = true;
    let machines = [place.machine().await, place.machine().await, place.machine().await];
    let run = async |machine: &Machine| {
        let command = MachineCommand { line: "x".to_owned(), wall: Duration::from_secs(1) };
        let key = Hash::of(b"k");
        let request = Hash::of(b"x");
        let asked =
            runs::RunRequest { key, name: None, request, machine: machine.clone(), command };
        place.machines.run(asked).unwrap().response().await.status().as_u16()
    };
    for machine in machines.iter().cycle().take(OWNER_COMMANDS_MAX) {
        assert_eq!(run(machine).await, 200);
    }
    assert_eq!(run(&machines[2]).await, 429);
    let other = Machine { owner: Address::repeat_byte(2), ..machines[2].clone() };
    assert_eq!(run(&other).await, 200);
}

#[tokio::test]
async fn as_many_run_as_may_and_those_that_stand_still_are_not_counted() {
    let place = Place::of(1).await;
    let first = place.machine().await.id;
    let second = place.machine().await;
    assert_eq!(second.state, MachineState::Failed, "one runs");
    assert!(second.reason.unwrap().contains("as many run as can"));
    for (event, id, state) in [
        (MachineEvent::StopAsked, first, MachineState::Stopped),
        (MachineEvent::StartAsked, second.id, MachineState::Running),
        (MachineEvent::StartAsked, first, MachineState::Failed),
        (MachineEvent::StopAsked, second.id, MachineState::Stopped),
        (MachineEvent::StartAsked, first, MachineState::Running),
    ] {
        let changed = place.machines.change(id, Some(event), None).await.unwrap();
        assert_eq!(changed.unwrap().state, state, "{event:?}");
    }
}

#[tokio::test]
async fn a_disk_that_is_too_full_stops_a_machine() {
    let place = Place::new().await;
    let machine = place.machine().await;
    place.driver.disk.store((5 << 30) + 1, Ordering::Relaxed);
    place.round(false).await;
    assert_eq!(
        place.now(machine.id).await.state,
        MachineState::Running,
        "it is counted by the minute"
    );
    place.clock.step(Span::from_secs(60));
    place.round(false).await;
    let stopped = place.now(machine.id).await;
    assert_eq!((stopped.state, stopped.billed_minutes), (MachineState::Stopped, 2));
    assert!(stopped.reason.unwrap().contains("5 GiB"));
    // Nor may it have one that cannot be counted.
    place.driver.disk.store(u64::MAX, Ordering::Relaxed);
    place.machines.change(machine.id, Some(MachineEvent::StartAsked), None).await.unwrap();
    place.clock.step(Span::from_secs(60));
    place.round(false).await;
    let stopped = place.now(machine.id).await;
    assert_eq!(stopped.state, MachineState::Stopped);
    assert!(stopped.reason.unwrap().contains("cannot be counted"));
}

#[tokio::test]
async fn uploads_into_a_machine_share_its_room() {
    let place = Place::new().await;
    let machine = place.machine().await;
    let write = |pieces: Pieces| place.machines.write(&machine, "a".to_owned(), pieces);
    let whole = || Box::pin(stream::iter([Ok(Bytes::from(vec![0; 700]))]));
    let go = Arc::new(Notify::new());
    let slow = {
        let go = Arc::clone(&go);
        async move {
            go.notified().await;
            Ok(Bytes::from(vec![0; 300]))
        }
    };
    let release = async {
        for _ in 0..99 {
            tokio::task::yield_now().await;
        }
        go.notify_one();
    };
    let (one, two, ()) = tokio::join!(write(Box::pin(slow.into_stream())), write(whole()), release);
    assert_eq!((one.unwrap().1, two.unwrap().1), (300, 700));
    let room = 5 << 30;
    assert_eq!(*place.driver.writes.lock().unwrap(), [room, room - 300]);
    assert_eq!(place.driver.writing.lock().unwrap().1, 1, "one at a time");
    // What its programs wrote after they were last counted.
    place.machines.change(machine.id, Some(MachineEvent::StopAsked), None).await.unwrap();
    place.driver.disk.store(room - 10, Ordering::Relaxed);
    write(whole()).await.unwrap();
    assert_eq!(place.driver.writes.lock().unwrap()[2], 10);
}

#[tokio::test]
async fn where_the_disk_beneath_all_is_nearly_full_nothing_grows() {
    let place = Place::new().await;
    let small = place.machine().await;
    let large = place.machine().await;
    let least = place.machine().await;
    for (machine, bytes) in [(&small, 20), (&large, 30), (&least, 10)] {
        place.driver.disks.lock().unwrap().insert(machine.id, bytes);
    }
    let states = async || {
        let of = async |machine: &Machine| place.now(machine.id).await.state;
        [of(&large).await, of(&small).await, of(&least).await]
    };
    place.driver.free.store(1_001, Ordering::Relaxed);
    place.round(false).await;
    assert_eq!(states().await, [MachineState::Running; 3]);
    // What is held open without a name is free again when its machine is stopped.
    place.driver.free.store(900, Ordering::Relaxed);
    place.driver.freed.store(60, Ordering::Relaxed);
    place.round(false).await;
    assert_eq!(
        states().await,
        [MachineState::Stopped, MachineState::Stopped, MachineState::Running]
    );
    assert_eq!(place.now(large.id).await.reason.as_deref(), Some(disk_space::NO_ROOM));
    place.driver.free.store(1_000, Ordering::Relaxed);
    let again = place.machines.change(large.id, Some(MachineEvent::StartAsked), None).await;
    let again = again.unwrap().unwrap();
    assert_eq!(again.state, MachineState::Failed);
    assert!(again.reason.unwrap().contains("nearly full"));
    assert_eq!(place.machine().await.state, MachineState::Failed, "nothing is made");
    let write = |bytes: Vec<u8>| {
        let pieces = Box::pin(stream::iter([Ok(Bytes::from(bytes)), Ok(Bytes::from("x"))]));
        place.machines.write(&least, "a".to_owned(), pieces)
    };
    assert!(matches!(write(vec![0]).await, Err(DriverError::Unavailable(_))));
    place.driver.free.store(1_005, Ordering::Relaxed);
    write(vec![0]).await.unwrap();
    assert_eq!(*place.driver.writes.lock().unwrap(), [5]);
    // An upload looks again on its way.
    place.driver.eaten.store(true, Ordering::Relaxed);
    assert!(matches!(write(vec![0; 16 << 20]).await, Err(DriverError::Unavailable(_))));
}

#[tokio::test]
async fn what_was_left_halfway_goes_on_and_what_nobody_has_is_put_aside() {
    let place = Place::new().await;
    let machine = place.machine().await;
    *place.driver.stays.lock().unwrap() = true;
    let kept = place.machines.change(machine.id, Some(MachineEvent::DeleteAsked), None).await;
    assert_eq!(kept.unwrap().unwrap().state, MachineState::Deleting);
    assert!(place.told.lock().unwrap().iter().any(|it| it.contains("read-only")));
    *place.driver.stays.lock().unwrap() = false;
    place.round(false).await;
    assert_eq!(place.now(machine.id).await.state, MachineState::Deleting);
    place.round(true).await;
    let gone = place.now(machine.id).await;
    assert_eq!((gone.state, gone.billed_minutes), (MachineState::Deleted, 1));

    let kept = place.machine().await;
    let orphan = place.ids.id();
    place.driver.folders.lock().unwrap().insert(orphan);
    place.machines.reconcile().await.unwrap();
    assert_eq!(*place.driver.folders.lock().unwrap(), BTreeSet::from([kept.id]));
    place.machines.reconcile().await.unwrap();
    let told = place.told.lock().unwrap().clone();
    let told: Vec<_> = told.iter().filter(|it| it.contains("is not recorded")).collect();
    assert!(told.len() == 1 && told[0].ends_with("its files are kept in aside"), "{told:?}");
    let stopped = place.machines.change(kept.id, Some(MachineEvent::StopAsked), None).await;
    assert_eq!(stopped.unwrap().unwrap().state, MachineState::Stopped);
    place.clock.step(Span::from_secs(30 * 24 * 3600 - 1));
    place.round(true).await;
    assert_eq!(place.now(kept.id).await.state, MachineState::Stopped);
    // A clock that is wrong erases nothing: it has to say so for a day.
    place.clock.step(Span::from_secs(1));
    for _ in 0..reconciler::ERASED_AFTER {
        place.round(true).await;
    }
    place.clock.set(place.clock.now().before(Span::from_secs(1)));
    place.round(true).await;
    assert_eq!(place.now(kept.id).await.state, MachineState::Stopped);
    place.clock.step(Span::from_secs(1));
    for _ in 0..=reconciler::ERASED_AFTER {
        assert_eq!(place.now(kept.id).await.state, MachineState::Stopped);
        place.round(true).await;
    }
    assert_eq!(place.now(kept.id).await.state, MachineState::Deleted);
    assert_eq!(place.machines.db.check_books().await.unwrap().faults, 0);
}
