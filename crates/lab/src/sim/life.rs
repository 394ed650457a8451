//! The three processes that are rehearsed, each as the real code in a life of its
//! own: what is in memory goes with the life, what is on the disk stays.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use alloy_primitives::Address;
use automaton_agent::NoEvents;
use automaton_agent::treasury::{PaymentContext, Treasury, TreasuryDeps};
use automaton_client::CloudClient;
use automaton_cloud::db::Db;
use automaton_cloud::{CloudBackend, CloudConfig, CloudDeps, CloudServer};
use automaton_core::id::IdGenerator;
use automaton_core::money::Microcents;
use automaton_core::secret::Secret;
use automaton_core::time::{Clock, Timestamp};
use automaton_core::wire::x402::{Authorization, TokenDomain};
use automaton_net::{HttpClient, HttpClientConfig};
use automaton_policy::PaymentLimits;
use automaton_signer::SigningPermits;
use automaton_signer::rehearsal::{PlantedDefect, Rehearsal, RehearsalSigner, rehearse};
use automaton_store::Store;
use automaton_wallet::{ChainClient, SignerClient};
use serde::Deserialize;

use super::chain::SimChain;
use super::disk::{CrashSwitch, SimDisk};
use super::network::{SimConnections, SimNetwork};
use super::settlement::SimSettlement;
use super::time::{SimBootClock, SimWallClock, TrueTime};
use super::{CHAIN_ID, SimError, token};
use automaton_testkit::entropy::SeededEntropy;

/// The key of every simulated wallet, which everybody may know.
pub(super) const KEY: [u8; 32] = [7; 32];
/// The cloud as every record names it.
const ORIGIN: &str = "http://cloud.simulated";

/// Environment of a process in each of its lives.
pub(super) struct SimProcess {
    pub(super) disk: Arc<SimDisk>,
    pub(super) wall: SimWallClock,
    pub(super) fuse: Arc<CrashSwitch>,
    /// Seed of this life.
    pub(super) seed: u64,
}

impl SimProcess {
    fn id_generator(&self) -> IdGenerator {
        IdGenerator::new(Arc::new(self.wall.clone()), Arc::new(SeededEntropy::new(self.seed)))
    }

    fn on_sync(&self) -> Box<dyn Fn() + Send> {
        let disk = Arc::clone(&self.disk);
        let fuse = Arc::clone(&self.fuse);
        Box::new(move || {
            if !fuse.is_dead() {
                disk.sync();
            }
        })
    }
}

/// A signature that left the signer, and when in true time.
#[derive(Debug, Clone)]
pub(super) struct SignatureRecord {
    pub(super) at: Timestamp,
    pub(super) intent: String,
    pub(super) authorization: Authorization,
}

/// Everything that ever left the signer, in order.
pub(super) type SignatureLog = Arc<Mutex<Vec<SignatureRecord>>>;

/// A signer.
pub(super) struct SimSigner {
    rehearsed: RehearsalSigner,
    pub(super) fuse: Arc<CrashSwitch>,
    time: TrueTime,
    log: SignatureLog,
}

impl SimSigner {
    pub(super) fn begin(
        body: &SimProcess,
        time: &TrueTime,
        log: &SignatureLog,
        chain: Option<Timestamp>,
        plant: Option<PlantedDefect>,
    ) -> Result<Self, SimError> {
        let permits = SigningPermits { assets: vec![token()], ..SigningPermits::default() };
        let rehearsal = Rehearsal { key: KEY, ledger: body.disk.path(), permits, chain, plant };
        let parts = automaton_signer::SignerDeps {
            clock: Arc::new(body.wall.clone()),
            boot: Arc::new(SimBootClock(time.clone())),
            faults: Arc::<CrashSwitch>::clone(&body.fuse),
        };
        let rehearsed =
            rehearse(rehearsal, parts).map_err(|error| SimError::setup("signer", error))?;
        let fuse = Arc::clone(&body.fuse);
        let time = time.clone();
        let log = Arc::clone(log);
        Ok(Self { rehearsed, fuse, time, log })
    }

    /// A socket to it on which somebody listens, who notes each signature that has
    /// left. Whoever asked hears it when the signer has nothing more to do for it: else two
    /// threads would race to what becomes of a signer that dies when it has answered.
    fn connect(&self) -> io::Result<UnixStream> {
        let signer = self.rehearsed.connect()?;
        let (ours, theirs) = UnixStream::pair()?;
        let time = self.time.clone();
        let log = Arc::clone(&self.log);
        let fuse = Arc::clone(&self.fuse);
        let listen = move || {
            let listened = listen(signer, ours, &|intent, authorization| {
                let left = SignatureRecord { at: time.now(), intent, authorization };
                log.lock().unwrap_or_else(PoisonError::into_inner).push(left);
                fuse.wait_for_signer();
            });
            // silent-ok: either end hung up, which ends the conversation.
            listened.ok();
        };
        thread::Builder::new().name("listener".to_owned()).spawn(listen)?;
        Ok(theirs)
    }
}

#[derive(Deserialize)]
struct PayRequestJson {
    pay: PayRequestBody,
}

#[derive(Deserialize)]
struct PayRequestBody {
    intent: String,
}

#[derive(Deserialize)]
struct PayReplyJson {
    paid: PayReplyBody,
}

#[derive(Deserialize)]
struct PayReplyBody {
    authorization: Authorization,
}

/// Passes lines on between a signer and its agent: the signer speaks first, then
/// each question has one answer.
fn listen(
    signer: UnixStream,
    agent: UnixStream,
    signed: &dyn Fn(String, Authorization),
) -> io::Result<()> {
    let mut to_signer = signer.try_clone()?;
    let mut to_agent = agent.try_clone()?;
    let mut signer = BufReader::new(signer);
    let mut agent = BufReader::new(agent);
    let mut asked = Vec::new();
    loop {
        let mut said = Vec::new();
        if signer.read_until(b'\n', &mut said)? == 0 {
            return Ok(());
        }
        // silent-ok: what is no payment is not noted.
        let question = serde_json::from_slice::<PayRequestJson>(&asked).ok();
        // silent-ok: as above.
        let answer = serde_json::from_slice::<PayReplyJson>(&said).ok();
        if let (Some(PayRequestJson { pay }), Some(PayReplyJson { paid })) = (question, answer) {
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
pub(super) struct SimCloud {
    pub(super) cloud: CloudServer,
    pub(super) backend: CloudBackend,
    pub(super) fuse: Arc<CrashSwitch>,
}

impl SimCloud {
    pub(super) async fn begin(body: &SimProcess, chain: &Arc<SimChain>) -> Result<Self, SimError> {
        let made = |error| SimError::setup("cloud", error);
        let clock: Arc<dyn Clock> = Arc::new(body.wall.clone());
        let db = Db::open_here(&body.disk.path(), Arc::clone(&clock), body.on_sync());
        let ground = CloudBackend {
            chain: Arc::new(SimSettlement {
                chain: Arc::clone(chain),
                fuse: Arc::clone(&body.fuse),
            }),
            db: db.map_err(|error| SimError::setup("cloud", error))?,
        };
        let deps = CloudDeps {
            clock,
            entropy: Arc::new(SeededEntropy::new(body.seed)),
            report: Arc::new(drop),
            faults: Arc::<CrashSwitch>::clone(&body.fuse),
            launcher: None,
        };
        let config = CloudConfig::parse(&config()).map_err(made)?;
        let cloud = CloudServer::start_over(config, deps, ground.clone()).await.map_err(made)?;
        Ok(Self { cloud, backend: ground, fuse: Arc::clone(&body.fuse) })
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
pub(super) struct SimAgent {
    pub(super) treasury: Arc<Treasury>,
    pub(super) store: Store,
    pub(super) fuse: Arc<CrashSwitch>,
    _wires: SimConnections,
}

impl SimAgent {
    pub(super) async fn begin(
        body: &SimProcess,
        net: &Arc<SimNetwork>,
        signer: &SimSigner,
        key: &Secret,
    ) -> Result<Self, SimError> {
        let made = SimError::io("agent");
        let wires = SimConnections::lay(net).await.map_err(&made)?;
        let url = format!("http://{}", wires.at);
        let socket = signer.connect().map_err(&made)?;
        let payment_context = payment_context(&url, socket, key, body.seed).await?;
        let faults = Arc::<CrashSwitch>::clone(&body.fuse);
        let path = body.disk.path();
        let ids = body.id_generator();
        let store = Store::open_here(&path, ids.clone(), faults.clone(), body.on_sync())
            .map_err(|error| SimError::setup("agent", error))?;
        let boot = Arc::new(SimBootClock(signer.time.clone()));
        let around = TreasuryDeps { ids, boot, faults, events: Arc::new(NoEvents) };
        // What there is may be given away to the last cent.
        let limits = PaymentLimits { reserve: Microcents::ZERO, ..PaymentLimits::default() };
        let treasury = Treasury::new(store.clone(), payment_context, around).with_limits(limits);
        let treasury = Arc::new(treasury.map_err(|error| SimError::setup("agent", error))?);
        Ok(Self { treasury, store, fuse: Arc::clone(&body.fuse), _wires: wires })
    }
}

async fn payment_context(
    url: &str,
    socket: UnixStream,
    key: &Secret,
    seed: u64,
) -> Result<PaymentContext, SimError> {
    fn setup_error<E: std::error::Error + Send + Sync + 'static>(error: E) -> SimError {
        SimError::setup("agent", error)
    }
    let allow_private_origins = vec![url.parse().map_err(setup_error)?];
    let entropy = Arc::new(SeededEntropy::new(seed));
    let config = HttpClientConfig { allow_private_origins, entropy, ..HttpClientConfig::default() };
    let client = HttpClient::new(config).map_err(setup_error)?;
    let node = url.parse().map_err(|_| SimError::setup("agent", io::Error::other("no URL")))?;
    Ok(PaymentContext {
        cloud: CloudClient::new(client.clone(), url).map_err(setup_error)?,
        origin: ORIGIN.to_owned(),
        key: Some(key.clone()),
        signer: SignerClient::open_here(socket).map_err(setup_error)?,
        chain: ChainClient::connect(client.clone(), node, CHAIN_ID).await.map_err(setup_error)?,
        token: token(),
        net: client,
    })
}
