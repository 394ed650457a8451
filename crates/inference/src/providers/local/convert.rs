//! Pure: between our values and the helper's protocol.
//!
//! Must never pass an id on: the helper has no use for one.

use automaton_core::record::Usage;
use automaton_core::wire::brain::{self, Call, Complete, Done, Tool};

use crate::catalogue::ModelInfo;
use crate::provider::{Ask, Counted, Finish, Message, RawCall, Reply, Role};

/// The request for an answer.
pub(in crate::providers) fn complete(ask: &Ask) -> Complete {
    let tool = |tool: &automaton_core::tool::ToolSpec| Tool {
        name: tool.name.to_string(),
        description: tool.description.to_string(),
        parameters: tool.parameters.clone(),
    };
    // In the order of the tools, so that one question has one form.
    let left_out = ask.tools.iter().filter(|tool| ask.left_out.contains(&tool.name));
    Complete {
        messages: ask.messages.iter().map(message).collect(),
        tools: ask.tools.iter().map(tool).collect(),
        left_out: left_out.map(|tool| tool.name.to_string()).collect(),
        max_tokens: ask.max_tokens,
        seed: ask.seed,
        temperature_milli: ask.temperature_milli,
    }
}

fn message(message: &Message) -> brain::Message {
    let role = match message.role {
        Role::System => brain::Role::System,
        Role::User => brain::Role::User,
        Role::Assistant => brain::Role::Assistant,
        Role::Tool => brain::Role::Tool,
    };
    let calls = message
        .calls
        .iter()
        .map(|call| Call { name: call.tool.clone(), arguments: call.arguments.clone() });
    brain::Message { role, content: message.content.clone(), calls: calls.collect() }
}

/// The reply out of a finished answer.
pub(in crate::providers) fn reply(info: &ModelInfo, done: Done) -> Reply {
    let finish = match done.finish {
        brain::Finish::Stop if !done.calls.is_empty() => Finish::ToolCalls,
        brain::Finish::Stop => Finish::Stop,
        brain::Finish::Length => Finish::Length,
        brain::Finish::Repetition => Finish::Repetition,
    };
    let millis = |millis: u64| i64::try_from(millis).unwrap_or(i64::MAX);
    let call =
        |call: Call| RawCall { provider_id: None, tool: call.name, arguments: call.arguments };
    Reply {
        text: done.text,
        calls: done.calls.into_iter().map(call).collect(),
        finish,
        usage: Usage {
            model: info.id.clone(),
            prompt_tokens: done.prompt_tokens,
            cached_tokens: done.cached_tokens.min(done.prompt_tokens),
            completion_tokens: done.completion_tokens,
            // Only the creator's electricity.
            cost: automaton_core::money::Microcents::ZERO,
            first_token_ms: millis(done.first_token_ms),
            total_ms: millis(done.total_ms),
        },
        counted: Counted::Reported,
    }
}
