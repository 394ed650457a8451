//! Machines for rent: `/v1/sandboxes`, their states and their commands.

use std::sync::Arc;
use std::time::Duration;

use automaton_core::id::MachineId;
use automaton_core::wire::cloud::{
    CreateMachineRequest, ExecReply, ExecRequest, MachineReply, MachinesReply, MetricsReply,
    NO_WORKERS,
};
use automaton_sqlite::chain::CanonicalRow;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::NoContent;

use super::extract::{JsonBody, OwnMachine, RequestName, TypedResponse};
use crate::access::Caller;
use crate::app::{App, MachineOffering};
use crate::db::machines::{CreateOutcome, Machine, MachineQuota, NewMachine};
use crate::error::ApiError;
use crate::machines::UNCOUNTABLE;
use crate::machines::disk_space::NO_ROOM;
use crate::machines::driver::MachineCommand;
use crate::machines::lifecycle::{self, MachineEvent};
use crate::machines::runs::RunRequest;
use crate::machines::tier::{self, MachineTierSpec, TIERS};

/// The longest name of a machine, in bytes.
const NAME_BYTES_MAX: usize = 128;
/// The default limit of a command's time, in milliseconds.
const USUAL_TIMEOUT_MS: u64 = 120_000;
/// The highest limit of a command's time, in milliseconds: an hour.
const TIMEOUT_MS_MAX: u64 = 3_600_000;

pub(super) async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    RequestName(request_name): RequestName,
    JsonBody(asked): JsonBody<CreateMachineRequest>,
) -> Result<Json<MachineReply>, ApiError> {
    if asked.name.len() > NAME_BYTES_MAX {
        return Err(ApiError::invalid(format!("name is longer than {NAME_BYTES_MAX} bytes")));
    }
    let tier = MachineTierSpec::for_request(&asked).ok_or_else(too_large)?;
    let rent = app.rent()?;
    let size = [asked.vcpu, asked.memory_mb, asked.disk_gb].map(i64::from);
    let request = CanonicalRow::new("machine").text(&asked.name);
    let request =
        size.into_iter().fold(request, CanonicalRow::int).maybe(asked.region.as_deref()).hash();
    let new = NewMachine {
        id: app.ids.id(),
        owner: caller.wallet,
        name: asked.name,
        tier,
        request_name,
        request,
        limits: MachineQuota { has_room: rent.machines.has_room().await, ..rent.limits },
    };
    let machine = match app.db.create_machine(new).await.map_err(|error| app.failed(&error))? {
        CreateOutcome::Created(machine) | CreateOutcome::Again(machine) => machine,
        CreateOutcome::OtherName => {
            return Err(ApiError::conflict("this Idempotency-Key came with another sandbox"));
        }
        CreateOutcome::Insufficient { required, available } => {
            return Err(ApiError::insufficient(required, available));
        }
        CreateOutcome::TooMany => {
            let why = format!("a wallet can have {} sandboxes: delete one", rent.limits.per_owner);
            return Err(ApiError::conflict(why));
        }
        CreateOutcome::Full => return Err(no_workers("as many machines are there as can be")),
        CreateOutcome::NoRoom => return Err(no_workers(NO_ROOM)),
    };
    let machine = app.change(machine.id, None).await?;
    if machine.reason.is_some() && !machine.was_healthy {
        // Nothing of it may stay behind a refusal: clients ask again.
        app.change(machine.id, Some(MachineEvent::DeleteAsked)).await?;
        return Err(no_workers(machine.reason.as_deref().unwrap_or("it could not be started")));
    }
    Ok(Json(to_reply(&machine, rent)))
}

/// No machine can be made now; nothing was.
pub(super) fn no_workers(why: &str) -> ApiError {
    let mut error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "NO_WORKERS", NO_WORKERS);
    error.body.detail = Some(why.to_owned());
    error
}

fn to_reply(machine: &Machine, rent: &MachineOffering) -> MachineReply {
    MachineReply {
        id: machine.id.into(),
        short_id: machine.short_id.clone(),
        name: machine.name.clone(),
        status: machine.state.name().to_owned(),
        region: rent.region.clone(),
        vcpu: machine.tier.vcpu,
        memory_mb: machine.tier.memory_mb,
        disk_gb: machine.tier.disk_gb,
        monthly_cents: Some(machine.monthly.cents_ceil()),
        billed_microcents: Some(machine.billed),
        reason: machine.reason.clone(),
        created_at: machine.created_at.to_string(),
    }
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Json<MachinesReply>, ApiError> {
    let Some(rent) = &app.rent else { return Ok(Json(MachinesReply { sandboxes: Vec::new() })) };
    let machines =
        app.db.machines(Some(caller.wallet)).await.map_err(|error| app.failed(&error))?;
    let sandboxes = machines.iter().map(|machine| to_reply(machine, rent)).collect();
    Ok(Json(MachinesReply { sandboxes }))
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    OwnMachine { machine, .. }: OwnMachine,
) -> Result<Json<MachineReply>, ApiError> {
    Ok(Json(to_reply(&machine, app.rent()?)))
}

pub(super) async fn delete(
    State(app): State<Arc<App>>,
    OwnMachine { machine, .. }: OwnMachine,
) -> Result<NoContent, ApiError> {
    app.change(machine.id, Some(MachineEvent::DeleteAsked)).await?;
    Ok(NoContent)
}

pub(super) async fn stop(
    State(app): State<Arc<App>>,
    OwnMachine { machine, .. }: OwnMachine,
) -> Result<Json<MachineReply>, ApiError> {
    let machine = app.change(machine.id, Some(MachineEvent::StopAsked)).await?;
    Ok(Json(to_reply(&machine, app.rent()?)))
}

pub(super) async fn start(
    State(app): State<Arc<App>>,
    OwnMachine { caller, machine }: OwnMachine,
) -> Result<Json<MachineReply>, ApiError> {
    let required = tier::first_period(machine.monthly);
    let required = required.map_err(|error| ApiError::internal(&app.report, &error))?;
    let balance = app.db.balance(caller.wallet).await.map_err(|error| app.failed(&error))?;
    if machine.state != lifecycle::MachineState::Running && balance.available < required {
        return Err(ApiError::insufficient(required, balance.available));
    }
    let machine = app.change(machine.id, Some(MachineEvent::StartAsked)).await?;
    if machine.state == lifecycle::MachineState::Failed {
        return Err(no_workers(machine.reason.as_deref().unwrap_or("it could not be started")));
    }
    Ok(Json(to_reply(&machine, app.rent()?)))
}

pub(super) async fn exec(
    State(app): State<Arc<App>>,
    OwnMachine { caller, machine }: OwnMachine,
    RequestName(name): RequestName,
    JsonBody(ExecRequest { command, timeout }): JsonBody<ExecRequest>,
) -> Result<TypedResponse<Json<ExecReply>>, ApiError> {
    if command.trim().is_empty() || command.contains('\0') {
        return Err(ApiError::invalid("command is empty, or has a NUL in it"));
    }
    let wall = timeout.unwrap_or(USUAL_TIMEOUT_MS);
    if !(1..=TIMEOUT_MS_MAX).contains(&wall) {
        let why = format!("timeout must be from 1 to {TIMEOUT_MS_MAX} milliseconds");
        return Err(ApiError::invalid(why));
    }
    let request = CanonicalRow::new("command").text(&machine.id.to_string()).text(&command);
    let request = request.int(i64::try_from(wall).unwrap_or(i64::MAX)).hash();
    let command = MachineCommand { line: command, wall: Duration::from_millis(wall) };
    let asked = RunRequest { key: caller.key, name, request, machine, command };
    Ok(app.rent()?.machines.run(asked)?.response().await.into())
}

fn too_large() -> ApiError {
    let most = |of: fn(&MachineTierSpec) -> u32| TIERS.iter().map(of).max().unwrap_or_default();
    let vcpu = most(|tier| tier.vcpu);
    let memory = most(|tier| tier.memory_mb);
    let disk = most(|tier| tier.disk_gb);
    ApiError::invalid(format!(
        "no machine is that large: the largest has {vcpu} processors, {memory} MiB of memory and \
         {disk} GiB of disk; GET /v1/credits/pricing lists them all"
    ))
}

pub(super) async fn metrics(
    State(app): State<Arc<App>>,
    OwnMachine { machine, .. }: OwnMachine,
) -> Result<Json<MetricsReply>, ApiError> {
    let machines = &app.rent()?.machines;
    // silent-ok: what is not up uses nothing that could be told.
    let used = machines.driver.usage(machine.id).await.unwrap_or_default();
    Ok(Json(MetricsReply {
        memory_bytes: used.memory_bytes,
        memory_limit_bytes: machine.tier.memory_bytes(),
        cpu_ms: used.cpu.map(|cpu| u64::try_from(cpu.as_millis()).unwrap_or(u64::MAX)),
        processes: used.processes,
        disk_bytes: Some(machines.counted(machine.id).await).filter(|it| *it < UNCOUNTABLE),
        disk_limit_bytes: machine.tier.disk_bytes(),
        billed_minutes: machine.billed_minutes,
        billed_microcents: machine.billed,
        paid_until_ms: machine.paid_until,
        egress: used.egress,
    }))
}

impl App {
    /// Returns the machines for rent.
    pub(crate) fn rent(&self) -> Result<&MachineOffering, ApiError> {
        self.rent.as_ref().ok_or_else(|| no_workers("this cloud has no machines for rent"))
    }

    /// Lets something happen to a machine; how it is then.
    async fn change(
        &self,
        id: MachineId,
        event: Option<MachineEvent>,
    ) -> Result<Machine, ApiError> {
        let changed = self.rent()?.machines.change(id, event, None).await;
        let machine = changed.map_err(|error| self.failed(&error))?;
        machine.ok_or_else(|| ApiError::unavailable("the sandbox is gone"))
    }
}

/// Returns the sizes for rent with their prices.
pub(super) fn tiers(app: &App) -> Vec<automaton_core::wire::cloud::MachineTier> {
    let offered = app.rent.iter().flat_map(|_| TIERS);
    offered.map(|tier| tier.to_wire()).collect()
}
