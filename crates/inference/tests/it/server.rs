//! A server that answers each request with prepared bytes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use automaton_core::secret::Secret;
use automaton_core::time::{Clock, Timestamp};
use automaton_inference::providers::http::{ApiAuth, ApiFormat, Endpoint, HttpProvider};
use automaton_inference::{
    Completion, CompletionRequest, InferenceError, Message, NoTokenSink, Provider as _, TokenSink,
    catalogue,
};
use automaton_net::{Bytes, Deadlines, HttpClient, HttpClientConfig, Origin};
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response, Uri};
use serde_json::Value;
use tokio::sync::mpsc;

/// What the server says to every request.
#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) media_type: Option<&'static str>,
    /// The body, in the pieces in which it is sent.
    pub(crate) pieces: Vec<Bytes>,
    pub(crate) after: After,
}

/// What comes after the last piece.
#[derive(Clone, Copy)]
pub(crate) enum After {
    End,
    BreakOff,
    Silence,
}

impl Answer {
    pub(crate) fn stream(body: &str) -> Self {
        Self::new(200, Some("text/event-stream"), body)
    }

    pub(crate) fn json(status: u16, body: &str) -> Self {
        Self::new(status, Some("application/json; charset=utf-8"), body)
    }

    pub(crate) fn new(status: u16, media_type: Option<&'static str>, body: &str) -> Self {
        let pieces = vec![Bytes::copy_from_slice(body.as_bytes())];
        Self { status, media_type, pieces, after: After::End }
    }

    pub(crate) fn cut_every(mut self, size: usize) -> Self {
        let whole = self.pieces.concat();
        self.pieces = whole.chunks(size).map(Bytes::copy_from_slice).collect();
        self
    }

    pub(crate) fn then(self, after: After) -> Self {
        Self { after, ..self }
    }
}

/// A request as the server saw it.
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) authorization: Option<String>,
    /// Anthropic's key and version, as they were sent.
    pub(crate) anthropic: [Option<String>; 2],
    /// Gemini's key.
    pub(crate) google: Option<String>,
    pub(crate) body: Value,
}

#[derive(Clone)]
struct Served {
    answer: Answer,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// A provider whose server says this, and what the server has seen.
pub(crate) struct Pair {
    pub(crate) provider: HttpProvider,
    pub(crate) base_url: String,
    pub(crate) seen: Arc<Mutex<Vec<Seen>>>,
}

/// The key that the tests' provider uses.
pub(crate) const KEY: &str = "cnwy_k_0123456789";

/// Time that stands still, but for one millisecond at each look.
struct Ticks(Mutex<i64>);

impl Clock for Ticks {
    fn now(&self) -> Timestamp {
        let mut millis = self.0.lock().unwrap();
        *millis += 1;
        Timestamp::from_millis(*millis)
    }
}

async fn serve(
    State(served): State<Served>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let header = |name| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let anthropic = [header("x-api-key"), header("anthropic-version")];
    let body = serde_json::from_slice(&body).unwrap();
    let seen = Seen {
        path: uri.to_string(),
        authorization: header("authorization"),
        anthropic,
        google: header("x-goog-api-key"),
        body,
    };
    served.seen.lock().unwrap().push(seen);
    let Answer { status, media_type, pieces, after } = served.answer;
    let (sender, receiver) = mpsc::channel::<Result<Bytes, std::io::Error>>(1);
    let feed = async move {
        for piece in pieces {
            if sender.send(Ok(piece)).await.is_err() {
                return;
            }
        }
        match after {
            After::End => {}
            After::BreakOff => drop(sender.send(Err(std::io::Error::other("cut"))).await),
            After::Silence => tokio::time::sleep(Duration::from_secs(60)).await,
        }
    };
    spawn(feed);
    let mut response = Response::builder().status(status);
    if let Some(media_type) = media_type {
        response = response.header("content-type", media_type);
    }
    response.body(Body::from_stream(Pieces(receiver))).unwrap()
}

/// A channel as the stream that axum wants.
struct Pieces(mpsc::Receiver<Result<Bytes, std::io::Error>>);

impl futures_util::Stream for Pieces {
    type Item = Result<Bytes, std::io::Error>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}

#[expect(clippy::disallowed_methods, reason = "a test's tasks end with its runtime")]
pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    drop(tokio::spawn(task));
}

/// Starts a server and a provider that may reach it.
pub(crate) async fn pair(answer: Answer) -> Pair {
    pair_of(ApiFormat::ChatCompletions, "gpt-5.2", answer).await
}

/// The same in any format.
pub(crate) async fn pair_of(format: ApiFormat, model: &str, answer: Answer) -> Pair {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::default();
    let served = Served { answer, seen: Arc::clone(&seen) };
    let router = Router::new().fallback(serve).with_state(served);
    spawn(async move { axum::serve(listener, router).await.unwrap() });
    let origin: Origin = base_url.parse().unwrap();
    let config =
        HttpClientConfig { allow_private_origins: vec![origin], ..HttpClientConfig::default() };
    let auth = ApiAuth::usual(format, Some(Secret::new(KEY.to_owned())));
    let info = catalogue::model(model).unwrap();
    let mut endpoint = Endpoint { format, ..Endpoint::new(&base_url, auth, info) };
    endpoint.deadlines =
        Deadlines { idle: Duration::from_millis(700), total: Duration::from_secs(20) };
    let clock = Arc::new(Ticks(Mutex::new(0)));
    let provider = HttpProvider::new(HttpClient::new(config).unwrap(), endpoint, clock).unwrap();
    Pair { provider, base_url, seen }
}

/// A short question.
pub(crate) fn ask() -> CompletionRequest {
    CompletionRequest {
        messages: vec![Message::system("Be brief.").into(), Message::user("Who are you?").into()],
        tools: Arc::default(),
        left_out: Vec::new(),
        max_tokens: 50,
        seed: 0,
        temperature_milli: 0,
        name: None,
        silence: None,
    }
}

/// What comes of a question to a server that says this.
pub(crate) async fn told(answer: Answer) -> Result<Completion, InferenceError> {
    pair(answer).await.provider.complete(&ask(), &NoTokenSink).await
}

/// A sink that remembers.
#[derive(Default)]
pub(crate) struct Heard(pub(crate) Mutex<Vec<String>>);

impl TokenSink for Heard {
    fn text(&self, piece: &str) {
        self.0.lock().unwrap().push(piece.to_owned());
    }
}
