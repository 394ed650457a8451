//! Tests of filters, snapshots, and the content of blocks.

use alloy_primitives::{U64, U256};
use std::sync::Arc;

use automaton_core::faults::NoFaults;
use automaton_core::money::MicroUsdc;
use automaton_devnet::Devnet;
use serde_json::{Value, json};

use crate::support::{NOW, World, account};

/// Funds an account, in one block with one transfer. Returns the hash of the transaction.
async fn fund(world: &World) -> Value {
    json!(world.devnet.fund(account(9).address(), MicroUsdc::new(5), U256::ZERO).await.unwrap())
}

#[tokio::test]
async fn a_filter_tells_each_thing_once() {
    let world = World::new().await;
    let new = async |method: &str, params: Value| world.ask(method, params).await.unwrap();
    let blocks = new("eth_newBlockFilter", json!([])).await;
    let waiting = new("eth_newPendingTransactionFilter", json!([])).await;
    let token = new("eth_newFilter", json!([{ "address": Devnet::usdc() }])).await;
    let nobody = new("eth_newFilter", json!([{ "address": account(3).address() }])).await;
    let later = new("eth_newFilter", json!([{ "fromBlock": "0x3", "toBlock": "0x3" }])).await;
    let ids = [&blocks, &waiting, &token, &nobody, &later];
    assert_eq!(ids, [&json!("0x1"), &json!("0x2"), &json!("0x3"), &json!("0x4"), &json!("0x5")]);
    let told = async |id: &Value| world.ask("eth_getFilterChanges", json!([id])).await.unwrap();
    let hash = fund(&world).await;
    let head = world.ask("eth_getBlockByNumber", json!(["latest"])).await.unwrap();
    assert_eq!(told(&blocks).await, json!([head["hash"]]));
    assert_eq!(told(&waiting).await, json!([hash]));
    let logs = told(&token).await;
    assert_eq!((&logs[0]["transactionHash"], logs.as_array().unwrap().len()), (&hash, 1));
    for id in ids {
        assert_eq!(told(id).await, json!([]), "{id} tells nothing twice");
    }
    fund(&world).await;
    fund(&world).await;
    fund(&world).await;
    assert_eq!(told(&blocks).await.as_array().unwrap().len(), 3);
    assert_eq!(told(&later).await[0]["blockNumber"], "0x3");
    let all = world.ask("eth_getFilterLogs", json!([later])).await.unwrap();
    assert_eq!(all.as_array().unwrap().len(), 1);
    let code =
        async |method: &str, params: Value| world.ask(method, params).await.unwrap_err().code;
    assert_eq!(code("eth_getFilterLogs", json!([blocks])).await, -32000, "it has no logs");
    assert_eq!(world.ask("eth_uninstallFilter", json!([later])).await, Ok(json!(true)));
    assert_eq!(world.ask("eth_uninstallFilter", json!([later])).await, Ok(json!(false)));
    assert_eq!(code("eth_getFilterChanges", json!([later])).await, -32000);
    world.set_time(NOW + 301);
    assert_eq!(code("eth_getFilterChanges", json!([blocks])).await, -32000, "nobody asked for it");
    let one_block = json!([{ "blockHash": head["hash"] }]);
    assert_eq!(code("eth_newFilter", one_block).await, -32602);
}

#[tokio::test]
async fn a_snapshot_is_taken_up_once_also_after_a_start() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(Some(folder.path()), Arc::new(NoFaults)).await.unwrap();
    let revert = async |world: &World, id: &Value| world.ask("evm_revert", json!([id])).await;
    let height = async |world: &World| -> u64 {
        let told = world.ask("eth_blockNumber", json!([])).await.unwrap();
        serde_json::from_value::<U64>(told).unwrap().to()
    };
    fund(&world).await;
    let first = world.ask("evm_snapshot", json!([])).await.unwrap();
    let gone = fund(&world).await;
    let second = world.ask("evm_snapshot", json!([])).await.unwrap();
    assert_eq!((&first, &second), (&json!("0x1"), &json!("0x2")));
    let blocks = world.ask("eth_newBlockFilter", json!([])).await.unwrap();
    assert_eq!((height(&world).await, world.balance(account(9).address()).await), (2, 10));
    assert_eq!(revert(&world, &first).await, Ok(json!(true)));
    assert_eq!((height(&world).await, world.balance(account(9).address()).await), (1, 5));
    let receipt = world.ask("eth_getTransactionReceipt", json!([gone])).await;
    assert_eq!(receipt, Ok(Value::Null));
    for id in [&first, &second, &json!("0x9")] {
        assert_eq!(revert(&world, id).await, Ok(json!(false)), "{id}");
    }
    fund(&world).await;
    let told = world.ask("eth_getFilterChanges", json!([blocks])).await.unwrap();
    assert_eq!(told.as_array().unwrap().len(), 1, "the block in the place of the one that is gone");
    let third = world.ask("evm_snapshot", json!([])).await.unwrap();
    let head = world.ask("eth_getBlockByNumber", json!(["latest"])).await.unwrap();
    world.devnet.stop().await;

    let world = World::open(Some(folder.path()), Arc::new(NoFaults)).await.unwrap();
    assert_eq!(world.ask("eth_getBlockByNumber", json!(["latest"])).await.unwrap(), head);
    fund(&world).await;
    assert_eq!(revert(&world, &third).await, Ok(json!(true)), "a start keeps them");
    assert_eq!((height(&world).await, world.balance(account(9).address()).await), (2, 10));
    for _ in 0..64 {
        world.ask("evm_snapshot", json!([])).await.unwrap();
    }
    assert_eq!(world.ask("evm_snapshot", json!([])).await.unwrap_err().code, -32005);
}

#[tokio::test]
async fn a_block_tells_what_is_in_it_and_the_node_what_it_has_not() {
    let world = World::new().await;
    let hash = fund(&world).await;
    let block = world.ask("eth_getBlockByNumber", json!(["0x1"])).await.unwrap();
    let ask = async |method: &str, params: Value| world.ask(method, params).await.unwrap();
    let receipt = ask("eth_getTransactionReceipt", json!([hash])).await;
    let transaction = ask("eth_getTransactionByHash", json!([hash])).await;
    for (method, params, expected) in [
        ("eth_getBlockReceipts", json!(["0x1"]), json!([receipt])),
        ("eth_getBlockReceipts", json!([block["hash"]]), json!([receipt])),
        ("eth_getBlockReceipts", json!(["0x0"]), json!([])),
        ("eth_getBlockReceipts", json!(["0x9"]), Value::Null),
        ("eth_getBlockTransactionCountByNumber", json!(["latest"]), json!("0x1")),
        ("eth_getBlockTransactionCountByHash", json!([block["hash"]]), json!("0x1")),
        ("eth_getBlockTransactionCountByNumber", json!(["0x9"]), Value::Null),
        ("eth_getUncleCountByBlockNumber", json!(["0x1"]), json!("0x0")),
        ("eth_getUncleCountByBlockHash", json!([block["hash"]]), json!("0x0")),
        ("eth_getTransactionByBlockNumberAndIndex", json!(["0x1", "0x0"]), transaction.clone()),
        ("eth_getTransactionByBlockHashAndIndex", json!([block["hash"], "0x0"]), transaction),
        ("eth_getTransactionByBlockNumberAndIndex", json!(["0x1", "0x1"]), Value::Null),
        ("eth_accounts", json!([]), json!([])),
        ("eth_syncing", json!([]), json!(false)),
        ("net_listening", json!([]), json!(true)),
        ("net_peerCount", json!([]), json!("0x0")),
        ("eth_call", json!([{ "to": account(1).address() }, "latest", {}]), json!("0x")),
        ("eth_call", json!([{ "to": account(1).address() }, "latest", null]), json!("0x")),
    ] {
        assert_eq!(ask(method, params.clone()).await, expected, "{method} {params}");
    }
    let refused = async |method: &str, params: Value| world.ask(method, params).await.unwrap_err();
    for (method, says) in [
        ("eth_subscribe", "eth_getFilterChanges"),
        ("eth_getProof", "eth_getProof does not exist here: "),
    ] {
        let told = refused(method, json!([])).await;
        assert!(told.code == -32601 && told.message.contains(says), "{method}: {told:?}");
    }
}
