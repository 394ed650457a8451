//! The one owner of background tasks.
//!
//! Each has a name, none outlives the life, and one that ends by itself ends
//! the process with its name: a heart that stopped must never go unnoticed.

use std::future::Future;

use tokio::sync::watch;
use tokio::task::JoinSet;

/// The background tasks of one automaton.
#[derive(Debug, Default)]
pub(crate) struct BackgroundTasks(JoinSet<&'static str>);

impl BackgroundTasks {
    /// Starts a task that should never end.
    pub(crate) fn start(
        &mut self,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        self.0.spawn(async move {
            task.await;
            name
        });
    }

    /// The name of the first task that ended. Pends while all live.
    pub(crate) async fn ended(&mut self) -> &'static str {
        match self.0.join_next().await {
            Some(Ok(name)) => name,
            Some(Err(_panicked)) => "background task",
            None => std::future::pending().await,
        }
    }

    /// Ends all tasks and waits until they are gone.
    pub(crate) async fn end(mut self) {
        self.0.shutdown().await;
    }
}

/// Returns when the process should end. One whose supervisor is gone should
/// end as well. Cancel-safe: a watch keeps its value.
pub(crate) async fn shutdown_requested(shutdown: &watch::Receiver<bool>) {
    match shutdown.clone().wait_for(|end| *end).await {
        Ok(_) | Err(_) => {}
    }
}
