//! The metered models beside a client of others, Python's `openai`, unmodified; the OpenAPI
//! document before a validator of others.
//! `AUTOMATON_TEST_PEERS` names the folder with its packages.

use std::process::Command;

use crate::chat::{cost, funded, script};

#[expect(clippy::disallowed_methods, reason = "whoever starts the test says where they are")]
fn python() -> Command {
    let peers = std::env::var_os("AUTOMATON_TEST_PEERS");
    let peers = peers.unwrap_or_else(|| panic!("AUTOMATON_TEST_PEERS is not set"));
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", std::path::Path::new(&peers).join("python"));
    python
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
    let output = tokio::task::spawn_blocking(move || client.output()).await.unwrap().unwrap();
    let (said, error) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{error}");
    let charged: Vec<i64> =
        said.lines().map(|usage| cost(&serde_json::from_str(usage).unwrap())).collect();
    assert!(charged.len() == 2 && charged.iter().all(|cost| *cost > 0), "{said}");
    assert_eq!(before - world.balance(&key).await, charged.iter().sum::<i64>());
}
