//! Brings every stored payment to its end: one task, one payment at a time.
//!
//! It knows nothing but the stored rows and the chain, so a start after a crash
//! is nothing special, and a client that hangs up changes nothing. One task also
//! means that no two transactions fight for the same number of the gas account.
//! It must never sign a second transaction while the first could still succeed
//! alone: the authorization's nonce is what makes two of them harmless.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{B256, U256};
use automaton_core::error::chain;
use automaton_core::faults::{FaultPoint, Faults};
use automaton_core::time::{Clock, Span};
use automaton_sqlite::Fault;
use tokio::sync::{Notify, watch};

use super::facilitator::{
    NONCE_USED, SIMULATION_FAILED, Settlement, SettlementError, TRANSACTION_FAILED, TxOutcome,
    VALID_BEFORE,
};
use crate::db::{Db, DbError, Payment, PaymentState, Submission};
use crate::error::Report;

/// How often a payment that waits for its block is looked at.
const PACE: Duration = Duration::from_millis(500);
/// How long to wait when something failed, so that nobody is flooded.
const TROUBLED: Duration = Duration::from_secs(3);
/// How often the table is looked at although nobody said that there is work.
const IDLE: Duration = Duration::from_secs(30);
/// How long after an authorization's end a block may still carry its transfer,
/// in seconds: the clocks of chain and cloud differ.
const GRACE_SECS: u64 = 60;
/// How long the log of a transfer whose nonce is used is waited for.
const LOGS_WITHIN: Span = Span::from_secs(600);

/// The task's hands.
pub(crate) struct Settler {
    pub(crate) db: Arc<dyn Db>,
    pub(crate) chain: Arc<dyn Settlement>,
    pub(crate) clock: Arc<dyn Clock>,
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
            let pause = match self.db.unfinished_payments().await {
                Ok(payments) if payments.is_empty() => IDLE,
                Ok(payments) => {
                    let mut pause = PACE;
                    for payment in &payments {
                        pause = pause.max(self.advance(payment).await);
                    }
                    pause
                }
                Err(error) => {
                    (self.report)(format!("payments cannot be read: {}", chain(&error)));
                    TROUBLED
                }
            };
            // silent-ok: both ends of the pause mean the same.
            tokio::time::timeout(pause, self.wake.notified()).await.ok();
        }
    }

    /// One step of one payment; gives how long to wait at least before the next.
    async fn advance(&self, payment: &Payment) -> Duration {
        let stepped = self.step(payment).await;
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
        match stepped {
            Ok(()) => PACE,
            Err(error) => {
                (self.report)(format!("payment {} has to wait: {}", payment.id, chain(&error)));
                TROUBLED
            }
        }
    }

    /// One step of one payment. A payment that was given up is looked at again
    /// when its client comes back: somebody else may have carried it out.
    pub(crate) async fn step(&self, payment: &Payment) -> Result<(), StepError> {
        let authorization = &payment.authorization;
        match &payment.state {
            PaymentState::Settled(_) => Ok(()),
            PaymentState::Failed(_) => match self.chain.transfer_of(authorization).await? {
                Some(transaction) => self.settle(payment, transaction).await,
                None => Ok(()),
            },
            PaymentState::Begun => {
                if self.chain.authorization_used(authorization).await? {
                    return self.used(payment).await;
                }
                if self.is_over(payment) {
                    return self.give_up(payment, VALID_BEFORE.0).await;
                }
                self.submit(payment).await
            }
            PaymentState::Submitted(submission) => self.follow(payment, submission).await,
        }
    }

    /// A transaction is signed: look for it, send it again, or replace it.
    async fn follow(&self, payment: &Payment, sent: &Submission) -> Result<(), StepError> {
        let outcome = self.chain.outcome(sent.hash).await?;
        if outcome == Some(TxOutcome::Succeeded) {
            return self.settle(payment, sent.hash).await;
        }
        if self.chain.authorization_used(&payment.authorization).await? {
            return self.used(payment).await;
        }
        if outcome == Some(TxOutcome::Reverted) {
            return self.give_up(payment, TRANSACTION_FAILED.0).await;
        }
        if self.is_over(payment) {
            return self.give_up(payment, VALID_BEFORE.0).await;
        }
        let number_taken = self.chain.gas_nonce().await? > sent.gas_nonce;
        // Asked once more: it may have got into a block between the two questions.
        if number_taken && self.chain.outcome(sent.hash).await?.is_none() {
            return self.submit(payment).await;
        }
        self.broadcast(sent).await
    }

    /// Signs, stores, and only then broadcasts.
    async fn submit(&self, payment: &Payment) -> Result<(), StepError> {
        let prepared = self.chain.prepare(&payment.authorization, &payment.signature).await;
        let submission = match prepared {
            Err(error @ SettlementError::Rejected { .. }) => {
                (self.report)(format!("payment {} is refused: {error}", payment.id));
                return self.give_up(payment, SIMULATION_FAILED.0).await;
            }
            prepared => prepared?,
        };
        self.db.mark_submitted(payment.id, submission.clone()).await?;
        self.faults.reach(FaultPoint::PaymentSubmitted);
        self.broadcast(&submission).await?;
        // A chain that makes a block at once has the receipt by now.
        if self.chain.outcome(submission.hash).await? == Some(TxOutcome::Succeeded) {
            self.settle(payment, submission.hash).await?;
        }
        Ok(())
    }

    async fn broadcast(&self, submission: &Submission) -> Result<(), StepError> {
        self.chain.broadcast(&submission.raw).await?;
        self.faults.reach(FaultPoint::PaymentBroadcast);
        Ok(())
    }

    /// The nonce is used: by our transfer, whoever sent it, or by something else.
    async fn used(&self, payment: &Payment) -> Result<(), StepError> {
        match self.chain.transfer_of(&payment.authorization).await? {
            Some(transaction) => self.settle(payment, transaction).await,
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

    /// Whether no block can carry the transfer any more.
    fn is_over(&self, payment: &Payment) -> bool {
        let now = self.clock.now().as_millis().max(0).unsigned_abs() / 1000;
        U256::from(now.saturating_sub(GRACE_SECS)) >= payment.authorization.valid_before
    }
}
