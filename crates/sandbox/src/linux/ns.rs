//! Namespaces: creation, ids, host name, loopback.
//!
//! The first process is cloned directly into its namespaces, so that there is no moment with only
//! some of them. Must only be used while the helper has one thread.

use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::unistd::{ForkResult, Gid, Pid, Uid, setresgid, setresuid};

use super::{StepContext as _, StepFailure};
use crate::plan::Namespace;

/// The identity of a network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NetworkId {
    device: u64,
    inode: u64,
}

impl NetworkId {
    /// Returns the network of this process.
    pub(crate) fn current() -> Result<Self, StepFailure> {
        let found = fs::metadata("/proc/self/ns/net").step("look at the network")?;
        Ok(Self { device: found.dev(), inode: found.ino() })
    }
}

/// Fails if this process is in the outer network. Sockets are harmless only in a separate one.
pub(crate) fn require_own_network(outer: &NetworkId) -> Result<(), StepFailure> {
    let step = "make a network of its own";
    if NetworkId::current()? == *outer {
        let problem = "it is the one of those outside".to_owned();
        return Err(StepFailure { step: step.to_owned(), problem });
    }
    Ok(())
}

/// The ids of the first process outside of the namespaces. The caller's must be read before they
/// change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ids {
    user: Uid,
    group: Gid,
    /// True if they belong to the sandbox and not to the caller.
    own: bool,
}

impl Ids {
    pub(crate) fn current() -> Self {
        Self { user: Uid::effective(), group: Gid::effective(), own: false }
    }

    /// Returns a user and a group of the sandbox's own with this number.
    pub(crate) const fn from_number(user: u32) -> Self {
        Self { user: Uid::from_raw(user), group: Gid::from_raw(user), own: true }
    }

    pub(crate) fn is_root(self) -> bool {
        self.user.is_root()
    }
}

/// Forks into new namespaces with these ids. The kernel also counts resources of a user namespace
/// for the user that created it.
pub(crate) fn clone_as(ids: Ids, namespaces: &[Namespace]) -> nix::Result<ForkResult> {
    if !ids.own {
        return clone_into(namespaces);
    }
    let before = Ids::current();
    act_as(ids)?;
    let born = clone_into(namespaces);
    if !matches!(born, Ok(ForkResult::Child)) {
        act_as(before)?;
    }
    born
}

/// Changes all ids except the real one, by which the kernel still knows root.
fn act_as(ids: Ids) -> nix::Result<()> {
    let same_user = Uid::from_raw(u32::MAX);
    let same_group = Gid::from_raw(u32::MAX);
    setresgid(same_group, ids.group, ids.group)?;
    setresuid(same_user, ids.user, ids.user)
}

/// Forks into new namespaces.
pub(crate) fn clone_into(namespaces: &[Namespace]) -> nix::Result<ForkResult> {
    let flags = namespaces.iter().fold(libc::SIGCHLD, |flags, namespace| {
        flags
            | match namespace {
                Namespace::User => libc::CLONE_NEWUSER,
                Namespace::Mount => libc::CLONE_NEWNS,
                Namespace::Process => libc::CLONE_NEWPID,
                Namespace::Network => libc::CLONE_NEWNET,
                Namespace::Ipc => libc::CLONE_NEWIPC,
                Namespace::HostName => libc::CLONE_NEWUTS,
                Namespace::Cgroup => libc::CLONE_NEWCGROUP,
            }
    });
    // SAFETY: without a stack and without CLONE_VM this is a fork: the child continues with a
    // copy of everything. The helper has one thread, so no lock can be held by a thread that the
    // copy lacks.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    match Errno::result(pid)? {
        0 => Ok(ForkResult::Child),
        pid => {
            let pid = i32::try_from(pid).map_err(|_| Errno::ERANGE)?;
            Ok(ForkResult::Parent { child: Pid::from_raw(pid) })
        }
    }
}

/// Maps the caller to user 0 and group 0 of the new namespace, and maps no other ids.
pub(crate) fn map_ids(ids: Ids) -> Result<(), StepFailure> {
    // Changing ids closes the process's files in /proc.
    let reopen = || prctl::set_dumpable(true).step("open the first process's files");
    if ids.own {
        reopen()?;
    }
    fs::write("/proc/self/uid_map", format!("0 {} 1", ids.user)).step("map the user id")?;
    // The kernel demands this before an ordinary user may map a group.
    fs::write("/proc/self/setgroups", "deny").step("give up changing groups")?;
    fs::write("/proc/self/gid_map", format!("0 {} 1", ids.group)).step("map the group id")?;
    if ids.own {
        let user = Uid::from_raw(0);
        let group = Gid::from_raw(0);
        let become_it = setresgid(group, group, group).and_then(|()| setresuid(user, user, user));
        become_it.step("become a user of its own")?;
        reopen()?;
    }
    Ok(())
}

/// Brings up the namespace's own loopback interface.
pub(crate) fn loopback_up() -> Result<(), StepFailure> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
        .step("open a socket for the loopback interface")?;
    // SAFETY: `ifreq` is plain data for which zero is a valid value. The name fits with its NUL.
    // The request pointer is valid during the call.
    let result = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        for (place, byte) in request.ifr_name.iter_mut().zip(*b"lo") {
            *place = byte as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw mut request)
    };
    Errno::result(result).map(drop).step("bring up the loopback interface")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_of_those_outside_is_refused() {
        let ours = NetworkId::current().unwrap();
        let refused = require_own_network(&ours).unwrap_err();
        assert_eq!(refused.problem, "it is the one of those outside");
        let another = NetworkId { inode: ours.inode + 1, ..ours };
        assert!(require_own_network(&another).is_ok());
    }
}
