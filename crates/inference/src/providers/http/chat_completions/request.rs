//! Pure: the body of a request, from our values to the wire.
//!
//! Must never send an id of a provider back: calls go under our own ids.

use std::sync::Arc;

use automaton_core::id::CallId;
use automaton_core::tool::ToolSpec;
use automaton_core::wire::chat::{
    AllowedTool, AllowedTools, ChatRole, FunctionKind, NamedTools, StreamOptions, ToolChoice,
    ToolMode, ToolReference,
};
use serde::Serialize;
use serde_json::Number;
use serde_json::value::{RawValue, to_raw_value};

use crate::catalogue::{ModelInfo, RequestDialect};
use crate::provider::{CompletionRequest, Message};
use crate::providers::http::asked::thousandths;

/// The conversation as it was last written. A question begins as the one before, so what it has
/// in common with that is written once.
#[derive(Debug, Default)]
pub(in crate::providers::http) struct WrittenChat(Vec<(Arc<Message>, Box<RawValue>)>);

impl WrittenChat {
    fn write(&mut self, messages: &[Arc<Message>]) -> Result<Vec<&RawValue>, serde_json::Error> {
        let begins = self.0.iter().zip(messages).take_while(|((known, _), it)| known == *it);
        self.0.truncate(begins.count());
        for it in &messages[self.0.len()..] {
            self.0.push((Arc::clone(it), to_raw_value(&message(it))?));
        }
        Ok(self.0.iter().map(|(_, written)| &**written).collect())
    }
}

/// The request of [`automaton_core::wire::chat`] with the fields in which the dialects differ,
/// written from what is asked without a copy of it.
#[derive(Serialize)]
struct ChatRequestBody<'a> {
    model: &'a str,
    messages: Vec<&'a RawValue>,
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
    parameters: &'a RawValue,
}

/// The body as JSON.
pub(in crate::providers::http) fn body(
    info: &ModelInfo,
    ask: &CompletionRequest,
    written: &mut WrittenChat,
) -> Result<Vec<u8>, serde_json::Error> {
    let allowed: Vec<&ToolSpec> =
        ask.tools.iter().filter(|tool| !ask.left_out.contains(&tool.name)).collect();
    let beside = info.dialect == RequestDialect::Guided && allowed.len() < ask.tools.len();
    let tool_choice = beside.then(|| choice(&allowed));
    let tools = if beside { ask.tools.iter().collect() } else { allowed };
    let classic = matches!(info.dialect, RequestDialect::Classic | RequestDialect::Guided);
    let completion = info.dialect == RequestDialect::Reasoning;
    serde_json::to_vec(&ChatRequestBody {
        model: info.id.as_str(),
        messages: written.write(&ask.messages)?,
        tools: tools.into_iter().map(tool).collect::<Result<_, _>>()?,
        tool_choice,
        seed: classic.then_some(ask.seed),
        max_tokens: (!completion).then_some(ask.max_tokens),
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        max_completion_tokens: completion.then_some(ask.max_tokens),
        temperature: if classic { thousandths(ask.temperature_milli) } else { None },
    })
}

fn tool(tool: &ToolSpec) -> Result<ToolBody<'_>, serde_json::Error> {
    let ToolSpec { name, description, parameters, .. } = tool;
    let parameters = serde_json::from_str(parameters.text())?;
    let function = FunctionBody { name: name.as_str(), description, parameters };
    Ok(ToolBody { kind: FunctionKind::Function, function })
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
    use automaton_core::tool::{Effect, Risk, ToolCategory, ToolSpec};
    use automaton_core::wire::chat::ChatRequest;
    use proptest::prelude::*;
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
                Message::system("rules").into(),
                Message::user("go").into(),
                Message::assistant("", vec![call]).into(),
                Message::tool(id, "done").into(),
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
        serde_json::from_slice(&body(info, &ask(), &mut WrittenChat::default()).unwrap()).unwrap()
    }

    proptest! {
        /// However the conversation went on: cut, changed in the middle, begun anew.
        #[test]
        fn what_was_written_before_changes_no_question(
            talks in prop::collection::vec(prop::collection::vec(0_usize..6, 1..9), 1..6),
        ) {
            let info = catalogue::model("some-model").unwrap();
            let mut kept = WrittenChat::default();
            // The same words are the same message in one conversation and another one in the next.
            let id = |n: u8| format!("0000000000000000000000000{n}").parse().unwrap();
            let call = |arguments: &str| {
                let id = id(7);
                let arguments = arguments.to_owned();
                Message::assistant("", vec![MessageCall { id, tool: "exec".into(), arguments }])
            };
            let result = |n| Message::tool(id(n), "\"done\"");
            let known = [
                Message::user("\"go\""), Message::user("go"),
                call("{}"), call("{\"a\":1}"), result(7), result(8),
            ];
            let known = known.map(Arc::new);
            for (nth, talk) in talks.iter().enumerate() {
                let words = talk.iter().map(|word| &known[*word]);
                let messages = words.map(|it| match nth % 2 {
                    0 => Arc::clone(it),
                    _ => Arc::new(Message::clone(it)),
                });
                let left_out = ask().left_out.into_iter().take(nth % 3).collect();
                let messages = messages.collect();
                let ask = CompletionRequest { messages, left_out, ..ask() };
                let again = body(&info, &ask, &mut kept).unwrap();
                prop_assert_eq!(again, body(&info, &ask, &mut WrittenChat::default()).unwrap());
            }
        }
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
