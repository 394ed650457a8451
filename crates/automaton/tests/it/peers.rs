//! The cloud's till beside a client of others: `@x402/fetch`, unmodified, pays on
//! a dev chain that has the id of a test network, since its first version knows
//! no other names. `AUTOMATON_TEST_PEERS` names the folder with its packages.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use automaton_lab::world::Run;
use serde_json::{Value, json};

use super::world;

const GAS_KEY: &str = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
const GAS: &str = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";

fn first_line(run: &Run) -> Value {
    serde_json::from_str(&run.line(0, Duration::from_secs(60)).unwrap()).unwrap()
}

#[test]
#[ignore = "needs npm packages: ./test --peers"]
#[expect(clippy::disallowed_methods, reason = "whoever starts the test says where they are")]
fn x402_fetch_pays_in_both_versions() {
    let world = world();
    let arguments = ["devnet", "--listen", "127.0.0.1:0", "--chain-id", "84532", "--json"];
    let chain = world.start(&arguments).unwrap();
    let chain_told = first_line(&chain);
    assert_eq!(chain_told["chain_id"], 84532);
    let key = world.dir().join("gas.key");
    std::fs::write(&key, GAS_KEY).unwrap();
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    let config = json!({
        "data": world.dir().join("cloud"),
        "chain": {
            "id": 84532, "rpc_url": chain_told["url"], "asset": chain_told["usdc"],
            "token_name": "USD Coin", "gas_key_file": key,
            "pay_to": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
        },
        "upstream": { "base_url": "http://127.0.0.1:1/v1" },
        "models": [{
            "id": "m", "input_microcents_per_million": 1, "output_microcents_per_million": 1,
            "context_window": 8192, "max_output_tokens": 1024,
        }],
    });
    let path = world.dir().join("cloud.json");
    std::fs::write(&path, config.to_string()).unwrap();
    let cloud = world.start(&["cloud", "--config", path.to_str().unwrap(), "--json"]).unwrap();
    let cloud_told = first_line(&cloud);
    let peers = std::env::var_os("AUTOMATON_TEST_PEERS").expect("AUTOMATON_TEST_PEERS is not set");
    let mut client = Command::new("node");
    client.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/x402_fetch.mjs")).arg(peers);
    for url in [&chain_told["url"], &cloud_told["url"]] {
        client.arg(url.as_str().unwrap());
    }
    let output = client.arg(GAS).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}
