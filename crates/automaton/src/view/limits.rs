//! Views of the signer's limits.

use alloy_primitives::{Address, B256};
use automaton_core::money::MicroUsdc;
use automaton_core::time::Timestamp;
use automaton_signer::{SignerStatus, SigningLimits, SpendingTotals};
use schemars::JsonSchema;
use serde::Serialize;

/// The limits of a wallet, and the sums spent of them.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct LimitsOutput {
    /// The wallet's address; `null` until the wallet is unlocked for the first time.
    #[schemars(with = "Option<String>")]
    pub(crate) wallet: Option<Address>,
    /// The ceilings.
    pub(crate) limits: SigningLimitsView,
    /// The totals of the payments signed so far.
    pub(crate) spent: SpendingTotalsView,
    /// Time of the window clock, in milliseconds. Only differences of two readings mean anything.
    pub(crate) window: Timestamp,
    /// The address whose signed message may raise a ceiling; `null` without one.
    #[schemars(with = "Option<String>")]
    pub(crate) creator: Option<Address>,
    /// The serial that the next such message must contain.
    pub(crate) serial: u64,
    /// SHA-256 over all rules in canonical form, in hexadecimal.
    #[schemars(with = "String")]
    pub(crate) rules: B256,
    /// The permits, one line each.
    pub(crate) permits: Vec<String>,
    /// The permits that the last start asked for and the creator has not accepted.
    pub(crate) asked_for: Vec<String>,
    /// The hash with which the creator accepts `asked_for`; `null` without any.
    #[schemars(with = "Option<String>")]
    pub(crate) asked: Option<B256>,
    /// The wallet's last known balance, in 10⁻⁶ USDC; `null` if it is unknown.
    pub(crate) in_wallet: Option<MicroUsdc>,
}

/// Spending ceilings, in 10⁻⁶ USDC.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub(crate) struct SigningLimitsView {
    /// The largest single payment.
    pub(crate) per_payment: MicroUsdc,
    /// The sum of all payments within any hour.
    pub(crate) per_hour: MicroUsdc,
    /// The sum of all payments within any 24 hours.
    pub(crate) per_day: MicroUsdc,
    /// The sum of all payments to one payee within any 24 hours.
    pub(crate) per_payee: MicroUsdc,
    /// The sum of all payments that may ever be signed.
    pub(crate) lifetime: MicroUsdc,
    /// The number of payments that may ever be signed.
    pub(crate) payments_max: u64,
}

impl From<SigningLimits> for SigningLimitsView {
    fn from(row: SigningLimits) -> Self {
        let SigningLimits { per_payment, per_hour, per_day, per_payee, lifetime, payments_max } =
            row;
        Self { per_payment, per_hour, per_day, per_payee, lifetime, payments_max }
    }
}

/// Totals of the payments signed so far, in 10⁻⁶ USDC.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub(crate) struct SpendingTotalsView {
    /// The sum of the last hour.
    pub(crate) hour: MicroUsdc,
    /// The sum of the last 24 hours.
    pub(crate) day: MicroUsdc,
    /// The sum of the last 24 hours to the payee that got most.
    pub(crate) payee: MicroUsdc,
    /// The sum of all payments that were ever signed.
    pub(crate) ever: MicroUsdc,
    /// The number of payments ever.
    pub(crate) payments: u64,
}

impl From<SpendingTotals> for SpendingTotalsView {
    fn from(row: SpendingTotals) -> Self {
        let SpendingTotals { hour, day, payee, ever, payments } = row;
        Self { hour, day, payee, ever, payments }
    }
}

impl LimitsOutput {
    /// Builds the view of a signer's status beside the wallet's last known balance.
    pub(crate) fn new(status: &SignerStatus, in_wallet: Option<MicroUsdc>) -> Self {
        let status = status.clone();
        Self {
            wallet: status.wallet,
            limits: status.limits.into(),
            spent: status.spent.into(),
            window: status.window,
            creator: status.creator,
            serial: status.serial,
            rules: status.rules,
            permits: status.permits,
            asked_for: status.asked_for,
            asked: status.asked,
            in_wallet,
        }
    }
}

/// The text to sign to raise limits.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct LimitsMessageView {
    /// The wallet's address.
    #[schemars(with = "String")]
    pub(crate) wallet: Address,
    /// The serial in the text.
    pub(crate) serial: u64,
    /// The text to sign.
    pub(crate) message: String,
}
