//! An embedding model in a folder of this machine.
//!
//! It is read when it is first needed, in some tenths of a second, and stays: 23 MB for the
//! usual one of 22 million weights. Its name is a hash of all its files, so that vectors of another
//! model, or of the same weights read otherwise, are never taken for its own. It must never run on a thread that serves others.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use automaton_core::embedding::EmbeddingKind;
use automaton_core::file_text;
use automaton_embedding::{
    EmbeddingModelError, EncoderConfig, Pooling, SentenceEncoder, WordPieces,
};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::{Embedder, EmbeddingError, Embeddings};
use crate::file_hash::sha256_of;
use crate::provider::BoxFuture;

/// The files of a model, as the library `sentence-transformers` lays them out.
const CONFIG: &str = "config.json";
const VOCABULARY: &str = "vocab.txt";
const WEIGHTS: &str = "model.safetensors";
const POOLING: &str = "1_Pooling/config.json";

/// The most bytes of a file that is read whole.
const TEXT_BYTES_MAX: u64 = 16 << 20;

/// Digits of the hash that name a model.
const NAME_DIGITS: usize = 16;

/// Version of the local method; another method counts as another model.
const METHOD: &[u8] = b"automaton-embedding 2";

/// Pooling of token vectors, as in the model's file.
#[derive(Debug, Default, Deserialize)]
struct PoolingConfig {
    #[serde(default)]
    pooling_mode_cls_token: bool,
}

/// A model that was read.
#[derive(Debug)]
struct LoadedModel {
    name: String,
    encoder: SentenceEncoder,
}

/// A model on this machine.
#[derive(Debug, Clone)]
pub struct LocalEmbedder {
    folder: PathBuf,
    sha256: Option<String>,
    loaded: Arc<Mutex<Option<Arc<LoadedModel>>>>,
}

impl LocalEmbedder {
    /// The model of a folder, whose weights have this hash where one is given, in hexadecimal
    /// digits of lower case.
    #[must_use]
    pub fn new(folder: PathBuf, sha256: Option<String>) -> Self {
        Self { folder, sha256, loaded: Arc::default() }
    }

    /// The model, read now if it was not yet.
    fn loaded(&self) -> Result<Arc<LoadedModel>, EmbeddingError> {
        // Whoever broke down while reading left nothing.
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = &*loaded {
            return Ok(Arc::clone(model));
        }
        let model = Arc::new(self.read()?);
        *loaded = Some(Arc::clone(&model));
        Ok(model)
    }

    fn read(&self) -> Result<LoadedModel, EmbeddingError> {
        let misfit = |source| EmbeddingError::Model { path: self.folder.clone(), source };
        let bad = |why: String| misfit(EmbeddingModelError::Config { why });
        let config = self.text(CONFIG)?;
        let vocabulary = self.text(VOCABULARY)?;
        let pooling = match self.text(POOLING) {
            Err(EmbeddingError::File { source, .. })
                if source.kind() == io::ErrorKind::NotFound =>
            {
                "{}".to_owned()
            }
            read => read?,
        };
        let mut name = Sha256::new();
        for part in [METHOD, config.as_bytes(), vocabulary.as_bytes(), pooling.as_bytes()] {
            name.update(part.len().to_le_bytes());
            name.update(part);
        }
        let config: EncoderConfig =
            serde_json::from_str(&config).map_err(|error| bad(format!("{CONFIG}: {error}")))?;
        let pieces = WordPieces::read(&vocabulary, &config).map_err(misfit)?;
        let pooling: PoolingConfig =
            serde_json::from_str(&pooling).map_err(|error| bad(format!("{POOLING}: {error}")))?;
        let pooling = if pooling.pooling_mode_cls_token { Pooling::First } else { Pooling::Mean };
        let path = self.folder.join(WEIGHTS);
        let unread = |source| EmbeddingError::File { path: path.clone(), source };
        let mut file = File::open(&path).map_err(unread)?;
        let hash = sha256_of(&file).map_err(unread)?;
        let found = hex::encode(hash);
        if self.sha256.as_ref().is_some_and(|agreed| *agreed != found) {
            return Err(EmbeddingError::Hash { path, found });
        }
        name.update(hash);
        file.rewind().map_err(unread)?;
        let encoder = SentenceEncoder::read(&config, pieces, pooling, BufReader::new(file))
            .map_err(misfit)?;
        let mut name = hex::encode(name.finalize());
        name.truncate(NAME_DIGITS);
        Ok(LoadedModel { name, encoder })
    }

    fn text(&self, name: &str) -> Result<String, EmbeddingError> {
        let path = self.folder.join(name);
        read_text(&path).map_err(|source| EmbeddingError::File { path, source })
    }
}

fn read_text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    let mut file = File::open(path)?.take(TEXT_BYTES_MAX + 1);
    file.read_to_end(&mut bytes)?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too large"));
    }
    file_text::decode_owned(&bytes)
        .map_err(|defect| io::Error::new(io::ErrorKind::InvalidData, defect))
}

impl Embedder for LocalEmbedder {
    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Embeddings, EmbeddingError>> {
        let embedder = self.clone();
        let work = move || {
            let model = embedder.loaded()?;
            let vectors = texts.iter().map(|text| model.encoder.encode(text)).collect();
            Ok(Embeddings { model: model.name.clone(), kind: EmbeddingKind::Text, vectors })
        };
        Box::pin(async move {
            tokio::task::spawn_blocking(work).await.unwrap_or(Err(EmbeddingError::BrokeDown))
        })
    }
}
