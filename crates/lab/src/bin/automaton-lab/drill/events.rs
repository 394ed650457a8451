//! Four events that broke the ceilings of other wallets: whatever happens, what the
//! ceiling permits is signed, and not a unit more.

use std::thread;

use automaton::cmd::CommandContext;
use automaton::error::CliError;
use automaton_core::money::MicroUsdc;
use automaton_devnet::Devnet;
use automaton_signer::SignerConnection;

use super::DrillResult;
use super::drill_site::{DrillSite, SECOND, SignerProcess, ask};

/// The ceiling, and what is asked for at once.
const ALL: MicroUsdc = MicroUsdc::new(150_000_000);
const ONE: MicroUsdc = MicroUsdc::new(1_000_000);
/// Clients that ask at once.
const CLIENTS: u8 = 10;
/// A commit that is slow.
const SLOW: &str = "signer-signed+200ms";

/// One of the events.
type DrillEvent = fn(&DrillSite) -> Result<Vec<bool>, CliError>;

/// The attempts, each of which may succeed once.
const EVENTS: [(&str, DrillEvent); 4] = [
    ("spend $150, restart signer and agent, ask for $1", restart),
    ("ten clients ask for $150 at once", at_once),
    ("ten clients ask for $150 at once, with 200 ms added to every commit", at_once_and_slow),
    ("spend $150 in USDC, then ask for $1 in a second token", second_token),
];

/// Tries all of them, each on a wallet of its own, and tells each.
///
/// # Errors
/// When one cannot be tried, or not be told.
pub(super) fn all(
    context: &CommandContext,
    mut tell: impl FnMut(DrillResult) -> Result<(), CliError>,
) -> Result<(), CliError> {
    for (what, event) in EVENTS {
        let yard = DrillSite::new(context, ALL)?;
        let signed = event(&yard)?.into_iter().filter(|signed| *signed).count();
        let mut last = yard.start(1, None)?;
        let spent = match last.clients.first_mut() {
            Some(client) => client.limits()?.spent,
            None => return Err(CliError::user("the signer of a drill has no client")),
        };
        last.end()?;
        let found = format!("{signed} signed, {} in total", spent.ever);
        tell(DrillResult {
            tried: what.to_owned(),
            held: signed == 1 && spent.ever == ALL,
            found,
        })?;
    }
    Ok(())
}

fn of_each(running: &mut SignerProcess, amount: MicroUsdc) -> Result<Vec<bool>, CliError> {
    let usdc = Devnet::usdc();
    let one = |client: &mut SignerConnection| Ok(ask(client, usdc, amount)?.is_some());
    thread::scope(|scope| {
        let asking: Vec<_> =
            running.clients.iter_mut().map(|client| scope.spawn(move || one(client))).collect();
        let cut = |_| Err(CliError::user("a client of a drill was cut off"));
        asking.into_iter().map(|thread| thread.join().unwrap_or_else(cut)).collect()
    })
}

fn restart(yard: &DrillSite) -> Result<Vec<bool>, CliError> {
    let mut signed = Vec::new();
    for amount in [ALL, ONE] {
        let mut running = yard.start(1, None)?;
        signed.extend(of_each(&mut running, amount)?);
        running.end()?;
    }
    Ok(signed)
}

fn at_once(yard: &DrillSite) -> Result<Vec<bool>, CliError> {
    race(yard, None)
}

fn at_once_and_slow(yard: &DrillSite) -> Result<Vec<bool>, CliError> {
    race(yard, Some(SLOW))
}

fn race(yard: &DrillSite, fault: Option<&str>) -> Result<Vec<bool>, CliError> {
    let mut running = yard.start(CLIENTS, fault)?;
    let signed = of_each(&mut running, ALL)?;
    running.end()?;
    Ok(signed)
}

fn second_token(yard: &DrillSite) -> Result<Vec<bool>, CliError> {
    let mut running = yard.start(1, None)?;
    let mut signed = of_each(&mut running, ALL)?;
    for client in &mut running.clients {
        signed.push(ask(client, SECOND, ONE)?.is_some());
    }
    running.end()?;
    Ok(signed)
}
