//! Requests that are paid for, and those that must not be.

use std::sync::Mutex;
use std::time::Duration;

use automaton_core::error::{Classified as _, ErrorClass};
use automaton_core::secret::Secret;
use automaton_net::pay::{
    PaidResponse, Payees, PayeesError, Payer, PaymentChallenge, PaymentHeader,
};
use automaton_net::{
    FullResponse, Header, HttpClient, HttpClientConfig, HttpMethod, HttpRequest, NetError, Origin,
    Retry, Url,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::server::{Script, patient, script};

const WANTS: &str = "HTTP/1.1 402 Pay\r\npayment-required: e30=\r\ncontent-length: 2\r\n\
                     connection: close\r\n\r\n{}";
const OK: &str = "HTTP/1.1 200 OK\r\npayment-response: e30=\r\ncontent-length: 5\r\n\
                  connection: close\r\n\r\n\0\u{1}raw";
const DOWN: &str = "HTTP/1.1 503 Down\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const HANGS_UP: &str = "";

/// A payer's answer.
#[derive(Debug, thiserror::Error)]
enum Said {
    #[error(transparent)]
    Net(#[from] NetError),
    #[error("no")]
    No,
}

/// A payer that writes down what it hears.
#[derive(Default)]
struct TestPayer {
    heard: Mutex<Vec<String>>,
    refuses: bool,
}

impl TestPayer {
    fn hear(&self, what: String) {
        self.heard.lock().unwrap().push(what);
    }
}

impl Payer for TestPayer {
    type Pending = u32;
    type Outcome = Result<FullResponse, NetError>;
    type Error = Said;

    async fn pay(&self, challenge: PaymentChallenge) -> Result<(PaymentHeader, u32), Said> {
        let PaymentChallenge { reply, .. } = challenge;
        let wanted = reply.header("payment-required");
        self.hear(format!("{} {wanted:?} {}", reply.status, reply.body.len()));
        if self.refuses {
            return Err(Said::No);
        }
        let value = Secret::new("proof".to_owned());
        Ok((PaymentHeader { header: "payment-signature", value }, 7))
    }

    async fn settle(
        &self,
        pending: u32,
        reply: Result<FullResponse, NetError>,
    ) -> Result<Self::Outcome, Said> {
        let told = reply.as_ref().map_or_else(ToString::to_string, |it| it.status.to_string());
        self.hear(format!("{pending}: {told}"));
        Ok(reply)
    }
}

async fn fetch(
    server: &Script,
    payer: &TestPayer,
    request: HttpRequest,
) -> Result<PaidResponse<Result<FullResponse, NetError>>, Said> {
    let payees = Payees::parse([server.origin.to_string().as_str()]).unwrap();
    patient(server, Duration::ZERO).request_paying(request, &payees, payer).await
}

fn post(server: &Script) -> HttpRequest {
    HttpRequest { body: b"{}".to_vec(), ..HttpRequest::new(HttpMethod::Post, server.url.clone()) }
}

#[tokio::test]
async fn what_is_wanted_is_paid_once_and_read_as_bytes() {
    let server = script(&[WANTS, OK]).await;
    let payer = TestPayer::default();
    let Ok(PaidResponse::Paid(Ok(reply))) = fetch(&server, &payer, post(&server)).await else {
        panic!("it was not paid for");
    };
    assert_eq!((reply.status, reply.body.as_slice()), (200, &b"\0\x01raw"[..]));
    assert_eq!(reply.header("payment-response"), Some("e30="));
    assert_eq!(*payer.heard.lock().unwrap(), ["402 Some(\"e30=\") 2", "7: 200"]);
    let [unpaid, paid] = server.heard().try_into().unwrap();
    assert!(!unpaid.contains("proof"), "{unpaid}");
    assert!(paid.contains("payment-signature: proof\r\n"), "{paid}");
    for request in [unpaid, paid] {
        assert!(request.starts_with("POST /path?q=1 ") && request.ends_with("{}"), "{request}");
    }
}

#[tokio::test]
async fn whatever_becomes_of_a_payment_the_payer_hears_it_and_it_is_not_sent_again() {
    let redirects = "HTTP/1.1 307 x\r\nlocation: /\r\ncontent-length: 0\r\n\r\n";
    let lies = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\nshort";
    for (answer, told) in [
        (HANGS_UP, "cannot be reached"),
        (DOWN, "503"),
        (WANTS, "402"),
        (redirects, "redirection"),
        (lies, "broke off"),
    ] {
        let server = script(&[WANTS, answer, OK]).await;
        let payer = TestPayer::default();
        let request = HttpRequest {
            retry: Retry::Idempotent,
            ..HttpRequest::new(HttpMethod::Get, server.url.clone())
        };
        let outcome = fetch(&server, &payer, request).await;
        assert!(matches!(outcome, Ok(PaidResponse::Paid(_))), "{outcome:?}");
        let heard = payer.heard.lock().unwrap().clone();
        assert!(heard.len() == 2 && heard[1].contains(told), "{heard:?}");
        assert_eq!(server.heard().len(), 2);
    }
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a test owns its one task")]
async fn a_connection_that_breaks_under_a_payment_is_not_made_anew() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    let origin = Origin::from_url(&url).unwrap();
    let serving = tokio::spawn(async move {
        // The connection of the demand is kept, is used again, and breaks.
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut heard = vec![0; 4096];
        assert!(stream.read(&mut heard).await.unwrap() > 0);
        let wants = "HTTP/1.1 402 Pay\r\ncontent-length: 2\r\n\r\n{}";
        stream.write_all(wants.as_bytes()).await.unwrap();
        let paid = stream.read(&mut heard).await.unwrap();
        let paid = String::from_utf8_lossy(&heard[..paid]).into_owned();
        drop(stream);
        let again = tokio::time::timeout(Duration::from_millis(300), listener.accept()).await;
        (paid, again.is_ok())
    });
    let allow_private_origins = vec![origin.clone()];
    let client =
        HttpClient::new(HttpClientConfig { allow_private_origins, ..HttpClientConfig::default() })
            .unwrap();
    let payees = Payees::parse([origin.to_string().as_str()]).unwrap();
    let payer = TestPayer::default();
    let outcome =
        client.request_paying(HttpRequest::new(HttpMethod::Get, url), &payees, &payer).await;
    let lost = matches!(outcome, Ok(PaidResponse::Paid(Err(NetError::Unreachable { .. }))));
    assert!(lost, "{outcome:?}");
    let (paid, again) = serving.await.unwrap();
    assert!(paid.contains("payment-signature: proof"), "{paid}");
    assert!(!again);
}

#[tokio::test]
async fn what_is_free_or_refused_is_not_paid() {
    let server = script(&[DOWN, OK]).await;
    let payer = TestPayer::default();
    let request = HttpRequest {
        retry: Retry::Idempotent,
        ..HttpRequest::new(HttpMethod::Get, server.url.clone())
    };
    let free = fetch(&server, &payer, request).await;
    assert!(matches!(free, Ok(PaidResponse::Free(FullResponse { status: 200, .. }))), "{free:?}");
    assert!(payer.heard.lock().unwrap().is_empty());
    let server = script(&[WANTS, OK]).await;
    let payer = TestPayer { refuses: true, ..TestPayer::default() };
    let refused = fetch(&server, &payer, post(&server)).await;
    assert!(matches!(refused, Err(Said::No)), "{refused:?}");
    assert_eq!((server.heard().len(), payer.heard.lock().unwrap().len()), (1, 1));
}

#[tokio::test]
async fn a_demand_without_end_is_none() {
    let length = 64 * 1024 + 1;
    let long = format!(
        "HTTP/1.1 402 Pay\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{}",
        "x".repeat(length)
    );
    let server = script(&[&long, OK]).await;
    let payer = TestPayer::default();
    let outcome = fetch(&server, &payer, post(&server)).await;
    let large = matches!(outcome, Err(Said::Net(NetError::TooLarge { limit_bytes: 65536, .. })));
    assert!(large, "{outcome:?}");
    assert!(payer.heard.lock().unwrap().is_empty());
}

#[tokio::test]
async fn nothing_is_sent_to_whom_nobody_listed_or_with_a_payment_of_somebody_else() {
    let server = script(&[WANTS]).await;
    let payer = TestPayer::default();
    let client = patient(&server, Duration::ZERO);
    for payees in [Payees::default(), Payees::parse(["example.com"]).unwrap()] {
        let outcome = client.request_paying(post(&server), &payees, &payer).await;
        let Err(Said::Net(error)) = outcome else { panic!("{outcome:?}") };
        assert!(matches!(error, NetError::NotPaid { .. }), "{error}");
        assert_eq!(error.kind(), ErrorClass::Denied);
    }
    let ours = Header::Secret("x-payment", Secret::new("x".to_owned()));
    let named = Header::Named("X-PAYMENT".to_owned(), "x".to_owned());
    for (header, kind) in [(ours, ErrorClass::Internal), (named, ErrorClass::Denied)] {
        let request = HttpRequest { headers: vec![header], ..post(&server) };
        let outcome = fetch(&server, &payer, request).await;
        let Err(Said::Net(error)) = outcome else { panic!("{outcome:?}") };
        assert_eq!(error.kind(), kind, "{error}");
    }
    assert!(server.heard().is_empty() && payer.heard.lock().unwrap().is_empty());
}

#[test]
fn a_domain_is_its_hosts_and_nobody_elses() {
    let payees = Payees::parse([
        "example.com",
        "Example.org:8443",
        "https://one.example.net",
        "http://127.0.0.1:4021",
        "93.184.216.34",
    ])
    .unwrap();
    let contains = |url: &str| payees.contain(&url.parse::<Origin>().unwrap());
    for url in [
        "https://example.com",
        "https://API.example.com.",
        "https://a.b.example.com:443",
        "https://example.org:8443",
        "https://api.example.org:8443",
        "https://one.example.net",
        "http://127.0.0.1:4021",
        "https://93.184.216.34",
    ] {
        assert!(contains(url), "{url}");
    }
    for url in [
        "http://example.com",
        "https://example.com:8443",
        "https://badexample.com",
        "https://example.com.evil.net",
        "https://example.org",
        "https://two.one.example.net",
        "https://example.net",
        "https://127.0.0.1:4021",
        "http://127.0.0.1:4022",
        "http://127.0.0.1",
        "https://1.93.184.216.34.example",
    ] {
        assert!(!contains(url), "{url}");
    }
}

#[test]
fn what_stands_for_half_the_world_is_no_entry() {
    for entry in ["com", "localhost", ".example.com", "*.example.com", "example..com", "*"] {
        let error = Payees::parse([entry]).unwrap_err();
        assert_eq!(
            (&error, error.kind()),
            (&PayeesError::TooWide(entry.to_owned()), ErrorClass::Config)
        );
    }
    for entry in ["", "https://", "example.com/path", "user@example.com", "ftp://example.com"] {
        let error = Payees::parse(["example.org", entry]).unwrap_err();
        assert!(matches!(error, PayeesError::Entry { .. }), "{entry}: {error}");
        assert!(error.hint().is_some());
    }
}
