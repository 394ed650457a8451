//! The chain over JSON-RPC, for the token that we are paid in.
//!
//! The account that signs transactions only pays gas; it can move nobody's tokens.
//! Its transactions are those of EIP-1559. A read says how things are in the newest
//! block, which may go away again; what is to stay must be looked at as deep as
//! the operator wants it.

use std::time::Duration;

use alloy_primitives::{Address, B256, Bytes, Signature, U256, hex};
use alloy_sol_types::{SolCall, SolEvent, sol};
use automaton_core::time::Timestamp;
use automaton_core::wire::x402::{Authorization, TokenDomain};
use automaton_net::{Deadlines, HttpClient, Retry, Url};
use automaton_wallet::{ChainError, NodeClient, SignedTransaction, SignerClient};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::settlement::{
    ChainFuture, Settlement, SettlementError, SettlementTransaction, TransactionInclusion,
    TransferEvent, TxOutcome,
};
use crate::db::{Fees, Submission};

sol! {
    /// The part of EIP-3009 and ERC-20 that is called.
    interface Token {
        event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);
        event Transfer(address indexed from, address indexed to, uint256 value);
        function transferWithAuthorization(
            address from, address to, uint256 value, uint256 validAfter, uint256 validBefore,
            bytes32 nonce, uint8 v, bytes32 r, bytes32 s
        );
        function authorizationState(address authorizer, bytes32 nonce) returns (bool);
        function balanceOf(address account) returns (uint256);
    }
}

/// The beginning of what the signer is asked to sign: the one function that is
/// called, with the payer's signature in three parts.
pub const CALLED: [u8; 4] = Token::transferWithAuthorizationCall::SELECTOR;

/// The most gas of one transaction. No transfer of a token takes half of it, so a node that
/// estimates more is wrong.
pub const GAS_MAX: u64 = 300_000;
/// The least gas that a transaction is given. A transfer of USDC takes less, and only the gas
/// that is used is paid for: an estimate that is too small must not make it fail.
const GAS_MIN: u64 = 120_000;
/// Asks for a block.
const BLOCK: &str = "eth_getBlockByNumber";
/// How long one question may take.
const DEADLINES: Deadlines =
    Deadlines { idle: Duration::from_secs(10), total: Duration::from_secs(15) };
/// How far back a transfer is looked for, in blocks: five hours on Base.
const LOOK_BACK_BLOCKS: u64 = 9000;

/// A node, and the account that pays gas.
pub(crate) struct RpcSettlement {
    pub(crate) node: NodeClient,
    pub(crate) token: TokenDomain,
    /// Signs what pays gas, in a process of its own.
    pub(crate) signer: SignerClient,
    /// How many blocks have to come after one, for it to stay.
    pub(crate) confirmations: u64,
}

/// A call of a contract, or the simulation of a transaction.
#[derive(Serialize)]
struct ContractCall<'a> {
    from: Address,
    to: Address,
    data: &'a Bytes,
}

/// What is asked of the logs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LogFilter {
    address: Address,
    from_block: String,
    topics: [B256; 3],
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TransferLog {
    address: Address,
    topics: Vec<B256>,
    data: Bytes,
    transaction_hash: B256,
    log_index: U256,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeReceipt {
    status: U256,
    block_number: U256,
    logs: Vec<TransferLog>,
}

/// What is read of a block.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BaseFeeHeader {
    base_fee_per_gas: U256,
}

/// When a block was made.
#[derive(Deserialize)]
struct BlockTimestamp {
    timestamp: U256,
}

impl From<ChainError> for SettlementError {
    fn from(error: ChainError) -> Self {
        match error {
            ChainError::Malformed { method, .. } => Self::Malformed { method },
            ChainError::Refused { method, words, .. } => Self::Rejected { method, reason: words },
            // A node that is too busy has refused nothing.
            other => Self::Unavailable(Box::new(other)),
        }
    }
}

impl RpcSettlement {
    /// The way to the chain through one node.
    pub(crate) fn new(
        client: HttpClient,
        url: Url,
        token: TokenDomain,
        signer: SignerClient,
        confirmations: u64,
    ) -> Self {
        let node = NodeClient::new(client, url).within(DEADLINES);
        Self { node, token, signer, confirmations }
    }

    /// Asks the node. One that cannot be reached is not asked again here: payments wait for
    /// their next turn.
    async fn ask<T: DeserializeOwned>(
        &self,
        method: &'static str,
        params: impl Serialize + Send,
    ) -> Result<T, SettlementError> {
        Ok(self.node.ask(Retry::WhenRefused, method, params).await?)
    }

    /// Asks the node for the header of a block, whatever the block holds.
    async fn header<T: DeserializeOwned>(&self, block: &str) -> Result<T, SettlementError> {
        let asked = self.node.ask_without_lists(Retry::WhenRefused, BLOCK, (block, false));
        Ok(asked.await?)
    }

    /// A read of the token.
    async fn read<C: SolCall + Send>(&self, call: C) -> Result<C::Return, SettlementError> {
        let method = "eth_call";
        let data = Bytes::from(call.abi_encode());
        let call = ContractCall { from: self.payer(), to: self.token.contract, data: &data };
        let bytes: Bytes = self.ask(method, (call, "latest")).await?;
        C::abi_decode_returns(&bytes).map_err(|_| SettlementError::Malformed { method })
    }

    async fn number(
        &self,
        method: &'static str,
        params: impl Serialize + Send,
    ) -> Result<u64, SettlementError> {
        let number: U256 = self.ask(method, params).await?;
        u64::try_from(number).map_err(|_| SettlementError::Malformed { method })
    }

    async fn receipt(&self, transaction: B256) -> Result<Option<NodeReceipt>, SettlementError> {
        self.ask("eth_getTransactionReceipt", [transaction]).await
    }

    /// The transfer as a call of the token's contract.
    fn transfer(
        authorization: &Authorization,
        signature: &Bytes,
    ) -> Result<Bytes, SettlementError> {
        let signature = Signature::from_raw(signature).map_err(|error| {
            let reason = error.to_string();
            SettlementError::Rejected { method: "the signature", reason }
        })?;
        let call = Token::transferWithAuthorizationCall {
            from: authorization.from,
            to: authorization.to,
            value: authorization.value,
            validAfter: authorization.valid_after,
            validBefore: authorization.valid_before,
            nonce: authorization.nonce,
            v: 27 + u8::from(signature.v()),
            r: signature.r().into(),
            s: signature.s().into(),
        };
        Ok(call.abi_encode().into())
    }

    async fn transact(
        &self,
        order: &SettlementTransaction<'_>,
    ) -> Result<Submission, SettlementError> {
        // The signer takes the first number from this one on that it has not signed. So it may
        // be too small, and is the number in blocks that stay: a count of what waits is the
        // word of one node.
        let nonce_hint = match order.nonce {
            Some(nonce) => nonce,
            None => self.gas_nonce().await?,
        };
        let call = automaton_wallet::TransactionCall {
            chain_id: self.token.chain.0,
            to: self.token.contract,
            data: Self::transfer(order.authorization, order.signature)?,
            gas: order.gas,
            max_fee: order.fees.max,
            priority_fee: Some(order.fees.priority),
            nonce_hint,
        };
        // A refusal, of a ceiling for instance, is told and tried again: the number
        // may be taken, and has to be filled.
        let unavailable = |error| SettlementError::Unavailable(Box::new(error));
        let signed = self.signer.transact(order.intent, &call).await.map_err(unavailable)?;
        let SignedTransaction { hash, raw, nonce, .. } = signed;
        Ok(Submission { hash, raw, gas_nonce: nonce })
    }

    /// The newest block that stays, as a node is asked for it.
    async fn finalized_block(&self) -> Result<String, SettlementError> {
        if self.confirmations == 0 {
            return Ok("latest".to_owned());
        }
        let newest = self.number("eth_blockNumber", [(); 0]).await?;
        Ok(format!("{:#x}", newest.saturating_sub(self.confirmations)))
    }

    /// Whether a block of this number stays.
    async fn stays(&self, block: U256) -> Result<bool, SettlementError> {
        if self.confirmations == 0 {
            return Ok(true);
        }
        let newest = self.number("eth_blockNumber", [(); 0]).await?;
        Ok(U256::from(newest) >= block.saturating_add(U256::from(self.confirmations)))
    }

    async fn look_for(
        &self,
        wanted: &Authorization,
    ) -> Result<Option<TransferEvent>, SettlementError> {
        let newest = self.number("eth_blockNumber", [(); 0]).await?;
        let filter = LogFilter {
            address: self.token.contract,
            from_block: format!("{:#x}", newest.saturating_sub(LOOK_BACK_BLOCKS)),
            topics: [
                Token::AuthorizationUsed::SIGNATURE_HASH,
                wanted.from.into_word(),
                wanted.nonce,
            ],
        };
        let logs: Vec<TransferLog> = self.ask("eth_getLogs", [filter]).await?;
        let Some(log) = logs.first() else { return Ok(None) };
        // The nonce may have been spent on another transfer: look at what moved.
        let transaction = log.transaction_hash;
        let Some(receipt) = self.receipt(transaction).await? else { return Ok(None) };
        let Some(log) = transfer_after(self.token.contract, log.log_index, &receipt.logs, wanted)
        else {
            return Ok(None);
        };
        let log = u64::try_from(log)
            .map_err(|_| SettlementError::Malformed { method: "eth_getTransactionReceipt" })?;
        let stays = self.stays(receipt.block_number).await?;
        Ok(Some(TransferEvent { transaction, log, stays }))
    }
}

/// Returns the place of the transfer that used an authorization up, where it is the one that is
/// wanted: the next log of the token after the one that says `used`. Other logs of the same
/// transaction belong to other authorizations.
fn transfer_after(
    token: Address,
    used: U256,
    logs: &[TransferLog],
    wanted: &Authorization,
) -> Option<U256> {
    let after = logs.iter().filter(|log| log.address == token && log.log_index > used);
    let log = after.min_by_key(|log| log.log_index)?;
    // silent-ok: a log that is no transfer moved nothing.
    let transfer = Token::Transfer::decode_raw_log(log.topics.clone(), &log.data).ok()?;
    let is_wanted =
        (transfer.from, transfer.to) == (wanted.from, wanted.to) && transfer.value == wanted.value;
    is_wanted.then_some(log.log_index)
}

/// The gas that a transaction is given after an estimate, and a fifth more: the state that it
/// runs on changes until the block.
///
/// # Errors
/// Fails if no transfer takes that much. Then nothing is stored, and the node is asked anew.
fn gas_for(estimate: u64) -> Result<u64, SettlementError> {
    let gas = estimate.saturating_mul(6) / 5;
    if gas > GAS_MAX {
        let wrong = format!(
            "the node estimates {estimate} gas for a transfer, and {GAS_MAX} is the most that \
             one is given"
        );
        return Err(SettlementError::Unavailable(wrong.into()));
    }
    Ok(gas.max(GAS_MIN))
}

impl Settlement for RpcSettlement {
    fn payer(&self) -> Address {
        self.signer.address()
    }

    fn time(&self) -> ChainFuture<'_, Timestamp> {
        Box::pin(async move {
            let head: BlockTimestamp = self.header(&self.finalized_block().await?).await?;
            let none = |_| SettlementError::Malformed { method: BLOCK };
            let seconds = i64::try_from(head.timestamp).map_err(none)?;
            Ok(Timestamp::from_millis(seconds.saturating_mul(1000)))
        })
    }

    fn authorization_used<'a>(&'a self, authorization: &'a Authorization) -> ChainFuture<'a, bool> {
        let (authorizer, nonce) = (authorization.from, authorization.nonce);
        Box::pin(self.read(Token::authorizationStateCall { authorizer, nonce }))
    }

    fn balance(&self, holder: Address) -> ChainFuture<'_, U256> {
        Box::pin(self.read(Token::balanceOfCall { account: holder }))
    }

    fn simulate<'a>(
        &'a self,
        authorization: &'a Authorization,
        signature: &'a Bytes,
    ) -> ChainFuture<'a, u64> {
        Box::pin(async move {
            let data = Self::transfer(authorization, signature)?;
            let call = ContractCall { from: self.payer(), to: self.token.contract, data: &data };
            // Estimating runs the transfer.
            let estimate = self.number("eth_estimateGas", [call]).await?;
            gas_for(estimate)
        })
    }

    fn fees(&self) -> ChainFuture<'_, Fees> {
        Box::pin(async move {
            let head: BaseFeeHeader = self.header("latest").await?;
            let none = |_| SettlementError::Malformed { method: BLOCK };
            let base = u64::try_from(head.base_fee_per_gas).map_err(none)?;
            let priority = self.number("eth_maxPriorityFeePerGas", [(); 0]).await?;
            // The base fee doubles in six full blocks at the fastest.
            Ok(Fees { max: base.saturating_mul(2).saturating_add(priority), priority })
        })
    }

    fn sign<'a>(&'a self, order: &'a SettlementTransaction<'a>) -> ChainFuture<'a, Submission> {
        Box::pin(self.transact(order))
    }

    fn broadcast<'a>(&'a self, raw: &'a Bytes) -> ChainFuture<'a, ()> {
        Box::pin(async move {
            let raw = hex::encode_prefixed(raw);
            self.ask::<B256>("eth_sendRawTransaction", [raw]).await.map(drop)
        })
    }

    fn outcome(&self, transaction: B256) -> ChainFuture<'_, Option<TransactionInclusion>> {
        Box::pin(async move {
            let Some(receipt) = self.receipt(transaction).await? else { return Ok(None) };
            let outcome = match receipt.status {
                U256::ONE => TxOutcome::Succeeded,
                _ => TxOutcome::Reverted,
            };
            Ok(Some(TransactionInclusion {
                outcome,
                stays: self.stays(receipt.block_number).await?,
            }))
        })
    }

    fn gas_nonce(&self) -> ChainFuture<'_, u64> {
        Box::pin(async move {
            let block = self.finalized_block().await?;
            self.number("eth_getTransactionCount", (self.payer(), block)).await
        })
    }

    fn transfer_of<'a>(
        &'a self,
        authorization: &'a Authorization,
    ) -> ChainFuture<'a, Option<TransferEvent>> {
        Box::pin(self.look_for(authorization))
    }
}

#[cfg(test)]
mod tests;
