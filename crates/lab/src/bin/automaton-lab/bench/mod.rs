//! `bench`: how fast it is on this machine. Of a life tells [`life`], of the injection
//! guard [`guard`], of the memory [`memory`], of streams [`inference`], of decisions [`policy`], of tasks [`work`]; this is `bench money`.
//!
//! Signatures by the real signer, settlements on a dev chain through a cloud,
//! transfers in the cloud's ledger, and bare loops of the EVM as the yardsticks, each
//! with the peak of its memory. All of it on homes made for that, which go away.

mod guard;
mod inference;
mod jobs;
mod ledger;
mod life;
mod memory;
mod mock;
mod model;
mod model_tasks;
mod policy;
mod recall_pairs;
mod sandbox;
mod settle;
mod soak;
mod work;

use std::fmt::Display;
use std::fs;
use std::time::Duration;

use automaton::cmd::CommandContext;
use automaton::error::CliError;
use automaton_core::money::MicroUsdc;
use automaton_devnet::Devnet;
use automaton_devnet::baseline::BaselineChain;
use clap::Subcommand;
use serde::Serialize;
use tokio::time::Instant;

use crate::drill::drill_site::{DrillSite, ask};

/// Duration of each measurement.
const LASTS: Duration = Duration::from_secs(3);
/// A ceiling that nothing here reaches.
const NO_CEILING: MicroUsdc = MicroUsdc::new(1_000_000_000_000_000);
/// Amount of each signature.
const UNIT: MicroUsdc = MicroUsdc::new(1);

/// Benches.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Signatures, settlements and transfers a second
    Money,
    /// The injection guard: attacks found among honest texts, and its speed
    Guard(guard::BenchGuardArgs),
    /// Overhead of a cloud for the streams of a model, one by one and 500 at once
    Inference,
    /// The memory: items found again among many, and its speed
    Memory(memory::BenchMemoryArgs),
    /// Choice of tools by the model of an automaton: 45 questions, each of which one call answers
    Model(model::ModelBenchArgs),
    /// Calls that are judged, and recorded, a second
    Policy,
    /// Start and end of a command in the sandbox, in bubblewrap, and in none
    Sandbox,
    /// Which usual jobs of developers work in the sandbox of commands: builds, tests, servers
    Jobs(jobs::BenchJobsArgs),
    /// Cost of a life for the machine, against a scripted world
    Run(life::BenchRunArgs),
    /// What a life of real processes holds on to over minutes or days: memory, open files, record
    Soak(soak::BenchSoakArgs),
    /// Tasks that get done, by context window: their solvers know only what is shown
    Work(work::BenchWorkArgs),
}

/// Rate of an operation.
#[derive(Debug, Clone, Copy, Serialize)]
struct BenchRate {
    done: u64,
    in_ms: u64,
    per_second: u64,
    /// The most memory that the processes in question had, in KiB.
    peak_kib: u64,
}

impl BenchRate {
    fn new(done: u64, since: Instant, pids: &[i32]) -> Self {
        Self::lasting(done, since.elapsed(), pids)
    }

    fn lasting(done: u64, took: Duration, pids: &[i32]) -> Self {
        let in_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).max(1);
        let per_second = done.saturating_mul(1000) / in_ms;
        let peak_kib = pids.iter().filter_map(|pid| proc_number(pid, "status", "VmHWM:")).sum();
        Self { done, in_ms, per_second, peak_kib }
    }
}

/// Results.
#[derive(Debug, Serialize)]
struct SettlementMeasurement {
    /// Payments that the signer signed, one after the other.
    intents: BenchRate,
    /// Payments that a cloud took and settled on the dev chain.
    settlements: BenchRate,
    /// Transfers in the cloud's ledger.
    ledger_transfers: BenchRate,
    /// The transactions of those settlements once more, by the EVM alone.
    bare_settlements: BenchRate,
    /// Transfers of the token by the EVM alone.
    bare_transfers: BenchRate,
    /// Settlements, of a hundred bare transfers.
    settlements_percent: u64,
    /// Settlements, of a hundred of the same bare transactions.
    settlements_percent_of_same: u64,
}

/// Measures, and tells.
///
/// # Errors
/// When something cannot be measured.
pub(crate) fn run(context: &CommandContext, command: &BenchCommand) -> Result<(), CliError> {
    match command {
        BenchCommand::Run(args) => return life::run(context, args),
        BenchCommand::Soak(args) => return soak::run(context, args),
        BenchCommand::Work(args) => return work::run(context, args),
        BenchCommand::Guard(args) => return guard::run(context, args),
        BenchCommand::Inference => return inference::run(context),
        BenchCommand::Memory(args) => return memory::run(context, args),
        BenchCommand::Model(args) => return model::run(context, args),
        BenchCommand::Policy => return policy::run(context),
        BenchCommand::Sandbox => return sandbox::run(context),
        BenchCommand::Jobs(args) => return jobs::run(context, args),
        BenchCommand::Money => {}
    }
    let intents = intents(context)?;
    let (settlements, bare_settlements) = settle::measure(context)?;
    let ledger_transfers = ledger::measure(context)?;
    let bare_transfers = bare()?;
    let percent = |of: BenchRate| settlements.per_second.saturating_mul(100) / of.per_second.max(1);
    let measured = SettlementMeasurement {
        intents,
        settlements,
        ledger_transfers,
        bare_settlements,
        bare_transfers,
        settlements_percent: percent(bare_transfers),
        settlements_percent_of_same: percent(bare_settlements),
    };
    context.format.answer(&measured, || {
        let line = |what: &str, rate: BenchRate| {
            let mib = rate.peak_kib / 1024;
            format!("{:>8} {what} a second, with at most {mib} MiB", rate.per_second)
        };
        [
            line("intents signed", measured.intents),
            line("payments settled on the dev chain", measured.settlements),
            line("transfers in the cloud's ledger", measured.ledger_transfers),
            line("of the same transactions by the EVM alone", measured.bare_settlements),
            line("transfers by the EVM alone", measured.bare_transfers),
            format!(
                "{:>8} settlements for a hundred of the same transactions, {} for a hundred \
                 bare transfers",
                measured.settlements_percent_of_same, measured.settlements_percent
            ),
        ]
        .join("\n")
    })
}

/// Payments signed by a signer's process.
fn intents(context: &CommandContext) -> Result<BenchRate, CliError> {
    let yard = DrillSite::new(context, NO_CEILING)?;
    let mut running = yard.start(1, None)?;
    let pid = running.pid();
    let began = Instant::now();
    let mut done = 0;
    while began.elapsed() < LASTS {
        for client in &mut running.clients {
            done += u64::from(ask(client, Devnet::usdc(), UNIT)?.is_some());
        }
    }
    let rate = BenchRate::new(done, began, &[pid]);
    running.end()?;
    Ok(rate)
}

/// Transfers of the token in memory.
fn bare() -> Result<BenchRate, CliError> {
    forget_peak();
    let failed = |error| CliError::internal("the yardstick cannot be laid", &error);
    let mut yardstick = BaselineChain::new().map_err(failed)?;
    let began = Instant::now();
    let mut done = 0;
    while began.elapsed() < LASTS {
        yardstick.transfer(done).map_err(failed)?;
        done += 1;
    }
    Ok(BenchRate::new(done, began, &[own_pid()]))
}

/// Our own process.
fn own_pid() -> i32 {
    i32::try_from(std::process::id()).unwrap_or(0)
}

/// Memory of a process, in KiB, as a file of the system's has it; nothing where it may not
/// be read, or does not say.
fn proc_number(pid: impl Display, file: &str, key: &str) -> Option<u64> {
    // silent-ok: what cannot be read, or is no number, is not known.
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    // silent-ok: as above.
    line.split_whitespace().next()?.parse().ok()
}

/// Has the peak of our own memory begin anew.
fn forget_peak() {
    // silent-ok: where the system does not do it, the peak is that of all before.
    fs::write("/proc/self/clear_refs", "5").ok();
}
