//! Tests of WebSocket notifications, and of connections that are closed.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{Address, B256, TxKind, U256};
use alloy_sol_types::{SolCall, SolEvent};
use automaton_core::faults::NoFaults;
use automaton_devnet::Devnet;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::support::{Token, World, post};

const LIMIT: Duration = Duration::from_secs(30);

/// A WebSocket client by another library.
struct Client {
    socket: WebSocketStream<TcpStream>,
    /// The notifications received so far.
    told: Vec<Value>,
}

impl Client {
    async fn connect(world: &World) -> Self {
        let at = world.devnet.addr();
        let stream = TcpStream::connect(at).await.unwrap();
        let (socket, _) = client_async(format!("ws://{at}/"), stream).await.unwrap();
        Self { socket, told: Vec::new() }
    }

    /// Returns the next message. A close is returned with its code and reason.
    async fn next(&mut self) -> Result<Value, (CloseCode, String)> {
        loop {
            match timeout(LIMIT, self.socket.next()).await.unwrap().unwrap().unwrap() {
                Message::Text(text) => return Ok(serde_json::from_str(&text).unwrap()),
                Message::Close(Some(frame)) => return Err((frame.code, frame.reason.to_string())),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let request = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        self.socket.send(Message::text(request.to_string())).await.unwrap();
        loop {
            let told = self.next().await.unwrap();
            if told["id"] == 7 {
                let error = told.get("error").cloned();
                return error.map_or_else(|| Ok(told["result"].clone()), Err);
            }
            self.told.push(told);
        }
    }

    async fn subscribe(&mut self, params: Value) -> Value {
        self.ask("eth_subscribe", params).await.unwrap()
    }

    /// Returns the next notifications, with their subscriptions.
    async fn notified(&mut self, count: usize) -> Vec<(Value, Value)> {
        while self.told.len() < count {
            let told = self.next().await.unwrap();
            self.told.push(told);
        }
        let told = self.told.drain(..count);
        let pair = |told: Value| {
            assert_eq!(told["method"], "eth_subscription", "{told}");
            (told["params"]["subscription"].clone(), told["params"]["result"].clone())
        };
        told.map(pair).collect()
    }
}

fn transfer(to: Address) -> Vec<u8> {
    Token::transferCall { to, value: U256::from(5) }.abi_encode()
}

#[tokio::test]
async fn heads_logs_and_transactions_are_told_in_order() {
    let world = World::new().await;
    let ada = world.funded(1).await;
    let friend = Address::repeat_byte(9);
    let mut client = Client::connect(&world).await;
    let heads = client.subscribe(json!(["newHeads"])).await;
    let topics = json!([Token::Transfer::SIGNATURE_HASH, null, friend.into_word()]);
    let filter = json!({"address": Devnet::usdc(), "topics": topics, "fromBlock": "0x0"});
    let logs = client.subscribe(json!(["logs", filter])).await;
    let hashes = client.subscribe(json!(["newPendingTransactions"])).await;
    let whole = client.subscribe(json!(["newPendingTransactions", true])).await;

    let raw = world.signed(&ada, TxKind::Call(Devnet::usdc()), transfer(friend)).await;
    // It is sent over the same connection, as other clients do.
    let hash = client.ask("eth_sendRawTransaction", json!([raw])).await.unwrap();
    let told = client.notified(4).await;
    let receipt = world.ask("eth_getTransactionReceipt", json!([hash])).await.unwrap();
    let block = world.ask("eth_getBlockByHash", json!([receipt["blockHash"], true])).await.unwrap();
    assert_eq!((&told[0].0, &told[0].1["hash"]), (&heads, &receipt["blockHash"]));
    for field in ["number", "parentHash", "timestamp", "baseFeePerGas", "logsBloom"] {
        assert_eq!(told[0].1[field], block[field], "{field}");
    }
    assert!(told[0].1.get("transactions").is_none());
    assert_eq!(told[1], (logs.clone(), receipt["logs"][0].clone()));
    assert_eq!(told[2], (hashes, hash));
    assert_eq!(told[3], (whole, block["transactions"][0].clone()));

    // Without a subscription there are no notifications. Requests and batches are answered.
    assert_eq!(client.ask("eth_unsubscribe", json!([heads])).await, Ok(json!(true)));
    assert_eq!(client.ask("eth_unsubscribe", json!([heads])).await, Ok(json!(false)));
    world.token(&ada, Token::transferCall { to: ada.address(), value: U256::ONE }).await;
    assert_eq!(client.notified(2).await.len(), 2, "hash and whole");
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"},
        {"jsonrpc":"2.0","id":2,"method":"eth_subscribe","params":["newHeads"]}]"#;
    client.socket.send(Message::text(batch)).await.unwrap();
    let answered = client.next().await.unwrap();
    assert_eq!((&answered[0]["result"], &answered[1]["result"]), (&json!("0x4"), &json!("0x5")));

    // Reverted blocks are not notified. Their replacements are.
    let kept = world.ask("evm_snapshot", json!([])).await.unwrap();
    for _ in 0..3 {
        world.ask("evm_mine", json!([])).await.unwrap();
    }
    let old: Vec<Value> = client.notified(3).await.into_iter().map(|(_, head)| head).collect();
    assert_eq!(world.ask("evm_revert", json!([kept])).await, Ok(json!(true)));
    world.ask("evm_increaseTime", json!([60])).await.unwrap();
    world.ask("evm_mine", json!([])).await.unwrap();
    let (_, new) = client.notified(1).await.remove(0);
    assert_eq!((&new["number"], &new["parentHash"]), (&old[0]["number"], &old[0]["parentHash"]));
    assert_ne!(new["hash"], old[0]["hash"]);

    world.devnet.stop().await;
    assert_eq!(client.next().await, Err((CloseCode::Away, "the chain stops".to_owned())));
}

#[tokio::test]
async fn what_is_not_to_be_had_is_named() {
    let world = World::new().await;
    let mut client = Client::connect(&world).await;
    for (params, why) in [
        (json!(["syncing"]), "unknown variant `syncing`, expected one of `newHeads`, `logs`"),
        (json!([]), "0 parameters, of 1 to 2"),
        (json!(["logs", {"address": "0x12"}]), "Invalid variadic value"),
        (json!(["newPendingTransactions", 1]), "invalid type"),
    ] {
        let refused = client.ask("eth_subscribe", params).await.unwrap_err();
        assert_eq!(refused["code"], -32602, "{refused}");
        assert!(refused["message"].as_str().unwrap().contains(why), "{refused}");
    }
    for _ in 0..64 {
        client.subscribe(json!(["newHeads"])).await;
    }
    let refused = client.ask("eth_subscribe", json!(["newHeads"])).await.unwrap_err();
    assert_eq!(refused["message"], "a connection has at most 64 subscriptions");
    let proof = json!([B256::ZERO, [], "latest"]);
    let refused = client.ask("eth_getProof", proof).await.unwrap_err();
    assert!(refused["message"].as_str().unwrap().contains("no state root"), "{refused}");
    let refused = client.ask("eth_noSuchMethod", json!([])).await.unwrap_err();
    assert_eq!(refused["code"], -32601);

    // Over HTTP there is no connection to notify.
    let refused = world.ask("eth_subscribe", json!(["newHeads"])).await.unwrap_err();
    assert!(refused.code == -32601 && refused.message.contains("WebSocket"), "{refused:?}");
    // A browser page is refused, and so is a connection beyond the limit.
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let status = async |more: &str| {
        let at = world.devnet.addr();
        let mut stream = TcpStream::connect(at).await.unwrap();
        let head = format!("GET / HTTP/1.1\r\nHost: {at}\r\n{more}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.unwrap();
        (String::from_utf8(status.to_vec()).unwrap(), stream)
    };
    let page = format!("{upgrade}Origin: https://example.com\r\n");
    assert_eq!(status(&page).await.0, "HTTP/1.1 403");
    assert_eq!(status("").await.0, "HTTP/1.1 400");
    let mut open = Vec::new();
    for _ in 1..64 {
        let (told, stream) = status(upgrade).await;
        assert_eq!(told, "HTTP/1.1 101");
        open.push(stream);
    }
    assert_eq!(status(upgrade).await.0, "HTTP/1.1 503");
}

#[tokio::test]
async fn one_that_does_not_read_is_closed_with_the_reason() {
    let world = World::new().await;
    let mut client = Client::connect(&world).await;
    for _ in 0..64 {
        client.subscribe(json!(["newHeads"])).await;
    }
    // More than the buffers of both sides hold.
    let one = r#"{"jsonrpc":"2.0","id":1,"method":"evm_mine"}"#;
    let batch = format!("[{}]", vec![one; 1000].join(","));
    for _ in 0..3 {
        assert_eq!(post(world.devnet.addr(), &batch).await.0, 200);
    }
    let (code, reason) = loop {
        match client.next().await {
            Ok(_) => {}
            Err(closed) => break closed,
        }
    };
    assert_eq!(code, CloseCode::Again, "{reason}");
    assert!(reason.contains("1024 blocks behind") || reason.contains("did not read"), "{reason}");
    // Other clients do not wait for it.
    assert_eq!(world.ask("eth_blockNumber", json!([])).await, Ok(json!("0xbb8")));
}

/// The paused clock advances to the next deadline when nothing else is ready.
#[tokio::test(start_paused = true)]
async fn one_that_answers_no_ping_is_closed() {
    let world = World::open(None, Arc::new(NoFaults)).await.unwrap();
    let at = world.devnet.addr();
    let mut stream = TcpStream::connect(at).await.unwrap();
    let head = format!(
        "GET / HTTP/1.1\r\nHost: {at}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).await.unwrap();
    let all = String::from_utf8_lossy(&all);
    assert!(all.starts_with("HTTP/1.1 101") && all.ends_with("no answer to pings"), "{all}");
}
