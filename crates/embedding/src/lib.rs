//! What texts mean, by a table of words or by a small encoder of the BERT or MPNet family on the
//! CPU, and which of many means most nearly the same.
//!
//! A crate of its own, since it is arithmetic that has to be optimised. It reads what it is given
//! to read, opens nothing, and must never guess at a file that does not fit.

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

/// Files are of no model that is understood.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddingModelError {
    /// What it says of itself does not fit.
    #[error("its configuration does not fit: {why}")]
    Config {
        /// What.
        why: String,
    },
    /// Its vocabulary lacks a piece that every text needs.
    #[error("its vocabulary has no {piece}")]
    Vocabulary {
        /// Which.
        piece: &'static str,
    },
    /// Its weights do not fit.
    #[error("its weights cannot be used: {why}")]
    Weights {
        /// What does not fit.
        why: String,
    },
}
