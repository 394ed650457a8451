//! `turns.choice` and `automaton.chosen_model`: how the model of each turn was chosen, which one
//! stands in the usual one's place, and what each cost.
//!
//! What an answer cost whose turn was lost is in the ledger alone; no sum here may pass for it.

use automaton_core::id::TurnId;
use automaton_core::model::{ModelChoice, ModelId};
use automaton_core::money::Microcents;
use automaton_core::time::Timestamp;
use automaton_core::trust::Label;
use rusqlite::{Connection, params};
use serde::Serialize;

use crate::codec::{Sql, get, json_of};
use crate::error::{StoreError, TxError};
use crate::thread::{ConnectionExt, Tx, WriteOptions, sql};
use crate::{Reader, Store};

const WHAT: &str = "the choice of a model";

/// Keeps how a model was chosen.
pub(crate) fn insert_choice(
    tx: &Tx<'_>,
    turn: TurnId,
    choice: Option<&ModelChoice>,
) -> Result<(), TxError> {
    let Some(choice) = choice else { return Ok(()) };
    let text =
        serde_json::to_string(choice).map_err(|source| StoreError::Json { what: WHAT, source })?;
    tx.exec("UPDATE turns SET choice = ?2 WHERE id = ?1", params![Sql(turn), text])?;
    Ok(())
}

/// Usage and cost of one model's answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelSpend {
    /// The model.
    pub model: ModelId,
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
}

fn spend(connection: &Connection, since: Timestamp) -> Result<Vec<ModelSpend>, TxError> {
    Ok(connection.all(sql!("model_spend"), [Sql(since)], |row| {
        Ok(ModelSpend {
            model: row.get::<_, String>("model")?.into(),
            answers: get(row, "answers")?,
            prompt_tokens: get(row, "prompt_tokens")?,
            cached_tokens: get(row, "cached_tokens")?,
            completion_tokens: get(row, "completion_tokens")?,
            cost: get(row, "cost")?,
        })
    })?)
}

/// The model that stands in the usual one's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenModel {
    /// The model.
    pub model: ModelId,
    /// True if the creator chose it; false if the automaton did.
    pub by_creator: bool,
}

fn chosen(connection: &Connection) -> Result<Option<ChosenModel>, TxError> {
    let statement = "SELECT chosen_model, chosen_by FROM automaton WHERE chosen_model IS NOT NULL";
    Ok(connection.one(statement, [], |row| {
        let model: String = row.get("chosen_model")?;
        let by: Option<String> = row.get("chosen_by")?;
        let by_creator = by.as_deref() == Some(Label::Creator.name());
        Ok(ChosenModel { model: model.into(), by_creator })
    })?)
}

impl Store {
    /// Has a model stand in the usual one's place, until another is chosen; without one the usual
    /// one thinks.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn choose_model(&self, chosen: Option<ChosenModel>) -> Result<(), StoreError> {
        self.write(WriteOptions::new("choose a model"), move |tx| {
            let name = chosen.as_ref().map(|chosen| chosen.model.as_str());
            let by = chosen.as_ref().map(|chosen| match chosen.by_creator {
                true => Label::Creator,
                false => Label::Own,
            });
            let statement = "UPDATE automaton SET chosen_model = ?1, chosen_by = ?2";
            tx.exec(statement, params![name, by.map(Sql)])?;
            Ok(())
        })
        .await
    }

    /// The model that stands in the usual one's place.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn chosen_model(&self) -> Result<Option<ChosenModel>, StoreError> {
        self.run("read which model was chosen", |tx| chosen(tx)).await
    }

    /// Returns usage and cost of each model since a time, the dearest first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn spend_by_model(&self, since: Timestamp) -> Result<Vec<ModelSpend>, StoreError> {
        self.run("add up what models cost", move |tx| spend(tx, since)).await
    }
}

impl Reader {
    /// Returns usage and cost of each model since a time, the dearest first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn spend_by_model(&self, since: Timestamp) -> Result<Vec<ModelSpend>, StoreError> {
        self.read("add up what models cost", |connection| spend(connection, since))
    }

    /// Returns the choice of a turn's model; of the newest turn that asked one if none is named.
    ///
    /// # Errors
    /// When SQLite fails, or what is kept is damaged.
    pub fn model_choice(
        &self,
        turn: Option<u64>,
    ) -> Result<Option<(u64, ModelChoice)>, StoreError> {
        let statement = "SELECT seq, choice FROM turns WHERE choice IS NOT NULL \
            AND (?1 IS NULL OR seq = ?1) ORDER BY seq DESC LIMIT 1";
        self.read("read how a model was chosen", |connection| {
            Ok(connection
                .one(statement, [turn], |row| Ok((row.get("seq")?, json_of(row, "choice")?)))?)
        })
    }
}
