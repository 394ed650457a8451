//! A running program, and the handle that ends it.
//!
//! A run never outlives its [`RunHandle`], and never the launching process.

use std::fs::File;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::capture::{CaptureBuffer, CapturedOutput};
use crate::launch::{LaunchError, lock};
use crate::outcome::{ExitStatus, RunOutcome};
use crate::pump::{Input, OutputPump, RunEnd};
use crate::spec::Capture;

/// A running program. Dropping it ends the run and its whole tree.
#[derive(Debug)]
pub struct RunHandle {
    killer: KillHandle,
    /// The captured standard output and standard error.
    kept: Arc<Mutex<[CaptureBuffer; 2]>>,
    pump: Option<JoinHandle<Result<RunOutcome, LaunchError>>>,
    pub(crate) proxy: Option<TcpListener>,
}

impl RunHandle {
    /// Starts the thread that supervises a run.
    pub(crate) fn start(
        end: RunEnd,
        input: Option<Input>,
        outputs: [Option<File>; 2],
        capture: Capture,
    ) -> Result<Self, LaunchError> {
        let Capture { stdout_bytes_max, stderr_bytes_max } = capture;
        let kept = [CaptureBuffer::new(stdout_bytes_max), CaptureBuffer::new(stderr_bytes_max)];
        let kept = Arc::new(Mutex::new(kept));
        let killer = end.killer.clone();
        let pump = OutputPump { end, input, outputs, kept: Arc::clone(&kept) };
        let thread = std::thread::Builder::new()
            .name("sandbox-pump".to_owned())
            .spawn(move || pump.run())
            .map_err(LaunchError::Channels)?;
        Ok(Self { killer, kept, pump: Some(thread), proxy: None })
    }

    /// Takes the non-blocking listener on which the program looks for a proxy. It exists once, if
    /// the network is [`crate::Network::Served`] or [`crate::Network::Proxied`].
    #[must_use]
    pub const fn take_proxy(&mut self) -> Option<TcpListener> {
        self.proxy.take()
    }

    /// Blocks until the run has ended and all its processes are gone.
    ///
    /// # Errors
    /// Fails if the helper was lost, so that the exit status is unknown, or if a process did not
    /// die.
    pub fn wait(mut self) -> Result<RunOutcome, LaunchError> {
        match self.pump.take().map(JoinHandle::join) {
            Some(Ok(outcome)) => outcome,
            Some(Err(_)) | None => Err(LaunchError::Lost),
        }
    }

    /// Returns true if the run is over, so that [`RunHandle::wait`] would not block.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.pump.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends the run and its whole tree. [`RunHandle::wait`] reports when that is done.
    pub fn kill(&self) {
        self.killer.kill();
    }

    /// Returns a handle that ends the run from any thread.
    #[must_use]
    pub fn killer(&self) -> KillHandle {
        self.killer.clone()
    }

    /// Returns the output so far: standard output, standard error.
    #[must_use]
    pub fn output(&self) -> (CapturedOutput, CapturedOutput) {
        let [stdout, stderr] = &*lock(&self.kept);
        (stdout.snapshot(), stderr.snapshot())
    }
}

impl Drop for RunHandle {
    fn drop(&mut self) {
        if let Some(pump) = self.pump.take() {
            self.killer.kill();
            // silent-ok: nobody is left to receive the result.
            drop(pump.join());
        }
    }
}

/// A handle that ends a run and its whole tree, from any thread. After the run it does nothing.
#[derive(Debug, Clone)]
pub struct KillHandle(Arc<Mutex<KillState>>);

#[derive(Debug)]
struct KillState {
    lifeline: Option<OwnedFd>,
    reason: Option<ExitStatus>,
}

impl KillHandle {
    /// Creates a handle with the end of the pipe whose closing ends the run.
    pub(crate) fn new(lifeline: OwnedFd) -> Self {
        Self(Arc::new(Mutex::new(KillState { lifeline: Some(lifeline), reason: None })))
    }

    /// Ends the run. Returns at once.
    pub fn kill(&self) {
        self.end(ExitStatus::Killed);
    }

    /// Ends the run for this reason, unless it was ended before.
    pub(crate) fn end(&self, reason: ExitStatus) {
        let mut end = lock(&self.0);
        if end.lifeline.take().is_some() {
            end.reason = Some(reason);
        }
    }

    pub(crate) fn reason(&self) -> Option<ExitStatus> {
        lock(&self.0).reason
    }
}
