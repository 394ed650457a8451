//! Deadlines, caps, redirections and the guard.

use std::sync::Arc;
use std::time::Duration;

use automaton_core::error::{Classified as _, ErrorClass, chain};
use automaton_core::secret::Secret;
use automaton_net::error::DeadlineKind;
use automaton_net::{
    Deadlines, Header, HttpClient, HttpClientConfig, HttpMethod, HttpRequest, NetError, Origin, Url,
};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::server::{answers, client_for, server};

const SHORT: Duration = Duration::from_millis(150);
const LONG: Duration = Duration::from_secs(20);

fn get(url: &Url) -> HttpRequest {
    let deadlines = Deadlines { idle: LONG, total: LONG };
    HttpRequest { deadlines, ..HttpRequest::new(HttpMethod::Get, url.clone()) }
}

#[tokio::test]
async fn a_request_arrives_and_its_answer_is_read() {
    let server =
        answers("HTTP/1.1 404 Not Found\r\ncontent-type: Text/Plain; charset=x\r\ncontent-length: 4\r\n\r\nno!\n")
            .await;
    let secret = Header::Secret("authorization", Secret::new("Bearer key".to_owned()));
    let open = Header::Open("content-type", "application/json".to_owned());
    let mut request = get(&server.url);
    request.method = HttpMethod::Post;
    request.headers = vec![secret, open];
    request.body = b"{}".to_vec();
    assert!(!format!("{request:?}").contains("key"), "{request:?}");
    assert!(!format!("{request:?}").contains("q=1"), "{request:?}");
    let response = client_for(&server).request(request).await.unwrap();
    assert_eq!((response.status, response.media_type().as_deref()), (404, Some("text/plain")));
    assert_eq!(response.body.read_to_end().await.unwrap(), b"no!\n");
    let heard = server.heard.await.unwrap();
    assert!(heard.starts_with("POST /path?q=1 HTTP/1.1\r\n"), "{heard}");
    for part in ["authorization: Bearer key", "user-agent: automaton/", "\r\n\r\n{}"] {
        assert!(heard.contains(part), "{part} in {heard}");
    }
    for absent in ["cookie", "referer", "accept-encoding"] {
        assert!(!heard.to_ascii_lowercase().contains(absent), "{absent} in {heard}");
    }
}

/// Takes one connection with a certificate that nobody but its maker signed.
#[expect(clippy::disallowed_methods, reason = "a task of a test ends with it")]
async fn self_signed() -> Url {
    let certificate = CertificateDer::from_pem_slice(include_bytes!("self_signed.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("self_signed.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        // Its client goes away.
        drop(TlsAcceptor::from(Arc::new(config)).accept(stream).await);
    });
    url.parse().unwrap()
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_told_as_such_and_tried_once() {
    let url = self_signed().await;
    let allow_private_origins = vec![Origin::from_url(&url).unwrap()];
    let config = HttpClientConfig { allow_private_origins, ..HttpClientConfig::default() };
    let error = HttpClient::new(config).unwrap().request(get(&url)).await.unwrap_err();
    assert!(matches!(error, NetError::Untrusted { .. }), "{}", chain(&error));
    assert_eq!(error.kind(), ErrorClass::Config);
    assert!(error.hint().unwrap().contains("SSL_CERT_FILE"));
}

#[tokio::test]
async fn a_redirection_is_refused() {
    for status in [301, 302, 303, 307, 308] {
        let elsewhere = answers("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        let head = format!("HTTP/1.1 {status} Moved\r\nlocation: {}\r\n", elsewhere.url);
        let server = answers(format!("{head}content-length: 0\r\n\r\n")).await;
        let allow_private_origins = vec![server.origin.clone(), elsewhere.origin];
        let client = HttpClient::new(HttpClientConfig {
            allow_private_origins,
            ..HttpClientConfig::default()
        })
        .unwrap();
        let secret = Header::Secret("x-payment", Secret::new("e30=".to_owned()));
        let request = HttpRequest { headers: vec![secret], ..get(&server.url) };
        let error = client.request(request).await.unwrap_err();
        assert!(matches!(error, NetError::Redirected { status: s, .. } if s == status), "{error}");
        assert!(error.hint().is_some());
        assert!(server.heard.await.unwrap().contains("x-payment: e30="));
        // Nobody spoke to the other place, so its task still waits.
        assert!(!elsewhere.heard.is_finished());
        elsewhere.heard.abort();
    }
}

#[tokio::test]
async fn a_declared_body_beyond_the_cap_is_not_read() {
    let server = answers("HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n").await;
    let request = HttpRequest { body_bytes_max: 10, ..get(&server.url) };
    let error = client_for(&server).request(request).await.unwrap_err();
    assert!(matches!(error, NetError::TooLarge { limit_bytes: 10, .. }), "{error}");
}

#[tokio::test]
async fn an_endless_body_ends_at_the_cap() {
    let server = server(async move |mut stream| {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        while stream.write_all(b"400\r\n").await.is_ok() {
            if stream.write_all(&[b'x'; 0x400]).await.is_err() {
                break;
            }
            if stream.write_all(b"\r\n").await.is_err() {
                break;
            }
        }
    })
    .await;
    let request = HttpRequest { body_bytes_max: 100_000, ..get(&server.url) };
    let response = client_for(&server).request(request).await.unwrap();
    let error = response.body.read_to_end().await.unwrap_err();
    assert!(matches!(error, NetError::TooLarge { .. }), "{error}");
    assert_eq!(error.kind(), ErrorClass::Upstream);
    // The server notices that nobody reads any more.
    tokio::time::timeout(LONG, server.heard).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_silent_server_is_given_up() {
    let server = server(async move |_stream| tokio::time::sleep(LONG).await).await;
    let deadlines = Deadlines { idle: SHORT, total: LONG };
    let request = HttpRequest { deadlines, ..get(&server.url) };
    let error = client_for(&server).request(request).await.unwrap_err();
    assert!(matches!(error, NetError::TimedOut { late: DeadlineKind::Idle(_), .. }), "{error}");
    assert_eq!(error.kind(), ErrorClass::Transient);
    server.heard.abort();
}

#[tokio::test]
async fn a_body_that_stops_is_given_up() {
    let server = server(async move |mut stream| {
        let part = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc";
        stream.write_all(part.as_bytes()).await.unwrap();
        tokio::time::sleep(LONG).await;
    })
    .await;
    let deadlines = Deadlines { idle: SHORT, total: LONG };
    let request = HttpRequest { deadlines, ..get(&server.url) };
    let mut response = client_for(&server).request(request).await.unwrap();
    assert_eq!(response.body.chunk().await.unwrap().as_deref(), Some(&b"abc"[..]));
    let error = response.body.chunk().await.unwrap_err();
    assert!(matches!(error, NetError::TimedOut { late: DeadlineKind::Idle(_), .. }), "{error}");
    server.heard.abort();
}

#[tokio::test]
async fn a_dripping_body_meets_the_total_deadline() {
    let server = server(async move |mut stream| {
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        while stream.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let deadlines = Deadlines { idle: Duration::from_secs(10), total: Duration::from_millis(400) };
    let request = HttpRequest { deadlines, ..get(&server.url) };
    let response = client_for(&server).request(request).await.unwrap();
    let error = response.body.read_to_end().await.unwrap_err();
    assert!(matches!(error, NetError::TimedOut { late: DeadlineKind::Total(_), .. }), "{error}");
}

#[tokio::test]
async fn a_cut_body_is_an_error_and_not_a_shorter_answer() {
    for bytes in [
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
    ] {
        let server = answers(bytes).await;
        let response = client_for(&server).request(get(&server.url)).await.unwrap();
        let error = response.body.read_to_end().await.unwrap_err();
        assert!(matches!(error, NetError::BrokenOff { .. }), "{error}");
    }
}

#[tokio::test]
async fn endless_headers_are_refused() {
    let server = server(async move |mut stream| {
        drop(stream.write_all(b"HTTP/1.1 200 OK\r\n").await);
        while stream.write_all(&[b'x'; 8192]).await.is_ok() {}
    })
    .await;
    let error = client_for(&server).request(get(&server.url)).await.unwrap_err();
    assert!(matches!(error, NetError::Unreachable { .. }), "{error}");
    tokio::time::timeout(LONG, server.heard).await.unwrap().unwrap();
}

#[tokio::test]
async fn nobody_at_home_is_unreachable() {
    let closed = answers("").await;
    let (url, client) = (closed.url.clone(), client_for(&closed));
    closed.heard.abort();
    drop(closed.heard.await);
    let error = client.request(get(&url)).await.unwrap_err();
    assert!(matches!(error, NetError::Unreachable { .. }), "{error}");
    assert!(!chain(&error).to_string().contains("q=1"), "{}", chain(&error));
}

#[tokio::test]
async fn the_guard_refuses_what_the_configuration_does_not_spell_out() {
    let server = answers("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let port = server.url.port().unwrap();
    let client = client_for(&server);
    let refuse = async |url: String| {
        let url = Url::parse(&url).unwrap();
        let error = client.request(get(&url)).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorClass::Denied | ErrorClass::Config), "{url}: {error}");
        error
    };
    // Another port, another scheme, another name for the same machine.
    for url in [
        format!("http://127.0.0.1:{}/", port ^ 1),
        format!("http://127.0.0.2:{port}/"),
        format!("http://localhost:{port}/"),
        "http://example.com/".to_owned(),
    ] {
        assert!(matches!(refuse(url).await, NetError::NotEncrypted { .. }));
    }
    for host in
        ["127.0.0.1", "2130706433", "10.0.0.1", "169.254.169.254", "[::1]", "[::ffff:10.0.0.1]"]
    {
        let error = refuse(format!("https://{host}:{port}/")).await;
        assert!(matches!(error, NetError::ForbiddenAddress { .. }), "{host}: {error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("configuration")));
    }
    // Judged after resolving, by the resolver itself.
    let error = refuse(format!("https://localhost:{port}/")).await;
    assert!(matches!(error, NetError::ForbiddenAddress { .. }), "{error}");
    let error = refuse(format!("http://me:pw@127.0.0.1:{port}/")).await;
    assert!(!chain(&error).to_string().contains("pw"), "{}", chain(&error));
    // The server was never spoken to: its first request is the allowed one.
    assert_eq!(client.request(get(&server.url)).await.unwrap().status, 200);
    assert!(server.heard.await.unwrap().starts_with("GET /path?q=1"));
}

#[tokio::test]
async fn a_name_that_is_spelled_out_may_be_this_machine() {
    let server = answers("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let mut url = server.url.clone();
    url.set_host(Some("localhost")).unwrap();
    let allow_private_origins = vec![Origin::from_url(&url).unwrap()];
    let client =
        HttpClient::new(HttpClientConfig { allow_private_origins, ..HttpClientConfig::default() })
            .unwrap();
    assert_eq!(client.request(get(&url)).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_header_that_would_break_the_request_is_refused() {
    let server = answers("").await;
    let mut request = get(&server.url);
    request.headers = vec![Header::Open("x-name", "a\r\nhost: evil".to_owned())];
    let error = client_for(&server).request(request).await.unwrap_err();
    assert!(matches!(error, NetError::Header { ref name } if name == "x-name"), "{error}");
    server.heard.abort();
}

#[tokio::test]
async fn an_encrypted_origin_hears_no_plain_text() {
    let server = answers("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let mut url = server.url.clone();
    url = Url::parse(&url.as_str().replace("http:", "https:")).unwrap();
    let allow_private_origins = vec![Origin::from_url(&url).unwrap()];
    let client =
        HttpClient::new(HttpClientConfig { allow_private_origins, ..HttpClientConfig::default() })
            .unwrap();
    let error = client.request(get(&url)).await.unwrap_err();
    assert!(matches!(error, NetError::Unreachable { .. }), "{error}");
    let heard = server.heard.await.unwrap();
    // The first record of TLS is a handshake, number 22.
    assert!(heard.starts_with('\u{16}') && !heard.contains("path"), "{heard}");
}
