//! The methods that alloy, viem and `cast` need, and those that move time.
//!
//! A method reads its parameters, asks the node and writes the answer. Only the
//! newest state is kept: who asks for an older one is refused.

use std::collections::HashSet;

use alloy_consensus::Transaction as _;
use alloy_eips::{BlockId, BlockNumberOrTag};
use alloy_primitives::{Address, B256, Bytes, U64, U256};
use alloy_rpc_types_eth::simulate::SimulatePayload;
use alloy_rpc_types_eth::state::StateOverride;
use alloy_rpc_types_eth::{BlockOverrides, Filter, TransactionRequest};
use revm::state::AccountInfo;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::error::{INTERNAL, METHOD, RpcError};
use super::params::read;
use super::{fees, filters};
use crate::chain::{
    BASE_FEE, Block, Chain, ChainOperation, ChainRefusal, OperationOutcome, Overlay,
    PendingTransaction,
};
use crate::node::Node;

/// The answer to one request, as JSON.
pub(super) type RpcResult = Result<Box<RawValue>, RpcError>;

/// The parameters as they came.
pub(super) type Params<'a> = Option<&'a RawValue>;

/// What this is, to those who ask.
const VERSION: &str = concat!("automaton-devnet/", env!("CARGO_PKG_VERSION"));

/// Whom `automaton_fund` funds, and with what.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FundParams {
    address: Address,
    /// Base units of the token.
    #[serde(default)]
    usdc: U64,
    #[serde(default)]
    wei: U256,
}

/// Answers one request.
///
/// # Errors
/// What the client is told instead.
pub(crate) fn call(node: &mut Node, method: &str, params: Params<'_>) -> RpcResult {
    node.recover();
    if let Some(act) = act(node, method, params) {
        return perform(node, act?);
    }
    if let Some(answer) = filters::call(node, method, params) {
        return answer;
    }
    let (chain, time) = (node.chain()?, node.time());
    match method {
        "eth_chainId" => json(&U64::from(chain.id())),
        "net_version" => json(&chain.id().to_string()),
        "web3_clientVersion" => json(&VERSION),
        // It has no keys, no peers and nothing to catch up with.
        "eth_accounts" => json(&[(); 0]),
        "eth_syncing" => json(&false),
        "net_listening" => json(&true),
        "net_peerCount" => json(&U64::ZERO),
        "eth_blockNumber" => json(&U64::from(chain.height())),
        "eth_gasPrice" => json(&U64::from(BASE_FEE + fees::TIP)),
        "eth_maxPriorityFeePerGas" => json(&U64::from(fees::TIP)),
        "eth_feeHistory" => {
            let (count, newest, percentiles): (U64, BlockNumberOrTag, Option<Vec<f64>>) =
                read(params, 2, 3)?;
            json(&fees::history(chain, count.to(), newest, percentiles.as_deref())?)
        }
        "eth_getBalance" => json(&account(chain, params)?.1.balance),
        "eth_getTransactionCount" => json(&U64::from(account(chain, params)?.1.nonce)),
        "eth_getCode" => json(&chain.code(account(chain, params)?.0)),
        "eth_getStorageAt" => {
            let (address, slot, at): (Address, U256, Option<BlockId>) = read(params, 2, 3)?;
            chain.require_newest(at.unwrap_or_default())?;
            json(&chain.storage(address, slot))
        }
        "eth_blobBaseFee" => json(&U64::from(fees::BLOB_FEE)),
        "eth_getTransactionByHash" => {
            json(&mined(chain, params)?.and_then(|(block, at)| block.transaction(at)))
        }
        "eth_getTransactionReceipt" => {
            json(&mined(chain, params)?.and_then(|(block, at)| block.receipt(at)))
        }
        "eth_getBlockByNumber" => block::<BlockNumberOrTag>(chain, params),
        "eth_getBlockByHash" => block::<B256>(chain, params),
        "eth_getLogs" => {
            let (filter,): (Filter,) = read(params, 1, 1)?;
            json(&chain.logs(&filter)?)
        }
        _ => tried(chain, method, params, time)
            .or_else(|| of_block(chain, method, params))
            .unwrap_or_else(|| Err(absent(method))),
    }
}

/// What would happen, if it is that which is asked. None of it stays.
fn tried(chain: &Chain, method: &str, params: Params<'_>, time: u64) -> Option<RpcResult> {
    Some(match method {
        "eth_call" => request(chain, params)
            .and_then(|(request, overlay)| json(&chain.call(&request, &overlay, time)?)),
        "eth_estimateGas" => request(chain, params).and_then(|(request, overlay)| {
            json(&U64::from(chain.estimate(&request, &overlay, time)?))
        }),
        "eth_createAccessList" => request(chain, params)
            .and_then(|(request, overlay)| json(&chain.access_list(&request, &overlay, time)?)),
        "eth_simulateV1" => simulate(chain, params, time),
        _ => return None,
    })
}

fn simulate(chain: &Chain, params: Params<'_>, time: u64) -> RpcResult {
    let (payload, at): (SimulatePayload, Option<BlockId>) = read(params, 1, 2)?;
    chain.require_newest(at.unwrap_or_default())?;
    let changed: HashSet<&Address> = payload
        .block_state_calls
        .iter()
        .filter_map(|block| block.state_overrides.as_ref())
        .flat_map(|overrides| overrides.keys())
        .collect();
    for call in payload.block_state_calls.iter().flat_map(|block| &block.calls) {
        let to = callee(call).filter(|to| !changed.contains(to));
        chain.require_deployed(to)?;
    }
    json(&chain.simulate(&payload, time).map_err(RpcError::of_simulation)?)
}

/// The address that a request calls.
fn callee(request: &TransactionRequest) -> Option<Address> {
    request.to.and_then(|to| to.to().copied())
}

/// What is in a block, if it is that which is asked. Of one that is not there it is `null`.
fn of_block(chain: &Chain, method: &str, params: Params<'_>) -> Option<RpcResult> {
    type Number = BlockNumberOrTag;
    Some(match method {
        "eth_getBlockReceipts" => read(params, 1, 1).and_then(|(at,): (BlockId,)| {
            let receipts = |it: &Block| (0..it.size()).filter_map(|at| it.receipt(at)).collect();
            json(&chain.block(at).ok().map(|it| -> Vec<_> { receipts(it) }))
        }),
        "eth_getBlockTransactionCountByNumber" => count::<Number>(chain, params, Block::size),
        "eth_getBlockTransactionCountByHash" => count::<B256>(chain, params, Block::size),
        "eth_getUncleCountByBlockNumber" => count::<Number>(chain, params, |_| 0),
        "eth_getUncleCountByBlockHash" => count::<B256>(chain, params, |_| 0),
        "eth_getTransactionByBlockNumberAndIndex" => placed::<Number>(chain, params),
        "eth_getTransactionByBlockHashAndIndex" => placed::<B256>(chain, params),
        _ => return None,
    })
}

fn count<I: DeserializeOwned + Into<BlockId>>(
    chain: &Chain,
    params: Params<'_>,
    of: impl Fn(&Block) -> usize,
) -> RpcResult {
    let (at,): (I,) = read(params, 1, 1)?;
    json(&chain.block(at.into()).ok().map(|block| U64::from(of(block))))
}

fn placed<I: DeserializeOwned + Into<BlockId>>(chain: &Chain, params: Params<'_>) -> RpcResult {
    let (at, place): (I, U64) = read(params, 2, 2)?;
    let place = usize::try_from(place.to::<u64>()).unwrap_or(usize::MAX);
    json(&chain.block(at.into()).ok().and_then(|block| block.transaction(place)))
}

fn absent(method: &str) -> RpcError {
    let name: String = method.chars().take(60).collect();
    let instead = match method {
        "eth_subscribe" | "eth_unsubscribe" => {
            " over HTTP: connect a WebSocket to ws:// at this address, or ask eth_getFilterChanges \
             again and again"
        }
        "eth_getProof" => {
            ": the headers of this chain have no state root, which a proof would lead to; read \
             eth_getBalance, eth_getCode and eth_getStorageAt"
        }
        "eth_sendTransaction" | "eth_sign" => ": it has no keys; send what is signed",
        _ => "",
    };
    RpcError::new(METHOD, format!("the method {name} does not exist here{instead}"))
}

/// The transaction that a method sends.
pub(crate) fn transaction(method: &str, params: Params<'_>) -> Option<Bytes> {
    let sends = method == "eth_sendRawTransaction";
    // silent-ok: what is wrong with the parameters is said where all are read.
    sends.then(|| read(params, 1, 1).ok()).flatten().map(|(raw,): (Bytes,)| raw)
}

/// What a method does to the chain, if it does something to it.
fn act(node: &Node, method: &str, params: Params<'_>) -> Option<Result<ChainOperation, RpcError>> {
    let time = node.time();
    Some(match method {
        "eth_sendRawTransaction" => {
            read(params, 1, 1).and_then(|(raw,): (Bytes,)| {
                // What cannot be decoded is refused where it is run.
                if let Ok(pending) = PendingTransaction::new(raw.clone()) {
                    node.chain()?.require_deployed(pending.tx.to())?;
                }
                Ok(ChainOperation::Transaction { raw, time })
            })
        }
        "automaton_fund" => read(params, 1, 1).map(|(funding,): (FundParams,)| {
            let FundParams { address: to, usdc, wei } = funding;
            ChainOperation::Fund { to, usdc: usdc.to(), wei, time }
        }),
        "evm_mine" => read(params, 0, 0).map(|[]: [u8; 0]| ChainOperation::Mine { time }),
        "evm_snapshot" => read(params, 0, 0).map(|[]: [u8; 0]| ChainOperation::Snapshot),
        "evm_revert" => {
            read(params, 1, 1).map(|(id,): (U64,)| ChainOperation::Revert { id: id.to() })
        }
        "evm_increaseTime" => read(params, 1, 1)
            .map(|(seconds,): (U64,)| ChainOperation::Advance { seconds: seconds.to() }),
        _ => return None,
    })
}

fn perform(node: &mut Node, act: ChainOperation) -> RpcResult {
    match node.act(act) {
        // Clients ask whether there was one.
        Err(ChainRefusal::NoSnapshot(_)) => json(&false),
        done => told(done?),
    }
}

fn told(outcome: OperationOutcome) -> RpcResult {
    match outcome {
        OperationOutcome::Mined(hash) => json(&hash),
        OperationOutcome::Empty => json(&"0x0"),
        OperationOutcome::Ahead(seconds) => json(&seconds),
        OperationOutcome::Kept(id) => json(&U64::from(id)),
        OperationOutcome::Reverted => json(&true),
    }
}

fn account(chain: &Chain, params: Params<'_>) -> Result<(Address, AccountInfo), RpcError> {
    let (address, at): (Address, Option<BlockId>) = read(params, 1, 2)?;
    chain.require_newest(at.unwrap_or_default())?;
    Ok((address, chain.account(address)))
}

/// A call that is only tried, and the changes under which it is.
fn request(chain: &Chain, params: Params<'_>) -> Result<(TransactionRequest, Overlay), RpcError> {
    type Wanted =
        (TransactionRequest, Option<BlockId>, Option<StateOverride>, Option<BlockOverrides>);
    let (request, at, state, block): Wanted = read(params, 1, 4)?;
    chain.require_newest(at.unwrap_or_default())?;
    let overlay = Overlay { state: state.unwrap_or_default(), block: block.unwrap_or_default() };
    chain.require_deployed(callee(&request).filter(|to| !overlay.state.contains_key(to)))?;
    Ok((request, overlay))
}

fn mined<'a>(chain: &'a Chain, params: Params<'_>) -> Result<Option<(&'a Block, usize)>, RpcError> {
    let (hash,): (B256,) = read(params, 1, 1)?;
    Ok(chain.block_of(hash))
}

/// A block that is not there is `null`.
fn block<I: DeserializeOwned + Into<BlockId>>(chain: &Chain, params: Params<'_>) -> RpcResult {
    let (at, full): (I, Option<bool>) = read(params, 1, 2)?;
    let kind = full.unwrap_or(false).into();
    json(&chain.block(at.into()).ok().map(|block| block.view(kind)))
}

/// A value as an answer.
///
/// # Errors
/// It cannot be written as JSON.
pub(crate) fn json<T: Serialize>(value: &T) -> RpcResult {
    to_raw_value(value).map_err(|error| RpcError::new(INTERNAL, error.to_string()))
}
