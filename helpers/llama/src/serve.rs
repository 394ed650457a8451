//! The protocol: one line in, one or more lines out, over one connection.
//!
//! A line that is no request is answered and forgotten; only a line without an end
//! closes the connection, since nothing tells where the next one would begin. It must
//! never answer out of order and never write after the peer is gone.

use std::io::{self, BufRead, Read, Write};

use automaton_core::wire::brain::{
    LINE_BYTES_MAX, LocalModelFailure, LocalModelFailureCode, LocalModelRequest, LocalModelResponse,
};
use thiserror::Error;

use crate::generate::{Brain, Trouble};

/// Why serving ended early.
#[derive(Debug, Error)]
pub enum Ended {
    /// A line was longer than the protocol allows.
    #[error("a line is longer than {LINE_BYTES_MAX} bytes")]
    LongLine,
    /// The connection failed otherwise than by being closed.
    #[error("the connection failed")]
    Connection(#[from] io::Error),
}

/// Answers requests until the peer closes the connection.
///
/// # Errors
/// [`Ended`]; a peer that hangs up is no error.
pub fn serve(
    brain: &mut Brain<'_>,
    mut input: impl BufRead,
    mut output: impl Write,
) -> Result<(), Ended> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = LINE_BYTES_MAX as u64 + 1;
        let read = (&mut input).take(limit).read_until(b'\n', &mut line);
        let outcome = match read {
            Ok(0) => return Ok(()),
            Ok(_) if line.len() > LINE_BYTES_MAX && line.last() != Some(&b'\n') => {
                let message = Ended::LongLine.to_string();
                let reply = failed(LocalModelFailureCode::BadRequest, message);
                return send(&mut output, &reply).or_else(hung_up).and(Err(Ended::LongLine));
            }
            Ok(_) => answer(brain, &line, &mut output),
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            return hung_up(error);
        }
    }
}

/// A closed connection is how a session normally ends.
fn hung_up(error: io::Error) -> Result<(), Ended> {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Ok(()),
        _ => Err(Ended::Connection(error)),
    }
}

/// Answers one line. Only a failure of the connection is an error.
fn answer(brain: &mut Brain<'_>, line: &[u8], output: &mut impl Write) -> io::Result<()> {
    let reply = match serde_json::from_slice(line) {
        Ok(LocalModelRequest::Count { messages }) => brain.count(&messages).map(|tokens| {
            LocalModelResponse::Counted { tokens: u32::try_from(tokens).unwrap_or(u32::MAX) }
        }),
        Ok(LocalModelRequest::Complete(ask)) => {
            let mut sink =
                |text: &str| send(output, &LocalModelResponse::Token { text: text.to_owned() });
            brain.complete(&ask, &mut sink).map(LocalModelResponse::Done)
        }
        Err(error) => {
            let message = format!("the line is no request: {error}");
            return send(output, &failed(LocalModelFailureCode::BadRequest, message));
        }
    };
    match reply {
        Ok(reply) => send(output, &reply),
        Err(Trouble::Deliver(error)) => Err(error),
        Err(trouble) => send(output, &failed(code(&trouble), trouble.to_string())),
    }
}

/// The code under which a trouble is reported.
fn code(trouble: &Trouble) -> LocalModelFailureCode {
    match trouble {
        Trouble::Render(_) => LocalModelFailureCode::BadRequest,
        Trouble::TooLong { .. } => LocalModelFailureCode::TooLong,
        Trouble::Schema { .. } => LocalModelFailureCode::BadSchema,
        Trouble::Model(_) | Trouble::Grammar(_) | Trouble::Deliver(_) => {
            LocalModelFailureCode::Model
        }
    }
}

/// A failure as a reply.
#[must_use]
pub fn failed(code: LocalModelFailureCode, message: String) -> LocalModelResponse {
    LocalModelResponse::Failed(LocalModelFailure { code, message })
}

/// Writes one reply as a line.
///
/// # Errors
/// When the peer is gone.
pub fn send(output: &mut impl Write, reply: &LocalModelResponse) -> io::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}
