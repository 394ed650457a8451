//! Vectors of texts, for a memory that finds items without a common word.
//!
//! An [`Embedder`] makes them: a table that goes with the program, a small model on this machine,
//! or a server. Vectors go with the name of their model. Who asks must be able to do without an
//! answer, and nothing here may decide what is similar enough.

mod built_in;
mod error;
mod local;
mod server;

use automaton_core::embedding::{Embedding, EmbeddingKind, EmbeddingVector};
use automaton_core::model::ModelId;
use automaton_core::wire::cloud::ModelRow;

pub use built_in::BuiltInEmbedder;
pub use error::EmbeddingError;
pub use local::LocalEmbedder;
pub use server::{EmbeddingServer, ServedEmbedder};

use crate::provider::BoxFuture;

/// Makes vectors of texts.
pub trait Embedder: Send + Sync {
    /// The vectors of these texts, in their order.
    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Embeddings, EmbeddingError>>;

    /// Has the prices hold for which a cloud sells models from now on, where it is asked.
    fn reprice(&self, _sold: &[ModelRow]) {}
}

/// The vectors of some texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Embeddings {
    /// Which model made them; two of one name give the same vectors.
    pub model: String,
    /// Source of the vectors.
    pub kind: EmbeddingKind,
    /// One for each text.
    pub vectors: Vec<EmbeddingVector>,
}

impl Embeddings {
    /// Those of a server's model, of no text.
    #[must_use]
    pub fn none_of(model: &ModelId) -> Self {
        let model = format!("{model} of a server");
        let vectors = Vec::new();
        Self { model, kind: EmbeddingKind::Text, vectors }
    }

    /// The first of them, where it points anywhere.
    #[must_use]
    pub fn into_first(self) -> Option<Embedding> {
        let Self { model, kind, vectors } = self;
        let vector = vectors.into_iter().next().filter(EmbeddingVector::has_direction)?;
        Some(Embedding { model, kind, vector })
    }
}
