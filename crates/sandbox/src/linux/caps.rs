//! Gives up capabilities, and every way to regain them.
//!
//! In the sandbox's user namespace the program is user 0. That alone would give it all
//! capabilities there at each `execve`.

use nix::errno::Errno;

use super::{StepContext as _, StepFailure};

/// `SECBIT_*` of the kernel's interface: no capabilities for user 0, none kept over a change of
/// user, none ambient. The settings are permanent.
const SECURE_BITS: libc::c_ulong = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 6 | 1 << 7;

/// `SECBIT_NO_SETUID_FIXUP` of the kernel's interface.
const KEEPS_WITH_USER: libc::c_ulong = 1 << 2;

/// The highest capability number that a kernel could have.
const CAPABILITY_LIMIT: libc::c_ulong = 64;

/// `_LINUX_CAPABILITY_VERSION_3` of the kernel's interface.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

#[repr(C)]
struct CapsHeader {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapsSets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Empties the set from which `execve` takes capabilities.
pub(crate) fn drop_bounding_set() -> Result<(), StepFailure> {
    for capability in 0..CAPABILITY_LIMIT {
        match prctl(libc::PR_CAPBSET_DROP, capability) {
            Ok(()) => {}
            // Beyond the last capability of this kernel.
            Err(Errno::EINVAL) => break,
            Err(errno) => return Err(errno).step("empty the capability bounding set"),
        }
    }
    prctl(libc::PR_SET_SECUREBITS, SECURE_BITS).step("take the meaning from user 0")
}

/// Lets this process keep its capabilities while it temporarily is another user.
pub(crate) fn keep_across_user_change() -> Result<(), StepFailure> {
    prctl(libc::PR_SET_SECUREBITS, KEEPS_WITH_USER).step("keep capabilities over a change of user")
}

/// Gives up all capabilities of this process.
pub(crate) fn drop_all() -> Result<(), StepFailure> {
    let header = CapsHeader { version: CAPABILITY_VERSION, pid: 0 };
    let none = [CapsSets::default(); 2];
    // SAFETY: header and sets have the layout of version 3, two sets of 32 bits, and outlive the
    // call.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) };
    Errno::result(result).map(drop).step("give up capabilities")
}

fn prctl(option: libc::c_int, value: libc::c_ulong) -> nix::Result<()> {
    let zero: libc::c_ulong = 0;
    // SAFETY: the options used here take one number and no pointer.
    let result = unsafe { libc::prctl(option, value, zero, zero, zero) };
    Errno::result(result).map(drop)
}
