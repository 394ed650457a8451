//! `POST /v1/chat/completions`, `/v1/responses`, `/v1/messages` and `/v1/embeddings`, and
//! `GET /v1/calls/{key}` for who did not hear the answer.

use std::sync::Arc;

use automaton_core::wire::cloud::{CallReply, NO_SUCH_CALL, TokenCountReply};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bytes::Bytes;

use super::extract::{MessagesCaller, RequestName};
use crate::access::Caller;
use crate::app::App;
use crate::billing::price::estimate;
use crate::chat::{CallRequest, ChatBody, ClientFormat, known_betas};
use crate::error::ApiError;

pub(super) async fn complete(
    State(app): State<Arc<App>>,
    caller: Caller,
    name: RequestName,
    body: Bytes,
) -> Result<Response, ApiError> {
    answered(app, caller, name, (ClientFormat::ChatCompletions, body)).await
}

/// The same for clients of OpenAI's newer format.
pub(super) async fn respond(
    State(app): State<Arc<App>>,
    caller: Caller,
    name: RequestName,
    body: Bytes,
) -> Result<Response, ApiError> {
    answered(app, caller, name, (ClientFormat::Responses, body)).await
}

/// Vectors of texts.
pub(super) async fn embed(
    State(app): State<Arc<App>>,
    caller: Caller,
    name: RequestName,
    body: Bytes,
) -> Result<Response, ApiError> {
    answered(app, caller, name, (ClientFormat::Embeddings, body)).await
}

async fn answered(
    app: Arc<App>,
    caller: Caller,
    RequestName(name): RequestName,
    (format, body): (ClientFormat, Bytes),
) -> Result<Response, ApiError> {
    let request = CallRequest { caller, name, format, body: &body, betas: Vec::new() };
    Ok(Arc::clone(&app.meter).begin(request)?.response().await)
}

/// The same for clients of Anthropic.
pub(super) async fn message(
    State(app): State<Arc<App>>,
    MessagesCaller(caller): MessagesCaller,
    RequestName(name): RequestName,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiError> {
    // silent-ok: a header that is no text asks for nothing that is known.
    let betas = headers.get_all("anthropic-beta").iter().filter_map(|value| value.to_str().ok());
    let format = ClientFormat::AnthropicMessages;
    let betas = known_betas(betas);
    let request = CallRequest { caller, name, format, body: &body, betas };
    Ok(Arc::clone(&app.meter).begin(request)?.response().await)
}

/// Estimates the tokens of a prompt from its size in bytes. No upstream is asked, and nothing is
/// charged.
pub(super) async fn count_tokens(
    State(app): State<Arc<App>>,
    _: MessagesCaller,
    body: Bytes,
) -> Result<Json<TokenCountReply>, ApiError> {
    let chat = ChatBody::parse(ClientFormat::AnthropicMessages, &body)?;
    app.meter.model(&chat.model)?;
    Ok(Json(TokenCountReply { input_tokens: estimate(chat.bytes) }))
}

/// Returns the outcome of a call.
pub(super) async fn call(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(key): Path<String>,
) -> Result<Json<CallReply>, ApiError> {
    let call = app.db.call(caller.wallet, key).await.map_err(|error| app.failed(&error))?;
    let none = || ApiError::new(StatusCode::NOT_FOUND, NO_SUCH_CALL, "no call came with this key");
    call.map(Json).ok_or_else(none)
}
