//! Errors on the way to another machine and back.
//!
//! An error names the origin, never the whole URL, and must never hold a header or a body.

use std::net::IpAddr;
use std::time::Duration;

use automaton_core::error::Classified;

use crate::limits::CONNECT;
use crate::origin::{Origin, OriginError};
use crate::origin_breakers::FAILURES_MAX;
use crate::ssrf::AddressClass;

const ONLY_SPELT_OUT: &str =
    "only origins that the configuration spells out may be private or unencrypted";

/// A request did not get its whole answer.
#[derive(Debug, thiserror::Error, Classified)]
pub enum NetError {
    /// The client could not be made.
    #[error("the HTTP client cannot be set up")]
    #[class(Internal)]
    Setup {
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The URL leads nowhere that is spoken here.
    #[error("the URL cannot be requested")]
    #[class(Config)]
    Url {
        /// The cause.
        #[source]
        source: OriginError,
    },
    /// A header cannot be sent.
    #[error("the header '{name}' holds characters that cannot be sent")]
    #[class(Internal)]
    Header {
        /// Its name.
        name: String,
    },
    /// A header that nobody but this program may set.
    #[error("the header '{name}' is set by this program alone")]
    #[class(Denied, hint = "leave it out")]
    HeaderRefused {
        /// Its name.
        name: String,
    },
    /// The request may not be sent more than once, and its caller wants that.
    #[error("the request to {url} may not be repeated: {why}")]
    #[class(Internal)]
    NotRepeatable {
        /// The URL of the request, without its query.
        url: String,
        /// The effect that a repeat could have.
        why: &'static str,
    },
    /// A request that may be paid for, to a place that may not be paid.
    #[error("{origin} is not on the list of those who may be paid")]
    #[class(
        Denied,
        hint = "only the creator's configuration says who may be paid; write {origin} there if you \
                mean it"
    )]
    NotPaid {
        /// The origin of the request.
        origin: Origin,
    },
    /// A payment where none may be: before there is a demand.
    #[error("the request to {origin} holds a payment already")]
    #[class(Internal)]
    PaidAlready {
        /// The origin of the request.
        origin: Origin,
    },
    /// The origin failed too often, and is left alone for a while.
    #[error("{origin} failed {FAILURES_MAX} times in a row and {}", circuit_open_for(*.again))]
    #[class(Transient)]
    CircuitOpen {
        /// The origin of the request.
        origin: Origin,
        /// The time until a request is let through; zero while another request tries the origin.
        again: Duration,
    },
    /// Plain http, where nobody allowed it.
    #[error("{origin} is not encrypted")]
    #[class(Denied, hint = "{ONLY_SPELT_OUT}; write {origin} there if you mean it")]
    NotEncrypted {
        /// The origin of the request.
        origin: Origin,
    },
    /// An address that requests may not reach.
    #[error("{origin} is at {address}, a {class} address")]
    #[class(Denied, hint = "{ONLY_SPELT_OUT}; write {origin} there if you mean it")]
    ForbiddenAddress {
        /// The origin of the request.
        origin: Origin,
        /// The address.
        address: IpAddr,
        /// The kind of address.
        class: AddressClass,
    },
    /// No connection, or it broke before the answer's head.
    #[error("{origin} cannot be reached")]
    #[class(Transient)]
    Unreachable {
        /// The origin of the request.
        origin: Origin,
        /// The cause.
        #[source]
        source: reqwest::Error,
    },
    /// Nobody whom this program trusts has signed who the server is.
    #[error("{origin} shows a certificate that is not trusted")]
    #[class(
        Config,
        hint = "a public authority has to have signed the certificate for this name; where it was \
                one of your own, name the file of its certificate (PEM) in SSL_CERT_FILE"
    )]
    Untrusted {
        /// The origin of the request.
        origin: Origin,
        /// The cause.
        #[source]
        source: reqwest::Error,
    },
    /// The body broke off.
    #[error("the answer of {origin} broke off")]
    #[class(Transient)]
    BrokenOff {
        /// The origin of the request.
        origin: Origin,
        /// The cause.
        #[source]
        source: reqwest::Error,
    },
    /// A deadline passed.
    #[error("{origin} {}", .late.sentence())]
    #[class(Transient)]
    TimedOut {
        /// The origin of the request.
        origin: Origin,
        /// The deadline that passed.
        late: DeadlineKind,
    },
    /// A redirection, which is never followed.
    #[error("{origin} answered with a redirection ({status}), which is not followed")]
    #[class(Upstream, hint = "write the address that the server redirects to in the configuration")]
    Redirected {
        /// The origin of the request.
        origin: Origin,
        /// The status.
        status: u16,
        /// The target of the redirect in the server's words, for a caller that decides to go there.
        location: Option<String>,
    },
    /// The body is larger than the caller allows.
    #[error("the answer of {origin} is larger than {limit_bytes} bytes")]
    #[class(Upstream)]
    TooLarge {
        /// The origin of the request.
        origin: Origin,
        /// The cap.
        limit_bytes: u64,
    },
}

/// A deadline that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadlineKind {
    /// The connection did not come about.
    Connect,
    /// Nothing came for this long.
    Idle(Duration),
    /// The whole took longer than this.
    Total(Duration),
}

fn circuit_open_for(again: Duration) -> String {
    match again.as_millis().div_ceil(1000) {
        0 => "is being tried again by another request".to_owned(),
        seconds => format!("is asked again in {seconds} s"),
    }
}

impl DeadlineKind {
    fn sentence(self) -> String {
        match self {
            Self::Connect => format!("did not take a connection within {CONNECT:?}"),
            Self::Idle(limit) => format!("sent nothing for {limit:?}"),
            Self::Total(limit) => format!("had not finished its answer after {limit:?}"),
        }
    }
}
