//! A model that follows a script: an OpenAI-compatible server on this machine whose answers come
//! from a [`Story`].
//!
//! It listens on a free port of 127.0.0.1 and never elsewhere. It knows only the story and the
//! request: it must never look into an automaton's home to find out whether something happened.

mod reply;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use automaton_core::error::Classified;
use automaton_core::wire::chat::ChatRequest;
use axum::body::{Body, Bytes};
use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use axum::{Json, Router};
use futures_util::stream;
use serde::Serialize;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

pub use crate::story::{CreatorTiming, StoryProgress};
use crate::story::{ScriptedFault, Story, StoryRunner, TellerReply};
pub use reply::{ReplyMeta, pieces};

/// The id of the server's only model.
pub const MODEL: &str = "script";

/// The largest request, in bytes.
const REQUEST_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The server cannot listen.
#[derive(Debug, thiserror::Error, Classified)]
#[error("the scripted model cannot listen on 127.0.0.1")]
#[class(Internal)]
pub struct ScriptServerError(#[source] pub io::Error);

/// A running server. Dropping it stops the server.
#[derive(Debug)]
pub struct ScriptServer {
    address: SocketAddr,
    teller: Arc<Mutex<StoryRunner>>,
    progress: mpsc::Receiver<StoryProgress>,
    /// Dropping this ends the hanging answers.
    _stop: watch::Sender<()>,
    _tasks: JoinSet<()>,
}

impl ScriptServer {
    /// Starts to tell a story.
    ///
    /// # Errors
    /// Fails if no port of 127.0.0.1 is free.
    pub async fn start(story: Story) -> Result<Self, ScriptServerError> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(ScriptServerError)?;
        let address = listener.local_addr().map_err(ScriptServerError)?;
        let teller = StoryRunner::new(story);
        let (tell, progress) = mpsc::channel(teller.progress_max());
        let (stop, stopped) = watch::channel(());
        let teller = Arc::new(Mutex::new(teller));
        let telling =
            ScriptServerState { teller: Arc::clone(&teller), tell, stopped: stopped.clone() };
        telling.report(&mut telling.lock());
        let app = Router::new()
            .route("/v1/models", get(models))
            .route("/v1/chat/completions", post(complete))
            .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
            .with_state(telling);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let listener = listener.tap_io(|connection| {
                // An answer is sent in pieces, and none may wait for the acknowledgement of the
                // last.
                // silent-ok: without it answers are only slower.
                connection.set_nodelay(true).ok();
            });
            let server = axum::serve(listener, app);
            // silent-ok: axum's server never ends with an error by itself.
            let _ended = server.with_graceful_shutdown(closed(stopped)).await;
        });
        Ok(Self { address, teller, progress, _stop: stop, _tasks: tasks })
    }

    /// Returns the listening address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns scheme, host and port: the private origin that a client has to allow.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the URL for clients: `http://127.0.0.1:PORT/v1`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("{}/v1", self.origin())
    }

    /// Returns the next progress of the story. Cancel-safe. Pending for ever after
    /// [`StoryProgress::Ended`] or [`StoryProgress::Unmet`].
    pub async fn next_progress(&mut self) -> StoryProgress {
        match self.progress.recv().await {
            Some(progress) => progress,
            None => std::future::pending().await,
        }
    }

    /// Begins another story, without reporting its progress.
    pub fn replace_story(&self, story: Story) {
        *lock(&self.teller) = StoryRunner::new(story);
    }

    /// Describes the first step that is not met yet. Returns `None` if all are met.
    #[must_use]
    pub fn open_step(&self) -> Option<String> {
        lock(&self.teller).open_step()
    }
}

/// The state of the request handlers.
#[derive(Debug, Clone)]
struct ScriptServerState {
    teller: Arc<Mutex<StoryRunner>>,
    tell: mpsc::Sender<StoryProgress>,
    stopped: watch::Receiver<()>,
}

impl ScriptServerState {
    fn lock(&self) -> MutexGuard<'_, StoryRunner> {
        lock(&self.teller)
    }

    /// Reports the progress while the story is locked, so that the order is kept.
    fn report(&self, teller: &mut StoryRunner) {
        for progress in teller.take_progress() {
            // silent-ok: the queue has room for a whole story. It is closed only when the server
            // ends.
            drop(self.tell.try_send(progress));
        }
    }
}

/// Locks the story. The lock is a std mutex, since nothing is awaited while it is held. After a
/// panic the story continues from where it was.
fn lock(teller: &Mutex<StoryRunner>) -> MutexGuard<'_, StoryRunner> {
    teller.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends when the server is dropped.
async fn closed(mut stopped: watch::Receiver<()>) {
    while stopped.changed().await.is_ok() {}
}

/// The reply to `GET /v1/models`.
#[derive(Serialize)]
struct ScriptModels {
    object: &'static str,
    data: [ScriptModelRow; 1],
}

/// A model in the list.
#[derive(Serialize)]
struct ScriptModelRow {
    id: &'static str,
    object: &'static str,
    owned_by: &'static str,
}

async fn models() -> Json<ScriptModels> {
    let row = ScriptModelRow { id: MODEL, object: "model", owned_by: "lab" };
    Json(ScriptModels { object: "list", data: [row] })
}

async fn complete(
    State(telling): State<ScriptServerState>,
    request: Result<Json<ChatRequest>, JsonRejection>,
) -> Response {
    let request = match request {
        Ok(Json(request)) => request,
        Err(rejection) => return failure(rejection.status(), &rejection.body_text()),
    };
    let told = {
        let mut teller = telling.lock();
        let told = teller.ask(&request);
        telling.report(&mut teller);
        told
    };
    let (answer, fault) = match told {
        TellerReply::Answer(answer, fault) => (answer, fault),
        TellerReply::Refused(why) => {
            let sentence = format!("the story cannot go on: {why}");
            return failure(StatusCode::BAD_REQUEST, &sentence);
        }
    };
    let pieces = match reply::script_pieces(&request, &answer) {
        Ok(pieces) => pieces,
        Err(error) => return failure(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    };
    let half = pieces.len().div_ceil(2);
    let (pieces, end) = match fault {
        None => (pieces, StreamEnd::Whole),
        Some(ScriptedFault::Cut) => (pieces[..half].to_vec(), StreamEnd::Cut),
        Some(ScriptedFault::Hang) => (pieces[..half].to_vec(), StreamEnd::Silence(telling.stopped)),
        Some(ScriptedFault::Garbage) => (vec![reply::garbage(&request)], StreamEnd::Whole),
        Some(ScriptedFault::Status(code)) => {
            let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            return failure(status, "the story has this request fail");
        }
    };
    let kind = if request.stream { "text/event-stream" } else { "application/json" };
    ([(header::CONTENT_TYPE, kind)], body(pieces, end)).into_response()
}

fn failure(status: StatusCode, message: &str) -> Response {
    let body = json!({ "error": { "message": message, "type": "story" } });
    (status, Json(body)).into_response()
}

/// The end of a body after its last piece.
enum StreamEnd {
    /// The regular end.
    Whole,
    /// The connection is closed.
    Cut,
    /// Nothing, until the client leaves or the server stops.
    Silence(watch::Receiver<()>),
}

/// Returns a body that is sent piece by piece.
fn body(pieces: Vec<String>, end: StreamEnd) -> Body {
    let state = (pieces.into_iter(), Some(end));
    Body::from_stream(stream::unfold(state, async |(mut pieces, end)| {
        if let Some(piece) = pieces.next() {
            return Some((Ok(Bytes::from(piece)), (pieces, end)));
        }
        let cut = || Err(io::Error::from(io::ErrorKind::ConnectionAborted));
        match end? {
            StreamEnd::Whole => None,
            StreamEnd::Cut => {
                // The connection sends its data only when the body has nothing more ready.
                tokio::task::yield_now().await;
                Some((cut(), (pieces, None)))
            }
            StreamEnd::Silence(stopped) => {
                closed(stopped).await;
                Some((cut(), (pieces, None)))
            }
        }
    }))
}
