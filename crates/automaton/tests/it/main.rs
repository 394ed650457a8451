//! The program as a person and as a script meet it: every test starts the real
//! binary in a world of its own.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

mod approvals;
mod audit;
mod background;
mod backup;
mod bad_input;
mod brains;
mod cli;
mod cloud;
mod crash;
mod creator;
mod devnet;
mod disk;
mod egress;
mod guard;
mod heartbeat;
mod homes;
mod inside;
mod life;
mod livelihood;
mod local;
mod machines;
mod memory;
mod money;
mod observability;
mod outputs;
mod peers;
mod pnl;
mod policy;
mod ports;
mod preflight;
mod pull;
mod reference;
mod remote;
mod results;
mod sandbox;
mod soul;
mod spending;
mod starts;
mod storm;
mod talk;
mod transcripts;
mod traps;
mod trust;
mod words;
mod worklog;
mod workspace;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use automaton_testkit::world::{ProcessOutput, World};
use serde_json::{Value, json};

/// The account that pays a cloud's gas: a key that everybody knows.
const GAS: &str = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";

/// A world around the program that is being tested. Its automaton asks its model
/// directly: most of what is tested does not depend on who pays.
fn world() -> World {
    paying_world().arg("--direct")
}

/// The same, but its automaton has a wallet and lives from a cloud.
fn paying_world() -> World {
    World::new(env!("CARGO_BIN_EXE_automaton")).unwrap()
}

/// The signer's home of the account that pays gas, made in a folder, as a cloud's
/// configuration names it. Its passphrase is in a file with this mode.
fn gas_signer(folder: &Path, mode: u32) -> Value {
    let home = folder.join("gas");
    let passphrase = home.join("passphrase");
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    fs::create_dir_all(&home).unwrap();
    set(&home, 0o700).unwrap();
    fs::write(home.join("keystore.json"), include_str!("../../assets/gas.json")).unwrap();
    fs::write(&passphrase, "dev").unwrap();
    set(&passphrase, mode).unwrap();
    json!({ "home": home, "passphrase_file": passphrase })
}

/// What the program said, without what differs from run to run.
fn told(world: &World, finished: &ProcessOutput) -> String {
    let text = format!(
        "code: {}\nstdout:\n{}\nstderr:\n{}",
        finished.code.map_or_else(|| "none".to_owned(), |code| code.to_string()),
        finished.stdout,
        finished.stderr
    );
    let home = world.home().display().to_string();
    text.replace(&home, "[HOME]").replace(&world.dir().display().to_string(), "[DIR]")
}
