//! Attempts on the administration of the machine. They must never change it.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::pty::openpty;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{chroot, gethostname, sethostname, setsid};

use super::{answer, any_path, require, require_secret, require_success};
use crate::drill::FIXTURE_INSIDE;

/// `F_SETDELEG` of the kernel's interface, since Linux 6.19.
const F_SETDELEG: i32 = 1024 + 16;
/// `DN_DELETE` of the kernel's interface.
const DN_DELETE: i32 = 8;

pub(super) fn attempt(words: &[&str]) -> Option<io::Result<()>> {
    let none = None::<&str>;
    let done = |result: nix::Result<()>| result.map_err(io::Error::from);
    Some(match *words {
        ["mount", place] => mount_something(place),
        // Both are on a mount that exists only in a sandbox.
        ["remount"] => {
            let flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND;
            done(mount(none, FIXTURE_INSIDE, none, flags, none))
        }
        ["unmount"] => done(umount2(FIXTURE_INSIDE, MntFlags::MNT_DETACH)),
        ["unshare-mounts"] => done(unshare(CloneFlags::CLONE_NEWNS)),
        ["unshare-user"] => done(unshare(CloneFlags::CLONE_NEWUSER)),
        ["change-root"] => done(chroot(".")),
        ["know-host-name", name] => gethostname()
            .map_err(io::Error::from)
            .and_then(|found| require(found == *name, "another name")),
        // They set the names that the machine already has.
        ["set-host-name"] => done(gethostname().and_then(sethostname)),
        ["set-domain-name"] => set_domain_name(),
        ["have-variable", name] => {
            require(std::env::vars_os().any(|(known, _)| known == *name), "no such variable")
        }
        ["be-user", user] => be_user(user.parse().ok()?),
        ["have-capabilities"] => have_capabilities(),
        ["shared-memory", key] => shared_memory(key.parse().ok()?),
        ["leave-group", members] if members.ends_with("/cgroup.procs") => fs::write(members, "0"),
        ["lease", ref paths @ ..] => {
            any_path(paths, |path| file_command(path, libc::F_SETLEASE, libc::F_RDLCK))
        }
        ["delegate", path] => delegate(path),
        ["notify", path] => file_command(path, libc::F_NOTIFY, DN_DELETE),
        ["huge-pages"] => huge_pages(),
        ["type"] => type_into_terminal(),
        [call] => return system_call(call),
        _ => return None,
    })
}

/// Runs a command of `fcntl` on a file. Its effect ends with this process.
fn file_command(path: &str, command: i32, value: i32) -> io::Result<()> {
    let file = File::open(path)?;
    // SAFETY: both commands take a number.
    require_success(unsafe { libc::fcntl(file.as_raw_fd(), command, value) })
}

/// Asks for a notice before anybody changes a folder. The effect ends with this process.
fn delegate(path: &str) -> io::Result<()> {
    let folder = File::open(path)?;
    // The kernel's `struct delegation`: 32 bits of flags, a lock for reading, nothing more.
    let wanted = [0u16, 0, libc::F_RDLCK as u16, 0];
    // SAFETY: the structure is as large as the kernel's, and outlives the call.
    require_success(unsafe { libc::fcntl(folder.as_raw_fd(), F_SETDELEG, wanted.as_ptr()) })
}

/// Creates an empty file of huge pages, or maps one huge page.
fn huge_pages() -> io::Result<()> {
    let none = std::ptr::null_mut();
    let bytes = 2 << 20;
    let how = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB;
    // SAFETY: the name is terminated. The page is new, and nobody touches it.
    unsafe {
        require_success(libc::memfd_create(c"huge".as_ptr(), libc::MFD_HUGETLB)).or_else(|_| {
            let page = libc::mmap(none, bytes, libc::PROT_READ, how, -1, 0);
            require_success(page as libc::c_long)
        })
    }
}

/// Performs an attempt that is a single system call.
fn system_call(call: &str) -> Option<io::Result<()>> {
    let get_key_ring = 0;
    let process_keys = -2;
    let make = 1;
    let mut bytes = [0u8; 128];
    // SAFETY: strings are terminated; lengths are true, the buffer is larger than every
    // structure that the kernel reads or writes there, and zero is a valid value for each.
    Some(require_success(unsafe {
        let buffer = bytes.as_mut_ptr();
        match call {
            // This would report every file that anybody opens.
            "watch-everything" => libc::fanotify_init(libc::FAN_CLASS_CONTENT, 0).into(),
            "read-log" => libc::klogctl(3, buffer.cast(), 64).into(),
            // No port is touched. The right to use ports ends with the process.
            "use-ports" => libc::syscall(libc::SYS_iopl, 3),
            "add-key" => {
                let kind = c"user".as_ptr();
                let name = c"attempt".as_ptr();
                let value = c"x".as_ptr();
                libc::syscall(libc::SYS_add_key, kind, name, value, 1usize, process_keys)
            }
            "key-ring" => libc::syscall(libc::SYS_keyctl, get_key_ring, process_keys, make),
            "io-uring" => libc::syscall(libc::SYS_io_uring_setup, 4, buffer),
            // For faults of the program itself only.
            "fault-descriptor" => libc::syscall(libc::SYS_userfaultfd, 1),
            // An array of one element of four bytes, under keys of four.
            "bpf" => {
                buffer.cast::<[u32; 4]>().write_unaligned([2, 4, 4, 1]);
                libc::syscall(libc::SYS_bpf, 0, buffer, 128)
            }
            // Neither has an effect: it is enough that the kernel examines its arguments.
            "clone3" => is_looked_at(libc::syscall(libc::SYS_clone3, buffer, 1), libc::EINVAL),
            "load-module" => {
                let image = libc::syscall(libc::SYS_init_module, buffer, 128, c"".as_ptr());
                is_looked_at(image, libc::ENOEXEC)
            }
            _ => return None,
        }
    }))
}

/// Returns 0 if a call failed with the expected error, which shows that the kernel examined it.
fn is_looked_at(result: libc::c_long, expected: i32) -> libc::c_long {
    let found = io::Error::last_os_error().raw_os_error();
    if result < 0 && found == Some(expected) { 0 } else { result }
}

/// Mounts a file system on a place and unmounts it.
fn mount_something(place: &str) -> io::Result<()> {
    let is_new = !Path::new(place).exists();
    if is_new {
        fs::create_dir(place)?;
    }
    let mounted = mount(Some("tmpfs"), place, Some("tmpfs"), MsFlags::empty(), None::<&str>);
    let taken = mounted.and_then(|()| umount2(place, MntFlags::MNT_DETACH));
    if is_new {
        fs::remove_dir(place)?;
    }
    Ok(taken?)
}

/// Succeeds if this process's user inside is this user outside.
fn be_user(user: u32) -> io::Result<()> {
    let map = fs::read_to_string("/proc/self/uid_map")?;
    let first: Vec<u32> = map.split_whitespace().take(2).flat_map(str::parse).collect();
    let own = nix::unistd::geteuid().as_raw();
    let known = "it is a user of the sandbox's own";
    let outside =
        first.get(1).zip(first.first()).and_then(|(out, inside)| out.checked_add(own - inside));
    require(outside == Some(user), known)
}

/// Succeeds if executing this file gave any capability.
fn have_capabilities() -> io::Result<()> {
    let status = fs::read_to_string("/proc/self/status")?;
    let held = status.lines().find_map(|line| line.strip_prefix("CapEff:\t"));
    require(held.is_some_and(|held| held != "0000000000000000"), "no capability")
}

/// Reads a System V segment of another process by its key.
fn shared_memory(key: i32) -> io::Result<()> {
    // SAFETY: the segment was planted with at least 64 bytes.
    let bytes = unsafe {
        let segment = libc::shmget(key, 0, 0);
        require_success(segment)?;
        let place = libc::shmat(segment, std::ptr::null(), libc::SHM_RDONLY);
        if place as isize == -1 {
            return Err(io::Error::last_os_error());
        }
        std::slice::from_raw_parts(place.cast::<u8>(), 64)
    };
    require_secret(bytes)
}

fn set_domain_name() -> io::Result<()> {
    let name = fs::read_to_string("/proc/sys/kernel/domainname")?;
    let name = name.trim_end();
    // SAFETY: the name is as long as said.
    require_success(unsafe { libc::setdomainname(name.as_ptr().cast(), name.len()) })
}

/// Types into a terminal of this process's own, as its owner would.
fn type_into_terminal() -> io::Result<()> {
    // silent-ok: the process may already lead a session.
    setsid().ok();
    let terminal = openpty(None, None)?;
    let slave = terminal.slave.as_raw_fd();
    // Closing it would end the session, and so this process before it can report.
    std::mem::forget(terminal);
    // SAFETY: numbers, and one byte to read.
    unsafe {
        answer(libc::ioctl(slave, libc::TIOCSCTTY, 0).into())?;
        require_success(libc::ioctl(slave, libc::TIOCSTI, c"x".as_ptr()))
    }
}
