//! Starts a program with exactly the descriptors and variables it is given.
//!
//! Between `fork` and `execve` only system calls are made: other threads of
//! the parent may have held any lock, so nothing there may allocate.

use std::ffi::{CString, OsStr, OsString, c_char};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::unistd::{ForkResult, fork, pipe2};

use super::{Child, ProcessError, TARGET_LIMIT};
use crate::plan::Passing;

/// A program to start and what it is given.
#[derive(Debug)]
pub struct Command {
    program: PathBuf,
    arg0: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    stdio: [Stdio; 3],
    descriptors: Vec<(OwnedFd, RawFd)>,
    session: Session,
    others: Passing,
}

/// What a standard descriptor of a child is.
#[derive(Debug)]
pub enum Stdio {
    /// `/dev/null`.
    Null,
    /// The parent's own.
    Inherit,
    /// This one.
    Descriptor(OwnedFd),
}

/// To which session a child belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Session {
    Shared,
    Own,
}

impl Command {
    /// A program by path, with an empty environment, its standard input and
    /// outputs at `/dev/null`.
    #[must_use]
    pub fn new(program: &Path) -> Self {
        Self {
            program: program.to_owned(),
            arg0: program.as_os_str().to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            stdio: [Stdio::Null, Stdio::Null, Stdio::Null],
            descriptors: Vec::new(),
            session: Session::Shared,
            others: Passing::Named,
        }
    }

    /// The name under which the program is called.
    #[must_use]
    pub fn arg0(mut self, arg0: impl AsRef<OsStr>) -> Self {
        arg0.as_ref().clone_into(&mut self.arg0);
        self
    }

    /// One more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// One more variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Its standard input.
    #[must_use]
    pub fn stdin(mut self, stdio: Stdio) -> Self {
        self.stdio[0] = stdio;
        self
    }

    /// Its standard output.
    #[must_use]
    pub fn stdout(mut self, stdio: Stdio) -> Self {
        self.stdio[1] = stdio;
        self
    }

    /// Its standard error.
    #[must_use]
    pub fn stderr(mut self, stdio: Stdio) -> Self {
        self.stdio[2] = stdio;
        self
    }

    /// A descriptor that the program finds under this number, 3 to 63.
    #[must_use]
    pub fn descriptor(mut self, descriptor: OwnedFd, target: RawFd) -> Self {
        self.descriptors.push((descriptor, target));
        self
    }

    /// A session of its own, so that a terminal's keys do not reach it.
    #[must_use]
    pub const fn own_session(mut self) -> Self {
        self.session = Session::Own;
        self
    }

    pub(crate) const fn others(mut self, others: Passing) -> Self {
        self.others = others;
        self
    }
}

/// Starts a program of ours.
///
/// # Errors
///
/// When it cannot be executed, or descriptors have run out.
pub fn spawn(command: Command) -> Result<Child, ProcessError> {
    let mut targets: Vec<RawFd> = command.descriptors.iter().map(|(_, target)| *target).collect();
    targets.sort_unstable();
    let bad = targets.iter().find(|target| !(3..TARGET_LIMIT).contains(*target));
    let twice = targets.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| &pair[0]);
    if let Some(target) = bad.or(twice) {
        return Err(ProcessError::Target { target: *target });
    }
    let program = command.program.clone();
    start(command).map_err(|source| ProcessError::Spawn { program, source })
}

/// All that the child needs between `fork` and `execve`, made beforehand.
struct Prepared {
    program: CString,
    /// Null-terminated, pointing into strings that live as long as this.
    argv: Vec<*const c_char>,
    envp: Vec<*const c_char>,
    _strings: Vec<CString>,
    /// Sources, all of them above every target, and their targets.
    moves: Vec<(OwnedFd, RawFd)>,
    /// Numbers below [`TARGET_LIMIT`] that no target uses.
    unused: Vec<RawFd>,
    session: Session,
    others: Passing,
    failure: OwnedFd,
}

fn start(command: Command) -> io::Result<Child> {
    let (failure_read, failure) = pipe2(OFlag::O_CLOEXEC)?;
    let prepared = prepare(command, failure.as_fd())?;
    drop(failure);
    let all = SigSet::all();
    let mut before = SigSet::empty();
    // Without this, a handler of the parent could run in the child.
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&all), Some(&mut before))?;
    // SAFETY: the child calls only `become_program`, which keeps to
    // async-signal-safe system calls and never returns.
    let forked = match unsafe { fork() } {
        Ok(ForkResult::Child) => become_program(&prepared),
        Ok(ForkResult::Parent { child }) => Ok(child),
        Err(errno) => Err(errno),
    };
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
    let mut child = Child::adopt(forked?)?;
    drop(prepared);
    let mut number = [0; 4];
    let count = File::from(failure_read).read(&mut number)?;
    if count == 0 {
        return Ok(child);
    }
    child.wait().map_err(io::Error::other)?;
    Err(io::Error::from_raw_os_error(i32::from_ne_bytes(number)))
}

fn prepare(command: Command, failure: BorrowedFd<'_>) -> io::Result<Prepared> {
    let mut strings = Vec::new();
    let mut words = vec![command.arg0];
    words.extend(command.args);
    let argv = pointers(words, &mut strings)?;
    let variables = command.env.into_iter().map(|(mut name, value)| {
        name.push("=");
        name.push(value);
        name
    });
    let envp = pointers(variables, &mut strings)?;
    let mut moves = Vec::new();
    for (stdio, target) in command.stdio.into_iter().zip(0..) {
        match stdio {
            Stdio::Null => {
                let null = File::options().read(true).write(true).open("/dev/null")?;
                moves.push((lift(null.as_fd())?, target));
            }
            Stdio::Inherit => {
                // SAFETY: a closed standard descriptor makes the call fail, and
                // is only borrowed for it.
                let own = unsafe { BorrowedFd::borrow_raw(target) };
                moves.push((lift(own)?, target));
            }
            Stdio::Descriptor(descriptor) => moves.push((lift(descriptor.as_fd())?, target)),
        }
    }
    for (descriptor, target) in command.descriptors {
        moves.push((lift(descriptor.as_fd())?, target));
    }
    let unused =
        (3..TARGET_LIMIT).filter(|number| moves.iter().all(|(_, used)| used != number)).collect();
    Ok(Prepared {
        program: CString::new(command.program.as_os_str().as_bytes())?,
        argv,
        envp,
        _strings: strings,
        moves,
        unused,
        session: command.session,
        others: command.others,
        failure: lift(failure)?,
    })
}

/// Null-terminated pointers to strings that are added to `strings`. The
/// pointers stay valid when the vector grows, as each string has its own
/// allocation.
fn pointers(
    words: impl IntoIterator<Item = OsString>,
    strings: &mut Vec<CString>,
) -> io::Result<Vec<*const c_char>> {
    let mut list = Vec::new();
    for word in words {
        let string = CString::new(word.into_vec())?;
        list.push(string.as_ptr());
        strings.push(string);
    }
    list.push(std::ptr::null());
    Ok(list)
}

/// A copy of a descriptor above all targets, so that no move overwrites a
/// source that is still needed.
pub(crate) fn lift(descriptor: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let number = fcntl(descriptor, FcntlArg::F_DUPFD_CLOEXEC(TARGET_LIMIT))?;
    // SAFETY: the call above made this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// The child's side. Reports the error number of what failed.
fn become_program(prepared: &Prepared) -> ! {
    let errno = try_become(prepared) as i32;
    let bytes = errno.to_ne_bytes();
    // SAFETY: the pipe is open and the buffer as long as said; _exit ends this
    // copy of the process without running the parent's exit handlers.
    unsafe {
        libc::write(prepared.failure.as_raw_fd(), bytes.as_ptr().cast(), bytes.len());
        libc::_exit(127)
    }
}

fn try_become(prepared: &Prepared) -> Errno {
    // SAFETY: only system calls with valid pointers: the vectors were made
    // before the fork, end with null, and outlive the call.
    unsafe {
        if prepared.session == Session::Own && libc::setsid() < 0 {
            return Errno::last();
        }
        for (source, target) in &prepared.moves {
            if libc::dup2(source.as_raw_fd(), *target) < 0 {
                return Errno::last();
            }
        }
        if prepared.others == Passing::Named {
            for number in &prepared.unused {
                // A number that is not open is just as well.
                libc::fcntl(*number, libc::F_SETFD, libc::FD_CLOEXEC);
            }
            if let Err(errno) = close_high_at_exec() {
                return errno;
            }
        }
        default_signals();
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        libc::execve(prepared.program.as_ptr(), prepared.argv.as_ptr(), prepared.envp.as_ptr());
        Errno::last()
    }
}

/// Lets every descriptor above all targets close at `execve`. Safe between
/// `fork` and `execve`.
pub(crate) fn close_high_at_exec() -> nix::Result<()> {
    let first = TARGET_LIMIT.cast_unsigned();
    // SAFETY: numbers only; no descriptor is closed now.
    let result = unsafe {
        let flags = libc::CLOSE_RANGE_CLOEXEC;
        libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, flags)
    };
    Errno::result(result).map(drop)
}

/// Gives every signal its default action. Safe between `fork` and `execve`.
pub(crate) fn default_signals() {
    for signal in 1..=64 {
        // SAFETY: the default action runs no code of ours. That it cannot be
        // set for some signals is of no meaning.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}
