//! Ports of sandboxes elsewhere, which their owners' connections lead to.

use std::time::Duration;

use alloy_primitives::U256;
use automaton_core::wire::x402::{self, Authorization};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::town::{Town, run};
use crate::world::{Reply, get, send};

pub(crate) const ALL: &[(&str, fn())] = &[
    ("visitors_of_a_tunnel_are_led_to_its_owner", led),
    ("a_tunnel_is_its_owners_and_no_machine", owned),
    ("a_request_by_a_tunnel_is_paid_to_its_owner", paid),
];

const WITHIN: Duration = Duration::from_secs(30);

/// The caller's tunnel, with a port.
async fn tunnel(town: &Town, port: &Value) -> (String, String) {
    let told = town.post("/v1/tunnels", &json!({})).await;
    assert_eq!(told.status, 200, "{told:?}");
    let id = told.json()["id"].as_str().unwrap().to_owned();
    let told = town.post(&format!("/v1/sandboxes/{id}/ports/expose"), port).await;
    assert_eq!(told.status, 200, "{told:?}");
    let url = told.json()["path_url"].as_str().unwrap().to_owned();
    (id, url.split_once("/_at/").map(|(_, rest)| format!("/_at/{rest}")).unwrap())
}

/// Opens a connection of a tunnel; its status.
async fn open(town: &Town, id: &str, key: &str) -> (String, BufReader<TcpStream>) {
    let mut stream = BufReader::new(TcpStream::connect(town.world.at()).await.unwrap());
    let head = format!(
        "POST /v1/tunnels/{id}/connections HTTP/1.1\r\nHost: x\r\nAuthorization: {key}\r\n\
         Connection: upgrade\r\nUpgrade: automaton-tunnel/1\r\nContent-Length: 0\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        let read = timeout(WITHIN, stream.read_line(&mut head)).await.unwrap().unwrap();
        assert!(read > 0, "{head}");
    }
    (head.split(' ').nth(1).unwrap().to_owned(), stream)
}

async fn waiting(town: &Town, id: &str) -> BufReader<TcpStream> {
    let (status, stream) = open(town, id, &town.key).await;
    assert_eq!(status, "101");
    stream
}

/// Answers a visitor, and gives the port that was asked for, and the request.
async fn answer(mut waits: BufReader<TcpStream>, takes: bool) -> (String, String) {
    let (mut line, mut head) = (String::new(), String::new());
    timeout(WITHIN, waits.read_line(&mut line)).await.unwrap().unwrap();
    waits.write_all(if takes { b"+" } else { b"-" }).await.unwrap();
    if takes {
        // A visitor who only tries has nothing to say.
        while !head.ends_with("\r\n\r\n")
            && timeout(WITHIN, waits.read_line(&mut head)).await.unwrap().unwrap() > 0
        {}
        let said = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nhome";
        // Who has gone does not hear it.
        waits.write_all(said).await.ok();
        let mut rest = Vec::new();
        timeout(WITHIN, waits.read_to_end(&mut rest)).await.unwrap().ok();
    }
    (line, head)
}

fn led() {
    run(async {
        let town = Town::new().await;
        let (id, path) = tunnel(&town, &json!({ "port": 9000 })).await;
        let visit = async || get(town.world.at(), &path, &[]).await;
        let away = visit().await;
        assert!(away.status == 502 && away.body.contains("its owner may be away"), "{away:?}");

        let waits = waiting(&town, &id).await;
        // The newest is asked first, and is gone.
        drop(waiting(&town, &id).await);
        let (reply, (line, head)) = tokio::join!(visit(), answer(waits, true));
        assert_eq!((reply.status, reply.body.as_str(), line.as_str()), (200, "home", "9000\n"));
        assert!(head.starts_with("GET / HTTP/1.1\r\n"), "{head}");

        let waits = waiting(&town, &id).await;
        let (reply, _) = tokio::join!(visit(), answer(waits, false));
        assert!(reply.status == 502 && reply.body.contains("nobody listens"), "{reply:?}");

        // Visitors who wait are served as connections come.
        let late = async {
            for _ in 0..2 {
                answer(waiting(&town, &id).await, true).await;
            }
        };
        let (one, two, ()) = tokio::join!(visit(), visit(), late);
        assert_eq!((one.status, two.status), (200, 200));

        let mut waits = waiting(&town, &id).await;
        let other = path.replace("/9000/", "/9001/");
        assert_eq!(get(town.world.at(), &other, &[]).await.status, 404, "it is not exposed");
        let nothing = timeout(Duration::from_millis(200), waits.read_u8()).await;
        assert!(nothing.is_err(), "nobody is asked for it");
        let removed = town.delete(&format!("/v1/sandboxes/{id}/ports/9000")).await;
        assert_eq!(removed.status, 200);
        assert_eq!(visit().await.status, 404);

        // What is exposed stays so, for whoever comes back.
        tunnel(&town, &json!({ "port": 9000 })).await;
        let town = town.crash().await;
        let waits = waiting(&town, &id).await;
        let visit = get(town.world.at(), &path, &[]);
        let (reply, _) = tokio::join!(visit, answer(waits, true));
        assert_eq!(reply.status, 200, "{reply:?}");
    });
}

fn owned() {
    run(async {
        let town = Town::new().await;
        let (id, _) = tunnel(&town, &json!({ "port": 9000 })).await;
        let (again, _) = tunnel(&town, &json!({ "port": 9001 })).await;
        assert_eq!(id, again, "a wallet has one");
        assert_eq!(open(&town, &id, &town.other).await.0, "403");
        let headers = [("Authorization", town.other.as_str())];
        let ports = format!("/v1/sandboxes/{id}/ports");
        assert_eq!(get(town.world.at(), &ports, &headers).await.status, 403);
        assert_eq!(town.get(&ports).await.json()["ports"].as_array().unwrap().len(), 2);
        // It is nothing that could be run, stopped, read or paid for.
        assert_eq!(town.get("/v1/sandboxes").await.json()["sandboxes"], json!([]));
        for (path, body) in [
            ("/exec", json!({ "command": "true" })),
            ("/start", json!({})),
            ("/stop", json!({})),
            ("/files/upload/json", json!({ "path": "a", "content": "b" })),
        ] {
            let reply = town.post(&format!("/v1/sandboxes/{id}{path}"), &body).await;
            assert_eq!(reply.status, 403, "{path}: {reply:?}");
        }
        assert_eq!(town.delete(&format!("/v1/sandboxes/{id}")).await.status, 403);
        let machine = town.machine().await;
        assert_eq!(open(&town, &machine.id, &town.key).await.0, "422", "a machine is no tunnel");
        let plain = town.post(&format!("/v1/tunnels/{id}/connections"), &json!({})).await;
        assert_eq!(plain.status, 422, "{plain:?}");
    });
}

fn paid() {
    run(async {
        let town = Town::new().await;
        let (id, path) = tunnel(&town, &json!({ "port": 9000, "price_usdc": "0.01" })).await;
        let [owner, customer] = &town.wallets;
        town.world.give(customer, 1);
        assert_eq!(get(town.world.at(), &path, &[]).await.status, 402);
        let cent = Authorization {
            to: owner.address,
            value: U256::from(10_000),
            ..customer.authorize(0, 9)
        };
        let header = x402::encode(&customer.payment(cent)).unwrap();
        let headers = [("X-Payment", header.as_str())];
        let pay = async || send(town.world.at(), &format!("GET {path}"), &headers, "").await;
        let holds = || town.world.chain.ledger().balances[&owner.address];
        let before = holds();
        // Nobody pays for what nobody answers.
        let nobody = waiting(&town, &id).await;
        let (refused, _): (Reply, _) = tokio::join!(pay(), answer(nobody, false));
        assert_eq!((refused.status, holds()), (502, before), "{refused:?}");
        let (tried, used) = (waiting(&town, &id).await, waiting(&town, &id).await);
        let (reply, _, _) = tokio::join!(pay(), answer(tried, true), answer(used, true));
        assert_eq!((reply.status, reply.body.as_str()), (200, "home"), "{reply:?}");
        assert_eq!(holds(), before + U256::from(10_000));
        let history = town.get("/v1/credits/history").await.json();
        assert_eq!(history["sales"][0]["machine"], json!(id), "{history}");
    });
}
