//! One child process of the supervisor: its start, its lines, its end.
//!
//! A child is this same binary under another name, or a small one of that name, with an empty
//! environment, a session of its own and a lifeline, so that it never outlives its
//! supervisor. What it writes is limited; a child must never be able to fill
//! the supervisor's memory.

use std::io::{self, Write};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use automaton_sandbox::process::{self, Child, Lifeline, OwnProgram, ProcessCommand, Stdio};
use serde::Serialize;
use tokio::io::BufReader;
use tokio::time::Instant;
use tracing::debug;

use crate::descriptor::StopSignals;
use crate::error::CliError;
use crate::line;
use crate::role::launch_config::{ChildConfig, ChildMessage, LIFELINE, LINE_BYTES_MAX};

/// A child that runs.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    /// The process itself. After the end of its output it may be waited for: the
    /// short while until its own is all that this blocks.
    pub(crate) child: Child,
    role: &'static str,
    output: BufReader<tokio::net::UnixStream>,
    partial: Vec<u8>,
    /// The child ends itself when this end is closed.
    lifeline: Lifeline,
}

impl ChildProcess {
    /// Starts a child in a role and gives it its charter, and a descriptor of its
    /// own where it gets one.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub(crate) fn start(
        executable: &Path,
        role: &'static str,
        config: &impl Serialize,
        descriptor: Option<(OwnedFd, RawFd)>,
    ) -> Result<Self, CliError> {
        let failed = |error: io::Error| CliError::internal(format!("cannot reach {role}"), &error);
        let (lifeline, theirs) = Lifeline::pair()?;
        let (mut input, child_input) = UnixStream::pair().map_err(failed)?;
        let (output, child_output) = UnixStream::pair().map_err(failed)?;
        let program = OwnProgram::beside(executable.to_owned(), role);
        let mut command = ProcessCommand::from_own_program(&program)
            .arg0(role)
            .stdin(Stdio::Descriptor(OwnedFd::from(child_input)))
            .stdout(Stdio::Descriptor(OwnedFd::from(child_output)))
            .stderr(Stdio::Inherit)
            .descriptor(theirs, LIFELINE)
            .own_session();
        if let Some((descriptor, number)) = descriptor {
            command = command.descriptor(descriptor, number);
        }
        let child = process::spawn(command)?;
        debug!(role, "a child was started");
        let line = ChildConfig::line(config).map_err(|error| {
            CliError::internal(format!("cannot write the configuration of {role}"), &error)
        })?;
        input.write_all(&line).map_err(failed)?;
        output.set_nonblocking(true).map_err(failed)?;
        let output = tokio::net::UnixStream::from_std(output).map_err(failed)?;
        Ok(Self {
            child,
            role,
            output: BufReader::with_capacity(64 * 1024, output),
            partial: Vec::new(),
            lifeline,
        })
    }

    /// The next line; `None` when the child has closed its output. Cancel-safe:
    /// what was read of a line is kept.
    ///
    /// # Errors
    /// When the output cannot be read, or a line is too long or no line of ours.
    pub(crate) async fn next_line(&mut self) -> Result<Option<ChildMessage>, CliError> {
        let line = match line::next(&mut self.output, &mut self.partial, LINE_BYTES_MAX).await {
            // A child that died with data unread resets the connection.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => None,
            read => read.map_err(|error| self.unreadable(&error))?,
        };
        let read = line.map(|line| serde_json::from_slice(&line)).transpose();
        read.map_err(|error| self.unreadable(&error))
    }

    fn unreadable(&self, error: &(dyn std::error::Error + 'static)) -> CliError {
        CliError::internal(format!("cannot read what {} says", self.role), error)
    }

    /// Asks it to end, and ends it when it does not, or when nobody waits any more. Nobody
    /// reads its output any more, so that it cannot be stuck on that.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub(crate) async fn end(
        self,
        grace: Duration,
        hurry: &mut ShutdownWait<'_>,
    ) -> Result<(), CliError> {
        let Self { mut child, output, lifeline: _cut_at_the_end, .. } = self;
        drop(output);
        child.terminate()?;
        let deadline = Instant::now() + grace;
        while child.try_wait()?.is_none() {
            if hurry.is_on || Instant::now() >= deadline {
                child.kill()?;
                child.wait()?;
                break;
            }
            tokio::select! {
                biased;
                // Both arms are cancel-safe.
                signal = hurry.signals.next() => (signal?, hurry.is_on = true).0,
                () = tokio::time::sleep(POLL) => {}
            }
        }
        Ok(())
    }
}

/// Interval at which a process that is to end is checked.
const POLL: Duration = Duration::from_millis(10);

/// Waits for processes that end, until a signal comes.
pub(crate) struct ShutdownWait<'a> {
    pub(crate) signals: &'a StopSignals,
    pub(crate) is_on: bool,
}
