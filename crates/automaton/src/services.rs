//! Services that the supervisor runs beside the agent: dev chain, cloud and signer.
//!
//! All of them live on while the agent comes and goes; an agent does not go on without
//! its signer. Nothing here ever sees the key or what is signed.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use automaton_client::CloudClient;
use automaton_core::event::{Event, Service, StampedEvent};
use automaton_core::model::ModelId;
use automaton_core::time::{Clock, SystemClock, Timestamp};
use automaton_core::wire::x402::ChainId;
use automaton_sandbox::process::fd_passing;
use automaton_wallet::ChainClient;
use tokio::time::timeout;

use crate::child_process::{ChildProcess, ShutdownWait};
use crate::config::resolve::{Brain, FallbackModels, KeyScheme};
use crate::error::CliError;
use crate::http::{client, url};
use crate::remote_backend::RemoteBackend;
use crate::role::launch_config::{self, LaunchConfig, MoneyLaunchConfig};
use crate::role::provider;
use crate::role::service::{ServiceBackend, ServiceLaunchConfig};
use crate::role::signer::{self, SignerLaunchConfig};
use crate::stack::{self, Stack};
use crate::supervised_service::SupervisedService;
use crate::ui::console::Console;

/// Time that a service may take to end.
const GRACE: Duration = Duration::from_secs(10);

/// Time that the chain may take to tell its time.
const CHAIN_TELLS_WITHIN: Duration = Duration::from_secs(3);

/// Owner of the cloud and the chain.
#[derive(Debug)]
pub(crate) enum PaymentBackend {
    /// Its own, which are started with it.
    Own(Box<Stack>),
    /// Others'.
    Remote(Box<RemoteBackend>),
}

/// A chain and a cloud that run, and what the agent needs to live from them.
#[derive(Debug)]
pub(crate) struct Services {
    /// In the order of their start.
    services: Vec<SupervisedService>,
    configs: ServiceConfigs,
}

/// Configurations of an agent and its signer for their services.
#[derive(Debug)]
pub(crate) struct ServiceConfigs {
    money: MoneyLaunchConfig,
    signer: SignerLaunchConfig,
}

/// A signer that runs, and the way in for its agents.
#[derive(Debug)]
pub(crate) struct SignerHandle {
    /// The process.
    pub(crate) process: ChildProcess,
    fd_socket: UnixStream,
}

/// The agent and its signer.
#[derive(Debug)]
pub(crate) struct AgentAndSigner {
    /// The agent.
    pub(crate) agent: ChildProcess,
    /// Its signer, when it lives from something.
    pub(crate) signer: Option<SignerHandle>,
}

impl Services {
    /// Starts what has to be started of what an automaton lives from, one after the other,
    /// into `begun`: when this fails or is cut off, whoever holds them ends them.
    ///
    /// # Errors
    /// When one of them cannot live, or the cloud's address is none.
    pub(crate) async fn start(
        backend: PaymentBackend,
        agent: &LaunchConfig,
        console: &mut Console,
        begun: &mut Vec<SupervisedService>,
    ) -> Result<ServiceConfigs, CliError> {
        match backend {
            PaymentBackend::Own(stack) => Self::start_stack(*stack, agent, console, begun).await,
            PaymentBackend::Remote(remote) => {
                let (money, signer) = remote.configs(&agent.resolved.brain)?;
                Ok(ServiceConfigs { money, signer })
            }
        }
    }

    async fn start_stack(
        mut stack: Stack,
        agent: &LaunchConfig,
        console: &mut Console,
        begun: &mut Vec<SupervisedService>,
    ) -> Result<ServiceConfigs, CliError> {
        if stack.is_new {
            console.report(Event::WalletCreated { address: stack.wallet.to_string() })?;
        }
        let fault = agent.fault.clone().map(|fault| (fault, agent.resolved.home.clone()));
        let service = |serves: ServiceBackend, listen| {
            let executable = agent.executable.clone();
            SupervisedService::start(ServiceLaunchConfig {
                serves,
                listen,
                executable,
                fault: fault.clone(),
            })
        };
        begun.push(service(stack.chain(), stack.address_of(Service::Chain))?);
        let rpc = settled(begun, &mut stack, console).await?;
        let cheaper = match &agent.resolved.brain {
            Brain::Http(brain) => brain.cheaper.clone(),
            Brain::Local(_) => FallbackModels::default(),
        };
        let cheaper_sold = resold_models(&agent.resolved.brain);
        let cloud = stack.cloud(&agent.resolved, &cheaper_sold, &rpc, SystemClock.now())?;
        begun.push(service(cloud, stack.address_of(Service::Cloud))?);
        let url = settled(begun, &mut stack, console).await?;
        let audience = CloudClient::new(client([url.as_str()])?, &url)?.audience()?;
        // Sign-ins name Base, as every client's do.
        let signer = stack.signer(vec![(audience.domain, audience.uri, ChainId::BASE.0)]);
        let model = provider::describe(&agent.resolved.brain)?.id;
        let token = stack::token();
        let sign_in_chain = ChainId::BASE.0;
        let confirmations = ChainId(token.chain_id).confirmations();
        let cloud = url;
        let money =
            MoneyLaunchConfig { cloud, model, cheaper, rpc, token, confirmations, sign_in_chain };
        Ok(ServiceConfigs { money, signer })
    }

    /// The household of services that serve.
    pub(crate) const fn new(services: Vec<SupervisedService>, configs: ServiceConfigs) -> Self {
        Self { services, configs }
    }

    /// Returns the next event of one of the services. Cancel-safe, as each of them is.
    ///
    /// # Errors
    /// When one of them dies too often.
    pub(crate) async fn next(&mut self) -> Result<StampedEvent, CliError> {
        next_of(&mut self.services).await
    }

    /// The time of the chain's last block, if it tells that at once: the witness of
    /// how long a signer did not run.
    pub(crate) async fn chain_time(&self) -> Option<Timestamp> {
        let MoneyLaunchConfig { rpc, token, .. } = &self.configs.money;
        let asked = async {
            let chain =
                ChainClient::connect(client([rpc.as_str()])?, url(rpc)?, token.chain_id).await?;
            Ok::<_, CliError>(chain.time().await?)
        };
        // silent-ok: where it is unknown, no time passed for the signer.
        timeout(CHAIN_TELLS_WITHIN, asked).await.ok()?.ok()
    }

    /// Ends the services, the last one first.
    ///
    /// # Errors
    /// When one of them cannot be waited for.
    pub(crate) async fn end(self, hurry: &mut ShutdownWait<'_>) -> Result<(), CliError> {
        Self::end_all(self.services, hurry).await
    }

    /// Ends services, the last one first.
    ///
    /// # Errors
    /// When one of them cannot be waited for.
    pub(crate) async fn end_all(
        services: Vec<SupervisedService>,
        hurry: &mut ShutdownWait<'_>,
    ) -> Result<(), CliError> {
        let mut ended = Ok(());
        for kept in services.into_iter().rev() {
            // All are ended, whatever becomes of one.
            ended = kept.end(GRACE, hurry).await.and(ended);
        }
        ended
    }
}

/// Which cheaper models the cloud can sell: those that the server behind it lists. One
/// that cannot be asked for its list may have none.
fn resold_models(brain: &Brain) -> Vec<ModelId> {
    let Brain::Http(http) = brain else { return Vec::new() };
    // The agent tells which of its models the cloud does not sell.
    http.cheaper.names().filter(|name| http.served.lists(name)).cloned().collect()
}

async fn next_of(services: &mut [SupervisedService]) -> Result<StampedEvent, CliError> {
    match services {
        [] => std::future::pending().await,
        [one] => one.next().await,
        [one, other, ..] => tokio::select! {
            biased;
            news = one.next() => news,
            news = other.next() => news,
        },
    }
}

/// Waits until the newest service serves; its URL, which the stack remembers.
async fn settled(
    begun: &mut [SupervisedService],
    stack: &mut Stack,
    console: &mut Console,
) -> Result<String, CliError> {
    loop {
        console.show(&next_of(begun).await?)?;
        if let Some(kept) = begun.last()
            && let Some(url) = &kept.url
        {
            stack.remember(kept.service(), kept.listens())?;
            return Ok(url.clone());
        }
    }
}

impl SignerHandle {
    async fn start(agent: &LaunchConfig, services: &Services) -> Result<Self, CliError> {
        let failed = |error| CliError::internal("cannot reach the signer", &error);
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let fault = agent.fault.clone().map(|fault| (fault, agent.resolved.home.clone()));
        let chain_time = services.chain_time().await;
        let told = services.configs.signer.clone();
        let config = SignerLaunchConfig { fault, chain_time, passes_fds: true, ..told };
        let socket = Some((OwnedFd::from(theirs), launch_config::SIGNER));
        Ok(Self {
            process: ChildProcess::start(&agent.executable, signer::ARG0, &config, socket)?,
            fd_socket: ours,
        })
    }
}

impl AgentAndSigner {
    /// Starts an agent, with a signer where it lives from something and has none yet.
    ///
    /// # Errors
    /// When a process cannot be started.
    pub(crate) async fn start(
        mut agent: LaunchConfig,
        home: Option<&Services>,
        kept: Option<SignerHandle>,
    ) -> Result<Self, CliError> {
        let executable = agent.executable.clone();
        let Some(services) = home else {
            return Ok(Self {
                agent: ChildProcess::start(&executable, launch_config::ARG0, &agent, None)?,
                signer: None,
            });
        };
        let failed = |error| CliError::internal("cannot join the agent to its signer", &error);
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let signer = match kept {
            Some(kept) => kept,
            None => SignerHandle::start(&agent, services).await?,
        };
        // silent-ok: one that has died since is seen to be gone, and both begin anew.
        fd_passing::send_fd(&signer.fd_socket, theirs).ok();
        agent.money = Some(services.configs.money.clone());
        // What it thinks with is behind the cloud, and so is the key to that.
        if let Brain::Http(brain) = &mut agent.resolved.brain
            && brain.scheme != KeyScheme::Raw
        {
            brain.key = None;
        }
        // So are those of the sellers that stand in for it.
        agent.resolved.other_sellers.iter_mut().for_each(|server| server.key = None);
        let socket = Some((OwnedFd::from(ours), launch_config::SIGNER));
        let agent = ChildProcess::start(&executable, launch_config::ARG0, &agent, socket)?;
        Ok(Self { agent, signer: Some(signer) })
    }
}
