//! What the supervisor keeps beside the agent: dev chain, cloud, and the signer.
//!
//! Chain and cloud live on while the agent comes and goes; each start of the agent
//! gets a signer of its own, and neither goes on without the other. Nothing here
//! ever sees the key or what is signed.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use automaton_client::Cloud;
use automaton_core::event::{Event, Service, Stamped};

use crate::cmd::wallet::client;
use crate::error::Failure;
use crate::kept::{Kept, Place};
use crate::member::Member;
use crate::role::charter::{self, Charter, MoneyCharter};
use crate::role::provider;
use crate::role::service::{Serves, ServiceCharter};
use crate::role::signer::{self, SignerCharter};
use crate::stack::{self, Stack};
use crate::ui::console::Console;

/// How long a service may take to end.
const GRACE: Duration = Duration::from_secs(10);

/// The chain that sign-ins name, by its EIP-155 id: Base, as every client does.
const SIGN_IN_CHAIN: u64 = 8453;

/// A chain and a cloud that run, and what the agent needs to live from them.
#[derive(Debug)]
pub(crate) struct Household {
    chain: Kept,
    cloud: Kept,
    money: MoneyCharter,
    signer: SignerCharter,
}

/// The agent and its signer.
#[derive(Debug)]
pub(crate) struct Pair {
    /// The agent.
    pub(crate) agent: Member,
    /// Its signer, when it lives from something.
    pub(crate) signer: Option<Member>,
}

impl Household {
    /// Starts the services of a stack, one after the other.
    ///
    /// # Errors
    /// When one of them cannot live, or the cloud's address is none.
    pub(crate) async fn start(
        mut stack: Stack,
        agent: &Charter,
        console: &mut Console,
    ) -> Result<Self, Failure> {
        if stack.is_new {
            console.tell(Event::WalletCreated { address: stack.wallet.to_string() })?;
        }
        let fault = agent.fault.clone().map(|fault| (fault, agent.resolved.home.clone()));
        let service = |serves: Serves, listen| {
            let executable = agent.executable.clone();
            Kept::start(ServiceCharter { serves, listen, executable, fault: fault.clone() })
        };
        let mut chain = service(stack.chain(), stack.place(Service::Chain))?;
        let rpc = settled(&mut chain, &mut stack, console).await?;
        let cloud = stack.cloud(&agent.resolved, &rpc)?;
        let mut cloud = service(cloud, stack.place(Service::Cloud))?;
        let url = settled(&mut cloud, &mut stack, console).await?;
        let audience = Cloud::new(client([&url])?, &url)?.audience()?;
        let signer = stack.signer(vec![(audience.domain, audience.uri, SIGN_IN_CHAIN)]);
        let model = provider::describe(&agent.resolved.brain)?.id;
        let money = MoneyCharter {
            cloud: url,
            model,
            rpc,
            token: stack::token(),
            sign_in_chain: SIGN_IN_CHAIN,
        };
        Ok(Self { chain, cloud, money, signer })
    }

    /// What happens next with chain or cloud. Cancel-safe, as both are.
    ///
    /// # Errors
    /// When one of them dies too often.
    pub(crate) async fn next(&mut self) -> Result<Stamped, Failure> {
        tokio::select! {
            biased;
            news = self.chain.next() => news,
            news = self.cloud.next() => news,
        }
    }

    /// Ends the cloud, then the chain.
    ///
    /// # Errors
    /// When one of them cannot be waited for.
    pub(crate) fn end(self) -> Result<(), Failure> {
        self.cloud.end(GRACE).and(self.chain.end(GRACE))
    }
}

/// Waits until a service serves; its URL, which the stack remembers.
async fn settled(
    kept: &mut Kept,
    stack: &mut Stack,
    console: &mut Console,
) -> Result<String, Failure> {
    loop {
        let told = kept.next().await?;
        console.show(&told)?;
        if let Some(Place { url, address }) = &kept.place {
            stack.remember(kept.service(), *address)?;
            return Ok(url.clone());
        }
    }
}

impl Pair {
    /// Starts an agent, with a signer where it lives from something.
    ///
    /// # Errors
    /// When a process cannot be started.
    pub(crate) fn start(mut agent: Charter, home: Option<&Household>) -> Result<Self, Failure> {
        let executable = agent.executable.clone();
        let role = |name| (executable.as_path(), name);
        let Some(household) = home else {
            let agent = Member::start(role(charter::ARG0), &agent, None)?;
            return Ok(Self { agent, signer: None });
        };
        agent.money = Some(household.money.clone());
        let failed = |error| Failure::internal("cannot join the agent to its signer", &error);
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let socket = |stream| Some((OwnedFd::from(stream), charter::SIGNER));
        let fault = agent.fault.clone().map(|fault| (fault, agent.resolved.home.clone()));
        let signer = SignerCharter { fault, ..household.signer.clone() };
        let signer = Member::start(role(signer::ARG0), &signer, socket(theirs))?;
        let agent = Member::start(role(charter::ARG0), &agent, socket(ours))?;
        Ok(Self { agent, signer: Some(signer) })
    }
}
