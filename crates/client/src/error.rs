//! Why a cloud did not do what it was asked.
//!
//! A server's words are bounded, and a key must never stand in them.

use automaton_core::error::{Classified, ErrorClass};
use automaton_net::NetError;

/// A request to a cloud failed.
#[derive(Debug, thiserror::Error)]
pub enum CloudClientError {
    /// It did not answer.
    #[error(transparent)]
    Net(#[from] NetError),
    /// It refused.
    #[error("{cloud} refused with status {status}: {text}")]
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
    Malformed {
        /// The cloud.
        cloud: String,
        /// What is wrong.
        what: String,
    },
    /// The base URL is none.
    #[error("'{text}' is no base URL of a cloud")]
    BaseUrl {
        /// The text, without credentials.
        text: String,
    },
    /// The request could not be written.
    #[error("the request to the cloud cannot be written as JSON")]
    Encode {
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

impl Classified for CloudClientError {
    fn kind(&self) -> ErrorClass {
        match self {
            Self::Net(error) => error.kind(),
            Self::Refused { status: 408 | 425 | 429 | 500..=599, .. } => ErrorClass::Transient,
            Self::Refused { status: 401 | 403, .. } | Self::BaseUrl { .. } => ErrorClass::Config,
            Self::Refused { .. } | Self::Malformed { .. } => ErrorClass::Upstream,
            Self::Encode { .. } => ErrorClass::Internal,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Net(error) => return error.hint(),
            Self::Refused { status: 401 | 403, .. } => "provision a new key with this cloud",
            Self::Refused { status: 402, .. } => "add credits to the account",
            Self::BaseUrl { .. } => "write it like http://127.0.0.1:8402 or https://host",
            Self::Refused { .. } | Self::Malformed { .. } | Self::Encode { .. } => return None,
        };
        Some(hint.to_owned())
    }
}
