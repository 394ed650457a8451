//! The automaton: a supervisor, its agent, and the creator's hand.
//!
//! ```text
//! automaton up ──▶ supervisor ──▶ automaton-agent ──▶ sandbox helper
//!                      │  lines of events │ ▲ └─▶ automaton-signer
//! automaton send ──────┼── control socket │ ┘
//!                      ├──▶ automaton-cloud ──▶ the model
//!                      └──▶ automaton-chain
//! ```
//!
//! Which process this one is, is decided before anything else happens: the
//! roles that confine themselves must do so on the main thread, before any
//! other thread starts. Everything a person sees goes through [`ui`] and
//! [`error`]; nothing else may print.

mod account;
mod args;
mod cmd;
mod config;
mod control;
mod courier;
mod crashes;
mod descriptor;
mod diagnostics;
mod error;
mod home;
mod household;
mod kept;
mod log;
mod member;
mod metrics;
mod operator;
mod outlets;
mod role;
mod stack;
mod supervisor;
mod talk;
mod telling;
mod traces;
mod ui;
mod webhook;
mod workspace;

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use crate::args::Cli;
use crate::error::Failure;
use crate::role::charter;
use crate::ui::Format;

fn main() -> ExitCode {
    if let Some(code) = automaton_sandbox::helper_main_if_invoked() {
        return code;
    }
    if let Some(code) = automaton_sandbox::drill::attempt_main_if_invoked() {
        return code;
    }
    let argv: Vec<_> = std::env::args_os().collect();
    match role(argv.first().map(AsRef::as_ref)) {
        Some(charter::ARG0) => return role::agent::main(),
        Some(role::signer::ARG0) => return role::signer::main(),
        Some(role::service::CHAIN_ARG0 | role::service::CLOUD_ARG0) => {
            return role::service::main();
        }
        _ => {}
    }
    let asked = args::asks_for_json(&argv);
    let (format, outcome) = match args::translate(argv).map(Cli::try_parse_from) {
        Ok(Ok(cli)) => (Format::of(cli.json), cmd::run(cli)),
        Ok(Err(error)) => (Format::of(asked), usage(&error, Format::of(asked))),
        Err(failure) => (Format::of(asked), Err(failure)),
    };
    outcome.unwrap_or_else(|failure| {
        failure.tell(format);
        failure.exit_code()
    })
}

/// The name that this process was called by, without its folder.
fn role(arg0: Option<&OsStr>) -> Option<&str> {
    Path::new(arg0?).file_name()?.to_str()
}

/// Help and version are answers; everything else is the user's mistake, which
/// has exit code 1 here and not clap's 2.
fn usage(error: &clap::Error, format: Format) -> Result<ExitCode, Failure> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let text = error.render();
            let mut out = std::io::stdout().lock();
            write!(out, "{text}").and_then(|()| out.flush()).map_err(|e| Failure::output(&e))?;
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            // silent-ok: without a stderr there is nobody left to tell.
            write!(std::io::stderr().lock(), "{}", error.render()).ok();
            if format == Format::Json {
                ui::json(&args::mistake(error).document())?;
            }
            Ok(ExitCode::from(1))
        }
    }
}
