//! Where a command pays, or asks what is on the account: which cloud, on which chain.
//!
//! Flags go before the environment, that before automaton.json, and a home whose cloud nobody
//! names has its own dev stack, where there is one.

use std::path::Path;

use automaton_core::error::ErrorClass;
use automaton_core::secret::Secret;

use super::CommandContext;
use crate::account::ApiAccount;
use crate::args::{PaymentArgs, RemoteFlags};
use crate::config::file::ConfigFile;
use crate::config::network::PaymentNetwork;
use crate::config::remote::{CONWAY_URL, CloudSources};
use crate::config::resolve;
use crate::error::CliError;
use crate::stack;

/// The network of every dev stack.
const STACK_NETWORK: &str = "dev";

/// A cloud, a node of a chain, and the chain.
#[derive(Debug)]
pub(super) struct PaymentPlace {
    /// The cloud's address; nobody's where none is named and none is needed.
    pub(super) cloud: String,
    /// The node.
    pub(super) rpc: String,
    /// The chain.
    pub(super) network: PaymentNetwork,
    /// Whether they are the home's own.
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
        let account = resolve::account(home, file, &context.environment)?;
        let flags = &args.remote;
        let environment = &context.environment;
        let sources = CloudSources { flags, file, environment, account: account.as_ref() };
        if !sources.has_chain()
            && let Some((chain, cloud)) = stack::addresses(home)?
        {
            let network = args.network(PaymentNetwork::named(STACK_NETWORK, &file.networks)?);
            return Ok(Self { cloud, rpc: chain, network, own: true });
        }
        let network = match args.chain {
            Some(id) => PaymentNetwork::of_chain(id, &file.networks).or_else(|unknown| {
                // A flag may say all that a row would.
                args.usdc.map_or(Err(unknown), |usdc| Ok(PaymentNetwork::of_flags(id, usdc)))
            })?,
            None => sources.network()?,
        };
        let rpc = sources.rpc().ok_or_else(|| {
            CliError::user(format!("no node of the chain {} is named", network.name))
                .hint("give --rpc URL, or set `rpcUrl` in automaton.json")
        })?;
        let (cloud, rpc) = (sources.url().0.to_owned(), rpc.to_owned());
        Ok(Self { cloud, rpc, network: args.network(network), own: false })
    }

    /// The same, for a command that needs a cloud.
    ///
    /// # Errors
    /// When nobody names one.
    pub(super) fn with_cloud(self, is_named: bool) -> Result<Self, CliError> {
        if self.own || is_named || self.cloud != CONWAY_URL {
            return Ok(self);
        }
        Err(no_cloud())
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

/// The cloud that flags, environment or configuration name.
///
/// # Errors
/// When nobody names one.
pub(super) fn cloud_of(
    context: &CommandContext,
    home: &Path,
    file: &ConfigFile,
    flags: &RemoteFlags,
) -> Result<String, CliError> {
    let account = resolve::account(home, file, &context.environment)?;
    let environment = &context.environment;
    let sources = CloudSources { flags, file, environment, account: account.as_ref() };
    sources.named().map(|(url, _)| url.to_owned()).ok_or_else(no_cloud)
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
    /// What the environment, the configuration or the home has.
    ///
    /// # Errors
    /// When there is no account, or a file with a key cannot be read.
    pub(super) fn find(
        context: &CommandContext,
        home: &Path,
        file: &ConfigFile,
    ) -> Result<Self, CliError> {
        let account = resolve::account(home, file, &context.environment)?;
        let (flags, environment) = (RemoteFlags::default(), &context.environment);
        let sources = CloudSources { flags: &flags, file, environment, account: account.as_ref() };
        if let Some((key, _)) = sources.key() {
            return Ok(Self { cloud: sources.url().0.to_owned(), key, own: false });
        }
        let ApiAccount { cloud, key, .. } = ApiAccount::read(home)?.ok_or_else(|| {
            CliError::user("the automaton has no account with a cloud")
                .hint("make one with `automaton provision --cloud URL`")
        })?;
        Ok(Self { cloud, key, own: stack::is_there(home) })
    }

    /// A failure with what to do about it where the cloud is the home's own.
    pub(super) fn explain(&self, failure: CliError) -> CliError {
        explain_own(self.own, failure)
    }
}
