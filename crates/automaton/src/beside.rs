//! The programs that belong together lie in one folder: the product, and the laboratory
//! where somebody built it.
//!
//! Must never be looked for anywhere else.

use std::path::PathBuf;

use crate::error::CliError;
use crate::process::executable;

/// Command that builds the programs that lie beside this one.
const BUILD: &str = if cfg!(debug_assertions) {
    "cargo build --package"
} else {
    "cargo build --release --package"
};

/// A program of ours in the folder of this one; `what` says what it is.
///
/// # Errors
/// When it is not there.
pub fn beside(name: &str, what: &str) -> Result<PathBuf, CliError> {
    let program = executable()?.with_file_name(name);
    if program.is_file() {
        return Ok(program);
    }
    let folder = program.parent().unwrap_or(&program).display();
    Err(CliError::user(format!("{name}, {what}, is not in {folder}")).hint(format!(
        "build it from the source of this program, into that folder: `{BUILD} {name}`"
    )))
}
