//! Tries what the layers are made of, in processes to be thrown away.
//!
//! Must leave nothing behind, and must never take a feature for given because
//! of a version number.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, pause, pipe2};

use super::ns::{self, Ids};
use super::{StepContext as _, StepFailure, cgroup, mount, seccomp};
use crate::plan::Namespace;
use crate::probe::{Feature, Probe};

/// `LANDLOCK_CREATE_RULESET_VERSION` of the kernel's interface.
const LANDLOCK_VERSION_FLAG: u32 = 1;

/// Runs in a new process and tells with the byte that it returns.
type Trial<'a> = &'a dyn Fn() -> Result<(), StepFailure>;

/// Tries everything.
pub(crate) fn probe() -> Probe {
    let ids = Ids::current();
    let alone = |namespace| try_in(&[Namespace::User, namespace], &|| ns::map_ids(ids));
    let mount_and = |more: &[Namespace], trial: Trial<'_>| {
        let namespaces = [&[Namespace::User, Namespace::Mount], more].concat();
        try_in(&namespaces, &|| {
            ns::map_ids(ids).and_then(|()| mount::make_private()).and_then(|()| trial())
        })
    };
    Probe {
        user_namespace: alone(Namespace::User),
        mount_namespace: mount_and(&[], &|| Ok(())),
        mount_interface: mount_and(&[], &mount::try_interface),
        process_namespace: alone(Namespace::Process),
        private_proc: mount_and(&[Namespace::Process], &|| {
            mount::mount_proc(Path::new("/proc")).step("mount /proc")
        }),
        network_namespace: alone(Namespace::Network),
        ipc_namespace: alone(Namespace::Ipc),
        host_name_namespace: alone(Namespace::HostName),
        landlock_abi: landlock_abi(),
        seccomp: seccomp::missing().map_or(Feature::Available(()), Feature::Missing),
        cgroup: control_group(),
    }
}

/// Whether a step succeeds in new namespaces.
fn try_in(namespaces: &[Namespace], trial: Trial<'_>) -> Feature {
    let attempt = || -> Result<String, Errno> {
        let (answer, answer_write) = pipe2(OFlag::O_CLOEXEC)?;
        match ns::clone_into(namespaces)? {
            ForkResult::Child => {
                drop(answer);
                answer_and_exit(answer_write, trial)
            }
            ForkResult::Parent { child } => {
                drop(answer_write);
                let mut text = String::new();
                let read = File::from(answer).read_to_string(&mut text);
                waitpid(child, None)?;
                read.map(|_| text).map_err(|_| Errno::EIO)
            }
        }
    };
    match attempt() {
        Ok(text) if text == "ok" => Feature::Available(()),
        Ok(text) if text.is_empty() => Feature::Missing("the trial ended early".to_owned()),
        Ok(text) => Feature::Missing(text),
        Err(errno) => Feature::Missing(std::io::Error::from(errno).to_string()),
    }
}

fn answer_and_exit(answer: OwnedFd, trial: Trial<'_>) -> ! {
    let text = match trial() {
        Ok(()) => "ok".to_owned(),
        Err(StepFailure { step, problem }) => format!("{step}: {problem}"),
    };
    // silent-ok: an answer that does not arrive is a feature that is missing.
    drop(File::from(answer).write_all(text.as_bytes()));
    // SAFETY: ends this copy of the helper at once, without its destructors.
    unsafe { libc::_exit(0) }
}

fn landlock_abi() -> Feature<i32> {
    // SAFETY: with this flag the call reads no attributes and makes nothing.
    let abi = unsafe {
        let nothing = std::ptr::null::<u8>();
        libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0usize, LANDLOCK_VERSION_FLAG)
    };
    match Errno::result(abi).map(i32::try_from) {
        Ok(Ok(abi)) if abi > 0 => Feature::Available(abi),
        Ok(_) => Feature::Missing("the kernel gives no version of it".to_owned()),
        Err(errno) => Feature::Missing(std::io::Error::from(errno).to_string()),
    }
}

/// Where groups can be made, tried with a process that does nothing.
fn control_group() -> Feature<crate::probe::CgroupBase> {
    let missing = |errno: Errno| Feature::Missing(std::io::Error::from(errno).to_string());
    match ns::clone_into(&[]) {
        Err(errno) => missing(errno),
        Ok(ForkResult::Child) => loop {
            pause();
        },
        Ok(ForkResult::Parent { child }) => {
            let found = cgroup::find_base(child);
            // The group can be removed when nobody is in it any more.
            // silent-ok: the trial's process is ours, and gone either way.
            let _ = kill(child, Signal::SIGKILL);
            // silent-ok: as above.
            let _ = waitpid(child, None);
            match found {
                Ok(group) => Feature::Available(group.base().clone()),
                Err(reason) => Feature::Missing(reason),
            }
        }
    }
}
