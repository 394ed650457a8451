//! Why a cloud did not do what it was asked.
//!
//! A server's words are bounded, and a key must never stand in them.

use automaton_core::error::{Classified, ErrorClass};
use automaton_net::NetError;

/// A request to a cloud failed.
#[derive(Debug, thiserror::Error, Classified)]
pub enum CloudClientError {
    /// It did not answer.
    #[error(transparent)]
    Net(#[from] NetError),
    /// It refused.
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
        /// The status.
        status: u16,
        /// Its code for programs; empty when it has none.
        code: String,
        /// What it says.
        text: String,
    },
    /// What came back is no answer.
    #[error("{cloud} sent what is no answer: {what}")]
    #[class(Upstream)]
    Malformed {
        /// The cloud.
        cloud: String,
        /// What is wrong.
        what: String,
    },
    /// The base URL is none.
    #[error("'{text}' is no base URL of a cloud")]
    #[class(Config, hint = "write it like http://127.0.0.1:8402 or https://host")]
    BaseUrl {
        /// The text, without credentials.
        text: String,
    },
    /// The request could not be written.
    #[error("the request to the cloud cannot be written as JSON")]
    #[class(Internal)]
    Encode {
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}
