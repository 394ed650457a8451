//! Counts what goes over a connection, and ends it where it is too much or too long.
//!
//! Every byte to and from the host passes here, so that one count holds for requests and
//! tunnels alike. Nothing may be sent or received uncounted.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use automaton_core::egress::EgressEndReason;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep};

use crate::limits::Allowance;

/// The traffic of one connection.
#[derive(Debug)]
pub(super) struct TrafficMeter {
    allowance: Allowance,
    up: AtomicU64,
    down: AtomicU64,
    /// The bytes of all connections of the same command.
    run: Arc<AtomicU64>,
    cut: OnceLock<EgressEndReason>,
    /// The status of the host's answer, or of the tunnel's.
    status: OnceLock<u16>,
}

impl TrafficMeter {
    pub(super) fn new(allowance: Allowance, run: Arc<AtomicU64>) -> Arc<Self> {
        let up = AtomicU64::new(0);
        let down = AtomicU64::new(0);
        let cut = OnceLock::new();
        let status = OnceLock::new();
        Arc::new(Self { allowance, up, down, run, cut, status })
    }

    /// Bytes to the host, and from it.
    pub(super) fn bytes(&self) -> (u64, u64) {
        (self.up.load(Relaxed), self.down.load(Relaxed))
    }

    /// Returns the reason why the connection was cut, if it was.
    pub(super) fn cut(&self) -> Option<EgressEndReason> {
        self.cut.get().copied()
    }

    /// Takes the status that the program is answered with.
    pub(super) fn answered(&self, status: u16) {
        self.status.get_or_init(|| status);
    }

    /// The status of the answer, once there is one.
    pub(super) fn status(&self) -> Option<u16> {
        self.status.get().copied()
    }

    fn count(&self, direction: &AtomicU64, bytes: usize) -> io::Result<()> {
        let bytes = bytes as u64;
        let one = direction.fetch_add(bytes, Relaxed) + bytes;
        let all = self.run.fetch_add(bytes, Relaxed) + bytes;
        let end = match () {
            () if one > self.allowance.bytes_per_request => EgressEndReason::RequestBytes,
            () if all > self.allowance.bytes_per_run => EgressEndReason::RunBytes,
            () => return Ok(()),
        };
        self.cut.get_or_init(|| end);
        Err(io::Error::other("the request is larger than it may be"))
    }

    /// Waits until the connection has been idle, or open, for too long.
    pub(super) async fn overdue(&self) -> EgressEndReason {
        let Allowance { idle, total, .. } = self.allowance;
        let begun = Instant::now();
        let mut before = self.bytes();
        loop {
            let left = total.saturating_sub(begun.elapsed());
            sleep(idle.min(left)).await;
            let now = self.bytes();
            let end = match () {
                () if begun.elapsed() >= total => EgressEndReason::TooLong,
                () if now == before => EgressEndReason::Idle,
                () => {
                    before = now;
                    continue;
                }
            };
            return *self.cut.get_or_init(|| end);
        }
    }
}

/// A connection to a host, under a meter.
pub(super) struct MeteredStream<S> {
    stream: S,
    meter: Arc<TrafficMeter>,
}

impl<S> MeteredStream<S> {
    pub(super) const fn new(stream: S, meter: Arc<TrafficMeter>) -> Self {
        Self { stream, meter }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MeteredStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        Poll::Ready(self.meter.count(&self.meter.down, buffer.filled().len() - before))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MeteredStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        Poll::Ready(self.meter.count(&self.meter.up, written).map(|()| written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
