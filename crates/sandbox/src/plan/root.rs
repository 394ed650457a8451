//! Pure: what the program can see of files.
//!
//! The new root is built from nothing: what is not listed here does not exist
//! inside. Never list a directory that can hold a secret of the host, such as
//! the whole of `/etc`.

use std::path::{Component, Path};

use super::step::{BindAccess, FileRights, FileRule, Presence, ProcSource, RootNode};
use crate::spec::{Bind, Defence, HOME_INSIDE, SandboxSpec};

/// Programs and libraries.
const SYSTEM: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32", "/nix/store", "/gnu/store"];

/// The parts of `/etc` that programs need to start, to find their
/// alternatives, and to check certificates. None holds a secret.
const CONFIGURATION: [&str; 14] = [
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust/extracted",
    "/etc/ca-certificates",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/protocols",
    "/etc/services",
    "/etc/os-release",
];

const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// What `/proc` says of the whole machine and no program needs: how it is made and was started,
/// its devices, the inside of its kernel.
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

const TEXTS: [(&str, &str); 6] = [
    (
        "/etc/passwd",
        "root:x:0:0:automaton:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
    ),
    ("/etc/group", "root:x:0:\nnogroup:x:65534:\n"),
    ("/etc/hosts", "127.0.0.1 localhost automaton\n::1 localhost\n"),
    ("/etc/hostname", "automaton\n"),
    ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"),
    ("/etc/resolv.conf", ""),
];

const LINKS: [(&str, &str); 8] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/shm", "/tmp"),
    ("/var/tmp", "/tmp"),
    ("/etc/mtab", "/proc/self/mounts"),
    ("/var/run", "/run"),
];

/// Whether a bind can appear there: a plain absolute path outside of what the
/// root itself needs.
pub(super) fn can_hold(inside: &Path) -> bool {
    let plain =
        inside.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let reserved = SYSTEM.iter().chain(&["/etc", "/dev", "/proc", "/tmp", HOME_INSIDE, "/var"]);
    let mut reserved = reserved.map(Path::new);
    let deep_enough = inside.components().count() > 1;
    inside.is_absolute() && plain && deep_enough && !reserved.any(|path| inside.starts_with(path))
}

/// Whether it is the name of a folder right in another one.
pub(super) fn is_name(text: &str) -> bool {
    let mut parts = Path::new(text).components();
    matches!(parts.next(), Some(Component::Normal(name)) if name == text) && parts.next().is_none()
}

/// Whether a directory that can be written can appear there.
pub(super) fn can_keep(inside: &Path) -> bool {
    let own = ["/usr/local", "/var/lib", "/var/log", "/var/cache"];
    own.iter().any(|path| inside == Path::new(path)) || can_hold(inside)
}

/// The entries of the new root.
pub(super) fn nodes(spec: &SandboxSpec) -> Vec<RootNode> {
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
    nodes.extend(CONFIGURATION.map(|path| same(path, BindAccess::ReadOnly, Presence::IfPresent)));
    nodes.extend(TEXTS.map(|(path, text)| RootNode::Text { path: path.into(), text: text.into() }));
    nodes.extend(DEVICES.map(|path| same(path, BindAccess::Device, Presence::Required)));
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

/// The Landlock rules for the same view. They hold by themselves: in a drill
/// without the private root they name the host's paths.
pub(super) fn landlock_files(spec: &SandboxSpec) -> Vec<FileRule> {
    let private = spec.defences.has(Defence::Files);
    let rule = |path: &Path, rights| FileRule { path: path.to_owned(), rights };
    let fixed = |path: &str, rights| FileRule { path: path.into(), rights };
    let mut rules = SYSTEM.map(|path| fixed(path, FileRights::Execute)).to_vec();
    if private {
        // Only in a root of our own is there nothing to hide in a listing.
        rules.push(fixed("/", FileRights::List));
        rules.push(fixed("/etc", FileRights::Read));
        rules.push(fixed("/tmp", FileRights::Write));
    } else {
        rules.extend(CONFIGURATION.map(|path| fixed(path, FileRights::Read)));
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
