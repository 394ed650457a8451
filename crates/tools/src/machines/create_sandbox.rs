//! `create_sandbox`: rents a machine in the cloud.
//!
//! It costs credits as long as it runs. Must never tell of a machine that the cloud did not
//! name.

use automaton_core::intent::Intent;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_core::trust::Label;
use automaton_core::wire::cloud::CreateMachineRequest;
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use super::list_sandboxes::line;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::profile::{Requirement, ToolFamily, ToolProfile, WorkClass};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

pub(crate) static TOOL: Builtin<CreateSandbox> = Builtin::new(ToolMetadata {
    name: "create_sandbox",
    description: "Rent a machine in the cloud; from $5 a month while it runs.",
    category: ToolCategory::Financial,
    risk: Risk::Dangerous,
    effect: Effect::Mutates,
    profile: ToolProfile {
        requires: Requirement::Money,
        in_critical_tier: false,
        class: WorkClass::Productive,
        ..ToolProfile::new(ToolFamily::Machines)
    },
});

/// Default name of a machine.
const NAME_DEFAULT: &str = "sandbox";

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateSandbox {
    /// Its name, default `sandbox`.
    #[schemars(length(min = 1, max = 64))]
    name: Option<String>,
    /// Processors, default 1.
    #[schemars(range(min = 1, max = 4))]
    vcpu: Option<u32>,
    /// MiB, default 512.
    #[schemars(range(min = 128, max = 8192))]
    memory_mb: Option<u32>,
    /// GiB, default 5.
    #[schemars(range(min = 1, max = 80))]
    disk_gb: Option<u32>,
}

impl CreateSandbox {
    fn wanted(&self) -> CreateMachineRequest {
        let usual = CreateMachineRequest::default();
        CreateMachineRequest {
            name: self.name.clone().unwrap_or_else(|| NAME_DEFAULT.to_owned()),
            vcpu: self.vcpu.unwrap_or(usual.vcpu),
            memory_mb: self.memory_mb.unwrap_or(usual.memory_mb),
            disk_gb: self.disk_gb.unwrap_or(usual.disk_gb),
            region: None,
        }
    }
}

impl BuiltinCall for CreateSandbox {
    fn intents(&self) -> Vec<Intent> {
        let CreateMachineRequest { memory_mb, disk_gb, .. } = self.wanted();
        vec![Intent::Rent { memory_mb, disk_gb }]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let rented = context.machines.rent(self.wanted(), context.call).await;
        let rented = rented.map_err(ToolError::Machine)?;
        let told = format!("Sandbox created: {}", line(&rented));
        Ok(ToolOutput::labelled(Label::Tool, "create_sandbox", &told))
    }
}
