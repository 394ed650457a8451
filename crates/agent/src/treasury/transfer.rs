//! Giving credits away, through the cloud's ledger.
//!
//! The cloud does a transfer once however often it is asked, by the key that is the
//! payment's id; so what was sent and never answered is asked again, and only an
//! answer ends it. There must never be a second payment for a request that is open.

use std::sync::Arc;

use alloy_primitives::Address;
use automaton_client::{CreditTransferOutcome, TransferRefusal};
use automaton_core::error::{Classified, chain};
use automaton_core::event::Event;
use automaton_core::faults::FaultPoint;
use automaton_core::id::{CallId, PaymentId};
use automaton_core::money::Microcents;
use automaton_core::payment::{Money, NewPayment, Payment, PaymentReason, PaymentState, Purpose};
use automaton_core::secret::Secret;
use automaton_core::wire::cloud::TransferRequest;
use automaton_store::PaymentStep;
use tracing::{Instrument as _, info_span};

use super::{PaymentContext, Treasury, TreasuryError};

/// Credits that were given away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreditTransfer {
    /// The payment.
    pub id: PaymentId,
    /// Recipient.
    pub to: Address,
    /// Amount.
    pub amount: Microcents,
    /// The cloud's id of the transfer.
    pub transfer: String,
}

/// Returns the text by which two transfers are the same one.
pub(super) fn request_of(to: Address, cents: u64) -> String {
    format!("transfer {cents} cents to {to}")
}

impl Treasury {
    /// Gives `cents` of credits to somebody, or goes on with an equal transfer that
    /// is open. Waits for a while only; what is begun goes on.
    ///
    /// # Errors
    /// [`TreasuryError`]; after [`TreasuryError::Asked`] the creator has to answer.
    pub async fn transfer(
        self: &Arc<Self>,
        to: Address,
        cents: u64,
        why: PaymentReason,
    ) -> Result<CreditTransfer, TreasuryError> {
        let give = async move |treasury: Arc<Self>, kept| {
            let span = info_span!("payment", purpose = "transfer", %to, cents);
            let given = treasury.give(to, cents, why).instrument(span).await;
            drop(kept);
            treasury.tell_given(&given);
            given
        };
        self.with_topup_lock(give).await?
    }

    async fn give(
        &self,
        to: Address,
        cents: u64,
        why: PaymentReason,
    ) -> Result<CreditTransfer, TreasuryError> {
        let request = request_of(to, cents);
        if let Some(open) = self.store.open_payment(&request).await? {
            return match open.state {
                PaymentState::Proposed => {
                    let reason = open.reason.unwrap_or_default();
                    Err(TreasuryError::Asked { id: open.id, reason })
                }
                _ => self.record_delivery(self.carry_out(open).await, why.call).await,
            };
        }
        // One that went through unheard is what is wished for, and no second one.
        if let Some(done) = self.store.unreported_payment(&request).await? {
            let id = done.id;
            let transfer = done.transaction.unwrap_or_default();
            let given = CreditTransfer { id, to, amount: done.terms.money.worth()?, transfer };
            self.store.mark_payment_reported(id, why.call).await?;
            return Ok(given);
        }
        let cents = i64::try_from(cents).unwrap_or(i64::MAX);
        let money = Money::Credits { amount: Microcents::from_cents(cents)? };
        // What was read a while ago may be gone by now.
        let have = self.credits().await;
        let call = why.call;
        let purpose = Purpose::Transfer;
        let origin = self.payment_context.origin.clone();
        let payment = NewPayment { purpose, request, origin, payee: to, money, why };
        let id = self.propose(payment, have).await?;
        let open = self.store.payment(id).await?;
        self.record_delivery(self.carry_out(open).await, call).await
    }

    /// Notes that whoever wished for a transfer hears that it is done, by a call.
    async fn record_delivery(
        &self,
        given: Result<CreditTransfer, TreasuryError>,
        call: Option<CallId>,
    ) -> Result<CreditTransfer, TreasuryError> {
        if let Ok(given) = &given {
            self.store.mark_payment_reported(given.id, call).await?;
        }
        given
    }

    /// Sends a transfer, for the first time or once more.
    pub(super) async fn carry_out(&self, open: Payment) -> Result<CreditTransfer, TreasuryError> {
        let Payment { id, terms: payment, .. } = &open;
        let PaymentContext { cloud, key, origin, .. } = &self.payment_context;
        let (Some(key), true) = (key, *origin == payment.origin) else {
            return Err(TreasuryError::NoAccount { id: *id, origin: payment.origin.clone() });
        };
        let amount = payment.money.worth()?;
        let asked = TransferRequest {
            to_address: payment.payee.to_string(),
            amount_cents: amount.cents_floor(),
            note: Some(payment.why.note.clone()).filter(|note| !note.is_empty()),
        };
        self.store.advance_payment(*id, PaymentStep::Submitted).await?;
        self.reach(FaultPoint::PaymentSubmitted);
        let answer = self.ask_to_transfer(cloud, key, &asked, *id).await;
        self.reach(FaultPoint::PaymentAnswered);
        self.forget_balances();
        let (step, outcome) = match answer {
            Ok(CreditTransferOutcome::Completed(reply)) => {
                let transfer = reply.transfer_id;
                let to = payment.payee;
                let step = PaymentStep::Settled(Some(transfer.clone()));
                (step, Ok(CreditTransfer { id: *id, to, amount, transfer }))
            }
            Ok(CreditTransferOutcome::Refused(TransferRefusal { status, code, text, .. })) => {
                let said = format!("status {status} {code}: {text}");
                (PaymentStep::Failed(said.clone()), Err(TreasuryError::NotDone { id: *id, said }))
            }
            Err(source) => (PaymentStep::Unknown, Err(TreasuryError::Unknown { id: *id, source })),
        };
        self.store.advance_payment(*id, step).await?;
        self.reach(FaultPoint::PaymentBooked);
        outcome
    }

    async fn ask_to_transfer(
        &self,
        cloud: &automaton_client::CloudClient,
        key: &Secret,
        asked: &TransferRequest,
        id: PaymentId,
    ) -> Result<CreditTransferOutcome, automaton_client::CloudClientError> {
        cloud.transfer(key, asked, &id.to_string()).await
    }

    pub(super) fn tell_given(&self, outcome: &Result<CreditTransfer, TreasuryError>) {
        self.emit(match outcome {
            Ok(CreditTransfer { id, to, amount, transfer }) => Event::CreditsTransferred {
                payment: *id,
                to: to.to_string(),
                amount: *amount,
                transfer: transfer.clone(),
            },
            // Told when it was asked.
            Err(TreasuryError::Asked { .. }) => return,
            Err(error) => Event::PaymentFailed {
                kind: error.kind(),
                error: chain(error).to_string(),
                hint: error.hint(),
            },
        });
    }
}
