//! `POST /v1/chat/completions`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use bytes::Bytes;

use crate::app::App;
use crate::error::ApiError;

/// The longest `Idempotency-Key`, in bytes.
const KEY_BYTES_MAX: usize = 255;

pub(super) async fn complete(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiError> {
    let caller = app.caller(&headers).await?;
    let key = headers.get("idempotency-key").map(|key| key.to_str().unwrap_or_default());
    if key.is_some_and(|key| key.is_empty() || key.len() > KEY_BYTES_MAX) {
        return Err(ApiError::invalid("the Idempotency-Key is empty, too long or no text"));
    }
    let recording = Arc::clone(&app.meter).begin(caller, key, &body)?;
    Ok(recording.response().await)
}
