//! Refunds by the operator, whether the cloud runs or not.
//!
//! A posting of its own undoes a purchase or a charge, once. Only the ledger changes here: no USDC
//! is sent, and the result names the payer who is owed some.

use std::str::FromStr;
use std::sync::Arc;

use alloy_primitives::Address;
use automaton_core::money::MicroUsdc;
use automaton_core::time::Clock;

use crate::app::DATABASE;
use crate::config::CloudConfig;
use crate::db::{Db, Refund, RefundOutcome, RefundReceipt};
use crate::error::CloudError;

/// A text names no purchase or charge.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is neither payment:NUMBER nor posting:NUMBER")]
pub struct RefundError(String);

impl FromStr for Refund {
    type Err = RefundError;

    fn from_str(text: &str) -> Result<Self, RefundError> {
        let wrong = || RefundError(text.chars().take(40).collect());
        let (noun, number) = text.split_once(':').ok_or_else(wrong)?;
        let number = number.parse().map_err(|_| wrong())?;
        match noun {
            "payment" => Ok(Self::Payment(number)),
            "posting" => Ok(Self::Posting(number)),
            _ => Err(wrong()),
        }
    }
}

impl RefundReceipt {
    /// Returns the payer of a purchase and the USDC that the payer is owed on the chain.
    #[must_use]
    pub fn owed(&self) -> Option<(Address, MicroUsdc)> {
        // A cent has 10⁶ microcents and 10⁴ base units of USDC.
        let units = self.amount.units().unsigned_abs() / 100;
        self.payer.map(|payer| (payer, MicroUsdc::new(units)))
    }
}

/// Gives a purchase or a charge of a cloud back. Again is the same as once.
///
/// # Errors
/// Fails if there is no such purchase or charge, its credits are spent, or the database
/// cannot be used.
pub async fn refund(
    config: &CloudConfig,
    clock: Arc<dyn Clock>,
    what: Refund,
) -> Result<RefundReceipt, CloudError> {
    let path = config.data.join(DATABASE);
    let missing = |source| CloudError::File { path: path.clone(), source };
    // Opening makes what is missing, and a cloud that never ran gave nobody anything.
    std::fs::metadata(&path).map_err(missing)?;
    match Db::open(&path, clock)?.refund(what).await? {
        RefundOutcome::Done(refunded) | RefundOutcome::Again(refunded) => Ok(refunded),
        RefundOutcome::Unknown => Err(CloudError::Refund(format!(
            "there is no purchase and no charge {what} that credits were booked for"
        ))),
        RefundOutcome::Spent { refunded, available } => Err(CloudError::Refund(format!(
            "{what} cannot be given back: of its {} the wallet {} has {available} left",
            refunded.amount, refunded.wallet
        ))),
    }
}
