//! What the clients of a WebSocket wait for, and what there is to tell them.
//!
//! Nothing is queued for anybody: each connection remembers up to which block it was told, and
//! takes the next ones from the chain as fast as it reads. Must never keep more subscriptions than so
//! many, nor take more blocks at a time.

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

/// The subscriptions of one connection.
pub(super) const SUBSCRIPTIONS_MAX: usize = 64;
/// The blocks that are told at a time.
const BLOCKS_MAX: u64 = 16;
/// How many blocks a connection may be behind.
pub(super) const BEHIND_MAX: u64 = 1_024;
/// The blocks whose hashes a connection remembers, to see which were taken back.
const REMEMBERED_MAX: usize = 256;

/// What a subscription is told of.
#[derive(Debug, Clone)]
enum SubscriptionSubject {
    /// The header of each new block.
    Heads,
    /// What contracts log.
    Logs(Box<Filter>),
    /// Transactions, which are in a block as soon as they are sent; whole or by hash.
    Transactions { whole: bool },
}

#[derive(Debug)]
struct Subscription {
    subject: SubscriptionSubject,
    /// The first block that it is told of.
    since: u64,
}

/// The subscriptions of a connection, and up to where all of them were told.
#[derive(Debug, Default)]
pub(super) struct SubscriptionSet {
    subscriptions: BTreeMap<u64, Subscription>,
    last: u64,
    /// The first block that nobody was told of.
    next: u64,
    /// The hashes of the blocks before that one, the latest last.
    told: VecDeque<B256>,
}

/// It reads so slowly that it is too many blocks behind.
#[derive(Debug)]
pub(super) struct TooSlow;

/// What a subscription is named by.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum SubscriptionName {
    NewHeads,
    Logs,
    NewPendingTransactions,
}

/// What a client is told without asking.
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
    /// Answers a request that is about subscriptions, if it is.
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
        let subject = subject(params)?;
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

    /// What there is to tell of the next blocks, and whether there are more. In the order of
    /// blocks; blocks that were taken back are told of no more, and those that came in their
    /// place are.
    ///
    /// # Errors
    /// It is too far behind.
    pub(super) fn news(&mut self, chain: &Chain) -> Result<(Vec<String>, bool), TooSlow> {
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
            // A block up to the height is there.
            let Ok(block) = chain.block(number.into()) else { break };
            self.tell(block, &mut news);
            self.told.push_back(block.header.hash);
            self.next = number.saturating_add(1);
        }
        let beyond = self.told.len().saturating_sub(REMEMBERED_MAX);
        self.told.drain(..beyond);
        Ok((news, self.next <= height))
    }

    /// Goes back to the latest block that is still as it was told.
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

    fn tell(&self, block: &Block, news: &mut Vec<String>) {
        let due = self.subscriptions.iter().filter(|(_, it)| it.since <= block.header.number);
        for (id, subscription) in due {
            for result in subscription.subject.found(block) {
                let params = NotificationParams { subscription: U64::from(*id), result: &result };
                let method = "eth_subscription";
                // silent-ok: numbers and JSON that was written already can always be written.
                let told = serde_json::to_string(&Notification { jsonrpc: "2.0", method, params });
                news.extend(told.ok());
            }
        }
    }
}

impl SubscriptionSubject {
    /// What it finds in a block, as JSON.
    fn found(&self, block: &Block) -> Vec<Box<RawValue>> {
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
        // silent-ok: what the chain made itself can be written.
        found.into_iter().filter_map(Result::ok).collect()
    }
}

/// What a client subscribes to, as it names it.
fn subject(params: Params<'_>) -> Result<SubscriptionSubject, RpcError> {
    let (name, more): (SubscriptionName, Option<Box<RawValue>>) = read(params, 1, 2)?;
    let wrong = |error: serde_json::Error| RpcError::new(PARAMS, error.to_string());
    Ok(match (name, more) {
        (SubscriptionName::NewHeads, _) => SubscriptionSubject::Heads,
        (SubscriptionName::Logs, more) => {
            let filter = more.map(|it| serde_json::from_str::<Filter>(it.get())).transpose();
            // It is told of new blocks, whichever it names.
            let Filter { address, topics, .. } = filter.map_err(wrong)?.unwrap_or_default();
            SubscriptionSubject::Logs(Box::new(Filter { address, topics, ..Filter::new() }))
        }
        (SubscriptionName::NewPendingTransactions, more) => {
            let whole = more.map(|it| serde_json::from_str::<bool>(it.get())).transpose();
            SubscriptionSubject::Transactions { whole: whole.map_err(wrong)?.unwrap_or_default() }
        }
    })
}
