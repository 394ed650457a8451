//! The statuses that automatons report, for their creators.

use std::sync::Arc;

use alloy_primitives::Address;
use automaton_core::wire::cloud::{STATUS_TEXT_BYTES_MAX, StatusReply, StatusReport};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::NoContent;

use super::extract::JsonBody;
use crate::access::Caller;
use crate::app::App;
use crate::error::ApiError;

pub(super) async fn report(
    State(app): State<Arc<App>>,
    caller: Caller,
    JsonBody(report): JsonBody<StatusReport>,
) -> Result<NoContent, ApiError> {
    if [&report.name, &report.version].iter().any(|text| text.len() > STATUS_TEXT_BYTES_MAX) {
        let most = format!("name and version may have {STATUS_TEXT_BYTES_MAX} bytes each");
        return Err(ApiError::invalid(most));
    }
    let stored = app.db.report_status(caller.wallet, report).await;
    stored.map_err(|error| app.failed(&error))?;
    Ok(NoContent)
}

/// Returns the status of an automaton. A client that may not read it gets the same answer as for an
/// unknown address.
pub(super) async fn read(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(address): Path<String>,
) -> Result<Json<StatusReply>, ApiError> {
    let of: Address = address.parse().map_err(|_| ApiError::invalid("that is no address"))?;
    let status = app.db.status(of, caller.wallet).await.map_err(|error| app.failed(&error))?;
    let nothing = "nothing is known of this automaton, or not to the wallet of this key";
    status.map(Json).ok_or_else(|| ApiError::new(StatusCode::NOT_FOUND, "NOT_FOUND", nothing))
}
