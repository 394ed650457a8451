//! `devnet`: a chain to try payments on, in this process, until a signal ends it.
//!
//! It has no home and knows no automaton; nothing here may give it one.

use std::sync::Arc;

use automaton_core::time::SystemClock;
use automaton_devnet::{Devnet, DevnetConfig};
use automaton_sandbox::process::Signals;
use serde::Serialize;

use super::CommandContext;
use crate::args::DevnetArgs;
use crate::descriptor::StopSignals;
use crate::error::CliError;
use crate::process::runtime;
use crate::role::agent;
use crate::ui::{self, Format};

/// Properties for a client; with `--json` the first line.
#[derive(Serialize)]
struct DevnetInfo {
    url: String,
    chain_id: u64,
    usdc: String,
}

/// Runs the chain until `SIGINT` or `SIGTERM`.
pub(crate) fn run(context: &CommandContext, args: DevnetArgs) -> Result<(), CliError> {
    args.diagnostics.start(&context.environment, "devnet")?;
    let signals = Signals::receive()?;
    let faults = agent::armed(args.fault.as_deref().zip(args.data.as_deref()))?;
    let clock = Arc::new(SystemClock);
    let chain_id = args.chain_id;
    let config = DevnetConfig { listen: args.listen, data: args.data, chain_id, clock, faults };
    runtime()?.block_on(async {
        let signals = StopSignals::watch(&signals)?;
        let devnet = Devnet::start(config).await?;
        let usdc = Devnet::usdc_of(chain_id).to_string();
        let serving = DevnetInfo { url: devnet.url(), chain_id, usdc };
        match context.format {
            Format::Json => ui::json(&serving)?,
            Format::Text => {
                let DevnetInfo { url, chain_id, usdc } = serving;
                ui::line(&format!("url       {url}\nchain id  {chain_id}\nUSDC      {usdc}"))?;
            }
        }
        signals.next().await?;
        devnet.stop().await;
        Ok(())
    })
}
