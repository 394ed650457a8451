//! The way out of the sandbox, from both of its sides.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use automaton_core::egress::{EgressEndReason, EgressOutcome};
use automaton_core::secret::Secret;
use automaton_net::proxy::{
    AllowedRequest, BoxFuture, EgressRefusal, EgressRequest, Gate, NameResolver, Proxy,
};
use automaton_net::{Allowance, Origin};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::server::{SILENCE, answers, script, server};

const LONG: Duration = Duration::from_secs(20);
const CREDENTIAL: &str = "Bearer only-the-proxy-knows";

/// Lets everything through but what is refused by name, and keeps all that it is told.
#[derive(Default)]
struct TestGate {
    refused: Vec<Origin>,
    allowlisted: Vec<Origin>,
    credential: bool,
    tls: bool,
    asked: Mutex<Vec<String>>,
    came: Mutex<Vec<EgressOutcome>>,
    told: Notify,
}

impl Gate for TestGate {
    type Ticket = ();

    fn judge(
        &self,
        asked: EgressRequest,
    ) -> BoxFuture<'_, Result<AllowedRequest<()>, EgressRefusal>> {
        Box::pin(async move {
            let EgressRequest { method, url, origin } = asked;
            self.asked.lock().unwrap().push(format!("{method} {url}"));
            if self.refused.contains(&origin) {
                let (rule, sentence) = ("egress.hosts".to_owned(), "It is not listed.".to_owned());
                return Err(EgressRefusal { rule, sentence });
            }
            let value = Secret::new(CREDENTIAL.to_owned());
            let headers = self.credential.then(|| ("authorization".to_owned(), value));
            let allowlisted = self.allowlisted.contains(&origin);
            let to = if self.tls { origin.over_tls() } else { origin };
            Ok(AllowedRequest {
                ticket: (),
                to,
                allowlisted,
                headers: headers.into_iter().collect(),
            })
        })
    }

    fn ended(&self, (): (), came: EgressOutcome) -> BoxFuture<'_, ()> {
        self.came.lock().unwrap().push(came);
        self.told.notify_one();
        Box::pin(async {})
    }
}

impl TestGate {
    async fn came(&self) -> EgressOutcome {
        timeout(LONG, self.told.notified()).await.unwrap();
        *self.came.lock().unwrap().last().unwrap()
    }
}

/// A resolver with another answer each time; the last one stays.
#[derive(Default)]
struct Book(HashMap<String, Vec<Vec<IpAddr>>>, AtomicUsize);

impl NameResolver for Book {
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        let turn = self.1.fetch_add(1, Ordering::SeqCst);
        let found = self.0.get(name).and_then(|all| all.get(turn).or(all.last())).cloned();
        Box::pin(async move { found.ok_or_else(|| std::io::Error::other("no such name")) })
    }
}

struct Served {
    at: SocketAddr,
    gate: Arc<TestGate>,
    over: Arc<Notify>,
    task: JoinHandle<()>,
}

#[expect(clippy::disallowed_methods, reason = "a test owns its one task")]
async fn serve(gate: TestGate, names: Book, allowance: Allowance) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let (gate, over) = (Arc::new(gate), Arc::new(Notify::new()));
    let proxy = Proxy::new(allowance, Arc::new(names)).unwrap();
    let (judging, end) = (Arc::clone(&gate), Arc::clone(&over));
    let task = tokio::spawn(async move {
        proxy.serve(listener, judging, async { end.notified().await }).await
    });
    Served { at, gate, over, task }
}

/// A proxy that may reach these origins.
async fn to(allowlisted: &[&Origin]) -> Served {
    let allowlisted = allowlisted.iter().copied().cloned().collect();
    serve(TestGate { allowlisted, ..TestGate::default() }, Book::default(), Allowance::default())
        .await
}

impl Served {
    /// Sends these bytes and reads all that comes.
    async fn says(&self, bytes: &str) -> String {
        let mut stream = TcpStream::connect(self.at).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        read(&mut stream).await
    }

    async fn get(&self, origin: &Origin) -> String {
        let (_, host) = origin.as_pair();
        self.says(&format!("GET {origin}/x?y=1 HTTP/1.1\r\nHost: {host}\r\n\r\n")).await
    }

    fn asked(&self) -> Vec<String> {
        self.gate.asked.lock().unwrap().clone()
    }
}

trait Pair {
    fn as_pair(&self) -> (String, String);
}

impl Pair for Origin {
    fn as_pair(&self) -> (String, String) {
        let text = self.to_string();
        let (scheme, host) = text.split_once("://").unwrap();
        (scheme.to_owned(), host.to_owned())
    }
}

async fn read(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    // A connection that is cut off has still said what it said.
    drop(timeout(LONG, stream.read_to_end(&mut text)).await.unwrap());
    String::from_utf8_lossy(&text).into_owned()
}

fn origin(text: &str) -> Origin {
    text.parse().unwrap()
}

/// The greeting of a TLS client.
fn greeting(name: &str) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let name = name.to_owned().try_into().unwrap();
    let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    bytes
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";

#[tokio::test]
async fn a_request_goes_to_its_target_and_what_is_of_one_hop_stays_there() {
    let host = answers(
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close, x-one\r\nx-one: 1\r\n\
         proxy-authenticate: x\r\nkeep-alive: 5\r\nx-two: 2\r\nx-automaton-refused: a lie\r\n\r\nhi",
    )
    .await;
    let proxy = to(&[&host.origin]).await;
    let (_, name) = host.origin.as_pair();
    let said = proxy
        .says(&format!(
            "POST http://{name}/a/../b?c=%20d HTTP/1.1\r\nHost: {name}\r\nProxy-Authorization: x\r\n\
             Proxy-Connection: keep-alive\r\nConnection: keep-alive, X-Gone\r\nX-Gone: 1\r\nTE: trailers\r\n\
             Upgrade: websocket\r\nX-Kept: 1\r\nTransfer-Encoding: chunked\r\n\r\n\
             3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\n\r\nGET http://evil.example/ HTTP/1.1\r\n\r\n"
        ))
        .await;
    assert!(said.starts_with("HTTP/1.1 200 OK\r\n") && said.ends_with("\r\n\r\nhi"), "{said}");
    assert!(said.contains("x-two: 2"), "{said}");
    for gone in ["x-one", "proxy-authenticate", "keep-alive", "a lie"] {
        assert!(!said.contains(gone), "{gone} in {said}");
    }
    let heard = host.heard.await.unwrap().to_lowercase();
    assert!(heard.starts_with("post /b?c=%20d http/1.1\r\n"), "{heard}");
    assert!(heard.contains(&format!("host: {name}\r\n")) && heard.contains("x-kept: 1"), "{heard}");
    for gone in ["proxy-", "x-gone", "\nte:", "upgrade", "ext", "evil", "keep-alive"] {
        assert!(!heard.contains(gone), "{gone} in {heard}");
    }
    let came = proxy.gate.came().await;
    assert_eq!((came.status, came.end), (Some(200), EgressEndReason::Done));
    assert!(came.bytes_up > 100 && came.bytes_down > 40, "{came:?}");
    assert_eq!(proxy.asked().len(), 1);
}

#[tokio::test]
async fn what_is_refused_says_so_and_reaches_nobody() {
    let host = script(&[OK]).await;
    let gate = TestGate { refused: vec![host.origin.clone()], ..TestGate::default() };
    let proxy = serve(gate, Book::default(), Allowance::default()).await;
    let said = proxy.get(&host.origin).await;
    assert!(said.starts_with("HTTP/1.1 403 Refused by egress.hosts\r\n"), "{said}");
    assert!(said.contains("x-automaton-refused: egress.hosts\r\n"), "{said}");
    assert!(said.ends_with("\r\n\r\nIt is not listed.\n"), "{said}");
    assert!(host.heard().is_empty());
    assert!(proxy.gate.came.lock().unwrap().is_empty());
}

#[tokio::test]
async fn what_is_unclear_is_never_judged() {
    let proxy = to(&[]).await;
    let line = "POST http://a.example/ HTTP/1.1\r\n";
    for (request, rule) in [
        ("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n".to_owned(), "request.target"),
        (format!("{line}Host: b.example\r\n\r\n"), "request.host"),
        (
            format!(
                "{line}Host: a.example\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
            ),
            "request.length",
        ),
        (format!("{line}Host: a.example\r\n folded\r\n\r\n"), "request.syntax"),
        (format!("{line}Host: a.example\nX: 1\r\n\r\n"), "request.syntax"),
        (
            "TRACE http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n".to_owned(),
            "request.method",
        ),
        (format!("{line}X: {}\r\n\r\n", "x".repeat(40_000)), "request.size"),
        (format!("{line}{}\r\n", "X: 1\r\n".repeat(101)), "request.size"),
    ] {
        let said = proxy.says(&request).await;
        assert!(said.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{said}");
        assert!(said.contains(&format!("x-automaton-refused: {rule}\r\n")), "{said}");
    }
    assert!(proxy.asked().is_empty());
}

#[tokio::test]
async fn addresses_out_of_reach_are_refused_however_they_are_written() {
    let proxy = to(&[]).await;
    for host in [
        "127.0.0.1",
        "0x7f.1",
        "2130706433",
        "127.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "10.0.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "0.0.0.0",
        "100.64.0.1",
    ] {
        for (request, how) in [
            (format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"), "get"),
            (format!("CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n"), "connect"),
        ] {
            let said = proxy.says(&request).await;
            assert!(
                said.starts_with("HTTP/1.1 403 Refused by egress.address\r\n"),
                "{host} {how} {said}"
            );
            assert_eq!(proxy.gate.came().await.end, EgressEndReason::Address);
        }
    }
}

#[tokio::test]
async fn a_name_is_asked_for_once_and_judged_whole() {
    let host = script(&[OK]).await;
    let local: IpAddr = "127.0.0.1".parse().unwrap();
    let global: IpAddr = "192.0.32.8".parse().unwrap();
    let place = |name: &str| origin(&format!("http://{name}:{}", host.origin.port()));
    let book = |name: &str, all: Vec<Vec<IpAddr>>| {
        Book(HashMap::from([(name.to_owned(), all)]), AtomicUsize::new(0))
    };
    // First a good address, then the one that it is really about: the second is never seen.
    let allowlisted =
        TestGate { allowlisted: vec![place("rebind.example")], ..TestGate::default() };
    let rebinding =
        book("rebind.example", vec![vec![local], vec!["169.254.169.254".parse().unwrap()]]);
    let proxy = serve(allowlisted, rebinding, Allowance::default()).await;
    assert!(proxy.get(&place("rebind.example")).await.ends_with("hi"));
    assert_eq!(host.heard().len(), 1);
    // Asked again, it is judged again.
    let said = proxy.get(&place("rebind.example")).await;
    assert!(said.contains("egress.address"), "{said}");
    // One bad address among good ones is enough.
    let mixed = book("mixed.example", vec![vec![global, local]]);
    let proxy = serve(TestGate::default(), mixed, Allowance::default()).await;
    assert!(proxy.get(&place("mixed.example")).await.contains("egress.address"));
    let said = proxy.get(&origin("http://nowhere.example")).await;
    assert!(said.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{said}");
    assert_eq!(host.heard().len(), 1);
}

#[tokio::test]
async fn a_credential_goes_in_and_never_comes_back_in_a_header() {
    let answer = format!(
        "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/?k={CREDENTIAL}\r\nx-echo: {CREDENTIAL}\r\n\
         content-length: 0\r\n\r\n"
    );
    let host = script(&[&answer]).await;
    let gate = TestGate {
        credential: true,
        allowlisted: vec![host.origin.clone()],
        ..TestGate::default()
    };
    let proxy = serve(gate, Book::default(), Allowance::default()).await;
    let (_, name) = host.origin.as_pair();
    let said = proxy
        .says(&format!(
            "GET http://{name}/ HTTP/1.1\r\nHost: {name}\r\nAuthorization: Bearer mine\r\n\
             AUTHORIZATION: Bearer twice\r\n\r\n"
        ))
        .await;
    assert!(said.starts_with("HTTP/1.1 302 Found\r\n"), "{said}");
    assert!(!said.contains("only-the-proxy") && said.contains("x-echo: ***\r\n"), "{said}");
    let heard = host.heard();
    assert_eq!(heard.len(), 1, "the redirection was followed: {heard:?}");
    assert_eq!(heard[0].to_lowercase().matches("authorization:").count(), 1, "{heard:?}");
    assert!(heard[0].contains(CREDENTIAL) && !heard[0].contains("mine"), "{heard:?}");
}

#[tokio::test]
async fn a_credential_for_tls_is_never_sent_in_the_open() {
    let host = server(|_| async {}).await;
    // Asked for in the open, spoken to over TLS, at the same port.
    let gate = TestGate {
        credential: true,
        tls: true,
        allowlisted: vec![host.origin.clone()],
        ..TestGate::default()
    };
    let proxy = serve(gate, Book::default(), Allowance::default()).await;
    let said = proxy.get(&host.origin).await;
    assert!(said.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{said}");
    let heard = host.heard.await.unwrap();
    assert!(heard.starts_with('\u{16}') && !heard.contains("only-the-proxy"), "{heard:?}");
}

#[tokio::test]
async fn a_demand_for_money_is_passed_on_and_never_paid() {
    let host = script(&[
        "HTTP/1.1 402 Payment Required\r\npayment-required: e30=\r\ncontent-length: 3\r\n\r\npay",
    ])
    .await;
    let proxy = to(&[&host.origin]).await;
    let said = proxy.get(&host.origin).await;
    assert!(said.starts_with("HTTP/1.1 402 ") && said.ends_with("pay"), "{said}");
    assert!(said.contains("payment-required: e30="), "{said}");
    assert_eq!(host.heard().len(), 1);
    assert_eq!(proxy.gate.came().await.status, Some(402));
}

/// A host that answers the greeting with a word and sends back what it gets.
async fn echo() -> (u16, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, heard) = (listener.local_addr().unwrap().port(), Arc::<Mutex<Vec<u8>>>::default());
    let told = Arc::clone(&heard);
    #[expect(clippy::disallowed_methods, reason = "a test owns its one task")]
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = vec![0; 8192];
            while let Ok(length @ 1..) = stream.read(&mut bytes).await {
                told.lock().unwrap().extend_from_slice(&bytes[..length]);
                drop(stream.write_all(b"pong").await);
            }
        }
    });
    (port, heard)
}

/// Opens a tunnel, sends these bytes in pieces and reads what comes.
async fn tunnel(proxy: &Served, place: &str, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(proxy.at).await.unwrap();
    let head = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\nAuthorization: mine\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut said = vec![0; 39];
    stream.read_exact(&mut said).await.unwrap();
    assert_eq!(said, b"HTTP/1.1 200 Connection established\r\n\r\n");
    for piece in bytes.chunks(100) {
        if stream.write_all(piece).await.is_err() {
            break;
        }
    }
    drop(stream.shutdown().await);
    let mut got = Vec::new();
    drop(timeout(LONG, stream.read_to_end(&mut got)).await.unwrap());
    got
}

#[tokio::test]
async fn a_tunnel_greets_the_host_that_was_asked_for() {
    let (port, heard) = echo().await;
    let (named, bare) = (format!("a.example:{port}"), format!("127.0.0.1:{port}"));
    let places = [&named, &bare].map(|place| origin(&format!("https://{place}")));
    let gate = TestGate { allowlisted: places.to_vec(), credential: true, ..TestGate::default() };
    let book = Book(
        HashMap::from([("a.example".to_owned(), vec![vec!["127.0.0.1".parse().unwrap()]])]),
        AtomicUsize::new(0),
    );
    let proxy = serve(gate, book, Allowance::default()).await;
    for (place, name) in [(&named, "a.example"), (&bare, "127.0.0.1")] {
        let (hello, before) = (greeting(name), heard.lock().unwrap().len());
        let got = tunnel(&proxy, place, &hello).await;
        assert!(got.starts_with(b"pong"), "{got:?}");
        let came = proxy.gate.came().await;
        assert_eq!((came.end, came.status), (EgressEndReason::Done, Some(200)));
        assert_eq!(came.bytes_up, hello.len() as u64);
        // To the byte what was sent: nothing was put in.
        assert_eq!(heard.lock().unwrap()[before..], hello);
    }
    heard.lock().unwrap().clear();
    let others: [(&str, Vec<u8>); 5] = [
        (&named, greeting("b.example")),
        (&named, greeting("127.0.0.1")),
        (&bare, greeting("a.example")),
        (&named, b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n".to_vec()),
        (&named, b"SSH-2.0-OpenSSH_9.6\r\n".to_vec()),
    ];
    for (place, bytes) in others {
        assert!(tunnel(&proxy, place, &bytes).await.is_empty());
        assert_eq!(proxy.gate.came().await.end, EgressEndReason::Greeting);
    }
    assert!(heard.lock().unwrap().is_empty());
}

#[tokio::test]
async fn bytes_and_requests_have_limits() {
    let big = format!("HTTP/1.1 200 OK\r\ncontent-length: 50000\r\n\r\n{}", "x".repeat(50_000));
    let host = script(&[&big]).await;
    let gate = || TestGate { allowlisted: vec![host.origin.clone()], ..TestGate::default() };
    let limits = Allowance { bytes_per_request: 20_000, ..Allowance::default() };
    let proxy = serve(gate(), Book::default(), limits).await;
    let said = proxy.get(&host.origin).await;
    assert!(said.len() < 21_000, "{}", said.len());
    assert_eq!(proxy.gate.came().await.end, EgressEndReason::RequestBytes);

    let (_, name) = host.origin.as_pair();
    let head =
        format!("POST http://{name}/ HTTP/1.1\r\nHost: {name}\r\nContent-Length: 400000\r\n\r\n");
    let said = proxy.says(&format!("{head}{}", "y".repeat(400_000))).await;
    assert!(!said.contains("200 OK\r\ncontent-length: 50000\r\n\r\nx"), "{}", said.len());
    let came = proxy.gate.came().await;
    assert!(
        [EgressEndReason::RequestBytes, EgressEndReason::Broken, EgressEndReason::Done]
            .contains(&came.end),
        "{came:?}"
    );

    let limits = Allowance { bytes_per_run: 60_000, ..Allowance::default() };
    let proxy = serve(gate(), Book::default(), limits).await;
    assert!(proxy.get(&host.origin).await.len() > 50_000);
    assert_eq!(proxy.gate.came().await.end, EgressEndReason::Done);
    assert!(proxy.get(&host.origin).await.len() < 20_000);
    assert_eq!(proxy.gate.came().await.end, EgressEndReason::RunBytes);

    let limits = Allowance { requests_per_minute: 2, ..Allowance::default() };
    let proxy = serve(gate(), Book::default(), limits).await;
    for _ in 0..2 {
        assert!(proxy.get(&host.origin).await.contains("200 OK"));
    }
    let said = proxy.get(&host.origin).await;
    assert!(said.contains("403 Refused by egress.rate"), "{said}");
    assert_eq!(proxy.asked().len(), 2);
}

#[tokio::test]
async fn who_says_nothing_for_long_is_left() {
    let host = script(&[SILENCE]).await;
    let limits = Allowance { idle: Duration::from_millis(100), ..Allowance::default() };
    let gate = TestGate { allowlisted: vec![host.origin.clone()], ..TestGate::default() };
    let proxy = serve(gate, Book::default(), limits).await;
    let said = proxy.get(&host.origin).await;
    assert!(said.starts_with("HTTP/1.1 504 Gateway Timeout\r\n"), "{said}");
    assert_eq!(proxy.gate.came().await.end, EgressEndReason::Idle);
    let limits = Allowance { total: Duration::from_millis(100), ..Allowance::default() };
    let gate = TestGate { allowlisted: vec![host.origin.clone()], ..TestGate::default() };
    let proxy = serve(gate, Book::default(), limits).await;
    assert!(proxy.get(&host.origin).await.contains("egress.too_long"));
}

#[tokio::test(start_paused = true)]
async fn a_head_that_drips_is_left() {
    let proxy = to(&[]).await;
    let mut stream = TcpStream::connect(proxy.at).await.unwrap();
    stream.write_all(b"GET http://a.example/ HTTP/1.1\r\n").await.unwrap();
    let said = read(&mut stream).await;
    assert!(said.contains("x-automaton-refused: request.time\r\n"), "{said}");
    assert!(proxy.asked().is_empty());
}

#[tokio::test]
async fn with_its_command_the_proxy_ends_and_tells_what_was_under_way() {
    let host = script(&[SILENCE]).await;
    let proxy = to(&[&host.origin]).await;
    let mut stream = TcpStream::connect(proxy.at).await.unwrap();
    let (_, name) = host.origin.as_pair();
    let request = format!("GET http://{name}/ HTTP/1.1\r\nHost: {name}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    while host.heard().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    proxy.over.notify_one();
    timeout(LONG, proxy.task).await.unwrap().unwrap();
    assert_eq!(proxy.gate.came().await.end, EgressEndReason::Stopped);
    assert!(read(&mut stream).await.is_empty());
    assert!(TcpStream::connect(proxy.at).await.is_err());
}
