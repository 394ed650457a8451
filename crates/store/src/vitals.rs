//! `vitals` and `tier_changes`: how it is off, over restarts.
//!
//! A reading changes the row and, where the tier became another one, adds to the list
//! of changes, in one transaction. What could not be read must never take the place of
//! what was.

use automaton_core::money::Microcents;
use automaton_core::tier::SurvivalTier;
use automaton_core::time::Timestamp;
use automaton_core::vitals::{BalanceReading, DistressLevel, LowComputeChoice, Vitals};
use rusqlite::{Connection, params};

use crate::Store;
use crate::codec::{Sql, get, maybe};
use crate::error::{StoreError, TxError};
use crate::reader::Reader;
use crate::thread::{ConnectionExt, Tx, WriteOptions, sql};

/// Changes of the tier that are kept.
const CHANGES_KEPT: u32 = 1000;

/// A change of the tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TierChange {
    /// From which; missing at the first reading of a life.
    pub from: Option<SurvivalTier>,
    /// To which.
    pub to: SurvivalTier,
    /// With how many credits.
    pub credits: Microcents,
    /// Time.
    pub at: Timestamp,
}

impl Store {
    /// Takes a reading; what is known then, and the change of the tier, if it is one.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn take_reading(
        &self,
        reading: BalanceReading,
    ) -> Result<(Vitals, Option<TierChange>), StoreError> {
        self.write(WriteOptions::new("store what was read of the balances"), move |tx| {
            let before = read(tx)?;
            let vitals = before.after(reading);
            write_vitals(tx, &vitals)?;
            Ok((vitals, changed(tx, &before, &vitals)?))
        })
        .await
    }

    /// Returns the known means.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn vitals(&self) -> Result<Vitals, StoreError> {
        self.run("read how it is off", |tx| read(tx)).await
    }

    /// The newest change of the tier, if there was any.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn last_tier_change(&self) -> Result<Option<TierChange>, StoreError> {
        self.run("read how its tier changed", |tx| Ok(changes(tx, 1)?.pop())).await
    }

    /// Notes that the cloud took no call with the credits that there were; what is known
    /// then. Without a reading nothing is noted, and neither for one that is not poor:
    /// there it was something else that the cloud refused.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn note_refused_call(&self) -> Result<Vitals, StoreError> {
        self.write(WriteOptions::new("store that a call was refused"), |tx| {
            let vitals = read(tx)?;
            if !vitals.tier().is_some_and(SurvivalTier::is_poor) {
                return Ok(vitals);
            }
            let broke_for = Some(vitals.broke_for.unwrap_or_default());
            let vitals = Vitals { refused: vitals.credits, broke_for, ..vitals };
            write_vitals(tx, &vitals)?;
            Ok(vitals)
        })
        .await
    }

    /// Notes that a plea goes out, unless one of its kind did not long ago; whether it
    /// does.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn record_distress(&self, plea: DistressLevel) -> Result<bool, StoreError> {
        self.write(WriteOptions::new("store that a plea goes out"), move |tx| {
            let column = match plea {
                DistressLevel::Low => sql!("plead_low"),
                DistressLevel::Critical => sql!("plead_critical"),
                DistressLevel::Dead => sql!("plead_dead"),
            };
            Ok(tx.exec(column, params![Sql(tx.now), Sql(tx.now.before(plea.every()))])? > 0)
        })
        .await
    }

    /// Notes that a plea in the model's own words goes out, as often as one of the kind
    /// may; when the next may go, if this one may not.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn record_own_distress(
        &self,
        plea: DistressLevel,
    ) -> Result<Option<Timestamp>, StoreError> {
        self.write(WriteOptions::new("store that it pleads"), move |tx| {
            let last: Option<Timestamp> =
                tx.one("SELECT own_at FROM vitals", [], |row| maybe(row, "own_at"))?.flatten();
            // One of a time to come is of a clock that was set back.
            let next = last.filter(|at| *at <= tx.now).map(|at| at.after(plea.every()));
            if next.is_some_and(|next| next > tx.now) {
                return Ok(next);
            }
            tx.exec("UPDATE vitals SET own_at = ?1", [Sql(tx.now)])?;
            Ok(None)
        })
        .await
    }

    /// Notes that it lives cheaply from now on; what is known then.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn enter_low_compute(&self) -> Result<Vitals, StoreError> {
        self.write(WriteOptions::new("store that it lives cheaply"), |tx| {
            let vitals = read(tx)?;
            let thrift = Some(LowComputeChoice { since: tx.now, tier: vitals.tier() });
            let vitals = Vitals { thrift, ..vitals };
            write_vitals(tx, &vitals)?;
            Ok(vitals)
        })
        .await
    }
}

impl Reader {
    /// Returns the known means.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn vitals(&self) -> Result<Vitals, StoreError> {
        self.read("read how it is off", read)
    }

    /// The newest changes of the tier, newest first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn tier_changes(&self, most: u32) -> Result<Vec<TierChange>, StoreError> {
        self.read("read the changes of the tier", |connection| changes(connection, most))
    }
}

fn changes(connection: &Connection, most: u32) -> Result<Vec<TierChange>, TxError> {
    let statement = "SELECT * FROM tier_changes ORDER BY seq DESC LIMIT ?1";
    Ok(connection.all(statement, [most], |row| {
        let from = maybe(row, "from_tier")?;
        let to = get(row, "to_tier")?;
        Ok(TierChange { from, to, credits: get(row, "credits")?, at: get(row, "at")? })
    })?)
}

pub(crate) fn read(connection: &Connection) -> Result<Vitals, TxError> {
    let found = connection.one("SELECT * FROM vitals", [], |row| {
        Ok(Vitals {
            credits: maybe(row, "credits")?,
            read_at: maybe(row, "read_at")?,
            usdc: maybe(row, "usdc")?,
            broke_for: maybe(row, "broke_ms")?,
            refused: maybe(row, "refused")?,
            seen_at: maybe(row, "seen_at")?,
            thrift: maybe(row, "thrift_since")?
                .map(|since| {
                    Ok::<_, rusqlite::Error>(LowComputeChoice {
                        since,
                        tier: maybe(row, "thrift_tier")?,
                    })
                })
                .transpose()?,
        })
    })?;
    Ok(found.unwrap_or_default())
}

fn write_vitals(tx: &Tx<'_>, vitals: &Vitals) -> Result<(), TxError> {
    let Vitals { credits, read_at, usdc, broke_for, refused, seen_at, thrift } = *vitals;
    let seen_at = seen_at.map(Sql);
    let broke_for = broke_for.map(Sql);
    let credits = credits.map(Sql);
    let read_at = read_at.map(Sql);
    let usdc = usdc.map(Sql);
    let since = thrift.map(|it| Sql(it.since));
    let tier = thrift.and_then(|it| it.tier).map(Sql);
    let params = params![credits, read_at, usdc, seen_at, broke_for, refused.map(Sql), since, tier];
    tx.exec(sql!("vitals_keep"), params)?;
    Ok(())
}

/// The creator wakes it: it need not live cheaply any more.
pub(crate) fn leave_low_compute(tx: &Tx<'_>) -> Result<(), TxError> {
    tx.exec("UPDATE vitals SET thrift_since = NULL, thrift_tier = NULL", [])?;
    Ok(())
}

fn changed(tx: &Tx<'_>, before: &Vitals, now: &Vitals) -> Result<Option<TierChange>, TxError> {
    let Some((to, credits)) = now.tier().zip(now.credits) else { return Ok(None) };
    let from = before.tier();
    let at = tx.now;
    if from == Some(to) {
        return Ok(None);
    }
    tx.exec(sql!("tier_change"), params![from.map(Sql), Sql(to), Sql(credits), Sql(at)])?;
    let old = "DELETE FROM tier_changes WHERE seq <= (SELECT max(seq) FROM tier_changes) - ?1";
    tx.exec(old, [CHANGES_KEPT])?;
    Ok(Some(TierChange { from, to, credits, at }))
}
