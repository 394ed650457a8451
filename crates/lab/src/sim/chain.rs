//! A model of a chain with one token: EIP-3009 with real signatures, blocks,
//! transactions that wait, get lost or overtake each other, and forks.
//!
//! The state is what the blocks say, added up anew for each question, so that a
//! fork is nothing but other blocks. Source of the token's rules:
//! <https://eips.ethereum.org/EIPS/eip-3009>. It must never accept what a real
//! token refuses: the checker takes its transfers for the truth.

use std::sync::{Mutex, MutexGuard, PoisonError};

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use automaton_cloud::billing::facilitator::signer;
use automaton_cloud::billing::settlement::{
    SettlementError, SettlementTransaction, TransactionInclusion, TransferEvent, TxOutcome,
};
use automaton_cloud::db::{Fees, Submission};
use automaton_core::id::TransactionId;
use automaton_core::time::Timestamp;
use automaton_core::wire::x402::{Authorization, ExactPayload, TokenDomain};
use serde::{Deserialize, Serialize};

use super::rng::SimRng;
use super::time::TrueTime;

/// Seconds between two blocks, as on Base.
const BLOCK_S: u64 = 2;
/// Blocks that are made at the beginning and at the end of a long silence; those
/// between are only counted.
const EMPTY_MAX: u64 = 8;
/// Blocks of which the time is known, at most.
const HEADS_MAX: usize = 32;
/// Blocks that must follow a block before no fork can undo it.
pub(super) const FIRM_AFTER: u64 = 2;
/// Gas of a transfer, and fees of a transaction.
const GAS: u64 = 100_000;
const FEES: Fees = Fees { max: 1_000, priority: 10 };
/// A nonce was used before, in the words of the token.
const USED: &str = "FiatTokenV2: authorization is used or canceled";

/// A transaction of the account that pays the gas.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SimTx {
    gas_nonce: u64,
    /// Fee of a unit of gas: the only difference between two attempts.
    fee: u64,
    payload: ExactPayload,
}

impl SimTx {
    fn raw(&self) -> Bytes {
        // silent-ok: a transfer is always JSON; nothing is no transaction of anybody.
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    fn hash(&self) -> B256 {
        keccak256(self.raw())
    }
}

/// A transaction in a block.
#[derive(Debug, Clone)]
struct SimInclusion {
    block: u64,
    hash: B256,
    outcome: TxOutcome,
    tx: SimTx,
}

/// Properties of a block besides its transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SimBlockHead {
    pub(super) number: u64,
    /// Seconds since the epoch.
    pub(super) at_s: u64,
    /// Which of the forks it is of, from 0.
    fork: u64,
}

impl SimBlockHead {
    /// Its time.
    pub(super) fn at(self) -> Timestamp {
        let seconds = i64::try_from(self.at_s).unwrap_or(i64::MAX);
        Timestamp::from_millis(seconds.saturating_mul(1000))
    }

    /// Its hash, which no other block has.
    pub(super) fn hash(self) -> B256 {
        keccak256([self.number.to_be_bytes(), self.fork.to_be_bytes()].concat())
    }
}

/// One transfer that a block carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SimTransfer {
    pub(super) nonce: B256,
    pub(super) value: U256,
}

/// The chain.
pub(super) struct SimChain {
    time: TrueTime,
    token: TokenDomain,
    state: Mutex<SimChainState>,
}

struct SimChainState {
    opening: (Address, U256),
    /// The newest blocks, at most [`HEADS_MAX`].
    heads: Vec<SimBlockHead>,
    mined: Vec<SimInclusion>,
    pool: Vec<SimTx>,
    /// No blocks are made.
    still: bool,
    /// Number of forks.
    forks: u64,
    /// Which number each intent has; whoever signs for the gas never forgets it.
    nonces: Vec<(TransactionId, u64)>,
}

impl SimChainState {
    /// The transfers up to and with a block.
    fn transfers(&self, number: u64) -> impl Iterator<Item = &SimInclusion> {
        let done =
            move |it: &&SimInclusion| it.block <= number && it.outcome == TxOutcome::Succeeded;
        self.mined.iter().filter(done)
    }

    fn is_used(&self, payer: Address, nonce: B256, number: u64) -> bool {
        self.transfers(number).any(|mined| {
            let of = &mined.tx.payload.authorization;
            (of.from, of.nonce) == (payer, nonce)
        })
    }

    fn balance(&self, holder: Address, number: u64) -> U256 {
        let (rich, opening) = self.opening;
        let mut balance = if holder == rich { opening } else { U256::ZERO };
        for mined in self.transfers(number) {
            let Authorization { from, to, value, .. } = mined.tx.payload.authorization;
            if to == holder {
                balance = balance.saturating_add(value);
            }
            if from == holder {
                balance = balance.saturating_sub(value);
            }
        }
        balance
    }

    fn gas_nonce(&self) -> u64 {
        u64::try_from(self.mined.len()).unwrap_or(u64::MAX)
    }

    /// Returns true if no fork can undo this block.
    fn stays(&self, block: u64) -> bool {
        self.last().number >= block + FIRM_AFTER
    }

    fn last(&self) -> SimBlockHead {
        self.heads.last().copied().unwrap_or(SimBlockHead { number: 0, at_s: 0, fork: 0 })
    }

    /// Executes a transfer in a block of this time, after the last.
    fn execute(
        &self,
        token: &TokenDomain,
        payload: &ExactPayload,
        at_s: u64,
    ) -> Result<(), String> {
        let of = &payload.authorization;
        let at = U256::from(at_s);
        let refuse = |why: &str| Err(why.to_owned());
        if at <= of.valid_after || at >= of.valid_before {
            return refuse("FiatTokenV2: authorization is not valid now");
        }
        if self.is_used(of.from, of.nonce, u64::MAX) {
            return refuse(USED);
        }
        if signer(&payload.signature, token.transfer_digest(of)) != Some(of.from) {
            return refuse("FiatTokenV2: invalid signature");
        }
        if self.balance(of.from, u64::MAX) < of.value {
            return refuse("ERC20: transfer amount exceeds balance");
        }
        Ok(())
    }

    /// One block with those of the pool whose turn it is.
    fn mine(&mut self, token: &TokenDomain, head: SimBlockHead) {
        if self.heads.len() == HEADS_MAX {
            self.heads.remove(0);
        }
        self.heads.push(head);
        loop {
            let turn = self.gas_nonce();
            let mut next =
                self.pool.iter().filter(|tx| tx.gas_nonce == turn).cloned().collect::<Vec<_>>();
            next.sort_by_key(|tx| tx.fee);
            // Of two with one number, the one that pays more.
            let Some(tx) = next.pop() else { break };
            let outcome = match self.execute(token, &tx.payload, head.at_s) {
                Ok(()) => TxOutcome::Succeeded,
                Err(_) => TxOutcome::Reverted,
            };
            self.pool.retain(|other| other.gas_nonce != turn);
            self.mined.push(SimInclusion { block: head.number, hash: tx.hash(), outcome, tx });
        }
    }
}

impl SimChain {
    pub(super) fn new(time: &TrueTime, token: TokenDomain, opening: (Address, U256)) -> Self {
        let now = seconds(time);
        let head =
            |ago| SimBlockHead { number: EMPTY_MAX - ago, at_s: now - ago * BLOCK_S, fork: 0 };
        let heads = (0..EMPTY_MAX).rev().map(head).collect();
        let mined = Vec::new();
        let pool = Vec::new();
        let state = SimChainState {
            opening,
            heads,
            mined,
            pool,
            still: false,
            forks: 0,
            nonces: Vec::new(),
        };
        Self { time: time.clone(), token, state: Mutex::new(state) }
    }

    /// The chain as it is now: blocks are made when somebody looks.
    fn now(&self) -> MutexGuard<'_, SimChainState> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.still {
            let last = state.last();
            let due = seconds(&self.time).saturating_sub(last.at_s) / BLOCK_S;
            let mut step = 0;
            while step < due {
                let skips = step == EMPTY_MAX && due > 2 * EMPTY_MAX;
                step = if skips { due - EMPTY_MAX } else { step + 1 };
                let number = last.number + step;
                let at_s = last.at_s + step * BLOCK_S;
                let fork = state.forks;
                state.mine(&self.token, SimBlockHead { number, at_s, fork });
            }
        }
        state
    }

    /// Stops or resumes the making of blocks. After a standstill the next one has the current
    /// time.
    pub(super) fn hold_still(&self, still: bool) {
        let mut state = self.now();
        if std::mem::replace(&mut state.still, still) && !still {
            let number = state.last().number + 1;
            let fork = state.forks;
            let head = SimBlockHead { number, at_s: seconds(&self.time), fork };
            state.mine(&self.token, head);
        }
    }

    /// Forgets a part of what waits for a block.
    pub(super) fn forget(&self, dice: &SimRng) {
        self.now().pool.retain(|_| dice.chance(50));
    }

    /// The newest blocks are replaced by others, in which a transaction of theirs
    /// comes earlier or later, or not at all and waits again.
    pub(super) fn fork(&self, depth: u64, dice: &SimRng) {
        let mut state = self.now();
        let last = state.last().number;
        let kept = state.heads.iter().filter(|head| head.number + depth <= last).count();
        let heads = state.heads.split_off(kept);
        let since = heads.first().map_or(u64::MAX, |head| head.number);
        let (kept, gone) =
            state.mined.drain(..).partition::<Vec<_>, _>(|mined| mined.block < since);
        state.mined = kept;
        state.forks += 1;
        let fork = state.forks;
        let mut late: Vec<SimTx> = gone.into_iter().map(|mined| mined.tx).collect();
        for head in heads {
            if dice.chance(40) {
                let again = std::mem::take(&mut late);
                state.pool.extend(again);
            }
            state.mine(&self.token, SimBlockHead { fork, ..head });
        }
        if dice.chance(70) {
            state.pool.extend(late);
        }
    }

    /// The time of the newest block that stays.
    pub(super) fn firm_time(&self) -> Timestamp {
        let state = self.now();
        let mut firm = state.heads.iter().rev().filter(|head| state.stays(head.number));
        firm.next().map_or(Timestamp::EPOCH, |head| head.at())
    }

    /// The block that is `behind` the newest one.
    pub(super) fn head(&self, behind: usize) -> Option<SimBlockHead> {
        let state = self.now();
        let place = state.heads.len().checked_sub(behind + 1)?;
        state.heads.get(place).copied()
    }

    /// The block with this property, where it is one of the newest.
    pub(super) fn find(&self, is: impl Fn(&SimBlockHead) -> bool) -> Option<SimBlockHead> {
        self.now().heads.iter().rev().copied().find(is)
    }

    pub(super) fn balance(&self, holder: Address, number: u64) -> U256 {
        self.now().balance(holder, number)
    }

    pub(super) fn is_used(&self, payer: Address, nonce: B256, number: u64) -> bool {
        self.now().is_used(payer, nonce, number)
    }

    /// Every transfer of the chain as it is now.
    pub(super) fn transfers(&self) -> Vec<SimTransfer> {
        let transfer = |mined: &SimInclusion| {
            let Authorization { nonce, value, .. } = mined.tx.payload.authorization;
            SimTransfer { nonce, value }
        };
        self.now().transfers(u64::MAX).map(transfer).collect()
    }

    /// Returns true if nothing waits for a block.
    pub(super) fn is_quiet(&self) -> bool {
        self.now().pool.is_empty()
    }

    pub(super) fn simulate(&self, payload: &ExactPayload) -> Result<u64, SettlementError> {
        let state = self.now();
        let refused = |reason| SettlementError::Rejected { method: "eth_estimateGas", reason };
        state.execute(&self.token, payload, state.last().at_s + BLOCK_S).map_err(refused)?;
        Ok(GAS)
    }

    /// Returns the fees of a transaction.
    pub(super) const fn fees() -> Fees {
        FEES
    }

    /// Signs for the account that pays the gas: an intent has one number for ever.
    pub(super) fn sign(&self, order: &SettlementTransaction<'_>) -> Submission {
        let mut state = self.now();
        let known = state.nonces.iter().find(|(intent, _)| *intent == order.intent);
        let gas_nonce = known.map_or_else(
            || state.nonces.iter().map(|(_, number)| number + 1).max().unwrap_or(0),
            |(_, number)| *number,
        );
        if known.is_none() {
            state.nonces.push((order.intent, gas_nonce));
        }
        let signature = order.signature.clone();
        let authorization = order.authorization.clone();
        let payload = ExactPayload { signature, authorization };
        let tx = SimTx { gas_nonce, fee: order.fees.max, payload };
        Submission { hash: tx.hash(), raw: tx.raw(), gas_nonce }
    }

    pub(super) fn broadcast(&self, raw: &Bytes) {
        let mut state = self.now();
        // silent-ok: a node says no to what is no transaction, and nobody listens.
        let Ok(tx) = serde_json::from_slice::<SimTx>(raw) else { return };
        let known = state.pool.contains(&tx) || state.mined.iter().any(|mined| mined.tx == tx);
        if !known && tx.gas_nonce >= state.gas_nonce() {
            state.pool.push(tx);
        }
    }

    pub(super) fn outcome(&self, hash: B256) -> Option<TransactionInclusion> {
        let state = self.now();
        let mined = state.mined.iter().find(|mined| mined.hash == hash)?;
        Some(TransactionInclusion { outcome: mined.outcome, stays: state.stays(mined.block) })
    }

    /// Transactions of the account that pays the gas, in blocks that stay.
    pub(super) fn gas_nonce(&self) -> u64 {
        let state = self.now();
        let firm = state.mined.iter().filter(|mined| state.stays(mined.block)).count();
        u64::try_from(firm).unwrap_or(u64::MAX)
    }

    pub(super) fn transfer_of(&self, of: &Authorization) -> Option<TransferEvent> {
        let state = self.now();
        let mut done = state.transfers(u64::MAX);
        let mined = done.find(|mined| mined.tx.payload.authorization == *of)?;
        // Each transaction makes one transfer here.
        Some(TransferEvent { transaction: mined.hash, log: 0, stays: state.stays(mined.block) })
    }
}

fn seconds(time: &TrueTime) -> u64 {
    time.now().as_millis().max(0).unsigned_abs() / 1000
}
