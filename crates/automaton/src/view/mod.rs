//! Views: the values that commands print with `--json`, each with a JSON Schema.
//!
//! A command and a console build the same view of the same row. A name that was printed once
//! must never change or go: scripts read it. A plainer name is added beside it.

pub(crate) mod alerts;
pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod heartbeat;
pub(crate) mod limits;
pub(crate) mod memory;
pub(crate) mod messages;
pub(crate) mod models;
pub(crate) mod policy;
mod registry;
pub(crate) mod schema;
pub(crate) mod send;
pub(crate) mod status;
pub(crate) mod turns;
pub(crate) mod wallet;

use schemars::{Schema, SchemaGenerator, json_schema};

pub(crate) use registry::{OutputForm, OutputView, VIEWS, find};

/// Defines schemas for enumerations of other crates, by the names of their values.
macro_rules! names {
    ($($(#[$doc:meta])* $function:ident = $type:ty;)+) => {$(
        $(#[$doc])*
        pub(crate) fn $function(_: &mut SchemaGenerator) -> Schema {
            let names = <$type>::ALL.map(<$type>::name);
            json_schema!({ "type": "string", "enum": names })
        }
    )+};
}

names! {
    /// Returns the schema of the state of a question.
    approval_state = automaton_store::ApprovalState;
    /// Returns the schema of the subject of a booking.
    ledger_category = automaton_store::LedgerCategory;
    /// Returns the schema of the owner of an entry of the schedule.
    task_origin = automaton_store::TaskOrigin;
    /// Returns the schema of the result of a run.
    task_result = automaton_store::TaskResult;
}

/// Returns the schema of the result of a run, or of `null`.
pub(crate) fn optional_task_result(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [task_result(generator), { "type": "null" }] })
}

/// Returns the schema of any object.
pub(crate) fn json_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}
