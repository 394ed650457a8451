//! Money beside programs of others, each unmodified: the packages of x402, which
//! pay and are paid, Anvil as the chain, and OpenTelemetry's definitions as whoever
//! reads a trace.
//! `AUTOMATON_TEST_PEERS` names the folder with them, and
//! `AUTOMATON_TEST_OLDER_PEERS` that with the packages of x402 from before its
//! second version.
//!
//! Chains that packages of x402 pay on have the id of a test network, since the first version
//! of x402 knows networks by name alone.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use automaton_testkit::world::{ProcessOutput, ProcessRun, World};
use serde_json::{Value, json};

use super::inside::exported;
use super::money::call;
use super::remote::{ChainPlace, Elsewhere, WHOLE, lives_wholly};
use super::{GAS, gas_signer, machines, paying_world, reference, world};

/// Its second one, which is paid.
const PAYEE: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
/// Its third one, with which others pay.
const PAYER_KEY: &str = "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a";
const PAYER: &str = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";
/// What the token is made of.
const TOKEN_CODE: &str = include_str!("../../../devnet/contracts/UsdCoin.hex");

/// Where the packages of a suite are.
#[expect(clippy::disallowed_methods, reason = "whoever starts the test says where they are")]
fn folder(variable: &str) -> PathBuf {
    std::env::var_os(variable).unwrap_or_else(|| panic!("{variable} is not set")).into()
}

fn peers() -> PathBuf {
    folder("AUTOMATON_TEST_PEERS")
}

fn older_peers() -> PathBuf {
    folder("AUTOMATON_TEST_OLDER_PEERS")
}

#[expect(clippy::disallowed_methods, reason = "a test starts what it compares with")]
fn command(program: &Path) -> Command {
    Command::new(program)
}

fn node(script: &str) -> Command {
    let mut node = command(Path::new("node"));
    node.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(script));
    node
}

/// Runs a script of Node to its end.
fn succeed(mut script: Command) {
    let output = script.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A program of others that serves, ended with the test.
struct Peer(Child);

impl Peer {
    /// Starts it and waits for a line that begins like this; gives what follows.
    fn start(mut program: Command, announces: &str) -> (Self, String) {
        let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let told = lines.find_map(|line| line.strip_prefix(announces).map(str::to_owned)).unwrap();
        // It may print more, and would end when nobody reads it.
        std::thread::spawn(move || lines.for_each(drop));
        (Self(child), told)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended already.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A chain with the token.
struct Chain {
    id: u64,
    url: String,
    usdc: String,
    lives: Lives,
}

enum Lives {
    Ours(#[expect(dead_code, reason = "it ends with the test")] ProcessRun),
    Anvil(#[expect(dead_code, reason = "it ends with the test")] Peer),
}

impl Chain {
    /// Our own, on which whoever pays for gas has some.
    fn ours(world: &World) -> Self {
        let arguments = ["devnet", "--listen", "127.0.0.1:0", "--chain-id", "84532", "--json"];
        let run = world.start(&arguments).unwrap();
        let told = first_line(&run);
        let text = |name: &str| told[name].as_str().unwrap().to_owned();
        let (url, usdc, lives) = (text("url"), text("usdc"), Lives::Ours(run));
        let chain = Self { id: 84532, url, usdc, lives };
        let gas = json!([{ "address": GAS, "wei": "0xde0b6b3a7640000" }]);
        call(&chain.url, "automaton_fund", &gas);
        chain
    }

    /// Anvil, on which the payee has deployed the token.
    fn anvil() -> Self {
        Self::anvil_with("84532", &[])
    }

    /// With another id, and more arguments.
    fn anvil_with(id: &str, more: &[&str]) -> Self {
        let path = peers().join("node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil");
        let mut anvil = command(&path);
        anvil.args(["--port", "0", "--chain-id", id, "--accounts", "2"]).args(more);
        let (peer, address) = Peer::start(anvil, "Listening on ");
        let url = format!("http://{address}");
        let creation = json!({ "from": PAYEE, "data": format!("0x{}", TOKEN_CODE.trim_end()) });
        let hash = call(&url, "eth_sendTransaction", &json!([creation]));
        // It answers before its block is made.
        let mut receipts = (0..100).map(|_| {
            std::thread::sleep(Duration::from_millis(50));
            call(&url, "eth_getTransactionReceipt", &json!([hash]))
        });
        let address = |receipt: Value| Some(receipt["contractAddress"].as_str()?.to_owned());
        let usdc = receipts.find_map(address).unwrap();
        Self { id: id.parse().unwrap(), url, usdc, lives: Lives::Anvil(peer) }
    }

    /// Anvil, with the token where USDC is on that chain, and a block each second.
    fn anvil_as_published() -> Self {
        let made = Self::anvil_with("84532", &["--block-time", "1"]);
        let code = call(&made.url, "eth_getCode", &json!([made.usdc, "latest"]));
        let usdc = "0x036CbD53842c5426634e7929541eC2318f3dCF7e".to_owned();
        call(&made.url, "anvil_setCode", &json!([usdc, code]));
        Self { usdc, ..made }
    }

    /// Gives an account so much of the token, in base units.
    fn fund(&self, address: &str, units: u64) {
        match self.lives {
            Lives::Ours(_) => {
                let funding = json!([{ "address": address, "usdc": format!("{units:#x}") }]);
                call(&self.url, "automaton_fund", &funding);
            }
            Lives::Anvil(_) => {
                // `mint(address,uint256)`
                let data = format!("0x40c10f19{}{units:064x}", word(address));
                let mint = json!([{ "from": PAYEE, "to": self.usdc, "data": data }]);
                call(&self.url, "eth_sendTransaction", &mint);
            }
        }
    }

    /// What an account has of the token, in base units.
    fn holds(&self, address: &str) -> u64 {
        // `balanceOf(address)`
        let question = json!({ "to": self.usdc, "data": format!("0x70a08231{}", word(address)) });
        let balance = call(&self.url, "eth_call", &json!([question, "latest"]));
        u64::from_str_radix(balance.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
    }
}

fn word(address: &str) -> String {
    format!("{:0>64}", address.trim_start_matches("0x"))
}

/// Writes a file that only its owner can read.
fn private_file(world: &World, name: &str, text: &str) -> String {
    let path = world.dir().join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    path.display().to_string()
}

fn first_line(run: &ProcessRun) -> Value {
    serde_json::from_str(&run.line(0, Duration::from_secs(60)).unwrap()).unwrap()
}

/// A cloud that is paid on a chain, and its URL.
fn cloud(world: &World, chain: &Chain) -> (ProcessRun, String) {
    let config = json!({
        "data": world.dir().join("cloud"),
        "chain": {
            "id": 84532, "rpc_url": chain.url, "asset": chain.usdc,
            "gas_signer": gas_signer(world.dir(), 0o600),
            "pay_to": PAYEE,
            // Both chains make a block for each transaction, and none without.
            "confirmations": 0,
        },
        "upstream": { "base_url": "http://127.0.0.1:1/v1" },
        "models": [{
            "id": "m", "input_microcents_per_million": 1, "output_microcents_per_million": 1,
            "context_window": 8192, "max_output_tokens": 1024,
        }],
    });
    let path = world.dir().join("cloud.json");
    std::fs::write(&path, config.to_string()).unwrap();
    let run = world.start(&["cloud", "--config", path.to_str().unwrap(), "--json"]).unwrap();
    let url = first_line(&run)["url"].as_str().unwrap().to_owned();
    (run, url)
}

/// Has our client buy from a shop of others that has our cloud verify and settle:
/// a report, and an echo of what was posted, a cent each.
fn ours_buys(world: &World, chain: &Chain, (script, folder): (&str, PathBuf)) {
    let (_cloud, cloud) = cloud(world, chain);
    let mut shop = node(script);
    shop.arg(folder).args([&cloud, &chain.usdc, PAYEE]);
    let (_shop, shop) = Peer::start(shop, "Listening on ");
    let secret = private_file(world, "passphrase", "correct horse\n");
    let wallet = ["wallet", "new", "--passphrase-file", &secret, "--json"];
    done(&world.command(&["init", "--json"]).unwrap());
    let made = done(&world.command(&wallet).unwrap());
    let wallet = made["address"].as_str().unwrap();
    chain.fund(wallet, 1_000_000);
    let fetch = |path: &str, more: &[&str]| {
        let url = format!("{shop}{path}");
        let config = ["--cloud", &cloud, "--rpc", &chain.url, "--chain", "84532", "--json"];
        let token = ["--usdc", &chain.usdc, "--passphrase-file", &secret];
        let blocks = ["--confirmations", "0"];
        let arguments = [&["x402", "fetch", &url], &config[..], &token, &blocks, more].concat();
        world.command(&arguments).unwrap()
    };
    let report = done(&fetch("/report", &["--max", "0.01"]));
    assert_eq!((&report["status"], &report["settled"]), (&json!(200), &json!(true)));
    assert_eq!(report["body"], "{\"report\":\"All is well.\"}");
    let echo = done(&fetch("/echo", &["--post", "{\"hello\":1}"]));
    assert_eq!((&echo["status"], &echo["settled"]), (&json!(200), &json!(true)));
    assert_eq!(echo["body"], "You said: {\"hello\":1}");
    assert_eq!((chain.holds(wallet), chain.holds(PAYEE)), (980_000, 20_000));
}

/// A life whose chain is Anvil, which is told of this row of the networks.
fn life_on(chain: Chain, network: &'static str) -> Elsewhere {
    let (id, rpc, usdc) = (chain.id, chain.url.clone(), chain.usdc.clone());
    let give = move |address: &str, units: u64| {
        let before = chain.holds(address);
        chain.fund(address, units);
        let is_there = (0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            chain.holds(address) == before + units
        });
        assert!(is_there, "{address} has {}", chain.holds(address));
    };
    let place = ChainPlace { id, rpc, usdc, network, give: Some(Box::new(give)) };
    Elsewhere::on(paying_world(), place, WHOLE)
}

#[test]
#[ignore = "needs programs of others: ./test --peers"]
fn a_whole_life_on_anvil() {
    let town = life_on(Chain::anvil_with("31337", &[]), "own");
    town.fund(6);
    lives_wholly(town, &[]);
}

#[test]
#[ignore = "needs programs of others: ./test --peers"]
fn a_life_on_anvil_with_nothing_but_the_network_named() {
    // Its purchases take two blocks more, and a minute until it looks: the first is enough.
    let town = life_on(Chain::anvil_as_published(), "base-sepolia");
    town.fund(20);
    town.lives_and_pays();
}

fn done(finished: &ProcessOutput) -> Value {
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.stdout, finished.stderr);
    serde_json::from_str(&finished.stdout).unwrap()
}

/// Has `@x402/fetch` buy credits twice, by each version once.
fn x402_fetch_buys(world: &World, chain: &Chain) {
    let (_cloud, cloud) = cloud(world, chain);
    chain.fund(PAYER, 20_000_000);
    let mut client = node("x402_fetch.mjs");
    client.arg(peers()).args([&cloud, PAYER_KEY]);
    succeed(client);
    assert_eq!((chain.holds(PAYER), chain.holds(PAYEE)), (10_000_000, 10_000_000));
}

#[test]
#[ignore = "needs npm packages: ./test --peers"]
fn x402_fetch_pays_in_both_versions() {
    let world = world();
    x402_fetch_buys(&world, &Chain::ours(&world));
}

#[test]
#[ignore = "needs npm packages: ./test --peers"]
fn x402_fetch_pays_in_both_versions_on_anvil() {
    x402_fetch_buys(&world(), &Chain::anvil());
}

#[test]
#[ignore = "needs npm packages: ./test --peers"]
fn ours_buys_from_x402_express() {
    let world = world();
    ours_buys(&world, &Chain::ours(&world), ("x402_express.mjs", peers()));
}

#[test]
#[ignore = "needs npm packages: ./test --peers"]
fn ours_buys_from_x402_express_on_anvil() {
    ours_buys(&world(), &Chain::anvil(), ("x402_express.mjs", peers()));
}

#[test]
#[ignore = "needs Node: ./test --peers"]
fn a_node_server_in_a_machine_is_fetched_by_its_public_url() {
    let program = "require('http').createServer((_, answer) => answer.end('from the machine'))\
                   .listen(8000, '127.0.0.1');";
    machines::serves("server.js", program, "node server.js");
}

#[test]
#[ignore = "needs podman: ./test --peers"]
fn the_reference_lives_with_machines_that_are_containers() {
    reference::lives_in_containers();
}

#[test]
#[ignore = "needs older npm packages: ./test --slow"]
fn older_x402_express_is_paid_by_ours() {
    let world = world();
    ours_buys(&world, &Chain::ours(&world), ("x402_express_older.mjs", older_peers()));
}

#[test]
#[ignore = "needs older npm packages: ./test --slow"]
fn older_x402_fetch_pays() {
    let world = world();
    let chain = Chain::ours(&world);
    let (_cloud, cloud) = cloud(&world, &chain);
    chain.fund(PAYER, 20_000_000);
    let mut client = node("x402_fetch_older.mjs");
    client.arg(older_peers()).args([&cloud, PAYER_KEY]);
    succeed(client);
    assert_eq!((chain.holds(PAYER), chain.holds(PAYEE)), (15_000_000, 5_000_000));
}

#[test]
#[ignore = "needs Python packages: ./test --peers"]
fn the_definitions_of_opentelemetry_read_a_trace() {
    let bodies = exported(&world(), &["--brain", "script", "--turns", "3"]);
    let mut reader = command(Path::new("python3"));
    reader.env("PYTHONPATH", peers().join("python"));
    reader.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/otlp_reader.py"));
    let mut reader = reader.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = reader.stdin.take().unwrap();
    input.write_all(bodies.join("\n").as_bytes()).unwrap();
    drop(input);
    let output = reader.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    let read: Vec<&str> = said.lines().collect();
    assert_eq!(read.len(), 3, "{said}");
    assert!(read[1].starts_with("turn,chat ") && read[1].ends_with(",execute_tool exec"), "{said}");
}
