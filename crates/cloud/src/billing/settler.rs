//! Brings every stored payment to its end: one task that works on many payments at a time.
//!
//! A payment and its nonces for gas are worked on once at a time, and their rows are read while
//! no step runs for them. So a step never works from a row that another one is changing. The one
//! task polls all steps, so a history depends only on the order of its answers. The task knows
//! only the stored rows and the chain. A start after a crash is therefore nothing special, and a
//! client that hangs up changes nothing. A payment is booked when its transfer is in a block that
//! stays. Until then the block may go away, and the transaction is sent again. The task must
//! never reserve a second nonce for a payment while the first could still carry its transaction.
//! If two transactions ever carry one payment, the authorization's nonce makes the second
//! harmless.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use alloy_primitives::{B256, U256};
use automaton_core::error::chain;
use automaton_core::faults::{FaultPoint, Faults};
use automaton_core::id::IdGenerator;
use automaton_core::time::{Clock, Span};
use automaton_sqlite::{SqliteError, SqliteErrorKind};
use automaton_wallet::transactions::FeePolicy;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{Notify, OnceCell, Semaphore, broadcast};
use tokio::time::{Instant, sleep, sleep_until};

use super::facilitator::{NONCE_USED, SIMULATION_FAILED, TRANSACTION_FAILED, VALID_BEFORE};
use super::settlement::{
    Settlement, SettlementError, TransactionInclusion, TransferEvent, TxOutcome,
};
use crate::db::{Db, DbError, IncomingPayment, IncomingPaymentState, NonceReservation, SettledBy};
use crate::error::OperatorNotifier;

/// The time between steps of a payment that waits for its block.
const PACE: Duration = Duration::from_millis(500);
/// The pause of a payment after a failed step, so that neither node nor operator is flooded.
const TROUBLED: Duration = Duration::from_secs(3);
/// The time between reads of the table without a sign of work.
const IDLE: Duration = Duration::from_secs(30);
/// The most payments that are worked on at a time; the others wait for their turn.
const AT_ONCE: usize = 32;
/// The most changes that a slow listener may be behind before it has to read the row itself.
pub(crate) const HEARD_MAX: usize = 256;
/// The time in which the log of a transfer with a used nonce has to appear.
const LOGS_WITHIN: Span = Span::from_secs(600);

/// The dependencies and the shared state of the task.
pub(crate) struct Settler {
    pub(crate) db: Db,
    pub(crate) chain: Arc<dyn Settlement>,
    pub(crate) gas: FeePolicy,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: IdGenerator,
    pub(crate) report: OperatorNotifier,
    pub(crate) faults: Arc<dyn Faults>,
    /// Payments that were stored and have had no step yet.
    pub(crate) fresh: PaymentQueue,
    /// Payments whose transaction the chain refuses, since the account cannot pay its gas.
    pub(crate) unpaid_gas: Mutex<HashSet<i64>>,
    /// The ids of payments that had a step, for the requests that wait for them.
    pub(crate) changes: broadcast::Sender<i64>,
}

/// The payments that were just stored, never more than may be unfinished.
#[derive(Default)]
pub(crate) struct PaymentQueue {
    ids: Mutex<Vec<i64>>,
    wake: Notify,
}

impl PaymentQueue {
    pub(crate) fn push(&self, id: i64) {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).push(id);
        self.wake.notify_one();
    }

    fn take(&self) -> Vec<SettlementStep> {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        ids.drain(..).map(SettlementStep::new).collect()
    }
}

/// The work on a payment: a step of it, and one of each of its nonces.
struct SettlementStep {
    payment: i64,
    nonces: Vec<NonceReservation>,
    /// The number of the account's transactions in blocks that stay, read when it is needed.
    count: Arc<OnceCell<u64>>,
}

impl SettlementStep {
    fn new(payment: i64) -> Self {
        Self { payment, nonces: Vec::new(), count: Arc::default() }
    }
}

/// The reason why a step went no further.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettlementStepError {
    #[error(transparent)]
    Db(#[from] DbError),
    #[error(transparent)]
    Chain(#[from] SettlementError),
}

impl Settler {
    /// Settles payments until it is dropped.
    pub(crate) async fn run(self: Arc<Self>) {
        let permits = Semaphore::new(AT_ONCE);
        let mut running = FuturesUnordered::new();
        let mut held = HashSet::new();
        let mut next = Instant::now();
        loop {
            let steps;
            (steps, next) = tokio::select! {
                // In order: a draw would make each history another one.
                biased;
                Some(payment) = running.next() => {
                    held.remove(&payment);
                    continue;
                }
                () = self.fresh.wake.notified() => {
                    (self.fresh.take(), next.min(Instant::now() + PACE))
                }
                () = sleep_until(next) => {
                    let (steps, pause) = self.plan_round().await;
                    (steps, Instant::now() + pause)
                }
            };
            for step in steps {
                // No step ran while the rows were read, so the row of a payment that is not
                // held is current.
                if held.insert(step.payment) {
                    running.push(self.process(step, &permits));
                }
            }
        }
    }

    /// Returns the reason why a payment goes no further for now, if it is known.
    pub(crate) fn held_up(&self, payment: i64) -> Option<String> {
        let held = self.unpaid_gas().contains(&payment);
        let payer = self.chain.payer();
        held.then(|| {
            format!("the account by which this cloud pays for gas, {payer}, holds too little")
        })
    }

    pub(super) fn unpaid_gas(&self) -> MutexGuard<'_, HashSet<i64>> {
        self.unpaid_gas.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all payments under way, and the pause before the next round.
    async fn plan_round(&self) -> (Vec<SettlementStep>, Duration) {
        match self.list_steps().await {
            Ok(steps) if steps.is_empty() => (steps, IDLE),
            Ok(steps) => (steps, PACE),
            Err(error) => {
                (self.report)(format!("payments have to wait: {}", chain(&error)));
                (Vec::new(), TROUBLED)
            }
        }
    }

    async fn list_steps(&self) -> Result<Vec<SettlementStep>, DbError> {
        let mut steps = BTreeMap::new();
        for IncomingPayment { id, .. } in self.db.unfinished_payments().await? {
            steps.insert(id, SettlementStep::new(id));
        }
        let count = Arc::default();
        for reservation in self.db.open_nonces().await? {
            let step = steps
                .entry(reservation.payment)
                .or_insert_with(|| SettlementStep::new(reservation.payment));
            step.count = Arc::clone(&count);
            step.nonces.push(reservation);
        }
        Ok(steps.into_values().collect())
    }

    /// Works on a payment and returns its id. A payment that fails stays held for a while, so that
    /// it is left alone and the others go on.
    async fn process(&self, step: SettlementStep, permits: &Semaphore) -> i64 {
        let id = step.payment;
        let processed = {
            // silent-ok: nobody closes it.
            let _permit = permits.acquire().await.ok();
            let stepped = self.step_stored(id).await;
            // silent-ok: it may be that nobody waits.
            self.changes.send(id).ok();
            let advanced = self.advance_nonces(&step).await;
            stepped.and(advanced)
        };
        if let Err(error) = processed {
            (self.report)(format!("payment {id} has to wait: {}", chain(&error)));
            sleep(TROUBLED).await;
        }
        id
    }

    async fn step_stored(&self, id: i64) -> Result<(), SettlementStepError> {
        let payment = self.db.payment(id).await?;
        match payment.state {
            IncomingPaymentState::Begun | IncomingPaymentState::Submitted(_) => {
                self.step(&payment).await
            }
            // Only its nonce needs work.
            IncomingPaymentState::Settled(_) | IncomingPaymentState::Failed(_) => {
                self.unpaid_gas().remove(&id);
                Ok(())
            }
        }
    }

    async fn advance_nonces(&self, step: &SettlementStep) -> Result<(), SettlementStepError> {
        for reservation in &step.nonces {
            let count = step.count.get_or_try_init(|| self.chain.gas_nonce()).await?;
            self.advance(reservation, *count).await?;
        }
        Ok(())
    }

    /// Takes one step of a payment. A payment that was given up gets one when its client comes
    /// back, since somebody else may have carried it out.
    pub(crate) async fn step(&self, payment: &IncomingPayment) -> Result<(), SettlementStepError> {
        match &payment.state {
            IncomingPaymentState::Settled(_) => Ok(()),
            IncomingPaymentState::Failed(_) => {
                match self.chain.transfer_of(&payment.authorization).await? {
                    Some(TransferEvent { transaction, log, stays: true }) => {
                        self.settle(payment, SettledBy { transaction, log: Some(log) }).await
                    }
                    _ => Ok(()),
                }
            }
            IncomingPaymentState::Begun => self.go_on(payment, &[]).await,
            IncomingPaymentState::Submitted(hashes) => self.go_on(payment, hashes).await,
        }
    }

    /// Finds the transaction that was sent, or sends one.
    async fn go_on(
        &self,
        payment: &IncomingPayment,
        sent: &[B256],
    ) -> Result<(), SettlementStepError> {
        let mined = self.mined(sent).await?;
        if let Some((hash, TransactionInclusion { outcome: TxOutcome::Succeeded, stays })) = mined {
            let by = SettledBy::transaction(hash);
            return if stays { self.settle(payment, by).await } else { Ok(()) };
        }
        // Before the state: no block after this time can use what is unused then.
        let is_over = self.is_over(payment).await?;
        if self.chain.authorization_used(&payment.authorization).await? {
            return self.used(payment).await;
        }
        if let Some((_, TransactionInclusion { stays, .. })) = mined {
            return if stays { self.give_up(payment, TRANSACTION_FAILED.0).await } else { Ok(()) };
        }
        if is_over {
            return self.give_up(payment, VALID_BEFORE.0).await;
        }
        if payment.has_open_nonce {
            // The step of its nonce sends it again.
            return Ok(());
        }
        self.submit(payment).await
    }

    /// Returns the newest of these transactions that is in a block, preferring one that succeeded.
    async fn mined(
        &self,
        sent: &[B256],
    ) -> Result<Option<(B256, TransactionInclusion)>, SettlementStepError> {
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

    /// Sends a payment for which no transaction can be under way.
    async fn submit(&self, payment: &IncomingPayment) -> Result<(), SettlementStepError> {
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
            IncomingPaymentState::Submitted(sent) => match self.mined(&sent).await? {
                Some((
                    hash,
                    TransactionInclusion { outcome: TxOutcome::Succeeded, stays: true },
                )) => self.settle(payment, SettledBy::transaction(hash)).await,
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Handles a used authorization: our transfer used it, whoever sent that, or something else.
    async fn used(&self, payment: &IncomingPayment) -> Result<(), SettlementStepError> {
        match self.chain.transfer_of(&payment.authorization).await? {
            Some(TransferEvent { transaction, log, stays: true }) => {
                self.settle(payment, SettledBy { transaction, log: Some(log) }).await
            }
            Some(_) => Ok(()),
            // A node may know the nonce before it knows the logs.
            None if self.clock.now().since(payment.begun_at) <= LOGS_WITHIN => Ok(()),
            None => self.give_up(payment, NONCE_USED.0).await,
        }
    }

    async fn settle(
        &self,
        payment: &IncomingPayment,
        by: SettledBy,
    ) -> Result<(), SettlementStepError> {
        match self.db.mark_settled(payment.id, by).await {
            Err(DbError::Database(SqliteError::Operation { source, .. }))
                if SqliteErrorKind::from_error(&source) == SqliteErrorKind::Constraint =>
            {
                // This very transfer has settled another payment.
                self.give_up(payment, NONCE_USED.0).await
            }
            settled => {
                settled?;
                self.faults.reach(FaultPoint::SettlementBooked);
                Ok(())
            }
        }
    }

    async fn give_up(
        &self,
        payment: &IncomingPayment,
        reason: &str,
    ) -> Result<(), SettlementStepError> {
        if matches!(payment.state, IncomingPaymentState::Failed(_)) {
            return Ok(());
        }
        Ok(self.db.mark_failed(payment.id, reason.to_owned()).await?)
    }

    /// Returns whether no block can carry the transfer any more. Our own clock decides as long as
    /// nothing was signed, and the chain's time afterwards.
    async fn is_over(&self, payment: &IncomingPayment) -> Result<bool, SettlementStepError> {
        let is_out = payment.has_open_nonce || payment.state != IncomingPaymentState::Begun;
        let now = if is_out { self.chain.time().await? } else { self.clock.now() };
        let seconds = now.as_millis().max(0).unsigned_abs() / 1000;
        Ok(U256::from(seconds) >= payment.authorization.valid_before)
    }
}
