//! Brings every stored payment to its end: one task, with many payments in hand.
//!
//! A payment and its numbers for gas are in hand once at a time, and what is listed
//! of them is listed while they are in nobody's: a step never works from a row that
//! another one is changing. All of it is polled by the one task, so that a history
//! depends on nothing but the order of its answers. It knows nothing but the stored
//! rows and the chain, so a start after a crash is nothing special, and a client that
//! hangs up changes nothing. A payment is booked when its transfer is in a block that
//! stays; until then the block may go away, and the transaction is sent again. It must
//! never take a second number for a payment while the first could still carry its
//! transaction: the authorization's nonce is what makes two of them harmless.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use alloy_primitives::{B256, U256};
use automaton_core::error::chain;
use automaton_core::faults::{FaultPoint, Faults};
use automaton_core::id::IdGenerator;
use automaton_core::time::{Clock, Span};
use automaton_sqlite::{SqliteError, SqliteErrorKind};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{Notify, OnceCell, Semaphore, broadcast};
use tokio::time::{Instant, sleep, sleep_until};

use super::facilitator::{NONCE_USED, SIMULATION_FAILED, TRANSACTION_FAILED, VALID_BEFORE};
use super::gas::GasPolicy;
use super::settlement::{
    Settlement, SettlementError, TransactionInclusion, TransferEvent, TxOutcome,
};
use crate::db::{Db, DbError, IncomingPayment, IncomingPaymentState, NonceReservation, SettledBy};
use crate::error::OperatorNotifier;

/// How often a payment that waits for its block is looked at.
const PACE: Duration = Duration::from_millis(500);
/// How long a payment is left alone when something failed, so that nobody is flooded.
const TROUBLED: Duration = Duration::from_secs(3);
/// How often the table is looked at although nobody said that there is work.
const IDLE: Duration = Duration::from_secs(30);
/// How many payments are worked on at once; the others wait for their turn.
const AT_ONCE: usize = 32;
/// How many changes a slow listener may be behind before it has to look for itself.
pub(crate) const HEARD_MAX: usize = 256;
/// How long the log of a transfer whose nonce is used is waited for.
const LOGS_WITHIN: Span = Span::from_secs(600);

/// The task's hands.
pub(crate) struct Settler {
    pub(crate) db: Db,
    pub(crate) chain: Arc<dyn Settlement>,
    pub(crate) gas: GasPolicy,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: IdGenerator,
    pub(crate) report: OperatorNotifier,
    pub(crate) faults: Arc<dyn Faults>,
    /// Payments that were stored and that nobody has in hand yet.
    pub(crate) fresh: PaymentQueue,
    /// Payments whose transaction the chain does not take, since nobody can pay its gas.
    pub(crate) unpaid_gas: Mutex<HashSet<i64>>,
    /// Names each payment that was stepped, for those who wait for it.
    pub(crate) changes: broadcast::Sender<i64>,
}

/// The payments that were stored just now: no more than may be unfinished.
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

/// What is to be done for a payment: a step of it, and one of each of its numbers.
struct SettlementStep {
    payment: i64,
    nonces: Vec<NonceReservation>,
    /// The account's numbers in blocks that stay; asked for by the first who needs it.
    count: Arc<OnceCell<u64>>,
}

impl SettlementStep {
    fn new(payment: i64) -> Self {
        Self { payment, nonces: Vec::new(), count: Arc::default() }
    }
}

/// Why a step went no further.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettlementStepError {
    #[error(transparent)]
    Db(#[from] DbError),
    #[error(transparent)]
    Chain(#[from] SettlementError),
}

impl Settler {
    /// Works until it is dropped.
    pub(crate) async fn run(self: Arc<Self>) {
        let permits = Semaphore::new(AT_ONCE);
        let (mut running, mut held) = (FuturesUnordered::new(), HashSet::new());
        let mut next = Instant::now();
        loop {
            let turns;
            (turns, next) = tokio::select! {
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
                    let (turns, pause) = self.round().await;
                    (turns, Instant::now() + pause)
                }
            };
            for turn in turns {
                // Nobody in hand went on while these were listed, so a row of somebody
                // who is in nobody's hands is as it is stored.
                if held.insert(turn.payment) {
                    running.push(self.tend(turn, &permits));
                }
            }
        }
    }

    /// Why a payment goes no further for now, where that is known.
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

    /// Everything that is under way, and how long to wait before the next look.
    async fn round(&self) -> (Vec<SettlementStep>, Duration) {
        match self.listed().await {
            Ok(turns) if turns.is_empty() => (turns, IDLE),
            Ok(turns) => (turns, PACE),
            Err(error) => {
                (self.report)(format!("payments have to wait: {}", chain(&error)));
                (Vec::new(), TROUBLED)
            }
        }
    }

    async fn listed(&self) -> Result<Vec<SettlementStep>, DbError> {
        let mut turns = BTreeMap::new();
        for IncomingPayment { id, .. } in self.db.unfinished_payments().await? {
            turns.insert(id, SettlementStep::new(id));
        }
        let count = Arc::default();
        for reservation in self.db.open_nonces().await? {
            let turn = turns
                .entry(reservation.payment)
                .or_insert_with(|| SettlementStep::new(reservation.payment));
            turn.count = Arc::clone(&count);
            turn.nonces.push(reservation);
        }
        Ok(turns.into_values().collect())
    }

    /// Gives a payment its turn; which one it was. One that fails stays in hand for a
    /// while, so that it is left alone and the others go on.
    async fn tend(&self, turn: SettlementStep, permits: &Semaphore) -> i64 {
        let id = turn.payment;
        let turned = {
            // silent-ok: nobody closes it.
            let _permit = permits.acquire().await.ok();
            let stepped = self.step_stored(id).await;
            // silent-ok: it may be that nobody waits.
            self.changes.send(id).ok();
            let kept = self.keep_all(&turn).await;
            stepped.and(kept)
        };
        if let Err(error) = turned {
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
            // Only its number is looked after.
            IncomingPaymentState::Settled(_) | IncomingPaymentState::Failed(_) => {
                self.unpaid_gas().remove(&id);
                Ok(())
            }
        }
    }

    async fn keep_all(&self, turn: &SettlementStep) -> Result<(), SettlementStepError> {
        for reservation in &turn.nonces {
            let count = turn.count.get_or_try_init(|| self.chain.gas_nonce()).await?;
            self.advance(reservation, *count).await?;
        }
        Ok(())
    }

    /// One step of one payment. A payment that was given up is looked at again
    /// when its client comes back: somebody else may have carried it out.
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

    /// Looks for what was sent, and sends what was not.
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
            // Whoever keeps the slot sends it again.
            return Ok(());
        }
        self.submit(payment).await
    }

    /// The newest of these transactions that is in a block; one that succeeded
    /// before any that did not.
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

    /// Sends a payment for which nothing can be on its way.
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

    /// The nonce is used: by our transfer, whoever sent it, or by something else.
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
                if SqliteErrorKind::of(&source) == SqliteErrorKind::Constraint =>
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

    /// Whether no block can carry the transfer any more. As long as nobody but us has
    /// it our own clock may say so; what was signed is over when the chain says it.
    async fn is_over(&self, payment: &IncomingPayment) -> Result<bool, SettlementStepError> {
        let is_out = payment.has_open_nonce || payment.state != IncomingPaymentState::Begun;
        let now = if is_out { self.chain.time().await? } else { self.clock.now() };
        let seconds = now.as_millis().max(0).unsigned_abs() / 1000;
        Ok(U256::from(seconds) >= payment.authorization.valid_before)
    }
}
