//! The sandbox's helper as a program of its own, for tests.
//!
//! The product's binary is its own helper. This one does nothing else, so that
//! a test of any crate can name it to a launcher.

use std::process::ExitCode;

fn main() -> ExitCode {
    automaton_sandbox::helper_main_if_invoked().unwrap_or(ExitCode::FAILURE)
}
