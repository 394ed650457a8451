//! Properties of all formats: one answer, whatever format carries it and however it is cut, and
//! one outcome for each malformed answer (the table of `docs/models.md`).

use proptest::prelude::*;
use serde_json::{Value, json};

use super::assemble::{AssembledReply, Assembler, AssemblyError};
use super::inline_thoughts::BareEnds;
use super::{ApiFormat, FrameError, ReplyFrames};
use crate::provider::{FinishReason, NoTokenSink, RawCall};
use ApiFormat::{AnthropicMessages, ChatCompletions, Gemini, Ollama, Responses};

/// The same answer in each format.
const STREAMS: [(ApiFormat, &str); 5] = [
    (ChatCompletions, include_str!("../../../tests/streams/chat_completions.txt")),
    (AnthropicMessages, include_str!("../../../tests/streams/anthropic_messages.txt")),
    (Responses, include_str!("../../../tests/streams/responses.txt")),
    (Ollama, include_str!("../../../tests/streams/ollama.txt")),
    (Gemini, include_str!("../../../tests/streams/gemini.txt")),
];

/// Returns the outcome of a stream that is cut in this way.
fn heard<'a>(
    format: ApiFormat,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<AssembledReply, AssemblyError> {
    let mut frames = ReplyFrames::default();
    let mut reader = format.reader();
    let mut assembler = Assembler::new(BareEnds::HeldBack);
    let unframed = |error: FrameError| match error {
        FrameError::Cut => AssemblyError::Cut,
        other => AssemblyError::NoReply(other.to_string()),
    };
    for piece in pieces {
        for data in frames.push(piece).map_err(unframed)? {
            if assembler.add_piece(reader.piece(&data)?, &NoTokenSink)? {
                return assembler.finish();
            }
        }
    }
    for data in frames.finish().map_err(unframed)? {
        if assembler.add_piece(reader.piece(&data)?, &NoTokenSink)? {
            break;
        }
    }
    assembler.finish()
}

fn told(format: ApiFormat, stream: &str) -> Result<AssembledReply, AssemblyError> {
    heard(format, [stream.as_bytes()])
}

fn call(id: Option<&str>, tool: &str, arguments: &str) -> RawCall {
    let tool = tool.to_owned();
    let arguments = arguments.to_owned();
    RawCall { provider_id: id.map(str::to_owned), tool, arguments }
}

#[test]
fn all_formats_tell_the_same() {
    let calls =
        [call(Some("call_0"), "exec", r#"{"command":"ls"}"#), call(Some("call_1"), "sleep", "{}")];
    for (format, stream) in STREAMS {
        let reply = told(format, stream).unwrap();
        let said = (reply.text.as_str(), reply.finish, reply.model.as_str());
        assert_eq!(said, ("Grüß dich", FinishReason::ToolCalls, "model-x"), "{format:?}");
        assert_eq!(reply.calls, calls, "{format:?}");
        let usage = reply.usage.unwrap();
        let cached = usage.prompt_tokens_details.unwrap_or_default().cached_tokens;
        let counts = (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens);
        assert_eq!(counts, (100, 10, 110), "{format:?}");
        // Ollama does not say.
        assert_eq!(cached, if format == Ollama { 0 } else { 40 }, "{format:?}");
    }
}

#[test]
fn a_stream_is_the_same_wherever_it_is_cut_and_none_where_it_ends_early() {
    for (format, stream) in STREAMS {
        let bytes = stream.as_bytes();
        let whole = told(format, stream);
        let crlf = stream.replace('\n', "\r\n");
        assert_eq!(told(format, &crlf), whole, "{format:?}");
        for at in 0..bytes.len() {
            let (first, rest) = bytes.split_at(at);
            assert_eq!(heard(format, [first, rest]), whole, "{format:?} at {at}");
            let cut = heard(format, [first]);
            if let Ok(reply) = cut {
                // Only the counts, or the mark of the end, lack then.
                assert_eq!(Some(&reply.calls), whole.as_ref().ok().map(|it| &it.calls), "{at}");
                assert!(bytes.len() - at < 320, "{format:?} at {at} of {}", bytes.len());
            }
        }
        for size in 1..9 {
            assert_eq!(heard(format, bytes.chunks(size)), whole, "{format:?} {size}");
        }
    }
}

#[test]
fn a_whole_document_is_the_same_answer() {
    let usage = json!({"input_tokens": 7, "output_tokens": 2});
    let output = json!([{"type": "reasoning", "summary": []},
        {"type": "message", "content": [{"type": "output_text", "text": "Hi"}]},
        {"type": "function_call", "call_id": "c", "name": "exec", "arguments": "{\"a\":1}"}]);
    let part = json!({"functionCall": {"id": "c", "name": "exec", "args": {"a": 1}}});
    let parts = json!({"role": "model", "parts": [{"text": "Hi"}, part]});
    let counts = json!({"promptTokenCount": 7, "candidatesTokenCount": 2});
    let function = json!({"name": "exec", "arguments": {"a": 1}});
    let message = json!({"role": "assistant", "content": "Hi",
        "tool_calls": [{"id": "c", "function": function}]});
    let blocks = json!([{"type": "text", "text": "Hi"},
        {"type": "tool_use", "id": "c", "name": "exec", "input": {"a": 1}}]);
    for (format, document) in [
        (
            ChatCompletions,
            json!({"id": "r", "model": "m", "usage":
            {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9},
            "choices": [{"message": message, "finish_reason": "tool_calls"}]}),
        ),
        (
            AnthropicMessages,
            json!({"id": "r", "type": "message", "model": "m", "content": blocks,
            "stop_reason": "tool_use", "usage": usage}),
        ),
        (
            Responses,
            json!({"id": "r", "object": "response", "status": "completed", "model": "m",
            "error": null, "output": output, "usage": usage}),
        ),
        (
            Ollama,
            json!({"model": "m", "message": message, "done": true, "done_reason": "stop",
            "prompt_eval_count": 7, "eval_count": 2}),
        ),
        (
            Gemini,
            json!({"candidates": [{"content": parts, "finishReason": "STOP"}],
            "usageMetadata": counts, "modelVersion": "m"}),
        ),
    ] {
        let reply = format.reader().document(&document.to_string()).unwrap();
        let choice = &reply.choices[0];
        assert_eq!(choice.message.content.as_deref(), Some("Hi"), "{format:?}");
        let function = &choice.message.tool_calls.as_ref().unwrap()[0].function;
        let called = (function.name.as_str(), function.arguments.as_str());
        assert_eq!(called, ("exec", "{\"a\":1}"), "{format:?}");
        assert_eq!(choice.finish_reason.as_deref(), Some("tool_calls"), "{format:?}");
        assert_eq!(reply.usage.map(|it| it.total_tokens), Some(9), "{format:?}");
        assert_eq!(reply.model, "m", "{format:?}");
        for none in ["{}", "[]", "nothing", ""] {
            assert!(format.reader().document(none).is_err(), "{format:?} {none}");
        }
    }
}

/// An answer that is being written in a format.
struct Script {
    format: ApiFormat,
    stream: String,
    blocks: usize,
}

impl Script {
    fn of(format: ApiFormat) -> Self {
        let mut script = Self { format, stream: String::new(), blocks: 0 };
        match format {
            AnthropicMessages => script.say(&json!({"type": "message_start", "message": {}})),
            Responses => script.say(&json!({"type": "response.created", "response": {}})),
            ChatCompletions | Ollama | Gemini => {}
        }
        script
    }

    fn say(&mut self, event: &Value) {
        self.raw(&event.to_string());
    }

    fn raw(&mut self, data: &str) {
        self.stream += &match self.format {
            Ollama => format!("{data}\n"),
            _ => format!("data: {data}\n\n"),
        };
    }

    fn text(mut self, text: &Value) -> Self {
        let at = self.blocks;
        self.blocks += 1;
        let event = match self.format {
            ChatCompletions => json!({"choices": [{"delta": {"content": text}}]}),
            Ollama => json!({"message": {"content": text}, "done": false}),
            Gemini => json!({"candidates": [{"content": {"parts": [{"text": text}]}}]}),
            Responses => {
                json!({"type": "response.output_text.delta", "output_index": at, "delta": text})
            }
            AnthropicMessages => {
                let block = json!({"type": "text", "text": ""});
                self.say(&json!({"type": "content_block_start", "index": at,
                    "content_block": block}));
                let delta = json!({"type": "text_delta", "text": text});
                json!({"type": "content_block_delta", "index": at, "delta": delta})
            }
        };
        self.say(&event);
        self
    }

    fn call(mut self, id: Option<&str>, name: &str, arguments: &Value) -> Self {
        let at = self.blocks;
        self.blocks += 1;
        let event = match self.format {
            ChatCompletions => {
                let function = json!({"name": name, "arguments": arguments});
                let call = json!({"index": at, "id": id, "function": function});
                json!({"choices": [{"delta": {"tool_calls": [call]}}]})
            }
            Ollama => {
                let call = json!({"id": id, "function": {"name": name, "arguments": arguments}});
                json!({"message": {"content": "", "tool_calls": [call]}, "done": false})
            }
            Gemini => {
                let call = json!({"functionCall": {"id": id, "name": name, "args": arguments}});
                json!({"candidates": [{"content": {"parts": [call]}}]})
            }
            Responses => {
                let item = json!({"type": "function_call", "call_id": id, "name": name,
                    "arguments": arguments});
                json!({"type": "response.output_item.done", "output_index": at, "item": item})
            }
            AnthropicMessages => {
                let block = json!({"type": "tool_use", "id": id, "name": name, "input": arguments});
                json!({"type": "content_block_start", "index": at, "content_block": block})
            }
        };
        self.say(&event);
        self
    }

    fn end(mut self, usage: &Value) -> Self {
        let event = match self.format {
            ChatCompletions => {
                self.say(&json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}));
                self.say(&json!({"choices": [], "usage": usage}));
                self.raw("[DONE]");
                return self;
            }
            Ollama => {
                let mut last = json!({"message": {"content": ""}, "done": true,
                    "done_reason": "stop"});
                for name in ["prompt_eval_count", "eval_count"] {
                    last[name] = usage[name].clone();
                }
                last
            }
            Gemini => json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": usage}),
            Responses => {
                let response = json!({"status": "completed", "output": [], "usage": usage});
                json!({"type": "response.completed", "response": response})
            }
            AnthropicMessages => {
                let delta = json!({"stop_reason": "end_turn"});
                self.say(&json!({"type": "message_delta", "delta": delta, "usage": usage}));
                json!({"type": "message_stop"})
            }
        };
        self.say(&event);
        self
    }

    fn told(&self) -> Result<AssembledReply, AssemblyError> {
        told(self.format, &self.stream)
    }
}

const FORMATS: [ApiFormat; 5] = [ChatCompletions, AnthropicMessages, Responses, Ollama, Gemini];

#[test]
fn what_is_strange_but_clear_is_an_answer() {
    let none = Value::Null;
    let arguments = json!({"a": 1});
    for format in FORMATS {
        let script = || Script::of(format);
        let ok =
            |script: Script| script.told().unwrap_or_else(|flaw| panic!("{format:?} {flaw:?}"));
        let empty = ok(script().end(&none));
        assert_eq!((empty.text.as_str(), empty.calls.len()), ("", 0), "{format:?}: empty");
        assert_eq!(empty.finish, FinishReason::Stop, "{format:?}: empty");
        let unknown = ok(script().call(Some("c"), "no_such_tool", &arguments).end(&none));
        assert_eq!(unknown.calls, [call(Some("c"), "no_such_tool", "{\"a\":1}")], "{format:?}");
        assert_eq!(unknown.finish, FinishReason::ToolCalls, "{format:?}: an ordinary end");
        for id in [Some("same"), Some(""), None] {
            let twice = script().call(id, "exec", &arguments).call(id, "exec", &arguments);
            let id = id.filter(|id| !id.is_empty());
            let wanted = call(id, "exec", "{\"a\":1}");
            assert_eq!(ok(twice.end(&none)).calls, [wanted.clone(), wanted], "{format:?} {id:?}");
        }
        let bare = ok(script().call(None, "", &json!({})).end(&none));
        assert_eq!((bare.calls.len(), bare.calls[0].tool.as_str()), (1, ""), "{format:?}");
        for usage in [
            json!(null),
            json!("many"),
            json!({"input_tokens": -5, "output_tokens": "x",
            "prompt_tokens": -5, "promptTokenCount": 1.5, "prompt_eval_count": []}),
        ] {
            let counted = ok(script().text(&json!("a")).end(&usage));
            assert_eq!((counted.text.as_str(), counted.usage), ("a", None), "{format:?} {usage}");
        }
        if format != AnthropicMessages {
            let many = ok(script().text(&json!("a")).end(&json!({"x": 1})));
            assert_eq!(many.usage.map(|it| it.prompt_tokens).unwrap_or(0), 0);
        }
        let mut news = script().text(&json!("a"));
        news.say(&json!({"type": "from.the.future", "what": [1e300]}));
        news.raw(r#"{"type":"another","number":1e999}"#);
        if format != Ollama {
            news.stream += ": keep alive\n\n\n";
        } else {
            news.stream += "\n\r\n";
        }
        assert_eq!(ok(news.end(&none)).text, "a", "{format:?}");
    }
    // Servers that number no item, and give it no id.
    let mut bare = Script::of(Responses);
    for n in 0..2 {
        let item = |arguments: &str| {
            json!({"type": "function_call", "name": "exec",
            "arguments": arguments})
        };
        bare.say(&json!({"type": "response.output_item.added", "item": item("")}));
        let more = format!("{{\"n\":{n}}}");
        bare.say(&json!({"type": "response.function_call_arguments.delta", "delta": more}));
        bare.say(&json!({"type": "response.output_item.done", "item": item(&more)}));
    }
    let calls = bare.end(&none).told().unwrap().calls;
    assert_eq!(calls, [call(None, "exec", "{\"n\":0}"), call(None, "exec", "{\"n\":1}")]);
    for format in [ChatCompletions, Ollama] {
        let parts = json!([{"type": "text", "text": "a"}, "b", {"type": "image"}]);
        let reply = Script::of(format).text(&parts).end(&Value::Null).told().unwrap();
        assert_eq!(reply.text, "ab", "{format:?}");
    }
}

#[test]
fn what_is_no_answer_is_never_taken_for_one() {
    let none = Value::Null;
    let arguments = json!({"a": 1});
    for format in FORMATS {
        let script = || Script::of(format).text(&json!("Well"));
        for broken in ["{", "[]", "7", "\"text\"", "<html>", "{\"choices\":[}", "nul"] {
            let mut script = script();
            script.raw(broken);
            let flaw = script.end(&none).told().unwrap_err();
            // A document that never closes may be one that is cut off.
            let is_cut = format == Ollama && flaw == AssemblyError::Cut;
            let is_refused = is_cut || matches!(flaw, AssemblyError::NoReply(_));
            assert!(is_refused, "{format:?} {broken}: {flaw:?}");
        }
        let cut = [script(), script().call(Some("c"), "exec", &arguments)];
        for script in cut {
            assert_eq!(script.told(), Err(AssemblyError::Cut), "{format:?}");
        }
        assert!(matches!(told(format, ""), Err(AssemblyError::NoReply(_))), "{format:?}");
        let endless = json!("x".repeat(1 << 19));
        let script = (0..9).fold(script(), |script, _| script.text(&endless));
        assert!(matches!(script.told(), Err(AssemblyError::NoReply(_))), "{format:?}");
        let many = |count| {
            let script = Script::of(format);
            let script = (0..count).fold(script, |it, _| it.call(None, "exec", &arguments));
            script.end(&none).told()
        };
        assert_eq!(many(128).unwrap().calls.len(), 128, "{format:?}");
        assert!(matches!(many(300), Err(AssemblyError::NoReply(_))), "{format:?}");
        let mut failing = Script::of(format).text(&json!("half"));
        failing.say(&json!({"type": "error", "error": {"type": "overloaded_error",
            "message": "Overloaded"}}));
        let flaw = failing.end(&none).told().unwrap_err();
        let is_told = matches!(&flaw, AssemblyError::Failed(said) if said.text == "Overloaded");
        assert!(is_told, "{format:?}: {flaw:?}");
    }
    for (format, event) in [
        (Ollama, json!({"error": "an error was encountered while running the model"})),
        (Responses, json!({"type": "error", "code": "server_error", "message": "sorry"})),
        (
            Responses,
            json!({"type": "response.failed", "response": {"status": "failed",
            "error": {"code": "server_error", "message": "sorry"}}}),
        ),
        (Responses, json!({"type": "response.failed", "response": {}})),
        (Gemini, json!({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]})),
        (Gemini, json!({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}})),
    ] {
        let mut script = Script::of(format).text(&json!("half"));
        script.say(&event);
        let flaw = script.end(&none).told().unwrap_err();
        let is_told = matches!(&flaw, AssemblyError::Failed(said) if !said.text.is_empty());
        assert!(is_told, "{format:?}: {flaw:?}");
    }
}

#[test]
fn each_end_has_its_reason() {
    let response = |status: &str, reason: Value| {
        let response = json!({"status": status, "output": [], "incomplete_details": reason});
        json!({"type": format!("response.{status}"), "response": response})
    };
    for (format, event, wanted) in [
        (Responses, response("completed", json!(null)), FinishReason::Stop),
        (
            Responses,
            response("incomplete", json!({"reason": "max_output_tokens"})),
            FinishReason::Length,
        ),
        (
            Responses,
            response("incomplete", json!({"reason": "content_filter"})),
            FinishReason::Filtered,
        ),
        (Ollama, json!({"done": true}), FinishReason::Stop),
        (Ollama, json!({"done": true, "done_reason": "load"}), FinishReason::Stop),
        (Ollama, json!({"done": true, "done_reason": "length"}), FinishReason::Length),
        (Gemini, json!({"candidates": [{"finishReason": "MAX_TOKENS"}]}), FinishReason::Length),
        (Gemini, json!({"candidates": [{"finishReason": "SAFETY"}]}), FinishReason::Filtered),
        (Gemini, json!({"candidates": [{"finishReason": "OTHER"}]}), FinishReason::Stop),
        (
            Gemini,
            json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}),
            FinishReason::Filtered,
        ),
    ] {
        let mut script = Script::of(format);
        script.say(&event);
        assert_eq!(script.told().unwrap().finish, wanted, "{event}");
    }
}

/// A stream with a half of a character at each `@H` and its other half at each `@L`.
fn with_halves(script: &Script, high: &[u8], low: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = script.stream.as_str();
    while let Some((before, after)) = rest.split_once('@') {
        bytes.extend_from_slice(before.as_bytes());
        bytes.extend_from_slice(if after.starts_with('H') { high } else { low });
        rest = &after[1..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

#[test]
fn half_a_character_is_joined_with_its_other_half_in_every_format() {
    for format in FORMATS {
        let script = Script::of(format)
            .text(&json!("Five @H"))
            .text(&json!("@L six @L seven"))
            .call(Some("c"), "exec", &json!({"a": "b @H@L c @H d"}))
            .end(&Value::Null);
        let stream = with_halves(&script, br"\ud83d", br"\ude00");
        for size in [1, 3, stream.len()] {
            let reply = heard(format, stream.chunks(size)).unwrap();
            assert_eq!(reply.text, "Five \u{1F600} six \u{FFFD} seven", "{format:?}");
            let arguments = "{\"a\":\"b \u{1F600} c \u{FFFD} d\"}";
            assert_eq!(reply.calls, [call(Some("c"), "exec", arguments)], "{format:?}");
        }
        let script = Script::of(format)
            .text(&json!("Five @H"))
            .text(&json!("@L six @L seven"))
            .call(Some("c"), "exec", &json!({"a": "b @H@L c"}))
            .end(&Value::Null);
        let stream = with_halves(&script, b"\xF0\x9F", b"\x98\x80");
        let reply = heard(format, stream.chunks(7)).unwrap();
        assert_eq!(reply.text, "Five \u{1F600} six \u{FFFD}\u{FFFD} seven", "{format:?}");
        assert_eq!(reply.calls[0].arguments, "{\"a\":\"b \u{1F600} c\"}", "{format:?}");
        // Nobody knows what such a call would do.
        let script = Script::of(format).call(Some("c"), "exec", &json!({"a": "rm @H x"}));
        let lost = heard(format, [&*with_halves(&script.end(&Value::Null), b"\xE9", b"")]);
        assert!(matches!(lost, Err(AssemblyError::NoReply(_))), "{format:?}: {lost:?}");
    }
}

#[test]
fn arguments_in_pieces_keep_the_character_that_was_cut_in_two() {
    let piece = |arguments: &str| {
        let function = json!({"name": if arguments.starts_with('{') { "exec" } else { "" },
            "arguments": arguments});
        json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": function}]}}]})
    };
    let mut script = Script::of(ChatCompletions);
    for arguments in [r#"{"command":"rm -rf build"#, "/old # tidy @H", "@L", r#"""#, "}"] {
        script.say(&piece(arguments));
    }
    let script = script.end(&Value::Null);
    let reply = heard(ChatCompletions, [&*with_halves(&script, br"\ud83e", br"\uddf9")]).unwrap();
    let wanted = "{\"command\":\"rm -rf build/old # tidy \u{1F9F9}\"}";
    assert_eq!(reply.calls, [call(None, "exec", wanted)]);
}

#[test]
fn thoughts_in_the_text_are_no_words_in_any_format() {
    for format in FORMATS {
        for texts in [
            ["<think>\nplan", "\n</think>\n\n", "It is noon."],
            ["<thi", "nk>plan</THINK>It", " is noon."],
            ["plan\n</thi", "nk>\n", "\nIt is noon."],
        ] {
            let script = texts.iter().fold(Script::of(format), |it, text| it.text(&json!(text)));
            let reply = script.end(&Value::Null).told().unwrap();
            assert_eq!(
                (reply.text.as_str(), reply.thought_chars > 0),
                ("It is noon.", true),
                "{format:?}"
            );
        }
        let alone = Script::of(format).text(&json!("<think>plan</think>")).end(&Value::Null);
        assert_eq!(alone.told().unwrap().text, "", "{format:?}");
    }
}

#[test]
fn an_end_that_means_a_failure_is_none_in_any_format() {
    let response = |status: &str, reason: Value| {
        let details = json!({ "reason": reason });
        let response = json!({"status": status, "output": [], "incomplete_details": details});
        json!({"type": "response.incomplete", "response": response})
    };
    for (format, event) in [
        (ChatCompletions, json!({"choices": [{"delta": {}, "finish_reason": "network_error"}]})),
        (ChatCompletions, json!({"choices": [{"delta": {}, "finish_reason": {"type": "abort"}}]})),
        (ChatCompletions, json!({"choices": [{"delta": {}, "error": {"message": "m"}}]})),
        (AnthropicMessages, json!({"type": "message_delta", "delta": {"stop_reason": "timeout"}})),
        (Responses, response("incomplete", json!("server_error"))),
        (Ollama, json!({"done": true, "done_reason": "aborted"})),
        (Gemini, json!({"candidates": [{"finishReason": "TOO_MANY_TOOL_CALLS"}]})),
    ] {
        let mut script = Script::of(format).call(Some("c"), "exec", &json!({"a": 1}));
        script.say(&event);
        let flaw = script.end(&Value::Null).told().unwrap_err();
        assert!(matches!(flaw, AssemblyError::Failed(_)), "{format:?}: {flaw:?}");
    }
}

#[test]
fn arguments_of_responses_are_taken_once_however_often_they_are_told() {
    let whole = r#"{"a":1}"#;
    let item = |arguments: &str| {
        json!({"id": "f", "type": "function_call", "call_id": "c", "name": "exec",
            "arguments": arguments})
    };
    let of = |added: &str, deltas: &[&str], done: &str| {
        let mut script = Script::of(Responses);
        script.say(&json!({"type": "response.output_item.added", "output_index": 0,
            "item": item(added)}));
        for delta in deltas {
            // An event may name the item without its place.
            script.say(&json!({"type": "response.function_call_arguments.delta",
                "item_id": "f", "delta": delta}));
        }
        script.say(&json!({"type": "response.output_item.done", "output_index": 0,
            "item": item(done)}));
        script.end(&Value::Null).told().unwrap().calls
    };
    for (added, deltas) in
        [("{}", &["{\"a\"", ":1}"][..]), ("{}", &[]), ("", &[]), (whole, &[]), ("", &["{\"a\""])]
    {
        assert_eq!(
            of(added, deltas, whole),
            [call(Some("c"), "exec", whole)],
            "{added} {deltas:?}"
        );
    }
    assert_eq!(of("{}", &[], "{}"), [call(Some("c"), "exec", "{}")]);
    let differs = of("", &[whole], r#"{"a":2}"#);
    assert_eq!(differs[0].arguments, r#"{"a":1}{"a":2}"#, "which is no call");
    let mut lost = Script::of(Responses);
    lost.say(&json!({"type": "response.function_call_arguments.delta", "item_id": "f",
        "delta": whole}));
    assert!(matches!(lost.end(&Value::Null).told(), Err(AssemblyError::NoReply(_))));
}

proptest! {
    #[test]
    fn no_event_is_a_panic(data in ".{0,120}", place in 0_usize..40, cut in 0_usize..400) {
        for (format, stream) in STREAMS {
            let events: Vec<&str> = stream.lines().filter(|it| it.contains('{')).collect();
            let event = events[place % events.len()].trim_start_matches("data: ");
            let cut = event.floor_char_boundary(cut.min(event.len()));
            let mut reader = format.reader();
            let mut assembler = Assembler::new(BareEnds::HeldBack);
            for data in [&*data, &event[..cut], &format!("{}{data}{}", &event[..cut], &event[cut..])] {
                if let Ok(piece) = reader.piece(data) {
                    drop(assembler.add_piece(piece, &NoTokenSink));
                }
            }
            drop(assembler.finish());
        }
    }
}
