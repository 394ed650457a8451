//! Buying without being told: at the start of a life, and before each turn.
//!
//! Only known balances buy. A turn waits for a purchase for a while at most, and
//! giving up waiting never cancels it: it goes on behind the door, and the next
//! look finds it.

use std::sync::Arc;

use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::time::{Span, Timestamp};
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;

use super::{Balances, Bought, Treasury, TreasuryError, WAIT};

/// What a reflex buys: the smallest tier, in US dollars.
const USD: u32 = 5;
/// What that costs.
const PRICE: MicroUsdc = MicroUsdc::new(5_000_000);
/// A life begins with at least so many credits, if it can: $5. One that has bought
/// before begins with what is left, or each start would cost it as much.
const BEGINS_WITH: Microcents = Microcents::new(500 * Microcents::PER_CENT);
/// The least time between the beginnings of two purchases.
const APART: Span = Span::from_secs(60);

/// When a reflex looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// At the start of the process.
    Start,
    /// Before a turn.
    Turn,
}

/// For how many US dollars credits are wanted, if they are.
fn wants_credits(moment: Moment, balances: &Balances, since_last: Option<Span>) -> Option<u32> {
    let first = moment == Moment::Start && since_last.is_none();
    let wanting = first && balances.credits.is_some_and(|credits| credits < BEGINS_WITH);
    let poor = wanting || balances.tier().is_some_and(|tier| tier.is_poor());
    let can = balances.usdc.is_some_and(|usdc| usdc >= PRICE);
    let again = since_last.is_none_or(|since| since >= APART);
    (poor && can && again).then_some(USD)
}

impl Treasury {
    /// Goes on with the purchase that is open, or begins one where credits are
    /// wanted; what is there then. A failure is told as an event.
    pub async fn look(self: &Arc<Self>, moment: Moment) -> Balances {
        let looked = self.behind_the_door(async move |treasury, mut tried| {
            treasury.reflex(moment, &mut tried).await;
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

    /// Buys as [`Treasury::buy`] does, but waits for a while only.
    ///
    /// # Errors
    /// [`TreasuryError`]; after [`TreasuryError::UnderWay`] the purchase goes on.
    pub async fn buy_soon(self: &Arc<Self>, usd: u32) -> Result<Bought, TreasuryError> {
        let buy = async move |treasury: Arc<Self>, _alone| treasury.purchase(usd).await;
        self.behind_the_door(buy).await?
    }

    /// Does something that only one may do, in a task of its own: whoever stops
    /// waiting before the door opens has begun nothing, and afterwards it goes on.
    #[expect(
        clippy::disallowed_methods,
        reason = "the door owns the task: there is one at a time, and it outlives who waits for it"
    )]
    async fn behind_the_door<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(Arc<Self>, OwnedMutexGuard<Option<Timestamp>>) -> F,
    ) -> Result<T, TreasuryError> {
        let done = async {
            let door = Arc::clone(&self.door).lock_owned().await;
            tokio::spawn(work(Arc::clone(self), door)).await.map_err(|_| TreasuryError::Cut)
        };
        timeout(WAIT, done).await.map_err(|_| TreasuryError::UnderWay)?
    }

    async fn reflex(&self, moment: Moment, tried: &mut Option<Timestamp>) {
        let open = self.go_on().await.transpose();
        if let Some(outcome) = &open {
            self.tell(outcome).await;
        }
        if open.is_none_or(|outcome| outcome.is_ok_and(|bought| bought.settled))
            && let Some(outcome) = self.begin_if_wanted(moment, tried).await.transpose()
        {
            self.tell(&outcome).await;
        }
    }

    async fn begin_if_wanted(
        &self,
        moment: Moment,
        tried: &mut Option<Timestamp>,
    ) -> Result<Option<Bought>, TreasuryError> {
        let balances = self.balances().await;
        let newest = self.store.newest_spend().await?.map(|spend| spend.at);
        let now = self.around.mint.now();
        // A time to come is one of a clock that was set back since: it holds nobody up.
        let last = newest.into_iter().chain(*tried).filter(|at| *at <= now).max();
        let Some(usd) = wants_credits(moment, &balances, last.map(|last| now.since(last))) else {
            return Ok(None);
        };
        *tried = Some(now);
        self.begin(usd).await.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_balances_buy_and_not_again_at_once() {
        use Moment::{Start, Turn};
        let check = |moment, cents: Option<i64>, usdc: Option<u64>, since: Option<i64>| {
            let credits = cents.map(|cents| Microcents::from_cents(cents).unwrap());
            let usdc = usdc.map(MicroUsdc::new);
            let balances = Balances { at: Timestamp::EPOCH, credits, usdc };
            wants_credits(moment, &balances, since.map(Span::from_secs))
        };
        let five = Some(5_000_000);
        for (moment, cents, first, later) in [
            (Start, Some(-1), true, true),
            (Start, Some(0), true, true),
            (Start, Some(50), true, true),
            (Start, Some(499), true, false),
            (Start, Some(500), false, false),
            (Turn, Some(-1), true, true),
            (Turn, Some(0), true, true),
            (Turn, Some(10), true, true),
            (Turn, Some(50), true, true),
            (Turn, Some(51), false, false),
            (Start, None, false, false),
            (Turn, None, false, false),
        ] {
            let wanted = |buys: bool| buys.then_some(5);
            assert_eq!(check(moment, cents, five, None), wanted(first), "{moment:?} {cents:?}");
            assert_eq!(check(moment, cents, five, Some(60)), wanted(later), "{moment:?} {cents:?}");
            assert_eq!(check(moment, cents, five, Some(59)), None, "{moment:?} {cents:?}");
            assert_eq!(check(moment, cents, None, None), None, "{moment:?} {cents:?}");
            assert_eq!(check(moment, cents, Some(4_999_999), None), None, "{moment:?} {cents:?}");
        }
    }
}
