//! The chain over JSON-RPC, for the token that the cloud is paid in.
//!
//! The account that signs transactions only pays gas and can move nobody's tokens. A read is of
//! the newest block, which may go away again. Whatever has to last must be read from a block as
//! deep as the operator wants it.

use std::time::Duration;

use alloy_primitives::{Address, B256, Bytes, Signature, U256};
use alloy_sol_types::{SolCall, SolEvent};
use automaton_core::time::Timestamp;
use automaton_core::wire::x402::{Authorization, TokenDomain};
use automaton_net::{Deadlines, HttpClient, Retry, Url};
use automaton_wallet::rpc::{BlockTag, ContractCall, Log, LogFilter, NodeClient, RpcClient};
use automaton_wallet::token::Token;
use automaton_wallet::transactions::{GasBounds, TransactionAccount, TransactionError};
use automaton_wallet::{ChainError, SignerClient};

use super::settlement::{
    ChainFuture, Settlement, SettlementError, SettlementTransaction, TransactionInclusion,
    TransferEvent,
};
use crate::db::{Fees, Submission};

/// The selector of the one function that the signer is asked to sign a call of. The payer's
/// signature is in three parts.
pub const CALLED: [u8; 4] = Token::transferWithAuthorizationCall::SELECTOR;

/// The highest gas limit of one transaction. No transfer of a token takes half of it, so a node
/// that estimates more is wrong.
pub const GAS_MAX: u64 = 300_000;
/// The lowest gas limit of one transaction. A transfer of USDC takes less.
const GAS_MIN: u64 = 120_000;
/// The deadlines of one question.
const DEADLINES: Deadlines =
    Deadlines { idle: Duration::from_secs(10), total: Duration::from_secs(15) };
/// The number of blocks in which a transfer is looked for: five hours on Base.
const LOOK_BACK_BLOCKS: u64 = 9000;

/// A node, and the account that pays gas.
pub(crate) struct RpcSettlement {
    account: TransactionAccount,
    token: TokenDomain,
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

impl From<TransactionError> for SettlementError {
    fn from(error: TransactionError) -> Self {
        match error {
            TransactionError::Chain(error) => error.into(),
            // A refusal, of a ceiling for instance, is reported and tried again: the nonce may
            // be taken, and has to be filled.
            TransactionError::Signer(error) => Self::Unavailable(Box::new(error)),
        }
    }
}

impl RpcSettlement {
    /// Creates the way to the chain through one node. `signer` signs for the account that pays
    /// gas, in a process of its own. A block is final when `confirmations` more have come after.
    pub(crate) fn new(
        client: HttpClient,
        url: Url,
        token: TokenDomain,
        signer: SignerClient,
        confirmations: u64,
    ) -> Self {
        let node = NodeClient::new(client, url).within(DEADLINES);
        // An unreachable node is not asked again here: payments wait for their next turn.
        let rpc = RpcClient::new(node, confirmations).with_retry(Retry::WhenRefused);
        let account = TransactionAccount::new(rpc, signer, token.chain.0);
        Self { account, token }
    }

    fn rpc(&self) -> &RpcClient {
        self.account.rpc()
    }

    /// Calls a function of the token without a transaction.
    async fn read<C: SolCall + Sync>(&self, call: C) -> Result<C::Return, SettlementError> {
        Ok(self.rpc().call(self.token.contract, &call, BlockTag::Latest).await?)
    }

    /// Encodes the transfer as a call of the token's contract.
    fn encode_transfer(
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

    async fn find_transfer(
        &self,
        wanted: &Authorization,
    ) -> Result<Option<TransferEvent>, SettlementError> {
        let newest = self.rpc().newest_block().await?;
        let filter = LogFilter {
            address: self.token.contract,
            from_block: BlockTag::Number(newest.saturating_sub(LOOK_BACK_BLOCKS)),
            topics: vec![
                Token::AuthorizationUsed::SIGNATURE_HASH,
                wanted.from.into_word(),
                wanted.nonce,
            ],
        };
        let logs = self.rpc().logs(&filter).await?;
        let Some(log) = logs.first() else { return Ok(None) };
        // The nonce may have been spent on another transfer, so the moved amount is read.
        let transaction = log.transaction_hash;
        let Some(receipt) = self.rpc().receipt(transaction).await? else { return Ok(None) };
        let used = log.log_index;
        let Some(log) = transfer_after(self.token.contract, used, &receipt.logs, wanted) else {
            return Ok(None);
        };
        let stays = self.rpc().is_final(receipt.block_number).await?;
        Ok(Some(TransferEvent { transaction, log, stays }))
    }
}

/// Returns the place of the transfer that used an authorization up, where it is the one that is
/// wanted: the next log of the token after the one that says `used`. Other logs of the same
/// transaction belong to other authorizations.
fn transfer_after(token: Address, used: u64, logs: &[Log], wanted: &Authorization) -> Option<u64> {
    let after = logs.iter().filter(|log| log.address == token && log.log_index > used);
    let log = after.min_by_key(|log| log.log_index)?;
    // silent-ok: a log that is no transfer moved nothing.
    let transfer = Token::Transfer::decode_raw_log(log.topics.clone(), &log.data).ok()?;
    let is_wanted =
        (transfer.from, transfer.to) == (wanted.from, wanted.to) && transfer.value == wanted.value;
    is_wanted.then_some(log.log_index)
}

/// Returns the gas limit of a transfer after a node's estimate.
///
/// # Errors
/// Fails if no transfer takes that much. Then nothing is stored, and the node is asked again.
fn gas_for(estimate: u64) -> Result<u64, SettlementError> {
    let bounds = GasBounds { min: GAS_MIN, max: GAS_MAX };
    bounds.limit(estimate).map_err(|wrong| SettlementError::Unavailable(Box::new(wrong)))
}

impl Settlement for RpcSettlement {
    fn payer(&self) -> Address {
        self.account.address()
    }

    fn time(&self) -> ChainFuture<'_, Timestamp> {
        Box::pin(async move { Ok(self.rpc().final_time().await?) })
    }

    fn authorization_used<'a>(&'a self, authorization: &'a Authorization) -> ChainFuture<'a, bool> {
        let authorizer = authorization.from;
        let nonce = authorization.nonce;
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
            let data = Self::encode_transfer(authorization, signature)?;
            // Estimating runs the transfer.
            gas_for(self.account.estimate_gas(self.token.contract, data).await?)
        })
    }

    fn fees(&self) -> ChainFuture<'_, Fees> {
        Box::pin(async move { Ok(self.rpc().fees().await?) })
    }

    fn sign<'a>(&'a self, order: &'a SettlementTransaction<'a>) -> ChainFuture<'a, Submission> {
        Box::pin(async move {
            let data = Self::encode_transfer(order.authorization, order.signature)?;
            let call = ContractCall::new(self.token.contract, data);
            let SettlementTransaction { intent, nonce, gas, fees, .. } = *order;
            Ok(self.account.sign(intent, nonce, call, gas, fees).await?)
        })
    }

    fn broadcast<'a>(&'a self, raw: &'a Bytes) -> ChainFuture<'a, ()> {
        Box::pin(async move { Ok(self.rpc().broadcast(raw).await?) })
    }

    fn outcome(&self, transaction: B256) -> ChainFuture<'_, Option<TransactionInclusion>> {
        Box::pin(async move { Ok(self.account.inclusion(transaction).await?) })
    }

    fn gas_nonce(&self) -> ChainFuture<'_, u64> {
        Box::pin(async move { Ok(self.account.final_count().await?) })
    }

    fn transfer_of<'a>(
        &'a self,
        authorization: &'a Authorization,
    ) -> ChainFuture<'a, Option<TransferEvent>> {
        Box::pin(self.find_transfer(authorization))
    }
}

#[cfg(test)]
mod tests;
