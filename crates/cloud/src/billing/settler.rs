//! Brings every stored payment to its end: one task, one payment at a time.
//!
//! It knows nothing but the stored rows and the chain, so a start after a crash
//! is nothing special, and a client that hangs up changes nothing. A payment is
//! booked when its transfer is in a block that stays; until then the block may go
//! away, and the transaction is sent again. It must never take a second number
//! for a payment while the first could still carry its transaction: the
//! authorization's nonce is what makes two of them harmless.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{B256, U256};
use automaton_core::error::chain;
use automaton_core::faults::{FaultPoint, Faults};
use automaton_core::id::Mint;
use automaton_core::time::{Clock, Span};
use automaton_sqlite::Fault;
use tokio::sync::{Notify, watch};

use super::facilitator::{NONCE_USED, SIMULATION_FAILED, TRANSACTION_FAILED, VALID_BEFORE};
use super::gas::GasRules;
use super::settlement::{Mined, Moved, Settlement, SettlementError, TxOutcome};
use crate::db::{Db, DbError, Payment, PaymentState};
use crate::error::Report;

/// How often a payment that waits for its block is looked at.
const PACE: Duration = Duration::from_millis(500);
/// How long to wait when something failed, so that nobody is flooded.
const TROUBLED: Duration = Duration::from_secs(3);
/// How often the table is looked at although nobody said that there is work.
const IDLE: Duration = Duration::from_secs(30);
/// How long the log of a transfer whose nonce is used is waited for.
const LOGS_WITHIN: Span = Span::from_secs(600);

/// The task's hands.
pub(crate) struct Settler {
    pub(crate) db: Arc<dyn Db>,
    pub(crate) chain: Arc<dyn Settlement>,
    pub(crate) gas: GasRules,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) mint: Mint,
    pub(crate) report: Report,
    pub(crate) faults: Arc<dyn Faults>,
    /// Says that a payment was stored.
    pub(crate) wake: Notify,
    /// Counts the changes of payments, for those who wait for one.
    pub(crate) changes: watch::Sender<u64>,
}

/// Why a step went no further.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    #[error(transparent)]
    Db(#[from] DbError),
    #[error(transparent)]
    Chain(#[from] SettlementError),
}

impl Settler {
    /// Works until it is dropped.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            let pause = self.round().await.unwrap_or_else(|error| {
                (self.report)(format!("payments have to wait: {}", chain(&error)));
                TROUBLED
            });
            // silent-ok: both ends of the pause mean the same.
            tokio::time::timeout(pause, self.wake.notified()).await.ok();
        }
    }

    /// One step of everything that is under way; how long to wait at least before
    /// the next.
    async fn round(&self) -> Result<Duration, StepError> {
        let payments = self.db.unfinished_payments().await?;
        let mut pause = if payments.is_empty() { IDLE } else { PACE };
        for payment in &payments {
            let stepped = self.step(payment).await;
            self.changes.send_modify(|count| *count = count.wrapping_add(1));
            pause = pause.max(self.pace_after(payment.id, stepped));
        }
        // Asked for after the payments, whose numbers are among them now.
        let slots = self.db.open_slots().await?;
        if slots.is_empty() {
            return Ok(pause);
        }
        let mut pause = if payments.is_empty() { PACE } else { pause };
        let count = self.chain.gas_nonce().await?;
        for slot in &slots {
            pause = pause.max(self.pace_after(slot.payment, self.keep(slot, count).await));
        }
        Ok(pause)
    }

    fn pace_after(&self, payment: i64, stepped: Result<(), StepError>) -> Duration {
        match stepped {
            Ok(()) => PACE,
            Err(error) => {
                (self.report)(format!("payment {payment} has to wait: {}", chain(&error)));
                TROUBLED
            }
        }
    }

    /// One step of one payment. A payment that was given up is looked at again
    /// when its client comes back: somebody else may have carried it out.
    pub(crate) async fn step(&self, payment: &Payment) -> Result<(), StepError> {
        match &payment.state {
            PaymentState::Settled(_) => Ok(()),
            PaymentState::Failed(_) => {
                match self.chain.transfer_of(&payment.authorization).await? {
                    Some(Moved { transaction, stays: true }) => {
                        self.settle(payment, transaction).await
                    }
                    _ => Ok(()),
                }
            }
            PaymentState::Begun => self.go_on(payment, &[]).await,
            PaymentState::Submitted(hashes) => self.go_on(payment, hashes).await,
        }
    }

    /// Looks for what was sent, and sends what was not.
    async fn go_on(&self, payment: &Payment, sent: &[B256]) -> Result<(), StepError> {
        let mined = self.mined(sent).await?;
        if let Some((hash, Mined { outcome: TxOutcome::Succeeded, stays })) = mined {
            return if stays { self.settle(payment, hash).await } else { Ok(()) };
        }
        // Before the state: no block after this time can use what is unused then.
        let is_over = self.is_over(payment).await?;
        if self.chain.authorization_used(&payment.authorization).await? {
            return self.used(payment).await;
        }
        if let Some((_, Mined { stays, .. })) = mined {
            return if stays { self.give_up(payment, TRANSACTION_FAILED.0).await } else { Ok(()) };
        }
        if is_over {
            return self.give_up(payment, VALID_BEFORE.0).await;
        }
        if payment.has_open_slot {
            // Whoever keeps the slot sends it again.
            return Ok(());
        }
        self.submit(payment).await
    }

    /// The newest of these transactions that is in a block; one that succeeded
    /// before any that did not.
    async fn mined(&self, sent: &[B256]) -> Result<Option<(B256, Mined)>, StepError> {
        let mut found = None;
        for hash in sent.iter().rev() {
            match self.chain.outcome(*hash).await? {
                Some(mined) if mined.outcome == TxOutcome::Succeeded => {
                    return Ok(Some((*hash, mined)));
                }
                Some(mined) => found = found.or(Some((*hash, mined))),
                None => {}
            }
        }
        Ok(found)
    }

    /// Sends a payment for which nothing can be on its way.
    async fn submit(&self, payment: &Payment) -> Result<(), StepError> {
        let gas = match self.chain.simulate(&payment.authorization, &payment.signature).await {
            Err(error @ SettlementError::Rejected { .. }) => {
                (self.report)(format!("payment {} is refused: {error}", payment.id));
                return self.give_up(payment, SIMULATION_FAILED.0).await;
            }
            gas => gas?,
        };
        self.send(payment, gas).await?;
        // A chain that makes a block at once has the receipt by now.
        match self.db.payment(payment.id).await?.state {
            PaymentState::Submitted(sent) => match self.mined(&sent).await? {
                Some((hash, Mined { outcome: TxOutcome::Succeeded, stays: true })) => {
                    self.settle(payment, hash).await
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// The nonce is used: by our transfer, whoever sent it, or by something else.
    async fn used(&self, payment: &Payment) -> Result<(), StepError> {
        match self.chain.transfer_of(&payment.authorization).await? {
            Some(Moved { transaction, stays: true }) => self.settle(payment, transaction).await,
            Some(_) => Ok(()),
            // A node may know the nonce before it knows the logs.
            None if self.clock.now().since(payment.begun_at) <= LOGS_WITHIN => Ok(()),
            None => self.give_up(payment, NONCE_USED.0).await,
        }
    }

    async fn settle(&self, payment: &Payment, transaction: B256) -> Result<(), StepError> {
        match self.db.mark_settled(payment.id, transaction).await {
            Err(DbError::Sql { source, .. }) if Fault::of(&source) == Fault::Constraint => {
                // The transaction has settled another payment; one is all it moved.
                self.give_up(payment, NONCE_USED.0).await
            }
            settled => {
                settled?;
                self.faults.reach(FaultPoint::PaymentSettled);
                Ok(())
            }
        }
    }

    async fn give_up(&self, payment: &Payment, reason: &str) -> Result<(), StepError> {
        if matches!(payment.state, PaymentState::Failed(_)) {
            return Ok(());
        }
        Ok(self.db.mark_failed(payment.id, reason.to_owned()).await?)
    }

    /// Whether no block can carry the transfer any more. As long as nobody but us has
    /// it our own clock may say so; what was signed is over when the chain says it.
    async fn is_over(&self, payment: &Payment) -> Result<bool, StepError> {
        let is_out = payment.has_open_slot || payment.state != PaymentState::Begun;
        let now = if is_out { self.chain.time().await? } else { self.clock.now() };
        let seconds = now.as_millis().max(0).unsigned_abs() / 1000;
        Ok(U256::from(seconds) >= payment.authorization.valid_before)
    }
}
