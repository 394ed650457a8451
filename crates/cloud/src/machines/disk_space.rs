//! Room for files: on the disk of a machine, and on the file system beneath all machines.
//!
//! An upload gets all the room that is left, so there is one at a time, and none may last for ever.
//! Files that a program keeps open without a name are in no count, so there is a floor beneath all
//! counts: the free space that the cloud's file system must have. Below it nothing starts or is
//! uploaded, and running machines are stopped, the largest first. Must never trust a count that
//! others can have made untrue.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use automaton_core::error::chain;
use futures_util::future::ready;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::time::timeout;

use super::Machines;
use super::driver::{DriverError, FileWrite, Pieces};
use super::lifecycle::{MachineEvent, MachineState};
use super::reconciler::TOGETHER;
use crate::db::DbError;
use crate::db::machines::Machine;

/// The default of the free space: this, or a hundredth of the file system if that is more.
const FREE_MIN: u64 = 1 << 30;
/// The bytes after which an upload checks again that there is room.
const LOOK_EVERY: u64 = 16 << 20;
/// Said where there is none.
pub(crate) const NO_ROOM: &str = "the cloud's own disk is nearly full; try again later";

/// The longest time for an upload, and for its wait for the one before.
const WRITE_WITHIN: Duration = Duration::from_secs(3600);
const TURN_WITHIN: Duration = Duration::from_secs(20);

impl Machines {
    /// Returns the bytes that can be written before the cloud's file system has less free than it
    /// must, or nothing if that is not known.
    pub(crate) async fn spare(&self) -> Option<u64> {
        match self.driver.disk_room().await {
            Ok((free, whole)) => {
                let usual = FREE_MIN.max(whole / 100);
                Some(free.saturating_sub(self.bounds.free_min.unwrap_or(usual)))
            }
            Err(error) => {
                (self.report)(format!("the machines' disk: {}", chain(&error)));
                None
            }
        }
    }

    /// Returns whether there is room, as far as that is known.
    pub(crate) async fn has_room(&self) -> bool {
        self.spare().await.is_some_and(|spare| spare > 0)
    }

    /// Refuses whatever takes room, where there is none, or none that is known.
    pub(super) async fn admit_growth(&self) -> Result<u64, DriverError> {
        let spare = self.spare().await.filter(|spare| *spare > 0);
        spare.ok_or_else(|| DriverError::Unavailable(NO_ROOM.to_owned()))
    }

    /// Stops what runs until there is room again: first who has more than was promised to it,
    /// as it is counted now, then the largest.
    pub(super) async fn make_room(self: &Arc<Self>) -> Result<(), DbError> {
        let all = self.db.machines(None).await?;
        let up = stream::iter(all).filter(|it| ready(it.state == MachineState::Running));
        let counted = up.map(async |machine| {
            let counted = self.recounted(machine.id).await;
            (counted > machine.tier.disk_bytes(), counted, machine.id)
        });
        let mut up: Vec<_> = counted.buffer_unordered(TOGETHER).collect().await;
        up.sort_by_key(|it| Reverse((it.0, it.1)));
        for (.., id) in up {
            if self.spare().await != Some(0) {
                break;
            }
            (self.report)(format!("the machine {id} is stopped: {NO_ROOM}"));
            // Before it is written down, for which there may be no room either.
            let stopped = self.driver.stop(id).await;
            stopped.unwrap_or_else(|error| self.stuck(MachineState::Running, id, &error));
            self.change(id, Some(MachineEvent::StopAsked), Some(NO_ROOM.to_owned())).await?;
        }
        Ok(())
    }

    /// Writes a whole file into a machine, all or nothing; its path inside and its size.
    pub(crate) async fn write(
        self: &Arc<Self>,
        machine: &Machine,
        path: String,
        pieces: Pieces,
    ) -> Result<(String, u64), DriverError> {
        let (id, live) = (machine.id, self.live_machine(machine.id));
        let turn = timeout(TURN_WITHIN, live.uploads.lock()).await;
        let _one = turn.map_err(|_| DriverError::Busy)?;
        let counted = match self.driver.is_up(id).await? {
            true => self.counted(id).await,
            // Nobody else counts it again.
            false => self.recounted(id).await,
        };
        let spare = self.admit_growth().await?;
        let bytes_max = machine.tier.disk_bytes().saturating_sub(counted).min(spare);
        let own = Arc::clone(self);
        let mut left = LOOK_EVERY;
        // Others write meanwhile.
        let pieces = Box::pin(pieces.and_then(move |piece| {
            left = left.saturating_sub(piece.len() as u64);
            let looks = (left == 0).then(|| Arc::clone(&own));
            if looks.is_some() {
                left = LOOK_EVERY;
            }
            async move {
                match looks {
                    Some(own) => own.admit_growth().await.map(|_| piece),
                    None => Ok(piece),
                }
            }
        }));
        let writing = self.driver.write(id, FileWrite { path, pieces, bytes_max });
        let late = |_| Err(DriverError::Cut("it took more than an hour".to_owned()));
        let (path, bytes) = timeout(WRITE_WITHIN, writing).await.unwrap_or_else(late)?;
        live.grown(bytes);
        Ok((path, bytes))
    }
}
