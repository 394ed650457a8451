//! The process of a dev chain or of a cloud that an automaton lives from.
//!
//! It is this binary under another name, serves on loopback, says where, and ends
//! with its supervisor. It knows no automaton and no home; nothing here may give
//! it one.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{Address, U256};
use automaton_cloud::{CloudConfig, CloudDeps, CloudServer};
use automaton_core::entropy::SystemEntropy;
use automaton_core::error::ErrorClass;
use automaton_core::event::{Event, Service, StampedEvent};
use automaton_core::faults::Faults;
use automaton_core::money::MicroUsdc;
use automaton_core::time::{Clock, SystemClock};
use automaton_devnet::{CHAIN_ID, Devnet};
use automaton_sandbox::process::{self, Signals};
use automaton_sandbox::{Launcher, harden};
use automaton_wallet::ChainClient;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::timeout;

use super::agent::armed;
use super::gas;
use super::launch_config::{self, ChildConfig, ChildMessage, LIFELINE};
use super::signer::RunningSigner;
use crate::descriptor::{StopSignals, SupervisorLink};
use crate::error::CliError;
use crate::home::write_atomically;
use crate::http::{client, url};
use crate::process::runtime;

/// Name of the chain's process.
pub const CHAIN_ARG0: &str = "automaton-chain";
/// Name of the cloud's process.
pub const CLOUD_ARG0: &str = "automaton-cloud";

/// Time that it may take to stop, and the part of it for running requests.
const STOP_WITHIN: Duration = Duration::from_secs(7);
const REQUESTS_WITHIN: Duration = Duration::from_secs(5);

/// The longest time without a block.
const BLOCK_EVERY: Duration = Duration::from_secs(60);

/// Wei that an account gets to pay gas with: 100 ether.
const GAS_WEI: u64 = 100;
const WEI_PER_ETHER: u64 = 1_000_000_000_000_000_000;

/// Configuration of a service.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ServiceLaunchConfig {
    /// The service.
    pub(crate) serves: ServiceBackend,
    /// Address to listen at; port 0 for any.
    pub(crate) listen: SocketAddr,
    /// Our own executable, which is the sandbox's helper too.
    pub(crate) executable: PathBuf,
    /// A crash to rehearse, and the home made for it.
    pub(crate) fault: Option<(String, PathBuf)>,
}

/// Kind of a service.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum ServiceBackend {
    /// A dev chain.
    Chain(ChainLaunchConfig),
    /// A cloud: the text of its configuration.
    Cloud(String),
}

/// Configuration of a dev chain.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ChainLaunchConfig {
    /// The folder that keeps it.
    pub(crate) data: PathBuf,
    /// The account that gets wei to pay gas with.
    pub(crate) gas: Address,
    /// The wallet that is given so much, once.
    pub(crate) gift: Option<(Address, MicroUsdc)>,
}

impl ServiceLaunchConfig {
    /// Which service it is.
    pub(crate) const fn service(&self) -> Service {
        match self.serves {
            ServiceBackend::Chain(_) => Service::Chain,
            ServiceBackend::Cloud(_) => Service::Cloud,
        }
    }

    /// Returns the name of its process.
    pub(crate) const fn arg0(&self) -> &'static str {
        match self.serves {
            ServiceBackend::Chain(_) => CHAIN_ARG0,
            ServiceBackend::Cloud(_) => CLOUD_ARG0,
        }
    }
}

/// A service before its threads start.
enum PreparedService {
    Chain(ChainLaunchConfig),
    /// With the signer of its gas account.
    Cloud(Box<(CloudConfig, RunningSigner)>),
}

impl ServiceBackend {
    /// Starts what has to be a process of its own.
    fn prepare(self, listen: SocketAddr, executable: &Path) -> Result<PreparedService, CliError> {
        match self {
            Self::Chain(chain) => Ok(PreparedService::Chain(chain)),
            Self::Cloud(config) => {
                let config = CloudConfig { listen, ..CloudConfig::parse(&config)? };
                let signer = gas::start(executable, &config)?;
                Ok(PreparedService::Cloud(Box::new((config, signer))))
            }
        }
    }
}

/// Serves until it is told to stop. Must be called on the main thread, before any
/// other starts.
pub(crate) fn main() -> ExitCode {
    launch_config::ended(start())
}

fn start() -> Result<(), CliError> {
    harden()?;
    let signals = Signals::receive()?;
    let lifeline = process::take_inherited(LIFELINE)?;
    let ChildConfig { diagnostics, authorities, config } =
        launch_config::read::<ServiceLaunchConfig>()?;
    authorities.install();
    diagnostics.start(config.arg0().trim_start_matches("automaton-"));
    let ServiceLaunchConfig { serves, listen, executable, fault } = config;
    let faults = armed(fault.as_ref().map(|(text, home)| (text.as_str(), home.as_path())))?;
    let serves = serves.prepare(listen, &executable)?;
    runtime()?.block_on(async {
        let signals = StopSignals::watch(&signals)?;
        let supervisor = SupervisorLink::watch(lifeline)?;
        let (stop, stopped) = watch::channel(false);
        let serving = async {
            match serves {
                PreparedService::Chain(chain) => serve_chain(chain, listen, faults, stopped).await,
                PreparedService::Cloud(parts) => {
                    let (config, signer) = *parts;
                    serve_cloud(config, signer, executable, faults, stopped).await
                }
            }
        };
        let mut serving = pin!(serving);
        // Both arms are cancel-safe; a start that is dropped leaves nothing behind.
        tokio::select! {
            biased;
            signal = signals.next() => signal?,
            () = supervisor.is_gone() => {}
            served = &mut serving => return served,
        }
        stop.send_replace(true);
        // silent-ok: what is late is cut off, as a crash would.
        timeout(STOP_WITHIN, serving).await.unwrap_or(Ok(()))
    })
}

async fn serve_chain(
    config: ChainLaunchConfig,
    listen: SocketAddr,
    faults: Arc<dyn Faults>,
    mut stopped: watch::Receiver<bool>,
) -> Result<(), CliError> {
    let ChainLaunchConfig { data, gas, gift } = config;
    let clock = Arc::new(SystemClock);
    let config = automaton_devnet::DevnetConfig {
        listen,
        data: Some(data.clone()),
        chain_id: CHAIN_ID,
        clock,
        faults,
    };
    let devnet = Devnet::start(config).await?;
    let rpc = devnet.url();
    let chain = ChainClient::connect(client([rpc.as_str()])?, url(&rpc)?, CHAIN_ID).await?;
    // Asked each time, since a crash may have come before the gift or after it.
    if chain.wei(gas).await?.is_zero() {
        let wei = U256::from(GAS_WEI) * U256::from(WEI_PER_ETHER);
        devnet.fund(gas, MicroUsdc::ZERO, wei).await?;
    }
    if let Some((wallet, amount)) = gift {
        let given = data.join(format!("gift-{wallet}"));
        let has = || async { Ok::<_, CliError>(chain.balance(Devnet::usdc(), wallet).await?) };
        if !given.exists() && has().await? == MicroUsdc::ZERO {
            let transaction = devnet.fund(wallet, amount, U256::ZERO).await?.to_string();
            send_event(Event::WalletFunded { address: wallet.to_string(), amount, transaction });
        }
        write_atomically(&given, b"", 0o600)?;
    }
    // The last block may be of long ago, and its time is a witness from now on.
    devnet.mine().await?;
    launch_config::send_message(&ChildMessage::Ready { url: rpc });
    // A chain has a block now and then though nobody pays: its time is what ends a
    // payment that was never sent.
    while timeout(BLOCK_EVERY, stopped.wait_for(|stop| *stop)).await.is_err() {
        devnet.mine().await?;
    }
    devnet.stop().await;
    Ok(())
}

async fn serve_cloud(
    config: CloudConfig,
    signer: RunningSigner,
    executable: PathBuf,
    faults: Arc<dyn Faults>,
    mut stopped: watch::Receiver<bool>,
) -> Result<(), CliError> {
    let deps = CloudDeps {
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        faults,
        launcher: Some(Launcher::new(executable)),
        report: Arc::new(|sentence| {
            let error = format!("the cloud says: {sentence}");
            send_event(Event::ErrorReported { kind: ErrorClass::Upstream, error, hint: None });
        }),
    };
    let (client, signer_ended) = gas::join(signer).await?;
    let cloud = CloudServer::start(config, deps, client).await?;
    launch_config::send_message(&ChildMessage::Ready { url: cloud.url().to_owned() });
    // Both arms are cancel-safe: they only wait.
    let ended = tokio::select! {
        // silent-ok: a sender that is gone means the same.
        _ = stopped.wait_for(|stop| *stop) => Ok(()),
        failure = signer_ended => Err(failure),
    };
    cloud.stop(REQUESTS_WITHIN).await;
    ended
}

fn send_event(event: Event) {
    launch_config::send_message(&ChildMessage::Event(StampedEvent {
        at: SystemClock.now(),
        event,
    }));
}
