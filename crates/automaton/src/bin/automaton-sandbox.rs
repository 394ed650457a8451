//! Starts commands in the sandbox. This program lies beside the automaton, is a fiftieth of its
//! size, and so starts at once. It has no function for people.

use std::process::ExitCode;

fn main() -> ExitCode {
    automaton_sandbox::helper_main_if_invoked().unwrap_or(ExitCode::FAILURE)
}
