//! A server over HTTP as an upstream, in whatever format it speaks.
//!
//! Must never send a key anywhere but to the configured URL, nor tell one to a client.

use std::time::Duration;

use automaton_core::secret::Secret;
use automaton_core::time::Span;
use automaton_core::wire::cloud::{
    CONTEXT_LENGTH_EXCEEDED, MODEL_NOT_FOUND, TOOLS_UNSUPPORTED, UPSTREAM_KEY,
};
use automaton_inference::InferenceError;
use automaton_inference::providers::http::probe::nearest;
use automaton_inference::providers::http::{
    ApiAuth, ApiFormat, ReplyFrames, StreamChoice, refusal,
};
use automaton_net::{
    DeadlineKind, Deadlines, Header, HttpClient, HttpMethod, HttpRequest, HttpResponse, NetError,
    Url, redact,
};
use axum::http::StatusCode;
use serde::Deserialize;

use super::health::{HealthVerdict, KeyRing};
use super::{FailureKind, REFUSED, UpstreamFailure, UpstreamTry, broken, unreadable};
use crate::chat::ClientFormat;
use crate::chat::answer::Answer;
use crate::chat::request::RequestAddress;
use crate::config::TokenLimitName;
use crate::error::{ApiError, RefusedField};

/// The most bytes of a server's own words that are passed on.
const SAID_MAX: usize = 500;

/// The longest that a client is asked to wait, in seconds.
const WAIT_MAX: u64 = 3600;

/// A server.
pub(crate) struct UpstreamServer {
    pub(crate) client: HttpClient,
    /// The format that it speaks.
    pub(crate) format: ApiFormat,
    pub(crate) anthropic_version: Option<String>,
    /// The URL of completions.
    pub(crate) url: Url,
    pub(crate) keys: KeyRing,
    pub(crate) limit_name: TokenLimitName,
    /// The longest silence.
    pub(crate) idle: Duration,
}

/// A refusal in the format's own form, as far as it is passed on beside its words.
#[derive(Default, Deserialize)]
struct UpstreamRefusal {
    error: RefusedField,
}

impl UpstreamServer {
    /// Has a question answered, with each of the keys until one is accepted.
    pub(super) async fn answer(
        &self,
        asked: &UpstreamTry<'_>,
        answer: &mut dyn Answer,
    ) -> Result<(), UpstreamFailure> {
        let to = RequestAddress { format: self.format, id: asked.id, limit_name: self.limit_name };
        let body = asked.chat.for_upstream(asked.model, to).map_err(UpstreamFailure::unfit)?;
        let mut response = self.ask(body, asked).await?;
        let media_type = response.media_type();
        if !asked.chat.stream {
            let body = response.body.read_to_end().await.map_err(|error| broken(asked, &error))?;
            let mark = "\u{FEFF}".as_bytes();
            let body = body.strip_prefix(mark).map_or_else(|| body.clone(), <[u8]>::to_vec);
            return answer.document(body.into()).map_err(|what| self.unreadable(asked, &what));
        }
        let mut frames = ReplyFrames::default();
        while let Some(chunk) =
            response.body.chunk().await.map_err(|error| cut_off(asked, &error))?
        {
            // Nobody reads what is let go of before its client had it.
            answer.recording().wait_for_clients().await;
            let pieces = frames.push(&chunk).map_err(|error| broken(asked, &error))?;
            self.check_stream(asked, frames.has_documents(), media_type.as_deref())?;
            for data in pieces {
                if answer.event(&data).map_err(|what| self.unreadable(asked, &what))? {
                    return Ok(());
                }
            }
        }
        for data in frames.finish().map_err(|error| broken(asked, &error))? {
            if answer.event(&data).map_err(|what| self.unreadable(asked, &what))? {
                return Ok(());
            }
        }
        match self.format {
            // Some servers of chat completions just end, and Gemini's format has no event for the
            // end. The caller checks that the answer gave a reason for its end.
            ApiFormat::ChatCompletions | ApiFormat::Gemini => Ok(()),
            _ => Err(unreadable(asked, "the answer ended too early")),
        }
    }

    /// Refuses a whole document in the place of a stream: nobody could read it, and it would be charged.
    fn check_stream(
        &self,
        asked: &UpstreamTry<'_>,
        has_documents: bool,
        media_type: Option<&str>,
    ) -> Result<(), UpstreamFailure> {
        let is_document = has_documents && media_type == Some("application/json");
        // The pieces of these are documents.
        if !is_document || matches!(self.format, ApiFormat::Ollama | ApiFormat::Gemini) {
            return Ok(());
        }
        (asked.report)(format!("{} does not stream, though it was asked to", asked.name));
        let told = ApiError::new(StatusCode::BAD_GATEWAY, REFUSED, "the model cannot stream");
        Err(UpstreamFailure::unfit(told))
    }

    /// Returns the URL of embeddings, which is beside that of completions.
    fn embeddings_url(&self, asked: &UpstreamTry<'_>) -> Result<Url, UpstreamFailure> {
        let base = self.url.path().strip_suffix("chat/completions");
        let Some(base) = base.filter(|_| self.format == ApiFormat::ChatCompletions) else {
            let what = "has no embeddings in OpenAI's format, in which this cloud asks for them";
            (asked.report)(format!("{} {what}", asked.name));
            let told = ApiError::unavailable("the model makes no embeddings now");
            return Err(UpstreamFailure::unfit(told));
        };
        let mut url = self.url.clone();
        url.set_path(&format!("{base}embeddings"));
        Ok(url)
    }

    /// Fails because the reply is unreadable, or reports a failure.
    fn unreadable(&self, asked: &UpstreamTry<'_>, what: &str) -> UpstreamFailure {
        unreadable(asked, &redact::text(what, &self.keys.all(), SAID_MAX))
    }

    /// Returns the credentials for the server.
    fn auth(&self, key: Option<&Secret>) -> ApiAuth {
        let auth = ApiAuth::usual(self.format, key.cloned());
        auth.with_version(self.anthropic_version.as_deref())
    }

    /// Asks with the key to use, and with the next where that one is refused.
    async fn ask(
        &self,
        body: Vec<u8>,
        asked: &UpstreamTry<'_>,
    ) -> Result<HttpResponse, UpstreamFailure> {
        let mut tries = self.keys.tries();
        loop {
            let key = self.keys.choose(asked.clock.now());
            let failure = match self.send(body.clone(), key.map(|(_, key)| key), asked).await {
                Ok(response) => {
                    key.into_iter().for_each(|(place, _)| self.keys.works(place));
                    return Ok(response);
                }
                Err(failure) => failure,
            };
            let refused = match failure.kind {
                FailureKind::Verdict(it @ (HealthVerdict::Key | HealthVerdict::Busy(_))) => it,
                _ => return Err(failure),
            };
            let now = asked.clock.now();
            key.into_iter().for_each(|(place, _)| self.keys.refused(place, refused, now));
            tries -= 1;
            if tries == 0 || !self.keys.has_ready(now) {
                return Err(failure);
            }
        }
    }

    async fn send(
        &self,
        body: Vec<u8>,
        key: Option<&Secret>,
        asked: &UpstreamTry<'_>,
    ) -> Result<HttpResponse, UpstreamFailure> {
        let how = if asked.chat.stream { StreamChoice::Stream } else { StreamChoice::Whole };
        let url = match asked.chat.format {
            ClientFormat::Embeddings => self.embeddings_url(asked)?,
            _ => self.format.target(&self.url, asked.id, how),
        };
        let mut request = HttpRequest::new(HttpMethod::Post, url);
        request.body = body;
        request.headers.push(Header::Open("content-type", "application/json".to_owned()));
        request.headers.extend(self.auth(key).headers());
        if self.format == ApiFormat::AnthropicMessages && !asked.chat.betas.is_empty() {
            request.headers.push(Header::Open("anthropic-beta", asked.chat.betas.join(",")));
        }
        let limits = asked.chat.reply_limits(asked.model);
        request.deadlines = Deadlines { idle: self.idle, total: limits.total.max(self.idle) };
        request.body_bytes_max = limits.bytes;
        let response = self.client.request(request).await;
        let response = response.map_err(|error| broken(asked, &error))?;
        match response.status {
            200..300 => Ok(response),
            _ => Err(self.refused(response, key, asked).await),
        }
    }

    /// The server refused. Its words are cleaned of our keys. What the client can mend is
    /// told to it, and that our key is wrong, which asking again will not mend; the rest is
    /// the operator's.
    async fn refused(
        &self,
        response: HttpResponse,
        key: Option<&Secret>,
        asked: &UpstreamTry<'_>,
    ) -> UpstreamFailure {
        let status = response.status;
        let wait = response.header("retry-after").and_then(|text| text.trim().parse::<u64>().ok());
        let body = response.body.read_to_end().await.unwrap_or_default();
        let keys = self.keys.all();
        let clean = |text: &str| redact::text(text, &keys, SAID_MAX);
        let said = clean(&String::from_utf8_lossy(&body));
        (asked.report)(format!("{} refused with status {status}: {said}", asked.name));
        let refused = |status, code, text: String| ApiError::new(status, code, text);
        let mendable = |code, text: &str| mendable(&body, code, &clean, text);
        let rest =
            wait.map(|seconds| Span::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX / 1000)));
        let again_after = wait.map(|seconds| seconds.min(WAIT_MAX));
        let busy = |told| {
            UpstreamFailure::from_verdict(
                HealthVerdict::Busy(rest),
                ApiError { again_after, ..told },
            )
        };
        match refusal("the upstream", asked.id, status, &body) {
            InferenceError::Unauthorised { .. } => {
                let what =
                    format!("the model's server does not accept this cloud's key ({status})");
                let told = refused(StatusCode::BAD_GATEWAY, UPSTREAM_KEY, what);
                UpstreamFailure::from_verdict(HealthVerdict::Key, told)
            }
            InferenceError::NoModel { text, .. } => {
                let said = clean(&text);
                let model = asked.id;
                let auth = self.auth(key);
                let listed = nearest(&self.client, &self.url, &auth, model).await;
                let what = match listed.as_slice() {
                    [] => format!("the server behind this cloud has no model '{model}': {said}"),
                    listed => format!(
                        "the server behind this cloud has no model '{model}'; it has: {}",
                        listed.join(", ")
                    ),
                };
                UpstreamFailure::unfit(refused(StatusCode::NOT_FOUND, MODEL_NOT_FOUND, what))
            }
            InferenceError::NoTools { text, .. } => mendable(TOOLS_UNSUPPORTED, &text),
            InferenceError::TooLong { text, .. } => mendable(CONTEXT_LENGTH_EXCEEDED, &text),
            InferenceError::Status { status: 400 | 422, text, .. }
            | InferenceError::ContentRefused { text, .. } => mendable(REFUSED, &text),
            InferenceError::Status { status: 429, .. } => {
                let what = "the model is busy".to_owned();
                busy(refused(StatusCode::TOO_MANY_REQUESTS, REFUSED, what))
            }
            InferenceError::Status { status: 503, .. } if wait.is_some() => {
                busy(ApiError::unavailable("the model is busy"))
            }
            other => {
                let verdict = match other {
                    // The operator's account there is empty.
                    InferenceError::NoCredits { .. } => HealthVerdict::Key,
                    _ => HealthVerdict::Failed,
                };
                let what = "the model cannot be used now".to_owned();
                UpstreamFailure::from_verdict(
                    verdict,
                    refused(StatusCode::BAD_GATEWAY, REFUSED, what),
                )
            }
        }
    }
}

/// Returns the failure of an answer that broke off: at one of our limits, or otherwise.
fn cut_off(asked: &UpstreamTry<'_>, error: &NetError) -> UpstreamFailure {
    let is_ours = matches!(
        error,
        NetError::TooLarge { .. } | NetError::TimedOut { late: DeadlineKind::Total(_), .. }
    );
    let failure = broken(asked, error);
    if !is_ours {
        return failure;
    }
    let what = "the answer passed this cloud's limits and was broken off; what came until then is \
                charged";
    let told = ApiError::new(StatusCode::BAD_GATEWAY, "ANSWER_CUT_OFF", what);
    UpstreamFailure { told: Box::new(told), kind: FailureKind::CutOff }
}

/// Reports an error that the client can mend, in the server's words without their wrapping, with
/// the field that it concerns.
fn mendable(
    body: &[u8],
    code: &str,
    clean: &dyn Fn(&str) -> String,
    text: &str,
) -> UpstreamFailure {
    // silent-ok: most servers name no field.
    let told: Option<UpstreamRefusal> = serde_json::from_slice(body).ok();
    let RefusedField { param, code: theirs } = told.unwrap_or_default().error;
    let theirs = theirs.filter(|_| code == REFUSED);
    let field =
        RefusedField { param: param.as_deref().map(clean), code: theirs.as_deref().map(clean) };
    UpstreamFailure::mendable(ApiError {
        field: Box::new(field),
        ..ApiError::new(StatusCode::BAD_REQUEST, code, clean(text))
    })
}
