//! Buying without being told: at the start of a life, and before each turn.
//!
//! Only known balances buy. A turn waits for a purchase for a while at most, and
//! giving up waiting never cancels it: it goes on behind the door, and the next
//! look finds it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use automaton_core::id::PaymentId;
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::money_defaults::{FIRST_PURCHASE_USD, first_purchase_price};
use automaton_core::payment::{PaymentReason, PaymentState, Purpose};
use automaton_core::time::{Span, Timestamp};
use automaton_store::StoreError;
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;
use tracing::Instrument as _;

use super::topup::TOP_UP;
use super::{Balances, TopUpOutcome, Treasury, TreasuryError, WAIT};

/// The least time from the last step of a purchase to the next one's beginning: the
/// cloud may credit later than the chain moves.
const TOPUP_INTERVAL_MIN: Span = Span::from_secs(60);

/// Facts that are kept between checks, for as long as the process lives.
#[derive(Debug, Default)]
pub(super) struct TopUpState {
    /// Time of the last automatic purchase.
    tried: Option<Timestamp>,
    /// A purchase of a time to come, which was taken for one of just now.
    ahead: Option<PaymentId>,
    /// The newest purchase and the credits before the last reflex bought, until they
    /// are seen to be more.
    before: Option<(Option<PaymentId>, Microcents)>,
    /// True if it was told that purchases bring nothing.
    told: bool,
}

/// Facts of a check besides the balances.
#[derive(Debug, Clone, Copy)]
struct TopUpContext {
    /// True if the cloud has refused a request for lack of credits since the last check.
    refused: bool,
    /// Time since the last purchase began or advanced.
    since: Option<Span>,
}

/// Returns true if credits are wanted, and can be bought.
fn wants_credits(balances: &Balances, known: TopUpContext) -> bool {
    let Some(tier) = balances.tier() else { return false };
    let can = balances.usdc.is_some_and(|usdc| usdc >= first_purchase_price());
    let again = known.since.is_none_or(|since| since >= TOPUP_INTERVAL_MIN);
    (known.refused || tier.is_poor()) && can && again
}

impl Treasury {
    /// Goes on with the purchase that is open, or begins one where credits are
    /// wanted; what is there then. A failure is told as an event.
    pub async fn check_balances(self: &Arc<Self>) -> Balances {
        let looked = self.with_topup_lock(async move |treasury, mut kept| {
            treasury.auto_topup(&mut kept).await;
            treasury.balances().await
        });
        match looked.await {
            Ok(balances) => balances,
            Err(TreasuryError::UnderWay) => self.unknown(),
            Err(error) => {
                self.report(&Err(error)).await;
                self.unknown()
            }
        }
    }

    /// Returns true if credits may arrive without help: there is USDC for them, or they are paid
    /// for. An unknown balance counts as yes.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn may_bring_credits(
        &self,
        usdc: Option<MicroUsdc>,
    ) -> Result<bool, StoreError> {
        if usdc.is_none_or(|usdc| usdc >= first_purchase_price())
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

    /// Buys for the creator's own hand: at once after another purchase, too. Waits so long;
    /// what was begun by then goes on.
    ///
    /// # Errors
    /// [`TreasuryError`]; after [`TreasuryError::UnderWay`] the purchase goes on.
    pub(crate) async fn buy_for_creator(
        self: &Arc<Self>,
        usd: u32,
        why: PaymentReason,
        within: Duration,
    ) -> Result<TopUpOutcome, TreasuryError> {
        let buy = async move |treasury: Arc<Self>, kept: OwnedMutexGuard<TopUpState>| {
            let bought = treasury.purchase(usd, &why, None).await;
            drop(kept);
            bought
        };
        self.run_locked(buy, within).await?
    }

    /// Does something that only one may do, in a task of its own: whoever stops
    /// waiting before the door opens has begun nothing, and afterwards it goes on.
    pub(super) async fn with_topup_lock<
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    >(
        self: &Arc<Self>,
        work: impl FnOnce(Arc<Self>, OwnedMutexGuard<TopUpState>) -> F,
    ) -> Result<T, TreasuryError> {
        self.run_locked(work, WAIT).await
    }

    /// The same, which waits so long.
    #[expect(
        clippy::disallowed_methods,
        reason = "the lock owns the task: there is one at a time, and it outlives who waits for it"
    )]
    async fn run_locked<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(Arc<Self>, OwnedMutexGuard<TopUpState>) -> F,
        within: Duration,
    ) -> Result<T, TreasuryError> {
        let done = async {
            let guard = Arc::clone(&self.topup_lock).lock_owned().await;
            tokio::spawn(work(Arc::clone(self), guard).in_current_span())
                .await
                .map_err(|_| TreasuryError::Cut)
        };
        timeout(within, done).await.map_err(|_| TreasuryError::UnderWay)?
    }

    async fn auto_topup(&self, kept: &mut TopUpState) {
        let refused = self.out_of_credits.swap(false, Ordering::SeqCst);
        if let Err(error) = self.reconcile().await {
            self.report(&Err(error)).await;
        }
        let outcome = match self.go_on().await.transpose() {
            // Whatever became of it, the credits may be yet to come: nothing is begun now.
            Some(outcome) => Some(outcome),
            None => self.start_if_low(refused, kept).await.transpose(),
        };
        if let Some(outcome) = outcome {
            self.report(&outcome).await;
        }
    }

    async fn start_if_low(
        &self,
        refused: bool,
        kept: &mut TopUpState,
    ) -> Result<Option<TopUpOutcome>, TreasuryError> {
        let balances = self.balances().await;
        let no_more = |before: Microcents| balances.credits.is_none_or(|now| now <= before);
        kept.before = kept.before.filter(|(_, before)| no_more(*before));
        let since = self.since_last(kept).await?;
        if !wants_credits(&balances, TopUpContext { refused, since }) {
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
        self.begin(FIRST_PURCHASE_USD, &PaymentReason::auto_topup("credits run low"))
            .await
            .map(Some)
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

    /// Returns the time since the last purchase began or advanced.
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
        let check = |cents: Option<i64>, usdc: Option<u64>, since: Option<i64>| {
            let credits = cents.map(|cents| Microcents::from_cents(cents).unwrap());
            let balances =
                Balances { at: Timestamp::EPOCH, credits, usdc: usdc.map(MicroUsdc::new) };
            let since = since.map(Span::from_secs);
            let known = TopUpContext { refused: false, since };
            let refused = wants_credits(&balances, TopUpContext { refused: true, ..known });
            let can =
                since.is_none_or(|since| since >= TOPUP_INTERVAL_MIN) && usdc >= Some(5_000_000);
            assert_eq!(refused, can && credits.is_some(), "{known:?}");
            wants_credits(&balances, known)
        };
        let five = Some(5_000_000);
        for (cents, buys) in [
            (Some(-1), true),
            (Some(0), true),
            (Some(10), true),
            (Some(50), true),
            (Some(51), false),
            (Some(498), false),
            (Some(500), false),
            (None, false),
        ] {
            assert_eq!(check(cents, five, None), buys, "{cents:?}");
            assert_eq!(check(cents, five, Some(60)), buys, "{cents:?}");
            assert!(!check(cents, five, Some(59)), "{cents:?}");
            assert!(!check(cents, None, None), "{cents:?}");
            assert!(!check(cents, Some(4_999_999), None), "{cents:?}");
        }
    }
}
