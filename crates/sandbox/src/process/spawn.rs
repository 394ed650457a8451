//! Starts a program with exactly the given descriptors and variables.
//!
//! The child runs in the parent's memory until `execve`, since copying it takes longer for a
//! larger parent. Until then it may only make system calls: other threads of the parent continue
//! and may hold any lock, so the child may not allocate.

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

/// The stack size for the few calls of a child before `execve`.
const STACK_BYTES: usize = 64 << 10;

/// A program to start, with its inputs.
#[derive(Debug)]
pub struct ProcessCommand {
    program: PathBuf,
    /// The opened program, if there is one. Then the path is only a name.
    image: Option<Arc<OwnedFd>>,
    arg0: OsString,
    args: Vec<OsString>,
    /// Each variable as `name=value`.
    env: Vec<OsString>,
    stdio: [Stdio; 3],
    descriptors: Vec<(OwnedFd, RawFd)>,
    own_session: bool,
    leaky: bool,
}

/// A standard descriptor of a child.
#[derive(Debug)]
pub enum Stdio {
    /// `/dev/null`.
    Null,
    /// The parent's own.
    Inherit,
    /// This descriptor.
    Descriptor(OwnedFd),
}

impl ProcessCommand {
    /// Creates a command for a program by path, with an empty environment and all standard
    /// streams at `/dev/null`.
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

    /// Creates a command for one of our programs, as it was opened.
    #[must_use]
    pub fn from_own_program(program: &OwnProgram) -> Self {
        Self { image: program.image(), ..Self::new(program.path()) }
    }

    /// Sets the name under which the program is called.
    #[must_use]
    pub fn arg0(mut self, arg0: impl AsRef<OsStr>) -> Self {
        arg0.as_ref().clone_into(&mut self.arg0);
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds a variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        let mut variable = name.as_ref().to_owned();
        variable.push("=");
        variable.push(value);
        self.env.push(variable);
        self
    }

    /// Sets the standard input.
    #[must_use]
    pub fn stdin(mut self, stdio: Stdio) -> Self {
        self.stdio[0] = stdio;
        self
    }

    /// Sets the standard output.
    #[must_use]
    pub fn stdout(mut self, stdio: Stdio) -> Self {
        self.stdio[1] = stdio;
        self
    }

    /// Sets the standard error.
    #[must_use]
    pub fn stderr(mut self, stdio: Stdio) -> Self {
        self.stdio[2] = stdio;
        self
    }

    /// Passes a descriptor under this number, 3 to 63.
    #[must_use]
    pub fn descriptor(mut self, descriptor: OwnedFd, target: RawFd) -> Self {
        self.descriptors.push((descriptor, target));
        self
    }

    /// Starts the program in its own session, so that a terminal's keys do not reach it.
    #[must_use]
    pub const fn own_session(mut self) -> Self {
        self.own_session = true;
        self
    }

    /// Passes all other open descriptors too. Drills only.
    pub(crate) const fn leaky(mut self) -> Self {
        self.leaky = true;
        self
    }
}

/// Starts a program of ours.
///
/// # Errors
/// Fails if it cannot be executed, or no descriptors are free.
pub fn spawn(command: ProcessCommand) -> Result<Child, ProcessError> {
    let target = impossible_target(command.descriptors.iter().map(|(_, target)| *target));
    if let Some(target) = target {
        return Err(ProcessError::Target { target });
    }
    let program = command.program.clone();
    start(command).map_err(|source| ProcessError::Spawn { program, source })
}

/// Replaces this process by another program of ours, with the same environment and standard
/// descriptors. The first word is its name.
///
/// # Errors
/// Fails if it cannot be executed. Otherwise it does not return.
pub fn become_other(
    program: &Path,
    words: impl IntoIterator<Item = OsString>,
) -> Result<Infallible, ProcessError> {
    let execute = || {
        let words = words.into_iter().map(terminated).collect::<io::Result<Vec<_>>>()?;
        close_on_exec_except(|_| false)?;
        Ok(execv(&terminated(program.as_os_str().to_owned())?, &words)?)
    };
    execute().map_err(|source| ProcessError::Spawn { program: program.to_owned(), source })
}

/// The inputs of the child until `execve`, prepared in the parent.
struct ChildSetup {
    program: CString,
    image: Option<OwnedFd>,
    /// Null-terminated. The pointers refer to strings that live as long as this value.
    argv: Vec<*const c_char>,
    envp: Vec<*const c_char>,
    _strings: [Vec<CString>; 2],
    /// Descriptors, all of them above every target, and their targets.
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
            // SAFETY: a closed standard descriptor makes the call fail, and is only borrowed for
            // it.
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

/// Returns null-terminated pointers. They stay valid when the strings move, as each has its own
/// allocation.
fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
}

/// Duplicates a descriptor above all targets, so that no move overwrites a source that is still
/// needed.
pub(crate) fn lift(descriptor: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let number = fcntl(descriptor, FcntlArg::F_DUPFD_CLOEXEC(TARGET_LIMIT))?;
    // SAFETY: the call above created this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Duplicates many descriptors like [`lift`]. The originals are closed, since their numbers may
/// be targets.
pub(crate) fn lift_all(moves: Vec<(OwnedFd, RawFd)>) -> io::Result<Vec<(OwnedFd, RawFd)>> {
    moves.into_iter().map(|(source, target)| Ok((lift(source.as_fd())?, target))).collect()
}

/// Starts a child in this process's memory. This thread waits until the child has executed its
/// program or failed.
fn spawn_child(prepared: &ChildSetup) -> nix::Result<Pid> {
    extern "C" fn child(prepared: *mut c_void) -> c_int {
        // SAFETY: it points to data that the waiting thread holds and nobody writes.
        become_program(unsafe { &*prepared.cast_const().cast() })
    }
    let mut stack = vec![0u128; STACK_BYTES / size_of::<u128>()];
    let top = stack.as_mut_ptr_range().end;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK;
    let prepared = std::ptr::from_ref(prepared).cast_mut().cast();
    // SAFETY: the stack belongs to the child alone, is large enough for a few calls, is aligned,
    // and outlives it. The child uses only async-signal-safe system calls and never returns.
    Errno::result(unsafe { libc::clone(child, top.cast(), flags | libc::SIGCHLD, prepared) })
        .map(Pid::from_raw)
}

/// Runs the child's side. Reports the error number of a failure.
fn become_program(prepared: &ChildSetup) -> ! {
    let Err(errno) = try_become(prepared);
    let bytes = (errno as i32).to_ne_bytes();
    // SAFETY: the pipe is open and the buffer has the stated length. _exit ends this copy of the
    // process without running the parent's exit handlers.
    unsafe {
        libc::write(prepared.failure.as_raw_fd(), bytes.as_ptr().cast(), bytes.len());
        libc::_exit(127)
    }
}

fn try_become(prepared: &ChildSetup) -> nix::Result<Infallible> {
    if prepared.own_session {
        setsid()?;
    }
    place_descriptors(&prepared.moves)?;
    if !prepared.leaky {
        close_on_exec_except(|number| prepared.moves.iter().any(|(_, target)| *target == number))?;
    }
    reset_signals()?;
    let argv = prepared.argv.as_ptr();
    let envp = prepared.envp.as_ptr();
    // SAFETY: the vectors were made before the child, end with null, and outlive the call. So
    // does the descriptor.
    unsafe {
        match &prepared.image {
            None => libc::execve(prepared.program.as_ptr(), argv, envp),
            Some(image) => {
                let image = image.as_raw_fd();
                let here = libc::AT_EMPTY_PATH;
                let empty = c"".as_ptr();
                libc::syscall(libc::SYS_execveat, image, empty, argv, envp, here) as c_int
            }
        };
    }
    Err(Errno::last())
}

/// Moves lifted descriptors to their numbers. Like the functions below, it is safe in a child
/// before its `execve`.
pub(crate) fn place_descriptors(lifted: &[(OwnedFd, RawFd)]) -> nix::Result<()> {
    for (source, target) in lifted {
        // SAFETY: numbers only. This process no longer uses the target, since it soon becomes
        // another program.
        Errno::result(unsafe { libc::dup2(source.as_raw_fd(), *target) })?;
    }
    Ok(())
}

/// Sets close-on-exec on all descriptors except the standard three and the kept ones.
pub(crate) fn close_on_exec_except(is_kept: impl Fn(RawFd) -> bool) -> nix::Result<()> {
    for number in (3..TARGET_LIMIT).filter(|number| !is_kept(*number)) {
        // SAFETY: if a number is not open, the call fails, which is harmless.
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
pub(crate) fn reset_signals() -> nix::Result<()> {
    for signal in 1..=64 {
        // SAFETY: the default action runs no code of ours. For some signals it cannot be set,
        // which does not matter.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)
}
