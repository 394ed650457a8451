//! One paid request: reserved before it is sent, then settled or released.
//!
//! It knows no model: answers in words and vectors use it alike. A request that may have been
//! charged must never be released, and must never be paid twice: the server recognises the name
//! of the reservation and charges it once.

use std::future::Future;

use automaton_core::id::TurnId;
use automaton_core::inference_budget::OverCeiling;
use automaton_core::record::Usage;
use automaton_inference::{EmbeddingError, InferenceError};
use automaton_store::{CostReservation, NewCostReservation, Store, StoreError};

/// Failure of a request that the server may have charged.
pub(crate) trait RequestFailure {
    /// Returns true if the server charges nothing.
    fn is_free(&self) -> bool;

    /// Returns true if the server may have an answer that did not arrive.
    fn is_lost_answer(&self) -> bool;
}

impl RequestFailure for InferenceError {
    fn is_free(&self) -> bool {
        self.costs_nothing()
    }

    fn is_lost_answer(&self) -> bool {
        !self.costs_nothing()
    }
}

impl RequestFailure for EmbeddingError {
    fn is_free(&self) -> bool {
        self.costs_nothing()
    }

    /// An answer that arrived and cannot be read is not lost: a second copy reads the same.
    fn is_lost_answer(&self) -> bool {
        matches!(self, Self::Asked { .. }) && !self.costs_nothing()
    }
}

/// Response to a lost answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnLostAnswer {
    /// Request the recorded answer once more by its name.
    AskAgain,
    /// Leave the reservation booked until the cloud tells the cost.
    GiveUp,
}

/// A request whose highest cost is booked. If it is dropped, the booking stays until the cloud
/// tells the cost.
#[must_use = "the outcome of a request corrects its booking"]
pub(crate) struct Reservation {
    store: Store,
    /// `None` for a request that costs nothing.
    booked: Option<CostReservation>,
}

impl Reservation {
    /// Books a request at its highest cost. The inner error is the ceiling that it would pass;
    /// then nothing is booked.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn book(
        store: &Store,
        cost: NewCostReservation,
    ) -> Result<Result<Self, OverCeiling>, StoreError> {
        let booked = store.reserve_cost(cost).await?;
        Ok(booked.map(|booked| Self { store: store.clone(), booked: Some(booked) }))
    }

    /// Creates the reservation of a request that costs nothing. It books nothing.
    pub(crate) fn free(store: &Store) -> Self {
        Self { store: store.clone(), booked: None }
    }

    /// Returns the name of the request at its server; `None` if it costs nothing.
    pub(crate) fn name(&self) -> Option<String> {
        self.booked.as_ref().map(CostReservation::name)
    }

    /// Sends the request. A lost answer is requested once more, if it has a name. If the second
    /// request fails, the first failure is returned: the second says nothing about the charge.
    pub(crate) async fn ask<T, E, F>(
        &self,
        on_lost: OnLostAnswer,
        send: impl Fn() -> F,
    ) -> Result<T, E>
    where
        E: RequestFailure,
        F: Future<Output = Result<T, E>>,
    {
        let asks_again = on_lost == OnLostAnswer::AskAgain && self.booked.is_some();
        match send().await {
            Err(lost) if asks_again && lost.is_lost_answer() => send().await.or(Err(lost)),
            answered => answered,
        }
    }

    /// Ends a request that failed: releases the booking if the server charges nothing, and keeps
    /// it otherwise.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn close_failed(
        self,
        failure: &impl RequestFailure,
    ) -> Result<(), StoreError> {
        match self.booked {
            Some(booked) if failure.is_free() => self.store.release_cost(booked).await,
            _ => Ok(()),
        }
    }

    /// Counts the answer and corrects the booking to its cost.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn settle(self, turn: TurnId, usage: &Usage) -> Result<(), StoreError> {
        self.store.settle_cost(self.booked, turn, usage).await
    }

    /// Returns the booking, for a transaction that settles it together with other rows.
    pub(crate) fn into_booked(self) -> Option<CostReservation> {
        self.booked
    }
}
