//! `semantic_memory`: facts by category and key, found again by their words.
//!
//! Only candidates are read here; what is worth the prompt's room is ranked by
//! `memory`. A fact is replaced as a whole, its origin with its value: a label
//! must never outlive the text it was given to.

use automaton_core::id::{FactId, TurnId};
use automaton_core::time::Timestamp;
use automaton_core::trust::Labelled;
use rusqlite::{Connection, Row, params};

use crate::Store;
use crate::codec::{Sql, get, labelled};
use crate::error::{StoreError, TxError};
use crate::thread::{ConnectionExt, Tx, WriteOptions, sql};

/// Facts that can be remembered.
pub const FACTS_MAX: u32 = 10_000;

/// Words of a query that are looked up; more do not find anything better.
const WORDS_MAX: usize = 32;

/// A fact to remember.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFactRow {
    /// The category.
    pub category: String,
    /// The key within the category.
    pub key: String,
    /// The fact, with its origin.
    pub value: Labelled,
    /// How sure it is, 0 to 100; more counts as 100.
    pub confidence_percent: u8,
    /// The turn that learned it.
    pub turn: Option<TurnId>,
}

/// Whether a fact was new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upsert {
    /// There was none of this category and key.
    New,
    /// It replaced one.
    Updated,
}

/// Which facts are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FactQuery {
    /// Only of this category.
    pub category: Option<String>,
    /// With any of these words, or words that begin so; best match first.
    /// Without words, the facts updated last come first.
    pub text: Option<String>,
    /// How many at most.
    pub limit: u32,
}

/// A remembered fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactRow {
    /// Its id, which stays when the fact is updated.
    pub id: FactId,
    /// The category.
    pub category: String,
    /// The key within the category.
    pub key: String,
    /// The fact, with its origin.
    pub value: Labelled,
    /// How sure it is, 0 to 100.
    pub confidence_percent: u8,
    /// When it was last remembered.
    pub updated_at: Timestamp,
}

impl Store {
    /// Remembers a fact, in place of the one with its category and key.
    ///
    /// # Errors
    /// [`StoreError::Full`] when a new one would be more than [`FACTS_MAX`].
    pub async fn remember(&self, fact: NewFactRow) -> Result<(FactId, Upsert), StoreError> {
        self.write(WriteOptions::new("remember a fact"), move |tx| remember(tx, &fact)).await
    }

    /// The facts that fit a query.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn facts(&self, query: FactQuery) -> Result<Vec<FactRow>, StoreError> {
        self.run("read the memory", move |tx| facts(tx, &query)).await
    }
}

pub(crate) fn remember(tx: &Tx<'_>, fact: &NewFactRow) -> Result<(FactId, Upsert), TxError> {
    let NewFactRow { category, key, value, confidence_percent, turn } = fact;
    let statement = "SELECT id FROM semantic_memory WHERE category = ?1 AND key = ?2";
    let known = tx.one(statement, params![category, key], |row| get(row, "id"))?;
    let (id, upsert) = match known {
        Some(id) => (id, Upsert::Updated),
        None => (tx.ids.id(), Upsert::New),
    };
    if upsert == Upsert::New {
        let statement = "SELECT count(*) AS count FROM semantic_memory";
        let count: u32 = tx.one(statement, [], |row| get(row, "count"))?.unwrap_or(0);
        if count >= FACTS_MAX {
            return Err(StoreError::Full { noun: "remembered facts", limit: FACTS_MAX }.into());
        }
    }
    tx.exec(
        sql!("fact_upsert"),
        params![
            Sql(id),
            category,
            key,
            value.text,
            Sql(value.label),
            value.source.as_str(),
            (*confidence_percent).min(100),
            turn.map(Sql),
            Sql(tx.now),
        ],
    )?;
    Ok((id, upsert))
}

pub(crate) fn facts(connection: &Connection, query: &FactQuery) -> Result<Vec<FactRow>, TxError> {
    let FactQuery { category, text, limit } = query;
    let words = text.as_deref().map(any_word).filter(|words| !words.is_empty());
    Ok(match words {
        Some(words) => {
            connection.all(sql!("facts_by_words"), params![words, category, limit], fact)?
        }
        None => connection.all(sql!("facts_newest"), params![category, limit], fact)?,
    })
}

/// A query of the full-text index that any word of the text answers. Words are
/// quoted, so nothing in the text is an operator of the index.
fn any_word(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let quoted: Vec<String> = words.take(WORDS_MAX).map(|word| format!("\"{word}\"*")).collect();
    quoted.join(" OR ")
}

fn fact(row: &Row<'_>) -> rusqlite::Result<FactRow> {
    Ok(FactRow {
        id: get(row, "id")?,
        category: row.get("category")?,
        key: row.get("key")?,
        value: labelled(row, "value")?,
        confidence_percent: get(row, "confidence_percent")?,
        updated_at: get(row, "updated_at")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_of_the_index_become_words() {
        assert_eq!(any_word(""), "");
        assert_eq!(any_word(" \"' -*: "), "");
        assert_eq!(any_word("a NEAR b\" OR"), "\"a\"* OR \"NEAR\"* OR \"b\"* OR \"OR\"*");
        assert_eq!(any_word(&"w ".repeat(500)).matches(" OR ").count(), WORDS_MAX - 1);
    }
}
