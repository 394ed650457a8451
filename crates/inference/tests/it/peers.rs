//! The servers that the provider is tested against, before the official clients of their formats,
//! unmodified: what these understand is what the provider does, and what the provider asks is
//! what their types allow. `AUTOMATON_TEST_PEERS` names the folder with them.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use automaton_core::tool::{Effect, Risk, ToolCategory, ToolSpec};
use automaton_inference::providers::http::ApiFormat;
use automaton_inference::{CompletionRequest, Message, MessageCall, NoTokenSink, Provider as _};
use serde_json::{Value, json};

use crate::formats::{SERVED, stream};
use crate::server::{ask, pair_of};

#[expect(clippy::disallowed_methods, reason = "whoever starts the test says where they are")]
fn peers() -> PathBuf {
    let peers = std::env::var_os("AUTOMATON_TEST_PEERS");
    peers.unwrap_or_else(|| panic!("AUTOMATON_TEST_PEERS is not set")).into()
}

/// A question with a tool, a call and its result.
fn long_ask() -> CompletionRequest {
    let id = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
    let call = MessageCall { id, tool: "exec".into(), arguments: r#"{"command":"pwd"}"#.into() };
    let mut ask = ask();
    ask.messages.push(Message::assistant("I look.", vec![call]));
    ask.messages.push(Message::tool(id, "/root"));
    let properties = json!({"command": {"type": "string", "maxLength": 9}});
    ask.tools = Arc::new([ToolSpec {
        name: "exec".parse().unwrap(),
        description: "Runs.".into(),
        category: ToolCategory::Vm,
        risk: Risk::Safe,
        effect: Effect::Mutates,
        parameters: json!({"type": "object", "properties": properties,
            "required": ["command"], "additionalProperties": false})
        .into(),
    }]);
    ask
}

#[expect(clippy::disallowed_methods, reason = "a test starts what it compares with")]
async fn understood(format: ApiFormat, name: &str) {
    let (_, model, body) = SERVED.into_iter().find(|(known, ..)| *known == format).unwrap();
    let pair = pair_of(format, model, stream(format, body)).await;
    let reply = pair.provider.complete(&long_ask(), &NoTokenSink).await.unwrap();
    let asked = pair.seen.lock().unwrap()[0].body.to_string();
    let mut client = Command::new("python3");
    client.env("PYTHONPATH", peers().join("python"));
    client.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/formats_client.py"));
    client.args([name, &pair.base_url, model, &asked]);
    let output = tokio::task::spawn_blocking(move || client.output()).await.unwrap().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let calls = reply
        .calls
        .iter()
        .map(|call| json!([call.tool, serde_json::from_str::<Value>(&call.arguments).unwrap()]));
    let counts = json!([reply.usage.prompt_tokens, reply.usage.completion_tokens, "stop"]);
    assert_eq!(told, json!([reply.text, calls.collect::<Vec<Value>>(), counts]), "{error}");
    let seen = pair.seen.lock().unwrap();
    // Google's client goes by another version of the same.
    let places = [seen[0].path.replace("v1beta", "v1"), seen.last().unwrap().path.clone()];
    assert_eq!(places[0], places[1], "asked at the same place");
}

#[tokio::test]
#[ignore = "needs Python packages: ./test --peers"]
async fn the_client_of_ollama_understands_the_same() {
    understood(ApiFormat::Ollama, "ollama").await;
}

#[tokio::test]
#[ignore = "needs Python packages: ./test --peers"]
async fn python_openai_understands_the_same_responses() {
    understood(ApiFormat::Responses, "responses").await;
}

#[tokio::test]
#[ignore = "needs Python packages: ./test --peers"]
async fn python_genai_understands_the_same() {
    understood(ApiFormat::Gemini, "gemini").await;
}
