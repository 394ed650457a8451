//! Source of an automaton's vectors, by its configuration.
//!
//! Nothing is read or asked before the first text comes; a model that is none is told then. A
//! server that may charge is refused, unless it is the cloud of one that lives: what is spent must
//! be booked.

use std::future::ready;
use std::path::Path;
use std::sync::Arc;

use automaton_agent::PaidEmbedder;
use automaton_agent::treasury::PaymentContext;
use automaton_core::error::ErrorClass;
use automaton_core::id::IdGenerator;
use automaton_core::model::ModelId;
use automaton_inference::providers::http::ApiAuth;
use automaton_inference::{
    BoxFuture, BuiltInEmbedder, Embedder, EmbeddingError, EmbeddingServer, Embeddings,
    LocalEmbedder, ServedEmbedder, catalogue,
};
use automaton_store::Store;

use super::money::CloudAccess;
use super::provider::is_here;
use crate::config::file::EmbeddingsFile;
use crate::config::resolve::ResolvedConfig;
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
        EmbeddingsFile::Local { folder, sha256 } => {
            let agreed = sha256.as_ref().map(|digits| digits.as_str().to_owned());
            Arc::new(LocalEmbedder::new(home.join(folder), agreed))
        }
        EmbeddingsFile::Server { url, model } => Arc::new(served(url.as_str(), model)?),
        EmbeddingsFile::Cloud { model } => Arc::new(UnpaidEmbedder(ModelId::from(model.as_str()))),
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
    let client = http::client([base])?;
    let model = ModelId::from(model);
    Ok(ServedEmbedder::new(EmbeddingServer::new(client, url, model, ApiAuth::None)))
}

/// The model of a cloud, for a command that reads: it knows the name of its vectors, and buys none.
struct UnpaidEmbedder(ModelId);

impl Embedder for UnpaidEmbedder {
    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Embeddings, EmbeddingError>> {
        let why = "only an automaton that runs does, not a command".to_owned();
        let bought = if texts.is_empty() { Ok(()) } else { Err(EmbeddingError::Unbooked { why }) };
        Box::pin(ready(bought.map(|()| Embeddings::none_of(&self.0))))
    }
}

/// Returns the embedder of a running automaton; with such a configuration one of the models that
/// its cloud sells.
///
/// # Errors
/// As [`embedder`], and when it lives from no cloud, or from one that sells no such model.
pub(crate) fn of_life(
    resolved: &ResolvedConfig,
    cloud: Option<&CloudAccess>,
    books: (Store, IdGenerator),
) -> Result<Option<Arc<dyn Embedder>>, CliError> {
    let Some(model) = resolved.bought_embeddings() else {
        return embedder(&resolved.home, resolved.embeddings.as_ref());
    };
    let wrong = |what: String, remedy| CliError::new(ErrorClass::Config, what).hint(remedy);
    let (cloud, models) = cloud.ok_or_else(|| {
        let what = "it lives from no cloud that could sell embeddings".to_owned();
        wrong(what, "write another embeddings.kind, or let it live from a cloud")
    })?;
    let PaymentContext { cloud, origin, key, net, .. } = cloud;
    let row = models.iter().find(|row| row.id == model).ok_or_else(|| {
        let what = format!("the cloud {origin} offers no model '{model}'");
        wrong(what, "name one that it sells with embeddings.model")
    })?;
    let auth = key.clone().map_or(ApiAuth::None, ApiAuth::Raw);
    let server = EmbeddingServer::new(net.clone(), cloud.url(&["v1", "embeddings"])?, model, auth);
    let prices = catalogue::served(row).prices;
    let ceilings = resolved.ceilings();
    Ok(Some(Arc::new(PaidEmbedder::new(server, prices, origin.clone(), ceilings, books))))
}
