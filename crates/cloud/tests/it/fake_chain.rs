//! A chain in memory that drops, delays, reorders and forgets, with the account
//! that pays gas: whatever a node may do short of lying about signatures.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard};

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use automaton_cloud::billing::settlement::{
    ChainFuture, Settlement, SettlementError, SettlementTransaction, TransactionInclusion,
    TransferEvent, TxOutcome,
};
use automaton_cloud::db::{Fees, Submission};
use automaton_core::id::TransactionId;
use automaton_core::time::Timestamp;
use automaton_core::wire::x402::Authorization;

/// The account that pays gas.
pub(crate) const PAYER: Address = Address::repeat_byte(0x6A);

/// The chain.
#[derive(Default)]
pub(crate) struct FakeChain(Mutex<Ledger>);

/// The state of the chain.
#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) balances: HashMap<Address, U256>,
    used: HashSet<(Address, B256)>,
    /// All transactions ever signed, by hash.
    signed: HashMap<B256, Signed>,
    /// The signer's journal: the nonce of each intent and the fees of its last attempt.
    intents: HashMap<TransactionId, (u64, Fees)>,
    pool: BTreeMap<u64, B256>,
    blocks: Vec<Vec<Done>>,
    /// The number of blocks that make a block final.
    pub(crate) confirmations: usize,
    /// No blocks are made.
    pub(crate) still: bool,
    /// Nobody can be asked.
    pub(crate) down: bool,
    /// Broadcast transactions get lost.
    pub(crate) deaf: bool,
    /// The account that pays gas has nothing.
    pub(crate) poor: bool,
    /// Questions about this payer are never answered.
    pub(crate) stuck: Option<Address>,
    /// Transactions that pay less for a unit of gas stay out of blocks.
    pub(crate) fee_floor: u64,
    /// The number of broadcasts.
    pub(crate) heard: u32,
    /// The nonces of what was.
    pub(crate) told: HashSet<B256>,
    /// The time of its last block, in seconds.
    pub(crate) time_s: u64,
}

#[derive(Clone)]
struct Signed {
    number: u64,
    fees: Fees,
    authorization: Authorization,
}

/// A transaction in a block.
struct Done {
    hash: B256,
    /// Nothing, when somebody else used the number for something else.
    authorization: Option<Authorization>,
    outcome: TxOutcome,
    /// The account that pays gas sent it.
    ours: bool,
}

impl FakeChain {
    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap()
    }

    fn up(&self) -> Result<MutexGuard<'_, Ledger>, SettlementError> {
        let ledger = self.ledger();
        if ledger.down {
            return Err(SettlementError::Unavailable("the chain is down".into()));
        }
        Ok(ledger)
    }

    /// Makes a block.
    pub(crate) fn mine(&self) {
        self.ledger().mine();
    }

    /// The payer takes an authorization back.
    pub(crate) fn cancel(&self, authorization: &Authorization) {
        self.ledger().used.insert((authorization.from, authorization.nonce));
    }

    /// Somebody else carries an authorization out.
    pub(crate) fn front_run(&self, authorization: &Authorization) {
        self.front_run_all(std::slice::from_ref(authorization));
    }

    /// Somebody else carries authorizations out, all of them in one transaction.
    pub(crate) fn front_run_all(&self, authorizations: &[Authorization]) {
        let mut ledger = self.ledger();
        let hash = keccak256([authorizations[0].nonce.as_slice(), b"another"].concat());
        let done = |paid: &Authorization| ledger.carry_out(hash, paid.clone(), false);
        let block = authorizations.iter().map(done).collect();
        ledger.blocks.push(block);
    }

    /// Another program uses the account's next number.
    pub(crate) fn take_number(&self) {
        let mut ledger = self.ledger();
        let (hash, outcome) = (keccak256([0xF1]), TxOutcome::Succeeded);
        ledger.blocks.push(vec![Done { hash, authorization: None, outcome, ours: true }]);
    }

    /// The last blocks go away, and what was in them is forgotten.
    pub(crate) fn reorg(&self, depth: usize) {
        let mut ledger = self.ledger();
        for _ in 0..depth {
            for done in ledger.blocks.pop().unwrap() {
                if let (TxOutcome::Succeeded, Some(undone)) = (done.outcome, done.authorization) {
                    *ledger.balances.entry(undone.from).or_default() += undone.value;
                    *ledger.balances.entry(undone.to).or_default() -= undone.value;
                    ledger.used.remove(&(undone.from, undone.nonce));
                }
            }
        }
    }

    /// A node forgets what waits.
    pub(crate) fn drop_pool(&self) {
        self.ledger().pool.clear();
    }
}

impl Ledger {
    /// Returns the transfers that happened.
    pub(crate) fn transfers(&self) -> Vec<Authorization> {
        let moved = |done: &Done| match done.outcome {
            TxOutcome::Succeeded => done.authorization.clone(),
            TxOutcome::Reverted => None,
        };
        self.blocks.iter().flatten().filter_map(moved).collect()
    }

    /// Returns the number of the account's transactions in all blocks but the last `deep`.
    pub(crate) fn numbers(&self, deep: usize) -> u64 {
        let blocks = self.blocks.iter().take(self.blocks.len().saturating_sub(deep));
        blocks.flatten().filter(|done| done.ours).count() as u64
    }

    /// Returns the number of signed transactions.
    pub(crate) fn signed(&self) -> usize {
        self.signed.len()
    }

    /// Returns the number of transactions that wait for a block.
    pub(crate) fn waiting(&self) -> usize {
        self.pool.len()
    }

    fn carry_out(&mut self, hash: B256, authorization: Authorization, ours: bool) -> Done {
        let balance = self.balances.entry(authorization.from).or_default();
        let fresh = !self.used.contains(&(authorization.from, authorization.nonce));
        let outcome = if fresh && *balance >= authorization.value {
            *balance -= authorization.value;
            *self.balances.entry(authorization.to).or_default() += authorization.value;
            self.used.insert((authorization.from, authorization.nonce));
            TxOutcome::Succeeded
        } else {
            TxOutcome::Reverted
        };
        Done { hash, authorization: Some(authorization), outcome, ours }
    }

    fn mine(&mut self) {
        let mut block = Vec::new();
        let mut number = self.numbers(0);
        while let Some(hash) = self.pool.get(&number).copied() {
            let signed = self.signed[&hash].clone();
            if signed.fees.max < self.fee_floor {
                break;
            }
            self.pool.remove(&number);
            block.push(self.carry_out(hash, signed.authorization, true));
            number += 1;
        }
        self.blocks.push(block);
        self.pool = self.pool.split_off(&number);
    }

    fn find(&self, wanted: impl Fn(&Done) -> bool) -> Option<(&Done, bool)> {
        let deep = |at: usize| self.blocks.len() - 1 - at >= self.confirmations;
        self.blocks.iter().enumerate().find_map(|(at, block)| {
            block.iter().find(|done| wanted(done)).map(|done| (done, deep(at)))
        })
    }
}

impl Settlement for FakeChain {
    fn payer(&self) -> Address {
        PAYER
    }

    fn time(&self) -> ChainFuture<'_, Timestamp> {
        Box::pin(async move {
            let seconds = i64::try_from(self.up()?.time_s).unwrap();
            Ok(Timestamp::from_millis(seconds * 1000))
        })
    }

    fn authorization_used<'a>(&'a self, authorization: &'a Authorization) -> ChainFuture<'a, bool> {
        let key = (authorization.from, authorization.nonce);
        Box::pin(async move { Ok(self.up()?.used.contains(&key)) })
    }

    fn balance(&self, holder: Address) -> ChainFuture<'_, U256> {
        Box::pin(async move { Ok(self.up()?.balances.get(&holder).copied().unwrap_or_default()) })
    }

    fn simulate<'a>(&'a self, paid: &'a Authorization, _: &'a Bytes) -> ChainFuture<'a, u64> {
        Box::pin(async move {
            if self.ledger().stuck == Some(paid.from) {
                std::future::pending::<()>().await;
            }
            let ledger = self.up()?;
            let has = ledger.balances.get(&paid.from).copied().unwrap_or_default();
            if ledger.used.contains(&(paid.from, paid.nonce)) || has < paid.value {
                let reason = "execution reverted".to_owned();
                return Err(SettlementError::Rejected { method: "eth_estimateGas", reason });
            }
            Ok(100_000)
        })
    }

    fn fees(&self) -> ChainFuture<'_, Fees> {
        Box::pin(async move { self.up().map(|_| Fees { max: 1000, priority: 100 }) })
    }

    fn sign<'a>(&'a self, order: &'a SettlementTransaction<'a>) -> ChainFuture<'a, Submission> {
        Box::pin(async move {
            let mut ledger = self.ledger();
            let next = ledger.intents.values().map(|(number, _)| number + 1).max().unwrap_or(0);
            let next = next.max(ledger.numbers(0));
            let (number, before) =
                *ledger.intents.entry(order.intent).or_insert((next, order.fees));
            assert!(order.nonce.is_none_or(|known| known == number), "one intent, one number");
            assert!(before == order.fees || before.max < order.fees.max, "fees only rise");
            ledger.intents.insert(order.intent, (number, order.fees));
            let authorization = order.authorization.clone();
            let numbers = [number, order.fees.max, order.fees.priority].map(u64::to_be_bytes);
            let raw = [authorization.nonce.as_slice(), &numbers.concat()].concat();
            let hash = keccak256(&raw);
            ledger.signed.insert(hash, Signed { number, fees: order.fees, authorization });
            Ok(Submission { hash, raw: raw.into(), gas_nonce: number })
        })
    }

    fn broadcast<'a>(&'a self, raw: &'a Bytes) -> ChainFuture<'a, ()> {
        Box::pin(async move {
            let mut ledger = self.up()?;
            let hash = keccak256(raw);
            ledger.heard += 1;
            let signed = ledger.signed[&hash].clone();
            ledger.told.insert(signed.authorization.nonce);
            let rejected = |reason: &str| {
                let reason = reason.to_owned();
                Err(SettlementError::Rejected { method: "eth_sendRawTransaction", reason })
            };
            if ledger.deaf {
                return Ok(());
            }
            if ledger.poor {
                return rejected("insufficient funds for gas * price + value");
            }
            if signed.number < ledger.numbers(0) {
                return rejected("nonce too low");
            }
            if let Some(other) = ledger.pool.get(&signed.number) {
                // As nodes have it: a tenth more at least.
                if signed.fees.max * 10 < ledger.signed[other].fees.max * 11 {
                    return rejected("replacement transaction underpriced");
                }
            }
            ledger.pool.insert(signed.number, hash);
            if !ledger.still {
                ledger.mine();
            }
            Ok(())
        })
    }

    fn outcome(&self, transaction: B256) -> ChainFuture<'_, Option<TransactionInclusion>> {
        Box::pin(async move {
            let ledger = self.up()?;
            let found = ledger.find(|done| done.hash == transaction);
            Ok(found.map(|(done, stays)| TransactionInclusion { outcome: done.outcome, stays }))
        })
    }

    fn gas_nonce(&self) -> ChainFuture<'_, u64> {
        Box::pin(async move {
            let ledger = self.up()?;
            Ok(ledger.numbers(ledger.confirmations))
        })
    }

    fn transfer_of<'a>(
        &'a self,
        wanted: &'a Authorization,
    ) -> ChainFuture<'a, Option<TransferEvent>> {
        Box::pin(async move {
            let ledger = self.up()?;
            let moved = |done: &Done| {
                done.outcome == TxOutcome::Succeeded && done.authorization.as_ref() == Some(wanted)
            };
            let Some((done, stays)) = ledger.find(moved) else { return Ok(None) };
            let block = ledger.blocks.iter().find(|block| block.iter().any(moved)).unwrap();
            // As on a chain each transfer has two logs, and the second says what moved.
            let log = 2 * block.iter().position(moved).unwrap() as u64 + 1;
            Ok(Some(TransferEvent { transaction: done.hash, log, stays }))
        })
    }
}
