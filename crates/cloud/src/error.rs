//! What keeps a cloud from starting, and how a request is refused.
//!
//! A refusal has one shape on the wire, and its text never holds a key, a
//! signature or what the database said.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use automaton_core::error::{Classified, ErrorClass, chain};
use automaton_core::money::Microcents;
use automaton_core::wire::cloud::{ErrorBody, ErrorDetails, INVALID_REQUEST};
use automaton_inference::InferenceError;
use automaton_net::NetError;
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::db::{DbError, LedgerTotals};

/// Where what the operator should know is told: one sentence a call.
pub type OperatorNotifier = Arc<dyn Fn(String) + Send + Sync>;

/// The cloud cannot start.
#[derive(Debug, thiserror::Error, Classified)]
pub enum CloudError {
    /// The configuration says something that cannot be.
    #[error("the cloud's configuration is wrong: {0}")]
    #[class(Config)]
    Config(String),
    /// A file that the configuration names cannot be used.
    #[error("cannot use {}", .path.display())]
    #[class(Config)]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// A file with a secret can be read by others.
    #[error("{} can be read by others than its owner", .0.display())]
    #[class(Config, hint = "Run `chmod 600 {}`.", _0.display())]
    Exposed(PathBuf),
    /// The HTTP client cannot be made.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The local model cannot be started.
    #[error(transparent)]
    Model(#[from] InferenceError),
    /// The database fails.
    #[error(transparent)]
    Db(#[from] DbError),
    /// The ledger does not add up.
    #[error("the ledger does not add up: its sum is {}, it has {} faults", .0.sum, .0.faults)]
    #[class(
        Internal,
        hint = "Nothing was changed. Keep a copy of the database and restore a backup."
    )]
    Books(LedgerTotals),
    /// Nothing can be given back.
    #[error("{0}")]
    #[class(User, hint = "`GET /v1/credits/history` of the wallet names its postings.")]
    Refund(String),
    /// The port cannot be had.
    #[error("cannot listen on {address}")]
    #[class(User, hint = "Choose another port, or 0 for any.")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
}

/// A refused request.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) body: Box<ErrorBody>,
    /// After how many seconds the same may work, where somebody has said so.
    pub(crate) again_after: Option<u64>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &str, error: impl Into<String>) -> Self {
        let details = ErrorDetails::default();
        let body = ErrorBody { error: error.into(), code: code.to_owned(), details, detail: None };
        Self { status, body: Box::new(body), again_after: None }
    }

    /// There are too few credits.
    pub(crate) fn insufficient(needed: Microcents, available: Microcents) -> Self {
        let body = ErrorBody::insufficient(needed.cents_ceil(), available.cents_floor());
        Self { status: StatusCode::PAYMENT_REQUIRED, body: Box::new(body), again_after: None }
    }

    /// What was sent cannot be meant.
    pub(crate) fn invalid(error: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, INVALID_REQUEST, error)
    }

    pub(crate) fn conflict(error: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "CONFLICT", error)
    }

    pub(crate) fn unauthorized(error: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", error)
    }

    /// Nothing was done, and the same may work in a moment.
    pub(crate) fn unavailable(error: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", error)
    }

    /// A use case failed.
    pub(crate) fn of_db(report: &OperatorNotifier, error: &DbError) -> Self {
        match error.kind() {
            ErrorClass::Transient => Self::unavailable("the database is busy"),
            _ => Self::internal(report, error),
        }
    }

    /// A failure of ours, told to the operator in full and to the client not at all.
    pub(crate) fn internal(
        report: &OperatorNotifier,
        error: &(dyn std::error::Error + 'static),
    ) -> Self {
        report(format!("a request failed: {}", chain(error)));
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", "The request failed on our side.")
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let busy = matches!(self.status.as_u16(), 429 | 503);
        let mut response = (self.status, Json(self.body)).into_response();
        if busy {
            let seconds = HeaderValue::from(self.again_after.unwrap_or(2));
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        response
    }
}
