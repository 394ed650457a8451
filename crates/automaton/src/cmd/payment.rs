//! Cloud and chain that a command pays at, or asks about the account.
//!
//! Flags go before the environment, that before automaton.json, and a home whose cloud nobody
//! names has its own dev stack, where there is one.

use std::path::Path;

use automaton_core::error::ErrorClass;
use automaton_core::secret::Secret;
use automaton_core::wire::x402::ChainId;

use super::CommandContext;
use crate::account::ApiAccount;
use crate::args::{PaymentArgs, RemoteFlags};
use crate::config::env::Environment;
use crate::config::file::{self, ConfigFile, FILE_NAME};
use crate::config::network::PaymentNetwork;
use crate::config::remote::{self, CloudSources};
use crate::error::CliError;
use crate::stack;

/// The network of every dev stack.
const STACK_NETWORK: &str = "dev";

/// All that names a cloud and a chain for a command.
pub(super) struct CloudNames {
    flags: RemoteFlags,
    file: ConfigFile,
    environment: Environment,
    account: Option<ApiAccount>,
}

impl CloudNames {
    /// With what flags say of it.
    ///
    /// # Errors
    /// When a file with a key cannot be read.
    pub(super) fn new(
        context: &CommandContext,
        home: &Path,
        file: &ConfigFile,
        flags: &RemoteFlags,
    ) -> Result<Self, CliError> {
        let environment = context.environment.clone();
        let account = remote::account(home, file, &environment)?;
        Ok(Self { flags: flags.clone(), file: file.clone(), environment, account })
    }

    /// Without flags, and where there need not be an automaton yet.
    ///
    /// # Errors
    /// When the configuration is invalid, or a file with a key cannot be read.
    pub(super) fn read(context: &CommandContext, home: &Path) -> Result<Self, CliError> {
        let file = file::read(&home.join(FILE_NAME))?.unwrap_or_default();
        Self::new(context, home, &file, &RemoteFlags::default())
    }

    fn sources(&self) -> CloudSources<'_> {
        let Self { flags, file, environment, account } = self;
        CloudSources { flags, file, environment, account: account.as_ref() }
    }

    /// The wallet's network.
    ///
    /// # Errors
    /// When nobody knows it.
    pub(super) fn network(&self) -> Result<PaymentNetwork, CliError> {
        self.sources().network()
    }

    /// A node that may have a faucet, with its chain: that of the wallet's network, where one is
    /// named and it is no public one, else that of the home's own stack.
    ///
    /// # Errors
    /// When the stack's file is damaged.
    pub(super) fn faucet(
        &self,
        home: &Path,
        network: &PaymentNetwork,
    ) -> Result<Option<FaucetNode>, CliError> {
        let is_told = self.sources().has_chain();
        if let Some(rpc) = stack::chain_of(home)?.filter(|_| !is_told) {
            return Ok(Some(FaucetNode { rpc, chain_id: ChainId::DEV.0, own: true }));
        }
        let chain_id = network.chain_id.get();
        let rpc = self.sources().rpc().filter(|_| ChainId(chain_id).usdc().is_none());
        Ok(rpc.map(|rpc| FaucetNode { rpc: rpc.to_owned(), chain_id, own: false }))
    }

    /// The cloud's address.
    ///
    /// # Errors
    /// When nobody names one.
    pub(super) fn cloud(&self) -> Result<String, CliError> {
        self.sources().address().map(|(url, _)| url.to_owned()).ok_or_else(no_cloud)
    }
}

/// A node that may have a faucet.
pub(super) struct FaucetNode {
    /// Its URL.
    pub(super) rpc: String,
    /// The id of its chain.
    pub(super) chain_id: u64,
    /// True if it is the home's own.
    pub(super) own: bool,
}

impl FaucetNode {
    /// A failure with what to do about it where the node is the home's own.
    pub(super) fn explain(&self, failure: CliError) -> CliError {
        explain_own(self.own, failure)
    }
}

/// A cloud, a node of a chain, and the chain.
#[derive(Debug)]
pub(super) struct PaymentPlace {
    /// The cloud's address, where one is named.
    pub(super) cloud: Option<String>,
    /// The node.
    pub(super) rpc: String,
    /// The chain.
    pub(super) network: PaymentNetwork,
    /// True if they are the home's own.
    own: bool,
}

impl PaymentPlace {
    /// The place that flags and configuration name.
    ///
    /// # Errors
    /// When nobody names a node of a chain, or the network is none.
    pub(super) fn find(
        context: &CommandContext,
        home: &Path,
        file: &ConfigFile,
        args: &PaymentArgs,
    ) -> Result<Self, CliError> {
        let names = CloudNames::new(context, home, file, &args.remote)?;
        let sources = names.sources();
        if !sources.has_chain()
            && let Some((chain, cloud)) = stack::addresses(home)?
        {
            let network = args.network(PaymentNetwork::by_name(STACK_NETWORK, &file.networks)?);
            return Ok(Self { cloud: Some(cloud), rpc: chain, network, own: true });
        }
        let network = match args.chain {
            Some(id) => PaymentNetwork::of_chain(id, &file.networks).or_else(|unknown| {
                // A flag may say all that a row would.
                args.usdc.map_or(Err(unknown), |usdc| Ok(PaymentNetwork::of_flags(id, usdc)))
            })?,
            None => sources.network()?,
        };
        let rpc = sources.rpc().map(ToOwned::to_owned).ok_or_else(|| {
            CliError::user(format!("no node of the chain {} is named", network.name))
                .hint("give --rpc URL, or set `rpcUrl` in automaton.json")
        })?;
        let cloud = names.cloud().ok();
        Ok(Self { cloud, rpc, network: args.network(network), own: false })
    }

    /// The same, for a command that needs a cloud.
    ///
    /// # Errors
    /// When nobody names one.
    pub(super) fn with_cloud(self) -> Result<Self, CliError> {
        if self.cloud.is_some() { Ok(self) } else { Err(no_cloud()) }
    }

    /// A failure with what to do about it where the place is the home's own.
    pub(super) fn explain(&self, failure: CliError) -> CliError {
        explain_own(self.own, failure)
    }
}

fn no_cloud() -> CliError {
    CliError::user("there is no cloud to ask")
        .hint("name one with --cloud URL, or as `conwayApiUrl` in automaton.json")
}

/// Its own cloud and chain run only while it lives.
fn explain_own(own: bool, failure: CliError) -> CliError {
    match own && failure.kind == ErrorClass::Transient {
        true => failure.hint(
            "the local cloud and chain run only during `automaton up` or `automaton run`, and then \
             it buys by itself; to use others, give --cloud URL and --rpc URL",
        ),
        false => failure,
    }
}

/// The cloud of a home with the key to it, and whether it is its own.
pub(super) struct CloudKey {
    /// The cloud's address.
    pub(super) cloud: String,
    /// The key.
    pub(super) key: Secret,
    own: bool,
}

impl CloudKey {
    /// Finds them in the environment, the configuration or the home.
    ///
    /// # Errors
    /// When there is no account, or a file with a key cannot be read.
    pub(super) fn find(
        context: &CommandContext,
        home: &Path,
        file: &ConfigFile,
    ) -> Result<Self, CliError> {
        let names = CloudNames::new(context, home, file, &RemoteFlags::default())?;
        if let Some((key, _)) = names.sources().key() {
            return Ok(Self { cloud: names.sources().url().0.to_owned(), key, own: false });
        }
        let ApiAccount { cloud, key, .. } = ApiAccount::read(home)?.ok_or_else(|| {
            CliError::user("the automaton has no account with a cloud")
                .hint("make one with `automaton provision --cloud URL`")
        })?;
        Ok(Self { cloud, key, own: true })
    }

    /// A failure with what to do about it where the cloud is the home's own.
    pub(super) fn explain(&self, failure: CliError) -> CliError {
        explain_own(self.own, failure)
    }
}
