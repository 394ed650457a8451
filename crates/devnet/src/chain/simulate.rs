//! Pure: simulates blocks of calls on top of the chain, and computes access lists.
//!
//! The blocks are those of `eth_simulateV1`. A simulated block is sealed like any other, so that
//! its hashes and logs are consistent. Nothing of it remains.

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
/// The most attempts at an access list, since a list changes the cost of the call.
const LISTS_MAX: usize = 8;
/// The error code of a call that halted without a revert.
const HALTED: i32 = SimulateError::VM_EXECUTION_ERROR_CODE;

/// A call of a simulation and its result.
struct TriedCall {
    tx: Recovered<TxEnvelope>,
    result: ExecutionResult,
}

impl Chain {
    /// Simulates blocks of calls on top of the chain. `time` is that of a block mined now.
    ///
    /// # Errors
    /// Fails if a call may not be made, or the blocks contradict each other or the chain.
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

    /// Returns the accounts and slots that a call touches, with the gas that it takes with this
    /// access list. A failing call has a list too, with the error.
    ///
    /// # Errors
    /// Fails if the call may not be made.
    pub(crate) fn access_list(
        &self,
        request: &TransactionRequest,
        overlay: &Overlay,
        time: u64,
    ) -> Result<AccessListResult, ChainRefusal> {
        let (state, setting) = self.with_overlay(overlay, self.next_setting(time))?;
        let evm = Evm { state: &state, setting };
        let mut tx = evm.call_env(request)?;
        tx.nonce = request.nonce.unwrap_or_else(|| nonce_of(&state, tx.caller));
        if tx.tx_type == 0 {
            // A legacy transaction has no access list.
            tx.tx_type = 1;
        }
        let mut list = tx.access_list.clone();
        for _ in 0..LISTS_MAX {
            tx.access_list = list.clone();
            let ResultAndState { result, state } = evm.run(tx.clone(), ExecutionMode::Call)?;
            let touched = access_list_of(&tx, &state);
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

/// Returns the accounts and slots of a run that are not warm anyway. The sender, the callee and
/// precompiled contracts are warm, but their slots are not.
fn access_list_of(tx: &TxEnv, touched: &revm::state::EvmState) -> AccessList {
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

/// A simulation in progress.
struct Simulation<'a> {
    state: TriedState<'a>,
    /// The hash, the number and the time of the last block.
    head: (B256, u64, u64),
    /// The environment of the next block, unless it is overridden.
    next: BlockEnvironment,
    asked: &'a SimulatePayload,
    blocks: Vec<SimulatedBlock>,
}

impl Simulation<'_> {
    /// Simulates a block, after empty ones up to its number.
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
        // A sender that cannot pay for the gas is refused. Its gas is not reduced.
        let tx = TxEnv { gas_limit: gas, ..evm.call_env(&call)? };
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
            // silent-ok: an index that does not fit belongs to no call, which is reported below.
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

/// Converts a call to a transaction of a block, with a placeholder signature.
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

/// Returns the error of a call, if it failed.
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
