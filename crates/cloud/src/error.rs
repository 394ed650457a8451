//! Errors that keep a cloud from starting, and refusals of requests.
//!
//! A refusal has one shape on the wire; within it, refusals of models also have the shape of OpenAI
//! or Anthropic. Its text never holds a key, a signature or words of the database.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use automaton_core::error::{Classified, ErrorClass, chain};
use automaton_core::money::Microcents;
use automaton_core::wire::cloud::{
    ErrorBody, ErrorDetails, INVALID_REQUEST, MODEL_NOT_FOUND, MessagesError, MessagesErrorBody,
    ModelError, ModelErrorBody, ResponsesErrorEvent, UnsupportedFields,
};
use automaton_inference::InferenceError;
use automaton_net::NetError;
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use crate::billing::price::BilledTokens;
use crate::db::{Balance, DbError, LedgerTotals};

/// The code that tells clients of Anthropic that no conversation is kept here. They go on without
/// a thread then.
const THREAD_UNSUPPORTED: &str = "thread_unsupported_request";

/// Takes messages for the operator, one sentence a call.
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
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A file with a secret can be read by others.
    #[error("{} can be read by others than its owner", .0.display())]
    #[class(Config, hint = "Run `chmod 600 {}`.", _0.display())]
    Exposed(PathBuf),
    /// A file with a secret belongs to another user, who can read and change it.
    #[error("{} belongs to the user {owner}, who can read and change it", .path.display())]
    #[class(Config, hint = "Own the file: `chown $(id -u) {}`.", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The number of its owner.
        owner: u32,
    },
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
        /// The address.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

/// A refused request.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) body: Box<ErrorBody>,
    /// The seconds after which the same request may work, if they are known.
    pub(crate) again_after: Option<u64>,
    /// Fields that only clients of OpenAI read.
    pub(crate) field: Box<RefusedField>,
}

/// The subject of a refusal in OpenAI's words, as far as the refusing side named it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RefusedField {
    /// The field of the request.
    pub(crate) param: Option<String>,
    /// OpenAI's code of the problem.
    pub(crate) code: Option<String>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &str, error: impl Into<String>) -> Self {
        let details = ErrorDetails::default();
        let body = ErrorBody { error: error.into(), code: code.to_owned(), details, detail: None };
        Self { status, body: Box::new(body), again_after: None, field: Box::default() }
    }

    /// There are too few credits.
    pub(crate) fn insufficient(needed: Microcents, available: Microcents) -> Self {
        let body = ErrorBody::insufficient(needed.cents_ceil(), available.cents_floor());
        let refusal = Self::new(StatusCode::PAYMENT_REQUIRED, "", "");
        Self { body: Box::new(body), ..refusal }
    }

    /// Refuses a question for which there are too few credits, with its tokens and its answer's.
    pub(crate) fn cannot_ask(needed: Microcents, most: BilledTokens, balance: Balance) -> Self {
        let Balance { available, held } = balance;
        let mut refusal = Self::insufficient(needed, available);
        let BilledTokens { prompt, completion, .. } = most;
        refusal.body.error = format!(
            "Insufficient credits: {needed} are needed for a prompt of at most {prompt} tokens and \
             an answer of at most {completion}; {available} are there, besides {held} that are set \
             aside for calls under way. A smaller max_tokens needs less."
        );
        let details = &mut refusal.body.details;
        details.required_microcents = Some(needed);
        (details.available_microcents, details.held_microcents) = (Some(available), Some(held));
        refusal
    }

    /// A request for a model cannot be carried out as it is.
    pub(crate) fn wrong_field(error: impl Into<String>, param: Option<&str>) -> Self {
        let refusal = Self::new(StatusCode::BAD_REQUEST, INVALID_REQUEST, error);
        let field = RefusedField { param: param.map(str::to_owned), code: None };
        Self { field: Box::new(field), ..refusal }
    }

    /// A client wants the server to keep the conversation.
    pub(crate) fn no_threads() -> Self {
        let what = "no conversation is kept here: leave the field thread out and send all messages";
        let refusal = Self::new(StatusCode::BAD_REQUEST, INVALID_REQUEST, what);
        let code = Some(THREAD_UNSUPPORTED.to_owned());
        let field = RefusedField { param: Some("thread".to_owned()), code };
        Self { field: Box::new(field), ..refusal }
    }

    pub(crate) fn no_model(id: &str) -> Self {
        let what = format!("there is no model '{id}'");
        let refusal = Self::new(StatusCode::NOT_FOUND, MODEL_NOT_FOUND, what);
        Self { field: Self::wrong_field("", Some("model")).field, ..refusal }
    }

    /// The body for clients of OpenAI.
    pub(crate) fn for_models(&self) -> ModelErrorBody {
        let ErrorBody { error, code, details, detail } = (*self.body).clone();
        let (kind, usual) = match self.status.as_u16() {
            401 => ("authentication_error", Some("invalid_api_key")),
            402 => ("insufficient_quota", Some("insufficient_quota")),
            403 => ("permission_error", None),
            429 => ("rate_limit_error", Some("rate_limit_exceeded")),
            400..500 => ("invalid_request_error", None),
            _ => ("server_error", None),
        };
        let RefusedField { param, code: told } = (*self.field).clone();
        let named = told.or_else(|| usual.map(str::to_owned));
        let named = named.unwrap_or_else(|| code.to_ascii_lowercase());
        let error = ModelError { message: error, kind: kind.to_owned(), code: named, param };
        ModelErrorBody { error, code, details, detail }
    }

    /// The body for clients of Anthropic.
    pub(crate) fn for_messages(&self) -> MessagesErrorBody {
        let ErrorBody { error, code, details: numbers, detail } = (*self.body).clone();
        let kind = match self.status.as_u16() {
            401 => "authentication_error",
            402 => "billing_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            503 => "overloaded_error",
            504 => "timeout_error",
            400..500 => "invalid_request_error",
            _ => "api_error",
        };
        let has_no_threads = self.field.code.as_deref() == Some(THREAD_UNSUPPORTED);
        let details = has_no_threads.then(|| UnsupportedFields {
            error_code: THREAD_UNSUPPORTED.to_owned(),
            unsupported: self.field.param.iter().cloned().collect(),
        });
        let error = MessagesError { kind: kind.to_owned(), message: error, details };
        MessagesErrorBody { kind: "error".to_owned(), error, code, details: numbers, detail }
    }

    /// Returns the event for clients of OpenAI's responses, with its place in the sequence.
    pub(crate) fn for_responses(&self, sequence_number: usize) -> ResponsesErrorEvent {
        let ModelErrorBody { error, .. } = self.for_models();
        let ModelError { message, code, param, .. } = error.clone();
        let kind = "error".to_owned();
        ResponsesErrorEvent { kind, code, message, param, sequence_number, error }
    }

    /// Refuses a body that has no valid meaning.
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

    /// Refuses because of an internal failure. The operator gets its full text, and the client none
    /// of it.
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
        let mut response = (self.status, Json(&self.body)).into_response();
        if busy {
            let seconds = HeaderValue::from(self.again_after.unwrap_or(2));
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        // Where clients of OpenAI or Anthropic ask it is written anew, in their form.
        response.extensions_mut().insert(self);
        response
    }
}
