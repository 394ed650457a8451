//! `inference_totals`: what all answers of models used and cost.
//!
//! Counted when an answer is there and before anything is made of it, so that one
//! whose turn is lost afterwards is counted, too. Nothing is ever taken off.

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
}

impl Store {
    /// Counts an answer.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn count_answer(&self, usage: &Usage) -> Result<(), StoreError> {
        let Usage { prompt_tokens, cached_tokens, completion_tokens, cost, .. } = *usage;
        self.write(Write::new("count an answer"), move |tx| {
            let params = params![prompt_tokens, cached_tokens, completion_tokens, As(cost)];
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
                })
            })?;
            Ok(found.unwrap_or_default())
        })
        .await
    }
}
