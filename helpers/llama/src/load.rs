//! From a path to a model in memory, with the checks that come before it.
//!
//! The order matters: file type and size, header, memory, SHA-256, and only then the
//! C++ parser. It must never let that parser see a file which one of them refused.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::choose::GUIDE_CONTEXT_TOKENS;
use crate::gguf::{self, Flaw, Header};

/// Memory that the program takes besides model and cache, in bytes: code,
/// vocabulary, grammars, and the buffers of the computation.
const OTHER_BYTES: u64 = 128 << 20;
/// A smaller file may hold a weak model, which needs a second context for its guide.
const WEAK_BELOW_BYTES: u64 = 2 << 30;
/// Bytes that are hashed at a time.
const HASHED_BYTES: usize = 1 << 20;

/// Why a model could not be loaded. Each is a whole sentence for the operator.
#[derive(Debug, Error)]
pub enum Unloadable {
    /// The file cannot be opened.
    #[error("the model {path} could not be opened", path = .0.display())]
    Open(PathBuf, #[source] io::Error),
    /// It is a directory, a device or the like.
    #[error("the model {path} is not a regular file", path = .0.display())]
    NotAFile(PathBuf),
    /// The header is bad.
    #[error("the model {path} is no usable GGUF file", path = .0.display())]
    Header(PathBuf, #[source] Flaw),
    /// The file cannot be read.
    #[error("the model {path} could not be read", path = .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// The SHA-256 is another one.
    #[error("the model {path} has the SHA-256 {found}, and {expected} was asked for", path = .path.display())]
    Digest {
        /// The file.
        path: PathBuf,
        /// What it should be, in lower-case hex.
        expected: String,
        /// What it is.
        found: String,
    },
    /// It will not fit into memory.
    #[error(
        "the model {path} needs about {needed_mib} MiB with a context of {context_tokens} tokens, \
         and {limit_mib} MiB are allowed: use a smaller context or a smaller model",
        path = .path.display()
    )]
    Memory {
        /// The file.
        path: PathBuf,
        /// Tokens of context.
        context_tokens: u32,
        /// Estimate of what is needed, in MiB.
        needed_mib: u64,
        /// What is allowed, in MiB.
        limit_mib: u64,
    },
    /// The library refused the file.
    #[error("llama.cpp could not load the model {path}", path = .path.display())]
    Library {
        /// The file.
        path: PathBuf,
        /// What the library says.
        #[source]
        source: llama_cpp_2::LlamaModelLoadError,
    },
}

/// What a model is checked against.
#[derive(Debug, Clone)]
pub struct Terms {
    /// The SHA-256 that the file must have, in lower-case hex.
    pub sha256: Option<String>,
    /// The context that is wanted, in tokens; the model's own when there is none.
    pub context_tokens: Option<u32>,
    /// The memory that may be used, in bytes.
    pub memory_bytes: Option<u64>,
}

/// A file that passed the checks.
#[derive(Debug)]
pub struct Checked {
    path: PathBuf,
    /// What its header says.
    pub header: Header,
    /// The context to set up, in tokens.
    pub context_tokens: u32,
}

/// Context that is set up when neither the caller nor the file names one.
const CONTEXT_TOKENS_DEFAULT: u32 = 4096;
/// Smallest context that is of any use.
const CONTEXT_TOKENS_MIN: u32 = 256;

/// Checks a model's file without loading it.
///
/// # Errors
/// The first of the checks that failed, as [`Unloadable`].
pub fn check(path: &Path, terms: &Terms) -> Result<Checked, Unloadable> {
    let owned = || path.to_owned();
    let mut file = File::open(path).map_err(|error| Unloadable::Open(owned(), error))?;
    let metadata = file.metadata().map_err(|error| Unloadable::Read(owned(), error))?;
    if !metadata.is_file() {
        return Err(Unloadable::NotAFile(owned()));
    }
    let mut reader = BufReader::with_capacity(HASHED_BYTES, &mut file);
    let header = gguf::check(&mut reader, metadata.len())
        .map_err(|flaw| Unloadable::Header(owned(), flaw))?;
    let trained = header.number("context_length").and_then(|tokens| u32::try_from(tokens).ok());
    let wanted = terms.context_tokens.or(trained).unwrap_or(CONTEXT_TOKENS_DEFAULT);
    let context_tokens = wanted.min(trained.unwrap_or(u32::MAX)).max(CONTEXT_TOKENS_MIN);
    let guide = if metadata.len() < WEAK_BELOW_BYTES { GUIDE_CONTEXT_TOKENS } else { 0 };
    let cached_tokens = u64::from(context_tokens) + u64::from(guide);
    let cache = header.cache_bytes_per_token().unwrap_or(0).saturating_mul(cached_tokens);
    let needed = metadata.len().saturating_add(cache).saturating_add(OTHER_BYTES);
    if let Some(limit) = terms.memory_bytes.filter(|limit| needed > *limit) {
        let (needed_mib, limit_mib) = (needed >> 20, limit >> 20);
        return Err(Unloadable::Memory { path: owned(), context_tokens, needed_mib, limit_mib });
    }
    if let Some(expected) = &terms.sha256 {
        let found = sha256(path).map_err(|error| Unloadable::Read(owned(), error))?;
        if found != *expected {
            return Err(Unloadable::Digest { path: owned(), expected: expected.clone(), found });
        }
    }
    Ok(Checked { path: owned(), header, context_tokens })
}

/// The SHA-256 of a file in lower-case hex, read in pieces.
fn sha256(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; HASHED_BYTES];
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(hex::encode(hash.finalize()));
        }
        hash.update(&buffer[..count]);
    }
}

/// Loads a file that passed the checks.
///
/// # Errors
/// [`Unloadable::Library`].
pub fn load(backend: &LlamaBackend, checked: &Checked) -> Result<LlamaModel, Unloadable> {
    let params = LlamaModelParams::default().with_n_gpu_layers(0);
    let loaded = LlamaModel::load_from_file(backend, &checked.path, &params);
    loaded.map_err(|source| Unloadable::Library { path: checked.path.clone(), source })
}
