//! The time in which hours and days of spending are counted.
//!
//! It goes on with the clock since boot, which nobody can set, and is kept whenever
//! the balances are read and before a payment is judged. What passed while no process
//! ran is added when wall and chain both tell it, and only as long as nothing was
//! counted since: it must never be added to what a payment is older by that was
//! written down in this process.

use automaton_core::time::{Span, Timestamp};
use automaton_core::window::{ClockReadings, WindowAnchor};

use super::balances::in_time;
use super::{Treasury, TreasuryError};

/// Window time as it passes in one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WindowTimer {
    /// The last moment, and the time since boot at it.
    moment: WindowAnchor,
    since_boot: Span,
    /// True if the time before this process is added. Until then the readings are those of the
    /// last process, continued.
    resumed: bool,
}

impl WindowTimer {
    const fn begun(kept: WindowAnchor, since_boot: Span) -> Self {
        Self { moment: kept, since_boot, resumed: false }
    }

    /// The same at a later moment.
    fn passed(self, since_boot: Span, now: ClockReadings) -> Self {
        let by = Span::from_millis(since_boot.as_millis() - self.since_boot.as_millis());
        let wall = if self.resumed { now.wall } else { self.moment.said.wall.after(by) };
        let mut moment = self.moment.advanced(by, wall);
        if !self.resumed && now.chain.is_some() {
            moment = moment.resumed(now);
        }
        // From now on the next start has two witnesses.
        moment.said.chain = moment.said.chain.or(now.chain);
        let since_boot = since_boot.max(self.since_boot);
        Self { moment, since_boot, resumed: self.resumed || now.chain.is_some() }
    }

    /// The same when something is counted at it: what passed before is given up then,
    /// as nothing confirms it any more.
    fn counted(self, wall: Timestamp) -> Self {
        if self.resumed {
            return self;
        }
        let moment = self.moment.resumed(ClockReadings { wall, chain: None });
        Self { moment, ..self }
    }
}

impl Treasury {
    /// Brings the window time up to now, for something that is counted.
    ///
    /// # Errors
    /// [`TreasuryError::NoTime`], or when it cannot be kept.
    pub(super) async fn advance_window(&self) -> Result<(), TreasuryError> {
        let wall = self.deps.ids.now();
        self.pass(None, |passing| passing.counted(wall)).await
    }

    /// The same for nothing that is counted; asks the chain for its time while that is
    /// not known.
    ///
    /// # Errors
    /// As [`Treasury::advance_window`].
    pub(super) async fn note_time(&self) -> Result<(), TreasuryError> {
        let told = |passing: &WindowTimer| passing.resumed && passing.moment.said.chain.is_some();
        let chain = match self.window_timer.lock().await.as_ref().is_some_and(told) {
            true => None,
            false => in_time(self.payment_context.chain.time()).await,
        };
        self.pass(chain, |passing| passing).await
    }

    async fn pass(
        &self,
        chain: Option<Timestamp>,
        then: impl FnOnce(WindowTimer) -> WindowTimer,
    ) -> Result<(), TreasuryError> {
        let mut passing = self.window_timer.lock().await;
        let begun = self.started_at_boot_time.ok_or(TreasuryError::NoTime)?;
        let last = match *passing {
            Some(last) => last,
            None => WindowTimer::begun(self.store.window().await?, begun),
        };
        let since_boot = self.deps.boot.since_boot().ok_or(TreasuryError::NoTime)?;
        let now = ClockReadings { wall: self.deps.ids.now(), chain };
        let next = then(last.passed(since_boot, now));
        self.store.keep_window(next.moment).await?;
        *passing = Some(next);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        /// Time passes, while a process runs or while none does.
        Pass(i64),
        Set(i64),
        /// The balances are read, with a block so old and so early.
        Note(Option<(i64, i64)>),
        Count,
        Restart {
            reboot: i64,
            idle: i64,
        },
    }

    fn step() -> impl Strategy<Value = Step> {
        let block = prop::option::weighted(0.7, (0..100_000_i64, 0..20_000_i64));
        prop_oneof![
            (0..200_000_000_i64).prop_map(Step::Pass),
            (-900_000_000..900_000_000_i64).prop_map(Step::Set),
            block.prop_map(Step::Note),
            Just(Step::Count),
            (0..9_i64, 0..200_000_000_i64)
                .prop_map(|(reboot, idle)| Step::Restart { reboot, idle }),
        ]
    }

    const fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    proptest! {
        /// Between any two counts no more window time passed than true time, and no
        /// less than processes ran of which it is known.
        #[test]
        fn no_clock_that_is_set_makes_an_hour_shorter_or_longer(
            steps in prop::collection::vec(step(), 0..80),
        ) {
            let mut now = 0_i64;
            let mut wall = 0_i64;
            let mut booted = 0_i64;
            let said = ClockReadings { wall: at(0), chain: None };
            let mut kept = WindowAnchor { window: at(0), said };
            let mut process = WindowTimer::begun(kept, Span::ZERO);
            // Of the time that passed: how long processes ran, as far as it was kept.
            let mut ran = 0_i64;
            let mut ran_kept = 0_i64;
            let mut counted = Vec::new();
            for step in steps {
                let since_boot = Span::from_millis(now - booted);
                let mut go = |chain, count: bool| {
                    let told = ClockReadings { wall: at(now + wall), chain };
                    process = process.passed(since_boot, told);
                    if count {
                        process = process.counted(told.wall);
                        counted.push((now, process.moment.window.as_millis(), ran));
                    }
                    (kept, ran_kept) = (process.moment, ran);
                };
                match step {
                    Step::Pass(millis) => (now, ran) = (now + millis, ran + millis),
                    Step::Set(ahead) => wall = ahead,
                    Step::Note(block) => {
                        go(block.map(|(age, early)| at(now - age + early)), false);
                    }
                    Step::Count => go(None, true),
                    Step::Restart { reboot, idle } => {
                        (now, ran) = (now + idle, ran_kept);
                        booted = if reboot == 0 { now } else { booted };
                        process = WindowTimer::begun(kept, Span::from_millis(now - booted));
                    }
                }
            }
            for (place, (before, window_before, ran_before)) in counted.iter().enumerate() {
                for (after, window_after, ran_after) in &counted[place..] {
                    let passed = window_after - window_before;
                    prop_assert!(passed <= after - before);
                    prop_assert!(passed >= ran_after - ran_before);
                }
            }
        }
    }

    #[test]
    fn what_wall_and_chain_both_tell_of_a_night_is_added_once() {
        let said = |wall, chain| ClockReadings { wall: at(wall), chain };
        let kept = WindowAnchor { window: at(5), said: said(1_000, Some(at(2_000))) };
        let begun = WindowTimer::begun(kept, Span::from_millis(100));
        let ran = |passing: WindowTimer, since_boot, now| {
            passing.passed(Span::from_millis(since_boot), now)
        };
        // Nothing but what this process runs, for as long as the chain is silent.
        let waits = ran(begun, 130, said(900_000, None));
        assert_eq!(
            waits.moment,
            WindowAnchor { window: at(35), said: said(1_030, Some(at(2_030))) }
        );
        let told = said(900_010, Some(at(1_000_000)));
        let woke = ran(waits, 140, told);
        let night = 1_000_000 - 120_000 - 2_040;
        assert_eq!(woke.moment, WindowAnchor { window: at(45 + night), said: told });
        let later = ran(woke, 150, said(-7, Some(at(9_000_000))));
        let goes_on = said(-7, Some(at(1_000_010)));
        assert_eq!(later.moment, WindowAnchor { window: at(55 + night), said: goes_on });
        // What was counted first would get older by a night before it.
        let counted = waits.counted(at(900_000));
        let gave_up = ran(counted, 140, told);
        assert_eq!(gave_up.moment, WindowAnchor { window: at(45), said: told });
        assert_eq!(ran(gave_up, 90, told).since_boot, Span::from_millis(140));
    }
}
