//! `cloud`: a control plane of one's own, until it is told to stop.
//!
//! The first line says where it listens, so that a script can start many; what
//! the operator should know goes to stderr, a sentence a line.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::Address;
use automaton_cloud::db::{Refund, UnclaimedCredits};
use automaton_cloud::{CloudConfig, CloudDeps, CloudServer};
use automaton_core::entropy::SystemEntropy;
use automaton_core::tier::SurvivalTier;
use automaton_core::time::SystemClock;
use automaton_core::wire::cloud::StatusReport;
use automaton_sandbox::Launcher;
use automaton_sandbox::process::Signals;
use clap::{Args, Subcommand, ValueHint};

use super::payment::CloudKey;
use super::provision::client_of;
use super::wallet::keystore_of;
use super::{CommandContext, print};
use crate::descriptor::StopSignals;
use crate::diagnostics::DiagnosticsArgs;
use crate::error::CliError;
use crate::process;
use crate::role::signer::RunningSigner;
use crate::role::{agent, gas};
use crate::ui::text::{plain, short};
use crate::ui::{self, Format};
use crate::view::wallet::{CloudView, RefundView, UnclaimedCreditsView, UnclaimedListView};

/// Time that running requests may take after a stop.
const STOP_WITHIN: Duration = Duration::from_secs(10);

/// Arguments of `cloud`.
#[derive(Debug, Args)]
#[command(subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
pub(crate) struct CloudArgs {
    #[command(subcommand)]
    command: Option<CloudCommand>,
    /// The cloud's configuration file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, required = true)]
    config: Option<PathBuf>,
    /// Address to listen at, instead of the configuration's; port 0 for any
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Database, instead of the configuration's
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    data: Option<PathBuf>,
    /// Diagnostics.
    #[command(flatten)]
    diagnostics: DiagnosticsArgs,
    /// Rehearse a crash at a point, on a folder of data made for that.
    #[arg(long, hide = true, value_name = "POINT[:N]")]
    fault: Option<String>,
}

/// Commands of an operator to a cloud, and questions of a creator.
#[derive(Debug, Subcommand)]
enum CloudCommand {
    /// Give a purchase or a charge back, once; the cloud may run meanwhile
    Refund {
        /// Its configuration
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        config: PathBuf,
        /// Database, instead of the configuration's
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        data: Option<PathBuf>,
        /// Which: payment:NUMBER or posting:NUMBER, as the account's history names it
        #[arg(value_name = "WHICH")]
        what: Refund,
    },
    /// List credits that were given to wallets which never signed in; they wait for them
    Unclaimed {
        /// Its configuration
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        config: PathBuf,
        /// Database, instead of the configuration's
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        data: Option<PathBuf>,
    },
    /// Show what an automaton last reported of itself
    Status {
        /// Address of the automaton [default: that of the home]
        address: Option<Address>,
    },
    /// Print the OpenAPI document of its routes
    Openapi,
}

/// Shows the last status report of an automaton, read with the account of the home.
fn status(context: &CommandContext, of: Option<Address>) -> Result<(), CliError> {
    let (home, file) = context.inhabited()?;
    let found = CloudKey::find(context, &home, &file)?;
    let cloud = client_of(&found.cloud)?;
    let own = || keystore_of(&home)?.address().ok_or_else(|| CliError::user("whose? Name it"));
    let address = of.map_or_else(own, Ok)?;
    let reply = process::runtime()?.block_on(cloud.status(&found.key, address));
    let reply = reply.map_err(|error| found.explain(error.into()))?;
    context.format.answer(&reply, || {
        let StatusReport {
            name, state, tier, credits_microcents, turns, at_ms, started_at_ms, ..
        } = &reply.status;
        let tier = tier.map_or("unknown", SurvivalTier::name);
        let credits = credits_microcents.map_or_else(|| "unknown".to_owned(), |c| c.to_string());
        let name = short(name, 64);
        let uptime = started_at_ms.map(|started| format!(", up for {}", at_ms.since(started)));
        let uptime = uptime.unwrap_or_default();
        format!(
            "{name} ({address}) is {state}{uptime}, {turns} turns; credits {credits} ({tier}); \
             as of {at_ms}"
        )
    })
}

/// Reads a configuration; `data` stands in for what it says.
fn read(path: &Path, data: Option<&PathBuf>) -> Result<CloudConfig, CliError> {
    let mut config = CloudConfig::read(path)?;
    if let Some(data) = data {
        config.data.clone_from(data);
    }
    Ok(config)
}

/// Runs a cloud until a signal says stop, or does something to its ledger.
pub(crate) fn run(context: &CommandContext, args: &CloudArgs) -> Result<(), CliError> {
    match &args.command {
        Some(CloudCommand::Refund { config, data, what }) => {
            return give_back(context.format, &read(config, data.as_ref())?, *what);
        }
        Some(CloudCommand::Unclaimed { config, data }) => {
            return list_unclaimed(context, &read(config, data.as_ref())?);
        }
        Some(CloudCommand::Status { address }) => return status(context, *address),
        Some(CloudCommand::Openapi) => return print::json_document(&automaton_cloud::openapi()),
        None => {}
    }
    args.diagnostics.start(&context.environment, "cloud")?;
    // Before any thread starts, so that none of them takes the signal's default.
    let signals = Signals::receive()?;
    let given = args.config.as_ref().ok_or_else(|| CliError::user("--config is missing"))?;
    let mut config = read(given, args.data.as_ref())?;
    config.listen = args.listen.unwrap_or(config.listen);
    let fault = args.fault.as_deref().map(|text| (text, config.data.as_path()));
    let executable = process::executable()?;
    let signer = gas::start(&executable, &config)?;
    let deps = CloudDeps {
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        report: Arc::new(|sentence| ui::say(&plain(&sentence))),
        faults: agent::armed(fault)?,
        launcher: Some(Launcher::new(executable)),
    };
    process::runtime()?.block_on(serve(context.format, config, signer, deps, &signals))
}

fn give_back(format: Format, config: &CloudConfig, what: Refund) -> Result<(), CliError> {
    let refunding = automaton_cloud::refund(config, Arc::new(SystemClock), what);
    let refunded = process::runtime()?.block_on(refunding)?;
    let wallet = refunded.wallet;
    let amount = refunded.amount;
    let owed = refunded.owed();
    let view = RefundView {
        refunded: what.to_string(),
        wallet,
        amount_microcents: amount,
        owed_to: owed.map(|(payer, _)| payer),
        owed_usdc: owed.map(|(_, usdc)| usdc),
    };
    format.answer(&view, || match owed {
        Some((payer, usdc)) => format!(
            "{what} is given back: {amount} of credits were taken from {wallet}; send {usdc} to {payer}"
        ),
        None => format!("{what} is given back: {wallet} got {amount} of credits"),
    })
}

/// Lists the credits of wallets that never signed in.
fn list_unclaimed(context: &CommandContext, config: &CloudConfig) -> Result<(), CliError> {
    let reading = automaton_cloud::unclaimed_credits(config, Arc::new(SystemClock));
    let waiting = process::runtime()?.block_on(reading)?;
    let rows: Vec<_> = waiting
        .iter()
        .map(|it| UnclaimedCreditsView {
            wallet: it.wallet,
            amount_microcents: it.amount,
            since: it.since,
        })
        .collect();
    let clock = context.screen().when;
    context.format.answer(&UnclaimedListView { unclaimed: rows }, || match waiting.is_empty() {
        true => "all credits belong to wallets that have signed in".to_owned(),
        false => {
            let line = |it: &UnclaimedCredits| {
                format!("{}  {} since {}", it.wallet, it.amount, clock.with_age(it.since))
            };
            waiting.iter().map(line).collect::<Vec<_>>().join("\n")
        }
    })
}

async fn serve(
    format: Format,
    config: CloudConfig,
    signer: RunningSigner,
    deps: CloudDeps,
    signals: &Signals,
) -> Result<(), CliError> {
    let (client, signer_ended) = gas::join(signer).await?;
    let cloud = CloudServer::start(config, deps, client).await?;
    let listen = cloud.address();
    let url = cloud.url();
    match format {
        Format::Json => ui::json(&CloudView { listen, url: url.to_owned() })?,
        Format::Text => ui::line(&format!("the cloud listens on {url}"))?,
    }
    let signals = StopSignals::watch(signals)?;
    // Both arms are cancel-safe: they only wait.
    let ended = tokio::select! {
        signal = signals.next() => signal.map(drop),
        failure = signer_ended => Err(failure),
    };
    cloud.stop(STOP_WITHIN).await;
    ended
}
