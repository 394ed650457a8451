//! The program's own process, from its birth to `execve`.
//!
//! Each step takes something away for good. The order is the plan's.

use std::convert::Infallible;
use std::ffi::CString;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{chdir, execve, setsid};

use super::{Named as _, Problem, caps, landlock, rlimit, seccomp};
use crate::launch::EXEC_STEP;
use crate::plan::{Confine, Environment, Exec, Script};
use crate::process::TARGET_LIMIT;
use crate::process::spawn::lift;

/// What the first process leaves to the program's process.
pub(crate) struct Program<'a> {
    pub(crate) script: &'a Script,
    pub(crate) inherit: Vec<(OwnedFd, i32)>,
    /// Where to say what failed; it closes by itself when the program runs.
    pub(crate) failure: OwnedFd,
}

/// Becomes the program.
pub(crate) fn run(program: Program<'_>) -> ! {
    // A copy above all targets, so that no descriptor of the program's
    // replaces it.
    let (failure, Problem { step, problem }) = match lift(program.failure.as_fd()) {
        Err(error) => {
            let step = "move a descriptor".to_owned();
            (program.failure, Problem { step, problem: error.to_string() })
        }
        Ok(failure) => {
            drop(program.failure);
            let Err(problem) = try_run(program.script, program.inherit);
            (failure, problem)
        }
    };
    // silent-ok: the first process may be gone, and then nobody wants to know.
    drop(File::from(failure).write_all(format!("{step}\n{problem}").as_bytes()));
    // SAFETY: ends this copy of the helper at once, without its destructors.
    unsafe { libc::_exit(127) }
}

fn try_run(script: &Script, inherit: Vec<(OwnedFd, i32)>) -> Result<Infallible, Problem> {
    let prepared = Prepared::from(&script.exec)?;
    move_descriptors(inherit)?;
    usual_signals()?;
    umask(Mode::S_IWGRP | Mode::S_IWOTH);
    for step in &script.confine {
        confine(step)?;
    }
    prepared.execute()
}

/// Strings in the form that `execve` takes.
struct Prepared {
    candidates: Vec<Vec<CString>>,
    environment: Vec<CString>,
}

impl Prepared {
    fn from(exec: &Exec) -> Result<Self, Problem> {
        let (inherited, named) = match &exec.environment {
            Environment::Only(named) => (Vec::new(), named),
            Environment::InheritedAnd(named) => (std::env::vars_os().collect(), named),
        };
        let mut environment = Vec::new();
        for (name, value) in inherited {
            let both = [name.into_vec(), value.into_vec()].join(&b'=');
            environment.push(CString::new(both).step(EXEC_STEP)?);
        }
        for (name, value) in named {
            environment.push(CString::new(format!("{name}={value}")).step(EXEC_STEP)?);
        }
        let candidates = exec.candidates.iter().map(|words| {
            words.iter().map(|word| CString::new(word.as_str()).step(EXEC_STEP)).collect()
        });
        Ok(Self { candidates: candidates.collect::<Result<_, _>>()?, environment })
    }

    /// Executes the first candidate that exists.
    fn execute(self) -> Result<Infallible, Problem> {
        let mut met = Errno::ENOENT;
        for words in &self.candidates {
            let Some(program) = words.first() else { continue };
            match execve(program, words, &self.environment) {
                Ok(never) => match never {},
                Err(Errno::ENOENT | Errno::ENOTDIR) => {}
                Err(errno) => {
                    met = errno;
                    break;
                }
            }
        }
        let name = self.candidates.last().and_then(|words| words.first());
        let name = name.map(|name| name.to_string_lossy()).unwrap_or_default();
        let problem = format!("{name}: {}", std::io::Error::from(met));
        Err(Problem { step: EXEC_STEP.to_owned(), problem })
    }
}

/// Gives the program's descriptors their numbers.
fn move_descriptors(inherit: Vec<(OwnedFd, i32)>) -> Result<(), Problem> {
    let step = "pass the program's descriptors";
    let sources = inherit
        .iter()
        .map(|(descriptor, target)| Ok((lift(descriptor.as_fd())?, *target)))
        .collect::<std::io::Result<Vec<_>>>()
        .step(step)?;
    // The originals close before the moves, since their numbers may be targets.
    drop(inherit);
    for (source, target) in &sources {
        // SAFETY: numbers only; what the target was is not used by this process
        // any more, which soon becomes another program.
        let moved = unsafe { libc::dup2(source.as_raw_fd(), *target) };
        Errno::result(moved).step(step)?;
    }
    Ok(())
}

/// The Rust runtime ignores `SIGPIPE` and we blocked `SIGCHLD`: the program
/// must find neither.
fn usual_signals() -> Result<(), Problem> {
    crate::process::spawn::default_signals();
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None).step("unblock signals")
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
        Confine::CloseDescriptors(keep) => close_but(keep).step("close descriptors"),
    }
}

/// Lets all descriptors close at `execve`, but the standard three and these.
fn close_but(keep: &[i32]) -> nix::Result<()> {
    for number in (3..TARGET_LIMIT).filter(|number| !keep.contains(number)) {
        // SAFETY: a number that is not open makes the call fail, which is as
        // good.
        unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    crate::process::spawn::close_high_at_exec()
}
