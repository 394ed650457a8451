//! Transactions that wait for the next block, and the task that makes blocks.
//!
//! A block is made as soon as a transaction waits. Transactions that arrive while a block is
//! written go into the next one together. Nobody is answered before the block is on disk. A
//! transaction in no block was never confirmed, so nothing of the pool is kept over a restart.

use std::sync::Arc;
use std::time::Duration;

use alloy_consensus::Transaction;
use alloy_primitives::B256;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::chain::{ChainRefusal, PendingTransaction};
use crate::node::Node;

/// The most transactions of one block, and of those waiting for the next.
const BLOCK_MAX: usize = 128;
/// The time that a transaction with a future nonce is kept. Clients that send many at once send
/// them in no order.
const PATIENCE: Duration = Duration::from_secs(1);

/// The input of the pool.
#[derive(Clone)]
pub(crate) struct TransactionPool(mpsc::Sender<QueuedTransaction>);

/// A transaction, and the channel to its sender.
struct QueuedTransaction {
    pending: PendingTransaction,
    until: Instant,
    answer: oneshot::Sender<Result<B256, ChainRefusal>>,
}

impl TransactionPool {
    /// Creates an empty pool and its output for [`mine`].
    pub(crate) fn new() -> (Self, BlockStream) {
        let (sender, receiver) = mpsc::channel(BLOCK_MAX);
        (Self(sender), BlockStream(receiver))
    }

    /// Waits until a transaction is in a block on disk, or refused. Returns `None` if the chain
    /// failed.
    pub(crate) async fn send(
        &self,
        pending: PendingTransaction,
    ) -> Option<Result<B256, ChainRefusal>> {
        let (answer, answered) = oneshot::channel();
        let until = Instant::now() + PATIENCE;
        // silent-ok: in both cases the chain has failed.
        self.0.send(QueuedTransaction { pending, until, answer }).await.ok()?;
        answered.await.ok()
    }
}

/// The output of a pool.
pub(crate) struct BlockStream(mpsc::Receiver<QueuedTransaction>);

/// Makes blocks until the pool is closed.
pub(crate) async fn mine(node: Arc<Mutex<Node>>, BlockStream(mut pool): BlockStream) {
    let mut early = Vec::<QueuedTransaction>::new();
    let mut is_full = false;
    loop {
        let come = match early.iter().map(|it| it.until).min() {
            Some(_) if is_full => None,
            None => match pool.recv().await {
                None => return,
                come => come,
            },
            // silent-ok: no other transaction arrived in time, so the waiting ones are tried
            // again.
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
            // The senders receive the failure, and the node gives the reason from now on.
            continue;
        };
        is_full = told.contains(&Err(ChainRefusal::Full));
        for (waiting, told) in block.into_iter().zip(told) {
            let is_early = told.as_ref().is_err_and(ChainRefusal::is_early);
            if told == Err(ChainRefusal::Full) || is_early && Instant::now() < waiting.until {
                early.push(waiting);
            } else {
                // silent-ok: a client that has gone does not stop its transaction.
                waiting.answer.send(told).ok();
            }
        }
    }
}
