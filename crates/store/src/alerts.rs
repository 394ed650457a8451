//! `alerts`: each time that a rule held, and how often it fired.
//!
//! One transaction measures, keeps a snapshot, judges the rules and stores what became of
//! them, so that what fired is stored before anybody is told, and a restart neither fires
//! twice nor forgets. What the rules say is `core::alert`'s; nothing here may decide.

use automaton_core::alert::{Alert, AlertRule, AlertTransition, AlertVisibility, Thresholds};
use automaton_core::time::Timestamp;
use rusqlite::{Connection, Row, params};

use crate::Store;
use crate::codec::{Sql, get, maybe};
use crate::error::{StoreError, TxError};
use crate::metrics;
use crate::reader::Reader;
use crate::thread::{ConnectionExt, Tx, WriteOptions, sql};

/// Alerts that are kept, the newest.
const KEPT: u32 = 1000;

impl Store {
    /// Measures the life, keeps a snapshot of it and judges the rules; the alerts that
    /// fire now, and those that fired before and are over now.
    ///
    /// # Errors
    /// [`StoreError::Unborn`] before the birth; when SQLite fails.
    pub async fn judge_alerts(&self, against: Thresholds) -> Result<Vec<Alert>, StoreError> {
        self.write(WriteOptions::new("judge the alerts"), move |tx| {
            let measures = metrics::measure(tx, tx.now)?;
            metrics::insert_snapshot(tx, &measures)?;
            let signs = measures.signs(metrics::owed_for(tx, tx.now)?);
            let mut news = Vec::new();
            for rule in AlertRule::ALL {
                let last = tx.one(sql!("alert_last"), [Sql(rule)], read)?;
                let step = Alert::step(last, rule, rule.judge(&signs, &against), tx.now);
                news.extend(store(tx, step)?);
            }
            let old = "DELETE FROM alerts WHERE seq <= (SELECT max(seq) FROM alerts) - ?1 \
                AND state = 'cleared'";
            tx.exec(old, [KEPT])?;
            Ok(news)
        })
        .await
    }
}

impl Reader {
    /// The alerts that hold, and those that held last, `most` in all.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn alerts(&self, most: u32) -> Result<Vec<Alert>, StoreError> {
        self.read("read the alerts", |connection| alerts(connection, most))
    }
}

fn alerts(connection: &Connection, most: u32) -> Result<Vec<Alert>, TxError> {
    Ok(connection.all(sql!("alerts_newest"), [most], read)?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<Alert> {
    Ok(Alert {
        rule: get(row, "rule")?,
        message: row.get("message")?,
        since: get::<Timestamp>(row, "since")?,
        fired_at: maybe(row, "fired_at")?,
        times: get(row, "times")?,
        cleared_at: maybe(row, "cleared_at")?,
    })
}

/// Stores a step; the alert, if somebody should be told of it.
fn store(tx: &Tx<'_>, step: AlertTransition) -> Result<Option<Alert>, TxError> {
    let is_new = matches!(step, AlertTransition::Began(..));
    let (alert, is_told) = match step {
        AlertTransition::Nothing => return Ok(None),
        AlertTransition::Began(alert, voice) | AlertTransition::GoesOn(alert, voice) => {
            (alert, voice == AlertVisibility::Fires)
        }
        // Who was told that it began is told that it is over.
        AlertTransition::Ended(alert) => {
            let is_told = alert.times > 0;
            (alert, is_told)
        }
    };
    let Alert { rule, message, since, fired_at, times, cleared_at } = &alert;
    let rule = Sql(*rule);
    let fired_at = fired_at.map(Sql);
    if is_new {
        tx.exec(sql!("alert_begin"), params![rule, message, Sql(*since), fired_at, times])?;
    } else {
        let cleared_at = cleared_at.map(Sql);
        tx.exec(sql!("alert_go_on"), params![rule, message, fired_at, times, cleared_at])?;
    }
    Ok(is_told.then_some(alert))
}
