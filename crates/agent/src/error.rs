//! Errors of a life, by the failed operation.
//!
//! A failed turn is no error of this kind: the cycle copes with it. These end
//! the process, because without the store nothing may go on.

use std::path::PathBuf;

use automaton_core::error::Classified;
use automaton_net::NetError;
use automaton_policy::guard::PhraseListError;
use automaton_store::StoreError;

use crate::heartbeat::HeartbeatError;
use crate::toolbox::ToolboxError;

/// The life cannot go on.
#[derive(Debug, thiserror::Error, Classified)]
pub enum AgentError {
    /// A table could not be read or written.
    #[error(transparent)]
    #[class(kind = _0.kind(), hint = _0.hint())]
    Store(Box<StoreError>),
    /// The schedule of the heartbeat cannot be used.
    #[error(transparent)]
    #[class(kind = _0.kind(), hint = _0.hint())]
    Heartbeat(Box<HeartbeatError>),
    /// The tools cannot be used.
    #[error("cannot prepare the tools")]
    Tools(#[from] ToolboxError),
    /// The proxy of the sandbox cannot be made.
    #[error("cannot set up the proxy of the sandbox")]
    Proxy(#[source] NetError),
    /// The guard cannot be made ready.
    #[error(transparent)]
    Guard(#[from] PhraseListError),
    /// The control socket cannot be opened.
    #[error("cannot open the control socket {path}")]
    #[class(Internal, hint = "check that the home directory is writable and its path is short")]
    Control {
        /// Path.
        path: PathBuf,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// The workspace cannot be opened.
    #[error("cannot open the workspace {path}")]
    Workspace {
        /// Path.
        path: PathBuf,
        /// Cause.
        #[source]
        source: automaton_sandbox::fs::FsError,
    },
    /// A task that must not end has ended.
    #[error("the {0} ended unexpectedly")]
    #[class(Internal)]
    TaskEnded(&'static str),
}

impl From<StoreError> for AgentError {
    fn from(error: StoreError) -> Self {
        Self::Store(Box::new(error))
    }
}
