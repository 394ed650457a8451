//! A cloud with a made-up chain, wallets, and HTTP in its plainest form.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{Address, B256, Bytes, Signature, U256, eip191_hash_message, hex};
use automaton_cloud::{CloudConfig, CloudDeps, CloudError, CloudServer};
use automaton_core::faults::{Faults, NoFaults};
use automaton_core::time::{Clock, Timestamp};
use automaton_core::wire::sign_in::SignIn;
use automaton_core::wire::x402::{Authorization, ChainId, ExactPayload, TokenDomain, v1};
use automaton_sandbox::Launcher;
use automaton_testkit::clock::FakeClock;
use automaton_testkit::entropy::SeededEntropy;
use k256::ecdsa::SigningKey;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fake_chain::FakeChain;

pub(crate) const CHAIN: u64 = 31337;
pub(crate) const ASSET: Address = Address::repeat_byte(0xA5);
pub(crate) const PAYEE: Address = Address::repeat_byte(0xEE);
pub(crate) const NOW: i64 = 1_767_323_105_000;
/// After this, an answer is taken for one that never comes. A purchase alone waits 20 seconds for
/// the chain, and each of its steps for the disk, which others may keep busy.
const ANSWER_MAX: Duration = Duration::from_secs(120);
/// The number of points of secp256k1.
const CURVE_ORDER: &str = "FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141";

/// An account with its key.
pub(crate) struct Wallet {
    key: SigningKey,
    pub(crate) address: Address,
}

impl Wallet {
    pub(crate) fn new(seed: u8) -> Self {
        let key = SigningKey::from_slice(&[seed; 32]).unwrap();
        let address = Address::from_private_key(&key);
        Self { key, address }
    }

    pub(crate) fn sign(&self, digest: B256) -> Vec<u8> {
        let (signature, parity) = self.key.sign_prehash_recoverable(digest.as_slice()).unwrap();
        let mut bytes = signature.to_vec();
        bytes.push(27 + parity.to_byte());
        bytes
    }

    /// The other spelling of a signature: it recovers the same account.
    pub(crate) fn twin_of(signature: &[u8]) -> Vec<u8> {
        let signed = Signature::from_raw(signature).unwrap();
        let order = U256::from_str_radix(CURVE_ORDER, 16).unwrap();
        let twin = Signature::new(signed.r(), order - signed.s(), !signed.v());
        twin.as_bytes().to_vec()
    }

    pub(crate) fn authorize(&self, usd: u64, nonce: u8) -> Authorization {
        let now = NOW.unsigned_abs() / 1000;
        Authorization {
            from: self.address,
            to: PAYEE,
            value: U256::from(usd * 1_000_000),
            valid_after: U256::from(now - 60),
            valid_before: U256::from(now + 300),
            nonce: B256::repeat_byte(nonce),
        }
    }

    pub(crate) fn payload(&self, authorization: Authorization) -> ExactPayload {
        let signature = Bytes::from(self.sign(token().transfer_digest(&authorization)));
        ExactPayload { signature, authorization }
    }

    /// The payment that clients in the field send: version 1, but the chain as CAIP-2.
    pub(crate) fn payment(&self, authorization: Authorization) -> v1::PaymentPayloadV1 {
        v1::PaymentPayloadV1 {
            version: 1,
            scheme: "exact".to_owned(),
            network: format!("eip155:{CHAIN}"),
            payload: self.payload(authorization),
        }
    }
}

pub(crate) fn token() -> TokenDomain {
    TokenDomain::usdc(ChainId(CHAIN), ASSET)
}

/// A folder for a cloud's data. A cloud syncs some fifteen commits before its first machine
/// starts, and each waits for all others that use the disk; so the folder is in memory, where
/// there is such a place. Only machines that are processes have files in it: those need a disk.
fn place(has_machines: bool) -> tempfile::TempDir {
    let on_disk = || tempfile::tempdir().unwrap();
    if has_machines {
        return on_disk();
    }
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| on_disk())
}

/// The configuration of a world's cloud.
fn configure(home: &tempfile::TempDir, upstream: &str, machines: &str) -> CloudConfig {
    // One, or a list of several.
    let name = if upstream.starts_with('[') { "upstreams" } else { "upstream" };
    let config = format!(
        r#"{{"data":"{}","chain":{{"id":{CHAIN},"rpc_url":"http://127.0.0.1:9","asset":"{ASSET}",
            "pay_to":"{PAYEE}","gas_signer":{{"home":"none"}},"fee_max_wei":2000}},"{name}":{upstream},
            "machines":{{"free_gib_min":0{machines}}},"models":[{{"id":"script","input_microcents_per_million":200000000,
            "output_microcents_per_million":1000000000,"context_window":8192,
            "max_output_tokens":1000,"supports_tools":true}},
            {{"id":"vectors","upstream_id":"small","input_microcents_per_million":20000000,
            "output_microcents_per_million":0,"context_window":512,"max_output_tokens":1,
            "embeddings":true}}]}}"#,
        home.path().display()
    );
    CloudConfig::parse(&config).unwrap()
}

/// A running cloud and what is around it.
pub(crate) struct World {
    pub(crate) cloud: CloudServer,
    pub(crate) chain: Arc<FakeChain>,
    pub(crate) clock: FakeClock,
    upstream: String,
    machines: String,
    home: Arc<tempfile::TempDir>,
    launcher: Option<Launcher>,
}

/// The parts of a world that outlive its cloud, and what its cloud starts with.
struct Ground {
    home: Arc<tempfile::TempDir>,
    clock: FakeClock,
    chain: Arc<FakeChain>,
    upstream: String,
    machines: String,
    faults: Arc<dyn Faults>,
    launcher: Option<Launcher>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with_upstream("http://127.0.0.1:9/v1").await
    }

    pub(crate) async fn with_upstream(url: &str) -> Self {
        Self::with(format!(r#"{{"base_url":"{url}"}}"#), None).await
    }

    /// A world whose cloud has this in its configuration as its upstream.
    pub(crate) async fn with(upstream: String, launcher: Option<Launcher>) -> Self {
        Self::renting(upstream, launcher, String::new()).await.unwrap()
    }

    /// The same, with this at the end of what its configuration says of machines.
    pub(crate) async fn renting(
        upstream: String,
        launcher: Option<Launcher>,
        machines: String,
    ) -> Result<Self, CloudError> {
        Self::start(Ground {
            home: Arc::new(place(launcher.is_some() && !machines.contains("podman"))),
            clock: FakeClock::at(Timestamp::from_millis(NOW)),
            chain: Arc::default(),
            upstream,
            machines,
            faults: Arc::new(NoFaults),
            launcher,
        })
        .await
    }

    async fn start(ground: Ground) -> Result<Self, CloudError> {
        let Ground { home, clock, chain, upstream, machines, faults, launcher } = ground;
        let deps = CloudDeps {
            clock: Arc::new(clock.clone()),
            entropy: Arc::new(SeededEntropy::new(1)),
            report: Arc::new(drop),
            faults,
            launcher: launcher.clone(),
        };
        let config = configure(&home, &upstream, &machines);
        let settlement = Arc::clone(&chain);
        let cloud = CloudServer::start_on(config, deps, settlement).await?;
        Ok(Self { cloud, chain, clock, upstream, machines, home, launcher })
    }

    /// The cloud dies without a word and is started again.
    pub(crate) async fn crash(self) -> Self {
        self.crash_with(Arc::new(NoFaults)).await
    }

    /// The same, into a cloud with these faults.
    pub(crate) async fn crash_with(self, faults: Arc<dyn Faults>) -> Self {
        let Self { cloud, chain, clock, upstream, machines, home, launcher } = self;
        drop(cloud);
        let ground = Ground { home, clock, chain, upstream, machines, faults, launcher };
        Self::start(ground).await.unwrap()
    }

    /// The cloud ends, in good order or as if it was killed, somebody who has its database
    /// runs a statement there, and it is started again.
    pub(crate) async fn tampered(self, killed: bool, statement: &str) -> Result<Self, CloudError> {
        let Self { cloud, chain, clock, upstream, machines, home, launcher } = self;
        cloud.stop(Duration::from_secs(10)).await;
        #[expect(clippy::disallowed_methods, reason = "somebody who has it opens it as he likes")]
        let database = rusqlite::Connection::open(home.path().join("cloud.db")).unwrap();
        database.execute_batch(statement).unwrap();
        if !killed {
            let fold = "PRAGMA wal_checkpoint(TRUNCATE)";
            database.query_row(fold, [], |_| Ok(())).unwrap();
        }
        let faults = Arc::new(NoFaults);
        let started =
            Self::start(Ground { home, clock, chain, upstream, machines, faults, launcher }).await;
        drop(database);
        started
    }

    pub(crate) fn config(&self) -> CloudConfig {
        configure(&self.home, &self.upstream, &self.machines)
    }

    pub(crate) fn at(&self) -> SocketAddr {
        self.cloud.address()
    }

    pub(crate) fn give(&self, wallet: &Wallet, usd: u64) {
        self.chain.ledger().balances.insert(wallet.address, U256::from(usd * 1_000_000));
    }

    pub(crate) fn message(&self, wallet: &Wallet, nonce: &str) -> SignIn {
        SignIn {
            domain: "conway.tech".to_owned(),
            address: wallet.address,
            statement: Some("Sign in.".to_owned()),
            uri: format!("{}/v1/auth/verify", self.cloud.url()),
            chain_id: 8453,
            nonce: nonce.to_owned(),
            issued_at: self.clock.now(),
            expiration: None,
            not_before: None,
            request_id: None,
            resources: Vec::new(),
        }
    }

    pub(crate) async fn nonce(&self) -> String {
        let reply = post(self.at(), "/v1/auth/nonce", &[], "").await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()["nonce"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn verify(&self, wallet: &Wallet, message: &str) -> Reply {
        let signature = hex::encode_prefixed(wallet.sign(eip191_hash_message(message)));
        let body = serde_json::json!({ "message": message, "signature": signature }).to_string();
        let json = [("Content-Type", "application/json")];
        post(self.at(), "/v1/auth/verify", &json, &body).await
    }

    /// A wallet's API key, in the steps of the clients in the field.
    pub(crate) async fn key(&self, wallet: &Wallet) -> String {
        let message = self.message(wallet, &self.nonce().await).to_string();
        let reply = self.verify(wallet, &message).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let token = format!("Bearer {}", reply.json()["access_token"].as_str().unwrap());
        let headers = [("Authorization", token.as_str()), ("Content-Type", "application/json")];
        let body = r#"{"name":"conway-automaton"}"#;
        let reply = post(self.at(), "/v1/auth/api-keys", &headers, body).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()["key"].as_str().unwrap().to_owned()
    }

    /// The balance in microcents.
    pub(crate) async fn balance(&self, key: &str) -> i64 {
        self.account(key).await["balance_microcents"].as_i64().unwrap()
    }

    /// Returns the credits that are set aside.
    pub(crate) async fn held(&self, key: &str) -> i64 {
        self.account(key).await["held_microcents"].as_i64().unwrap()
    }

    async fn account(&self, key: &str) -> Value {
        let headers = [("Authorization", key), ("Content-Type", "application/json")];
        let reply = get(self.at(), "/v1/credits/balance", &headers).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()
    }

    pub(crate) fn database(&self) -> std::path::PathBuf {
        self.home.path().join(automaton_cloud::DATABASE)
    }

    /// Begins to buy credits for oneself; gives the connection once the
    /// transaction was broadcast.
    pub(crate) async fn begin(&self, wallet: &Wallet, authorization: Authorization) -> TcpStream {
        let nonce = authorization.nonce;
        let stream = self.send_payment(wallet, authorization).await;
        // Others are sent again meanwhile.
        until("it is broadcast", async || self.chain.ledger().told.contains(&nonce)).await;
        stream
    }

    /// Sends a payment and leaves the answer unread.
    pub(crate) async fn send_payment(&self, wallet: &Wallet, paid: Authorization) -> TcpStream {
        let header = automaton_core::wire::x402::encode(&wallet.payment(paid)).unwrap();
        let line = format!("GET /pay/5/{}", wallet.address);
        open(self.at(), &line, &[("X-Payment", &header)], "").await
    }

    /// Buys credits for oneself.
    pub(crate) async fn pay(&self, wallet: &Wallet, authorization: Authorization) -> Reply {
        let header = automaton_core::wire::x402::encode(&wallet.payment(authorization)).unwrap();
        get(self.at(), &format!("/pay/5/{}", wallet.address), &[("X-Payment", &header)]).await
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: HashMap<String, String>,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

pub(crate) async fn get(at: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Reply {
    send(at, &format!("GET {path}"), headers, "").await
}

pub(crate) async fn post(
    at: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Reply {
    send(at, &format!("POST {path}"), headers, body).await
}

/// HTTP/1.0, so that the body is what comes until the end.
pub(crate) async fn send(
    at: SocketAddr,
    line: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Reply {
    let mut stream = open(at, line, headers, body).await;
    let mut raw = Vec::new();
    let read = stream.read_to_end(&mut raw);
    let read = tokio::time::timeout(ANSWER_MAX, read).await;
    read.unwrap_or_else(|_| panic!("no answer to {line}")).unwrap();
    let text = String::from_utf8(raw).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let pair =
        |line: &str| line.split_once(": ").map(|(a, b)| (a.to_ascii_lowercase(), b.to_owned()));
    Reply { status, headers: lines.filter_map(pair).collect(), body: body.to_owned() }
}

/// Sends a request and leaves the answer unread.
pub(crate) async fn open(
    at: SocketAddr,
    line: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> TcpStream {
    let mut request = format!("{line} HTTP/1.0\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        request.push_str(&format!("Host: {at}\r\n"));
    }
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    if line.starts_with("POST") || line.starts_with("PUT") {
        request.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(format!("{request}\r\n{body}").as_bytes()).await.unwrap();
    stream
}

/// Waits until something holds.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..2400 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("never: {what}");
}
