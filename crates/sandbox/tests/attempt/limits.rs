//! Attempts to use up the machine. Each holds what it has for long enough that
//! a watcher that looks from time to time has looked.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::thread;
use std::time::Duration;

use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::{answer, argument};

const HOLD: Duration = Duration::from_millis(300);

pub(crate) fn many_processes(words: &[String]) -> io::Result<()> {
    for _ in 0..argument::<u32>(words, 0)? {
        // SAFETY: this process has one thread; the copy only sleeps.
        let pid = unsafe { libc::fork() };
        answer(pid.into())?;
        if pid == 0 {
            thread::sleep(Duration::from_secs(60));
        }
    }
    thread::sleep(HOLD);
    Ok(())
}

pub(crate) fn much_memory(words: &[String]) -> io::Result<()> {
    let bytes: usize = argument(words, 0)?;
    let mut pieces = Vec::new();
    while pieces.len() * (1 << 20) < bytes {
        let mut piece = Vec::new();
        piece.try_reserve_exact(1 << 20).map_err(io::Error::other)?;
        piece.resize(1 << 20, 1u8);
        pieces.push(piece);
    }
    thread::sleep(HOLD);
    std::hint::black_box(&pieces);
    Ok(())
}

/// Memory in files that no process maps.
pub(crate) fn hidden_memory(words: &[String]) -> io::Result<()> {
    let bytes: usize = argument(words, 0)?;
    let mut file = File::from(memfd_create(c"hidden", MFdFlags::empty())?);
    for _ in 0..bytes >> 20 {
        file.write_all(&vec![1u8; 1 << 20])?;
    }
    thread::sleep(HOLD);
    Ok(())
}

/// Writes so many bytes into a folder, in files of at most so many.
pub(crate) fn fill(words: &[String]) -> io::Result<()> {
    let folder: String = argument(words, 0)?;
    let (total, each): (usize, usize) = (argument(words, 1)?, argument(words, 2)?);
    // SAFETY: the default action of a signal is replaced by ignoring it, so
    // that the write itself fails.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let mut result = Ok(());
    for number in 0..total.div_ceil(each) {
        result = fs::write(format!("{folder}/fill-{number}"), vec![1u8; each]);
        if result.is_err() {
            break;
        }
    }
    thread::sleep(HOLD);
    for number in 0..total.div_ceil(each) {
        fs::remove_file(format!("{folder}/fill-{number}")).ok();
    }
    result
}

pub(crate) fn open_files(words: &[String]) -> io::Result<()> {
    let count: usize = argument(words, 0)?;
    let files = (0..count).map(|_| File::open("/dev/null")).collect::<io::Result<Vec<_>>>()?;
    drop(files);
    Ok(())
}

pub(crate) fn spin(_: &[String]) -> io::Result<()> {
    loop {
        std::hint::black_box(0);
    }
}
