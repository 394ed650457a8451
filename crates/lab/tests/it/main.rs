//! The laboratory as a person meets it, through the product beside it; and what it tells:
//! histories of money, a week asleep, how attacks are seen.
//!
//! Both programs have to be built: with `--workspace` they are, else `--package automaton
//! --package automaton-lab`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

mod bench;
mod beside;
mod drill;
mod fuzz;
mod guard;
mod money;
mod peers;
mod week;
mod work;

use std::path::{Path, PathBuf};

use automaton_testkit::world::{ProcessOutput, World};

/// The product, in the folder of the laboratory.
fn product() -> PathBuf {
    let product = Path::new(env!("CARGO_BIN_EXE_automaton-lab")).with_file_name("automaton");
    assert!(product.exists(), "{} is not built: --package automaton", product.display());
    product
}

/// A world around the product. Its automaton asks its model directly.
fn world() -> World {
    paying_world().arg("--direct")
}

/// The same, but its automaton has a wallet and lives from a cloud.
fn paying_world() -> World {
    World::new(product()).unwrap()
}

/// What the program said.
fn told(finished: &ProcessOutput) -> String {
    let ProcessOutput { code, stdout, stderr, .. } = finished;
    format!("code: {code:?}\nstdout:\n{stdout}\nstderr:\n{stderr}")
}
