//! A ledger that was restored from a backup.
//!
//! Such a ledger does not know the payments signed since the backup. So the ceilings of an hour
//! and of a day count as used up from the moment of the restore. The lifetime ceiling cannot be
//! corrected here: the creator must lower it. Counts are never reduced.

use automaton_core::money::MicroUsdc;
use automaton_core::time::{DAY, HOUR, Span, Timestamp};
use automaton_core::window::{ClockReadings, WindowAnchor};
use automaton_sqlite::write_synced;
use rusqlite::{OptionalExtension as _, Transaction, params};

use super::{SignerLedger, limits, store_anchor, sums};
use crate::ceiling::SpendingTotals;
use crate::error::SignerRefusal;

impl SignerLedger {
    /// Counts the ceilings of an hour and a day as used up from now on.
    pub(crate) fn mark_ceilings_used(&mut self, wall: Timestamp) -> Result<(), SignerRefusal> {
        let window = self.time.now(wall)?.window;
        // Without the chain's time, so that time which passed before the restore is not counted
        // twice.
        let said = ClockReadings { wall, chain: None };
        write_synced(&mut self.connection, |transaction| {
            let now = limits(transaction)?;
            let amounts = [now.per_hour, now.per_day, now.per_payee].map(MicroUsdc::units);
            let [hour, day, payee] = amounts;
            let row = params![window.as_millis(), hour, day, payee];
            transaction.execute(include_str!("sql/keep_restored.sql"), row)?;
            // Everything counted from now on gets a later moment.
            let window = window.after(Span::from_millis(1));
            Ok(store_anchor(transaction, WindowAnchor { window, said })?)
        })
    }
}

/// Adds to the known totals the payments that a restored ledger may not know.
pub(super) fn add_unknown_payments(
    transaction: &Transaction<'_>,
    at: Timestamp,
    payee: Option<&[u8]>,
    known: SpendingTotals,
) -> rusqlite::Result<SpendingTotals> {
    let columns = "SELECT window, per_hour, per_day, per_payee FROM restored";
    let restored = transaction
        .query_row(columns, [], |row| {
            let amount = |place| row.get(place).map(MicroUsdc::new);
            Ok((Timestamp::from_millis(row.get(0)?), amount(1)?, amount(2)?, amount(3)?))
        })
        .optional()?;
    let Some((window, hour, day, to_payee)) = restored.filter(|(from, ..)| *from > at.before(DAY))
    else {
        return Ok(known);
    };
    let since = sums(transaction, window, window, payee)?;
    // A sum that overflows is more than any ceiling.
    let with = |used: MicroUsdc, more: MicroUsdc| used.plus(more).unwrap_or(used).max(used);
    Ok(SpendingTotals {
        hour: match window > at.before(HOUR) {
            true => known.hour.max(with(hour, since.day)),
            false => known.hour,
        },
        day: known.day.max(with(day, since.day)),
        payee: known.payee.max(with(to_payee, since.payee)),
        ..known
    })
}
