//! `memory_vectors`: what memories mean, found again by what a question means.
//!
//! All are of one model; those of another go when it is exchanged. Only candidates are found
//! here, with how similar they are; words find others, and `memory` ranks. A vector must never
//! outlive its memory, and words of others must never be found by whoever may not read them.

use std::cmp::Reverse;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use automaton_core::embedding::{Embedding, EmbeddingVector};
use automaton_core::memory::{MemoryId, MemoryItem, MemoryMatches, MemoryQuery, MemoryTier};
use automaton_embedding::{CentredQuery, Centroid, VectorIndex};
use rusqlite::{Connection, params};

use crate::Store;
use crate::codec::Sql;
use crate::error::{StoreError, TxError};
use crate::memory::{self, is_outside};
use crate::thread::{ConnectionExt, Tx, WriteOptions, sql};

/// The most similar that are candidates without sharing a word, and as many of others.
const NEAREST_MAX: usize = 50;

/// Vectors that may be read one by one before all are read anew, those of memories that are gone
/// left out, and as many as were read at first beside these.
const ADDED_MAX: usize = 100_000;

/// The vectors as they were read, since to read them takes longer than to compare them. One whose
/// memory is gone stays until it is in the way, and is never found.
#[derive(Default)]
pub(crate) struct VectorCache {
    model: String,
    /// Number of vectors that were read at first.
    at_first: usize,
    index: VectorIndex,
}

impl VectorCache {
    /// Reads those that are new.
    fn refresh(&mut self, connection: &Connection, model: &str) -> Result<(), TxError> {
        if self.model != model || self.index.len() > 2 * self.at_first + ADDED_MAX {
            *self = Self { model: model.to_owned(), ..Self::default() };
        }
        let mut statement = connection.prepare_cached(sql!("vectors_after"))?;
        let mut rows = statement.query([self.index.last().unwrap_or(0)])?;
        while let Some(row) = rows.next()? {
            let vector = row.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?;
            self.index.add(row.get(0)?, row.get(1)?, vector);
        }
        if self.at_first == 0 {
            self.at_first = self.index.len();
        }
        Ok(())
    }

    /// The most similar of its own, or of others, whose memories still hold. Where those that are
    /// gone are in the way, all are read anew.
    fn nearest(
        &mut self,
        connection: &Connection,
        model: &str,
        asked: &CentredQuery,
        others: bool,
    ) -> Result<Vec<(MemoryId, i32)>, TxError> {
        self.refresh(connection, model)?;
        let mut found = Vec::new();
        for is_fresh in [false, true] {
            let nearest = self.index.nearest(asked, others, 2 * NEAREST_MAX);
            let looked_at = nearest.len();
            found.clear();
            for (id, similarity) in nearest {
                let id = MemoryId(id);
                if similarity_of(connection, asked, id)?.is_some() {
                    found.push((id, similarity));
                }
            }
            if is_fresh || found.len() == looked_at || found.len() >= NEAREST_MAX {
                break;
            }
            *self = Self::default();
            self.refresh(connection, model)?;
        }
        found.truncate(NEAREST_MAX);
        Ok(found)
    }
}

/// Progress of vectors.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EmbeddingProgress {
    /// Model of the vectors; empty if there are none.
    pub model: String,
    /// Memories with a vector.
    pub vectors: u64,
    /// Memories that wait for one.
    pub waiting: u64,
}

impl Store {
    /// The oldest memories without a vector of this model, at most so many. Where the vectors are
    /// of another model these go first, and all memories wait again.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn without_vector(
        &self,
        model: String,
        most: u32,
    ) -> Result<Vec<MemoryItem>, StoreError> {
        let work = move |tx: &Tx<'_>| {
            let (known, upto) = progress(tx)?;
            if known == model {
                return waiting(tx, upto, most);
            }
            tx.exec("DELETE FROM memory_vectors", [])?;
            let statement =
                "INSERT OR REPLACE INTO embedding_progress (id, model, upto) VALUES (1, ?1, 0)";
            tx.exec(statement, [&model])?;
            waiting(tx, 0, most)
        };
        self.write(WriteOptions::new("look for memories without a vector"), work).await
    }

    /// Keeps the vectors of memories that still hold, those of one after another, but none that
    /// points nowhere, which is like nothing, and goes on after the last that was looked at, with a
    /// vector or not. Those of a model that was exchanged since are dropped.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn keep_vectors(
        &self,
        model: String,
        looked_at: MemoryId,
        vectors: Vec<(MemoryId, EmbeddingVector)>,
    ) -> Result<(), StoreError> {
        let work = move |tx: &Tx<'_>| {
            if progress(tx)?.0 != model {
                return Ok(());
            }
            let mut all = centroid(tx)?;
            let of_each = vectors.chunk_by(|(one, _), (next, _)| one == next);
            let parts = of_each.flat_map(|parts| (0_u32..).zip(parts));
            for (part, (id, vector)) in parts.filter(|(_, (_, vector))| vector.has_direction()) {
                let values = params![id.0, part, vector.to_bytes()];
                let outside: Option<bool> =
                    tx.one(sql!("vector_keep"), values, |row| row.get("outside"))?;
                if outside == Some(false) {
                    all.add(vector);
                }
            }
            let values = params![looked_at.0, all.count(), all.to_bytes()];
            tx.exec(sql!("vector_progress"), values)?;
            Ok(())
        };
        let kept = self.write(WriteOptions::new("keep vectors"), work).await;
        self.vectors_kept.fetch_add(1, Ordering::AcqRel);
        kept
    }

    /// Returns the number of times that vectors were stored since the store was opened. A change
    /// means that earlier results may be incomplete.
    #[must_use]
    pub fn vectors_kept(&self) -> u64 {
        self.vectors_kept.load(Ordering::Acquire)
    }

    /// Adds to what words have found how similar that is, and what else is similar.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn add_similar(
        &self,
        query: MemoryQuery,
        mut found: MemoryMatches,
    ) -> Result<MemoryMatches, StoreError> {
        let cache = Arc::clone(&self.vectors);
        let work = move |tx: &Tx<'_>| {
            similar(tx, &query, &mut found, &mut locked(&cache))?;
            Ok(found)
        };
        self.run("compare vectors", work).await
    }
}

/// The cache, which whoever broke down with it left whole enough to be read on.
pub(crate) fn locked(cache: &Mutex<VectorCache>) -> MutexGuard<'_, VectorCache> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The model of the vectors, and up to which memory there are any.
fn progress(connection: &Connection) -> Result<(String, i64), TxError> {
    let statement = "SELECT model, upto FROM embedding_progress";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get("model")?, row.get("upto")?));
    Ok(connection.one(statement, [], read)?.unwrap_or_default())
}

/// Reads the mean direction of the automaton's and its creator's vectors. Vectors of others are
/// left out: by repeating similar texts they could push other answers away. It is read from the
/// database and not computed from the loaded vectors, so that every reader gets the same.
fn centroid(connection: &Connection) -> Result<Centroid, TxError> {
    let statement = "SELECT added, direction FROM embedding_progress";
    let read = |row: &rusqlite::Row<'_>| {
        let direction = row.get_ref("direction")?.as_blob()?;
        Ok(Centroid::from_bytes(row.get("added")?, direction))
    };
    Ok(connection.one(statement, [], read)?.unwrap_or_default())
}

/// Memories after this one that hold, oldest first. What is being done is shown whatever is asked.
fn waiting(connection: &Connection, upto: i64, most: u32) -> Result<Vec<MemoryItem>, TxError> {
    Ok(connection.all(
        sql!("vector_waiting"),
        params![upto, Sql(MemoryTier::Working), most],
        memory::read,
    )?)
}

/// Returns the progress of vectors.
pub(crate) fn embedded(connection: &Connection) -> Result<EmbeddingProgress, TxError> {
    let (model, upto) = progress(connection)?;
    let count = |statement: &str, values: &[&dyn rusqlite::ToSql]| {
        connection.one(statement, values, |row| row.get("n")).map(Option::unwrap_or_default)
    };
    let statement =
        "SELECT count(*) AS n FROM memories WHERE id > ?1 AND valid_to IS NULL AND tier <> ?2";
    Ok(EmbeddingProgress {
        model,
        vectors: count("SELECT count(DISTINCT memory) AS n FROM memory_vectors", &[])?,
        waiting: count(statement, params![upto, Sql(MemoryTier::Working)])?,
    })
}

/// Adds what is similar to the query, where it has a vector of the model that the others are of.
pub(crate) fn similar(
    connection: &Connection,
    query: &MemoryQuery,
    found: &mut MemoryMatches,
    cache: &mut VectorCache,
) -> Result<(), TxError> {
    let Some(Embedding { model, kind, vector }) = &query.embedding else { return Ok(()) };
    if progress(connection)?.0 != *model {
        return Ok(());
    }
    let asked = centroid(connection)?.adjust_query(vector);
    let mut nearest = cache.nearest(connection, model, &asked, false)?;
    if query.least_trusted.is_none_or(is_outside) {
        nearest.extend(cache.nearest(connection, model, &asked, true)?);
        nearest.sort_by_key(|(_, similarity)| Reverse(*similarity));
    }
    for item in &found.items {
        if !nearest.iter().any(|(id, _)| *id == item.id) {
            let similarity = similarity_of(connection, &asked, item.id)?;
            nearest.extend(similarity.map(|similarity| (item.id, similarity)));
        }
    }
    for (id, _) in &nearest {
        if found.items.iter().any(|item| item.id == *id) {
            continue;
        }
        let item = memory::item(connection, *id)?;
        let wanted = |item: &MemoryItem| {
            (query.tiers.is_empty() || query.tiers.contains(&item.tier))
                && query.kind.as_ref().is_none_or(|kind| *kind == item.kind)
                && query.least_trusted.is_none_or(|least| item.body.label <= least)
                && query.known_at.is_none_or(|at| item.valid_from <= at)
        };
        found.items.extend(item.filter(wanted));
    }
    for (id, _) in &nearest {
        let part = nearest_part(connection, &asked, *id)?;
        found.parts.extend(part.map(|part| (*id, part)));
    }
    (found.similarities, found.embedding_kind) = (nearest, *kind);
    memory::add_followers(connection, found)
}

/// Returns which part of a memory means the most alike, of one that has several.
fn nearest_part(
    connection: &Connection,
    asked: &CentredQuery,
    id: MemoryId,
) -> Result<Option<u32>, TxError> {
    let statement = "SELECT part, vector FROM memory_vectors WHERE memory = ?1 AND part > 0";
    let mut statement = connection.prepare_cached(statement)?;
    let mut rows = statement.query([id.0])?;
    let mut nearest: Option<(i32, u32)> = None;
    while let Some(row) = rows.next()? {
        let vector = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        nearest = nearest.max(Some((asked.similarity(vector), row.get(0)?)));
    }
    Ok(nearest.map(|(_, part)| part))
}

/// Returns the similarity of the nearest part of a memory that has a vector.
fn similarity_of(
    connection: &Connection,
    asked: &CentredQuery,
    id: MemoryId,
) -> Result<Option<i32>, TxError> {
    let mut statement =
        connection.prepare_cached("SELECT vector FROM memory_vectors WHERE memory = ?1")?;
    let mut rows = statement.query([id.0])?;
    let mut nearest = None;
    while let Some(row) = rows.next()? {
        let vector = row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?;
        nearest = nearest.max(Some(asked.similarity(vector)));
    }
    Ok(nearest)
}
