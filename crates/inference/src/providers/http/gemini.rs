//! Pure: Gemini's own format.
//!
//! Sides take turns, and a result is told by the name of its function. Of thoughts only the
//! signatures are kept that come with calls.
//! Source: <https://ai.google.dev/api/generate-content>.

use automaton_core::wire::chat::{ChatChunk, ChatUsage, NamedTools, ToolChoice, ToolMode};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Number, Value, json};

use super::asked::{AskedChat, SpokenMessage, as_object, is_blank};
use super::assemble::{AssemblyError, StreamPiece};
use super::failure::ProviderErrorBody;
use super::finish::{FinishMeaning, meaning_of};
use super::pieces::{self, unread};
use super::thoughts::ThoughtLog;
use super::usage::{count, counts};
use crate::provider::ChatRole;

/// Placeholder for the signature of a thought that is no longer known, as Google documents it.
/// Models from the third generation on refuse calls without one.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Prefixes of the names of models without such signatures.
const UNSIGNED: [&str; 4] = ["gemini-1", "gemini-2", "gemma", "learnlm"];

/// The body of `POST /v1beta/models/{model}:streamGenerateContent`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<SideContent<'a>>,
    contents: Vec<SideContent<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<FunctionTools<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<Value>,
    generation_config: GenerationConfig<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig<'a> {
    max_output_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop_sequences: &'a [String],
}

/// Content of one side.
#[derive(Serialize)]
struct SideContent<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    parts: Vec<TurnPart<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum TurnPart<'a> {
    Text {
        text: &'a str,
    },
    #[serde(rename_all = "camelCase")]
    Call {
        function_call: CalledFunctionPart<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'a str>,
    },
    #[serde(rename_all = "camelCase")]
    Result {
        function_response: FunctionResultPart<'a>,
    },
}

#[derive(Serialize)]
struct CalledFunctionPart<'a> {
    name: &'a str,
    args: Box<RawValue>,
}

#[derive(Serialize)]
struct FunctionResultPart<'a> {
    name: &'a str,
    response: Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FunctionTools<'a> {
    function_declarations: Vec<FunctionDeclaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FunctionDeclaration<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a Value,
}

/// The body as JSON. Which model is asked stands in the URL.
pub(super) fn body(asked: &AskedChat<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let rules = asked.rules();
    let mut contents: Vec<SideContent<'_>> = Vec::new();
    for message in asked.conversation() {
        let role = side(message.role);
        let parts = parts(asked, message)?;
        // Results stand together, and apart from what is said after them.
        let is_result = |parts: &[TurnPart<'_>]| matches!(parts, [TurnPart::Result { .. }, ..]);
        match contents.last_mut() {
            Some(last)
                if last.role == Some(role) && is_result(&last.parts) == is_result(&parts) =>
            {
                last.parts.extend(parts);
            }
            _ if parts.is_empty() => {}
            _ => contents.push(SideContent { role: Some(role), parts }),
        }
    }
    let declarations = asked.tools.iter().map(|tool| FunctionDeclaration {
        name: tool.name,
        description: tool.description,
        parameters_json_schema: tool.parameters,
    });
    let function_declarations: Vec<FunctionDeclaration<'_>> = declarations.collect();
    let has_tools = !function_declarations.is_empty();
    serde_json::to_vec(&GeminiBody {
        system_instruction: rules
            .as_deref()
            .map(|text| SideContent { role: None, parts: vec![TurnPart::Text { text }] }),
        contents,
        tools: has_tools.then_some(FunctionTools { function_declarations }).into_iter().collect(),
        tool_config: asked.tool_choice.map(choice),
        generation_config: GenerationConfig {
            max_output_tokens: asked.max_tokens,
            temperature: asked.temperature.as_ref(),
            top_p: asked.top_p.as_ref(),
            // It takes those of 31 bits alone.
            seed: asked.seed.map(|seed| seed & 0x7fff_ffff),
            stop_sequences: &asked.stop,
        },
    })
}

const fn side(role: ChatRole) -> &'static str {
    match role {
        ChatRole::Assistant => "model",
        ChatRole::System | ChatRole::User | ChatRole::Tool => "user",
    }
}

fn parts<'a>(
    asked: &'a AskedChat<'_>,
    message: &'a SpokenMessage<'_>,
) -> Result<Vec<TurnPart<'a>>, serde_json::Error> {
    if let Some(id) = &message.answers {
        let response = json!({ "result": message.text });
        let function_response = FunctionResultPart { name: asked.called(id), response };
        return Ok(vec![TurnPart::Result { function_response }]);
    }
    let text: &str = &message.text;
    let mut parts = Vec::new();
    if !is_blank(text) {
        parts.push(TurnPart::Text { text });
    }
    let model = asked.model.trim_start_matches("models/");
    let is_signed = !UNSIGNED.iter().any(|beginning| model.starts_with(beginning));
    for (place, call) in message.calls.iter().enumerate() {
        let args = as_object(&call.arguments)?;
        parts.push(TurnPart::Call {
            function_call: CalledFunctionPart { name: &call.tool, args },
            // Of calls that are made together the first one has it.
            thought_signature: match message.thoughts.get(place) {
                Some(signature) => signature.as_str(),
                None => (is_signed && place == 0).then_some(NO_SIGNATURE),
            },
        });
    }
    Ok(parts)
}

fn choice(choice: &ToolChoice) -> Value {
    let of_mode = |mode: &ToolMode| match mode {
        ToolMode::None => "NONE",
        ToolMode::Auto => "AUTO",
        ToolMode::Required => "ANY",
    };
    let config = match choice {
        ToolChoice::Mode(mode) => json!({ "mode": of_mode(mode) }),
        ToolChoice::Named(NamedTools::Function { function }) => {
            json!({ "mode": "ANY", "allowedFunctionNames": [function.name] })
        }
        ToolChoice::Named(NamedTools::AllowedTools { allowed_tools }) => {
            json!({ "mode": of_mode(&allowed_tools.mode) })
        }
    };
    json!({ "functionCallingConfig": config })
}

/// Reads the events of one reply.
#[derive(Debug, Default)]
pub(super) struct GeminiReader {
    /// The calls so far.
    calls: usize,
    /// The signature of the thought before each call, `null` where it has none.
    pub(super) thoughts: ThoughtLog,
}

impl GeminiReader {
    /// Reads the data of an event or a whole reply.
    pub(super) fn piece(&mut self, data: &str) -> Result<StreamPiece, AssemblyError> {
        let reply = Value::Object(pieces::object(data)?);
        let candidates = reply["candidates"].as_array().into_iter().flatten();
        let first = candidates.into_iter().find(|it| it["index"].as_u64().unwrap_or(0) == 0);
        let said = match first {
            Some(candidate) => self.candidate(candidate)?,
            // It does not answer what it will not read.
            None if pieces::word(&reply["promptFeedback"], "blockReason").is_some() => {
                pieces::chunk(pieces::text(String::new()), Some("content_filter".to_owned()))
            }
            None => ChatChunk::default(),
        };
        Ok(StreamPiece::Chunk(ChatChunk {
            model: pieces::word(&reply, "modelVersion").unwrap_or_default().to_owned(),
            usage: counted(&reply["usageMetadata"]),
            ..said
        }))
    }

    fn candidate(&mut self, candidate: &Value) -> Result<ChatChunk, AssemblyError> {
        let mut text = String::new();
        let mut calls = Vec::new();
        let said = match &candidate["content"]["parts"] {
            Value::Null => &[],
            Value::Array(parts) => parts.as_slice(),
            part @ Value::Object(_) => std::slice::from_ref(part),
            _ => return Err(unread("its list of parts")),
        };
        for part in said {
            if let Some(call) = part.get("functionCall") {
                if !call.is_object() {
                    return Err(unread("a call"));
                }
                // A call comes whole.
                let args = pieces::arguments_of(&call["args"]).unwrap_or_else(|| "{}".to_owned());
                let id = pieces::word(call, "id");
                let name = pieces::word(call, "name");
                calls.push(pieces::call(self.calls, id, name, Some(args)));
                self.thoughts.add(json!(pieces::word(part, "thoughtSignature")));
                self.calls += 1;
            } else if part["thought"].as_bool() != Some(true) {
                match part.get("text") {
                    None | Some(Value::Null) => {}
                    Some(Value::String(more)) => text.push_str(more),
                    Some(_) => return Err(unread("a part of its text")),
                }
            }
        }
        let mut delta = pieces::text(text);
        delta.tool_calls = pieces::calls(calls).tool_calls;
        let reason = pieces::word(candidate, "finishReason");
        let reason = reason.filter(|reason| *reason != "FINISH_REASON_UNSPECIFIED");
        // The model wrote a call that is none, or the server could not go on.
        if let Some(reason) = reason.filter(|it| meaning_of(it) == FinishMeaning::Failed) {
            let more = pieces::word(candidate, "finishMessage").unwrap_or("no call came of it");
            let text = format!("it ended with {reason}: {more}");
            let said = ProviderErrorBody { text, ..ProviderErrorBody::default() };
            return Err(AssemblyError::Failed(said));
        }
        Ok(pieces::chunk(delta, reason.map(str::to_owned)))
    }
}

/// The tokens of prompt and answer; a thought is a part of the answer.
fn counted(told: &Value) -> Option<ChatUsage> {
    let prompt = count(told, "promptTokenCount")?;
    let more = |name| count(told, name).unwrap_or(0);
    let prompt = prompt.saturating_add(more("toolUsePromptTokenCount"));
    let answer = more("candidatesTokenCount").saturating_add(more("thoughtsTokenCount"));
    Some(counts(prompt, more("cachedContentTokenCount"), 0, answer))
}
