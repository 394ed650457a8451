//! Tests of the log: answered operations survive every crash, and damage is detected.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use alloy_primitives::{TxKind, U256, hex, keccak256};
use automaton_core::error::Classified;
use automaton_core::faults::{FaultPoint, Faults, NoFaults};
use automaton_core::money::MicroUsdc;
use automaton_devnet::{CHAIN_ID, Devnet, DevnetConfig, DevnetError};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Token, World, account};

/// Performs an operation of every kind. Returns the last block.
async fn live(world: &World) -> Value {
    let ada = world.funded(1).await;
    let pay = |value| Token::transferCall { to: account(2).address(), value: U256::from(value) };
    world.token(&ada, pay(5)).await;
    world.ask("evm_increaseTime", json!([77])).await.unwrap();
    world.ask("evm_mine", json!([])).await.unwrap();
    world.token(&ada, pay(2)).await;
    latest(world).await
}

async fn latest(world: &World) -> Value {
    world.ask("eth_getBlockByNumber", json!(["latest", true])).await.unwrap()
}

async fn open(folder: &Path) -> Result<World, DevnetError> {
    World::open(Some(folder), Arc::new(NoFaults)).await
}

fn log(folder: &Path) -> PathBuf {
    folder.join("chain.log")
}

#[tokio::test]
async fn a_start_does_everything_again() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("deep/chain");
    let world = open(&data).await.unwrap();
    let end = live(&world).await;
    world.devnet.stop().await;
    for _ in 0..2 {
        let world = open(&data).await.unwrap();
        world.set_time(4_000_000_000);
        assert_eq!(latest(&world).await, end);
        assert_eq!(world.balance(account(2).address()).await, 7);
        assert_eq!(world.ask("evm_increaseTime", json!([0])).await, Ok(json!(77)));
        world.devnet.stop().await;
    }
}

#[tokio::test]
async fn a_crash_in_the_middle_of_a_line_costs_that_line_alone() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(folder.path()).await.unwrap();
    live(&world).await;
    world.devnet.stop().await;
    let whole = fs::read(log(folder.path())).unwrap();
    let ends: Vec<usize> =
        whole.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).collect();
    assert_eq!(ends.len(), 6);
    // In the middle of the first line, of some others, and without the last line break.
    for (lines, cut) in [(0, 9), (1, ends[0] + 1), (4, ends[3] + 70), (5, ends[5] - 1)] {
        fs::write(log(folder.path()), &whole[..cut]).unwrap();
        let world = open(folder.path()).await.unwrap();
        let kept = fs::read(log(folder.path())).unwrap();
        let expected = lines.max(1);
        assert_eq!(kept.iter().filter(|b| **b == b'\n').count(), expected, "cut at {cut}");
        assert_eq!(kept, whole[..ends[expected - 1]]);
        // The next line is appended in place of the unterminated one.
        world.ask("evm_mine", json!([])).await.unwrap();
        let end = latest(&world).await;
        world.devnet.stop().await;
        let world = open(folder.path()).await.unwrap();
        assert_eq!(latest(&world).await, end, "cut at {cut}");
        world.devnet.stop().await;
    }
    // The power failed, and the file has allocated space without data.
    let mut zeros = whole[..ends[4]].to_vec();
    zeros.extend([0; 100]);
    fs::write(log(folder.path()), zeros).unwrap();
    open(folder.path()).await.unwrap().devnet.stop().await;
    assert_eq!(fs::read(log(folder.path())).unwrap(), whole[..ends[4]]);
}

#[tokio::test]
async fn any_other_damage_is_a_refusal_that_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(folder.path()).await.unwrap();
    live(&world).await;
    world.devnet.stop().await;
    let whole = fs::read_to_string(log(folder.path())).unwrap();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let check = async |text: String, expected: u64| {
        fs::write(log(folder.path()), &text).unwrap();
        let error = open(folder.path()).await.map(|_| ()).unwrap_err();
        assert!(
            matches!(&error, DevnetError::Damaged { line, .. } if *line == expected),
            "{error:?} is not in line {expected}"
        );
        assert!(error.to_string().contains("chain.log"), "{error}");
        assert!(error.hint().is_some());
        assert_eq!(fs::read_to_string(log(folder.path())).unwrap(), text, "it is left alone");
    };
    check(whole.replacen("1767323100", "1767323101", 1), 1).await;
    check(lines.concat().replacen("transaction", "transactiom", 1), 3).await;
    check([lines[0], lines[2]].concat(), 2).await;
    check([lines[0], lines[1], lines[1]].concat(), 3).await;
    check([lines[0], lines[2], lines[1], lines[3]].concat(), 2).await;
    check(format!("{}\n", lines[0]), 2).await;
    check(format!("\n{whole}"), 1).await;
    check(whole.trim_end_matches('\n').replacen('\n', " ", 1) + "\n", 1).await;
    check("x\n".to_owned(), 1).await;
}

#[tokio::test]
async fn a_chain_has_one_process_and_one_id() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(folder.path()).await.unwrap();
    let error = open(folder.path()).await.map(|_| ()).unwrap_err();
    assert!(matches!(error, DevnetError::InUse { .. }), "{error:?}");
    let address = world.devnet.addr();
    world.devnet.stop().await;
    let config = DevnetConfig {
        listen: address,
        data: Some(folder.path().to_owned()),
        chain_id: CHAIN_ID + 1,
        clock: Arc::new(world.clock),
        faults: Arc::new(NoFaults),
    };
    let error = Devnet::start(config).await.map(|_| ()).unwrap_err();
    assert!(matches!(error, DevnetError::Damaged { line: 1, .. }), "{error:?}");
}

#[tokio::test]
async fn a_chain_of_another_token_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let open_with = async |fields: &str| {
        let json = format!(r#"{{"version":1,"chain_id":{CHAIN_ID},"time":9{fields}}}"#);
        let sum = keccak256([&[0; 32], json.as_bytes()].concat());
        fs::write(log(folder.path()), format!("{} {json}\n", hex::encode(sum))).unwrap();
        open(folder.path()).await
    };
    let digest = keccak256("another token");
    let error = open_with(&format!(r#","token":"{digest}""#)).await.map(drop).unwrap_err();
    assert!(error.to_string().contains("with another token"), "{error}");
    // A log without a token digest may have ours, until an operation shows otherwise.
    open_with("").await.unwrap().devnet.stop().await;
}

/// Copies the log at a fault point, as a crash would leave it.
struct Copying {
    at: FaultPoint,
    from: PathBuf,
    copies: Mutex<Vec<Vec<u8>>>,
}

impl Faults for Copying {
    fn reach(&self, point: FaultPoint) {
        if point == self.at {
            self.copies.lock().unwrap().push(fs::read(log(&self.from)).unwrap());
        }
    }
}

#[tokio::test]
async fn what_is_answered_was_on_disk_before() {
    for (at, expected) in [(FaultPoint::ChainActDone, false), (FaultPoint::ChainActStored, true)] {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().to_owned();
        let faults = Arc::new(Copying { at, from, copies: Mutex::new(Vec::new()) });
        let world = World::open(Some(folder.path()), Arc::clone(&faults) as _).await.unwrap();
        let ada = world.funded(1).await;
        let hash = world.send(&ada, TxKind::Call(account(2).address()), vec![]).await.unwrap();
        world.devnet.stop().await;
        let copy = faults.copies.lock().unwrap().last().unwrap().clone();
        fs::write(log(folder.path()), copy).unwrap();
        let world = open(folder.path()).await.unwrap();
        let receipt = world.ask("eth_getTransactionReceipt", json!([hash])).await.unwrap();
        assert_eq!(!receipt.is_null(), expected, "{at}");
        world.devnet.stop().await;
    }
}

/// An operation of a random history.
#[derive(Debug, Clone)]
enum Deed {
    Fund(u8, u64, u64),
    Pay(u8, u64),
    Mine,
    Advance(u32),
    Clock(u32),
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        (1_u8..4, 0_u64..100, 0_u64..3).prop_map(|(who, usdc, wei)| Deed::Fund(who, usdc, wei)),
        (1_u8..4, 0_u64..100).prop_map(|(whom, value)| Deed::Pay(whom, value)),
        Just(Deed::Mine),
        any::<u32>().prop_map(Deed::Advance),
        any::<u32>().prop_map(Deed::Clock),
    ]
}

/// Runs the operations on a chain in a folder. Returns the last block.
async fn lived(folder: &Path, deeds: &[Deed]) -> Value {
    let world = open(folder).await.unwrap();
    let ada = world.funded(9).await;
    for deed in deeds {
        // Refusals are part of a history: funding with nothing is refused.
        match deed {
            Deed::Fund(who, usdc, wei) => {
                let usdc = MicroUsdc::new(*usdc);
                let wei = U256::from(*wei);
                world.devnet.fund(account(*who).address(), usdc, wei).await.ok();
            }
            Deed::Pay(whom, value) => {
                let to = account(*whom).address();
                let value = U256::from(*value);
                world.token(&ada, Token::transferCall { to, value }).await;
            }
            Deed::Mine => drop(world.ask("evm_mine", json!([])).await),
            Deed::Advance(by) => drop(world.ask("evm_increaseTime", json!([by])).await),
            Deed::Clock(at) => world.set_time((*at).into()),
        }
    }
    let end = latest(&world).await;
    world.devnet.stop().await;
    end
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_life_is_the_same_after_a_start(deeds in prop::collection::vec(deed(), 0..10)) {
        let folder = tempfile::tempdir().unwrap();
        block_on(async {
            let end = lived(folder.path(), &deeds).await;
            let world = open(folder.path()).await.unwrap();
            assert_eq!(latest(&world).await, end);
        });
    }

    #[test]
    fn no_changed_byte_goes_unseen(at in any::<prop::sample::Index>(), change in 1_u8..) {
        let folder = tempfile::tempdir().unwrap();
        block_on(async {
            lived(folder.path(), &[Deed::Pay(1, 5), Deed::Mine]).await;
            let mut bytes = fs::read(log(folder.path())).unwrap();
            let at = at.index(bytes.len());
            bytes[at] ^= change;
            fs::write(log(folder.path()), &bytes).unwrap();
            let opened = open(folder.path()).await;
            // Without its end the last line is one that was never finished.
            assert_eq!(opened.is_ok(), at == bytes.len() - 1, "byte {at}");
        });
    }
}
