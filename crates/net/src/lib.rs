//! The only way off the machine.
//!
//! An HTTP client with deadlines over the whole body, size caps, no redirects,
//! no cookies, no proxies from the environment, and a guard that keeps every
//! request away from private addresses unless the creator's configuration
//! spells out the origin; and the proxy that sandboxed commands leave by, with the same
//! guard and a gate that judges each request. Nothing else in the workspace may open a connection
//! to another machine. This crate must never sign, pay without a [`Payer`] that
//! the caller gave it, or repeat what its caller did not say may be repeated.

pub mod breaker;
pub mod client;
pub mod error;
mod json_lists;
pub mod limits;
pub mod origin;
mod origin_breakers;
pub mod pay;
pub mod proxy;
pub mod redact;
pub mod request;
pub mod response;
pub mod retry;
pub mod sse;
pub mod ssrf;
pub mod trust;

pub use bytes::Bytes;
pub use client::{HttpClient, HttpClientConfig};
pub use error::{DeadlineKind, NetError};
pub use limits::{Allowance, Deadlines, RetryPolicy};
pub use origin::{Origin, OriginError, Scheme, host_pattern};
pub use pay::Payer;
pub use proxy::Proxy;
pub use request::{Header, HttpMethod, HttpRequest};
pub use reqwest::{Upgraded, Url};
pub use response::{FullResponse, HttpResponse, ResponseBody};
pub use retry::Retry;
pub use trust::{PrivateAuthorities, TrustError};
