//! A server that speaks as the hosted ones do: streams, usage, tokens from a cache, and a
//! window that no request may overrun.
//!
//! It listens on a free port of 127.0.0.1 and never elsewhere. Who thinks sees the request
//! and nothing else.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use automaton_core::wire::chat::{ChatRequest, ChatUsage, PromptTokensDetails};
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::solver::SolverReply;
use automaton_script::model::{ScriptServerError, pieces};
use automaton_script::story::{ScriptedAnswer, ScriptedCall};

/// The largest request that is read, in bytes.
const REQUEST_BYTES_MAX: usize = 16 << 20;
/// Tokens come from the cache in blocks of so many.
const CACHED_BLOCK: usize = 128;

/// Function that answers a request.
pub type Responder = Box<dyn Fn(&ChatRequest) -> SolverReply + Send + Sync>;

/// Counts of a server.
#[derive(Debug, Clone, Default)]
pub struct ServerStats {
    /// Requests that were answered.
    pub answers: u64,
    /// Requests that were longer than the window.
    pub overruns: u64,
    /// Tokens of the requests that were answered, and those of them that a cache had.
    pub prompt_tokens: u64,
    /// Tokens that a cache had.
    pub cached_tokens: u64,
    /// Tokens of the answers.
    pub completion_tokens: u64,
    /// The largest request, in tokens.
    pub largest: u64,
    /// Missing facts when they were needed, the newest last.
    pub missing: Vec<String>,
}

/// A running server. It stops when this is dropped.
#[derive(Debug)]
pub struct WorkServer {
    address: SocketAddr,
    seen: Arc<Mutex<ServerStats>>,
    _tasks: JoinSet<()>,
}

/// State that every request needs.
#[derive(Clone)]
struct WorkServerState {
    model: String,
    /// The most tokens that a request may have.
    window: u32,
    think: Arc<Responder>,
    seen: Arc<Mutex<ServerStats>>,
    /// The last request as text.
    last: Arc<Mutex<String>>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WorkServer {
    /// Serves a model of this name and window.
    ///
    /// # Errors
    /// No port of 127.0.0.1 is free.
    pub async fn start(
        model: &str,
        window: u32,
        think: Responder,
    ) -> Result<Self, ScriptServerError> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(ScriptServerError)?;
        let address = listener.local_addr().map_err(ScriptServerError)?;
        let seen = Arc::<Mutex<ServerStats>>::default();
        let serving = WorkServerState {
            model: model.to_owned(),
            window,
            think: Arc::new(think),
            seen: Arc::clone(&seen),
            last: Arc::default(),
        };
        let app = Router::new()
            .route("/v1/models", get(models))
            .route("/v1/chat/completions", post(complete))
            .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
            .with_state(serving);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // silent-ok: axum's server never ends with an error by itself.
            let _ended = axum::serve(listener, app).await;
        });
        Ok(Self { address, seen, _tasks: tasks })
    }

    /// Scheme, host and port.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn stats(&self) -> ServerStats {
        lock(&self.seen).clone()
    }
}

async fn models(State(serving): State<WorkServerState>) -> Response {
    let row = json!({ "id": serving.model, "object": "model", "created": 0, "owned_by": "lab" });
    Json(json!({ "object": "list", "data": [row] })).into_response()
}

async fn complete(
    State(serving): State<WorkServerState>,
    Json(request): Json<ChatRequest>,
) -> Response {
    let text = text_of(&request);
    let tokens = text.chars().count().div_ceil(4);
    if tokens > serving.window as usize {
        lock(&serving.seen).overruns += 1;
        let message = format!(
            "This model's maximum context length is {} tokens. However, your messages resulted \
             in {tokens} tokens. Please reduce the length of the messages.",
            serving.window
        );
        let error = json!({ "message": message, "type": "invalid_request_error",
            "param": "messages", "code": "context_length_exceeded" });
        return (StatusCode::BAD_REQUEST, Json(json!({ "error": error }))).into_response();
    }
    let reply = (serving.think)(&request);
    let mut last = lock(&serving.last);
    let same = text.bytes().zip(last.bytes()).take_while(|(one, other)| one == other).count();
    let cached = same / 4 / CACHED_BLOCK * CACHED_BLOCK;
    *last = text;
    drop(last);
    let (answer, usage) = answered(&reply, tokens, cached);
    note(&mut lock(&serving.seen), &usage, reply.missing);
    match pieces((&serving.model, usage), &request, &answer) {
        Ok(pieces) => {
            let kind = if request.stream { "text/event-stream" } else { "application/json" };
            ([(header::CONTENT_TYPE, kind)], Body::from(pieces.concat())).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Returns the text that a model reads of a request. The tools come first, as in templates.
fn text_of(request: &ChatRequest) -> String {
    let mut text = String::new();
    for tool in request.tools.iter().map(|tool| &tool.function) {
        text.push_str(&format!("{} {} {}\n", tool.name, tool.description, tool.parameters));
    }
    for message in &request.messages {
        text.push_str(&format!("{:?}\n", message.role));
        text.push_str(message.content.as_deref().unwrap_or_default());
        for call in message.tool_calls.iter().flatten() {
            text.push_str(&format!("\n{} {}", call.function.name, call.function.arguments));
        }
        text.push('\n');
    }
    text
}

fn answered(reply: &SolverReply, prompt: usize, cached: usize) -> (ScriptedAnswer, ChatUsage) {
    let calls = reply.calls.iter().enumerate().map(|(n, call)| ScriptedCall {
        id: format!("call_{n}"),
        tool: call.tool.clone(),
        arguments: call.arguments.to_string(),
    });
    let answer = ScriptedAnswer { text: reply.text.clone(), calls: calls.collect() };
    let called = answer.calls.iter().map(|call| call.tool.len() + call.arguments.len());
    let completion = (answer.text.len() + called.sum::<usize>()).div_ceil(4);
    let count = |tokens: usize| u32::try_from(tokens).unwrap_or(u32::MAX);
    let usage = ChatUsage {
        prompt_tokens: count(prompt),
        completion_tokens: count(completion),
        total_tokens: count(prompt + completion),
        prompt_tokens_details: Some(PromptTokensDetails {
            cached_tokens: count(cached),
            ..PromptTokensDetails::default()
        }),
        first_token_ms: None,
        estimated: false,
    };
    (answer, usage)
}

fn note(seen: &mut ServerStats, usage: &ChatUsage, missing: Option<String>) {
    let cached = usage.prompt_tokens_details.unwrap_or_default().cached_tokens;
    seen.answers += 1;
    seen.prompt_tokens += u64::from(usage.prompt_tokens);
    seen.cached_tokens += u64::from(cached);
    seen.completion_tokens += u64::from(usage.completion_tokens);
    seen.largest = seen.largest.max(usage.prompt_tokens.into());
    seen.missing.extend(missing);
}
