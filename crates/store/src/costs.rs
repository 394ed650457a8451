//! `inference_totals`: what all answers of models used and cost.
//!
//! Counted when an answer is there and before anything is made of it, so that one
//! whose turn is lost afterwards is counted, too. One that costs is booked before it
//! is asked for, at the most that it can cost, and must never be free because nothing
//! was heard of it.

use automaton_core::id::{HoldId, TurnId};
use automaton_core::money::Microcents;
use automaton_core::record::Usage;
use rusqlite::{Connection, params};

use crate::Store;
use crate::codec::{As, get};
use crate::error::{Halt, StoreError};
use crate::ledger::{Booking, Category, book, correct, cost, take_back};
use crate::thread::{Query, Sync, Tx, Write, sql};

/// Whose word the cost of an answer is.
const SOURCE: &str = "provider";

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

/// An answer that is about to be asked for at a price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAnswer {
    /// The turn that asks.
    pub turn: TurnId,
    /// The goal that it serves.
    pub goal: Option<String>,
    /// The most that it can cost.
    pub most: Microcents,
}

/// An answer that was asked for, until it is known what it cost. One of which nothing
/// more is heard stays booked at the most that it can cost.
#[derive(Debug)]
#[must_use = "what is heard of an answer corrects what was booked for it"]
pub struct Asked {
    id: HoldId,
    most: Microcents,
}

impl Asked {
    fn key(&self) -> String {
        format!("answer:{}", self.id)
    }
}

impl Store {
    /// Books an answer at the most that it can cost. It may be asked for once this
    /// returns: the booking is on the disk.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn book_answer(&self, answer: NewAnswer) -> Result<Asked, StoreError> {
        let write = Write::new("book an answer before it is asked for").sync(Sync::Machine);
        self.write(write, move |tx| {
            let NewAnswer { turn, goal, most } = &answer;
            let asked = Asked { id: tx.mint.id(), most: *most };
            let amount = cost(*most).map_err(StoreError::Amount)?;
            let (key, turn, goal) = (asked.key(), Some(*turn), goal.as_deref());
            let category = Category::Inference;
            book(tx, &Booking { key: &key, category, amount, turn, goal, source: SOURCE })?;
            unheard(tx, 1)?;
            Ok(asked)
        })
        .await
    }

    /// Takes the booking back: the question was refused, and cost nothing.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn answer_refused(&self, asked: Asked) -> Result<(), StoreError> {
        self.write(Write::new("take the booking of an answer back"), move |tx| {
            take_back(tx, &asked.key())?;
            unheard(tx, -1)
        })
        .await
    }

    /// Counts an answer, and books what it cost: as a correction of what was booked
    /// before it was asked for.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn answer_heard(
        &self,
        asked: Option<Asked>,
        turn: TurnId,
        usage: &Usage,
    ) -> Result<(), StoreError> {
        let Usage { prompt_tokens, cached_tokens, completion_tokens, cost: paid, .. } = *usage;
        self.write(Write::new("count an answer"), move |tx| {
            if asked.is_some() {
                unheard(tx, -1)?;
            }
            match asked.as_ref().filter(|asked| asked.most != Microcents::ZERO) {
                Some(asked) => {
                    let rest = asked.most.minus(paid).map_err(StoreError::Amount)?;
                    correct(tx, &asked.key(), rest)?;
                }
                None => {
                    let key = format!("answer:{}", tx.mint.id::<HoldId>());
                    let amount = cost(paid).map_err(StoreError::Amount)?;
                    let (category, turn, goal) = (Category::Inference, Some(turn), None);
                    book(tx, &Booking { key: &key, category, amount, turn, goal, source: SOURCE })?;
                }
            }
            let params = params![prompt_tokens, cached_tokens, completion_tokens, As(paid)];
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
        self.run("add up the answers", |db| totals(&db.connection)).await
    }
}

pub(crate) fn totals(connection: &Connection) -> Result<Totals, Halt> {
    let found = connection.one("SELECT * FROM inference_totals", [], |row| {
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
}

fn unheard(tx: &Tx<'_>, by: i64) -> Result<(), Halt> {
    tx.exec("UPDATE inference_totals SET unheard = max(unheard + ?1, 0)", [by])?;
    Ok(())
}
