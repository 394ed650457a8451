//! `memories`: five tiers of what is remembered, found again by their words.
//!
//! A fact is superseded, never overwritten: what it said keeps until when it held. Whoever is
//! less trusted never takes the place of somebody more trusted, and saying it often changes
//! nothing. Only candidates are read here; what is worth the prompt's room is ranked by
//! `memory`.

use std::sync::Arc;

use automaton_core::id::TurnId;
use automaton_core::memory::{
    MemoryId, MemoryItem, MemoryMatches, MemoryQuery, MemoryTier, NewMemory, StoreOutcome,
};
use automaton_core::search_terms::{FORM_MARK, asked_parts, asked_terms, index_terms};
use automaton_core::time::Timestamp;
use automaton_core::trust::Label;
use rusqlite::{Connection, Row, params};

use crate::Store;
use crate::codec::{Sql, get, labelled, maybe};
use crate::error::{StoreError, TxError, missing};
use crate::thread::{ConnectionExt, Tx, WriteOptions, sql};
use crate::vectors;

/// Facts that can be remembered.
pub const FACTS_MAX: u32 = 10_000;

/// Items of others that a tier holds at most, but for events; the weakest and oldest makes room.
pub const OUTSIDE_MAX: u32 = 1_000;

/// Goals and notes of the working memory; the weakest makes room.
pub const WORKING_MAX: u32 = 20;

/// Words of a query that are looked up; more do not find anything better.
const WORDS_MAX: usize = 24;

/// A word that stands in more items than these finds the newest of them only.
const COMMON: u32 = 2_000;

/// Items with a common word that are looked at.
const RECENT_MAX: u32 = 200;

/// Matches of the index that are looked at where only some of them are wanted.
const FILTERED_MAX: u32 = 2_000;

/// Messages after which it is looked at what the creator said next.
const FOLLOWED_MAX: usize = 12;

/// The most items of a tier, where there is a limit, and whether the weakest makes room.
const fn room(tier: MemoryTier, outside: bool) -> Option<(u32, bool)> {
    match tier {
        // Retention takes the oldest.
        MemoryTier::Episodic => None,
        MemoryTier::Working => Some((WORKING_MAX, true)),
        _ if outside => Some((OUTSIDE_MAX, true)),
        MemoryTier::Semantic => Some((FACTS_MAX, false)),
        MemoryTier::Procedural => Some((500, false)),
        MemoryTier::Relationship => Some((2_000, true)),
    }
}

/// Returns true if the author is neither the creator nor the automaton.
pub(crate) const fn is_outside(label: Label) -> bool {
    !matches!(label, Label::Creator | Label::Own)
}

impl Store {
    /// Remembers something.
    ///
    /// # Errors
    /// [`StoreError::Full`] when its tier takes no more.
    pub async fn remember(&self, memory: NewMemory) -> Result<StoreOutcome, StoreError> {
        self.write(WriteOptions::new("remember"), move |tx| remember(tx, &memory)).await
    }

    /// Remembers several things at once, or none of them; what became of each.
    ///
    /// # Errors
    /// [`StoreError::Full`] when a tier takes no more.
    pub async fn remember_all(
        &self,
        memories: Vec<NewMemory>,
    ) -> Result<Vec<StoreOutcome>, StoreError> {
        let work = move |tx: &Tx<'_>| memories.iter().map(|memory| remember(tx, memory)).collect();
        self.write(WriteOptions::new("remember"), work).await
    }

    /// Counts that a procedure worked, or did not.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when there is no such item.
    pub async fn count_outcome(&self, id: MemoryId, worked: bool) -> Result<(), StoreError> {
        let statement = if worked {
            "UPDATE memories SET successes = successes + 1, seen_at = ?2 WHERE id = ?1"
        } else {
            "UPDATE memories SET failures = failures + 1, seen_at = ?2 WHERE id = ?1"
        };
        let work = move |tx: &Tx<'_>| match tx.exec(statement, params![id.0, Sql(tx.now)])? {
            0 => Err(missing("memory", &id)),
            _ => Ok(()),
        };
        self.write(WriteOptions::new("count an outcome"), work).await
    }

    /// Ends an item, and remembers what came of it.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when there is none that holds.
    pub async fn complete_memory(
        &self,
        id: MemoryId,
        event: NewMemory,
    ) -> Result<StoreOutcome, StoreError> {
        let work = move |tx: &Tx<'_>| {
            let outcome = remember(tx, &event)?;
            let closed =
                tx.exec(sql!("memory_close"), params![id.0, Sql(tx.now), outcome.id().0])?;
            if closed == 0 { Err(missing("memory", &id)) } else { Ok(outcome) }
        };
        self.write(WriteOptions::new("complete a goal"), work).await
    }

    /// Forgets an item for good; whether there was one.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn forget(&self, id: MemoryId) -> Result<bool, StoreError> {
        let work =
            move |tx: &Tx<'_>| Ok(tx.exec("DELETE FROM memories WHERE id = ?1", [id.0])? > 0);
        self.write(WriteOptions::new("forget"), work).await
    }

    /// The items that may fit a query.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn memories(&self, query: MemoryQuery) -> Result<MemoryMatches, StoreError> {
        let cache = Arc::clone(&self.vectors);
        let work = move |tx: &Tx<'_>| {
            let mut found = matches(tx, &query)?;
            vectors::similar(tx, &query, &mut found, &mut vectors::locked(&cache))?;
            Ok(found)
        };
        self.run("read the memory", work).await
    }

    /// One item, also one that holds no more.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn memory(&self, id: MemoryId) -> Result<Option<MemoryItem>, StoreError> {
        self.run("read the memory", move |tx| item(tx, id)).await
    }

    /// Returns the current items of a name, oldest first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn memories_named(
        &self,
        tier: MemoryTier,
        kind: String,
        name: String,
    ) -> Result<Vec<MemoryItem>, StoreError> {
        self.run("read the memory", move |tx| items_named(tx, tier, &kind, &name)).await
    }

    /// Returns the number of current items.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn count_memories(&self) -> Result<u64, StoreError> {
        self.run("count the memory", |tx| total(tx)).await
    }
}

pub(crate) fn remember(tx: &Tx<'_>, memory: &NewMemory) -> Result<StoreOutcome, TxError> {
    let hash = memory.content_hash();
    let read_id = |row: &Row<'_>| row.get("id").map(MemoryId);
    let expires = memory.lasts.map(|span| Sql(tx.now.after(span)));
    // Events are kept whole, each of them; but nobody fills the memory by repeating himself.
    let is_event = memory.tier == MemoryTier::Episodic && !is_outside(memory.body.label);
    if !is_event && let Some(id) = tx.one(sql!("memory_same"), [&hash[..]], read_id)? {
        let strength = memory.strength.min(100);
        tx.exec(sql!("memory_seen"), params![id.0, Sql(tx.now), strength, expires])?;
        return Ok(StoreOutcome::Known(id));
    }
    let known = match memory.name.as_str() {
        "" => Vec::new(),
        _ if memory.tier == MemoryTier::Episodic => Vec::new(),
        name => items_named(tx, memory.tier, &memory.kind, name)?,
    };
    let label = memory.body.label;
    let source = &memory.body.source;
    let yields = |item: &&MemoryItem| match is_outside(item.body.label) && is_outside(label) {
        // Each of the others speaks for himself.
        true => item.body.label == label && item.body.source == *source,
        false => item.body.label >= label,
    };
    let replaced: Vec<&MemoryItem> = known.iter().filter(yields).collect();
    make_room(tx, memory, replaced.len())?;
    let id = insert(tx, memory, &hash, replaced.last().copied())?;
    for item in &replaced {
        tx.exec(sql!("memory_close"), params![item.id.0, Sql(tx.now), id.0])?;
    }
    Ok(match (replaced.is_empty(), known.is_empty()) {
        (false, _) => StoreOutcome::Superseded(id),
        (true, true) => StoreOutcome::New(id),
        (true, false) => StoreOutcome::Beside(id),
    })
}

/// Has the weakest item make room where the tier has no more, if one may.
fn make_room(tx: &Tx<'_>, memory: &NewMemory, replaced: usize) -> Result<(), TxError> {
    let outside = is_outside(memory.body.label);
    let Some((limit, evicts)) = room(memory.tier, outside).filter(|_| replaced == 0) else {
        return Ok(());
    };
    let statement = "SELECT rows FROM memory_counts WHERE tier = ?1 AND outside = ?2";
    let rows = tx.one(statement, params![Sql(memory.tier), outside], |row| row.get("rows"))?;
    let rows: u32 = rows.unwrap_or(0);
    if rows < limit {
        return Ok(());
    }
    if !evicts {
        let noun = "memories of this tier";
        return Err(StoreError::Full { noun, limit }.into());
    }
    tx.exec(sql!("memory_evict"), params![Sql(memory.tier), outside, Sql(tx.now)])?;
    Ok(())
}

/// Writes the row and its words. What is known of a procedure or of somebody lives on in what
/// takes its place.
fn insert(
    tx: &Tx<'_>,
    memory: &NewMemory,
    hash: &[u8; 32],
    before: Option<&MemoryItem>,
) -> Result<MemoryId, TxError> {
    let NewMemory { tier, kind, name, body, strength, turn, lasts } = memory;
    let counted =
        before.filter(|_| matches!(tier, MemoryTier::Procedural | MemoryTier::Relationship));
    let (seen, successes, failures) = counted.map_or((1, 0, 0), |before| {
        (before.seen.saturating_add(1), before.successes, before.failures)
    });
    let row = params![
        Sql(*tier),
        kind,
        name,
        body.text,
        Sql(body.label),
        body.source.as_str(),
        (*strength).min(100),
        &hash[..],
        turn.map(Sql),
        Sql(tx.now),
        lasts.map(|span| Sql(tx.now.after(span))),
        seen,
        successes,
        failures,
    ];
    let id = tx.one(sql!("memory_insert"), row, |row| row.get("id").map(MemoryId))?;
    let id = id.ok_or_else(|| missing("memory", &"that was just written"))?;
    let statement = match is_outside(body.label) {
        false => "INSERT INTO memory_words (rowid, name, kind, body) VALUES (?1, ?2, ?3, ?4)",
        true => {
            "INSERT INTO memory_words_outside (rowid, name, kind, body) VALUES (?1, ?2, ?3, ?4)"
        }
    };
    let words = |text: &str| index_terms(text).join(" ");
    // Who said it is found like the kind of what was said.
    let kinds = format!("{kind} {}", body.origin_words());
    tx.exec(statement, params![id.0, words(name), words(&kinds), words(&body.text)])?;
    Ok(id)
}

pub(crate) fn item(connection: &Connection, id: MemoryId) -> Result<Option<MemoryItem>, TxError> {
    Ok(connection.one("SELECT * FROM memories WHERE id = ?1", [id.0], read)?)
}

pub(crate) fn items_named(
    connection: &Connection,
    tier: MemoryTier,
    kind: &str,
    name: &str,
) -> Result<Vec<MemoryItem>, TxError> {
    Ok(connection.all(sql!("memory_named"), params![name, kind, Sql(tier)], read)?)
}

/// Returns the number of current items.
pub(crate) fn total(connection: &Connection) -> Result<u64, TxError> {
    let statement = "SELECT coalesce(sum(rows), 0) AS rows FROM memory_counts";
    Ok(connection.one(statement, [], |row| row.get("rows"))?.unwrap_or(0))
}

/// Returns the working memory, most important first.
pub(crate) fn working(connection: &Connection) -> Result<Vec<MemoryItem>, TxError> {
    let tier = Sql(MemoryTier::Working);
    let kind = None::<&str>;
    let mut items =
        connection.all(sql!("memory_newest"), params![tier, kind, WORKING_MAX], read)?;
    items.sort_by_key(|item| std::cmp::Reverse(item.strength));
    Ok(items)
}

/// All that was ever remembered, oldest first, from one id on.
pub(crate) fn every(
    connection: &Connection,
    after: MemoryId,
    limit: u32,
) -> Result<Vec<MemoryItem>, TxError> {
    let statement = "SELECT * FROM memories WHERE id > ?1 ORDER BY id LIMIT ?2";
    Ok(connection.all(statement, params![after.0, limit], read)?)
}

pub(crate) fn matches(
    connection: &Connection,
    query: &MemoryQuery,
) -> Result<MemoryMatches, TxError> {
    let text = query.text.as_deref().unwrap_or_default();
    let mut asked = asked_terms(text, WORDS_MAX);
    let mut found = MemoryMatches { total: total(connection)?, ..MemoryMatches::default() };
    if asked.is_empty() && query.embedding.is_none() {
        found.items = newest(connection, query)?;
    } else {
        let outside = query.least_trusted.is_none_or(is_outside);
        add_parts(connection, text, outside, &mut asked)?;
        for index in [Some(&TRUSTED), outside.then_some(&OUTSIDE)].into_iter().flatten() {
            index.search(connection, query, &asked, &mut found)?;
        }
    }
    let wanted = |item: &MemoryItem| {
        query.least_trusted.is_none_or(|least| item.body.label <= least)
            && query.known_at.is_none_or(|at| item.valid_from <= at)
    };
    found.items.retain(wanted);
    add_followers(connection, &mut found)?;
    Ok(found)
}

/// Adds what the creator said right after the messages that were found first, and after those that
/// mean the most alike.
pub(crate) fn add_followers(
    connection: &Connection,
    found: &mut MemoryMatches,
) -> Result<(), TxError> {
    let mut alike = found.similarities.clone();
    alike.sort_by_key(|(id, similarity)| (std::cmp::Reverse(*similarity), *id));
    let alike: Vec<MemoryId> = alike.iter().take(FOLLOWED_MAX).map(|(id, _)| *id).collect();
    let is_message = |item: &MemoryItem| {
        item.tier == MemoryTier::Episodic
            && item.kind == "message"
            && item.body.label == Label::Creator
    };
    let first = found.items.iter().enumerate();
    let first = first.filter(|(place, it)| *place < FOLLOWED_MAX || alike.contains(&it.id));
    let wanted: Vec<MemoryId> =
        first.filter(|(_, it)| is_message(it)).map(|(_, it)| it.id).collect();
    for id in wanted {
        if !found.followers.iter().any(|(of, _)| *of == id) {
            let after = connection.all(sql!("memory_followers"), [id.0], read)?;
            found.followers.extend(after.into_iter().map(|item| (id, item)));
        }
    }
    Ok(())
}

/// One of the two indexes of words, with its statements.
struct WordIndex {
    count: &'static str,
    found: &'static str,
    recent: &'static str,
}

const TRUSTED: WordIndex = WordIndex {
    count: "SELECT count(*) AS n FROM (SELECT 1 FROM memory_words WHERE memory_words MATCH ?1 LIMIT ?2)",
    found: sql!("memory_found"),
    recent: sql!("memory_recent"),
};

const OUTSIDE: WordIndex = WordIndex {
    count: "SELECT count(*) AS n FROM (SELECT 1 FROM memory_words_outside WHERE memory_words_outside MATCH ?1 LIMIT ?2)",
    found: sql!("memory_found_outside"),
    recent: sql!("memory_recent_outside"),
};

impl WordIndex {
    /// Adds what has any of the rare words, best first, and the newest with any common one: a
    /// word that stands in thousands of items is no reason to weigh each of them.
    fn search(
        &self,
        connection: &Connection,
        query: &MemoryQuery,
        asked: &[String],
        found: &mut MemoryMatches,
    ) -> Result<(), TxError> {
        let mut rare = Vec::new();
        let mut common = Vec::new();
        for word in asked {
            let count = connection
                .one(self.count, params![quoted(word), COMMON + 1], |row| row.get("n"))?
                .unwrap_or(0);
            match found.frequencies.iter_mut().find(|(known, _)| known == word) {
                Some((_, frequency)) => *frequency = frequency.saturating_add(count),
                None => found.frequencies.push((word.clone(), count)),
            }
            match count {
                0 => {}
                1..=COMMON => rare.push(quoted(word)),
                _ => common.push(quoted(word)),
            }
        }
        let filters = query.kind.is_some() || !query.tiers.is_empty();
        for (words, statement, most) in
            [(rare, self.found, query.limit), (common, self.recent, query.limit.min(RECENT_MAX))]
        {
            if words.is_empty() {
                continue;
            }
            let looked_at = if filters { most.max(FILTERED_MAX) } else { most };
            let wanted = params![words.join(" OR "), looked_at, tiers(query), query.kind, most];
            let rows = connection.all(statement, wanted, read)?;
            let known: Vec<MemoryId> = found.items.iter().map(|item| item.id).collect();
            found.items.extend(rows.into_iter().filter(|item| !known.contains(&item.id)));
        }
        Ok(())
    }
}

/// The newest items of the wanted tiers.
fn newest(connection: &Connection, query: &MemoryQuery) -> Result<Vec<MemoryItem>, TxError> {
    let all = MemoryTier::ALL;
    let tiers = if query.tiers.is_empty() { &all[..] } else { &query.tiers[..] };
    let mut items = Vec::new();
    for tier in tiers {
        let wanted = params![Sql(*tier), query.kind, query.limit];
        items.extend(connection.all(sql!("memory_newest"), wanted, read)?);
    }
    items.sort_by_key(|item| std::cmp::Reverse((item.seen_at, item.id)));
    items.truncate(usize::try_from(query.limit).unwrap_or(usize::MAX));
    Ok(items)
}

/// The wanted tiers as one text, empty for all of them.
fn tiers(query: &MemoryQuery) -> String {
    query.tiers.iter().map(|tier| tier.name()).collect::<Vec<_>>().join(" ")
}

/// Adds to the words of a question those of which a German compound in it is made, as far as they
/// stand in any item: the pair of which both do, or else the longest of them.
fn add_parts(
    connection: &Connection,
    text: &str,
    outside: bool,
    asked: &mut Vec<String>,
) -> Result<(), TxError> {
    let stands = |word: &str| -> Result<bool, TxError> {
        for index in [Some(&TRUSTED), outside.then_some(&OUTSIDE)].into_iter().flatten() {
            let count: Option<u32> =
                connection.one(index.count, params![quoted(word), 1], |row| row.get("n"))?;
            if count.unwrap_or(0) > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    };
    for (word, pairs) in asked_parts(text) {
        if asked.len() >= WORDS_MAX || !asked.contains(&word) {
            continue;
        }
        let mut best: Vec<String> = Vec::new();
        for (first, second) in pairs {
            let mut known = Vec::new();
            for part in [first, second] {
                if stands(&part)? {
                    known.push(part);
                }
            }
            let length = |parts: &[String]| (parts.len(), parts.iter().map(String::len).max());
            if length(&known) > length(&best) {
                best = known;
            }
        }
        best.retain(|part| !asked.contains(part));
        asked.extend(best);
    }
    Ok(())
}

/// An asked word as the index takes it: any of its forms, quoted, so that nothing in it is an
/// operator.
fn quoted(word: &str) -> String {
    let forms: Vec<String> = word.split(FORM_MARK).map(|form| format!("\"{form}\"")).collect();
    match forms.len() {
        1 => forms.concat(),
        _ => format!("({})", forms.join(" OR ")),
    }
}

pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<MemoryItem> {
    Ok(MemoryItem {
        id: MemoryId(row.get("id")?),
        tier: get(row, "tier")?,
        kind: row.get("kind")?,
        name: row.get("name")?,
        body: labelled(row, "body")?,
        strength: row.get("strength")?,
        seen: row.get("seen")?,
        successes: row.get("successes")?,
        failures: row.get("failures")?,
        turn: maybe::<TurnId>(row, "turn")?,
        valid_from: get(row, "valid_from")?,
        valid_to: maybe::<Timestamp>(row, "valid_to")?,
        seen_at: get(row, "seen_at")?,
        superseded_by: row.get::<_, Option<i64>>("superseded_by")?.map(MemoryId),
    })
}
