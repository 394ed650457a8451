//! The creator's hand: speaks to a running automaton over its control socket.
//!
//! One line there and one line back, or all that happens from then on. An answer that was lost is never taken
//! for a refusal: a send carries a key, so that it can be repeated without
//! being stored twice.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use automaton_core::error::ErrorClass;
use automaton_core::event::StampedEvent;
use automaton_core::wire::control::{ControlRequest, ControlResponse, LINE_BYTES_MAX, SOCKET_NAME};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream as Stream;

use crate::error::CliError;
use crate::line;

/// The longest that an automaton may take to answer. It answers between two
/// steps of a turn, never in the middle of one that matters.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Reason for which a running automaton did not answer.
#[derive(Debug)]
pub(crate) enum ControlError {
    /// Nobody listens.
    NotRunning,
    /// Somebody listens and did not answer properly. The command may have been
    /// carried out.
    Lost(io::Error),
}

impl ControlError {
    /// Returns true if a retry may help: nobody listens yet, or the listener was slow or died. A
    /// broken socket or answer stays broken.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::NotRunning => true,
            Self::Lost(error) => matches!(
                error.kind(),
                io::ErrorKind::TimedOut
                    | io::ErrorKind::WouldBlock
                    | io::ErrorKind::UnexpectedEof
                    | io::ErrorKind::ConnectionReset
                    // How the same death looks if it comes before the command is written.
                    | io::ErrorKind::BrokenPipe
            ),
        }
    }
}

impl From<ControlError> for CliError {
    fn from(silence: ControlError) -> Self {
        match silence {
            ControlError::NotRunning => Self::user("the automaton does not run")
                .hint("start it with `automaton up` or `automaton run`"),
            ControlError::Lost(error) => {
                Self::new(ErrorClass::Transient, "the automaton did not answer").because(&error)
            }
        }
    }
}

/// Asks the automaton of a home.
///
/// # Errors
/// When nobody listens, or no answer comes.
pub(crate) fn ask(home: &Path, command: &ControlRequest) -> Result<ControlResponse, ControlError> {
    ask_within(home, command, ANSWER_MAX)
}

/// The same, for a command whose answer may take longer.
///
/// # Errors
/// As [`ask`].
pub(crate) fn ask_within(
    home: &Path,
    command: &ControlRequest,
    within: Duration,
) -> Result<ControlResponse, ControlError> {
    let stream = UnixStream::connect(home.join(SOCKET_NAME)).map_err(unreached)?;
    exchange(stream, command, within).map_err(ControlError::Lost)
}

fn unreached(error: io::Error) -> ControlError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => ControlError::NotRunning,
        _ => ControlError::Lost(error),
    }
}

/// Events of a running automaton, as they happen.
#[derive(Debug)]
pub(crate) struct EventFeed {
    stream: tokio::io::BufReader<Stream>,
    partial: Vec<u8>,
}

impl EventFeed {
    /// Begins to follow the automaton of a home.
    ///
    /// # Errors
    /// When nobody listens, or it does not let itself be followed.
    pub(crate) async fn open(home: &Path) -> Result<Self, ControlError> {
        let mut stream = Stream::connect(home.join(SOCKET_NAME)).await.map_err(unreached)?;
        let begun = async {
            let mut line = serde_json::to_vec(&ControlRequest::Follow)?;
            line.push(b'\n');
            stream.write_all(&line).await?;
            let stream = tokio::io::BufReader::new(stream);
            let mut feed = Self { stream, partial: Vec::new() };
            let answer = feed.line().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
            match serde_json::from_slice(&answer)? {
                ControlResponse::Following => Ok(feed),
                ControlResponse::Refused { reason } => Err(io::Error::other(reason)),
                other => Err(io::Error::other(format!("the automaton answered {other:?}"))),
            }
        };
        let begun = tokio::time::timeout(ANSWER_MAX, begun).await;
        begun.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(ControlError::Lost)
    }

    /// The next event; nothing when it ended, or was too fast for us. Cancel-safe: what
    /// was read of a line is kept. What a newer program tells beyond our events is passed over.
    pub(crate) async fn next(&mut self) -> Option<StampedEvent> {
        loop {
            // silent-ok: a connection that broke has ended; it may be opened anew.
            let line = self.line().await.ok().flatten()?;
            if let Ok(event) = serde_json::from_slice(&line) {
                return Some(event);
            }
        }
    }

    async fn line(&mut self) -> io::Result<Option<Vec<u8>>> {
        line::next(&mut self.stream, &mut self.partial, LINE_BYTES_MAX).await
    }
}

fn exchange(
    mut stream: UnixStream,
    command: &ControlRequest,
    within: Duration,
) -> io::Result<ControlResponse> {
    stream.set_read_timeout(Some(within))?;
    stream.set_write_timeout(Some(ANSWER_MAX))?;
    let mut line = serde_json::to_vec(command)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    BufReader::new(stream.take(LINE_BYTES_MAX as u64)).read_line(&mut answer)?;
    if answer.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_str(&answer)?)
}

/// The refusal that an answer of the wrong kind is.
pub(crate) fn unexpected(answer: ControlResponse) -> CliError {
    match answer {
        ControlResponse::Refused { reason } => CliError::new(ErrorClass::Denied, reason),
        other => CliError::new(
            ErrorClass::Internal,
            format!("the automaton answered strangely: {other:?}"),
        ),
    }
}
