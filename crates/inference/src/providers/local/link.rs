//! The helper's protocol over any stream: one JSON object a line.
//!
//! The other side is not trusted: lines, text and time are bounded, and after
//! the first thing out of order the link is of no use any more. Must never
//! read beyond the answer to the request that it sent.

use std::time::Duration;

use automaton_core::wire::brain::{
    Complete, Done, Failed, FailedCode, Hello, LINE_BYTES_MAX, Reply, Request, VERSION,
};
use automaton_net::redact;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufStream,
};
use tokio::time::{Instant, timeout_at};

use crate::provider::Sink;

use super::LocalDeadlines;

/// The most that the pieces of one answer may hold, in bytes.
const PIECES_BYTES_MAX: usize = LINE_BYTES_MAX;

/// The longest text of the helper that goes into an error, in bytes.
const SAID_BYTES_MAX: usize = 300;

/// Why the other side did not answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LinkError {
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
        /// What failed.
        code: FailedCode,
        /// What it says.
        message: String,
    },
}

/// One end of the protocol.
#[derive(Debug)]
pub(super) struct Link<S> {
    stream: BufStream<S>,
    line: Vec<u8>,
}

/// The end of one exchange, and of each silence within it.
#[derive(Clone, Copy)]
struct Patience {
    idle: Duration,
    total: Duration,
    end: Instant,
}

impl Patience {
    fn new(idle: Duration, total: Duration) -> Self {
        Self { idle, total, end: Instant::now() + total }
    }

    async fn with<T>(&self, step: impl Future<Output = T>) -> Result<T, LinkError> {
        let idle = Instant::now() + self.idle;
        let done = timeout_at(idle.min(self.end), step).await;
        done.map_err(|_| match idle < self.end {
            true => LinkError::Hung(self.idle),
            false => LinkError::Slow(self.total),
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Link<S> {
    /// A link over a stream of which nothing has been read.
    pub(super) fn new(stream: S) -> Self {
        Self { stream: BufStream::new(stream), line: Vec::new() }
    }

    /// Waits for the helper's first line.
    pub(super) async fn hello(&mut self, limit: Duration) -> Result<Hello, LinkError> {
        match self.next(&Patience::new(limit, limit)).await? {
            Reply::Hello(hello) if hello.version == VERSION => Ok(hello),
            Reply::Hello(hello) => Err(LinkError::Version(hello.version)),
            Reply::Failed(failed) => Err(answer(&failed)),
            other => Err(out_of_place(&other)),
        }
    }

    /// Asks for an answer, and shows its pieces as they come.
    pub(super) async fn complete(
        &mut self,
        request: &Complete,
        sink: &dyn Sink,
        deadlines: LocalDeadlines,
    ) -> Result<Done, LinkError> {
        let patience = Patience::new(deadlines.idle, deadlines.total);
        self.send(&Request::Complete(request.clone()), &patience).await?;
        let mut shown = 0;
        loop {
            match self.next(&patience).await? {
                Reply::Token { text } => {
                    shown += text.len();
                    if shown > PIECES_BYTES_MAX {
                        let what = format!("an answer of more than {PIECES_BYTES_MAX} bytes");
                        return Err(LinkError::Protocol(what));
                    }
                    sink.text(&text);
                }
                Reply::Done(done) => return Ok(done),
                Reply::Failed(failed) => return Err(answer(&failed)),
                other @ (Reply::Hello(_) | Reply::Counted { .. }) => {
                    return Err(out_of_place(&other));
                }
            }
        }
    }

    async fn send(&mut self, request: &Request, patience: &Patience) -> Result<(), LinkError> {
        let refuse = |message: String| LinkError::Answer { code: FailedCode::BadRequest, message };
        let mut line = serde_json::to_vec(request).map_err(|error| refuse(error.to_string()))?;
        if line.len() >= LINE_BYTES_MAX {
            let message = format!("the request is {} bytes long", line.len());
            return Err(LinkError::Answer { code: FailedCode::TooLong, message });
        }
        line.push(b'\n');
        let write = async {
            self.stream.write_all(&line).await?;
            self.stream.flush().await
        };
        // A helper that does not even listen is gone, or as good as gone.
        patience.with(write).await?.map_err(|_| LinkError::Closed)
    }

    async fn next(&mut self, patience: &Patience) -> Result<Reply, LinkError> {
        self.line.clear();
        let cap = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
        let mut bounded = (&mut self.stream).take(cap);
        let read = patience.with(bounded.read_until(b'\n', &mut self.line)).await?;
        if read.is_err() || self.line.is_empty() {
            return Err(LinkError::Closed);
        }
        match self.line.strip_suffix(b"\n") {
            Some(line) => serde_json::from_slice(line).map_err(|error| {
                let shown = redact::text(&String::from_utf8_lossy(line), &[], 80);
                LinkError::Protocol(format!("'{shown}' is no line of it ({error})"))
            }),
            None if self.line.len() >= LINE_BYTES_MAX => {
                Err(LinkError::Protocol(format!("a line of more than {LINE_BYTES_MAX} bytes")))
            }
            None => Err(LinkError::Closed),
        }
    }
}

fn answer(failed: &Failed) -> LinkError {
    let message = redact::text(&failed.message, &[], SAID_BYTES_MAX);
    LinkError::Answer { code: failed.code, message }
}

fn out_of_place(reply: &Reply) -> LinkError {
    let what = match reply {
        Reply::Hello(_) => "a second greeting",
        Reply::Token { .. } => "a token before it was asked",
        Reply::Done(_) => "an answer before it was asked",
        Reply::Counted { .. } => "a count that nobody asked for",
        Reply::Failed(_) => "a failure before it was asked",
    };
    LinkError::Protocol(what.to_owned())
}

#[cfg(test)]
mod tests;
