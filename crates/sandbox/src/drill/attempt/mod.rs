//! Attempts to get out of the sandbox, one a run.
//!
//! `PROGRAM sandbox-attempt NAME ARGUMENTS…` ends with 0 when the attempt succeeded, with 1
//! when it was refused, with 3 when there is no such attempt. Must never do harm, not even by
//! hand and outside of any sandbox: what it can read it drops, what it can change it sets to
//! what it was, what it makes it takes away.

mod files;
mod kernel;
mod limits;
mod processes;
mod sockets;

use std::io::{self, Write as _};
use std::process::ExitCode;

use super::world::SECRET;

/// By this first argument a program that begins with [`attempt_main_if_invoked`] becomes an
/// attempt.
pub const WORD: &str = "sandbox-attempt";

/// The code for an attempt that does not exist.
pub(super) const UNKNOWN: u8 = 3;

/// Makes the attempt that this process was started for, if it was started for one: then the
/// answer is the code with which `main` has to return. It must come before any other thread.
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
            // silent-ok: the code says it too.
            writeln!(io::stderr(), "{error}").ok();
            ExitCode::from(1)
        }
        None => ExitCode::from(UNKNOWN),
    })
}

/// Success only if this is so.
fn require(so: bool, otherwise: &str) -> io::Result<()> {
    if so { Ok(()) } else { Err(io::Error::other(otherwise.to_owned())) }
}

/// Success only if a secret came out.
fn require_secret(bytes: &[u8]) -> io::Result<()> {
    require(String::from_utf8_lossy(bytes).contains(SECRET), "there is no secret in it")
}

/// Success if one of these has it.
fn any<'a>(paths: &[&'a str], try_one: impl Fn(&'a str) -> io::Result<()>) -> io::Result<()> {
    let nothing = Err(io::Error::other("there is nothing to try"));
    paths.iter().fold(nothing, |before, path| before.or_else(|_| try_one(path)))
}

/// The answer of a raw system call.
fn answer(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The same, where no more is wanted than that it was given.
fn given(result: impl Into<libc::c_long>) -> io::Result<()> {
    answer(result.into()).map(drop)
}
