//! Accepts payments: stores or finds each one, and then waits for it.
//!
//! A payment is stored before anything is sent to the chain. Its fate then does not depend on the
//! client: a request only waits for a while.

use std::time::Duration;

use automaton_core::faults::FaultPoint;
use automaton_core::wire::x402::Authorization;
use tokio::time::{Instant, timeout, timeout_at};

use super::facilitator::{INSUFFICIENT_BALANCE, NONCE_USED, PaymentRefusal};
use super::settlement::SettlementError;
use super::settler::{SettlementStepError, Settler};
use crate::db::{
    BeginPaymentOutcome, DbError, IncomingPayment, IncomingPaymentState, NewIncomingPayment,
};

/// The longest wait for the chain's first checks of a payment. Nothing is stored before, and the
/// client gives up after 30 seconds.
const ASKED_WITHIN: Duration = Duration::from_secs(8);

/// A payment in the database that answers for one that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredPayment {
    /// Its number.
    pub(crate) id: i64,
    /// The sender showed something that is not on the chain: a signature that was never broadcast,
    /// or a name that came with the payment. Anybody can read the rest on the chain.
    pub(crate) is_its_client: bool,
}

/// The result of taking a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PaymentAcceptance {
    /// It is stored, now or before, or is taken for another that is.
    Stored(StoredPayment),
    /// It is no good.
    Refused(PaymentRefusal),
    /// The authorization was used for something else.
    Conflict,
    /// Its name was used for another payment.
    OtherName,
    /// Too many are under way.
    Busy,
}

impl Settler {
    /// Stores a payment that was checked, or finds the one that it repeats.
    pub(crate) async fn take(
        &self,
        new: NewIncomingPayment,
    ) -> Result<PaymentAcceptance, SettlementStepError> {
        let authorization = &new.authorization;
        let before = self.db.find_payment(new.chain, new.asset, authorization.clone()).await?;
        if before.is_none()
            && let Some(refusal) = self.refuses(authorization).await?
        {
            return Ok(PaymentAcceptance::Refused(refusal));
        }
        let (id, is_its_client) = match self.db.begin_payment(new).await? {
            BeginPaymentOutcome::New(id) => {
                self.faults.reach(FaultPoint::SettlementBegun);
                self.fresh.push(id);
                (id, true)
            }
            BeginPaymentOutcome::Named(id) => {
                self.look_again(id).await?;
                (id, true)
            }
            BeginPaymentOutcome::Known(id) => {
                self.look_again(id).await?;
                (id, false)
            }
            BeginPaymentOutcome::Guarded(id) => (id, true),
            BeginPaymentOutcome::Conflict => return Ok(PaymentAcceptance::Conflict),
            BeginPaymentOutcome::OtherName => return Ok(PaymentAcceptance::OtherName),
            BeginPaymentOutcome::Busy => return Ok(PaymentAcceptance::Busy),
        };
        Ok(PaymentAcceptance::Stored(StoredPayment { id, is_its_client }))
    }

    /// Looks at the chain once more where a payment was given up: somebody else may have
    /// carried it out.
    async fn look_again(&self, id: i64) -> Result<(), SettlementStepError> {
        let payment = self.db.payment(id).await?;
        if matches!(payment.state, IncomingPaymentState::Failed(_)) {
            self.step(&payment).await?;
        }
        Ok(())
    }

    /// Returns the objection to an authorization that only the chain knows.
    pub(crate) async fn refuses(
        &self,
        authorization: &Authorization,
    ) -> Result<Option<PaymentRefusal>, SettlementError> {
        let ask = async {
            if self.chain.authorization_used(authorization).await? {
                return Ok(Some(NONCE_USED));
            }
            let balance = self.chain.balance(authorization.from).await?;
            Ok((balance < authorization.value).then_some(INSUFFICIENT_BALANCE))
        };
        let late = |error| SettlementError::Unavailable(Box::new(error));
        timeout(ASKED_WITHIN, ask).await.map_err(late)?
    }

    /// Waits for a payment to end, until then at most; how far it is.
    pub(crate) async fn wait(&self, id: i64, until: Instant) -> Result<IncomingPayment, DbError> {
        let mut changes = self.changes.subscribe();
        loop {
            let payment = self.db.payment(id).await?;
            let is_over = matches!(
                payment.state,
                IncomingPaymentState::Settled(_) | IncomingPaymentState::Failed(_)
            );
            if is_over || self.held_up(id).is_some() {
                return Ok(payment);
            }
            let changed = async {
                // Whoever was too slow to hear of them all has to look.
                while changes.recv().await.is_ok_and(|other| other != id) {}
            };
            if timeout_at(until, changed).await.is_err() {
                return Ok(payment);
            }
        }
    }
}
