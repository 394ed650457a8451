//! Drills: what is promised is tried on this machine, on homes made for that and
//! thrown away.
//!
//! `drill money`: four events that broke other wallets, against the real signer; a
//! crash at every point between intent and booking, with real processes; and random
//! histories, each from a seed that tells it again. `drill life`: a life from nothing
//! over death to life again ([`life`]). `drill judgement`: an attacker's model ([`siege`]). `drill
//! sandbox`: ways out of it ([`sandbox`]). Nobody's home is ever touched: what it needs a
//! drill makes itself.

pub(crate) mod drill_site;
mod events;
mod life;
mod sandbox;
mod siege;

use std::time::Duration;

use automaton::cmd::CommandContext;
use automaton::error::CliError;
use automaton::ui::{self, Format};
use automaton_core::entropy::{Entropy, SystemEntropy};
use automaton_core::error::ErrorClass;
use automaton_core::event::{Event, StampedEvent};
use automaton_core::faults::FaultPoint;
use automaton_core::money::MicroUsdc;
use automaton_lab::sim::{SimError, SimStats, Simulator};
use automaton_testkit::world::World;
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::product;

/// Time that a life with a crash may take.
const LIFE: Duration = Duration::from_secs(120);
/// Price of the credits in such a life.
const PRICE: MicroUsdc = MicroUsdc::new(5_000_000);

/// Drills.
#[derive(Debug, Subcommand)]
pub(crate) enum DrillCommand {
    /// Every payment is made at most once, within its limits, and every cent accounted for
    Money(DrillMoneyArgs),
    /// A whole life in seconds: broke, funded, poor, dead, and funded again
    Life,
    /// A model that an attacker controls gets nothing
    Judgement(siege::DrillJudgementArgs),
    /// No way out of the sandbox works, and commands leave nothing behind
    Sandbox(sandbox::DrillSandboxArgs),
}

/// Arguments of `drill money`.
#[derive(Debug, Args)]
pub(crate) struct DrillMoneyArgs {
    /// Number of random histories
    #[arg(long, value_name = "N", default_value_t = 50)]
    histories: u32,
    /// Try only histories, from this seed on [default: all else first, then from a random seed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// One thing that was tried.
#[derive(Debug, Serialize)]
struct DrillResult {
    /// The attempt.
    tried: String,
    /// True if the promise held.
    held: bool,
    /// Observation.
    found: String,
}

/// Drills, and tells each thing that was tried on a line of its own.
///
/// # Errors
/// When a promise did not hold, or something could not be tried.
pub(crate) fn run(context: &CommandContext, command: &DrillCommand) -> Result<(), CliError> {
    let mut tried = 0;
    let mut broken = 0;
    let mut tell = |one: DrillResult| {
        tried += 1;
        broken += u32::from(!one.held);
        show(context.format, &one)
    };
    match command {
        DrillCommand::Money(args) => {
            if args.seed.is_none() {
                events::all(context, &mut tell)?;
                crashes(&mut tell)?;
            }
            histories(args, &mut tell)?;
        }
        DrillCommand::Life => life::run_drill(context, &mut tell)?,
        DrillCommand::Judgement(args) => siege::run_drill(args, &mut tell)?,
        DrillCommand::Sandbox(args) => sandbox::run_drill(context, args, &mut tell)?,
    }
    ui::say("Nothing of yours was read or changed; what the drill made is gone.");
    if broken > 0 {
        let what = format!("{broken} of {tried} promises did not hold");
        return Err(CliError::new(ErrorClass::Internal, what));
    }
    Ok(())
}

fn show(format: Format, one: &DrillResult) -> Result<(), CliError> {
    format.answer(one, || {
        let held = if one.held { "held  " } else { "BROKEN" };
        format!("{held}  {}: {}", one.tried, one.found)
    })
}

/// A life that pays once, with a crash at each point of a payment.
fn crashes(tell: &mut dyn FnMut(DrillResult) -> Result<(), CliError>) -> Result<(), CliError> {
    let executable = product()?;
    let points = FaultPoint::PAYMENT.into_iter().chain(FaultPoint::SIGNER).chain(FaultPoint::CLOUD);
    for point in points {
        let world = World::new(&executable)?;
        let arguments = ["--brain", "script", "--turns", "1", "--fault", point.name()];
        let finished = world.up(&arguments)?.finish_within(LIFE)?;
        let (held, found) = judge(finished.code, &finished.events);
        let tried = format!("a crash at {point}, and a start without help");
        tell(DrillResult { tried, held, found })?;
    }
    Ok(())
}

/// Checks that a life crashed, paid once, and has books that agree.
fn judge(code: Option<i32>, events: &[StampedEvent]) -> (bool, String) {
    let died = |stamped: &&StampedEvent| {
        matches!(stamped.event, Event::AgentRestarted { .. } | Event::ServiceRestarted { .. })
    };
    let crashes = events.iter().filter(died).count();
    let books = events.iter().rev().find_map(|stamped| match &stamped.event {
        Event::BooksChecked { books, .. } => Some(*books),
        _ => None,
    });
    let Some(books) = books.filter(|_| code == Some(0)) else {
        return (false, format!("it ended with code {code:?} and without books"));
    };
    let held = crashes > 0 && books.agree() && (books.paid, books.moved) == (PRICE, Some(PRICE));
    let agree = if books.agree() { "all books agree" } else { "the books do not agree" };
    (held, format!("{crashes} crash, {} paid, {agree}", books.paid))
}

/// Random histories, one after the other.
fn histories(
    args: &DrillMoneyArgs,
    tell: &mut dyn FnMut(DrillResult) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let first = args.seed.unwrap_or_else(|| u64::from(SystemEntropy.below(u32::MAX)));
    let last = first.saturating_add(u64::from(args.histories.saturating_sub(1)));
    let simulator = Simulator::new()?;
    let mut tally = SimStats::default();
    for seed in (first..=last).take(args.histories.try_into().unwrap_or(usize::MAX)) {
        match simulator.run_seed(seed, None) {
            Ok(told) => tally.add(told),
            Err(error @ SimError::Broken { .. }) => {
                let tried = format!("the history of seed {seed}");
                let found = error.to_string();
                tell(DrillResult { tried, held: false, found })?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    if tally.histories > 0 {
        let tried = format!("random histories of the seeds {first} to {last}");
        tell(DrillResult { tried, held: true, found: tally.to_string() })?;
    }
    Ok(())
}
