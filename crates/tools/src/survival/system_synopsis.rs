//! `system_synopsis`: tells the automaton how it is.
//!
//! Every number comes from the record. What cannot be read is an error; it must
//! never be shown as nothing.

use automaton_core::tool::{Effect, Risk, ToolCategory};

use crate::context::Synopsis;
use crate::error::ToolError;
use crate::profile::{ToolFamily, ToolProfile};
use crate::tool::{ReadOnlyTool, ToolMetadata};

pub(crate) static TOOL: ReadOnlyTool = ReadOnlyTool::new(
    ToolMetadata {
        name: "system_synopsis",
        description: "See your own state: name, money, age, turns, model, tools, memory, messages.",
        category: ToolCategory::Survival,
        risk: Risk::Safe,
        effect: Effect::Observes,
        profile: ToolProfile::new(ToolFamily::Life),
    },
    |context| {
        Box::pin(async move {
            Ok(render(&context.status.status_synopsis().await.map_err(ToolError::Synopsis)?))
        })
    },
);

fn render(synopsis: &Synopsis) -> String {
    let Synopsis { name, creator, state, born_at, now, turns, turns_left, .. } = synopsis;
    let Synopsis { model, context_tokens, tools, memories, unread, wallet, .. } = synopsis;
    let Synopsis { heartbeat, sandbox, limits, .. } = synopsis;
    let money = wallet.as_ref().map_or_else(String::new, |(address, balances)| {
        let credits = balances.credits_shown();
        let usdc = balances.usdc_shown();
        format!("address: {address}\ncredits: {credits}\nusdc: {usdc}\n")
    });
    let age_hours = now.since(*born_at).as_millis() / 3_600_000;
    format!(
        "name: {name}\n\
         creator: {creator}\n\
         {money}state: {}\n\
         time: {now}\n\
         born: {born_at} ({age_hours} hours ago)\n\
         turns: {turns} ({turns_left} left of this wake)\n\
         model: {model} ({context_tokens} tokens)\n\
         tools: {tools}\n\
         memories: {memories}\n\
         unread messages: {unread}\n\
         heartbeat: {heartbeat} tasks\n\
         commands run in: {sandbox}\n\
         limits: {limits}",
        state.name()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Balances;
    use crate::testing::{Fake, run, usdc};
    use automaton_core::money::Microcents;
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
            memories: 4,
            unread: 1,
            wallet: None,
            heartbeat: 9,
            sandbox: "a sandbox".to_owned(),
            limits: "cgroup v2".to_owned(),
        };
        let credits = Some(Microcents::new(42_000_000));
        let balances = Balances { at: Timestamp::EPOCH, credits, usdc: Some(usdc(15)) };
        let rich = Synopsis { wallet: Some(("0xaa".to_owned(), balances)), ..synopsis.clone() };
        let fake = Fake { synopsis: Some(rich), ..Fake::default() };
        let told = run(&fake, "system_synopsis", &json!({})).unwrap().text.text;
        let money = "\naddress: 0xaa\ncredits: $0.42 (low_compute)\nusdc: 15.00 USDC\nstate: ";
        assert!(told.contains(money), "{told}");
        let fake = Fake { synopsis: Some(synopsis), ..Fake::default() };
        let report = run(&fake, "system_synopsis", &json!({})).unwrap();
        assert_eq!(report.text.label, Label::Own);
        assert_eq!(
            report.text.text,
            "name: Ada\ncreator: 0x11\nstate: running\ntime: 1970-01-01T02:01:40.000Z\n\
             born: 1970-01-01T00:00:00.000Z (2 hours ago)\nturns: 12 (3 left of this wake)\n\
             model: tiny (8192 tokens)\ntools: 8\nmemories: 4\nunread messages: 1\n\
             heartbeat: 9 tasks\ncommands run in: a sandbox\nlimits: cgroup v2"
        );
    }

    #[test]
    fn a_state_that_cannot_be_read_is_an_error() {
        let error = run(&Fake::default(), "system_synopsis", &json!({})).unwrap_err();
        assert!(matches!(error, ToolError::Synopsis(_)));
    }
}
