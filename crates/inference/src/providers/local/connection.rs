//! The helper's protocol over any stream: one JSON object a line.
//!
//! The other side is not trusted: lines, text and time are bounded, and after
//! the first thing out of order the link is of no use any more. Must never
//! read beyond the answer to the request that it sent.

use std::time::Duration;

use automaton_core::wire::brain::{
    LINE_BYTES_MAX, LocalModelCompletion, LocalModelCompletionRequest, LocalModelFailure,
    LocalModelFailureCode, LocalModelHello, LocalModelRequest, LocalModelResponse, VERSION,
};
use automaton_net::redact;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufStream,
};
use tokio::time::{Instant, timeout_at};

use crate::provider::TokenSink;

use super::LocalModelDeadlines;

/// The most that the pieces of one answer may hold, in bytes.
const PIECES_BYTES_MAX: usize = LINE_BYTES_MAX;

/// The longest text of the helper that goes into an error, in bytes.
const SAID_BYTES_MAX: usize = 300;

/// Reasons for which the other side did not answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LocalModelConnectionError {
    /// It is gone.
    Closed,
    /// It said nothing for this long.
    Hung(Duration),
    /// It was not done after this long.
    Slow(Duration),
    /// It speaks this version.
    Version(u32),
    /// It said what it must not say.
    Protocol(String),
    /// It cannot answer this request, and can answer the next.
    Answer {
        /// Kind of the failure.
        code: LocalModelFailureCode,
        /// Message.
        message: String,
    },
}

/// One end of the protocol.
#[derive(Debug)]
pub(super) struct LocalModelConnection<S> {
    stream: BufStream<S>,
    line: Vec<u8>,
}

/// The end of one exchange, and of each silence within it.
#[derive(Clone, Copy)]
struct ExchangeDeadlines {
    idle: Duration,
    total: Duration,
    end: Instant,
}

impl ExchangeDeadlines {
    fn new(idle: Duration, total: Duration) -> Self {
        Self { idle, total, end: Instant::now() + total }
    }

    async fn with<T>(&self, step: impl Future<Output = T>) -> Result<T, LocalModelConnectionError> {
        let idle = Instant::now() + self.idle;
        let done = timeout_at(idle.min(self.end), step).await;
        done.map_err(|_| match idle < self.end {
            true => LocalModelConnectionError::Hung(self.idle),
            false => LocalModelConnectionError::Slow(self.total),
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> LocalModelConnection<S> {
    /// A link over a stream of which nothing has been read.
    pub(super) fn new(stream: S) -> Self {
        Self { stream: BufStream::new(stream), line: Vec::new() }
    }

    /// Waits for the helper's first line.
    pub(super) async fn hello(
        &mut self,
        limit: Duration,
    ) -> Result<LocalModelHello, LocalModelConnectionError> {
        match self.next(&ExchangeDeadlines::new(limit, limit)).await? {
            LocalModelResponse::Hello(hello) if hello.version == VERSION => Ok(hello),
            LocalModelResponse::Hello(hello) => {
                Err(LocalModelConnectionError::Version(hello.version))
            }
            LocalModelResponse::Failed(failed) => Err(answer(&failed)),
            other => Err(out_of_place(&other)),
        }
    }

    /// Asks for an answer, and shows its pieces as they come.
    pub(super) async fn complete(
        &mut self,
        request: &LocalModelCompletionRequest,
        sink: &dyn TokenSink,
        deadlines: LocalModelDeadlines,
    ) -> Result<LocalModelCompletion, LocalModelConnectionError> {
        let patience = ExchangeDeadlines::new(deadlines.idle, deadlines.total);
        self.send(&LocalModelRequest::Complete(request.clone()), &patience).await?;
        let mut shown = 0;
        loop {
            match self.next(&patience).await? {
                LocalModelResponse::Token { text } => {
                    shown += text.len();
                    if shown > PIECES_BYTES_MAX {
                        let what = format!("an answer of more than {PIECES_BYTES_MAX} bytes");
                        return Err(LocalModelConnectionError::Protocol(what));
                    }
                    sink.text(&text);
                }
                LocalModelResponse::Done(done) => return Ok(done),
                LocalModelResponse::Failed(failed) => return Err(answer(&failed)),
                other @ (LocalModelResponse::Hello(_) | LocalModelResponse::Counted { .. }) => {
                    return Err(out_of_place(&other));
                }
            }
        }
    }

    async fn send(
        &mut self,
        request: &LocalModelRequest,
        patience: &ExchangeDeadlines,
    ) -> Result<(), LocalModelConnectionError> {
        let refuse = |message: String| LocalModelConnectionError::Answer {
            code: LocalModelFailureCode::BadRequest,
            message,
        };
        let mut line = serde_json::to_vec(request).map_err(|error| refuse(error.to_string()))?;
        if line.len() >= LINE_BYTES_MAX {
            let message = format!("the request is {} bytes long", line.len());
            return Err(LocalModelConnectionError::Answer {
                code: LocalModelFailureCode::TooLong,
                message,
            });
        }
        line.push(b'\n');
        let write = async {
            self.stream.write_all(&line).await?;
            self.stream.flush().await
        };
        // A helper that does not even listen is gone, or as good as gone.
        patience.with(write).await?.map_err(|_| LocalModelConnectionError::Closed)
    }

    async fn next(
        &mut self,
        patience: &ExchangeDeadlines,
    ) -> Result<LocalModelResponse, LocalModelConnectionError> {
        self.line.clear();
        let cap = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
        let mut bounded = (&mut self.stream).take(cap);
        let read = patience.with(bounded.read_until(b'\n', &mut self.line)).await?;
        if read.is_err() || self.line.is_empty() {
            return Err(LocalModelConnectionError::Closed);
        }
        match self.line.strip_suffix(b"\n") {
            Some(line) => serde_json::from_slice(line).map_err(|error| {
                let shown = redact::text(&String::from_utf8_lossy(line), &[], 80);
                LocalModelConnectionError::Protocol(format!("'{shown}' is no line of it ({error})"))
            }),
            None if self.line.len() >= LINE_BYTES_MAX => Err(LocalModelConnectionError::Protocol(
                format!("a line of more than {LINE_BYTES_MAX} bytes"),
            )),
            None => Err(LocalModelConnectionError::Closed),
        }
    }
}

fn answer(failed: &LocalModelFailure) -> LocalModelConnectionError {
    let message = redact::text(&failed.message, &[], SAID_BYTES_MAX);
    LocalModelConnectionError::Answer { code: failed.code, message }
}

fn out_of_place(reply: &LocalModelResponse) -> LocalModelConnectionError {
    let what = match reply {
        LocalModelResponse::Hello(_) => "a second greeting",
        LocalModelResponse::Token { .. } => "a token before it was asked",
        LocalModelResponse::Done(_) => "an answer before it was asked",
        LocalModelResponse::Counted { .. } => "a count that nobody asked for",
        LocalModelResponse::Failed(_) => "a failure before it was asked",
    };
    LocalModelConnectionError::Protocol(what.to_owned())
}

#[cfg(test)]
mod tests;
