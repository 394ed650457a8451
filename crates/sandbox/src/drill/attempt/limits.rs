//! Attempts to use up the machine. Each holds what it has for long enough that
//! a watcher that looks from time to time has looked. Must never hold it longer.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::thread;
use std::time::Duration;

use nix::sys::memfd::{MFdFlags, memfd_create};

use super::answer;

const HOLD: Duration = Duration::from_millis(300);

pub(super) fn attempt(words: &[&str]) -> Option<io::Result<()>> {
    let (name, rest) = words.split_first()?;
    let (folder, numbers) = if *name == "fill" { rest.split_first()? } else { (&".", rest) };
    let numbers = numbers.iter().map(|word| word.parse().ok()).collect::<Option<Vec<usize>>>()?;
    Some(match (*name, &numbers[..]) {
        ("many-processes", [count]) => many_processes(*count),
        ("much-memory", [bytes]) => much_memory(*bytes),
        ("hidden-memory", [bytes]) => hidden_memory(*bytes),
        ("fill", [total, each]) => fill(folder, *total, *each),
        ("open-files", [count]) => {
            (0..*count).map(|_| File::open("/dev/null")).collect::<io::Result<Vec<_>>>().map(drop)
        }
        _ => return None,
    })
}

fn many_processes(count: usize) -> io::Result<()> {
    for _ in 0..count {
        // SAFETY: this process has one thread; the copy only sleeps, and ends with it.
        unsafe {
            if answer(libc::fork().into())? == 0 {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                thread::sleep(HOLD * 4);
                libc::_exit(0);
            }
        }
    }
    thread::sleep(HOLD);
    Ok(())
}

fn much_memory(bytes: usize) -> io::Result<()> {
    let memory = vec![1u8; bytes];
    thread::sleep(HOLD);
    std::hint::black_box(&memory);
    Ok(())
}

/// Memory in files that no process maps.
fn hidden_memory(bytes: usize) -> io::Result<()> {
    let mut file = File::from(memfd_create(c"hidden", MFdFlags::empty())?);
    (0..bytes >> 20).try_for_each(|_| file.write_all(&vec![1u8; 1 << 20]))?;
    thread::sleep(HOLD);
    Ok(())
}

/// Writes so many bytes into a folder, in files of at most so many.
fn fill(folder: &str, total: usize, each: usize) -> io::Result<()> {
    // SAFETY: the default action of a signal is replaced by ignoring it, so
    // that the write itself fails.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let name = |number| format!("{folder}/fill-{}-{number}", std::process::id());
    let names = || (0..total.div_ceil(each)).map(name);
    let result = names().try_for_each(|name| fs::write(name, vec![1u8; each]));
    thread::sleep(HOLD);
    for name in names() {
        // silent-ok: the last may never have been made.
        fs::remove_file(name).ok();
    }
    result
}
