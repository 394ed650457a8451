//! Tests of the methods: requests and responses.

use alloy_consensus::{TxEip2930, TxLegacy};
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_primitives::{Address, B256, Bytes, TxKind, U64, U256, hex};
use alloy_sol_types::{SolCall, SolEvent};
use automaton_core::money::MicroUsdc;
use automaton_devnet::{CHAIN_ID, ChainRefusal, Devnet, DevnetError};
use serde_json::{Value, json};

use crate::support::{NOW, Token, World, account, post, post_as, sign, succeeded};

fn number(value: &Value) -> u64 {
    let value: U64 = serde_json::from_value(value.clone()).unwrap();
    value.to()
}

#[tokio::test]
async fn it_is_born_with_a_token_and_one_block() {
    let world = World::new().await;
    assert_eq!(world.ask("eth_chainId", json!([])).await, Ok(json!("0x7a69")));
    assert_eq!(world.ask("net_version", json!([])).await, Ok(json!("31337")));
    assert_eq!(world.ask("eth_blockNumber", json!([])).await, Ok(json!("0x0")));
    let code = world.ask("eth_getCode", json!([Devnet::usdc(), "latest"])).await.unwrap();
    assert!(code.as_str().unwrap().len() > 2_000);
    assert_eq!(world.ask("eth_getCode", json!([Address::ZERO])).await, Ok(json!("0x")));
    let version = world.ask("web3_clientVersion", json!([])).await.unwrap();
    assert!(version.as_str().unwrap().starts_with("automaton-devnet/"));
    let block = world.ask("eth_getBlockByNumber", json!(["earliest", false])).await.unwrap();
    assert_eq!(number(&block["timestamp"]), NOW);
    assert_eq!(block["transactions"], json!([]));
}

#[tokio::test]
async fn the_faucet_gives_what_is_asked_and_never_nothing() {
    let world = World::new().await;
    let ada = account(1).address();
    let fund = json!([{"address": ada, "usdc": "0x1312d00", "wei": "0x5"}]);
    let hash = world.ask("automaton_fund", fund).await.unwrap();
    let receipt = world.ask("eth_getTransactionReceipt", json!([hash])).await.unwrap();
    assert!(succeeded(&receipt));
    assert_eq!(world.balance(ada).await, 20_000_000);
    assert_eq!(world.ask("eth_getBalance", json!([ada, "latest"])).await, Ok(json!("0x5")));
    assert_eq!(world.ask("eth_blockNumber", json!([])).await, Ok(json!("0x2")));

    let refuse = async |params: Value, code: i64| {
        assert_eq!(world.ask("automaton_fund", params).await.unwrap_err().code, code);
    };
    refuse(json!([{"address": ada}]), -32602).await;
    refuse(json!([{"address": Address::ZERO, "usdc": "0x1"}]), -32602).await;
    refuse(json!([{"address": ada, "usd": "0x1"}]), -32602).await;
    refuse(json!([{"address": ada, "usdc": "0x10000000000000000"}]), -32602).await;
    refuse(json!([{"address": ada, "wei": U256::MAX}]), -32003).await;
    let nothing = world.devnet.fund(ada, MicroUsdc::ZERO, U256::ZERO).await.unwrap_err();
    assert!(matches!(nothing, DevnetError::Refused(ChainRefusal::NothingToFund(_))));
    assert_eq!(world.ask("eth_blockNumber", json!([])).await, Ok(json!("0x2")));
}

#[tokio::test]
async fn every_kind_of_transaction_is_mined_at_once() {
    let world = World::new().await;
    let ada = world.funded(1).await;
    let before = number(&world.ask("eth_blockNumber", json!([])).await.unwrap());
    let to = account(7).address();
    let legacy = TxLegacy {
        chain_id: Some(CHAIN_ID),
        nonce: 0,
        gas_price: 2_000_000_000,
        gas_limit: 21_000,
        to: TxKind::Call(to),
        value: U256::from(3),
        input: Bytes::new(),
    };
    let item = AccessListItem { address: to, storage_keys: vec![B256::ZERO] };
    let listed = TxEip2930 {
        chain_id: CHAIN_ID,
        nonce: 1,
        gas_price: 2_000_000_000,
        gas_limit: 40_000,
        to: TxKind::Call(to),
        value: U256::from(4),
        access_list: AccessList(vec![item]),
        input: Bytes::new(),
    };
    let raws = [
        sign(&ada, legacy),
        sign(&ada, listed),
        world.signed(&ada, TxKind::Call(to), vec![]).await,
    ];
    let mut nonce_two = raws.to_vec();
    // The third was filled in before the other two were sent.
    nonce_two.pop();
    for (index, raw) in nonce_two.into_iter().enumerate() {
        check_mined(&world, &raw, index as u64, before).await;
    }
    let raw = world.signed(&ada, TxKind::Call(to), vec![]).await;
    check_mined(&world, &raw, 2, before).await;
    assert_eq!(world.ask("eth_getBalance", json!([to])).await, Ok(json!("0x7")));
    let count = world.ask("eth_getTransactionCount", json!([ada.address(), "pending"])).await;
    assert_eq!(count, Ok(json!("0x3")));
}

async fn check_mined(world: &World, raw: &Bytes, index: u64, before: u64) {
    let hash = world.ask("eth_sendRawTransaction", json!([raw])).await.unwrap();
    let receipt = world.ask("eth_getTransactionReceipt", json!([hash])).await.unwrap();
    assert!(succeeded(&receipt));
    let kind = format!("0x{index:x}");
    assert_eq!(receipt["type"], json!(kind));
    assert_eq!(number(&receipt["blockNumber"]), before + index + 1);
    let tx = world.ask("eth_getTransactionByHash", json!([hash])).await.unwrap();
    assert_eq!((&tx["hash"], &tx["type"], &tx["from"]), (&hash, &json!(kind), &receipt["from"]));
    let by_hash = json!([receipt["blockHash"], true]);
    let block = world.ask("eth_getBlockByHash", by_hash).await.unwrap();
    assert_eq!(block["transactions"], json!([tx]));
    assert_eq!(block["gasUsed"], receipt["gasUsed"]);
    let by_number = json!([receipt["blockNumber"], false]);
    let block = world.ask("eth_getBlockByNumber", by_number).await.unwrap();
    assert_eq!(block["transactions"], json!([hash]));
    assert_eq!(block["hash"], receipt["blockHash"]);
}

#[tokio::test]
async fn what_breaks_a_rule_is_refused_in_the_words_that_clients_know() {
    let world = World::new().await;
    let ada = world.funded(1).await;
    let good = TxLegacy {
        chain_id: Some(CHAIN_ID),
        nonce: 0,
        gas_price: 2_000_000_000,
        gas_limit: 21_000,
        to: TxKind::Call(account(7).address()),
        value: U256::ONE,
        input: Bytes::new(),
    };
    let refuse = async |raw: Bytes, code: i64, words: &str| {
        let told = world.ask("eth_sendRawTransaction", json!([raw])).await.unwrap_err();
        assert_eq!(told.code, code, "{told:?}");
        assert!(told.message.contains(words), "{told:?}");
    };
    refuse(sign(&ada, TxLegacy { nonce: 1, ..good.clone() }), -32003, "nonce too high").await;
    refuse(sign(&ada, TxLegacy { chain_id: Some(1), ..good.clone() }), -32003, "chain").await;
    let poor = TxLegacy { value: U256::MAX >> 1, ..good.clone() };
    refuse(sign(&ada, poor), -32003, "insufficient funds for gas * price + value").await;
    let short = TxLegacy { gas_limit: 20_999, ..good.clone() };
    refuse(sign(&ada, short), -32000, "intrinsic gas too low").await;
    let long = TxLegacy { gas_limit: 30_000_001, ..good.clone() };
    refuse(sign(&ada, long), -32003, "exceeds block gas limit").await;
    let cheap = TxLegacy { gas_price: 1, ..good.clone() };
    refuse(sign(&ada, cheap), -32003, "less than block base fee").await;
    refuse(Bytes::new(), -32602, "decode").await;
    refuse(Bytes::from_static(&[3, 0xc0]), -32602, "decode").await;
    let raw = sign(&ada, good);
    assert!(world.ask("eth_sendRawTransaction", json!([raw])).await.is_ok());
    refuse(raw, -32003, "nonce too low").await;
    assert_eq!(world.ask("eth_blockNumber", json!([])).await, Ok(json!("0x3")));
}

#[tokio::test]
async fn a_revert_is_mined_and_a_call_tells_why() {
    let world = World::new().await;
    let ada = world.funded(1).await;
    let much = Token::transferCall { to: account(2).address(), value: U256::MAX };
    let receipt = world.token(&ada, much.clone()).await;
    assert!(!succeeded(&receipt));
    assert_eq!(receipt["logs"], json!([]));
    let data = Bytes::from(much.abi_encode());
    let request = json!({"from": ada.address(), "to": Devnet::usdc(), "input": data});
    for method in ["eth_call", "eth_estimateGas"] {
        let told = world.ask(method, json!([request])).await.unwrap_err();
        assert_eq!(told.code, 3);
        assert_eq!(told.message, "execution reverted: transfer amount exceeds balance");
        assert!(told.data.unwrap().starts_with("0x08c379a0"));
    }
    // PUSH0 PUSH0 REVERT, and the invalid opcode.
    let told = world.ask("eth_call", json!([{"data": "0x5f5ffd"}])).await.unwrap_err();
    assert_eq!((told.code, told.data.as_deref()), (3, Some("0x")));
    let told = world.ask("eth_call", json!([{"data": "0xfe"}])).await.unwrap_err();
    assert_eq!(told.code, -32603);
    let both = json!([{"data": "0x00", "input": "0x01"}]);
    assert_eq!(world.ask("eth_call", both).await.unwrap_err().code, -32602);
}

#[tokio::test]
async fn an_estimate_is_enough_and_one_gas_less_is_not() {
    let world = World::new().await;
    let ada = world.funded(1).await;
    let transfer = Token::transferCall { to: account(8).address(), value: U256::ONE };
    let data = Bytes::from(transfer.abi_encode());
    let request = json!({"from": ada.address(), "to": Devnet::usdc(), "data": data});
    let gas = number(&world.ask("eth_estimateGas", json!([request])).await.unwrap());
    assert!((40_000..60_000).contains(&gas), "{gas}");
    let limited = |gas: u64| {
        let mut request = request.clone();
        request["gas"] = json!(U64::from(gas));
        json!([request])
    };
    assert!(world.ask("eth_call", limited(gas)).await.is_ok());
    assert!(world.ask("eth_call", limited(gas - 1)).await.is_err());
    let receipt = world.token(&ada, transfer).await;
    assert!(number(&receipt["gasUsed"]) <= gas);

    let plain = json!([{"from": ada.address(), "to": account(8).address(), "value": "0x1"}]);
    assert_eq!(world.ask("eth_estimateGas", plain).await, Ok(json!("0x5208")));
    // With a price, an unaffordable limit is not promised.
    let mut priced = request.clone();
    priced["from"] = json!(account(30).address());
    priced["maxFeePerGas"] = json!("0x77359400");
    assert_eq!(world.ask("eth_estimateGas", json!([priced])).await.unwrap_err().code, -32000);
}

#[tokio::test]
async fn logs_are_found_by_address_topics_range_and_block() {
    let world = World::new().await;
    let ada = world.funded(1).await;
    let bob = world.funded(2).await;
    let eve = account(3).address();
    for to in [bob.address(), eve] {
        world.token(&ada, Token::transferCall { to, value: U256::ONE }).await;
    }
    let last = world.token(&bob, Token::transferCall { to: eve, value: U256::from(2) }).await;
    let first = "0x0";
    let all = "latest";
    let transfer = Token::Transfer::SIGNATURE_HASH;
    let word = |address: Address| address.into_word();
    let count = async |filter: Value| -> usize {
        world.ask("eth_getLogs", json!([filter])).await.unwrap().as_array().unwrap().len()
    };
    let range = |topics: Value| json!({"fromBlock": first, "toBlock": all, "topics": topics});
    assert_eq!(count(range(json!([transfer]))).await, 5);
    assert_eq!(count(range(json!([transfer, null, word(eve)]))).await, 2);
    assert_eq!(count(range(json!([null, word(bob.address())]))).await, 1);
    let either = json!([transfer, [word(ada.address()), word(bob.address())]]);
    assert_eq!(count(range(either)).await, 3);
    assert_eq!(count(range(json!([Token::Approval::SIGNATURE_HASH]))).await, 0);
    assert_eq!(count(json!({"blockHash": last["blockHash"]})).await, 1);
    assert_eq!(count(json!({"fromBlock": last["blockNumber"]})).await, 1);
    let two = json!([Devnet::usdc(), eve]);
    assert_eq!(count(json!({"fromBlock": first, "address": two})).await, 5);
    assert_eq!(count(json!({"fromBlock": first, "address": eve})).await, 0);
    assert_eq!(count(json!({})).await, 1, "by default only the last block is searched");
    let logs = world.ask("eth_getLogs", json!([{"blockHash": last["blockHash"]}])).await.unwrap();
    assert_eq!(logs, last["logs"]);

    let refuse = async |filter: Value, code: i64| {
        assert_eq!(world.ask("eth_getLogs", json!([filter])).await.unwrap_err().code, code);
    };
    assert_eq!(count(json!({"fromBlock": "0x5", "toBlock": "0x4"})).await, 0);
    refuse(json!({"fromBlock": "0xffff"}), -32602).await;
    refuse(json!({"blockHash": B256::repeat_byte(9)}), -32000).await;
}

#[tokio::test]
async fn time_comes_from_the_clock_and_only_goes_forward() {
    let world = World::new().await;
    let head = async || {
        let block = world.ask("eth_getBlockByNumber", json!(["latest"])).await.unwrap();
        number(&block["timestamp"])
    };
    for _ in 0..100 {
        world.ask("evm_mine", json!([])).await.unwrap();
    }
    assert_eq!(head().await, NOW, "many blocks in a second lead the time nowhere");
    world.set_time(NOW + 2);
    world.ask("evm_mine", json!([])).await.unwrap();
    world.set_time(NOW - 1000);
    world.ask("evm_mine", json!([])).await.unwrap();
    assert_eq!(head().await, NOW + 2, "though the clock went back");
    world.set_time(NOW + 500);
    world.ask("evm_mine", json!([])).await.unwrap();
    assert_eq!(head().await, NOW + 500);
    assert_eq!(world.ask("evm_increaseTime", json!([100])).await, Ok(json!(100)));
    assert_eq!(world.ask("evm_increaseTime", json!(["0x1"])).await, Ok(json!(101)));
    world.ask("evm_mine", json!([])).await.unwrap();
    assert_eq!(head().await, NOW + 601);
    let told = world.ask("evm_increaseTime", json!([u64::MAX])).await.unwrap_err();
    assert_eq!(told.code, -32005);
}

#[tokio::test]
async fn only_the_newest_state_is_told() {
    let world = World::new().await;
    let ada = world.funded(1).await.address();
    let latest = world.ask("eth_getBlockByNumber", json!(["latest"])).await.unwrap();
    let by_hash = json!({ "blockHash": latest["hash"], "requireCanonical": true });
    let number = latest["number"].clone();
    let hash = latest["hash"].clone();
    for at in [json!("latest"), json!("pending"), number, hash, by_hash] {
        assert!(world.ask("eth_getBalance", json!([ada, at])).await.is_ok(), "{at}");
    }
    let refuse = async |at: Value, code: i64| {
        assert_eq!(world.ask("eth_getBalance", json!([ada, at])).await.unwrap_err().code, code);
    };
    refuse(json!("0x1"), -32001).await;
    refuse(json!("earliest"), -32001).await;
    refuse(json!("0xff"), -32602).await;
    refuse(json!(B256::repeat_byte(1)), -32000).await;
    refuse(json!("newest"), -32602).await;
}

#[tokio::test]
async fn storage_and_fees_can_be_read() {
    let world = World::new().await;
    world.funded(1).await;
    // The token's first slot is the supply.
    let supply = world.ask("eth_getStorageAt", json!([Devnet::usdc(), "0x0", "latest"])).await;
    assert_eq!(supply, Ok(json!(B256::from(U256::from(20_000_000)))));
    let fees = world.ask("eth_feeHistory", json!(["0x5", "latest", [25, 75.5]])).await.unwrap();
    assert_eq!(fees["oldestBlock"], json!("0x0"), "there are no five blocks");
    assert_eq!(fees["baseFeePerGas"].as_array().unwrap().len(), 4);
    assert_eq!(fees["reward"], json!([["0x0", "0x0"], ["0x0", "0x0"], ["0x0", "0x0"]]));
    let ratio = fees["gasUsedRatio"][1].as_f64().unwrap();
    assert!((0.0006..0.0008).contains(&ratio), "{ratio}");
    let price = number(&world.ask("eth_gasPrice", json!([])).await.unwrap());
    let tip = number(&world.ask("eth_maxPriorityFeePerGas", json!([])).await.unwrap());
    assert_eq!(json!(U64::from(price - tip)), fees["baseFeePerGas"][0]);
}

#[tokio::test]
async fn contracts_see_the_block_and_its_ancestors() {
    let world = World::new().await;
    let ada = world.funded(1).await;
    // Returns NUMBER, TIMESTAMP, CHAINID, BLOCKHASH(1) and BASEFEE.
    let code = hex!("435f5242602052466040526001406060524860805260a05ff3");
    let output = world.ask("eth_call", json!([{"data": Bytes::from(code)}])).await.unwrap();
    let output: Bytes = serde_json::from_value(output).unwrap();
    let words: Vec<U256> = output.chunks(32).map(U256::from_be_slice).collect();
    let first = world.ask("eth_getBlockByNumber", json!(["0x1"])).await.unwrap();
    let hash: B256 = serde_json::from_value(first["hash"].clone()).unwrap();
    let expected = [2, NOW, CHAIN_ID].map(U256::from);
    assert_eq!(words[..3], expected);
    assert_eq!(words[3], U256::from_be_bytes(hash.0));
    assert_eq!(words[4], U256::ZERO, "a call without a price has no base fee");
    // The same code as a constructor: what it returns becomes a contract.
    let hash = world.send(&ada, TxKind::Create, code.to_vec()).await.unwrap();
    let receipt = world.ask("eth_getTransactionReceipt", json!([hash])).await.unwrap();
    let at = &receipt["contractAddress"];
    assert_eq!(*at, json!(ada.address().create(0)));
    let code = world.ask("eth_getCode", json!([at])).await.unwrap();
    assert_eq!(code.as_str().unwrap().len(), 2 + 2 * 160);
}

#[tokio::test]
async fn requests_come_alone_in_batches_and_broken() {
    let world = World::new().await;
    let at = world.devnet.addr();
    let check = async |body: &str, expected: Value| {
        let (status, answer) = post(at, body).await;
        assert_eq!(status, 200, "{body}");
        let mut answer: Value = serde_json::from_str(&answer).unwrap();
        for one in answer.as_array_mut().into_iter().flatten().chain([]) {
            strip(one);
        }
        strip(&mut answer);
        assert_eq!(answer, expected, "{body}");
    };
    let error = |id: Value, code: i64| json!({"jsonrpc": "2.0", "id": id, "error": {"code": code}});
    let chain = |id: Value| json!({"jsonrpc": "2.0", "id": id, "result": "0x7a69"});
    check(r#"{"jsonrpc":"2.0","id":"a","method":"eth_chainId"}"#, chain(json!("a"))).await;
    check(r#"{"jsonrpc":"2.0","id":null,"method":"eth_chainId"}"#, chain(Value::Null)).await;
    check("{", error(Value::Null, -32700)).await;
    check("[]", error(Value::Null, -32600)).await;
    check(r#"{"id":1}"#, error(Value::Null, -32600)).await;
    check(r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#, error(Value::Null, -32600)).await;
    check(r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#, error(Value::Null, -32600)).await;
    check(r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#, error(json!(1), -32601)).await;
    let wrong = r#"{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x1"]}"#;
    check(wrong, error(json!(1), -32602)).await;
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"eth_chainId"},1,
        {"jsonrpc":"2.0","method":"eth_chainId"},{"jsonrpc":"2.0","id":2,"method":"x"}]"#;
    let answers = [chain(json!(1)), error(Value::Null, -32600), error(json!(2), -32601)];
    check(batch, json!(answers)).await;
    let (status, body) = post(at, r#"{"jsonrpc":"2.0","method":"eth_chainId"}"#).await;
    assert_eq!((status, body.as_str()), (204, ""), "nobody waits for the answer");
    let (status, _) = post_as(at, "text/plain", "{}").await;
    assert_eq!(status, 415);
}

/// Removes the message of an error.
fn strip(reply: &mut Value) {
    if let Some(error) = reply.get_mut("error").and_then(Value::as_object_mut) {
        error.remove("message");
    }
}

#[tokio::test]
async fn it_ends_when_it_is_stopped_though_clients_stay() {
    let world = World::new().await;
    let at = world.devnet.addr();
    let mut silent = tokio::net::TcpStream::connect(at).await.unwrap();
    let (status, _) = post(at, r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#).await;
    assert_eq!(status, 200);
    let stop = world.devnet.stop();
    tokio::time::timeout(std::time::Duration::from_secs(3), stop).await.unwrap();
    assert!(tokio::net::TcpStream::connect(at).await.is_err());
    let read = tokio::io::AsyncReadExt::read(&mut silent, &mut [0; 1]).await;
    assert!(matches!(read, Ok(0) | Err(_)), "the connection is closed");
}
