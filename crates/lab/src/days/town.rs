//! Services of an automaton in one process: a dev chain, a cloud in front of a scripted model,
//! and a signer for each of their two wallets.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use alloy_primitives::{Address, U256};
use automaton_agent::treasury::PaymentContext;
use automaton_client::CloudClient;
use automaton_cloud::billing::chain::CALLED;
use automaton_cloud::db::Db;
use automaton_cloud::{CloudBackend, CloudConfig, CloudDeps, CloudServer};
use automaton_core::faults::NoFaults;
use automaton_core::money::MicroUsdc;
use automaton_core::secret::Secret;
use automaton_core::time::{Clock, Span};
use automaton_core::wire::x402::{ChainId, TokenDomain};
use automaton_devnet::{CHAIN_ID, Devnet};
use automaton_inference::providers::http::{ApiAuth, Endpoint, HttpProvider};
use automaton_inference::{Provider, catalogue};
use automaton_net::{HttpClient, HttpClientConfig};
use automaton_signer::SigningPermits;
use automaton_signer::payload::{Audience, Contract, GasRules};
use automaton_signer::rehearsal::{Rehearsal, rehearse};
use automaton_wallet::{ChainClient, SignerClient};
use tokio::task::JoinSet;

use super::{DaysError, Tariff};
use crate::sim::time::{SimBootClock, SimWallClock, TrueTime};
use crate::sim::{SimError, account};
use automaton_script::model::{MODEL, ScriptServer};
use automaton_script::story::Story;
use automaton_testkit::entropy::SeededEntropy;

/// The keys of the automaton and of the account that pays gas, which everybody knows.
const KEY: [u8; 32] = [7; 32];
const GAS_KEY: [u8; 32] = [5; 32];
/// Recipient of payments for credits.
const PAY_TO: Address = Address::repeat_byte(0xEE);
/// The most gas of one transaction, and what a unit of it may cost.
const GAS_MAX: u64 = 300_000;
const FEE_MAX: u64 = 100_000_000_000;
/// Wei for gas: 100 ether.
const WEI: u128 = 100_000_000_000_000_000_000;
/// The longest time without a block.
const BLOCK_EVERY: Span = Span::from_secs(60);
/// The window of the model, in tokens.
const WINDOW: u32 = 8192;

/// The town.
pub(super) struct DaysTown {
    pub(super) chain: Arc<Devnet>,
    pub(super) model: ScriptServer,
    pub(super) client: CloudClient,
    pub(super) key: Secret,
    pub(super) provider: Arc<dyn Provider>,
    pub(super) wallet: Address,
    pub(super) node: ChainClient,
    pub(super) token: Address,
    place: PathBuf,
    time: TrueTime,
    cloud: CloudServer,
    _blocks: JoinSet<()>,
}

/// Model and wallet of the automaton.
pub(super) struct TownServices {
    pub(super) provider: Arc<dyn Provider>,
    pub(super) payment_context: PaymentContext,
}

fn setup_error<E: std::error::Error + Send + Sync + 'static>(
    what: &'static str,
) -> impl Fn(E) -> DaysError {
    move |error| DaysError::setup(what, error)
}

impl DaysTown {
    /// Builds it in a folder.
    pub(super) async fn build(
        place: &Path,
        time: &TrueTime,
        wall: &SimWallClock,
        story: Story,
        tariff: Tariff,
    ) -> Result<(Self, TownServices), DaysError> {
        let clock: Arc<dyn Clock> = Arc::new(wall.clone());
        let (chain, blocks) = chain(place, Arc::clone(&clock)).await?;
        let model = ScriptServer::start(story).await.map_err(setup_error("model"))?;
        let gas = GasRules { limit_max: GAS_MAX, fee_max: FEE_MAX, per_day: 1 << 62 };
        let address = Devnet::usdc();
        let selectors = vec![CALLED];
        let contracts = vec![Contract { chain_id: CHAIN_ID, address, selectors }];
        let permits = SigningPermits { contracts, gas, ..SigningPermits::default() };
        let payer = signer(place, GAS_KEY, "gas.db", permits, time, wall).await?;
        let wei = U256::from(WEI);
        let funded = chain.fund(payer.address(), MicroUsdc::ZERO, wei).await;
        funded.map_err(setup_error("chain"))?;
        let config = config(&chain.url(), &model.base_url(), tariff);
        let config = CloudConfig::parse(&config).map_err(setup_error("cloud"))?;
        let db = Db::open_here(&place.join("cloud.db"), Arc::clone(&clock), Box::new(|| ()));
        let ground = CloudBackend {
            chain: CloudServer::settlement(&config, payer).map_err(setup_error("cloud"))?,
            db: db.map_err(setup_error("cloud"))?,
        };
        let deps = CloudDeps {
            clock: Arc::clone(&clock),
            entropy: Arc::new(SeededEntropy::new(2)),
            report: Arc::new(drop),
            faults: Arc::new(NoFaults),
            launcher: None,
        };
        let cloud =
            CloudServer::start_over(config, deps, ground).await.map_err(setup_error("cloud"))?;
        let (money, client) = open(place, time, wall, cloud.url().to_owned(), chain.url()).await?;
        let wallet = money.payment_context.signer.address();
        let node = money.payment_context.chain.clone();
        let token = money.payment_context.token.contract;
        let place = place.to_owned();
        let time = time.clone();
        let key = money.payment_context.key.clone().unwrap_or_else(|| Secret::new(String::new()));
        let provider = Arc::clone(&money.provider);
        let cloud = cloud;
        let _blocks = blocks;
        let town = Self {
            chain,
            model,
            client,
            key,
            provider,
            wallet,
            node,
            token,
            place,
            time,
            cloud,
            _blocks,
        };
        Ok((town, money))
    }
}

/// Somebody else with a wallet and an account.
pub struct TownNeighbour {
    /// The wallet.
    pub address: Address,
    /// The key to the account.
    pub(super) key: Secret,
}

impl DaysTown {
    pub(super) fn cloud(&self) -> &str {
        self.cloud.url()
    }

    pub(super) async fn neighbour(
        &self,
        key: [u8; 32],
        wall: &SimWallClock,
    ) -> Result<TownNeighbour, DaysError> {
        let audience = self.client.audience().map_err(setup_error("account"))?;
        let audiences =
            vec![Audience { domain: audience.domain, uri: audience.uri, chain_id: CHAIN_ID }];
        let permits = SigningPermits { audiences, ..SigningPermits::default() };
        let ledger = format!("neighbour-{}.db", key[0]);
        let signer_client = signer(&self.place, key, &ledger, permits, &self.time, wall).await?;
        let account = account(&self.client, &signer_client, wall.now(), CHAIN_ID).await?;
        Ok(TownNeighbour { address: signer_client.address(), key: account })
    }
}

/// A chain, with a block now and then though nobody pays, as the program's own.
async fn chain(
    place: &Path,
    clock: Arc<dyn Clock>,
) -> Result<(Arc<Devnet>, JoinSet<()>), DaysError> {
    let config = automaton_devnet::DevnetConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        data: Some(place.join("chain")),
        chain_id: CHAIN_ID,
        clock,
        faults: Arc::new(NoFaults),
    };
    std::fs::create_dir_all(place.join("chain")).map_err(SimError::io("chain"))?;
    let chain = Arc::new(Devnet::start(config).await.map_err(setup_error("chain"))?);
    let mut blocks = JoinSet::new();
    let mined = Arc::clone(&chain);
    blocks.spawn(async move {
        while mined.mine().await.is_ok() {
            tokio::time::sleep(BLOCK_EVERY.to_std()).await;
        }
    });
    Ok((chain, blocks))
}

async fn signer(
    place: &Path,
    key: [u8; 32],
    ledger: &str,
    permits: SigningPermits,
    time: &TrueTime,
    wall: &SimWallClock,
) -> Result<SignerClient, DaysError> {
    let parts = automaton_signer::SignerDeps {
        clock: Arc::new(wall.clone()),
        boot: Arc::new(SimBootClock(time.clone())),
        faults: Arc::new(NoFaults),
    };
    let ledger = place.join(ledger);
    let rehearsal = Rehearsal { key, ledger, permits, chain: None, plant: None };
    let signer = rehearse(rehearsal, parts).map_err(setup_error("signer"))?;
    SignerClient::open(signer.connect().map_err(setup_error("signer"))?)
        .await
        .map_err(setup_error("signer"))
}

/// The configuration of the cloud, as its operator would write it.
fn config(rpc: &str, model: &str, tariff: Tariff) -> String {
    let Tariff { input, output, answer_max } = tariff;
    serde_json::json!({
        "data": "unused",
        "chain": { "id": CHAIN_ID, "rpc_url": rpc, "asset": Devnet::usdc(), "pay_to": PAY_TO,
            "gas_signer": { "home": "none" }, "gas_per_day_wei": i64::MAX },
        "upstream": { "base_url": model },
        "models": [{ "id": MODEL, "input_microcents_per_million": input,
            "output_microcents_per_million": output, "context_window": WINDOW,
            "max_output_tokens": answer_max, "supports_tools": true }],
    })
    .to_string()
}

/// A wallet, an account with the cloud, and its model.
async fn open(
    place: &Path,
    time: &TrueTime,
    wall: &SimWallClock,
    cloud: String,
    rpc: String,
) -> Result<(TownServices, CloudClient), DaysError> {
    let token = TokenDomain::usdc(ChainId(CHAIN_ID), Devnet::usdc());
    let origin = |url: &str| url.parse().map_err(setup_error("client"));
    let allow_private_origins = vec![origin(&cloud)?, origin(&rpc)?];
    let entropy = Arc::new(SeededEntropy::new(3));
    let config = HttpClientConfig { allow_private_origins, entropy, ..HttpClientConfig::default() };
    let net = HttpClient::new(config).map_err(setup_error("client"))?;
    let client = CloudClient::new(net.clone(), &cloud).map_err(setup_error("client"))?;
    let audience = client.audience().map_err(setup_error("account"))?;
    let audiences =
        vec![Audience { domain: audience.domain, uri: audience.uri, chain_id: CHAIN_ID }];
    let permits =
        SigningPermits { assets: vec![token.clone()], audiences, ..SigningPermits::default() };
    let signer_client = signer(place, KEY, "ledger.db", permits, time, wall).await?;
    let key = account(&client, &signer_client, wall.now(), CHAIN_ID).await?;
    let offered = client.models(&key).await.map_err(setup_error("model"))?;
    let row = offered
        .data
        .first()
        .ok_or_else(|| DaysError::setup("model", std::io::Error::other("the cloud offers none")))?;
    let endpoint = Endpoint::new(&cloud, ApiAuth::Raw(key.clone()), catalogue::served(row));
    let clock = Arc::new(wall.clone());
    let provider = HttpProvider::new(net.clone(), endpoint, clock).map_err(setup_error("model"))?;
    let node = rpc.parse().map_err(|_| setup_error("chain")(std::io::Error::other("no URL")))?;
    let payment_context = PaymentContext {
        cloud: client.clone(),
        origin: cloud,
        key: Some(key),
        signer: signer_client,
        chain: ChainClient::connect(net.clone(), node, CHAIN_ID)
            .await
            .map_err(setup_error("chain"))?,
        token,
        net,
    };
    Ok((TownServices { provider: Arc::new(provider), payment_context }, client))
}
