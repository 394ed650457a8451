//! Pure: how long a request may take and how much a reply may hold.
//!
//! There must never be a request without these: each field has a value, and
//! none means "for ever".

use std::time::Duration;

/// The longest wait before a request is sent again, whatever the server asks
/// for by `Retry-After`.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// The largest reply body that is read when the caller names no size, in bytes.
pub const BODY_BYTES_MAX: u64 = 1 << 20;

/// How long a connection may take to come about: names, TCP and TLS.
pub const CONNECT: Duration = Duration::from_secs(10);

/// How long a request may take. The time to connect is the client's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// From the request to its answer's head, and between two pieces of the
    /// body. A server that drips a byte now and then is caught by `total`.
    pub idle: Duration,
    /// From the request to the last byte of the body.
    pub total: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { idle: Duration::from_secs(30), total: Duration::from_secs(60) }
    }
}

/// How a client bears with servers that fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// What the waits before a request is sent again grow from.
    pub first_wait: Duration,
    /// How long an origin that failed again and again is left alone.
    pub rest: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { first_wait: Duration::from_secs(1), rest: Duration::from_secs(60) }
    }
}
