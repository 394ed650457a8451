//! The memory, over the store's table of what is remembered.
//!
//! A text keeps the label that the tool gave it. What was recalled for a turn is kept for the
//! next one that asks the same, until something is remembered. Ranking is not done here.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use automaton_core::error::chain;
use automaton_core::memory::{
    MemoryId, MemoryItem, MemoryMatches, MemoryQuery, MemoryTier, NewMemory, StoreOutcome,
};
use automaton_inference::{Embedder, EmbeddingError};
use automaton_memory::recall::count_coverage;
use automaton_store::{Store, StoreError, TurnRecall};
use automaton_tools::HandleError;
use automaton_tools::context::{self, HandleFuture};
use tokio::time::timeout;

/// The memory of one automaton.
pub(crate) struct Memory {
    store: Store,
    embedder: Option<Arc<dyn Embedder>>,
    last: Mutex<LastRecall>,
}

/// The last recall.
#[derive(Default)]
struct LastRecall {
    found: Option<(MemoryQuery, Arc<MemoryMatches>)>,
    /// Number of stored vectors before it.
    vectors_kept: u64,
}

impl Memory {
    pub(super) fn new(store: Store, embedder: Option<Arc<dyn Embedder>>) -> Self {
        Self { store, embedder, last: Mutex::default() }
    }

    /// Adds to what words have found for a new question what means something alike. Words are
    /// enough where no vector can be made.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn add_similar(&self, recall: &mut TurnRecall) -> Result<(), StoreError> {
        if recall.matches.is_none() {
            return Ok(());
        }
        let mut query = recall.query.clone();
        add_meaning(self.embedder.as_deref(), &mut query).await;
        if query.embedding.is_some() {
            let found = recall.matches.take().unwrap_or_default();
            recall.matches = Some(self.store.add_similar(query, found).await?);
        }
        Ok(())
    }

    /// The query whose matches are known, unless there are new vectors since.
    pub(crate) fn recalled(&self) -> Option<MemoryQuery> {
        let vectors_kept = self.store.vectors_kept();
        self.with_last(|last| {
            if last.vectors_kept != vectors_kept {
                *last = LastRecall { found: None, vectors_kept };
            }
            last.found.as_ref().map(|(query, _)| query.clone())
        })
    }

    /// The matches of a turn's query, those of the turn before where the same was asked.
    pub(crate) fn matches(&self, recall: &mut TurnRecall) -> Arc<MemoryMatches> {
        self.with_last(|last| {
            if let Some(mut matches) = recall.matches.take() {
                count_coverage(&mut matches);
                last.found = Some((recall.query.clone(), Arc::new(matches)));
            }
            last.found.as_ref().map(|(_, matches)| Arc::clone(matches)).unwrap_or_default()
        })
    }

    /// Discards the last recall.
    pub(crate) fn forget_recalled(&self) {
        self.with_last(|last| last.found = None);
    }

    fn with_last<T>(&self, work: impl FnOnce(&mut LastRecall) -> T) -> T {
        // Whoever broke down with it left a value that was whole.
        work(&mut self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

impl context::MemoryHandle for Memory {
    fn remember(&self, memory: NewMemory) -> HandleFuture<'_, StoreOutcome> {
        Box::pin(async move {
            self.forget_recalled();
            self.store.remember(memory).await.map_err(of_store)
        })
    }

    fn search(&self, mut query: MemoryQuery) -> HandleFuture<'_, MemoryMatches> {
        Box::pin(async move {
            add_meaning(self.embedder.as_deref(), &mut query).await;
            self.store.memories(query).await.map_err(of_store)
        })
    }

    fn named<'a>(
        &'a self,
        tier: MemoryTier,
        kind: &'a str,
        name: &'a str,
    ) -> HandleFuture<'a, Vec<MemoryItem>> {
        let found = self.store.memories_named(tier, kind.to_owned(), name.to_owned());
        Box::pin(async move { found.await.map_err(of_store) })
    }

    fn item(&self, id: MemoryId) -> HandleFuture<'_, Option<MemoryItem>> {
        Box::pin(async move { self.store.memory(id).await.map_err(of_store) })
    }

    fn count_outcome(&self, id: MemoryId, worked: bool) -> HandleFuture<'_, ()> {
        Box::pin(async move { self.store.count_outcome(id, worked).await.map_err(of_store) })
    }

    fn complete(&self, id: MemoryId, event: NewMemory) -> HandleFuture<'_, StoreOutcome> {
        Box::pin(async move {
            self.forget_recalled();
            self.store.complete_memory(id, event).await.map_err(of_store)
        })
    }

    fn forget(&self, id: MemoryId) -> HandleFuture<'_, bool> {
        Box::pin(async move {
            self.forget_recalled();
            self.store.forget(id).await.map_err(of_store)
        })
    }
}

/// Time that a question waits for its vector. A server may have to load its model first.
const VECTOR_WITHIN: Duration = Duration::from_secs(15);

/// Adds to a question what its words mean, where something tells in time. Words are enough where
/// not.
pub async fn add_meaning(embedder: Option<&dyn Embedder>, query: &mut MemoryQuery) {
    let (Some(embedder), Some(text)) = (embedder, &query.text) else { return };
    let found = timeout(VECTOR_WITHIN, embedder.embed(vec![text.clone()])).await;
    match found.unwrap_or(Err(EmbeddingError::BrokeDown)) {
        Ok(found) => query.embedding = found.into_first(),
        Err(error) => tracing::warn!(error = %chain(&error), "a question has no vector"),
    }
}

/// A store error as the tools know it.
#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
pub(super) fn of_store(error: StoreError) -> HandleError {
    HandleError::from_error(&error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use automaton_core::faults::NoFaults;
    use automaton_core::id::IdGenerator;
    use automaton_core::time::Timestamp;
    use automaton_inference::{BoxFuture, Embeddings};
    use automaton_testkit::clock::FakeClock;
    use automaton_testkit::entropy::SeededEntropy;

    /// A server that never answers.
    struct Silent;

    impl Embedder for Silent {
        fn embed(&self, _: Vec<String>) -> BoxFuture<'_, Result<Embeddings, EmbeddingError>> {
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_does_not_wait_for_ever_for_its_vector() {
        let mut query = MemoryQuery { text: Some("boat".to_owned()), ..MemoryQuery::default() };
        add_meaning(Some(&Silent), &mut query).await;
        assert_eq!((query.text.as_deref(), query.embedding), (Some("boat"), None));
    }

    #[tokio::test]
    async fn what_was_recalled_is_looked_up_again_once_there_are_new_vectors() {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(FakeClock::at(Timestamp::EPOCH));
        let ids = IdGenerator::new(clock, Arc::new(SeededEntropy::new(1)));
        let store = Store::open(&dir.path().join("state.db"), ids, Arc::new(NoFaults)).unwrap();
        let memory = Memory::new(store.clone(), None);
        let query = MemoryQuery { text: Some("boat".to_owned()), ..MemoryQuery::default() };
        assert_eq!(memory.recalled(), None);
        memory.matches(&mut TurnRecall {
            query: query.clone(),
            matches: Some(MemoryMatches::default()),
            working: Vec::new(),
            history_since: None,
        });
        assert_eq!(memory.recalled(), Some(query));
        store.without_vector("one".to_owned(), 1).await.unwrap();
        store.keep_vectors("one".to_owned(), MemoryId(0), Vec::new()).await.unwrap();
        assert_eq!(memory.recalled(), None);
        store.close().await.unwrap();
    }
}
