//! An interactive terminal in a session, for an operator.
//!
//! The program gets a terminal of its own. Input and output go through this process, so the
//! program can neither type into the operator's terminal nor change it.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::pty::{Winsize, openpty};
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};

use crate::launch::{LaunchError, channel_error};
use crate::outcome::ExitStatus;
use crate::process::await_any;
use crate::session::Session;
use crate::spec::SessionProgram;

/// The interval at which the end of the program and the window size are checked.
const LOOK: Duration = Duration::from_millis(100);
/// The end-of-input character of a terminal.
const END: &[u8] = &[4];
/// The byte that Ctrl-C types.
const INTERRUPT: u8 = 3;
/// The most reads after the program's end.
const REST_READS_MAX: usize = 64;

/// Runs a program at a terminal with this keyboard and screen until it ends.
///
/// # Errors
/// Fails if the program cannot be started, or no terminal is available.
pub fn converse(
    session: &Session,
    task: &SessionProgram,
    mut keyboard: File,
    mut screen: File,
) -> Result<ExitStatus, LaunchError> {
    let mut size = window_size(&keyboard);
    let terminal = openpty(size.as_ref(), None).map_err(channel_error)?;
    let mut ours = File::from(terminal.master);
    let running = session.run_at(task, &terminal.slave)?;
    drop(terminal.slave);
    let typed_at = keyboard.try_clone().map_err(LaunchError::Follow)?;
    let raw = RawTerminal::make(&typed_at);
    // Neither side may wait for the other: typed input waits here until it is accepted.
    fcntl(&ours, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(channel_error)?;
    let mut typing = true;
    let mut is_there = true;
    let mut waiting: Vec<u8> = Vec::new();
    let mut piece = vec![0; 16 << 10];
    while !running.is_over() {
        if !is_there && !typing {
            await_any([], Some(LOOK)).map_err(channel_error)?;
            continue;
        }
        let screened = if is_there { ours.as_fd() } else { keyboard.as_fd() };
        let told = if typing && waiting.is_empty() { keyboard.as_fd() } else { screened };
        let ready = await_any([screened, told], Some(LOOK)).map_err(channel_error)?;
        if is_there && ready[0] {
            is_there =
                copy_output(&mut ours, &mut screen, &mut piece).map_err(LaunchError::Follow)?;
        }
        if typing && waiting.is_empty() && ready[1] {
            let count = keyboard.read(&mut piece).map_err(LaunchError::Follow)?;
            typing = count > 0;
            waiting.extend_from_slice(if typing { &piece[..count] } else { END });
        }
        match is_there {
            true => write_input(&mut ours, &mut waiting).map_err(LaunchError::Follow)?,
            // A program that has closed its terminal receives no keys.
            false if waiting.contains(&INTERRUPT) => running.kill(),
            false => waiting.clear(),
        }
        if let (Some(now), true) = (window_size(&keyboard), raw.is_some())
            && size != Some(now)
        {
            size = Some(now);
            resize(&ours, now);
        }
    }
    let outcome = running.wait()?;
    let mut reads = 0..REST_READS_MAX;
    while reads.next().is_some()
        && await_any([ours.as_fd()], Some(Duration::ZERO)).map_err(channel_error)?[0]
        && copy_output(&mut ours, &mut screen, &mut piece).map_err(LaunchError::Follow)?
    {}
    Ok(outcome.status)
}

/// Types the waiting input, as far as it is accepted.
fn write_input(ours: &mut File, waiting: &mut Vec<u8>) -> io::Result<()> {
    match ours.write(waiting) {
        _ if waiting.is_empty() => {}
        Ok(count) => drop(waiting.drain(..count)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
        // The other side is closed. Reading detects that.
        Err(error) if error.raw_os_error() == Some(Errno::EIO as i32) => waiting.clear(),
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Shows the program's output once. Returns true if there may be more.
fn copy_output(ours: &mut File, screen: &mut File, piece: &mut [u8]) -> io::Result<bool> {
    match ours.read(piece) {
        Ok(0) => Ok(false),
        Ok(count) => {
            screen.write_all(&piece[..count])?;
            screen.flush()?;
            Ok(true)
        }
        // A terminal reports a closed other side this way.
        Err(error) if error.raw_os_error() == Some(Errno::EIO as i32) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
        Err(error) => Err(error),
    }
}

/// Returns the width of a terminal's window in columns, or `None` if it is not a terminal or has
/// no window.
pub fn terminal_columns(terminal: impl AsFd) -> Option<usize> {
    window_size(terminal).map(|size| usize::from(size.ws_col)).filter(|&columns| columns > 0)
}

/// Returns the window size of a terminal, or `None` if it is not a terminal.
fn window_size(terminal: impl AsFd) -> Option<Winsize> {
    let mut size = Winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    let terminal = terminal.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open, and the structure is the one that the call fills.
    let answer = unsafe { libc::ioctl(terminal, libc::TIOCGWINSZ, &raw mut size) };
    Errno::result(answer).is_ok().then_some(size)
}

fn resize(ours: &File, size: Winsize) {
    // SAFETY: the descriptor is open, and the structure is the one that the call reads.
    let answer = unsafe { libc::ioctl(ours.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
    // silent-ok: a wrong size is only ugly.
    let _ = Errno::result(answer);
}

/// A terminal in raw mode. Dropping it restores the previous mode.
struct RawTerminal<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> RawTerminal<'a> {
    /// Switches to raw mode. Returns `None` if it is not a terminal.
    fn make(terminal: &'a File) -> Option<RawTerminal<'a>> {
        // silent-ok: without a terminal there is no mode.
        let before = tcgetattr(terminal).ok()?;
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        tcsetattr(terminal, SetArg::TCSANOW, &raw).ok().map(|()| Self { terminal, before })
    }
}

impl Drop for RawTerminal<'_> {
    fn drop(&mut self) {
        // silent-ok: a terminal that is gone needs nothing.
        let _ = tcsetattr(self.terminal, SetArg::TCSANOW, &self.before);
    }
}
