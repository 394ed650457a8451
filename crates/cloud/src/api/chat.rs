//! `POST /v1/chat/completions`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use bytes::Bytes;

use super::idempotency_key;
use crate::app::App;
use crate::error::ApiError;

pub(super) async fn complete(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiError> {
    let caller = app.caller(&headers).await?;
    let key = idempotency_key(&headers)?;
    let recording = Arc::clone(&app.meter).begin(caller, key, &body)?;
    Ok(recording.response().await)
}
