//! Which cloud and which chain an automaton lives from, where they are not its own.
//!
//! A key goes to the cloud that it is for and to no other: one of the configuration to the
//! cloud of the configuration, one that was signed in for to where it was given.

use std::path::Path;

use automaton_core::error::ErrorClass;
use automaton_core::id::RemoteMachineId;
use automaton_core::secret::Secret;
use serde::{Deserialize, Serialize};

use super::env::{self, Environment};
use super::file::{ChainType, ConfigFile, FILE_NAME};
use super::network::{PaymentNetwork, USUAL_NETWORK};
use super::resolve::{Brain, KeyScheme, ValueSource, origin_of};
use crate::account::{ApiAccount, KEY_FILE};
use crate::args::RemoteFlags;
use crate::error::CliError;
use crate::stack;

/// The cloud that is asked when a key to it is there and no address.
pub(crate) const CONWAY_URL: &str = "https://api.conway.tech";

/// A cloud that sells what an automaton thinks with, and the chain that it is paid on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RemoteCloud {
    /// The cloud's address.
    pub(crate) url: String,
    /// A node of the chain.
    pub(crate) rpc: String,
    /// The chain.
    pub(crate) network: PaymentNetwork,
}

/// Everybody who may name a cloud.
#[derive(Clone, Copy)]
pub(crate) struct CloudSources<'a> {
    /// The command line.
    pub(crate) flags: &'a RemoteFlags,
    /// `automaton.json`.
    pub(crate) file: &'a ConfigFile,
    /// The environment.
    pub(crate) environment: &'a Environment,
    /// The account of the home, with a cloud that is not its own.
    pub(crate) account: Option<&'a ApiAccount>,
}

impl<'a> CloudSources<'a> {
    /// The cloud's address.
    pub(crate) fn url(self) -> (&'a str, ValueSource) {
        self.address().unwrap_or((CONWAY_URL, ValueSource::Default))
    }

    /// The cloud's address, where somebody names one.
    pub(crate) fn address(self) -> Option<(&'a str, ValueSource)> {
        if let Some(url) = &self.flags.cloud {
            return Some((url.as_str(), ValueSource::Flag("--cloud".to_owned())));
        }
        if let Some(url) = &self.environment.conway_api_url {
            return Some((url, ValueSource::Env(env::CONWAY_API_URL.to_owned())));
        }
        if let Some(url) = &self.file.conway_api_url {
            return Some((url.as_str(), ValueSource::key("conwayApiUrl")));
        }
        self.account.map(|account| (account.cloud.as_str(), account.source()))
    }

    /// The key to that cloud.
    pub(crate) fn key(self) -> Option<(Secret, ValueSource)> {
        if let Some(key) = &self.environment.conway_api_key {
            return Some((key.clone(), ValueSource::Env(env::CONWAY_API_KEY.to_owned())));
        }
        let (url, _) = self.url();
        let is_here = |other: &str| same_origin(url, other);
        let owner = self.file.conway_api_url.as_ref().map_or(CONWAY_URL, |url| url.as_str());
        // The environment's address stands in for the file's, a flag's does not.
        let fits = self.flags.cloud.is_none() || is_here(owner);
        let in_file = self.file.conway_api_key.as_ref().filter(|key| !key.reveal().is_empty());
        if let Some(key) = in_file.filter(|_| fits) {
            return Some((key.clone(), ValueSource::key("conwayApiKey")));
        }
        let account = self.account.filter(|account| is_here(&account.cloud))?;
        Some((account.key.clone(), account.source()))
    }

    /// A node of the wallet's chain.
    pub(crate) fn rpc(self) -> Option<&'a str> {
        let flag = self.flags.rpc.as_ref().map(|url| url.as_str());
        let variable = self.environment.rpc_url.as_deref();
        flag.or(variable).or_else(|| self.file.rpc_url.as_ref().map(|url| url.as_str()))
    }

    /// Returns true if a cloud can be paid: a flag names one, or a node of the chain is named.
    pub(crate) fn has_chain(self) -> bool {
        self.flags.cloud.is_some() || self.rpc().is_some()
    }

    /// The wallet's network.
    ///
    /// # Errors
    /// When nobody knows it, or the chain is not one of Ethereum's kind.
    pub(crate) fn network(self) -> Result<PaymentNetwork, CliError> {
        if let Some(ChainType::Solana) = self.file.chain_type {
            let what = format!("key `chainType` of {FILE_NAME} names solana");
            return Err(CliError::new(ErrorClass::Config, what).hint(
                "remove it: the wallet signs for chains of Ethereum's kind alone, since clouds are \
                 paid in USDC by EIP-3009, which Solana does not have",
            ));
        }
        let named = self.flags.network.as_deref().or(self.file.network.as_deref());
        PaymentNetwork::by_name(named.unwrap_or(USUAL_NETWORK), &self.file.networks)
    }

    /// The cloud at `url` with its chain, where a node of that is named.
    ///
    /// # Errors
    /// When a flag names a cloud and nobody a node, or the network is none.
    pub(crate) fn remote(self, url: &str) -> Result<Option<RemoteCloud>, CliError> {
        let network = self.network()?;
        let Some(rpc) = self.rpc() else {
            if self.flags.cloud.is_none() {
                return Ok(None);
            }
            let what = format!("no node of the chain {} is named, to pay {url} on", network.name);
            return Err(
                CliError::user(what).hint("give --rpc URL, or set `rpcUrl` in automaton.json")
            );
        };
        origin_of(rpc, &ValueSource::key("rpcUrl"))?;
        Ok(Some(RemoteCloud { url: url.to_owned(), rpc: rpc.to_owned(), network }))
    }
}

/// The account of a home with a cloud that is not its own: that of its dev stack is for that
/// alone.
///
/// # Errors
/// When a file with a key cannot be read.
pub(crate) fn account(
    home: &Path,
    file: &ConfigFile,
    environment: &Environment,
) -> Result<Option<ApiAccount>, CliError> {
    if let Some(account) = ApiAccount::read(home)?
        && !stack::is_cloud_of(home, &account.cloud)?
    {
        return Ok(Some(account));
    }
    let flags = RemoteFlags::default();
    let named = CloudSources { flags: &flags, file, environment, account: None };
    ApiAccount::read_reference(home, named.url().0)
}

/// Returns cloud and chain for a brain that a cloud sells.
pub(super) fn remote_of(
    brain: &Brain,
    cloud: CloudSources<'_>,
) -> Result<Option<RemoteCloud>, CliError> {
    match brain {
        Brain::Http(http) if http.scheme == KeyScheme::Raw => cloud.remote(&http.url),
        _ if cloud.flags.cloud.is_some() => {
            let what = "--cloud names who sells it what it thinks with, and so does --brain";
            Err(CliError::user(what)
                .hint("leave one of them away; --brain-model names a model of the cloud"))
        }
        _ => Ok(None),
    }
}

/// The rented machine, if one is named. What is no id must not be read as none: the creator
/// would have commands run here who wanted them elsewhere.
pub(super) fn machine(file: &ConfigFile) -> Result<Option<RemoteMachineId>, CliError> {
    let Some(text) = file.sandbox_id.as_deref().filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    text.parse().map(Some).map_err(|_| {
        let what = format!("key `sandboxId` of {FILE_NAME} names no rented machine");
        CliError::new(ErrorClass::Config, what)
            .hint("give the id that create_sandbox told, or leave it empty for a sandbox here")
    })
}

impl ApiAccount {
    fn source(&self) -> ValueSource {
        ValueSource::File(self.file.unwrap_or(KEY_FILE).to_owned())
    }
}

fn same_origin(one: &str, other: &str) -> bool {
    let origin = |url| origin_of(url, &ValueSource::Default);
    matches!((origin(one), origin(other)), (Ok(one), Ok(other)) if one == other)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use alloy_primitives::Address;

    use super::*;
    use crate::config::file;

    fn parsed(text: &str) -> ConfigFile {
        file::parse(Path::new("/h/automaton.json"), text).unwrap()
    }

    fn account(cloud: &str) -> ApiAccount {
        ApiAccount {
            cloud: cloud.to_owned(),
            wallet: Address::ZERO,
            key: Secret::new("kept".to_owned()),
            file: None,
            registered: false,
        }
    }

    fn flags(cloud: Option<&str>) -> RemoteFlags {
        RemoteFlags { cloud: cloud.map(|url| url.parse().unwrap()), ..RemoteFlags::default() }
    }

    #[test]
    fn a_key_goes_to_the_cloud_that_it_is_for() {
        let with_key = r#"{"conwayApiKey": "filed", "conwayApiUrl": "https://own.example"}"#;
        let (own, other) = ("https://own.example", "https://other.example");
        for (text, flag, kept, url, key) in [
            (with_key, None, None, own, Some("filed")),
            (with_key, Some(own), None, own, Some("filed")),
            (with_key, Some(other), None, other, None),
            (with_key, Some(other), Some(other), other, Some("kept")),
            ("{}", None, Some(other), other, Some("kept")),
            ("{}", Some(own), Some(other), own, None),
            ("{}", Some(own), Some("https://own.example/v1"), own, Some("kept")),
            ("{}", None, None, CONWAY_URL, None),
            (r#"{"conwayApiKey": "filed"}"#, None, None, CONWAY_URL, Some("filed")),
            (r#"{"conwayApiKey": "filed"}"#, Some(other), None, other, None),
        ] {
            let file = parsed(text);
            let flags = flags(flag);
            let environment = Environment::default();
            let account = kept.map(account);
            let account = account.as_ref();
            let sources =
                CloudSources { flags: &flags, file: &file, environment: &environment, account };
            let found = sources.key().map(|(key, _)| key.reveal().to_owned());
            assert_eq!((sources.url().0, found.as_deref()), (url, key), "{text} {kept:?}");
        }
    }

    #[test]
    fn a_flag_that_names_a_cloud_needs_a_node_and_solana_is_refused() {
        let environment = Environment::default();
        let remote = |text: &str, flags: &RemoteFlags| {
            let file = parsed(text);
            let file = &file;
            let environment = &environment;
            CloudSources { flags, file, environment, account: None }.remote("https://c.example")
        };
        assert_eq!(remote("{}", &flags(None)).unwrap(), None);
        let line = remote("{}", &flags(Some("https://c.example"))).unwrap_err().line();
        assert!(line.contains("no node of the chain base"), "{line}");
        let text = r#"{"rpcUrl": "http://127.0.0.1:1", "network": "base-sepolia"}"#;
        let found = remote(text, &flags(None)).unwrap().unwrap();
        assert_eq!(
            (found.rpc.as_str(), found.network.chain_id.get()),
            ("http://127.0.0.1:1", 84532)
        );
        let line = remote(r#"{"chainType": "solana"}"#, &flags(None)).unwrap_err().line();
        assert!(line.contains("solana"), "{line}");
        assert!(remote(r#"{"network": "mars"}"#, &flags(None)).is_err());
    }
}
