//! The chain with its log and its clock. Requests use it one after another.
//!
//! An operation is performed, written, and then answered, without interruption. Transactions that
//! waited together are one operation, with one sync. If it cannot be written, the chain is ahead
//! of its log. The node then refuses everything until it has restarted from the log, which it
//! does once a full disk has room. It must never show state that a restart would lose.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alloy_consensus::Transaction as _;
use alloy_primitives::{B256, Bytes};
use automaton_core::faults::{FaultPoint, Faults};
use automaton_core::time::Clock;
use tokio::sync::watch;

use crate::chain::{Chain, ChainOperation, ChainRefusal, OperationOutcome, PendingTransaction};
use crate::error::DevnetError;
use crate::journal::{GenesisRecord, Journal, JournalEntry};
use crate::rpc::filters::FilterTable;

/// The chain, its log, and the injected dependencies.
pub(crate) struct Node {
    chain: Chain,
    journal: Option<Journal>,
    /// The folder of the log.
    data: Option<PathBuf>,
    /// The reason why the last operation is not on disk.
    broken: Option<io::ErrorKind>,
    clock: Arc<dyn Clock>,
    faults: Arc<dyn Faults>,
    /// The filters of its clients.
    pub(crate) filters: FilterTable,
    /// Counts operations, for subscribers.
    changes: watch::Sender<u64>,
}

impl Node {
    /// Creates a new chain, or resumes the one in the folder.
    ///
    /// # Errors
    /// Fails if the log cannot be used, or does not reproduce its blocks.
    pub(crate) fn open(
        chain_id: u64,
        data: Option<&Path>,
        clock: Arc<dyn Clock>,
        faults: Arc<dyn Faults>,
    ) -> Result<Self, DevnetError> {
        let birth = GenesisRecord::new(chain_id, seconds(clock.as_ref()))?;
        let (chain, journal) = match data {
            None => (Chain::new(chain_id, birth.time)?, None),
            Some(folder) => {
                let (chain, journal) = replay(folder, birth)?;
                (chain, Some(journal))
            }
        };
        let filters = FilterTable::default();
        let data = data.map(Path::to_owned);
        let changes = watch::Sender::new(0);
        Ok(Self { chain, journal, data, broken: None, clock, faults, filters, changes })
    }

    /// Subscribes to changes of the chain.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Publishes an operation that is on disk.
    fn publish(&mut self) {
        self.broken = None;
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Restarts from the log if the disk was full and has room again.
    pub(crate) fn recover(&mut self) {
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
        if !self.broken.is_some_and(|why| full.contains(&why)) {
            return;
        }
        let has_room = self.journal.take_if(Journal::has_room_again).is_some();
        let Some(data) = self.data.as_deref().filter(|_| has_room) else { return };
        let begun = GenesisRecord::new(self.chain.id(), 0);
        match begun.map_err(DevnetError::from).and_then(|birth| replay(data, birth)) {
            Ok((chain, journal)) => {
                self.filters.rewind(chain.height());
                (self.chain, self.journal, self.broken) = (chain, Some(journal), None);
            }
            Err(_) => self.broken = Some(io::ErrorKind::InvalidData),
        }
    }

    /// Returns the chain for reading.
    ///
    /// # Errors
    /// Returns [`ChainRefusal::Broken`] after an operation could not be written.
    pub(crate) const fn chain(&self) -> Result<&Chain, ChainRefusal> {
        match self.broken {
            Some(why) => Err(ChainRefusal::Broken(why)),
            None => Ok(&self.chain),
        }
    }

    /// Returns the time of a block mined now, in seconds since the epoch.
    pub(crate) fn time(&self) -> u64 {
        self.chain.time_at(self.seconds())
    }

    /// Returns the clock's time, which no request changes, in seconds since the epoch.
    pub(crate) fn seconds(&self) -> u64 {
        seconds(self.clock.as_ref())
    }

    /// Performs an operation. It is on disk when this returns.
    ///
    /// # Errors
    /// Returns the chain's refusal, or the failure to write.
    pub(crate) fn act(&mut self, act: ChainOperation) -> Result<OperationOutcome, ChainRefusal> {
        self.recover();
        self.chain()?;
        // Until it is on disk the chain is ahead of its log, even if this panics.
        self.broken = Some(io::ErrorKind::Interrupted);
        let done = self.chain.perform(&act);
        if done.is_ok() {
            self.store(act)?;
        }
        if done == Ok(OperationOutcome::Reverted) {
            self.filters.rewind(self.chain.height());
        }
        self.publish();
        done
    }

    /// Mines transactions in one block, in this order, and returns the result of each. The block
    /// is on disk when this returns, with one sync for all.
    pub(crate) fn mine(&mut self, sent: &[PendingTransaction]) -> Vec<Result<B256, ChainRefusal>> {
        self.recover();
        if let Err(broken) = self.chain() {
            return vec![Err(broken); sent.len()];
        }
        let time = self.time();
        self.broken = Some(io::ErrorKind::Interrupted);
        let allowed: Vec<Result<(), ChainRefusal>> =
            sent.iter().map(|one| self.chain.require_deployed(one.tx.to())).collect();
        let wanted = sent.iter().zip(&allowed).filter(|(_, allowed)| allowed.is_ok());
        let txs = wanted.map(|(one, _)| one.tx.clone()).collect();
        let mut mined = self.chain.mine_together(txs, time).into_iter();
        let nobody = || Err(ChainRefusal::Evm("a transaction was not answered".to_owned()));
        let mut told: Vec<Result<B256, ChainRefusal>> = allowed
            .into_iter()
            .map(|allowed| allowed.and_then(|()| mined.next().unwrap_or_else(nobody)))
            .collect();
        let mined = sent.iter().zip(&told).filter(|(_, told)| told.is_ok());
        let mut raws: Vec<Bytes> = mined.map(|(one, _)| one.raw.clone()).collect();
        let act = match raws.len() {
            0 | 1 => raws.pop().map(|raw| ChainOperation::Transaction { raw, time }),
            _ => Some(ChainOperation::Transactions { raws, time }),
        };
        match act.map_or(Ok(()), |act| self.store(act)) {
            Ok(()) => self.publish(),
            Err(broken) => told.iter_mut().filter(|told| told.is_ok()).for_each(|told| {
                *told = Err(broken.clone());
            }),
        }
        told
    }

    /// Writes an operation and waits until it is on disk.
    fn store(&mut self, act: ChainOperation) -> Result<(), ChainRefusal> {
        self.faults.reach(FaultPoint::ChainActDone);
        if let Some(journal) = &mut self.journal {
            let stored = journal.append(&JournalEntry { act, head: self.chain.head() });
            if let Err(error) = stored {
                self.broken = Some(error.kind());
                return Err(ChainRefusal::Broken(error.kind()));
            }
        }
        self.faults.reach(FaultPoint::ChainActStored);
        Ok(())
    }
}

/// Performs all operations of a log.
fn replay(folder: &Path, birth: GenesisRecord) -> Result<(Chain, Journal), DevnetError> {
    let ours = birth;
    let (mut journal, birth) = Journal::open(folder, ours)?;
    if birth.chain_id != ours.chain_id {
        return Err(journal.damaged("there is a chain with another id"));
    }
    if birth.token.is_some() && birth.token != ours.token {
        return Err(journal.damaged("another version of the program began it, with another token"));
    }
    let elsewhere = match birth.token {
        Some(_) => "there is an act that does not lead to the block it names",
        None => {
            "an act leads elsewhere: an older version of the program, with another token, may have begun it"
        }
    };
    let mut chain = Chain::new(birth.chain_id, birth.time)?;
    while let Some(JournalEntry { act, head }) = journal.next_record()? {
        if chain.perform(&act).is_err() || chain.head() != head {
            return Err(journal.damaged(elsewhere));
        }
    }
    journal.cut_torn_line()?;
    Ok((chain, journal))
}

/// Returns the clock's time in whole seconds since the Unix epoch, or 0 before it.
fn seconds(clock: &dyn Clock) -> u64 {
    u64::try_from(clock.now().as_millis().div_euclid(1000)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use automaton_core::faults::NoFaults;
    use automaton_core::time::Timestamp;
    use automaton_testkit::clock::FakeClock;

    fn open(folder: &Path) -> Node {
        let clock = Arc::new(FakeClock::at(Timestamp::from_millis(9_000_000)));
        Node::open(5, Some(folder), clock, Arc::new(NoFaults)).unwrap()
    }

    #[test]
    fn what_cannot_be_stored_is_neither_answered_nor_shown() {
        let folder = tempfile::tempdir().unwrap();
        let mut node = open(folder.path());
        assert_eq!(node.act(ChainOperation::Mine { time: 9_001 }), Ok(OperationOutcome::Empty));
        node.journal = node.journal.take().map(Journal::without_room);
        let full = ChainRefusal::Broken(io::ErrorKind::StorageFull);
        for _ in 0..2 {
            assert_eq!(node.act(ChainOperation::Mine { time: 9_002 }), Err(full.clone()));
            assert_eq!(node.chain().err(), Some(full.clone()));
        }
        // There is room again, and the refused operation has not happened.
        let birth = GenesisRecord::new(5, 0).unwrap();
        node.journal = Some(replay(folder.path(), birth).unwrap().1);
        assert_eq!(node.act(ChainOperation::Mine { time: 9_003 }), Ok(OperationOutcome::Empty));
        assert_eq!(node.chain().unwrap().height(), 2);
        drop(node);
        assert_eq!(open(folder.path()).chain().unwrap().height(), 2);
    }
}
