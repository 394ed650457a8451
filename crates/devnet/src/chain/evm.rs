//! Pure: runs the EVM once over a state without changing it.
//!
//! The rules are those of Prague. The changes of a run are returned as a value, and only the
//! chain may commit them.

use std::convert::Infallible;

use alloy_consensus::transaction::Recovered;
use alloy_consensus::{Transaction, TxEnvelope, TxType, Typed2718};
use alloy_primitives::{Address, B256, Bytes, TxKind, U256};
use alloy_rpc_types_eth::TransactionRequest;
use revm::context::result::{EVMError, ExecutionResult, ResultAndState};
use revm::context::{BlockEnv, CfgEnv, TxEnv};
use revm::context_interface::either::Either;
use revm::database::{CacheDB, EmptyDB};
use revm::primitives::hardfork::SpecId;
use revm::{Context, DatabaseRef, ExecuteEvm, InspectEvm, MainBuilder, MainContext};

use super::ether::EtherTracer;
use super::refusal::ChainRefusal;

/// All accounts, contracts and storage.
pub(crate) type EvmState = CacheDB<EmptyDB>;

/// The state of the chain with tentative changes.
pub(crate) type TriedState<'a> = CacheDB<&'a EvmState>;

/// The gas limit of a block, and so of a transaction or call.
pub(crate) const BLOCK_GAS: u64 = 30_000_000;

/// The base fee of every block, in wei. With few transactions a block, a dynamic fee would sink
/// to nothing.
pub(crate) const BASE_FEE: u64 = 1_000_000_000;

/// The block environment of the EVM.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockEnvironment {
    /// The chain's id.
    pub(crate) chain_id: u64,
    /// The block's number.
    pub(crate) number: u64,
    /// The block's time, in seconds since the Unix epoch.
    pub(crate) time: u64,
    /// The value of `PREVRANDAO`.
    pub(crate) random: B256,
    /// The account that fees go to.
    pub(crate) beneficiary: Address,
    /// The gas limit of the block.
    pub(crate) gas_limit: u64,
    /// The base fee, in wei for each unit of gas.
    pub(crate) base_fee: u64,
}

impl BlockEnvironment {
    /// Creates the environment of a block with the default limit and fee.
    pub(crate) const fn new(chain_id: u64, number: u64, time: u64, random: B256) -> Self {
        let beneficiary = Address::ZERO;
        Self {
            chain_id,
            number,
            time,
            random,
            beneficiary,
            gas_limit: BLOCK_GAS,
            base_fee: BASE_FEE,
        }
    }
}

/// The kind of execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExecutionMode {
    /// A transaction: every rule holds.
    Transaction,
    /// A tentative call. It has no nonce, a contract may be the caller, and without a gas price
    /// there is no base fee.
    Call,
}

/// The EVM over a state, in a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Evm<'a, S = EvmState> {
    pub(crate) state: &'a S,
    pub(crate) setting: BlockEnvironment,
}

impl<S: DatabaseRef<Error = Infallible>> Evm<'_, S> {
    /// Runs a signed transaction.
    ///
    /// # Errors
    /// Fails if it may not be in a block.
    pub(crate) fn transact(
        &self,
        tx: &Recovered<TxEnvelope>,
    ) -> Result<ResultAndState, ChainRefusal> {
        self.run(signed_env(tx), ExecutionMode::Transaction)
    }

    /// Returns the result of a call.
    ///
    /// # Errors
    /// Fails if the call reverts, halts or may not be made.
    pub(crate) fn call(&self, request: &TransactionRequest) -> Result<Bytes, ChainRefusal> {
        output_of(self.run(self.call_env(request)?, ExecutionMode::Call)?.result)
    }

    /// Returns the smallest gas limit with which a transaction succeeds in this state.
    ///
    /// # Errors
    /// Fails if it succeeds with no limit.
    pub(crate) fn estimate(&self, request: &TransactionRequest) -> Result<u64, ChainRefusal> {
        let mut tx = self.call_env(request)?;
        let whole = self.run(tx.clone(), ExecutionMode::Call)?.result;
        let mut enough = tx.gas_limit;
        let used = whole.tx_gas_used();
        // The gas spent before a refund is nearly always the answer, which two runs confirm.
        let spent = whole.gas().total_gas_spent();
        let mut guesses = [spent, spent.saturating_sub(1)].into_iter();
        output_of(whole)?;
        // A limit below what was used cannot be enough; what is used may be too
        // little, since a refund comes at the end and a call keeps back one in 64.
        let mut too_little = used.saturating_sub(1);
        while too_little.saturating_add(1) < enough {
            // Refunds are at most a fifth, so the answer is near the used gas.
            let near = too_little.saturating_add(too_little / 4 + 1);
            let between = near.min(too_little.midpoint(enough));
            let open = too_little.saturating_add(1)..enough;
            tx.gas_limit = guesses.next().filter(|gas| open.contains(gas)).unwrap_or(between);
            match self.run(tx.clone(), ExecutionMode::Call) {
                Ok(tried) if tried.result.is_success() => enough = tx.gas_limit,
                Ok(_) | Err(ChainRefusal::Invalid(_)) => too_little = tx.gas_limit,
                Err(refusal) => return Err(refusal),
            }
        }
        Ok(enough)
    }

    /// Converts a request for a call to the EVM's form. Its gas is at most what the caller can
    /// pay at its price.
    ///
    /// # Errors
    /// Fails if its kind is not supported, or it contradicts itself.
    pub(super) fn call_env(&self, request: &TransactionRequest) -> Result<TxEnv, ChainRefusal> {
        let kind = request.minimal_tx_type();
        if kind == TxType::Eip4844 {
            return Err(ChainRefusal::Unsupported(kind.into()));
        }
        let price = request.fee_cap().unwrap_or_default();
        let caller = request.from.unwrap_or_default();
        let value = request.value.unwrap_or_default();
        let most = self.setting.gas_limit;
        let mut gas_limit = request.gas.unwrap_or(most).min(most);
        if price > 0 {
            let Ok(account) = self.state.basic_ref(caller);
            let balance = account.map_or(U256::ZERO, |account| account.balance);
            let payable = balance.saturating_sub(value) / U256::from(price);
            gas_limit = gas_limit.min(u64::try_from(payable).unwrap_or(u64::MAX));
        }
        let twice = || ChainRefusal::Undecodable("`data` and `input` differ".to_owned());
        let tip = request.max_priority_fee_per_gas.unwrap_or_default();
        let has_tip = matches!(kind, TxType::Eip1559 | TxType::Eip7702);
        let authorizations = request.authorization_list.clone().unwrap_or_default();
        Ok(TxEnv {
            tx_type: kind.into(),
            caller,
            gas_limit,
            gas_price: price,
            gas_priority_fee: has_tip.then_some(tip),
            kind: request.to.unwrap_or(TxKind::Create),
            value,
            data: request.input.unique_input().map_err(|_| twice())?.cloned().unwrap_or_default(),
            nonce: request.nonce.unwrap_or_default(),
            chain_id: Some(request.chain_id.unwrap_or(self.setting.chain_id)),
            access_list: request.access_list.clone().unwrap_or_default(),
            authorization_list: authorizations.into_iter().map(Either::Left).collect(),
            ..TxEnv::default()
        })
    }

    /// Runs a transaction, or a tentative call.
    ///
    /// # Errors
    /// Fails if it may not be run.
    pub(super) fn run(
        &self,
        tx: TxEnv,
        mode: ExecutionMode,
    ) -> Result<ResultAndState, ChainRefusal> {
        let environment = self.environment(&tx, mode);
        let context = Context::mainnet()
            .with_ref_db(self.state)
            .with_cfg(environment.cfg)
            .with_block(environment.block);
        context.build_mainnet().transact(tx).map_err(refusal)
    }

    /// Runs a transaction or call, and logs each transfer of ether as if it were a token's.
    ///
    /// # Errors
    /// As [`Evm::run`].
    pub(super) fn run_traced(
        &self,
        tx: TxEnv,
        mode: ExecutionMode,
    ) -> Result<ResultAndState, ChainRefusal> {
        let environment = self.environment(&tx, mode);
        let context = Context::mainnet()
            .with_ref_db(self.state)
            .with_cfg(environment.cfg)
            .with_block(environment.block);
        context.build_mainnet_with_inspector(EtherTracer).inspect_tx(tx).map_err(refusal)
    }

    fn environment(&self, tx: &TxEnv, mode: ExecutionMode) -> RunEnvironment {
        let setting = self.setting;
        let is_free = mode == ExecutionMode::Call && tx.gas_price == 0;
        let block = BlockEnv {
            number: U256::from(setting.number),
            timestamp: U256::from(setting.time),
            gas_limit: setting.gas_limit,
            basefee: if is_free { 0 } else { setting.base_fee },
            prevrandao: Some(setting.random),
            beneficiary: setting.beneficiary,
            ..BlockEnv::default()
        };
        let mut cfg = CfgEnv::new_with_spec(SpecId::PRAGUE).with_chain_id(setting.chain_id);
        cfg.disable_nonce_check = mode == ExecutionMode::Call;
        cfg.disable_eip3607 = mode == ExecutionMode::Call;
        RunEnvironment { cfg, block }
    }
}

/// The rules and the block of one run.
struct RunEnvironment {
    cfg: CfgEnv,
    block: BlockEnv,
}

fn refusal(error: EVMError<Infallible>) -> ChainRefusal {
    match error {
        EVMError::Transaction(invalid) => ChainRefusal::Invalid(invalid),
        other => ChainRefusal::Evm(other.to_string()),
    }
}

/// Converts a signed transaction to the EVM's form.
pub(super) fn signed_env(tx: &Recovered<TxEnvelope>) -> TxEnv {
    let authorizations = tx.authorization_list().unwrap_or_default().iter();
    TxEnv {
        tx_type: tx.ty(),
        caller: tx.signer(),
        gas_limit: tx.gas_limit(),
        gas_price: tx.max_fee_per_gas(),
        gas_priority_fee: tx.max_priority_fee_per_gas(),
        kind: tx.kind(),
        value: tx.value(),
        data: tx.input().clone(),
        nonce: tx.nonce(),
        chain_id: tx.chain_id(),
        access_list: tx.access_list().cloned().unwrap_or_default(),
        authorization_list: authorizations.cloned().map(Either::Left).collect(),
        ..TxEnv::default()
    }
}

fn output_of(result: ExecutionResult) -> Result<Bytes, ChainRefusal> {
    match result {
        ExecutionResult::Success { output, .. } => Ok(output.into_data()),
        ExecutionResult::Revert { output, .. } => Err(ChainRefusal::Reverted(output)),
        ExecutionResult::Halt { reason, .. } => Err(ChainRefusal::Halted(format!("{reason:?}"))),
    }
}
