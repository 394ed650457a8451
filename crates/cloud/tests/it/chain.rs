//! A purchase against a node that answers by a table and takes the transaction apart.

use std::path::Path;
use std::sync::{Arc, Mutex};

use alloy_consensus::transaction::RlpEcdsaDecodableTx;
use alloy_consensus::{SignableTransaction, Signed, TxEip1559};
use alloy_primitives::{Address, Bytes, U256, hex};
use automaton_cloud::billing::chain::CALLED;
use automaton_cloud::{CloudConfig, CloudDeps, CloudServer};
use automaton_core::faults::NoFaults;
use automaton_core::time::{Span, Timestamp};
use automaton_core::window::BootClock;
use automaton_core::wire::x402;
use automaton_testkit::clock::FakeClock;
use automaton_testkit::entropy::SeededEntropy;
use automaton_wallet::SignerClient;
use automaton_wallet::rehearsal::{
    Contract, GasRules, Rehearsal, SignerDeps, SigningPermits, rehearse,
};
use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::world::{ASSET, CHAIN, NOW, PAYEE, Wallet, get};

/// The transactions that were broadcast.
type Sent = Arc<Mutex<Vec<Bytes>>>;

async fn node(State(sent): State<Sent>, Json(ask): Json<Value>) -> Json<Value> {
    let params = &ask["params"];
    let result = match ask["method"].as_str().unwrap() {
        "eth_call" => {
            assert_eq!(params[0]["to"].as_str().unwrap().parse::<Address>(), Ok(ASSET));
            let answer = match params[0]["data"].as_str().unwrap().get(..10) {
                Some("0xe94a0102") => U256::ZERO,
                Some("0x70a08231") => U256::from(20_000_000),
                other => panic!("{other:?}"),
            };
            json!(hex::encode_prefixed(answer.to_be_bytes::<32>()))
        }
        "eth_estimateGas" => json!("0x10000"),
        "eth_getBlockByNumber" => json!({ "baseFeePerGas": "0x3b9aca00" }),
        "eth_maxPriorityFeePerGas" => json!("0x5"),
        "eth_getTransactionCount" => json!("0x7"),
        "eth_sendRawTransaction" => {
            let raw: Bytes = params[0].as_str().unwrap().parse().unwrap();
            sent.lock().unwrap().push(raw.clone());
            json!(alloy_primitives::keccak256(raw))
        }
        "eth_getTransactionReceipt" => match sent.lock().unwrap().is_empty() {
            true => Value::Null,
            false => json!({ "status": "0x1", "logs": [], "blockNumber": "0x1" }),
        },
        other => panic!("{other}"),
    };
    Json(json!({ "jsonrpc": "2.0", "id": ask["id"], "result": result }))
}

struct Booted;

impl BootClock for Booted {
    fn since_boot(&self) -> Option<Span> {
        Some(Span::ZERO)
    }
}

/// The signer of the account that pays gas, as an operator configures it.
async fn signer(home: &Path) -> SignerClient {
    let selectors = vec![CALLED];
    let contracts = vec![Contract { chain_id: CHAIN, address: ASSET, selectors }];
    let gas = GasRules { limit_max: 300_000, fee_max: 100_000_000_000, per_day: 1 << 60 };
    let permits = SigningPermits { contracts, gas, ..SigningPermits::default() };
    let ledger = home.join("ledger.db");
    let parts = SignerDeps {
        clock: Arc::new(FakeClock::at(Timestamp::from_millis(NOW))),
        boot: Arc::new(Booted),
        faults: Arc::new(NoFaults),
    };
    let signer =
        rehearse(Rehearsal { key: [9; 32], ledger, permits, chain: None, plant: None }, parts);
    SignerClient::open(signer.unwrap().connect().unwrap()).await.unwrap()
}

#[tokio::test]
async fn a_purchase_is_one_transaction_of_the_gas_account() {
    let sent = Sent::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let rpc = listener.local_addr().unwrap();
    let app = Router::new().route("/", post(node)).with_state(Arc::clone(&sent));
    #[expect(clippy::disallowed_methods, reason = "the runtime of the test ends it")]
    tokio::spawn(async move { axum::serve(listener, app).await });
    let home = tempfile::tempdir().unwrap();
    let config = json!({
        "data": home.path(), "models": [{ "id": "m", "input_microcents_per_million": 1,
            "output_microcents_per_million": 1, "context_window": 1, "max_output_tokens": 1 }],
        "upstream": { "base_url": "http://127.0.0.1:9/v1" },
        "chain": { "id": CHAIN, "rpc_url": format!("http://{rpc}"), "asset": ASSET,
            "pay_to": PAYEE, "gas_signer": { "home": home.path() } },
    });
    let config = CloudConfig::parse(&config.to_string()).unwrap();
    let deps = CloudDeps {
        clock: Arc::new(FakeClock::at(Timestamp::from_millis(NOW))),
        entropy: Arc::new(SeededEntropy::new(1)),
        report: Arc::new(drop),
        faults: Arc::new(NoFaults),
        launcher: None,
    };
    let client = signer(home.path()).await;
    let cloud = CloudServer::start(config, deps, client).await.unwrap();
    let wallet = Wallet::new(1);
    let payment = wallet.payment(wallet.authorize(5, 1));
    let header = x402::encode(&payment).unwrap();
    let path = format!("/pay/5/{}", wallet.address);
    let reply = get(cloud.address(), &path, &[("X-PAYMENT", &header)]).await;
    assert_eq!((reply.status, &reply.json()["status"]), (200, &"settled".into()), "{reply:?}");
    let raw = sent.lock().unwrap().clone();
    assert_eq!(raw.len(), 1);
    let signed: Signed<TxEip1559> = TxEip1559::eip2718_decode(&mut raw[0].as_ref()).unwrap();
    let digest = signed.tx().signature_hash();
    let payer = signed.signature().recover_address_from_prehash(&digest).unwrap();
    assert_eq!(payer, Wallet::new(9).address);
    let transaction = signed.tx();
    assert_eq!((transaction.nonce, transaction.chain_id), (7, CHAIN));
    assert_eq!(transaction.max_fee_per_gas, 2 * 1_000_000_000 + 5);
    assert_eq!(transaction.to.to(), Some(&ASSET));
    assert_eq!(transaction.input[..4], hex!("e3ee160e"));
    assert_eq!(transaction.input.len(), 4 + 9 * 32);
    assert_eq!(transaction.input[4 + 6 * 32 + 31], payment.payload.signature[64]);
}
