//! Pure: what wakes one that hibernates: money, or its creator.
//!
//! Money is what others pay, or balances that grew. What it bought itself is one
//! pocket emptied into the other and must never wake it, and neither must a balance
//! that could not be read.

use crate::money::{MicroUsdc, Microcents};
use crate::time::Timestamp;

/// Balances, as far as they are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Holdings {
    /// Credits with the cloud.
    pub credits: Option<Microcents>,
    /// USDC of the wallet.
    pub usdc: Option<MicroUsdc>,
}

/// A hibernation, and what happened in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hibernation {
    /// Start of the hibernation.
    pub since: Timestamp,
    /// Reason, and the events that end it, in words.
    pub reason: String,
    /// The least that was seen of each balance.
    pub had: Holdings,
    /// Credits that it bought itself, which may have been added since.
    pub bought: Microcents,
    /// Revenue since then.
    pub revenue: Microcents,
    /// True if the creator wrote, woke it or approved a question.
    pub called: bool,
}

/// Event that ends a hibernation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, derive_more::Display)]
pub enum HibernationWaker {
    /// The creator.
    #[display("Your creator ended your hibernation.")]
    Creator,
    /// Others paid so much.
    #[display("Your hibernation is over: others paid you {_0}.")]
    Revenue(Microcents),
    /// There are so many more credits than there were.
    #[display("Your hibernation is over: you were given {_0} of credits.")]
    Credits(Microcents),
    /// There is so much more USDC than there was.
    #[display("Your hibernation is over: your wallet was given {_0}.")]
    Usdc(MicroUsdc),
}

impl Hibernation {
    /// Returns the event that ends the hibernation, given the current holdings.
    #[must_use]
    pub fn ended_by(&self, now: Holdings) -> Option<HibernationWaker> {
        if self.called {
            return Some(HibernationWaker::Creator);
        }
        if self.revenue > Microcents::ZERO {
            return Some(HibernationWaker::Revenue(self.revenue));
        }
        let usdc = now.usdc.zip(self.had.usdc).and_then(|(now, had)| now.minus(had));
        if let Some(more) = usdc.filter(|more| *more > MicroUsdc::ZERO) {
            return Some(HibernationWaker::Usdc(more));
        }
        let credits = now.credits.zip(self.had.credits);
        // silent-ok: what cannot be counted is not known to be more.
        let more = credits.and_then(|(now, had)| now.minus(had).ok()?.minus(self.bought).ok())?;
        (more > Microcents::ZERO).then_some(HibernationWaker::Credits(more))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOLLAR: i64 = 100_000_000;

    fn quiet() -> Hibernation {
        Hibernation {
            since: Timestamp::EPOCH,
            reason: String::new(),
            had: holds(3 * DOLLAR, 20_000_000),
            bought: Microcents::ZERO,
            revenue: Microcents::ZERO,
            called: false,
        }
    }

    fn holds(credits: i64, usdc: u64) -> Holdings {
        Holdings { credits: Some(Microcents::new(credits)), usdc: Some(MicroUsdc::new(usdc)) }
    }

    #[test]
    fn money_and_the_creator_wake_and_nothing_else_does() {
        let check = |by: Hibernation, now: Holdings, waker: Option<HibernationWaker>| {
            assert_eq!(by.ended_by(now), waker, "{by:?} {now:?}");
        };
        let same = holds(3 * DOLLAR, 20_000_000);
        let one = Microcents::new(1);
        check(quiet(), same, None);
        check(quiet(), Holdings::default(), None);
        check(quiet(), holds(2 * DOLLAR, 19_000_000), None);
        check(
            Hibernation { called: true, ..quiet() },
            Holdings::default(),
            Some(HibernationWaker::Creator),
        );
        check(Hibernation { revenue: one, ..quiet() }, same, Some(HibernationWaker::Revenue(one)));
        check(quiet(), holds(3 * DOLLAR + 1, 20_000_000), Some(HibernationWaker::Credits(one)));
        check(
            quiet(),
            holds(3 * DOLLAR, 20_000_001),
            Some(HibernationWaker::Usdc(MicroUsdc::new(1))),
        );
        let unread = Hibernation { had: Holdings::default(), ..quiet() };
        check(unread, holds(900 * DOLLAR, 900_000_000), None);
    }

    #[test]
    fn what_it_bought_itself_does_not_wake_it() {
        let bought = Hibernation { bought: Microcents::new(5 * DOLLAR), ..quiet() };
        assert_eq!(bought.ended_by(holds(8 * DOLLAR, 15_000_000)), None);
        assert_eq!(bought.ended_by(holds(3 * DOLLAR, 15_000_000)), None, "credited later");
        let more = Some(HibernationWaker::Credits(Microcents::new(DOLLAR)));
        assert_eq!(bought.ended_by(holds(9 * DOLLAR, 15_000_000)), more);
    }
}
