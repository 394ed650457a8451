//! Giving credits away, through the cloud's ledger.
//!
//! The cloud does a transfer once however often it is asked, by the key that is the
//! payment's id; so what was sent and never answered is asked again, and only an
//! answer ends it. There must never be a second payment for a request that is open.

use std::sync::Arc;

use alloy_primitives::Address;
use automaton_client::{Refusal, Transferred};
use automaton_core::error::{Classified, chain};
use automaton_core::event::Event;
use automaton_core::faults::FaultPoint;
use automaton_core::id::IntentId;
use automaton_core::money::Microcents;
use automaton_core::secret::Secret;
use automaton_core::spend::{Money, NewSpend, Purpose, Spend, SpendState, Why};
use automaton_core::wire::cloud::TransferRequest;
use automaton_store::SpendStep;
use tracing::{Instrument as _, info_span};

use super::{Till, Treasury, TreasuryError};

/// Credits that were given away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The payment.
    pub id: IntentId,
    /// Who got them.
    pub to: Address,
    /// How much.
    pub amount: Microcents,
    /// The cloud's id of the transfer.
    pub transfer: String,
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
        why: Why,
    ) -> Result<Given, TreasuryError> {
        let give = async move |treasury: Arc<Self>, kept| {
            let span = info_span!("payment", purpose = "transfer", %to, cents);
            let given = treasury.give(to, cents, why).instrument(span).await;
            drop(kept);
            treasury.tell_given(&given);
            given
        };
        self.behind_the_door(give).await?
    }

    async fn give(&self, to: Address, cents: u64, why: Why) -> Result<Given, TreasuryError> {
        let request = format!("transfer {cents} cents to {to}");
        if let Some(open) = self.store.open_spend(&request).await? {
            return match open.state {
                SpendState::Proposed => {
                    let reason = open.reason.unwrap_or_default();
                    Err(TreasuryError::Asked { id: open.id, reason })
                }
                _ => self.heard(self.carry_out(open).await).await,
            };
        }
        // One that went through unheard is what is wished for, and no second one.
        if let Some(done) = self.store.untold_spend(&request).await? {
            let (id, transfer) = (done.id, done.transaction.unwrap_or_default());
            let given = Given { id, to, amount: done.spend.money.worth()?, transfer };
            self.store.spend_told(id).await?;
            return Ok(given);
        }
        let cents = i64::try_from(cents).unwrap_or(i64::MAX);
        let money = Money::Credits { amount: Microcents::from_cents(cents)? };
        // What was read a while ago may be gone by now.
        let have = self.credits().await;
        let (purpose, origin) = (Purpose::Transfer, self.till.origin.clone());
        let spend = NewSpend { purpose, request, origin, payee: to, money, why };
        let id = self.propose(spend, have).await?;
        let open = self.store.spend(id).await?;
        self.heard(self.carry_out(open).await).await
    }

    /// Notes that whoever wished for a transfer hears that it is done.
    async fn heard(&self, given: Result<Given, TreasuryError>) -> Result<Given, TreasuryError> {
        if let Ok(given) = &given {
            self.store.spend_told(given.id).await?;
        }
        given
    }

    /// Sends a transfer, for the first time or once more.
    pub(super) async fn carry_out(&self, open: Spend) -> Result<Given, TreasuryError> {
        let Spend { id, spend, .. } = &open;
        let Till { cloud, key, origin, .. } = &self.till;
        let (Some(key), true) = (key, *origin == spend.origin) else {
            return Err(TreasuryError::NoAccount { id: *id, origin: spend.origin.clone() });
        };
        let amount = spend.money.worth()?;
        let asked = TransferRequest {
            to_address: spend.payee.to_string(),
            amount_cents: amount.cents_floor(),
            note: Some(spend.why.note.clone()).filter(|note| !note.is_empty()),
        };
        self.store.step_spend(*id, SpendStep::Submitted).await?;
        self.reach(FaultPoint::SpendSubmitted);
        let answer = self.ask_to_transfer(cloud, key, (&asked, *id)).await;
        self.reach(FaultPoint::SpendAnswered);
        self.forget_balances();
        let (step, outcome) = match answer {
            Ok(Transferred::Completed(reply)) => {
                let (transfer, to) = (reply.transfer_id, spend.payee);
                let step = SpendStep::Settled(Some(transfer.clone()));
                (step, Ok(Given { id: *id, to, amount, transfer }))
            }
            Ok(Transferred::Refused(Refusal { status, code, text, .. })) => {
                let said = format!("status {status} {code}: {text}");
                (SpendStep::Failed(said.clone()), Err(TreasuryError::NotDone { id: *id, said }))
            }
            Err(source) => (SpendStep::Unknown, Err(TreasuryError::Unknown { id: *id, source })),
        };
        self.store.step_spend(*id, step).await?;
        self.reach(FaultPoint::SpendBooked);
        outcome
    }

    async fn ask_to_transfer(
        &self,
        cloud: &automaton_client::Cloud,
        key: &Secret,
        (asked, id): (&TransferRequest, IntentId),
    ) -> Result<Transferred, automaton_client::ClientError> {
        cloud.transfer(key, asked, &id.to_string()).await
    }

    pub(super) fn tell_given(&self, outcome: &Result<Given, TreasuryError>) {
        self.emit(match outcome {
            Ok(Given { id, to, amount, transfer }) => Event::CreditsTransferred {
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
