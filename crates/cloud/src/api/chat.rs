//! `POST /v1/chat/completions`, and `GET /v1/calls/{key}` for who did not hear the answer.

use std::sync::Arc;

use automaton_core::wire::cloud::{CallReply, NO_SUCH_CALL};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;

use super::extract::RequestName;
use crate::access::Caller;
use crate::app::App;
use crate::error::ApiError;

pub(super) async fn complete(
    State(app): State<Arc<App>>,
    caller: Caller,
    RequestName(name): RequestName,
    body: Bytes,
) -> Result<Response, ApiError> {
    let recording = Arc::clone(&app.meter).begin(caller, name, &body)?;
    Ok(recording.response().await)
}

/// What became of a call.
pub(super) async fn call(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(key): Path<String>,
) -> Result<Json<CallReply>, ApiError> {
    let call = app.db.call(caller.wallet, key).await.map_err(|error| app.failed(&error))?;
    let none = || ApiError::new(StatusCode::NOT_FOUND, NO_SUCH_CALL, "no call came with this key");
    call.map(Json).ok_or_else(none)
}
