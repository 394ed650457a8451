//! Moves a run's input and output, and enforces its time limit.
//!
//! Each run has one thread, which only polls. It must never block on a pipe: a program that does
//! not read must not keep us from killing it.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::capture::CaptureBuffer;
use crate::launch::{LaunchError, lock, now, receive_report};
use crate::outcome::{Enforcement, ExitStatus, RunOutcome};
use crate::process::Child;
use crate::report::HelperReport;
use crate::running::KillHandle;

/// The longest time for a killed tree to disappear.
pub(crate) const DEATH_MAX: Duration = Duration::from_secs(10);
/// The interval at which the thread checks whether the owner ended the run. Ending closes the
/// lifeline and so ends the helper, but wakes nobody here. Only the clock for [`DEATH_MAX`]
/// depends on it.
const LOOK: Duration = Duration::from_secs(1);

/// The number of `SIGKILL`.
const KILLED: i32 = 9;

/// The input that the program has not read yet.
pub(crate) struct Input {
    pub(crate) pipe: File,
    pub(crate) bytes: Vec<u8>,
    pub(crate) sent: usize,
}

/// The process whose end is the end of the run.
pub(crate) enum RunLifetime {
    /// The helper, which lives for this run.
    Helper(Child),
    /// A session, which reports the end of the run on its channel.
    Session(KillHandle),
}

/// The state that determines the end of a run.
pub(crate) struct RunEnd {
    pub(crate) tie: RunLifetime,
    pub(crate) report: OwnedFd,
    pub(crate) killer: KillHandle,
    pub(crate) deadline: Option<Instant>,
    pub(crate) started: Instant,
    pub(crate) enforcement: Enforcement,
}

pub(crate) struct OutputPump {
    pub(crate) end: RunEnd,
    pub(crate) input: Option<Input>,
    /// Standard output and standard error, each until its end.
    pub(crate) outputs: [Option<File>; 2],
    /// The captured part of each output.
    pub(crate) kept: Arc<Mutex<[CaptureBuffer; 2]>>,
}

impl OutputPump {
    /// Works until the run has ended.
    pub(crate) fn run(mut self) -> Result<RunOutcome, LaunchError> {
        let pumped = self.pump();
        let by_us = self.end.killer.reason();
        // Nothing of the run may stay behind, whatever happened.
        self.end.killer.end(ExitStatus::Killed);
        pumped?;
        let by_session = match &mut self.end.tie {
            RunLifetime::Helper(child) => child.wait().map(|_| None)?,
            RunLifetime::Session(session) => session.reason(),
        };
        let by_us = by_us.or(by_session);
        let duration = self.end.started.elapsed();
        self.drain();
        let status = self.status(by_us)?;
        let [stdout, stderr] = &*lock(&self.kept);
        Ok(RunOutcome {
            status,
            stdout: stdout.snapshot(),
            stderr: stderr.snapshot(),
            duration,
            enforcement: self.end.enforcement,
        })
    }

    /// Moves data until the run is over.
    fn pump(&mut self) -> Result<(), LaunchError> {
        let mut buffer = vec![0; 64 << 10];
        let mut dying_since: Option<Instant> = None;
        loop {
            let ready = self.poll(self.wait_max(dying_since)).map_err(LaunchError::Follow)?;
            let [input, stdout, stderr, over] = ready;
            if input {
                self.write_input();
            }
            if stdout {
                self.read_output(0, &mut buffer);
            }
            if stderr {
                self.read_output(1, &mut buffer);
            }
            if over {
                return Ok(());
            }
            let deadline = self.end.deadline;
            if dying_since.is_none() && deadline.is_some_and(|deadline| now() >= deadline) {
                self.end.killer.end(ExitStatus::TimedOut);
            }
            match dying_since {
                None if self.end.killer.reason().is_some() => dying_since = Some(now()),
                Some(since) if since.elapsed() > DEATH_MAX => {
                    if let RunLifetime::Helper(child) = &mut self.end.tie {
                        child.kill()?;
                        child.wait_timeout(DEATH_MAX)?;
                    }
                    return Err(LaunchError::Stuck);
                }
                None | Some(_) => {}
            }
        }
    }

    fn wait_max(&self, dying_since: Option<Instant>) -> Duration {
        match (dying_since, self.end.deadline) {
            (None, Some(deadline)) => deadline.saturating_duration_since(now()).min(LOOK),
            _ => LOOK,
        }
    }

    /// Waits for an event. Returns which are ready: the input, the two outputs, and the end of
    /// the run.
    fn poll(&self, patience: Duration) -> io::Result<[bool; 4]> {
        // Rounded up, so that the deadline has passed when the wait is over.
        let millis = patience.as_nanos().div_ceil(1_000_000);
        let timeout = PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX);
        let [stdout, stderr] = &self.outputs;
        let over = match &self.end.tie {
            RunLifetime::Helper(child) => child.as_fd(),
            RunLifetime::Session(_) => self.end.report.as_fd(),
        };
        let wanted = [
            self.input.as_ref().map(|input| PollFd::new(input.pipe.as_fd(), PollFlags::POLLOUT)),
            stdout.as_ref().map(|pipe| PollFd::new(pipe.as_fd(), PollFlags::POLLIN)),
            stderr.as_ref().map(|pipe| PollFd::new(pipe.as_fd(), PollFlags::POLLIN)),
            Some(PollFd::new(over, PollFlags::POLLIN)),
        ];
        let present = wanted.each_ref().map(Option::is_some);
        let mut fds: Vec<PollFd<'_>> = wanted.into_iter().flatten().collect();
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let mut answers = fds.iter().map(|fd| fd.any().unwrap_or(true));
        Ok(present.map(|present| present && answers.next().unwrap_or(false)))
    }

    /// Writes some input. Closes the pipe at the end, or if nobody reads it.
    fn write_input(&mut self) {
        let Some(input) = &mut self.input else { return };
        let done = match input.pipe.write(&input.bytes[input.sent..]) {
            Ok(count) => {
                input.sent += count;
                input.sent == input.bytes.len()
            }
            Err(error) => !is_retryable(&error),
        };
        if done {
            self.input = None;
        }
    }

    /// Reads an output once. Closes the pipe at its end. Returns true if there may be more.
    fn read_output(&mut self, which: usize, buffer: &mut [u8]) -> bool {
        let Some(pipe) = &mut self.outputs[which] else { return false };
        match pipe.read(buffer) {
            Ok(count) if count > 0 => {
                lock(&self.kept)[which].push(&buffer[..count]);
                return true;
            }
            Err(error) if is_retryable(&error) => {}
            Ok(_) | Err(_) => self.outputs[which] = None,
        }
        false
    }

    /// Reads what the ended writers left in the pipes, at most a mebibyte.
    fn drain(&mut self) {
        let mut buffer = vec![0; 64 << 10];
        for which in 0..self.outputs.len() {
            let mut reads = 0..64;
            while reads.next().is_some() && self.read_output(which, &mut buffer) {}
        }
    }

    fn status(&self, by_us: Option<ExitStatus>) -> Result<ExitStatus, LaunchError> {
        let mut ended = None;
        while let Some((report, _)) = receive_report(&self.end.report)? {
            match report {
                HelperReport::Usage { memory_kills: 1.. } => return Ok(ExitStatus::MemoryExceeded),
                HelperReport::Ended(status) => ended = Some(status),
                _ => {}
            }
        }
        // A session reports what ended the program, but not who ended it.
        match (ended, by_us) {
            (Some(ExitStatus::Signalled(KILLED)), Some(by_us)) => Ok(by_us),
            (ended, by_us) => ended.or(by_us).ok_or(LaunchError::Lost),
        }
    }
}

fn is_retryable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
