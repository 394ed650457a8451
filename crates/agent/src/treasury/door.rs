//! The way of a purchase, from the demand to the booking.
//!
//! Each step is on the disk before the next one begins, so that a crash anywhere
//! is gone on with. Only the chain ends a payment that was signed. Nothing here
//! may be called by two at once: the door is held by the caller.

use automaton_client::Paid;
use automaton_core::error::{Classified, Kind, chain};
use automaton_core::event::Event;
use automaton_core::faults::FaultPoint;
use automaton_core::id::IntentId;
use automaton_core::money::MicroUsdc;
use automaton_core::spend::{NewSpend, SignedSpend, Spend, SpendState};
use automaton_core::time::{Span, Timestamp};
use automaton_core::wire::cloud::{PurchaseReply, PurchaseStatus, TIERS_USD};
use automaton_core::wire::x402::{PAYMENT_SIGNATURE, X_PAYMENT};
use automaton_store::SpendStep;
use automaton_wallet::PurseError;
use automaton_wallet::x402::{Chosen, Demand, Price, Wanted, offers, select};

use super::reflex::Kept;
use super::{Bought, Till, Treasury, TreasuryError};

/// How long after it was written down a payment may still be signed: as long as the
/// signature would be good for at most.
const SIGN_WITHIN: Span = Span::from_secs(300);
/// USDC for one US dollar.
const USDC_PER_USD: u64 = 1_000_000;

/// A payment that is not over.
struct Open {
    id: IntentId,
    spend: NewSpend,
    state: SpendState,
}

impl Treasury {
    /// Buys credits for `usd` US dollars, or goes on with the purchase that is
    /// open, whatever its tier.
    ///
    /// # Errors
    /// [`TreasuryError`].
    pub async fn buy(&self, usd: u32) -> Result<Bought, TreasuryError> {
        let _alone = self.door.lock().await;
        self.purchase(usd, None).await
    }

    /// The same, for whoever holds the door; all but the creator keep purchases apart.
    pub(super) async fn purchase(
        &self,
        usd: u32,
        kept: Option<&mut Kept>,
    ) -> Result<Bought, TreasuryError> {
        let outcome = match (self.go_on().await.transpose(), kept) {
            (Some(outcome), _) => outcome,
            (None, Some(kept)) => self.begin_apart(usd, kept).await,
            (None, None) => self.begin(usd).await,
        };
        self.tell(&outcome).await;
        outcome
    }

    /// Tells what became of a purchase.
    pub(super) async fn tell(&self, outcome: &Result<Bought, TreasuryError>) {
        self.forget_balances();
        let event = match outcome {
            Ok(Bought { id, amount, transaction, settled: true, .. }) => Event::TopupSettled {
                payment: *id,
                amount: *amount,
                transaction: transaction.clone(),
                credits: self.balances().await.credits,
            },
            Ok(bought) => Event::TopupPending { payment: bought.id, amount: bought.amount },
            Err(error) => Event::TopupFailed {
                kind: error.kind(),
                error: chain(error).to_string(),
                hint: error.hint(),
            },
        };
        self.emit(event);
    }

    /// Begins a purchase. None may be open.
    pub(super) async fn begin(&self, usd: u32) -> Result<Bought, TreasuryError> {
        let price = price(usd)?;
        let have = self.usdc().await?;
        if have < price {
            return Err(TreasuryError::TooLittle { have, price });
        }
        let chosen = self.choose(usd, price).await?;
        let Till { origin, purse, token, .. } = &self.till;
        let spend = NewSpend {
            origin: origin.clone(),
            usd,
            chain: token.chain.0,
            asset: token.contract,
            payer: purse.address(),
            payee: chosen.payee,
            amount: chosen.amount,
        };
        let id = self.store.propose_spend(spend.clone()).await?;
        self.reach(FaultPoint::SpendProposed);
        let signed = self.sign(id, &chosen).await?;
        self.send(&Open { id, spend, state: SpendState::Signed }, &signed).await
    }

    /// The cloud's demand, when it is what was wanted.
    async fn choose(&self, usd: u32, price: MicroUsdc) -> Result<Chosen, TreasuryError> {
        let Till { cloud, origin, purse, token, .. } = &self.till;
        let asked = cloud.ask_for_credits(usd, purse.address()).await?;
        let demand = Demand {
            payment_required: asked.payment_required.as_deref(),
            x_payment_required: asked.x_payment_required.as_deref(),
            body: &asked.body,
        };
        let offers = offers(demand).map_err(TreasuryError::Unreadable)?;
        let payee = self.store.payee_of(origin.clone()).await?;
        let wanted = Wanted { token, payee, price: Price::Exactly(price) };
        let chosen = select(offers, &wanted).map_err(TreasuryError::Refused)?;
        let (amount, payee) = (chosen.amount, chosen.payee.to_string());
        self.emit(Event::TopupDemanded { usd, amount, payee });
        Ok(chosen)
    }

    /// Has a payment signed that is written down, and stores what was signed.
    async fn sign(&self, id: IntentId, chosen: &Chosen) -> Result<SignedSpend, TreasuryError> {
        let payment = match self.till.purse.pay(id, chosen, &self.till.token).await {
            Ok(payment) => payment,
            // It may have signed, and is asked for the same payment again.
            Err(error) if is_silence(&error) => return Err(error.into()),
            Err(error) => {
                let reason = chain(&error).to_string();
                self.fail(id, reason).await?;
                return Err(error.into());
            }
        };
        self.reach(FaultPoint::SpendReceived);
        let nonce = payment.payload.authorization.nonce;
        let (header, value) =
            chosen.offer.payment(payment.payload).map_err(TreasuryError::Encode)?;
        let header = header.to_owned();
        let signed = SignedSpend { header, value, nonce, valid_before: payment.valid_before };
        self.store.spend_signed(id, signed.clone()).await?;
        self.reach(FaultPoint::SpendSigned);
        Ok(signed)
    }

    /// Has a payment signed whose signature was lost, if there was one: for the
    /// same intent the signer gives the same bytes, and counts them once. Nothing
    /// when it is too old for that, or when the cloud would be paid elsewhere now.
    async fn sign_again(
        &self,
        id: IntentId,
        spend: &NewSpend,
        at: Timestamp,
    ) -> Result<Option<SignedSpend>, TreasuryError> {
        let now = self.around.mint.now();
        if at > now || now.since(at) > SIGN_WITHIN {
            self.fail(id, "its signature was lost, and is not asked for so late".to_owned())
                .await?;
            return Ok(None);
        }
        let (have, price) = (self.usdc().await?, spend.amount);
        if have < price {
            return Err(TreasuryError::TooLittle { have, price });
        }
        let chosen = match self.choose(spend.usd, price).await {
            Ok(chosen) => chosen,
            Err(error @ TreasuryError::Refused(_)) => {
                let reason = chain(&error).to_string();
                self.fail(id, reason).await?;
                return Err(error);
            }
            Err(error) => return Err(error),
        };
        if chosen.payee != spend.payee {
            self.fail(id, "the cloud wants somebody else to be paid now".to_owned()).await?;
            return Ok(None);
        }
        self.sign(id, &chosen).await.map(Some)
    }

    async fn fail(&self, id: IntentId, reason: String) -> Result<(), TreasuryError> {
        Ok(self.store.step_spend(id, SpendStep::Failed(reason)).await?)
    }

    /// Sends the bytes that were signed, for the first time or once more.
    async fn send(&self, open: &Open, signed: &SignedSpend) -> Result<Bought, TreasuryError> {
        let Open { id, spend, state } = open;
        if *state == SpendState::Signed {
            self.store.step_spend(*id, SpendStep::Submitted).await?;
            self.reach(FaultPoint::SpendSubmitted);
        }
        let name = if signed.header == X_PAYMENT { X_PAYMENT } else { PAYMENT_SIGNATURE };
        let header = (name, signed.value.clone());
        let answer = self.till.cloud.pay_for_credits(spend.usd, spend.payer, header).await;
        self.reach(FaultPoint::SpendAnswered);
        match answer {
            Ok(Paid::Taken(reply)) => self.taken(open, signed, reply).await,
            Ok(Paid::Refused(_)) if self.used(spend, signed).await? => {
                self.settled(open, None).await
            }
            Ok(Paid::Refused(said)) => Err(TreasuryError::NotTaken { id: *id, said }),
            Err(source) => Err(TreasuryError::Unknown { id: *id, source }),
        }
    }

    /// Goes on with an open purchase; nothing when there is none, or when it has
    /// come to nothing.
    pub(super) async fn go_on(&self) -> Result<Option<Bought>, TreasuryError> {
        let Some(Spend { id, spend, state, signed, at, .. }) = self.store.open_spend().await?
        else {
            return Ok(None);
        };
        let (signed, state) = match (signed, self.is_ours(&spend)) {
            (Some(signed), true) => (signed, state),
            (Some(_), false) => {
                let NewSpend { origin, payer, chain, .. } = spend;
                return Err(TreasuryError::Elsewhere { id, origin, payer, chain });
            }
            (None, true) => match self.sign_again(id, &spend, at).await? {
                Some(signed) => (signed, SpendState::Signed),
                None => return Ok(None),
            },
            (None, false) => {
                self.fail(id, "it was never signed, and is for another till".to_owned()).await?;
                return Ok(None);
            }
        };
        // The chain's own time, read before the state: no later block can use what
        // the state then shows as unused. Our clock has no say in it.
        let is_void = self.till.chain.time().await? >= signed.valid_before;
        let open = Open { id, spend, state };
        if self.used(&open.spend, &signed).await? {
            return self.settled(&open, None).await.map(Some);
        }
        if is_void {
            self.store.step_spend(id, SpendStep::Expired).await?;
            return Ok(None);
        }
        self.send(&open, &signed).await.map(Some)
    }

    /// Whether a payment is one of this wallet, to this cloud, on this chain.
    pub(super) fn is_ours(&self, spend: &NewSpend) -> bool {
        let Till { origin, purse, token, .. } = &self.till;
        let here = (origin, purse.address(), token.chain.0, token.contract);
        (&spend.origin, spend.payer, spend.chain, spend.asset) == here
    }

    pub(super) async fn used(
        &self,
        spend: &NewSpend,
        signed: &SignedSpend,
    ) -> Result<bool, TreasuryError> {
        let NewSpend { asset, payer, .. } = spend;
        Ok(self.till.chain.authorization_used(*asset, *payer, signed.nonce).await?)
    }

    async fn taken(
        &self,
        open: &Open,
        signed: &SignedSpend,
        reply: PurchaseReply,
    ) -> Result<Bought, TreasuryError> {
        let transaction = Some(reply.transaction).filter(|hash| !hash.is_empty());
        // The cloud's word is not enough: what the chain has not seen is still open.
        if reply.status == PurchaseStatus::Settled && self.used(&open.spend, signed).await? {
            return self.settled(open, transaction).await;
        }
        Ok(bought(open, transaction))
    }

    async fn settled(
        &self,
        open: &Open,
        transaction: Option<String>,
    ) -> Result<Bought, TreasuryError> {
        self.store.step_spend(open.id, SpendStep::Settled(transaction.clone())).await?;
        self.reach(FaultPoint::SpendBooked);
        Ok(Bought { settled: true, ..bought(open, transaction) })
    }
}

fn bought(open: &Open, transaction: Option<String>) -> Bought {
    let NewSpend { usd, amount, .. } = open.spend;
    Bought { id: open.id, usd, amount, transaction, settled: false }
}

/// Whether the signer said nothing, rather than no.
fn is_silence(error: &PurseError) -> bool {
    error.kind() == Kind::Transient || matches!(error, PurseError::Cut)
}

fn price(usd: u32) -> Result<MicroUsdc, TreasuryError> {
    if TIERS_USD.contains(&usd) {
        Ok(MicroUsdc::new(u64::from(usd) * USDC_PER_USD))
    } else {
        Err(TreasuryError::NoTier(usd))
    }
}
