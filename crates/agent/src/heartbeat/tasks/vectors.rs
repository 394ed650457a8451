//! `embed_memories`: has what is remembered made vectors of, so that it is found by what it means.
//!
//! The model of this machine works in the background, a few texts at a time, and goes on at the
//! next run where it was.

use automaton_core::time::Span;
use automaton_memory::recall::embedded_text;
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

/// Texts that are kept in one transaction.
const BATCH: u32 = 16;

/// How long one run goes on; what is left waits for the next.
const WORK_MAX: Span = Span::from_secs(45);

async fn embed(ground: &TaskContext, tick: &TickContext) -> Result<TaskReport, TaskFailure> {
    let deps = &ground.deps;
    let Some(embedder) = &deps.embedder else { return Ok(TaskReport::done(String::new())) };
    let model = embedder.embed(Vec::new()).await?.model;
    let mut made = 0;
    loop {
        let items = deps.store.without_vector(model.clone(), BATCH).await?;
        if items.is_empty() {
            return Ok(TaskReport::done(format!("{made} new, none waits")));
        }
        let found = embedder.embed(items.iter().map(embedded_text).collect()).await?;
        let vectors = items.iter().map(|item| item.id).zip(found.vectors).collect::<Vec<_>>();
        made += vectors.len();
        deps.store.keep_vectors(found.model, vectors).await?;
        if deps.ids.now().since(tick.now) >= WORK_MAX {
            return Ok(TaskReport::done(format!("{made} new, and more wait")));
        }
    }
}
