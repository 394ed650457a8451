//! Reading the ledger: profit and loss for people, and the sums that limits are
//! compared with.
//!
//! Nothing is written here. Sums are SQLite's over integers, which fails where they
//! do not fit, and must never be rounded.

use automaton_core::inference_budget::InferenceSpend;
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::pnl::{ExchangeTotals, Losses, PnlGrouping, PnlLine, ProfitAndLoss, Sums};
use automaton_core::time::{DAY, Span, Timestamp};
use rusqlite::{Connection, Row, params};

use crate::Store;
use crate::codec::{Sql, get, maybe};
use crate::error::{StoreError, TxError};
use crate::reader::Reader;
use crate::thread::{ConnectionExt, sql};

/// Lines of one account; what older ones come to is one sum.
const LINES_MAX: u32 = 1000;

const HOUR: Span = Span::from_secs(3600);

impl Reader {
    /// Profit and loss since a time, by what it is asked for, newest first.
    ///
    /// # Errors
    /// When SQLite fails, or a sum cannot be counted.
    pub fn profit_and_loss(
        &self,
        by: PnlGrouping,
        since: Timestamp,
    ) -> Result<ProfitAndLoss, StoreError> {
        self.read("add up profit and loss", |connection| account(connection, by, since))
    }
}

impl Reader {
    /// Returns the cost of model calls as of a time, as [`Store::thinking_cost`].
    ///
    /// # Errors
    /// When SQLite fails, or a sum cannot be counted.
    pub fn thinking_cost(&self, now: Timestamp) -> Result<InferenceSpend, StoreError> {
        self.read("add up what thinking cost", |connection| thinking(connection, now.before(DAY)))
    }
}

impl Store {
    /// Returns the losses since losses count.
    ///
    /// # Errors
    /// When SQLite fails, or a sum cannot be counted.
    pub async fn losses(&self) -> Result<Losses, StoreError> {
        self.run("add up the losses", |tx| losses(tx, tx.now.before(DAY))).await
    }

    /// Returns the cost of model calls in the last 24 hours, in the last hour, and in the current
    /// wake. A booking with a future time counts too: a clock that was set back frees nothing.
    ///
    /// # Errors
    /// When SQLite fails, or the sum cannot be counted.
    pub async fn thinking_cost(&self) -> Result<InferenceSpend, StoreError> {
        self.run("add up what thinking cost", |tx| thinking(tx, tx.now.before(DAY))).await
    }

    /// Returns the highest possible cost of answers that were requested and never received.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn unsettled_most(&self) -> Result<Microcents, StoreError> {
        self.run("add up what was not heard", |tx| {
            let most = tx.one(sql!("unsettled_most"), [], |row| get(row, "most"))?;
            Ok(most.unwrap_or_default())
        })
        .await
    }

    /// Returns the time at which the spend in the window will have fallen to this amount, if
    /// nothing is added; `None` if that never happens.
    ///
    /// # Errors
    /// When SQLite fails, or a sum cannot be counted.
    pub async fn thinking_room(
        &self,
        window: Span,
        room: Microcents,
    ) -> Result<Option<Timestamp>, StoreError> {
        self.run("look when thinking is affordable", move |tx| {
            let params = params![Sql(tx.now.before(window)), Sql(room)];
            let read = |row: &Row<'_>| maybe::<Timestamp>(row, "at");
            let last = tx.one(sql!("thinking_room"), params, read)?.flatten();
            Ok(last.map(|last| last.after(window)))
        })
        .await
    }
}

/// Returns the cost of model calls, given the time a day ago.
pub(crate) fn thinking(connection: &Connection, day: Timestamp) -> Result<InferenceSpend, TxError> {
    let hour = day.after(DAY).before(HOUR);
    let found = connection.one(sql!("thinking_cost"), params![Sql(day), Sql(hour)], |row| {
        Ok(InferenceSpend {
            hour: get(row, "hour")?,
            session: get(row, "session")?,
            day: get(row, "day")?,
        })
    })?;
    Ok(found.unwrap_or_default())
}

fn account(
    connection: &Connection,
    by: PnlGrouping,
    since: Timestamp,
) -> Result<ProfitAndLoss, TxError> {
    // One read transaction: the agent may book in between.
    let tx = connection.unchecked_transaction()?;
    let total = tx.one(sql!("pnl_total"), [Sql(since)], sums)?.unwrap_or_default();
    let statement = match by {
        PnlGrouping::Category => sql!("pnl_by_category"),
        PnlGrouping::Day => sql!("pnl_by_day"),
        PnlGrouping::Goal => sql!("pnl_by_goal"),
        PnlGrouping::Turn => sql!("pnl_by_turn"),
        PnlGrouping::Service => sql!("pnl_by_service"),
    };
    let found = tx.all(statement, params![Sql(since), LINES_MAX + 1], |row| {
        Ok((row.get::<_, Option<String>>("name")?, sums(row)?))
    })?;
    let exchanged = tx.one(sql!("pnl_exchanged"), [Sql(since)], |row| {
        Ok(ExchangeTotals { paid: get::<MicroUsdc>(row, "paid")?, got: get(row, "got")? })
    })?;
    let more = found.len() > LINES_MAX as usize;
    let shown = found.into_iter().take(LINES_MAX as usize);
    let counted = (|| {
        let mut lines = Vec::new();
        let mut left = total;
        for (name, sums) in shown {
            left = left.minus(&sums)?;
            lines.push(PnlLine { name, sums, net: sums.net()? });
        }
        let left_out = more.then_some(left);
        let net = total.net()?;
        let exchanged = exchanged.unwrap_or_default();
        Ok(ProfitAndLoss { since, by, lines, left_out, total, net, exchanged })
    })();
    Ok(counted.map_err(StoreError::Amount)?)
}

fn sums(row: &Row<'_>) -> rusqlite::Result<Sums> {
    Ok(Sums { revenue: get(row, "revenue")?, cost: get(row, "cost")? })
}

pub(crate) fn losses(connection: &Connection, since: Timestamp) -> Result<Losses, TxError> {
    let sums = connection.one(sql!("losses"), [Sql(since)], |row| {
        Ok(Losses { day: get(row, "day")?, goal: None, total: get(row, "total")? })
    })?;
    let goal = connection.one(sql!("losses_of_goal"), [], |row| {
        Ok((row.get::<_, String>("goal")?, get(row, "lost")?))
    })?;
    Ok(Losses { goal, ..sums.unwrap_or_default() })
}
