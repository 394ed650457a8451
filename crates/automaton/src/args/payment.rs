//! Flags for money: funding and purchases.

use std::path::PathBuf;

use alloy_primitives::Address;
use automaton_core::money::MicroUsdc;
use clap::{Args, ValueHint};

use super::RemoteFlags;
use crate::cmd::passphrase::PassphraseArgs;
use crate::config::network::PaymentNetwork;
use crate::config::values::{HttpUrl, Ranged};

/// Arguments of `fund`.
#[derive(Debug, Args)]
pub(crate) struct FundArgs {
    /// Amount in USDC [default: 20]; with --gas in ether [default: 1]
    #[arg(value_parser = usdc)]
    pub(crate) amount: Option<MicroUsdc>,
    /// Give ether to the account that pays a cloud's gas, and no USDC
    #[arg(long)]
    pub(crate) gas: bool,
    /// The cloud's configuration, which names that account and its chain [default: the wallet of
    /// the home]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "gas",
          conflicts_with_all = ["rpc", "chain"])]
    pub(crate) config: Option<PathBuf>,
    /// A node of a dev chain [default: the one that `up` started, else that of the wallet's
    /// network, where that is one]
    #[arg(long, value_name = "URL")]
    pub(crate) rpc: Option<HttpUrl>,
    /// The dev chain's id [default: 31337]
    #[arg(long, value_name = "ID", requires = "rpc")]
    pub(crate) chain: Option<u64>,
}

/// An amount in USDC.
pub(crate) fn usdc(text: &str) -> Result<MicroUsdc, String> {
    MicroUsdc::parse(text).map_err(|error| error.to_string())
}

/// Arguments of `topup`.
#[derive(Debug, Args)]
pub(crate) struct TopUpArgs {
    /// For how many US dollars: 5, 25, 100, 500, 1000 or 2500
    pub(crate) usd: u32,
    /// Means of payment.
    #[command(flatten)]
    pub(crate) payment: PaymentArgs,
}

/// The wallet, its chain and its cloud, for a command that pays.
#[derive(Debug, Args)]
pub(crate) struct PaymentArgs {
    /// Whom it is paid to, and where.
    #[command(flatten)]
    pub(crate) remote: RemoteFlags,
    /// The chain's id, in place of its name
    #[arg(long, value_name = "ID", conflicts_with = "network")]
    pub(crate) chain: Option<u64>,
    /// The contract of USDC on it [default: the network's]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) usdc: Option<Address>,
    /// The name in the EIP-712 domain of that contract [default: the network's]
    #[arg(long, value_name = "NAME")]
    pub(crate) usdc_name: Option<String>,
    /// The version in that domain [default: the network's]
    #[arg(long, value_name = "VERSION")]
    pub(crate) usdc_version: Option<String>,
    /// Blocks that confirm a payment [default: the network's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=10_000))]
    pub(crate) confirmations: Option<u64>,
    /// The passphrase.
    #[command(flatten)]
    pub(crate) passphrase: PassphraseArgs,
}

impl PaymentArgs {
    /// Returns true if a flag names a cloud, a chain or a token.
    pub(crate) const fn names_a_place(&self) -> bool {
        let RemoteFlags { cloud, rpc, network } = &self.remote;
        let names_cloud_or_chain =
            cloud.is_some() || rpc.is_some() || network.is_some() || self.chain.is_some();
        let names_token =
            self.usdc.is_some() || self.usdc_name.is_some() || self.usdc_version.is_some();
        names_cloud_or_chain || names_token
    }

    /// A network with what flags say of it.
    pub(crate) fn network(&self, network: PaymentNetwork) -> PaymentNetwork {
        PaymentNetwork {
            usdc: self.usdc.unwrap_or(network.usdc),
            token_name: self.usdc_name.clone().unwrap_or(network.token_name),
            token_version: self.usdc_version.clone().unwrap_or(network.token_version),
            confirmations: self.confirmations.map_or(network.confirmations, Ranged::clamped),
            ..network
        }
    }
}
