//! The chain over JSON-RPC, for the token that we are paid in.
//!
//! The key that signs transactions only pays gas; it can move nobody's tokens.
//! Its transactions are legacy ones, which every EVM chain takes.

use std::time::Duration;

use alloy_consensus::{SignableTransaction, TxLegacy};
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U256, hex};
use alloy_sol_types::{SolCall, SolEvent, sol};
use automaton_core::wire::x402::{Authorization, TokenDomain};
use automaton_net::{Client, Deadlines, Header, Method, Request, Url};
use k256::ecdsa::SigningKey;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::facilitator::{OnChain, Settlement, SettlementError, TxOutcome};
use crate::db::Submission;

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

/// How long one question may take.
const DEADLINES: Deadlines =
    Deadlines { idle: Duration::from_secs(10), total: Duration::from_secs(15) };
/// How far back a transfer is looked for, in blocks: five hours on Base.
const LOOK_BACK_BLOCKS: u64 = 9000;

/// A node, and the key that pays gas.
pub(crate) struct RpcSettlement {
    pub(crate) client: Client,
    pub(crate) url: Url,
    pub(crate) token: TokenDomain,
    pub(crate) gas_key: SigningKey,
}

/// A question.
#[derive(Serialize)]
struct Ask<'a, P> {
    jsonrpc: &'static str,
    id: u32,
    method: &'a str,
    params: P,
}

/// An answer.
#[derive(Deserialize)]
struct Reply {
    result: Option<Box<RawValue>>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    message: String,
}

/// A call of a contract, or the simulation of a transaction.
#[derive(Serialize)]
struct Call<'a> {
    from: Address,
    to: Address,
    data: &'a Bytes,
}

/// What is asked of the logs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Filter {
    address: Address,
    from_block: String,
    topics: [B256; 3],
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Log {
    address: Address,
    topics: Vec<B256>,
    data: Bytes,
    transaction_hash: B256,
}

#[derive(Deserialize)]
struct Receipt {
    status: U256,
    logs: Vec<Log>,
}

impl RpcSettlement {
    async fn ask<T: for<'de> Deserialize<'de>>(
        &self,
        method: &'static str,
        params: impl Serialize + Send,
    ) -> Result<T, SettlementError> {
        let malformed = |_| SettlementError::Malformed { method };
        let unavailable = |error| SettlementError::Unavailable(Box::new(error));
        let ask = Ask { jsonrpc: "2.0", id: 1, method, params };
        let mut request = Request::new(Method::Post, self.url.clone());
        request.headers.push(Header::Open("content-type", "application/json".to_owned()));
        request.body = serde_json::to_vec(&ask).map_err(malformed)?;
        request.deadlines = DEADLINES;
        let response = self.client.request(request).await.map_err(unavailable)?;
        let status = response.status;
        let body = response.body.whole().await.map_err(unavailable)?;
        if status >= 500 || status == 429 {
            let busy = std::io::Error::other(format!("the node answered with status {status}"));
            return Err(SettlementError::Unavailable(Box::new(busy)));
        }
        let reply: Reply = serde_json::from_slice(&body).map_err(malformed)?;
        if let Some(failure) = reply.error {
            let reason = failure.message.chars().take(200).collect();
            return Err(SettlementError::Rejected { method, reason });
        }
        // A result that is null is one: there is no receipt yet.
        let result = reply.result.as_deref().map_or("null", RawValue::get);
        serde_json::from_str(result).map_err(malformed)
    }

    /// A read of the token.
    async fn read<C: SolCall + Send>(&self, call: C) -> Result<C::Return, SettlementError> {
        let method = "eth_call";
        let data = Bytes::from(call.abi_encode());
        let call = Call { from: self.gas_payer(), to: self.token.contract, data: &data };
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

    fn gas_payer(&self) -> Address {
        Address::from_private_key(&self.gas_key)
    }

    async fn receipt(&self, transaction: B256) -> Result<Option<Receipt>, SettlementError> {
        self.ask("eth_getTransactionReceipt", [transaction]).await
    }

    async fn sign(&self, data: Bytes) -> Result<Submission, SettlementError> {
        let (from, to) = (self.gas_payer(), self.token.contract);
        let call = Call { from, to, data: &data };
        // Estimating runs the transfer, so this is its simulation, too.
        let gas = self.number("eth_estimateGas", [call]).await?;
        let price = self.number("eth_gasPrice", [(); 0]).await?;
        let nonce = self.number("eth_getTransactionCount", (from, "pending")).await?;
        let transaction = TxLegacy {
            chain_id: Some(self.token.chain.0),
            nonce,
            // Both rise between now and the block.
            gas_price: u128::from(price).saturating_mul(5) / 4,
            gas_limit: gas.saturating_mul(6) / 5,
            to: TxKind::Call(to),
            value: U256::ZERO,
            input: data,
        };
        let digest = transaction.signature_hash();
        let signed = self.gas_key.sign_prehash_recoverable(digest.as_slice());
        let (signature, parity) =
            signed.map_err(|error| SettlementError::Unavailable(Box::new(error)))?;
        let signed = transaction.into_signed(Signature::from((signature, parity)));
        let mut raw = Vec::new();
        signed.rlp_encode(&mut raw);
        Ok(Submission { hash: *signed.hash(), raw: raw.into(), gas_nonce: nonce })
    }

    async fn look_for(&self, wanted: &Authorization) -> Result<Option<B256>, SettlementError> {
        let newest = self.number("eth_blockNumber", [(); 0]).await?;
        let filter = Filter {
            address: self.token.contract,
            from_block: format!("{:#x}", newest.saturating_sub(LOOK_BACK_BLOCKS)),
            topics: [
                Token::AuthorizationUsed::SIGNATURE_HASH,
                wanted.from.into_word(),
                wanted.nonce,
            ],
        };
        let logs: Vec<Log> = self.ask("eth_getLogs", [filter]).await?;
        let Some(log) = logs.first() else { return Ok(None) };
        // The nonce may have been spent on another transfer: look at what moved.
        let receipt = self.receipt(log.transaction_hash).await?;
        let moved = receipt.is_some_and(|receipt| {
            receipt.logs.iter().any(|log| {
                let transfer = Token::Transfer::decode_raw_log(log.topics.clone(), &log.data);
                log.address == self.token.contract
                    && transfer.is_ok_and(|transfer| {
                        (transfer.from, transfer.to) == (wanted.from, wanted.to)
                            && transfer.value == wanted.value
                    })
            })
        });
        Ok(moved.then_some(log.transaction_hash))
    }
}

impl Settlement for RpcSettlement {
    fn authorization_used<'a>(&'a self, authorization: &'a Authorization) -> OnChain<'a, bool> {
        let (authorizer, nonce) = (authorization.from, authorization.nonce);
        Box::pin(self.read(Token::authorizationStateCall { authorizer, nonce }))
    }

    fn balance(&self, holder: Address) -> OnChain<'_, U256> {
        Box::pin(self.read(Token::balanceOfCall { account: holder }))
    }

    fn prepare<'a>(
        &'a self,
        authorization: &'a Authorization,
        signature: &'a Bytes,
    ) -> OnChain<'a, Submission> {
        Box::pin(async move {
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
            self.sign(call.abi_encode().into()).await
        })
    }

    fn broadcast<'a>(&'a self, raw: &'a Bytes) -> OnChain<'a, ()> {
        Box::pin(async move {
            match self.ask::<B256>("eth_sendRawTransaction", [hex::encode_prefixed(raw)]).await {
                // A transaction that is known, or whose number is taken: what
                // became of it is read from the chain and not from words.
                Ok(_) | Err(SettlementError::Rejected { .. }) => Ok(()),
                Err(error) => Err(error),
            }
        })
    }

    fn outcome(&self, transaction: B256) -> OnChain<'_, Option<TxOutcome>> {
        Box::pin(async move {
            let receipt = self.receipt(transaction).await?;
            Ok(receipt.map(|receipt| match receipt.status {
                U256::ONE => TxOutcome::Succeeded,
                _ => TxOutcome::Reverted,
            }))
        })
    }

    fn gas_nonce(&self) -> OnChain<'_, u64> {
        Box::pin(self.number("eth_getTransactionCount", (self.gas_payer(), "latest")))
    }

    fn transfer_of<'a>(&'a self, authorization: &'a Authorization) -> OnChain<'a, Option<B256>> {
        Box::pin(self.look_for(authorization))
    }
}
