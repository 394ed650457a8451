//! An embedding model of a server, in `OpenAI`'s format (`POST /v1/embeddings`), which Ollama,
//! llama.cpp and others speak, too.
//!
//! It is for servers of this machine, which cost nothing: nothing here is booked, so a server that
//! charges must never be asked this way.

use std::time::Duration;

use automaton_core::embedding::{DIMENSIONS_MAX, EmbeddingKind, EmbeddingVector};
use automaton_core::model::ModelId;
use automaton_embedding::quantized;
use automaton_net::{Deadlines, Header, HttpClient, HttpMethod, HttpRequest, Url, redact};
use serde::{Deserialize, Serialize};

use super::{Embedder, EmbeddingError, Embeddings};
use crate::provider::BoxFuture;

/// How long the vectors of some texts may take: the model may have to be loaded first.
const DEADLINES: Deadlines =
    Deadlines { idle: Duration::from_secs(60), total: Duration::from_secs(60) };

/// The longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// How much of an error is shown, in bytes.
const ERROR_BYTES_MAX: usize = 400;

/// Characters of a text that are sent: what the smallest windows of such models have.
const CHARS_MAX: usize = 2_000;

#[derive(Serialize)]
struct EmbeddingAsk<'a> {
    model: &'a str,
    input: &'a [String],
}

#[derive(Deserialize)]
struct EmbeddingAnswer {
    data: Vec<EmbeddingRow>,
}

#[derive(Deserialize)]
struct EmbeddingRow {
    index: usize,
    embedding: Vec<f32>,
}

/// A model of a server.
#[derive(Debug, Clone)]
pub struct ServedEmbedder {
    client: HttpClient,
    url: Url,
    model: ModelId,
}

impl ServedEmbedder {
    /// The model of a server that is asked at this very URL.
    #[must_use]
    pub const fn new(client: HttpClient, url: Url, model: ModelId) -> Self {
        Self { client, url, model }
    }

    async fn ask(&self, texts: Vec<String>) -> Result<Embeddings, EmbeddingError> {
        let model = format!("{} of a server", self.model);
        if texts.is_empty() {
            return Ok(Embeddings { model, kind: EmbeddingKind::Text, vectors: Vec::new() });
        }
        let texts: Vec<String> =
            texts.iter().map(|text| text.chars().take(CHARS_MAX).collect()).collect();
        let ask = EmbeddingAsk { model: self.model.as_str(), input: &texts };
        let mut request = HttpRequest::new(HttpMethod::Post, self.url.clone());
        request.body = serde_json::to_vec(&ask).map_err(|error| self.bad(error.to_string()))?;
        request.headers.push(Header::Open("content-type", "application/json".to_owned()));
        (request.deadlines, request.body_bytes_max) = (DEADLINES, ANSWER_BYTES_MAX);
        let answer = self.client.request(request).await?.read().await?;
        if answer.status != 200 {
            let text = String::from_utf8_lossy(&answer.body);
            let text = redact::text(&text, &[], ERROR_BYTES_MAX);
            return Err(self.bad(format!("status {}: {text}", answer.status)));
        }
        let answer: EmbeddingAnswer =
            serde_json::from_slice(&answer.body).map_err(|error| self.bad(error.to_string()))?;
        let vectors = self.vectors(answer.data, texts.len())?;
        Ok(Embeddings { model, kind: EmbeddingKind::Text, vectors })
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

impl Embedder for ServedEmbedder {
    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Embeddings, EmbeddingError>> {
        Box::pin(self.ask(texts))
    }
}
