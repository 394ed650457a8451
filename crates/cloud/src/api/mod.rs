//! The routes, a file for each family. A handler reads a request, asks a use
//! case and writes the reply; it must never decide about money itself.

mod absent;
mod account;
mod auth;
mod chat;
mod credits;
mod extract;
mod facilitator;
mod files;
mod form;
mod machines;
mod pay;
mod ports;
pub(crate) mod sale;
mod status;
pub(crate) mod table;
mod tunnels;

use std::sync::Arc;

use automaton_core::error::chain;
use automaton_core::wire::cloud::IDEMPOTENCY_KEY;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router};
use tracing::{Instrument as _, debug, debug_span};

use self::table::{RouteTable, document};
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
/// The path of Anthropic's API.
const MESSAGES: &str = "/v1/messages";
/// The longest `Idempotency-Key`, in bytes.
const KEY_BYTES_MAX: usize = 255;

/// Every route, with what it is for.
pub(crate) fn routes(app: Arc<App>) -> Router {
    table()
        .into_router()
        .fallback(absent::refuse)
        .layer(middleware::from_fn(refused_as_clients_read))
        .layer(middleware::from_fn(traced))
        .with_state(app)
}

fn table() -> RouteTable {
    let ordinary = RouteTable::new().with_body_limit(BODY_BYTES_MAX, |routes| {
        let routes = routes
            .get("/health", "Say that the cloud is up", account::health)
            .get("/openapi.json", "Show this document", document)
            .get("/v1/models", "List the models and their prices", account::models)
            .get("/v1/models/{id}", "Show a model and its prices", account::model)
            .get("/v1/calls/{key}", "Show what became of a call of a model", chat::call)
            .get("/supported", "List the payments that can be settled", facilitator::supported);
        rented(payments(credits(identity(routes))))
    });
    ordinary
        .with_body_limit(CHAT_BYTES_MAX, |routes| {
            let summary = "Ask a model, in the chat-completions format of OpenAI";
            let count = "Estimate the tokens of a prompt in the messages format of Anthropic";
            routes
                .post("/v1/chat/completions", summary, chat::complete)
                .post(
                    "/v1/responses",
                    "Ask a model, in the responses format of OpenAI",
                    chat::respond,
                )
                .post(MESSAGES, "Ask a model, in the messages format of Anthropic", chat::message)
                .post("/v1/messages/count_tokens", count, chat::count_tokens)
                .post("/v1/embeddings", "Make vectors of texts, in OpenAI's format", chat::embed)
        })
        .with_body_limit(FILE_BYTES_MAX, |routes| {
            let summary = "Write a file, with its content as text";
            // Two names that clients in the field know it by.
            routes.post("/v1/sandboxes/{id}/files/upload/json", summary, files::upload_text).post(
                "/v1/sandboxes/{id}/files",
                summary,
                files::upload_text,
            )
        })
}

fn identity(routes: RouteTable) -> RouteTable {
    routes
        .post("/v1/auth/nonce", "Get a nonce to sign in with", auth::nonce)
        .post("/v1/auth/verify", "Get an access token for a signed message", auth::verify)
        .post("/v1/auth/api-keys", "Make an API key", auth::api_keys)
        .post("/v1/automatons/nonce", "Get a nonce to register with", auth::register_nonce)
        .post("/v1/automatons/register", "Register an automaton", auth::register)
        .post("/v1/automata/status", "Report the status of the wallet's automaton", status::report)
        .get("/v1/automata/status/{address}", "Show the last status report", status::read)
}

fn credits(routes: RouteTable) -> RouteTable {
    let transfer = "Transfer credits to another wallet";
    routes
        .get("/v1/credits/balance", "Show the wallet's balance", account::balance)
        .get("/v1/credits/pricing", "List the prices of machines and credits", account::pricing)
        .post("/v1/credits/transfer", transfer, credits::transfer)
        // The path that some clients go on to.
        .post("/v1/credits/transfers", transfer, credits::transfer)
        .get("/v1/credits/ceiling", "Show what the key may transfer", credits::ceiling)
        .post("/v1/credits/ceiling", "Change what the key may transfer", credits::change_ceiling)
        .get("/v1/credits/history", "List the changes of the balance", credits::history)
}

fn payments(routes: RouteTable) -> RouteTable {
    // Clients in the field buy with GET; POST says what it is.
    let buy = "Buy credits over x402";
    let path = "/pay/{usd}/{address}";
    routes.unstored(|routes| {
        routes
            .post("/verify", "Verify a payment between others", facilitator::verify)
            .post("/settle", "Settle a payment between others", facilitator::settle)
            .get(path, buy, pay::pay)
            .post(path, buy, pay::pay)
    })
}

/// Adds the routes of machines and tunnels.
fn rented(routes: RouteTable) -> RouteTable {
    let path = |rest: &str| format!("/v1/sandboxes/{{id}}{rest}");
    let write = "Write a file";
    routes
        .post("/v1/tunnels", "Make or show the wallet's tunnel", tunnels::get_or_create)
        .post("/v1/tunnels/{id}/connections", "Wait for a visitor", tunnels::connect)
        .get("/v1/sandboxes", "List the machines", machines::list)
        .post("/v1/sandboxes", "Rent a machine", machines::create)
        .get(&path(""), "Show a machine", machines::show)
        .delete(&path(""), "Delete a machine and its files", machines::delete)
        .post(&path("/start"), "Start a machine", machines::start)
        .post(&path("/stop"), "Stop a machine", machines::stop)
        .post(&path("/exec"), "Run a command", machines::exec)
        .get(&path("/metrics"), "Show what a machine uses", machines::metrics)
        .post(&path("/files/upload"), write, files::upload)
        // Some clients put what others post.
        .put(&path("/files/upload"), write, files::upload)
        .get(&path("/files/read"), "Read a file as text, if it is some", files::read)
        .get(&path("/files"), "Read a file as text, if it is some", files::read)
        .get(&path("/files/download"), "Read a file", files::download)
        .get(&path("/files/list"), "List a folder", files::list)
        .get(&path("/ports"), "List the exposed ports", ports::list)
        .post(&path("/ports"), "Expose a port, named in the query", ports::expose_named)
        .post(&path("/ports/expose"), "Expose a port", ports::expose)
        .delete(&path("/ports/{port}"), "Expose a port no longer", ports::withdraw)
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

/// The form of refusals that a path's clients read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RefusalForm {
    /// Ours.
    Own,
    /// OpenAI's.
    OpenAi,
    /// Anthropic's.
    Anthropic,
}

impl RefusalForm {
    fn of_path(path: &str) -> Self {
        let below = |at: &str| {
            path.strip_prefix(at).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        match () {
            () if ["/v1/chat/completions", "/v1/embeddings", "/v1/models", "/v1/responses"]
                .into_iter()
                .any(below) =>
            {
                Self::OpenAi
            }
            () if below(MESSAGES) => Self::Anthropic,
            () => Self::Own,
        }
    }
}

/// Gives all refusals the form of OpenAI or Anthropic at the paths of their clients.
async fn refused_as_clients_read(request: Request, next: Next) -> Response {
    let form = RefusalForm::of_path(request.uri().path());
    let response = next.run(request).await;
    let status = response.status();
    if form == RefusalForm::Own || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let refusal = match head.extensions.remove::<ApiError>() {
        Some(refusal) => refusal,
        None => {
            // silent-ok: the status says it, too.
            let said = to_bytes(body, BODY_BYTES_MAX).await.unwrap_or_default();
            let said = String::from_utf8_lossy(&said);
            let usual = status.canonical_reason().unwrap_or_default();
            let words = if said.trim().is_empty() { usual } else { said.trim() };
            ApiError::new(status, &usual.to_ascii_uppercase().replace(' ', "_"), words)
        }
    };
    head.headers.remove(header::CONTENT_LENGTH);
    let mut told = match form {
        RefusalForm::Anthropic => Json(refusal.for_messages()).into_response(),
        RefusalForm::Own | RefusalForm::OpenAi => Json(refusal.for_models()).into_response(),
    };
    head.headers.extend(std::mem::take(told.headers_mut()));
    Response::from_parts(head, told.into_body())
}

/// Says of an answer, a refusal too, that nobody may keep it.
async fn unstored(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Returns the client's name of its request, by which a repeated request is done once.
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
