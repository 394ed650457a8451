//! Machines for rent over HTTP, in real sandboxes.
#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "what a test runner reads")]

mod commands;
mod containers;
mod egress;
mod files;
mod lives;
mod peers;
mod podman;
mod ports;
mod sales;
mod town;
mod tunnels;

#[path = "../it/fake_chain.rs"]
#[expect(dead_code, reason = "the other tests use all of it")]
mod fake_chain;
#[path = "../../../inference/tests/local/harness.rs"]
mod harness;
#[path = "../it/world.rs"]
#[expect(dead_code, reason = "the other tests use all of it")]
mod world;

/// There is no model here.
mod fake {
    pub(crate) fn run(_: &[String]) -> std::process::ExitCode {
        std::process::ExitCode::FAILURE
    }
}

fn main() -> std::process::ExitCode {
    let own = [lives::ALL, commands::ALL, files::ALL, ports::ALL, sales::ALL];
    let more = [egress::ALL, tunnels::ALL, peers::ALL];
    let cases = [own.concat(), more.concat()].concat();
    harness::main(&cases)
}
