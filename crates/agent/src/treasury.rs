//! Buys credits: one door, one lock, one purchase at a time.
//!
//! Whoever wants credits comes here: the creator's hand, a reflex, a tool. An
//! open purchase is gone on with before another one begins, with the very bytes
//! that were signed. A balance that cannot be read buys nothing, and a reply
//! that is lost leaves the purchase open until the cloud or the chain says what
//! became of it; it must never lead to a second signature.

use alloy_primitives::Address;
use automaton_client::{ClientError, Cloud, Paid};
use automaton_core::error::{Classified, Kind, chain};
use automaton_core::id::IntentId;
use automaton_core::money::MicroUsdc;
use automaton_core::spend::{NewSpend, SignedSpend, Spend, SpendState};
use automaton_core::wire::cloud::{PurchaseReply, PurchaseStatus, TIERS_USD};
use automaton_core::wire::x402::{PAYMENT_SIGNATURE, TokenDomain, X_PAYMENT};
use automaton_store::{SpendStep, Store, StoreError};
use automaton_wallet::x402::{Chosen, Demand, Price, Refusal, Unreadable, Wanted, offers, select};
use automaton_wallet::{Chain, ChainError, Purse, PurseError};
use tokio::sync::Mutex;

/// USDC for one US dollar.
const USDC_PER_USD: u64 = 1_000_000;
/// A purchase that was not made, or of which it is not known.
#[derive(Debug, thiserror::Error)]
pub enum TreasuryError {
    /// There is no such tier.
    #[error("credits are sold for {TIERS_USD:?} US dollars, not for {0}")]
    NoTier(u32),
    /// The wallet holds too little.
    #[error("the wallet holds {have} USDC, and the credits cost {price}")]
    TooLittle {
        /// What it holds.
        have: MicroUsdc,
        /// What they cost.
        price: MicroUsdc,
    },
    /// What is asked for cannot be read.
    #[error("the cloud's demand for payment cannot be read")]
    Unreadable(#[source] Unreadable),
    /// What is asked for is not what was wanted; nothing was signed.
    #[error("the cloud's demand is refused, and nothing was signed: {0}")]
    Refused(Refusal),
    /// The cloud did not take the payment.
    #[error("the cloud did not take the payment {id}: {said}")]
    NotTaken {
        /// The payment.
        id: IntentId,
        /// What the cloud says.
        said: String,
    },
    /// A payment to another cloud, of another wallet or on another chain is open.
    #[error("the payment {id} to {origin}, from {payer} on chain {chain}, is not over")]
    Elsewhere {
        /// The payment.
        id: IntentId,
        /// Whom it is for.
        origin: String,
        /// Who pays.
        payer: Address,
        /// The chain's id.
        chain: u64,
    },
    /// The payment was sent, and what became of it is unknown.
    #[error("what became of the payment {id} is not known yet")]
    Unknown {
        /// The payment.
        id: IntentId,
        /// Why.
        #[source]
        source: ClientError,
    },
    /// The header of a payment cannot be written.
    #[error("the payment cannot be written as JSON")]
    Encode(#[source] serde_json::Error),
    /// The cloud could not be asked.
    #[error(transparent)]
    Cloud(#[from] ClientError),
    /// The chain could not be read, so the balance is unknown.
    #[error("the chain cannot be read, and what is unknown buys nothing")]
    Chain(#[from] ChainError),
    /// The signer did not sign.
    #[error(transparent)]
    Purse(#[from] PurseError),
    /// The purchase could not be written down.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Classified for TreasuryError {
    fn kind(&self) -> Kind {
        match self {
            Self::NoTier(_) | Self::TooLittle { .. } | Self::Elsewhere { .. } => Kind::User,
            Self::Unreadable(_) | Self::Refused(_) | Self::NotTaken { .. } => Kind::Upstream,
            Self::Unknown { source, .. } => source.kind(),
            Self::Encode(_) => Kind::Internal,
            Self::Cloud(error) => error.kind(),
            Self::Chain(error) => error.kind(),
            Self::Purse(error) => error.kind(),
            Self::Store(error) => error.kind(),
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::TooLittle { .. } => "send USDC to the wallet, or buy a smaller tier",
            Self::Unknown { .. } | Self::NotTaken { .. } => {
                "nothing is lost: the same payment is asked about, and sent again while it is \
                 valid, the next time that credits are bought"
            }
            Self::Elsewhere { .. } => "buy there first, which goes on with it",
            Self::Refused(_) => "see that the cloud's address is the right one",
            Self::Cloud(error) => return error.hint(),
            Self::Chain(error) => return error.hint(),
            Self::Purse(error) => return error.hint(),
            Self::Store(error) => return error.hint(),
            Self::NoTier(_) | Self::Unreadable(_) | Self::Encode(_) => return None,
        };
        Some(hint.to_owned())
    }
}

/// A purchase that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bought {
    /// The payment.
    pub id: IntentId,
    /// What was paid.
    pub amount: MicroUsdc,
    /// The transaction, where it is known.
    pub transaction: Option<String>,
    /// Whether the chain has confirmed it; without that it is still open.
    pub settled: bool,
}

/// What a purchase is made with.
#[derive(Debug, Clone)]
pub struct Till {
    /// The cloud.
    pub cloud: Cloud,
    /// The cloud as the record names it.
    pub origin: String,
    /// The wallet.
    pub purse: Purse,
    /// The chain.
    pub chain: Chain,
    /// USDC on it.
    pub token: TokenDomain,
}

/// A payment that is not over.
struct Open {
    id: IntentId,
    spend: NewSpend,
    state: SpendState,
}

/// The one door to the wallet.
pub struct Treasury {
    store: Store,
    till: Till,
    door: Mutex<()>,
}

impl Treasury {
    /// A treasury over the automaton's record.
    #[must_use]
    pub fn new(store: Store, till: Till) -> Self {
        Self { store, till, door: Mutex::new(()) }
    }

    /// What the wallet holds.
    ///
    /// # Errors
    /// [`TreasuryError::Chain`]; then it is unknown.
    pub async fn usdc(&self) -> Result<MicroUsdc, TreasuryError> {
        let Till { chain, token, purse, .. } = &self.till;
        Ok(chain.balance(token.contract, purse.address()).await?)
    }

    /// Buys credits for `usd` US dollars, or goes on with the purchase that is
    /// open, whatever its tier.
    ///
    /// # Errors
    /// [`TreasuryError`].
    pub async fn buy(&self, usd: u32) -> Result<Bought, TreasuryError> {
        let _alone = self.door.lock().await;
        if let Some(open) = self.store.open_spend().await?
            && let Some(bought) = self.go_on(open).await?
        {
            return Ok(bought);
        }
        let price = price(usd)?;
        let have = self.usdc().await?;
        if have < price {
            return Err(TreasuryError::TooLittle { have, price });
        }
        let chosen = self.choose(usd, price).await?;
        let (spend, signed) = self.sign(usd, &chosen).await?;
        self.send(&spend, &signed).await
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
        select(offers, &wanted).map_err(TreasuryError::Refused)
    }

    /// Writes the payment down, has it signed, and stores what was signed.
    async fn sign(&self, usd: u32, chosen: &Chosen) -> Result<(Open, SignedSpend), TreasuryError> {
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
        let payment = match purse.pay(id, chosen, token).await {
            Ok(payment) => payment,
            Err(error) => {
                // Whatever was signed never left the signer's side.
                let reason = SpendStep::Failed(chain(&error).to_string());
                self.store.step_spend(id, reason).await?;
                return Err(error.into());
            }
        };
        let nonce = payment.payload.authorization.nonce;
        let (header, value) =
            chosen.offer.payment(payment.payload).map_err(TreasuryError::Encode)?;
        let header = header.to_owned();
        let signed = SignedSpend { header, value, nonce, valid_before: payment.valid_before };
        self.store.spend_signed(id, signed.clone()).await?;
        Ok((Open { id, spend, state: SpendState::Signed }, signed))
    }

    /// Sends the bytes that were signed, for the first time or once more.
    async fn send(&self, open: &Open, signed: &SignedSpend) -> Result<Bought, TreasuryError> {
        let Open { id, spend, state } = open;
        if *state == SpendState::Signed {
            self.store.step_spend(*id, SpendStep::Submitted).await?;
        }
        let name = if signed.header == X_PAYMENT { X_PAYMENT } else { PAYMENT_SIGNATURE };
        let header = (name, signed.value.clone());
        match self.till.cloud.pay_for_credits(spend.usd, spend.payer, header).await {
            Ok(Paid::Taken(reply)) => self.taken(open, signed, reply).await,
            Ok(Paid::Refused(_)) if self.used(spend, signed).await? => {
                self.settled(open, None).await
            }
            Ok(Paid::Refused(said)) => Err(TreasuryError::NotTaken { id: *id, said }),
            Err(source) => Err(TreasuryError::Unknown { id: *id, source }),
        }
    }

    /// Goes on with an open purchase; nothing when it has come to nothing.
    async fn go_on(&self, found: Spend) -> Result<Option<Bought>, TreasuryError> {
        let Spend { id, spend, state, signed, .. } = found;
        let Some(signed) = signed else {
            let reason = "the process ended before it was signed".to_owned();
            self.store.step_spend(id, SpendStep::Failed(reason)).await?;
            return Ok(None);
        };
        let Till { origin, purse, chain, token, .. } = &self.till;
        let here = (origin, purse.address(), token.chain.0, token.contract);
        if (&spend.origin, spend.payer, spend.chain, spend.asset) != here {
            let NewSpend { origin, payer, chain, .. } = spend;
            return Err(TreasuryError::Elsewhere { id, origin, payer, chain });
        }
        // The chain's own time, read before the state: no later block can use what
        // the state then shows as unused. Our clock has no say in it.
        let is_void = chain.time().await? >= signed.valid_before;
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

    async fn used(&self, spend: &NewSpend, signed: &SignedSpend) -> Result<bool, TreasuryError> {
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
        Ok(Bought { id: open.id, amount: open.spend.amount, transaction, settled: false })
    }

    async fn settled(
        &self,
        open: &Open,
        transaction: Option<String>,
    ) -> Result<Bought, TreasuryError> {
        self.store.step_spend(open.id, SpendStep::Settled(transaction.clone())).await?;
        Ok(Bought { id: open.id, amount: open.spend.amount, transaction, settled: true })
    }
}

fn price(usd: u32) -> Result<MicroUsdc, TreasuryError> {
    if TIERS_USD.contains(&usd) {
        Ok(MicroUsdc::new(u64::from(usd) * USDC_PER_USD))
    } else {
        Err(TreasuryError::NoTier(usd))
    }
}
