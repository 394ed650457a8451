//! The tasks of one cloud: they end when it is dropped, and not before.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinSet;

/// An owner of tasks. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct TaskSet(Arc<Mutex<JoinSet<()>>>);

impl TaskSet {
    /// Starts a task. Those that have ended are swept out.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        // A std mutex, since nothing is awaited while it is held.
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Ends them all, and waits until they have ended.
    pub(crate) async fn end(&self) {
        let mut tasks = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        tasks.shutdown().await;
    }

    /// Ends them all.
    pub(crate) fn abort(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }
}
