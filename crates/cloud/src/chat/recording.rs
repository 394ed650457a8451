//! The answer to a call, while it comes and for some time after.
//!
//! One task writes it; any number of clients read it from the beginning. It must
//! never grow beyond what the upstream's cap allows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use automaton_core::time::Timestamp;
use automaton_core::wire::cloud::REPLAYED;
use automaton_sqlite::chain::Hash;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::billing::price::Metering;
use crate::error::ApiError;

/// How long a client waits for the head of an answer. Clients give up after 30
/// to 60 seconds without one and would ask again.
const HEAD_WITHIN: Duration = Duration::from_secs(20);
/// How often a client that waits longer is sent what its reader skips.
const PAD_EVERY: Duration = Duration::from_secs(10);

/// Says that we counted the tokens ourselves.
pub(super) const ESTIMATED: HeaderName = HeaderName::from_static("x-usage-estimated");

/// In what form an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    /// As one JSON document.
    Document,
    /// Piece by piece.
    Events,
}

impl Media {
    const fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Document => "application/json",
            Self::Events => "text/event-stream",
        })
    }

    /// What readers skip: white space before JSON, a comment among events.
    const fn padding(self) -> Bytes {
        Bytes::from_static(match self {
            Self::Document => b" ",
            Self::Events => b":\n\n",
        })
    }

    /// A refusal for a client that has the head of an answer already.
    fn refusal(self, error: &ApiError) -> Option<Bytes> {
        // silent-ok: a refusal is texts and numbers, which always have a JSON form.
        let json = serde_json::to_string(&error.for_models()).ok()?;
        Some(match self {
            Self::Document => json.into(),
            Self::Events => format!("data: {json}\n\n").into(),
        })
    }
}

/// How an answer begins.
#[derive(Debug, Clone)]
enum ResponseHead {
    Headers(HeaderMap),
    Refused(ApiError),
}

#[derive(Debug, Default)]
struct RecordingProgress {
    head: Option<ResponseHead>,
    pieces: Vec<Bytes>,
    /// Whether the last piece is there.
    whole: bool,
    ended_at: Option<Timestamp>,
    refused: bool,
}

/// A recorded answer.
#[derive(Debug)]
pub(crate) struct Recording {
    /// The hash of the request's body.
    pub(super) content: Hash,
    /// What it has in common with equal requests, where it has no name.
    pub(super) equal: Option<Hash>,
    media: Media,
    progress: watch::Sender<RecordingProgress>,
    /// Whether the last of it was handed to a client's connection.
    delivered: AtomicBool,
    /// Whether a client's connection was lost before that, and nobody has come since.
    lost: AtomicBool,
}

/// A client that waits for an answer, as long as its connection is there.
struct RecordingClient(Arc<Recording>);

impl Drop for RecordingClient {
    fn drop(&mut self) {
        let Self(recording) = self;
        if !recording.delivered.load(Ordering::Relaxed) {
            recording.lost.store(true, Ordering::Relaxed);
        }
    }
}

impl Recording {
    pub(super) fn new(content: Hash, equal: Option<Hash>, media: Media) -> Self {
        let (progress, delivered, lost) =
            (watch::Sender::default(), AtomicBool::default(), AtomicBool::default());
        Self { content, equal, media, progress, delivered, lost }
    }

    /// Whether a request without a name gets this answer, since it equals the one whose client
    /// has gone without it. No second one does.
    pub(super) fn is_taken_over_by(&self, other: &Self) -> bool {
        let equal = self.equal.is_some() && self.equal == other.equal;
        equal && !self.refused() && self.lost.swap(false, Ordering::Relaxed)
    }

    /// The answer begins, if it has not.
    pub(super) fn begin(&self, metering: Metering) {
        let mut headers = self.headers();
        if metering == Metering::Estimated {
            headers.insert(ESTIMATED, HeaderValue::from_static("true"));
        }
        self.progress.send_if_modified(|progress| {
            let begins = progress.head.is_none();
            progress.head.get_or_insert(ResponseHead::Headers(headers));
            begins
        });
    }

    fn headers(&self) -> HeaderMap {
        let store = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        [(header::CONTENT_TYPE, self.media.content_type()), store].into_iter().collect()
    }

    pub(super) fn push(&self, piece: Bytes) {
        self.progress.send_modify(|progress| progress.pieces.push(piece));
    }

    /// The last piece.
    pub(super) fn finish(&self, piece: Bytes) {
        self.progress.send_modify(|progress| {
            progress.pieces.push(piece);
            progress.whole = true;
        });
    }

    /// The answer is a refusal; one that began already just ends.
    pub(super) fn refuse(&self, error: ApiError) {
        self.progress.send_modify(|progress| {
            progress.refused = true;
            progress.head.get_or_insert(ResponseHead::Refused(error));
        });
    }

    pub(super) fn end(&self, now: Timestamp) {
        self.progress.send_modify(|progress| progress.ended_at = Some(now));
    }

    pub(super) fn refused(&self) -> bool {
        self.progress.borrow().refused
    }

    /// Whether nobody can ask for it any more.
    pub(super) fn is_spent(&self) -> bool {
        self.equal.is_some() && self.delivered.load(Ordering::Relaxed)
    }

    pub(super) fn ended_at(&self) -> Option<Timestamp> {
        self.progress.borrow().ended_at
    }

    pub(super) fn bytes(&self) -> usize {
        self.progress.borrow().pieces.iter().map(Bytes::len).sum()
    }

    /// The answer for one more client.
    pub(crate) async fn response(self: Arc<Self>) -> Response {
        let client = RecordingClient(Arc::clone(&self));
        let replayed = self.delivered.load(Ordering::Relaxed);
        let mut watched = self.progress.subscribe();
        let head = timeout(HEAD_WITHIN, watched.wait_for(|progress| progress.head.is_some())).await;
        // silent-ok: the sender lives as long as `self`.
        let head = head.ok().and_then(Result::ok).and_then(|progress| progress.head.clone());
        let mut headers = match head {
            Some(ResponseHead::Refused(error)) => return error.into_response(),
            Some(ResponseHead::Headers(headers)) => headers,
            None => self.headers(),
        };
        if replayed {
            headers.insert(REPLAYED, HeaderValue::from_static("true"));
        }
        (headers, client.body(watched)).into_response()
    }
}

impl RecordingClient {
    /// The pieces from the first on, as they come.
    fn body(self, watched: watch::Receiver<RecordingProgress>) -> Body {
        let state = (self, watched, 0_usize);
        Body::from_stream(stream::unfold(state, async |(client, mut watched, next)| {
            let Self(recording) = &client;
            let media = recording.media;
            loop {
                let (piece, patient, over) = {
                    let progress = watched.borrow_and_update();
                    let late = match &progress.head {
                        // A refusal that comes after the head can only be a body.
                        Some(ResponseHead::Refused(error)) if next == 0 => media.refusal(error),
                        _ => None,
                    };
                    if progress.whole && next + 1 == progress.pieces.len() {
                        recording.delivered.store(true, Ordering::Relaxed);
                    }
                    let over = progress.ended_at.is_some() || progress.refused;
                    // Among events there is always room for a comment.
                    let patient = progress.head.is_none() || media == Media::Events;
                    (progress.pieces.get(next).cloned().or(late), patient, over)
                };
                if let Some(piece) = piece {
                    let state = (client, watched, next + 1);
                    return Some((Ok::<_, std::convert::Infallible>(piece), state));
                }
                if over {
                    return None;
                }
                match timeout(PAD_EVERY, watched.changed()).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => return None,
                    Err(_) if patient => {
                        return Some((Ok(media.padding()), (client, watched, next)));
                    }
                    Err(_) => {}
                }
            }
        }))
    }
}
