//! Pure: the files that a program can see.
//!
//! The new root is built from nothing: a path that is not listed here does not exist inside.
//! Never list a directory that can hold a secret of the host, such as the whole of `/etc`.

use std::path::{Component, Path};

use super::configuration::{FAMILIES, SHOWN};
use super::step::{BindAccess, FileRights, FileRule, Presence, ProcSource, RootNode};
use crate::outcome::Enforcement;
use crate::spec::{Bind, Defence, HOME_INSIDE, SandboxSpec};

/// Programs and libraries.
const SYSTEM: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32", "/nix/store", "/gnu/store"];

/// The most terminals that programs may create.
const TERMINALS_MAX: u32 = 32;

/// An endless file of zeros. As a device it also provides memory that belongs to no process.
const ZERO: &str = "/dev/zero";
/// The controlling terminal of a program's session.
const OWN_TERMINAL: &str = "/dev/tty";
const TERMINALS: &str = "/dev/pts";
const DEVICES: [&str; 5] = ["/dev/null", ZERO, "/dev/full", "/dev/random", "/dev/urandom"];

/// Paths of `/proc` that describe the whole machine and that no program needs: its hardware, boot
/// parameters and kernel internals.
pub(crate) const COVERED: [&str; 30] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/bus",
    "/proc/cmdline",
    "/proc/driver",
    "/proc/fs",
    "/proc/interrupts",
    "/proc/iomem",
    "/proc/ioports",
    "/proc/irq",
    "/proc/kallsyms",
    "/proc/kcore",
    "/proc/key-users",
    "/proc/keys",
    "/proc/kmsg",
    "/proc/kpagecgroup",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/latency_stats",
    "/proc/modules",
    "/proc/mtrr",
    "/proc/pagetypeinfo",
    "/proc/partitions",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/slabinfo",
    "/proc/sysrq-trigger",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/vmallocinfo",
];

/// The users inside: root, and names to which archives and installers give files.
const USERS: &str = "root:x:0:0:automaton:/root:/bin/sh
daemon:x:1:1:daemon:/nonexistent:/bin/false
bin:x:2:2:bin:/nonexistent:/bin/false
sys:x:3:3:sys:/nonexistent:/bin/false
man:x:6:12:man:/nonexistent:/bin/false
mail:x:8:8:mail:/nonexistent:/bin/false
www-data:x:33:33:www-data:/nonexistent:/bin/false
nobody:x:65534:65534:nobody:/nonexistent:/bin/false
";
const GROUPS: &str = "root:x:0:
daemon:x:1:
bin:x:2:
sys:x:3:
adm:x:4:
tty:x:5:
disk:x:6:
mail:x:8:
wheel:x:10:
man:x:12:
sudo:x:27:
www-data:x:33:
utmp:x:43:
video:x:44:
staff:x:50:
users:x:100:
nogroup:x:65534:
";

const TEXTS: [(&str, &str); 7] = [
    ("/etc/passwd", USERS),
    ("/etc/group", GROUPS),
    ("/etc/shells", "/bin/sh\n/bin/bash\n"),
    ("/etc/hosts", "127.0.0.1 localhost automaton\n::1 localhost\n"),
    ("/etc/hostname", "automaton\n"),
    ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"),
    ("/etc/resolv.conf", ""),
];

const LINKS: [(&str, &str); 9] = [
    ("/dev/ptmx", "pts/ptmx"),
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/shm", "/tmp"),
    ("/var/tmp", "/tmp"),
    ("/etc/mtab", "/proc/self/mounts"),
    ("/var/run", "/run"),
];

/// Returns true if a bind can appear there: a plain absolute path that the root itself does not
/// use.
pub(super) fn can_hold(inside: &Path) -> bool {
    let plain =
        inside.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let reserved = SYSTEM.iter().chain(&["/etc", "/dev", "/proc", "/tmp", HOME_INSIDE, "/var"]);
    let mut reserved = reserved.map(Path::new);
    let deep_enough = inside.components().count() > 1;
    inside.is_absolute() && plain && deep_enough && !reserved.any(|path| inside.starts_with(path))
}

/// Returns true if the text is a single folder name.
pub(super) fn is_name(text: &str) -> bool {
    let mut parts = Path::new(text).components();
    matches!(parts.next(), Some(Component::Normal(name)) if name == text) && parts.next().is_none()
}

/// Returns true if a writable directory can appear there.
pub(super) fn can_keep(inside: &Path) -> bool {
    let own = ["/usr/local", "/var/lib", "/var/log", "/var/cache"];
    own.iter().any(|path| inside == Path::new(path)) || can_hold(inside)
}

/// Returns the entries of the new root.
pub(super) fn nodes(spec: &SandboxSpec, enforcement: Enforcement) -> Vec<RootNode> {
    let has = |defence| spec.defences.has(defence);
    let directory = |path: &str| RootNode::Directory { path: path.into() };
    let bind = |host: &Path, inside: &Path, access, presence| RootNode::Bind {
        host: host.to_owned(),
        inside: inside.to_owned(),
        access,
        presence,
    };
    let same = |path: &str, access, presence| bind(path.as_ref(), path.as_ref(), access, presence);
    let mut nodes: Vec<RootNode> =
        SYSTEM.map(|path| RootNode::System { path: path.into() }).to_vec();
    nodes.extend(["/etc", "/dev", "/run", "/var", "/home", "/opt", "/mnt"].map(directory));
    nodes.extend(SHOWN.map(|(path, _)| same(path, BindAccess::ReadOnly, Presence::IfPresent)));
    nodes.extend(FAMILIES.map(|(folder, prefix, _)| RootNode::Family {
        folder: folder.into(),
        prefix: prefix.into(),
    }));
    nodes.extend(TEXTS.map(|(path, text)| RootNode::Text { path: path.into(), text: text.into() }));
    // Memory from this device is invisible to a watcher over processes.
    let uncounted = |path: &str| path == ZERO && enforcement == Enforcement::Rlimits;
    nodes.extend(DEVICES.map(|path| match uncounted(path) {
        true => RootNode::Zeros { path: path.into() },
        false => same(path, BindAccess::Device, Presence::Required),
    }));
    nodes.push(same(OWN_TERMINAL, BindAccess::Device, Presence::IfPresent));
    nodes.push(RootNode::Terminals { path: TERMINALS.into(), count_max: TERMINALS_MAX });
    nodes.extend(LINKS.map(|(path, to)| RootNode::Link { path: path.into(), target: to.into() }));
    nodes.push(RootNode::Proc {
        source: if has(Defence::Processes) { ProcSource::Own } else { ProcSource::Host },
    });
    nodes.extend(COVERED.map(|path| RootNode::Covered { path: path.into() }));
    nodes.push(RootNode::Memory {
        path: "/tmp".into(),
        bytes_max: has(Defence::TmpLimit).then_some(spec.limits.tmp_bytes),
    });
    nodes.push(match &spec.workspace {
        Some(host) => bind(host, HOME_INSIDE.as_ref(), BindAccess::Write, Presence::Required),
        None => directory(HOME_INSIDE),
    });
    let sealed = spec.sealed.iter().filter(|_| spec.workspace.is_some());
    nodes.extend(sealed.map(|name| RootNode::Sealed { path: Path::new(HOME_INSIDE).join(name) }));
    nodes.extend(
        spec.read_only.iter().map(|given| {
            bind(&given.host, &given.inside, BindAccess::ReadOnly, Presence::Required)
        }),
    );
    nodes.extend(
        spec.kept
            .iter()
            .map(|given| bind(&given.host, &given.inside, BindAccess::Write, Presence::Required)),
    );
    nodes
}

/// Returns the Landlock rules for the same view. They stand alone: in a drill without the private
/// root they name host paths.
pub(super) fn landlock_files(spec: &SandboxSpec) -> Vec<FileRule> {
    let private = spec.defences.has(Defence::Files);
    let rule = |path: &Path, rights| FileRule { path: path.to_owned(), rights };
    let fixed = |path: &str, rights| FileRule { path: path.into(), rights };
    let mut rules = SYSTEM.map(|path| fixed(path, FileRights::Execute)).to_vec();
    if private {
        // Only a root of our own has nothing to hide in a listing.
        rules.push(fixed("/", FileRights::List));
        rules.push(fixed("/etc", FileRights::Read));
        rules.push(fixed("/var/lib", FileRights::Read));
        rules.push(fixed("/var/cache", FileRights::Read));
        rules.push(fixed(TERMINALS, FileRights::Terminal));
        rules.push(fixed(OWN_TERMINAL, FileRights::Terminal));
        rules.push(fixed("/tmp", FileRights::Write));
    } else {
        rules.extend(SHOWN.map(|(path, _)| fixed(path, FileRights::Read)));
    }
    rules.push(fixed("/proc", FileRights::Read));
    rules.extend(DEVICES.map(|path| fixed(path, FileRights::Device)));
    if let Some(host) = &spec.workspace {
        let path = if private { Path::new(HOME_INSIDE) } else { host };
        rules.push(rule(path, FileRights::Write));
    }
    let placed = |bind: &Bind| if private { bind.inside.clone() } else { bind.host.clone() };
    rules.extend(spec.read_only.iter().map(|bind| rule(&placed(bind), FileRights::Execute)));
    rules.extend(spec.kept.iter().map(|bind| rule(&placed(bind), FileRights::Write)));
    rules
}
