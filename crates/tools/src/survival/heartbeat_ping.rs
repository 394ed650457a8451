//! `heartbeat_ping`: says now, where its creator reads it, how the automaton is.
//!
//! The same record goes out as the heartbeat posts. What was not posted must never be
//! told as posted.

use automaton_core::tool::{Effect, Risk, ToolCategory};

use crate::error::ToolError;
use crate::profile::{Requirement, ToolFamily, ToolProfile};
use crate::tool::{ReadOnlyTool, ToolMetadata};

pub(crate) static TOOL: ReadOnlyTool = ReadOnlyTool::new(
    ToolMetadata {
        name: "heartbeat_ping",
        description: "Post how you are to the cloud now, where your creator sees it.",
        category: ToolCategory::Survival,
        risk: Risk::Safe,
        effect: Effect::Observes,
        profile: ToolProfile { requires: Requirement::Money, ..ToolProfile::new(ToolFamily::Life) },
    },
    |context| Box::pin(async move { context.survival.ping().await.map_err(ToolError::Ping) }),
);

#[cfg(test)]
mod tests {
    use crate::testing::{Fake, run};
    use serde_json::json;

    #[test]
    fn what_became_of_it_is_told_and_a_failure_is_one() {
        let fake = Fake { survives: Some("Posted.".to_owned()), ..Fake::default() };
        let report = run(&fake, "heartbeat_ping", &json!({})).unwrap();
        assert_eq!(report.text.text, "Posted.");
        let error = run(&Fake::default(), "heartbeat_ping", &json!({})).unwrap_err();
        assert_eq!(error.to_string(), "the cloud was not told how you are");
    }
}
