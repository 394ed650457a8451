//! Machines: their rows, what they cost, their commands and ports.

use alloy_primitives::Address;
use automaton_core::id::MachineId;
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::time::{Span, Timestamp};
use automaton_sqlite::chain::Hash;
use bytes::Bytes;
use rusqlite::{Row, params};

use super::credits::hash;
use super::payments::integer;
use super::writer::DbTx;
use super::{Db, address, ledger, optional_row};
use crate::db::error::{DbError, DbTxError};
use crate::db::machines::{
    ALL_RESULT_BYTES_MAX, ALL_RESULTS_MAX, ChargeOutcome, CreateOutcome, ExecutionOutcome,
    LATE_MAX, MINUTE, Machine, MachineQuota, NewExecution, NewMachine, PORTS_MAX, Port,
    RESULT_BYTES_MAX, RESULT_KEPT, RESULTS_MAX, STILL_MAX, TUNNELS_MAX, short_id,
};
use crate::ledger::Posting;
use crate::machines::lifecycle::{MachineEvent, MachineState};
use crate::machines::tier::{self, MachineTierSpec};

impl Db {
    /// Stores a machine that is to be made, once for each request name.
    pub async fn create_machine(&self, machine: NewMachine) -> Result<CreateOutcome, DbError> {
        self.writer.run("store a machine", move |tx| create(tx, &machine)).await
    }

    /// Returns the machine with this id, deleted or not.
    pub async fn machine(&self, id: MachineId) -> Result<Option<Machine>, DbError> {
        self.writer.run("read a machine", move |tx| read(tx, id)).await
    }

    /// Returns the machines that are not deleted, of one owner or of all, newest first.
    pub async fn machines(&self, owner: Option<Address>) -> Result<Vec<Machine>, DbError> {
        self.writer.run("list machines", move |tx| list(tx, owner)).await
    }

    /// Applies an event to a machine. Returns the changed machine, or nothing if the event changes
    /// nothing. A reason stays until the owner asks for something else.
    pub async fn step_machine(
        &self,
        id: MachineId,
        event: MachineEvent,
        reason: Option<String>,
    ) -> Result<Option<Machine>, DbError> {
        self.writer.run("change a machine", move |tx| step(tx, id, event, reason)).await
    }

    /// Prepares for the start of the cloud, when no machine has a process left. A client that repeats
    /// a command that was under way gets `interrupted` as its result. Returns the number of those
    /// commands.
    pub async fn restart_machines(&self, interrupted: Bytes) -> Result<u64, DbError> {
        self.writer.run("take machines up again", move |tx| restart(tx, &interrupted)).await
    }

    /// Charges the minutes due for a machine that is up, well or not, after its first passed health
    /// check. Each minute is charged once, and none of a gap.
    pub async fn charge_machine(&self, id: MachineId) -> Result<ChargeOutcome, DbError> {
        self.writer.run("charge a machine", move |tx| charge(tx, id)).await
    }

    /// Stores that a command is to be run under a name.
    pub async fn begin_execution(
        &self,
        execution: NewExecution,
    ) -> Result<ExecutionOutcome, DbError> {
        self.writer.run("store a command", move |tx| begin(tx, &execution)).await
    }

    /// Stores the result of a command. Repeating it changes nothing.
    pub async fn end_execution(
        &self,
        key: Hash,
        name: String,
        result: Bytes,
    ) -> Result<(), DbError> {
        self.writer
            .run("store a command's result", move |tx| {
                let statement = "UPDATE executions SET result = ?3, ended_at = ?4 \
                             WHERE api_key = ?1 AND name = ?2 AND result IS NULL";
                let row = params![key.as_bytes(), name, &*result, tx.now.as_millis()];
                tx.sql.execute(statement, row)?;
                Ok(())
            })
            .await
    }

    /// Returns the tunnel of an owner, created under this id if there is none, or nothing if
    /// customers have [`TUNNELS_MAX`] tunnels.
    pub async fn tunnel(&self, owner: Address, id: MachineId) -> Result<Option<Machine>, DbError> {
        self.writer
            .run("find a tunnel", move |tx| {
                let label = short_id(id);
                let owner = owner.as_slice();
                let oldest = include_str!("sql/tunnel_oldest.sql");
                let oldest =
                    tx.sql.query_row(oldest, params![owner, TUNNELS_MAX], |row| row.get(0));
                if let Some(oldest) = optional_row::<String>(oldest)? {
                    tx.sql.execute("DELETE FROM ports WHERE machine = ?1", [&oldest])?;
                    tx.sql.execute("DELETE FROM machines WHERE id = ?1", [&oldest])?;
                }
                let now = tx.now.as_millis();
                let row = params![id.to_string(), label, owner, now, TUNNELS_MAX];
                tx.sql.execute(include_str!("sql/tunnel_insert.sql"), row)?;
                let statement = "SELECT * FROM machines WHERE owner = ?1 AND is_tunnel = 1";
                Ok(optional_row(tx.sql.query_row(statement, [owner], machine))?)
            })
            .await
    }

    /// Exposes a port of a machine at a price, which replaces the one before. Returns `false` if
    /// the machine has too many.
    pub async fn expose_port(
        &self,
        machine: MachineId,
        Port { port, price }: Port,
    ) -> Result<bool, DbError> {
        self.writer
            .run("expose a port", move |tx| {
                let price = price.map(|price| integer(price.units())).transpose()?;
                let row = params![machine.to_string(), port, price, tx.now.as_millis(), PORTS_MAX];
                tx.sql.execute(include_str!("sql/port_insert.sql"), row)?;
                Ok(exposed(tx, machine)?.iter().any(|it| it.port == port))
            })
            .await
    }

    /// Stops exposing a port. Returns whether it was exposed.
    pub async fn withdraw_port(&self, machine: MachineId, port: u16) -> Result<bool, DbError> {
        self.writer
            .run("withdraw a port", move |tx| {
                let statement = "DELETE FROM ports WHERE machine = ?1 AND port = ?2";
                Ok(tx.sql.execute(statement, params![machine.to_string(), port])? > 0)
            })
            .await
    }

    /// Returns the exposed ports of a machine, lowest first.
    pub async fn ports(&self, machine: MachineId) -> Result<Vec<Port>, DbError> {
        self.writer.run("list ports", move |tx| exposed(tx, machine)).await
    }

    /// Returns the machine with this label, if it is not deleted, or the tunnel, with the port, if
    /// it is exposed.
    pub async fn route(
        &self,
        short_id: String,
        port: u16,
    ) -> Result<Option<(Machine, Port)>, DbError> {
        self.writer
            .run("find a port", move |tx| {
                let statement = "SELECT * FROM machines WHERE short_id = ?1 \
                             AND (state <> 'deleted' OR is_tunnel = 1)";
                let row = tx.sql.query_row(statement, [short_id], machine);
                let Some(machine) = optional_row(row)? else { return Ok(None) };
                let port = exposed(tx, machine.id)?.into_iter().find(|it| it.port == port);
                Ok(port.map(|port| (machine, port)))
            })
            .await
    }
}

fn create(tx: &DbTx<'_>, new: &NewMachine) -> Result<CreateOutcome, DbTxError> {
    if let Some(name) = &new.request_name {
        let statement = "SELECT * FROM machines WHERE owner = ?1 AND request_name = ?2";
        let row = tx.sql.query_row(statement, params![new.owner.as_slice(), name], |row| {
            Ok((hash(row, "request")?, machine(row)?))
        });
        if let Some((before, machine)) = optional_row(row)? {
            return Ok(match before == new.request {
                true => CreateOutcome::Again(machine),
                false => CreateOutcome::OtherName,
            });
        }
    }
    let monthly = Microcents::from_cents(new.tier.monthly_cents)?;
    let required = tier::first_period(monthly)?;
    let available = ledger::balance(tx, new.owner)?.available;
    if available < required {
        return Ok(CreateOutcome::Insufficient { required, available });
    }
    let statement = include_str!("sql/machines_count.sql");
    let (own, runs, whole) = tx.sql.query_row(statement, [new.owner.as_slice()], |row| {
        let count = |column| row.get::<_, u32>(column);
        Ok((count("own")?, count("runs")?, count("whole")?))
    })?;
    let MachineQuota { per_owner, in_all, disk_gib, has_room } = new.limits;
    let promised = list(tx, None)?
        .iter()
        .fold(new.tier.disk_gb, |sum, machine| sum.saturating_add(machine.tier.disk_gb));
    let is_full = runs >= in_all
        || whole >= in_all.saturating_mul(STILL_MAX)
        || disk_gib.is_some_and(|most| promised > most);
    match (own >= per_owner, is_full, has_room) {
        (true, ..) => return Ok(CreateOutcome::TooMany),
        (_, true, _) => return Ok(CreateOutcome::Full),
        (.., false) => return Ok(CreateOutcome::NoRoom),
        (false, false, true) => {}
    }
    tx.sql.execute(
        include_str!("sql/machine_insert.sql"),
        params![
            new.id.to_string(),
            short_id(new.id),
            new.owner.as_slice(),
            new.name,
            new.tier.name,
            monthly.units(),
            tx.now.as_millis(),
            new.request_name,
            new.request.as_bytes()
        ],
    )?;
    Ok(CreateOutcome::Created(stored(tx, new.id)?))
}

fn read(tx: &DbTx<'_>, id: MachineId) -> Result<Option<Machine>, DbTxError> {
    let statement = "SELECT * FROM machines WHERE id = ?1";
    let mut select = tx.sql.prepare_cached(statement)?;
    Ok(optional_row(select.query_row([id.to_string()], machine))?)
}

fn stored(tx: &DbTx<'_>, id: MachineId) -> Result<Machine, DbTxError> {
    read(tx, id)?.ok_or_else(|| DbError::Missing { noun: "machine", id: id.to_string() }.into())
}

fn list(tx: &DbTx<'_>, owner: Option<Address>) -> Result<Vec<Machine>, DbTxError> {
    let statement = "SELECT * FROM machines WHERE state <> 'deleted' \
                     AND (?1 IS NULL OR owner = ?1) ORDER BY id DESC";
    let mut select = tx.sql.prepare_cached(statement)?;
    let owner = owner.as_ref().map(|owner| owner.as_slice());
    let rows = select.query_map([owner], machine)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn step(
    tx: &DbTx<'_>,
    id: MachineId,
    event: MachineEvent,
    reason: Option<String>,
) -> Result<Option<Machine>, DbTxError> {
    let Some(before) = read(tx, id)? else { return Ok(None) };
    let Some(state) = before.state.next(event) else { return Ok(None) };
    let reason = match event {
        MachineEvent::StartAsked | MachineEvent::StopAsked | MachineEvent::DeleteAsked => reason,
        _ => reason.or(before.reason),
    };
    let healthy = event == MachineEvent::Healthy && before.state != state;
    let now = tx.now.as_millis();
    let minute = MINUTE.as_millis();
    let row = params![id.to_string(), state.name(), now, reason, healthy, minute];
    tx.sql.execute(include_str!("sql/machine_step.sql"), row)?;
    if state == MachineState::Deleted {
        tx.sql.execute("DELETE FROM ports WHERE machine = ?1", [id.to_string()])?;
    }
    read(tx, id)
}

fn restart(tx: &DbTx<'_>, interrupted: &Bytes) -> Result<u64, DbTxError> {
    for machine in list(tx, None)? {
        step(tx, machine.id, MachineEvent::Restarted, None)?;
    }
    let statement = "UPDATE executions SET result = ?1, ended_at = ?2 WHERE result IS NULL";
    let cut_off = tx.sql.execute(statement, params![&**interrupted, tx.now.as_millis()])?;
    Ok(u64::try_from(cut_off).unwrap_or(u64::MAX))
}

fn charge(tx: &DbTx<'_>, id: MachineId) -> Result<ChargeOutcome, DbTxError> {
    let machine = stored(tx, id)?;
    let Some(paid_until) = machine.paid_until.filter(|_| machine.state.is_billed()) else {
        return Ok(ChargeOutcome::NotDue);
    };
    let ahead = tx.now.after(MINUTE);
    if paid_until > ahead {
        // The clock was set back: what it said before is paid, and is not waited for.
        let row = params![id.to_string(), ahead.as_millis(), 0, 0];
        tx.sql.execute(include_str!("sql/machine_charge.sql"), row)?;
        return Ok(ChargeOutcome::NotDue);
    }
    if tx.now < paid_until {
        return Ok(ChargeOutcome::NotDue);
    }
    let late = tx.now.since(paid_until) >= LATE_MAX;
    let from = if late { tx.now } else { paid_until };
    let minutes = 1 + tx.now.since(from).as_millis() / MINUTE.as_millis();
    let more = minutes.unsigned_abs();
    let amount = tier::charge(machine.monthly, machine.billed_minutes, more)?;
    if ledger::balance(tx, machine.owner)?.available < amount {
        return Ok(ChargeOutcome::Broke);
    }
    let key = format!("machine:{id}:{}", machine.billed_minutes);
    ledger::post(tx, &Posting::machine(machine.owner, amount, key)?)?;
    let until = from.after(Span::from_millis(minutes.saturating_mul(MINUTE.as_millis())));
    let row = params![id.to_string(), until.as_millis(), minutes, amount.units()];
    tx.sql.execute(include_str!("sql/machine_charge.sql"), row)?;
    Ok(ChargeOutcome::Charged(amount))
}

fn begin(tx: &DbTx<'_>, new: &NewExecution) -> Result<ExecutionOutcome, DbTxError> {
    let old = tx.now.before(RESULT_KEPT).as_millis();
    tx.sql.execute("DELETE FROM executions WHERE ended_at < ?1", [old])?;
    let statement = "SELECT request, result FROM executions WHERE api_key = ?1 AND name = ?2";
    let before = tx.sql.query_row(statement, params![new.key.as_bytes(), new.name], |row| {
        Ok((hash(row, "request")?, row.get::<_, Option<Vec<u8>>>("result")?))
    });
    match optional_row(before)? {
        Some((request, _)) if request != new.request => return Ok(ExecutionOutcome::OtherRequest),
        Some((_, Some(result))) => return Ok(ExecutionOutcome::Done(result.into())),
        Some((_, None)) => return Ok(ExecutionOutcome::Running),
        None if !new.may_start => return Ok(ExecutionOutcome::Unstarted),
        None => {}
    }
    let statement = include_str!("sql/results.sql");
    let is_full = tx.sql.query_row(statement, [new.machine.to_string()], |row| {
        let count = |column| row.get::<_, i64>(column);
        Ok(count("own")? >= RESULTS_MAX
            || count("own_bytes")? >= RESULT_BYTES_MAX
            || count("whole")? >= ALL_RESULTS_MAX
            || count("bytes")? >= ALL_RESULT_BYTES_MAX)
    })?;
    if is_full {
        return Ok(ExecutionOutcome::Busy);
    }
    let statement = "INSERT INTO executions (api_key, name, request, machine, begun_at) \
                     VALUES (?1, ?2, ?3, ?4, ?5)";
    let key = new.key.as_bytes();
    let request = new.request.as_bytes();
    let row = params![key, new.name, request, new.machine.to_string(), tx.now.as_millis()];
    tx.sql.execute(statement, row)?;
    Ok(ExecutionOutcome::New)
}

fn exposed(tx: &DbTx<'_>, machine: MachineId) -> Result<Vec<Port>, DbTxError> {
    let statement = "SELECT port, price FROM ports WHERE machine = ?1 ORDER BY port";
    let mut select = tx.sql.prepare_cached(statement)?;
    let rows = select.query_map([machine.to_string()], |row| {
        let price: Option<i64> = row.get("price")?;
        let price = price.map(|units| MicroUsdc::new(units.unsigned_abs()));
        Ok(Port { port: row.get("port")?, price })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn machine(row: &Row<'_>) -> rusqlite::Result<Machine> {
    let unknown = || rusqlite::Error::InvalidQuery;
    let (id, tier, state): (String, String, String) =
        (row.get("id")?, row.get("tier")?, row.get("state")?);
    let time = |column| row.get::<_, Option<i64>>(column);
    Ok(Machine {
        id: id.parse().map_err(|_| unknown())?,
        short_id: row.get("short_id")?,
        owner: address(row, "owner")?,
        name: row.get("name")?,
        tier: MachineTierSpec::from_name(&tier).ok_or_else(unknown)?,
        monthly: Microcents::new(row.get("monthly")?),
        state: MachineState::by_name(&state).ok_or_else(unknown)?,
        since: Timestamp::from_millis(row.get("since")?),
        reason: row.get("reason")?,
        was_healthy: time("healthy_at")?.is_some(),
        paid_until: time("paid_until")?.map(Timestamp::from_millis),
        billed_minutes: row.get::<_, i64>("billed_minutes")?.unsigned_abs(),
        billed: Microcents::new(row.get("billed")?),
        created_at: Timestamp::from_millis(row.get("created_at")?),
        is_tunnel: row.get("is_tunnel")?,
    })
}
