//! What makes vectors of what an automaton remembers, as its configuration says.
//!
//! Nothing is read before the first text comes; a model that is none is told then.

use std::path::Path;
use std::sync::Arc;

use automaton_inference::{Embedder, LocalEmbedder};

use crate::config::file::{EmbeddingsFile, LocalEmbeddings};

/// The embedder of a home, where there is to be one.
pub(crate) fn embedder(
    home: &Path,
    embeddings: Option<&EmbeddingsFile>,
) -> Option<Arc<dyn Embedder>> {
    let EmbeddingsFile::Local(LocalEmbeddings { folder, sha256 }) = embeddings?;
    let mut agreed = [0; 32];
    let agreed = sha256.as_ref().map(|digits| {
        // They were checked when the file was read.
        hex::decode_to_slice(digits.as_str(), &mut agreed).map(|()| agreed).unwrap_or_default()
    });
    Some(Arc::new(LocalEmbedder::new(home.join(folder), agreed)))
}
