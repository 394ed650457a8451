//! Pure: a mined block with its one transaction, and its views for clients.
//!
//! Headers have real roots of transactions and receipts. The state root is
//! zero: nobody can ask this chain for a proof of state, and computing it would
//! make each block cost as much as the whole state.

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

use super::evm::{BASE_FEE, BLOCK_GAS, Setting};

/// One block.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    /// Its header, with its hash and its size.
    pub(crate) header: RpcHeader,
    mined: Option<Mined>,
}

/// The transaction of a block and what came of it.
#[derive(Debug, Clone)]
pub(crate) struct Mined {
    /// The transaction, with its sender.
    pub(crate) tx: Recovered<TxEnvelope>,
    receipt: ReceiptEnvelope,
    created: Option<Address>,
}

impl Mined {
    /// A transaction with the result of running it.
    pub(crate) fn new(tx: Recovered<TxEnvelope>, result: ExecutionResult) -> Self {
        let (status, gas) = (result.is_success(), result.tx_gas_used());
        let created = tx.is_create().then(|| tx.signer().create(tx.nonce()));
        // What was logged before a revert never happened.
        let logs = if status { result.into_logs() } else { Vec::new() };
        let receipt =
            Receipt { status: Eip658Value::Eip658(status), cumulative_gas_used: gas, logs };
        let receipt = ReceiptEnvelope::from_typed(tx.tx_type(), receipt.with_bloom());
        Self { tx, receipt, created }
    }
}

impl Block {
    /// The block that a setting describes.
    pub(crate) fn seal(setting: &Setting, parent: B256, mined: Option<Mined>) -> Self {
        let transactions: Vec<TxEnvelope> =
            mined.iter().map(|mined| mined.tx.clone_inner()).collect();
        let receipts: Vec<&ReceiptEnvelope> = mined.iter().map(|mined| &mined.receipt).collect();
        let header = Header {
            parent_hash: parent,
            transactions_root: calculate_transaction_root(&transactions),
            receipts_root: calculate_receipt_root(&receipts),
            logs_bloom: mined.as_ref().map_or(Bloom::ZERO, |mined| *mined.receipt.logs_bloom()),
            number: setting.number,
            gas_limit: BLOCK_GAS,
            gas_used: mined.as_ref().map_or(0, |mined| mined.receipt.cumulative_gas_used()),
            timestamp: setting.time,
            mix_hash: setting.random,
            base_fee_per_gas: Some(BASE_FEE),
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

    /// What its transaction paid beyond the base fee, in wei for each unit of gas.
    pub(crate) fn tip(&self) -> u128 {
        let tip = self.mined.as_ref().and_then(|one| one.tx.effective_tip_per_gas(BASE_FEE));
        tip.unwrap_or_default()
    }

    /// The hash of its transaction.
    pub(crate) fn tx_hash(&self) -> Option<B256> {
        self.mined.as_ref().map(|mined| *mined.tx.tx_hash())
    }

    /// The block, as `eth_getBlockByNumber` shows it.
    pub(crate) fn view(&self, kind: BlockTransactionsKind) -> RpcBlock {
        let transactions = match kind {
            BlockTransactionsKind::Hashes => {
                BlockTransactions::Hashes(self.tx_hash().into_iter().collect())
            }
            BlockTransactionsKind::Full => {
                BlockTransactions::Full(self.transaction().into_iter().collect())
            }
        };
        let withdrawals = Some(Vec::new().into());
        RpcBlock { header: self.header.clone(), uncles: Vec::new(), transactions, withdrawals }
    }

    /// Its transaction, as `eth_getTransactionByHash` shows it.
    pub(crate) fn transaction(&self) -> Option<RpcTransaction> {
        let info = TransactionInfo {
            hash: self.tx_hash(),
            index: Some(0),
            block_hash: Some(self.header.hash),
            block_number: Some(self.header.number),
            base_fee: Some(BASE_FEE),
            block_timestamp: Some(self.header.timestamp),
        };
        self.mined.as_ref().map(|one| RpcTransaction::from_transaction(one.tx.clone(), info))
    }

    /// What came of its transaction, as `eth_getTransactionReceipt` shows it.
    pub(crate) fn receipt(&self) -> Option<TransactionReceipt> {
        let Mined { tx, receipt, created } = self.mined.as_ref()?;
        let mut logs = Vec::new();
        self.collect_logs(&Filter::new(), &mut logs);
        let mut logs = logs.into_iter();
        // As many come out as went in, in the same order.
        let inner = receipt.clone().map_logs(|_| logs.next().unwrap_or_default());
        Some(TransactionReceipt {
            inner,
            transaction_hash: *tx.tx_hash(),
            transaction_index: Some(0),
            block_hash: Some(self.header.hash),
            block_number: Some(self.header.number),
            gas_used: self.header.gas_used,
            effective_gas_price: tx.effective_gas_price(Some(BASE_FEE)),
            blob_gas_used: None,
            blob_gas_price: None,
            from: tx.signer(),
            to: tx.to(),
            contract_address: *created,
        })
    }

    /// Adds what the filter finds in this block.
    pub(crate) fn collect_logs(&self, filter: &Filter, found: &mut Vec<RpcLog>) {
        let block = BlockNumHash { number: self.header.number, hash: self.header.hash };
        let receipts = self.mined.iter().map(|one| (*one.tx.tx_hash(), &one.receipt));
        let time = self.header.timestamp;
        filter.append_matching_block_logs(found, block, time, receipts, false);
    }
}
