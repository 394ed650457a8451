//! Accepts connections, with limits on their number: in all and for each address.
//!
//! A client that sends nothing, before a request or within one, or that takes no answer, is
//! disconnected. The routes handle the requests. No wait for a stranger may be without a limit.

use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::extract::ConnectInfo;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Request};
use axum::{BoxError, Router};
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep};
use tower_service::Service as _;

use crate::shares::AddressShares;

/// Connections at a time; others wait to be taken.
const CONNECTIONS_MAX: usize = 2048;
/// Connections of one address at a time; one more is refused at once.
pub(crate) const CONNECTIONS_EACH_MAX: usize = CONNECTIONS_MAX / 4;
/// The answer to a connection of an address that has its share.
const REFUSAL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\n\
    retry-after: 1\r\nconnection: close\r\ncontent-length: 51\r\n\r\n\
    too many connections are open from this address\r\n\r\n";
/// The longest time without the head of a request. Clients keep connections for 90 seconds.
const HEAD_WITHIN: Duration = Duration::from_secs(100);
/// The longest pause between pieces of a body.
const PIECE_WITHIN: Duration = Duration::from_secs(60);
/// Bytes that a body has to bring for each second that it takes longer.
const BYTES_PER_SECOND_MIN: u64 = 1024;
/// The longest time until a client takes a piece of an answer.
const TAKEN_WITHIN: Duration = Duration::from_secs(120);
/// The pause after no connection could be accepted for want of descriptors.
const AGAIN: Duration = Duration::from_millis(200);

/// Serves until it is stopped, and then finishes the requests under way.
pub(crate) async fn serve(
    listener: TcpListener,
    routes: Router,
    shares: AddressShares,
    mut stopped: watch::Receiver<bool>,
) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut open = JoinSet::new();
    loop {
        // All three are cancel-safe: what was accepted is taken, or was not.
        tokio::select! {
            biased;
            () = over(&mut stopped) => break,
            Some(_) = open.join_next() => {}
            (stream, peer, permit) = take(&listener, &room) => {
                let Some(place) = shares.take(peer.ip()) else {
                    // silent-ok: it is told once, as far as it takes it at once.
                    stream.try_write(REFUSAL).ok();
                    continue;
                };
                let routes = routes.clone();
                let stopped = stopped.clone();
                open.spawn(async move {
                    converse(stream, peer, routes, stopped).await;
                    drop((permit, place));
                });
            }
        }
    }
    drop(listener);
    while open.join_next().await.is_some() {}
}

async fn over(stopped: &mut watch::Receiver<bool>) {
    // silent-ok: a handle that is gone means the same as one that says stop.
    stopped.wait_for(|stop| *stop).await.ok();
}

async fn take(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> (TcpStream, SocketAddr, Option<OwnedSemaphorePermit>) {
    // silent-ok: nobody closes it.
    let permit = Arc::clone(room).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return (stream, peer, permit),
            Err(error) if is_of_one(&error) => {}
            Err(_) => sleep(AGAIN).await,
        }
    }
}

/// Returns whether a failure concerns only one connection, so that the next can be accepted.
fn is_of_one(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionRefused | ConnectionAborted | ConnectionReset)
}

async fn converse(
    stream: TcpStream,
    peer: SocketAddr,
    routes: Router,
    mut stopped: watch::Receiver<bool>,
) {
    // An answer comes in pieces: none may wait for the last one's receipt.
    // silent-ok: without it answers are as right, and slower.
    stream.set_nodelay(true).ok();
    let answer = service_fn(move |request: Request<Incoming>| {
        let is_read = Arc::new(AtomicBool::new(request.body().is_end_stream()));
        let mut request = request.map(|body| TimeoutBody::new(body, Arc::clone(&is_read)));
        request.extensions_mut().insert(ConnectInfo(peer));
        let mut routes = routes.clone();
        async move {
            let mut answer = routes.call(request).await?;
            // A connection whose request was not read to its end is closed behind the answer. A
            // client that is not told so sends its next request into it.
            if !is_read.load(Ordering::Relaxed) {
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(answer)
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
    let mut connection = pin!(
        http.serve_connection(TokioIo::new(WriteTimeoutStream { stream, stuck: None }), answer)
            .with_upgrades()
    );
    tokio::select! {
        biased;
        // silent-ok: whoever breaks off, or is hung up on, knows it.
        _ = connection.as_mut() => return,
        () = over(&mut stopped) => connection.as_mut().graceful_shutdown(),
    }
    // silent-ok: as above.
    connection.await.ok();
}

/// A body that comes in time: piece by piece, and not ever so slowly.
struct TimeoutBody {
    body: Incoming,
    bytes: u64,
    /// The beginning and the deadline of the current wait.
    waited: Option<(Instant, Pin<Box<Sleep>>)>,
    /// Set when all of it was read.
    is_read: Arc<AtomicBool>,
}

impl TimeoutBody {
    const fn new(body: Incoming, is_read: Arc<AtomicBool>) -> Self {
        Self { body, bytes: 0, waited: None, is_read }
    }
}

impl Body for TimeoutBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            if frame.is_none() || this.body.is_end_stream() {
                this.is_read.store(true, Ordering::Relaxed);
            }
            let piece = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
            this.bytes = this.bytes.saturating_add(piece.map_or(0, |piece| piece.len() as u64));
            if let Some((since, quiet)) = &mut this.waited {
                let earned = Duration::from_secs(this.bytes / BYTES_PER_SECOND_MIN);
                let next = Instant::now() + PIECE_WITHIN;
                let worn = since.checked_add(PIECE_WITHIN + earned).unwrap_or(next);
                quiet.as_mut().reset(next.min(worn));
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(BoxError::from)));
        }
        let begin = || (Instant::now(), Box::pin(sleep(PIECE_WITHIN)));
        let (_, quiet) = this.waited.get_or_insert_with(begin);
        ready!(quiet.as_mut().poll(context));
        let why = "the body came too slowly";
        Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::TimedOut, why).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection whose other end takes what is written, in time.
struct WriteTimeoutStream {
    stream: TcpStream,
    stuck: Option<Pin<Box<Sleep>>>,
}

impl WriteTimeoutStream {
    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.stuck = None;
            return polled;
        }
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(TAKEN_WITHIN)));
        ready!(stuck.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for WriteTimeoutStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for WriteTimeoutStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.watch(context, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::post;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    async fn open() -> (TcpStream, (watch::Sender<bool>, JoinSet<()>)) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let count = async |body: Bytes| body.len().to_string();
        let (stop, stopped) = watch::channel(false);
        let mut served = JoinSet::new();
        let routes = Router::new().route("/", post(count));
        served.spawn(serve(listener, routes, AddressShares::new(1, &[]), stopped));
        (TcpStream::connect(at).await.unwrap(), (stop, served))
    }

    #[tokio::test(start_paused = true)]
    async fn who_says_nothing_is_hung_up_on() {
        let (mut stream, _served) = open().await;
        let begun = Instant::now();
        let mut said = Vec::new();
        stream.read_to_end(&mut said).await.unwrap();
        assert!(said.is_empty() && begun.elapsed() >= HEAD_WITHIN, "{said:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_comes_in_time_or_is_none() {
        let (mut stream, _served) = open().await;
        let head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let begun = Instant::now();
        // Never silent for long, and far too slow.
        let (mut from, mut to) = stream.into_split();
        let mut drips = JoinSet::new();
        drips.spawn(async move {
            while to.write_all(b"x").await.is_ok() {
                sleep(PIECE_WITHIN / 4).await;
            }
        });
        let mut answer = [0; 12];
        from.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 400");
        assert!(begun.elapsed() < PIECE_WITHIN * 2, "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_to_a_request_that_was_not_read_says_that_the_connection_ends() {
        for (path, length, ends) in [("/nowhere", 2, true), ("/nowhere", 0, false), ("/", 2, false)]
        {
            let (mut stream, (stop, _served)) = open().await;
            let head =
                format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            if !ends {
                stream.write_all(&b"ab"[..length]).await.unwrap();
            }
            let mut begin = [0; 12];
            stream.read_exact(&mut begin).await.unwrap();
            stop.send_replace(true);
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await.unwrap();
            let rest = String::from_utf8_lossy(&rest).to_ascii_lowercase();
            assert_eq!(rest.contains("connection: close"), ends, "{path} {length}: {rest}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_when_it_is_told_to() {
        let (mut stream, (stop, _served)) = open().await;
        stream
            .write_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab")
            .await
            .unwrap();
        let mut answer = [0; 15];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200 OK");
        stop.send_replace(true);
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        assert!(rest.ends_with(b"\r\n2"), "{}", String::from_utf8_lossy(&rest));
    }
}
