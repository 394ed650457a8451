//! `sleep`: ends the wake and rests.
//!
//! The tool changes nothing by itself: it tells the turn that it was the last,
//! and the agent stores the sleep together with the end of the wake. A span out
//! of range is refused, never shortened.

use automaton_core::intent::Intent;
use automaton_core::record::SleepRequest;
use automaton_core::time::Span;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::profile::{FamilyMembership, ToolFamily, ToolProfile};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput, TurnContinuation};

pub(crate) static TOOL: Builtin<Sleep> = Builtin::new(ToolMetadata {
    name: "sleep",
    description: "Rest when there is nothing to do. A message wakes you.",
    category: ToolCategory::Survival,
    risk: Risk::Caution,
    effect: Effect::Mutates,
    profile: ToolProfile {
        family: FamilyMembership::Every,
        in_compact_prompt: true,
        ends_turn: Some("you chose to sleep before it."),
        ..ToolProfile::new(ToolFamily::Life)
    },
})
.with_digest(|_| None);

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sleep {
    /// Seconds.
    #[schemars(range(min = 1, max = 604_800))]
    duration_seconds: u32,
    /// Why.
    #[schemars(length(max = 200))]
    reason: Option<String>,
}

impl Sleep {
    fn span(&self) -> Span {
        Span::from_secs(self.duration_seconds.into())
    }
}

impl BuiltinCall for Sleep {
    fn intents(&self) -> Vec<Intent> {
        vec![Intent::Sleep { span: self.span().into() }]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let span = self.span();
        let text = format!("You go to sleep for {} seconds.", self.duration_seconds);
        let note = self.reason.filter(|reason| !reason.trim().is_empty());
        let report = ToolOutput::labelled(context.voice, "sleep", &text);
        let after = TurnContinuation::Sleep(SleepRequest { span, note });
        Ok(ToolOutput { after, ..report })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, judged, run};
    use automaton_policy::Verdict;
    use serde_json::json;

    #[test]
    fn a_sleep_ends_the_turn_and_keeps_the_reason() {
        let arguments = json!({"duration_seconds": 60, "reason": "tired"});
        let report = run(&Fake::default(), "sleep", &arguments).unwrap();
        let span = Span::from_secs(60);
        let note = Some("tired".to_owned());
        assert_eq!(report.after, TurnContinuation::Sleep(SleepRequest { span, note }));
        assert_eq!(report.text.text, "You go to sleep for 60 seconds.");
    }

    #[test]
    fn a_span_out_of_range_is_refused() {
        for seconds in [0_u32, 604_801, u32::MAX] {
            let verdict = judged("sleep", &json!({"duration_seconds": seconds}));
            assert!(matches!(verdict, Verdict::Refused(_)), "{seconds}");
        }
        let sleep = crate::list::find("sleep").unwrap();
        for bad in [json!(-5), json!(1e20), json!("an hour"), json!(null)] {
            assert!(sleep.parse(&json!({"duration_seconds": bad})).is_err(), "{bad}");
        }
        for good in [json!(60), json!(60.0), json!("60")] {
            assert!(sleep.parse(&json!({"duration_seconds": good})).is_ok(), "{good}");
        }
    }
}
