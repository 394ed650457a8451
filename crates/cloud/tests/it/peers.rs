//! The metered models beside clients of others, the `openai` packages of Python and JavaScript,
//! unmodified; the OpenAPI document before a validator of others.
//! `AUTOMATON_TEST_PEERS` names the folder with their packages.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::chat::{cost, counting, funded, funded_before_anthropic, script};
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
async fn costs(mut client: Command) -> Vec<i64> {
    let output = tokio::task::spawn_blocking(move || client.output()).await.unwrap().unwrap();
    let (said, error) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{error}");
    said.lines().map(|usage| cost(&serde_json::from_str(usage).unwrap())).collect()
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
