//! Errors of requests to a cloud.
//!
//! A server's message is bounded, and must never contain a key.

use automaton_core::error::{Classified, ErrorClass};
use automaton_net::NetError;

/// A request to a cloud failed.
#[derive(Debug, thiserror::Error, Classified)]
pub enum CloudClientError {
    /// The cloud did not answer.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The cloud refused.
    #[error("{cloud} refused with status {status}: {text}")]
    #[class(kind = match status {
        408 | 425 | 429 | 500..=599 => ErrorClass::Transient,
        401 | 403 => ErrorClass::Config,
        _ => ErrorClass::Upstream,
    }, hint = match status {
        401 | 403 => Some("provision a new key with this cloud".to_owned()),
        402 => Some("add credits to the account".to_owned()),
        _ => None,
    })]
    Refused {
        /// The cloud.
        cloud: String,
        /// The HTTP status.
        status: u16,
        /// The error code, or empty if there is none.
        code: String,
        /// The cloud's message.
        text: String,
    },
    /// The reply is not valid.
    #[error("{cloud} sent what is no answer: {what}")]
    #[class(Upstream)]
    Malformed {
        /// The cloud.
        cloud: String,
        /// The defect.
        what: String,
    },
    /// The base URL is not valid.
    #[error("'{text}' is no base URL of a cloud")]
    #[class(Config, hint = "write it like http://127.0.0.1:8402 or https://host")]
    BaseUrl {
        /// The text, without credentials.
        text: String,
    },
    /// The request could not be serialised.
    #[error("the request to the cloud cannot be written as JSON")]
    #[class(Internal)]
    Encode {
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
}
