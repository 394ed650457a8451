//! The door that everybody comes through: connections, so many at a time, each for as long as it
//! speaks.
//!
//! Whoever says nothing, before a request or within one, is hung up on. What is said is for the
//! routes. Must never wait for a stranger without a limit.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::extract::ConnectInfo;
use axum::http::Request;
use axum::response::Response;
use axum::{BoxError, Router};
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep};
use tower_service::Service as _;

/// Connections at a time; others wait to be taken.
const CONNECTIONS_MAX: usize = 2048;
/// How long a connection may go without the head of a request. Clients keep theirs for 90 seconds.
const HEAD_WITHIN: Duration = Duration::from_secs(100);
/// How long a body may go without a piece.
const PIECE_WITHIN: Duration = Duration::from_secs(60);
/// How long to wait where no connection can be taken, for want of descriptors.
const AGAIN: Duration = Duration::from_millis(200);

/// Serves until it is told to stop, and then what is under way to its end.
pub(crate) async fn serve(
    listener: TcpListener,
    routes: Router,
    mut stopped: watch::Receiver<bool>,
) {
    let (room, mut open) = (Arc::new(Semaphore::new(CONNECTIONS_MAX)), JoinSet::new());
    loop {
        // All three are cancel-safe: what was accepted is taken, or was not.
        tokio::select! {
            biased;
            () = over(&mut stopped) => break,
            Some(_) = open.join_next() => {}
            (stream, peer, permit) = take(&listener, &room) => {
                let (routes, stopped) = (routes.clone(), stopped.clone());
                open.spawn(async move {
                    converse((stream, peer), routes, stopped).await;
                    drop(permit);
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

/// Whether a failure is of one connection, and the next can be taken.
fn is_of_one(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionRefused | ConnectionAborted | ConnectionReset)
}

async fn converse(
    (stream, peer): (TcpStream, SocketAddr),
    routes: Router,
    mut stopped: watch::Receiver<bool>,
) {
    // An answer comes in pieces: none may wait for the last one's receipt.
    // silent-ok: without it answers are as right, and slower.
    stream.set_nodelay(true).ok();
    let answer = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Timely::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        let mut routes = routes.clone();
        async move { Ok::<Response, Infallible>(routes.call(request).await?) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), answer).with_upgrades());
    tokio::select! {
        biased;
        // silent-ok: whoever breaks off, or is hung up on, knows it.
        _ = connection.as_mut() => return,
        () = over(&mut stopped) => connection.as_mut().graceful_shutdown(),
    }
    // silent-ok: as above.
    connection.await.ok();
}

/// A body that comes in time, piece by piece.
struct Timely {
    body: Incoming,
    quiet: Pin<Box<Sleep>>,
}

impl Timely {
    fn new(body: Incoming) -> Self {
        Self { body, quiet: Box::pin(sleep(PIECE_WITHIN)) }
    }
}

impl Body for Timely {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(frame) = polled {
            self.quiet.as_mut().reset(Instant::now() + PIECE_WITHIN);
            return Poll::Ready(frame.map(|frame| frame.map_err(BoxError::from)));
        }
        ready!(self.quiet.as_mut().poll(context));
        let why = format!("nothing came for {} seconds", PIECE_WITHIN.as_secs());
        Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::TimedOut, why).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
