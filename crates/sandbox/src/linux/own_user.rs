//! A user and a group of the host that belong to one sandbox.
//!
//! Only root of the machine can assign one. The namespaces are created in its name, so the kernel
//! counts a user's resources for it alone. Files of the launcher are mapped to it by mounts, and
//! on disk they keep their owner. If the machine does not support that, the sandbox's processes
//! belong to the launching user on the host, behind all other layers. It must never be left out
//! for any other reason.

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

/// The user and the trees that the privileged helper prepares for a sandbox with its own user.
#[derive(Debug)]
pub(crate) struct OwnUser {
    pub(crate) ids: Ids,
    /// The host trees of the new root, mapped to that user.
    pub(crate) trees: HostTrees,
}

impl OwnUser {
    /// Prepares the user that the script asks for, if the script's files can be mapped. A probe
    /// has tested the other requirements.
    pub(crate) fn make(script: &HelperScript) -> Result<Option<Self>, StepFailure> {
        let nodes = script.setup.iter().find_map(|step| match step {
            Setup::Root(nodes) => Some(nodes),
            _ => None,
        });
        let Some((user, nodes)) = script.user.zip(nodes) else { return Ok(None) };
        let trees = mount::open_trees(nodes, Some(&mapped_user_namespace(user)?));
        // silent-ok: a tree that cannot be opened is reported when it is opened again.
        Ok(trees.ok().map(|trees| Self { ids: Ids::from_number(user), trees }))
    }
}

/// Creates a user namespace for mounts. It maps root's ids to this user's, and all other ids to
/// themselves.
pub(crate) fn mapped_user_namespace(user: u32) -> Result<OwnedFd, StepFailure> {
    // Creating namespaces in another user's name must keep the capabilities.
    caps::keep_across_user_change()?;
    let below = user - 1;
    let next = user + 1;
    let map = format!("0 {user} 1\n1 1 {below}\n{next} {next} {}\n", u32::MAX - next);
    let (end, held) = pipe2(OFlag::O_CLOEXEC).step("make a pipe")?;
    match ns::clone_into(&[Namespace::User]).step("make a user namespace for mounts")? {
        ForkResult::Child => {
            die_with_parent();
            drop(held);
            // silent-ok: it waits until the helper closes the pipe or is gone.
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
