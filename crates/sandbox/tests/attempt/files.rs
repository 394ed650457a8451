//! Attempts on files.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};

use nix::sys::stat::{Mode, SFlag, makedev, mknod};

use crate::{answer, argument, require_secret};

pub(crate) fn read(words: &[String]) -> io::Result<()> {
    require_secret(&fs::read(argument::<String>(words, 0)?)?)
}

/// Writes to whichever of the paths can be written.
pub(crate) fn write_any(words: &[String]) -> io::Result<()> {
    let text = argument::<String>(words, 0)?;
    let mut last = io::Error::other("no path is given");
    for path in &words[1..] {
        match OpenOptions::new().write(true).open(path) {
            Ok(mut file) => return file.write_all(text.as_bytes()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

pub(crate) fn hard_link(words: &[String]) -> io::Result<()> {
    let new = format!("linked-{}", std::process::id());
    fs::hard_link(argument::<String>(words, 0)?, &new)?;
    let bytes = fs::read(&new);
    fs::remove_file(&new)?;
    require_secret(&bytes?)
}

pub(crate) fn make_device(_: &[String]) -> io::Result<()> {
    let mode = Mode::S_IRUSR | Mode::S_IWUSR;
    Ok(mknod("/tmp/null-device", SFlag::S_IFCHR, mode, makedev(1, 3))?)
}

pub(crate) fn open_device(words: &[String]) -> io::Result<()> {
    let mut byte = [0];
    File::open(argument::<String>(words, 0)?)?.read_exact(&mut byte)
}

/// Opens a file by its handle alone, beneath nothing.
pub(crate) fn open_by_handle(words: &[String]) -> io::Result<()> {
    let text = argument::<String>(words, 0)?;
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).map_err(io::Error::other);
    let mut handle = (0..text.len() / 2).map(|n| byte(n * 2)).collect::<io::Result<Vec<u8>>>()?;
    let mount = File::open(".")?;
    // SAFETY: the handle is the one that the kernel gave to the test.
    let file = unsafe {
        let handle = handle.as_mut_ptr();
        let number =
            libc::syscall(libc::SYS_open_by_handle_at, mount.as_raw_fd(), handle, libc::O_RDONLY);
        File::from_raw_fd(i32::try_from(answer(number)?).map_err(io::Error::other)?)
    };
    let mut bytes = Vec::new();
    file.take(1024).read_to_end(&mut bytes)?;
    require_secret(&bytes)
}

/// Reads a descriptor that nobody gave us.
pub(crate) fn read_descriptor(words: &[String]) -> io::Result<()> {
    let number: i32 = argument(words, 0)?;
    let mut bytes = [0u8; 256];
    // SAFETY: the buffer is as long as said; a number that is not open fails.
    let count = unsafe { libc::pread(number, bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    let count = answer(count as libc::c_long)?;
    require_secret(&bytes[..usize::try_from(count).map_err(io::Error::other)?])
}

/// Leaves a file that gives whoever runs it on the host the owner's rights.
pub(crate) fn leave_privileged(_: &[String]) -> io::Result<()> {
    let name = format!("privileged-{}", std::process::id());
    let made = OpenOptions::new().create_new(true).write(true).mode(0o4755).open(&name);
    let changed = fs::write(&name, "")
        .and_then(|()| fs::set_permissions(&name, fs::Permissions::from_mode(0o2755)));
    fs::remove_file(&name)?;
    let flags = libc::O_TMPFILE;
    let nameless = OpenOptions::new().write(true).mode(0o4755).custom_flags(flags).open(".");
    made.map(drop).or(changed).or(nameless.map(drop))
}

pub(crate) fn run(words: &[String]) -> io::Result<()> {
    let program = CString::new(argument::<String>(words, 0)?)?;
    nix::unistd::execv(&program, &[&program])?;
    Ok(())
}

pub(crate) fn list(words: &[String]) -> io::Result<()> {
    let mut found = fs::read_dir(argument::<String>(words, 0)?)?;
    found.next().map_or_else(|| Err(io::Error::other("the folder is empty")), |_| Ok(()))
}

/// Whether the size of a file can be seen.
pub(crate) fn see(words: &[String]) -> io::Result<()> {
    fs::metadata(argument::<String>(words, 0)?).map(drop)
}

/// Makes a file, a folder, a link or a pipe, and takes it away again.
pub(crate) fn make(words: &[String]) -> io::Result<()> {
    let path = format!("{}-{}", argument::<String>(words, 1)?, std::process::id());
    match argument::<String>(words, 0)?.as_str() {
        "file" => File::create_new(&path).map(drop)?,
        "folder" => {
            fs::create_dir(&path)?;
            return fs::remove_dir(&path);
        }
        "link" => std::os::unix::fs::symlink("nowhere", &path)?,
        "pipe" => nix::unistd::mkfifo(path.as_str(), Mode::S_IRUSR)?,
        _ => return Err(io::Error::other("called wrongly")),
    }
    fs::remove_file(&path)
}

/// Gives a file another name, and its own back.
pub(crate) fn rename(words: &[String]) -> io::Result<()> {
    let (from, to) = (argument::<String>(words, 0)?, argument::<String>(words, 1)?);
    fs::rename(&from, &to)?;
    fs::rename(&to, &from)
}

/// Cuts a file at its end.
pub(crate) fn truncate(words: &[String]) -> io::Result<()> {
    let (path, bytes) = (argument::<String>(words, 0)?, argument(words, 1)?);
    Ok(nix::unistd::truncate(path.as_str(), bytes)?)
}

pub(crate) fn change_mode(words: &[String]) -> io::Result<()> {
    fs::set_permissions(argument::<String>(words, 0)?, fs::Permissions::from_mode(0o644))
}

pub(crate) fn change_time(words: &[String]) -> io::Result<()> {
    let path = CString::new(argument::<String>(words, 0)?)?;
    // SAFETY: the path is terminated; no times are "now".
    let result = unsafe { libc::utimensat(libc::AT_FDCWD, path.as_ptr(), std::ptr::null(), 0) };
    answer(result.into()).map(drop)
}

pub(crate) fn watch(words: &[String]) -> io::Result<()> {
    let path = CString::new(argument::<String>(words, 0)?)?;
    // SAFETY: the path is terminated; the descriptor ends with this process.
    let result =
        unsafe { libc::inotify_add_watch(libc::inotify_init1(0), path.as_ptr(), libc::IN_MODIFY) };
    answer(result.into()).map(drop)
}
