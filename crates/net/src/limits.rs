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

/// The largest reply body whose lists are emptied as they arrive, in bytes. None of it is kept
/// but the rest, so this limit only ends a body without an end.
pub const UNLISTED_BYTES_MAX: u64 = 1 << 30;

/// The longest time to make a connection: names, TCP and TLS.
pub const CONNECT: Duration = Duration::from_secs(10);

/// The deadlines of a request. The time to connect is the client's.
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

/// The reaction of a client to servers that fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The base from which the waits before repeats grow.
    pub first_wait: Duration,
    /// The time for which an origin is left alone after it failed again and again.
    pub rest: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { first_wait: Duration::from_secs(1), rest: Duration::from_secs(60) }
    }
}

/// The largest head of a request that the proxy reads, in bytes.
pub const EGRESS_HEAD_BYTES_MAX: usize = 32 << 10;

/// Headers of one request to the proxy.
pub const EGRESS_HEADERS_MAX: usize = 100;

/// The longest target of a request that a sandboxed program sends, in bytes. Each that is
/// judged is written down, and never forgotten.
pub const EGRESS_TARGET_BYTES_MAX: usize = 4 << 10;

/// Requests of sandboxed programs in a day, over all of them.
pub const EGRESS_REQUESTS_PER_DAY: u32 = 20_000;

/// The longest time until a command sends the head of a request, or the greeting in a tunnel.
pub const EGRESS_HEAD: Duration = Duration::from_secs(10);

/// Connections of one command to the proxy at once; more wait.
pub const EGRESS_CONNECTIONS_MAX: usize = 32;

/// The limits on a command's traffic through the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Requests in any minute, over all commands.
    pub requests_per_minute: u32,
    /// Bytes of one request in each direction, as they go over the wire.
    pub bytes_per_request: u64,
    /// Bytes of all requests of one command, both directions together.
    pub bytes_per_run: u64,
    /// The longest time of a request without a byte. The check runs at this interval, so up to
    /// twice as long may pass.
    pub idle: Duration,
    /// The longest time of a request in all.
    pub total: Duration,
}

impl Default for Allowance {
    fn default() -> Self {
        Self {
            requests_per_minute: 120,
            bytes_per_request: 64 << 20,
            bytes_per_run: 256 << 20,
            idle: Duration::from_secs(30),
            total: Duration::from_secs(600),
        }
    }
}
