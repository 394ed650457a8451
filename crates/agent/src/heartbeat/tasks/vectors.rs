//! `embed_memories`: has what is remembered made vectors of, so that it is found by what it means.
//!
//! It works in the background, a few texts at a time, and goes on at the next run where it was.

use std::iter;

use automaton_core::embedding::EmbeddingVector;
use automaton_core::memory::{MemoryId, MemoryItem};
use automaton_core::time::Span;
use automaton_inference::{Embedder, EmbeddingError};
use automaton_memory::parts::embedded_texts;
use futures_util::FutureExt;

use super::{TaskContext, TaskFailure, TaskReport, TaskSpec, TickContext};
use crate::heartbeat::due::Need;

pub(super) const TASK: TaskSpec = TaskSpec {
    name: "embed_memories",
    need: Need::Other,
    essential: false,
    cron: "*/2 * * * *",
    timeout: Span::from_secs(90),
    max_retries: 0,
    is_available: |deps| deps.embedder.is_some(),
    run: |ground, tick| embed(ground, tick).boxed(),
};

/// Memories whose vectors are made and kept at once. Where all are as long as can be, these are 28
/// texts, of which the slowest model that is brought here makes vectors in half a minute.
const BATCH: u32 = 4;

/// Time for one run; the rest waits for the next.
const WORK_MAX: Span = Span::from_secs(45);

/// The vectors of these, those of each together. A text of which a model makes none is left out,
/// where it makes one of another: one that is too long for it must not be in the way of its own
/// parts, or of all that come after.
async fn vectors_of(
    embedder: &dyn Embedder,
    items: &[MemoryItem],
) -> Result<Vec<(MemoryId, EmbeddingVector)>, EmbeddingError> {
    let of_each = |item: &MemoryItem| embedded_texts(item).into_iter().zip(iter::repeat(item.id));
    let (texts, ids): (Vec<_>, Vec<_>) = items.iter().flat_map(of_each).unzip();
    let failed = match embedder.embed(texts.clone()).await {
        Ok(found) => return Ok(ids.into_iter().zip(found.vectors).collect()),
        Err(failed) if !failed.is_of_text() => return Err(failed),
        Err(failed) => failed,
    };
    let mut vectors = Vec::new();
    for (text, id) in texts.into_iter().zip(ids) {
        match embedder.embed(vec![text]).await {
            Ok(found) => vectors.extend(found.vectors.into_iter().map(|it| (id, it))),
            Err(flaw) if flaw.is_of_text() => {}
            Err(other) => return Err(other),
        }
    }
    if vectors.is_empty() { Err(failed) } else { Ok(vectors) }
}

async fn embed(ground: &TaskContext, tick: &TickContext) -> Result<TaskReport, TaskFailure> {
    let deps = &ground.deps;
    let Some(embedder) = &deps.embedder else { return Ok(TaskReport::done(String::new())) };
    let model = embedder.embed(Vec::new()).await?.model;
    let mut made = 0;
    loop {
        let items = deps.store.without_vector(model.clone(), BATCH).await?;
        let Some(last) = items.last() else {
            return Ok(TaskReport::done(format!("{made} new, none waits")));
        };
        let vectors = vectors_of(&**embedder, &items).await?;
        made += vectors.iter().filter(|(_, vector)| vector.has_direction()).count();
        deps.store.keep_vectors(model.clone(), last.id, vectors).await?;
        if deps.ids.now().since(tick.now) >= WORK_MAX {
            return Ok(TaskReport::done(format!("{made} new, and more wait")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use automaton_core::embedding::EmbeddingKind;
    use automaton_core::memory::MemoryTier;
    use automaton_core::trust::Label;
    use automaton_inference::{BoxFuture, Embeddings};
    use automaton_testkit::memory::memory_item;

    /// Makes a vector of any text but one of a hundred characters, one that points nowhere of what
    /// is empty.
    struct ShortTexts;

    impl Embedder for ShortTexts {
        fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Embeddings, EmbeddingError>> {
            let is_long = texts.iter().any(|text| text.len() >= 100);
            let vector = |text: &String| EmbeddingVector::new(vec![i8::from(!text.is_empty())]);
            let vectors = texts.iter().map(vector).collect();
            let why = "it is too long".to_owned();
            Box::pin(std::future::ready(match is_long {
                true => Err(EmbeddingError::Answer { url: "http://x".to_owned(), why }),
                false => {
                    Ok(Embeddings { model: "short".to_owned(), kind: EmbeddingKind::Text, vectors })
                }
            }))
        }
    }

    fn item(id: i64, text: &str) -> MemoryItem {
        memory_item(id, MemoryTier::Episodic, "message/", Label::Own, text)
    }

    #[tokio::test]
    async fn a_text_without_a_vector_is_in_nobodys_way_and_a_server_without_any_is_told() {
        let sentence = "What is asked for is within a sentence of sixty characters or more.";
        let long = "long ".repeat(20);
        let parts = format!("{sentence} {sentence}");
        let items = [item(1, "one"), item(2, &long), item(3, &parts), item(4, "")];
        let found = vectors_of(&ShortTexts, &items).await.unwrap();
        assert_eq!(found.iter().map(|(id, _)| id.0).collect::<Vec<_>>(), [1, 3, 3, 4]);
        assert!(vectors_of(&ShortTexts, &items[1..2]).await.is_err());
        // One that points nowhere is an answer: the batch is not stuck.
        let those = [items[1].clone(), items[3].clone()];
        let found = vectors_of(&ShortTexts, &those).await.unwrap();
        assert_eq!(
            found.iter().map(|(id, it)| (id.0, it.has_direction())).collect::<Vec<_>>(),
            [(4, false)]
        );
    }
}
