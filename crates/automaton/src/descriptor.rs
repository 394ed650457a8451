//! Waits for descriptors without a thread: stop signals and lifelines.
//!
//! The sandbox crate gives them as plain descriptors, since it knows no
//! runtime; this is where the runtime meets them. Must be used within a
//! runtime.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net;

use automaton_sandbox::process::{Signals, StopSignal};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;

use crate::error::CliError;

/// Bytes in which the kernel describes one signal, see `signalfd(2)`.
const SIGNAL_BYTES: usize = 128;
/// First bytes of a description of `SIGINT`: its number.
const SIGINT: [u8; 4] = 2_u32.to_ne_bytes();

/// `SIGTERM` and `SIGINT`, awaited.
#[derive(Debug)]
pub(crate) struct StopSignals(Receiver);

impl StopSignals {
    /// Begins to wait for signals that are received already.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn watch(signals: &Signals) -> Result<Self, CliError> {
        // A signal descriptor is read like a pipe that never ends.
        let watched = signals.as_fd().try_clone_to_owned();
        let watched = watched.and_then(Receiver::from_owned_fd_unchecked);
        watched.map(Self).map_err(|error| CliError::internal("cannot wait for signals", &error))
    }

    /// Waits for the next request to stop. Cancel-safe: a signal is taken in
    /// the same step in which this returns.
    ///
    /// # Errors
    /// When the descriptor cannot be read.
    pub(crate) async fn next(&self) -> Result<(), CliError> {
        self.next_signal().await.map(drop)
    }

    /// The same, and which signal it is.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub(crate) async fn next_signal(&self) -> Result<StopSignal, CliError> {
        let failed = |error: io::Error| CliError::internal("cannot wait for signals", &error);
        let mut signal = [0; SIGNAL_BYTES];
        loop {
            self.0.readable().await.map_err(failed)?;
            match self.0.try_read(&mut signal) {
                Ok(_) if signal.starts_with(&SIGINT) => return Ok(StopSignal::Interrupt),
                Ok(_) => return Ok(StopSignal::Terminate),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Returns the result of the work, or the signal that came first and ended it.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub(crate) async fn unless<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<Result<T, StopSignal>, CliError> {
        tokio::select! {
            biased;
            signal = self.next_signal() => signal.map(Err),
            done = work => Ok(Ok(done)),
        }
    }
}

/// The supervisor's end of a lifeline, awaited.
#[derive(Debug)]
pub(crate) struct SupervisorLink(UnixStream);

impl SupervisorLink {
    /// Begins to watch the descriptor that the supervisor passed.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn watch(lifeline: OwnedFd) -> Result<Self, CliError> {
        let stream = net::UnixStream::from(lifeline);
        let watched = stream.set_nonblocking(true).and_then(|()| UnixStream::from_std(stream));
        watched.map(Self).map_err(|error| CliError::internal("cannot watch the lifeline", &error))
    }

    /// Waits until the supervisor is gone. Cancel-safe: nothing is read.
    pub(crate) async fn is_gone(&self) {
        // silent-ok: a lifeline that cannot be watched counts as cut.
        self.0.readable().await.ok();
    }
}
