//! Turns as they are read back: inputs, thought, calls and cost as one value.
//!
//! Only reads. A turn's parts are read by its id, so a record is the same
//! whether it was asked for alone or among many.

use automaton_core::id::TurnId;
use automaton_core::record::{CallRecord, TurnInput, TurnRecord, Usage};
use automaton_core::time::{Span, Timestamp};
use automaton_core::trust::Labelled;
use rusqlite::{Connection, Params, Row};

use crate::Store;
use crate::codec::{CallText, Sql, get, labelled, maybe};
use crate::error::{StoreError, TxError};
use crate::reader::TurnRef;
use crate::thread::{ConnectionExt, Tx, sql};

impl Store {
    /// The newest `limit` committed turns from a number on, oldest first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn recent_turns(
        &self,
        from_seq: u64,
        limit: u32,
    ) -> Result<Vec<TurnRecord>, StoreError> {
        let work = move |tx: &Tx<'_>| committed(tx, from_seq, limit);
        self.run("read the turns", work).await
    }

    /// One turn, whole.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn turn(&self, id: TurnId) -> Result<Option<TurnRecord>, StoreError> {
        self.run("read a turn", move |tx| read_turn(tx, TurnRef::Id(id))).await
    }
}

/// One turn, if there is such a one.
pub(crate) fn read_turn(
    connection: &Connection,
    which: TurnRef,
) -> Result<Option<TurnRecord>, TxError> {
    let mut turns = match which {
        TurnRef::Last => turns(connection, sql!("turns_newest"), [1]),
        TurnRef::Id(id) => turns(connection, sql!("turn_by_id"), [Sql(id)]),
        TurnRef::Seq(seq) => turns(connection, sql!("turn_by_seq"), [Sql(seq)]),
    }?;
    Ok(turns.pop())
}

/// The newest committed turns from a number on, oldest first.
pub(crate) fn committed(
    connection: &Connection,
    from_seq: u64,
    limit: u32,
) -> Result<Vec<TurnRecord>, TxError> {
    turns(connection, sql!("turns_committed"), (Sql(from_seq), limit))
}

/// Returns the time at which the first turn from a number on was opened.
pub(crate) fn since(connection: &Connection, from: u64) -> Result<Option<Timestamp>, TxError> {
    let statement = "SELECT opened_at FROM turns WHERE seq >= ?1 ORDER BY seq LIMIT 1";
    Ok(connection.one(statement, [Sql(from)], |row| get(row, "opened_at"))?)
}

/// The turns that a statement finds newest first, as whole records, oldest first.
pub(crate) fn turns(
    connection: &Connection,
    statement: &str,
    params: impl Params,
) -> Result<Vec<TurnRecord>, TxError> {
    let mut turns = connection.all(statement, params, record)?;
    for turn in &mut turns {
        turn.inputs = connection.all(sql!("turn_inputs_of"), [Sql(turn.id)], input)?;
        turn.calls = connection.all(sql!("calls_of"), [Sql(turn.id)], call)?;
    }
    turns.reverse();
    Ok(turns)
}

fn input(row: &Row<'_>) -> rusqlite::Result<TurnInput> {
    let said = labelled(row, "body")?;
    let message = maybe(row, "message")?;
    Ok(TurnInput { said, message, file: row.get("file")? })
}

fn record(row: &Row<'_>) -> rusqlite::Result<TurnRecord> {
    let model: Option<String> = row.get("model")?;
    let usage = model.map(|model| -> rusqlite::Result<_> {
        Ok(Usage {
            model,
            prompt_tokens: row.get("prompt_tokens")?,
            cached_tokens: row.get("cached_tokens")?,
            completion_tokens: row.get("completion_tokens")?,
            cost: get(row, "cost_microcents")?,
            estimated: row.get("estimated")?,
            first_token_ms: row.get("first_token_ms")?,
            total_ms: row.get("total_ms")?,
            unknown_end: row.get("unknown_end")?,
        })
    });
    Ok(TurnRecord {
        id: get(row, "id")?,
        seq: get(row, "seq")?,
        session: get(row, "session")?,
        status: get(row, "status")?,
        inputs: Vec::new(),
        thought: row.get("thought")?,
        calls: Vec::new(),
        usage: usage.transpose()?,
        opened_at: get(row, "opened_at")?,
        committed_at: maybe(row, "committed_at")?,
    })
}

fn call(row: &Row<'_>) -> rusqlite::Result<CallRecord> {
    let result: Option<CallText> = maybe(row, "result")?;
    let result = result.map(|CallText(text)| -> rusqlite::Result<_> {
        let source: String = row.get("result_source")?;
        Ok(Labelled::new(get(row, "result_label")?, &source, text))
    });
    Ok(CallRecord {
        id: get(row, "id")?,
        tool: row.get("tool")?,
        arguments: get::<CallText>(row, "arguments")?.0,
        status: get(row, "status")?,
        result: result.transpose()?,
        duration: maybe::<Span>(row, "duration_ms")?.map(Into::into),
        exit_code: row.get("exit_code")?,
    })
}
