//! Views of the wallet, of accounts with a cloud, and of the cloud itself.

use std::net::SocketAddr;
use std::path::PathBuf;

use alloy_primitives::Address;
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

/// The wallet.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct WalletView {
    /// Its address; `null` if its file names none.
    #[schemars(with = "Option<String>")]
    pub(crate) address: Option<Address>,
}

/// A wallet that was made or imported.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct NewWalletView {
    /// Its address.
    #[schemars(with = "String")]
    pub(crate) address: Address,
    /// The file with the encrypted key.
    pub(crate) keystore: PathBuf,
    /// The address of the creator; `null` if none was named.
    #[schemars(with = "Option<String>")]
    pub(crate) creator: Option<Address>,
}

/// The output of `fund`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum FundOutput {
    /// USDC that a faucet gave.
    Usdc(FundedView),
    /// Ether that a faucet gave.
    Gas(FundedGasView),
    /// A request to send USDC by hand.
    Request(FundRequestView),
}

/// USDC that a faucet gave.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct FundedView {
    /// The wallet's address.
    #[schemars(with = "String")]
    pub(crate) address: Address,
    /// The amount, in 10⁻⁶ USDC.
    pub(crate) usdc: MicroUsdc,
    /// The transaction.
    pub(crate) transaction: String,
}

/// Ether that a faucet gave.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct FundedGasView {
    /// The address of the account.
    #[schemars(with = "String")]
    pub(crate) address: Address,
    /// The amount in wei, in decimal digits.
    pub(crate) wei: String,
}

/// A request to send USDC by hand.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct FundRequestView {
    /// The wallet's address.
    #[schemars(with = "String")]
    pub(crate) address: Address,
    /// The amount, in 10⁻⁶ USDC.
    pub(crate) usdc: MicroUsdc,
    /// The request, by EIP-681.
    pub(crate) uri: String,
}

/// A purchase of credits.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct PurchaseReceiptView {
    /// The payment.
    pub(crate) payment: String,
    /// The amount paid, in 10⁻⁶ USDC.
    pub(crate) paid_usdc: MicroUsdc,
    /// The transaction, if it is known.
    pub(crate) transaction: Option<String>,
    /// True if it is confirmed.
    pub(crate) settled: bool,
    /// Dollars of credits: of the purchase that was open, if one was.
    pub(crate) credits_usd: u32,
    /// Reason for a delay; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) held_up: Option<String>,
}

/// An account with a cloud.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct AccountView {
    /// The cloud's origin.
    pub(crate) cloud: String,
    /// The wallet's address.
    #[schemars(with = "String")]
    pub(crate) address: Address,
    /// The file with the API key.
    pub(crate) key: PathBuf,
}

/// The address of a cloud that runs.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct CloudView {
    /// Address and port that it listens at.
    #[schemars(with = "String")]
    pub(crate) listen: SocketAddr,
    /// Its URL.
    pub(crate) url: String,
}

/// A purchase or a charge that was given back.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct RefundView {
    /// The purchase or charge.
    pub(crate) refunded: String,
    /// The wallet.
    #[schemars(with = "String")]
    pub(crate) wallet: Address,
    /// The credits.
    pub(crate) amount_microcents: Microcents,
    /// The payer to whom USDC is owed; `null` without one.
    #[schemars(with = "Option<String>")]
    pub(crate) owed_to: Option<Address>,
    /// The USDC that is owed, in 10⁻⁶ USDC.
    pub(crate) owed_usdc: Option<MicroUsdc>,
}

/// Credits that wait for wallets which never signed in.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct UnclaimedListView {
    /// The credits, by wallet.
    pub(crate) unclaimed: Vec<UnclaimedCreditsView>,
}

/// Credits of a wallet that never signed in.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct UnclaimedCreditsView {
    /// The wallet.
    #[schemars(with = "String")]
    pub(crate) wallet: Address,
    /// The credits.
    pub(crate) amount_microcents: Microcents,
    /// Time of the first posting, in milliseconds since 1970.
    pub(crate) since: Timestamp,
}
