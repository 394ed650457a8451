//! Programs inside of a container, and what they say.
//!
//! All of them are started by one script. Must never wait for a program without an end: its time
//! is held here, where what belongs to a command is killed as a session, and once more by
//! `timeout` inside, in case nobody is here any more.

use std::pin::Pin;
use std::time::Duration;

use automaton_core::id::MachineId;
use automaton_core::wire::cloud::ExecReply;
use automaton_sandbox::{CaptureBuffer, ExitStatus};
use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::exec::{CreateExecOptions, StartExecResults};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use tokio::io::AsyncWrite;
use tokio::time::{sleep, timeout};

use super::super::disk::failed;
use super::super::driver::{
    DriverError, DriverResult, MachineCommand, MachineDriver as _, OUTPUT_BYTES_MAX, replied,
};
use super::super::inside::{INSIDE, answered};
use super::PodmanDriver;

/// The longest time for an answer, and for the end of a killed command.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);
/// By how much the time inside is longer than the one here.
const GRACE: Duration = Duration::from_secs(2);
/// The longest line that is an answer.
const LINE_BYTES_MAX: usize = 1024;
/// The pause between checks, and their number, for the end of a program that closed its output.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const LOOKS: u32 = 40;

/// A program that runs inside.
pub(super) struct AttachedCommand {
    id: String,
    output: Pin<Box<dyn Stream<Item = Result<LogOutput, Error>> + Send>>,
    pub(super) input: Pin<Box<dyn AsyncWrite + Send>>,
    /// The bytes read of its standard output beyond the last line.
    rest: Bytes,
    stderr: CaptureBuffer,
}

impl AttachedCommand {
    /// The next of its standard output; nothing at the end of that.
    pub(super) async fn next(&mut self) -> DriverResult<Option<Bytes>> {
        if !self.rest.is_empty() {
            return Ok(Some(std::mem::take(&mut self.rest)));
        }
        while let Some(piece) = self.output.next().await {
            match piece.map_err(failed("follow a program in the machine"))? {
                LogOutput::StdErr { message } => self.stderr.push(&message),
                other => return Ok(Some(other.into_bytes())),
            }
        }
        Ok(None)
    }

    /// The next line of its standard output, without its end.
    async fn line(&mut self) -> DriverResult<String> {
        let mut line = Vec::new();
        while line.len() < LINE_BYTES_MAX
            && let Some(mut piece) = self.next().await?
        {
            if let Some(end) = piece.iter().position(|byte| *byte == b'\n') {
                self.rest = piece.split_off(end + 1);
                line.extend_from_slice(&piece[..end]);
                break;
            }
            line.extend_from_slice(&piece);
        }
        Ok(String::from_utf8_lossy(&line).into_owned())
    }

    /// Returns the script's answer about a path, which errors name `shown`.
    pub(super) async fn answer(&mut self, shown: &str) -> DriverResult<String> {
        let what = "use the machine's files";
        let line = timeout(ANSWER_WITHIN, self.line()).await.map_err(failed(what))??;
        answered(&line, shown, || self.stderr.snapshot().text_lossy().trim().to_owned())
    }
}

impl PodmanDriver {
    /// Starts a program inside: a verb of the script, and what goes with it.
    pub(super) async fn attach(
        &self,
        id: MachineId,
        words: &[&str],
    ) -> DriverResult<AttachedCommand> {
        let what = "run a program in the machine";
        let options = CreateExecOptions {
            attach_stdin: Some(words.first() == Some(&"write")),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            cmd: Some([&["sh", "-c", INSIDE, "sh"], words].concat()),
            ..CreateExecOptions::default()
        };
        let made = match self.api.create_exec(&super::name(id), options).await {
            Err(_) if !self.is_up(id).await? => return Err(DriverError::Down),
            made => made.map_err(failed(what))?,
        };
        let started = self.api.start_exec(&made.id, None).await.map_err(failed(what))?;
        let StartExecResults::Attached { output, input } = started else {
            return Err(DriverError::Down);
        };
        let rest = Bytes::new();
        let stderr = CaptureBuffer::new(OUTPUT_BYTES_MAX);
        Ok(AttachedCommand { id: made.id, output, input, rest, stderr })
    }

    /// Has something done inside that answers no more than whether it was.
    pub(super) async fn ask(&self, id: MachineId, words: &[&str], shown: &str) -> DriverResult<()> {
        self.attach(id, words).await?.answer(shown).await.map(drop)
    }

    /// Runs a command to its end, or to that of its time.
    pub(super) async fn command(
        &self,
        id: MachineId,
        command: MachineCommand,
    ) -> DriverResult<ExecReply> {
        let MachineCommand { line, wall } = command;
        let within = wall.saturating_add(GRACE).as_secs().to_string();
        let mut run = self.attach(id, &["run", &within, &line]).await?;
        let mut session = String::new();
        let mut stdout = CaptureBuffer::new(OUTPUT_BYTES_MAX);
        let followed = async {
            // It says first which session it is.
            session = run.line().await?;
            while let Some(piece) = run.next().await? {
                stdout.push(&piece);
            }
            DriverResult::Ok(())
        };
        let status = match timeout(wall, followed).await {
            // A connection that breaks says nothing of the command, but podman does.
            Ok(_) => self.ended(&run.id).await,
            Err(_) => {
                // Whoever put another shell there names what they like: it is theirs.
                // silent-ok: what does not end even now is left to the time inside.
                self.ask(id, &["kill", &session], "the command").await.ok();
                ExitStatus::TimedOut
            }
        };
        Ok(replied(&stdout.snapshot(), &run.stderr.snapshot(), status))
    }

    /// Returns the exit status of a program. If the machine is gone, so is the status.
    async fn ended(&self, run: &str) -> ExitStatus {
        for _ in 0..LOOKS {
            match self.api.inspect_exec(run).await {
                Ok(told) if told.running == Some(true) => sleep(LOOK_EVERY).await,
                told => {
                    let code = told.ok().and_then(|it| u8::try_from(it.exit_code?).ok());
                    return code.map_or(ExitStatus::Killed, |code| ExitStatus::Exited(code.into()));
                }
            }
        }
        ExitStatus::Killed
    }
}
