//! Who thinks behind the cloud: a server over HTTP, or a model in our sandbox.
//!
//! Both answer in the format of chat completions, so that nothing else here
//! knows which it is. An upstream must never decide what an answer costs.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use automaton_core::error::chain;
use automaton_core::model::ModelId;
use automaton_core::secret::Secret;
use automaton_core::wire::brain::LocalModelFailureCode;
use automaton_core::wire::chat::{ChatChunk, ChatResponse, ChunkDelta};
use automaton_core::wire::cloud::{
    CONTEXT_LENGTH_EXCEEDED, MODEL_NOT_FOUND, TOOLS_UNSUPPORTED, UPSTREAM_KEY,
};
use automaton_inference::providers::http::probe::nearest;
use automaton_inference::providers::http::{
    ApiAuth, ApiFormat, ReplyFrames, StreamChoice, StreamPiece, refusal,
};
use automaton_inference::providers::local::LocalModel;
use automaton_inference::providers::local::chat::{ChatResponder, ResponseMeta, question};
use automaton_inference::{InferenceError, LocalModelError, NoTokenSink, Provider as _, TokenSink};
use automaton_net::{
    Deadlines, Header, HttpClient, HttpMethod, HttpRequest, HttpResponse, Url, redact,
};
use axum::http::StatusCode;
use serde::Deserialize;

use super::ChatBody;
use super::answer_stream::{AnswerStream, DONE};
use crate::config::{OfferedModel, TokenLimitName};
use crate::error::{ApiError, OperatorNotifier, RefusedField};

/// How long a server may think and answer.
const DEADLINES: Deadlines =
    Deadlines { idle: Duration::from_secs(300), total: Duration::from_secs(900) };
/// The largest answer, in bytes.
const ANSWER_BYTES_MAX: u64 = 8 << 20;
/// How much of a server's own words is passed on.
const SAID_MAX: usize = 500;

/// The longest that a client is asked to wait, in seconds.
const WAIT_MAX: u64 = 3600;

/// The code of a refusal that the client can mend.
const REFUSED: &str = "UPSTREAM_REFUSED";

/// Who thinks.
pub(crate) enum Upstream {
    /// A server.
    Server(Box<UpstreamServer>),
    /// A model of our own.
    Local(Box<LocalModel>),
}

/// A server.
pub(crate) struct UpstreamServer {
    pub(crate) client: HttpClient,
    /// The format that it speaks.
    pub(crate) format: ApiFormat,
    pub(crate) anthropic_version: Option<String>,
    /// Where completions are asked for.
    pub(crate) url: Url,
    pub(crate) key: Option<Secret>,
    pub(crate) limit_name: TokenLimitName,
}

/// A refusal in the format's own form, as far as it is passed on beside its words.
#[derive(Default, Deserialize)]
struct UpstreamRefusal {
    error: RefusedField,
}

/// One question.
pub(super) struct UpstreamRequest<'a> {
    pub(super) chat: ChatBody,
    pub(super) model: &'a OfferedModel,
    /// What the answer is called, if it has to be given a name here.
    pub(super) byline: ResponseMeta,
    pub(super) report: &'a OperatorNotifier,
}

impl Upstream {
    /// What requests call the limit of tokens.
    pub(crate) const fn limit_name(&self) -> TokenLimitName {
        match self {
            Self::Server(server) => server.limit_name,
            Self::Local(_) => TokenLimitName::MaxTokens,
        }
    }

    /// A model as it is offered: what the configuration says, within what is
    /// known of the one that answers.
    pub(crate) fn offered(&self, mut model: OfferedModel) -> OfferedModel {
        if let Self::Local(local) = self {
            let known = local.model();
            model.context_window = model.context_window.min(known.context_tokens);
            (model.weak, model.note) = (known.weak, known.note.clone());
        }
        model
    }

    /// Has a question answered, into the hearing.
    ///
    /// # Errors
    /// What the client is told; what concerns the operator is reported.
    pub(super) async fn answer(
        &self,
        question: UpstreamRequest<'_>,
        hearing: &mut AnswerStream<'_>,
    ) -> Result<(), ApiError> {
        match self {
            Self::Server(server) => server.answer(question, hearing).await,
            Self::Local(local) => think(local, question, hearing).await,
        }
    }
}

/// The upstream failed; what it says of it is the operator's alone.
fn broken(report: &OperatorNotifier, error: &(dyn std::error::Error + 'static)) -> ApiError {
    report(format!("the upstream failed: {}", chain(error)));
    ApiError::new(StatusCode::BAD_GATEWAY, "UPSTREAM_FAILED", "the model did not answer")
}

impl UpstreamServer {
    async fn answer(
        &self,
        question: UpstreamRequest<'_>,
        hearing: &mut AnswerStream<'_>,
    ) -> Result<(), ApiError> {
        let UpstreamRequest { chat, model, byline, report } = question;
        let stream = chat.stream;
        let body = chat.for_upstream(model, self.limit_name);
        let body = body.map_err(|error| ApiError::internal(report, &error))?;
        let body = self.format.body_from_chat(body, model.context_window);
        let body = body.map_err(|error| unfit(error.to_string()))?;
        let how = if stream { StreamChoice::Stream } else { StreamChoice::Whole };
        let mut response = self.ask(body, how, model.upstream_id(), report).await?;
        if !stream {
            let body = response.body.whole().await.map_err(|error| broken(report, &error))?;
            let body = match self.format {
                ApiFormat::ChatCompletions => body,
                format => {
                    let said = format.reader().document(&String::from_utf8_lossy(&body));
                    let reply = said.map_err(|what| self.unreadable(report, &what))?;
                    let reply = ChatResponse { created: byline.created, ..reply };
                    serde_json::to_vec(&reply)
                        .map_err(|error| ApiError::internal(report, &error))?
                }
            };
            return hearing.document(body.into()).map_err(|error| broken(report, &error));
        }
        // Nobody could read it, and it would be charged.
        let media_type = response.media_type();
        if media_type.as_deref() == Some("application/json") {
            report("the upstream does not stream, though it was asked to".to_owned());
            return Err(ApiError::new(StatusCode::BAD_GATEWAY, REFUSED, "the model cannot stream"));
        }
        // Some say nothing of it.
        let mut frames = ReplyFrames::of(media_type.as_deref()).unwrap_or_default();
        let mut reader = self.format.reader();
        hearing.begin();
        while let Some(chunk) =
            response.body.chunk().await.map_err(|error| broken(report, &error))?
        {
            for data in frames.push(&chunk).map_err(|error| broken(report, &error))? {
                if self.format == ApiFormat::ChatCompletions {
                    if data.trim() == DONE {
                        return Ok(());
                    }
                    hearing.event(&data);
                    continue;
                }
                let piece = reader.passed_on(&data);
                match piece.map_err(|what| self.unreadable(report, &what))? {
                    StreamPiece::Chunk(chunk) => pass_on(hearing, chunk, &byline),
                    StreamPiece::Last(chunk) => {
                        pass_on(hearing, chunk, &byline);
                        return Ok(());
                    }
                    StreamPiece::Done => return Ok(()),
                }
            }
        }
        Ok(())
    }

    /// What came back is no reply, or says that it failed.
    fn unreadable(&self, report: &OperatorNotifier, what: &str) -> ApiError {
        let keys: Vec<&Secret> = self.key.iter().collect();
        report(format!("the upstream failed: {}", redact::text(what, &keys, SAID_MAX)));
        ApiError::new(StatusCode::BAD_GATEWAY, "UPSTREAM_FAILED", "the model did not answer")
    }

    /// How the server is told who asks.
    fn auth(&self) -> ApiAuth {
        let auth = ApiAuth::usual(self.format, self.key.clone());
        auth.with_version(self.anthropic_version.as_deref())
    }

    async fn ask(
        &self,
        body: Vec<u8>,
        how: StreamChoice,
        model: &ModelId,
        report: &OperatorNotifier,
    ) -> Result<HttpResponse, ApiError> {
        let mut request =
            HttpRequest::new(HttpMethod::Post, self.format.target(&self.url, model, how));
        request.body = body;
        request.headers.push(Header::Open("content-type", "application/json".to_owned()));
        request.headers.extend(self.auth().headers());
        (request.deadlines, request.body_bytes_max) = (DEADLINES, ANSWER_BYTES_MAX);
        let response = self.client.request(request).await;
        let response = response.map_err(|error| broken(report, &error))?;
        match response.status {
            200..300 => Ok(response),
            _ => Err(self.refused(response, model, report).await),
        }
    }

    /// The server refused. Its words are cleaned of our key. What the client can mend is
    /// told to it, and that our key is wrong, which asking again will not mend; the rest is
    /// the operator's.
    async fn refused(
        &self,
        response: HttpResponse,
        model: &ModelId,
        report: &OperatorNotifier,
    ) -> ApiError {
        let status = response.status;
        let wait = response.header("retry-after").and_then(|text| text.trim().parse::<u64>().ok());
        let body = response.body.whole().await.unwrap_or_default();
        let keys: Vec<&Secret> = self.key.iter().collect();
        let said = redact::text(&String::from_utf8_lossy(&body), &keys, SAID_MAX);
        report(format!("the upstream refused with status {status}: {said}"));
        let refused = |status, code, text: String| ApiError::new(status, code, text);
        let clean = |text: &str| redact::text(text, &keys, SAID_MAX);
        // What the client can mend is told in the server's words alone, out of whatever they
        // were wrapped in, and with the field that they are about.
        let mendable = |code, text: &str| {
            // silent-ok: most servers name no field.
            let told: Option<UpstreamRefusal> = serde_json::from_slice(&body).ok();
            let RefusedField { param, code: theirs } = told.unwrap_or_default().error;
            let theirs = theirs.filter(|_| code == REFUSED);
            let field = RefusedField {
                param: param.as_deref().map(clean),
                code: theirs.as_deref().map(clean),
            };
            ApiError {
                field: Box::new(field),
                ..refused(StatusCode::BAD_REQUEST, code, clean(text))
            }
        };
        match refusal("the upstream", model, status, &body) {
            InferenceError::Unauthorised { .. } => {
                let what =
                    format!("the model's server does not accept this cloud's key ({status})");
                refused(StatusCode::BAD_GATEWAY, UPSTREAM_KEY, what)
            }
            InferenceError::NoModel { text, .. } => {
                let said = clean(&text);
                let listed = nearest(&self.client, &self.url, &self.auth(), model).await;
                let what = match listed.as_slice() {
                    [] => format!("the server behind this cloud has no model '{model}': {said}"),
                    listed => format!(
                        "the server behind this cloud has no model '{model}'; it has: {}",
                        listed.join(", ")
                    ),
                };
                refused(StatusCode::NOT_FOUND, MODEL_NOT_FOUND, what)
            }
            InferenceError::NoTools { text, .. } => mendable(TOOLS_UNSUPPORTED, &text),
            InferenceError::TooLong { text, .. } => mendable(CONTEXT_LENGTH_EXCEEDED, &text),
            InferenceError::Status { status: 400 | 422, text, .. }
            | InferenceError::ContentRefused { text, .. } => mendable(REFUSED, &text),
            InferenceError::Status { status: 429, .. } => ApiError {
                again_after: wait.map(|seconds| seconds.min(WAIT_MAX)),
                ..refused(StatusCode::TOO_MANY_REQUESTS, REFUSED, "the model is busy".to_owned())
            },
            InferenceError::Status { status: 503, .. } if wait.is_some() => ApiError {
                again_after: wait.map(|seconds| seconds.min(WAIT_MAX)),
                ..ApiError::unavailable("the model is busy")
            },
            _ => {
                let what = "the model cannot be used now".to_owned();
                refused(StatusCode::BAD_GATEWAY, REFUSED, what)
            }
        }
    }
}

/// Has the model of our own answer.
async fn think(
    local: &LocalModel,
    asked: UpstreamRequest<'_>,
    hearing: &mut AnswerStream<'_>,
) -> Result<(), ApiError> {
    let UpstreamRequest { chat, model, byline, report } = asked;
    let internal = |error: serde_json::Error| ApiError::internal(report, &error);
    let stream = chat.stream;
    let body = chat.for_upstream(model, TokenLimitName::MaxTokens).map_err(internal)?;
    let request = question(&body).map_err(|error| unfit(error.to_string()))?;
    let speech = ChatResponder::new(byline);
    if !stream {
        let done =
            local.ask(&request, &NoTokenSink).await.map_err(|error| failed(report, &error))?;
        let whole = serde_json::to_vec(&speech.whole(&done)).map_err(internal)?;
        return hearing.document(whole.into()).map_err(internal);
    }
    let live = StreamingSink(Mutex::new((speech, &mut *hearing)));
    let done = local.ask(&request, &live).await.map_err(|error| failed(report, &error))?;
    let (speech, hearing) = live.0.into_inner().unwrap_or_else(PoisonError::into_inner);
    let rest = speech.end(&done).map_err(|error| broken(report, &error))?;
    rest.iter().for_each(|chunk| say(hearing, chunk));
    Ok(())
}

/// The request cannot be put to this model.
fn unfit(sentence: String) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, REFUSED, sentence)
}

/// The model of our own failed. What the client can mend is told to it.
fn failed(report: &OperatorNotifier, error: &InferenceError) -> ApiError {
    match error {
        InferenceError::TooLong { text, .. } => {
            let sentence = format!("the context window of the model is too small: {text}");
            ApiError::new(StatusCode::BAD_REQUEST, CONTEXT_LENGTH_EXCEEDED, sentence)
        }
        InferenceError::Helper(LocalModelError::Answer {
            code: LocalModelFailureCode::BadRequest | LocalModelFailureCode::BadSchema,
            message,
        }) => unfit(message.clone()),
        other => broken(report, other),
    }
}

/// Passes the pieces of an answer on as they come. A std mutex, since nothing
/// is awaited while it is held.
struct StreamingSink<'a, 'b>(Mutex<(ChatResponder, &'a mut AnswerStream<'b>)>);

impl TokenSink for StreamingSink<'_, '_> {
    fn text(&self, piece: &str) {
        let mut live = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (speech, hearing) = &mut *live;
        if let Some(chunk) = speech.piece(piece) {
            say(hearing, &chunk);
        }
    }
}

/// Passes a piece on that was another format's; its count of tokens is a piece of its own.
fn pass_on(hearing: &mut AnswerStream<'_>, mut chunk: ChatChunk, byline: &ResponseMeta) {
    let usage = chunk.usage.take();
    let is_news = |it: &ChatChunk| {
        let of = it.choices.iter();
        of.clone().any(|it| it.delta != ChunkDelta::default() || it.finish_reason.is_some())
    };
    let whole = ChatChunk {
        id: byline.id.clone(),
        object: "chat.completion.chunk".to_owned(),
        created: byline.created,
        model: byline.model.to_string(),
        ..ChatChunk::default()
    };
    if is_news(&chunk) {
        say(hearing, &ChatChunk { choices: chunk.choices, ..whole.clone() });
    }
    if usage.is_some() {
        say(hearing, &ChatChunk { usage, ..whole });
    }
}

fn say(hearing: &mut AnswerStream<'_>, chunk: &ChatChunk) {
    // silent-ok: a piece is texts and numbers, which always have a JSON form.
    if let Ok(json) = serde_json::to_string(chunk) {
        hearing.event(&json);
    }
}
