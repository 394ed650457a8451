//! The network between an agent, its cloud and its chain, with its faults.
//!
//! Every request comes through here as bytes of HTTP/1.1, one a connection: to the
//! cloud it is carried on, for the chain it is answered from the model. A request
//! or its reply may get lost, come twice or late, and a chain may be asked through
//! a node that is some blocks behind. Nothing is ever made up.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use alloy_primitives::{Address, B256, U256, hex};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::chain::SimChain;
use super::rng::SimRng;

/// The longest message that is carried, in bytes.
const BYTES_MAX: u64 = 256 * 1024;
/// Longer than anybody waits.
const LATE: Duration = Duration::from_secs(120);
/// Payments that are kept to be sent once more, at most.
const KEPT_MAX: usize = 16;
/// Most blocks that a node lags behind.
const BEHIND_MAX: u32 = 3;

/// The net: it outlives all processes.
pub(super) struct SimNetwork {
    pub(super) chain: Arc<SimChain>,
    dice: SimRng,
    state: Mutex<SimWireState>,
}

#[derive(Default)]
struct SimWireState {
    cloud: Option<SocketAddr>,
    /// Faulty requests among a hundred.
    bad: u32,
    payments: Vec<Vec<u8>>,
    calls: u64,
}

/// Fate of a request.
#[derive(Debug, Clone, Copy)]
enum DeliveryFault {
    Fine,
    RequestLost,
    ReplyLost,
    ReplyLate,
    Twice,
    Busy,
}

impl SimNetwork {
    pub(super) fn new(chain: Arc<SimChain>, seed: u64) -> Self {
        Self { chain, dice: SimRng::new(seed), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, SimWireState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the address of the cloud, if it runs.
    pub(super) fn route(&self, cloud: Option<SocketAddr>) {
        self.state().cloud = cloud;
    }

    /// Lets something go wrong with so many of a hundred requests.
    pub(super) fn set_failure_rate(&self, bad: u32) {
        self.state().bad = bad;
    }

    /// Returns the number of requests.
    pub(super) fn calls(&self) -> u64 {
        self.state().calls
    }

    fn delivery_fault(&self) -> DeliveryFault {
        let bad = {
            let mut state = self.state();
            state.calls += 1;
            state.bad
        };
        if !self.dice.chance(bad) {
            return DeliveryFault::Fine;
        }
        use DeliveryFault::{Busy, ReplyLate, ReplyLost, RequestLost, Twice};
        self.dice.pick([RequestLost, ReplyLost, ReplyLost, ReplyLate, Twice, Busy])
    }

    /// Sends a payment once more that went over the wires before; nobody waits for
    /// the answer.
    pub(super) async fn replay(&self) {
        let old = {
            let state = self.state();
            let count = u32::try_from(state.payments.len()).unwrap_or(0);
            let place = usize::try_from(self.dice.below(count)).unwrap_or(0);
            state.payments.get(place).cloned()
        };
        if let Some(old) = old {
            self.carry(&old).await;
        }
    }

    /// The answer to a request, or nothing.
    async fn answer(&self, request: &[u8]) -> Option<Vec<u8>> {
        let fault = self.delivery_fault();
        match fault {
            DeliveryFault::RequestLost => return None,
            DeliveryFault::Busy => {
                return Some(reply(503, &json!({ "error": "busy", "code": "BUSY" })));
            }
            DeliveryFault::Fine
            | DeliveryFault::ReplyLost
            | DeliveryFault::ReplyLate
            | DeliveryFault::Twice => {}
        }
        let answer = match request.strip_prefix(b"POST / ") {
            Some(_) => Some(reply(200, &self.node(request))),
            None => {
                self.record(request);
                if matches!(fault, DeliveryFault::Twice) {
                    tokio::join!(self.carry(request), self.carry(request)).1
                } else {
                    self.carry(request).await
                }
            }
        };
        match fault {
            DeliveryFault::ReplyLost => None,
            DeliveryFault::ReplyLate => {
                tokio::time::sleep(LATE).await;
                None
            }
            DeliveryFault::Fine
            | DeliveryFault::Twice
            | DeliveryFault::RequestLost
            | DeliveryFault::Busy => answer,
        }
    }

    fn record(&self, request: &[u8]) {
        let head = request.to_ascii_lowercase();
        let pays = |name: &[u8]| head.windows(name.len()).any(|bytes| bytes == name);
        if pays(b"x-payment: ") || pays(b"payment-signature: ") {
            let mut state = self.state();
            if state.payments.len() < KEPT_MAX {
                state.payments.push(request.to_owned());
            }
        }
    }

    /// Carries a request to the cloud; nothing when that is not there, or dies.
    async fn carry(&self, request: &[u8]) -> Option<Vec<u8>> {
        let cloud = self.state().cloud?;
        let end = request.windows(2).position(|bytes| bytes == b"\r\n")? + 2;
        let carried = async {
            let mut stream = TcpStream::connect(cloud).await?;
            stream.write_all(&request[..end]).await?;
            // So that the end of the answer is the end of the connection.
            stream.write_all(b"connection: close\r\n").await?;
            stream.write_all(&request[end..]).await?;
            let mut answer = Vec::new();
            stream.take(BYTES_MAX).read_to_end(&mut answer).await?;
            Ok::<_, io::Error>(answer)
        };
        // silent-ok: a connection that fails is an answer that is lost.
        let answer = carried.await.ok()?;
        // What a dead process says is never heard.
        (self.state().cloud == Some(cloud)).then_some(answer)
    }

    /// Returns the answer of a node of the chain.
    fn node(&self, request: &[u8]) -> Value {
        let bad = self.state().bad;
        let behind = if self.dice.chance(bad) { self.dice.below(BEHIND_MAX + 1) } else { 0 };
        let body = request.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        let question = body.and_then(|end| {
            // silent-ok: what is no question gets no result.
            serde_json::from_slice::<SimRpcRequest>(&request[end + 4..]).ok()
        });
        let result = question.and_then(|question| self.result(&question, behind));
        match result {
            Some(result) => json!({ "jsonrpc": "2.0", "id": 1, "result": result }),
            None => {
                let error = json!({ "code": -32602, "message": "not known here" });
                json!({ "jsonrpc": "2.0", "id": 1, "error": error })
            }
        }
    }

    fn result(&self, question: &SimRpcRequest, behind: u32) -> Option<Value> {
        let SimRpcRequest { method, params } = question;
        let newest = self.chain.head(usize::try_from(behind).unwrap_or(0))?;
        // A node that does not have a block, or not any more, says so.
        let block = |tag: Option<&Value>| {
            let hash = tag.and_then(|tag| tag.get("blockHash")).and_then(Value::as_str);
            let digits = tag.and_then(Value::as_str).and_then(|text| text.strip_prefix("0x"));
            let found = match (hash, digits) {
                (Some(hash), _) => {
                    self.chain.find(|head| head.hash().to_string().eq_ignore_ascii_case(hash))
                }
                (None, Some(digits)) => {
                    // silent-ok: what is no number is no block's.
                    let number = u64::from_str_radix(digits, 16).ok()?;
                    self.chain.find(|head| head.number == number)
                }
                (None, None) => Some(newest),
            };
            found.filter(|head| head.number <= newest.number)
        };
        match method.as_str() {
            "eth_chainId" => Some(json!(format!("{:#x}", super::CHAIN_ID))),
            "eth_blockNumber" => Some(json!(format!("{:#x}", newest.number))),
            "eth_getBlockByNumber" => {
                let head = block(params.first())?;
                let [number, at] = [head.number, head.at_s].map(|value| format!("{value:#x}"));
                Some(json!({ "number": number, "timestamp": at, "hash": head.hash() }))
            }
            "eth_call" => {
                let number = block(params.get(1))?.number;
                // silent-ok: what is no data calls nothing.
                let data = hex::decode(params.first()?.get("data")?.as_str()?).ok()?;
                let word = |place: usize| data.get(4 + 32 * place..36 + 32 * place);
                let owner = Address::from_word(B256::from_slice(word(0)?));
                let word = match word(1) {
                    None => self.chain.balance(owner, number),
                    Some(nonce) => {
                        let used = self.chain.is_used(owner, B256::from_slice(nonce), number);
                        U256::from(u8::from(used))
                    }
                };
                Some(json!(hex::encode_prefixed(word.to_be_bytes::<32>())))
            }
            _ => None,
        }
    }
}

#[derive(Deserialize)]
struct SimRpcRequest {
    method: String,
    #[serde(default)]
    params: Vec<Value>,
}

fn reply(status: u16, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let length = body.len();
    format!(
        "HTTP/1.1 {status} .\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// The wires of one agent. They are cut when this is dropped.
pub(super) struct SimConnections {
    pub(super) at: SocketAddr,
    _tasks: JoinSet<()>,
}

impl SimConnections {
    pub(super) async fn lay(net: &Arc<SimNetwork>) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let at = listener.local_addr()?;
        let net = Arc::clone(net);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                while open.try_join_next().is_some() {}
                let net = Arc::clone(&net);
                open.spawn(async move { converse(&net, stream).await });
            }
        });
        Ok(Self { at, _tasks: tasks })
    }
}

/// One request and its answer.
async fn converse(net: &SimNetwork, mut stream: TcpStream) {
    if let Some(request) = read(&mut stream).await
        && let Some(answer) = net.answer(&request).await
    {
        // silent-ok: who has hung up needs no answer.
        stream.write_all(&answer).await.ok();
    }
}

/// Reads a request with its body; nothing when it breaks off.
async fn read(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut request = Vec::new();
    let mut stream = stream.take(BYTES_MAX);
    loop {
        let end = request.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            // silent-ok: a length that is no number is none.
            let length = length.and_then(|length| length.trim().parse::<usize>().ok());
            if request.len() >= end + 4 + length.unwrap_or(0) {
                return Some(request);
            }
        }
        // silent-ok: a connection that fails is a request that is lost.
        if stream.read_buf(&mut request).await.ok()? == 0 {
            return None;
        }
    }
}
