//! Kernel protection for our processes that hold a key.
//!
//! It provides a page that never reaches the disk, and a system call filter without network and
//! programs. Only the key's own page is locked: the whole process would exceed the limit of most
//! users. It must never be used for other programs, which run behind [`crate::Launcher`].

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::ptr::NonNull;

use automaton_core::error::Classified;
use nix::errno::Errno;
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mlock, mmap_anonymous, munmap};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use thiserror::Error;
use zeroize::Zeroize as _;

/// A protection of a key that the kernel refused.
#[derive(Debug, Error, Classified)]
pub enum VaultError {
    /// No page can be locked in memory.
    #[error("cannot lock a page of memory for a key")]
    #[class(Internal, hint = "Allow locked memory of 8 pages or more, see `ulimit -l`.")]
    Lock(#[source] io::Error),
    /// The system calls could not be limited.
    #[error("cannot limit the system calls of this process")]
    #[class(Internal, hint = "A kernel with seccomp filters is needed.")]
    Confine(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Bytes in pages of their own: never swapped out, not in core dumps, zero in a forked child,
/// wiped when dropped.
#[derive(Debug)]
pub struct LockedBytes<const N: usize>(NonNull<[u8; N]>);

// SAFETY: the mapping belongs to this value alone, and is borrowed through it
// under the usual rules, so that it may be used from any thread.
unsafe impl<const N: usize> Send for LockedBytes<N> {}
// SAFETY: as above; a shared reference only reads.
unsafe impl<const N: usize> Sync for LockedBytes<N> {}

impl<const N: usize> LockedBytes<N> {
    /// Allocates zeroed bytes.
    ///
    /// # Errors
    /// Fails if no memory can be allocated or locked.
    pub fn zeroed() -> Result<Self, VaultError> {
        let failed = |errno: Errno| VaultError::Lock(errno.into());
        let length = NonZeroUsize::new(N).ok_or_else(|| failed(Errno::EINVAL))?;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new private mapping at an address of the kernel's choice touches nothing that
        // exists.
        let start = unsafe { mmap_anonymous(None, length, access, MapFlags::MAP_PRIVATE) };
        // Owned from here on, so that an error below frees it. The kernel aligns mappings to
        // pages and fills them with zeros, a valid value.
        let bytes = Self(start.map_err(failed)?.cast());
        let start = bytes.0.cast();
        // SAFETY: the range is the mapping made above, and neither call changes what this process
        // reads there.
        unsafe {
            mlock(start, N).map_err(failed)?;
            madvise(start, N, MmapAdvise::MADV_DONTDUMP).map_err(failed)?;
            madvise(start, N, MmapAdvise::MADV_WIPEONFORK).map_err(failed)?;
        }
        Ok(bytes)
    }

    /// Returns the bytes.
    #[must_use]
    pub const fn get(&self) -> &[u8; N] {
        // SAFETY: the mapping holds N initialised bytes for as long as `self`.
        unsafe { self.0.as_ref() }
    }

    /// Returns the bytes for writing.
    #[must_use]
    pub const fn get_mut(&mut self) -> &mut [u8; N] {
        // SAFETY: as above, and `self` is borrowed for writing.
        unsafe { self.0.as_mut() }
    }
}

impl<const N: usize> Drop for LockedBytes<N> {
    fn drop(&mut self) {
        self.get_mut().zeroize();
        // SAFETY: the mapping is ours and nobody can borrow it any more.
        let unmapped = unsafe { munmap(self.0.cast(), N) };
        // silent-ok: a page that stays mapped contains only zeros.
        unmapped.ok();
    }
}

/// Confines this process permanently, in all its threads, to system calls for serving its open
/// sockets and files. It cannot open sockets, connect, start programs, children or threads, or
/// affect other processes. Sets `no_new_privs`. Refused calls fail with `EPERM`.
///
/// # Errors
/// Fails if the kernel has no such filters.
pub fn confine_key_holder() -> Result<(), VaultError> {
    let program = filter().map_err(|error| VaultError::Confine(error.into()))?;
    seccompiler::apply_filter_all_threads(&program)
        .map_err(|error| VaultError::Confine(error.into()))
}

fn filter() -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<_, _> = PERMITTED.iter().map(|call| (*call, Vec::new())).collect();
    // A process may end only itself, by a panic or in a drill.
    let own = u64::from(std::process::id());
    for call in [libc::SYS_kill, libc::SYS_tgkill] {
        let itself = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, own)?;
        rules.insert(call, vec![SeccompRule::new(vec![itself])?]);
    }
    let refuse = SeccompAction::Errno(Errno::EPERM as u32);
    let architecture = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, refuse, SeccompAction::Allow, architecture)?.try_into()
}

/// The system calls of the standard library, the allocator and SQLite.
#[rustfmt::skip]
const PERMITTED: &[i64] = &[
    libc::SYS_accept4, libc::SYS_brk, libc::SYS_clock_gettime, libc::SYS_clock_nanosleep,
    libc::SYS_close, libc::SYS_exit, libc::SYS_exit_group, libc::SYS_faccessat,
    libc::SYS_faccessat2, libc::SYS_fallocate, libc::SYS_fchmod, libc::SYS_fchown, libc::SYS_fcntl,
    libc::SYS_fdatasync, libc::SYS_flock, libc::SYS_fstat, libc::SYS_fsync, libc::SYS_ftruncate, libc::SYS_futex,
    libc::SYS_getcwd, libc::SYS_geteuid, libc::SYS_getpid, libc::SYS_getrandom, libc::SYS_gettid,
    libc::SYS_gettimeofday, libc::SYS_getuid, libc::SYS_lseek, libc::SYS_madvise, libc::SYS_mlock,
    libc::SYS_mmap, libc::SYS_mprotect, libc::SYS_mremap, libc::SYS_munlock, libc::SYS_munmap,
    libc::SYS_newfstatat, libc::SYS_openat, libc::SYS_ppoll, libc::SYS_pread64,
    libc::SYS_pwrite64, libc::SYS_read, libc::SYS_readlinkat, libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_restart_syscall, libc::SYS_rseq, libc::SYS_rt_sigaction, libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn, libc::SYS_sched_yield, libc::SYS_sendto, libc::SYS_set_robust_list,
    libc::SYS_setsockopt, libc::SYS_shutdown, libc::SYS_sigaltstack, libc::SYS_statx,
    libc::SYS_sysinfo, libc::SYS_unlinkat, libc::SYS_write, libc::SYS_writev,
    #[cfg(target_arch = "x86_64")] libc::SYS_access,
    #[cfg(target_arch = "x86_64")] libc::SYS_lstat,
    #[cfg(target_arch = "x86_64")] libc::SYS_open,
    #[cfg(target_arch = "x86_64")] libc::SYS_poll,
    #[cfg(target_arch = "x86_64")] libc::SYS_readlink,
    #[cfg(target_arch = "x86_64")] libc::SYS_stat,
    #[cfg(target_arch = "x86_64")] libc::SYS_unlink,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locked_bytes_begin_as_zeros_and_keep_what_is_written() {
        let mut bytes = LockedBytes::<32>::zeroed().unwrap();
        assert_eq!(bytes.get(), &[0; 32]);
        bytes.get_mut()[31] = 7;
        assert_eq!(bytes.get()[31], 7);
        assert!(LockedBytes::<0>::zeroed().is_err());
    }

    #[test]
    fn locked_bytes_are_locked_and_left_out_of_core_images() {
        let bytes = LockedBytes::<32>::zeroed().unwrap();
        let start = format!("{:x}-", std::ptr::from_ref(bytes.get()).addr());
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let from = maps.lines().skip_while(|line| !line.starts_with(&start));
        let flags = from.skip(1).find(|line| line.starts_with("VmFlags:")).unwrap();
        for flag in [" lo", " dd", " wf"] {
            assert!(flags.contains(flag), "{flags}");
        }
    }

    #[test]
    fn nothing_that_starts_programs_or_opens_sockets_is_permitted() {
        assert!(filter().unwrap().len() < 4096);
        for call in [
            libc::SYS_socket,
            libc::SYS_connect,
            libc::SYS_bind,
            libc::SYS_execve,
            libc::SYS_execveat,
            libc::SYS_clone,
            libc::SYS_clone3,
            libc::SYS_ptrace,
            libc::SYS_prctl,
            libc::SYS_io_uring_setup,
            libc::SYS_kill,
        ] {
            assert!(!PERMITTED.contains(&call), "{call}");
        }
    }
}
