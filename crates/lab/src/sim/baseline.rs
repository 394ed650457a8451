//! State at the beginning of every history, made once: three databases and an account with the
//! cloud, made as a real automaton makes them.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{Address, U256};
use automaton_client::CloudClient;
use automaton_core::faults::NoFaults;
use automaton_core::id::IdGenerator;
use automaton_core::money::MicroUsdc;
use automaton_core::secret::Secret;
use automaton_core::time::{Clock, Timestamp};
use automaton_net::{HttpClient, HttpClientConfig};
use automaton_signer::payload::Audience;
use automaton_signer::rehearsal::{Rehearsal, rehearse};
use automaton_signer::{SigningLimits, SigningLimitsChange, SigningPermits};
use automaton_store::Store;
use automaton_wallet::SignerClient;

use super::chain::SimChain;
use super::disk::{CrashSwitch, SimDisk};
use super::life::{KEY, SimCloud, SimProcess};
use super::time::{SimBootClock, SimWallClock, TrueTime};
use super::{CHAIN_ID, SimError, token};
use automaton_testkit::entropy::SeededEntropy;

/// Number of checks that a database was released, and the time between them.
const FOLD_LOOKS_MAX: u32 = 10_000;
const FOLD_LOOK: Duration = Duration::from_millis(1);
/// The key of whom credits are given to.
const OTHER_KEY: [u8; 32] = [9; 32];

/// The ceilings of every history: each of them is the lowest for some payments.
pub(super) const LIMITS: SigningLimits = SigningLimits {
    per_payment: MicroUsdc::new(25_000_000),
    per_hour: MicroUsdc::new(35_000_000),
    per_day: MicroUsdc::new(60_000_000),
    per_payee: MicroUsdc::new(55_000_000),
    lifetime: MicroUsdc::new(100_000_000_000),
    payments_max: 10_000,
};

/// The beginning of every history.
pub(super) struct SimBaseline {
    /// The agent's record.
    pub(super) state: Vec<u8>,
    /// The signer's ledger.
    pub(super) ledger: Vec<u8>,
    /// The cloud's database.
    pub(super) cloud: Vec<u8>,
    /// The key of the account with the cloud.
    pub(super) key: Secret,
    /// The wallet.
    pub(super) wallet: Address,
    /// Another one with an account, to whom credits are given.
    pub(super) other: Address,
}

impl SimBaseline {
    pub(super) async fn grow(dir: &Path) -> Result<Self, SimError> {
        let file = SimError::io("disk");
        let time = TrueTime::begin();
        let wall = SimWallClock::right(&time);
        let ids = IdGenerator::new(Arc::new(wall.clone()), Arc::new(SeededEntropy::new(0)));
        let state = dir.join("state.seed");
        let store = Store::open_here(&state, ids, Arc::new(NoFaults), Box::new(|| ()));
        let store = store.map_err(|error| SimError::setup("agent", error))?;
        store.close().await.map_err(|error| SimError::setup("agent", error))?;

        // An empty database is one that is still to be made.
        let disk = SimDisk::new(dir.to_owned(), "cloud.seed");
        let fuse = CrashSwitch::new(&disk, None);
        let path = disk.path();
        let body = SimProcess { disk, wall, fuse, seed: 0 };
        let chain = Arc::new(SimChain::new(&time, token(), (Address::ZERO, U256::ZERO)));
        let cloud = SimCloud::begin(&body, &chain).await?;
        let ledger = dir.join("ledger.seed");
        let (wallet, key) = sign_in(&cloud, &body.wall, &time, KEY, &ledger).await?;
        let others = (OTHER_KEY, dir.join("other.seed"));
        let (other, _) = sign_in(&cloud, &body.wall, &time, others.0, &others.1).await?;
        let SimCloud { cloud, backend: ground, .. } = cloud;
        drop((cloud, ground));
        for path in [&state, &ledger, &path] {
            folded(path).await?;
        }
        let read = |path: &Path| fs::read(path).map_err(&file);
        let state = read(&state)?;
        let ledger = read(&ledger)?;
        let cloud = read(&path)?;
        Ok(Self { state, ledger, cloud, key, wallet, other })
    }
}

/// Waits until a database has all its writes: whoever holds it is in a thread of its
/// own, and folds the log back when it ends.
async fn folded(path: &Path) -> Result<(), SimError> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    for _ in 0..FOLD_LOOKS_MAX {
        if !Path::new(&log).exists() {
            return Ok(());
        }
        // Of this runtime, whose time is paused, or of a thread of its own.
        tokio::task::yield_now().await;
        std::thread::sleep(FOLD_LOOK);
    }
    let error = io::Error::other(format!("{} is still held", path.display()));
    Err(SimError::io("disk")(error))
}

/// Signs in to a cloud with a new ledger; the wallet, and the key of its account.
async fn sign_in(
    cloud: &SimCloud,
    wall: &SimWallClock,
    time: &TrueTime,
    key: [u8; 32],
    ledger: &Path,
) -> Result<(Address, Secret), SimError> {
    fn setup_error<E: std::error::Error + Send + Sync + 'static>(error: E) -> SimError {
        SimError::setup("account", error)
    }
    let url = cloud.cloud.url();
    let allow_private_origins = vec![url.parse().map_err(setup_error)?];
    let config = HttpClientConfig { allow_private_origins, ..HttpClientConfig::default() };
    let client = CloudClient::new(HttpClient::new(config).map_err(setup_error)?, url)
        .map_err(setup_error)?;
    let audience = client.audience().map_err(setup_error)?;
    let audiences =
        vec![Audience { domain: audience.domain, uri: audience.uri, chain_id: CHAIN_ID }];
    let permits = SigningPermits { assets: vec![token()], audiences, ..SigningPermits::default() };
    let parts = automaton_signer::SignerDeps {
        clock: Arc::new(wall.clone()),
        boot: Arc::new(SimBootClock(time.clone())),
        faults: Arc::new(NoFaults),
    };
    let rehearsal = Rehearsal { key, ledger: ledger.to_owned(), permits, chain: None, plant: None };
    let signer = rehearse(rehearsal, parts).map_err(setup_error)?;
    let SigningLimits { per_payment, per_hour, per_day, per_payee, lifetime, payments_max } =
        LIMITS;
    let ceilings = SigningLimitsChange {
        per_payment: Some(per_payment),
        per_hour: Some(per_hour),
        per_day: Some(per_day),
        per_payee: Some(per_payee),
        lifetime: Some(lifetime),
        payments_max: Some(payments_max),
    };
    signer.change(ceilings).map_err(setup_error)?;
    let signer_client =
        SignerClient::open_here(signer.connect().map_err(setup_error)?).map_err(setup_error)?;
    let key = account(&client, &signer_client, wall.now(), CHAIN_ID).await?;
    Ok((signer_client.address(), key))
}

/// Opens an account with a cloud, by the way that a real automaton goes.
pub(crate) async fn account(
    client: &CloudClient,
    signer_client: &SignerClient,
    now: Timestamp,
    chain: u64,
) -> Result<Secret, SimError> {
    fn setup_error<E: std::error::Error + Send + Sync + 'static>(error: E) -> SimError {
        SimError::setup("account", error)
    }
    let nonce = client.nonce().await.map_err(setup_error)?;
    let message =
        client.sign_in(signer_client.address(), nonce, now, chain).map_err(setup_error)?;
    let signature = signer_client.sign_in(&message).await.map_err(setup_error)?;
    let token = client.verify(&message, &signature).await.map_err(setup_error)?;
    client.create_key(&token, "simulated").await.map_err(setup_error)
}
