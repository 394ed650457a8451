//! Attempts on what administers a machine.

use std::fs;
use std::io;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{chroot, gethostname, sethostname};

use crate::{answer, argument, require_secret};

pub(crate) fn mount_tmp(_: &[String]) -> io::Result<()> {
    let none = None::<&str>;
    Ok(mount(Some("tmpfs"), "/tmp", Some("tmpfs"), MsFlags::empty(), none)?)
}

/// Makes the system writable.
pub(crate) fn remount(_: &[String]) -> io::Result<()> {
    let none = None::<&str>;
    Ok(mount(none, "/usr", none, MsFlags::MS_REMOUNT | MsFlags::MS_BIND, none)?)
}

pub(crate) fn unshare_user(_: &[String]) -> io::Result<()> {
    Ok(unshare(CloneFlags::CLONE_NEWUSER)?)
}

pub(crate) fn change_root(_: &[String]) -> io::Result<()> {
    Ok(chroot(".")?)
}

/// Whether executing this very file gave any capability.
pub(crate) fn have_capabilities(_: &[String]) -> io::Result<()> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:\t"));
    match line {
        Some("0000000000000000") | None => Err(io::Error::other("no capability")),
        Some(_) => Ok(()),
    }
}

#[expect(clippy::disallowed_methods, reason = "what this process was given is the question")]
pub(crate) fn have_variable(words: &[String]) -> io::Result<()> {
    let name: String = argument(words, 0)?;
    let found = std::env::vars().any(|(known, _)| known == name);
    if found { Ok(()) } else { Err(io::Error::other("no such variable")) }
}

pub(crate) fn add_key(_: &[String]) -> io::Result<()> {
    // SAFETY: three terminated strings, a length that fits the third.
    let result = unsafe {
        let (kind, name, value) = (c"user".as_ptr(), c"attempt".as_ptr(), c"x".as_ptr());
        libc::syscall(libc::SYS_add_key, kind, name, value, 1usize, -2)
    };
    answer(result).map(drop)
}

pub(crate) fn io_uring(_: &[String]) -> io::Result<()> {
    let mut parameters = [0u8; 120];
    // SAFETY: the kernel's structure has 120 bytes, all of which may be zero.
    let result = unsafe { libc::syscall(libc::SYS_io_uring_setup, 4, parameters.as_mut_ptr()) };
    answer(result).map(drop)
}

pub(crate) fn fault_descriptor(_: &[String]) -> io::Result<()> {
    let user_mode_only = 1;
    // SAFETY: the call takes flags and makes a descriptor.
    answer(unsafe { libc::syscall(libc::SYS_userfaultfd, user_mode_only) }).map(drop)
}

/// Makes an array map of one element.
pub(crate) fn bpf(_: &[String]) -> io::Result<()> {
    let mut attributes = [0u32; 32];
    attributes[..4].copy_from_slice(&[2, 4, 4, 1]);
    // SAFETY: map creation reads the attributes, whose size is given.
    let result = unsafe {
        let size = size_of_val(&attributes);
        libc::syscall(libc::SYS_bpf, 0, attributes.as_mut_ptr(), size)
    };
    answer(result).map(drop)
}

/// Reads a System V segment of another process by its key.
pub(crate) fn shared_memory(words: &[String]) -> io::Result<()> {
    let key: i32 = argument(words, 0)?;
    // SAFETY: the test made the segment with at least 64 bytes.
    let bytes = unsafe {
        let segment = libc::shmget(key, 0, 0);
        answer(segment.into())?;
        let place = libc::shmat(segment, std::ptr::null(), libc::SHM_RDONLY);
        if place as isize == -1 {
            return Err(io::Error::last_os_error());
        }
        std::slice::from_raw_parts(place.cast::<u8>(), 64)
    };
    require_secret(bytes)
}

pub(crate) fn know_host_name(words: &[String]) -> io::Result<()> {
    let known = gethostname()?.to_string_lossy() == argument::<String>(words, 0)?;
    if known { Ok(()) } else { Err(io::Error::other("another name")) }
}

/// Sets the name that the machine has already.
pub(crate) fn set_host_name(_: &[String]) -> io::Result<()> {
    Ok(sethostname(gethostname()?)?)
}

/// The call whose flags no filter sees; C libraries must be told to fall back.
pub(crate) fn clone3(_: &[String]) -> io::Result<()> {
    let mut arguments = [0u64; 8];
    // SAFETY: an invalid size makes the call fail before it does anything.
    let result = unsafe { libc::syscall(libc::SYS_clone3, arguments.as_mut_ptr(), 1usize) };
    match answer(result) {
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => Err(error),
        _ => Ok(()),
    }
}

/// Takes away what hides the host's processes.
pub(crate) fn unmount(_: &[String]) -> io::Result<()> {
    Ok(nix::mount::umount2("/tmp", nix::mount::MntFlags::MNT_DETACH)?)
}

pub(crate) fn unshare_mounts(_: &[String]) -> io::Result<()> {
    Ok(unshare(CloneFlags::CLONE_NEWNS)?)
}

/// Sets the domain name that the machine has already.
pub(crate) fn set_domain_name(_: &[String]) -> io::Result<()> {
    let name = fs::read_to_string("/proc/sys/kernel/domainname")?;
    let name = name.trim_end();
    // SAFETY: the name is as long as said.
    answer(unsafe { libc::setdomainname(name.as_ptr().cast(), name.len()) }.into()).map(drop)
}

/// Hears of every file that anybody opens.
pub(crate) fn watch_everything(_: &[String]) -> io::Result<()> {
    // SAFETY: the call takes numbers and gives a descriptor.
    answer(unsafe { libc::fanotify_init(libc::FAN_CLASS_CONTENT, 0) }.into()).map(drop)
}

/// Reads what the kernel told.
pub(crate) fn read_log(_: &[String]) -> io::Result<()> {
    let mut bytes = [0u8; 64];
    let read_all = 3;
    // SAFETY: the buffer is as long as said.
    let result = unsafe { libc::klogctl(read_all, bytes.as_mut_ptr().cast(), 64) };
    answer(result.into()).map(drop)
}

/// Talks to the processor's ports.
pub(crate) fn use_ports(_: &[String]) -> io::Result<()> {
    // SAFETY: no port is touched; the right to is given back with the process.
    answer(unsafe { libc::syscall(libc::SYS_iopl, 3) }).map(drop)
}
