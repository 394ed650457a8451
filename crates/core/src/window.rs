//! Pure: windows of time over which money is counted, and the time that they
//! are measured in.
//!
//! Window time must never run faster than true time: whoever sets a clock would
//! free what a window still holds. While a process runs, window time advances
//! with the clock since boot, which nobody can set. What passed while it did not
//! run is only what two witnesses confirm, the clock of the wall and the last
//! block of a chain; without one of them, nothing passed.

use crate::time::{Span, Timestamp};

/// How long a payment counts towards a ceiling of an hour.
pub const HOUR: Span = Span::from_secs(60 * 60);

/// How long a payment counts towards a ceiling of a day.
pub const DAY: Span = Span::from_secs(24 * 60 * 60);

/// How far the time of a chain's last block may be from true time, at the
/// beginning and at the end of a span together: a block may be a minute old, and
/// some seconds early. So much of what a chain tells to have passed is not believed.
pub const CHAIN_STRAY_MAX: Span = Span::from_secs(120);

/// The time since the machine started. Never goes back while it runs, and nobody
/// can set it.
pub trait BootClock: Send + Sync {
    /// The time since the start; `None` when it cannot be read.
    fn since_boot(&self) -> Option<Span>;
}

/// What the clocks said at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Witnesses {
    /// The clock of the wall.
    pub wall: Timestamp,
    /// The time of the chain's last block, where it is known.
    pub chain: Option<Timestamp>,
}

/// A moment of window time, and what the clocks said at it. What has to be kept
/// over a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor {
    /// The moment. Its origin means nothing; only differences do.
    pub window: Timestamp,
    /// The clocks.
    pub said: Witnesses,
}

impl Anchor {
    /// The window time at which a process begins that knows what was kept before
    /// it: later by no more than each witness confirms.
    #[must_use]
    pub fn resumed(self, now: Witnesses) -> Self {
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
        Self { window: self.window.after(by), said: Witnesses { wall, chain } }
    }
}
