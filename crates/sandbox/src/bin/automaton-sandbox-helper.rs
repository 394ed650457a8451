//! The sandbox's helper as a program of its own, for this crate's tests.
//!
//! The product has its own, which these tests cannot name to a launcher.

use std::process::ExitCode;

fn main() -> ExitCode {
    automaton_sandbox::helper_main_if_invoked().unwrap_or(ExitCode::FAILURE)
}
