//! Pure: blocks of calls that are tried on top of the chain, and lists of what a call touches.
//!
//! The blocks are `eth_simulateV1`'s. A block of them is sealed like any other, so that its
//! hashes and logs fit together. None of it stays.

use alloy_consensus::transaction::Recovered;
use alloy_consensus::{Signed, TxEip1559, TxEip7702, TxEnvelope};
use alloy_eips::eip2930::{AccessList, AccessListItem, AccessListResult};
use alloy_primitives::{B256, Signature, U256};
use alloy_rpc_types_eth::simulate::{
    MAX_SIMULATE_BLOCKS, SimBlock, SimCallResult, SimulateError, SimulatePayload, SimulatedBlock,
};
use alloy_rpc_types_eth::{Filter, TransactionRequest};
use revm::DatabaseCommit;
use revm::context::TxEnv;
use revm::context::result::{ExecutionResult, ResultAndState};
use revm::database::CacheDB;
use revm::primitives::TxKind;

use super::block::{Block, BlockTransaction};
use super::evm::{BlockEnvironment, Evm, ExecutionMode, TriedState};
use super::overlay::{apply_block, apply_state, nonce_of};
use super::refusal::ChainRefusal;
use super::{Chain, Overlay};

/// The most calls of one simulation.
const CALLS_MAX: usize = 1_000;
/// How often a list of what a call touches is tried, since a list changes what the call costs.
const LISTS_MAX: usize = 8;
/// The code of an error of a call that is not a revert.
const HALTED: i32 = SimulateError::VM_EXECUTION_ERROR_CODE;

/// A call of a simulation that was run.
struct TriedCall {
    tx: Recovered<TxEnvelope>,
    result: ExecutionResult,
}

impl Chain {
    /// Tries blocks of calls on top of the chain. `time` is that of the block that would be
    /// mined now.
    ///
    /// # Errors
    /// When a call may not be made, or the blocks contradict each other or the chain.
    pub(crate) fn simulate(
        &self,
        asked: &SimulatePayload,
        time: u64,
    ) -> Result<Vec<SimulatedBlock>, ChainRefusal> {
        if asked.block_state_calls.is_empty() {
            return Err(ChainRefusal::Overlay("there are no blocks to simulate".to_owned()));
        }
        let calls: usize = asked.block_state_calls.iter().map(|block| block.calls.len()).sum();
        if calls > CALLS_MAX {
            return Err(ChainRefusal::TooMany("calls of a simulation", CALLS_MAX as u64));
        }
        let mut simulation = Simulation {
            state: CacheDB::new(&self.state),
            head: (self.head(), self.height(), self.head_time()),
            next: self.next_setting(time),
            asked,
            blocks: Vec::new(),
        };
        asked.block_state_calls.iter().try_for_each(|block| simulation.add(block))?;
        Ok(simulation.blocks)
    }

    /// The accounts and slots that a call touches, with the gas that it takes when they are
    /// listed. A call that fails has a list too, and says why it fails.
    ///
    /// # Errors
    /// When it may not be made.
    pub(crate) fn access_list(
        &self,
        request: &TransactionRequest,
        overlay: &Overlay,
        time: u64,
    ) -> Result<AccessListResult, ChainRefusal> {
        let (state, setting) = self.laid_over(overlay, self.next_setting(time))?;
        let evm = Evm { state: &state, setting };
        let mut tx = evm.requested(request)?;
        tx.nonce = request.nonce.unwrap_or_else(|| nonce_of(&state, tx.caller));
        if tx.tx_type == 0 {
            // A transaction of the oldest type has no list.
            tx.tx_type = 1;
        }
        let mut list = tx.access_list.clone();
        for _ in 0..LISTS_MAX {
            tx.access_list = list.clone();
            let ResultAndState { result, state } = evm.run(tx.clone(), ExecutionMode::Call)?;
            let touched = list_of(&tx, &state);
            if touched == list {
                let gas_used = U256::from(result.tx_gas_used());
                let error = failure(&result).map(|error| error.message);
                return Ok(AccessListResult { access_list: list, gas_used, error });
            }
            list = touched;
        }
        Err(ChainRefusal::TooMany("attempts at a list that does not change", LISTS_MAX as u64))
    }
}

/// The accounts and slots of a run that are not free in any case: the sender, the callee and
/// precompiled contracts are, but for their slots.
fn list_of(tx: &TxEnv, touched: &revm::state::EvmState) -> AccessList {
    let is_free = |address: &alloy_primitives::Address| {
        let number = U256::from_be_slice(address.as_slice());
        let callee = match tx.kind {
            TxKind::Call(to) => to,
            TxKind::Create => tx.caller.create(tx.nonce),
        };
        number <= U256::from(0x11) || *address == tx.caller || *address == callee
    };
    let mut items: Vec<AccessListItem> = touched
        .iter()
        .map(|(address, account)| {
            let mut storage_keys: Vec<B256> =
                account.storage.keys().map(|slot| B256::from(*slot)).collect();
            storage_keys.sort_unstable();
            AccessListItem { address: *address, storage_keys }
        })
        .filter(|item| !item.storage_keys.is_empty() || !is_free(&item.address))
        .collect();
    items.sort_unstable_by_key(|item| item.address);
    AccessList(items)
}

/// Blocks that are tried one after the other.
struct Simulation<'a> {
    state: TriedState<'a>,
    /// The last block: its hash, its number and its time.
    head: (B256, u64, u64),
    /// The environment of the next block, unless it is changed.
    next: BlockEnvironment,
    asked: &'a SimulatePayload,
    blocks: Vec<SimulatedBlock>,
}

impl Simulation<'_> {
    /// Tries a block, after empty ones up to its number.
    fn add(&mut self, block: &SimBlock) -> Result<(), ChainRefusal> {
        let overrides = block.block_overrides.clone().unwrap_or_default();
        let mut setting = apply_block(self.next, &overrides)?;
        let (_, number, _) = self.head;
        if setting.number <= number {
            return Err(ChainRefusal::NotIncreasing("number", number.saturating_add(1)));
        }
        let gap = setting.number - number - 1;
        if (self.blocks.len() as u64).saturating_add(gap) >= MAX_SIMULATE_BLOCKS {
            return Err(ChainRefusal::TooMany("blocks of a simulation", MAX_SIMULATE_BLOCKS));
        }
        for _ in 0..gap {
            self.seal(self.next, Vec::new())?;
        }
        if overrides.time.is_none() {
            setting.time = self.next.time;
        }
        if overrides.random.is_none() {
            setting.random = self.next.random;
        }
        let (_, _, earliest) = self.head;
        if setting.time < earliest {
            return Err(ChainRefusal::NotIncreasing("time", earliest));
        }
        apply_state(&mut self.state, &block.state_overrides.clone().unwrap_or_default())?;
        let mut left = setting.gas_limit;
        let mut tried = Vec::new();
        for call in &block.calls {
            let one = self.try_call(call, setting, left)?;
            left = left.saturating_sub(one.result.tx_gas_used());
            tried.push(one);
        }
        self.seal(setting, tried)
    }

    fn try_call(
        &mut self,
        call: &TransactionRequest,
        setting: BlockEnvironment,
        gas_left: u64,
    ) -> Result<TriedCall, ChainRefusal> {
        let mut call = call.clone();
        let from = call.from.unwrap_or_default();
        call.nonce = Some(call.nonce.unwrap_or_else(|| nonce_of(&self.state, from)));
        let gas = call.gas.unwrap_or(gas_left);
        if gas > gas_left {
            return Err(ChainRefusal::Full);
        }
        let evm = Evm { state: &self.state, setting };
        // A sender that cannot pay for the gas is refused, and gets no less of it.
        let tx = TxEnv { gas_limit: gas, ..evm.requested(&call)? };
        let mode = match self.asked.validation {
            true => ExecutionMode::Transaction,
            false => ExecutionMode::Call,
        };
        let done = match self.asked.trace_transfers {
            true => evm.run_traced(tx.clone(), mode)?,
            false => evm.run(tx.clone(), mode)?,
        };
        self.state.commit(done.state);
        Ok(TriedCall { tx: envelope(tx), result: done.result })
    }

    fn seal(
        &mut self,
        setting: BlockEnvironment,
        tried: Vec<TriedCall>,
    ) -> Result<(), ChainRefusal> {
        let mut mined = Vec::new();
        let mut calls = Vec::new();
        let mut gas = 0;
        for TriedCall { tx, result } in tried {
            calls.push(SimCallResult {
                return_data: result.output().cloned().unwrap_or_default(),
                logs: Vec::new(),
                gas_used: result.tx_gas_used(),
                max_used_gas: Some(result.gas().total_gas_spent()),
                status: result.is_success(),
                error: failure(&result),
            });
            let one = BlockTransaction::new(tx, result, gas);
            gas = one.cumulative_gas();
            mined.push(one);
        }
        let block = Block::seal(&setting, self.head.0, mined);
        let mut logs = Vec::new();
        block.collect_logs(&Filter::new(), &mut logs);
        for log in logs {
            // silent-ok: a place that does not fit is that of no call, which is told.
            let place = log.transaction_index.and_then(|place| usize::try_from(place).ok());
            let call = place.and_then(|place| calls.get_mut(place));
            call.ok_or_else(|| ChainRefusal::Evm("a log is of no call".to_owned()))?.logs.push(log);
        }
        let hash = block.header.hash;
        self.state.cache.block_hashes.insert(U256::from(setting.number), hash);
        self.head = (hash, setting.number, setting.time);
        let number = setting.number.saturating_add(1);
        let time = setting.time.saturating_add(1);
        self.next = BlockEnvironment::new(setting.chain_id, number, time, hash);
        let inner = block.view(self.asked.return_full_transactions.into());
        self.blocks.push(SimulatedBlock { inner, calls });
        Ok(())
    }
}

/// A call as a transaction of a block. Nobody signed it.
fn envelope(call: TxEnv) -> Recovered<TxEnvelope> {
    let signature = Signature::new(U256::ONE, U256::ONE, false);
    let chain_id = call.chain_id.unwrap_or_default();
    let tip = call.gas_priority_fee.unwrap_or_default();
    let (TxKind::Call(to), 4) = (call.kind, call.tx_type) else {
        let tx = TxEip1559 {
            chain_id,
            nonce: call.nonce,
            gas_limit: call.gas_limit,
            max_fee_per_gas: call.gas_price,
            max_priority_fee_per_gas: tip,
            to: call.kind,
            value: call.value,
            access_list: call.access_list,
            input: call.data,
        };
        return Recovered::new_unchecked(Signed::new_unhashed(tx, signature).into(), call.caller);
    };
    let authorizations = call.authorization_list.into_iter();
    let tx = TxEip7702 {
        chain_id,
        nonce: call.nonce,
        gas_limit: call.gas_limit,
        max_fee_per_gas: call.gas_price,
        max_priority_fee_per_gas: tip,
        to,
        value: call.value,
        access_list: call.access_list,
        authorization_list: authorizations.filter_map(|one| one.left()).collect(),
        input: call.data,
    };
    Recovered::new_unchecked(Signed::new_unhashed(tx, signature).into(), call.caller)
}

/// Why a call failed, if it did.
fn failure(result: &ExecutionResult) -> Option<SimulateError> {
    match result {
        ExecutionResult::Success { .. } => None,
        ExecutionResult::Revert { output, .. } => Some(SimulateError {
            code: SimulateError::EXECUTION_REVERTED_CODE,
            message: ChainRefusal::Reverted(output.clone()).to_string(),
            data: Some(output.clone()),
        }),
        ExecutionResult::Halt { reason, .. } => {
            let message = ChainRefusal::Halted(format!("{reason:?}")).to_string();
            Some(SimulateError { code: HALTED, message, data: None })
        }
    }
}
