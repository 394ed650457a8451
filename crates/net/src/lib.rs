//! The only way off the machine.
//!
//! An HTTP client with deadlines over the whole body, size caps, no redirects,
//! no cookies, no proxies from the environment, and a guard that keeps every
//! request away from private addresses unless the creator's configuration
//! spells out the origin. Nothing else in the workspace may open a connection
//! to another machine, and this crate must never retry, sign or pay by itself.

pub mod client;
pub mod error;
pub mod limits;
pub mod origin;
pub mod redact;
pub mod sse;
pub mod ssrf;

pub use bytes::Bytes;
pub use client::{Body, Client, ClientConfig, Header, Method, Request, Response};
pub use error::NetError;
pub use limits::Deadlines;
pub use origin::{Origin, OriginError};
pub use reqwest::Url;
