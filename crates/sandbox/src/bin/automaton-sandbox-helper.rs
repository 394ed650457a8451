//! The sandbox's helper as a program of its own, for tests.
//!
//! The product has one of its own, which this crate's tests cannot name to a launcher.

use std::process::ExitCode;

fn main() -> ExitCode {
    automaton_sandbox::helper_main_if_invoked().unwrap_or(ExitCode::FAILURE)
}
