//! The questions about authorizations, and the answers that are accepted.

use serde_json::{Value, json};

use super::*;
use crate::test_node::{TestNode, reply};

const TOKEN: Address = Address::repeat_byte(0xA5);
const WALLET: Address = Address::repeat_byte(0xAA);

/// Starts a node that answers each question with the next of these, after its chain's id.
async fn node(answers: Vec<Value>) -> (ChainClient, TestNode) {
    let first = json!({ "result": "0x7a69" });
    let replies = std::iter::once(first).chain(answers).map(|it| reply(200, &it)).collect();
    let node = TestNode::start(replies);
    let chain = ChainClient::connect(node.client(), node.url.clone(), 31337).await.unwrap();
    (chain, node)
}

/// The questions after the one for the chain's id.
fn asked(node: &TestNode) -> Vec<Value> {
    node.asked().split_off(1)
}

fn block(number: u8, seconds: u64) -> Value {
    let hash = B256::repeat_byte(number);
    json!({ "result": { "hash": hash, "timestamp": format!("{seconds:#x}") } })
}

fn state(used: bool) -> Value {
    json!({ "result": format!("0x{:064x}", u8::from(used)) })
}

fn unknown_block() -> Value {
    json!({ "error": { "code": -32000, "message": "header not found" } })
}

#[tokio::test]
async fn state_and_time_of_an_authorization_are_of_one_block() {
    for used in [false, true] {
        let (chain, server) = node(vec![block(9, 1000), state(used)]).await;
        let seen = chain.authorization(TOKEN, WALLET, B256::repeat_byte(1)).await.unwrap();
        assert_eq!(seen, AuthorizationState { used, at: Timestamp::from_millis(1_000_000) });
        let questions = asked(&server);
        assert_eq!(questions[0]["params"], json!(["latest", false]));
        let at = json!({ "blockHash": B256::repeat_byte(9), "requireCanonical": true });
        assert_eq!(
            (&questions[1]["method"], &questions[1]["params"][1]),
            (&json!("eth_call"), &at)
        );
    }
}

#[tokio::test]
async fn a_node_that_does_not_know_the_block_is_asked_about_another() {
    // The first node is ahead of the second, as behind one address they may be.
    let answers = vec![block(9, 1000), unknown_block(), block(8, 990), state(false)];
    let (chain, server) = node(answers).await;
    let seen = chain.authorization(TOKEN, WALLET, B256::repeat_byte(1)).await.unwrap();
    assert_eq!(seen, AuthorizationState { used: false, at: Timestamp::from_millis(990_000) });
    assert_eq!(asked(&server)[3]["params"][1]["blockHash"], json!(B256::repeat_byte(8)));
    let never = (0..3).flat_map(|_| [block(9, 1000), unknown_block()]).collect();
    let (chain, server) = node(never).await;
    let error = chain.authorization(TOKEN, WALLET, B256::repeat_byte(1)).await.unwrap_err();
    assert!(matches!(error, ChainError::Refused { .. }), "{error}");
    assert_eq!(asked(&server).len(), 6);
}

#[tokio::test]
async fn an_answer_without_its_block_is_no_answer() {
    for answer in [
        json!({ "result": { "hash": null, "timestamp": "0x1" } }),
        json!({ "result": { "hash": B256::ZERO, "timestamp": "1" } }),
        json!({ "result": null }),
    ] {
        let (chain, server) = node(vec![answer]).await;
        let error = chain.authorization(TOKEN, WALLET, B256::ZERO).await.unwrap_err();
        assert!(matches!(error, ChainError::Malformed { .. }), "{error}");
        assert_eq!(asked(&server).len(), 1);
    }
}

#[tokio::test]
async fn a_block_of_any_size_is_read() {
    let mut large = block(9, 1000);
    let hashes: Vec<_> = (0..300_000_u32).map(|it| format!("0x{it:064x}")).collect();
    large["result"]["transactions"] = json!(hashes);
    let (chain, _node) = node(vec![large, state(true)]).await;
    let seen = chain.authorization(TOKEN, WALLET, B256::ZERO).await.unwrap();
    assert_eq!(seen, AuthorizationState { used: true, at: Timestamp::from_millis(1_000_000) });
}

#[tokio::test]
async fn a_node_without_block_hashes_is_asked_by_number() {
    let numbered = |number: u8| {
        let mut block = block(number, 1000);
        block["result"]["number"] = json!("0x5");
        block
    };
    for refusal in [
        json!({ "code": -32602, "message": "cannot unmarshal object into Go value of type string" }),
        json!({ "code": -32000, "message": "invalid argument 1" }),
        json!("unsupported block parameter"),
    ] {
        let refused = json!({ "error": refusal });
        let answers = vec![numbered(9), refused.clone(), state(true), numbered(9)];
        let (chain, server) = node(answers).await;
        let seen = chain.authorization(TOKEN, WALLET, B256::ZERO).await.unwrap();
        assert_eq!(seen, AuthorizationState { used: true, at: Timestamp::from_millis(1_000_000) });
        let questions = asked(&server);
        assert_eq!(
            (&questions[2]["params"][1], &questions[3]["params"][0]),
            (&json!("0x5"), &json!("0x5"))
        );
        // A fork in between: the state may be that of another block.
        let answers = vec![numbered(9), refused, state(true), numbered(8)];
        let (chain, _server) = node(answers).await;
        let error = chain.authorization(TOKEN, WALLET, B256::ZERO).await.unwrap_err();
        assert!(error.to_string().contains("the block changed"), "{error}");
    }
}

#[tokio::test]
async fn a_node_that_is_busy_at_first_is_connected_to() {
    let busy = json!({ "error": { "code": -32007, "message": "50/second request limit reached" } });
    let good = json!({ "result": "0x7a69" });
    let replies = [&busy, &busy, &good].map(|it| reply(200, it)).to_vec();
    let server = TestNode::start(replies);
    let chain = ChainClient::connect(server.client(), server.url.clone(), 31337).await.unwrap();
    assert_eq!((chain.id(), server.asked().len()), (31337, 3));
}

#[tokio::test]
async fn a_node_of_another_chain_is_refused_by_its_number() {
    let server = TestNode::start(vec![reply(200, &json!({ "result": "0x2105" }))]);
    let error = ChainClient::connect(server.client(), server.url.clone(), 31337).await.unwrap_err();
    let is_other = matches!(error, ChainError::OtherChain { wanted: 31337, found: 8453, .. });
    assert!(is_other, "{error}");
    for answer in [json!({ "result": "8453" }), json!({ "result": null }), json!({})] {
        let server = TestNode::start(vec![reply(200, &answer)]);
        let client = ChainClient::connect(server.client(), server.url.clone(), 31337).await;
        let error = client.unwrap_err();
        assert!(matches!(error, ChainError::Malformed { method: "eth_chainId", .. }), "{error}");
    }
}

#[tokio::test]
async fn a_balance_that_is_no_answer_is_unknown_and_one_that_is_too_large_is_the_most() {
    let word = |value: U256| json!({ "result": format!("{value:#066x}") });
    for (balance, wanted) in [
        (U256::ZERO, 0),
        (U256::from(5_000_000), 5_000_000),
        (U256::from(u64::MAX), u64::MAX),
        (U256::MAX, u64::MAX),
    ] {
        let (chain, server) = node(vec![word(balance)]).await;
        assert_eq!(chain.balance(TOKEN, WALLET).await.unwrap(), MicroUsdc::new(wanted));
        assert_eq!(asked(&server)[0]["params"][1], json!("latest"));
    }
    for answer in [json!({ "result": "0x" }), json!({ "result": null }), unknown_block()] {
        let (chain, _server) = node(vec![answer.clone()]).await;
        assert!(chain.balance(TOKEN, WALLET).await.is_err(), "{answer}");
    }
    let (chain, _server) = node(vec![json!({ "result": "0xde0b6b3a7640000" })]).await;
    assert_eq!(chain.wei(WALLET).await.unwrap(), U256::from(1_000_000_000_000_000_000_u64));
}

#[tokio::test]
async fn a_state_is_read_as_deep_as_is_waited_for() {
    let numbered = json!({ "result": { "hash": B256::repeat_byte(7), "timestamp": "0x3e8" } });
    let (chain, server) = node(vec![json!({ "result": "0x14" }), numbered, state(true)]).await;
    let seen = chain.confirmed_by(5).authorization(TOKEN, WALLET, B256::ZERO).await.unwrap();
    assert_eq!(seen, AuthorizationState { used: true, at: Timestamp::from_millis(1_000_000) });
    let questions = asked(&server);
    assert_eq!(questions[0]["method"], "eth_blockNumber");
    assert_eq!(questions[1]["params"], json!(["0xf", false]), "five blocks below the newest");
    assert_eq!(questions[2]["params"][1]["blockHash"], json!(B256::repeat_byte(7)));
}

#[tokio::test]
async fn a_faucet_is_asked_once_and_named_by_its_refusal() {
    let hash = json!({ "result": "0x01" });
    let (chain, server) = node(vec![hash]).await;
    assert_eq!(chain.fund(WALLET, MicroUsdc::new(255)).await.unwrap(), "0x01");
    let question = &asked(&server)[0];
    assert_eq!(question["method"], "automaton_fund");
    assert_eq!(question["params"], json!([{ "address": WALLET, "usdc": "0xff" }]));
    let (chain, server) = node(vec![json!({ "result": null })]).await;
    chain.fund_gas(WALLET, U256::from(16)).await.unwrap();
    assert_eq!(asked(&server)[0]["params"], json!([{ "address": WALLET, "wei": "0x10" }]));
    // A busy faucet may have paid: it is not asked again.
    let busy = json!({ "error": { "code": -32005, "message": "limit exceeded" } });
    let (chain, server) = node(vec![busy.clone(), busy]).await;
    let error = chain.fund(WALLET, MicroUsdc::new(1)).await.unwrap_err();
    assert!(matches!(error, ChainError::Busy { .. }), "{error}");
    assert_eq!(asked(&server).len(), 1);
}

#[tokio::test]
async fn the_name_that_a_token_signs_by_is_one_word() {
    let separator = B256::repeat_byte(9);
    let (chain, _server) = node(vec![json!({ "result": separator })]).await;
    assert_eq!(chain.domain_separator(TOKEN).await.unwrap(), separator);
    for answer in [json!({ "result": "0x" }), json!({ "result": format!("{separator}00") })] {
        let (chain, _server) = node(vec![answer.clone()]).await;
        let error = chain.domain_separator(TOKEN).await.unwrap_err();
        assert!(matches!(error, ChainError::Malformed { .. }), "{answer}: {error}");
    }
}
