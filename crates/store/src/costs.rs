//! `inference_totals`: what all answers of models used and cost.
//!
//! Counted when an answer is there and before anything is made of it, so that one
//! whose turn is lost afterwards is counted, too. One that costs is booked before it
//! is asked for, at the most that it can cost, and must never be free because nothing
//! was heard of it. One that somebody still waits for must never be taken for one that was
//! not heard: to settle it twice is to lose what it cost.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use automaton_core::id::{HoldId, TurnId};
use automaton_core::inference_budget::{InferenceCeilings, OverCeiling};
use automaton_core::model::ModelChoice;
use automaton_core::money::Microcents;
use automaton_core::record::Usage;
use automaton_core::time::{DAY, Timestamp};
use rusqlite::{Connection, params};

use crate::codec::{Sql, get};
use crate::error::{StoreError, TxError};
use crate::ledger::{LedgerBooking, LedgerCategory, book, correct, cost};
use crate::prompts::{self, PromptRow};
use crate::thread::{CommitDurability, ConnectionExt, Tx, WriteOptions, sql};
use crate::{Store, choices, pnl};

/// Source of the cost of an answer.
const SOURCE: &str = "provider";

/// Forgets that an answer was not heard.
const FORGET: &str = "DELETE FROM unsettled_answers WHERE id = ?1";

/// The sums over all answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CostTotals {
    /// Answers.
    pub answers: u64,
    /// Tokens of their prompts, cached ones included.
    pub prompt_tokens: u64,
    /// Prompt tokens that came from a cache.
    pub cached_tokens: u64,
    /// Tokens of the answers.
    pub completion_tokens: u64,
    /// Cost.
    pub cost: Microcents,
    /// Those whose tokens are an estimate.
    pub estimated: u64,
    /// Answers that were asked for at a price and never heard.
    pub unsettled: u64,
}

/// An answer that is about to be asked for at a price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCostReservation {
    /// The turn that asks.
    pub turn: TurnId,
    /// The goal that it serves.
    pub goal: Option<String>,
    /// The most that it can cost.
    pub most: Microcents,
    /// The cloud that is asked for it, which can tell later what it cost.
    pub cloud: Option<String>,
    /// Ceilings for answers.
    pub ceilings: InferenceCeilings,
}

/// An answer that was asked for and not heard when the process ended.
#[derive(Debug)]
pub struct UnsettledCost {
    /// The turn that asked.
    pub turn: TurnId,
    /// The cloud that was asked.
    pub cloud: Option<String>,
    /// Its booking.
    pub reservation: CostReservation,
}

/// An answer that was asked for, until it is known what it cost. One of which nothing
/// more is heard stays booked at the most that it can cost. While this is there, somebody
/// waits for the answer, and [`Store::unsettled_costs`] leaves it out.
#[derive(Debug)]
#[must_use = "what is heard of an answer corrects what was booked for it"]
pub struct CostReservation {
    id: HoldId,
    most: Microcents,
    /// List that holds it, if it is not of an earlier process.
    awaited: Option<AwaitedAnswers>,
}

/// The answers that somebody waits for.
pub(crate) type AwaitedAnswers = Arc<Mutex<BTreeSet<HoldId>>>;

/// Locks the set. A panic of another thread leaves it in order.
fn locked(awaited: &AwaitedAnswers) -> MutexGuard<'_, BTreeSet<HoldId>> {
    awaited.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for CostReservation {
    fn drop(&mut self) {
        if let Some(awaited) = &self.awaited {
            locked(awaited).remove(&self.id);
        }
    }
}

impl CostReservation {
    /// Returns the name of the request at the server, to ask for its answer again.
    #[must_use]
    pub fn name(&self) -> String {
        self.id.to_string()
    }

    /// The most that it can cost.
    #[must_use]
    pub const fn cost_max(&self) -> Microcents {
        self.most
    }
}

/// Request of a turn to its model.
#[derive(Debug)]
pub struct AskedAnswer {
    /// The prompt, as far as it is kept.
    pub prompt: PromptRow,
    /// Time of the request.
    pub at: Timestamp,
    /// Reservation for the answer, if it costs something.
    pub reservation: Option<CostReservation>,
    /// Choice of the model.
    pub choice: Option<ModelChoice>,
}

/// Outcome of a request whose turn was abandoned.
#[derive(Debug)]
pub enum AnswerEnd {
    /// It was answered all the same, at this cost.
    Heard(Usage),
    /// It was refused, and cost nothing.
    Refused,
    /// Nobody knows: it may have been charged, and stays booked.
    Unheard,
}

impl Store {
    /// Books an answer at the most that it can cost, where that fits into every ceiling beside
    /// what is booked already. It may be asked for once this returns: the booking is on the disk.
    /// However many are asked for at once, no ceiling is passed.
    ///
    /// # Errors
    /// When SQLite fails. The inner one is the ceiling that it would pass; then nothing is booked.
    pub async fn reserve_cost(
        &self,
        answer: NewCostReservation,
    ) -> Result<Result<CostReservation, OverCeiling>, StoreError> {
        let write = WriteOptions::new("book an answer before it is asked for")
            .sync(CommitDurability::Machine);
        let awaited = self.awaited.clone();
        self.write(write, move |tx| {
            let NewCostReservation { turn, goal, most, cloud, ceilings } = &answer;
            let spend = pnl::thinking(tx, tx.now.before(DAY))?;
            if let Err(over) = ceilings.fits(&spend, *most) {
                return Ok(Err(over));
            }
            let id = tx.ids.id();
            locked(&awaited).insert(id);
            let awaited = Some(awaited.clone());
            let asked = CostReservation { id, most: *most, awaited };
            let amount = cost(*most).map_err(StoreError::Amount)?;
            let category = LedgerCategory::Inference;
            let of = Some(*turn);
            let goal = goal.as_deref();
            book(
                tx,
                &LedgerBooking { key: None, category, amount, turn: of, goal, source: SOURCE },
            )?;
            if *most > Microcents::ZERO {
                let params = params![Sql(asked.id), Sql(*turn), cloud, Sql(*most), Sql(tx.now)];
                tx.exec(sql!("unsettled_insert"), params)?;
            }
            add_unsettled(tx, 1)?;
            Ok(Ok(asked))
        })
        .await
    }

    /// Takes the booking back: the question was refused, and cost nothing.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn release_cost(&self, asked: CostReservation) -> Result<(), StoreError> {
        let write = WriteOptions::new("take the booking of an answer back");
        self.write(write, move |tx| release(tx, &asked)).await
    }

    /// Counts an answer, and books what it cost: as a correction of what was booked
    /// before it was asked for.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn settle_cost(
        &self,
        asked: Option<CostReservation>,
        turn: TurnId,
        usage: &Usage,
    ) -> Result<(), StoreError> {
        let usage = usage.clone();
        let write = WriteOptions::new("count an answer");
        self.write(write, move |tx| settle(tx, asked.as_ref(), turn, &usage)).await
    }

    /// Keeps what a turn asked with that is given up, and what is known of the cost.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] when the turn is none, or has asked before.
    pub async fn close_asked(
        &self,
        turn: TurnId,
        asked: AskedAnswer,
        end: AnswerEnd,
    ) -> Result<(), StoreError> {
        self.write(WriteOptions::new("keep what was asked"), move |tx| {
            let AskedAnswer { prompt, at, reservation, choice } = &asked;
            prompts::insert_prompt(tx, turn, prompt, *at)?;
            choices::insert_choice(tx, turn, choice.as_ref())?;
            match (end, reservation) {
                (AnswerEnd::Heard(usage), asked) => settle(tx, asked.as_ref(), turn, &usage),
                (AnswerEnd::Refused, Some(asked)) => release(tx, asked),
                (AnswerEnd::Refused, None) | (AnswerEnd::Unheard, _) => Ok(()),
            }
        })
        .await
    }

    /// The answers that were asked for at a price and not heard, oldest first, without those that
    /// somebody waits for: these never will be.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn unsettled_costs(&self) -> Result<Vec<UnsettledCost>, StoreError> {
        let statement = "SELECT id, turn, cloud, most FROM unsettled_answers ORDER BY id";
        let awaited = self.awaited.clone();
        let work = move |tx: &Tx<'_>| {
            let mut found = tx.all(statement, [], |row| {
                let id = get(row, "id")?;
                let most = get(row, "most")?;
                let reservation = CostReservation { id, most, awaited: None };
                Ok(UnsettledCost { turn: get(row, "turn")?, cloud: row.get("cloud")?, reservation })
            })?;
            let open = locked(&awaited);
            found.retain(|one| !open.contains(&one.reservation.id));
            Ok(found)
        };
        self.run("read the answers that were not heard", work).await
    }

    /// Asks no more what an answer cost: it stays booked at the most that it can.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn write_off_cost(&self, asked: CostReservation) -> Result<(), StoreError> {
        self.write(WriteOptions::new("give an answer up"), move |tx| {
            tx.exec(FORGET, [Sql(asked.id)])?;
            Ok(())
        })
        .await
    }

    /// The sums over all answers.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn totals(&self) -> Result<CostTotals, StoreError> {
        self.run("add up the answers", |tx| totals(tx)).await
    }
}

fn release(tx: &Tx<'_>, asked: &CostReservation) -> Result<(), TxError> {
    correct(tx, &asked.name(), None)?;
    tx.exec(FORGET, [Sql(asked.id)])?;
    add_unsettled(tx, -1)
}

pub(crate) fn settle(
    tx: &Tx<'_>,
    asked: Option<&CostReservation>,
    turn: TurnId,
    usage: &Usage,
) -> Result<(), TxError> {
    let Usage { prompt_tokens, cached_tokens, completion_tokens, cost: paid, estimated, .. } =
        *usage;
    match asked.filter(|asked| asked.most != Microcents::ZERO) {
        Some(asked) => {
            let rest = asked.most.minus(paid).map_err(StoreError::Amount)?;
            correct(tx, &asked.name(), Some(rest))?;
        }
        None => {
            let amount = cost(paid).map_err(StoreError::Amount)?;
            let category = LedgerCategory::Inference;
            let turn = Some(turn);
            let goal = None;
            let key = None;
            book(tx, &LedgerBooking { key, category, amount, turn, goal, source: SOURCE })?;
        }
    }
    if let Some(asked) = asked {
        tx.exec(FORGET, [Sql(asked.id)])?;
        add_unsettled(tx, -1)?;
    }
    let params = params![prompt_tokens, cached_tokens, completion_tokens, Sql(paid), estimated];
    tx.exec(sql!("totals_add"), params)?;
    Ok(())
}

pub(crate) fn totals(connection: &Connection) -> Result<CostTotals, TxError> {
    let found = connection.one("SELECT * FROM inference_totals", [], |row| {
        Ok(CostTotals {
            answers: get(row, "answers")?,
            prompt_tokens: get(row, "prompt_tokens")?,
            cached_tokens: get(row, "cached_tokens")?,
            completion_tokens: get(row, "completion_tokens")?,
            cost: get(row, "cost_microcents")?,
            estimated: get(row, "estimated")?,
            unsettled: get(row, "unsettled")?,
        })
    })?;
    Ok(found.unwrap_or_default())
}

fn add_unsettled(tx: &Tx<'_>, by: i64) -> Result<(), TxError> {
    tx.exec("UPDATE inference_totals SET unsettled = max(unsettled + ?1, 0)", [by])?;
    Ok(())
}
