//! A model that answers whatever it is asked, once: each message that it is shown gets
//! a command and a reply, and what did not begin is begun again. It remembers nothing:
//! all that it knows is in the request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

/// Tokens that each answer is said to have.
pub(super) const ANSWER_TOKENS: u64 = 100;

/// Calls of one answer: more are not run in one turn.
const CALLS_MAX: usize = 10;

/// What stands in one message, and nowhere else.
pub(super) fn mark(number: u32) -> String {
    format!("[Q{number:05}]")
}

/// Serves for as long as the process lives; where.
pub(super) fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            // Whoever asks may be killed at any moment.
            std::thread::spawn(move || answer(stream).ok());
        }
    });
    url
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut length, mut line) = (0, String::new());
    while reader.read_line(&mut line)? > 2 {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let pieces: String = reply(&request).iter().map(|it| format!("data: {it}\n\n")).collect();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
         {pieces}data: [DONE]\n\n"
    )
}

/// The pieces of an answer.
fn reply(request: &Value) -> [Value; 3] {
    let messages = request["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let call = |(nth, (name, arguments)): (usize, (String, String))| {
        json!({ "index": nth, "id": format!("c{nth}"), "type": "function",
            "function": { "name": name, "arguments": arguments } })
    };
    let calls: Vec<Value> = wanted(messages).into_iter().enumerate().map(call).collect();
    let (text, end) =
        if calls.is_empty() { ("I rest.", "stop") } else { ("I answer.", "tool_calls") };
    let mut said = json!({ "role": "assistant", "content": text });
    if !calls.is_empty() {
        said["tool_calls"] = calls.into();
    }
    let piece = |choices: Value| {
        json!({ "id": "a", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": choices })
    };
    let mut last = piece(json!([]));
    last["usage"] = json!({ "prompt_tokens": 100, "completion_tokens": ANSWER_TOKENS,
        "total_tokens": 100 + ANSWER_TOKENS });
    [
        piece(json!([{ "index": 0, "delta": said, "finish_reason": null }])),
        piece(json!([{ "index": 0, "delta": {}, "finish_reason": end }])),
        last,
    ]
}

/// The calls that are to be made: for each message those that were not made yet, or that
/// did not begin.
fn wanted(messages: &[Value]) -> Vec<(String, String)> {
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    let by = |role: &'static str| messages.iter().filter(move |message| message["role"] == role);
    let began = |id: &Value| {
        let result = by("tool").find(|message| message["tool_call_id"] == *id).map(text);
        result.is_none_or(|result| !["Not started", "Not run"].iter().any(|it| result.contains(it)))
    };
    let calls = by("assistant").filter_map(|message| message["tool_calls"].as_array()).flatten();
    let made: Vec<&Value> = calls.filter(|call| began(&call["id"])).collect();
    let is_made = |tool: &str, mark: &str| {
        made.iter().map(|call| &call["function"]).any(|function| {
            function["name"] == tool
                && function["arguments"].as_str().is_some_and(|text| text.contains(mark))
        })
    };
    let mut wanted = Vec::new();
    for mark in by("user").flat_map(|message| marks(&unframed(&text(message)))) {
        let command = json!({ "command": format!("echo '{mark}' >> ran") });
        let content = format!("{mark} It is well.");
        let answer = json!({ "to_address": "creator", "content": content });
        let calls = [("exec", command), ("send_message", answer)];
        let calls = calls.into_iter().filter(|(tool, _)| !is_made(tool, &mark));
        wanted.extend(calls.map(|(tool, arguments)| (tool.to_owned(), arguments.to_string())));
    }
    wanted.truncate(CALLS_MAX);
    wanted
}

/// A text without what it shows as data: what is remembered and what became of older
/// turns is no order.
fn unframed(text: &str) -> String {
    let (mut said, mut is_data) = (String::new(), false);
    for line in text.lines() {
        is_data |= line.starts_with("[data ");
        if !is_data {
            said.extend([line, "\n"]);
        }
        is_data &= !line.starts_with("[/data ");
    }
    said
}

/// The marks in a text.
fn marks(text: &str) -> Vec<String> {
    let starts = text.match_indices("[Q").map(|(at, _)| at);
    starts.filter_map(|at| text.get(at..at + mark(0).len()).map(str::to_owned)).collect()
}
