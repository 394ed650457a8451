//! The subscriptions of a WebSocket, and their notifications.
//!
//! Nothing is queued: each connection remembers its last notified block, and takes the next ones
//! from the chain as fast as it reads. The number of subscriptions, and of blocks taken at a
//! time, must stay bounded.

use std::collections::{BTreeMap, VecDeque};

use alloy_primitives::{B256, U64};
use alloy_rpc_types_eth::Filter;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::error::{PARAMS, RpcError};
use super::methods::{Params, RpcResult, json};
use super::params::read;
use crate::chain::{Block, Chain};
use crate::node::Node;

/// The most subscriptions of one connection.
pub(super) const SUBSCRIPTIONS_MAX: usize = 64;
/// The most blocks notified at a time.
const BLOCKS_MAX: u64 = 16;
/// The most blocks that a connection may be behind.
pub(super) const BEHIND_MAX: u64 = 1_024;
/// The most block hashes that a connection remembers to detect reverts.
const REMEMBERED_MAX: usize = 256;

/// The subject of a subscription.
#[derive(Debug, Clone)]
enum SubscriptionSubject {
    /// The header of each new block.
    Heads,
    /// The logs of contracts.
    Logs(Box<Filter>),
    /// Transactions, which are in a block as soon as they are sent, complete or by hash.
    Transactions { whole: bool },
}

#[derive(Debug)]
struct Subscription {
    subject: SubscriptionSubject,
    /// The first block to notify.
    since: u64,
}

/// The subscriptions of a connection, and their common position.
#[derive(Debug, Default)]
pub(super) struct SubscriptionSet {
    subscriptions: BTreeMap<u64, Subscription>,
    last: u64,
    /// The first block that was not notified yet.
    next: u64,
    /// The hashes of the notified blocks, latest last.
    told: VecDeque<B256>,
}

/// The connection is too many blocks behind.
#[derive(Debug)]
pub(super) struct TooSlow;

/// The name of a subscription's subject.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum SubscriptionName {
    NewHeads,
    Logs,
    NewPendingTransactions,
}

/// A notification.
#[derive(Serialize)]
struct Notification<'a> {
    jsonrpc: &'static str,
    method: &'static str,
    params: NotificationParams<'a>,
}

#[derive(Serialize)]
struct NotificationParams<'a> {
    subscription: U64,
    result: &'a RawValue,
}

impl SubscriptionSet {
    /// Answers a request about subscriptions, or returns `None` if it is about something else.
    pub(super) fn call(
        &mut self,
        node: &mut Node,
        method: &str,
        params: Params<'_>,
    ) -> Option<RpcResult> {
        Some(match method {
            "eth_subscribe" => {
                node.recover();
                node.chain().map_err(RpcError::from).and_then(|chain| self.subscribe(chain, params))
            }
            "eth_unsubscribe" => read(params, 1, 1).and_then(|(id,): (U64,)| {
                json(&self.subscriptions.remove(&id.to::<u64>()).is_some())
            }),
            _ => return None,
        })
    }

    fn subscribe(&mut self, chain: &Chain, params: Params<'_>) -> RpcResult {
        let subject = read_subject(params)?;
        if self.subscriptions.len() >= SUBSCRIPTIONS_MAX {
            let why = format!("a connection has at most {SUBSCRIPTIONS_MAX} subscriptions");
            return Err(RpcError::new(-32005, why));
        }
        let since = chain.height().saturating_add(1);
        if self.subscriptions.is_empty() {
            self.next = since;
            self.told = VecDeque::from([chain.head()]);
        }
        self.last += 1;
        self.subscriptions.insert(self.last, Subscription { subject, since });
        json(&U64::from(self.last))
    }

    /// Returns the notifications of the next blocks, in order, and whether there are more.
    /// Reverted blocks are skipped, and their replacements are notified.
    ///
    /// # Errors
    /// Fails if the connection is too far behind.
    pub(super) fn next_notifications(
        &mut self,
        chain: &Chain,
    ) -> Result<(Vec<String>, bool), TooSlow> {
        let height = chain.height();
        self.rewind(chain);
        if self.subscriptions.is_empty() || self.next > height {
            return Ok((Vec::new(), false));
        }
        if height - self.next >= BEHIND_MAX {
            return Err(TooSlow);
        }
        let last = height.min(self.next.saturating_add(BLOCKS_MAX - 1));
        let mut news = Vec::new();
        for number in self.next..=last {
            // Every block up to the height exists.
            let Ok(block) = chain.block(number.into()) else { break };
            self.add_notifications(block, &mut news);
            self.told.push_back(block.header.hash);
            self.next = number.saturating_add(1);
        }
        let beyond = self.told.len().saturating_sub(REMEMBERED_MAX);
        self.told.drain(..beyond);
        Ok((news, self.next <= height))
    }

    /// Rewinds to the latest block that is unchanged since it was notified.
    fn rewind(&mut self, chain: &Chain) {
        let is_there = |number: u64, hash: B256| {
            chain.block(number.into()).is_ok_and(|block| block.header.hash == hash)
        };
        while let Some(hash) = self.told.back()
            && !is_there(self.next.saturating_sub(1), *hash)
        {
            self.told.pop_back();
            self.next = self.next.saturating_sub(1);
        }
        let next = self.next;
        self.subscriptions.values_mut().for_each(|it| it.since = it.since.min(next));
    }

    fn add_notifications(&self, block: &Block, news: &mut Vec<String>) {
        let due = self.subscriptions.iter().filter(|(_, it)| it.since <= block.header.number);
        for (id, subscription) in due {
            for result in subscription.subject.match_block(block) {
                let params = NotificationParams { subscription: U64::from(*id), result: &result };
                let method = "eth_subscription";
                // silent-ok: numbers and serialised JSON can always be written.
                let told = serde_json::to_string(&Notification { jsonrpc: "2.0", method, params });
                news.extend(told.ok());
            }
        }
    }
}

impl SubscriptionSubject {
    /// Returns the findings in a block, as JSON.
    fn match_block(&self, block: &Block) -> Vec<Box<RawValue>> {
        let found: Vec<RpcResult> = match self {
            Self::Heads => vec![json(&block.header)],
            Self::Logs(filter) => {
                let mut logs = Vec::new();
                block.collect_logs(filter, &mut logs);
                logs.iter().map(json).collect()
            }
            Self::Transactions { whole: false } => block.tx_hashes().map(|it| json(&it)).collect(),
            Self::Transactions { whole: true } => {
                (0..block.size()).map(|at| json(&block.transaction(at))).collect()
            }
        };
        // silent-ok: values that the chain built can be written.
        found.into_iter().filter_map(Result::ok).collect()
    }
}

/// Reads the subject of a subscription.
fn read_subject(params: Params<'_>) -> Result<SubscriptionSubject, RpcError> {
    let (name, more): (SubscriptionName, Option<Box<RawValue>>) = read(params, 1, 2)?;
    let wrong = |error: serde_json::Error| RpcError::new(PARAMS, error.to_string());
    Ok(match (name, more) {
        (SubscriptionName::NewHeads, _) => SubscriptionSubject::Heads,
        (SubscriptionName::Logs, more) => {
            let filter = more.map(|it| serde_json::from_str::<Filter>(it.get())).transpose();
            // Only new blocks are notified, whatever range the filter names.
            let Filter { address, topics, .. } = filter.map_err(wrong)?.unwrap_or_default();
            SubscriptionSubject::Logs(Box::new(Filter { address, topics, ..Filter::new() }))
        }
        (SubscriptionName::NewPendingTransactions, more) => {
            let whole = more.map(|it| serde_json::from_str::<bool>(it.get())).transpose();
            SubscriptionSubject::Transactions { whole: whole.map_err(wrong)?.unwrap_or_default() }
        }
    })
}
