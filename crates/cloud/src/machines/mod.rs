//! Machines for rent: what their owners ask for, and what is done about it.
//!
//! The database says what is to be; `Machines::drive` has the driver do it, one step of one
//! machine at a time, and writes down what came of it. `reconciler` sees to what nobody asks for:
//! time, money, disks, and what a crash left. Nothing is billed here: [`crate::db`] does.

mod dial;
mod disk;
pub(crate) mod disk_space;
pub mod driver;
pub mod egress;
mod inside;
pub mod lifecycle;
mod memory;
pub(crate) mod podman;
pub mod process;
mod reconciler;
pub(crate) mod runs;
mod template;
pub mod tier;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use alloy_primitives::Address;
use automaton_core::error::chain;
use automaton_core::id::MachineId;
use automaton_core::time::Clock;
use tokio::sync::{Notify, OwnedMutexGuard, Semaphore, oneshot};
use tokio::time::timeout;

use crate::db::machines::{ChargeOutcome, Machine};
use crate::db::{Db, DbError};
use crate::error::OperatorNotifier;
use crate::tasks::TaskSet;
use driver::{BootRequest, DriverError, MachineDriver};
use lifecycle::{MachineEvent, MachineState};
use runs::CommandRuns;

/// The longest wait of a client for the end of a change, which goes on without it.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);
/// The longest time for a start, with its health check.
const BOOT_WITHIN: Duration = Duration::from_secs(30);
/// Commands at a time, of one machine and of all: each is followed by a thread, and others have
/// to be left for everything else.
const COMMANDS_MAX: usize = 16;
const ALL_COMMANDS_MAX: usize = 256;
/// Commands at a time of all machines of one owner: nobody takes what all share.
const OWNER_COMMANDS_MAX: usize = 32;
/// Connections at a time to the ports of one machine that are free, and to those that sell.
const CONNECTIONS_MAX: usize = 64;
/// The size of a disk that was not counted yet.
const UNCOUNTED: u64 = u64::MAX;
/// The size of one that cannot be counted.
pub(crate) const UNCOUNTABLE: u64 = u64::MAX - 1;
/// Said where credits run out.
const BROKE: &str = "the owner's credits ran out; buy more within 30 days and start it again";

/// All machines.
pub(crate) struct Machines {
    pub(crate) db: Db,
    pub(crate) driver: Arc<dyn MachineDriver>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) report: OperatorNotifier,
    pub(crate) tasks: TaskSet,
    pub(crate) runs: CommandRuns,
    pub(crate) commands: Arc<Semaphore>,
    bounds: MachineCapacity,
    // A std mutex, since nothing is awaited while it is held.
    owners: Mutex<HashMap<Address, Arc<Semaphore>>>,
    /// Told to the keeper, which has nothing to do where there is no machine.
    wake: Notify,
    // A std mutex, since nothing is awaited while it is held.
    live: Mutex<HashMap<MachineId, Arc<LiveMachine>>>,
}

/// The limits that all machines share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MachineCapacity {
    /// The most machines that run.
    pub(crate) in_all: u32,
    /// Bytes that their file system must have free; unset for what is usual.
    pub(crate) free_min: Option<u64>,
}

/// The state of a machine in this process.
pub(crate) struct LiveMachine {
    /// Held while it is taken from one state to another.
    drive: Arc<tokio::sync::Mutex<()>>,
    pub(crate) commands: Arc<Semaphore>,
    /// The connections to its free ports and to those with a price. Visitors of free ports never
    /// keep paying ones away.
    pub(crate) connections: [Arc<Semaphore>; 2],
    /// Held by the upload that is under way.
    uploads: tokio::sync::Mutex<()>,
    /// Held while its files are counted.
    counting: tokio::sync::Mutex<()>,
    /// Bytes of its files when they were counted, and of what was uploaded since.
    disk: AtomicU64,
    /// Thorough rounds in a row that found that its files were kept for long enough.
    expired: AtomicU32,
}

impl LiveMachine {
    fn new() -> Self {
        Self {
            drive: Arc::default(),
            commands: Arc::new(Semaphore::new(COMMANDS_MAX)),
            connections: [(); 2].map(|()| Arc::new(Semaphore::new(CONNECTIONS_MAX))),
            uploads: tokio::sync::Mutex::default(),
            counting: tokio::sync::Mutex::default(),
            disk: AtomicU64::new(UNCOUNTED),
            expired: AtomicU32::new(0),
        }
    }

    /// Returns the size of its files in bytes, once they were counted.
    pub(crate) fn disk(&self) -> Option<u64> {
        Some(self.disk.load(Ordering::Relaxed)).filter(|bytes| *bytes != UNCOUNTED)
    }

    /// So much more is there than was counted.
    fn grown(&self, bytes: u64) {
        let counted = self.disk().unwrap_or(0);
        self.disk.store(counted.saturating_add(bytes).min(UNCOUNTABLE), Ordering::Relaxed);
    }
}

impl Machines {
    pub(crate) fn new(
        db: Db,
        driver: Arc<dyn MachineDriver>,
        clock: Arc<dyn Clock>,
        report: OperatorNotifier,
        tasks: TaskSet,
        bounds: MachineCapacity,
    ) -> Arc<Self> {
        let runs = CommandRuns::default();
        let live = Mutex::default();
        let owners = Mutex::default();
        let commands = Arc::new(Semaphore::new(ALL_COMMANDS_MAX));
        Arc::new(Self {
            db,
            driver,
            clock,
            report,
            tasks,
            runs,
            commands,
            bounds,
            owners,
            wake: Notify::new(),
            live,
        })
    }

    fn all_live(&self) -> MutexGuard<'_, HashMap<MachineId, Arc<LiveMachine>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn live_machine(&self, id: MachineId) -> Arc<LiveMachine> {
        Arc::clone(self.all_live().entry(id).or_insert_with(|| Arc::new(LiveMachine::new())))
    }

    /// The commands that an owner may have under way.
    pub(crate) fn commands_of(&self, owner: Address) -> Arc<Semaphore> {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever has one under way holds it.
        owners.retain(|_, commands| Arc::strong_count(commands) > 1);
        let new = || Arc::new(Semaphore::new(OWNER_COMMANDS_MAX));
        Arc::clone(owners.entry(owner).or_insert_with(new))
    }

    /// Counts a machine's files, if nobody has yet; the bytes.
    pub(crate) async fn counted(&self, id: MachineId) -> u64 {
        let live = self.live_machine(id);
        let _one = live.counting.lock().await;
        match live.disk() {
            Some(bytes) => bytes,
            None => self.count(id, &live).await,
        }
    }

    /// Counts a machine's files anew; the bytes.
    async fn recounted(&self, id: MachineId) -> u64 {
        let live = self.live_machine(id);
        let _one = live.counting.lock().await;
        self.count(id, &live).await
    }

    async fn count(&self, id: MachineId, live: &LiveMachine) -> u64 {
        match self.driver.disk(id).await {
            Ok(bytes) => {
                let bytes = bytes.min(UNCOUNTABLE);
                live.disk.store(bytes, Ordering::Relaxed);
                bytes
            }
            Err(error) => {
                (self.report)(format!("the disk of the machine {id}: {}", chain(&error)));
                UNCOUNTABLE
            }
        }
    }

    /// Lets something happen to a machine, has it done, and tells how it is then: after a while
    /// at most, though it goes on.
    pub(crate) async fn change(
        self: &Arc<Self>,
        id: MachineId,
        event: Option<MachineEvent>,
        reason: Option<String>,
    ) -> Result<Option<Machine>, DbError> {
        self.change_holding(None, id, event, reason).await
    }

    /// Does the same for a caller that holds the machine's [`LiveMachine::drive`] already.
    async fn change_holding(
        self: &Arc<Self>,
        held: Option<OwnedMutexGuard<()>>,
        id: MachineId,
        event: Option<MachineEvent>,
        reason: Option<String>,
    ) -> Result<Option<Machine>, DbError> {
        let changed = match event {
            Some(event) => self.db.step_machine(id, event, reason).await?.is_some(),
            None => true,
        };
        if changed {
            self.wake.notify_one();
        }
        let (done, driven) = oneshot::channel();
        let own = Arc::clone(self);
        self.tasks.spawn(async move {
            let _one = match held {
                Some(held) => held,
                None => Arc::clone(&own.live_machine(id).drive).lock_owned().await,
            };
            let driven = own.drive(id).await;
            // silent-ok: whoever asked has gone.
            done.send(driven).ok();
        });
        if let Ok(Ok(driven)) = timeout(ANSWER_WITHIN, driven).await {
            driven?;
        }
        self.db.machine(id).await
    }

    /// Takes a machine to its next lasting state. The caller holds [`LiveMachine::drive`].
    async fn drive(&self, id: MachineId) -> Result<(), DbError> {
        while let Some(machine) = self.db.machine(id).await? {
            let done = match machine.state {
                MachineState::Requested => Ok((MachineEvent::BootBegun, None)),
                MachineState::Booting => Ok(self.boot(&machine).await),
                MachineState::Stopping => {
                    self.driver.stop(id).await.map(|()| (MachineEvent::Ended, None))
                }
                MachineState::Deleting => {
                    self.driver.delete(id).await.map(|()| (MachineEvent::Erased, None))
                }
                MachineState::Running | MachineState::Stopped | MachineState::Failed => {
                    return Ok(());
                }
                MachineState::Deleted => {
                    self.all_live().remove(&id);
                    return Ok(());
                }
            };
            let (event, reason) = match done {
                Ok(done) => done,
                Err(error) => {
                    self.stuck(machine.state, id, &error);
                    return Ok(());
                }
            };
            let stepped = self.db.step_machine(id, event, reason).await?;
            if stepped.is_some_and(|machine| machine.state == MachineState::Running) {
                self.charge(id).await?;
            }
        }
        Ok(())
    }

    /// Says that a machine goes no further; the keeper tries again.
    fn stuck(&self, state: MachineState, id: MachineId, error: &DriverError) {
        (self.report)(format!("the machine {id} is stuck {}: {}", state.name(), chain(error)));
    }

    async fn boot(&self, machine: &Machine) -> (MachineEvent, Option<String>) {
        let boot = BootRequest { id: machine.id, tier: machine.tier, is_new: !machine.was_healthy };
        let booted = async {
            self.admit_growth().await?;
            self.admit_boot(machine.id).await?;
            self.driver.boot(boot).await?;
            self.driver.health(machine.id).await
        };
        let why = match timeout(BOOT_WITHIN, booted).await {
            Ok(Ok(true)) => return (MachineEvent::Healthy, None),
            Ok(Ok(false)) => "it did not pass its health check".to_owned(),
            Ok(Err(error)) => chain(&error).to_string(),
            Err(_) => format!("it was not up within {} seconds", BOOT_WITHIN.as_secs()),
        };
        // What may be up is to be stopped, until it is.
        let stopped = self.driver.stop(machine.id).await;
        (
            if stopped.is_ok() { MachineEvent::BootFailed } else { MachineEvent::StopAsked },
            Some(why),
        )
    }

    /// Fails if no further machine can run.
    async fn admit_boot(&self, id: MachineId) -> Result<(), DriverError> {
        let all = self.db.machines(None).await.map_err(disk::failed("count the machines"))?;
        let runs =
            |it: &&Machine| matches!(it.state, MachineState::Booting | MachineState::Running);
        let others = all.iter().filter(runs).filter(|it| it.id != id).count();
        if others >= usize::try_from(self.bounds.in_all).unwrap_or(usize::MAX) {
            return Err(DriverError::Unavailable("as many run as can".to_owned()));
        }
        Ok(())
    }

    /// Charges a machine that is up; one that cannot be paid is to stop.
    async fn charge(&self, id: MachineId) -> Result<ChargeOutcome, DbError> {
        let outcome = self.db.charge_machine(id).await?;
        if outcome == ChargeOutcome::Broke {
            self.db.step_machine(id, MachineEvent::StopAsked, Some(BROKE.to_owned())).await?;
        }
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests;
