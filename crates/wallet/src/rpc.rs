//! The client of a chain over JSON-RPC, for everything that reads or writes the chain.
//!
//! [`NodeClient`] sends one question to a node and reads its answer. [`RpcClient`] asks the
//! questions that a chain answers, in their types. Reads are of the newest block unless a
//! function says otherwise, and the newest block may go away again. A decision that has to
//! last must use [`RpcClient::final_block`] or [`RpcClient::is_final`]. A failed read is an error
//! and must never become a number.

mod node;
mod types;

use alloy_primitives::{Address, B256, Bytes, U256};
use alloy_sol_types::{SolCall, SolType};
use automaton_core::time::Timestamp;
use automaton_net::{HttpClient, Retry, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::transactions::Fees;

pub use node::{ChainError, NodeClient};
pub use types::{
    BlockHash, BlockHeader, BlockTag, ContractCall, Log, LogFilter, Quantity, Receipt,
};

/// The method that reads a block.
const BLOCK: &str = "eth_getBlockByNumber";
/// The method that calls a contract without a transaction.
const CALL: &str = "eth_call";

/// A chain through one node.
#[derive(Debug, Clone)]
pub struct RpcClient {
    node: NodeClient,
    confirmations: u64,
    retry: Retry,
}

impl RpcClient {
    /// Creates a client of a node. A block is final when `confirmations` more have come after it.
    #[must_use]
    pub fn new(node: NodeClient, confirmations: u64) -> Self {
        Self { node, confirmations, retry: Retry::Question }
    }

    /// Creates a client of the node at a URL with the usual deadlines.
    #[must_use]
    pub fn connect(client: HttpClient, url: Url, confirmations: u64) -> Self {
        Self::new(NodeClient::new(client, url), confirmations)
    }

    /// Replaces the rule for repeating a question that failed; [`Retry::Question`] by default.
    #[must_use]
    pub fn with_retry(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    /// Replaces the number of blocks after which a block is final.
    #[must_use]
    pub fn with_confirmations(self, confirmations: u64) -> Self {
        Self { confirmations, ..self }
    }

    /// Returns the client of the node.
    #[must_use]
    pub const fn node(&self) -> &NodeClient {
        &self.node
    }

    /// Asks the node for a value.
    ///
    /// # Errors
    /// [`ChainError`].
    pub async fn ask<T: DeserializeOwned>(
        &self,
        method: &'static str,
        params: impl Serialize + Send,
    ) -> Result<T, ChainError> {
        self.node.ask(self.retry, method, params).await
    }

    /// Asks the node for a number.
    ///
    /// # Errors
    /// [`ChainError`], also if the number is no `u64` in hexadecimal.
    pub async fn number(
        &self,
        method: &'static str,
        params: impl Serialize + Send,
    ) -> Result<u64, ChainError> {
        self.ask::<Quantity>(method, params).await.map(|number| number.0)
    }

    /// Reads the id of the node's chain, by EIP-155.
    ///
    /// # Errors
    /// [`ChainError`].
    pub async fn chain_id(&self) -> Result<u64, ChainError> {
        self.number("eth_chainId", [(); 0]).await
    }

    /// Reads the number of the newest block.
    ///
    /// # Errors
    /// [`ChainError`].
    pub async fn newest_block(&self) -> Result<u64, ChainError> {
        self.number("eth_blockNumber", [(); 0]).await
    }

    /// Returns the newest block that is final, without asking if that is the newest of all.
    ///
    /// # Errors
    /// [`ChainError`].
    pub async fn final_block(&self) -> Result<BlockTag, ChainError> {
        if self.confirmations == 0 {
            return Ok(BlockTag::Latest);
        }
        let newest = self.newest_block().await?;
        Ok(BlockTag::Number(newest.saturating_sub(self.confirmations)))
    }

    /// Returns whether a block with this number is final.
    ///
    /// # Errors
    /// [`ChainError`].
    pub async fn is_final(&self, block: u64) -> Result<bool, ChainError> {
        if self.confirmations == 0 {
            return Ok(true);
        }
        Ok(self.newest_block().await? >= block.saturating_add(self.confirmations))
    }

    /// Reads the header of a block of any size.
    ///
    /// # Errors
    /// [`ChainError`], also if the node has no such block.
    pub async fn header(&self, block: BlockTag) -> Result<BlockHeader, ChainError> {
        self.node.ask_without_lists(self.retry, BLOCK, (block, false)).await
    }

    /// Reads the header of the newest block that is final.
    ///
    /// # Errors
    /// [`ChainError`].
    pub async fn final_header(&self) -> Result<BlockHeader, ChainError> {
        self.header(self.final_block().await?).await
    }

    /// Returns the time of the newest block that is final.
    ///
    /// # Errors
    /// [`ChainError`].
    pub async fn final_time(&self) -> Result<Timestamp, ChainError> {
        let header = self.final_header().await?;
        self.block_field(header.time, "time")
    }

    /// Returns a field of a header that has to be there.
    pub(crate) fn block_field<T>(&self, field: Option<T>, name: &str) -> Result<T, ChainError> {
        field.ok_or_else(|| self.node.malformed(BLOCK, format!("it has no {name}")))
    }

    /// Calls a function of a contract in the state after `block`: a [`BlockTag`] or a
    /// [`BlockHash`].
    ///
    /// # Errors
    /// [`ChainError`], also if there is no contract at the address, or if its answer is not of
    /// the length that the function's result has.
    pub async fn call<C: SolCall + Sync>(
        &self,
        contract: Address,
        function: &C,
        block: impl Serialize + Send,
    ) -> Result<C::Return, ChainError> {
        let call = ContractCall::new(contract, function.abi_encode());
        let answer: Bytes = self.ask(CALL, (call, block)).await?;
        decode_result::<C>(&answer).map_err(|what| self.node.malformed(CALL, what))
    }

    /// Runs a call as a transaction without sending one, and returns the gas that it takes by
    /// the node's estimate. See [`crate::transactions::GasBounds`] before trusting it.
    ///
    /// # Errors
    /// [`ChainError::Refused`] if the transaction would fail; otherwise [`ChainError`].
    pub async fn estimate_gas(&self, call: &ContractCall) -> Result<u64, ChainError> {
        self.number("eth_estimateGas", [call]).await
    }

    /// Reads the balance of the chain's own coin, in wei.
    ///
    /// # Errors
    /// [`ChainError`]; then it is unknown.
    pub async fn coin_balance(&self, account: Address) -> Result<U256, ChainError> {
        self.ask::<Quantity<U256>>("eth_getBalance", (account, BlockTag::Latest))
            .await
            .map(|balance| balance.0)
    }

    /// Reads the number of an account's transactions in final blocks.
    ///
    /// # Errors
    /// [`ChainError`].
    pub async fn final_transaction_count(&self, account: Address) -> Result<u64, ChainError> {
        let block = self.final_block().await?;
        self.number("eth_getTransactionCount", (account, block)).await
    }

    /// Reads the fees that a transaction needs to be in one of the next blocks.
    ///
    /// # Errors
    /// [`ChainError`], also if the chain has no base fee or one beyond `u64`.
    pub async fn fees(&self) -> Result<Fees, ChainError> {
        let header = self.header(BlockTag::Latest).await?;
        let base = header.base_fee.and_then(|fee| u64::try_from(fee).ok());
        let base = self.block_field(base, "base fee")?;
        let priority = self.number("eth_maxPriorityFeePerGas", [(); 0]).await?;
        // The base fee doubles in six full blocks at the fastest.
        Ok(Fees { max: base.saturating_mul(2).saturating_add(priority), priority })
    }

    /// Sends a signed transaction. The node's answer does not tell whether a block will have it.
    ///
    /// # Errors
    /// [`ChainError`].
    pub async fn broadcast(&self, raw: &Bytes) -> Result<(), ChainError> {
        self.ask::<B256>("eth_sendRawTransaction", [raw]).await.map(drop)
    }

    /// Reads the receipt of a transaction, `None` while no block has it.
    ///
    /// # Errors
    /// [`ChainError`].
    pub async fn receipt(&self, transaction: B256) -> Result<Option<Receipt>, ChainError> {
        self.ask("eth_getTransactionReceipt", [transaction]).await
    }

    /// Reads the logs that a filter selects.
    ///
    /// # Errors
    /// [`ChainError`].
    pub async fn logs(&self, filter: &LogFilter) -> Result<Vec<Log>, ChainError> {
        self.ask("eth_getLogs", [filter]).await
    }
}

/// Decodes the result of a function. An address without code answers nothing at all.
fn decode_result<C: SolCall>(answer: &[u8]) -> Result<C::Return, String> {
    if answer.is_empty() {
        return Err("there is no contract at that address".to_owned());
    }
    if let Some(size) = <C::ReturnTuple<'_> as SolType>::ENCODED_SIZE
        && answer.len() != size
    {
        return Err(format!("{} bytes, not {size}", answer.len()));
    }
    C::abi_decode_returns(answer).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
