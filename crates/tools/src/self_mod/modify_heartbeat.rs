//! `modify_heartbeat`: adds an entry to the schedule of the heartbeat, changes or removes one.
//!
//! What may be changed, and how far, is not decided here: the handle refuses what is
//! out of bounds, and nothing is ever shortened or rounded to fit them.

use std::fmt::Write as _;

use automaton_core::intent::Intent;
use automaton_core::time::Span;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::{ScheduleAction, ScheduleChange, ToolContext};
use crate::error::ToolError;
use crate::profile::{ToolAudience, ToolFamily, ToolProfile, WorkClass};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

pub(crate) static TOOL: Builtin<ModifyHeartbeat> = Builtin::new(ToolMetadata {
    name: "modify_heartbeat",
    description: "Add an entry to the schedule of your heartbeat, change or remove one: when a task runs, or whether.",
    category: ToolCategory::SelfMod,
    risk: Risk::Caution,
    effect: Effect::Mutates,
    profile: ToolProfile {
        audience: ToolAudience::Strong,
        in_critical_tier: false,
        class: WorkClass::Strategic,
        ..ToolProfile::new(ToolFamily::Life)
    },
});

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModifyHeartbeat {
    /// Name of the entry.
    #[schemars(length(min = 1, max = 64), example = &"health_check")]
    name: String,
    /// For a new entry: the task that it runs. A wrong one is answered with those there are.
    #[schemars(length(max = 64))]
    task: Option<String>,
    /// Cron with five fields.
    #[schemars(length(max = 128), example = &"*/30 * * * *")]
    schedule: Option<String>,
    /// Instead of a schedule: once in so many seconds.
    #[schemars(range(min = 60, max = 2_592_000))]
    interval_seconds: Option<u32>,
    /// false turns it off.
    enabled: Option<bool>,
    #[schemars(with = "Option<String>")]
    #[schemars(extend("enum" = ScheduleAction::ALL.map(ScheduleAction::name)))]
    action: Option<ScheduleAction>,
}

impl ModifyHeartbeat {
    fn change(self) -> ScheduleChange {
        let Self { name, task, schedule, interval_seconds, enabled, action } = self;
        let interval = interval_seconds.map(|seconds| Span::from_secs(seconds.into()));
        ScheduleChange { name, task, cron: schedule, interval, enabled, action }
    }
}

impl BuiltinCall for ModifyHeartbeat {
    fn intents(&self) -> Vec<Intent> {
        let Self { name, task, schedule, interval_seconds, enabled, action } = self;
        let mut change = String::new();
        let mut say = |what: &str, value: Option<String>| {
            if let Some(value) = value {
                // silent-ok: writing to a string does not fail.
                write!(change, "{what} {value}; ").ok();
            }
        };
        say("action", action.map(|action| action.to_string()));
        say("task", task.clone());
        say("cron", schedule.clone());
        say("seconds", interval_seconds.map(|seconds| seconds.to_string()));
        say("enabled", enabled.map(|enabled| enabled.to_string()));
        vec![Intent::Schedule { entry: name.clone(), change }]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let done = context.schedule.schedule(self.change()).await.map_err(ToolError::Schedule)?;
        Ok(ToolOutput::labelled(context.voice, "modify_heartbeat", &done))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, run};
    use serde_json::json;

    #[test]
    fn a_change_is_handed_on_as_it_is_and_states_what_it_is() {
        let arguments = json!({"name": "nightly", "task": "health_check", "schedule": "0 3 * * *"});
        let fake = Fake { scheduled: Some("nightly runs at 03:00.".to_owned()), ..Fake::default() };
        let report = run(&fake, "modify_heartbeat", &arguments).unwrap();
        assert_eq!(report.text.text, "nightly runs at 03:00.");
        assert_eq!(
            fake.log(),
            ["schedule nightly Some(\"health_check\") Some(\"0 3 * * *\") None None None"]
        );
        let call = crate::list::find("modify_heartbeat").unwrap().parse(&arguments).unwrap();
        let change = "task health_check; cron 0 3 * * *; ".to_owned();
        assert_eq!(call.intents(), [Intent::Schedule { entry: "nightly".to_owned(), change }]);
        let gone = json!({"name": "nightly", "action": "remove"});
        run(&fake, "modify_heartbeat", &gone).unwrap();
        assert_eq!(fake.log()[1], "schedule nightly None None None None Some(Remove)");
        let tool = crate::list::find("modify_heartbeat").unwrap();
        let change = "action remove; ".to_owned();
        assert_eq!(
            tool.parse(&gone).unwrap().intents(),
            [Intent::Schedule { entry: "nightly".to_owned(), change }]
        );
        assert!(tool.parse(&json!({"name": "nightly", "action": "explode"})).is_err());
        let off = json!({"name": "nightly", "enabled": false});
        run(&Fake::default(), "modify_heartbeat", &off).unwrap_err();
    }
}
