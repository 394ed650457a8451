//! Transactions that wait for the next block, and the task that makes it.
//!
//! A block is made as soon as somebody wants to be in it. What comes while another
//! one is written waits, and goes into the next all together. Nobody here is
//! answered before the block is on disk; what no block took was never promised to
//! anybody, so nothing of this is kept over a restart.

use std::sync::Arc;
use std::time::Duration;

use alloy_consensus::Transaction;
use alloy_primitives::B256;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::chain::{ChainRefusal, PendingTransaction};
use crate::node::Node;

/// Transactions of one block, at most, and those that may wait for the next.
const BLOCK_MAX: usize = 128;
/// How long one that came before its turn is kept: clients that send many at once
/// send them in no order.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where transactions are put in.
#[derive(Clone)]
pub(crate) struct TransactionPool(mpsc::Sender<QueuedTransaction>);

/// A transaction, and who waits for its block.
struct QueuedTransaction {
    pending: PendingTransaction,
    until: Instant,
    answer: oneshot::Sender<Result<B256, ChainRefusal>>,
}

impl TransactionPool {
    /// An empty pool, and what [`mine`] takes out of it.
    pub(crate) fn new() -> (Self, BlockStream) {
        let (sender, receiver) = mpsc::channel(BLOCK_MAX);
        (Self(sender), BlockStream(receiver))
    }

    /// Waits until a transaction is in a block on disk, or refused; `None` when the
    /// chain failed.
    pub(crate) async fn send(
        &self,
        pending: PendingTransaction,
    ) -> Option<Result<B256, ChainRefusal>> {
        let (answer, answered) = oneshot::channel();
        let until = Instant::now() + PATIENCE;
        // silent-ok: either way it is the chain that has failed.
        self.0.send(QueuedTransaction { pending, until, answer }).await.ok()?;
        answered.await.ok()
    }
}

/// What comes out of a pool.
pub(crate) struct BlockStream(mpsc::Receiver<QueuedTransaction>);

/// Makes blocks until the pool is closed.
pub(crate) async fn mine(node: Arc<Mutex<Node>>, BlockStream(mut pool): BlockStream) {
    let (mut early, mut is_full) = (Vec::<QueuedTransaction>::new(), false);
    loop {
        let come = match early.iter().map(|it| it.until).min() {
            Some(_) if is_full => None,
            None => match pool.recv().await {
                None => return,
                come => come,
            },
            // silent-ok: nobody else came in time, which is an answer for those who wait.
            Some(until) => timeout_at(until, pool.recv()).await.ok().flatten(),
        };
        let mut block: Vec<QueuedTransaction> = early.drain(..).chain(come).collect();
        let mut node = Arc::clone(&node).lock_owned().await;
        while block.len() < BLOCK_MAX
            && let Ok(next) = pool.try_recv()
        {
            block.push(next);
        }
        block.sort_by_key(|it| it.pending.tx.nonce());
        let pending: Vec<PendingTransaction> = block.iter().map(|it| it.pending.clone()).collect();
        let Ok(told) = tokio::task::spawn_blocking(move || node.mine(&pending)).await else {
            // Whoever waited hears that it failed, and the node says why from now on.
            continue;
        };
        is_full = told.contains(&Err(ChainRefusal::Full));
        for (waiting, told) in block.into_iter().zip(told) {
            let is_early = told.as_ref().is_err_and(ChainRefusal::is_early);
            if told == Err(ChainRefusal::Full) || is_early && Instant::now() < waiting.until {
                early.push(waiting);
            } else {
                // silent-ok: a client that is gone does not stop what it asked for.
                waiting.answer.send(told).ok();
            }
        }
    }
}
