//! Pure: between our values and the helper's protocol.
//!
//! Must never pass an id on: the helper has no use for one.

use automaton_core::record::Usage;
use automaton_core::wire::brain::{
    self, LocalModelCall, LocalModelCompletion, LocalModelCompletionRequest, LocalModelTool,
};

use crate::catalogue::ModelInfo;
use crate::provider::{
    Completion, CompletionRequest, FinishReason, Message, RawCall, TokenCountSource,
};

/// The request for an answer.
pub(in crate::providers) fn complete(ask: &CompletionRequest) -> LocalModelCompletionRequest {
    let tool = |tool: &automaton_core::tool::ToolSpec| LocalModelTool {
        name: tool.name.to_string(),
        description: tool.description.to_string(),
        parameters: (*tool.parameters).clone(),
    };
    // In the order of the tools, so that one question has one form.
    let left_out = ask.tools.iter().filter(|tool| ask.left_out.contains(&tool.name));
    LocalModelCompletionRequest {
        messages: ask.messages.iter().map(|it| message(it)).collect(),
        tools: ask.tools.iter().map(tool).collect(),
        left_out: left_out.map(|tool| tool.name.to_string()).collect(),
        max_tokens: ask.max_tokens,
        seed: ask.seed,
        temperature_milli: ask.temperature_milli,
    }
}

fn message(message: &Message) -> brain::LocalModelMessage {
    let calls = message
        .calls
        .iter()
        .map(|call| LocalModelCall { name: call.tool.clone(), arguments: call.arguments.clone() });
    brain::LocalModelMessage {
        role: message.role,
        content: message.content.clone(),
        calls: calls.collect(),
    }
}

/// The reply out of a finished answer.
pub(in crate::providers) fn reply(info: &ModelInfo, done: LocalModelCompletion) -> Completion {
    let finish = match done.finish {
        brain::LocalModelFinishReason::Stop if !done.calls.is_empty() => FinishReason::ToolCalls,
        brain::LocalModelFinishReason::Stop => FinishReason::Stop,
        brain::LocalModelFinishReason::Length => FinishReason::Length,
        brain::LocalModelFinishReason::Repetition => FinishReason::Repetition,
    };
    let millis = |millis: u64| i64::try_from(millis).unwrap_or(i64::MAX);
    let call = |call: LocalModelCall| RawCall {
        provider_id: None,
        tool: call.name,
        arguments: call.arguments,
    };
    Completion {
        text: done.text,
        calls: done.calls.into_iter().map(call).collect(),
        finish,
        usage: Usage {
            model: info.id.to_string(),
            prompt_tokens: done.prompt_tokens,
            cached_tokens: done.cached_tokens.min(done.prompt_tokens),
            completion_tokens: done.completion_tokens,
            // Only the creator's electricity.
            cost: automaton_core::money::Microcents::ZERO,
            estimated: false,
            first_token_ms: millis(done.first_token_ms),
            total_ms: millis(done.total_ms),
            unknown_end: None,
        },
        counted: TokenCountSource::Reported,
    }
}
