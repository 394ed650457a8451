//! Pure: the chain: its blocks, the newest state, and the operations that change them.
//!
//! The same operations on the same genesis give the same chain, block for block. So an operation
//! states its time. Nothing here may read a clock, and no code outside may commit to the state.

mod block;
mod ether;
mod evm;
mod genesis;
mod overlay;
mod pending;
mod refusal;
mod simulate;
mod token;

use std::collections::HashMap;

use alloy_consensus::transaction::Recovered;
use alloy_consensus::{Signed, Transaction, TxEip1559, TxEnvelope};
use alloy_eips::BlockId;
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U256};
use alloy_rpc_types_eth::state::StateOverride;
use alloy_rpc_types_eth::{BlockOverrides, Filter, FilterBlockOption, Log, TransactionRequest};
use automaton_core::wire::x402::ChainId;
use revm::database::CacheDB;
use revm::state::AccountInfo;
use revm::{DatabaseCommit, DatabaseRef};
use serde::{Deserialize, Serialize};

pub(crate) use block::Block;
pub(crate) use evm::{BASE_FEE, BLOCK_GAS};
pub(crate) use pending::PendingTransaction;
pub use refusal::ChainRefusal;
pub(crate) use token::{token_digest, usdc_of};

use block::BlockTransaction;
use evm::{BlockEnvironment, Evm, EvmState, TriedState};
use pending::recover_transaction;
use token::{ETHER, FAUCET};

/// The largest number of logs in one answer.
const LOGS_MAX: usize = 10_000;

/// The largest number of snapshots at a time.
const SNAPSHOTS_MAX: usize = 64;

/// The most that the chain's time may be ahead of the clock: 100 years in seconds.
const AHEAD_MAX: u64 = 100 * 365 * 86_400;

/// An operation that changes the chain. Times are in seconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChainOperation {
    /// A signed transaction is mined.
    Transaction {
        /// Its bytes by EIP-2718.
        raw: Bytes,
        /// The block's time.
        time: u64,
    },
    /// Signed transactions are mined in one block, in this order.
    Transactions {
        /// The bytes of each by EIP-2718.
        raws: Vec<Bytes>,
        /// The block's time.
        time: u64,
    },
    /// The faucet funds an account.
    Fund {
        /// The recipient.
        to: Address,
        /// The base units of the token.
        usdc: u64,
        /// The wei.
        wei: U256,
        /// The block's time.
        time: u64,
    },
    /// An empty block is mined.
    Mine {
        /// The block's time.
        time: u64,
    },
    /// The chain's time jumps ahead, once.
    Advance {
        /// The jump in seconds.
        seconds: u64,
    },
    /// The state is saved, and can be restored once.
    Snapshot,
    /// Everything after a snapshot is reverted, including later snapshots.
    Revert {
        /// The snapshot's number.
        id: u64,
    },
}

/// The result of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperationOutcome {
    /// This transaction was mined. Its receipt tells whether it succeeded.
    Mined(B256),
    /// An empty block was mined.
    Empty,
    /// The chain's time is this many seconds ahead of the clock.
    Ahead(u64),
    /// A snapshot has this id.
    Kept(u64),
    /// The chain was restored.
    Reverted,
}

/// Changes under which a call is tried.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    /// Changes of accounts.
    pub(crate) state: StateOverride,
    /// Changes of the block.
    pub(crate) block: BlockOverrides,
}

/// A saved state of the chain.
#[derive(Debug)]
struct Snapshot {
    id: u64,
    state: EvmState,
    /// The number of blocks at that time.
    blocks: usize,
    ahead: u64,
}

/// The chain.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    id: u64,
    state: EvmState,
    /// The blocks. The first is the genesis block.
    blocks: Vec<Block>,
    by_hash: HashMap<B256, usize>,
    /// The height of each transaction's block, and its index there.
    by_tx: HashMap<B256, (usize, usize)>,
    ahead: u64,
    snapshots: Vec<Snapshot>,
    /// The id of the last snapshot. Ids are never reused.
    last_snapshot: u64,
}

impl Chain {
    /// Creates a chain with the faucet, the token and block 0.
    ///
    /// # Errors
    /// Fails if the embedded token cannot be deployed.
    pub(crate) fn new(id: u64, time: u64) -> Result<Self, ChainRefusal> {
        let mut chain = Self { id, ..Self::default() };
        let wei = U256::from(token::FAUCET_WEI);
        let faucet = AccountInfo { balance: wei, ..AccountInfo::default() };
        chain.state.insert_account_info(FAUCET, faucet);
        for (address, contract) in genesis::contracts()? {
            chain.state.insert_account_info(address, contract);
        }
        let setting = BlockEnvironment::new(id, 0, time, B256::ZERO);
        let code = token::creation_code()?;
        let tx = chain.faucet_transaction(TxKind::Create, U256::ZERO, code);
        let deployed = Evm { state: &chain.state, setting }.transact(&tx)?;
        let none = || ChainRefusal::Evm("the token is not at its address".to_owned());
        let made = deployed.result.created_address().ok_or_else(none)?;
        chain.state.commit(deployed.state);
        chain.move_token(made).ok_or_else(none)?;
        chain.append(Block::seal(&setting, B256::ZERO, Vec::new()));
        Ok(chain)
    }

    /// Moves the token from where it was deployed to its required address. It has no storage yet.
    fn move_token(&mut self, made: Address) -> Option<()> {
        if made == self.usdc() {
            return Some(());
        }
        let token = self.state.cache.accounts.remove(&made)?.info;
        self.state.insert_account_info(self.usdc(), token);
        Some(())
    }

    /// Returns the address of the token.
    pub(crate) const fn usdc(&self) -> Address {
        usdc_of(ChainId(self.id))
    }

    /// Returns the chain's id.
    pub(crate) const fn id(&self) -> u64 {
        self.id
    }

    /// Returns the number of the last block.
    pub(crate) fn height(&self) -> u64 {
        self.blocks.last().map_or(0, |block| block.header.number)
    }

    /// Returns the hash of the last block.
    pub(crate) fn head(&self) -> B256 {
        self.blocks.last().map_or(B256::ZERO, |block| block.header.hash)
    }

    /// Returns the time of a block that is mined at this time of the clock. It is as far ahead as
    /// requested, and never before its parent. Blocks of the same second have the same time: with
    /// a second each, many blocks would move the chain's time away from the clock, and signatures
    /// that are valid for the next minutes would expire.
    pub(crate) fn time_at(&self, clock: u64) -> u64 {
        clock.saturating_add(self.ahead).max(self.head_time())
    }

    /// Returns the time of the last block.
    fn head_time(&self) -> u64 {
        self.blocks.last().map_or(0, |head| head.header.timestamp)
    }

    /// Performs an operation. After a refusal the chain is unchanged.
    ///
    /// # Errors
    /// Returns the refusal.
    pub(crate) fn perform(
        &mut self,
        act: &ChainOperation,
    ) -> Result<OperationOutcome, ChainRefusal> {
        match act {
            ChainOperation::Transaction { raw, time } => {
                self.mine(recover_transaction(raw)?, *time).map(OperationOutcome::Mined)
            }
            ChainOperation::Transactions { raws, time } => {
                let txs = raws
                    .iter()
                    .map(|raw| recover_transaction(raw))
                    .collect::<Result<Vec<_>, _>>()?;
                let mined =
                    self.mine_together(txs, *time).into_iter().collect::<Result<Vec<_>, _>>()?;
                Ok(mined
                    .last()
                    .map_or(OperationOutcome::Empty, |hash| OperationOutcome::Mined(*hash)))
            }
            ChainOperation::Fund { to, usdc, wei, time } => {
                self.fund(*to, *usdc, *wei, *time).map(OperationOutcome::Mined)
            }
            ChainOperation::Mine { time } => {
                let setting = self.next_setting(*time);
                self.append(Block::seal(&setting, self.head(), Vec::new()));
                Ok(OperationOutcome::Empty)
            }
            ChainOperation::Advance { seconds } => {
                let ahead = self.ahead.checked_add(*seconds).filter(|ahead| *ahead <= AHEAD_MAX);
                let too_far = ChainRefusal::TooMany("seconds ahead of the clock", AHEAD_MAX);
                self.ahead = ahead.ok_or(too_far)?;
                Ok(OperationOutcome::Ahead(self.ahead))
            }
            ChainOperation::Snapshot => self.save_snapshot().map(OperationOutcome::Kept),
            ChainOperation::Revert { id } => self.revert(*id).map(|()| OperationOutcome::Reverted),
        }
    }

    fn save_snapshot(&mut self) -> Result<u64, ChainRefusal> {
        if self.snapshots.len() >= SNAPSHOTS_MAX {
            return Err(ChainRefusal::TooMany("snapshots", SNAPSHOTS_MAX as u64));
        }
        self.last_snapshot += 1;
        let id = self.last_snapshot;
        let blocks = self.blocks.len();
        let ahead = self.ahead;
        self.snapshots.push(Snapshot { id, state: self.state.clone(), blocks, ahead });
        Ok(id)
    }

    fn revert(&mut self, id: u64) -> Result<(), ChainRefusal> {
        let at = self.snapshots.iter().position(|it| it.id == id);
        let at = at.ok_or(ChainRefusal::NoSnapshot(id))?;
        if let Some(Snapshot { state, blocks, ahead, .. }) = self.snapshots.drain(at..).next() {
            (self.state, self.ahead) = (state, ahead);
            self.blocks.truncate(blocks);
            self.by_hash.retain(|_, height| *height < blocks);
            self.by_tx.retain(|_, (height, _)| *height < blocks);
        }
        Ok(())
    }

    fn next_setting(&self, time: u64) -> BlockEnvironment {
        BlockEnvironment::new(self.id, self.height().saturating_add(1), time, self.head())
    }

    fn mine(&mut self, tx: Recovered<TxEnvelope>, time: u64) -> Result<B256, ChainRefusal> {
        let nobody = ChainRefusal::Evm("a transaction was not answered".to_owned());
        self.mine_together(vec![tx], time).pop().unwrap_or(Err(nobody))
    }

    /// Mines transactions in one block, in this order, and returns the result of each. Refused
    /// transactions are not in the block. If all are refused, there is no block.
    pub(crate) fn mine_together(
        &mut self,
        txs: Vec<Recovered<TxEnvelope>>,
        time: u64,
    ) -> Vec<Result<B256, ChainRefusal>> {
        let setting = self.next_setting(time);
        let mut mined = Vec::new();
        let mut gas = 0_u64;
        let mut told = Vec::new();
        for tx in txs {
            let fits =
                tx.gas_limit() > BLOCK_GAS || gas.saturating_add(tx.gas_limit()) <= BLOCK_GAS;
            let done = if fits {
                Evm { state: &self.state, setting }.transact(&tx)
            } else {
                Err(ChainRefusal::Full)
            };
            told.push(done.map(|done| {
                let hash = *tx.tx_hash();
                self.state.commit(done.state);
                let one = BlockTransaction::new(tx, done.result, gas);
                gas = one.cumulative_gas();
                mined.push(one);
                hash
            }));
        }
        if !mined.is_empty() {
            self.append(Block::seal(&setting, self.head(), mined));
        }
        told
    }

    fn append(&mut self, block: Block) {
        let height = self.blocks.len();
        self.by_hash.insert(block.header.hash, height);
        self.by_tx.extend(block.tx_hashes().zip((0..).map(|at| (height, at))));
        // The opcode BLOCKHASH reads this.
        let number = U256::from(block.header.number);
        self.state.cache.block_hashes.insert(number, block.header.hash);
        self.blocks.push(block);
    }

    /// Makes at most two transactions: the wei, then the token. The faucet keeps enough for gas,
    /// so that the second succeeds if the first does.
    fn fund(&mut self, to: Address, usdc: u64, wei: U256, time: u64) -> Result<B256, ChainRefusal> {
        let left = self.account(FAUCET).balance.checked_sub(wei);
        if left.is_none_or(|left| left < U256::from(ETHER)) {
            return Err(ChainRefusal::FaucetEmpty);
        }
        let mut given = None;
        if !wei.is_zero() && !to.is_zero() {
            let tx = self.faucet_transaction(TxKind::Call(to), wei, Bytes::new());
            given = Some(self.mine(tx, time)?);
        }
        if usdc > 0 && !to.is_zero() {
            let tx = self.faucet_transaction(
                TxKind::Call(self.usdc()),
                U256::ZERO,
                token::mint_input(to, usdc),
            );
            given = Some(self.mine(tx, time)?);
        }
        given.ok_or(ChainRefusal::NothingToFund(to))
    }

    /// Gives an account token and wei without a block, for a baseline.
    pub(crate) fn endow(&mut self, to: Address, usdc: u64) -> Result<(), ChainRefusal> {
        let wei = U256::from(token::FAUCET_WEI);
        self.state.insert_account_info(to, AccountInfo { balance: wei, ..AccountInfo::default() });
        self.call_token(FAUCET, token::mint_input(to, usdc))
    }

    /// Calls the token and commits the state, without signature and block.
    pub(crate) fn call_token(&mut self, from: Address, input: Bytes) -> Result<(), ChainRefusal> {
        self.run(&self.unsigned_transaction(from, TxKind::Call(self.usdc()), U256::ZERO, input), 1)
    }

    /// Runs a signed transaction and commits the state, without a block.
    pub(crate) fn run_signed(&mut self, raw: &[u8], time: u64) -> Result<(), ChainRefusal> {
        self.run(&recover_transaction(raw)?, time)
    }

    fn run(&mut self, tx: &Recovered<TxEnvelope>, time: u64) -> Result<(), ChainRefusal> {
        let done = Evm { state: &self.state, setting: self.next_setting(time) }.transact(tx)?;
        if !done.result.is_success() {
            return Err(ChainRefusal::Evm("the token refused".to_owned()));
        }
        self.state.commit(done.state);
        Ok(())
    }

    fn faucet_transaction(&self, to: TxKind, value: U256, input: Bytes) -> Recovered<TxEnvelope> {
        self.unsigned_transaction(FAUCET, to, value, input)
    }

    /// Builds a transaction of the faucet or of a baseline, with a placeholder signature. Only
    /// here is a sender not verified.
    fn unsigned_transaction(
        &self,
        from: Address,
        to: TxKind,
        value: U256,
        input: Bytes,
    ) -> Recovered<TxEnvelope> {
        let tx = TxEip1559 {
            chain_id: self.id,
            nonce: self.account(from).nonce,
            gas_limit: BLOCK_GAS,
            max_fee_per_gas: BASE_FEE.into(),
            to,
            value,
            input,
            ..TxEip1559::default()
        };
        let signature = Signature::new(U256::ONE, U256::ONE, false);
        Recovered::new_unchecked(Signed::new_unhashed(tx, signature).into(), from)
    }

    /// Returns the block that a client names. Nothing waits here, so the pending block is the
    /// last one.
    ///
    /// # Errors
    /// Fails if there is no such block.
    pub(crate) fn block(&self, at: BlockId) -> Result<&Block, ChainRefusal> {
        let height = self.height();
        let asked = match at {
            BlockId::Hash(hash) => {
                let hash = hash.block_hash;
                let found = self.by_hash.get(&hash).and_then(|height| self.blocks.get(*height));
                return found.ok_or(ChainRefusal::UnknownBlock(hash));
            }
            BlockId::Number(tag) if tag.is_earliest() => 0,
            BlockId::Number(tag) => tag.as_number().unwrap_or(height),
        };
        let found = usize::try_from(asked).ok().and_then(|asked| self.blocks.get(asked));
        found.ok_or(ChainRefusal::BeyondHead(asked, height))
    }

    /// Returns the block with a transaction, and its index there.
    pub(crate) fn block_of(&self, tx: B256) -> Option<(&Block, usize)> {
        let (height, at) = self.by_tx.get(&tx)?;
        Some((self.blocks.get(*height)?, *at))
    }

    /// Refuses every block except the last: only its state is kept.
    ///
    /// # Errors
    /// Fails if it is not the last one.
    pub(crate) fn require_newest(&self, at: BlockId) -> Result<(), ChainRefusal> {
        let asked = self.block(at)?.header.number;
        let height = self.height();
        if asked == height { Ok(()) } else { Err(ChainRefusal::StateGone(asked, height)) }
    }

    /// Returns an account in the newest state.
    pub(crate) fn account(&self, address: Address) -> AccountInfo {
        let Ok(account) = self.state.basic_ref(address);
        account.unwrap_or_default()
    }

    /// Returns a contract's code in the newest state. Empty for an account without code.
    pub(crate) fn code(&self, address: Address) -> Bytes {
        let Ok(code) = self.state.code_by_hash_ref(self.account(address).code_hash);
        code.original_bytes()
    }

    /// Returns a storage slot in the newest state.
    pub(crate) fn storage(&self, address: Address, slot: U256) -> B256 {
        let Ok(value) = self.state.storage_ref(address, slot);
        value.into()
    }

    /// Returns the result of a call in the newest state with changes, at the time of a
    /// transaction that is sent now.
    ///
    /// # Errors
    /// Fails if the call reverts, halts or may not be made.
    pub(crate) fn call(
        &self,
        request: &TransactionRequest,
        overlay: &Overlay,
        time: u64,
    ) -> Result<Bytes, ChainRefusal> {
        let setting = BlockEnvironment { number: self.height(), ..self.next_setting(time) };
        let (state, setting) = self.with_overlay(overlay, setting)?;
        Evm { state: &state, setting }.call(request)
    }

    /// Returns the gas that a transaction sent now would need.
    ///
    /// # Errors
    /// Fails if it would not succeed.
    pub(crate) fn estimate(
        &self,
        request: &TransactionRequest,
        overlay: &Overlay,
        time: u64,
    ) -> Result<u64, ChainRefusal> {
        let (state, setting) = self.with_overlay(overlay, self.next_setting(time))?;
        Evm { state: &state, setting }.estimate(request)
    }

    /// Returns the newest state and a block environment with changes. The chain itself is
    /// unchanged.
    fn with_overlay(
        &self,
        overlay: &Overlay,
        setting: BlockEnvironment,
    ) -> Result<(TriedState<'_>, BlockEnvironment), ChainRefusal> {
        let mut state = CacheDB::new(&self.state);
        overlay::apply_state(&mut state, &overlay.state)?;
        Ok((state, overlay::apply_block(setting, &overlay.block)?))
    }

    /// Refuses a destination at which programs expect a contract of the real chain that has no
    /// code here.
    ///
    /// # Errors
    /// Returns [`ChainRefusal::NotDeployed`].
    pub(crate) fn require_deployed(&self, to: Option<Address>) -> Result<(), ChainRefusal> {
        let Some(to) = to else { return Ok(()) };
        match genesis::name_of_missing(ChainId(self.id), to) {
            Some(name) if self.code(to).is_empty() => Err(ChainRefusal::NotDeployed(to, name)),
            _ => Ok(()),
        }
    }

    /// Returns the logs that match a filter.
    ///
    /// # Errors
    /// Fails if the filter names missing blocks, or matches too many.
    pub(crate) fn logs(&self, filter: &Filter) -> Result<Vec<Log>, ChainRefusal> {
        let (from, to): (BlockId, BlockId) = match filter.block_option {
            FilterBlockOption::AtBlockHash(hash) => (hash.into(), hash.into()),
            FilterBlockOption::Range { from_block: from, to_block: to } => {
                (from.unwrap_or_default().into(), to.unwrap_or_default().into())
            }
        };
        let from = self.block(from)?.header.number;
        let to = self.block(to)?.header.number;
        // The range is resolved here, since the filter does not know `latest`.
        let anywhere = Filter { block_option: (from..=to).into(), ..filter.clone() };
        let mut found = Vec::new();
        for number in from..=to {
            self.block(number.into())?.collect_logs(&anywhere, &mut found);
            if found.len() > LOGS_MAX {
                return Err(ChainRefusal::TooMany("logs", LOGS_MAX as u64));
            }
        }
        Ok(found)
    }
}
