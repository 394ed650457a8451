//! What the cloud stores of machines, as use cases; see [`super::Db`].

use alloy_primitives::Address;
use automaton_core::id::MachineId;
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::time::{Span, Timestamp};
use automaton_sqlite::chain::Hash;
use bytes::Bytes;

use super::DbFuture;
use crate::machines::lifecycle::{MachineEvent, MachineState};
use crate::machines::tier::MachineTierSpec;

/// What is billed at a time, so no minute is paid for longer ahead.
pub const MINUTE: Span = Span::from_secs(60);
/// How late a charge may be before the time between counts as a gap, in which nobody looked and
/// which nobody pays.
pub const LATE_MAX: Span = Span::from_secs(120);
/// How long the result of a command is kept for whoever asks again.
pub const RESULT_KEPT: Span = Span::from_secs(1200);
/// Bytes of results that are kept for one owner, whatever their API keys, at most.
pub const RESULT_BYTES_MAX: i64 = 64 << 20;
/// Results that are kept for one owner, at most.
pub const RESULTS_MAX: i64 = 2_000;
/// Bytes of results that are kept for all owners, at most.
pub const ALL_RESULT_BYTES_MAX: i64 = 512 << 20;
/// Results that are kept for all owners, at most.
pub const ALL_RESULTS_MAX: i64 = 10_000;
/// For each machine that may run there may be so many, stopped ones among them.
pub const STILL_MAX: u32 = 100;
/// Tunnels that there may be in all. Beyond it the oldest of an owner that never bought or sold
/// anything makes room.
pub const TUNNELS_MAX: i64 = 10_000;
/// Ports that a machine can have exposed.
pub const PORTS_MAX: i64 = 32;

/// The use cases of machines.
pub trait MachineDb: Send + Sync {
    /// Stores a machine that is to be made. Under the same name it is the same.
    fn create_machine(&self, machine: NewMachine) -> DbFuture<'_, CreateOutcome>;
    /// The machine with this id, deleted or not.
    fn machine(&self, id: MachineId) -> DbFuture<'_, Option<Machine>>;
    /// The machines that are not deleted, of one owner or of all, newest first.
    fn machines(&self, owner: Option<Address>) -> DbFuture<'_, Vec<Machine>>;
    /// Lets something happen to a machine; how it is then, or nothing when that changes nothing.
    /// A reason stays until the owner asks for something else.
    fn step_machine(
        &self,
        id: MachineId,
        event: MachineEvent,
        reason: Option<String>,
    ) -> DbFuture<'_, Option<Machine>>;
    /// The cloud starts: no machine's process is left, and whoever asks again for a command
    /// that was under way gets this result. Gives the number of those commands.
    fn restart_machines(&self, interrupted: Bytes) -> DbFuture<'_, u64>;
    /// Charges what is due for a machine that is up, well or not, after its first passed health
    /// check: each minute once, and none of a gap.
    fn charge_machine(&self, id: MachineId) -> DbFuture<'_, ChargeOutcome>;

    /// Stores that a command is to be run under a name.
    fn begin_execution(&self, execution: NewExecution) -> DbFuture<'_, ExecutionOutcome>;
    /// Stores what came of it. Repeating it changes nothing.
    fn end_execution(&self, key: Hash, name: String, result: Bytes) -> DbFuture<'_, ()>;

    /// The tunnel of an owner, made under this id if there is none; nothing where there are
    /// [`TUNNELS_MAX`] of customers.
    fn tunnel(&self, owner: Address, id: MachineId) -> DbFuture<'_, Option<Machine>>;
    /// Exposes a port of a machine at a price, which takes the place of the one before;
    /// `false` when it has too many.
    fn expose_port(&self, machine: MachineId, port: Port) -> DbFuture<'_, bool>;
    /// Exposes it no more; whether it was.
    fn withdraw_port(&self, machine: MachineId, port: u16) -> DbFuture<'_, bool>;
    /// The exposed ports of a machine, lowest first.
    fn ports(&self, machine: MachineId) -> DbFuture<'_, Vec<Port>>;
    /// The machine with this label, if it is not deleted, or the tunnel, and its port, if it is
    /// exposed.
    fn route(&self, short_id: String, port: u16) -> DbFuture<'_, Option<(Machine, Port)>>;
}

/// A machine to be stored.
#[derive(Debug, Clone)]
pub struct NewMachine {
    /// Its id.
    pub id: MachineId,
    /// Whose it is.
    pub owner: Address,
    /// Its name.
    pub name: String,
    /// Its size and price.
    pub tier: MachineTierSpec,
    /// The client's name of the request, and the hash of what it asks for.
    pub request_name: Option<String>,
    /// See there.
    pub request: Hash,
    /// What the cloud has for machines.
    pub limits: MachineQuota,
}

/// What a cloud has for machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineQuota {
    /// How many an owner may have.
    pub per_owner: u32,
    /// How many may run in all.
    pub in_all: u32,
    /// GiB of disk that may be promised in all; nothing for as many as are asked for.
    pub disk_gib: Option<u32>,
    /// Whether its own disk has room for one more.
    pub has_room: bool,
}

/// The label of a machine's host names: the last ten characters of its id, 50 bits of chance.
#[must_use]
pub fn short_id(id: MachineId) -> String {
    let id = id.to_string();
    id[id.len().saturating_sub(10)..].to_ascii_lowercase()
}

/// How storing a machine ended.
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
        /// What would be needed.
        required: Microcents,
        /// What can be spent.
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
    /// Whose it is.
    pub owner: Address,
    /// Its name.
    pub name: String,
    /// Its size.
    pub tier: MachineTierSpec,
    /// The price of a month.
    pub monthly: Microcents,
    /// Where it stands.
    pub state: MachineState,
    /// Since when; for one that runs, when it last passed its health check.
    pub since: Timestamp,
    /// Why, where nobody asked for it.
    pub reason: Option<String>,
    /// Whether it ever passed a health check, so that it has files.
    pub was_healthy: bool,
    /// Until when it is paid for.
    pub paid_until: Option<Timestamp>,
    /// Minutes that were charged.
    pub billed_minutes: u64,
    /// What they cost.
    pub billed: Microcents,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// Whether it is no machine of ours: a sandbox of its owner's own, of which there are the
    /// ports alone. It is deleted in every other sense.
    pub is_tunnel: bool,
}

/// How charging ended.
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
    /// Where.
    pub machine: MachineId,
    /// Whether it can be run now, if it never was.
    pub may_start: bool,
}

/// How storing a command ended.
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
    /// What a request costs; nothing, where it is free.
    pub price: Option<MicroUsdc>,
}
