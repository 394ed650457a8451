//! The table of words that goes with the program, which takes microseconds and no file.

use std::future;

use automaton_core::embedding::EmbeddingKind;
use automaton_embedding::{WORD_VECTORS, WordVectors};

use super::{Embedder, EmbeddingError, Embeddings};
use crate::provider::BoxFuture;

/// The vectors of words that the program has.
#[derive(Debug, Clone, Copy)]
pub struct BuiltInEmbedder;

impl Embedder for BuiltInEmbedder {
    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Embeddings, EmbeddingError>> {
        let words = WordVectors::built_in();
        let vectors = texts.iter().map(|text| words.encode(text)).collect();
        let model = WORD_VECTORS.to_owned();
        Box::pin(future::ready(Ok(Embeddings { model, kind: EmbeddingKind::Words, vectors })))
    }
}
