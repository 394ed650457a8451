//! The answer to a call, while it comes and for some time after.
//!
//! One task writes it; any number of clients read it from the beginning. It must
//! never grow beyond what the upstream's cap allows.

use std::time::Duration;

use automaton_core::time::Timestamp;
use automaton_sqlite::chain::Hash;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::error::ApiError;

/// How long a client waits for the head of an answer. Clients give up after 30
/// to 60 seconds without one and would ask again.
const HEAD_WITHIN: Duration = Duration::from_secs(20);
/// How often a client that waits longer is sent a space, which JSON ignores.
const PAD_EVERY: Duration = Duration::from_secs(10);

/// Says that we counted the tokens ourselves.
pub(super) const ESTIMATED: HeaderName = HeaderName::from_static("x-usage-estimated");

/// How an answer begins.
#[derive(Debug, Clone)]
enum Head {
    Headers(HeaderMap),
    Refused(ApiError),
}

#[derive(Debug, Default)]
struct Progress {
    head: Option<Head>,
    pieces: Vec<Bytes>,
    ended_at: Option<Timestamp>,
    refused: bool,
}

/// A recorded answer.
#[derive(Debug)]
pub(crate) struct Recording {
    /// The hash of the request's body.
    pub(super) content: Hash,
    progress: watch::Sender<Progress>,
}

impl Recording {
    pub(super) fn new(content: Hash) -> Self {
        Self { content, progress: watch::Sender::default() }
    }

    /// The answer begins, with this media type.
    pub(super) fn begin(&self, media_type: &'static str, estimated: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if estimated {
            headers.insert(ESTIMATED, HeaderValue::from_static("true"));
        }
        self.progress.send_modify(|progress| progress.head = Some(Head::Headers(headers)));
    }

    pub(super) fn push(&self, piece: Bytes) {
        self.progress.send_modify(|progress| progress.pieces.push(piece));
    }

    /// The answer is a refusal; one that began already just ends.
    pub(super) fn refuse(&self, error: ApiError) {
        self.progress.send_modify(|progress| {
            progress.refused = true;
            progress.head.get_or_insert(Head::Refused(error));
        });
    }

    pub(super) fn end(&self, now: Timestamp) {
        self.progress.send_modify(|progress| progress.ended_at = Some(now));
    }

    pub(super) fn refused(&self) -> bool {
        self.progress.borrow().refused
    }

    pub(super) fn ended_at(&self) -> Option<Timestamp> {
        self.progress.borrow().ended_at
    }

    pub(super) fn bytes(&self) -> usize {
        self.progress.borrow().pieces.iter().map(Bytes::len).sum()
    }

    /// The answer for one more client.
    pub(crate) async fn response(&self) -> Response {
        let mut watched = self.progress.subscribe();
        let head = timeout(HEAD_WITHIN, watched.wait_for(|progress| progress.head.is_some())).await;
        // silent-ok: the sender lives as long as `self`.
        let head = head.ok().and_then(Result::ok).and_then(|progress| progress.head.clone());
        match head {
            Some(Head::Refused(error)) => error.into_response(),
            Some(Head::Headers(headers)) => (headers, body(watched)).into_response(),
            None => {
                let json = [(header::CONTENT_TYPE, "application/json")];
                (json, body(watched)).into_response()
            }
        }
    }
}

/// The pieces from the first on, as they come.
fn body(watched: watch::Receiver<Progress>) -> Body {
    let state = (watched, 0_usize);
    Body::from_stream(stream::unfold(state, async |(mut watched, next)| {
        loop {
            let (piece, late, over) = {
                let progress = watched.borrow_and_update();
                let late = match &progress.head {
                    // A refusal that comes after the head can only be a body.
                    Some(Head::Refused(error)) if next == 0 => serde_json::to_vec(&error.body).ok(),
                    _ => None,
                };
                let over = progress.ended_at.is_some() || progress.refused;
                (
                    progress.pieces.get(next).cloned().or(late.map(Bytes::from)),
                    progress.head.is_none(),
                    over,
                )
            };
            let padded = Bytes::from_static(b" ");
            if let Some(piece) = piece {
                return Some((Ok::<_, std::convert::Infallible>(piece), (watched, next + 1)));
            }
            if over {
                return None;
            }
            match timeout(PAD_EVERY, watched.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return None,
                Err(_) if late => return Some((Ok(padded), (watched, next))),
                Err(_) => {}
            }
        }
    }))
}
