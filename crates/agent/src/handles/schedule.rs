//! The schedule of the heartbeat, as far as the automaton may change it.

use automaton_tools::HandleError;
use automaton_tools::context::{self, HandleFuture, ScheduleChange};

use super::memory::of_store;
use crate::deps::AgentDeps;
use crate::heartbeat::{ScheduleEdit, ScheduleEditor};

/// The reins of one heart.
pub(crate) struct AgentSchedule {
    deps: AgentDeps,
    editor: ScheduleEditor,
}

impl AgentSchedule {
    pub(super) fn new(deps: &AgentDeps) -> Self {
        Self { deps: deps.clone(), editor: ScheduleEditor::new(deps) }
    }

    /// Returns the editor, which notifies the heartbeat of changes.
    pub(crate) const fn editor(&self) -> &ScheduleEditor {
        &self.editor
    }
}

impl context::ScheduleHandle for AgentSchedule {
    fn schedule(&self, change: ScheduleChange) -> HandleFuture<'_, String> {
        Box::pin(async move {
            let store = &self.deps.store;
            let rows = store.schedule().await.map_err(of_store)?;
            let row = rows.iter().find(|row| row.task.name == change.name);
            let now = self.deps.ids.now();
            let changed = self.editor.change(row, change, now);
            let told = match changed.map_err(|error| HandleError::from_error(&error))? {
                ScheduleEdit::Kept(task, times) => {
                    let how = if task.enabled { "on" } else { "off" };
                    let name = &task.name;
                    let next = times.next;
                    let told = format!("'{name}' is {how}: {}, next at {next}.", task.schedule);
                    store.schedule_one(task, times).await.map_err(of_store)?;
                    told
                }
                ScheduleEdit::Removed(name) => {
                    match store.unschedule(name.clone()).await.map_err(of_store)? {
                        true => format!("'{name}' is removed."),
                        false => {
                            format!("'{name}' runs now and is off. Remove it when it is done.")
                        }
                    }
                }
            };
            self.editor.changed.notify_one();
            Ok(told)
        })
    }
}
