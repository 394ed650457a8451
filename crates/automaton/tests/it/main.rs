//! The program as a person and as a script meet it: every test starts the real
//! binary in a world of its own.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

mod bad_input;
mod cli;
mod cloud;
mod crash;
mod creator;
mod devnet;
mod homes;
mod life;
mod livelihood;
mod local;
mod money;
mod peers;
mod pnl;

use automaton_lab::world::{Finished, World};

/// A world around the program that is being tested. Its automaton asks its model
/// directly: most of what is tested does not depend on who pays.
fn world() -> World {
    paying_world().arg("--direct")
}

/// The same, but its automaton has a wallet and lives from a cloud.
fn paying_world() -> World {
    World::new(env!("CARGO_BIN_EXE_automaton")).unwrap()
}

/// What the program said, without what differs from run to run.
fn told(world: &World, finished: &Finished) -> String {
    let text = format!(
        "code: {}\nstdout:\n{}\nstderr:\n{}",
        finished.code.map_or_else(|| "none".to_owned(), |code| code.to_string()),
        finished.stdout,
        finished.stderr
    );
    let home = world.home().display().to_string();
    text.replace(&home, "[HOME]").replace(&world.dir().display().to_string(), "[DIR]")
}
