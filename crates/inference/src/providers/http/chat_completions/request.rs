//! Pure: the body of a request, from our values to the wire.
//!
//! Must never send an id of a provider back: calls go under our own ids.

use automaton_core::id::CallId;
use automaton_core::tool::ToolSpec;
use automaton_core::wire::chat::{
    AllowedTool, AllowedTools, ChatRole, FunctionKind, NamedTools, StreamOptions, ToolChoice,
    ToolMode, ToolReference,
};
use serde::Serialize;
use serde_json::{Number, Value};

use crate::catalogue::{ModelInfo, RequestDialect};
use crate::error::InferenceError;
use crate::provider::{CompletionRequest, Message};
use crate::providers::http::asked::thousandths;

/// The request of [`automaton_core::wire::chat`] with the fields in which the dialects differ,
/// written from what is asked without a copy of it.
#[derive(Serialize)]
struct ChatRequestBody<'a> {
    model: &'a str,
    messages: Vec<MessageBody<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<Number>,
}

#[derive(Serialize)]
struct MessageBody<'a> {
    role: ChatRole,
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<CallBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<CallId>,
}

#[derive(Serialize)]
struct CallBody<'a> {
    id: CallId,
    #[serde(rename = "type")]
    kind: FunctionKind,
    function: CalledBody<'a>,
}

#[derive(Serialize)]
struct CalledBody<'a> {
    name: &'a str,
    arguments: &'a str,
}

#[derive(Serialize)]
struct ToolBody<'a> {
    #[serde(rename = "type")]
    kind: FunctionKind,
    function: FunctionBody<'a>,
}

#[derive(Serialize)]
struct FunctionBody<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

/// The body as JSON.
///
/// # Errors
/// [`InferenceError::Encode`] when it cannot be written.
pub(in crate::providers::http) fn body(
    info: &ModelInfo,
    ask: &CompletionRequest,
) -> Result<Vec<u8>, InferenceError> {
    let allowed: Vec<&ToolSpec> =
        ask.tools.iter().filter(|tool| !ask.left_out.contains(&tool.name)).collect();
    let beside = info.dialect == RequestDialect::Guided && allowed.len() < ask.tools.len();
    let (tools, tool_choice) = match beside {
        true => (ask.tools.iter().map(tool).collect(), Some(choice(&allowed))),
        false => (allowed.into_iter().map(tool).collect(), None),
    };
    let classic = matches!(info.dialect, RequestDialect::Classic | RequestDialect::Guided);
    let completion = info.dialect == RequestDialect::Reasoning;
    let body = ChatRequestBody {
        model: info.id.as_str(),
        messages: ask.messages.iter().map(message).collect(),
        tools,
        tool_choice,
        seed: classic.then_some(ask.seed),
        max_tokens: (!completion).then_some(ask.max_tokens),
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        max_completion_tokens: completion.then_some(ask.max_tokens),
        temperature: if classic { thousandths(ask.temperature_milli) } else { None },
    };
    serde_json::to_vec(&body).map_err(|source| InferenceError::Encode { source })
}

fn tool(tool: &ToolSpec) -> ToolBody<'_> {
    let ToolSpec { name, description, parameters, .. } = tool;
    let function = FunctionBody { name: name.as_str(), description, parameters };
    ToolBody { kind: FunctionKind::Function, function }
}

/// The tools that may be called, for a list that holds more.
fn choice(allowed: &[&ToolSpec]) -> ToolChoice {
    let tools = allowed.iter().map(|tool| AllowedTool {
        kind: FunctionKind::Function,
        function: ToolReference { name: tool.name.to_string() },
    });
    let allowed_tools = AllowedTools { mode: ToolMode::Auto, tools: tools.collect() };
    ToolChoice::Named(NamedTools::AllowedTools { allowed_tools })
}

fn message(message: &Message) -> MessageBody<'_> {
    let calls = message.calls.iter().map(|call| CallBody {
        id: call.id,
        kind: FunctionKind::Function,
        function: CalledBody { name: &call.tool, arguments: &call.arguments },
    });
    // A message of calls alone has no content; an empty one is refused by some.
    let silent = message.content.is_empty() && !message.calls.is_empty();
    MessageBody {
        role: message.role,
        content: (!silent).then_some(message.content.as_str()),
        tool_calls: calls.collect(),
        tool_call_id: message.answers,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use automaton_core::tool::{Effect, Risk, ToolCategory, ToolSpec};
    use automaton_core::wire::chat::ChatRequest;
    use serde_json::{Value, json};

    use super::*;
    use crate::catalogue;
    use crate::provider::MessageCall;

    fn ask() -> CompletionRequest {
        let id = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
        let tool = |name: &str| ToolSpec {
            name: name.parse().unwrap(),
            description: "Runs.".into(),
            category: ToolCategory::Vm,
            risk: Risk::Safe,
            effect: Effect::Mutates,
            parameters: json!({"type": "object"}).into(),
        };
        let call = MessageCall { id, tool: "exec".into(), arguments: "{\"a\":1}".into() };
        CompletionRequest {
            messages: vec![
                Message::system("rules"),
                Message::user("go"),
                Message::assistant("", vec![call]),
                Message::tool(id, "done"),
            ],
            tools: Arc::new([tool("exec"), tool("sleep")]),
            left_out: vec!["exec".parse().unwrap()],
            max_tokens: 64,
            seed: 1,
            temperature_milli: 1250,
            name: None,
            silence: None,
        }
    }

    fn written(info: &ModelInfo) -> Value {
        serde_json::from_slice(&body(info, &ask()).unwrap()).unwrap()
    }

    #[test]
    fn a_request_is_what_the_format_says() {
        let id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
        let wanted = json!({
            "model": "some-model",
            "messages": [
                {"role": "system", "content": "rules"},
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": id, "type": "function",
                     "function": {"name": "exec", "arguments": "{\"a\":1}"}}]},
                {"role": "tool", "content": "done", "tool_call_id": id},
            ],
            "tools": [{"type": "function", "function": {
                "name": "sleep", "description": "Runs.", "parameters": {"type": "object"}}}],
            "max_tokens": 64,
            "stream": true,
            "stream_options": {"include_usage": true},
            "temperature": 1.25,
            "seed": 1,
        });
        let written = written(&catalogue::model("some-model").unwrap());
        assert_eq!(written, wanted);
        // It is the format that servers of ours read, with a field of the dialect beside it.
        let read: ChatRequest = serde_json::from_value(written.clone()).unwrap();
        let mut again = serde_json::to_value(read).unwrap();
        again["temperature"] = json!(1.25);
        assert_eq!(again, written);
    }

    #[test]
    fn a_guided_model_sees_all_tools_and_those_it_may_call() {
        let info = catalogue::model("some-model").unwrap();
        let body = written(&ModelInfo { dialect: RequestDialect::Guided, ..info });
        assert_eq!(body["tools"].as_array().unwrap().len(), 2);
        let sleep = json!({"type": "function", "function": {"name": "sleep"}});
        let allowed = json!({"mode": "auto", "tools": [sleep]});
        let wanted = json!({"type": "allowed_tools", "allowed_tools": allowed});
        assert_eq!(body["tool_choice"], wanted);
    }

    #[test]
    fn a_server_that_refuses_other_fields_gets_the_limit_alone() {
        for model in ["claude-sonnet-4-5", "gemini-2.5-pro", "mistral-large-latest"] {
            let body = written(&catalogue::model(model).unwrap());
            assert_eq!(body["max_tokens"], 64, "{model}");
            for other in ["max_completion_tokens", "temperature", "seed"] {
                assert!(body.get(other).is_none(), "{model} {other}");
            }
        }
    }

    #[test]
    fn a_reasoning_model_gets_its_own_fields() {
        let body = written(&catalogue::model("gpt-5.2").unwrap());
        assert_eq!(body["max_completion_tokens"], 64);
        for other in ["max_tokens", "temperature", "seed", "tool_choice"] {
            assert!(body.get(other).is_none(), "{other}");
        }
    }
}
