//! The routes, a file for each family. A handler reads a request, asks a use
//! case and writes the reply; it must never decide about money itself.

mod account;
mod auth;
mod chat;
mod credits;
mod extract;
mod facilitator;
mod files;
mod machines;
mod pay;
mod ports;
pub(crate) mod sale;
mod status;
mod tunnels;

use std::sync::Arc;

use automaton_core::error::chain;
use automaton_core::wire::cloud::IDEMPOTENCY_KEY;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{delete, get, post};
use tracing::{Instrument as _, debug, debug_span};

use crate::app::App;
use crate::billing::settler::SettlementStepError;
use crate::db::DbError;
use crate::error::ApiError;

/// The largest body of an ordinary request, in bytes.
const BODY_BYTES_MAX: usize = 1 << 20;
/// The largest body of a completion: a conversation.
const CHAT_BYTES_MAX: usize = 8 << 20;
/// The largest body of a file as JSON.
const FILE_BYTES_MAX: usize = 16 << 20;
/// The longest `Idempotency-Key`, in bytes.
const KEY_BYTES_MAX: usize = 255;

pub(crate) fn routes(app: Arc<App>) -> Router {
    let known = || middleware::from_fn_with_state(Arc::clone(&app), known);
    let chat = post(chat::complete).layer(DefaultBodyLimit::max(CHAT_BYTES_MAX)).layer(known());
    let upload = post(files::upload_text);
    let upload = upload.layer(DefaultBodyLimit::max(FILE_BYTES_MAX)).layer(known());
    let payments = Router::new()
        .route("/verify", post(facilitator::verify))
        .route("/settle", post(facilitator::settle))
        // Clients in the field buy with GET; POST says what it is.
        .route("/pay/{usd}/{address}", get(pay::pay).post(pay::pay))
        .layer(middleware::map_response(unstored));
    Router::new()
        .route("/health", get(account::health))
        .route("/v1/auth/nonce", post(auth::nonce))
        .route("/v1/auth/verify", post(auth::verify))
        .route("/v1/auth/api-keys", post(auth::api_keys))
        .route("/v1/automatons/register", post(auth::register))
        .route("/v1/automata/status", post(status::report))
        .route("/v1/automata/status/{address}", get(status::read))
        .route("/v1/credits/balance", get(account::balance))
        .route("/v1/credits/pricing", get(account::pricing))
        .route("/v1/credits/transfer", post(credits::transfer))
        // The path that some clients go on to.
        .route("/v1/credits/transfers", post(credits::transfer))
        .route("/v1/credits/ceiling", get(credits::ceiling).post(credits::change_ceiling))
        .route("/v1/credits/history", get(credits::history))
        .route("/v1/models", get(account::models))
        .route("/v1/calls/{key}", get(chat::call))
        .route("/supported", get(facilitator::supported))
        .merge(payments)
        .merge(rented())
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .route("/v1/chat/completions", chat)
        .route("/v1/sandboxes/{id}/files/upload/json", upload)
        .fallback(|| async {
            ApiError::new(StatusCode::NOT_FOUND, "NOT_FOUND", "there is no such route")
        })
        .layer(middleware::from_fn(traced))
        .with_state(app)
}

/// What is for rent.
fn rented() -> Router<Arc<App>> {
    let path = |rest: &str| format!("/v1/sandboxes/{{id}}{rest}");
    // Some clients put what others post.
    let upload = post(files::upload).put(files::upload);
    Router::new()
        .route("/v1/tunnels", post(tunnels::own))
        .route("/v1/tunnels/{id}/connections", post(tunnels::connect))
        .route("/v1/sandboxes", get(machines::list).post(machines::create))
        .route(&path(""), get(machines::show).delete(machines::delete))
        .route(&path("/start"), post(machines::start))
        .route(&path("/stop"), post(machines::stop))
        .route(&path("/exec"), post(machines::exec))
        .route(&path("/metrics"), get(machines::metrics))
        .route(&path("/files/upload"), upload)
        .route(&path("/files/read"), get(files::read))
        .route(&path("/files/download"), get(files::download))
        .route(&path("/files/list"), get(files::list))
        .route(&path("/ports"), get(ports::list).post(ports::expose_named))
        .route(&path("/ports/expose"), post(ports::expose))
        .route(&path("/ports/{port}"), delete(ports::withdraw))
}

/// Reads the large body of nobody who has no key.
async fn known(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    app.access.caller(request.headers()).await?;
    Ok(next.run(request).await)
}

/// Tells of a request what was asked and what came of it; never its headers.
async fn traced(request: Request, next: Next) -> Response {
    let span = debug_span!("served", method = %request.method(), path = request.uri().path());
    async {
        let response = next.run(request).await;
        debug!(status = response.status().as_u16(), "answered");
        response
    }
    .instrument(span)
    .await
}

/// Says of an answer, a refusal too, that nobody may keep it.
async fn unstored(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// What a client calls its request, so that the same is done once.
fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let key = headers.get(IDEMPOTENCY_KEY).map(|key| key.to_str().unwrap_or_default());
    if key.is_some_and(|key| key.is_empty() || key.len() > KEY_BYTES_MAX) {
        return Err(ApiError::invalid("the Idempotency-Key is empty, too long or no text"));
    }
    Ok(key)
}

impl App {
    /// A use case failed.
    pub(crate) fn failed(&self, error: &DbError) -> ApiError {
        ApiError::of_db(&self.report, error)
    }

    /// A payment went no further; nothing of it is lost.
    fn stuck(&self, error: &SettlementStepError) -> ApiError {
        match error {
            SettlementStepError::Db(error) => self.failed(error),
            SettlementStepError::Chain(error) => {
                (self.report)(format!("a payment waits: {}", chain(error)));
                ApiError::unavailable("the chain cannot be asked now")
            }
        }
    }

    /// Too many payments are under way.
    fn busy(&self) -> ApiError {
        (self.report)("a payment is not taken: too many are under way".to_owned());
        ApiError::unavailable("too many payments are under way")
    }
}
