//! Database of a process that died, as far as the disk has it.
//!
//! The death of a process loses nothing that was written. The death of its machine
//! may lose and tear whatever was written after the last commit that was synced:
//! the log is cut somewhere there. What was synced must never be cut.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use automaton_core::faults::{FaultPoint, Faults};
use tokio::sync::Notify;

/// One database, through all the lives of its process.
pub(super) struct SimDisk {
    dir: PathBuf,
    name: &'static str,
    life: Mutex<ProcessGeneration>,
}

/// Each life works on files of its own, so that what a dead one still writes goes
/// nowhere.
#[derive(Debug, Clone, Copy, Default)]
struct ProcessGeneration {
    number: u32,
    /// Bytes of the log that a loss of power leaves.
    synced_bytes: u64,
}

/// Loss caused by a death.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiskLoss {
    /// The process died.
    Nothing,
    /// The machine died: the log is cut at a place that this number draws.
    Power(u32),
}

impl SimDisk {
    /// A disk without a database on it.
    pub(super) fn new(dir: PathBuf, name: &'static str) -> Arc<Self> {
        Arc::new(Self { dir, name, life: Mutex::default() })
    }

    /// A disk with this database on it.
    pub(super) fn with(dir: PathBuf, name: &'static str, db: &[u8]) -> io::Result<Arc<Self>> {
        let disk = Self::new(dir, name);
        fs::write(disk.path(), db)?;
        Ok(disk)
    }

    fn life(&self) -> MutexGuard<'_, ProcessGeneration> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, life: u32, end: &str) -> PathBuf {
        self.dir.join(format!("{}.{life}{end}", self.name))
    }

    /// The database of this life.
    pub(super) fn path(&self) -> PathBuf {
        self.file(self.life().number, "")
    }

    /// Notes that everything that was written is on the disk.
    pub(super) fn sync(&self) {
        let mut life = self.life();
        life.synced_bytes = length(&self.file(life.number, "-wal"));
    }

    /// Leaves to the next life what this one has on the disk.
    fn die(&self, loss: DiskLoss) -> io::Result<()> {
        let mut life = self.life();
        let [from, to] = [life.number, life.number + 1];
        fs::copy(self.file(from, ""), self.file(to, ""))?;
        let log = self.file(to, "-wal");
        let written = length(&self.file(from, "-wal"));
        if written > 0 {
            fs::copy(self.file(from, "-wal"), &log)?;
        }
        if let DiskLoss::Power(draw) = loss {
            let unsure = written.saturating_sub(life.synced_bytes);
            let kept = written - unsure + u64::from(draw) % (unsure + 1);
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(&log)?;
            file.set_len(kept)?;
            // Half of the time the file keeps its length, and what was lost is zero.
            if draw % 2 == 0 {
                file.set_len(written)?;
            }
        }
        *life = ProcessGeneration { number: to, synced_bytes: length(&log) };
        Ok(())
    }
}

fn length(path: &PathBuf) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

/// Point at which a process is to die.
#[derive(Debug, Clone, Copy)]
pub(super) struct CrashPoint {
    pub(super) point: FaultPoint,
    /// At which arrival, from 1.
    pub(super) arrival: u32,
    pub(super) loss: DiskLoss,
}

/// Kill switch of one life of a process. Whoever reaches a point after it unwinds.
pub(super) struct CrashSwitch {
    disk: Arc<SimDisk>,
    charge: Mutex<Option<CrashPoint>>,
    dead: AtomicBool,
    /// Says that somebody died. The signer's does not: whoever asked it hears the silence.
    died: Option<Arc<Notify>>,
    broken: Mutex<Option<io::Error>>,
    /// Payments that were heard from the signer, less those that it is done with.
    unfinished: Mutex<i64>,
    finished: Condvar,
}

impl CrashSwitch {
    pub(super) fn new(disk: &Arc<SimDisk>, died: Option<Arc<Notify>>) -> Arc<Self> {
        Arc::new(Self {
            disk: Arc::clone(disk),
            charge: Mutex::default(),
            dead: AtomicBool::new(false),
            died,
            broken: Mutex::default(),
            unfinished: Mutex::default(),
            finished: Condvar::new(),
        })
    }

    fn unfinished(&self) -> MutexGuard<'_, i64> {
        self.unfinished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits, after a payment was heard from the signer, until it has died of it, where it
    /// is to, or waits for the next question.
    pub(super) fn wait_for_signer(&self) {
        let mut unfinished = self.unfinished();
        *unfinished += 1;
        drop(self.finished.wait_while(unfinished, |payments| *payments > 0));
    }

    pub(super) fn arm(&self, charge: CrashPoint) {
        *self.charge.lock().unwrap_or_else(PoisonError::into_inner) = Some(charge);
    }

    pub(super) fn disarm(&self) {
        *self.charge.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    /// Ends this life: from now on it writes into nothing.
    pub(super) fn kill(&self, loss: DiskLoss) {
        if !self.dead.swap(true, Ordering::SeqCst) {
            if let Err(error) = self.disk.die(loss) {
                *self.broken.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
            if let Some(died) = &self.died {
                died.notify_one();
            }
        }
    }

    /// Returns the error of leaving its files behind, if there was one.
    pub(super) fn take_error(&self) -> Option<io::Error> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns the loss at this arrival, if it is the chosen one.
    fn blows(&self, point: FaultPoint) -> Option<DiskLoss> {
        let mut charge = self.charge.lock().unwrap_or_else(PoisonError::into_inner);
        let armed = charge.as_mut().filter(|charge| charge.point == point)?;
        armed.arrival = armed.arrival.saturating_sub(1);
        (armed.arrival == 0).then_some(armed.loss)
    }
}

impl Faults for CrashSwitch {
    fn reach(&self, point: FaultPoint) {
        if let Some(loss) = self.blows(point) {
            self.kill(loss);
        }
        if point == FaultPoint::SignerAnswered {
            *self.unfinished() -= 1;
            self.finished.notify_all();
        }
        if self.is_dead() {
            // Not a panic, which would be reported: the process is simply gone.
            std::panic::resume_unwind(Box::new(point));
        }
        // The signer has no other way to say that its commit was synced.
        if point == FaultPoint::SignerCounted {
            self.disk.sync();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use automaton_testkit::world::TempDir;

    use super::*;

    #[test]
    fn whoever_has_heard_a_payment_finds_the_signer_dead_that_dies_of_it() {
        let dir = TempDir::in_memory().unwrap();
        for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
            let disk = SimDisk::with(dir.path().to_owned(), name, b"").unwrap();
            let fuse = CrashSwitch::new(&disk, None);
            let point = FaultPoint::SignerAnswered;
            fuse.arm(CrashPoint { point, arrival: 1, loss: DiskLoss::Nothing });
            let (answer, answered) = mpsc::sync_channel(1);
            let signer = Arc::clone(&fuse);
            let signer = thread::spawn(move || {
                answer.send(()).unwrap();
                signer.reach(point);
            });
            answered.recv().unwrap();
            fuse.wait_for_signer();
            assert!(fuse.is_dead());
            assert!(signer.join().is_err(), "it went on after its death");
        }
    }
}
