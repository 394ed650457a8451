//! The values that the use cases of machines take and return; see [`super::Db`].

use alloy_primitives::Address;
use automaton_core::id::MachineId;
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::time::{Span, Timestamp};
use automaton_sqlite::chain::Hash;
use bytes::Bytes;

use crate::machines::lifecycle::MachineState;
use crate::machines::tier::MachineTierSpec;

/// The unit of billing, so that no minute is paid for longer ahead.
pub const MINUTE: Span = Span::from_secs(60);
/// The longest delay of a charge. Beyond it the time between counts as a gap, in which nobody
/// checked the machine and which nobody pays.
pub const LATE_MAX: Span = Span::from_secs(120);
/// The time for which the result of a command is kept for repeated requests.
pub const RESULT_KEPT: Span = Span::from_secs(1200);
/// Bytes of results that are kept for one owner, whatever their API keys, at most.
pub const RESULT_BYTES_MAX: i64 = 64 << 20;
/// Results that are kept for one owner, at most.
pub const RESULTS_MAX: i64 = 2_000;
/// Bytes of results that are kept for all owners, at most.
pub const ALL_RESULT_BYTES_MAX: i64 = 512 << 20;
/// Results that are kept for all owners, at most.
pub const ALL_RESULTS_MAX: i64 = 10_000;
/// The most machines for each one that may run, with the stopped ones.
pub const STILL_MAX: u32 = 100;
/// Tunnels that there may be in all. Beyond it the oldest of an owner that never bought or sold
/// anything makes room.
pub const TUNNELS_MAX: i64 = 10_000;
/// Ports that a machine can have exposed.
pub const PORTS_MAX: i64 = 32;

/// A machine to be stored.
#[derive(Debug, Clone)]
pub struct NewMachine {
    /// Its id.
    pub id: MachineId,
    /// The wallet of its owner.
    pub owner: Address,
    /// Its name.
    pub name: String,
    /// Its size and price.
    pub tier: MachineTierSpec,
    /// The client's name of the request, and the hash of what it asks for.
    pub request_name: Option<String>,
    /// See there.
    pub request: Hash,
    /// The cloud's limits.
    pub limits: MachineQuota,
}

/// The cloud's limits for machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineQuota {
    /// The most machines of an owner.
    pub per_owner: u32,
    /// The most machines that run.
    pub in_all: u32,
    /// GiB of disk that may be promised in all; nothing for as many as are asked for.
    pub disk_gib: Option<u32>,
    /// The cloud's own disk has room for one more.
    pub has_room: bool,
}

/// The label of a machine's host names: the last ten characters of its id, 50 bits of chance.
#[must_use]
pub fn short_id(id: MachineId) -> String {
    let id = id.to_string();
    id[id.len().saturating_sub(10)..].to_ascii_lowercase()
}

/// The outcome of storing a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CreateOutcome {
    /// It is stored, and is to be made.
    Created(Machine),
    /// It was stored before under this name.
    Again(Machine),
    /// Something else was asked for under this name.
    OtherName,
    /// The owner has too few credits for the first period.
    Insufficient {
        /// The credits that are needed.
        required: Microcents,
        /// The credits that can be spent.
        available: Microcents,
    },
    /// The owner has as many as one may have.
    TooMany,
    /// As many run as may, there are [`STILL_MAX`] times as many, or no disk is left to promise.
    Full,
    /// The cloud's own disk has no room.
    NoRoom,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Its id.
    pub id: MachineId,
    /// The label of its host names.
    pub short_id: String,
    /// The wallet of its owner.
    pub owner: Address,
    /// Its name.
    pub name: String,
    /// Its size.
    pub tier: MachineTierSpec,
    /// The price of a month.
    pub monthly: Microcents,
    /// Its state.
    pub state: MachineState,
    /// Since when; for one that runs, when it last passed its health check.
    pub since: Timestamp,
    /// The reason for its state, if nobody asked for it.
    pub reason: Option<String>,
    /// It passed a health check at least once, so it has files.
    pub was_healthy: bool,
    /// Until when it is paid for.
    pub paid_until: Option<Timestamp>,
    /// Minutes that were charged.
    pub billed_minutes: u64,
    /// The cost of these minutes.
    pub billed: Microcents,
    /// The time of the request for it.
    pub created_at: Timestamp,
    /// It is no machine of ours but a sandbox of its owner's own, of which only the ports are here.
    /// In every other sense it is deleted.
    pub is_tunnel: bool,
}

/// The outcome of a charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChargeOutcome {
    /// It does not run, or is paid for.
    NotDue,
    /// So much was charged.
    Charged(Microcents),
    /// The owner's credits do not reach; nothing was charged.
    Broke,
}

/// A command to be run under a name.
#[derive(Debug, Clone)]
pub struct NewExecution {
    /// The hash of the API key.
    pub key: Hash,
    /// The client's name of it.
    pub name: String,
    /// The hash of the request.
    pub request: Hash,
    /// The machine that runs it.
    pub machine: MachineId,
    /// It can be run now, if it never was.
    pub may_start: bool,
}

/// The outcome of storing a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecutionOutcome {
    /// It is to be run.
    New,
    /// It was run, and this came of it.
    Done(Bytes),
    /// It is being run.
    Running,
    /// Something else was asked for under this name.
    OtherRequest,
    /// It was never run, and cannot be now; nothing is stored.
    Unstarted,
    /// As many results are kept for this owner, or for all, as may be.
    Busy,
}

/// An exposed port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Port {
    /// The port inside the machine.
    pub port: u16,
    /// The price of a request, or nothing if it is free.
    pub price: Option<MicroUsdc>,
}
