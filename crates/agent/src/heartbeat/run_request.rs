//! A task that the creator wants to run now.
//!
//! Where somebody lives the life it runs at once, else first of all at the next start. It
//! must never be another task than the one that is named.

use automaton_core::error::Classified;
use automaton_core::text::visible;
use automaton_store::{Store, StoreError};

/// Reason for which a task does not run now.
#[derive(Debug, thiserror::Error, Classified)]
pub enum TaskRequestError {
    /// The schedule has no such entry.
    #[error("there is no entry '{}' in the schedule, which has {known}", visible(name))]
    #[class(User, hint = "`automaton heartbeat` lists them")]
    Unknown {
        /// Requested name.
        name: String,
        /// Known names.
        known: String,
    },
    /// The entry is off.
    #[error("'{0}' is off")]
    #[class(User, hint = "turn it on in heartbeat.yml, or name another one")]
    Off(String),
    /// It runs, or ran when its process died.
    #[error("a run of '{0}' is not over")]
    #[class(User, hint = "`automaton heartbeat {_0}` shows how it went, when it is")]
    NotOver(String),
    /// The schedule could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes a task of the schedule due now.
///
/// # Errors
/// [`TaskRequestError`]; then nothing changes.
pub async fn request_task(store: &Store, name: &str) -> Result<(), TaskRequestError> {
    let rows = store.schedule().await?;
    let Some(row) = rows.iter().find(|row| row.task.name == name) else {
        let known: Vec<&str> = rows.iter().map(|row| row.task.name.as_str()).collect();
        let known = known.join(", ");
        return Err(TaskRequestError::Unknown { name: name.to_owned(), known });
    };
    if !row.task.enabled {
        return Err(TaskRequestError::Off(name.to_owned()));
    }
    if !store.request_task(name).await? {
        return Err(TaskRequestError::NotOver(name.to_owned()));
    }
    Ok(())
}
