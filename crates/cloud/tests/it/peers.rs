//! The metered models beside clients of others, the `openai` packages of Python and JavaScript and
//! `anthropic` of Python, unmodified; the OpenAPI document before a validator of others.
//! `AUTOMATON_TEST_PEERS` names the folder with their packages.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::chat::{cost, counting, funded, funded_before_anthropic, script};
use crate::embeddings::{VECTOR_PRICE, embedding};
use crate::messages;
use crate::responses;
use crate::world::Wallet;

#[expect(clippy::disallowed_methods, reason = "whoever starts the test says where they are")]
fn peers() -> OsString {
    let peers = std::env::var_os("AUTOMATON_TEST_PEERS");
    peers.unwrap_or_else(|| panic!("AUTOMATON_TEST_PEERS is not set"))
}

#[expect(clippy::disallowed_methods, reason = "a test starts what it compares with")]
fn python() -> Command {
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", Path::new(&peers()).join("python"));
    python
}

#[expect(clippy::disallowed_methods, reason = "a test starts what it compares with")]
fn node() -> Command {
    Command::new("node")
}

/// Runs a client to its end, and adds up what the usages that it prints cost.
async fn costs(client: Command) -> Vec<i64> {
    usages(client).await.iter().map(cost).collect()
}

/// Runs a client to its end; the usages that it prints.
async fn usages(mut client: Command) -> Vec<Value> {
    let output = tokio::task::spawn_blocking(move || client.output()).await.unwrap().unwrap();
    let (said, error) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{error}");
    said.lines().map(|usage| serde_json::from_str(usage).unwrap()).collect()
}

#[test]
#[ignore = "needs Python packages: ./test --peers"]
fn the_openapi_document_is_valid_to_openapi_spec_validator() {
    let mut validator = python();
    validator.args(["-m", "openapi_spec_validator"]);
    validator.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/schema/openapi.json"));
    let output = validator.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[tokio::test]
#[ignore = "needs Python packages: ./test --peers"]
async fn python_openai_is_answered_and_charged_exactly() {
    let server = script(&["I am here, all of me."]).await;
    let (world, key) = funded(&server.base_url()).await;
    let before = world.balance(&key).await;
    let mut client = python();
    client.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/openai_client.py"));
    client.args([world.cloud.url(), &key]);
    let charged = costs(client).await;
    assert!(charged.len() == 2 && charged.iter().all(|cost| *cost > 0), "{charged:?}");
    assert_eq!(before - world.balance(&key).await, charged.iter().sum::<i64>());
}

#[tokio::test]
#[ignore = "needs Python packages: ./test --peers"]
async fn python_openai_is_answered_by_a_model_behind_anthropics_format() {
    let (world, key) = funded_before_anthropic().await;
    let before = world.balance(&key).await;
    let mut client = python();
    client.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/openai_client.py"));
    client.args([world.cloud.url(), &key]);
    let charged = costs(client).await;
    assert_eq!(before - world.balance(&key).await, charged.iter().sum::<i64>());
}

#[tokio::test]
#[ignore = "needs Python packages: ./test --peers"]
async fn python_openai_gets_vectors_and_is_charged_exactly() {
    let (world, key) = funded(&embedding().await).await;
    let before = world.balance(&key).await;
    let mut client = python();
    client.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/openai_embeddings.py"));
    client.args([world.cloud.url(), &key]);
    let counted = usages(client).await;
    let tokens: i64 = counted.iter().map(|usage| usage["total_tokens"].as_i64().unwrap()).sum();
    assert_eq!(before - world.balance(&key).await, tokens * VECTOR_PRICE);
}

/// Has a client be refused in every way, and ask the same five times at once.
async fn refuses_and_votes(mut client: Command) {
    let (world, key) = funded(&counting().await).await;
    let poor = world.key(&Wallet::new(2)).await;
    let before = world.balance(&key).await;
    client.args([world.cloud.url(), &key, &poor]);
    let charged = costs(client).await;
    assert!(charged.len() == 5 && charged.iter().all(|cost| *cost > 0), "{charged:?}");
    assert_eq!(before - world.balance(&key).await, charged.iter().sum::<i64>());
}

#[tokio::test]
#[ignore = "needs Python packages: ./test --peers"]
async fn python_openai_reads_refusals_and_has_five_votes_counted() {
    let mut client = python();
    client.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/openai_refusals.py"));
    refuses_and_votes(client).await;
}

#[tokio::test]
#[ignore = "needs npm packages: ./test --peers"]
async fn javascript_openai_reads_refusals_and_has_five_votes_counted() {
    let mut client = node();
    client.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/openai_refusals.mjs"));
    client.arg(peers());
    refuses_and_votes(client).await;
}

/// A program of this folder, with what it is started with after its own place.
fn script_of(mut client: Command, name: &str) -> Command {
    client.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(name));
    client
}

#[tokio::test]
#[ignore = "needs Python packages: ./test --peers"]
async fn python_anthropic_calls_tools_and_is_charged_exactly() {
    let (url, _) = messages::calling().await;
    let (world, key) = funded(&url).await;
    let poor = world.key(&Wallet::new(2)).await;
    let before = world.balance(&key).await;
    let mut client = script_of(python(), "anthropic_client.py");
    client.args([world.cloud.url(), &key, &poor]);
    let told = usages(client).await;
    assert_eq!(told.len(), 3, "{told:?}");
    let costs: Vec<i64> = told.iter().map(messages::cost).collect();
    assert!(costs.iter().all(|cost| *cost > 0), "{told:?}");
    assert_eq!(before - world.balance(&key).await, costs.iter().sum::<i64>());
    assert_eq!(world.held(&key).await, 0);
}

#[tokio::test]
#[ignore = "needs Python packages: ./test --peers"]
async fn python_anthropic_runs_tools_by_itself_and_parses_an_answer() {
    let (url, sent) = messages::running().await;
    let (world, key) = funded(&url).await;
    let before = world.balance(&key).await;
    let mut client = script_of(python(), "anthropic_runner.py");
    client.args([world.cloud.url(), &key]);
    let told = usages(client).await;
    assert_eq!((told.len(), sent.lock().unwrap().len()), (3, 3), "{told:?}");
    assert_eq!(before - world.balance(&key).await, told.iter().map(messages::cost).sum::<i64>());
}

#[tokio::test]
#[ignore = "needs Python packages: ./test --peers"]
async fn python_anthropic_hears_thoughts_of_a_server_of_its_own_format() {
    let (world, key, _) = messages::funded_before_thinking().await;
    let before = world.balance(&key).await;
    let mut client = script_of(python(), "anthropic_thoughts.py");
    client.args([world.cloud.url(), &key]);
    let told = usages(client).await;
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(before - world.balance(&key).await, told.iter().map(messages::cost).sum::<i64>());
}

#[tokio::test]
#[ignore = "needs Python packages: ./test --peers"]
async fn python_openai_calls_tools_in_a_stream() {
    let (url, _) = messages::calling().await;
    let (world, key) = funded(&url).await;
    let before = world.balance(&key).await;
    let mut client = script_of(python(), "openai_tools.py");
    client.args([world.cloud.url(), &key]);
    let charged = costs(client).await;
    assert_eq!(charged.len(), 2, "{charged:?}");
    assert_eq!(before - world.balance(&key).await, charged.iter().sum::<i64>());
}

#[tokio::test]
#[ignore = "needs npm packages: ./test --peers"]
async fn javascript_openai_calls_tools_in_a_stream() {
    let (url, _) = messages::calling().await;
    let (world, key) = funded(&url).await;
    let before = world.balance(&key).await;
    let mut client = script_of(node(), "openai_tools.mjs");
    client.arg(peers()).args([world.cloud.url(), &key]);
    let charged = costs(client).await;
    assert_eq!(before - world.balance(&key).await, charged.iter().sum::<i64>());
}

#[tokio::test]
#[ignore = "needs Python packages: ./test --peers"]
async fn python_openai_calls_tools_over_responses_and_is_charged_exactly() {
    let (url, _) = messages::calling().await;
    let (world, key) = funded(&url).await;
    let poor = world.key(&Wallet::new(2)).await;
    let before = world.balance(&key).await;
    let mut client = script_of(python(), "openai_responses.py");
    client.args([world.cloud.url(), &key, &poor]);
    let told = usages(client).await;
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(before - world.balance(&key).await, told.iter().map(responses::cost).sum::<i64>());
    assert_eq!(world.held(&key).await, 0);
}

#[tokio::test]
#[ignore = "needs npm packages: ./test --peers"]
async fn javascript_openai_calls_tools_in_a_stream_of_responses() {
    let (url, _) = messages::calling().await;
    let (world, key) = funded(&url).await;
    let before = world.balance(&key).await;
    let mut client = script_of(node(), "openai_responses.mjs");
    client.arg(peers()).args([world.cloud.url(), &key]);
    let told = usages(client).await;
    assert_eq!(before - world.balance(&key).await, told.iter().map(responses::cost).sum::<i64>());
}
