//! Starts a program with exactly the descriptors and variables it is given.
//!
//! The child runs in the parent's memory until `execve`, since to copy that takes
//! the longer the larger the parent is. Until then it may only make system calls:
//! other threads of the parent go on, and may hold any lock, so nothing there may
//! allocate.

use std::convert::Infallible;
use std::ffi::{CString, OsStr, OsString, c_char, c_int, c_void};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::unistd::{Pid, execv, pipe2, setsid};

use super::{Child, OwnProgram, ProcessError, TARGET_LIMIT, impossible_target};

/// What the few calls of a child need until it is its program.
const STACK_BYTES: usize = 64 << 10;

/// A program to start and what it is given.
#[derive(Debug)]
pub struct ProcessCommand {
    program: PathBuf,
    /// The program where it is already open; then its path is a name and no more.
    image: Option<Arc<OwnedFd>>,
    arg0: OsString,
    args: Vec<OsString>,
    /// Each with its name, an equals sign and its value.
    env: Vec<OsString>,
    stdio: [Stdio; 3],
    descriptors: Vec<(OwnedFd, RawFd)>,
    own_session: bool,
    leaky: bool,
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

impl ProcessCommand {
    /// A program by path, with an empty environment, its standard input and
    /// outputs at `/dev/null`.
    #[must_use]
    pub fn new(program: &Path) -> Self {
        Self {
            program: program.to_owned(),
            image: None,
            arg0: program.as_os_str().to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            stdio: [Stdio::Null, Stdio::Null, Stdio::Null],
            descriptors: Vec::new(),
            own_session: false,
            leaky: false,
        }
    }

    /// The same for a program of ours, as it was when it was found.
    #[must_use]
    pub fn of(program: &OwnProgram) -> Self {
        Self { image: program.image(), ..Self::new(program.path()) }
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
        let mut variable = name.as_ref().to_owned();
        variable.push("=");
        variable.push(value);
        self.env.push(variable);
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
        self.own_session = true;
        self
    }

    /// Whatever else this process has open is passed on too. Drills only.
    pub(crate) const fn leaky(mut self) -> Self {
        self.leaky = true;
        self
    }
}

/// Starts a program of ours.
///
/// # Errors
///
/// When it cannot be executed, or descriptors have run out.
pub fn spawn(command: ProcessCommand) -> Result<Child, ProcessError> {
    let target = impossible_target(command.descriptors.iter().map(|(_, target)| *target));
    if let Some(target) = target {
        return Err(ProcessError::Target { target });
    }
    let program = command.program.clone();
    start(command).map_err(|source| ProcessError::Spawn { program, source })
}

/// Becomes another program of ours, in the environment and with the standard descriptors of
/// this one. The first of the words is what it is called.
///
/// # Errors
///
/// When it cannot be executed: there is no return otherwise.
pub fn become_other(
    program: &Path,
    words: impl IntoIterator<Item = OsString>,
) -> Result<Infallible, ProcessError> {
    let execute = || {
        let words = words.into_iter().map(terminated).collect::<io::Result<Vec<_>>>()?;
        close_at_exec_but(|_| false)?;
        Ok(execv(&terminated(program.as_os_str().to_owned())?, &words)?)
    };
    execute().map_err(|source| ProcessError::Spawn { program: program.to_owned(), source })
}

/// All that the child needs until `execve`, made beforehand.
struct ChildSetup {
    program: CString,
    image: Option<OwnedFd>,
    /// Null-terminated, pointing into strings that live as long as this.
    argv: Vec<*const c_char>,
    envp: Vec<*const c_char>,
    _strings: [Vec<CString>; 2],
    /// Sources, all of them above every target, and their targets.
    moves: Vec<(OwnedFd, RawFd)>,
    own_session: bool,
    leaky: bool,
    failure: OwnedFd,
}

fn start(command: ProcessCommand) -> io::Result<Child> {
    let (failure_read, failure) = pipe2(OFlag::O_CLOEXEC)?;
    let prepared = prepare(command, failure.as_fd())?;
    drop(failure);
    let all = SigSet::all();
    let mut before = SigSet::empty();
    // Without this, a handler of the parent could run in the child.
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&all), Some(&mut before))?;
    let born = spawn_child(&prepared);
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
    let mut child = Child::adopt(born?)?;
    drop(prepared);
    let mut number = [0; 4];
    let count = File::from(failure_read).read(&mut number)?;
    if count == 0 {
        return Ok(child);
    }
    child.wait().map_err(io::Error::other)?;
    Err(io::Error::from_raw_os_error(i32::from_ne_bytes(number)))
}

fn prepare(command: ProcessCommand, failure: BorrowedFd<'_>) -> io::Result<ChildSetup> {
    let arg0 = std::iter::once(command.arg0);
    let words = arg0.chain(command.args).map(terminated).collect::<io::Result<Vec<_>>>()?;
    let variables = command.env.into_iter().map(terminated).collect::<io::Result<Vec<_>>>()?;
    let mut moves = Vec::new();
    for (stdio, target) in command.stdio.into_iter().zip(0..) {
        let source = match stdio {
            Stdio::Null => lift(File::options().read(true).write(true).open("/dev/null")?.as_fd()),
            // SAFETY: a closed standard descriptor makes the call fail, and is
            // only borrowed for it.
            Stdio::Inherit => lift(unsafe { BorrowedFd::borrow_raw(target) }),
            Stdio::Descriptor(descriptor) => lift(descriptor.as_fd()),
        };
        moves.push((source?, target));
    }
    moves.extend(lift_all(command.descriptors)?);
    let image = command.image.map(|image| lift(image.as_fd())).transpose()?;
    Ok(ChildSetup {
        image,
        program: terminated(command.program.into_os_string())?,
        argv: pointers(&words),
        envp: pointers(&variables),
        _strings: [words, variables],
        moves,
        own_session: command.own_session,
        leaky: command.leaky,
        failure: lift(failure)?,
    })
}

fn terminated(text: OsString) -> io::Result<CString> {
    Ok(CString::new(text.into_vec())?)
}

/// Null-terminated. The pointers stay valid when the strings move, as each has
/// its own allocation.
fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
}

/// A copy of a descriptor above all targets, so that no move overwrites a
/// source that is still needed.
pub(crate) fn lift(descriptor: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let number = fcntl(descriptor, FcntlArg::F_DUPFD_CLOEXEC(TARGET_LIMIT))?;
    // SAFETY: the call above made this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// The same for many with their targets. The originals are closed, since their
/// numbers may be targets.
pub(crate) fn lift_all(moves: Vec<(OwnedFd, RawFd)>) -> io::Result<Vec<(OwnedFd, RawFd)>> {
    moves.into_iter().map(|(source, target)| Ok((lift(source.as_fd())?, target))).collect()
}

/// Starts a child in this process's memory. This thread waits until it has become its
/// program, or failed to.
fn spawn_child(prepared: &ChildSetup) -> nix::Result<Pid> {
    extern "C" fn child(prepared: *mut c_void) -> c_int {
        // SAFETY: it points to what the waiting thread holds, and is not written.
        become_program(unsafe { &*prepared.cast_const().cast() })
    }
    let mut stack = vec![0u128; STACK_BYTES / size_of::<u128>()];
    let (top, flags) = (stack.as_mut_ptr_range().end, libc::CLONE_VM | libc::CLONE_VFORK);
    let prepared = std::ptr::from_ref(prepared).cast_mut().cast();
    // SAFETY: the stack is the child's alone, large enough for a few calls, aligned, and
    // outlives it; the child keeps to async-signal-safe system calls and never returns.
    Errno::result(unsafe { libc::clone(child, top.cast(), flags | libc::SIGCHLD, prepared) })
        .map(Pid::from_raw)
}

/// The child's side. Reports the error number of what failed.
fn become_program(prepared: &ChildSetup) -> ! {
    let Err(errno) = try_become(prepared);
    let bytes = (errno as i32).to_ne_bytes();
    // SAFETY: the pipe is open and the buffer as long as said; _exit ends this
    // copy of the process without running the parent's exit handlers.
    unsafe {
        libc::write(prepared.failure.as_raw_fd(), bytes.as_ptr().cast(), bytes.len());
        libc::_exit(127)
    }
}

fn try_become(prepared: &ChildSetup) -> nix::Result<Infallible> {
    if prepared.own_session {
        setsid()?;
    }
    take_places(&prepared.moves)?;
    if !prepared.leaky {
        close_at_exec_but(|number| prepared.moves.iter().any(|(_, target)| *target == number))?;
    }
    usual_signals()?;
    let (argv, envp) = (prepared.argv.as_ptr(), prepared.envp.as_ptr());
    // SAFETY: the vectors were made before the child, end with null, and outlive
    // the call; so does the descriptor.
    unsafe {
        match &prepared.image {
            None => libc::execve(prepared.program.as_ptr(), argv, envp),
            Some(image) => {
                let (image, here, empty) = (image.as_raw_fd(), libc::AT_EMPTY_PATH, c"".as_ptr());
                libc::syscall(libc::SYS_execveat, image, empty, argv, envp, here) as c_int
            }
        };
    }
    Err(Errno::last())
}

/// Gives lifted descriptors their numbers. Like all that follows it is safe
/// in a child before its `execve`, and for a process that calls `execve` next.
pub(crate) fn take_places(lifted: &[(OwnedFd, RawFd)]) -> nix::Result<()> {
    for (source, target) in lifted {
        // SAFETY: numbers only; what the target was is not used by this process
        // any more, which soon becomes another program.
        Errno::result(unsafe { libc::dup2(source.as_raw_fd(), *target) })?;
    }
    Ok(())
}

/// Lets all descriptors close at `execve`, but the standard three and these.
pub(crate) fn close_at_exec_but(is_kept: impl Fn(RawFd) -> bool) -> nix::Result<()> {
    for number in (3..TARGET_LIMIT).filter(|number| !is_kept(*number)) {
        // SAFETY: a number that is not open makes the call fail, which is as
        // good.
        unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    let first = TARGET_LIMIT.cast_unsigned();
    // SAFETY: numbers only; no descriptor is closed now.
    let result = unsafe {
        let flags = libc::CLOSE_RANGE_CLOEXEC;
        libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, flags)
    };
    Errno::result(result).map(drop)
}

/// Gives every signal its default action and blocks none.
pub(crate) fn usual_signals() -> nix::Result<()> {
    for signal in 1..=64 {
        // SAFETY: the default action runs no code of ours. That it cannot be
        // set for some signals is of no meaning.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)
}
