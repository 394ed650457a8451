//! `view_soul`: all of what the automaton thinks of itself.

use automaton_core::tool::{Effect, Risk, ToolCategory};

use crate::error::ToolError;
use crate::profile::{ToolAudience, ToolFamily, ToolProfile};
use crate::tool::{ReadOnlyTool, ToolMetadata};

pub(crate) static TOOL: ReadOnlyTool = ReadOnlyTool::new(
    ToolMetadata {
        name: "view_soul",
        description: "See all of your soul, with its version and how far it is from your genesis prompt.",
        category: ToolCategory::Memory,
        risk: Risk::Safe,
        effect: Effect::Observes,
        profile: ToolProfile {
            audience: ToolAudience::Roomy,
            ..ToolProfile::new(ToolFamily::Memory)
        },
    },
    |context| Box::pin(async move { context.soul.view().await.map_err(ToolError::Soul) }),
);
