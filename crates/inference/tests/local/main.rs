//! The local provider with a real sandbox and a fake model in it.
#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "what a test runner reads")]

mod cases;
mod fake;
mod harness;

fn main() -> std::process::ExitCode {
    harness::main(cases::ALL)
}
