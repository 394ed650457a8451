//! Filters: what clients that cannot be called back ask for again and again.
//!
//! They are of the server and not of the chain: none is in the log, and a start begins without.
//! Must never keep more than so many, nor one that nobody asks for.

use std::collections::BTreeMap;

use alloy_primitives::{B256, U64};
use alloy_rpc_types_eth::{Filter, FilterBlockOption, Log};
use serde::Serialize;

use super::error::{PARAMS, RpcError};
use super::methods::{Params, RpcResult, json};
use super::params::read;
use crate::chain::Chain;
use crate::node::Node;

/// The filters that are kept; of more, the one that was not asked for the longest goes.
const FILTERS_MAX: usize = 1_000;
/// How long one is kept that nobody asks for, in seconds.
const IDLE_MAX: u64 = 300;

/// What a filter finds.
#[derive(Debug)]
enum FilterKind {
    Blocks,
    /// Transactions that wait; here all are in a block at once.
    Transactions,
    Logs(Box<Filter>),
}

#[derive(Debug)]
struct ClientFilter {
    kind: FilterKind,
    /// The first block that its client was told nothing of.
    next: u64,
    /// When it was last asked for.
    asked: u64,
}

/// The filters of a server.
#[derive(Debug, Default)]
pub(crate) struct FilterTable {
    filters: BTreeMap<u64, ClientFilter>,
    last: u64,
}

/// What a filter has found.
#[derive(Serialize)]
#[serde(untagged)]
enum FilterFindings {
    Hashes(Vec<B256>),
    Logs(Vec<Log>),
}

impl FilterTable {
    fn add(&mut self, kind: FilterKind, next: u64, asked: u64) -> u64 {
        if self.filters.len() >= FILTERS_MAX {
            let oldest = self.filters.iter().min_by_key(|(_, it)| it.asked).map(|(id, _)| *id);
            oldest.map(|id| self.filters.remove(&id));
        }
        self.last += 1;
        self.filters.insert(self.last, ClientFilter { kind, next, asked });
        self.last
    }

    fn forget(&mut self, now: u64) {
        self.filters.retain(|_, it| now.saturating_sub(it.asked) <= IDLE_MAX);
    }

    /// The blocks after this one were taken back.
    pub(crate) fn rewind(&mut self, height: u64) {
        let first = height.saturating_add(1);
        self.filters.values_mut().for_each(|it| it.next = it.next.min(first));
    }
}

/// Answers a request that is about filters, if it is.
pub(super) fn call(node: &mut Node, method: &str, params: Params<'_>) -> Option<RpcResult> {
    Some(match method {
        "eth_newFilter" => read(params, 1, 1).and_then(|(filter,): (Filter,)| logs(node, filter)),
        "eth_newBlockFilter" => begin(node, params, FilterKind::Blocks),
        "eth_newPendingTransactionFilter" => begin(node, params, FilterKind::Transactions),
        "eth_getFilterChanges" => changes(node, params),
        "eth_getFilterLogs" => all(node, params),
        "eth_uninstallFilter" => id(params).and_then(|id| {
            node.filters.forget(node.seconds());
            json(&node.filters.filters.remove(&id).is_some())
        }),
        _ => return None,
    })
}

fn id(params: Params<'_>) -> Result<u64, RpcError> {
    read(params, 1, 1).map(|(id,): (U64,)| id.to())
}

fn unknown() -> RpcError {
    RpcError::new(-32000, "filter not found")
}

fn begin(node: &mut Node, params: Params<'_>, kind: FilterKind) -> RpcResult {
    let [] = read::<[u8; 0]>(params, 0, 0)?;
    new(node, kind)
}

fn logs(node: &mut Node, filter: Filter) -> RpcResult {
    if matches!(filter.block_option, FilterBlockOption::AtBlockHash(_)) {
        return Err(RpcError::new(PARAMS, "a filter of one block finds nothing new: eth_getLogs"));
    }
    new(node, FilterKind::Logs(Box::new(filter)))
}

fn new(node: &mut Node, kind: FilterKind) -> RpcResult {
    let (next, now) = (node.chain()?.height().saturating_add(1), node.seconds());
    node.filters.forget(now);
    json(&U64::from(node.filters.add(kind, next, now)))
}

/// What came since it was last asked for.
fn changes(node: &mut Node, params: Params<'_>) -> RpcResult {
    let (id, now) = (id(params)?, node.seconds());
    node.filters.forget(now);
    // For as long as it is looked through it is nobody's.
    let mut filter = node.filters.filters.remove(&id).ok_or_else(unknown)?;
    let (chain, since) = (node.chain()?, filter.next);
    let until = chain.height();
    let found = found(chain, &filter.kind, since, until);
    if found.is_ok() {
        (filter.next, filter.asked) = (since.max(until.saturating_add(1)), now);
    }
    node.filters.filters.insert(id, filter);
    json(&found?)
}

fn found(
    chain: &Chain,
    kind: &FilterKind,
    since: u64,
    until: u64,
) -> Result<FilterFindings, RpcError> {
    if since > until {
        return Ok(match kind {
            FilterKind::Logs(_) => FilterFindings::Logs(Vec::new()),
            _ => FilterFindings::Hashes(Vec::new()),
        });
    }
    let FilterKind::Logs(filter) = kind else {
        let mut hashes = Vec::new();
        for number in since..=until {
            let block = chain.block(number.into())?;
            match kind {
                FilterKind::Blocks => hashes.push(block.header.hash),
                _ => hashes.extend(block.tx_hashes()),
            }
        }
        return Ok(FilterFindings::Hashes(hashes));
    };
    let first = filter.get_from_block().map_or(since, |first| first.max(since));
    let last = filter.get_to_block().map_or(until, |last| last.min(until));
    if first > last {
        return Ok(FilterFindings::Logs(Vec::new()));
    }
    let range = Filter { block_option: (first..=last).into(), ..(**filter).clone() };
    Ok(FilterFindings::Logs(chain.logs(&range)?))
}

/// All that a filter of logs finds.
fn all(node: &mut Node, params: Params<'_>) -> RpcResult {
    let (id, now) = (id(params)?, node.seconds());
    node.filters.forget(now);
    let filter = node.filters.filters.get_mut(&id).ok_or_else(unknown)?;
    filter.asked = now;
    let FilterKind::Logs(filter) = &filter.kind else { return Err(unknown()) };
    let filter = filter.clone();
    json(&node.chain()?.logs(&filter)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_that_was_not_asked_for_goes_first() {
        let mut table = FilterTable::default();
        for at in 0..FILTERS_MAX as u64 {
            table.add(FilterKind::Blocks, 0, at + 1);
        }
        table.filters.get_mut(&1).unwrap().asked = 5_000;
        table.add(FilterKind::Blocks, 0, 5_000);
        assert_eq!(table.filters.len(), FILTERS_MAX);
        assert!(table.filters.contains_key(&1) && !table.filters.contains_key(&2));
        table.forget(1_000 + IDLE_MAX);
        assert_eq!(table.filters.keys().copied().collect::<Vec<_>>(), [1, 1_000, 1_001]);
    }
}
