//! The methods that alloy, viem and `cast` need, and those that move time.
//!
//! A method reads its parameters, queries the node and serialises the result. Only the newest
//! state is kept: a request for an older one is refused.

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

/// The result of a request, as JSON.
pub(super) type RpcResult = Result<Box<RawValue>, RpcError>;

/// The parameters as received.
pub(super) type Params<'a> = Option<&'a RawValue>;

/// The client version string.
const VERSION: &str = concat!("automaton-devnet/", env!("CARGO_PKG_VERSION"));

/// The parameters of `automaton_fund`.
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
/// Returns the error for the client.
pub(crate) fn call(node: &mut Node, method: &str, params: Params<'_>) -> RpcResult {
    node.recover();
    if let Some(act) = operation_of(node, method, params) {
        return perform(node, act?);
    }
    if let Some(answer) = filters::call(node, method, params) {
        return answer;
    }
    let chain = node.chain()?;
    let time = node.time();
    match method {
        "eth_chainId" => json(&U64::from(chain.id())),
        "net_version" => json(&chain.id().to_string()),
        "web3_clientVersion" => json(&VERSION),
        // The server has no keys, no peers and nothing to synchronise.
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
            json(&find_transaction(chain, params)?.and_then(|(block, at)| block.transaction(at)))
        }
        "eth_getTransactionReceipt" => {
            json(&find_transaction(chain, params)?.and_then(|(block, at)| block.receipt(at)))
        }
        "eth_getBlockByNumber" => block::<BlockNumberOrTag>(chain, params),
        "eth_getBlockByHash" => block::<B256>(chain, params),
        "eth_getLogs" => {
            let (filter,): (Filter,) = read(params, 1, 1)?;
            json(&chain.logs(&filter)?)
        }
        _ => call_tentatively(chain, method, params, time)
            .or_else(|| block_content(chain, method, params))
            .unwrap_or_else(|| Err(method_missing(method))),
    }
}

/// Answers a request for a tentative call. Nothing of it remains.
fn call_tentatively(
    chain: &Chain,
    method: &str,
    params: Params<'_>,
    time: u64,
) -> Option<RpcResult> {
    Some(match method {
        "eth_call" => read_call(chain, params)
            .and_then(|(request, overlay)| json(&chain.call(&request, &overlay, time)?)),
        "eth_estimateGas" => read_call(chain, params).and_then(|(request, overlay)| {
            json(&U64::from(chain.estimate(&request, &overlay, time)?))
        }),
        "eth_createAccessList" => read_call(chain, params)
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

/// Returns the address that a request calls.
fn callee(request: &TransactionRequest) -> Option<Address> {
    request.to.and_then(|to| to.to().copied())
}

/// Answers a request about the content of a block. A missing block gives `null`.
fn block_content(chain: &Chain, method: &str, params: Params<'_>) -> Option<RpcResult> {
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
        "eth_getTransactionByBlockNumberAndIndex" => transaction_at::<Number>(chain, params),
        "eth_getTransactionByBlockHashAndIndex" => transaction_at::<B256>(chain, params),
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

fn transaction_at<I: DeserializeOwned + Into<BlockId>>(
    chain: &Chain,
    params: Params<'_>,
) -> RpcResult {
    let (at, place): (I, U64) = read(params, 2, 2)?;
    let place = usize::try_from(place.to::<u64>()).unwrap_or(usize::MAX);
    json(&chain.block(at.into()).ok().and_then(|block| block.transaction(place)))
}

fn method_missing(method: &str) -> RpcError {
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

/// Returns the transaction that a method sends.
pub(crate) fn transaction(method: &str, params: Params<'_>) -> Option<Bytes> {
    let sends = method == "eth_sendRawTransaction";
    // silent-ok: wrong parameters are reported where all parameters are read.
    sends.then(|| read(params, 1, 1).ok()).flatten().map(|(raw,): (Bytes,)| raw)
}

/// Returns the operation of a method, if it changes the chain.
fn operation_of(
    node: &Node,
    method: &str,
    params: Params<'_>,
) -> Option<Result<ChainOperation, RpcError>> {
    let time = node.time();
    Some(match method {
        "eth_sendRawTransaction" => {
            read(params, 1, 1).and_then(|(raw,): (Bytes,)| {
                // An undecodable transaction is refused where it is run.
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
        // Clients check whether there was such a snapshot.
        Err(ChainRefusal::NoSnapshot(_)) => json(&false),
        done => outcome_json(done?),
    }
}

fn outcome_json(outcome: OperationOutcome) -> RpcResult {
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

/// Reads a tentative call and its overrides.
fn read_call(chain: &Chain, params: Params<'_>) -> Result<(TransactionRequest, Overlay), RpcError> {
    type Wanted =
        (TransactionRequest, Option<BlockId>, Option<StateOverride>, Option<BlockOverrides>);
    let (request, at, state, block): Wanted = read(params, 1, 4)?;
    chain.require_newest(at.unwrap_or_default())?;
    let overlay = Overlay { state: state.unwrap_or_default(), block: block.unwrap_or_default() };
    chain.require_deployed(callee(&request).filter(|to| !overlay.state.contains_key(to)))?;
    Ok((request, overlay))
}

fn find_transaction<'a>(
    chain: &'a Chain,
    params: Params<'_>,
) -> Result<Option<(&'a Block, usize)>, RpcError> {
    let (hash,): (B256,) = read(params, 1, 1)?;
    Ok(chain.block_of(hash))
}

/// Answers a request for a block. A missing block gives `null`.
fn block<I: DeserializeOwned + Into<BlockId>>(chain: &Chain, params: Params<'_>) -> RpcResult {
    let (at, full): (I, Option<bool>) = read(params, 1, 2)?;
    let kind = full.unwrap_or(false).into();
    json(&chain.block(at.into()).ok().map(|block| block.view(kind)))
}

/// Serialises a value as a result.
///
/// # Errors
/// Fails if it cannot be written as JSON.
pub(crate) fn json<T: Serialize>(value: &T) -> RpcResult {
    to_raw_value(value).map_err(|error| RpcError::new(INTERNAL, error.to_string()))
}
