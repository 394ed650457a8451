//! The answer to a call, while it comes and for some time after.
//!
//! One task writes it, and any number of clients read it from the beginning. The beginning of a
//! long answer is dropped once the client furthest ahead has read it. A client that comes later
//! gets an error that says so. It must never hold more than a few mebibytes of a stream.

use std::collections::VecDeque;
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

/// The longest wait of a client for the head of an answer. Clients give up after 30 to 60 seconds
/// without one and would ask again.
const HEAD_WITHIN: Duration = Duration::from_secs(20);
/// The pause between paddings, which a reader skips, for a client that waits longer.
const PAD_EVERY: Duration = Duration::from_secs(10);

/// Bytes of an answer that are held: a stream of some thirty thousand tokens.
const HELD_BYTES_MAX: usize = 8 << 20;
/// Bytes that the client that is furthest may be behind before it is waited for.
const BEHIND_BYTES_MAX: usize = 4 << 20;
/// The longest wait for a client that is behind.
const BEHIND_WITHIN: Duration = Duration::from_secs(60);
/// The words for a client that comes when the beginning of an answer is gone.
const NOT_HELD: &str = "this answer was too long to be held; what it cost is in the history, and \
                        asking without this Idempotency-Key asks anew";

/// Says that we counted the tokens ourselves.
pub(super) const ESTIMATED: HeaderName = HeaderName::from_static("x-usage-estimated");

/// In what form an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyForm {
    /// As one JSON document of chat completions.
    ChatDocument,
    /// Piece by piece, in the same format.
    ChatEvents,
    /// As one JSON document of Anthropic's format.
    MessagesDocument,
    /// Piece by piece, in the same format.
    MessagesEvents,
    /// As one JSON document of responses.
    ResponsesDocument,
    /// Piece by piece, in the same format.
    ResponsesEvents,
}

impl ReplyForm {
    const fn is_events(self) -> bool {
        matches!(self, Self::ChatEvents | Self::MessagesEvents | Self::ResponsesEvents)
    }

    const fn content_type(self) -> HeaderValue {
        let kind = if self.is_events() { "text/event-stream" } else { "application/json" };
        HeaderValue::from_static(kind)
    }

    /// Returns bytes that readers skip: white space before JSON, a comment among events, or
    /// Anthropic's event for it once an answer has begun.
    const fn padding(self, begun: bool) -> Bytes {
        Bytes::from_static(match self {
            Self::ChatDocument | Self::MessagesDocument | Self::ResponsesDocument => b" ",
            Self::MessagesEvents if begun => b"event: ping\ndata: {\"type\": \"ping\"}\n\n",
            Self::ChatEvents | Self::MessagesEvents | Self::ResponsesEvents => b":\n\n",
        })
    }

    /// Returns a refusal for a client that already has the head and `pieces` pieces of an answer.
    fn refusal(self, error: &ApiError, pieces: usize) -> Option<Bytes> {
        let json = match self {
            Self::ChatDocument | Self::ChatEvents | Self::ResponsesDocument => {
                serde_json::to_string(&error.for_models())
            }
            Self::ResponsesEvents => serde_json::to_string(&error.for_responses(pieces)),
            Self::MessagesDocument | Self::MessagesEvents => {
                serde_json::to_string(&error.for_messages())
            }
        };
        // silent-ok: a refusal is texts and numbers, which always have a JSON form.
        let json = json.ok()?;
        Some(match self {
            Self::ChatDocument | Self::MessagesDocument | Self::ResponsesDocument => json.into(),
            Self::ChatEvents => format!("data: {json}\n\n").into(),
            Self::MessagesEvents | Self::ResponsesEvents => {
                format!("event: error\ndata: {json}\n\n").into()
            }
        })
    }
}

/// The beginning of an answer.
#[derive(Debug, Clone)]
enum ResponseHead {
    Headers(HeaderMap),
    Refused(ApiError),
}

#[derive(Debug, Default)]
struct RecordingProgress {
    head: Option<ResponseHead>,
    /// The pieces that are held, and how many bytes they have.
    pieces: VecDeque<Bytes>,
    bytes: usize,
    /// The number of earlier pieces that are no longer held.
    dropped: usize,
    /// The last piece is there.
    whole: bool,
    ended_at: Option<Timestamp>,
    refused: bool,
}

impl RecordingProgress {
    fn push(&mut self, piece: Bytes) {
        self.bytes += piece.len();
        self.pieces.push_back(piece);
        // The last piece stays, which may be a whole document.
        while self.bytes > HELD_BYTES_MAX && self.pieces.len() > 1 {
            let Some(oldest) = self.pieces.pop_front() else { break };
            self.bytes -= oldest.len();
            self.dropped += 1;
        }
    }

    /// Returns the number of pieces so far.
    fn count(&self) -> usize {
        self.dropped + self.pieces.len()
    }

    fn piece(&self, nth: usize) -> Option<&Bytes> {
        self.pieces.get(nth.checked_sub(self.dropped)?)
    }

    /// Returns the bytes after the first `nth` pieces.
    fn bytes_after(&self, nth: usize) -> usize {
        self.pieces.iter().skip(nth.saturating_sub(self.dropped)).map(Bytes::len).sum()
    }
}

/// The progress of an answer's clients.
#[derive(Debug, Default)]
struct ReadProgress {
    clients: usize,
    /// The number of pieces that the client furthest ahead has read.
    furthest: usize,
}

/// A recorded answer.
#[derive(Debug)]
pub(crate) struct Recording {
    /// The hash of the API key that asked.
    pub(super) key: Hash,
    /// The hash of the request's body.
    pub(super) content: Hash,
    /// The hash that equal requests share, if the request has no name.
    pub(super) equal: Option<Hash>,
    form: ReplyForm,
    progress: watch::Sender<RecordingProgress>,
    read: watch::Sender<ReadProgress>,
    /// The last piece was handed to a client's connection.
    delivered: AtomicBool,
    /// A client's connection was lost before that, and no other client came since.
    lost: AtomicBool,
}

/// A client that waits for an answer, as long as its connection is there.
struct RecordingClient(Arc<Recording>);

impl Drop for RecordingClient {
    fn drop(&mut self) {
        let Self(recording) = self;
        recording.read.send_modify(|read| read.clients -= 1);
        if !recording.delivered.load(Ordering::Relaxed) {
            recording.lost.store(true, Ordering::Relaxed);
        }
    }
}

impl Recording {
    pub(super) fn new(key: Hash, content: Hash, equal: Option<Hash>, form: ReplyForm) -> Self {
        Self {
            key,
            content,
            equal,
            form,
            progress: watch::Sender::default(),
            read: watch::Sender::default(),
            delivered: AtomicBool::default(),
            lost: AtomicBool::default(),
        }
    }

    /// Returns whether a request without a name gets this answer, since it equals a request that
    /// lost its client. No second one does.
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
        [(header::CONTENT_TYPE, self.form.content_type()), store].into_iter().collect()
    }

    pub(super) fn push(&self, piece: Bytes) {
        self.progress.send_modify(|progress| progress.push(piece));
    }

    /// Waits while there are clients and all of them are far behind, but not for ever: what none
    /// of them has read is let go of only then.
    pub(super) async fn wait_for_clients(&self) {
        let is_near = |read: &ReadProgress| {
            let behind = || self.progress.borrow().bytes_after(read.furthest);
            read.clients == 0 || behind() <= BEHIND_BYTES_MAX
        };
        // silent-ok: a client that does not read for so long has itself to blame.
        timeout(BEHIND_WITHIN, self.read.subscribe().wait_for(is_near)).await.ok();
    }

    /// The last piece.
    pub(super) fn finish(&self, piece: Bytes) {
        self.progress.send_modify(|progress| {
            progress.push(piece);
            progress.whole = true;
        });
    }

    /// Ends the answer with a refusal. A stream that has begun gets it as its last event, since
    /// clients of chat completions take a stream that just ends for a whole answer.
    pub(super) fn refuse(&self, error: ApiError) {
        let is_told = self.form.is_events();
        self.progress.send_modify(|progress| {
            progress.refused = true;
            if progress.head.is_some()
                && is_told
                && let Some(piece) = self.form.refusal(&error, progress.count())
            {
                progress.push(piece);
            }
            progress.head.get_or_insert(ResponseHead::Refused(error));
        });
    }

    pub(super) fn end(&self, now: Timestamp) {
        self.progress.send_modify(|progress| progress.ended_at = Some(now));
    }

    pub(super) fn refused(&self) -> bool {
        self.progress.borrow().refused
    }

    /// Returns whether no request can ask for the answer any more.
    pub(super) fn is_spent(&self) -> bool {
        self.equal.is_some() && self.delivered.load(Ordering::Relaxed)
    }

    pub(super) fn ended_at(&self) -> Option<Timestamp> {
        self.progress.borrow().ended_at
    }

    pub(super) fn bytes(&self) -> usize {
        self.progress.borrow().bytes
    }

    /// The answer for one more client.
    pub(crate) async fn response(self: Arc<Self>) -> Response {
        if self.progress.borrow().dropped > 0 {
            return ApiError::conflict(NOT_HELD).into_response();
        }
        self.read.send_modify(|read| read.clients += 1);
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
            if next == usize::MAX {
                return None;
            }
            let Self(recording) = &client;
            let form = recording.form;
            loop {
                let (piece, patient, over, is_overtaken) = {
                    let progress = watched.borrow_and_update();
                    let late = match &progress.head {
                        // A refusal that comes after the head can only be a body.
                        Some(ResponseHead::Refused(error)) if next == 0 => form.refusal(error, 0),
                        _ => None,
                    };
                    if progress.whole && next + 1 == progress.count() {
                        recording.delivered.store(true, Ordering::Relaxed);
                    }
                    let over = progress.ended_at.is_some() || progress.refused;
                    // Among events there is always room for a comment.
                    let patient = progress.head.is_none() || form.is_events();
                    (progress.piece(next).cloned().or(late), patient, over, next < progress.dropped)
                };
                if is_overtaken {
                    // It read too slowly: what follows would not go on from what it has.
                    let error = std::io::Error::other(NOT_HELD);
                    return Some((Err(error), (client, watched, usize::MAX)));
                }
                if let Some(piece) = piece {
                    recording.read.send_modify(|read| read.furthest = read.furthest.max(next + 1));
                    let state = (client, watched, next + 1);
                    return Some((Ok::<_, std::io::Error>(piece), state));
                }
                if over {
                    return None;
                }
                match timeout(PAD_EVERY, watched.changed()).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => return None,
                    Err(_) if patient => {
                        return Some((Ok(form.padding(next > 0)), (client, watched, next)));
                    }
                    Err(_) => {}
                }
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;

    use super::*;

    fn recording() -> Arc<Recording> {
        let key = Hash::of(b"key");
        let content = Hash::of(b"content");
        let recording = Recording::new(key, content, None, ReplyForm::ChatEvents);
        recording.begin(Metering::Reported);
        Arc::new(recording)
    }

    const MIB: usize = 1 << 20;

    #[tokio::test(start_paused = true)]
    async fn a_long_answer_is_read_to_its_end_and_never_held_whole() {
        let recording = recording();
        let response = Arc::clone(&recording).response().await;
        let mut body = response.into_body().into_data_stream();
        let reader = async {
            let mut bytes = 0;
            while let Some(piece) = body.next().await {
                bytes += piece.unwrap().len();
            }
            bytes
        };
        let writer = async {
            for _ in 0..40 {
                recording.push(vec![b'x'; MIB].into());
                recording.wait_for_clients().await;
                assert!(recording.bytes() <= HELD_BYTES_MAX);
            }
            recording.finish(Bytes::from_static(b"end"));
            recording.end(Timestamp::EPOCH);
        };
        let (read, ()) = tokio::join!(reader, writer);
        assert_eq!(read, 40 * MIB + 3);
        assert!(recording.delivered.load(Ordering::Relaxed));
        // Whoever comes now is told, and is shown no part of it as the whole.
        let late = Arc::clone(&recording).response().await;
        assert_eq!(late.status(), axum::http::StatusCode::CONFLICT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_stopped_reading_is_waited_for_and_then_broken_off() {
        let recording = recording();
        let response = Arc::clone(&recording).response().await;
        let mut body = response.into_body().into_data_stream();
        recording.push(Bytes::from_static(b"first"));
        assert_eq!(body.next().await.unwrap().unwrap(), "first");
        let began = tokio::time::Instant::now();
        for _ in 0..12 {
            recording.push(vec![b'x'; MIB].into());
            recording.wait_for_clients().await;
        }
        assert_eq!(began.elapsed(), 8 * BEHIND_WITHIN, "each time once it is too far behind");
        assert!(body.next().await.unwrap().is_err(), "nothing is left out unseen");
        assert!(body.next().await.is_none());
        // Without a client nobody is waited for.
        drop(body);
        let began = tokio::time::Instant::now();
        recording.push(vec![b'x'; MIB].into());
        recording.wait_for_clients().await;
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[test]
    fn who_waits_is_sent_what_its_reader_skips() {
        for (form, begun, sent) in [
            (ReplyForm::ChatDocument, false, " "),
            (ReplyForm::MessagesDocument, true, " "),
            (ReplyForm::ChatEvents, true, ":\n\n"),
            // Before the first event there may be no other.
            (ReplyForm::MessagesEvents, false, ":\n\n"),
            (ReplyForm::MessagesEvents, true, "event: ping\ndata: {\"type\": \"ping\"}\n\n"),
        ] {
            assert_eq!(form.padding(begun), sent, "{form:?}");
        }
    }

    #[test]
    fn a_refusal_after_the_head_has_the_form_of_its_client() {
        let error = ApiError::unavailable("busy");
        let said =
            |form: ReplyForm| String::from_utf8(form.refusal(&error, 3).unwrap().to_vec()).unwrap();
        assert!(said(ReplyForm::ChatEvents).starts_with("data: {\"error\":{"));
        let event =
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"";
        assert!(said(ReplyForm::MessagesEvents).starts_with(event));
        assert!(said(ReplyForm::MessagesDocument).starts_with("{\"type\":\"error\""));
        let event = said(ReplyForm::ResponsesEvents);
        assert!(event.starts_with("event: error\ndata: {\"type\":\"error\""), "{event}");
        assert!(
            event.contains("\"sequence_number\":3") && event.contains("\"error\":{"),
            "{event}"
        );
    }
}
