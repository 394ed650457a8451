//! Pure: an answer in the chat-completions format, complete or in pieces.
//!
//! The pieces are small and cut words and JSON anywhere, as real servers do. Tokens are
//! estimated: four characters make one.

use automaton_core::wire::chat::{
    CalledFunction, ChatCall, ChatChoice, ChatChunk, ChatMessage, ChatRequest, ChatResponse,
    ChatRole, ChatUsage, ChunkCall, ChunkChoice, ChunkDelta, ChunkFunction, FunctionKind,
};

use super::MODEL;
use crate::story::ScriptedAnswer;

/// The model's name and the usage of a reply.
pub type ReplyMeta<'a> = (&'a str, ChatUsage);

/// The characters of one piece of text or arguments. Odd, so that pairs are cut.
const PIECE_CHARS: usize = 13;

/// Returns the body of a reply in the pieces in which it is sent: one event each if the request
/// asks for a stream, otherwise two halves of one document.
pub(super) fn script_pieces(
    request: &ChatRequest,
    answer: &ScriptedAnswer,
) -> Result<Vec<String>, serde_json::Error> {
    pieces((MODEL, usage(request, answer)), request, answer)
}

/// Returns the pieces of a reply by another model.
///
/// # Errors
/// Fails if the answer cannot be written as JSON.
pub fn pieces(
    by: ReplyMeta<'_>,
    request: &ChatRequest,
    answer: &ScriptedAnswer,
) -> Result<Vec<String>, serde_json::Error> {
    if !request.stream {
        let mut text = serde_json::to_string(&response(by, answer))?;
        let mut middle = text.len() / 2;
        while !text.is_char_boundary(middle) {
            middle += 1;
        }
        let rest = text.split_off(middle);
        return Ok(vec![text, rest]);
    }
    let wanted = request.stream_options.is_some_and(|options| options.include_usage);
    let chunks = chunks(by, answer, wanted);
    let event = |chunk| Ok(format!("data: {}\n\n", serde_json::to_string(&chunk)?));
    let mut events = chunks.into_iter().map(event).collect::<Result<Vec<_>, _>>()?;
    events.push("data: [DONE]\n\n".to_owned());
    Ok(events)
}

/// Returns a body that is not a valid reply.
pub(super) fn garbage(request: &ChatRequest) -> String {
    let broken = r#"{"choices": [{"delta": "#;
    if request.stream { format!("data: {broken}\n\n") } else { broken.to_owned() }
}

fn usage(request: &ChatRequest, answer: &ScriptedAnswer) -> ChatUsage {
    let read = request.messages.iter().map(|message| {
        let calls = message.tool_calls.iter().flatten();
        let called = calls.map(|call| chars(&call.function.name) + chars(&call.function.arguments));
        chars(message.content.as_deref().unwrap_or_default()) + called.sum::<usize>()
    });
    let calls = answer.calls.iter().map(|call| chars(&call.tool) + chars(&call.arguments));
    let prompt_tokens = tokens(read.sum());
    let completion_tokens = tokens(chars(&answer.text) + calls.sum::<usize>());
    ChatUsage {
        prompt_tokens,
        completion_tokens,
        total_tokens: prompt_tokens.saturating_add(completion_tokens),
        prompt_tokens_details: None,
        first_token_ms: None,
        estimated: false,
    }
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

fn tokens(chars: usize) -> u32 {
    u32::try_from(chars.div_ceil(4)).unwrap_or(u32::MAX)
}

fn finish_reason(answer: &ScriptedAnswer) -> Option<String> {
    let reason = if answer.calls.is_empty() { "stop" } else { "tool_calls" };
    Some(reason.to_owned())
}

fn response((model, usage): ReplyMeta<'_>, answer: &ScriptedAnswer) -> ChatResponse {
    let calls = answer.calls.iter().map(|call| ChatCall {
        id: call.id.clone(),
        kind: FunctionKind::Function,
        function: CalledFunction { name: call.tool.clone(), arguments: call.arguments.clone() },
    });
    let message = ChatMessage {
        role: ChatRole::Assistant,
        content: (!answer.text.is_empty()).then(|| answer.text.clone()),
        tool_calls: (!answer.calls.is_empty()).then(|| calls.collect()),
        tool_call_id: None,
    };
    ChatResponse {
        id: "chatcmpl-script".to_owned(),
        object: "chat.completion".to_owned(),
        created: 0,
        model: model.to_owned(),
        choices: vec![ChatChoice { index: 0, message, finish_reason: finish_reason(answer) }],
        usage: Some(usage),
    }
}

fn chunks(
    (model, usage): ReplyMeta<'_>,
    answer: &ScriptedAnswer,
    with_usage: bool,
) -> Vec<ChatChunk> {
    let mut deltas = vec![ChunkDelta { role: Some(ChatRole::Assistant), ..ChunkDelta::default() }];
    for piece in split_text(&answer.text) {
        deltas.push(ChunkDelta { content: Some(piece), ..ChunkDelta::default() });
    }
    for (index, call) in (0_u32..).zip(&answer.calls) {
        let name = ChunkFunction { name: Some(call.tool.clone()), arguments: Some(String::new()) };
        deltas.push(call_delta(ChunkCall {
            index,
            id: Some(call.id.clone()),
            kind: Some(FunctionKind::Function),
            function: name,
        }));
        for piece in split_text(&call.arguments) {
            let function = ChunkFunction { name: None, arguments: Some(piece) };
            deltas.push(call_delta(ChunkCall { index, function, ..ChunkCall::default() }));
        }
    }
    let mut choices: Vec<ChunkChoice> = deltas
        .into_iter()
        .map(|delta| ChunkChoice { index: 0, delta, finish_reason: None })
        .collect();
    let delta = ChunkDelta::default();
    choices.push(ChunkChoice { index: 0, delta, finish_reason: finish_reason(answer) });
    let chunk = |choices, usage| ChatChunk {
        id: "chatcmpl-script".to_owned(),
        object: "chat.completion.chunk".to_owned(),
        created: 0,
        model: model.to_owned(),
        choices,
        usage,
    };
    let mut chunks: Vec<ChatChunk> =
        choices.into_iter().map(|choice| chunk(vec![choice], None)).collect();
    if with_usage {
        chunks.push(chunk(Vec::new(), Some(usage)));
    }
    chunks
}

fn call_delta(call: ChunkCall) -> ChunkDelta {
    ChunkDelta { tool_calls: Some(vec![call]), ..ChunkDelta::default() }
}

/// Splits a text into pieces of [`PIECE_CHARS`] characters.
fn split_text(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(PIECE_CHARS).map(|piece| piece.iter().collect()).collect()
}
