//! `system_synopsis`: tells the automaton how it is.
//!
//! Every number comes from the record. What cannot be read is an error; it must
//! never be shown as nothing.

use automaton_core::tool::{Effect, Risk, ToolCategory};

use crate::context::Synopsis;
use crate::error::ToolError;
use crate::tool::{ReadOnlyTool, ToolMetadata};

pub(crate) static TOOL: ReadOnlyTool = ReadOnlyTool::new(
    ToolMetadata {
        name: "system_synopsis",
        description: "See your own state: name, age, turns, model, memory, messages.",
        category: ToolCategory::Survival,
        risk: Risk::Safe,
        effect: Effect::Observes,
    },
    |context| {
        Box::pin(async move {
            Ok(render(&context.status.status_synopsis().await.map_err(ToolError::Synopsis)?))
        })
    },
);

fn render(synopsis: &Synopsis) -> String {
    let Synopsis { name, creator, state, born_at, now, turns, turns_left, .. } = synopsis;
    let Synopsis { model, context_tokens, tools, facts, unread, limits, .. } = synopsis;
    let age_hours = now.since(*born_at).as_millis() / 3_600_000;
    format!(
        "name: {name}\n\
         creator: {creator}\n\
         state: {}\n\
         time: {now}\n\
         born: {born_at} ({age_hours} hours ago)\n\
         turns: {turns} ({turns_left} left of this wake)\n\
         model: {model} ({context_tokens} tokens)\n\
         tools: {tools}\n\
         facts: {facts}\n\
         unread messages: {unread}\n\
         limits: {limits}",
        state.name()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, run};
    use automaton_core::state::AgentState;
    use automaton_core::time::{Span, Timestamp};
    use automaton_core::trust::Label;
    use serde_json::json;

    #[test]
    fn everything_is_told() {
        let synopsis = Synopsis {
            name: "Ada".to_owned(),
            creator: "0x11".to_owned(),
            state: AgentState::Running,
            born_at: Timestamp::EPOCH,
            now: Timestamp::EPOCH.after(Span::from_secs(7_300)),
            turns: 12,
            turns_left: 3,
            model: "tiny".into(),
            context_tokens: 8192,
            tools: 8,
            facts: 4,
            unread: 1,
            limits: "cgroup v2".to_owned(),
        };
        let fake = Fake { synopsis: Some(synopsis), ..Fake::default() };
        let report = run(&fake, "system_synopsis", &json!({})).unwrap();
        assert_eq!(report.text.label, Label::Own);
        assert_eq!(
            report.text.text,
            "name: Ada\ncreator: 0x11\nstate: running\ntime: 1970-01-01T02:01:40.000Z\n\
             born: 1970-01-01T00:00:00.000Z (2 hours ago)\nturns: 12 (3 left of this wake)\n\
             model: tiny (8192 tokens)\ntools: 8\nfacts: 4\nunread messages: 1\nlimits: cgroup v2"
        );
    }

    #[test]
    fn a_state_that_cannot_be_read_is_an_error() {
        let error = run(&Fake::default(), "system_synopsis", &json!({})).unwrap_err();
        assert!(matches!(error, ToolError::Synopsis(_)));
    }
}
