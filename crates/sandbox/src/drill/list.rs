//! The list of escape attempts and the defences that stop each.
//!
//! A defence may be listed beside an attempt only if it stops the attempt alone. So every listed
//! defence is needed, and the table says what each is for.

use super::world::AttackSite;
use crate::linux::helper::ARG0;
use crate::plan::COVERED;
use crate::probe::{Feature, Probe};
use crate::process::effective_user;
use crate::spec::Defence::{self, *};
use crate::spec::{Network, RunLimits};

/// A target of attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptTarget {
    /// Files outside of the workspace.
    Files,
    /// Processes outside of the sandbox.
    Processes,
    /// Servers and sockets.
    Sockets,
    /// The administration of the machine.
    Kernel,
    /// Limits of the run.
    Limits,
}

impl AttemptTarget {
    /// Every target.
    pub const ALL: [Self; 5] =
        [Self::Files, Self::Processes, Self::Sockets, Self::Kernel, Self::Limits];
}

/// An escape attempt.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The name: a short sentence without a subject.
    pub name: &'static str,
    /// The defences, each of which stops it alone.
    pub defences: Vec<Defence>,
    pub(super) words: Vec<String>,
    /// A defence whose effect on this attempt depends on the kernel. It is off while others are
    /// tried.
    pub(super) unsure: Option<Defence>,
    pub(super) limits: RunLimits,
    pub(super) network: Network,
    pub(super) control: Control,
}

/// The conditions under which a control can show that the attempt succeeds without defences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Control {
    /// On every machine.
    Anywhere,
    /// On machines that do not refuse it to everybody.
    WherePermitted,
    /// Only on test machines. The reason speaks against it elsewhere.
    InTests(&'static str),
    /// Nowhere, for this reason.
    Nowhere(&'static str),
}

/// Returns the attempts on one target that this site and this machine support.
pub(super) fn attempts(subject: AttemptTarget, world: &AttackSite, probe: &Probe) -> Vec<Attempt> {
    let list = List { world, probe };
    let rows = match subject {
        AttemptTarget::Files => list.on_files(),
        AttemptTarget::Processes => list.on_processes(),
        AttemptTarget::Sockets => list.on_sockets(),
        AttemptTarget::Kernel => list.on_the_kernel(),
        AttemptTarget::Limits => list.on_limits(),
    };
    rows.into_iter().flatten().collect()
}

/// An attempt, or `None` if the site lacks its target.
type AttemptRow = Option<Attempt>;

fn with_control(control: Control, row: AttemptRow) -> AttemptRow {
    Some(Attempt { control, ..row? })
}

fn with_limits(limits: RunLimits, row: AttemptRow) -> AttemptRow {
    Some(Attempt { limits, ..row? })
}

/// Permits network sockets for an attempt, so that the sandbox has a loopback.
fn with_loopback(row: AttemptRow) -> AttemptRow {
    Some(Attempt { network: Network::Loopback, ..row? })
}

struct List<'a> {
    world: &'a AttackSite,
    probe: &'a Probe,
}

impl List<'_> {
    fn row(&self, name: &'static str, words: &str, defences: &[Defence]) -> AttemptRow {
        let words = words.split(' ').map(|word| self.world.fill(word)).collect::<Option<_>>()?;
        Some(Attempt {
            name,
            words,
            defences: defences.to_vec(),
            unsure: None,
            limits: RunLimits::default(),
            network: Network::None,
            control: Control::Anywhere,
        })
    }

    /// Returns an attempt that Landlock stops too, from version `since` on.
    fn landlocked_row(
        &self,
        since: i32,
        name: &'static str,
        words: &str,
        defences: &[Defence],
    ) -> AttemptRow {
        let locks = matches!(self.probe.landlock_abi, Feature::Available(abi) if abi >= since);
        let landlock: &[Defence] = if locks { &[Landlock] } else { &[] };
        self.row(name, words, &[defences, landlock].concat())
    }

    fn on_files(&self) -> Vec<AttemptRow> {
        let by_files = |name, words| self.landlocked_row(1, name, words, &[Files]);
        let device = [Users, Capabilities, BoundingSet, Seccomp];
        let up = "../../../../../../../../../../../..";
        let handle = self.row("open a file by its handle", "open-by-handle {handle}", &device);
        let disk = Control::InTests("it would read your disk");
        vec![
            by_files("read the configuration", "read {home}/automaton.json"),
            by_files("read the database by ..", &format!("read {up}{{home}}/state.db")),
            by_files("read through a link", "read link"),
            by_files("link the database", "hard-link {home}/state.db"),
            by_files("change the configuration", "rewrite {home}/automaton.json"),
            by_files("write what is read-only", "rewrite /opt/fixture/file {fixture}/file"),
            self.row("change what is sealed", "rewrite sealed/log", &[Files]),
            self.row("remove what is sealed", "remove sealed/log", &[Files]),
            self.row("rename what is sealed", "rename sealed/log sealed/moved", &[Files]),
            self.row("add to what is sealed", "make file sealed/new", &[Files]),
            self.row("cut what is sealed", "truncate sealed/log", &[Files]),
            self.row("change times of what is sealed", "change-time sealed/log", &[Files]),
            self.row("move a sealed folder", "rename sealed moved", &[Files]),
            by_files("change its own program", "rewrite-program /opt/fixture/sh {fixture}/sh"),
            self.row("connect to the control socket", "connect-unix {home}/control.sock", &[Files]),
            self.row("connect to the signer", "connect-unix {home}/creator.sock", &[Files]),
            self.row("use a leaked descriptor", "read-descriptor {leaked}", &[Descriptors]),
            self.row("read the host's environment", "have-variable {variable}", &[Environment]),
            self.landlocked_row(1, "make a device", "make-device /tmp/null-device", &device),
            handle.map(|found| Attempt { unsure: Some(Landlock), ..found }),
            by_files("make a file", "make file {home}/new"),
            by_files("make a folder", "make folder {home}/new"),
            by_files("make a link", "make link {home}/new"),
            by_files("make a pipe", "make pipe {home}/new"),
            with_control(disk, by_files("read the disk", "read-device {disk}")),
            by_files("run a program", "run {home}/program"),
            by_files("list a folder", "list {home}"),
            by_files("rename the database", "rename {home}/state.db {home}/moved"),
            by_files("take the database", "rename {home}/state.db {taken}"),
            self.landlocked_row(3, "cut the database", "truncate {home}/state.db", &[Files]),
            self.row("see a size", "see {home}/state.db", &[Files]),
            self.row("change permissions", "change-mode {home}/state.db", &[Files]),
            self.row("change times", "change-time {home}/state.db", &[Files]),
            self.row("watch a folder", "watch {home}", &[Files]),
            self.row("send to a socket's path", "send-unix {home}/datagrams", &[Files]),
            self.row(
                "give a file away",
                "give-away /opt/fixture/file {fixture}/file",
                &[Files, Users, Capabilities, BoundingSet, Seccomp],
            ),
            self.landlocked_row(1, "open a terminal of the host", "open-file {terminal}", &[Files]),
            with_control(
                Control::WherePermitted,
                self.landlocked_row(1, "make many terminals", "many-terminals 40", &[Files]),
            ),
            self.landlocked_row(
                1,
                "read configuration with secrets",
                "find-any /etc/shadow",
                &[Files],
            )
            .filter(|_| effective_user() == 0),
        ]
    }

    fn on_processes(&self) -> Vec<AttemptRow> {
        let root = [Processes, Users];
        let spy = [Processes, Users, Seccomp];
        let enter = [Processes, Users, Capabilities, BoundingSet, Seccomp];
        // If the launcher's processes belong to another user, the user namespace alone protects
        // them.
        let apart: &[Defence] =
            if self.probe.own_user.is_available() { &root } else { &[Processes] };
        vec![
            self.row("see a process", "see-process {pid}", &[Processes]),
            self.landlocked_row(6, "signal a process", "signal {pid}", apart),
            self.landlocked_row(6, "kill the parent", &format!("kill-parent {ARG0}"), &[Processes]),
            self.row("limit a process", "limit {pid}", apart),
            self.row("limit the first process", "limit-parent", &[Seccomp]),
            self.row("slow a process down", "slow-down {pid}", apart),
            self.row("pin a process", "pin {pid}", apart),
            self.landlocked_row(1, "read a process's memory", "read-memory {pid}", &spy),
            self.landlocked_row(1, "take a process's descriptor", "take-descriptor {pid}", &spy),
            self.landlocked_row(1, "enter a namespace", "enter {pid}", &enter),
            self.landlocked_row(1, "trace a process", "trace {pid}", &spy),
            self.landlocked_row(1, "read by a process's root", "read {root}/automaton.json", &root),
            self.landlocked_row(
                1,
                "read a process's environment",
                "read /proc/{pid}/environ",
                &root,
            ),
        ]
    }

    fn on_sockets(&self) -> Vec<AttemptRow> {
        let tcp = |name, words| self.landlocked_row(4, name, words, &[Network, Seccomp]);
        let raw = [Capabilities, BoundingSet, Seccomp];
        let administers = [Capabilities, BoundingSet];
        let far = Control::Nowhere("it would leave this machine");
        let sockets = "connect-unix /run/docker.sock /run/podman/podman.sock \
            /run/containerd/containerd.sock /run/dbus/system_bus_socket /run/systemd/private";
        let theirs = Control::Nowhere("these are others' services");
        vec![
            tcp("connect to a local service", "connect-tcp {tcp}"),
            tcp("connect over IPv6", "connect-tcp {tcp6}"),
            with_control(far, tcp("ask a cloud's metadata", "connect-tcp 169.254.169.254:80")),
            with_control(
                far,
                self.row("ask a name server", "ask-name example.com", &[Network, Seccomp]),
            ),
            with_control(theirs, self.row("command Docker or D-Bus", sockets, &[Files])),
            self.row("send a datagram", "send-udp {udp}", &[Network, Seccomp]),
            self.landlocked_row(
                6,
                "connect to an abstract socket",
                "connect-abstract {key}",
                &[Network],
            ),
            with_loopback(self.row(
                "connect to a local service beside a loopback",
                "connect-tcp {tcp}",
                &[Network],
            )),
            with_loopback(self.row(
                "connect over IPv6 beside a loopback",
                "connect-tcp {tcp6}",
                &[Network],
            )),
            with_loopback(self.row(
                "send a datagram beside a loopback",
                "send-udp {udp}",
                &[Network],
            )),
            with_loopback(self.landlocked_row(
                6,
                "connect to an abstract socket beside a loopback",
                "connect-abstract {key}",
                &[Network],
            )),
            with_loopback(self.row("change an interface", "set-link", &administers)),
            with_loopback(self.row("change a route", "delete-route", &administers)),
            with_control(
                Control::WherePermitted,
                with_loopback(self.row("use another transport", "transport 132", &[Seccomp])),
            ),
            with_loopback(self.row("put a layer on a connection", "layer", &[Seccomp])),
            with_loopback(self.row("hear of devices", "netlink-socket 15", &[Seccomp])),
            with_loopback(self.row("ask for sockets", "netlink-socket 4", &[Seccomp])),
            self.row("list interfaces without a loopback", "netlink-socket 0", &[Seccomp]),
            self.row("open a raw socket", "raw-socket", &raw),
            with_loopback(self.row("open a raw socket beside a loopback", "raw-socket", &raw)),
            self.row("open a packet socket", "packet-socket", &raw),
        ]
    }

    fn on_the_kernel(&self) -> Vec<AttemptRow> {
        let permitted = |row| with_control(Control::WherePermitted, row);
        let own = self.probe.own_user.is_available();
        let memory = [
            &[Ipc][..],
            if own { &[Users] } else { &[] },
            if self.probe.cgroup.is_available() { &[] } else { &[Seccomp] },
        ]
        .concat();
        let hosts = [Users, Capabilities, BoundingSet, Seccomp];
        let privileged = [Capabilities, BoundingSet, Seccomp];
        let mounts = |name, words| self.landlocked_row(1, name, words, &privileged);
        // Network settings can also be changed with network capabilities.
        let settings: &[Defence] =
            if effective_user() == 0 { &[Files] } else { &[Files, Capabilities, BoundingSet] };
        let machine = format!("find-any {}", COVERED.join(" "));
        let setting = "rewrite /proc/sys/net/ipv4/ip_default_ttl";
        let written = Control::InTests("it would write a setting of your kernel");
        vec![
            mounts("mount", "mount /tmp/mounted"),
            mounts("mount over what is sealed", "mount sealed"),
            mounts("make a mount writable", "remount"),
            mounts("take a mount away", "unmount"),
            self.row("make a mount namespace", "unshare-mounts", &privileged),
            self.row("make a user namespace", "unshare-user", &[Seccomp, Nesting]),
            self.row("change the root", "change-root", &privileged),
            self.row("set the host name", "set-host-name", &privileged),
            self.row("set the domain name", "set-domain-name", &privileged),
            self.row("know the host's name", "know-host-name {host-name}", &[HostName]),
            with_control(
                written,
                self.landlocked_row(1, "write a kernel setting", setting, settings),
            ),
            self.landlocked_row(1, "leave the control group", "leave-group {members}", &[Files]),
            self.row("watch all files", "watch-everything", &hosts),
            self.row("read the kernel's log", "read-log", &hosts),
            self.row("load into the kernel", "bpf", &hosts),
            permitted(self.row("load a module", "load-module", &hosts)),
            permitted(self.row("use the ports", "use-ports", &hosts)),
            permitted(self.row("type into a terminal", "type", &[Seccomp])),
            permitted(self.row("use io_uring", "io-uring", &[Seccomp])),
            permitted(self.row("use userfaultfd", "fault-descriptor", &[Seccomp])),
            self.row(
                "hold a file of others by a lease",
                "lease {fixture}/file /opt/fixture/file",
                &[Seccomp],
            ),
            permitted(self.row(
                "hold a folder of others by a delegation",
                "delegate /usr/bin",
                &[Seccomp],
            )),
            self.row("be told of a folder by a signal", "notify /usr", &[Seccomp]),
            permitted(self.row("use huge pages", "huge-pages", &[Seccomp])),
            self.row("use clone3", "clone3", &[Seccomp]),
            self.row("add a key", "add-key", &[Seccomp]),
            self.row("make a ring of keys", "key-ring", &[Seccomp]),
            self.row("leave a set-user-id file", "leave-privileged privileged", &[Seccomp]),
            self.row("regain capabilities", "have-capabilities", &[BoundingSet, NoNewPrivileges]),
            self.row("know how the machine is made", &machine, &[Files]),
            self.row("read shared memory", "shared-memory {segment}", &memory),
            self.row("be the user who started it", "be-user {user}", &[Users]).filter(|_| own),
        ]
    }

    fn on_limits(&self) -> Vec<AttemptRow> {
        let small =
            RunLimits { processes: 20, open_files: 64, tmp_bytes: 8 << 20, ..RunLimits::default() };
        let short = RunLimits { file_bytes: 1 << 20, ..small };
        let scarce = RunLimits { memory_bytes: 48 << 20, ..small };
        let many_sockets = RunLimits { open_files: 1024, ..scarce };
        // Without a control group this memory is not counted.
        let hidden = if self.probe.cgroup.is_available() { MemoryLimit } else { Seccomp };
        let much = |row| {
            let taken = Control::InTests("it would take memory from your machine");
            with_limits(scarce, with_control(taken, row))
        };
        let mut rows = vec![
            much(self.row("use memory in page tables", "page-tables 167772160", &[MemoryLimit])),
            much(self.row("drop shared memory", "dropped-memory 167772160", &[hidden])),
            with_limits(
                many_sockets,
                self.row("keep pages in pipes", "spliced-memory 59768832", &[hidden]),
            ),
            with_limits(
                small,
                self.row("start many processes", "many-processes 60", &[ProcessLimit]),
            ),
            much(self.row("use much memory", "much-memory 167772160", &[MemoryLimit])),
            much(self.row(
                "use memory when the main thread has ended",
                "headless-memory 167772160",
                &[MemoryLimit],
            )),
            with_limits(
                many_sockets,
                self.row("keep memory in sockets", "socket-memory 400", &[MemoryLimit]),
            ),
            much(self.row("hide memory", "hidden-memory 167772160", &[hidden])),
            with_limits(small, self.row("fill /tmp", "fill /tmp 40000000 4000000", &[TmpLimit])),
            self.row("queue many signals", "queue-signals 1500", &[ResourceLimits]),
            self.row("watch many folders", "inotify-instances 48", &[ResourceLimits]),
            with_limits(small, self.row("open many files", "open-files 200", &[ResourceLimits])),
            with_limits(
                short,
                self.row("write a huge file", "fill . 3000000 3000000", &[ResourceLimits]),
            ),
        ];
        if !self.probe.cgroup.is_available() {
            rows.push(self.row("make a socket larger", "enlarge-socket", &[Seccomp]));
            rows.push(self.row("send pages as they are", "zero-copy", &[Seccomp]));
            rows.push(self.row("share little memory", "share-memory 4096", &[Seccomp]));
            rows.push(self.row("share memory of a device", "map-zeros 4194304", &[Files]));
            rows.push(self.row("make sets of rules", "rule-set", &[Seccomp]));
            rows.push(self.row("move pages by a pipe", "send-file", &[Seccomp]));
            let locks = self.row("hold many locks", "many-locks 30000", &[MemoryLimit]);
            rows.push(with_limits(many_sockets, locks));
        }
        rows
    }
}
