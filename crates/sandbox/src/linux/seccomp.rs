//! The system calls that a sandboxed program may make.
//!
//! Two filters. The first permits a list and answers `ENOSYS` to all else, so
//! that a call of a future kernel is refused and a C library falls back, as it
//! does for `clone3`, whose flags a filter cannot see. The second answers
//! `EPERM` to what is refused on purpose. A call needs both. Never permit a
//! call by its absence from the second list.

use std::collections::BTreeMap;

use nix::errno::Errno;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

use super::syscalls::{self, PERMITTED_IF_COUNTED};
use super::{Named as _, Problem};
use crate::plan::{SharedMemory, SyscallFilter};
use crate::spec::Network;

/// What one system call's rules are; none means always.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

const NAMESPACE_FLAGS: [libc::c_int; 8] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWTIME,
];

/// `TIOCSTI` types into a terminal, `TIOCLINUX` pastes into a console,
/// `TIOCSETD` loads line disciplines.
const REFUSED_IOCTLS: [u64; 3] = [libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCSETD];

/// The bit of `O_TMPFILE` that is its own: it makes a file that gets its name later, and is
/// no `O_CREAT`.
const NAMELESS: u64 = 0o20_000_000;

/// The part of a socket's type that is not a flag.
const SOCKET_TYPE_MASK: u64 = 0xf;

/// What `personality` may be asked for: to tell, the default, and the default
/// without address randomisation, which debuggers and test tools use.
const PERSONALITIES: [u64; 3] = [0xffff_ffff, 0, 0x0004_0000];

/// The lists in the kernel's form. To make them takes longer than to start a program.
pub(crate) struct Filters([BpfProgram; 2]);

impl Filters {
    pub(crate) fn make(filter: &SyscallFilter) -> Result<Self, Problem> {
        programs(filter).map(Self).step("make the list of system calls")
    }

    /// Confines this process and its descendants.
    pub(crate) fn apply(&self) -> Result<(), Problem> {
        self.0.iter().try_for_each(install).step("apply the list of system calls")
    }
}

/// Why this machine has no such filters; `None` if it has.
pub(crate) fn missing() -> Option<String> {
    if let Err(error) = architecture() {
        return Some(error.to_string());
    }
    let action = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the pointer to the action is valid during the call, which only
    // asks.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action)
    };
    Errno::result(result).err().map(|errno| errno.to_string())
}

fn architecture() -> Result<TargetArch, BackendError> {
    std::env::consts::ARCH.try_into()
}

fn programs(filter: &SyscallFilter) -> Result<[BpfProgram; 2], BackendError> {
    let refuse_unknown = SeccompAction::Errno(Errno::ENOSYS as u32);
    let refuse = SeccompAction::Errno(Errno::EPERM as u32);
    let compile = |rules, otherwise, on_match| {
        SeccompFilter::new(rules, otherwise, on_match, architecture()?)?.try_into()
    };
    Ok([
        compile(permitted(filter)?, refuse_unknown, SeccompAction::Allow)?,
        compile(refused(filter)?, SeccompAction::Allow, refuse)?,
    ])
}

fn permitted(filter: &SyscallFilter) -> Result<Rules, BackendError> {
    let mut rules: Rules = syscalls::permitted().map(|call| (call, Vec::new())).collect();
    if filter.shared_memory == SharedMemory::Counted {
        rules.extend(PERMITTED_IF_COUNTED.iter().map(|call| (*call, Vec::new())));
    }
    let no_namespace =
        NAMESPACE_FLAGS.iter().fold(0, |mask, flag| mask | u64::from(flag.cast_unsigned()));
    rules.insert(libc::SYS_clone, vec![rule(&[masked(0, no_namespace, 0)?])?]);
    let personalities = PERSONALITIES.iter().map(|value| rule(&[equal(0, *value)?]));
    rules.insert(libc::SYS_personality, personalities.collect::<Result<_, _>>()?);
    Ok(rules)
}

fn refused(filter: &SyscallFilter) -> Result<Rules, BackendError> {
    let mut rules: Rules = syscalls::refused().map(|call| (call, Vec::new())).collect();
    let flags = NAMESPACE_FLAGS.iter().map(|flag| {
        let flag = u64::from(flag.cast_unsigned());
        rule(&[masked(0, flag, flag)?])
    });
    rules.insert(libc::SYS_clone, flags.collect::<Result<_, _>>()?);
    let ioctls = REFUSED_IOCTLS.iter().map(|request| rule(&[equal(1, *request)?]));
    rules.insert(libc::SYS_ioctl, ioctls.collect::<Result<_, _>>()?);
    let unix = libc::AF_UNIX.cast_unsigned().into();
    let inet = libc::AF_INET.cast_unsigned().into();
    let inet6 = libc::AF_INET6.cast_unsigned().into();
    let raw = libc::SOCK_RAW.cast_unsigned().into();
    let family = match filter.network {
        Network::None => rule(&[differs(0, unix)?])?,
        Network::Loopback | Network::Proxied => {
            rule(&[differs(0, unix)?, differs(0, inet)?, differs(0, inet6)?])?
        }
    };
    let raw_socket = rule(&[differs(0, unix)?, masked(1, SOCKET_TYPE_MASK, raw)?])?;
    rules.insert(libc::SYS_socket, vec![family, raw_socket]);
    rules.insert(libc::SYS_socketpair, vec![rule(&[differs(0, unix)?])?]);
    rules.insert(libc::SYS_mknodat, [device_rules(2)?, privilege_rules(&[], 2)?].concat());
    for (call, mode) in [(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (libc::SYS_fchmodat2, 2)] {
        rules.insert(call, privilege_rules(&[], mode)?);
    }
    let create = libc::O_CREAT.cast_unsigned().into();
    let makes = |flags, mode| {
        let named = privilege_rules(&[masked(flags, create, create)?], mode)?;
        let nameless = privilege_rules(&[masked(flags, NAMELESS, NAMELESS)?], mode)?;
        Ok::<_, BackendError>([named, nameless].concat())
    };
    rules.insert(libc::SYS_openat, makes(2, 3)?);
    #[cfg(target_arch = "x86_64")]
    {
        rules.insert(libc::SYS_mknod, [device_rules(1)?, privilege_rules(&[], 1)?].concat());
        rules.insert(libc::SYS_chmod, privilege_rules(&[], 1)?);
        rules.insert(libc::SYS_creat, privilege_rules(&[], 1)?);
        rules.insert(libc::SYS_open, makes(1, 2)?);
    }
    Ok(rules)
}

/// Matches giving a file the rights of its owner or group, with the mode in
/// this argument. On the host, the workspace's files have an owner: ours.
fn privilege_rules(
    when: &[SeccompCondition],
    argument: u8,
) -> Result<Vec<SeccompRule>, BackendError> {
    [libc::S_ISUID, libc::S_ISGID]
        .into_iter()
        .map(|bit| {
            let bit = masked(argument, bit.into(), bit.into())?;
            rule(&[when, &[bit]].concat())
        })
        .collect()
}

/// Matches making a device node, with the mode in this argument.
fn device_rules(argument: u8) -> Result<Vec<SeccompRule>, BackendError> {
    let kind = u64::from(libc::S_IFMT);
    [libc::S_IFCHR, libc::S_IFBLK]
        .into_iter()
        .map(|device| rule(&[masked(argument, kind, u64::from(device))?]))
        .collect()
}

fn rule(conditions: &[SeccompCondition]) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.to_vec())
}

// The arguments compared here are 32 bits wide: the kernel ignores what a
// program puts above them, so the filter has to as well.

fn equal(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn differs(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, BackendError> {
    let comparison = SeccompCmpOp::MaskedEq(mask);
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, comparison, value)
}

/// The crate's own way to do this would also set `no_new_privs`, which is a
/// step of its own in our plans.
fn install(program: &BpfProgram) -> nix::Result<()> {
    let len = libc::c_ushort::try_from(program.len()).map_err(|_| Errno::E2BIG)?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut().cast() };
    // SAFETY: the structure points to as many instructions as it says, in the
    // kernel's layout; the kernel only copies them, during the call.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
    };
    Errno::result(result).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_is_both_permitted_and_refused() {
        for call in syscalls::refused().chain([libc::SYS_clone3]) {
            assert!(syscalls::permitted().all(|permitted| permitted != call), "{call}");
            assert!(!PERMITTED_IF_COUNTED.contains(&call), "{call}");
        }
        // `clone3` needs the answer that makes C libraries fall back.
        assert!(syscalls::refused().all(|refused| refused != libc::SYS_clone3));
    }

    #[test]
    fn every_filter_fits_the_kernel() {
        for network in [Network::None, Network::Loopback, Network::Proxied] {
            for shared_memory in [SharedMemory::Counted, SharedMemory::Refused] {
                let filter = SyscallFilter { network, shared_memory };
                for program in programs(&filter).unwrap() {
                    assert!(program.len() < 4096, "{}", program.len());
                }
            }
        }
    }
}
