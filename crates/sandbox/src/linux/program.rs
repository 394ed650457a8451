//! The program's own process, from its birth to `execve`.
//!
//! Each step takes something away for good. The order is the plan's.

use std::convert::Infallible;
use std::ffi::CString;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt as _;

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::stat::{Mode, umask};
use nix::unistd::{chdir, execve, setsid};

use super::{Named as _, Problem, caps, landlock, rlimit, seccomp};
use crate::launch::EXEC_STEP;
use crate::plan::{Confine, Environment, Exec, Script};
use crate::process::spawn::{close_at_exec_but, lift, lift_all, take_places, usual_signals};

/// Becomes the program, with these descriptors and their numbers. What failed
/// is said to `failure`, which closes by itself when the program runs.
pub(crate) fn run(script: &Script, inherit: Vec<(OwnedFd, RawFd)>, failure: OwnedFd) -> ! {
    // A copy above all targets, so that no descriptor of the program's
    // replaces it.
    let (failure, Problem { step, problem }) = match lift(failure.as_fd()) {
        Err(error) => {
            let step = "move a descriptor".to_owned();
            (failure, Problem { step, problem: error.to_string() })
        }
        Ok(lifted) => {
            drop(failure);
            let Err(problem) = try_run(script, inherit);
            (lifted, problem)
        }
    };
    // silent-ok: the first process may be gone, and then nobody wants to know.
    drop(File::from(failure).write_all(format!("{step}\n{problem}").as_bytes()));
    // SAFETY: ends this copy of the helper at once, without its destructors.
    unsafe { libc::_exit(127) }
}

fn try_run(script: &Script, inherit: Vec<(OwnedFd, RawFd)>) -> Result<Infallible, Problem> {
    let candidates =
        script.exec.candidates.iter().map(|words| terminated(words.iter().map(String::as_str)));
    let candidates = candidates.collect::<Result<Vec<_>, _>>()?;
    let environment = environment(&script.exec)?;
    let step = "pass the program's descriptors";
    take_places(&lift_all(inherit).step(step)?).step(step)?;
    // The Rust runtime ignores `SIGPIPE` and we blocked `SIGCHLD`: the program
    // must find neither.
    usual_signals().step("unblock signals")?;
    umask(Mode::S_IWGRP | Mode::S_IWOTH);
    for step in &script.confine {
        confine(step)?;
    }
    Err(execute(&candidates, &environment))
}

/// Strings in the form that `execve` takes.
fn terminated<T: Into<Vec<u8>>>(strings: impl Iterator<Item = T>) -> Result<Vec<CString>, Problem> {
    strings.map(|string| CString::new(string).step(EXEC_STEP)).collect()
}

fn environment(exec: &Exec) -> Result<Vec<CString>, Problem> {
    let (inherited, named) = match &exec.environment {
        Environment::Only(named) => (Vec::new(), named),
        Environment::InheritedAnd(named) => (std::env::vars_os().collect(), named),
    };
    let inherited =
        inherited.into_iter().map(|(name, value)| [name.into_vec(), value.into_vec()].join(&b'='));
    let named = named.iter().map(|(name, value)| format!("{name}={value}").into_bytes());
    terminated(inherited.chain(named))
}

/// Executes the first candidate that exists; returns only when that fails.
fn execute(candidates: &[Vec<CString>], environment: &[CString]) -> Problem {
    let mut met = Errno::ENOENT;
    for words in candidates {
        let Some(program) = words.first() else { continue };
        match execve(program, words, environment) {
            Ok(never) => match never {},
            Err(Errno::ENOENT | Errno::ENOTDIR) => {}
            Err(errno) => {
                met = errno;
                break;
            }
        }
    }
    let name = candidates.last().and_then(|words| words.first());
    let name = name.map(|name| name.to_string_lossy()).unwrap_or_default();
    let problem = format!("{name}: {}", std::io::Error::from(met));
    Problem { step: EXEC_STEP.to_owned(), problem }
}

fn confine(step: &Confine) -> Result<(), Problem> {
    match step {
        Confine::Session => setsid().map(drop).step("start a session"),
        Confine::ResourceLimits(limits) => rlimit::apply(limits),
        Confine::WorkingDirectory(path) => {
            chdir(path.as_path()).step(format!("enter {}", path.display()))
        }
        Confine::DropBoundingSet => caps::drop_bounding_set(),
        Confine::NoNewPrivileges => prctl::set_no_new_privs().step("set no_new_privs"),
        Confine::Landlock(rules) => landlock::apply(rules),
        Confine::Seccomp(filter) => seccomp::apply(filter),
        Confine::DropCapabilities => caps::drop_all(),
        Confine::CloseDescriptors(keep) => {
            close_at_exec_but(|number| keep.contains(&number)).step("close descriptors")
        }
    }
}
