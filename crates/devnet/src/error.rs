//! Errors of the dev chain, each with its remedy.
//!
//! An error names its file or address. `Display` never repeats its source.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use automaton_core::error::{Classified, ErrorClass};

use crate::chain::ChainRefusal;

/// The dev chain cannot start, or failed to perform a request.
#[derive(Debug, thiserror::Error, Classified)]
pub enum DevnetError {
    /// The server cannot listen.
    #[error("the dev chain cannot listen on {address}")]
    #[class(User, hint = "Choose another port; port 0 takes one that is free.")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The log cannot be opened, read or written.
    #[error("the chain's log '{path}' cannot be used")]
    #[class(Internal)]
    Log {
        /// The log.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another process uses this chain.
    #[error("the chain in '{path}' is used by another process")]
    #[class(User, hint = "End that process, or use another folder.")]
    InUse {
        /// The log.
        path: PathBuf,
    },
    /// The log was changed, or belongs to another chain.
    #[error("cannot go on from '{path}': in line {line}, {why}")]
    #[class(Internal, hint = "Restore the file from a copy, or move it away to begin a new chain.")]
    Damaged {
        /// The log.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The defect.
        why: &'static str,
    },
    /// The chain refused.
    #[error("the dev chain refused")]
    #[class(kind = match _0 {
        ChainRefusal::Broken(_) | ChainRefusal::Evm(_) => ErrorClass::Internal,
        _ => ErrorClass::User,
    })]
    Refused(#[from] ChainRefusal),
    /// A request panicked.
    #[error("the dev chain failed to answer")]
    #[class(Internal)]
    Crashed,
}
