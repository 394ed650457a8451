//! Vectors that a cloud sells: each answer is booked before it is asked for, at the most that it can
//! cost, under the same ceilings as what models answer in words.
//!
//! Must never ask for what was not booked, nor pay twice for texts whose answer got lost: it is
//! asked for again by its name, once, and what is not known then is settled before the next wake.

use std::sync::{Arc, Mutex, PoisonError};

use automaton_core::error::chain;
use automaton_core::id::IdGenerator;
use automaton_core::inference_budget::InferenceCeilings;
use automaton_core::record::Usage;
use automaton_core::wire::cloud::ModelRow;
use automaton_inference::cost::{TokenCounts, price};
use automaton_inference::{
    BoxFuture, Embedder, EmbeddingError, EmbeddingServer, Embeddings, ModelPrices, catalogue,
};
use automaton_store::{NewCostReservation, Store};

use crate::metered::{OnLostAnswer, Reservation};
use crate::money::tokens_at_most;

/// An embedding model of a cloud, which is paid for.
#[derive(Clone)]
pub struct PaidEmbedder {
    server: EmbeddingServer,
    store: Store,
    ids: IdGenerator,
    /// The cloud, as the books name it.
    cloud: String,
    ceilings: InferenceCeilings,
    /// A std mutex, since nothing is awaited while it is held.
    prices: Arc<Mutex<ModelPrices>>,
}

impl PaidEmbedder {
    /// The model of a cloud that sells it at these prices, under these ceilings.
    #[must_use]
    pub fn new(
        server: EmbeddingServer,
        prices: ModelPrices,
        cloud: String,
        ceilings: InferenceCeilings,
        (store, ids): (Store, IdGenerator),
    ) -> Self {
        Self { server, store, ids, cloud, ceilings, prices: Arc::new(Mutex::new(prices)) }
    }

    async fn buy(&self, texts: Vec<String>) -> Result<Embeddings, EmbeddingError> {
        if texts.is_empty() {
            return Ok(Embeddings::none_of(self.server.model()));
        }
        let body = self.server.body(&texts)?;
        let prices = *self.prices.lock().unwrap_or_else(PoisonError::into_inner);
        let tokens_max = tokens_at_most(body.len(), texts.len());
        // What is asked for beside a turn is of none: the books show it by itself.
        let turn = self.ids.id();
        let goal = None;
        let cloud = Some(self.cloud.clone());
        let most = prices.at_most(tokens_max, 0).map_err(unbooked)?;
        let ceilings = self.ceilings;
        let cost = NewCostReservation { turn, goal, most, cloud, ceilings };
        let reserved = Reservation::book(&self.store, cost).await.map_err(unbooked)?;
        let reservation = reserved.map_err(unbooked)?;
        let name = reservation.name();
        let send = || self.server.ask(body.clone(), texts.len(), name.clone());
        let (found, counted) = match reservation.ask(OnLostAnswer::AskAgain, send).await {
            Ok(answer) => answer,
            Err(error) => {
                reservation.close_failed(&error).await.map_err(unbooked)?;
                return Err(error);
            }
        };
        // Tokens that nobody counted are all that there can be.
        let prompt = counted.unwrap_or(tokens_max).min(tokens_max);
        let tokens = TokenCounts { prompt, ..TokenCounts::default() };
        let cost = price(&prices, tokens).map_err(unbooked)?;
        let estimated = counted.is_none();
        let usage = Usage { prompt_tokens: prompt, cost, estimated, ..Usage::default() };
        reservation.settle(turn, &usage).await.map_err(unbooked)?;
        Ok(found)
    }
}

fn unbooked(error: impl std::error::Error + 'static) -> EmbeddingError {
    EmbeddingError::Unbooked { why: chain(&error).to_string() }
}

impl Embedder for PaidEmbedder {
    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Embeddings, EmbeddingError>> {
        Box::pin(self.buy(texts))
    }

    fn reprice(&self, sold: &[ModelRow]) {
        if let Some(row) = sold.iter().find(|row| row.id == *self.server.model()) {
            let prices = catalogue::served(row).prices;
            *self.prices.lock().unwrap_or_else(PoisonError::into_inner) = prices;
        }
    }
}
