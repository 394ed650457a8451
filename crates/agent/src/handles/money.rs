//! The money, over the treasury's one door.
//!
//! A purchase that takes long goes on behind the door when the call is over; it
//! must never be cancelled with it.

use std::sync::Arc;

use automaton_core::error::Kind;
use automaton_tools::HandleError;
use automaton_tools::context::{self, Answer, Balances, Purchase};

use crate::treasury::Treasury;

/// The money of one automaton, if it has any.
pub(crate) struct Money(Option<Arc<Treasury>>);

impl Money {
    pub(super) const fn new(treasury: Option<Arc<Treasury>>) -> Self {
        Self(treasury)
    }

    /// The treasury. Its tools are not offered where there is none.
    fn treasury(&self) -> Result<&Arc<Treasury>, HandleError> {
        let none = || HandleError {
            kind: Kind::User,
            message: "there is no wallet".to_owned(),
            hint: None,
        };
        self.0.as_ref().ok_or_else(none)
    }
}

impl context::Treasury for Money {
    fn balances(&self) -> Answer<'_, Balances> {
        Box::pin(async move { Ok(self.treasury()?.balances().await) })
    }

    fn top_up(&self, usd: u32) -> Answer<'_, Purchase> {
        Box::pin(async move {
            let treasury = self.treasury()?;
            let bought = treasury.buy_soon(usd).await.map_err(|error| HandleError::of(&error))?;
            let balances = treasury.balances().await;
            let (usd, paid, settled) = (bought.usd, bought.amount, bought.settled);
            Ok(Purchase { usd, paid, settled, balances })
        })
    }
}
