//! A chain, a cloud and a signer that are played, each with its own count of the
//! same money. They outlive whoever buys from them, and can be made to fail.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use alloy_primitives::{Address, B256, U256};
use automaton_agent::EventSink;
use automaton_agent::treasury::{PaymentContext, Treasury, TreasuryDeps};
use automaton_client::CloudClient;
use automaton_core::entropy::SystemEntropy;
use automaton_core::faults::Faults;
use automaton_core::id::IdGenerator;
use automaton_core::money::Microcents;
use automaton_core::secret::Secret;
use automaton_core::time::{Clock as _, Span, Timestamp};
use automaton_core::window::BootClock;
use automaton_core::wire::x402::{
    Authorization, ChainId, ExactPayload, PaymentPayload, TokenDomain, decode,
};
use automaton_net::{HttpClient, HttpClientConfig, RetryPolicy};
use automaton_policy::PaymentLimits;
use automaton_store::Store;
use automaton_testkit::clock::FakeClock;
use automaton_wallet::{ChainClient, SignerClient, nonce};
use serde_json::{Value, json};

use crate::spending::CREATOR;

const CHAIN: u64 = 31337;
const ASSET: Address = Address::repeat_byte(0xA5);
const PAYEE: Address = Address::repeat_byte(0xEE);
const WALLET: Address = Address::repeat_byte(0xAA);
/// The chain's time, in seconds.
const NOW: i64 = 1_767_323_105;
/// Microcents of a dollar.
pub(crate) const DOLLAR: i64 = 100_000_000;

/// An address that the cloud knows nothing of.
pub(crate) const NOBODY: Address = Address::repeat_byte(0x0B);

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Weather {
    /// Nothing.
    #[default]
    Fine,
    /// The cloud answers 503 to everything.
    CloudDown,
    /// The cloud answers 503 to the question for the balance.
    BalanceDown,
    /// The cloud takes a payment, and its reply is lost.
    RepliesLost,
    /// A payment never reaches the cloud.
    PaymentsLost,
    /// The cloud takes a payment, and the chain makes no block.
    NoBlocks,
    /// The signer signs, and dies before it answers.
    SignerDies,
    /// The money moves, and the cloud credits it when the weather is another one.
    MovedOnly,
    /// The cloud asks for $900.
    Greedy,
    /// The cloud takes its time with a payment.
    Slow,
    /// The chain's node does not tell what the wallet holds.
    WalletUnread,
}

/// The three counts.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) weather: Weather,
    /// What the weather costs in base units, where that is not a cent.
    pub(crate) price: u64,
    /// In base units.
    pub(crate) usdc: u64,
    /// In microcents.
    pub(crate) credits: i64,
    /// Credits that are paid for, in microcents.
    pub(crate) owed: i64,
    /// What was moved on the chain, by nonce.
    pub(crate) moved: BTreeMap<B256, u64>,
    /// What the account's history says, newest first.
    pub(crate) history: Vec<Value>,
    /// What it was paid for, newest first.
    pub(crate) sales: Vec<Value>,
    /// Its next entries, each of which is there once a page was read.
    pub(crate) coming: Vec<Value>,
    /// How many pages were read.
    pub(crate) pages: u32,
    /// Machines that are rented, and what they do.
    pub(crate) machines: BTreeMap<String, &'static str>,
    /// How often one was to be stopped; the first time it is not.
    pub(crate) stops: u32,
    /// What was given away, by its key: to whom, and cents.
    pub(crate) given: BTreeMap<String, (String, i64)>,
    /// What was signed, by intent.
    pub(crate) signed: BTreeMap<String, ExactPayload>,
    /// Seconds by which the chain is later than it was.
    pub(crate) later: i64,
    /// Times that the balance was asked for.
    pub(crate) asked: u32,
    /// What became of calls of models, by their names.
    pub(crate) calls: BTreeMap<String, Value>,
}

impl Counts {
    /// The machines, after one was stopped if that is asked for; the first time it fails.
    fn rented(&mut self, machine: &str) -> Option<(u32, Value)> {
        if let Some(id) = machine.strip_prefix('/').and_then(|rest| rest.strip_suffix("/stop")) {
            self.stops += 1;
            if self.stops == 1 {
                return None;
            }
            self.machines.insert(id.to_owned(), "stopped");
        }
        let machines = self.machines.iter();
        let machines = machines.map(|(id, status)| json!({ "id": id, "status": status }));
        Some((200, json!({ "sandboxes": machines.collect::<Vec<_>>() })))
    }

    /// The page of the history that is asked for.
    fn page(&mut self, path: &str) -> Value {
        let number = |name: &str| {
            let (_, rest) = path.split_once(&format!("{name}=")).unwrap();
            rest.split('&').next().unwrap().parse::<usize>().unwrap()
        };
        let (limit, offset) = (number("limit"), number("offset"));
        let page = |all: &[Value]| all.iter().skip(offset).take(limit).cloned().collect::<Vec<_>>();
        let (history, sales) = (page(&self.history), page(&self.sales));
        self.pages += 1;
        if let Some(next) = self.coming.pop() {
            self.history.insert(0, next);
        }
        json!({ "history": history, "sales": sales, "limit": limit, "offset": offset })
    }
}

/// The three, and the time by which the automaton lives.
#[derive(Clone)]
pub(crate) struct Town {
    counts: Arc<Mutex<Counts>>,
    pub(crate) clock: FakeClock,
    /// The time since boot; before zero it cannot be read.
    pub(crate) boot: FakeClock,
    pub(crate) url: String,
    gives_alone: bool,
}

struct Booted(FakeClock);

impl BootClock for Booted {
    fn since_boot(&self) -> Option<Span> {
        let now = self.0.now();
        (now >= Timestamp::EPOCH).then(|| now.since(Timestamp::EPOCH))
    }
}

impl Town {
    pub(crate) fn new(usdc: u64, credits: i64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let usdc = usdc * 1_000_000;
        let counts = Arc::new(Mutex::new(Counts { usdc, credits, ..Counts::default() }));
        let clock = FakeClock::at(Timestamp::from_millis(NOW * 1000));
        let boot = FakeClock::at(Timestamp::from_millis(7_000));
        let town = Self { counts, clock, boot, url, gives_alone: false };
        let serving = town.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let town = serving.clone();
                std::thread::spawn(move || town.serve(stream.unwrap()));
            }
        });
        town
    }

    /// The same, where it may give by its own wish.
    pub(crate) fn giving_alone(self) -> Self {
        Self { gives_alone: true, ..self }
    }

    pub(crate) fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap()
    }

    pub(crate) fn ids(&self) -> IdGenerator {
        IdGenerator::new(Arc::new(self.clock.clone()), Arc::new(SystemEntropy))
    }

    pub(crate) async fn treasury(
        &self,
        store: &Store,
        faults: Arc<dyn Faults>,
        events: Arc<dyn EventSink>,
    ) -> Arc<Treasury> {
        let origins = vec![self.url.parse().unwrap()];
        // What fails is asked again at once, and is never left alone.
        let patience = RetryPolicy { first_wait: Duration::ZERO, rest: Duration::ZERO };
        let config = HttpClientConfig {
            allow_private_origins: origins,
            retry_policy: patience,
            ..HttpClientConfig::default()
        };
        let client = HttpClient::new(config).unwrap();
        let (here, there) = UnixStream::pair().unwrap();
        let town = self.clone();
        std::thread::spawn(move || town.sign(there));
        let payment_context = PaymentContext {
            cloud: CloudClient::new(client.clone(), &self.url).unwrap(),
            origin: self.url.clone(),
            key: Some(Secret::new("cnwy_k_test".to_owned())),
            signer: SignerClient::open(here).await.unwrap(),
            chain: ChainClient::connect(client.clone(), self.url.parse().unwrap(), CHAIN)
                .await
                .unwrap(),
            net: client,
            token: TokenDomain::usdc(ChainId(CHAIN), ASSET),
        };
        let boot = Arc::new(Booted(self.boot.clone()));
        let around = TreasuryDeps { ids: self.ids(), boot, faults, events };
        Arc::new(
            Treasury::new(store.clone(), payment_context, around)
                .with_limits(self.limits())
                .unwrap()
                .with_creator(Some(CREATOR)),
        )
    }

    /// Whatever it costs to be asked, and of little: a life is not rich here.
    pub(crate) fn limits(&self) -> PaymentLimits {
        PaymentLimits {
            reserve: Microcents::ZERO,
            x402_hosts: vec![self.url.clone()],
            gives_alone: self.gives_alone,
            ..PaymentLimits::default()
        }
    }

    /// The signer, which counts before it answers, and gives an intent the same
    /// bytes for ever.
    fn sign(&self, mut stream: UnixStream) {
        let mut lines = BufReader::new(stream.try_clone().unwrap());
        let mut say = |reply: Value| writeln!(stream, "{reply}").is_ok();
        say(json!({ "hello": { "version": 2, "address": WALLET } }));
        let mut line = String::new();
        while lines.read_line(&mut line).unwrap_or(0) > 0 {
            let request: Value = serde_json::from_str(&line).unwrap();
            line.clear();
            if request.get("limits").is_some() {
                say(self.standing());
                continue;
            }
            let asked = &request["pay"];
            let intent = asked["intent"].as_str().unwrap().to_owned();
            let now = U256::from((NOW + self.counts().later).unsigned_abs());
            let number = |name: &str| asked[name].as_u64().unwrap();
            let authorization = Authorization {
                from: WALLET,
                to: asked["payee"].as_str().unwrap().parse().unwrap(),
                value: U256::from(number("amount")),
                valid_after: now - U256::from(600),
                valid_before: now + U256::from(number("deadline_s")),
                nonce: nonce(WALLET, CHAIN, intent.parse().unwrap()),
            };
            let paid = ExactPayload { signature: [27; 65].into(), authorization };
            let mut counts = self.counts();
            let paid = counts.signed.entry(intent).or_insert(paid).clone();
            let dies = counts.weather == Weather::SignerDies;
            drop(counts);
            if dies || !say(json!({ "paid": paid })) {
                return;
            }
        }
    }

    /// What the signer's ledger says: every payment counts, its signature lost or not.
    fn standing(&self) -> Value {
        let counts = self.counts();
        let ever: U256 = counts.signed.values().map(|paid| paid.authorization.value).sum();
        let ever: u64 = ever.try_into().unwrap();
        let (most, window) = (50_000_000, NOW * 1000);
        json!({ "limits": {
            "wallet": WALLET,
            "limits": {
                "per_payment": 25_000_000, "per_hour": most, "per_day": most, "per_payee": most,
                "lifetime": 1_000_000_000, "payments_max": 100,
            },
            "spent": {
                "hour": ever, "day": ever, "payee": ever, "ever": ever,
                "payments": counts.signed.len(),
            },
            "window": window, "creator": null, "serial": 0, "rules": B256::ZERO, "permits": [],
            "asked_for": [], "asked": null,
        } })
    }

    /// Answers one request to the cloud or the chain.
    fn serve(&self, mut stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut head, mut length, mut payment, mut key) = (String::new(), 0, None, String::new());
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let (name, value) = line.trim_end().split_once(": ").unwrap_or_default();
            match name.to_lowercase().as_str() {
                "content-length" => length = value.parse().unwrap(),
                "x-payment" => payment = Some(value.to_owned()),
                "idempotency-key" => key = value.to_owned(),
                _ if line.trim_end().is_empty() => break,
                _ => head.push_str(&line),
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let answer = if head.starts_with("POST / ") {
            Some((200, self.chain(&serde_json::from_slice(&body).unwrap())))
        } else if head.starts_with("POST /v1/credits/transfer ") {
            self.give(&key, &serde_json::from_slice(&body).unwrap())
        } else if head.contains(" /weather") {
            self.resource(payment.as_deref())
        } else {
            self.cloud(head.split(' ').nth(1).unwrap(), payment.as_deref())
        };
        if let Some((status, json)) = answer {
            let json = json.to_string();
            let length = json.len();
            // A client that has gone needs no answer.
            write!(
                stream,
                "HTTP/1.1 {status} .\r\ncontent-type: application/json\r\nconnection: close\r\n\
                 content-length: {length}\r\n\r\n{json}"
            )
            .ok();
        }
    }

    fn chain(&self, question: &Value) -> Value {
        let counts = self.counts();
        if counts.weather == Weather::WalletUnread && question["method"] == "eth_call" {
            let error = json!({ "code": -32000, "message": "the state is not here" });
            return json!({ "jsonrpc": "2.0", "id": 1, "error": error });
        }
        let word = |number: u64| json!(format!("0x{number:064x}"));
        let result = match question["method"].as_str().unwrap() {
            "eth_chainId" => json!(format!("{CHAIN:#x}")),
            "eth_getBlockByNumber" => {
                let time = format!("{:#x}", NOW + counts.later);
                json!({ "hash": B256::repeat_byte(1), "timestamp": time })
            }
            _ => {
                let data = question["params"][0]["data"].as_str().unwrap();
                if data.starts_with("0x70a08231") {
                    word(counts.usdc)
                } else {
                    let nonce: B256 = data[data.len() - 64..].parse().unwrap();
                    word(u64::from(counts.moved.contains_key(&nonce)))
                }
            }
        };
        json!({ "jsonrpc": "2.0", "id": 1, "result": result })
    }

    /// Gives credits away, once for each key.
    fn give(&self, key: &str, asked: &Value) -> Option<(u32, Value)> {
        let mut counts = self.counts();
        if counts.weather == Weather::CloudDown {
            return Some((503, json!({ "error": "down", "code": "DOWN" })));
        }
        let to = asked["to_address"].as_str().unwrap().to_owned();
        if to == NOBODY.to_string() {
            return Some((422, json!({ "error": "nobody has that", "code": "INVALID_REQUEST" })));
        }
        let cents = asked["amount_cents"].as_i64().unwrap();
        if !counts.given.contains_key(key) {
            counts.credits -= cents * 1_000_000;
            counts.given.insert(key.to_owned(), (to.clone(), cents));
        }
        let reply = json!({
            "transfer_id": format!("t-{key}"), "status": "completed", "to_address": to,
            "amount_cents": cents, "balance_after_cents": counts.credits / 1_000_000,
        });
        (counts.weather != Weather::RepliesLost).then_some((200, reply))
    }

    /// Something that costs a cent.
    fn resource(&self, payment: Option<&str>) -> Option<(u32, Value)> {
        let mut counts = self.counts();
        let Some(payment) = payment else {
            let usual = if counts.price == 0 { 10_000 } else { counts.price };
            let price = if counts.weather == Weather::Greedy { 10_000_000 } else { usual };
            return Some((402, demand(price)));
        };
        if counts.weather == Weather::PaymentsLost {
            return None;
        }
        let payment: PaymentPayload = decode(payment).unwrap();
        let authorization = &payment.payload().authorization;
        let amount: u64 = authorization.value.try_into().unwrap();
        if counts.weather != Weather::NoBlocks
            && counts.moved.insert(authorization.nonce, amount).is_none()
        {
            counts.usdc -= amount;
        }
        (counts.weather != Weather::RepliesLost).then(|| (200, json!({ "weather": "mild" })))
    }

    fn cloud(&self, path: &str, payment: Option<&str>) -> Option<(u32, Value)> {
        if payment.is_some() && self.counts().weather == Weather::Slow {
            std::thread::sleep(Duration::from_millis(300));
        }
        let mut counts = self.counts();
        let down = (503, json!({ "error": "down", "code": "DOWN" }));
        if counts.weather == Weather::CloudDown {
            return Some(down);
        }
        if path.ends_with("/balance") {
            counts.asked += 1;
            if counts.weather == Weather::BalanceDown {
                return Some(down);
            }
            if counts.weather != Weather::MovedOnly {
                counts.credits += std::mem::take(&mut counts.owed);
            }
            let credits = counts.credits;
            let cents = credits.div_euclid(1_000_000);
            return Some((200, json!({ "balance_cents": cents, "balance_microcents": credits })));
        }
        if let Some(name) = path.strip_prefix("/v1/calls/") {
            let none = || (404, json!({ "error": "no such call", "code": "NO_SUCH_CALL" }));
            return Some(counts.calls.get(name).map_or_else(none, |call| (200, call.clone())));
        }
        if let Some(machine) = path.strip_prefix("/v1/sandboxes") {
            return Some(counts.rented(machine).unwrap_or(down));
        }
        if path == "/v1/automata/status" {
            return Some((200, json!({})));
        }
        if path.starts_with("/v1/credits/history") {
            return Some((200, counts.page(path)));
        }
        let Some(Ok(usd)) = path.split('/').nth(2).map(str::parse::<u64>) else {
            return Some((404, json!({ "error": "there is no such page" })));
        };
        let Some(payment) = payment else {
            let price = if counts.weather == Weather::Greedy { 900 } else { usd } * 1_000_000;
            return Some((402, demand(price)));
        };
        if counts.weather == Weather::PaymentsLost {
            return None;
        }
        let payment: PaymentPayload = decode(payment).unwrap();
        let authorization = &payment.payload().authorization;
        let mut status = "pending";
        if counts.weather != Weather::NoBlocks {
            status = "settled";
            let amount: u64 = authorization.value.try_into().unwrap();
            if counts.moved.insert(authorization.nonce, amount).is_none() {
                counts.usdc -= amount;
                counts.owed += i64::try_from(usd).unwrap() * DOLLAR;
            }
            if counts.weather == Weather::MovedOnly {
                status = "pending";
            } else {
                counts.credits += std::mem::take(&mut counts.owed);
            }
        }
        if counts.weather == Weather::RepliesLost {
            return None;
        }
        let reply = json!({
            "credits_cents": usd * 100, "amount_cents": usd * 100, "balance_cents": 0,
            "transaction": if status == "settled" { "0xabc" } else { "" }, "status": status,
        });
        Some((200, reply))
    }
}

/// A demand of version 1.
fn demand(price: u64) -> Value {
    let way = json!({
        "scheme": "exact", "network": format!("eip155:{CHAIN}"), "payTo": PAYEE,
        "maxAmountRequired": price.to_string(), "asset": ASSET, "maxTimeoutSeconds": 300,
    });
    json!({ "x402Version": 1, "accepts": [way] })
}
