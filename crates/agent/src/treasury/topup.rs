//! The way of a purchase of credits, from the demand to the booking.
//!
//! Each step is on the disk before the next one begins, so that a crash anywhere
//! is gone on with. Only the chain ends a payment that was signed. Nothing here
//! may be called by two at once: the door is held by the caller.

use std::sync::PoisonError;

use automaton_client::PurchaseOutcome;
use automaton_core::error::{Classified, ErrorClass, chain};
use automaton_core::event::Event;
use automaton_core::faults::FaultPoint;
use automaton_core::money::MicroUsdc;
use automaton_core::payment::{Money, NewPayment, Payment, PaymentReason, Purpose, SignedPayment};
use automaton_core::time::{Span, Timestamp};
use automaton_core::wire::cloud::{PurchaseReply, PurchaseStatus, TIERS_USD};
use automaton_core::wire::x402::{PAYMENT_SIGNATURE, X_PAYMENT};
use automaton_net::redact;
use automaton_store::PaymentStep;
use automaton_wallet::x402::{
    PaymentExpectation, PaymentRequiredParts, Price, SelectedOffer, offers, select,
};
use tracing::{Instrument as _, info_span};

use super::auto_topup::TopUpState;
use super::usdc::AuthorizationStatus;
use super::{PaymentContext, TopUpOutcome, Treasury, TreasuryError};

/// Key of all purchases of credits: one is open at a time.
pub(super) const TOP_UP: &str = "top_up";
/// Time after its record in which a payment may still be signed: the longest validity of its
/// signature.
const SIGN_WITHIN: Span = Span::from_secs(300);
/// The most that is kept of a cloud's words about a purchase that it cannot go on with.
const HELD_UP_BYTES_MAX: usize = 300;
/// USDC for one US dollar.
const USDC_PER_USD: u64 = 1_000_000;

impl Treasury {
    /// Buys credits for `usd` US dollars, or goes on with the purchase that is
    /// open, whatever its tier.
    ///
    /// # Errors
    /// [`TreasuryError`].
    pub async fn buy(&self, usd: u32) -> Result<TopUpOutcome, TreasuryError> {
        let _alone = self.topup_lock.lock().await;
        self.purchase(usd, &PaymentReason::auto_topup("the creator buys credits"), None).await
    }

    /// The same, for whoever holds the door; all but the creator keep purchases apart.
    pub(super) async fn purchase(
        &self,
        usd: u32,
        why: &PaymentReason,
        kept: Option<&mut TopUpState>,
    ) -> Result<TopUpOutcome, TreasuryError> {
        let outcome = match (self.go_on().await.transpose(), kept) {
            (Some(outcome), _) => outcome,
            (None, Some(kept)) => self.start_spaced(usd, why, kept).await,
            (None, None) => self.begin(usd, why).await,
        };
        self.report(&outcome).await;
        outcome
    }

    /// Tells what became of a purchase.
    pub(super) async fn report(&self, outcome: &Result<TopUpOutcome, TreasuryError>) {
        self.forget_balances();
        self.note_failure(outcome).await;
        let event = match outcome {
            Ok(TopUpOutcome { id, amount, transaction, settled: true, .. }) => {
                Event::TopupSettled {
                    payment: *id,
                    amount: *amount,
                    transaction: transaction.clone(),
                    credits: self.balances().await.credits,
                }
            }
            Ok(bought) => Event::TopupPending { payment: bought.id, amount: bought.amount },
            Err(error) => Event::TopupFailed {
                kind: error.kind(),
                error: chain(error).to_string(),
                hint: error.hint(),
            },
        };
        self.emit(event);
    }

    /// Notes since when purchases fail, for a reason that does not pass by itself. One that is
    /// open is gone on with, and one that only was asked for wrongly is no failure.
    async fn note_failure(&self, outcome: &Result<TopUpOutcome, TreasuryError>) {
        let remedy = match outcome {
            Ok(_) => None,
            Err(error) if matches!(error.kind(), ErrorClass::User | ErrorClass::Transient) => {
                return;
            }
            Err(error) => match self.store.open_payment(TOP_UP).await {
                Ok(None) => Some(error.hint().unwrap_or_default()),
                Ok(Some(_)) | Err(_) => return,
            },
        };
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        *failing = remedy.map(|remedy| failing.take().unwrap_or((self.deps.ids.now(), remedy)));
    }

    /// Since when purchases fail, and what helps, until one is made or none is needed.
    pub(crate) fn failing(&self) -> Option<(Timestamp, String)> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Begins a purchase. None may be open.
    pub(super) async fn begin(
        &self,
        usd: u32,
        why: &PaymentReason,
    ) -> Result<TopUpOutcome, TreasuryError> {
        let span = info_span!("payment", purpose = "top_up", usd);
        self.begin_now(usd, why).instrument(span).await
    }

    async fn begin_now(
        &self,
        usd: u32,
        why: &PaymentReason,
    ) -> Result<TopUpOutcome, TreasuryError> {
        let price = price(usd)?;
        let have = self.usdc().await?;
        if have < price {
            return Err(TreasuryError::TooLittle { have, price });
        }
        let chosen = self.choose(usd, price).await?;
        let payment = NewPayment {
            purpose: Purpose::TopUp,
            request: TOP_UP.to_owned(),
            origin: self.payment_context.origin.clone(),
            payee: chosen.payee,
            money: self.money(&chosen),
            why: why.clone(),
        };
        let id = self.store.propose_payment(payment, None).await?;
        self.reach(FaultPoint::PaymentProposed);
        let signed = self.sign(id, &chosen).await?;
        let open = self.store.payment(id).await?;
        self.send(&open, &signed).await
    }

    /// The cloud's demand, when it is what was wanted; one that is not is on record.
    async fn choose(&self, usd: u32, price: MicroUsdc) -> Result<SelectedOffer, TreasuryError> {
        let PaymentContext { cloud, origin, signer, token, .. } = &self.payment_context;
        let asked = cloud.ask_for_credits(usd, signer.address()).await?;
        let demand = PaymentRequiredParts {
            payment_required: asked.payment_required.as_deref(),
            x_payment_required: asked.x_payment_required.as_deref(),
            body: &asked.body,
        };
        let payee = self.store.payee_of(origin.clone()).await?;
        let wanted = PaymentExpectation { token, payee, price: Price::Exactly(price) };
        let chosen = offers(demand)
            .map_err(TreasuryError::Unreadable)
            .and_then(|offers| select(offers, &wanted).map_err(TreasuryError::Refused));
        let chosen = self.refused(origin, chosen).await?;
        let amount = chosen.amount;
        let payee = chosen.payee.to_string();
        self.emit(Event::TopupDemanded { usd, amount, payee });
        Ok(chosen)
    }

    /// Has a payment signed whose signature was lost, if there was one: for the
    /// same intent the signer gives the same bytes, and counts them once. Nothing
    /// when it is too old for that, or when the cloud would be paid elsewhere now.
    async fn sign_again(&self, open: &Payment) -> Result<Option<SignedPayment>, TreasuryError> {
        let now = self.deps.ids.now();
        let id = open.id;
        let payment = &open.terms;
        if open.at > now || now.since(open.at) > SIGN_WITHIN {
            self.fail(id, "its signature was lost, and is not asked for so late".to_owned())
                .await?;
            return Ok(None);
        }
        let have = self.usdc().await?;
        let price = payment.money.usdc();
        if have < price {
            return Err(TreasuryError::TooLittle { have, price });
        }
        let chosen = match self.choose(tier(&payment.money), price).await {
            Ok(chosen) => chosen,
            Err(error @ TreasuryError::Refused(_)) => {
                let reason = chain(&error).to_string();
                self.fail(id, reason).await?;
                return Err(error);
            }
            Err(error) => return Err(error),
        };
        if chosen.payee != payment.payee {
            self.fail(id, "the cloud wants somebody else to be paid now".to_owned()).await?;
            return Ok(None);
        }
        self.sign(id, &chosen).await.map(Some)
    }

    /// Sends the bytes that were signed, for the first time or once more.
    async fn send(
        &self,
        open: &Payment,
        signed: &SignedPayment,
    ) -> Result<TopUpOutcome, TreasuryError> {
        let Payment { id, terms: payment, .. } = open;
        self.store.advance_payment(*id, PaymentStep::Submitted).await?;
        self.reach(FaultPoint::PaymentSubmitted);
        let name = if signed.header == X_PAYMENT { X_PAYMENT } else { PAYMENT_SIGNATURE };
        let usd = tier(&payment.money);
        let payer = self.payment_context.signer.address();
        let answer = self
            .payment_context
            .cloud
            .pay_for_credits(usd, payer, name, signed.value.clone())
            .await;
        self.reach(FaultPoint::PaymentAnswered);
        match answer {
            Ok(PurchaseOutcome::Taken(reply)) => self.record_reply(open, signed, reply).await,
            Ok(PurchaseOutcome::Refused(_)) if self.used(payment, signed).await? => {
                self.settled(open, None).await
            }
            Ok(PurchaseOutcome::Refused(said)) => {
                self.store.advance_payment(*id, PaymentStep::Unknown).await?;
                Err(TreasuryError::NotTaken { id: *id, said })
            }
            Err(source) => {
                self.store.advance_payment(*id, PaymentStep::Unknown).await?;
                Err(TreasuryError::Unknown { id: *id, source })
            }
        }
    }

    /// Goes on with an open purchase; nothing when there is none, or when it has
    /// come to nothing.
    pub(super) async fn go_on(&self) -> Result<Option<TopUpOutcome>, TreasuryError> {
        let Some(open) = self.store.open_payment(TOP_UP).await? else { return Ok(None) };
        let here = self.is_here(&open.terms);
        let ours = here && open.terms.origin == self.payment_context.origin;
        let signed = match (&open.signed, ours) {
            (Some(signed), true) => signed.clone(),
            // The chain may have ended it, whoever it was for.
            (Some(signed), false)
                if here && self.close(&open, signed).await? != AuthorizationStatus::Open =>
            {
                return Ok(None);
            }
            (Some(_), false) => return Err(elsewhere(open)),
            (None, true) => match self.sign_again(&open).await? {
                Some(signed) => signed,
                None => return Ok(None),
            },
            (None, false) => {
                let reason = "it was never signed, and is for another payee";
                self.fail(open.id, reason.to_owned()).await?;
                return Ok(None);
            }
        };
        match self.close(&open, &signed).await? {
            AuthorizationStatus::Used => {
                Ok(Some(TopUpOutcome { settled: true, ..bought(&open, None) }))
            }
            AuthorizationStatus::Void => Ok(None),
            AuthorizationStatus::Open => self.send(&open, &signed).await.map(Some),
        }
    }

    async fn record_reply(
        &self,
        open: &Payment,
        signed: &SignedPayment,
        reply: PurchaseReply,
    ) -> Result<TopUpOutcome, TreasuryError> {
        let transaction = Some(reply.transaction).filter(|hash| !hash.is_empty());
        // The cloud's word is not enough: what the chain has not seen is still open.
        if reply.status == PurchaseStatus::Settled && self.used(&open.terms, signed).await? {
            return self.settled(open, transaction).await;
        }
        let held_up = reply.held_up.map(|why| redact::text(&why, &[], HELD_UP_BYTES_MAX));
        Ok(TopUpOutcome { held_up, ..bought(open, transaction) })
    }

    async fn settled(
        &self,
        open: &Payment,
        transaction: Option<String>,
    ) -> Result<TopUpOutcome, TreasuryError> {
        self.store.advance_payment(open.id, PaymentStep::Settled(transaction.clone())).await?;
        self.reach(FaultPoint::PaymentBooked);
        Ok(TopUpOutcome { settled: true, ..bought(open, transaction) })
    }
}

fn elsewhere(open: Payment) -> TreasuryError {
    let (payer, chain) = match open.terms.money {
        Money::Usdc { payer, chain, .. } => (payer, chain),
        Money::Credits { .. } => (open.terms.payee, 0),
    };
    TreasuryError::Elsewhere { id: open.id, origin: open.terms.origin, payer, chain }
}

fn bought(open: &Payment, transaction: Option<String>) -> TopUpOutcome {
    let id = open.id;
    let money = &open.terms.money;
    let usd = tier(money);
    let amount = money.usdc();
    TopUpOutcome { id, usd, amount, transaction, settled: false, held_up: None }
}

/// The tier of a purchase, in US dollars.
fn tier(money: &Money) -> u32 {
    u32::try_from(money.usdc().units() / USDC_PER_USD).unwrap_or(u32::MAX)
}

pub(super) fn price(usd: u32) -> Result<MicroUsdc, TreasuryError> {
    if TIERS_USD.contains(&usd) {
        Ok(MicroUsdc::new(u64::from(usd) * USDC_PER_USD))
    } else {
        Err(TreasuryError::NoTier(usd))
    }
}
