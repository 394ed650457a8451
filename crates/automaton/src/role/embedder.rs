//! What makes vectors of what an automaton remembers, as its configuration says.
//!
//! Nothing is read or asked before the first text comes; a model that is none is told then. A
//! server that may charge is refused: what is spent is booked, and this is not.

use std::path::Path;
use std::sync::Arc;

use automaton_core::error::ErrorClass;
use automaton_core::model::ModelId;
use automaton_inference::{BuiltInEmbedder, Embedder, LocalEmbedder, ServedEmbedder};

use super::provider::is_here;
use crate::config::file::{EmbeddingsFile, LocalEmbeddings, ServedEmbeddings};
use crate::error::CliError;
use crate::http;

/// The embedder of a home, where there is to be one: the built-in one where nothing is said.
///
/// # Errors
/// When the server is not of this machine.
pub(crate) fn embedder(
    home: &Path,
    embeddings: Option<&EmbeddingsFile>,
) -> Result<Option<Arc<dyn Embedder>>, CliError> {
    Ok(Some(match embeddings.unwrap_or(&EmbeddingsFile::BuiltIn {}) {
        EmbeddingsFile::BuiltIn {} => Arc::new(BuiltInEmbedder),
        EmbeddingsFile::Off {} => return Ok(None),
        EmbeddingsFile::Local(LocalEmbeddings { folder, sha256 }) => {
            let mut agreed = [0; 32];
            let agreed = sha256.as_ref().map(|digits| {
                // They were checked when the file was read.
                hex::decode_to_slice(digits.as_str(), &mut agreed).map(|()| agreed)
            });
            Arc::new(LocalEmbedder::new(home.join(folder), agreed.map(Result::unwrap_or_default)))
        }
        EmbeddingsFile::Server(ServedEmbeddings { url, model }) => {
            Arc::new(served(url.as_str(), model)?)
        }
    }))
}

fn served(base: &str, model: &str) -> Result<ServedEmbedder, CliError> {
    if !is_here(base) {
        let what = format!("{base} is not on this machine, and what it may charge is not booked");
        return Err(CliError::new(ErrorClass::Config, what)
            .hint("name a server of this machine with embeddings.url, or a model's folder"));
    }
    let mut url = http::url(base)?;
    let path = url.path().trim_end_matches('/');
    let path = path.trim_end_matches("/embeddings").trim_end_matches("/v1").to_owned();
    url.set_path(&format!("{path}/v1/embeddings"));
    Ok(ServedEmbedder::new(http::client([base])?, url, ModelId::from(model)))
}
