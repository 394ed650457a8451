//! Attempts to escape from the sandbox, one a run.
//!
//! `PROGRAM sandbox-attempt NAME ARGUMENTS…` exits with 0 if the attempt succeeded, with 1 if it
//! was refused, and with 3 if there is no such attempt. An attempt must never do harm, even
//! outside of a sandbox: it drops what it reads, restores what it changes and removes what it
//! creates.

mod files;
mod kernel;
mod limits;
mod processes;
mod sockets;

use std::io::{self, Write as _};
use std::process::ExitCode;

use super::world::SECRET;

/// The first argument that turns a program with [`attempt_main_if_invoked`] into an attempt.
pub const WORD: &str = "sandbox-attempt";

/// The exit code for an unknown attempt.
pub(super) const UNKNOWN: u8 = 3;

/// Performs the attempt that this process was started for. Returns the exit code of `main`, or
/// `None` if the process was started for something else. Call it before any other thread starts.
#[must_use]
pub fn attempt_main_if_invoked() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != WORD {
        return None;
    }
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let attempted = files::attempt(&words)
        .or_else(|| processes::attempt(&words))
        .or_else(|| sockets::attempt(&words))
        .or_else(|| kernel::attempt(&words))
        .or_else(|| limits::attempt(&words));
    Some(match attempted {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(error)) => {
            // silent-ok: the exit code reports it too.
            writeln!(io::stderr(), "{error}").ok();
            ExitCode::from(1)
        }
        None => ExitCode::from(UNKNOWN),
    })
}

/// Fails with the message `otherwise` unless `so` is true.
fn require(so: bool, otherwise: &str) -> io::Result<()> {
    if so { Ok(()) } else { Err(io::Error::other(otherwise.to_owned())) }
}

/// Succeeds if the bytes contain the planted secret.
fn require_secret(bytes: &[u8]) -> io::Result<()> {
    require(String::from_utf8_lossy(bytes).contains(SECRET), "there is no secret in it")
}

/// Succeeds if the attempt succeeds on one of these paths.
fn any_path<'a>(paths: &[&'a str], try_one: impl Fn(&'a str) -> io::Result<()>) -> io::Result<()> {
    let nothing = Err(io::Error::other("there is nothing to try"));
    paths.iter().fold(nothing, |before, path| before.or_else(|_| try_one(path)))
}

/// Converts the result of a raw system call.
fn answer(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Converts the result of a raw system call, without its value.
fn require_success(result: impl Into<libc::c_long>) -> io::Result<()> {
    answer(result.into()).map(drop)
}
