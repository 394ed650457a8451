//! Connections into machines: who waits while one is opened, and how many do at a time.
//!
//! A thread waits for each, so a machine that does not answer must never keep more of them than
//! are its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use automaton_core::id::MachineId;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::disk::failed;
use super::driver::{DriverError, DriverResult, MachineStream};

/// Connections that are being opened at a time, into one machine and into all.
const CONNECTS_MAX: usize = 4;
const ALL_CONNECTS_MAX: usize = 64;
/// The longest time to connect to a port.
pub(super) const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Opens connections, with the turns of each machine and, under no name, of all.
// A std mutex, since nothing is awaited while it is held.
#[derive(Default)]
pub(super) struct Dialer(Mutex<HashMap<Option<MachineId>, Arc<Semaphore>>>);

impl Dialer {
    /// Opens one into a machine, when it is its turn; what `open` gives is non-blocking, and may
    /// still be on its way.
    pub(super) async fn dial(
        &self,
        id: MachineId,
        open: impl FnOnce() -> Result<std::net::TcpStream, DriverError> + Send + 'static,
    ) -> DriverResult<Box<dyn MachineStream>> {
        let stream = timeout(CONNECT_WITHIN, self.in_turn(id, open)).await;
        let stream = stream.unwrap_or(Err(DriverError::Refused))?;
        let stream = TcpStream::from_std(stream).map_err(failed("use the connection"))?;
        match timeout(CONNECT_WITHIN, stream.writable()).await {
            Ok(Ok(())) if matches!(stream.take_error(), Ok(None)) => {}
            _ => return Err(DriverError::Refused),
        }
        // silent-ok: without it answers are as right, and slower.
        stream.set_nodelay(true).ok();
        Ok(Box::new(stream))
    }

    /// Does something that may block for long, when it is its turn. The turn is over when that is
    /// done, though nobody waits for it any more.
    async fn in_turn<T: Send + 'static>(
        &self,
        id: MachineId,
        work: impl FnOnce() -> Result<T, DriverError> + Send + 'static,
    ) -> DriverResult<T> {
        // The own first: whoever waits for that takes nothing from others.
        let own = self.turn(Some(id), CONNECTS_MAX).await?;
        let turns = (own, self.turn(None, ALL_CONNECTS_MAX).await?);
        apart(move || {
            let done = work();
            drop(turns);
            done
        })
        .await
    }

    async fn turn(&self, of: Option<MachineId>, most: usize) -> DriverResult<OwnedSemaphorePermit> {
        let turns = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Whoever has a turn, or waits for one, holds them.
            all.retain(|_, turns| Arc::strong_count(turns) > 1);
            Arc::clone(all.entry(of).or_insert_with(|| Arc::new(Semaphore::new(most))))
        };
        turns.acquire_owned().await.map_err(failed("wait for a turn"))
    }
}

/// Does something that blocks for a short while, or follows a command to its end.
pub(super) async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DriverError> + Send + 'static,
) -> DriverResult<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(failed("do a machine's work"))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_machine_that_does_not_answer_keeps_no_more_threads_than_it_may() {
        let dialer = Dialer::default();
        let [one, other] = ["01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAW"]
            .map(|id| id.parse::<MachineId>().unwrap());
        let (answer, silence) = std::sync::mpsc::sync_channel::<()>(1);
        let silence = Arc::new(Mutex::new(silence));
        let within = Duration::from_millis(50);
        for _ in 0..CONNECTS_MAX {
            let silence = Arc::clone(&silence);
            let waits = dialer.in_turn(one, move || {
                // silent-ok: it ends when there is an answer, or nobody to give one.
                silence.lock().unwrap().recv().ok();
                Ok(())
            });
            assert!(timeout(within, waits).await.is_err());
        }
        // Those who gave up took no turn back with them.
        assert!(timeout(within, dialer.in_turn(one, || Ok(()))).await.is_err());
        let bounded = Duration::from_secs(30);
        timeout(bounded, dialer.in_turn(other, || Ok(()))).await.unwrap().unwrap();
        drop(answer);
        timeout(bounded, dialer.in_turn(one, || Ok(()))).await.unwrap().unwrap();
    }
}
