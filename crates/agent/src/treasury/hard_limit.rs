//! The limits that no approval raises, looked at before the creator is asked about a call.
//!
//! A question whose yes would be followed by a refusal is not asked: the call is refused with
//! the limit. Nothing is written down here, and nothing promised: the limits are looked at once
//! more when the payment is made.

use automaton_core::intent::Intent;
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::payment::{Purpose, Rail};
use automaton_policy::{HardLimit, ReasonCode};

use super::balances::in_time;
use super::topup::price;
use super::{PaymentContext, Treasury, TreasuryError};

/// The smallest payment there is. A request whose price is not known yet costs at least that,
/// where it costs anything.
const SMALLEST: Microcents = Microcents::new(1);

impl Treasury {
    /// Returns the first limit that would refuse the payment of a call now, even if the creator
    /// approves the call.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub(crate) async fn hard_limit(
        &self,
        intents: &[Intent],
    ) -> Result<Option<HardLimit>, TreasuryError> {
        for intent in intents {
            let found = match intent {
                Intent::Transfer { cents, .. } => self.limit_of_transfer(*cents).await?,
                Intent::FetchPaid { .. } => self.limit_of_request().await?,
                Intent::TopUp { usd } => self.limit_of_purchase(*usd).await,
                _ => None,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    async fn limit_of_transfer(&self, cents: u64) -> Result<Option<HardLimit>, TreasuryError> {
        let cents = i64::try_from(cents).unwrap_or(i64::MAX);
        let worth = Microcents::from_cents(cents)?;
        let have = self.credits().await;
        let spender = (Purpose::Transfer, Rail::Credits, None);
        let facts = self.payment_facts(spender, worth, have).await?;
        match self.limits.hard_limit(&facts) {
            Some((code, reason)) => Ok(Some(HardLimit { code, reason })),
            None => Ok(self.ceiling_of_cloud(cents).await),
        }
    }

    /// The ceiling that the cloud keeps. A cloud that names none is asked by the
    /// transfer itself.
    async fn ceiling_of_cloud(&self, cents: i64) -> Option<HardLimit> {
        let PaymentContext { cloud, key, .. } = &self.payment_context;
        let told = in_time(cloud.transfer_ceiling(key.as_ref()?)).await?;
        let fits = told.transferred_cents.saturating_add(cents) <= told.ceiling_cents;
        let reason = format!(
            "{cents} cents after {} in 24 hours are more than the ceiling of {} cents that the \
             cloud keeps.",
            told.transferred_cents, told.ceiling_cents
        );
        (!fits).then_some(HardLimit { code: ReasonCode::SpendLimitExceeded, reason })
    }

    async fn limit_of_request(&self) -> Result<Option<HardLimit>, TreasuryError> {
        // silent-ok: why it is unknown changes nothing; the limits refuse it.
        let have = in_time(self.usdc()).await.and_then(|usdc| usdc.face_value().ok());
        let facts = self.payment_facts((Purpose::X402, Rail::Usdc, None), SMALLEST, have).await?;
        let found = self.limits.hard_limit(&facts);
        Ok(found.map(|(code, reason)| HardLimit { code, reason }))
    }

    /// Returns the objection of the wallet or the signer to a purchase of credits.
    async fn limit_of_purchase(&self, usd: u32) -> Option<HardLimit> {
        // silent-ok: the rule `financial.tier` refuses what is no tier.
        let price: MicroUsdc = price(usd).ok()?;
        let Some(have) = in_time(self.usdc()).await else {
            let reason = "What the wallet holds cannot be read, and what is unknown is not spent.";
            return Some(HardLimit { code: ReasonCode::BalanceUnknown, reason: reason.to_owned() });
        };
        if have < price {
            let reason = format!("The wallet holds {have}, and {price} would be paid.");
            return Some(HardLimit { code: ReasonCode::SpendLimitExceeded, reason });
        }
        // silent-ok: a signer that cannot be asked refuses by itself.
        let standing = in_time(self.payment_context.signer.standing()).await?;
        let refusal = standing.refusal_for(price)?;
        let reason = format!("The signer refuses it. {refusal}");
        Some(HardLimit { code: ReasonCode::SpendLimitExceeded, reason })
    }
}
