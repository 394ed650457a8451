//! The transactions that carry payments to the chain, each with a nonce of the account that pays
//! gas.
//!
//! [`automaton_wallet::transactions`] decides each step. Here are its effects: the rows, the
//! chain, the reports to the operator, and the fault points. A nonce outlives its payment: it is
//! kept going until the chain has counted past it, since all later ones wait for it.

use alloy_primitives::{B256, Bytes};
use automaton_core::faults::FaultPoint;
use automaton_wallet::transactions::{
    self, Fees, OpenTransaction, Submission, TransactionDriver, TransactionEnd,
};

use super::settlement::{SettlementError, SettlementTransaction};
use super::settler::{SettlementStepError, Settler};
use crate::db::{IncomingPayment, NewNonceReservation, NonceReservation};

/// The transaction of one payment.
struct PaymentTransaction<'a> {
    settler: &'a Settler,
    payment_id: i64,
    /// The gas limit, for a new intent.
    gas: u64,
    /// The payment, if it was read already.
    payment: Option<&'a IncomingPayment>,
}

impl Settler {
    /// Reserves a nonce for a payment, signs its transaction and sends it.
    pub(super) async fn send(
        &self,
        payment: &IncomingPayment,
        gas: u64,
    ) -> Result<(), SettlementStepError> {
        let driver = PaymentTransaction {
            settler: self,
            payment_id: payment.id,
            gas,
            payment: Some(payment),
        };
        transactions::reserve_and_send(&driver, self.gas).await
    }

    /// Takes one step of one reservation; `count` transactions are in blocks that stay.
    pub(super) async fn advance(
        &self,
        reservation: &NonceReservation,
        count: u64,
    ) -> Result<(), SettlementStepError> {
        let NonceReservation { payment, transaction } = reservation;
        let driver = PaymentTransaction {
            settler: self,
            payment_id: *payment,
            gas: transaction.gas,
            payment: None,
        };
        transactions::advance(&driver, self.gas, transaction, count, self.clock.now()).await
    }
}

impl TransactionDriver for PaymentTransaction<'_> {
    type Error = SettlementStepError;

    async fn current_fees(&self) -> Result<Fees, SettlementStepError> {
        Ok(self.settler.chain.fees().await?)
    }

    async fn is_mined(&self, hash: B256) -> Result<bool, SettlementStepError> {
        Ok(self.settler.chain.outcome(hash).await?.is_some())
    }

    async fn store_intent(&self, fees: Fees) -> Result<OpenTransaction, SettlementStepError> {
        let Self { settler, payment_id, gas, .. } = *self;
        let intent = settler.ids.id();
        let reservation = NewNonceReservation { intent, payment: payment_id, gas, fees };
        settler.db.reserve_nonce(reservation).await?;
        Ok(OpenTransaction::new(intent, gas, fees, settler.clock.now()))
    }

    async fn store_fees(
        &self,
        transaction: &OpenTransaction,
        fees: Fees,
    ) -> Result<(), SettlementStepError> {
        (self.settler.report)(format!(
            "the transaction of payment {} is in no block; it is replaced, for {} instead of {} \
             wei a unit of gas",
            self.payment_id, fees.max, transaction.fees.max
        ));
        Ok(self.settler.db.raise_nonce_fees(transaction.intent, fees).await?)
    }

    async fn sign(&self, transaction: &OpenTransaction) -> Result<Submission, SettlementStepError> {
        let stored;
        let payment = match self.payment {
            Some(payment) => payment,
            None => {
                stored = self.settler.db.payment(self.payment_id).await?;
                &stored
            }
        };
        let order = SettlementTransaction {
            intent: transaction.intent,
            nonce: transaction.nonce,
            authorization: &payment.authorization,
            signature: &payment.signature,
            gas: transaction.gas,
            fees: transaction.fees,
        };
        Ok(self.settler.chain.sign(&order).await?)
    }

    async fn store_signed(
        &self,
        transaction: &OpenTransaction,
        signed: &Submission,
    ) -> Result<(), SettlementStepError> {
        self.settler.db.mark_signed(transaction.intent, signed.clone()).await?;
        self.settler.faults.reach(FaultPoint::SettlementSubmitted);
        Ok(())
    }

    /// Sends the bytes. A refusal is reported once. Only a refusal tells that the account cannot
    /// pay the gas; everything else about the transaction is read from the chain, since it may be
    /// known already, or its nonce taken.
    async fn broadcast(&self, raw: &Bytes, is_first: bool) -> Result<(), SettlementStepError> {
        let Self { settler, payment_id, .. } = *self;
        match settler.chain.broadcast(raw).await {
            Err(error @ SettlementError::Rejected { .. }) => {
                if lacks_gas(&error) {
                    settler.unpaid_gas().insert(payment_id);
                    // silent-ok: it may be that nobody waits.
                    settler.changes.send(payment_id).ok();
                }
                if is_first {
                    (settler.report)(format!(
                        "the transaction of payment {payment_id} is not taken: {error}"
                    ));
                }
            }
            sent => {
                sent?;
                settler.unpaid_gas().remove(&payment_id);
            }
        }
        settler.faults.reach(FaultPoint::SettlementBroadcast);
        Ok(())
    }

    async fn store_end(
        &self,
        transaction: &OpenTransaction,
        end: TransactionEnd,
    ) -> Result<(), SettlementStepError> {
        Ok(self.settler.db.close_nonce(transaction.intent, end).await?)
    }
}

/// Returns whether a node says that the account cannot pay. There is no code for it, and all
/// nodes use these words in one spelling or another.
fn lacks_gas(error: &SettlementError) -> bool {
    let letters = error.to_string().to_lowercase().replace(' ', "");
    letters.contains("insufficientfunds")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_without_gas_is_known_by_its_words_in_any_spelling() {
        for (reason, is_poor) in [
            ("insufficient funds for gas * price + value", true),
            ("InsufficientFunds", true),
            ("nonce too low", false),
            ("replacement transaction underpriced", false),
        ] {
            let reason = reason.to_owned();
            let error = SettlementError::Rejected { method: "eth_sendRawTransaction", reason };
            assert_eq!(lacks_gas(&error), is_poor, "{error}");
        }
    }
}
