//! True time, which nobody in a history can read, and the clocks that are read
//! instead.
//!
//! True time is the runtime's paused time plus leaps, so no history ever waits.
//! A clock of the wall is off by whatever a history wants, in either direction;
//! the clock since boot is true, as nobody can set it. Nothing that is rehearsed
//! may be given a [`TrueTime`].

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use automaton_core::time::{Clock, Span, Timestamp};
use automaton_core::window::BootClock;
use tokio::runtime::Handle;
use tokio::time::Instant;

/// Start of every history, in milliseconds since the epoch.
const BEGIN_MS: i64 = 1_767_323_104_000;

/// True time. Clones show the same.
#[derive(Clone)]
pub(crate) struct TrueTime(Arc<Inner>);

struct Inner {
    begin_ms: i64,
    begun: Instant,
    leapt_ms: AtomicI64,
    /// Last reading, for threads outside the runtime.
    shown_ms: AtomicI64,
}

impl TrueTime {
    /// Begins now, when every history does; must be called within a paused runtime.
    pub(crate) fn begin() -> Self {
        Self::begin_at(Timestamp::from_millis(BEGIN_MS))
    }

    /// The same at another time.
    pub(crate) fn begin_at(at: Timestamp) -> Self {
        let begin_ms = at.as_millis();
        let leapt_ms = AtomicI64::new(0);
        let shown_ms = AtomicI64::new(begin_ms);
        Self(Arc::new(Inner { begin_ms, begun: Instant::now(), leapt_ms, shown_ms }))
    }

    pub(crate) fn now(&self) -> Timestamp {
        let Inner { begin_ms, begun, leapt_ms, shown_ms } = &*self.0;
        // The time of a paused runtime is only known within it; who asks from another
        // thread was asked by the runtime, which has read it before.
        if Handle::try_current().is_ok() {
            let ran = i64::try_from(begun.elapsed().as_millis()).unwrap_or(i64::MAX);
            let now = begin_ms.saturating_add(ran).saturating_add(leapt_ms.load(Ordering::SeqCst));
            shown_ms.store(now, Ordering::SeqCst);
        }
        Timestamp::from_millis(shown_ms.load(Ordering::SeqCst))
    }

    /// Passes a span in which no deadline ends, as the sleep of a machine does.
    pub(crate) fn leap(&self, by: Span) {
        self.0.leapt_ms.fetch_add(by.as_millis(), Ordering::SeqCst);
        self.now();
    }

    /// Returns the duration of the history so far.
    pub(crate) fn passed(&self) -> Span {
        self.now().since(Timestamp::from_millis(self.0.begin_ms))
    }
}

/// Time since boot, which is true.
pub(crate) struct SimBootClock(pub(crate) TrueTime);

impl BootClock for SimBootClock {
    fn since_boot(&self) -> Option<Span> {
        self.0.now();
        Some(self.0.passed())
    }
}

/// The clock on the wall of one process.
#[derive(Clone)]
pub(crate) struct SimWallClock {
    time: TrueTime,
    off_ms: Arc<AtomicI64>,
}

impl SimWallClock {
    pub(crate) fn right(time: &TrueTime) -> Self {
        Self { time: time.clone(), off_ms: Arc::default() }
    }

    /// Sets it to be off by so many milliseconds.
    pub(crate) fn set_off(&self, by_ms: i64) {
        self.off_ms.store(by_ms, Ordering::SeqCst);
    }
}

impl Clock for SimWallClock {
    fn now(&self) -> Timestamp {
        let off = self.off_ms.load(Ordering::SeqCst);
        Timestamp::from_millis(self.time.now().as_millis().saturating_add(off))
    }
}
