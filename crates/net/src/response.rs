//! Responses: a head, and a body that is read under the request's limits.
//!
//! Must never read beyond a cap or a deadline, and never take a body that broke off for a complete
//! one.

use std::future::Future;

use bytes::Bytes;
use reqwest::Upgraded;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use tokio::time::{Instant, timeout_at};

use crate::error::{DeadlineKind, NetError};
use crate::json_lists::JsonLists;
use crate::limits::{Deadlines, UNLISTED_BYTES_MAX};
use crate::origin::Origin;

/// The head of an answer, and its body: still to be read, or read.
#[derive(Debug)]
pub struct HttpResponse<B = ResponseBody> {
    /// The status code; never that of a redirection.
    pub status: u16,
    headers: HeaderMap,
    /// The body.
    pub body: B,
}

/// An answer that was read to its end.
pub type FullResponse = HttpResponse<Vec<u8>>;

impl<B> HttpResponse<B> {
    /// The media type of the body in lower case, without its parameters.
    #[must_use]
    pub fn media_type(&self) -> Option<String> {
        // silent-ok: a media type that is no text is as good as none.
        let value = self.headers.get(CONTENT_TYPE)?.to_str().ok()?;
        Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
    }

    /// The value of a header, when it is there once and is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next().filter(|_| values.next().is_none());
        // silent-ok: a value that is no text is as good as none.
        value?.to_str().ok()
    }
}

impl HttpResponse {
    pub(crate) fn new(response: reqwest::Response, clock: Countdown, limits: BodyLimits) -> Self {
        Self {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body: ResponseBody { response, clock, limits, lists: JsonLists::default() },
        }
    }

    /// The connection itself, for the protocol that the server changed to with status 101.
    /// No deadline of the request holds for it.
    ///
    /// # Errors
    /// Fails if the server changed to none.
    pub async fn upgrade(self) -> Result<Upgraded, NetError> {
        let ResponseBody { response, clock, .. } = self.body;
        let upgraded = response.upgrade().await;
        upgraded.map_err(|source| NetError::BrokenOff { origin: clock.origin, source })
    }

    /// Reads the body to its end.
    ///
    /// # Errors
    /// As [`ResponseBody::chunk`].
    pub async fn read(self) -> Result<FullResponse, NetError> {
        let Self { status, headers, body } = self;
        Ok(HttpResponse { status, headers, body: body.read_to_end().await? })
    }
}

/// The body of an answer, read piece by piece under the request's limits.
#[derive(Debug)]
pub struct ResponseBody {
    response: reqwest::Response,
    clock: Countdown,
    limits: BodyLimits,
    lists: JsonLists,
}

/// The limits on the bytes of a body that may arrive, and on those passed on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimits {
    /// The largest body that may arrive, in bytes.
    pub(crate) arriving_bytes: u64,
    arrived_bytes: u64,
    given_bytes_max: u64,
    given_bytes: u64,
    empties_lists: bool,
}

impl BodyLimits {
    /// Creates limits for a body of at most `limit_bytes`, counted after its lists were emptied,
    /// if they are.
    pub(crate) const fn new(limit_bytes: u64, empties_lists: bool) -> Self {
        let arriving_bytes = if empties_lists { UNLISTED_BYTES_MAX } else { limit_bytes };
        Self {
            arriving_bytes,
            arrived_bytes: 0,
            given_bytes_max: limit_bytes,
            given_bytes: 0,
            empties_lists,
        }
    }
}

/// Counts more bytes, or gives the limit that they break.
fn count(counted: &mut u64, more: usize, limit_bytes: u64) -> Result<(), u64> {
    let more = u64::try_from(more).unwrap_or(u64::MAX);
    *counted = counted.saturating_add(more);
    if *counted > limit_bytes { Err(limit_bytes) } else { Ok(()) }
}

impl ResponseBody {
    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// Fails if a deadline passes, the body grows beyond its cap or breaks off.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, NetError> {
        let read = self.clock.within(self.response.chunk()).await?;
        let origin = &self.clock.origin;
        let chunk = read.map_err(|source| NetError::BrokenOff {
            origin: origin.clone(),
            source: source.without_url(),
        })?;
        let Some(chunk) = chunk else { return Ok(None) };
        let too_large = |limit_bytes| NetError::TooLarge { origin: origin.clone(), limit_bytes };
        let limits = &mut self.limits;
        count(&mut limits.arrived_bytes, chunk.len(), limits.arriving_bytes).map_err(too_large)?;
        let chunk = if limits.empties_lists { self.lists.empty(&chunk).into() } else { chunk };
        count(&mut limits.given_bytes, chunk.len(), limits.given_bytes_max).map_err(too_large)?;
        Ok(Some(chunk))
    }

    /// Reads the rest of the body.
    ///
    /// # Errors
    /// As [`ResponseBody::chunk`].
    pub async fn read_to_end(mut self) -> Result<Vec<u8>, NetError> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Lowers the cap of a body of which nothing was read yet.
    pub(crate) fn cap(&mut self, limit_bytes: u64) {
        self.limits.arriving_bytes = self.limits.arriving_bytes.min(limit_bytes);
        self.limits.given_bytes_max = self.limits.given_bytes_max.min(limit_bytes);
    }
}

/// The deadlines of one request, running.
#[derive(Debug, Clone)]
pub(crate) struct Countdown {
    pub(crate) origin: Origin,
    deadlines: Deadlines,
    end: Instant,
}

impl Countdown {
    pub(crate) fn start(origin: Origin, deadlines: Deadlines) -> Self {
        Self { origin, deadlines, end: Instant::now() + deadlines.total }
    }

    /// Returns whether the request may still be under way at this time.
    pub(crate) fn reaches(&self, time: Instant) -> bool {
        time < self.end
    }

    pub(crate) async fn within<T>(&self, step: impl Future<Output = T>) -> Result<T, NetError> {
        let idle = Instant::now() + self.deadlines.idle;
        let late = if idle < self.end {
            DeadlineKind::Idle(self.deadlines.idle)
        } else {
            DeadlineKind::Total(self.deadlines.total)
        };
        let done = timeout_at(idle.min(self.end), step).await;
        done.map_err(|_| NetError::TimedOut { origin: self.origin.clone(), late })
    }
}
