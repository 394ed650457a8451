//! The three processes that are rehearsed, each as the real code in a life of its
//! own: what is in memory goes with the life, what is on the disk stays.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use alloy_primitives::Address;
use automaton_agent::NoEvents;
use automaton_agent::treasury::{Surroundings, Till, Treasury};
use automaton_client::Cloud as CloudClient;
use automaton_cloud::db::sqlite::Sqlite;
use automaton_cloud::{Cloud, Config, Deps, Ground};
use automaton_core::id::Mint;
use automaton_core::money::Microcents;
use automaton_core::secret::Secret;
use automaton_core::time::{Clock, Timestamp};
use automaton_core::wire::x402::{Authorization, TokenDomain};
use automaton_net::{Client, ClientConfig};
use automaton_policy::SpendLimits;
use automaton_signer::Permits;
use automaton_signer::rehearsal::{Plant, Rehearsal, Rehearsed, rehearse};
use automaton_store::Store;
use automaton_wallet::{Chain as ChainClient, Purse};
use serde::Deserialize;

use super::chain::Chain;
use super::disk::{Disk, Fuse};
use super::gate::Gate;
use super::time::{Boot, TrueTime, Wall};
use super::wires::{Net, Wires};
use super::{CHAIN_ID, SimError, token};
use automaton_testkit::entropy::SeededEntropy;

/// The key of every simulated wallet, which everybody may know.
pub(super) const KEY: [u8; 32] = [7; 32];
/// The cloud as every record names it.
const ORIGIN: &str = "http://cloud.simulated";

/// What a process is made with in each of its lives.
pub(super) struct Body {
    pub(super) disk: Arc<Disk>,
    pub(super) wall: Wall,
    pub(super) fuse: Arc<Fuse>,
    /// Where its chance comes from in this life.
    pub(super) seed: u64,
}

impl Body {
    fn mint(&self) -> Mint {
        Mint::new(Arc::new(self.wall.clone()), Arc::new(SeededEntropy::new(self.seed)))
    }

    fn on_sync(&self) -> Box<dyn Fn() + Send> {
        let (disk, fuse) = (Arc::clone(&self.disk), Arc::clone(&self.fuse));
        Box::new(move || {
            if !fuse.is_dead() {
                disk.sync();
            }
        })
    }
}

/// A signature that left the signer, and when in true time.
#[derive(Debug, Clone)]
pub(super) struct Left {
    pub(super) at: Timestamp,
    pub(super) intent: String,
    pub(super) authorization: Authorization,
}

/// Everything that ever left the signer, in order.
pub(super) type Log = Arc<Mutex<Vec<Left>>>;

/// A signer.
pub(super) struct SignerLife {
    rehearsed: Rehearsed,
    pub(super) fuse: Arc<Fuse>,
    time: TrueTime,
    log: Log,
}

impl SignerLife {
    pub(super) fn begin(
        body: &Body,
        (time, log): (&TrueTime, &Log),
        chain: Option<Timestamp>,
        plant: Option<Plant>,
    ) -> Result<Self, SimError> {
        let permits = Permits { assets: vec![token()], ..Permits::default() };
        let rehearsal = Rehearsal { key: KEY, ledger: body.disk.path(), permits, chain, plant };
        let parts = automaton_signer::Parts {
            clock: Arc::new(body.wall.clone()),
            boot: Arc::new(Boot(time.clone())),
            faults: Arc::<Fuse>::clone(&body.fuse),
        };
        let rehearsed =
            rehearse(rehearsal, parts).map_err(|error| SimError::made("signer", error))?;
        let (fuse, time, log) = (Arc::clone(&body.fuse), time.clone(), Arc::clone(log));
        Ok(Self { rehearsed, fuse, time, log })
    }

    /// A socket to it on which somebody listens, who notes each signature that has
    /// left.
    fn connect(&self) -> io::Result<UnixStream> {
        let signer = self.rehearsed.connect()?;
        let (ours, theirs) = UnixStream::pair()?;
        let (time, log) = (self.time.clone(), Arc::clone(&self.log));
        let listen = move || {
            let listened = listen(signer, ours, &|intent, authorization| {
                let left = Left { at: time.now(), intent, authorization };
                log.lock().unwrap_or_else(PoisonError::into_inner).push(left);
            });
            // silent-ok: either end hung up, which ends the conversation.
            listened.ok();
        };
        thread::Builder::new().name("listener".to_owned()).spawn(listen)?;
        Ok(theirs)
    }
}

#[derive(Deserialize)]
struct Asked {
    pay: AskedPay,
}

#[derive(Deserialize)]
struct AskedPay {
    intent: String,
}

#[derive(Deserialize)]
struct Said {
    paid: SaidPaid,
}

#[derive(Deserialize)]
struct SaidPaid {
    authorization: Authorization,
}

/// Passes lines on between a signer and its agent: the signer speaks first, then
/// each question has one answer.
fn listen(
    signer: UnixStream,
    agent: UnixStream,
    signed: &dyn Fn(String, Authorization),
) -> io::Result<()> {
    let (mut to_signer, mut to_agent) = (signer.try_clone()?, agent.try_clone()?);
    let (mut signer, mut agent) = (BufReader::new(signer), BufReader::new(agent));
    let mut asked = Vec::new();
    loop {
        let mut said = Vec::new();
        if signer.read_until(b'\n', &mut said)? == 0 {
            return Ok(());
        }
        // silent-ok: what is no payment is not noted.
        let question = serde_json::from_slice::<Asked>(&asked).ok();
        // silent-ok: as above.
        let answer = serde_json::from_slice::<Said>(&said).ok();
        if let (Some(Asked { pay }), Some(Said { paid })) = (question, answer) {
            signed(pay.intent, paid.authorization);
        }
        to_agent.write_all(&said)?;
        asked.clear();
        if agent.read_until(b'\n', &mut asked)? == 0 {
            return Ok(());
        }
        to_signer.write_all(&asked)?;
    }
}

/// A cloud.
pub(super) struct CloudLife {
    pub(super) cloud: Cloud,
    pub(super) ground: Ground,
    pub(super) fuse: Arc<Fuse>,
}

impl CloudLife {
    pub(super) async fn begin(body: &Body, chain: &Arc<Chain>) -> Result<Self, SimError> {
        let made = |error| SimError::made("cloud", error);
        let clock: Arc<dyn Clock> = Arc::new(body.wall.clone());
        let db = Sqlite::open_here(&body.disk.path(), Arc::clone(&clock), body.on_sync());
        let ground = Ground {
            chain: Arc::new(Gate { chain: Arc::clone(chain), fuse: Arc::clone(&body.fuse) }),
            db: Arc::new(db.map_err(|error| SimError::made("cloud", error))?),
        };
        let deps = Deps {
            clock,
            entropy: Arc::new(SeededEntropy::new(body.seed)),
            report: Arc::new(drop),
            faults: Arc::<Fuse>::clone(&body.fuse),
            launcher: None,
        };
        let config = Config::parse(&config()).map_err(made)?;
        let cloud = Cloud::start_over(config, deps, ground.clone()).await.map_err(made)?;
        Ok(Self { cloud, ground, fuse: Arc::clone(&body.fuse) })
    }
}

/// The configuration of the cloud. It thinks with nobody.
fn config() -> String {
    let TokenDomain { contract, .. } = token();
    let pay_to = Address::repeat_byte(0xEE);
    serde_json::json!({
        "data": "unused",
        "chain": { "id": CHAIN_ID, "rpc_url": "http://127.0.0.1:9", "asset": contract,
            "pay_to": pay_to, "gas_signer": { "home": "none" } },
        "upstream": { "base_url": "http://127.0.0.1:9/v1" },
        "models": [{ "id": "none", "input_microcents_per_million": 1,
            "output_microcents_per_million": 1, "context_window": 1, "max_output_tokens": 1 }],
    })
    .to_string()
}

/// An agent, as far as money goes.
pub(super) struct AgentLife {
    pub(super) treasury: Arc<Treasury>,
    pub(super) store: Store,
    pub(super) fuse: Arc<Fuse>,
    _wires: Wires,
}

impl AgentLife {
    pub(super) async fn begin(
        body: &Body,
        net: &Arc<Net>,
        signer: &SignerLife,
        key: &Secret,
    ) -> Result<Self, SimError> {
        let made = SimError::io("agent");
        let wires = Wires::lay(net).await.map_err(&made)?;
        let url = format!("http://{}", wires.at);
        let socket = signer.connect().map_err(&made)?;
        let till = till(&url, socket, (key, body.seed)).await?;
        let faults = Arc::<Fuse>::clone(&body.fuse);
        let (path, mint) = (body.disk.path(), body.mint());
        let store = Store::open_here(&path, mint.clone(), faults.clone(), body.on_sync())
            .map_err(|error| SimError::made("agent", error))?;
        let boot = Arc::new(Boot(signer.time.clone()));
        let around = Surroundings { mint, boot, faults, events: Arc::new(NoEvents) };
        // What there is may be given away to the last cent.
        let limits = SpendLimits { reserve: Microcents::ZERO, ..SpendLimits::default() };
        let treasury = Treasury::new(store.clone(), till, around).within(limits);
        let treasury = Arc::new(treasury.map_err(|error| SimError::made("agent", error))?);
        Ok(Self { treasury, store, fuse: Arc::clone(&body.fuse), _wires: wires })
    }
}

async fn till(
    url: &str,
    socket: UnixStream,
    (key, seed): (&Secret, u64),
) -> Result<Till, SimError> {
    fn made<E: std::error::Error + Send + Sync + 'static>(error: E) -> SimError {
        SimError::made("agent", error)
    }
    let allow_private_origins = vec![url.parse().map_err(made)?];
    let entropy = Arc::new(SeededEntropy::new(seed));
    let config = ClientConfig { allow_private_origins, entropy, ..ClientConfig::default() };
    let client = Client::new(config).map_err(made)?;
    let node = url.parse().map_err(|_| SimError::made("agent", io::Error::other("no URL")))?;
    Ok(Till {
        cloud: CloudClient::new(client.clone(), url).map_err(made)?,
        origin: ORIGIN.to_owned(),
        key: Some(key.clone()),
        purse: Purse::open(socket).await.map_err(made)?,
        chain: ChainClient::connect(client.clone(), node, CHAIN_ID).await.map_err(made)?,
        token: token(),
        net: client,
    })
}
