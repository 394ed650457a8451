//! A WebSocket: requests as over HTTP, and notifications of its subscriptions.
//!
//! A client is notified as fast as it reads. A client that does not read is closed with the
//! reason. A browser page must never open one, since any site could then send requests.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::subscriptions::{BEHIND_MAX, SubscriptionSet, TooSlow};
use super::{REQUEST_BYTES_MAX, RpcState};

/// The most WebSockets at once.
pub(super) const SOCKETS_MAX: usize = 64;
/// The interval between pings.
const PING: Duration = Duration::from_secs(20);
/// The longest silence of a client, including pongs.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// The timeout of sending a message.
const SEND_MAX: Duration = Duration::from_secs(10);

/// The close code of RFC 6455 and the reason, if the client can be told.
type Closing = Option<(u16, String)>;

/// Accepts a WebSocket if there is a free permit.
pub(super) async fn open(
    State(served): State<RpcState>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    // Programs send no origin. Browsers always send one, and need no permission to connect.
    if headers.contains_key(header::ORIGIN) {
        let sentence = "a page of a browser may not use this chain: leave the header Origin out\n";
        return (StatusCode::FORBIDDEN, sentence).into_response();
    }
    let Ok(permit) = Arc::clone(&served.sockets).try_acquire_owned() else {
        let sentence = format!("{SOCKETS_MAX} WebSockets are open, and no more are taken\n");
        return (StatusCode::SERVICE_UNAVAILABLE, sentence).into_response();
    };
    upgrade
        .max_message_size(REQUEST_BYTES_MAX)
        .max_frame_size(REQUEST_BYTES_MAX)
        .on_upgrade(move |socket| serve(socket, served, permit))
}

async fn serve(mut socket: WebSocket, served: RpcState, _room: OwnedSemaphorePermit) {
    let Some((code, reason)) = run_connection(&mut socket, served).await else { return };
    let frame = CloseFrame { code, reason: reason.into() };
    // silent-ok: a client that does not read does not need the reason either.
    timeout(SEND_MAX, socket.send(Message::Close(Some(frame)))).await.ok();
}

/// Answers requests and sends notifications until either side ends.
async fn run_connection(socket: &mut WebSocket, mut served: RpcState) -> Closing {
    let mut changes = served.node.lock().await.changes();
    let mut set = SubscriptionSet::default();
    let mut pings = interval(PING);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut heard = Instant::now();
    loop {
        // Each arm is cancel-safe: a message is received completely or not at all.
        tokio::select! {
            biased;
            // Nothing is ever sent on this channel. It closes when the chain stops.
            _ = served.stopped.changed() => {
                return Some((close_code::AWAY, "the chain stops".to_owned()));
            }
            message = socket.recv() => {
                heard = Instant::now();
                let body = match message {
                    Some(Ok(Message::Text(text))) => Bytes::from(text),
                    Some(Ok(Message::Binary(bytes))) => bytes,
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                };
                let Some((json, kept)) = served.answer(body, Some(set)).await else {
                    return Some((close_code::ERROR, "the request failed".to_owned()));
                };
                set = kept.unwrap_or_default();
                if let Some(json) = json {
                    send(socket, Message::text(json)).await?;
                }
            }
            changed = changes.changed() => {
                // silent-ok: the server owns the node, and without it everything ends.
                changed.ok()?;
                if let Err(closing) = notify(socket, &served, &mut set).await {
                    return closing;
                }
            }
            _ = pings.tick() => {
                if heard.elapsed() > SILENCE_MAX {
                    return Some((close_code::POLICY, "no answer to pings".to_owned()));
                }
                send(socket, Message::Ping(Bytes::new())).await?;
            }
        }
    }
}

/// Sends all pending notifications, a few blocks at a time.
async fn notify(
    socket: &mut WebSocket,
    served: &RpcState,
    set: &mut SubscriptionSet,
) -> Result<(), Closing> {
    loop {
        let found = {
            let node = served.node.lock().await;
            // A broken chain shows nothing.
            let Ok(chain) = node.chain() else { return Ok(()) };
            set.next_notifications(chain)
        };
        let (news, has_more) = found.map_err(|TooSlow| {
            let why = format!("more than {BEHIND_MAX} blocks behind: it reads too slowly");
            Some((close_code::AGAIN, why))
        })?;
        for told in news {
            send(socket, Message::text(told)).await.ok_or_else(|| {
                Some((close_code::AGAIN, format!("it did not read for {SEND_MAX:?}")))
            })?;
        }
        if !has_more {
            return Ok(());
        }
    }
}

/// Sends a message. Returns `None` if it timed out or the client is gone.
async fn send(socket: &mut WebSocket, message: Message) -> Option<()> {
    // silent-ok: the caller closes a client that does not read. One that is gone has ended.
    timeout(SEND_MAX, socket.send(message)).await.ok()?.ok()
}
