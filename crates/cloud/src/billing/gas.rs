//! The numbers of the account that pays gas: each is taken, kept going, and seen
//! to be in a block for good.
//!
//! A transaction that no block takes holds up all that come after it, whatever
//! became of its payment. So a number is never given up: what is dropped is sent
//! again, and what is stuck is replaced by the same with higher fees, until the
//! chain has counted past it.

use alloy_primitives::Bytes;
use automaton_core::faults::FaultPoint;
use automaton_core::time::Span;

use super::settlement::{SettlementError, SettlementTransaction};
use super::settler::{SettlementStepError, Settler};
use crate::db::{
    Fees, IncomingPayment, NewNonceReservation, NonceReservation, NonceReservationEnd,
};

/// How the account's transactions are paid and pushed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GasPolicy {
    /// How long a transaction may be in no block before it is replaced.
    pub replace_after: Span,
    /// The most that is paid for a unit of gas, in wei.
    pub fee_max: u64,
}

impl GasPolicy {
    /// Fees within the rules.
    fn bounded(self, fees: Fees) -> Fees {
        let max = fees.max.clamp(1, self.fee_max);
        Fees { max, priority: fees.priority.min(max) }
    }

    /// The fees of a replacement: an eighth more than before, since nodes take no
    /// smaller raise, or what is asked now, if that is more. None beyond the rules.
    fn raised(self, before: Fees, now: Fees) -> Option<Fees> {
        let more = |fee: u64| fee.saturating_add(fee.div_ceil(8));
        let now = self.bounded(now);
        let max = more(before.max).max(now.max);
        let priority = more(before.priority).max(now.priority).min(max);
        (max <= self.fee_max && max > before.max).then_some(Fees { max, priority })
    }
}

impl Settler {
    /// Takes a number for a payment, signs its transaction and sends it.
    pub(super) async fn send(
        &self,
        payment: &IncomingPayment,
        gas: u64,
    ) -> Result<(), SettlementStepError> {
        let fees = self.gas.bounded(self.chain.fees().await?);
        let intent = self.ids.id();
        self.db
            .reserve_nonce(NewNonceReservation { intent, payment: payment.id, gas, fees })
            .await?;
        let since = self.clock.now();
        let raw = None;
        let hashes = Vec::new();
        let payment_id = payment.id;
        let reservation = NonceReservation {
            intent,
            payment: payment_id,
            gas,
            nonce: None,
            fees,
            since,
            raw,
            hashes,
        };
        self.sign(&reservation, payment).await
    }

    /// Signs the newest attempt of a slot, stores it, and only then sends it.
    async fn sign(
        &self,
        reservation: &NonceReservation,
        payment: &IncomingPayment,
    ) -> Result<(), SettlementStepError> {
        let order = SettlementTransaction {
            intent: reservation.intent,
            nonce: reservation.nonce,
            authorization: &payment.authorization,
            signature: &payment.signature,
            gas: reservation.gas,
            fees: reservation.fees,
        };
        let signed = self.chain.sign(&order).await?;
        self.db.mark_signed(reservation.intent, signed.clone()).await?;
        self.faults.reach(FaultPoint::SettlementSubmitted);
        self.push(&signed.raw, payment.id, true).await
    }

    /// Sends a transaction. What became of it is read from the chain and not from
    /// a node's words: it may be known already, or its number taken. The first
    /// time they are told; that nobody can pay the gas is known from them alone.
    async fn push(
        &self,
        raw: &Bytes,
        payment: i64,
        is_first: bool,
    ) -> Result<(), SettlementStepError> {
        match self.chain.broadcast(raw).await {
            Err(error @ SettlementError::Rejected { .. }) => {
                if lacks_gas(&error) {
                    self.unpaid_gas().insert(payment);
                    // silent-ok: it may be that nobody waits.
                    self.changes.send(payment).ok();
                }
                if is_first {
                    (self.report)(format!(
                        "the transaction of payment {payment} is not taken: {error}"
                    ));
                }
            }
            sent => {
                sent?;
                self.unpaid_gas().remove(&payment);
            }
        }
        self.faults.reach(FaultPoint::SettlementBroadcast);
        Ok(())
    }

    /// One step of one slot; `count` numbers are in blocks for good.
    pub(super) async fn advance(
        &self,
        reservation: &NonceReservation,
        count: u64,
    ) -> Result<(), SettlementStepError> {
        let mut mined = false;
        for hash in &reservation.hashes {
            mined = mined || self.chain.outcome(*hash).await?.is_some();
        }
        if reservation.nonce.is_some_and(|nonce| nonce < count) {
            let end = if mined { NonceReservationEnd::Spent } else { NonceReservationEnd::Lost };
            return Ok(self.db.close_nonce(reservation.intent, end).await?);
        }
        if mined {
            // More blocks are waited for; this one may go away again.
            return Ok(());
        }
        let Some(raw) = &reservation.raw else {
            let payment = self.db.payment(reservation.payment).await?;
            return self.sign(reservation, &payment).await;
        };
        if self.clock.now().since(reservation.since) >= self.gas.replace_after
            && let Some(fees) = self.gas.raised(reservation.fees, self.chain.fees().await?)
        {
            return self.replace(reservation, fees).await;
        }
        self.push(raw, reservation.payment, false).await
    }

    async fn replace(
        &self,
        reservation: &NonceReservation,
        fees: Fees,
    ) -> Result<(), SettlementStepError> {
        (self.report)(format!(
            "the transaction of payment {} is in no block; it is replaced, for {} instead of {} \
             wei a unit of gas",
            reservation.payment, fees.max, reservation.fees.max
        ));
        self.db.raise_nonce_fees(reservation.intent, fees).await?;
        let payment = self.db.payment(reservation.payment).await?;
        self.sign(&NonceReservation { fees, raw: None, ..reservation.clone() }, &payment).await
    }
}

/// Whether a node says that the account cannot pay. There is no code for it, and all of
/// them use these words in one spelling or another.
fn lacks_gas(error: &SettlementError) -> bool {
    let letters = error.to_string().to_lowercase().replace(' ', "");
    letters.contains("insufficientfunds")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_replacement_pays_an_eighth_more_and_never_beyond_the_rules(
            before in (1_u64..1 << 62, 0_u64..1 << 62),
            now in (any::<u64>(), any::<u64>()),
            fee_max in 1_u64..1 << 62,
        ) {
            let fees = |(max, priority): (u64, u64)| Fees { max, priority: priority.min(max) };
            let (before, now) = (fees(before), fees(now));
            let rules = GasPolicy { replace_after: Span::ZERO, fee_max };
            let bounded = rules.bounded(now);
            prop_assert!(bounded.max <= fee_max && bounded.priority <= bounded.max);
            let eighth = |old: u64, new: u64| u128::from(new) * 8 >= u128::from(old) * 9;
            match rules.raised(before, now) {
                Some(fees) => {
                    prop_assert!(fees.max <= fee_max && fees.priority <= fees.max);
                    prop_assert!(eighth(before.max, fees.max));
                    prop_assert!(eighth(before.priority, fees.priority));
                    prop_assert!(fees.max >= bounded.max && fees.priority >= bounded.priority);
                }
                None => prop_assert!(!eighth(before.max, fee_max) || before.max >= fee_max),
            }
        }
    }
}
