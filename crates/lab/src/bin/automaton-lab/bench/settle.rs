//! Settlements: payments that are ready, sent to a cloud side by side.
//!
//! Chain and cloud are the real ones, on the disk, in this process; the account that
//! pays gas has its signer in another. What is measured is from the payment's arrival
//! to the answer that it is settled.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use alloy_primitives::{Address, U256, address};
use automaton::cmd::CommandContext;
use automaton::error::CliError;
use automaton::home::{make_directory, write_atomically};
use automaton::http::client;
use automaton::process;
use automaton::role::gas;
use automaton_client::{CloudClient, PurchaseOutcome};
use automaton_cloud::{CloudConfig, CloudDeps, CloudServer};
use automaton_core::entropy::SystemEntropy;
use automaton_core::faults::NoFaults;
use automaton_core::money::MicroUsdc;
use automaton_core::time::{Clock, Span, SystemClock, Timestamp};
use automaton_core::wire::cloud::PurchaseStatus;
use automaton_core::wire::x402::{ChainId, EXACT, ExactPayload, X_PAYMENT, encode, v1};
use automaton_devnet::baseline::Replay;
use automaton_devnet::{CHAIN_ID, Devnet};
use automaton_signer::SignerHome;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{BenchRate, LASTS, NO_CEILING, forget_peak, own_pid};
use crate::drill::drill_site::{DrillSite, PAYEE, ask};
use crate::product;

/// Payments that are ready at the beginning, and how many are on their way at once: fewer
/// than a cloud takes.
const READY: usize = 800;
const AT_ONCE: usize = 48;
/// Speed of the chain's clock. Each block is one second after the one before, and a payment is
/// valid from ten minutes before its signature to five after, so all payments have their turn,
/// each in a block of its own.
const SLOW: Span = Span::from_secs(540);
/// The tier that is bought, and what it costs.
const USD: u32 = 5;
const PRICE: MicroUsdc = MicroUsdc::new(5_000_000);
/// The account that pays gas, whose key everybody knows, and the wei that it gets.
pub(super) const GAS: Address = address!("f39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
const GAS_TEXT: &str = include_str!("../../../../../automaton/assets/gas.json");
const GAS_PASSPHRASE: &str = "dev";
pub(super) const GAS_WEI: u64 = u64::MAX;

/// The one model of a cloud, and how many calls of it are taken at once.
pub(super) const MODEL: &str = "a-model";
const CALLS_MAX: u32 = 1000;

/// The chain's clock.
struct SlowClock;

impl Clock for SlowClock {
    fn now(&self) -> Timestamp {
        SystemClock.now().before(SLOW)
    }
}

/// Payments, each with whom it buys credits for.
type Queue = Arc<Mutex<VecDeque<(Address, String)>>>;

/// Measures settlements, and then their transactions alone.
///
/// # Errors
/// When chain, cloud or signer cannot be started, or a payment is not settled.
pub(super) fn measure(context: &CommandContext) -> Result<(BenchRate, BenchRate), CliError> {
    let payments = sign(context)?;
    let payer = payments.first().map_or(Address::ZERO, |payment| payment.authorization.from);
    let queue = queue(payments)?;
    let scratch = context.scratch()?;
    let home = scratch.home();
    forget_peak();
    let log = home.join("chain");
    let settlements = process::runtime()?.block_on(async {
        let chain = automaton_devnet::DevnetConfig {
            listen: ([127, 0, 0, 1], 0).into(),
            data: Some(log.clone()),
            chain_id: CHAIN_ID,
            clock: Arc::new(SlowClock),
            faults: Arc::new(NoFaults),
        };
        let chain = Devnet::start(chain).await?;
        chain.fund(GAS, MicroUsdc::ZERO, U256::from(GAS_WEI)).await?;
        chain.fund(payer, NO_CEILING, U256::ZERO).await?;
        let config = config(&home, &chain.url(), "http://127.0.0.1:9")?;
        let signer = gas::start(&product()?, &config)?;
        let signer_pid = signer.child.pid();
        let (client, _ended) = gas::join(signer).await?;
        let deps = CloudDeps {
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            report: Arc::new(drop),
            faults: Arc::new(NoFaults),
            launcher: None,
        };
        let cloud = CloudServer::start(config, deps, client).await?;
        let began = Instant::now();
        let done = settle(&cloud, &queue).await?;
        let rate = BenchRate::new(done, began, &[own_pid(), signer_pid]);
        drop(cloud);
        chain.stop().await;
        Ok::<_, CliError>(rate)
    })?;
    Ok((settlements, replay(&log)?))
}

/// The transactions of a chain's log with nothing else: their senders recovered, the
/// transfer run with the payer's signature, and nothing stored.
fn replay(log: &Path) -> Result<BenchRate, CliError> {
    forget_peak();
    let mut replay = Replay::open(log)?;
    let failed = |error| CliError::internal("a settlement cannot be done again", &error);
    let began = Instant::now();
    let mut done = 0;
    while replay.step().map_err(failed)? {
        done += 1;
    }
    Ok(BenchRate::new(done, began, &[own_pid()]))
}

/// Payments that only have to be sent.
fn sign(context: &CommandContext) -> Result<Vec<ExactPayload>, CliError> {
    let yard = DrillSite::new(context, NO_CEILING)?;
    let mut running = yard.start(1, None)?;
    let mut signed = Vec::new();
    for client in &mut running.clients {
        for _ in 0..READY {
            signed.extend(ask(client, Devnet::usdc(), PRICE)?);
        }
    }
    running.end()?;
    Ok(signed)
}

/// The same as clients send them, each for another account: two purchases of one kind
/// at once would be taken for one.
fn queue(payments: Vec<ExactPayload>) -> Result<Queue, CliError> {
    let header = |(number, payload): (usize, ExactPayload)| {
        let to = Address::left_padding_from(&(number + 1).to_be_bytes());
        let network = ChainId(CHAIN_ID).to_string();
        let payment =
            v1::PaymentPayloadV1 { version: 1, scheme: EXACT.to_owned(), network, payload };
        Ok((to, encode(&payment)?))
    };
    let queue: Result<_, serde_json::Error> =
        payments.into_iter().enumerate().map(header).collect();
    let queue = queue.map_err(|error| CliError::internal("cannot write a payment", &error))?;
    Ok(Arc::new(Mutex::new(queue)))
}

/// The configuration of a cloud before a model at this place.
pub(super) fn config(home: &Path, rpc: &str, model: &str) -> Result<CloudConfig, CliError> {
    let failed = |error| CliError::internal("cannot make the gas account of a bench", &error);
    make_directory(home).map_err(failed)?;
    let gas = home.join("gas");
    let passphrase = gas.join("passphrase");
    write_atomically(&SignerHome::make(&gas)?.keystore(), GAS_TEXT.as_bytes(), 0o600)?;
    write_atomically(&passphrase, GAS_PASSPHRASE.as_bytes(), 0o600)?;
    let config = serde_json::json!({
        "data": home.join("cloud"),
        "chain": { "id": CHAIN_ID, "rpc_url": rpc, "asset": Devnet::usdc(), "pay_to": PAYEE,
            "gas_per_day_wei": i64::MAX,
            "gas_signer": { "home": gas, "passphrase_file": passphrase } },
        "upstream": { "base_url": format!("{model}/v1") },
        "call_limits": { "at_once": CALLS_MAX, "at_once_per_key": CALLS_MAX },
        "models": [{ "id": MODEL, "input_microcents_per_million": 100_000_000,
            "output_microcents_per_million": 100_000_000, "context_window": 8192,
            "max_output_tokens": 1024 }],
    });
    Ok(CloudConfig::parse(&config.to_string())?)
}

/// Sends payments for a while, and gives how many were settled.
async fn settle(cloud: &CloudServer, queue: &Queue) -> Result<u64, CliError> {
    let client = CloudClient::new(client([cloud.url()])?, cloud.url())?;
    let until = Instant::now() + LASTS;
    let mut buyers = JoinSet::new();
    for _ in 0..AT_ONCE {
        let client = client.clone();
        let queue = Arc::clone(queue);
        buyers.spawn(async move {
            let mut settled = 0_u64;
            while Instant::now() < until {
                let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                let Some((to, payment)) = next else { break };
                match client.pay_for_credits(USD, to, X_PAYMENT, payment).await? {
                    PurchaseOutcome::Taken(reply) if reply.status == PurchaseStatus::Settled => {
                        settled += 1
                    }
                    PurchaseOutcome::Taken(_) => {}
                    PurchaseOutcome::Refused(said) => {
                        let what = format!("the cloud of a bench refuses a payment: {said}");
                        return Err(CliError::user(what));
                    }
                }
            }
            Ok(settled)
        });
    }
    let mut settled = 0;
    while let Some(buyer) = buyers.join_next().await {
        let cut = |error| CliError::internal("a buyer of a bench was cut off", &error);
        settled += buyer.map_err(cut)??;
    }
    Ok(settled)
}
