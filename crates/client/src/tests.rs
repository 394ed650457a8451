//! What is sent, and to whom.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread::JoinHandle;

use automaton_net::{ClientConfig, Origin};

use super::*;

fn cloud(base: &str) -> Result<Cloud, ClientError> {
    Cloud::new(Client::new(ClientConfig::default()).unwrap(), base)
}

#[test]
fn paths_are_joined_and_escaped() {
    for base in ["https://cloud.example", "https://cloud.example/"] {
        let url = cloud(base).unwrap().url(&["pay", "5", "../x?y"]).unwrap();
        assert_eq!(url.as_str(), "https://cloud.example/pay/5/..%2Fx%3Fy");
    }
    let url = cloud("https://host/base/").unwrap().url(&["v1", "models"]).unwrap();
    assert_eq!(url.as_str(), "https://host/base/v1/models");
    for base in ["", "cloud", "mailto:a@b", "https://host/?a=b", "https://host/#top"] {
        assert!(cloud(base).is_err(), "{base}");
    }
}

#[test]
fn a_sign_in_names_the_host_that_it_is_for_and_ends() {
    let cloud = cloud("http://127.0.0.1:8402").unwrap();
    let now = Timestamp::from_millis(1_767_323_045_678);
    let address = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266".parse().unwrap();
    let message = cloud.sign_in(address, "abcdEFGH12345678".to_owned(), now, 8453).unwrap();
    assert_eq!(message.domain, "127.0.0.1:8402");
    assert_eq!(message.uri, "http://127.0.0.1:8402/v1/auth/verify");
    assert!(message.to_string().ends_with("\nExpiration Time: 2026-01-02T03:09:05.678Z"));
}

/// A server that answers one request like this, and tells what it was sent.
fn server(reply: &str) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let reply = reply.to_owned();
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = String::new();
        let mut buffer = [0; 4096];
        while !request.ends_with("\r\n\r\n") && !request.ends_with('}') {
            let read = stream.read(&mut buffer).unwrap();
            request.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        }
        let head = "content-type: application/json\r\nconnection: close";
        let (status, body) = reply.split_once(' ').unwrap();
        let length = body.len();
        write!(stream, "HTTP/1.1 {status} OK\r\n{head}\r\ncontent-length: {length}\r\n\r\n{body}")
            .unwrap();
        request
    });
    (url, answering)
}

fn cloud_at(url: &str) -> Cloud {
    let origin = Origin::of(&url.parse().unwrap()).unwrap();
    let config = ClientConfig { allow_private_origins: vec![origin], ..Default::default() };
    Cloud::new(Client::new(config).unwrap(), url).unwrap()
}

fn registration() -> Registration {
    Registration {
        automaton_id: "auto-1".to_owned(),
        automaton_address: "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266".to_owned(),
        creator_address: String::new(),
        name: "Ada".to_owned(),
        bio: String::new(),
        genesis_prompt_hash: None,
        nonce: "n".to_owned(),
        payload_hash: Default::default(),
        signature: "0x11".to_owned(),
        chain_type: None,
    }
}

#[tokio::test]
async fn a_registration_is_sent_with_the_key_and_a_conflict_is_told_apart() {
    let key = Secret::new("cnwy_k_1".to_owned());
    let (url, answering) = server(
        r#"200 {"automaton":{"automaton_id":"auto-1","automaton_address":"0x","name":"Ada","status":"registered"}}"#,
    );
    let known = cloud_at(&url).register(&key, &registration()).await.unwrap();
    assert_eq!((known.name.as_str(), known.status.as_str()), ("Ada", "registered"));
    let request = answering.join().unwrap();
    assert!(request.starts_with("POST /v1/automatons/register HTTP/1.1\r\n"), "{request}");
    assert!(request.to_lowercase().contains("\r\nauthorization: cnwy_k_1\r\n"), "{request}");
    let (_, body) = request.split_once("\r\n\r\n").unwrap();
    assert_eq!(serde_json::from_str::<Registration>(body).unwrap(), registration());

    let (url, _answering) = server(r#"409 {"error":"taken","code":"CONFLICT"}"#);
    let error = cloud_at(&url).register(&key, &registration()).await.unwrap_err();
    assert!(matches!(error, ClientError::Refused { status: 409, .. }), "{error}");
}

#[tokio::test]
async fn models_come_with_their_prices() {
    let price = |name: &str| format!(r#""{name}":0.18"#);
    let prices = [
        "input_per_million",
        "output_per_million",
        "input_per_1m_tokens_usd",
        "output_per_1m_tokens_usd",
        "input_per_1k",
        "output_per_1k",
    ];
    let exact = r#""input_microcents_per_million":18,"cached_microcents_per_million":9,"output_microcents_per_million":140"#;
    let pricing = format!("{},{exact}", prices.map(price).join(","));
    let (url, answering) = server(&format!(
        r#"200 {{"object":"list","data":[{{"id":"m","pricing":{{{pricing}}}}}]}}"#
    ));
    let models = cloud_at(&url).models(&Secret::new("k".to_owned())).await.unwrap();
    assert_eq!(models.data[0].id, "m");
    assert_eq!(models.data[0].pricing.output_microcents_per_million.units(), 140);
    assert!(answering.join().unwrap().starts_with("GET /v1/models HTTP/1.1\r\n"));
}
