//! Filters, which clients without a callback poll.
//!
//! They belong to the server and not to the chain: they are not in the log, and a restart drops
//! them. The number of filters must stay bounded, and idle ones must expire.

use std::collections::BTreeMap;

use alloy_primitives::{B256, U64};
use alloy_rpc_types_eth::{Filter, FilterBlockOption, Log};
use serde::Serialize;

use super::error::{PARAMS, RpcError};
use super::methods::{Params, RpcResult, json};
use super::params::read;
use crate::chain::Chain;
use crate::node::Node;

/// The most filters. Beyond that, the one that was polled longest ago is dropped.
const FILTERS_MAX: usize = 1_000;
/// The time after which an idle filter expires, in seconds.
const IDLE_MAX: u64 = 300;

/// The subject of a filter.
#[derive(Debug)]
enum FilterKind {
    Blocks,
    /// Waiting transactions. Here all are in a block at once.
    Transactions,
    Logs(Box<Filter>),
}

#[derive(Debug)]
struct ClientFilter {
    kind: FilterKind,
    /// The first block that its client has not seen.
    next: u64,
    /// The time of the last poll.
    asked: u64,
}

/// The filters of a server.
#[derive(Debug, Default)]
pub(crate) struct FilterTable {
    filters: BTreeMap<u64, ClientFilter>,
    last: u64,
}

/// The findings of a filter.
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

    fn drop_expired(&mut self, now: u64) {
        self.filters.retain(|_, it| now.saturating_sub(it.asked) <= IDLE_MAX);
    }

    /// Handles a revert to this height.
    pub(crate) fn rewind(&mut self, height: u64) {
        let first = height.saturating_add(1);
        self.filters.values_mut().for_each(|it| it.next = it.next.min(first));
    }
}

/// Answers a request about filters, or returns `None` if it is about something else.
pub(super) fn call(node: &mut Node, method: &str, params: Params<'_>) -> Option<RpcResult> {
    Some(match method {
        "eth_newFilter" => {
            read(params, 1, 1).and_then(|(filter,): (Filter,)| new_log_filter(node, filter))
        }
        "eth_newBlockFilter" => new_simple_filter(node, params, FilterKind::Blocks),
        "eth_newPendingTransactionFilter" => {
            new_simple_filter(node, params, FilterKind::Transactions)
        }
        "eth_getFilterChanges" => filter_changes(node, params),
        "eth_getFilterLogs" => filter_logs(node, params),
        "eth_uninstallFilter" => filter_id(params).and_then(|id| {
            node.filters.drop_expired(node.seconds());
            json(&node.filters.filters.remove(&id).is_some())
        }),
        _ => return None,
    })
}

fn filter_id(params: Params<'_>) -> Result<u64, RpcError> {
    read(params, 1, 1).map(|(id,): (U64,)| id.to())
}

fn not_found() -> RpcError {
    RpcError::new(-32000, "filter not found")
}

fn new_simple_filter(node: &mut Node, params: Params<'_>, kind: FilterKind) -> RpcResult {
    let [] = read::<[u8; 0]>(params, 0, 0)?;
    add_filter(node, kind)
}

fn new_log_filter(node: &mut Node, filter: Filter) -> RpcResult {
    if matches!(filter.block_option, FilterBlockOption::AtBlockHash(_)) {
        return Err(RpcError::new(PARAMS, "a filter of one block finds nothing new: eth_getLogs"));
    }
    add_filter(node, FilterKind::Logs(Box::new(filter)))
}

fn add_filter(node: &mut Node, kind: FilterKind) -> RpcResult {
    let next = node.chain()?.height().saturating_add(1);
    let now = node.seconds();
    node.filters.drop_expired(now);
    json(&U64::from(node.filters.add(kind, next, now)))
}

/// Returns the findings since the last poll.
fn filter_changes(node: &mut Node, params: Params<'_>) -> RpcResult {
    let id = filter_id(params)?;
    let now = node.seconds();
    node.filters.drop_expired(now);
    // It is removed from the table during the search.
    let mut filter = node.filters.filters.remove(&id).ok_or_else(not_found)?;
    let chain = node.chain()?;
    let since = filter.next;
    let until = chain.height();
    let found = find(chain, &filter.kind, since, until);
    if found.is_ok() {
        (filter.next, filter.asked) = (since.max(until.saturating_add(1)), now);
    }
    node.filters.filters.insert(id, filter);
    json(&found?)
}

fn find(
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

/// Returns everything that a filter of logs finds.
fn filter_logs(node: &mut Node, params: Params<'_>) -> RpcResult {
    let id = filter_id(params)?;
    let now = node.seconds();
    node.filters.drop_expired(now);
    let filter = node.filters.filters.get_mut(&id).ok_or_else(not_found)?;
    filter.asked = now;
    let FilterKind::Logs(filter) = &filter.kind else { return Err(not_found()) };
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
        table.drop_expired(1_000 + IDLE_MAX);
        assert_eq!(table.filters.keys().copied().collect::<Vec<_>>(), [1, 1_000, 1_001]);
    }
}
