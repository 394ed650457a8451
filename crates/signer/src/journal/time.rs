//! The window clock's state in the ledger, and how it continues after a restart.

use std::sync::Arc;

use automaton_core::time::{Span, Timestamp};
use automaton_core::window::{BootClock, ClockReadings, WindowAnchor};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::error::{SignerRefusal, SignerRefusalCode};
use crate::process::SignerDeps;

/// The readings of all clocks when a signer starts. They are taken once the home is locked and
/// before waiting for anybody.
pub(crate) struct ClockStart {
    boot: Arc<dyn BootClock>,
    since_boot: Span,
    said: ClockReadings,
}

impl ClockStart {
    pub(crate) fn now(parts: &SignerDeps, chain: Option<Timestamp>) -> Result<Self, SignerRefusal> {
        let since_boot = read(&*parts.boot)?;
        let said = ClockReadings { wall: parts.clock.now(), chain };
        Ok(Self { boot: Arc::clone(&parts.boot), since_boot, said })
    }
}

/// The window clock within one run of the signer.
pub(super) struct WindowClock {
    beginning: ClockStart,
    anchor: WindowAnchor,
}

impl WindowClock {
    /// Resumes from the anchor in the ledger. A ledger that has counted nothing starts at the
    /// wall clock's time.
    pub(super) fn resume(ledger: &Connection, beginning: ClockStart) -> rusqlite::Result<Self> {
        let kept = load_anchor(ledger)?;
        let said = beginning.said;
        let first = WindowAnchor { window: said.wall.max(Timestamp::EPOCH), said };
        let anchor = kept.map_or(first, |kept| kept.resumed(said));
        // From now on the next start can compare two clocks.
        if said.chain.is_some() && kept.is_some_and(|kept| kept.said.chain.is_none()) {
            store_anchor(ledger, anchor)?;
        }
        Ok(Self { beginning, anchor })
    }

    /// Returns the window time now, together with the wall clock's time.
    pub(super) fn now(&self, wall: Timestamp) -> Result<WindowAnchor, SignerRefusal> {
        let ClockStart { boot, since_boot, .. } = &self.beginning;
        let passed = read(&**boot)?.as_millis().saturating_sub(since_boot.as_millis());
        Ok(self.anchor.advanced(Span::from_millis(passed), wall))
    }
}

fn read(boot: &dyn BootClock) -> Result<Span, SignerRefusal> {
    let unread =
        || SignerRefusal::new(SignerRefusalCode::Ledger, "the clock since boot cannot be read");
    boot.since_boot().ok_or_else(unread)
}

fn load_anchor(ledger: &Connection) -> rusqlite::Result<Option<WindowAnchor>> {
    ledger
        .query_row("SELECT window, wall, chain FROM anchor", [], |row| {
            let chain = row.get::<_, Option<i64>>(2)?.map(Timestamp::from_millis);
            let said = ClockReadings { wall: Timestamp::from_millis(row.get(1)?), chain };
            Ok(WindowAnchor { window: Timestamp::from_millis(row.get(0)?), said })
        })
        .optional()
}

/// Stores the anchor for the next start, in the transaction that counts a payment.
pub(super) fn store_anchor(ledger: &Connection, at: WindowAnchor) -> rusqlite::Result<()> {
    let chain = at.said.chain.map(Timestamp::as_millis);
    let row = params![at.window.as_millis(), at.said.wall.as_millis(), chain];
    ledger.execute(include_str!("sql/keep_anchor.sql"), row).map(drop)
}
