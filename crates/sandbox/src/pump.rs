//! Moves a run's input and output, and holds its time limit.
//!
//! One thread for each run, which only polls. Must never block on a pipe: a
//! program that does not read must not keep us from killing it.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::launch::{Killer, LaunchError, Output, now, receive};
use crate::outcome::{Enforcement, ExitStatus, Outcome};
use crate::process::Child;
use crate::report::Report;

/// How long a killed tree may take to disappear.
const DEATH_MAX: Duration = Duration::from_secs(10);
/// How often the thread looks whether its run was ended by its owner, which
/// closes the lifeline and so ends the helper, but wakes nobody here. Only the
/// clock for [`DEATH_MAX`] depends on it.
const LOOK: Duration = Duration::from_secs(1);

/// Why we ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Killed,
    TimedOut,
}

#[derive(Debug, Clone, Copy)]
enum Stream {
    Out,
    Err,
}

/// What the program still has to read.
pub(crate) struct Input {
    pub(crate) pipe: OwnedFd,
    pub(crate) bytes: Vec<u8>,
    pub(crate) sent: usize,
}

pub(crate) struct Pump {
    pub(crate) child: Child,
    pub(crate) report: OwnedFd,
    pub(crate) stdin: Option<Input>,
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: Option<OwnedFd>,
    pub(crate) output: Arc<Mutex<Output>>,
    pub(crate) killer: Killer,
    pub(crate) deadline: Option<Instant>,
    pub(crate) started: Instant,
    pub(crate) enforcement: Enforcement,
}

impl Pump {
    /// Works until the run has ended.
    pub(crate) fn run(mut self) -> Result<Outcome, LaunchError> {
        let followed = self.follow();
        let by_us = self.killer.reason();
        // Whatever happened, nothing of the run may stay behind.
        self.killer.end(Reason::Killed);
        followed?;
        self.child.wait()?;
        let duration = self.started.elapsed();
        self.drain(Stream::Out);
        self.drain(Stream::Err);
        let status = self.status(by_us)?;
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Outcome {
            status,
            stdout: output.stdout.snapshot(),
            stderr: output.stderr.snapshot(),
            duration,
            enforcement: self.enforcement,
        })
    }

    /// Moves data until the helper is gone.
    fn follow(&mut self) -> Result<(), LaunchError> {
        let mut buffer = vec![0; 64 << 10];
        let mut dying_since: Option<Instant> = None;
        loop {
            let ready = self.poll(self.patience(dying_since)).map_err(LaunchError::Follow)?;
            if ready.stdin {
                self.feed();
            }
            if ready.stdout {
                self.take(Stream::Out, &mut buffer);
            }
            if ready.stderr {
                self.take(Stream::Err, &mut buffer);
            }
            if ready.child {
                return Ok(());
            }
            if dying_since.is_none() && self.deadline.is_some_and(|deadline| now() >= deadline) {
                self.killer.end(Reason::TimedOut);
            }
            match dying_since {
                None if self.killer.reason().is_some() => dying_since = Some(now()),
                Some(since) if since.elapsed() > DEATH_MAX => {
                    self.child.kill()?;
                    return Err(LaunchError::Stuck);
                }
                None | Some(_) => {}
            }
        }
    }

    fn patience(&self, dying_since: Option<Instant>) -> Duration {
        match (dying_since, self.deadline) {
            (None, Some(deadline)) => deadline.saturating_duration_since(now()).min(LOOK),
            _ => LOOK,
        }
    }

    fn poll(&self, patience: Duration) -> io::Result<Ready> {
        // Rounded up, so that the deadline has passed when the wait is over.
        let millis = patience.as_nanos().div_ceil(1_000_000);
        let timeout = PollTimeout::try_from(i32::try_from(millis).unwrap_or(i32::MAX))
            .unwrap_or(PollTimeout::MAX);
        let pipes = [
            self.stdin.as_ref().map(|input| PollFd::new(input.pipe.as_fd(), PollFlags::POLLOUT)),
            self.stdout.as_ref().map(|pipe| PollFd::new(pipe.as_fd(), PollFlags::POLLIN)),
            self.stderr.as_ref().map(|pipe| PollFd::new(pipe.as_fd(), PollFlags::POLLIN)),
            Some(PollFd::new(self.child.as_fd(), PollFlags::POLLIN)),
        ];
        let present = pipes.each_ref().map(Option::is_some);
        let mut fds: Vec<PollFd<'_>> = pipes.into_iter().flatten().collect();
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let mut answers = fds.iter().map(|fd| fd.any().unwrap_or(true));
        let [stdin, stdout, stderr, child] =
            present.map(|present| present && answers.next().unwrap_or(false));
        Ok(Ready { stdin, stdout, stderr, child })
    }

    /// Writes some input; closes the pipe at its end or when nobody reads it.
    fn feed(&mut self) {
        let Some(Input { pipe, bytes, mut sent }) = self.stdin.take() else { return };
        let mut file = File::from(pipe);
        match file.write(&bytes[sent..]) {
            Ok(count) => sent += count,
            Err(error) if retries(&error) => {}
            Err(_) => return,
        }
        if sent < bytes.len() {
            self.stdin = Some(Input { pipe: file.into(), bytes, sent });
        }
    }

    /// Reads once; forgets the pipe at its end. Says whether there may be more.
    fn take(&mut self, stream: Stream, buffer: &mut [u8]) -> bool {
        let slot = match stream {
            Stream::Out => &mut self.stdout,
            Stream::Err => &mut self.stderr,
        };
        let Some(pipe) = slot.take() else { return false };
        let mut file = File::from(pipe);
        let (keep, more) = match file.read(buffer) {
            Ok(0) => (false, false),
            Ok(count) => {
                let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
                match stream {
                    Stream::Out => output.stdout.push(&buffer[..count]),
                    Stream::Err => output.stderr.push(&buffer[..count]),
                }
                (true, true)
            }
            Err(error) => (retries(&error), false),
        };
        if keep {
            *slot = Some(file.into());
        }
        more
    }

    /// What the dead writers left in a pipe, which holds at most a mebibyte.
    fn drain(&mut self, stream: Stream) {
        let mut buffer = vec![0; 64 << 10];
        let mut reads_left = 64;
        while reads_left > 0 && self.take(stream, &mut buffer) {
            reads_left -= 1;
        }
    }

    fn status(&self, by_us: Option<Reason>) -> Result<ExitStatus, LaunchError> {
        let mut ended = None;
        let mut memory_kills = 0;
        while let Some(report) = receive(&self.report)? {
            match report {
                Report::Ended(status) => ended = Some(status),
                Report::Usage { memory_kills: kills } => memory_kills = kills,
                Report::Started | Report::Failed { .. } | Report::Features(_) => {}
            }
        }
        match (ended, by_us) {
            _ if memory_kills > 0 => Ok(ExitStatus::MemoryExceeded),
            (Some(status), _) => Ok(status),
            (None, Some(Reason::TimedOut)) => Ok(ExitStatus::TimedOut),
            (None, Some(Reason::Killed)) => Ok(ExitStatus::Killed),
            (None, None) => Err(LaunchError::Lost),
        }
    }
}

struct Ready {
    stdin: bool,
    stdout: bool,
    stderr: bool,
    child: bool,
}

fn retries(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
