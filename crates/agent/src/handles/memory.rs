//! The memory, over the store's table of facts.
//!
//! A value keeps the label that the tool gave it. Ranking is not done here.

use automaton_store::{FactQuery, Store, StoreError, Upsert};
use automaton_tools::HandleError;
use automaton_tools::context::{self, HandleFuture, MemoryQuery, RememberOutcome};

use crate::turn::into_memory;

/// The memory of one automaton.
pub(crate) struct Memory {
    store: Store,
}

impl Memory {
    pub(super) const fn new(store: Store) -> Self {
        Self { store }
    }
}

impl context::MemoryHandle for Memory {
    fn remember<'a>(&'a self, fact: context::NewFact) -> HandleFuture<'a, RememberOutcome> {
        Box::pin(async move {
            let row = automaton_store::NewFactRow {
                category: fact.category.to_owned(),
                key: fact.key,
                value: fact.value,
                confidence_percent: fact.confidence_percent,
                turn: None,
            };
            let (id, upsert) = self.store.remember(row).await.map_err(of_store)?;
            Ok(match upsert {
                Upsert::New => RememberOutcome::New(id),
                Upsert::Updated => RememberOutcome::Updated(id),
            })
        })
    }

    fn candidates<'a>(
        &'a self,
        query: &'a MemoryQuery,
    ) -> HandleFuture<'a, Vec<automaton_memory::Fact>> {
        Box::pin(async move {
            let query = FactQuery {
                category: query.category.map(ToOwned::to_owned),
                text: query.text.clone(),
                limit: query.limit,
            };
            let found = self.store.facts(query).await.map_err(of_store)?;
            Ok(found.into_iter().map(into_memory).collect())
        })
    }
}

/// A store error as the tools know it.
#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
pub(super) fn of_store(error: StoreError) -> HandleError {
    HandleError::of(&error)
}
