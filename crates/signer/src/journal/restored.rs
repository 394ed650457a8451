//! A ledger that was restored from a backup: what may have been signed since.
//!
//! It knows nothing of that, so the ceilings of an hour and of a day count as used up from
//! the moment of the restore on. What is permitted for ever cannot be known to be used, and
//! must be lowered by the creator. Never takes back what was counted.

use automaton_core::money::MicroUsdc;
use automaton_core::time::{DAY, HOUR, Span, Timestamp};
use automaton_core::window::{ClockReadings, WindowAnchor};
use automaton_sqlite::write_synced;
use rusqlite::{OptionalExtension as _, Transaction, params};

use super::{SignerLedger, keep, limits, sums};
use crate::ceiling::SpendingTotals;
use crate::error::SignerRefusal;

impl SignerLedger {
    /// Counts the ceilings of an hour and a day as used, from now on.
    pub(crate) fn take_as_used(&mut self, wall: Timestamp) -> Result<(), SignerRefusal> {
        let window = self.time.now(wall)?.window;
        // Without the chain's time: none of what passed before is to pass once more.
        let said = ClockReadings { wall, chain: None };
        write_synced(&mut self.connection, |transaction| {
            let now = limits(transaction)?;
            let amounts = [now.per_hour, now.per_day, now.per_payee].map(MicroUsdc::units);
            let [hour, day, payee] = amounts;
            let row = params![window.as_millis(), hour, day, payee];
            transaction.execute(include_str!("sql/keep_restored.sql"), row)?;
            // Whatever is counted from now on is counted after this moment.
            let window = window.after(Span::from_millis(1));
            Ok(keep(transaction, WindowAnchor { window, said })?)
        })
    }
}

/// What counts with all that a restored ledger may not know of.
pub(super) fn with_unknown(
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
    // A sum that is too large for its type is more than any ceiling.
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
