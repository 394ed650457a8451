//! `cloud`: where it listens is its first line, and a signal ends it well.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::gas_signer;

/// A configuration with a chain and a model that nobody asks.
fn configure(home: &std::path::Path, mode: u32) -> String {
    let config = json!({
        "listen": "127.0.0.1:1", "data": "/nowhere",
        "chain": { "id": 8453, "rpc_url": "http://127.0.0.1:9", "gas_signer": gas_signer(home, mode),
            "pay_to": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8" },
        "upstream": { "base_url": "http://127.0.0.1:9/v1" },
        "models": [{ "id": "m", "input_microcents_per_million": 1, "context_window": 1,
            "output_microcents_per_million": 1, "max_output_tokens": 1 }],
    });
    let path = home.join("cloud.json");
    std::fs::write(&path, config.to_string()).unwrap();
    path.display().to_string()
}

#[test]
fn says_where_it_listens_and_ends_when_told() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    #[expect(clippy::disallowed_methods, reason = "the test reads the first line of its child")]
    let mut cloud = Command::new(env!("CARGO_BIN_EXE_automaton"))
        .args(["cloud", "--json", "--listen", "127.0.0.1:0", "--config"])
        .arg(configure(home.path(), 0o600))
        .arg("--data")
        .arg(&data)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(cloud.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let first: Value = serde_json::from_str(&line).unwrap();
    let listen = first["listen"].as_str().unwrap();
    assert_eq!(first["url"], format!("http://{listen}"));
    assert!(std::net::TcpStream::connect(listen).is_ok());
    assert!(data.join("cloud.db").exists());
    #[expect(clippy::disallowed_methods, reason = "the test sends its child a signal")]
    let told = Command::new("sh").args(["-c", &format!("kill {}", cloud.id())]).status().unwrap();
    assert!(told.success() && cloud.wait().unwrap().success());
}

#[test]
fn a_passphrase_that_others_can_read_is_refused() {
    let world = crate::world();
    let config = configure(world.dir(), 0o644);
    let data = world.dir().join("data").display().to_string();
    let args = ["cloud", "--config", config.as_str(), "--data", data.as_str()];
    let finished = world.command(&args).unwrap();
    assert_eq!(finished.code, Some(1));
    assert!(finished.stderr.contains("others"), "{}", finished.stderr);
    std::fs::write(&config, "{\"chain\":1}").unwrap();
    let finished = world.command(&args).unwrap();
    assert_eq!(finished.code, Some(1));
    assert!(finished.stderr.contains("configuration is wrong"), "{}", finished.stderr);
}

#[test]
fn a_folder_that_was_not_made_for_it_rehearses_no_crash() {
    let world = crate::world();
    let config = configure(world.dir(), 0o600);
    let data = world.dir().join("data").display().to_string();
    let arguments = ["cloud", "--config", &config, "--data", &data, "--fault", "settlement-begun"];
    let finished = world.command(&arguments).unwrap();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("was not made for rehearsal"), "{}", finished.stderr);
}
