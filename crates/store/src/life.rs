//! The one row of `automaton`: who it is, what state it is in, how it sleeps.
//!
//! The state changes by compare-and-set through the table of legal transitions
//! only, and each change leaves a row in `state_changes`.

use automaton_core::id::AutomatonId;
use automaton_core::record::SleepState;
use automaton_core::state::AgentState;
use automaton_core::time::Timestamp;
use automaton_sqlite::chain::Hash;
use rusqlite::{Connection, params};

use crate::Store;
use crate::codec::{Sql, get, maybe};
use crate::error::{StoreError, TxError};
use crate::thread::{ConnectionExt, Tx, WriteOptions, sql};

/// Facts that are known at birth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAutomaton {
    /// Its name.
    pub name: String,
    /// The hash of its genesis prompt.
    pub genesis_sha256: Hash,
    /// The hash of its constitution, which never changes.
    pub constitution_sha256: Hash,
}

/// The automaton as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutomatonRow {
    /// Its id.
    pub automaton: AutomatonId,
    /// Its name.
    pub name: String,
    /// Current state.
    pub state: AgentState,
    /// Time of birth.
    pub born_at: Timestamp,
    /// Turns it has committed.
    pub turns: u64,
    /// The sleep it is in.
    pub sleep: Option<SleepState>,
    /// The hash of its genesis prompt.
    pub genesis_sha256: Hash,
    /// The hash of its constitution at its birth.
    pub constitution_sha256: Hash,
}

impl Store {
    /// Gives birth, once: when there is an automaton, its id is returned and
    /// nothing changes.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn birth(&self, born: NewAutomaton) -> Result<AutomatonId, StoreError> {
        self.write(WriteOptions::new("store the birth"), move |tx| birth(tx, &born)).await
    }

    /// The automaton as a whole.
    ///
    /// # Errors
    /// [`StoreError::Unborn`] before its birth.
    pub async fn life(&self) -> Result<AutomatonRow, StoreError> {
        self.run("read the life", |tx| life(tx)).await
    }

    /// Changes the state.
    ///
    /// # Errors
    /// [`StoreError::IllegalTransition`] when the table has no such transition,
    /// [`StoreError::LostRace`] when the state is not `from`.
    pub async fn transition(
        &self,
        from: AgentState,
        to: AgentState,
        reason: &str,
    ) -> Result<(), StoreError> {
        let reason = reason.to_owned();
        let work = move |tx: &Tx<'_>| transition(tx, from, to, &reason);
        self.write(WriteOptions::new("change the state"), work).await
    }
}

fn birth(tx: &Tx<'_>, born: &NewAutomaton) -> Result<AutomatonId, TxError> {
    let found = tx.one("SELECT id FROM automaton", [], |row| get(row, "id"))?;
    if let Some(id) = found {
        return Ok(id);
    }
    let id: AutomatonId = tx.ids.id();
    let genesis = Sql(born.genesis_sha256);
    let constitution = Sql(born.constitution_sha256);
    let state = Sql(AgentState::Setup);
    tx.exec(sql!("birth"), params![Sql(id), born.name, state, Sql(tx.now), genesis, constitution])?;
    Ok(id)
}

pub(crate) fn life(connection: &Connection) -> Result<AutomatonRow, TxError> {
    let found = connection.one("SELECT * FROM automaton", [], |row| {
        let since: Option<Timestamp> = maybe(row, "sleep_since")?;
        let sleep = since.map(|since| -> rusqlite::Result<_> {
            let until = maybe(row, "sleep_until")?;
            let reason = get(row, "sleep_reason")?;
            Ok(SleepState { since, until, reason })
        });
        Ok(AutomatonRow {
            automaton: get(row, "id")?,
            name: row.get("name")?,
            state: get(row, "state")?,
            born_at: get(row, "born_at")?,
            turns: get(row, "turns")?,
            sleep: sleep.transpose()?,
            genesis_sha256: get(row, "genesis_sha256")?,
            constitution_sha256: get(row, "constitution_sha256")?,
        })
    })?;
    found.ok_or_else(|| StoreError::Unborn.into())
}

pub(crate) fn state(connection: &Connection) -> Result<AgentState, TxError> {
    let found = connection.one("SELECT state FROM automaton", [], |row| get(row, "state"))?;
    found.ok_or_else(|| StoreError::Unborn.into())
}

/// Changes the state from the first to the second of the pair.
pub(crate) fn transition(
    tx: &Tx<'_>,
    from: AgentState,
    to: AgentState,
    reason: &str,
) -> Result<(), TxError> {
    if !from.may_become(to) {
        return Err(StoreError::IllegalTransition { from, to }.into());
    }
    let found = state(tx)?;
    if found != from {
        return Err(StoreError::LostRace { expected: from, found }.into());
    }
    tx.exec("UPDATE automaton SET state = ?1", [Sql(to)])?;
    tx.exec(sql!("state_change"), params![Sql(from), Sql(to), reason, Sql(tx.now)])?;
    Ok(())
}

/// Stores the sleep that begins, or that there is none.
pub(crate) fn set_sleep(tx: &Tx<'_>, sleep: Option<SleepState>) -> Result<(), TxError> {
    let since = sleep.map(|sleep| Sql(sleep.since));
    let until = sleep.and_then(|sleep| sleep.until).map(Sql);
    tx.exec(sql!("set_sleep"), params![since, until, sleep.map(|sleep| Sql(sleep.reason))])?;
    Ok(())
}
