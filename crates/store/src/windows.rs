//! `window_time`: the moment up to which window time is known.
//!
//! Payments are counted at the moment that is kept here, and added up as of it; so
//! it must be brought up to now before a payment is judged, and never set back.

use automaton_core::window::{ClockReadings, WindowAnchor};
use rusqlite::params;

use crate::Store;
use crate::codec::{Sql, get, maybe};
use crate::error::StoreError;
use crate::thread::{ConnectionExt, Tx, WriteOptions};

impl Store {
    /// The last moment of window time that was kept, and what the clocks said at it.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn window(&self) -> Result<WindowAnchor, StoreError> {
        let work = |tx: &Tx<'_>| {
            let found = tx.query_row("SELECT * FROM window_time", [], |row| {
                let said = ClockReadings { wall: get(row, "wall")?, chain: maybe(row, "chain")? };
                Ok(WindowAnchor { window: get(row, "window")?, said })
            });
            Ok(found?)
        };
        self.run("read the window time", work).await
    }

    /// Keeps a moment of window time; one before that which is kept changes nothing. It
    /// survives the machine with the next commit that does: what is left without that
    /// is only less time.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn keep_window(&self, at: WindowAnchor) -> Result<(), StoreError> {
        self.write(WriteOptions::new("keep the window time"), move |tx| {
            let statement = "UPDATE window_time SET window = ?1, wall = ?2, chain = ?3 \
                             WHERE window <= ?1";
            let ClockReadings { wall, chain } = at.said;
            tx.exec(statement, params![Sql(at.window), Sql(wall), chain.map(Sql)])?;
            Ok(())
        })
        .await
    }
}
