//! Views of the automaton's state.

use alloy_primitives::Address;
use automaton_core::alert::Alert;
use automaton_core::id::{AutomatonId, RemoteMachineId};
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::record::SleepState;
use automaton_core::snapshot::SnapshotRecord;
use automaton_core::state::AgentState;
use automaton_core::tier::SurvivalTier;
use automaton_core::time::{Span, Timestamp};
use automaton_core::vitals::Vitals;
use automaton_core::wire::control::LiveStatus;
use automaton_store::InboxCounts;
use schemars::JsonSchema;
use serde::Serialize;

/// The output of `status`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum StatusOutput<'a> {
    /// An automaton that was started once.
    Started(&'a StatusView),
    /// An automaton that was never started.
    NotStarted(&'a NotStartedView),
}

/// An automaton that was never started.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct NotStartedView {
    /// The folder of the automaton.
    pub(crate) home: String,
    /// Its name.
    pub(crate) name: String,
    /// False; the same as `started`, under its older name.
    pub(crate) born: bool,
    /// False.
    pub(crate) started: bool,
}

/// The state of an automaton.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct StatusView {
    /// The folder of the automaton.
    pub(crate) home: String,
    /// Its id.
    pub(crate) automaton: AutomatonId,
    /// Its name.
    pub(crate) name: String,
    /// Its state.
    pub(crate) state: AgentState,
    /// The address of its wallet; `null` without one.
    #[schemars(with = "Option<String>")]
    pub(crate) address: Option<Address>,
    /// The address of its creator; `null` if it is not named.
    pub(crate) creator: Option<String>,
    /// The rented machine that its commands run on; `null` for a sandbox on this one.
    pub(crate) sandbox: Option<String>,
    /// Time of the first start, in milliseconds since 1970.
    pub(crate) born_at: Timestamp,
    /// Turns so far.
    pub(crate) turns: u64,
    /// The sleep that it is in; `null` if it is awake.
    pub(crate) sleep: Option<SleepState>,
    /// Start and reason of a hibernation, in words; `null` without one.
    pub(crate) hibernation: Option<String>,
    /// State of the process; `null` while none runs.
    pub(crate) running: Option<LiveStatus>,
    /// Credits and USDC, by the latest readings.
    pub(crate) balance: BalanceView,
    /// The same as `balance`, under its older name.
    pub(crate) means: BalanceView,
    /// The task of the heartbeat that is due first.
    pub(crate) next_heartbeat: Option<NextTaskView>,
    /// Alerts whose condition holds.
    pub(crate) alerts: Vec<Alert>,
    /// The model and the origin of that setting, in words.
    pub(crate) brain: String,
    /// Limits of memory and processes of commands, in words.
    pub(crate) limits: String,
    /// Messages by state.
    pub(crate) inbox: InboxCountsView,
    /// Causes to wake that no wake has taken yet.
    pub(crate) wakes_pending: usize,
    /// Cost in all, in words.
    pub(crate) spent: String,
    /// Revenue.
    pub(crate) earned: String,
    /// Paid requests to its ports.
    pub(crate) sold: Vec<PortSalesView>,
    /// Ports that are open to everybody while it runs.
    pub(crate) published: Vec<PublishedPortView>,
    /// The newest snapshot of its workspace; `null` without one.
    pub(crate) snapshot: Option<SnapshotRecord>,
    /// The record and its audit chain.
    pub(crate) record: RecordView,
    /// Version of the program.
    pub(crate) version: &'static str,
}

/// Paid requests to one port.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct PortSalesView {
    /// The rented machine.
    pub(crate) machine: RemoteMachineId,
    /// The port.
    pub(crate) port: u16,
    /// Requests that were paid.
    pub(crate) sales: u64,
    /// USDC received.
    pub(crate) amount: MicroUsdc,
    /// Time of the latest, in milliseconds since 1970.
    pub(crate) last_at: Timestamp,
}

/// A port that is open to everybody.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct PublishedPortView {
    /// The port.
    pub(crate) port: u16,
    /// Its public address.
    pub(crate) url: String,
    /// USDC a request; `null` for nothing.
    pub(crate) price_usdc: Option<String>,
}

/// The record and its audit chain.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct RecordView {
    /// Size of the database.
    pub(crate) bytes: u64,
    /// Links of the audit chain.
    pub(crate) chain_links: u64,
    /// True if the chain is unbroken.
    pub(crate) chain_whole: bool,
    /// The first problem of the chain.
    pub(crate) chain_problem: Option<String>,
}

/// Credits and USDC, by the latest readings; `null` for a balance that was never read.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct BalanceView {
    /// Survival tier.
    pub(crate) tier: Option<SurvivalTier>,
    /// Credits.
    pub(crate) credits: Option<Microcents>,
    /// USDC of the wallet.
    pub(crate) usdc: Option<MicroUsdc>,
    /// Time of the reading, in milliseconds since 1970.
    pub(crate) read_at: Option<Timestamp>,
    /// Age of the reading, in milliseconds.
    pub(crate) age_ms: Option<i64>,
    /// Milliseconds since credits could not pay for the cheapest call; `null` if they can.
    pub(crate) broke_for_ms: Option<i64>,
    /// Start of the low-compute mode; `null` if it was not chosen.
    pub(crate) lives_cheaply_since: Option<Timestamp>,
}

impl BalanceView {
    /// Builds the view of the latest readings.
    pub(crate) fn from_vitals(vitals: &Vitals, now: Timestamp) -> Self {
        let Vitals { credits, usdc, read_at, broke_for, thrift, .. } = *vitals;
        Self {
            tier: vitals.tier(),
            credits,
            usdc,
            read_at,
            age_ms: read_at.map(|at| now.since(at).as_millis()),
            broke_for_ms: broke_for.map(Span::as_millis),
            lives_cheaply_since: thrift.map(|thrift| thrift.since),
        }
    }
}

/// The task of the heartbeat that is due first.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct NextTaskView {
    /// Its name.
    pub(crate) task: String,
    /// Its time, in milliseconds since 1970; after a failed run it may be the retry.
    pub(crate) at: Timestamp,
}

/// Messages by state.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub(crate) struct InboxCountsView {
    /// Messages that wait.
    pub(crate) received: u64,
    /// Messages that a turn reads.
    pub(crate) in_progress: u64,
    /// Messages that are answered.
    pub(crate) processed: u64,
    /// Messages that were given up.
    pub(crate) failed: u64,
}

impl From<InboxCounts> for InboxCountsView {
    fn from(row: InboxCounts) -> Self {
        let InboxCounts { received, in_progress, processed, failed } = row;
        Self { received, in_progress, processed, failed }
    }
}
