//! Tests of the scripted model over HTTP.

use std::net::SocketAddr;
use std::time::Duration;

use automaton_core::wire::chat::{ChatChunk, ChatResponse};
use automaton_script::model::{ScriptServer, StoryProgress};
use automaton_script::story::Story;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const STORY: &str = r#"
title = "a test"
[[step]]
say = "I look around, wherever that may be."
faults = []
[[step.call]]
tool = "exec"
arguments = { command = "ls -la; echo 'ä ö ü'" }
[[step.call]]
tool = "sleep"
[[step]]
expect.result.exec = "ok"
say = "Done."
"#;

const QUESTION: &str = r#"{"role":"user","content":"Wake, 17 chars!!"}"#;

/// Long enough for a loaded machine, short enough for a hanging test.
const LIMIT: Duration = Duration::from_secs(10);

async fn serve(story: &str) -> ScriptServer {
    ScriptServer::start(Story::parse("s.toml", story).unwrap()).await.unwrap()
}

/// Sends a request and reads until the server closes. The body is still in HTTP/1.1 chunks.
async fn exchange(address: SocketAddr, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!(
        "{head} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut reply = Vec::new();
    timeout(LIMIT, stream.read_to_end(&mut reply)).await.unwrap().unwrap();
    String::from_utf8(reply).unwrap()
}

fn body_of(reply: &str) -> (u16, String) {
    let (head, rest) = reply.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    if !head.contains("transfer-encoding: chunked") {
        return (status, rest.to_owned());
    }
    let mut rest = rest.as_bytes();
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        body.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 2 + size + 2..];
    }
    (status, String::from_utf8(body).unwrap())
}

async fn ask(server: &ScriptServer, messages: &str, options: &str) -> (u16, String) {
    let body = format!(r#"{{"model":"script","messages":[{messages}]{options}}}"#);
    body_of(&exchange(server.address(), "POST /v1/chat/completions", &body).await)
}

fn chunks(body: &str) -> Vec<ChatChunk> {
    let mut events: Vec<&str> = body.split("\n\n").filter(|event| !event.is_empty()).collect();
    assert_eq!(events.pop(), Some("data: [DONE]"));
    events.iter().map(|event| serde_json::from_str(&event["data: ".len()..]).unwrap()).collect()
}

/// Returns the conversation after the first answer, with the agent's own ids.
fn second_question() -> String {
    format!(
        r#"{QUESTION},{{"role":"assistant","content":"I look around, wherever that may be.","tool_calls":[
        {{"id":"A","type":"function","function":{{"name":"exec","arguments":"{{}}"}}}},
        {{"id":"B","type":"function","function":{{"name":"sleep","arguments":"{{}}"}}}}]}},
        {{"role":"tool","tool_call_id":"A","content":"ok"}},
        {{"role":"tool","tool_call_id":"B","content":"asleep"}},{QUESTION}"#
    )
}

#[tokio::test]
async fn the_stream_in_pieces_is_the_whole_reply() {
    let mut server = serve(STORY).await;
    let (status, body) = ask(&server, QUESTION, "").await;
    assert_eq!(status, 200, "{body}");
    let whole: ChatResponse = serde_json::from_str(&body).unwrap();
    let message = &whole.choices[0].message;
    let calls = message.tool_calls.as_ref().unwrap();
    assert_eq!(calls[0].function.arguments, r#"{"command":"ls -la; echo 'ä ö ü'"}"#);
    assert_eq!(
        (calls[1].function.name.as_str(), calls[1].function.arguments.as_str()),
        ("sleep", "{}")
    );
    assert_eq!(whole.choices[0].finish_reason.as_deref(), Some("tool_calls"));
    // 17 − 1 characters asked; 36 of text, 4 + 34 and 5 + 2 of calls answered.
    let usage = whole.usage.unwrap();
    assert_eq!((usage.prompt_tokens, usage.completion_tokens, usage.total_tokens), (4, 21, 25));

    let options = r#","stream":true,"stream_options":{"include_usage":true}"#;
    let (status, body) = ask(&server, QUESTION, options).await;
    assert_eq!(status, 200);
    let chunks = chunks(&body);
    let mut text = String::new();
    let mut arguments = vec![String::new(); 2];
    let mut ids = Vec::new();
    let mut pieces = 0;
    for choice in chunks.iter().flat_map(|chunk| &chunk.choices) {
        text.push_str(choice.delta.content.as_deref().unwrap_or_default());
        for call in choice.delta.tool_calls.iter().flatten() {
            ids.extend(call.id.clone());
            arguments[call.index as usize]
                .push_str(call.function.arguments.as_deref().unwrap_or(""));
            pieces += 1;
        }
    }
    assert_eq!(Some(text), message.content);
    assert_eq!(arguments, [&*calls[0].function.arguments, &*calls[1].function.arguments]);
    assert_eq!(ids, ["call_1_1", "call_1_2"]);
    assert!(pieces >= 5, "arguments come in several pieces: {pieces}");
    assert_eq!(chunks.last().unwrap().usage, Some(usage));
    let reasons =
        chunks.iter().flat_map(|chunk| &chunk.choices).filter_map(|c| c.finish_reason.as_deref());
    assert_eq!(reasons.collect::<Vec<_>>(), ["tool_calls"]);

    let (_, last) = ask(&server, &second_question(), r#","stream":true"#).await;
    assert!(
        last.contains(r#""finish_reason":"stop""#) && !last.contains("prompt_tokens"),
        "{last}"
    );
    let mut told = Vec::new();
    for _ in 0..3 {
        told.push(timeout(LIMIT, server.next_progress()).await.unwrap());
    }
    assert!(
        matches!(
            told[..],
            [
                StoryProgress::StepMet { step: 1, of: 2, .. },
                StoryProgress::StepMet { step: 2, .. },
                StoryProgress::Ended
            ]
        ),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_story_that_cannot_be_met_is_refused_with_the_step() {
    let mut server = serve(STORY).await;
    assert_eq!(ask(&server, QUESTION, "").await.0, 200);
    let lie = second_question().replace("\"ok\"", "\"nothing\"");
    for _ in 0..2 {
        let (status, body) = ask(&server, &lie, "").await;
        let failure: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(status, 400);
        assert_eq!(
            failure["error"]["message"],
            "the story cannot go on: step 2 (the model says 'Done.'): the result of exec did not \
             contain 'ok'; it was 'nothing'"
        );
    }
    assert!(matches!(server.next_progress().await, StoryProgress::StepMet { .. }));
    assert!(
        matches!(server.next_progress().await, StoryProgress::Unmet(why) if why.starts_with("step 2 ("))
    );
    assert!(timeout(Duration::from_millis(20), server.next_progress()).await.is_err());
    assert!(server.open_step().unwrap().starts_with("step 2 ("));
}

#[tokio::test]
async fn lists_its_model_and_refuses_what_is_no_question() {
    let server = serve(STORY).await;
    assert_eq!(server.base_url(), format!("http://{}/v1", server.address()));
    let (status, body) = body_of(&exchange(server.address(), "GET /v1/models", "").await);
    assert_eq!((status, body.contains(r#""id":"script""#)), (200, true), "{body}");
    let garbled = exchange(server.address(), "POST /v1/chat/completions", "{\"model\":").await;
    let (status, body) = body_of(&garbled);
    assert_eq!(status, 400);
    let failure: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert!(failure["error"]["message"].is_string(), "{body}");
}

#[tokio::test]
async fn fails_in_the_ways_that_a_story_asks_for() {
    let faults = r#"faults = ["status:503", "garbage", "cut", "hang"]"#;
    let server = serve(&STORY.replace("faults = []", faults)).await;
    let stream = r#","stream":true"#;
    assert_eq!(ask(&server, QUESTION, stream).await.0, 503);
    let (status, body) = ask(&server, QUESTION, stream).await;
    assert_eq!(status, 200);
    assert!(serde_json::from_str::<ChatChunk>(&body["data: ".len()..]).is_err(), "{body}");

    let body = format!(r#"{{"model":"script","messages":[{QUESTION}]{stream}}}"#);
    let cut = exchange(server.address(), "POST /v1/chat/completions", &body).await;
    assert!(
        cut.contains("data: {") && !cut.contains("[DONE]") && !cut.ends_with("0\r\n\r\n"),
        "{cut}"
    );

    let address = server.address();
    let hanging = exchange(address, "POST /v1/chat/completions", &body);
    let mut hanging = Box::pin(hanging);
    assert!(timeout(Duration::from_millis(200), &mut hanging).await.is_err(), "it hangs");
    let (status, whole) = ask(&server, QUESTION, stream).await;
    assert_eq!(status, 200, "others are served meanwhile");
    assert!(whole.ends_with("data: [DONE]\n\n"));
    drop(server);
    let silent = timeout(LIMIT, hanging).await.unwrap();
    assert!(silent.contains("data: {") && !silent.contains("[DONE]"), "ends with the server");
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn announces_a_creator_who_speaks_first() {
    let story = "title = 't'\n[[step]]\ncreator = 'Hello'\n[[step]]\nsay = 'Hello, creator.'";
    let mut server = serve(story).await;
    let announced = timeout(LIMIT, server.next_progress()).await.unwrap();
    assert!(
        matches!(announced, StoryProgress::CreatorSays { step: 1, text, .. } if text == "Hello")
    );
    let (_, waiting) = ask(&server, QUESTION, "").await;
    assert!(waiting.contains("(I wait for what my creator says.)"), "{waiting}");
    let (_, answer) = ask(&server, &QUESTION.replace("Wake", "Hello"), "").await;
    assert!(answer.contains("Hello, creator."), "{answer}");
}
