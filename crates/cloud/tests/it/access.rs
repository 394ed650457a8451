//! Sign-in, keys, registration, and the small routes.

use std::time::Duration;

use alloy_primitives::hex;
use automaton_core::time::Span;
use automaton_core::wire::cloud::RegistrationRequest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::world::{Wallet, World, get, post, send};

#[tokio::test]
async fn a_wallet_becomes_a_key_that_works_bare_and_as_bearer() {
    let world = World::new().await;
    let wallet = Wallet::new(1);
    let key = world.key(&wallet).await;
    assert!(key.starts_with("cnwy_k_"), "{key}");
    for value in [key.clone(), format!("Bearer {key}"), format!("bearer  {key}")] {
        let headers = [("Authorization", value.as_str()), ("Content-Type", "application/json")];
        let reply = get(world.at(), "/v1/credits/balance", &headers).await;
        assert_eq!(reply.status, 200, "{value}: {reply:?}");
        assert_eq!(reply.json()["balance_cents"], 0);
        assert_eq!(reply.header("x-request-id").unwrap().len(), 26);
    }
    for value in ["", "Bearer ", "nonsense", "Bearer nonsense"] {
        let reply = get(world.at(), "/v1/credits/balance", &[("Authorization", value)]).await;
        assert_eq!((reply.status, &reply.json()["code"]), (401, &"UNAUTHORIZED".into()), "{value}");
    }
    let stored = std::fs::read(world.database()).unwrap();
    let held = stored.windows(key.len()).any(|window| window == key.as_bytes());
    assert!(!held, "the key itself is stored");
}

#[tokio::test]
async fn a_repeated_sign_in_gives_the_same_token_for_a_minute() {
    let world = World::new().await;
    let wallet = Wallet::new(1);
    let message = world.message(&wallet, &world.nonce().await).to_string();
    let first = world.verify(&wallet, &message).await;
    let again = world.verify(&wallet, &message).await;
    assert_eq!((first.status, again.status), (200, 200));
    assert_eq!(first.body, again.body);
    // Another message with the same nonce is another proof.
    let other = message.replace("Sign in.", "Sign me in.");
    assert_eq!(world.verify(&wallet, &other).await.status, 401);
    world.clock.step(Span::from_secs(61));
    assert_eq!(world.verify(&wallet, &message).await.status, 401);
    // The key of a token is shown twice, then no more.
    let token = format!("Bearer {}", first.json()["access_token"].as_str().unwrap());
    let headers = [("Authorization", token.as_str())];
    let body = r#"{"name":"conway-automaton"}"#;
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(post(world.at(), "/v1/auth/api-keys", &headers, body).await);
    }
    assert_eq!(seen.iter().map(|reply| reply.status).collect::<Vec<_>>(), [200, 200, 409]);
    assert_eq!(seen[0].json()["key"], seen[1].json()["key"]);
    world.clock.step(Span::from_secs(900));
    assert_eq!(post(world.at(), "/v1/auth/api-keys", &headers, body).await.status, 401);
}

#[tokio::test]
async fn a_message_for_somebody_else_is_refused() {
    let world = World::new().await;
    let (wallet, thief) = (Wallet::new(1), Wallet::new(2));
    let nonce = world.nonce().await;
    let good = world.message(&wallet, &nonce).to_string();
    let origin = world.cloud.url();
    for (from, to) in [
        (origin, "https://api.conway.tech"),
        ("conway.tech wants", "evil.example wants"),
        (&nonce, "0123456789abcdef"),
        ("2026-01-02T03:05", "2026-01-02T02:59"),
        ("2026-01-02T03:05", "2026-01-02T03:11"),
        (
            "2026-01-02T03:05:05.000Z",
            "2026-01-02T03:05:05.000Z\nExpiration Time: 2026-01-02T03:05:04Z",
        ),
        ("2026-01-02T03:05:05.000Z", "2026-01-02T03:05:05.000Z\nNot Before: 2026-01-02T03:05:06Z"),
    ] {
        let bad = good.replace(from, to);
        assert_ne!(bad, good, "{from}");
        let reply = world.verify(&wallet, &bad).await;
        assert_eq!(reply.status, 401, "{to}: {reply:?}");
    }
    assert_eq!(world.verify(&thief, &good).await.status, 401, "signed by another");
    assert_eq!(world.verify(&wallet, &good).await.status, 200, "the nonce was not used up");
    world.clock.step(Span::from_secs(301));
    let late = world.message(&wallet, &nonce).to_string();
    assert_eq!(world.verify(&wallet, &late).await.status, 401);
    for body in ["", "{}", "[]", r#"{"message":"x","signature":"0x"}"#] {
        assert_eq!(post(world.at(), "/v1/auth/verify", &[], body).await.status, 422, "{body}");
    }
}

#[tokio::test]
async fn a_nonce_that_nobody_comes_back_for_is_stored_nowhere() {
    let world = World::new().await;
    for _ in 0..100 {
        world.nonce().await;
    }
    let wallet = Wallet::new(1);
    world.key(&wallet).await;
    #[expect(clippy::disallowed_methods, reason = "somebody who has it looks into it")]
    let database = rusqlite::Connection::open(world.database()).unwrap();
    let rows = database.query_row("SELECT count(*) FROM used_nonces", [], |row| row.get(0));
    assert_eq!(rows, Ok(1), "the one that was signed");
}

#[tokio::test]
async fn only_a_nonce_of_this_cloud_and_time_is_one() {
    let world = World::new().await;
    let wallet = Wallet::new(1);
    let try_nonce = async |nonce: &str| {
        let message = world.message(&wallet, nonce).to_string();
        world.verify(&wallet, &message).await.status
    };
    let nonce = world.nonce().await;
    assert_eq!((nonce.len(), nonce.bytes().all(|byte| byte.is_ascii_alphanumeric())), (60, true));
    // A later end, other drawn characters, another code, none, and parts of it.
    for at in 0..nonce.len() {
        let mut forged = nonce.clone().into_bytes();
        forged[at] = if forged[at] == b'1' { b'2' } else { b'1' };
        assert_eq!(try_nonce(&String::from_utf8(forged).unwrap()).await, 401, "at {at}");
    }
    for other in [&nonce[..36], &nonce[..59], &nonce[12..], "abcdEFGH12345678", &nonce.repeat(2)] {
        assert_eq!(try_nonce(other).await, 401, "{other}");
    }
    assert_eq!(try_nonce(&nonce.to_uppercase()).await, 401);
    world.clock.step(Span::from_secs(299));
    assert_eq!(try_nonce(&nonce).await, 200, "to its end");
    let nonce = world.nonce().await;
    world.clock.step(Span::from_secs(301));
    assert_eq!(try_nonce(&nonce).await, 401, "and not after it");
}

#[tokio::test]
async fn an_account_of_solana_is_refused_as_one_in_both_layouts() {
    let world = World::new().await;
    let (uri, nonce) = (format!("{}/v1/auth/verify", world.cloud.url()), world.nonce().await);
    let head = "conway.tech wants you to sign in with your Solana account:\n\
                AKnL4NNf3DGWZJS6cPknBuEGnVsV4A4m5tgebLHaRSZ9\n\nSign in.\n\nURI: ";
    let time = "2026-01-02T03:05:05.000Z";
    let own = format!("{head}{uri}\nNonce: {nonce}\nIssued At: {time}\nChain ID: mainnet");
    let caip = format!(
        "{head}{uri}\nVersion: 1\nChain ID: 5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp\nNonce: {nonce}\n\
         Issued At: {time}"
    );
    for message in [own, caip] {
        for chain_type in [None, Some("solana")] {
            let mut body = serde_json::json!({ "message": message, "signature": "Nekg9yNY6Smv" });
            if let Some(chain_type) = chain_type {
                body["chain_type"] = chain_type.into();
            }
            let reply = post(world.at(), "/v1/auth/verify", &[], &body.to_string()).await;
            let why = reply.json()["error"].as_str().unwrap().to_owned();
            assert_eq!((reply.status, why.contains("Ethereum")), (422, true), "{reply:?}");
        }
    }
}

#[tokio::test]
async fn what_other_clouds_have_is_refused_by_name() {
    let world = World::new().await;
    let key = world.key(&Wallet::new(1)).await;
    let headers = [("Authorization", key.as_str()), ("Content-Type", "application/json")];
    for (line, names) in [
        ("GET /v1/domains/search?query=ada", "sells no domains"),
        ("POST /v1/domains/register", "sells no domains"),
        ("GET /v1/domains/a.example/dns", "sells no domains"),
        ("POST /v1/domains/a.example/dns", "sells no domains"),
        ("DELETE /v1/domains/a.example/dns/1", "sells no domains"),
        ("POST /v1/sandboxes/1/run", "/exec"),
        ("POST /v1/sandboxes/1/pty", "/exec"),
        ("GET /v1/sandboxes/1/pty/2/read", "/exec"),
        ("POST /v1/sandboxes/1/terminal-session", "/exec"),
    ] {
        let reply = send(world.at(), line, &headers, "{}").await;
        assert_eq!((reply.status, &reply.json()["code"]), (422, &"NOT_OFFERED".into()), "{line}");
        assert!(reply.body.contains(names), "{line}: {reply:?}");
        assert_eq!(send(world.at(), line, &[], "{}").await.status, 401, "{line}");
    }
    let nonces = [0, 1].map(|_| post(world.at(), "/v1/automatons/nonce", &headers, ""));
    let [one, other] = nonces;
    let (one, other) = (one.await.json(), other.await.json());
    assert!(one["nonce"].as_str().unwrap().len() == 24 && one != other, "{one} {other}");
}

#[tokio::test]
async fn a_registration_can_be_repeated_but_not_changed() {
    let world = World::new().await;
    let wallet = Wallet::new(1);
    let key = world.key(&wallet).await;
    let id = std::cell::Cell::new("auto-1");
    let register = async |wallet: &Wallet, name: &str, nonce: &str| {
        let mut row = RegistrationRequest {
            automaton_id: id.get().to_owned(),
            automaton_address: wallet.address.to_string(),
            creator_address: wallet.address.to_string(),
            name: name.to_owned(),
            bio: "\u{1f}é/\u{2028}".to_owned(),
            genesis_prompt_hash: None,
            nonce: nonce.to_owned(),
            payload_hash: Default::default(),
            signature: String::new(),
            chain_type: None,
        };
        row.payload_hash = row.computed_hash().unwrap();
        row.signature = hex::encode_prefixed(wallet.sign(row.digest()));
        let body = serde_json::to_string(&row).unwrap();
        post(world.at(), "/v1/automatons/register", &[("Authorization", &key)], &body).await
    };
    let first = register(&wallet, "Ada", "n1").await;
    assert_eq!(first.json()["automaton"]["status"], "registered", "{first:?}");
    assert_eq!(register(&wallet, "Ada", "n1").await.status, 200);
    assert_eq!(register(&wallet, "Ada", "n2").await.status, 200);
    // One that has lost all that it knew draws another id, and gets the first.
    id.set("auto-2");
    let again = register(&wallet, "Ada", "n3").await;
    assert_eq!(again.body, first.body);
    id.set("auto-1");
    assert_eq!(register(&wallet, "Eve", "n1").await.status, 409);
    assert_eq!(register(&Wallet::new(2), "Ada", "n1").await.status, 403);
}

#[tokio::test]
async fn the_small_routes_answer() {
    let world = World::new().await;
    assert_eq!(get(world.at(), "/health", &[]).await.body, r#"{"status":"healthy"}"#);
    let pricing = get(world.at(), "/v1/credits/pricing", &[]).await.json();
    assert_eq!(pricing["purchases_usd"][0], 5);
    let models = get(world.at(), "/v1/models", &[("Authorization", "x")]).await.json();
    let model = &models["data"][0];
    assert_eq!((&model["id"], &model["provider"]), (&"script".into(), &"other".into()));
    assert_eq!(model["pricing"]["input_per_million"], 2);
    assert_eq!(model["pricing"]["output_per_1k"], 100);
    let lost = get(world.at(), "/v1/nothing", &[]).await;
    assert_eq!((lost.status, &lost.json()["code"]), (404, &"NOT_FOUND".into()));
    assert!(lost.header("x-request-id").is_some());
}

#[tokio::test]
async fn a_large_body_is_read_of_nobody_without_a_key() {
    let world = World::new().await;
    for path in ["/v1/chat/completions", "/v1/sandboxes/x/files/upload/json"] {
        let mut stream = TcpStream::connect(world.at()).await.unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        let read = timeout(Duration::from_secs(10), stream.read_exact(&mut answer)).await;
        read.expect("an answer before the body").unwrap();
        assert_eq!(&answer, b"HTTP/1.1 401", "{path}");
    }
}

#[tokio::test]
async fn whoever_has_no_key_is_let_through_where_the_document_says_so_and_nowhere_else() {
    let world = World::new().await;
    let published = get(world.at(), "/openapi.json", &[]).await.json();
    assert_eq!(published, automaton_cloud::openapi());
    let (mut open, mut closed) = (0, 0);
    for (path, methods) in published["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let line = format!("{} {}", method.to_uppercase(), path.replace(['{', '}'], ""));
            let reply = send(world.at(), &line, &[], "{\"name\":\"a\"}").await;
            let is_closed = operation["security"] != serde_json::json!([]);
            assert_eq!(reply.status == 401, is_closed, "{line}: {reply:?}");
            *(if is_closed { &mut closed } else { &mut open }) += 1;
        }
    }
    assert!(open > 8 && closed > 25, "{open} {closed}");
}
