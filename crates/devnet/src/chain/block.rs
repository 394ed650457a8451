//! Pure: a mined block with its transactions, and its views for clients.
//!
//! Headers have real roots of transactions and receipts. The state root is zero: this chain
//! offers no proofs of state, and computing the root would make each block cost as much as the
//! whole state.

use alloy_consensus::proofs::{calculate_receipt_root, calculate_transaction_root};
use alloy_consensus::transaction::{Recovered, TransactionInfo};
use alloy_consensus::{
    BlockBody, EMPTY_ROOT_HASH, Eip658Value, Header, Receipt, ReceiptEnvelope, Transaction,
    TxEnvelope,
};
use alloy_eips::BlockNumHash;
use alloy_eips::eip7685::EMPTY_REQUESTS_HASH;
use alloy_primitives::{Address, B256, Bloom, U256};
use alloy_rpc_types_eth::{
    Block as RpcBlock, BlockTransactions, BlockTransactionsKind, Filter, Header as RpcHeader,
    Log as RpcLog, Transaction as RpcTransaction, TransactionReceipt,
};
use revm::context::result::ExecutionResult;

use super::evm::{BASE_FEE, BlockEnvironment};

/// A mined block.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    /// The header, with its hash and its size.
    pub(crate) header: RpcHeader,
    mined: Vec<BlockTransaction>,
}

/// A transaction of a block and its result.
#[derive(Debug, Clone)]
pub(crate) struct BlockTransaction {
    /// The transaction, with its sender.
    pub(crate) tx: Recovered<TxEnvelope>,
    receipt: ReceiptEnvelope,
    /// The gas of this transaction alone. The receipt counts from the beginning of the block.
    gas: u64,
    created: Option<Address>,
}

impl BlockTransaction {
    /// Creates a transaction from its result. `before` is the gas used by earlier transactions of
    /// the block.
    pub(crate) fn new(tx: Recovered<TxEnvelope>, result: ExecutionResult, before: u64) -> Self {
        let status = result.is_success();
        let gas = result.tx_gas_used();
        let created = tx.is_create().then(|| tx.signer().create(tx.nonce()));
        // Logs before a revert do not count.
        let logs = if status { result.into_logs() } else { Vec::new() };
        let cumulative_gas_used = before.saturating_add(gas);
        let receipt = Receipt { status: Eip658Value::Eip658(status), cumulative_gas_used, logs };
        let receipt = ReceiptEnvelope::from_typed(tx.tx_type(), receipt.with_bloom());
        Self { tx, receipt, gas, created }
    }

    /// Returns the gas of the block up to the end of this transaction.
    pub(crate) fn cumulative_gas(&self) -> u64 {
        self.receipt.cumulative_gas_used()
    }

    /// Returns the payment beyond the base fee, in wei for each unit of gas.
    fn tip(&self) -> u128 {
        self.tx.effective_tip_per_gas(BASE_FEE).unwrap_or_default()
    }
}

impl Block {
    /// Seals a block with this environment.
    pub(crate) fn seal(
        setting: &BlockEnvironment,
        parent: B256,
        mined: Vec<BlockTransaction>,
    ) -> Self {
        let transactions: Vec<TxEnvelope> =
            mined.iter().map(|mined| mined.tx.clone_inner()).collect();
        let receipts: Vec<&ReceiptEnvelope> = mined.iter().map(|mined| &mined.receipt).collect();
        let header = Header {
            parent_hash: parent,
            transactions_root: calculate_transaction_root(&transactions),
            receipts_root: calculate_receipt_root(&receipts),
            logs_bloom: mined.iter().fold(Bloom::ZERO, |all, one| all | *one.receipt.logs_bloom()),
            number: setting.number,
            gas_limit: setting.gas_limit,
            beneficiary: setting.beneficiary,
            gas_used: mined.last().map_or(0, BlockTransaction::cumulative_gas),
            timestamp: setting.time,
            mix_hash: setting.random,
            base_fee_per_gas: Some(setting.base_fee),
            withdrawals_root: Some(EMPTY_ROOT_HASH),
            blob_gas_used: Some(0),
            excess_blob_gas: Some(0),
            parent_beacon_block_root: Some(B256::ZERO),
            requests_hash: Some(EMPTY_REQUESTS_HASH),
            ..Header::default()
        };
        let withdrawals = Some(Vec::new().into());
        let body = BlockBody { transactions, ommers: Vec::new(), withdrawals };
        let header = RpcBlock::from_consensus(header.into_block(body), Some(U256::ZERO)).header;
        Self { header, mined }
    }

    /// Returns the tips at these percentiles of the block's gas, lowest first. A percentile's tip
    /// is that of the first transaction with which its share of the gas is reached. This is
    /// geth's rule.
    #[expect(clippy::float_arithmetic, reason = "clients name percentiles so; no money")]
    pub(crate) fn tips(&self, percentiles: &[f64]) -> Vec<u128> {
        let mut tips: Vec<_> = self.mined.iter().map(|one| (one.tip(), one.gas)).collect();
        tips.sort_unstable();
        let at = |percentile: &f64| {
            let mut left = share_of(self.header.gas_used) * percentile / 100.0;
            let reached = tips.iter().find(|(_, gas)| {
                left -= share_of(*gas);
                left <= 0.0
            });
            reached.or(tips.last()).map_or(0, |(tip, _)| *tip)
        };
        percentiles.iter().map(at).collect()
    }

    /// Returns the hashes of its transactions.
    pub(crate) fn tx_hashes(&self) -> impl Iterator<Item = B256> {
        self.mined.iter().map(|mined| *mined.tx.tx_hash())
    }

    /// Returns the block, as `eth_getBlockByNumber` shows it.
    pub(crate) fn view(&self, kind: BlockTransactionsKind) -> RpcBlock {
        let transactions = match kind {
            BlockTransactionsKind::Hashes => BlockTransactions::Hashes(self.tx_hashes().collect()),
            BlockTransactionsKind::Full => BlockTransactions::Full(
                (0..self.mined.len()).filter_map(|at| self.transaction(at)).collect(),
            ),
        };
        let withdrawals = Some(Vec::new().into());
        RpcBlock { header: self.header.clone(), uncles: Vec::new(), transactions, withdrawals }
    }

    /// Returns the transaction at an index, as `eth_getTransactionByHash` shows it.
    pub(crate) fn transaction(&self, at: usize) -> Option<RpcTransaction> {
        let one = self.mined.get(at)?;
        let info = TransactionInfo {
            hash: Some(*one.tx.tx_hash()),
            index: Some(at as u64),
            block_hash: Some(self.header.hash),
            block_number: Some(self.header.number),
            base_fee: Some(BASE_FEE),
            block_timestamp: Some(self.header.timestamp),
        };
        Some(RpcTransaction::from_transaction(one.tx.clone(), info))
    }

    /// Returns the receipt of the transaction at an index, as `eth_getTransactionReceipt` shows
    /// it.
    pub(crate) fn receipt(&self, at: usize) -> Option<TransactionReceipt> {
        let BlockTransaction { tx, receipt, gas, created } = self.mined.get(at)?;
        let mut logs = Vec::new();
        self.collect_logs(&Filter::new(), &mut logs);
        // Log indexes count over all transactions of the block.
        let mut logs = logs.into_iter().filter(|log| log.transaction_index == Some(at as u64));
        // The iterator has as many logs as the receipt, in the same order.
        let inner = receipt.clone().map_logs(|_| logs.next().unwrap_or_default());
        Some(TransactionReceipt {
            inner,
            transaction_hash: *tx.tx_hash(),
            transaction_index: Some(at as u64),
            block_hash: Some(self.header.hash),
            block_number: Some(self.header.number),
            gas_used: *gas,
            effective_gas_price: tx.effective_gas_price(Some(BASE_FEE)),
            blob_gas_used: None,
            blob_gas_price: None,
            from: tx.signer(),
            to: tx.to(),
            contract_address: *created,
        })
    }

    /// Returns the number of transactions.
    pub(crate) const fn size(&self) -> usize {
        self.mined.len()
    }

    /// Adds the logs of this block that match a filter.
    pub(crate) fn collect_logs(&self, filter: &Filter, found: &mut Vec<RpcLog>) {
        let block = BlockNumHash { number: self.header.number, hash: self.header.hash };
        let receipts = self.mined.iter().map(|one| (*one.tx.tx_hash(), &one.receipt));
        let time = self.header.timestamp;
        filter.append_matching_block_logs(found, block, time, receipts, false);
    }
}

/// Converts gas to a number for percentiles. Gas in a block fits into 32 bits, so nothing is
/// rounded.
fn share_of(gas: u64) -> f64 {
    f64::from(u32::try_from(gas).unwrap_or(u32::MAX))
}
