//! Tests of several transactions in one block: in order, without refused ones, and reproduced
//! after a restart.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};

use alloy_consensus::TxLegacy;
use alloy_primitives::{Address, Bytes, TxKind, U256};
use alloy_signer_local::PrivateKeySigner;
use alloy_sol_types::SolCall;
use automaton_core::faults::{FaultPoint, Faults, NoFaults};
use automaton_devnet::baseline::Replay;
use automaton_devnet::{CHAIN_ID, Devnet};
use serde_json::{Value, json};

use crate::support::{Token, World, account, sign, succeeded};

/// A gate that holds up storing until it is opened.
#[derive(Default)]
struct Gate {
    is_shut: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn set(&self, is_shut: bool) {
        *self.is_shut.lock().unwrap() = is_shut;
        self.opened.notify_all();
    }
}

impl Faults for Gate {
    fn reach(&self, point: FaultPoint) {
        if point == FaultPoint::ChainActDone {
            let shut = self.is_shut.lock().unwrap();
            drop(self.opened.wait_while(shut, |is_shut| *is_shut).unwrap());
        }
    }
}

fn pay(from: &PrivateKeySigner, nonce: u64, gas_limit: u64) -> Bytes {
    let transfer = Token::transferCall { to: Address::repeat_byte(9), value: U256::from(1) };
    let gas_price = 2_000_000_000 + u128::from(nonce);
    let to = TxKind::Call(Devnet::usdc());
    let value = U256::ZERO;
    let input = transfer.abi_encode().into();
    let chain_id = Some(CHAIN_ID);
    sign(from, TxLegacy { chain_id, nonce, gas_price, gas_limit, to, value, input })
}

async fn open(folder: &Path, faults: Arc<dyn Faults>) -> World {
    World::open(Some(folder), faults).await.unwrap()
}

async fn block(world: &World, number: &str) -> Value {
    world.ask("eth_getBlockByNumber", json!([number, false])).await.unwrap()
}

/// Sends all transactions while a block is being stored. Returns the answers in that order.
#[expect(clippy::disallowed_methods, reason = "a test awaits what it starts")]
async fn send(
    world: &Arc<World>,
    gate: &Gate,
    raws: Vec<Bytes>,
) -> Vec<Result<Value, crate::support::Told>> {
    gate.set(true);
    let mut sent = Vec::new();
    for raw in raws {
        let world = Arc::clone(world);
        let send = async move { world.ask("eth_sendRawTransaction", json!([raw])).await };
        sent.push(tokio::spawn(send));
        // The first one makes the block for which all others wait.
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    }
    gate.set(false);
    let mut told = Vec::new();
    for sent in sent {
        told.push(sent.await.unwrap());
    }
    told
}

#[tokio::test]
async fn what_comes_while_a_block_is_stored_shares_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Arc::new(Gate::default());
    let world = Arc::new(open(folder.path(), Arc::<Gate>::clone(&gate)).await);
    let ada = world.funded(1).await;
    let bob = world.funded(2).await;
    let before = block(&world, "latest").await;
    let poor = account(3);
    let raws = vec![
        pay(&ada, 0, 90_000),
        // Out of order, one that has nothing to pay with, one twice, and another sender.
        pay(&ada, 2, 90_000),
        pay(&ada, 1, 90_000),
        pay(&poor, 0, 90_000),
        pay(&ada, 0, 90_000),
        pay(&bob, 0, 90_000),
    ];
    let told = send(&world, &gate, raws).await;
    let words = |at: usize| told[at].as_ref().unwrap_err().message.clone();
    assert!(words(3).contains("insufficient funds"), "{}", words(3));
    assert!(words(4).contains("nonce too low"), "{}", words(4));
    let hashes: Vec<Value> = [0, 1, 2, 5].map(|at| told[at].clone().unwrap()).to_vec();
    let last = block(&world, "latest").await;
    let first = world.ask("eth_getBlockByHash", json!([last["parentHash"], false])).await.unwrap();
    assert_eq!(
        (&first["transactions"], &first["parentHash"]),
        (&json!([hashes[0]]), &before["hash"])
    );
    assert_eq!(last["transactions"], json!([hashes[3], hashes[2], hashes[1]]), "by their numbers");

    let mut gas = 0;
    let mut logs = Vec::new();
    for (at, hash) in last["transactions"].as_array().unwrap().iter().enumerate() {
        let receipt = world.ask("eth_getTransactionReceipt", json!([hash])).await.unwrap();
        assert!(succeeded(&receipt));
        let index = json!(format!("0x{at:x}"));
        assert_eq!((&receipt["transactionIndex"], &receipt["blockHash"]), (&index, &last["hash"]));
        gas += number(&receipt["gasUsed"]);
        assert_eq!(number(&receipt["cumulativeGasUsed"]), gas);
        assert_eq!(receipt["logs"][0]["logIndex"], index, "each has one log");
        assert_eq!(receipt["logs"][0]["transactionHash"], *hash);
        logs.extend(receipt["logs"].as_array().unwrap().clone());
        let tx = world.ask("eth_getTransactionByHash", json!([hash])).await.unwrap();
        assert_eq!((&tx["transactionIndex"], &tx["hash"]), (&index, hash));
    }
    assert_eq!(number(&last["gasUsed"]), gas);
    let found = world.ask("eth_getLogs", json!([{ "blockHash": last["hash"] }])).await.unwrap();
    assert_eq!(found, json!(logs));
    let fees = world.ask("eth_feeHistory", json!(["0x1", "latest", [0.0, 50.0, 100.0]])).await;
    let tips = fees.unwrap()["reward"][0].clone();
    assert_eq!(tips, json!(["0x3b9aca00", "0x3b9aca01", "0x3b9aca02"]));
    assert_eq!(world.balance(Address::repeat_byte(9)).await, 4);

    Arc::into_inner(world).unwrap().devnet.stop().await;
    let mut replay = Replay::open(folder.path()).unwrap();
    let steps = std::iter::from_fn(|| replay.step().unwrap().then_some(())).count();
    assert_eq!(steps, 4, "the refused ones are not in the log");
    drop(replay);
    let world = open(folder.path(), Arc::new(NoFaults)).await;
    assert_eq!(block(&world, "latest").await, last);
    world.devnet.stop().await;
}

fn number(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

#[tokio::test]
async fn what_does_not_fit_into_a_block_is_in_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Arc::new(Gate::default());
    let world = Arc::new(open(folder.path(), Arc::<Gate>::clone(&gate)).await);
    let ada = world.funded(1).await;
    let before = number(&block(&world, "latest").await["number"]);
    let raws = (0..4).map(|nonce| pay(&ada, nonce, 29_990_000)).collect();
    for told in send(&world, &gate, raws).await {
        let receipt = world.ask("eth_getTransactionReceipt", json!([told.unwrap()])).await;
        assert!(succeeded(&receipt.unwrap()));
    }
    assert_eq!(number(&block(&world, "latest").await["number"]), before + 4);
    Arc::into_inner(world).unwrap().devnet.stop().await;
}
