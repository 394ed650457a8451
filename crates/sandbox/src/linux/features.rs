//! Tests the features that the layers need, in disposable processes.
//!
//! It must leave nothing behind, and must never infer a feature from a version number.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, pipe2};

use super::ns::{self, Ids};
use super::{StepContext as _, StepFailure, cgroup, mount, own_user, seccomp};
use crate::plan::{Namespace, OWN_USERS};
use crate::probe::{Feature, Probe};

/// `LANDLOCK_CREATE_RULESET_VERSION` of the kernel's interface.
const LANDLOCK_VERSION_FLAG: u32 = 1;

/// All tested namespaces.
const ALL: [Namespace; 6] = [
    Namespace::User,
    Namespace::Mount,
    Namespace::Process,
    Namespace::Network,
    Namespace::Ipc,
    Namespace::HostName,
];

/// A trial that runs in a new process and reports its result.
type Trial<'a> = &'a dyn Fn() -> Result<(), StepFailure>;

/// Candidate places of lent files if no workspace is given.
const PLACES: [&str; 3] = ["/home", "/var/lib", "/tmp"];

/// Tests all features: first together, as a run needs them, and separately if that fails.
pub(crate) fn probe(workspace: Option<PathBuf>) -> Probe {
    let ids = Ids::current();
    let mounts = |trial: Trial<'_>| {
        ns::map_ids(ids).and_then(|()| mount::make_private()).and_then(|()| trial())
    };
    let proc = || mount::mount_proc(Path::new("/proc")).step("mount /proc");
    let whole = || mounts(&mount::try_interface).and_then(|()| proc());
    // Each group is removed when dropped, after its process has ended.
    let (all, cgroup) = try_in(&ALL, &whole, cgroup::find_base);
    // Without namespaces, any process can test the groups.
    let cgroup = cgroup.or_else(|| try_in(&[], &|| Ok(()), cgroup::find_base).1);
    let is_whole = all.is_available();
    let alone = |namespaces: &[Namespace], trial: Trial<'_>| {
        if is_whole { Feature::Available(()) } else { try_in(namespaces, trial, |_| ()).0 }
    };
    let [user, mount, process, network, ipc, host_name] = ALL;
    let namespace = |one| alone(&[user, one], &|| ns::map_ids(ids));
    Probe {
        user_namespace: alone(&[user], &|| ns::map_ids(ids)),
        mount_namespace: alone(&[user, mount], &|| mounts(&|| Ok(()))),
        mount_interface: alone(&[user, mount], &|| mounts(&mount::try_interface)),
        process_namespace: namespace(process),
        own_user: own_user(workspace),
        private_proc: alone(&[user, mount, process], &|| mounts(&proc)),
        network_namespace: namespace(network),
        ipc_namespace: namespace(ipc),
        host_name_namespace: namespace(host_name),
        landlock_abi: landlock_abi(),
        seccomp: seccomp::unavailable_reason().map_or(Feature::Available(()), Feature::Missing),
        cgroup: match cgroup {
            Some(Ok(group)) => Feature::Available(group.base().clone()),
            Some(Err(reason)) => Feature::Missing(reason),
            None => Feature::Missing("no process could be tried in one".to_owned()),
        },
    }
}

/// Tests whether a sandbox can have its own host user with files in the workspace, or anywhere if
/// none is given.
fn own_user(workspace: Option<PathBuf>) -> Feature {
    if !Ids::current().is_root() {
        return Feature::Missing("only root can give commands one, they run as this user".into());
    }
    let user = OWN_USERS.start;
    let ids = Ids::from_number(OWN_USERS.start);
    let places = workspace.map_or_else(|| PLACES.map(PathBuf::from).to_vec(), |it| vec![it]);
    let lends = |lent: OwnedFd| {
        let nowhere = Err(Errno::ENOENT).step("find a place");
        places.iter().fold(nowhere, |before, place| {
            let name = || format!("lend files of {} to it", place.display());
            before.or_else(|_| mount::try_lending(place, &lent).step(name()))
        })
    };
    if let Err(StepFailure { step, problem }) =
        own_user::mapped_user_namespace(user).and_then(lends)
    {
        return Feature::Missing(format!("{step}: {problem}"));
    }
    let trial =
        || ns::map_ids(ids).map(|()| die_with_parent()).and_then(|()| mount::make_private());
    try_in_as(ids, &[Namespace::User, Namespace::Mount], &trial, |_| ()).0
}

/// Tests whether a step succeeds in new namespaces. Meanwhile the process waits, and `examine`
/// inspects it.
fn try_in<T>(
    namespaces: &[Namespace],
    trial: Trial<'_>,
    examine: impl FnOnce(Pid) -> T,
) -> (Feature, Option<T>) {
    try_in_as(Ids::current(), namespaces, trial, examine)
}

/// As [`try_in`], with these ids.
fn try_in_as<T>(
    ids: Ids,
    namespaces: &[Namespace],
    trial: Trial<'_>,
    examine: impl FnOnce(Pid) -> T,
) -> (Feature, Option<T>) {
    let attempt = || -> Result<(String, T), Errno> {
        let (answer, answer_write) = pipe2(OFlag::O_CLOEXEC)?;
        let (end, held) = pipe2(OFlag::O_CLOEXEC)?;
        let born = ns::clone_as(ids, namespaces);
        // A clone does not inherit this setting, and changing the user clears it.
        die_with_parent();
        match born? {
            ForkResult::Child => {
                drop((answer, held));
                answer_and_wait(answer_write, end, trial)
            }
            ForkResult::Parent { child } => {
                drop((answer_write, end));
                let mut text = String::new();
                let read = File::from(answer).read_to_string(&mut text);
                let found = examine(child);
                drop(held);
                waitpid(child, None)?;
                read.map(|_| (text, found)).map_err(|_| Errno::EIO)
            }
        }
    };
    match attempt() {
        Ok((text, found)) => {
            let feature = match text.as_str() {
                "ok" => Feature::Available(()),
                "" => Feature::Missing("the trial ended early".to_owned()),
                _ => Feature::Missing(text),
            };
            (feature, Some(found))
        }
        Err(errno) => (Feature::Missing(std::io::Error::from(errno).to_string()), None),
    }
}

/// Makes this process end with its parent. A trial may hang in the kernel and would keep its
/// group.
pub(crate) fn die_with_parent() {
    // silent-ok: most processes end by themselves anyway.
    prctl::set_pdeathsig(Signal::SIGKILL).ok();
}

/// Reports the result, and waits until the helper closes the other end or is gone.
fn answer_and_wait(answer: OwnedFd, end: OwnedFd, trial: Trial<'_>) -> ! {
    let text = match trial() {
        Ok(()) => "ok".to_owned(),
        Err(StepFailure { step, problem }) => format!("{step}: {problem}"),
    };
    // silent-ok: a result that does not arrive counts as a missing feature.
    drop(File::from(answer).write_all(text.as_bytes()));
    // silent-ok: the wait is over, whatever was read.
    drop(File::from(end).read(&mut [0]));
    // SAFETY: ends this copy of the helper at once, without its destructors.
    unsafe { libc::_exit(0) }
}

fn landlock_abi() -> Feature<i32> {
    // SAFETY: with this flag the call reads no attributes and creates nothing.
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
