//! Tasks for a model, each with a solver that knows only the text of a request.
//!
//! A solver fails exactly where a good model would: when something that it was told or has
//! read is not there any more. What a task has come to is judged by the workspace and by
//! the messages to the creator, never by what the solver believes. The life is the real one
//! with its store, sandbox and limits, over HTTP, in a home that is made for it and goes
//! away; nothing here may ever touch another.

mod life;
mod serve;
mod solver;
mod tasks;
mod view;

pub use life::{
    CommandHost, USUAL_MODEL, WorkConditions, WorkError, WorkMeasurement, WorkMemory, measure,
    named_limits,
};
pub use serve::{Responder, ServerStats, WorkServer};
pub use solver::{SolverCall, SolverReply};
pub use tasks::{WorkTask, all};
