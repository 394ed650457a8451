//! A client that sends what the reference sends, byte for byte: the heads that the `fetch` of
//! Node 20 writes, in its order and spelling, and bodies whose keys are in the order in which the
//! reference names them. Nothing here is made by code of ours that the cloud has, too: texts,
//! hashes and domains are spelled out.

use std::cell::RefCell;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use alloy_primitives::{Address, B256, U256, b256, keccak256};
use alloy_signer::SignerSync as _;
use alloy_signer_local::PrivateKeySigner;
use automaton_core::time::{Clock as _, SystemClock};
use serde_json::Value;
use serde_json::value::RawValue;

const LIMIT: Duration = Duration::from_secs(120);

/// A request with the headers that its caller names, and what came back.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) media: String,
    pub(super) body: String,
}

impl Reply {
    /// As the reference reads it: JSON where the media type says so.
    pub(super) fn json(&self) -> Value {
        assert!(self.media.contains("application/json"), "{self:?}");
        serde_json::from_str(&self.body).unwrap()
    }
}

/// One request over a connection of its own, as the `fetch` of Node 20 writes it.
pub(super) fn fetch(
    origin: &str,
    line: &str,
    headers: &[(&str, &str)],
    body: Option<&str>,
) -> Reply {
    let host = origin.trim_start_matches("http://").trim_end_matches('/');
    let mut text = format!("{line} HTTP/1.1\r\nhost: {host}\r\nconnection: keep-alive\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += "accept: */*\r\naccept-language: *\r\nsec-fetch-mode: cors\r\nuser-agent: node\r\n\
             accept-encoding: gzip, deflate\r\n";
    if line.starts_with("POST") {
        text += &format!("content-length: {}\r\n", body.unwrap_or_default().len());
    }
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.write_all(format!("{text}\r\n{}", body.unwrap_or_default()).as_bytes()).unwrap();
    read(BufReader::new(stream))
}

fn read(mut from: BufReader<TcpStream>) -> Reply {
    let line = |from: &mut BufReader<TcpStream>| {
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    };
    let status = line(&mut from).split(' ').nth(1).unwrap().parse().unwrap();
    let (mut media, mut length, mut chunked) = (String::new(), 0, false);
    loop {
        let header = line(&mut from);
        let Some((name, value)) = header.split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-type" => media = value.to_owned(),
            "content-length" => length = value.parse().unwrap(),
            "transfer-encoding" => chunked = value == "chunked",
            _ => {}
        }
    }
    let mut body = Vec::new();
    while chunked {
        let mut piece = vec![0; usize::from_str_radix(&line(&mut from), 16).unwrap() + 2];
        from.read_exact(&mut piece).unwrap();
        chunked = piece.len() > 2;
        body.extend_from_slice(&piece[..piece.len() - 2]);
    }
    let at = body.len();
    body.resize(at + length, 0);
    from.read_exact(&mut body[at..]).unwrap();
    Reply { status, media, body: String::from_utf8(body).unwrap() }
}

/// A request as the table has it: without what differs from life to life.
type Recorded = (String, u16);

/// What a client knows of itself, and the requests that it has sent.
pub(super) struct Reference<'a> {
    pub(super) origin: &'a str,
    pub(super) signer: PrivateKeySigner,
    pub(super) key: String,
    pub(super) sent: &'a RefCell<Vec<Recorded>>,
}

impl<'a> Reference<'a> {
    /// A client with a wallet that signs in and gets a key.
    pub(super) fn provision(origin: &'a str, seed: u8, sent: &'a RefCell<Vec<Recorded>>) -> Self {
        let signer = PrivateKeySigner::from_bytes(&B256::repeat_byte(seed)).unwrap();
        let mut new = Self { origin, signer, key: String::new(), sent };
        let nonce = new.bare("POST /v1/auth/nonce", "`Content-Type` and body absent", &[], None);
        let nonce = nonce.json()["nonce"].as_str().unwrap().to_owned();
        let message = format!(
            "conway.tech wants you to sign in with your Ethereum account:\n{}\n\n\
             Sign in to Conway as an Automaton to provision an API key.\n\n\
             URI: {origin}/v1/auth/verify\nVersion: 1\nChain ID: 8453\nNonce: {nonce}\n\
             Issued At: {}",
            new.signer.address(),
            SystemClock.now()
        );
        let signature = new.signer.sign_message_sync(message.as_bytes()).unwrap();
        let message = serde_json::to_string(&message).unwrap();
        let body = format!(r#"{{"message":{message},"signature":"{signature}"}}"#);
        let json = ("Content-Type", "application/json");
        let told = new.bare("POST /v1/auth/verify", "EIP-4361", &[json], Some(&body)).json();
        let token = format!("Bearer {}", told["access_token"].as_str().unwrap());
        let (headers, body) = ([json, ("Authorization", &token)], r#"{"name":"conway-automaton"}"#);
        let made = new.bare("POST /v1/auth/api-keys", "`Bearer`", &headers, Some(body)).json();
        new.key = made["key"].as_str().unwrap().to_owned();
        assert!(new.key.starts_with(made["key_prefix"].as_str().unwrap()), "{made}");
        new
    }

    pub(super) fn address(&self) -> Address {
        self.signer.address()
    }

    /// Any request, recorded with what it is there for.
    pub(super) fn bare(
        &self,
        line: &str,
        note: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Reply {
        let reply = fetch(self.origin, line, headers, body);
        let path: Vec<&str> = line.split('/').map(template).collect();
        let path = path.join("/");
        let what = if note.is_empty() { format!("`{path}`") } else { format!("`{path}`, {note}") };
        self.sent.borrow_mut().push((what, reply.status));
        reply
    }

    /// A request through the wrapper of the reference: the type of the body, even where there is
    /// none, and the bare key.
    pub(super) fn ask(&self, line: &str, note: &str, body: Option<&str>) -> Reply {
        let headers = [("Content-Type", "application/json"), ("Authorization", self.key.as_str())];
        self.bare(line, note, &headers, body)
    }

    /// The same under a name, twice: what was cut off is sent again.
    pub(super) fn twice(&self, line: &str, note: &str, name: &str, body: &str) -> Reply {
        let headers = [
            ("Content-Type", "application/json"),
            ("Authorization", self.key.as_str()),
            ("Idempotency-Key", name),
        ];
        let first = self.bare(line, note, &headers, Some(body));
        let again = fetch(self.origin, line, &headers, Some(body));
        assert_eq!((again.status, again.body.trim()), (first.status, first.body.trim()), "{line}");
        first
    }

    pub(super) fn balance(&self, note: &str) -> i64 {
        let told = self.ask("GET /v1/credits/balance", note, None).json();
        told["balance_cents"].as_i64().unwrap()
    }

    /// What it registers as, with an id that it may have drawn anew.
    pub(super) fn register(&self, id: &str, nonce: &str, note: &str) -> Reply {
        let (own, creator) = (self.address(), Address::repeat_byte(0xC0));
        let hash = keccak256("Live well.");
        let canonical = format!(
            r#"{{"automaton_address":"{own}","automaton_id":"{id}","bio":"","creator_address":"{creator}","genesis_prompt_hash":"{hash}","name":"Ada"}}"#
        );
        let payload = keccak256(canonical);
        let register = b256!("2426dca87e180bb323c95ebbfe526efede5f8c0f0c8e3ff9e8b60685f80afc39");
        let domain = b256!("f174d30d291149dc9209f05853a347fae3907388560f47e14ec80ddc29461ec4");
        let fields = [register, keccak256(id), keccak256(nonce), payload];
        let signature = self.signer.sign_hash_sync(&typed(domain, &fields)).unwrap();
        let body = format!(
            r#"{{"automaton_id":"{id}","automaton_address":"{own}","creator_address":"{creator}","name":"Ada","bio":"","genesis_prompt_hash":"{hash}","nonce":"{nonce}","payload_hash":"{payload}","signature":"{signature}"}}"#
        );
        self.ask("POST /v1/automatons/register", note, Some(&body))
    }

    /// Buys five dollars of credits over x402: what is asked for is signed and sent once.
    pub(super) fn buy(&self) -> Value {
        let line = format!("GET /pay/5/{}", self.address());
        let json = ("Content-Type", "application/json");
        let asked = self.bare(&line, "what has to be paid", &[json], None);
        assert_eq!(asked.status, 402, "{asked:?}");
        let asked = asked.json();
        let entry = &asked["accepts"][0];
        let text = |name: &str| entry[name].as_str().unwrap();
        assert_eq!((text("scheme"), text("network")), ("exact", "base"), "{asked}");
        // It takes less than seven digits of version 1 for whole dollars.
        let value = text("maxAmountRequired");
        assert_eq!((value, &asked["x402Version"]), ("5000000", &1.into()), "{asked}");
        let (to, token): (Address, Address) =
            (text("payTo").parse().unwrap(), text("asset").parse().unwrap());
        let now = SystemClock.now().as_millis().unsigned_abs() / 1000;
        let deadline = entry["maxTimeoutSeconds"].as_u64().unwrap();
        let (after, before) = (now - 60, now + deadline);
        let nonce = keccak256(now.to_be_bytes());
        let number = |number: u64| B256::from(U256::from(number));
        let transfer = keccak256(
            "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,\
             uint256 validBefore,bytes32 nonce)",
        );
        let domain = keccak256(
            [
                keccak256(
                    "EIP712Domain(string name,string version,uint256 chainId,\
                     address verifyingContract)",
                ),
                keccak256("USD Coin"),
                keccak256("2"),
                number(8453),
                token.into_word(),
            ]
            .concat(),
        );
        let from = self.address();
        let times = [number(after), number(before), nonce];
        let fields = [transfer, from.into_word(), to.into_word(), number(5_000_000)];
        let digest = typed(domain, &[&fields[..], &times].concat());
        let signature = self.signer.sign_hash_sync(&digest).unwrap();
        let payment = format!(
            r#"{{"x402Version":1,"scheme":"exact","network":"eip155:8453","payload":{{"signature":"{signature}","authorization":{{"from":"{from}","to":"{to}","value":"{value}","validAfter":"{after}","validBefore":"{before}","nonce":"{nonce}"}}}}}}"#
        );
        let payment: Box<RawValue> = serde_json::from_str(&payment).unwrap();
        let payment = automaton_core::wire::x402::encode(&payment).unwrap();
        let headers = [json, ("X-Payment", &payment)];
        let bought = self.bare(&line, "with `X-Payment`", &headers, None);
        assert_eq!(bought.status, 200, "{bought:?}");
        bought.json()
    }
}

/// What is signed of typed data.
fn typed(domain: B256, fields: &[B256]) -> B256 {
    let hash = keccak256(fields.concat());
    keccak256([&[0x19, 0x01][..], domain.as_slice(), hash.as_slice()].concat())
}

/// A name of a path, or what stands for it where it differs from life to life.
fn template(name: &str) -> &str {
    let name = name.split('?').next().unwrap();
    match name {
        _ if name.starts_with("0x") && name.len() == 42 => "{address}",
        _ if name.len() == 26 && name.starts_with("01") => "{id}",
        _ => name,
    }
}
