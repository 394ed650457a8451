//! Text embeddings, by a table of words or by a small encoder of the BERT or MPNet family on the
//! CPU, and the search for the most similar text.
//!
//! It is a separate crate because its arithmetic has to be optimised. It reads from the given
//! readers, opens nothing, and must never guess at a file that does not fit.

mod centroid;
mod config;
mod encoder;
mod index;
mod relative;
mod safetensors;
mod word_vectors;
mod wordpiece;

pub use centroid::{CentredQuery, Centroid};
pub use config::EncoderConfig;
pub use encoder::{Pooling, SentenceEncoder, quantized};
pub use index::VectorIndex;
pub use word_vectors::{WORD_VECTORS, WordVectors};
pub use wordpiece::WordPieces;

/// The files are not a supported model.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddingModelError {
    /// The configuration does not fit.
    #[error("its configuration does not fit: {why}")]
    Config {
        /// The defect.
        why: String,
    },
    /// The vocabulary lacks a piece that every text needs.
    #[error("its vocabulary has no {piece}")]
    Vocabulary {
        /// The missing piece.
        piece: &'static str,
    },
    /// The weights cannot be used.
    #[error("its weights cannot be used: {why}")]
    Weights {
        /// The defect.
        why: String,
    },
}
