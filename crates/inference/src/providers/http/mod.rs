//! Any server that speaks a format that is known here.
//!
//! One `POST` for each question. The reply is asked for as a stream and taken
//! as it comes: a stream, or one JSON document from a server that knows no
//! streams. Must never send the key anywhere but to the configured URL, and
//! never take half an answer for a whole one.

pub mod anthropic;
mod asked;
mod assemble;
mod call_builder;
mod chat_completions;
mod failure;
mod finish;
mod foreign;
mod format;
#[cfg(test)]
mod formats_tests;
mod frames;
mod from_chat;
mod gemini;
mod inline_thoughts;
mod joined;
mod json_scan;
pub mod model_list;
mod ollama;
mod pieces;
pub mod probe;
mod reply_writer;
#[cfg(test)]
mod requests_tests;
mod reset;
pub mod responses;
#[cfg(test)]
mod served_tests;
mod thoughts;
mod url;
mod usage;
mod window;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use automaton_core::model::ModelId;
use automaton_core::record::Usage;
use automaton_core::secret::Secret;
use automaton_core::time::{Clock, Timestamp};
use automaton_core::wire::chat::ChatUsage;
use automaton_net::{
    Deadlines, Header, HttpClient, HttpMethod, HttpRequest, HttpResponse, NetError, ResponseBody,
    Url, redact,
};

use crate::catalogue::ModelInfo;
use crate::conversation;
use crate::cost::{self, ModelPrices, TokenCounts};
use crate::error::InferenceError;
use crate::provider::{
    BoxFuture, Completion, CompletionRequest, Provider, TokenCountSource, TokenSink,
};

use assemble::{AssembledReply, Assembler, AssemblyError};
use failure::{ProviderErrorBody, RequestTarget};
use format::KeptChat;

pub use self::assemble::StreamPiece;
pub use self::foreign::UntranslatableRequest;
pub use self::format::{ApiAuth, ApiFormat, FormatReader, StreamChoice, inspect_chat};
pub use self::frames::{FrameError, ReplyFrames, to_plain_text};
pub use self::reply_writer::{EventFrame, ReplyWriter};

/// The largest reply that is read, in bytes. A streamed token takes some 250.
const REPLY_BYTES_MAX: u64 = 32 << 20;

/// The media types that are read.
const ACCEPTED: &str = "text/event-stream, application/x-ndjson, application/json";

/// Bytes of an error's body that are read.
const FAILURE_BYTES_MAX: usize = 64 << 10;

/// The longest name of a model that is believed, in bytes.
const MODEL_BYTES_MAX: usize = 100;

/// The longest word for the end of an answer that is kept.
const END_BYTES_MAX: usize = 100;

/// Remedies for refusals of a server, as sentences without a full stop.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Remedies {
    /// Way to change the key for the model's server.
    pub key: Option<String>,
    /// True if that server is behind a cloud with a key of its own.
    pub behind_cloud: bool,
    /// Way to name another model.
    pub model: Option<String>,
    /// Way to set the window.
    pub window: Option<String>,
}

/// A server and the model it is asked for.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Address: `http://host:port`, `https://host/v1` and the like.
    pub base_url: String,
    /// The format that it speaks.
    pub format: ApiFormat,
    /// Authentication.
    pub auth: ApiAuth,
    /// The model.
    pub info: ModelInfo,
    /// Deadlines for an answer.
    pub deadlines: Deadlines,
    /// Hints for the creator after a refusal.
    pub remedies: Remedies,
}

impl Endpoint {
    /// An endpoint of the chat-completions format with the usual patience: two minutes of silence, which a
    /// machine at home may need to read a prompt, ten minutes in all.
    #[must_use]
    pub fn new(base_url: &str, auth: ApiAuth, info: ModelInfo) -> Self {
        let deadlines =
            Deadlines { idle: Duration::from_secs(120), total: Duration::from_secs(600) };
        let remedies = Remedies::default();
        let base_url = base_url.to_owned();
        let format = ApiFormat::default();
        Self { base_url, format, auth, info, deadlines, remedies }
    }
}

/// A provider over HTTP.
pub struct HttpProvider {
    client: HttpClient,
    url: Url,
    /// The URL as it may be shown.
    name: String,
    endpoint: Endpoint,
    clock: Arc<dyn Clock>,
    /// A std mutex, since nothing is awaited while it is held.
    kept: Mutex<KeptChat>,
}

impl HttpProvider {
    /// A provider at an endpoint. Nothing is sent yet.
    ///
    /// # Errors
    /// [`InferenceError::BaseUrl`] when the base URL is none.
    pub fn new(
        client: HttpClient,
        endpoint: Endpoint,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, InferenceError> {
        let url = endpoint.format.url(&endpoint.base_url)?;
        let kept = Mutex::new(KeptChat::new(endpoint.format));
        Ok(Self { client, name: redact::url(&url), url, endpoint, clock, kept })
    }

    async fn answer(
        &self,
        ask: &CompletionRequest,
        sink: &dyn TokenSink,
    ) -> Result<Completion, InferenceError> {
        conversation::check(&ask.messages)?;
        let asked = self.clock.now();
        let response = self.send(ask).await?;
        if !(200..=299).contains(&response.status) {
            return Err(self.failure(response).await);
        }
        let encoding = response.header("content-encoding").filter(|it| *it != "identity");
        if let Some(encoding) = encoding {
            let shown = redact::text(encoding, &[], MODEL_BYTES_MAX);
            return Err(
                self.malformed(format!("it is compressed ({shown}), which was not asked for"))
            );
        }
        let bare_ends = self.kept().bare_ends;
        let mut hearing = ReplyReader {
            provider: self,
            format: self.endpoint.format.reader(),
            assembler: Assembler::new(bare_ends),
            first: None,
            media_type: response.media_type().unwrap_or_else(|| "none".to_owned()),
        };
        hearing.read(response.body, sink).await?;
        let first = hearing.first;
        let thoughts = hearing.format.into_thoughts();
        let mut assembled = hearing.assembler.finish().map_err(|flaw| self.flaw(flaw, true))?;
        assembled.name_calls(&ask.tools);
        let mut kept = self.kept();
        kept.thoughts.store(&assembled.calls, thoughts);
        kept.learn_bare_ends(assembled.began_in_thought, &assembled.text);
        drop(kept);
        let times = ReplyTiming { asked, first, done: self.clock.now() };
        self.reply(ask, assembled, times)
    }

    /// Locks the kept conversation.
    fn kept(&self) -> MutexGuard<'_, KeptChat> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send(&self, ask: &CompletionRequest) -> Result<HttpResponse, InferenceError> {
        let json = "application/json".to_owned();
        let mut headers =
            vec![Header::Open("content-type", json), Header::Open("accept", ACCEPTED.to_owned())];
        headers.extend(self.endpoint.auth.headers());
        let usual = self.endpoint.deadlines;
        let deadlines = Deadlines { idle: ask.silence.unwrap_or(usual.idle), ..usual };
        let endpoint = &self.endpoint;
        let url = endpoint.format.target(&self.url, &endpoint.info.id, StreamChoice::Stream);
        let body = endpoint.format.body(&endpoint.info, ask, &mut self.kept())?;
        let request = HttpRequest {
            headers,
            idempotency_key: ask.name.clone(),
            body,
            deadlines,
            body_bytes_max: REPLY_BYTES_MAX,
            ..HttpRequest::new(HttpMethod::Post, url)
        };
        self.client.request(request).await.map_err(|source| self.on_the_way(source))
    }

    async fn failure(&self, response: HttpResponse) -> InferenceError {
        let wait = reset::wait(|name| response.header(name), self.clock.now());
        let status = response.status;
        let mut body = response.body;
        let mut read = Vec::new();
        while read.len() < FAILURE_BYTES_MAX {
            match body.chunk().await {
                Ok(Some(chunk)) => read.extend_from_slice(&chunk),
                Ok(None) => break,
                // The status tells more than how its explanation got lost.
                Err(_) => break,
            }
        }
        read.truncate(FAILURE_BYTES_MAX);
        let said = self.said(failure::message(&read));
        let wait = wait.or(said.wait);
        match (failure::of_status(self.asked(), status, said), wait) {
            (
                InferenceError::Status { endpoint, status: status @ (429 | 503 | 529), text },
                Some(wait),
            ) => InferenceError::Busy { endpoint, status, text, wait },
            (InferenceError::NoModel { endpoint, model, text, remedy, .. }, _) => {
                let listed = match self.endpoint.remedies.behind_cloud {
                    // The cloud has told what the server behind it has.
                    true => Vec::new(),
                    false => {
                        let auth = &self.endpoint.auth;
                        probe::nearest(&self.client, &self.url, auth, &model).await
                    }
                };
                self.with_remedy(InferenceError::NoModel { endpoint, model, text, listed, remedy })
            }
            (error, _) => self.with_remedy(error),
        }
    }

    /// The same error with what its creator can do about it.
    fn with_remedy(&self, mut error: InferenceError) -> InferenceError {
        let Remedies { key, behind_cloud, model, window } = &self.endpoint.remedies;
        match &mut error {
            // The cloud's own word on its own key has nothing to do with the model's server.
            InferenceError::Unauthorised { status: 401 | 403, .. } if *behind_cloud => {}
            InferenceError::Unauthorised { remedy, .. } => remedy.clone_from(key),
            InferenceError::NoModel { remedy, .. } | InferenceError::NoTools { remedy, .. } => {
                remedy.clone_from(model);
            }
            InferenceError::TooLong { remedy, .. } => remedy.clone_from(window),
            _ => {}
        }
        error
    }

    fn asked(&self) -> RequestTarget<'_> {
        RequestTarget { endpoint: &self.name, model: &self.endpoint.info.id }
    }

    fn reply(
        &self,
        ask: &CompletionRequest,
        assembled: AssembledReply,
        times: ReplyTiming,
    ) -> Result<Completion, InferenceError> {
        let info = &self.endpoint.info;
        let ours = || assembled.estimate(ask);
        let (tokens, counted) = match assembled.usage.filter(|usage| self.can_be(usage, ours)) {
            Some(usage) => {
                let details = usage.prompt_tokens_details.unwrap_or_default();
                let cached = details.cached_tokens;
                let cache_write = details.cache_write_tokens;
                let prompt = usage.prompt_tokens;
                let completion = usage.completion_tokens;
                let counted = match usage.estimated {
                    true => TokenCountSource::Estimated,
                    false => TokenCountSource::Reported,
                };
                let cached = cached.min(prompt);
                (TokenCounts { prompt, cached, cache_write, completion }, counted)
            }
            None => (ours(), TokenCountSource::Estimated),
        };
        let cost =
            cost::price(&info.prices, tokens).map_err(|source| InferenceError::Cost { source })?;
        let model = redact::text(&assembled.model, &[], MODEL_BYTES_MAX);
        let heard = times.first.unwrap_or(times.done).since(times.asked).as_millis();
        // The server knows when its model began, which is never after we heard of it.
        let began = assembled.usage.and_then(|usage| usage.first_token_ms).map(i64::from);
        let usage = Usage {
            model: if model.is_empty() { info.id.to_string() } else { model },
            prompt_tokens: tokens.prompt,
            cached_tokens: tokens.cached,
            completion_tokens: tokens.completion,
            cost,
            estimated: counted == TokenCountSource::Estimated,
            first_token_ms: began.map_or(heard, |began| began.min(heard)),
            total_ms: times.done.since(times.asked).as_millis(),
            unknown_end: assembled.unknown_end.as_deref().map(|word| self.clean_end(word)),
        };
        let AssembledReply { text, calls, finish, .. } = assembled;
        Ok(Completion { text, calls, finish, usage, counted })
    }

    /// Returns true if the token counts are possible: a text has at most as many tokens as bytes,
    /// a token has at least a quarter of a character, and an answer fits into the window. A cloud
    /// has checked that already, and charges its counts.
    fn can_be(&self, usage: &ChatUsage, ours: impl Fn() -> TokenCounts) -> bool {
        let window = self.endpoint.info.context_tokens;
        let fits = |prompt: u32| prompt <= window || prompt <= ours().prompt.saturating_mul(16);
        let possible = || usage.completion_tokens <= window && fits(usage.prompt_tokens);
        self.endpoint.remedies.behind_cloud || possible()
    }

    /// Cleans a server's error for display.
    fn said(&self, said: ProviderErrorBody) -> ProviderErrorBody {
        ProviderErrorBody { text: self.clean(&said.text), ..said }
    }

    /// A server's words, fit to be shown.
    fn clean(&self, text: &str) -> String {
        let keys: Vec<&Secret> = self.endpoint.auth.key().into_iter().collect();
        redact::text(text, &keys, failure::TEXT_BYTES_MAX)
    }

    /// A server's word for the end of an answer, fit to be shown.
    fn clean_end(&self, word: &str) -> String {
        let keys: Vec<&Secret> = self.endpoint.auth.key().into_iter().collect();
        redact::text(word, &keys, END_BYTES_MAX)
    }

    fn on_the_way(&self, source: NetError) -> InferenceError {
        InferenceError::on_the_way(&self.name, source)
    }

    fn malformed(&self, what: impl Into<String>) -> InferenceError {
        InferenceError::Malformed { endpoint: self.name.clone(), what: what.into() }
    }

    /// Returns the error for a faulty reply. If a part of it came, it may be charged.
    fn flaw(&self, flaw: AssemblyError, begun: bool) -> InferenceError {
        match flaw {
            AssemblyError::Cut => InferenceError::Cut { endpoint: self.name.clone(), source: None },
            AssemblyError::Failed(said) if begun => {
                let ProviderErrorBody { text, .. } = self.said(said);
                InferenceError::Failed { endpoint: self.name.clone(), text }
            }
            AssemblyError::Failed(said) => {
                self.with_remedy(failure::in_reply(self.asked(), self.said(said)))
            }
            AssemblyError::NoReply(what) => self.malformed(self.clean(&what)),
        }
    }
}

impl Provider for HttpProvider {
    fn model(&self) -> &ModelInfo {
        &self.endpoint.info
    }

    fn complete<'a>(
        &'a self,
        ask: &'a CompletionRequest,
        sink: &'a dyn TokenSink,
    ) -> BoxFuture<'a, Result<Completion, InferenceError>> {
        Box::pin(self.answer(ask, sink))
    }

    fn at(&self, prices: ModelPrices) -> Option<Arc<dyn Provider>> {
        let info = ModelInfo { prices, ..self.endpoint.info.clone() };
        let endpoint = Endpoint { info, ..self.endpoint.clone() };
        // silent-ok: its URL was taken before.
        let same = Self::new(self.client.clone(), endpoint, Arc::clone(&self.clock)).ok();
        same.map(|same| Arc::new(same) as Arc<dyn Provider>)
    }
}

/// Returns the meaning of a server's refusal, by status and body, for a caller without a
/// provider. The text is as the server wrote it.
#[must_use]
pub fn refusal(endpoint: &str, model: &ModelId, status: u16, body: &[u8]) -> InferenceError {
    failure::of_status(RequestTarget { endpoint, model }, status, failure::message(body))
}

/// Times of a reply.
#[derive(Clone, Copy)]
struct ReplyTiming {
    asked: Timestamp,
    first: Option<Timestamp>,
    done: Timestamp,
}

/// A reply that is being read.
struct ReplyReader<'a> {
    provider: &'a HttpProvider,
    format: FormatReader,
    assembler: Assembler,
    /// Time of the first piece of text or of a call.
    first: Option<Timestamp>,
    /// The server's media type.
    media_type: String,
}

impl ReplyReader<'_> {
    async fn read(
        &mut self,
        mut body: ResponseBody,
        sink: &dyn TokenSink,
    ) -> Result<(), InferenceError> {
        let mut frames = ReplyFrames::default();
        loop {
            let chunk = match body.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break,
                // Also where the model had finished: whoever charges for an answer does so
                // before its end, and one without an end may be charged again or never.
                Err(source) => return Err(self.provider.on_the_way(source)),
            };
            for data in frames.push(&chunk).map_err(|error| self.unframed(error))? {
                if self.take(&data, sink)? == StreamState::End {
                    return Ok(());
                }
            }
        }
        for data in frames.finish().map_err(|error| self.unframed(error))? {
            if self.take(&data, sink)? == StreamState::End {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns the error for bytes that are no reply, or end too early.
    fn unframed(&self, error: FrameError) -> InferenceError {
        match error {
            FrameError::Cut => self.provider.flaw(AssemblyError::Cut, true),
            FrameError::NotAStream => {
                let what = format!("{error} (media type {})", self.media_type);
                self.provider.malformed(self.provider.clean(&what))
            }
            _ => self.provider.malformed(error.to_string()),
        }
    }

    fn take(&mut self, data: &str, sink: &dyn TokenSink) -> Result<StreamState, InferenceError> {
        let begun = self.assembler.has_output();
        let piece = self.format.piece(data).map_err(|flaw| self.provider.flaw(flaw, begun))?;
        let added = self.assembler.add_piece(piece, sink);
        let is_last = added.map_err(|flaw| self.provider.flaw(flaw, true))?;
        if self.first.is_none() && self.assembler.has_output() {
            self.first = Some(self.provider.clock.now());
        }
        Ok(if is_last { StreamState::End } else { StreamState::More })
    }
}

/// State of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamState {
    More,
    End,
}
