//! The program's own process, from the fork to `execve`.
//!
//! Each step gives something up for good. The plan defines the order.

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

use super::seccomp::Filters;
use super::{StepContext as _, StepFailure, caps, landlock, rlimit};
use crate::launch::EXEC_STEP;
use crate::plan::{Confine, ProgramEnvironment, ProgramExec};
use crate::process::spawn::{
    close_on_exec_except, lift, lift_all, place_descriptors, reset_signals,
};

/// A program about to be executed.
pub(crate) struct PendingProgram<'a> {
    /// The restrictions to apply before.
    pub(crate) confine: &'a Confinement<'a>,
    pub(crate) exec: &'a ProgramExec,
    /// The descriptors and their numbers.
    pub(crate) inherit: Vec<(OwnedFd, RawFd)>,
    /// True if the standard input is a terminal that becomes its controlling terminal.
    pub(crate) terminal: bool,
}

/// The restrictions of every program of a script, prepared for repeated use.
pub(crate) struct Confinement<'a>(Vec<(&'a Confine, Option<Filters>)>);

impl<'a> Confinement<'a> {
    pub(crate) fn new(steps: &'a [Confine]) -> Result<Self, StepFailure> {
        let ready = |step: &'a Confine| match step {
            Confine::Seccomp(filter) => Ok((step, Some(Filters::make(filter)?))),
            step => Ok((step, None)),
        };
        steps.iter().map(ready).collect::<Result<_, _>>().map(Self)
    }
}

/// Executes the program. An error is written to `failure`, which closes when the program runs.
pub(crate) fn run(born: PendingProgram<'_>, failure: OwnedFd) -> ! {
    // A copy above all targets, so that no descriptor of the program replaces it.
    let (failure, StepFailure { step, problem }) = match lift(failure.as_fd()) {
        Err(error) => {
            let step = "move a descriptor".to_owned();
            (failure, StepFailure { step, problem: error.to_string() })
        }
        Ok(lifted) => {
            drop(failure);
            let Err(problem) = try_run(born);
            (lifted, problem)
        }
    };
    // silent-ok: if the first process is gone, nobody needs the error.
    drop(File::from(failure).write_all(format!("{step}\n{problem}").as_bytes()));
    // SAFETY: ends this copy of the helper at once, without its destructors.
    unsafe { libc::_exit(127) }
}

fn try_run(born: PendingProgram<'_>) -> Result<Infallible, StepFailure> {
    let PendingProgram { confine: steps, exec, inherit, terminal } = born;
    let candidates =
        exec.candidates.iter().map(|words| terminated(words.iter().map(String::as_str)));
    let candidates = candidates.collect::<Result<Vec<_>, _>>()?;
    let environment = environment(exec)?;
    let step = "pass the program's descriptors";
    place_descriptors(&lift_all(inherit).step(step)?).step(step)?;
    // The Rust runtime ignores `SIGPIPE`, and we blocked `SIGCHLD`: the program must find
    // neither.
    reset_signals().step("unblock signals")?;
    umask(Mode::S_IWGRP | Mode::S_IWOTH);
    for (step, filters) in &steps.0 {
        match filters {
            Some(filters) => filters.apply()?,
            None => confine(step)?,
        }
        if terminal && **step == Confine::Session {
            take_terminal().step("take the terminal")?;
        }
    }
    Err(execute(&candidates, &environment))
}

/// Makes the standard input the controlling terminal of this session.
fn take_terminal() -> nix::Result<()> {
    // SAFETY: the call takes numbers only. If the descriptor is not a terminal, the call fails.
    Errno::result(unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) }).map(drop)
}

/// Converts strings to the form that `execve` takes.
fn terminated<T: Into<Vec<u8>>>(
    strings: impl Iterator<Item = T>,
) -> Result<Vec<CString>, StepFailure> {
    strings.map(|string| CString::new(string).step(EXEC_STEP)).collect()
}

fn environment(exec: &ProgramExec) -> Result<Vec<CString>, StepFailure> {
    let (inherited, named) = match &exec.environment {
        ProgramEnvironment::Only(named) => (Vec::new(), named),
        ProgramEnvironment::InheritedAnd(named) => (std::env::vars_os().collect(), named),
    };
    let inherited =
        inherited.into_iter().map(|(name, value)| [name.into_vec(), value.into_vec()].join(&b'='));
    let named = named.iter().map(|(name, value)| format!("{name}={value}").into_bytes());
    terminated(inherited.chain(named))
}

/// Executes the first candidate that exists. Returns only if that fails.
fn execute(candidates: &[Vec<CString>], environment: &[CString]) -> StepFailure {
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
    StepFailure { step: EXEC_STEP.to_owned(), problem }
}

fn confine(step: &Confine) -> Result<(), StepFailure> {
    match step {
        Confine::Session => setsid().map(drop).step("start a session"),
        Confine::ResourceLimits(limits) => rlimit::apply(limits),
        Confine::WorkingDirectory(path) => {
            chdir(path.as_path()).step(format!("enter {}", path.display()))
        }
        Confine::DropBoundingSet => caps::drop_bounding_set(),
        Confine::NoNewPrivileges => prctl::set_no_new_privs().step("set no_new_privs"),
        Confine::Landlock(rules) => landlock::apply(rules),
        Confine::Seccomp(filter) => Filters::make(filter)?.apply(),
        Confine::DropCapabilities => caps::drop_all(),
        Confine::CloseDescriptors(keep) => {
            close_on_exec_except(|number| keep.contains(&number)).step("close descriptors")
        }
    }
}
