//! `cloud`: a control plane of one's own, until it is told to stop.
//!
//! The first line says where it listens, so that a script can start many; what
//! the operator should know goes to stderr, a sentence a line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use automaton_cloud::{Cloud, Config, Deps};
use automaton_core::entropy::SystemEntropy;
use automaton_core::time::SystemClock;
use automaton_sandbox::Launcher;
use automaton_sandbox::process::Signals;
use clap::{Args, ValueHint};
use serde::Serialize;

use super::{Context, live};
use crate::descriptor::StopSignals;
use crate::error::Failure;
use crate::role::signer::RunningSigner;
use crate::role::{agent, gas};
use crate::ui::{self, Format, text::plain};

/// How long requests under way may take when it stops.
const STOP_WITHIN: Duration = Duration::from_secs(10);

/// Arguments of `cloud`.
#[derive(Debug, Args)]
pub(crate) struct CloudArgs {
    /// Its configuration
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    config: PathBuf,
    /// Where to listen, instead of what the configuration says; port 0 for any
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Where its database is, instead of what the configuration says
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    data: Option<PathBuf>,
    /// Rehearse a crash at a point, on a folder of data made for that.
    #[arg(long, hide = true, value_name = "POINT[:N]")]
    fault: Option<String>,
}

/// The first line.
#[derive(Serialize)]
struct Listening<'a> {
    listen: SocketAddr,
    url: &'a str,
}

/// Runs a cloud until a signal says stop.
pub(crate) fn run(context: &Context, args: &CloudArgs) -> Result<(), Failure> {
    // Before any thread starts, so that none of them takes the signal's default.
    let signals = Signals::receive()?;
    let mut config = Config::read(&args.config)?;
    config.listen = args.listen.unwrap_or(config.listen);
    if let Some(data) = &args.data {
        config.data.clone_from(data);
    }
    let fault = args.fault.as_deref().map(|text| (text, config.data.as_path()));
    let executable = live::executable()?;
    let signer = gas::start(&executable, &config)?;
    let deps = Deps {
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        report: Arc::new(|sentence| ui::say(&plain(&sentence))),
        faults: agent::armed(fault)?,
        launcher: Some(Launcher::new(executable)),
    };
    live::runtime()?.block_on(serve(context.format, (config, signer), deps, &signals))
}

async fn serve(
    format: Format,
    (config, signer): (Config, RunningSigner),
    deps: Deps,
    signals: &Signals,
) -> Result<(), Failure> {
    let (purse, signer_ended) = gas::join(signer).await?;
    let cloud = Cloud::start(config, deps, purse).await?;
    let (listen, url) = (cloud.address(), cloud.url());
    match format {
        Format::Json => ui::json(&Listening { listen, url })?,
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
