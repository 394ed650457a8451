//! Compares the dev chain with other programs: Anvil gives the same answers, and `cast` and viem
//! find nothing missing.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use alloy_consensus::{TxEip1559, TxEip2930, TxLegacy};
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, address};
use alloy_signer_local::PrivateKeySigner;
use alloy_sol_types::{SolCall, SolEvent};
use automaton_core::money::MicroUsdc;
use automaton_devnet::{CHAIN_ID, Devnet};
use serde_json::{Value, json};

use crate::programs::{Anvil, command, native, peers, run};
use crate::support::{Token, World, post, sign};

/// A public key pair's private key.
const KEY: &str = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
const PAYEE: Address = address!("0x70997970C51812dc3A010C7d01b50e0d17dc79C8");
const ETHER: u64 = 1_000_000_000_000_000_000;

/// Fields in which two chains may differ: block hashes, times, fees, words.
const IGNORED: [&str; 13] = [
    "baseFeePerGas",
    "blobGasPrice",
    "blockHash",
    "blockTimestamp",
    "effectiveGasPrice",
    "gasPrice",
    "hash",
    "message",
    "mixHash",
    "parentHash",
    "reward",
    "stateRoot",
    "timestamp",
];

fn token_code() -> String {
    format!("0x{}", include_str!("../../contracts/UsdCoin.hex").trim_end())
}

async fn ask(at: SocketAddr, method: &str, params: &Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let (status, body) = post(at, &request.to_string()).await;
    assert_eq!(status, 200, "{method}: {body}");
    serde_json::from_str(&body).unwrap()
}

/// Returns the paths where two values differ, at any depth, except for ignored fields.
fn differences(at: &str, ours: &Value, theirs: &Value) -> Vec<String> {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
            names.sort_unstable();
            names.dedup();
            names.retain(|name| !IGNORED.contains(&name.as_str()));
            let deeper = names.into_iter().flat_map(|name| {
                let field = |of: &serde_json::Map<String, Value>| of.get(name).cloned();
                let absent = || json!("(absent)");
                let a = field(a).unwrap_or_else(absent);
                let b = field(b).unwrap_or_else(absent);
                differences(&format!("{at}.{name}"), &a, &b)
            });
            deeper.collect()
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let pairs = a.iter().zip(b).enumerate();
            pairs.flat_map(|(i, (a, b))| differences(&format!("{at}[{i}]"), a, b)).collect()
        }
        _ if ours == theirs => Vec::new(),
        // Anvil leaves the empty list of withdrawals out of the size: one byte.
        (Value::String(a), Value::String(b))
            if at.ends_with(".size") && quantity(a) == quantity(b) + 1 =>
        {
            Vec::new()
        }
        _ => vec![format!("{at}: ours {ours:.200}, theirs {theirs:.200}")],
    }
}

fn quantity(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

/// Returns transactions of every kind, valid and invalid, with the nonces from 0.
fn transactions(signer: &PrivateKeySigner) -> Vec<Bytes> {
    let token = signer.address().create(0);
    let code = token_code().parse().unwrap();
    let base = TxEip1559 {
        chain_id: CHAIN_ID,
        gas_limit: 2_000_000,
        max_fee_per_gas: 20_000_000_000,
        max_priority_fee_per_gas: 1_000_000_000,
        ..TxEip1559::default()
    };
    let calls: [(TxKind, Bytes); 6] = [
        (TxKind::Create, code),
        (TxKind::Call(token), mint(signer.address(), 1_000).into()),
        (TxKind::Call(token), pay(10).into()),
        (TxKind::Call(token), pay(5_000).into()),
        (TxKind::Call(PAYEE), Bytes::from_static(b"a note")),
        // A constructor that reverts after logging.
        (TxKind::Create, Bytes::from_static(&[0x5f, 0x5f, 0xa0, 0x5f, 0x5f, 0xfd])),
    ];
    let mut raws: Vec<Bytes> = (0..)
        .zip(calls)
        .map(|(nonce, (to, input))| sign(signer, TxEip1559 { nonce, to, input, ..base.clone() }))
        .collect();
    let gas_price = 20_000_000_000;
    let to = TxKind::Call(PAYEE);
    let value = U256::from(12_345);
    raws.push(sign(
        signer,
        TxLegacy {
            chain_id: None,
            nonce: 6,
            gas_price,
            gas_limit: 21_000,
            to,
            value,
            input: Bytes::new(),
        },
    ));
    let item = AccessListItem { address: token, storage_keys: vec![B256::ZERO, B256::ZERO] };
    raws.push(sign(
        signer,
        TxEip2930 {
            chain_id: CHAIN_ID,
            nonce: 7,
            gas_price,
            gas_limit: 200_000,
            to: TxKind::Call(token),
            value: U256::ZERO,
            access_list: AccessList(vec![item]),
            input: pay(20).into(),
        },
    ));
    let poor = U256::from(ETHER) * U256::from(1_000_000);
    raws.push(sign(signer, TxEip1559 { nonce: 8, to, value: poor, ..base.clone() }));
    raws.push(sign(signer, TxEip1559 { nonce: 3, to, ..base.clone() }));
    raws.push(sign(signer, TxEip1559 { nonce: 8, to, chain_id: 5, ..base.clone() }));
    raws.push(sign(signer, TxEip1559 { nonce: 8, to, gas_limit: 20_000, ..base.clone() }));
    raws.push(sign(
        signer,
        TxEip1559 { nonce: 8, to, max_fee_per_gas: 1, max_priority_fee_per_gas: 1, ..base },
    ));
    raws.push(Bytes::from_static(&[2, 0xc0]));
    raws
}

fn mint(to: Address, value: u64) -> Vec<u8> {
    Token::mintCall { to, value: U256::from(value) }.abi_encode()
}

fn pay(value: u64) -> Vec<u8> {
    Token::transferCall { to: PAYEE, value: U256::from(value) }.abi_encode()
}

/// The requests to both chains once the transactions are mined. `HASH` stands for the hash of
/// block 4, which differs.
fn requests(from: Address, hashes: &[Value]) -> Vec<(&'static str, Value)> {
    let token = from.create(0);
    let transfer = Token::Transfer::SIGNATURE_HASH;
    let call = |data: Vec<u8>| json!({"from": from, "to": token, "data": Bytes::from(data)});
    let balance = Token::balanceOfCall { account: PAYEE }.abi_encode();
    let everything = json!({"fromBlock": "0x2", "toBlock": "latest"});
    let mut list = vec![
        ("eth_chainId", json!([])),
        ("net_version", json!([])),
        ("eth_blockNumber", json!([])),
        ("eth_getBalance", json!([PAYEE, "latest"])),
        ("eth_getBalance", json!([PAYEE, "0xffff"])),
        ("eth_getBalance", json!(["0x12", "latest"])),
        ("eth_getBalance", json!([])),
        ("eth_getTransactionCount", json!([from, "latest"])),
        ("eth_getTransactionCount", json!([from, "pending"])),
        ("eth_getTransactionCount", json!([token, "latest"])),
        ("eth_getCode", json!([token, "latest"])),
        ("eth_getCode", json!([PAYEE, "latest"])),
        ("eth_getStorageAt", json!([token, "0x0", "latest"])),
        ("eth_getStorageAt", json!([token, "0xffff", "latest"])),
        ("eth_getStorageAt", json!([PAYEE, "0x0", "latest"])),
        ("eth_call", json!([call(balance.clone()), "latest"])),
        ("eth_call", json!([call(balance)])),
        ("eth_call", json!([call(pay(5_000)), "latest"])),
        ("eth_call", json!([call(pay(5)), "latest"])),
        ("eth_call", json!([call(vec![1, 2, 3, 4]), "latest"])),
        ("eth_call", json!([{"data": "0xfe"}, "latest"])),
        ("eth_call", json!([{"data": "0x5f5ffd"}, "latest"])),
        ("eth_call", json!([{"from": Address::repeat_byte(7), "to": PAYEE, "value": "0x1"}])),
        ("eth_call", json!([{"to": PAYEE}, "0xffff"])),
        ("eth_estimateGas", json!([{"from": from, "to": PAYEE, "value": "0x1"}])),
        ("eth_estimateGas", json!([call(pay(5_000))])),
        ("eth_estimateGas", json!([{"data": "0xfe"}])),
        ("eth_getBlockByNumber", json!(["0xffff", false])),
        ("eth_getBlockByNumber", json!(["latest", true])),
        ("eth_getBlockByHash", json!(["HASH", true])),
        ("eth_getBlockByHash", json!(["HASH", false])),
        ("eth_getBlockByHash", json!([B256::ZERO, false])),
        ("eth_getTransactionByHash", json!([B256::ZERO])),
        ("eth_getTransactionReceipt", json!([B256::ZERO])),
        ("eth_getLogs", json!([everything])),
        ("eth_getLogs", json!([{"blockHash": "HASH"}])),
        ("eth_getLogs", json!([{"fromBlock": "0x2", "address": token, "topics": [transfer]}])),
        ("eth_getLogs", json!([{"fromBlock": "0x2", "address": [PAYEE, token]}])),
        ("eth_getLogs", json!([{"fromBlock": "0x2", "address": PAYEE}])),
        (
            "eth_getLogs",
            json!([{"fromBlock": "0x2", "topics": [null, [from.into_word(), B256::ZERO]]}]),
        ),
        ("eth_getLogs", json!([{"fromBlock": "0x2", "topics": [null, null, PAYEE.into_word()]}])),
        ("eth_getLogs", json!([{"fromBlock": "0x2", "topics": [[], transfer]}])),
        ("eth_getLogs", json!([{}])),
        ("eth_getLogs", json!([{"fromBlock": "0x5", "toBlock": "0x4"}])),
        ("eth_getLogs", json!([{"fromBlock": "0xffff"}])),
        ("eth_getLogs", json!([{"blockHash": B256::ZERO}])),
        ("eth_feeHistory", json!(["0x3", "latest", [10, 90]])),
        ("eth_noSuchMethod", json!([])),
    ];
    list.extend(of_contents());
    list.extend(of_blocks(hashes));
    list
}

/// The requests about the content of blocks, and about missing blocks. Filter ids differ between
/// nodes.
fn of_contents() -> Vec<(&'static str, Value)> {
    vec![
        ("eth_syncing", json!([])),
        ("net_listening", json!([])),
        ("eth_call", json!([{"to": PAYEE}, "latest", {}])),
        ("eth_getBlockReceipts", json!(["0x4"])),
        ("eth_getBlockReceipts", json!(["HASH"])),
        ("eth_getBlockTransactionCountByNumber", json!(["0x4"])),
        ("eth_getBlockTransactionCountByHash", json!(["HASH"])),
        ("eth_getUncleCountByBlockNumber", json!(["0x4"])),
        ("eth_getUncleCountByBlockHash", json!(["HASH"])),
        ("eth_getTransactionByBlockNumberAndIndex", json!(["0x4", "0x0"])),
        ("eth_getTransactionByBlockHashAndIndex", json!(["HASH", "0x7"])),
        ("eth_getFilterLogs", json!(["0xffff"])),
        ("eth_uninstallFilter", json!(["0xffff"])),
    ]
}

/// The requests about each block and transaction, and then about time.
fn of_blocks(hashes: &[Value]) -> Vec<(&'static str, Value)> {
    let mut list = Vec::new();
    for number in 2..=9 {
        for full in [false, true] {
            list.push(("eth_getBlockByNumber", json!([format!("0x{number:x}"), full])));
        }
    }
    for hash in hashes {
        list.push(("eth_getTransactionByHash", json!([hash])));
        list.push(("eth_getTransactionReceipt", json!([hash])));
    }
    list.extend([
        ("evm_increaseTime", json!([60])),
        ("evm_mine", json!([])),
        ("evm_mine", json!([])),
        ("eth_blockNumber", json!([])),
    ]);
    list
}

/// Waits until a transaction is in a block: Anvil answers before it has mined, and would put the
/// next one in the same block.
async fn mined(at: SocketAddr, hash: &Value) {
    for _ in 0..500 {
        let reply = ask(at, "eth_getTransactionReceipt", &json!([hash])).await;
        if !reply["result"].is_null() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{hash} is in no block after five seconds");
}

#[tokio::test]
#[ignore = "needs npm packages: ./test --peers"]
async fn anvil_gives_the_same_answers() {
    let world = World::new().await;
    let anvil = Anvil::start();
    let ours = world.devnet.addr();
    let theirs = anvil.1;
    let signer: PrivateKeySigner = KEY.parse().unwrap();
    // Anvil's only account starts with this balance. Its first block is empty.
    let wei = U256::from(ETHER) * U256::from(10_000);
    world.devnet.fund(signer.address(), MicroUsdc::ZERO, wei).await.unwrap();
    ask(theirs, "evm_mine", &json!([])).await;

    let mut found = Vec::new();
    let mut hashes = Vec::new();
    for raw in transactions(&signer) {
        let params = json!([raw]);
        let a = ask(ours, "eth_sendRawTransaction", &params).await;
        let b = ask(theirs, "eth_sendRawTransaction", &params).await;
        found.extend(differences(&format!("transaction {raw:.40}"), &a, &b));
        if let Some(hash) = b.get("result") {
            mined(theirs, hash).await;
        }
        hashes.extend(a.get("result").cloned());
    }
    assert_eq!(hashes.len(), 8);
    let mut fourth = Vec::new();
    for at in [ours, theirs] {
        let block = ask(at, "eth_getBlockByNumber", &json!(["0x4", false])).await;
        fourth.push(block["result"]["hash"].clone());
    }
    let list = requests(signer.address(), &hashes);
    for (method, params) in &list {
        let of = |hash: &Value| -> Value {
            let text = params.to_string().replace("\"HASH\"", &hash.to_string());
            serde_json::from_str(&text).unwrap()
        };
        let a = ask(ours, method, &of(&fourth[0])).await;
        let b = ask(theirs, method, &of(&fourth[1])).await;
        found.extend(differences(&format!("{method} {params:.200}"), &a, &b));
    }
    println!("{} transactions and {} requests compared", hashes.len(), list.len());
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
}

async fn funded() -> World {
    let world = World::new().await;
    let signer: PrivateKeySigner = KEY.parse().unwrap();
    let usdc = MicroUsdc::new(20_000_000);
    world.devnet.fund(signer.address(), usdc, U256::from(ETHER)).await.unwrap();
    world
}

#[tokio::test]
#[ignore = "needs npm packages: ./test --peers"]
async fn cast_deploys_calls_and_reads_logs() {
    let world = funded().await;
    let url = world.devnet.url();
    let cast = async |words: &[&str]| {
        let mut cast = command(&native("cast"));
        cast.args(words).env("ETH_RPC_URL", &url);
        run(cast).await
    };
    let from: PrivateKeySigner = KEY.parse().unwrap();
    let from = from.address().to_string();
    let payee = PAYEE.to_string();
    assert_eq!(cast(&["chain-id"]).await, "31337");
    assert_eq!(cast(&["balance", &from]).await, ETHER.to_string());
    let code = token_code();
    let sent = cast(&["send", "--json", "--private-key", KEY, "--create", &code]).await;
    let receipt: Value = serde_json::from_str(&sent).unwrap();
    let token = receipt["contractAddress"].as_str().unwrap();
    let send = async |words: &[&str]| {
        let mut all = vec!["send", "--json", "--private-key", KEY, token];
        all.extend(words);
        let receipt: Value = serde_json::from_str(&cast(&all).await).unwrap();
        assert_eq!(receipt["status"], json!("0x1"));
        receipt
    };
    send(&["mint(address,uint256)", &from, "100"]).await;
    let receipt = send(&["--legacy", "transfer(address,uint256)", &payee, "30"]).await;
    let balance = cast(&["call", token, "balanceOf(address)(uint256)", &payee]).await;
    assert_eq!(balance, "30");
    let event = "Transfer(address indexed,address indexed,uint256)";
    let words = ["logs", "--json", "--from-block", "0", "--address", token, event, &from];
    let logs: Value = serde_json::from_str(&cast(&words).await).unwrap();
    assert_eq!(logs.as_array().unwrap().len(), 1);
    assert_eq!(logs[0]["transactionHash"], receipt["transactionHash"]);
    let hash = receipt["transactionHash"].as_str().unwrap();
    assert_eq!(cast(&["receipt", hash, "status"]).await, "true");
    assert_eq!(cast(&["tx", hash, "from"]).await, from);
    assert_eq!(cast(&["nonce", &from]).await, "3");
    assert_eq!(cast(&["block-number"]).await, "5");
    let words = ["estimate", "--from", &from, token, "transfer(address,uint256)", &payee, "1"];
    let gas: u64 = cast(&words).await.parse().unwrap();
    assert!((30_000..60_000).contains(&gas), "{gas}");
    let funding = format!("{{\"address\":\"{payee}\",\"usdc\":7,\"wei\":\"0x1\"}}");
    cast(&["rpc", "automaton_fund", &funding]).await;
    assert_eq!(world.balance(PAYEE).await, 7);
}

#[tokio::test]
#[ignore = "needs npm packages: ./test --peers"]
async fn viem_deploys_calls_reads_logs_and_pays_by_authorization() {
    let world = funded().await;
    let mut node = command(Path::new("node"));
    node.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/viem.mjs"));
    node.arg(peers()).args([&world.devnet.url(), KEY, &token_code()]);
    assert_eq!(run(node).await, "viem is content");
}

#[tokio::test]
#[ignore = "needs npm packages: ./test --peers"]
async fn viem_is_told_by_subscriptions() {
    let world = funded().await;
    let mut node = command(Path::new("node"));
    node.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/viem_follows.mjs"));
    node.arg(peers()).args([&world.devnet.url(), KEY, &Devnet::usdc().to_string()]);
    assert_eq!(run(node).await, "viem is told");
}

#[tokio::test]
#[ignore = "needs npm packages: ./test --peers"]
async fn viem_tries_calls_and_finds_the_contracts_that_it_knows() {
    let world = funded().await;
    let mut node = command(Path::new("node"));
    node.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/viem_tries.mjs"));
    node.arg(peers()).args([&world.devnet.url(), KEY, &Devnet::usdc().to_string()]);
    assert_eq!(run(node).await, "viem has tried it all");
}

#[tokio::test]
#[ignore = "needs npm packages: ./test --peers"]
async fn cast_lists_what_a_call_touches_and_tries_it_under_other_accounts() {
    let world = funded().await;
    let url = world.devnet.url();
    let cast = async |words: &[&str]| {
        let mut cast = command(&native("cast"));
        cast.args(words).env("ETH_RPC_URL", &url);
        run(cast).await
    };
    let token = Devnet::usdc().to_string();
    let listed = cast(&["access-list", "--json", &token, "totalSupply()"]).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let item = &listed["accessList"][0];
    assert_eq!(item["address"].as_str().unwrap().parse::<Address>(), Ok(Devnet::usdc()));
    assert_eq!(item["storageKeys"], json!([B256::ZERO]));
    let other = "0x00000000000000000000000000000000000000cd";
    let code = format!("{other}:0x33315f5260205ff3");
    let from: PrivateKeySigner = KEY.parse().unwrap();
    let from = from.address().to_string();
    let balance = format!("{from}:5");
    let words = [
        "call",
        other,
        "--data",
        "0x00",
        "--from",
        &from,
        "--override-code",
        &code,
        "--override-balance",
        &balance,
    ];
    assert_eq!(cast(&words).await, B256::from(U256::from(5)).to_string());
    let multicall = "0xcA11bde05977b3631167028862bE2a173976CA11";
    let words = ["call", multicall, "getEthBalance(address)(uint256)", &from];
    assert!(cast(&words).await.starts_with(&ETHER.to_string()));
}

#[tokio::test]
#[ignore = "needs npm packages: ./test --peers"]
async fn the_compiler_makes_the_committed_bytecode() {
    let mut build = command(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/contracts/build.sh")));
    build.arg("--check");
    run(build).await;
}
