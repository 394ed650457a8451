//! The JSON-RPC server: one request or a batch in each HTTP request or WebSocket message.
//!
//! Requests are answered one after another, off the async threads. A single transaction waits in
//! the pool for its block. A client that goes away does not stop its request. Nothing here may
//! know the meaning of a method.

mod error;
mod fees;
pub(crate) mod filters;
mod methods;
mod params;
mod socket;
mod subscriptions;

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, Semaphore, watch};
use tracing::debug;

use crate::chain::PendingTransaction;
use crate::node::Node;
use crate::pool::TransactionPool;
use error::RpcError;
use subscriptions::SubscriptionSet;

/// The largest HTTP request, in bytes.
pub(crate) const REQUEST_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The most characters of a method in diagnostics.
const METHOD_CHARS: usize = 64;

/// The largest number of requests in a batch.
const BATCH_MAX: usize = 1_000;

/// The state of the request handlers.
#[derive(Clone)]
pub(crate) struct RpcState {
    /// The chain.
    pub(crate) node: Arc<Mutex<Node>>,
    /// The queue of transactions.
    pub(crate) pool: TransactionPool,
    /// Closed when the chain stops.
    stopped: watch::Receiver<()>,
    /// The permits for WebSockets.
    sockets: Arc<Semaphore>,
}

impl RpcState {
    /// Creates the state for a chain, until `stopped` is closed.
    pub(crate) fn new(
        node: Arc<Mutex<Node>>,
        pool: TransactionPool,
        stopped: watch::Receiver<()>,
    ) -> Self {
        Self { node, pool, stopped, sockets: Arc::new(Semaphore::new(socket::SOCKETS_MAX)) }
    }
}

/// Serves until `stopped` is closed, then lets open requests finish.
pub(crate) async fn serve(
    listener: TcpListener,
    served: RpcState,
    mut stopped: watch::Receiver<()>,
) {
    let app = Router::new()
        .route("/", post(receive).get(socket::open))
        .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
        .with_state(served);
    let closed = async move { while stopped.changed().await.is_ok() {} };
    // silent-ok: axum's server never ends with an error by itself.
    let listener = listener.tap_io(|connection| {
        // Send answers at once, without waiting for acknowledgements.
        // silent-ok: without it answers are only slower.
        connection.set_nodelay(true).ok();
    });
    let _ended = axum::serve(listener, app).with_graceful_shutdown(closed).await;
}

async fn receive(State(served): State<RpcState>, headers: HeaderMap, body: Bytes) -> Response {
    // A browser page can send other content types without permission.
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("application/json")) {
        let sentence = "JSON-RPC needs the content type application/json\n";
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, sentence).into_response();
    }
    match served.answer(body, None).await.map(|(json, _)| json) {
        Some(Some(json)) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Some(None) => StatusCode::NO_CONTENT.into_response(),
        None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

impl RpcState {
    /// Answers a body. `subscriptions` are those of a WebSocket, and are returned. Returns `None`
    /// if it failed, which has no answer.
    async fn answer(
        &self,
        body: Bytes,
        mut subscriptions: Option<SubscriptionSet>,
    ) -> Option<(Option<String>, Option<SubscriptionSet>)> {
        if let Some((id, pending)) = sent_transaction(&body) {
            let mined = self.pool.send(pending).await?.map_err(RpcError::from);
            return Some((reply(&id, mined.and_then(|hash| methods::json(&hash))), subscriptions));
        }
        let mut node = Arc::clone(&self.node).lock_owned().await;
        let answering = tokio::task::spawn_blocking(move || {
            let json = answer(&mut node, &body, subscriptions.as_mut());
            (json, subscriptions)
        });
        // silent-ok: a request that panicked is answered by the status alone.
        answering.await.ok()
    }
}

/// Returns the transaction that a request sends, and the request's id. Defects of other requests
/// are reported where all are answered.
fn sent_transaction(body: &[u8]) -> Option<(Box<RawValue>, PendingTransaction)> {
    // silent-ok: invalid requests are parsed again and reported there.
    let request: RpcRequest<'_> = serde_json::from_slice(body).ok()?;
    let id = request.id.filter(|id| request.jsonrpc == "2.0" && is_id(id))?;
    let raw = methods::transaction(&request.method, request.params)?;
    Some((id.to_owned(), PendingTransaction::new(raw).ok()?))
}

/// A request as received.
#[derive(Deserialize)]
struct RpcRequest<'a> {
    jsonrpc: String,
    /// Absent in a notification, which gets no response.
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    method: String,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// Distinguishes an id of `null` from a missing one.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(from).map(Some)
}

/// A response.
#[derive(Serialize)]
struct RpcResponse<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    #[serde(flatten)]
    outcome: RpcOutcome,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum RpcOutcome {
    Result(Box<RawValue>),
    Error(RpcError),
}

/// Answers a body. Returns `None` if it contains only notifications.
fn answer(
    node: &mut Node,
    body: &[u8],
    mut subscriptions: Option<&mut SubscriptionSet>,
) -> Option<String> {
    let Ok(whole) = serde_json::from_slice::<&RawValue>(body) else {
        return reply(RawValue::NULL, Err(RpcError::new(error::PARSE, "the body is not JSON")));
    };
    if !whole.get().starts_with('[') {
        return answer_one(node, whole, subscriptions);
    }
    match serde_json::from_str::<Vec<&RawValue>>(whole.get()) {
        Ok(batch) if (1..=BATCH_MAX).contains(&batch.len()) => {
            let answer = |request| answer_one(node, request, subscriptions.as_deref_mut());
            let replies: Vec<String> = batch.into_iter().filter_map(answer).collect();
            (!replies.is_empty()).then(|| format!("[{}]", replies.join(",")))
        }
        _ => {
            let why = format!("a batch has 1 to {BATCH_MAX} requests");
            reply(RawValue::NULL, Err(RpcError::new(error::REQUEST, why)))
        }
    }
}

fn answer_one(
    node: &mut Node,
    request: &RawValue,
    subscriptions: Option<&mut SubscriptionSet>,
) -> Option<String> {
    let invalid = |why: &str| reply(RawValue::NULL, Err(RpcError::new(error::REQUEST, why)));
    let request = match serde_json::from_str::<RpcRequest<'_>>(request.get()) {
        Ok(request) if request.jsonrpc == "2.0" && request.id.is_none_or(is_id) => request,
        Ok(_) => return invalid("it is not JSON-RPC 2.0"),
        Err(error) => return invalid(&error.to_string()),
    };
    let named = request.method.as_str();
    let params = request.params;
    let outcome = match subscriptions.and_then(|set| set.call(node, named, params)) {
        Some(outcome) => outcome,
        None => methods::call(node, named, params),
    };
    let method: String = request.method.chars().take(METHOD_CHARS).collect();
    debug!(method, ok = outcome.is_ok(), "a request is answered");
    reply(request.id?, outcome)
}

/// Returns true for strings, numbers and `null`.
fn is_id(id: &RawValue) -> bool {
    !id.get().starts_with(['{', '[', 't', 'f'])
}

fn reply(id: &RawValue, outcome: Result<Box<RawValue>, RpcError>) -> Option<String> {
    let outcome = outcome.map_or_else(RpcOutcome::Error, RpcOutcome::Result);
    // silent-ok: strings, numbers and parsed JSON can always be written.
    serde_json::to_string(&RpcResponse { jsonrpc: "2.0", id, outcome }).ok()
}
