//! What is asked of a node, and what is taken for an answer.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use automaton_net::HttpClientConfig;
use serde_json::{Value, json};

use super::*;

const TOKEN: Address = Address::repeat_byte(0xA5);
const WALLET: Address = Address::repeat_byte(0xAA);

#[test]
fn calls_are_encoded_as_the_token_expects() {
    let owner: Address = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266".parse().unwrap();
    assert_eq!(
        calldata(BALANCE_OF, &[owner.into_word()]),
        "0x70a08231000000000000000000000000f39fd6e51aad88f6f4ce6ab8827279cfffb92266"
    );
}

#[test]
fn numbers_are_hexadecimal() {
    assert_eq!((number("0x7a69"), number("0x0")), (Ok(31337), Ok(0)));
    for text in ["", "0x", "31337", "-0x1", "0x10000000000000000"] {
        assert!(number(text).is_err(), "{text}");
    }
}

#[test]
fn what_is_no_word_is_never_zero() {
    assert_eq!(word(&format!("0x{}2a", "00".repeat(31))), Ok(U256::from(42)));
    assert_eq!(word(&format!("0x{}", "00".repeat(32))), Ok(U256::ZERO));
    for answer in ["", "0x", "0x00", "zero", &format!("0x{}", "00".repeat(33))] {
        assert!(word(answer).is_err(), "{answer}");
    }
}

/// A node that answers each question with the next of these, after its chain's id,
/// and what it was asked.
async fn node(answers: Vec<Value>) -> (ChainClient, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url: Url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let asked = Arc::<Mutex<Vec<Value>>>::default();
    let told = Arc::clone(&asked);
    std::thread::spawn(move || {
        let first = json!({ "result": "0x7a69" });
        for answer in std::iter::once(first).chain(answers) {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut line, mut length) = (String::new(), 0);
            while reader.read_line(&mut line).unwrap() > 2 {
                if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            told.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
            let (body, head) = (answer.to_string(), "connection: close\r\ncontent-length");
            write!(stream, "HTTP/1.1 200 OK\r\n{head}: {}\r\n\r\n{body}", body.len()).unwrap();
        }
    });
    let allow_private_origins = vec![url.to_string().parse().unwrap()];
    let config = HttpClientConfig { allow_private_origins, ..HttpClientConfig::default() };
    let chain = ChainClient::connect(HttpClient::new(config).unwrap(), url, 31337).await.unwrap();
    asked.lock().unwrap().clear();
    (chain, asked)
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
        let (chain, asked) = node(vec![block(9, 1000), state(used)]).await;
        let seen = chain.authorization(TOKEN, WALLET, B256::repeat_byte(1)).await.unwrap();
        assert_eq!(seen, AuthorizationState { used, at: Timestamp::from_millis(1_000_000) });
        let asked = asked.lock().unwrap();
        assert_eq!(asked[0]["params"], json!(["latest", false]));
        let at = json!({ "blockHash": B256::repeat_byte(9), "requireCanonical": true });
        assert_eq!((&asked[1]["method"], &asked[1]["params"][1]), (&json!("eth_call"), &at));
    }
}

#[tokio::test]
async fn a_node_that_does_not_know_the_block_is_asked_about_another() {
    // The first node is ahead of the second, as behind one address they may be.
    let answers = vec![block(9, 1000), unknown_block(), block(8, 990), state(false)];
    let (chain, asked) = node(answers).await;
    let seen = chain.authorization(TOKEN, WALLET, B256::repeat_byte(1)).await.unwrap();
    assert_eq!(seen, AuthorizationState { used: false, at: Timestamp::from_millis(990_000) });
    assert_eq!(asked.lock().unwrap()[3]["params"][1]["blockHash"], json!(B256::repeat_byte(8)));
    let never = (0..3).flat_map(|_| [block(9, 1000), unknown_block()]).collect();
    let (chain, asked) = node(never).await;
    let error = chain.authorization(TOKEN, WALLET, B256::repeat_byte(1)).await.unwrap_err();
    assert!(matches!(error, ChainError::Refused { .. }), "{error}");
    assert_eq!(asked.lock().unwrap().len(), 6);
}

#[tokio::test]
async fn an_answer_without_its_block_is_no_answer() {
    for answer in [
        json!({ "result": { "hash": null, "timestamp": "0x1" } }),
        json!({ "result": { "hash": B256::ZERO, "timestamp": "1" } }),
        json!({ "result": null }),
    ] {
        let (chain, asked) = node(vec![answer]).await;
        let error = chain.authorization(TOKEN, WALLET, B256::ZERO).await.unwrap_err();
        assert!(matches!(error, ChainError::Malformed { .. }), "{error}");
        assert_eq!(asked.lock().unwrap().len(), 1);
    }
}
