//! Pure: the helper's protocol in the chat-completions format, for whoever
//! offers a local model to others.
//!
//! A request of our own client becomes the very question that the client's own
//! helper would be asked, and the answer the very reply. Fields that the helper
//! has no use for are ignored; what it cannot do is refused, never left out.

use automaton_core::model::ModelId;
use automaton_core::wire::brain::{
    LocalModelCall, LocalModelCompletion, LocalModelCompletionRequest, LocalModelFinishReason,
    LocalModelMessage, LocalModelTool,
};
use automaton_core::wire::chat::{
    CalledFunction, ChatCall, ChatChoice, ChatChunk, ChatMessage, ChatResponse, ChatRole, ChatTool,
    ChatUsage, ChunkCall, ChunkChoice, ChunkDelta, ChunkFunction, FunctionKind, NamedTools,
    PromptTokensDetails, ToolChoice, ToolMode,
};
use serde::Deserialize;
use serde_json::{Number, json};

use crate::error::LocalModelError;

/// The temperature of a request that names none, by the format.
const TEMPERATURE_MILLI: u32 = 1000;

/// The highest one that the format has.
const TEMPERATURE_MILLI_MAX: u32 = 2000;

/// A request cannot be put to the helper; the sentence is for who sent it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LocalChatRequestError(String);

/// Part of a request that the helper needs.
#[derive(Deserialize)]
struct LocalChatRequest {
    messages: Vec<LocalChatMessage>,
    tools: Option<Vec<ChatTool>>,
    tool_choice: Option<ToolChoice>,
    max_tokens: u32,
    seed: Option<u64>,
    temperature: Option<Number>,
    n: Option<u32>,
}

#[derive(Deserialize)]
struct LocalChatMessage {
    role: ChatRole,
    content: Option<ChatContent>,
    tool_calls: Option<Vec<ChatCall>>,
}

/// A text, or a list of texts; anything else is nothing for the helper.
#[derive(Deserialize)]
#[serde(untagged)]
enum ChatContent {
    Whole(String),
    Parts(Vec<ContentPart>),
}

#[derive(Deserialize)]
struct ContentPart {
    text: String,
}

/// The question that a request's body asks. Its limit of tokens must be named
/// `max_tokens`.
///
/// # Errors
/// [`LocalChatRequestError`] when it is no request, or asks for what a helper cannot do.
pub fn question(body: &[u8]) -> Result<LocalModelCompletionRequest, LocalChatRequestError> {
    let bad = |what: &str| LocalChatRequestError(what.to_owned());
    let request: LocalChatRequest =
        serde_json::from_slice(body).map_err(|error| LocalChatRequestError(error.to_string()))?;
    if request.n.is_some_and(|n| n != 1) {
        return Err(bad("this model gives one answer: n must be 1"));
    }
    let temperature = request.temperature.as_ref().map_or(Some(TEMPERATURE_MILLI), milli);
    let temperature_milli = temperature.filter(|milli| *milli <= TEMPERATURE_MILLI_MAX);
    let tools: Vec<LocalModelTool> =
        request.tools.unwrap_or_default().into_iter().map(tool).collect();
    let may = |name: &String| allows(request.tool_choice.as_ref(), name);
    Ok(LocalModelCompletionRequest {
        messages: request.messages.into_iter().map(message).collect(),
        left_out: tools.iter().map(|tool| tool.name.clone()).filter(|name| !may(name)).collect(),
        tools,
        max_tokens: request.max_tokens,
        seed: request.seed.unwrap_or(0),
        temperature_milli: temperature_milli
            .ok_or_else(|| bad("the temperature must be from 0 to 2"))?,
    })
}

/// Thousandths of a decimal, by its text.
fn milli(number: &Number) -> Option<u32> {
    // silent-ok: what is negative or beyond all bounds has no such digits.
    format!("{:.3}", number.as_f64()?).replace('.', "").parse().ok()
}

fn message(said: LocalChatMessage) -> LocalModelMessage {
    let content = match said.content {
        None => String::new(),
        Some(ChatContent::Whole(text)) => text,
        Some(ChatContent::Parts(parts)) => parts.into_iter().map(|part| part.text).collect(),
    };
    let calls = said.tool_calls.into_iter().flatten().map(|call| LocalModelCall {
        name: call.function.name,
        arguments: call.function.arguments,
    });
    LocalModelMessage { role: said.role, content, calls: calls.collect() }
}

fn tool(tool: ChatTool) -> LocalModelTool {
    let function = tool.function;
    let parameters = match function.parameters {
        // A tool that takes nothing may leave its schema out.
        serde_json::Value::Null => json!({ "type": "object", "properties": {} }),
        schema => schema,
    };
    LocalModelTool { name: function.name, description: function.description, parameters }
}

fn allows(choice: Option<&ToolChoice>, name: &str) -> bool {
    match choice {
        None | Some(ToolChoice::Mode(ToolMode::Auto | ToolMode::Required)) => true,
        Some(ToolChoice::Mode(ToolMode::None)) => false,
        Some(ToolChoice::Named(NamedTools::Function { function })) => function.name == name,
        Some(ToolChoice::Named(NamedTools::AllowedTools { allowed_tools })) => {
            allowed_tools.mode != ToolMode::None
                && allowed_tools.tools.iter().any(|tool| tool.function.name == name)
        }
    }
}

/// Fields that each part of an answer repeats.
#[derive(Debug, Clone)]
pub struct ResponseMeta {
    /// The answer's id, unlike that of any other.
    pub id: String,
    /// The model's id.
    pub model: ModelId,
    /// Seconds since the epoch.
    pub created: i64,
}

/// An answer that is being given.
#[derive(Debug)]
pub struct ChatResponder {
    byline: ResponseMeta,
    text: String,
    /// Length of the shown text, without surrounding white space.
    shown: usize,
    begun: bool,
}

impl ChatResponder {
    /// An answer of which nothing was said.
    #[must_use]
    pub const fn new(byline: ResponseMeta) -> Self {
        Self { byline, text: String::new(), shown: 0, begun: false }
    }

    /// Returns the addition of a piece of text. White space is held back until something follows
    /// it, since the whole answer has none around it.
    pub fn piece(&mut self, piece: &str) -> Option<ChatChunk> {
        self.text.push_str(piece);
        let fresh = self.text.trim()[self.shown..].to_owned();
        if fresh.is_empty() {
            return None;
        }
        self.shown += fresh.len();
        Some(self.delta(ChunkDelta { content: Some(fresh), ..ChunkDelta::default() }))
    }

    /// Returns the last pieces: the rest of the text, the calls, the reason for the end, and the
    /// usage.
    ///
    /// # Errors
    /// [`LocalModelError::Protocol`] when the pieces were another text.
    pub fn end(mut self, done: &LocalModelCompletion) -> Result<Vec<ChatChunk>, LocalModelError> {
        let shown = &self.text.trim()[..self.shown];
        let rest = done.text.strip_prefix(shown).map(str::to_owned);
        let what = || "an answer that is not made of its pieces".to_owned();
        let rest = rest.ok_or_else(|| LocalModelError::Protocol { what: what() })?;
        let content = (!rest.is_empty()).then_some(rest);
        let calls = (0_u32..).zip(self.calls(done)).map(|(index, call)| ChunkCall {
            index,
            id: Some(call.id),
            kind: Some(call.kind),
            function: ChunkFunction {
                name: Some(call.function.name),
                arguments: Some(call.function.arguments),
            },
        });
        let calls: Vec<ChunkCall> = calls.collect();
        let tool_calls = (!calls.is_empty()).then_some(calls);
        let mut last = self.delta(ChunkDelta { content, tool_calls, ..ChunkDelta::default() });
        for choice in &mut last.choices {
            choice.finish_reason = Some(finish_reason(done).to_owned());
        }
        let used = ChatChunk { usage: Some(usage(done)), ..self.chunk(Vec::new()) };
        Ok(vec![last, used])
    }

    /// The answer in one piece.
    #[must_use]
    pub fn whole_response(self, done: &LocalModelCompletion) -> ChatResponse {
        let calls = self.calls(done);
        let message = ChatMessage {
            role: ChatRole::Assistant,
            content: (!done.text.is_empty() || calls.is_empty()).then(|| done.text.clone()),
            tool_calls: (!calls.is_empty()).then_some(calls),
            tool_call_id: None,
        };
        let finish_reason = Some(finish_reason(done).to_owned());
        let ResponseMeta { id, model, created } = self.byline;
        ChatResponse {
            id,
            object: "chat.completion".to_owned(),
            created,
            model: model.to_string(),
            choices: vec![ChatChoice { index: 0, message, finish_reason }],
            usage: Some(usage(done)),
        }
    }

    fn calls(&self, done: &LocalModelCompletion) -> Vec<ChatCall> {
        let call = |(at, call): (usize, &LocalModelCall)| ChatCall {
            id: format!("call-{}-{at}", self.byline.id),
            kind: FunctionKind::Function,
            function: CalledFunction { name: call.name.clone(), arguments: call.arguments.clone() },
        };
        done.calls.iter().enumerate().map(call).collect()
    }

    /// A piece of the message; the first one says who speaks.
    fn delta(&mut self, delta: ChunkDelta) -> ChatChunk {
        let role = (!std::mem::replace(&mut self.begun, true)).then_some(ChatRole::Assistant);
        let delta = ChunkDelta { role, ..delta };
        self.chunk(vec![ChunkChoice { index: 0, delta, finish_reason: None }])
    }

    fn chunk(&self, choices: Vec<ChunkChoice>) -> ChatChunk {
        let ResponseMeta { id, model, created } = self.byline.clone();
        let object = "chat.completion.chunk".to_owned();
        ChatChunk { id, object, created, model: model.to_string(), choices, usage: None }
    }
}

const fn finish_reason(done: &LocalModelCompletion) -> &'static str {
    match done.finish {
        LocalModelFinishReason::Stop if !done.calls.is_empty() => "tool_calls",
        LocalModelFinishReason::Stop => "stop",
        // The format has no word for an answer that was ended as it repeated
        // itself; it is cut in either case.
        LocalModelFinishReason::Length | LocalModelFinishReason::Repetition => "length",
    }
}

fn usage(done: &LocalModelCompletion) -> ChatUsage {
    let cached_tokens = done.cached_tokens.min(done.prompt_tokens);
    ChatUsage {
        prompt_tokens: done.prompt_tokens,
        completion_tokens: done.completion_tokens,
        total_tokens: done.prompt_tokens.saturating_add(done.completion_tokens),
        prompt_tokens_details: Some(PromptTokensDetails { cached_tokens, ..Default::default() }),
        // silent-ok: what does not fit is no time that anybody waited.
        first_token_ms: u32::try_from(done.first_token_ms).ok(),
        estimated: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(more: &str) -> Result<LocalModelCompletionRequest, LocalChatRequestError> {
        let tool = |name| format!(r#"{{"type":"function","function":{{"name":"{name}"}}}}"#);
        let a = tool("a");
        let b = tool("b");
        let body = format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":"hi"}}],"max_tokens":9,
                "stop":null,"tools":[{a},{b}]{more}}}"#
        );
        question(body.as_bytes())
    }

    #[test]
    fn every_choice_of_tools_leaves_the_others_out() {
        let check = |choice: &str, left_out: &[&str]| {
            let asked = asked(&format!(r#","tool_choice":{choice}"#)).unwrap();
            assert_eq!(
                (asked.left_out.as_slice(), asked.tools.len()),
                (left_out.iter().map(ToString::to_string).collect::<Vec<_>>().as_slice(), 2)
            );
        };
        let named = r#"{"type":"function","function":{"name":"b"}}"#;
        let allowed = |mode| {
            let list = format!(r#"{{"mode":"{mode}","tools":[{named}]}}"#);
            format!(r#"{{"type":"allowed_tools","allowed_tools":{list}}}"#)
        };
        check("null", &[]);
        check(r#""auto""#, &[]);
        check(r#""required""#, &[]);
        check(r#""none""#, &["a", "b"]);
        check(named, &["a"]);
        check(&allowed("auto"), &["a"]);
        check(&allowed("none"), &["a", "b"]);
    }

    #[test]
    fn what_is_left_open_is_as_the_format_says() {
        let plain = asked("").unwrap();
        assert_eq!((plain.temperature_milli, plain.seed, plain.max_tokens), (1000, 0, 9));
        assert_eq!(plain.tools[0].parameters, json!({ "type": "object", "properties": {} }));
        for (text, milli) in [("0", 0), ("0.7", 700), ("1.2345", 1234), ("2", 2000), ("1e-5", 0)] {
            let asked = asked(&format!(r#","temperature":{text}"#)).unwrap();
            assert_eq!(asked.temperature_milli, milli, "{text}");
        }
        let parts = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},
            {"type":"text","text":"b"}]}],"max_tokens":9}"#;
        assert_eq!(question(parts.as_bytes()).unwrap().messages[0].content, "ab");
    }

    #[test]
    fn what_a_helper_cannot_do_is_refused() {
        for more in [
            r#","n":2"#,
            r#","temperature":-0.1"#,
            r#","temperature":2.1"#,
            r#","temperature":1e300"#,
            r#","seed":-1"#,
            r#","tool_choice":"perhaps""#,
        ] {
            assert!(asked(more).is_err(), "{more}");
        }
        let picture = r#"{"messages":[{"role":"user","content":[{"type":"image_url"}]}],
            "max_tokens":9}"#;
        assert!(question(picture.as_bytes()).is_err());
    }

    #[test]
    fn pieces_that_are_another_text_are_no_answer() {
        let byline = ResponseMeta { id: "i".to_owned(), model: "m".into(), created: 1 };
        let mut speech = ChatResponder::new(byline);
        assert!(speech.piece("other").is_some());
        let done = LocalModelCompletion {
            text: "one".to_owned(),
            calls: Vec::new(),
            finish: LocalModelFinishReason::Stop,
            prompt_tokens: 1,
            cached_tokens: 0,
            completion_tokens: 1,
            first_token_ms: 0,
            total_ms: 0,
        };
        assert!(matches!(speech.end(&done), Err(LocalModelError::Protocol { .. })));
    }
}
