//! The wire form of each question, and the answers that are accepted.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::test_node::{TestNode, reply};
use crate::token::Token;

const TOKEN: Address = Address::repeat_byte(0xA5);
const WALLET: Address = Address::repeat_byte(0xAA);

/// Starts a node with these results, and a client for which a block is final after
/// `confirmations` more.
fn chain(confirmations: u64, results: &[Value]) -> (RpcClient, TestNode) {
    let replies = results.iter().map(|result| reply(200, &json!({ "result": result }))).collect();
    let node = TestNode::start(replies);
    let rpc = RpcClient::connect(node.client(), node.url.clone(), confirmations);
    (rpc, node)
}

/// Returns the method and the parameters of each question so far.
fn questions(node: &TestNode) -> Vec<(Value, Value)> {
    let asked = node.asked().into_iter();
    asked.map(|question| (question["method"].clone(), question["params"].clone())).collect()
}

fn read_number(value: Value) -> Result<u64, String> {
    let number = serde_json::from_value::<Quantity>(value);
    number.map(|number| number.0).map_err(|error| error.to_string())
}

#[test]
fn numbers_are_hexadecimal() {
    assert_eq!((read_number(json!("0x7a69")), read_number(json!("0x0"))), (Ok(31337), Ok(0)));
    for text in ["", "0x", "31337", "-0x1", "0x-1", "0x1_0", "0x10000000000000000", "0xg"] {
        assert!(read_number(json!(text)).is_err(), "{text}");
    }
    for value in [json!(7), json!(null), json!(["0x7"]), json!(true)] {
        assert!(read_number(value.clone()).is_err(), "{value}");
    }
}

#[test]
fn what_is_no_word_is_never_zero() {
    let decode = |answer: &str| {
        let bytes = alloy_primitives::hex::decode(answer).map_err(|error| error.to_string())?;
        decode_result::<Token::balanceOfCall>(&bytes)
    };
    assert_eq!(decode(&format!("0x{}2a", "00".repeat(31))), Ok(U256::from(42)));
    assert_eq!(decode(&format!("0x{}", "00".repeat(32))), Ok(U256::ZERO));
    for answer in ["", "0x", "0x00", "zero", &format!("0x{}", "00".repeat(33))] {
        assert!(decode(answer).is_err(), "{answer}");
    }
}

#[tokio::test]
async fn calls_are_encoded_as_the_token_expects() {
    let owner: Address = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266".parse().unwrap();
    let word = |word: u8| json!(format!("0x{word:064x}"));
    let (rpc, node) = chain(0, &[word(7), word(1), word(9)]);
    let balance = Token::balanceOfCall { account: owner };
    assert_eq!(rpc.call(TOKEN, &balance, BlockTag::Latest).await.unwrap(), U256::from(7));
    let nonce = B256::repeat_byte(3);
    let state = Token::authorizationStateCall { authorizer: owner, nonce };
    assert!(rpc.call(TOKEN, &state, BlockHash::canonical(nonce)).await.unwrap());
    let separator = Token::DOMAIN_SEPARATORCall {};
    let block = BlockTag::Number(31337);
    assert_eq!(rpc.call(TOKEN, &separator, block).await.unwrap(), B256::left_padding_from(&[9]));
    let account = "000000000000000000000000f39fd6e51aad88f6f4ce6ab8827279cfffb92266";
    let sent = questions(&node);
    for ((method, params), (data, block)) in sent.iter().zip([
        (format!("0x70a08231{account}"), json!("latest")),
        (
            format!("0xe94a0102{account}{}", "03".repeat(32)),
            json!({ "blockHash": nonce, "requireCanonical": true }),
        ),
        ("0x3644e515".to_owned(), json!("0x7a69")),
    ]) {
        assert_eq!(method, "eth_call");
        assert_eq!(params, &json!([{ "to": TOKEN, "data": data }, block]));
    }
}

#[tokio::test]
async fn an_address_without_a_contract_has_no_balance_of_zero() {
    for answer in ["0x", "0x00", &format!("0x{}", "00".repeat(64))] {
        let (rpc, _node) = chain(0, &[json!(answer)]);
        let function = Token::balanceOfCall { account: WALLET };
        let error = rpc.call(TOKEN, &function, BlockTag::Latest).await.unwrap_err();
        assert!(matches!(error, ChainError::Malformed { method: "eth_call", .. }), "{error}");
    }
}

#[tokio::test]
async fn the_newest_block_is_final_where_no_more_are_waited_for() {
    let (rpc, node) = chain(0, &[]);
    assert_eq!(rpc.final_block().await.unwrap(), BlockTag::Latest);
    assert!(rpc.is_final(u64::MAX).await.unwrap());
    assert!(questions(&node).is_empty(), "nothing is asked for that");
}

#[tokio::test]
async fn a_block_is_final_after_as_many_more_as_are_waited_for() {
    for (newest, block, is_final) in
        [("0x10", 0xe, true), ("0x10", 0xf, false), ("0xf", 0xe, false), ("0x1", 5, false)]
    {
        let (rpc, _node) = chain(2, &[json!(newest)]);
        assert_eq!(rpc.is_final(block).await.unwrap(), is_final, "{newest} {block}");
    }
    let (rpc, _node) = chain(2, &[json!("0x10")]);
    assert!(!rpc.is_final(u64::MAX).await.unwrap(), "no number wraps");
    for (newest, last) in [("0x10", 0xe), ("0x1", 0)] {
        let (rpc, _node) = chain(2, &[json!(newest)]);
        assert_eq!(rpc.final_block().await.unwrap(), BlockTag::Number(last));
    }
}

#[tokio::test]
async fn a_count_of_transactions_is_of_final_blocks() {
    let (rpc, node) = chain(3, &[json!("0x13"), json!("0x7")]);
    assert_eq!(rpc.final_transaction_count(WALLET).await.unwrap(), 7);
    assert_eq!(
        questions(&node)[1],
        (json!("eth_getTransactionCount"), json!([WALLET, "0x10"])),
        "the pending ones of one node count for nothing"
    );
}

#[tokio::test]
async fn fees_are_twice_the_base_fee_and_what_the_maker_gets() {
    let header = json!({ "timestamp": "0x1", "baseFeePerGas": "0x64" });
    let (rpc, _node) = chain(9, &[header, json!("0x5")]);
    assert_eq!(rpc.fees().await.unwrap(), Fees { max: 205, priority: 5 });
    for fee in [Value::Null, json!("0x10000000000000000")] {
        let header = json!({ "timestamp": "0x1", "baseFeePerGas": fee });
        let (rpc, node) = chain(0, &[header]);
        let error = rpc.fees().await.unwrap_err();
        assert!(matches!(error, ChainError::Malformed { .. }), "{error}");
        assert_eq!(questions(&node).len(), 1);
    }
}

#[tokio::test]
async fn a_time_beyond_any_date_is_no_time() {
    for timestamp in ["0x7fffffffffffffff", "0xffffffffffffffff", "1", "0x"] {
        let header = json!({ "hash": B256::ZERO, "timestamp": timestamp });
        let (rpc, _node) = chain(0, &[header]);
        let error = rpc.final_header().await.unwrap_err();
        assert!(matches!(error, ChainError::Malformed { .. }), "{timestamp}: {error}");
    }
    let (rpc, _node) = chain(0, &[json!({ "hash": B256::ZERO })]);
    let error = rpc.final_time().await.unwrap_err();
    assert!(error.to_string().ends_with("it has no time"), "{error}");
    let header = json!({ "number": "0x5", "hash": B256::ZERO, "timestamp": "0x3e8" });
    let (rpc, _node) = chain(0, &[header]);
    let header = rpc.final_header().await.unwrap();
    assert_eq!(header.time, Some(Timestamp::from_millis(1_000_000)));
    assert_eq!((header.number, header.hash, header.base_fee), (Some(5), Some(B256::ZERO), None));
}

#[tokio::test]
async fn a_receipt_tells_success_by_its_status_alone() {
    let hash = B256::repeat_byte(1);
    let log = json!({
        "address": TOKEN, "topics": [hash], "data": "0x07", "transactionHash": hash,
        "logIndex": "0x2",
    });
    for (status, succeeded) in [("0x1", true), ("0x0", false), ("0x2", false)] {
        let receipt = json!({ "status": status, "blockNumber": "0x9", "logs": [log] });
        let (rpc, node) = chain(0, &[receipt]);
        let receipt = rpc.receipt(hash).await.unwrap().unwrap();
        assert_eq!((receipt.succeeded, receipt.block_number), (succeeded, 9));
        assert_eq!((receipt.logs[0].log_index, receipt.logs[0].address), (2, TOKEN));
        assert_eq!(questions(&node)[0].1, json!([hash]));
    }
    let (rpc, _node) = chain(0, &[Value::Null]);
    assert_eq!(rpc.receipt(hash).await.unwrap(), None, "no block has it");
    for receipt in [
        json!({ "blockNumber": "0x9", "logs": [] }),
        json!({ "status": "0x1", "logs": [] }),
        json!({ "status": "0x1", "blockNumber": null, "logs": [] }),
        json!({ "status": true, "blockNumber": "0x9", "logs": [] }),
    ] {
        let (rpc, _node) = chain(0, &[receipt]);
        let error = rpc.receipt(hash).await.unwrap_err();
        assert!(matches!(error, ChainError::Malformed { .. }), "{error}");
    }
}

#[tokio::test]
async fn logs_are_asked_for_by_contract_block_and_topics() {
    let topics = vec![B256::repeat_byte(1), B256::repeat_byte(2)];
    let filter = LogFilter { address: TOKEN, from_block: BlockTag::Number(16), topics };
    let (rpc, node) = chain(0, &[json!([])]);
    assert_eq!(rpc.logs(&filter).await.unwrap(), []);
    let wanted = json!([{ "address": TOKEN, "fromBlock": "0x10", "topics": filter.topics }]);
    assert_eq!(questions(&node)[0], (json!("eth_getLogs"), wanted));
}

#[tokio::test]
async fn an_estimate_names_the_account_that_pays() {
    let (rpc, node) = chain(0, &[json!("0x5208")]);
    let call = ContractCall::new(TOKEN, vec![7]).by(WALLET);
    assert_eq!(rpc.estimate_gas(&call).await.unwrap(), 21_000);
    let wanted = json!([{ "from": WALLET, "to": TOKEN, "data": "0x07" }]);
    assert_eq!(questions(&node)[0], (json!("eth_estimateGas"), wanted));
}

#[tokio::test]
async fn a_coin_balance_beyond_a_word_of_the_machine_is_read() {
    let (rpc, node) = chain(0, &[json!("0x10000000000000000"), json!("7")]);
    assert_eq!(rpc.coin_balance(WALLET).await.unwrap(), U256::from(1_u128 << 64));
    assert!(rpc.coin_balance(WALLET).await.is_err(), "a number has a prefix");
    assert_eq!(questions(&node)[0].1, json!([WALLET, "latest"]));
}

#[tokio::test]
async fn a_question_is_repeated_by_the_clients_rule() {
    let busy = reply(200, &json!({ "error": { "code": -32005, "message": "limit exceeded" } }));
    let good = reply(200, &json!({ "result": "0x7" }));
    for (retry, is_answered) in [(Retry::Question, true), (Retry::Never, false)] {
        let node = TestNode::start(vec![busy.clone(), good.clone()]);
        let rpc = RpcClient::connect(node.client(), node.url.clone(), 0).with_retry(retry);
        assert_eq!(rpc.newest_block().await.ok(), is_answered.then_some(7));
    }
}

proptest! {
    #[test]
    fn a_number_is_read_as_it_is_written(number in any::<u64>(), wide in any::<[u64; 4]>()) {
        prop_assert_eq!(read_number(json!(format!("{number:#x}"))), Ok(number));
        prop_assert_eq!(serde_json::to_value(BlockTag::Number(number)).unwrap(), format!("{number:#x}"));
        let wide = U256::from_limbs(wide);
        let read: Quantity<U256> = serde_json::from_value(json!(format!("{wide:#x}"))).unwrap();
        prop_assert_eq!(read.0, wide);
    }

    #[test]
    fn no_text_without_a_prefix_is_a_number(text in "[^0].*|0[^x].*|0x.*[^0-9a-fA-F].*|0x") {
        prop_assert!(read_number(json!(text)).is_err());
    }

    #[test]
    fn no_other_length_than_a_words_is_a_balance(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let balance = decode_result::<Token::balanceOfCall>(&bytes);
        prop_assert_eq!(balance.is_ok(), bytes.len() == 32);
        let used = decode_result::<Token::authorizationStateCall>(&bytes);
        prop_assert!(bytes.len() == 32 || used.is_err());
    }
}
