//! Attempts on files. Each must leave every file in its original state.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::os::unix::fs::{
    MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown, symlink,
};
use std::path::Path;

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::stat::{Mode, SFlag, UtimensatFlags, makedev, mknod, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::{execv, mkfifo};

use super::{answer, any_path, require, require_secret};
use crate::process::{ProcessCommand, Stdio, spawn};

pub(super) fn attempt(words: &[&str]) -> Option<io::Result<()>> {
    Some(match *words {
        ["read", path] => fs::read(path).and_then(|bytes| require_secret(&bytes)),
        ["read-descriptor", number] => read_descriptor(number.parse().ok()?),
        ["read-device", path] => File::open(path).and_then(|mut disk| disk.read_exact(&mut [0])),
        ["see", path] => fs::metadata(path).map(drop),
        ["list", path] => fs::read_dir(path)
            .and_then(|mut found| require(found.next().is_some(), "the folder is empty")),
        ["find-any", ref paths @ ..] => any_path(paths, find),
        ["watch", path] => watch(path),
        ["run", path] => run(path),
        ["rewrite", ref paths @ ..] => any_path(paths, rewrite),
        ["rewrite-program", ref paths @ ..] => any_path(paths, rewrite_program),
        ["rename", from, to] => rename(from, to).and_then(|()| rename(to, from)),
        ["remove", path] => remove(path),
        ["truncate", path] => truncate(path),
        ["change-mode", path] => {
            fs::metadata(path).and_then(|found| fs::set_permissions(path, found.permissions()))
        }
        ["change-time", path] => change_time(path),
        ["hard-link", path] => hard_link(path),
        ["give-away", ref paths @ ..] => any_path(paths, give_away),
        ["open-file", path] => OpenOptions::new().read(true).write(true).open(path).map(drop),
        ["make", what, path] => make(what, path),
        ["make-device", path] => make_device(path),
        ["leave-privileged", path] => leave_privileged(path),
        ["open-by-handle", path] => open_by_handle(path),
        _ => return None,
    })
}

/// Succeeds if a file or folder is not empty.
fn find(path: &str) -> io::Result<()> {
    let found = if fs::metadata(path)?.is_dir() {
        fs::read_dir(path)?.next().is_some()
    } else {
        // Some files block until more arrives.
        let mut file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        file.read(&mut [0])? > 0
    };
    require(found, "it is empty")
}

/// Overwrites a file with its own content.
fn rewrite(path: &str) -> io::Result<()> {
    let bytes = fs::read(path)?;
    OpenOptions::new().write(true).open(path)?.write_all(&bytes)
}

/// Opens a process's program file for writing, through the process. The process must have ended
/// by then, since a running program cannot be written.
fn rewrite_program(path: &str) -> io::Result<()> {
    let (input, _ours) = nix::unistd::pipe()?;
    let shell = ProcessCommand::new(Path::new(path)).arg("-c").arg("read x");
    let mut shell = spawn(shell.stdin(Stdio::Descriptor(input))).map_err(io::Error::other)?;
    let link = format!("/proc/{}/exe", shell.pid());
    let found = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(link)?;
    shell.kill().and_then(|()| shell.wait()).map_err(io::Error::other)?;
    let found = format!("/proc/self/fd/{}", found.as_raw_fd());
    OpenOptions::new().append(true).open(found).map(drop)
}

fn hard_link(path: &str) -> io::Result<()> {
    let new = format!("linked-{}", std::process::id());
    fs::hard_link(path, &new)?;
    let bytes = fs::read(&new);
    fs::remove_file(&new)?;
    require_secret(&bytes?)
}

/// Changes the owner of a file and restores it. Success of the call alone is not enough: the
/// owner must have changed.
fn give_away(path: &str) -> io::Result<()> {
    let before = fs::metadata(path)?;
    chown(path, Some(before.uid() + 1), Some(before.gid() + 1))?;
    let after = fs::metadata(path)?;
    chown(path, Some(before.uid()), Some(before.gid()))?;
    require(after.uid() != before.uid(), "the owner stays")
}

fn make_device(path: &str) -> io::Result<()> {
    mknod(path, SFlag::S_IFCHR, Mode::S_IRUSR | Mode::S_IWUSR, makedev(1, 3))?;
    fs::remove_file(path)
}

/// Opens a file by its handle alone, without any path.
fn open_by_handle(path: &str) -> io::Result<()> {
    let mut handle = fs::read(path)?;
    // Larger than any size that the handle's header can state.
    handle.resize(256, 0);
    let mount = File::open(".")?;
    // SAFETY: the buffer holds the largest handle, the kernel reads no more; the call makes
    // the descriptor.
    let file = unsafe {
        let mount = mount.as_raw_fd();
        let handle = handle.as_mut_ptr();
        let number = libc::syscall(libc::SYS_open_by_handle_at, mount, handle, libc::O_RDONLY);
        File::from_raw_fd(i32::try_from(answer(number)?).map_err(io::Error::other)?)
    };
    let mut bytes = Vec::new();
    file.take(1024).read_to_end(&mut bytes)?;
    require_secret(&bytes)
}

/// Reads a descriptor that was not given to this process.
fn read_descriptor(number: i32) -> io::Result<()> {
    let mut bytes = [0u8; 256];
    // SAFETY: the buffer is as long as said; a number that is not open fails.
    let count = unsafe { libc::pread(number, bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    answer(count as libc::c_long).and_then(|_| require_secret(&bytes))
}

/// Creates a set-user-id file, which would give its owner's rights to anybody who runs it on the
/// host.
fn leave_privileged(path: &str) -> io::Result<()> {
    let privileged = |options: &mut OpenOptions| options.write(true).mode(0o4755).clone();
    let made = privileged(OpenOptions::new().create_new(true)).open(path);
    let changed = made.or_else(|_| {
        let file = File::create_new(path)?;
        file.set_permissions(fs::Permissions::from_mode(0o2755)).map(|()| file)
    });
    fs::remove_file(path)?;
    let flags = libc::O_TMPFILE;
    changed.or_else(|_| privileged(OpenOptions::new().custom_flags(flags)).open(".")).map(drop)
}

fn run(path: &str) -> io::Result<()> {
    let program = CString::new(path)?;
    execv(&program, &[&program])?;
    Ok(())
}

/// Creates a file, a folder, a link or a pipe, and removes it again.
fn make(what: &str, path: &str) -> io::Result<()> {
    match what {
        "folder" => return fs::create_dir(path).and_then(|()| fs::remove_dir(path)),
        "link" => symlink("nowhere", path)?,
        "pipe" => mkfifo(path, Mode::S_IRUSR)?,
        _ => File::create_new(path).map(drop)?,
    }
    fs::remove_file(path)
}

/// Renames a file to an unused name.
fn rename(from: &str, to: &str) -> io::Result<()> {
    Ok(renameat2(AT_FDCWD, from, AT_FDCWD, to, RenameFlags::RENAME_NOREPLACE)?)
}

/// Removes a file and recreates it with the same content.
fn remove(path: &str) -> io::Result<()> {
    let bytes = fs::read(path)?;
    fs::remove_file(path)?;
    fs::write(path, bytes)
}

/// Truncates a file to its current length.
fn truncate(path: &str) -> io::Result<()> {
    let bytes = fs::metadata(path)?.size();
    Ok(nix::unistd::truncate(path, bytes.try_into().map_err(io::Error::other)?)?)
}

/// Sets a file's times to their current values.
fn change_time(path: &str) -> io::Result<()> {
    let found = fs::metadata(path)?;
    let read = TimeSpec::new(found.atime(), found.atime_nsec());
    let written = TimeSpec::new(found.mtime(), found.mtime_nsec());
    Ok(utimensat(AT_FDCWD, path, &read, &written, UtimensatFlags::FollowSymlink)?)
}

fn watch(path: &str) -> io::Result<()> {
    let inotify = Inotify::init(InitFlags::empty())?;
    inotify.add_watch(path, AddWatchFlags::IN_MODIFY)?;
    Ok(())
}
