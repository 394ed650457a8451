//! An embedding model of a server, in `OpenAI`'s format (`POST /v1/embeddings`), which Ollama,
//! llama.cpp and our own cloud speak, too.
//!
//! Nothing is booked here. [`ServedEmbedder`] is for servers of this machine, which cost nothing;
//! one that charges must never be asked but by who books what [`EmbeddingServer::ask`] costs.

use std::time::Duration;

use automaton_core::embedding::{DIMENSIONS_MAX, EmbeddingVector};
use automaton_core::model::ModelId;
use automaton_core::wire::chat::ChatUsage;
use automaton_embedding::quantized;
use automaton_net::{Deadlines, Header, HttpClient, HttpMethod, HttpRequest, Url, redact};
use serde::{Deserialize, Serialize};

use super::{Embedder, EmbeddingError, Embeddings};
use crate::error::InferenceError;
use crate::lenient::strip_byte_order_mark;
use crate::provider::BoxFuture;
use crate::providers::http::{ApiAuth, refusal};

/// Deadlines for the vectors of some texts. The model may have to be loaded first.
const DEADLINES: Deadlines =
    Deadlines { idle: Duration::from_secs(60), total: Duration::from_secs(60) };

/// The longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// Bytes of an error that are shown.
const ERROR_BYTES_MAX: usize = 2_000;

/// Characters of a text that are sent: what the smallest windows of such models have.
const CHARS_MAX: usize = 2_000;

#[derive(Serialize)]
struct EmbeddingAsk<'a> {
    model: &'a str,
    input: Vec<String>,
}

#[derive(Deserialize)]
struct EmbeddingAnswer {
    data: Vec<EmbeddingRow>,
    usage: Option<ChatUsage>,
}

#[derive(Deserialize)]
struct EmbeddingRow {
    index: usize,
    embedding: Vec<f32>,
}

/// A model of a server, which may charge for it.
#[derive(Debug, Clone)]
pub struct EmbeddingServer {
    client: HttpClient,
    url: Url,
    model: ModelId,
    auth: ApiAuth,
}

impl EmbeddingServer {
    /// The model of a server that is asked at this very URL.
    #[must_use]
    pub const fn new(client: HttpClient, url: Url, model: ModelId, auth: ApiAuth) -> Self {
        Self { client, url, model, auth }
    }

    /// The model.
    #[must_use]
    pub const fn model(&self) -> &ModelId {
        &self.model
    }

    /// Returns the request body for the vectors of these texts, cut to small windows.
    ///
    /// # Errors
    /// When they cannot be written down.
    pub fn body(&self, texts: &[String]) -> Result<Vec<u8>, EmbeddingError> {
        let input = texts.iter().map(|text| text.chars().take(CHARS_MAX).collect()).collect();
        let ask = EmbeddingAsk { model: self.model.as_str(), input };
        serde_json::to_vec(&ask).map_err(|error| self.bad(error.to_string()))
    }

    /// The vectors of so many texts, and how many tokens the server counted. One that keeps its
    /// answers gives the same again for the same name.
    ///
    /// # Errors
    /// When the server does not answer, or with no vectors.
    pub async fn ask(
        &self,
        body: Vec<u8>,
        texts: usize,
        name: Option<String>,
    ) -> Result<(Embeddings, Option<u32>), EmbeddingError> {
        let mut headers = self.auth.headers();
        headers.push(Header::Open("content-type", "application/json".to_owned()));
        let mut request = HttpRequest::new(HttpMethod::Post, self.url.clone());
        (request.headers, request.body, request.idempotency_key) = (headers, body, name);
        (request.deadlines, request.body_bytes_max) = (DEADLINES, ANSWER_BYTES_MAX);
        let at = redact::url(&self.url);
        let heard = async { self.client.request(request).await?.read().await };
        let answer = heard.await.map_err(|source| InferenceError::on_the_way(&at, source))?;
        if answer.status != 200 {
            let keys: Vec<_> = self.auth.key().into_iter().collect();
            let text = String::from_utf8_lossy(&answer.body);
            let text = redact::text(&text, &keys, ERROR_BYTES_MAX);
            return Err(refusal(&at, &self.model, answer.status, text.as_bytes()).into());
        }
        let answer: EmbeddingAnswer = serde_json::from_slice(strip_byte_order_mark(&answer.body))
            .map_err(|error| self.bad(error.to_string()))?;
        let vectors = self.vectors(answer.data, texts)?;
        let tokens = answer.usage.map(|usage| usage.prompt_tokens);
        Ok((Embeddings { vectors, ..Embeddings::none_of(&self.model) }, tokens))
    }

    /// The vectors in the order of their texts.
    fn vectors(
        &self,
        mut rows: Vec<EmbeddingRow>,
        texts: usize,
    ) -> Result<Vec<EmbeddingVector>, EmbeddingError> {
        rows.sort_by_key(|row| row.index);
        if !rows.iter().map(|row| row.index).eq(0..texts) {
            return Err(self.bad(format!("{} vectors for {texts} texts", rows.len())));
        }
        let fits = |row: &EmbeddingRow| {
            (1..=DIMENSIONS_MAX).contains(&row.embedding.len())
                && row.embedding.iter().all(|number| number.is_finite())
        };
        if !rows.iter().all(fits) {
            return Err(self.bad("a vector that is none".to_owned()));
        }
        Ok(rows.iter().map(|row| quantized(&row.embedding)).collect())
    }

    fn bad(&self, why: String) -> EmbeddingError {
        EmbeddingError::Answer { url: redact::url(&self.url), why }
    }
}

/// A model of a server that costs nothing.
#[derive(Debug, Clone)]
pub struct ServedEmbedder(EmbeddingServer);

impl ServedEmbedder {
    /// The model of such a server.
    #[must_use]
    pub const fn new(server: EmbeddingServer) -> Self {
        Self(server)
    }
}

impl Embedder for ServedEmbedder {
    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Embeddings, EmbeddingError>> {
        Box::pin(async move {
            let Self(server) = self;
            if texts.is_empty() {
                return Ok(Embeddings::none_of(&server.model));
            }
            Ok(server.ask(server.body(&texts)?, texts.len(), None).await?.0)
        })
    }
}
