//! Buying without being told: at the start of a life, and before each turn.
//!
//! Only known balances buy. A turn waits for a purchase for a while at most, and
//! giving up waiting never cancels it: it goes on behind the door, and the next
//! look finds it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use automaton_core::id::PaymentId;
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::payment::{PaymentReason, PaymentState, Purpose};
use automaton_core::time::{Span, Timestamp};
use automaton_store::StoreError;
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;
use tracing::Instrument as _;

use super::topup::TOP_UP;
use super::{Balances, TopUpOutcome, Treasury, TreasuryError, WAIT};

/// What an automatic top-up buys: the smallest tier, in US dollars.
pub const AUTO_TOPUP_USD: u32 = 5;
/// What that costs.
const AUTO_TOPUP_PRICE: MicroUsdc = MicroUsdc::new(5_000_000);
/// The process begins with at least so many credits, if it can: $5. What is bought then lifts
/// them above that, so that starting again and again buys once.
pub const START_CREDITS_MIN: Microcents = Microcents::new(500 * Microcents::PER_CENT);
/// The least time from the last step of a purchase to the next one's beginning: the
/// cloud may credit later than the chain moves.
const TOPUP_INTERVAL_MIN: Span = Span::from_secs(60);

/// When a reflex looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopUpTrigger {
    /// At the start of the process.
    Start,
    /// Before a turn.
    Turn,
}

/// What is known behind the door from before, for as long as the process lives.
#[derive(Debug, Default)]
pub(super) struct TopUpState {
    /// When a reflex last began to buy.
    tried: Option<Timestamp>,
    /// A purchase of a time to come, which was taken for one of just now.
    ahead: Option<PaymentId>,
    /// The newest purchase and the credits before the last reflex bought, until they
    /// are seen to be more.
    before: Option<(Option<PaymentId>, Microcents)>,
    /// Whether it was told that purchases bring nothing.
    told: bool,
}

/// What a look knows besides the balances.
#[derive(Debug, Clone, Copy)]
struct TopUpContext {
    moment: TopUpTrigger,
    /// Whether the cloud has refused a request for want of credits since the last look.
    refused: bool,
    /// How long ago a purchase was last begun or came further.
    since: Option<Span>,
}

/// Whether credits are wanted, and can be bought.
fn wants_credits(balances: &Balances, known: TopUpContext) -> bool {
    let (Some(credits), Some(tier)) = (balances.credits, balances.tier()) else { return false };
    let first = known.moment == TopUpTrigger::Start && credits < START_CREDITS_MIN;
    let can = balances.usdc.is_some_and(|usdc| usdc >= AUTO_TOPUP_PRICE);
    let again = known.since.is_none_or(|since| since >= TOPUP_INTERVAL_MIN);
    (first || known.refused || tier.is_poor()) && can && again
}

impl Treasury {
    /// Goes on with the purchase that is open, or begins one where credits are
    /// wanted; what is there then. A failure is told as an event.
    pub async fn check_balances(self: &Arc<Self>, moment: TopUpTrigger) -> Balances {
        let looked = self.with_topup_lock(async move |treasury, mut kept| {
            treasury.auto_topup(moment, &mut kept).await;
            treasury.balances().await
        });
        match looked.await {
            Ok(balances) => balances,
            Err(TreasuryError::UnderWay) => self.unknown(),
            Err(error) => {
                self.tell(&Err(error)).await;
                self.unknown()
            }
        }
    }

    /// Whether credits may come without anybody's help: there is USDC for them, or they
    /// are paid for and under way. What is unknown may be.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn may_bring_credits(
        &self,
        usdc: Option<MicroUsdc>,
    ) -> Result<bool, StoreError> {
        if usdc.is_none_or(|usdc| usdc >= AUTO_TOPUP_PRICE)
            || self.store.open_payment(TOP_UP).await?.is_some()
        {
            return Ok(true);
        }
        // The cloud may credit later than the chain moves.
        let newest = self.store.newest_payment(Purpose::TopUp).await?;
        let now = self.deps.ids.now();
        Ok(newest.is_some_and(|payment| {
            payment.state == PaymentState::Settled
                && now.since(payment.changed_at) < TOPUP_INTERVAL_MIN
        }))
    }

    /// Buys as [`Treasury::buy`] does, but waits for a while only.
    ///
    /// # Errors
    /// [`TreasuryError`]; after [`TreasuryError::UnderWay`] the purchase goes on.
    pub async fn buy_with_timeout(
        self: &Arc<Self>,
        usd: u32,
        why: PaymentReason,
    ) -> Result<TopUpOutcome, TreasuryError> {
        let buy = async move |treasury: Arc<Self>, mut kept: OwnedMutexGuard<TopUpState>| {
            treasury.purchase(usd, &why, Some(&mut kept)).await
        };
        self.with_topup_lock(buy).await?
    }

    /// Does something that only one may do, in a task of its own: whoever stops
    /// waiting before the door opens has begun nothing, and afterwards it goes on.
    #[expect(
        clippy::disallowed_methods,
        reason = "the lock owns the task: there is one at a time, and it outlives who waits for it"
    )]
    pub(super) async fn with_topup_lock<
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    >(
        self: &Arc<Self>,
        work: impl FnOnce(Arc<Self>, OwnedMutexGuard<TopUpState>) -> F,
    ) -> Result<T, TreasuryError> {
        let done = async {
            let guard = Arc::clone(&self.topup_lock).lock_owned().await;
            tokio::spawn(work(Arc::clone(self), guard).in_current_span())
                .await
                .map_err(|_| TreasuryError::Cut)
        };
        timeout(WAIT, done).await.map_err(|_| TreasuryError::UnderWay)?
    }

    async fn auto_topup(&self, moment: TopUpTrigger, kept: &mut TopUpState) {
        let refused = self.out_of_credits.swap(false, Ordering::SeqCst);
        if let Err(error) = self.reconcile().await {
            self.tell(&Err(error)).await;
        }
        let outcome = match self.go_on().await.transpose() {
            // Whatever became of it, the credits may be yet to come: nothing is begun now.
            Some(outcome) => Some(outcome),
            None => self.start_if_low(moment, refused, kept).await.transpose(),
        };
        if let Some(outcome) = outcome {
            self.tell(&outcome).await;
        }
    }

    async fn start_if_low(
        &self,
        moment: TopUpTrigger,
        refused: bool,
        kept: &mut TopUpState,
    ) -> Result<Option<TopUpOutcome>, TreasuryError> {
        let balances = self.balances().await;
        let no_more = |before: Microcents| balances.credits.is_none_or(|now| now <= before);
        kept.before = kept.before.filter(|(_, before)| no_more(*before));
        let since = self.since_last(kept).await?;
        if !wants_credits(&balances, TopUpContext { moment, refused, since }) {
            return Ok(None);
        }
        let newest = self.store.newest_payment(Purpose::TopUp).await?;
        let id = newest.as_ref().map(|payment| payment.id);
        if kept.before.is_some_and(|(last, _)| last != id)
            && newest.is_some_and(|payment| payment.state == PaymentState::Settled)
        {
            let told = std::mem::replace(&mut kept.told, true);
            return if told { Ok(None) } else { Err(TreasuryError::Useless) };
        }
        kept.tried = Some(self.deps.ids.now());
        kept.before = balances.credits.map(|credits| (id, credits));
        self.begin(AUTO_TOPUP_USD, &PaymentReason::auto_topup("credits run low")).await.map(Some)
    }

    /// Begins a purchase, unless another one was begun just now.
    pub(super) async fn start_spaced(
        &self,
        usd: u32,
        why: &PaymentReason,
        kept: &mut TopUpState,
    ) -> Result<TopUpOutcome, TreasuryError> {
        match self.since_last(kept).await? {
            Some(since) if since < TOPUP_INTERVAL_MIN => {
                let wait = Span::from_millis(TOPUP_INTERVAL_MIN.as_millis() - since.as_millis());
                Err(TreasuryError::TooSoon { wait })
            }
            Some(_) | None => self.begin(usd, why).await,
        }
    }

    /// How long ago a purchase was last begun or came further.
    async fn since_last(&self, kept: &mut TopUpState) -> Result<Option<Span>, TreasuryError> {
        let now = self.deps.ids.now();
        let newest = self.store.newest_payment(Purpose::TopUp).await?;
        let newest = newest.map(|payment| (payment.id, payment.at.max(payment.changed_at)));
        // A time to come is one of a clock that was set back since. It is taken for just
        // now, and only once, or it would hold up whoever needs credits until it comes.
        let ahead = newest.filter(|(_, at)| *at > now).map(|(id, _)| id);
        if kept.tried.is_some_and(|at| at > now) || (ahead.is_some() && ahead != kept.ahead) {
            (kept.tried, kept.ahead) = (Some(now), ahead);
        }
        let last = newest.map(|(_, at)| at).into_iter().chain(kept.tried);
        Ok(last.filter(|at| *at <= now).max().map(|last| now.since(last)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_balances_buy_and_not_again_at_once() {
        use TopUpTrigger::{Start, Turn};
        let check = |moment, cents: Option<i64>, usdc: Option<u64>, since: Option<i64>| {
            let credits = cents.map(|cents| Microcents::from_cents(cents).unwrap());
            let balances =
                Balances { at: Timestamp::EPOCH, credits, usdc: usdc.map(MicroUsdc::new) };
            let since = since.map(Span::from_secs);
            let known = TopUpContext { moment, refused: false, since };
            let refused = wants_credits(&balances, TopUpContext { refused: true, ..known });
            let can =
                since.is_none_or(|since| since >= TOPUP_INTERVAL_MIN) && usdc >= Some(5_000_000);
            assert_eq!(refused, can && credits.is_some(), "{known:?}");
            wants_credits(&balances, known)
        };
        let five = Some(5_000_000);
        for (moment, cents, first, later) in [
            (Start, Some(-1), true, true),
            (Start, Some(0), true, true),
            (Start, Some(50), true, true),
            (Start, Some(499), true, true),
            (Start, Some(500), false, false),
            (Turn, Some(-1), true, true),
            (Turn, Some(0), true, true),
            (Turn, Some(10), true, true),
            (Turn, Some(50), true, true),
            (Turn, Some(51), false, false),
            (Start, None, false, false),
            (Turn, None, false, false),
        ] {
            assert_eq!(check(moment, cents, five, None), first, "{moment:?} {cents:?}");
            assert_eq!(check(moment, cents, five, Some(60)), later, "{moment:?} {cents:?}");
            assert!(!check(moment, cents, five, Some(59)), "{moment:?} {cents:?}");
            assert!(!check(moment, cents, None, None), "{moment:?} {cents:?}");
            assert!(!check(moment, cents, Some(4_999_999), None), "{moment:?} {cents:?}");
        }
    }
}
