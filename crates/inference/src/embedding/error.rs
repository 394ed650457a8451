//! Reasons for which there are no vectors.

use std::io;
use std::path::PathBuf;

use automaton_core::error::Classified;
use automaton_embedding::EmbeddingModelError;

use crate::error::InferenceError;

const FOLDER: &str = "it is a folder with config.json, vocab.txt and model.safetensors of a \
                      small BERT model, such as all-MiniLM-L6-v2";

/// No vectors were made.
#[derive(Debug, thiserror::Error, Classified)]
pub enum EmbeddingError {
    /// A file of the model cannot be read.
    #[error("the embedding model cannot be read: {}", path.display())]
    #[class(Config, hint = FOLDER.to_owned())]
    File {
        /// Which one.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The files are of no model that runs here.
    #[error("{} has no embedding model that runs here", path.display())]
    #[class(Config, hint = FOLDER.to_owned())]
    Model {
        /// The folder.
        path: PathBuf,
        /// Mismatch.
        source: EmbeddingModelError,
    },
    /// The weights are not those that were agreed.
    #[error("{} is not the file that was agreed: its SHA-256 is {found}", path.display())]
    #[class(Config, hint = "do not use it, or change embeddings.sha256")]
    Hash {
        /// The file.
        path: PathBuf,
        /// Actual hash, in hexadecimal digits.
        found: String,
    },
    /// The server did not answer, or refused.
    #[error("the server of the embedding model gave no vectors")]
    Asked {
        /// Cause.
        #[from]
        source: InferenceError,
    },
    /// The server's answer is of no use.
    #[error("{url} gave no vectors: {why}")]
    #[class(Upstream, hint = "see that it has the model of embeddings.model")]
    Answer {
        /// The server.
        url: String,
        /// Description of the fault.
        why: String,
    },
    /// The cost could not be booked, so the server was not asked.
    #[error("vectors are not bought: {why}")]
    #[class(Denied)]
    Unbooked {
        /// Cause.
        why: String,
    },
    /// The work broke down.
    #[error("making vectors broke down")]
    #[class(Internal)]
    BrokeDown,
}

impl EmbeddingError {
    /// Returns true if nothing is charged.
    #[must_use]
    pub fn costs_nothing(&self) -> bool {
        match self {
            Self::Asked { source } => source.costs_nothing(),
            Self::Answer { .. } => false,
            _ => true,
        }
    }

    /// Returns true if a single text may be at fault, so that the others may get vectors.
    #[must_use]
    pub const fn is_of_text(&self) -> bool {
        use InferenceError::{ContentRefused, Status, TooLong};
        match self {
            Self::Asked { source: Status { .. } | TooLong { .. } | ContentRefused { .. } } => true,
            _ => matches!(self, Self::Answer { .. } | Self::BrokeDown),
        }
    }
}
