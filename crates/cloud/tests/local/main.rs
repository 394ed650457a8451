//! A model of the cloud's own behind its meter, with a real sandbox and a fake
//! model in it.
#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "what a test runner reads")]

mod cases;
#[path = "../../../inference/tests/local/fake.rs"]
mod fake;
#[path = "../it/fake_chain.rs"]
#[expect(dead_code, reason = "the other tests use all of it")]
mod fake_chain;
#[path = "../../../inference/tests/local/harness.rs"]
mod harness;
#[path = "../it/world.rs"]
#[expect(dead_code, reason = "the other tests use all of it")]
mod world;

fn main() -> std::process::ExitCode {
    harness::main(cases::ALL)
}
