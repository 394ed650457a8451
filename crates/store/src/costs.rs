//! `inference_totals`: what all answers of models used and cost.
//!
//! Counted when an answer is there and before anything is made of it, so that one
//! whose turn is lost afterwards is counted, too. One that costs is noted before it
//! is asked for: what was never heard of it is known to be missing.

use automaton_core::money::Microcents;
use automaton_core::record::Usage;
use rusqlite::params;

use crate::Store;
use crate::codec::{As, get};
use crate::error::StoreError;
use crate::thread::{Query, Write, sql};

/// The sums over all answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Answers.
    pub answers: u64,
    /// Tokens of their prompts, cached ones included.
    pub prompt_tokens: u64,
    /// Of these, tokens that a cache held.
    pub cached_tokens: u64,
    /// Tokens of the answers.
    pub completion_tokens: u64,
    /// What they cost.
    pub cost: Microcents,
    /// Answers that were asked for at a price and never heard.
    pub unheard: u64,
}

/// Whether an answer was noted when it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noted {
    /// It was, since it costs.
    Yes,
    /// It was not: it costs nothing.
    No,
}

impl Store {
    /// Notes that an answer is about to be asked for, at a price.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn note_asked(&self) -> Result<(), StoreError> {
        self.unheard("note a question", 1).await
    }

    /// Takes the note back: the question was refused, and cost nothing.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn note_refused(&self) -> Result<(), StoreError> {
        self.unheard("take the note of a question back", -1).await
    }

    async fn unheard(&self, doing: &'static str, by: i64) -> Result<(), StoreError> {
        self.write(Write::new(doing), move |tx| {
            tx.exec("UPDATE inference_totals SET unheard = max(unheard + ?1, 0)", params![by])?;
            Ok(())
        })
        .await
    }

    /// Counts an answer.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn count_answer(&self, usage: &Usage, noted: Noted) -> Result<(), StoreError> {
        let Usage { prompt_tokens, cached_tokens, completion_tokens, cost, .. } = *usage;
        self.write(Write::new("count an answer"), move |tx| {
            let heard = i64::from(noted == Noted::Yes);
            let params = params![prompt_tokens, cached_tokens, completion_tokens, As(cost), heard];
            tx.exec(sql!("totals_add"), params)?;
            Ok(())
        })
        .await
    }

    /// The sums over all answers.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn totals(&self) -> Result<Totals, StoreError> {
        self.run("add up the answers", |db| {
            let found = db.connection.one("SELECT * FROM inference_totals", [], |row| {
                Ok(Totals {
                    answers: get(row, "answers")?,
                    prompt_tokens: get(row, "prompt_tokens")?,
                    cached_tokens: get(row, "cached_tokens")?,
                    completion_tokens: get(row, "completion_tokens")?,
                    cost: get(row, "cost_microcents")?,
                    unheard: get(row, "unheard")?,
                })
            })?;
            Ok(found.unwrap_or_default())
        })
        .await
    }
}
