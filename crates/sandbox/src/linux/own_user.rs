//! A user and a group of the host that are one sandbox's alone.
//!
//! Only root of the machine can give one out. The namespaces are made in its name, so that the
//! kernel counts for it and for nobody else what it counts for a user; files that are
//! the launcher's are lent to it by mounts that show them as its own, and on the disk they stay
//! whose they are. Where the machine does not give it, the sandbox is to the host who launched
//! it, behind all of the other layers. Must never be left out for any other reason.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::fd::OwnedFd;

use nix::fcntl::OFlag;
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, pipe2};

use super::features::die_with_parent;
use super::mount::{self, HostTrees};
use super::ns::{self, Ids};
use super::{StepContext as _, StepFailure, caps};
use crate::plan::{HelperScript, Namespace, Setup};

/// What the helper, which is privileged yet, has ready for a sandbox with a user of its own.
#[derive(Debug)]
pub(crate) struct OwnUser {
    pub(crate) ids: Ids,
    /// What the new root shows of the host, lent to that user.
    pub(crate) trees: HostTrees,
}

impl OwnUser {
    /// What the script asks for, if its files are where they can be lent: that this machine
    /// gives the rest, a probe has found.
    pub(crate) fn make(script: &HelperScript) -> Result<Option<Self>, StepFailure> {
        let nodes = script.setup.iter().find_map(|step| match step {
            Setup::Root(nodes) => Some(nodes),
            _ => None,
        });
        let Some((user, nodes)) = script.user.zip(nodes) else { return Ok(None) };
        let trees = mount::open_trees(nodes, Some(&lend(user)?));
        // silent-ok: what cannot be opened at all is told by whoever opens it next.
        Ok(trees.ok().map(|trees| Self { ids: Ids::own(user), trees }))
    }
}

/// A user namespace for mounts: by it what is root's is this user's, and the rest is whose it is.
pub(crate) fn lend(user: u32) -> Result<OwnedFd, StepFailure> {
    // What makes namespaces in another's name keeps what it may do.
    caps::keep_with_user()?;
    let (below, next) = (user - 1, user + 1);
    let map = format!("0 {user} 1\n1 1 {below}\n{next} {next} {}\n", u32::MAX - next);
    let (end, held) = pipe2(OFlag::O_CLOEXEC).step("make a pipe")?;
    match ns::clone_into(&[Namespace::User]).step("make a user namespace for mounts")? {
        ForkResult::Child => {
            die_with_parent();
            drop(held);
            // silent-ok: it is there until the helper lets go, or is gone.
            drop(File::from(end).read(&mut [0]));
            // SAFETY: ends this copy of the helper at once, without its destructors.
            unsafe { libc::_exit(0) }
        }
        ForkResult::Parent { child } => {
            let at = |file: &str| format!("/proc/{child}/{file}");
            let lent = fs::write(at("uid_map"), &map)
                .and_then(|()| fs::write(at("gid_map"), &map))
                .and_then(|()| File::open(at("ns/user")))
                .step("map users for mounts");
            drop(held);
            waitpid(child, None).step("make a user namespace for mounts")?;
            lent.map(OwnedFd::from)
        }
    }
}
