//! Control groups: limits on memory, processes and processor time over a whole tree.
//!
//! The helper makes a group for each run. It outlives the tree and removes the group. It must
//! never touch a group whose name is not ours.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::{StepContext as _, StepFailure};
use crate::outcome::SessionUsage;
use crate::plan::Cgroup;
use crate::probe::CgroupBase;

/// The accounting period of processor time, in microseconds. This is the kernel's default.
const PERIOD_US: u64 = 100_000;

/// The prefix of our groups' names. Only a process id follows.
const PREFIX: &str = "automaton-";

/// An existing control group.
#[derive(Debug)]
pub(crate) struct CgroupHandle {
    base: CgroupBase,
    name: String,
}

impl CgroupHandle {
    /// Makes the group of this helper and sets its limits.
    pub(crate) fn make(plan: &Cgroup) -> Result<Self, StepFailure> {
        let name = group_name(std::process::id());
        let group = Self { base: plan.base.clone(), name };
        for folder in group.folders() {
            fs::create_dir(&folder).step(format!("make the group {}", folder.display()))?;
        }
        group.limit(plan).step("limit the group")?;
        Ok(group)
    }

    /// Opens the files with which a single-threaded process enters the group itself, by
    /// [`enter`]. Being moved by another process takes milliseconds, since the kernel then waits
    /// until no process on the machine is being started. Returns no files on cgroup v2, which has
    /// no such way.
    ///
    /// # Errors
    /// Fails if the group is gone or is not ours.
    pub(crate) fn entry_files(&self) -> Result<Vec<File>, StepFailure> {
        if matches!(self.base, CgroupBase::V2 { .. }) {
            return Ok(Vec::new());
        }
        let socket = |folder: PathBuf| File::options().write(true).open(folder.join("tasks"));
        self.folders().map(socket).collect::<io::Result<Vec<_>>>().step("open the group")
    }

    /// Puts a process and its future children into the group.
    pub(crate) fn add(&self, pid: Pid) -> Result<(), StepFailure> {
        for folder in self.folders() {
            fs::write(folder.join("cgroup.procs"), pid.to_string()).step("enter the group")?;
        }
        Ok(())
    }

    /// Returns the number of processes killed for lack of memory. Returns 0 if unknown, since
    /// then nothing shows that the limit was the cause.
    pub(crate) fn memory_kills(&self) -> u64 {
        let file = match &self.base {
            CgroupBase::V1 { memory, .. } => memory.join(&self.name).join("memory.oom_control"),
            CgroupBase::V2 { parent, .. } => parent.join(&self.name).join("memory.events"),
        };
        let text = fs::read_to_string(file).unwrap_or_default();
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok()).unwrap_or(0)
    }

    /// Returns the parent of this group.
    pub(crate) const fn base(&self) -> &CgroupBase {
        &self.base
    }

    fn limit(&self, plan: &Cgroup) -> io::Result<()> {
        let write = |folder: &Path, file: &str, value: u64| {
            fs::write(folder.join(&self.name).join(file), value.to_string())
        };
        let pids = match &self.base {
            CgroupBase::V1 { pids: folder, .. } | CgroupBase::V2 { parent: folder, .. } => folder,
        };
        match (&self.base, plan.memory_bytes) {
            (_, None) => {}
            (CgroupBase::V1 { memory, .. }, Some(bytes)) => {
                write(memory, "memory.limit_in_bytes", bytes)?;
                // Absent if the kernel does not account for swap.
                absent_is_fine(write(memory, "memory.memsw.limit_in_bytes", bytes))?;
                // Queued data of internet sockets is counted separately.
                absent_is_fine(write(memory, "memory.kmem.tcp.limit_in_bytes", bytes / 4))?;
            }
            (CgroupBase::V2 { parent, .. }, Some(bytes)) => {
                write(parent, "memory.max", bytes)?;
                absent_is_fine(write(parent, "memory.swap.max", 0))?;
                let together = u64::from(!plan.lasts);
                absent_is_fine(write(parent, "memory.oom.group", together))?;
            }
        }
        match (&self.base, plan.cpus) {
            (CgroupBase::V1 { cpu: Some([quota, _]), .. }, Some(cpus)) => {
                let set = write(quota, "cpu.cfs_quota_us", u64::from(cpus) * PERIOD_US);
                // A stricter limit of a group above applies to this one too.
                set.or_else(|error| match error.kind() {
                    io::ErrorKind::InvalidInput => Ok(()),
                    _ => Err(error),
                })?;
            }
            (CgroupBase::V2 { parent, cpu: true }, Some(cpus)) => {
                let quota = format!("{} {PERIOD_US}", u64::from(cpus) * PERIOD_US);
                fs::write(parent.join(&self.name).join("cpu.max"), quota)?;
            }
            _ => {}
        }
        // The program's processes and the namespace's first one.
        plan.processes.map_or(Ok(()), |count| write(pids, "pids.max", u64::from(count) + 1))
    }

    fn folders(&self) -> impl Iterator<Item = PathBuf> {
        self.base.folders().into_iter().map(|folder| folder.join(&self.name))
    }
}

fn group_name(helper: u32) -> String {
    format!("{PREFIX}{helper}")
}

/// Returns the current usage of this helper's group, as far as it is readable. Any process can
/// call it.
pub(crate) fn usage(base: &CgroupBase, helper: u32) -> SessionUsage {
    let (memory, pids, file) = match base {
        CgroupBase::V1 { memory, pids, .. } => (memory, pids, "memory.usage_in_bytes"),
        CgroupBase::V2 { parent, .. } => (parent, parent, "memory.current"),
    };
    // silent-ok: an unreadable value is unknown.
    let text = |folder: &Path, file: &str| {
        fs::read_to_string(folder.join(group_name(helper)).join(file)).ok()
    };
    let read = |folder: &Path, file: &str| text(folder, file)?.trim().parse::<u64>().ok();
    let cpu = match base {
        CgroupBase::V1 { cpu, .. } => cpu
            .as_ref()
            .and_then(|[_, count]| read(count, "cpuacct.usage"))
            .map(Duration::from_nanos),
        CgroupBase::V2 { parent, .. } => text(parent, "cpu.stat")
            .and_then(|text| {
                text.lines().find_map(|it| it.strip_prefix("usage_usec ")?.parse().ok())
            })
            .map(Duration::from_micros),
    };
    SessionUsage { memory_bytes: read(memory, file), processes: read(pids, "pids.current"), cpu }
}

impl Drop for CgroupHandle {
    fn drop(&mut self) {
        for folder in self.folders() {
            // The kernel may need a moment after the last process is gone. A later probe removes
            // what remains.
            for _ in 0..50 {
                match fs::remove_dir(&folder) {
                    Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                        thread::sleep(Duration::from_millis(2));
                    }
                    Ok(()) | Err(_) => break,
                }
            }
        }
    }
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Enters a group through the files of [`CgroupHandle::entry_files`].
///
/// # Errors
/// Fails if the kernel refuses.
pub(crate) fn enter(doors: Vec<File>) -> Result<(), StepFailure> {
    doors.into_iter().try_for_each(|mut socket| socket.write_all(b"0")).step("enter the group")
}

/// Finds a place for groups by making one and moving an idle process into it. Removes the groups
/// of killed helpers. The error lists the problems of each place.
pub(crate) fn find_base(idle: Pid) -> Result<CgroupHandle, String> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let places =
        CgroupMounts { mounts: read("/proc/self/mountinfo"), own: read("/proc/self/cgroup") };
    let mut problems = Vec::new();
    for base in places.candidate_bases() {
        sweep(&base);
        let cpus = base.limits_cpus().then_some(1);
        let memory_bytes = Some(64 << 20);
        let processes = Some(16);
        let plan = Cgroup { base, memory_bytes, processes, cpus, lasts: false };
        let usable =
            |group: CgroupHandle| group.entry_files().and_then(|_| group.add(idle)).map(|()| group);
        match CgroupHandle::make(&plan).and_then(usable) {
            Ok(group) => return Ok(group),
            Err(failed) => problems.push(format!("{}: {}", failed.step, failed.problem)),
        }
    }
    Err(match problems.is_empty() {
        true => "no control group for memory and processes is delegated to us".to_owned(),
        false => problems.join("; "),
    })
}

/// Returns a base, and the same base without processor limits if it has those.
fn candidates(base: CgroupBase) -> impl Iterator<Item = CgroupBase> {
    let without = base.limits_cpus().then(|| base.clone().without_cpus());
    std::iter::once(base).chain(without)
}

fn sweep(base: &CgroupBase) {
    for entry in base.folders().into_iter().flat_map(fs::read_dir).flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse().ok());
        let Some(maker) = maker.map(Pid::from_raw) else { continue };
        if kill(maker, None) == Err(Errno::ESRCH) {
            // silent-ok: a group that is still in use cannot be removed.
            drop(fs::remove_dir(entry.path()));
        }
    }
}

/// The mounted hierarchies and our place in them, as the kernel reports them.
struct CgroupMounts {
    /// `/proc/self/mountinfo`.
    mounts: String,
    /// `/proc/self/cgroup`.
    own: String,
}

impl CgroupMounts {
    /// Returns the candidates, best first.
    fn candidate_bases(&self) -> Vec<CgroupBase> {
        let mut bases = Vec::new();
        if let Some((mount, own)) = self.find_hierarchy("cgroup2", None) {
            // Only a group without processes of its own can delegate controllers. So the usable
            // parent is usually an ancestor.
            let above = own.ancestors().take_while(|path| path.starts_with(&mount));
            let hands_on = |path: &Path, controllers: &[&str]| {
                let text = fs::read_to_string(path.join("cgroup.subtree_control"));
                let text = text.unwrap_or_default();
                controllers.iter().all(|name| text.split_whitespace().any(|it| it == *name))
            };
            let parent = above.into_iter().find(|path| hands_on(path, &["memory", "pids"]));
            bases.extend(parent.map(|path| CgroupBase::V2 {
                parent: path.to_owned(),
                cpu: hands_on(path, &["cpu"]),
            }));
        }
        let v1 = |controller| self.find_hierarchy("cgroup", Some(controller)).map(|(_, own)| own);
        if let (Some(memory), Some(pids)) = (v1("memory"), v1("pids")) {
            let cpu = v1("cpu").zip(v1("cpuacct")).map(|(limit, count)| [limit, count]);
            bases.push(CgroupBase::V1 { memory, pids, cpu });
        }
        // Without processor limits rather than not at all.
        bases.into_iter().flat_map(candidates).collect()
    }

    /// Returns the mount point of a hierarchy and the path of our group in it.
    fn find_hierarchy(&self, kind: &str, controller: Option<&str>) -> Option<(PathBuf, PathBuf)> {
        let (root, mount) = self.mounts.lines().find_map(|line| {
            // "36 31 0:33 ROOT MOUNT options [tags] - KIND source super-options"
            let (left, right) = line.split_once(" - ")?;
            let mut right = right.split(' ');
            let right_kind = right.next()?;
            let options = right.nth(1)?;
            let matches = right_kind == kind
                && controller.is_none_or(|name| options.split(',').any(|option| option == name));
            let mut left = left.split(' ').skip(3);
            matches.then_some((left.next()?, left.next()?))
        })?;
        let own = self.own.lines().find_map(|line| {
            // "4:memory:/path", or "0::/path" in the unified hierarchy.
            let mut fields = line.splitn(3, ':').skip(1);
            let controllers = fields.next()?;
            let matches = match controller {
                None => controllers.is_empty(),
                Some(name) => controllers.split(',').any(|one| one == name),
            };
            matches.then_some(fields.next()?)
        })?;
        let beneath = Path::new(own).strip_prefix(root).ok()?;
        let mount = PathBuf::from(mount);
        let own = mount.join(beneath);
        Some((mount, own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_hybrid_v1_places() {
        let places = CgroupMounts {
            mounts: "33 31 0:30 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                     39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
                     41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
                .to_owned(),
            own: "8:pids:/\n4:memory:/a/b\n0::/\n".to_owned(),
        };
        assert_eq!(
            places.candidate_bases(),
            [CgroupBase::V1 {
                memory: "/sys/fs/cgroup/memory/a/b".into(),
                pids: "/sys/fs/cgroup/pids/".into(),
                cpu: None,
            }]
        );
    }

    #[test]
    fn finds_the_nearest_delegating_ancestor() {
        let root = tempfile::tempdir().unwrap();
        let app = root.path().join("user/app");
        fs::create_dir_all(app.join("own.scope")).unwrap();
        fs::write(app.join("cgroup.subtree_control"), "cpu memory pids\n").unwrap();
        fs::write(app.join("own.scope/cgroup.subtree_control"), "\n").unwrap();
        let places = CgroupMounts {
            mounts: format!(
                "30 23 0:26 / {} rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
                root.path().display()
            ),
            own: "0::/user/app/own.scope\n".to_owned(),
        };
        let of = |cpu| CgroupBase::V2 { parent: app.clone(), cpu };
        assert_eq!(places.candidate_bases(), [of(true), of(false)]);
    }

    #[test]
    fn controllers_that_share_a_hierarchy_have_one_folder_in_it() {
        let places = CgroupMounts {
            mounts: "33 31 0:30 / /cg/memory rw - cgroup cgroup rw,memory\n\
                     34 31 0:31 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                     39 31 0:36 / /cg/pids rw - cgroup cgroup rw,pids\n"
                .to_owned(),
            own: "8:pids:/a\n4:memory:/a\n3:cpu,cpuacct:/a\n".to_owned(),
        };
        let [with, without] = &*places.candidate_bases() else {
            panic!("{:?}", places.candidate_bases())
        };
        let folders = ["/cg/cpu,cpuacct/a", "/cg/memory/a", "/cg/pids/a"].map(Path::new);
        assert!(with.limits_cpus() && with.folders() == folders, "{with:?}");
        assert!(!without.limits_cpus() && without.folders() == folders[1..], "{without:?}");
    }

    #[test]
    fn a_container_sees_its_own_part_only() {
        let places = CgroupMounts {
            mounts: "50 40 0:30 /docker/x /cg/memory rw - cgroup cgroup rw,memory\n".to_owned(),
            own: "4:memory:/docker/x/y\n".to_owned(),
        };
        let (_, own) = places.find_hierarchy("cgroup", Some("memory")).unwrap();
        assert_eq!(own, Path::new("/cg/memory/y"));
        assert!(places.candidate_bases().is_empty());
    }
}
