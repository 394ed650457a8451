//! `turns`, once more, and `prompt_parts`: what each turn asked its model with.
//!
//! A prompt is kept as far as nothing else in the record holds it. Of a layer that can
//! be made again only the hash and the size are kept, so that whoever makes it again
//! knows whether it is the same; one that differs must never be shown as the one that
//! was sent.

use automaton_core::id::TurnId;
use automaton_core::record::TurnRecord;
use automaton_core::time::Timestamp;
use automaton_sqlite::chain::Hash;
use rusqlite::{Connection, Row, params};

use crate::codec::{Sql, get, json_of, maybe};
use crate::error::{StoreError, TxError, unfit};
use crate::thread::{ConnectionExt, Tx, sql};
use crate::{Reader, history};

/// Stored parts of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptRow {
    /// The layers that stay the same from turn to turn, by name, in their order.
    pub head: Vec<(String, String)>,
    /// The text of the layer that tells the time and the money.
    pub status: String,
    /// The first turn that the history showed.
    pub history_from: Option<u64>,
    /// Style in which it was shown, in the encoding of the caller; absent if it is unknown.
    pub shown: Option<String>,
    /// The creator's open messages, before the history.
    pub open: PromptLayerRow,
    /// The sum of the turns before the history.
    pub digest: PromptLayerRow,
    /// The history, as a transcript.
    pub history: PromptLayerRow,
    /// Content of the worklog, or the reason for which it was not shown, in the encoding of the
    /// caller.
    pub worklog_view: Option<String>,
    /// The worklog as it was shown.
    pub worklog: PromptLayerRow,
    /// Recalled memories.
    pub memory: PromptLayerRow,
    /// Texts that the turn answered.
    pub input: PromptLayerRow,
    /// The model's window in tokens.
    pub window_tokens: u32,
    /// The most tokens that the answer could have.
    pub answer_tokens: u32,
}

/// Stored part of a layer that the record can render again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptLayerRow {
    /// The hash of its text.
    pub sha256: Hash,
    /// Characters of its text.
    pub chars: u32,
    /// Its size in estimated tokens.
    pub tokens: u32,
}

/// Keeps the prompt that a turn asked with at a time.
pub(crate) fn insert_prompt(
    tx: &Tx<'_>,
    turn: TurnId,
    prompt: &PromptRow,
    at: Timestamp,
) -> Result<(), TxError> {
    let PromptRow { head, status, history_from, history, memory, input, .. } = prompt;
    let PromptRow { shown, open, digest, worklog, worklog_view, .. } = prompt;
    let layers = serde_json::to_string(head)
        .map_err(|source| StoreError::Json { what: "the head of a prompt", source })?;
    let part = |body: &str| -> Result<_, TxError> {
        let sha256 = Sql(Hash::of(body.as_bytes()));
        let part = "INSERT OR IGNORE INTO prompt_parts (sha256, body) VALUES (?1, ?2)";
        tx.exec(part, params![sha256, body])?;
        Ok(sha256)
    };
    let kept = tx.exec(
        sql!("prompt_keep"),
        params![
            Sql(turn),
            part(&layers)?,
            status,
            history_from.map(Sql),
            hash(history),
            history.chars,
            history.tokens,
            hash(memory),
            memory.chars,
            memory.tokens,
            hash(input),
            input.chars,
            input.tokens,
            prompt.window_tokens,
            prompt.answer_tokens,
            Sql(at),
            shown.as_deref().map(part).transpose()?,
            hash(open),
            open.chars,
            open.tokens,
            hash(digest),
            digest.chars,
            digest.tokens,
            worklog_view.as_deref().map(part).transpose()?,
            hash(worklog),
            worklog.chars,
            worklog.tokens,
        ],
    )?;
    match kept {
        1 => Ok(()),
        _ => Err(unfit("turn", &turn, "is not there, or has asked before")),
    }
}

impl Reader {
    /// Returns the prompt of a turn and its time; `None` if there was none, or if it was not kept
    /// yet.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn prompt(&self, turn: TurnId) -> Result<Option<(Timestamp, PromptRow)>, StoreError> {
        self.read("read the prompt", |connection| of_turn(connection, turn))
    }

    /// The committed turns from one number up to another, without that, oldest first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn turns_between(
        &self,
        from: u64,
        before: u64,
        limit: u32,
    ) -> Result<Vec<TurnRecord>, StoreError> {
        self.read("read the turns", |connection| {
            history::turns(
                connection,
                sql!("turns_between"),
                params![Sql(from), Sql(before), limit],
            )
        })
    }
}

fn of_turn(
    connection: &Connection,
    turn: TurnId,
) -> Result<Option<(Timestamp, PromptRow)>, TxError> {
    Ok(connection.one(sql!("prompt_of"), [Sql(turn)], |row| {
        let prompt = PromptRow {
            head: json_of(row, "layers")?,
            status: row.get("moment")?,
            history_from: maybe(row, "history_from")?,
            shown: row.get("view")?,
            open: layer(row, "open")?,
            digest: layer(row, "digest")?,
            history: layer(row, "history")?,
            worklog_view: row.get("worklog_body")?,
            worklog: layer(row, "worklog")?,
            memory: layer(row, "memory")?,
            input: layer(row, "input")?,
            window_tokens: row.get("window_tokens")?,
            answer_tokens: row.get("answer_tokens")?,
        };
        Ok((get(row, "asked_at")?, prompt))
    })?)
}

/// The hash of a layer, unless it is empty.
fn hash(layer: &PromptLayerRow) -> Option<Sql<Hash>> {
    (layer.chars > 0).then_some(Sql(layer.sha256))
}

fn layer(row: &Row<'_>, name: &str) -> rusqlite::Result<PromptLayerRow> {
    Ok(PromptLayerRow {
        sha256: maybe(row, &format!("{name}_sha256"))?.unwrap_or_else(|| Hash::of(b"")),
        chars: row.get(&*format!("{name}_chars"))?,
        tokens: row.get(&*format!("{name}_tokens"))?,
    })
}
