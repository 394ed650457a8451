//! Pure: windows of time over which money is counted, and the time that they
//! are measured in.
//!
//! Window time must never run faster than true time: whoever sets a clock would
//! free what a window still holds. While a process runs, window time advances
//! with the clock since boot, which nobody can set. What passed while it did not
//! run is only what two witnesses confirm, the clock of the wall and the last
//! block of a chain; without one of them, nothing passed.

use crate::time::{Span, Timestamp};

/// Largest error of the time of a chain's last block, at the beginning and at the end of a span
/// together: a block may be a minute old, and some seconds early. This much of a chain's elapsed
/// time is not believed.
pub const CHAIN_STRAY_MAX: Span = Span::from_secs(120);

/// The time since the machine started. Never goes back while it runs, and nobody
/// can set it.
pub trait BootClock: Send + Sync {
    /// The time since the start; `None` when it cannot be read.
    fn since_boot(&self) -> Option<Span>;
}

/// Readings of the clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReadings {
    /// The clock of the wall.
    pub wall: Timestamp,
    /// The time of the chain's last block, where it is known.
    pub chain: Option<Timestamp>,
}

/// A moment of window time, and what the clocks said at it. What has to be kept
/// over a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowAnchor {
    /// The moment. Its origin means nothing; only differences do.
    pub window: Timestamp,
    /// The clocks.
    pub said: ClockReadings,
}

impl WindowAnchor {
    /// The window time at which a process begins that knows what was kept before
    /// it: later by no more than each witness confirms.
    #[must_use]
    pub fn resumed(self, now: ClockReadings) -> Self {
        let passed = match (self.said.chain, now.chain) {
            (Some(before), Some(after)) => {
                let chain = after.before(CHAIN_STRAY_MAX).since(before);
                now.wall.since(self.said.wall).min(chain)
            }
            _ => Span::ZERO,
        };
        Self { window: self.window.after(passed), said: now }
    }

    /// The window time after a span of the clock since boot, within one run. The
    /// chain's time is taken to have advanced with it.
    #[must_use]
    pub fn advanced(self, by: Span, wall: Timestamp) -> Self {
        let chain = self.said.chain.map(|chain| chain.after(by));
        Self { window: self.window.after(by), said: ClockReadings { wall, chain } }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    const fn said(wall: i64, chain: Option<i64>) -> ClockReadings {
        let chain = match chain {
            Some(millis) => Some(at(millis)),
            None => None,
        };
        ClockReadings { wall: at(wall), chain }
    }

    #[test]
    fn a_restart_adds_the_lesser_of_what_the_witnesses_say() {
        let kept = WindowAnchor { window: at(5), said: said(1_000_000, Some(2_000_000)) };
        let passed = |wall, chain| kept.resumed(said(wall, chain)).window.as_millis() - 5;
        assert_eq!(passed(2_000_000, Some(2_120_007)), 7, "the chain says less");
        assert_eq!(passed(1_000_003, Some(9_000_000)), 3, "the wall says less");
        assert_eq!(passed(999_000, Some(9_000_000)), 0, "the wall was set back");
        assert_eq!(passed(2_000_000, Some(1_000_000)), 0, "another chain");
        assert_eq!(passed(2_000_000, None), 0, "no chain");
        let alone = WindowAnchor { said: said(1_000_000, None), ..kept };
        assert_eq!(alone.resumed(said(2_000_000, Some(9_000_000))).window, at(5));
        assert_eq!(kept.resumed(said(7, Some(8))).said, said(7, Some(8)));
    }

    #[test]
    fn within_a_run_only_the_clock_since_boot_counts() {
        let begun = WindowAnchor { window: at(5), said: said(100, Some(200)) };
        let later = begun.advanced(Span::from_millis(30), at(-9));
        assert_eq!(later, WindowAnchor { window: at(35), said: said(-9, Some(230)) });
    }

    #[derive(Debug, Clone)]
    enum Step {
        Pass(i64),
        Set(i64),
        Keep,
        /// A block so old, and so early.
        Restart(Option<(i64, i64)>),
    }

    fn step() -> impl Strategy<Value = Step> {
        let block = (0..100_000_i64, 0..20_000_i64);
        prop_oneof![
            (0..200_000_000_i64).prop_map(Step::Pass),
            (-900_000_000..900_000_000_i64).prop_map(Step::Set),
            Just(Step::Keep),
            prop::option::weighted(0.9, block).prop_map(Step::Restart),
        ]
    }

    proptest! {
        /// Between any two moments at which something was counted, no more window
        /// time passed than true time.
        #[test]
        fn it_never_runs_faster_than_true_time(steps in prop::collection::vec(step(), 0..60)) {
            let mut now = 0_i64;
            let mut wall = 0_i64;
            let mut begun = 0_i64;
            let mut run = WindowAnchor { window: at(0), said: said(0, Some(0)) };
            let mut kept = run;
            let mut counted = vec![(0_i64, 0_i64)];
            for step in steps {
                let moment = run.advanced(Span::from_millis(now - begun), at(now + wall));
                match step {
                    Step::Pass(millis) => now += millis,
                    Step::Set(ahead) => wall = ahead,
                    Step::Keep => {
                        kept = moment;
                        counted.push((now, moment.window.as_millis()));
                    }
                    Step::Restart(block) => {
                        let chain = block.map(|(age, early)| now - age + early);
                        run = kept.resumed(said(now + wall, chain));
                        begun = now;
                    }
                }
            }
            for (place, (before, window_before)) in counted.iter().enumerate() {
                for (after, window_after) in &counted[place..] {
                    prop_assert!(window_after >= window_before);
                    prop_assert!(window_after - window_before <= after - before);
                }
            }
        }
    }
}
