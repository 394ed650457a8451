//! `list_sandboxes`: the machines that are rented, a line each.
//!
//! What the cloud says of them is never taken for more than words.

use std::fmt::Write as _;

use automaton_core::intent::Intent;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_core::trust::Label;
use automaton_core::wire::cloud::MachineReply;
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::profile::{Requirement, ToolFamily, ToolProfile};
use crate::result::add_line;
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

pub(crate) static TOOL: Builtin<ListSandboxes> = Builtin::new(ToolMetadata {
    name: "list_sandboxes",
    description: "List the machines that you rent.",
    category: ToolCategory::Financial,
    risk: Risk::Safe,
    effect: Effect::Observes,
    profile: ToolProfile { requires: Requirement::Money, ..ToolProfile::new(ToolFamily::Machines) },
});

/// No arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListSandboxes {}

impl BuiltinCall for ListSandboxes {
    fn intents(&self) -> Vec<Intent> {
        vec![Intent::Observe]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let all = context.machines.all().await.map_err(ToolError::Machine)?;
        let mut text = String::new();
        for machine in &all {
            add_line(&mut text, format_args!("{}", line(machine)));
        }
        // silent-ok: writing to a String cannot fail.
        let _ = write!(text, "[{} sandboxes]", all.len());
        Ok(ToolOutput::labelled(Label::Tool, "list_sandboxes", &text))
    }
}

/// A machine on one line.
pub(super) fn line(machine: &MachineReply) -> String {
    let MachineReply { id, name, status, vcpu, memory_mb, disk_gb, region, .. } = machine;
    let name = name.escape_debug();
    let status = status.escape_debug();
    let region = region.escape_debug();
    let mut text =
        format!("{id} [{status}] {name}, {vcpu} vCPU, {memory_mb} MiB, {disk_gb} GiB, {region}");
    if let Some(cents) = machine.monthly_cents {
        let dollars = cents / 100;
        let cents = cents.rem_euclid(100);
        // silent-ok: writing to a String cannot fail.
        let _ = write!(text, ", ${dollars}.{cents:02} a month");
    }
    if let Some(reason) = &machine.reason {
        // silent-ok: as above.
        let _ = write!(text, " ({})", reason.escape_debug());
    }
    text
}
