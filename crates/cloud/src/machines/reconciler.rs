//! Maintains machines without being asked: one task, one round after the other.
//!
//! Each round checks that the running machines are there, charges the minutes that are due, and
//! counts the disks at the same time. A thorough round, the first and one a minute, also resumes
//! unfinished changes, ends states that lasted too long, and compares the recorded machines with
//! the existing ones. Must never erase files without a request: a database that is lost, or older
//! than the files, takes none of them along.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use automaton_core::error::chain;
use automaton_core::id::MachineId;
use automaton_core::time::Timestamp;
use futures_util::{StreamExt as _, stream};
use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant, timeout};

use super::lifecycle::{MachineEvent, MachineState};
use super::{Machines, UNCOUNTABLE};
use crate::db::DbError;
use crate::db::machines::{ChargeOutcome, MINUTE, Machine};

/// Between two rounds, and where there is no machine.
const PAUSE: Duration = Duration::from_secs(2);
const IDLE: Duration = Duration::from_secs(60);
/// The time between thorough rounds.
const THOROUGH_EVERY: Duration = Duration::from_secs(60);
/// Thorough rounds, one a minute, that have to find that files were kept for long enough before
/// they are erased: a clock may be wrong, and an owner has to have had a day to come.
pub(super) const ERASED_AFTER: u32 = 24 * 60;
/// Machines that are looked at at the same time.
pub(super) const TOGETHER: usize = 8;

impl Machines {
    /// Works until it is dropped.
    pub(crate) async fn run_reconciler(self: Arc<Self>) {
        let mut last: Option<Instant> = None;
        loop {
            // However often it is woken.
            let is_thorough = last.is_none_or(|last| last.elapsed() >= THOROUGH_EVERY);
            if is_thorough {
                last = Some(Instant::now());
            }
            let kept = async {
                if is_thorough {
                    self.reconcile().await?;
                }
                self.round(is_thorough).await
            };
            let pause = match kept.await {
                Ok(0) => IDLE,
                Ok(_) => PAUSE,
                Err(error) => {
                    (self.report)(format!("the machines have to wait: {}", chain(&error)));
                    PAUSE
                }
            };
            // silent-ok: it is time, or there is something to look after.
            timeout(pause, self.wake.notified()).await.ok();
        }
    }

    /// Puts aside what exists of machines that are not recorded.
    pub(super) async fn reconcile(&self) -> Result<(), DbError> {
        // In this order: a row is there before anything else of its machine.
        let existing = match self.driver.existing().await {
            Ok(existing) => existing,
            Err(error) => {
                (self.report)(format!("the machines cannot be listed: {}", chain(&error)));
                return Ok(());
            }
        };
        let recorded = self.db.machines(None).await?;
        let recorded: HashSet<_> = recorded.iter().map(|machine| machine.id).collect();
        for id in existing.into_iter().filter(|id| !recorded.contains(id)) {
            match self.driver.set_aside(id).await {
                Ok(None) => {}
                Ok(Some(aside)) => (self.report)(format!(
                    "the machine {id} is not recorded; its files are kept in {aside}"
                )),
                Err(error) => self.stuck(MachineState::Deleting, id, &error),
            }
        }
        Ok(())
    }

    /// Looks after all machines; their number.
    pub(super) async fn round(self: &Arc<Self>, is_thorough: bool) -> Result<usize, DbError> {
        if self.spare().await == Some(0) {
            self.make_room().await?;
        }
        let machines = self.db.machines(None).await?;
        let many = machines.len();
        let all = stream::iter(machines).for_each_concurrent(TOGETHER, async |machine| {
            let id = machine.id;
            if let Err(error) = self.reconcile_machine(id, is_thorough).await {
                (self.report)(format!("the machine {id} has to wait: {}", chain(&error)));
            }
        });
        all.await;
        Ok(many)
    }

    async fn reconcile_machine(
        self: &Arc<Self>,
        id: MachineId,
        is_thorough: bool,
    ) -> Result<(), DbError> {
        // Or somebody is at it. Until we are done nobody else is, so what is read now holds.
        let Ok(held) = Arc::clone(&self.live_machine(id).drive).try_lock_owned() else {
            return Ok(());
        };
        let Some(machine) = self.db.machine(id).await? else { return Ok(()) };
        let now = self.clock.now();
        let is_over = machine.state.limit().is_some_and(|limit| machine.since.after(limit) <= now);
        let is_steady = matches!(machine.state, MachineState::Stopped | MachineState::Failed);
        if is_steady && is_thorough && !self.reconcile_stopped(id, is_over).await {
            return Ok(());
        }
        match machine.state {
            MachineState::Running => match self.driver.is_up(id).await {
                Ok(is_up) => self.reconcile_running(held, machine, is_up, is_over).await,
                // What may be up is not called lost; that nobody answers is told by the listing.
                Err(_) => Ok(()),
            },
            _ if !is_thorough || (is_steady && !is_over) => Ok(()),
            _ => {
                let event = is_over.then_some(MachineEvent::TimedOut);
                let reason = is_over.then(|| too_long(machine.state));
                self.change_holding(Some(held), id, event, reason).await.map(drop)
            }
        }
    }

    /// Ends what is up of a machine that is not to run; whether its files were kept for so long
    /// that they may be erased.
    async fn reconcile_stopped(&self, id: MachineId, is_over: bool) -> bool {
        // silent-ok: what cannot be asked is asked again in the next round.
        if self.driver.is_up(id).await.unwrap_or(false) {
            let stopped = self.driver.stop(id).await;
            stopped.unwrap_or_else(|error| self.stuck(MachineState::Stopping, id, &error));
        }
        let expired = &self.live_machine(id).expired;
        if !is_over {
            expired.store(0, Ordering::Relaxed);
        }
        is_over && expired.fetch_add(1, Ordering::Relaxed) >= ERASED_AFTER
    }

    async fn reconcile_running(
        self: &Arc<Self>,
        held: OwnedMutexGuard<()>,
        machine: Machine,
        is_up: bool,
        is_over: bool,
    ) -> Result<(), DbError> {
        let id = machine.id;
        let held = Some(held);
        if !is_up {
            let why = "its processes were gone, and it was started again".to_owned();
            return self
                .change_holding(held, id, Some(MachineEvent::Lost), Some(why))
                .await
                .map(drop);
        }
        let now = self.clock.now();
        // What is paid for longer was paid by a clock that was wrong.
        let is_paid = |until: Timestamp| now < until && until <= now.after(MINUTE);
        if machine.paid_until.is_some_and(is_paid) {
            return Ok(());
        }
        // Whatever its health: what is up can be used, and can write.
        if self.charge(id).await? == ChargeOutcome::Broke {
            return self.change_holding(held, id, None, None).await.map(drop);
        }
        let counted = self.recounted(id).await;
        let limit = machine.tier.disk_bytes();
        if counted > limit {
            let why = match counted {
                UNCOUNTABLE => {
                    "its files cannot be counted, since a folder is shut, a path is too \
                                long or there are too many; start it and put that right"
                        .to_owned()
                }
                _ => format!(
                    "its files take more than the {} GiB of its disk; start it and remove some",
                    machine.tier.disk_gb
                ),
            };
            return self
                .change_holding(held, id, Some(MachineEvent::StopAsked), Some(why))
                .await
                .map(drop);
        }
        // silent-ok: what cannot be asked is not well; after a while it is started anew.
        if self.driver.health(id).await.unwrap_or(false) {
            return self.db.step_machine(id, MachineEvent::Healthy, None).await.map(drop);
        }
        if !is_over {
            return Ok(());
        }
        let stopped = self.driver.stop(id).await;
        stopped.unwrap_or_else(|error| self.stuck(MachineState::Running, id, &error));
        let why = "it did not pass its health checks, and was started again".to_owned();
        self.change_holding(held, id, Some(MachineEvent::TimedOut), Some(why)).await.map(drop)
    }
}

fn too_long(state: MachineState) -> String {
    match state {
        MachineState::Stopped | MachineState::Failed => "it did not run for 30 days".to_owned(),
        other => format!("it was {} for too long", other.name()),
    }
}
