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
//! The laboratory, `automaton-lab`, is a program of its own over this library; what it
//! needs is `pub`, and nobody else may depend on it.
//!
//! Which process this one is, is decided before anything else happens: the
//! roles that confine themselves must do so on the main thread, before any
//! other thread starts. Everything a person sees goes through [`ui`] and
//! [`error`]; nothing else may print.

mod account;
pub mod args;
mod backup;
pub mod beside;
mod chat_session;
mod child_process;
pub mod cmd;
pub mod config;
mod control;
mod crashes;
mod delivery_queue;
mod descriptor;
mod diagnostics;
mod disk_space;
pub mod error;
mod event_exporters;
pub mod home;
pub mod http;
mod line;
mod local_models;
mod log;
mod metrics;
pub mod operator;
pub mod process;
mod remote_backend;
pub mod role;
mod services;
pub mod stack;
mod story_driver;
mod supervised_service;
mod supervisor;
mod text_file;
mod traces;
pub mod ui;
mod view;
mod webhook;
mod workspace;

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use crate::args::Cli;
use crate::error::CliError;
use crate::role::launch_config;
use crate::ui::Format;

/// The program, whichever process this is.
pub fn main() -> ExitCode {
    if let Some(code) = automaton_sandbox::helper_main_if_invoked() {
        return code;
    }
    let argv: Vec<_> = std::env::args_os().collect();
    match role(argv.first().map(AsRef::as_ref)) {
        Some(launch_config::ARG0) => return role::agent::main(),
        Some(role::signer::ARG0) => return role::signer::main(),
        Some(role::service::CHAIN_ARG0 | role::service::CLOUD_ARG0) => {
            return role::service::main();
        }
        _ => {}
    }
    let asked = Format::of(args::asks_for_json(&argv));
    match args::translate(argv) {
        Ok(argv) => carry_out(argv, |cli: Cli| (cli.format(), cmd::run(cli))),
        Err(failure) => failure.end(asked),
    }
}

/// Reads a command line, does what it says, and tells how that ended.
pub fn carry_out<C: Parser>(
    argv: Vec<OsString>,
    run: impl FnOnce(C) -> (Format, Result<ExitCode, CliError>),
) -> ExitCode {
    let asked = Format::of(args::asks_for_json(&argv));
    let (format, outcome) = match C::try_parse_from(argv) {
        Ok(cli) => run(cli),
        Err(error) => (asked, usage(&error, asked)),
    };
    outcome.unwrap_or_else(|failure| failure.end(format))
}

/// The name that this process was called by, without its folder.
fn role(arg0: Option<&OsStr>) -> Option<&str> {
    Path::new(arg0?).file_name()?.to_str()
}

/// Help and version are answers; everything else is the user's mistake, which
/// has exit code 1 here and not clap's 2.
fn usage(error: &clap::Error, format: Format) -> Result<ExitCode, CliError> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let text = error.render();
            let mut out = std::io::stdout().lock();
            write!(out, "{text}").and_then(|()| out.flush()).map_err(|e| CliError::output(&e))?;
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            let text = args::in_plain_words(&error.render().to_string());
            // silent-ok: without a stderr there is nobody left to tell.
            write!(std::io::stderr().lock(), "{text}").ok();
            if format == Format::Json {
                ui::json(&args::mistake(error).document())?;
            }
            Ok(ExitCode::from(1))
        }
    }
}
