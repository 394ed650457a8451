//! Checks of every payment but purchases of credits before it is stored: the creator's settings,
//! over recent payments and balances.
//!
//! A refusal is on record like a payment is. Nothing here may be asked without the
//! door: two that were judged at once could pass a limit together.

use automaton_core::error::chain;
use automaton_core::event::Event;
use automaton_core::faults::FaultPoint;
use automaton_core::id::{CallId, PaymentId};
use automaton_core::money::Microcents;
use automaton_core::payment::{NewPayment, Purpose, Rail};
use automaton_core::text::visible;
use automaton_policy::{PaymentFacts, PaymentVerdict, ReasonCode};
use automaton_store::{ApprovalRequest, RefusedDemand};

use super::{Treasury, TreasuryError};
use crate::settings::AgentLimits;

impl Treasury {
    /// Judges a payment and writes it down; only one that may be made at once comes
    /// back. `have` is what there is of what it is paid with, where that is known.
    pub(super) async fn propose(
        &self,
        payment: NewPayment,
        have: Option<Microcents>,
    ) -> Result<PaymentId, TreasuryError> {
        let approved = self.is_approved(&payment).await?;
        let spender = (payment.purpose, payment.money.rail(), payment.why.call);
        let facts = self.payment_facts(spender, payment.money.worth()?, have).await?;
        let question = match self.limits.judge(&PaymentFacts { approved, ..facts }) {
            PaymentVerdict::Allow => None,
            PaymentVerdict::Deny(code, reason) => {
                let denied = Err(TreasuryError::Denied { code: code.name(), reason });
                return self.refused(&payment.origin, denied).await;
            }
            PaymentVerdict::Ask(code, reason) => Some(self.question(&payment, code, reason).await?),
        };
        let waits = question.as_ref().map(|question| question.reason.clone());
        let id = self.store.propose_payment(payment, question.clone()).await?;
        self.reach(FaultPoint::PaymentProposed);
        match (waits, question) {
            (Some(reason), Some(question)) => {
                let approval = self.store.approval_of_payment(id).await?;
                self.emit(Event::ApprovalAsked {
                    approval,
                    payment: Some(id),
                    call: None,
                    summary: question.summary,
                });
                Err(TreasuryError::Asked { id, reason })
            }
            _ => Ok(id),
        }
    }

    /// Reads what is known of a payment that a call would make.
    pub(super) async fn payment_facts(
        &self,
        (purpose, rail, call): (Purpose, Rail, Option<CallId>),
        worth: Microcents,
        have: Option<Microcents>,
    ) -> Result<PaymentFacts, TreasuryError> {
        self.advance_window().await?;
        let recent = self.store.recently(purpose, call).await?;
        let promised = self.store.committed_amount(rail).await?;
        Ok(PaymentFacts {
            purpose,
            worth,
            // silent-ok: less than can be counted is not known.
            have: have.and_then(|have| have.minus(promised).ok()),
            hour: recent.hour,
            day: recent.day,
            since_last: recent.since_last,
            in_turn: recent.in_turn,
            approved: false,
        })
    }

    /// Returns true if the creator approved the call that asks for a payment. The amount of a
    /// transfer, and the cap of a request, were in the question.
    async fn is_approved(&self, payment: &NewPayment) -> Result<bool, TreasuryError> {
        match payment.why.call {
            Some(call) => Ok(self.store.is_approved_call(call).await?),
            None => Ok(false),
        }
    }

    async fn question(
        &self,
        payment: &NewPayment,
        code: ReasonCode,
        reason: String,
    ) -> Result<ApprovalRequest, TreasuryError> {
        let NewPayment { purpose, origin, payee, money, why, .. } = payment;
        let worth = money.worth()?;
        let what = purpose.name();
        // What nobody's call asks for is not of a wake.
        let creators = why.call.is_some() && self.store.is_creators_wake().await?;
        let patience = AgentLimits::patience(self.answer_within, creators);
        Ok(ApprovalRequest {
            summary: format!("{what}: {worth} to {payee} by {origin}, for: {}", why.note),
            code: code.name().to_owned(),
            reason,
            expires_at: self.deps.ids.now().after(patience),
        })
    }

    /// Passes an outcome on; a refusal goes on record first.
    pub(super) async fn refused<T>(
        &self,
        origin: &str,
        outcome: Result<T, TreasuryError>,
    ) -> Result<T, TreasuryError> {
        if let Err(error) = &outcome {
            let origin = origin.to_owned();
            let detail = visible(&chain(error).to_string());
            self.store.refuse_demand(RefusedDemand { origin, detail }).await?;
        }
        outcome
    }
}
