//! Tests of the requests and their recipients.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread::JoinHandle;

use automaton_core::state::AgentState;
use automaton_core::wire::cloud::{EntryKind, StatusReport, TransferRequest};
use automaton_net::{HttpClientConfig, Origin};

use super::*;

fn cloud(base: &str) -> Result<CloudClient, CloudClientError> {
    CloudClient::new(HttpClient::new(HttpClientConfig::default()).unwrap(), base)
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

/// Starts a server that gives this reply once, and returns the request.
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

fn cloud_at(url: &str) -> CloudClient {
    let origin = Origin::from_url(&url.parse().unwrap()).unwrap();
    let config = HttpClientConfig { allow_private_origins: vec![origin], ..Default::default() };
    CloudClient::new(HttpClient::new(config).unwrap(), url).unwrap()
}

fn registration() -> RegistrationRequest {
    RegistrationRequest {
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
    assert_eq!(serde_json::from_str::<RegistrationRequest>(body).unwrap(), registration());

    let (url, _answering) = server(r#"409 {"error":"taken","code":"CONFLICT"}"#);
    let error = cloud_at(&url).register(&key, &registration()).await.unwrap_err();
    assert!(matches!(error, CloudClientError::Refused { status: 409, .. }), "{error}");
}

#[tokio::test]
async fn what_is_neither_a_demand_nor_a_refusal_is_told_as_what_it_is() {
    let to = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8".parse().unwrap();
    let (url, _answering) = server(r#"200 {"free":true}"#);
    let error = cloud_at(&url).ask_for_credits(5, to).await.unwrap_err();
    assert!(matches!(error, CloudClientError::Malformed { .. }), "{error}");
    let told = error.to_string();
    assert!(told.contains("status 200 where it should ask to be paid, with 402"), "{told}");
    let (url, _answering) = server(r#"503 {"error":"la\u202eter\u200b"}"#);
    let told = cloud_at(&url).ask_for_credits(5, to).await.unwrap_err().to_string();
    assert!(told.ends_with("refused with status 503: later"), "{told}");
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
    assert_eq!(models.data[0].id.as_str(), "m");
    assert_eq!(models.data[0].pricing.output_microcents_per_million.units(), 140);
    assert!(answering.join().unwrap().starts_with("GET /v1/models HTTP/1.1\r\n"));
}

fn asked() -> TransferRequest {
    let to_address = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8".to_owned();
    TransferRequest { to_address, amount_cents: 250, note: Some("for the report".to_owned()) }
}

async fn transferred(reply: &str) -> Result<CreditTransferOutcome, CloudClientError> {
    let (url, answering) = server(reply);
    let key = Secret::new("k".to_owned());
    let done = cloud_at(&url).transfer(&key, &asked(), "01J").await;
    let request = answering.join().unwrap();
    assert!(request.starts_with("POST /v1/credits/transfer HTTP/1.1\r\n"), "{request}");
    assert!(request.to_lowercase().contains("\r\nidempotency-key: 01j\r\n"), "{request}");
    let (_, body) = request.split_once("\r\n\r\n").unwrap();
    assert_eq!(serde_json::from_str::<TransferRequest>(body).unwrap(), asked());
    done
}

#[tokio::test]
async fn a_transfer_is_done_only_when_the_cloud_says_exactly_that() {
    let good = r#"200 {"transfer_id":"t","status":"completed","to_address":"0x70997970c51812dc3a010c7d01b50e0d17dc79c8","amount_cents":250,"balance_after_cents":4}"#;
    let CreditTransferOutcome::Completed(reply) = transferred(good).await.unwrap() else {
        panic!("it was done")
    };
    assert_eq!((reply.transfer_id.as_str(), reply.balance_after_cents), ("t", 4));
    for bad in [
        "200 <html>welcome</html>".to_owned(),
        "200 {}".to_owned(),
        good.replace("completed", "submitted"),
        good.replace("250", "251"),
        good.replace("\"t\"", "\"\""),
        good.replace("79c8", "79c9"),
        "402 <html>pay</html>".to_owned(),
        // From a proxy in front of the cloud. The cloud may have performed the request before.
        "403 {\"error\":\"e\"}".to_owned(),
        "402 {\"error\":\"e\",\"code\":\"QUOTA\"}".to_owned(),
    ] {
        let error = transferred(&bad).await.unwrap_err();
        assert!(matches!(error, CloudClientError::Malformed { .. }), "{bad}: {error}");
    }
    for unknown in
        ["401", "404", "409", "500"].map(|status| format!("{status} {{\"error\":\"e\"}}"))
    {
        let error = transferred(&unknown).await.unwrap_err();
        assert!(matches!(error, CloudClientError::Refused { .. }), "{unknown}: {error}");
    }
}

#[tokio::test]
async fn a_refused_transfer_comes_with_its_numbers() {
    let refused = transferred(
        r#"402 {"error":"Insufficient credits","code":"INSUFFICIENT_CREDITS","details":{"required_cents":250,"current_balance_cents":4}}"#,
    );
    let CreditTransferOutcome::Refused(refusal) = refused.await.unwrap() else {
        panic!("it was refused")
    };
    assert_eq!((refusal.status, refusal.code.as_str()), (402, "INSUFFICIENT_CREDITS"));
    assert_eq!(refusal.details.current_balance_cents, Some(4));
}

#[tokio::test]
async fn a_page_of_the_history_is_asked_for() {
    let (url, answering) = server(
        r#"200 {"history":[{"id":7,"type":"transfer","amount_cents":-250,"amount_microcents":-250000000,"balance_after_microcents":4000000,"counterparty":"0x7","at_ms":9}],"limit":1,"offset":2}"#,
    );
    let page = HistoryPage { limit: 1, offset: 2 };
    let history = cloud_at(&url).history(&Secret::new("k".to_owned()), page).await.unwrap();
    assert_eq!(
        (history.history[0].kind, history.history[0].amount_cents),
        (EntryKind::Transfer, -250)
    );
    let request = answering.join().unwrap();
    assert!(request.starts_with("GET /v1/credits/history?limit=1&offset=2 HTTP"), "{request}");
}

#[tokio::test]
async fn a_status_goes_to_the_cloud_and_comes_back() {
    let report = StatusReport {
        name: "Ada".to_owned(),
        state: AgentState::Running,
        tier: None,
        credits_microcents: None,
        usdc_units: None,
        turns: 3,
        born_at_ms: Timestamp::EPOCH,
        started_at_ms: None,
        sleeps_until_ms: None,
        at_ms: Timestamp::from_millis(5),
        version: "0.1.0".to_owned(),
    };
    let key = Secret::new("cnwy_k_1".to_owned());
    let (url, answering) = server("204 ");
    cloud_at(&url).report_status(&key, &report).await.unwrap();
    let request = answering.join().unwrap();
    assert!(request.starts_with("POST /v1/automata/status HTTP/1.1\r\n"), "{request}");
    let (_, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(!body.contains("tier") && !body.contains("credits"), "unknown is not zero: {body}");
    let of = Address::repeat_byte(7);
    let (url, answering) =
        server(&format!(r#"200 {{"address":"{of}","received_at_ms":9,"status":{body}}}"#));
    let reply = cloud_at(&url).status(&key, of).await.unwrap();
    assert_eq!((reply.address, reply.status), (of, report));
    let asked = answering.join().unwrap();
    assert!(asked.starts_with(&format!("GET /v1/automata/status/{of} HTTP/1.1\r\n")), "{asked}");
}
