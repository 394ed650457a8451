//! The list of ways out, and what closes each.
//!
//! For every attempt: it is refused under the full plan; with the defences
//! that it names off, it succeeds; with any single one of them on, it is
//! refused. So no defence on the list is there for nothing, and the table
//! below says what each is for.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use automaton_lab::nobody::is_root;
use automaton_sandbox::Defence::{self, *};
use automaton_sandbox::{
    Bind, CgroupBase, ExitStatus, Feature, Limits, Probe, Program, Spec, drill,
};

use crate::support::{
    ATTEMPT_INSIDE, attempt, attempt_program, machine, machine_without_cgroups, run_on,
};

const SECRET: &str = "planted-secret";

/// What there is outside to get at.
struct World {
    folder: tempfile::TempDir,
    victim: Child,
    tcp: TcpListener,
    /// Missing on a machine without the sixth version of IP.
    tcp6: Option<TcpListener>,
    _datagrams: UnixDatagram,
    udp: UdpSocket,
    _abstract: UnixListener,
    _unix: UnixListener,
    /// A number that no other world has.
    key: String,
    segment: i32,
    leaked: i32,
}

impl World {
    fn make() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["home", "workspace", "fixture"] {
            fs::create_dir(at(name)).unwrap();
        }
        for name in ["home/automaton.json", "home/state.db", "fixture/file"] {
            fs::write(at(name), SECRET).unwrap();
        }
        fs::write(at("home/program"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(at("home/program"), fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(at("home/automaton.json"), at("workspace/link")).unwrap();
        let key = key();
        let abstract_name = SocketAddr::from_abstract_name(&key).unwrap();
        let leaked = File::open(at("home/state.db")).unwrap();
        // SAFETY: a copy without close-on-exec, as a careless library makes one.
        let leaked = unsafe { libc::fcntl(leaked.as_raw_fd(), libc::F_DUPFD, 200) };
        Self {
            victim: victim(),
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            tcp6: TcpListener::bind("[::1]:0").ok(),
            _datagrams: UnixDatagram::bind(at("home/datagrams")).unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            _abstract: UnixListener::bind_addr(&abstract_name).unwrap(),
            _unix: UnixListener::bind(at("home/socket")).unwrap(),
            segment: segment(&key),
            key,
            leaked,
            folder,
        }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_string_lossy().into_owned()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.victim.kill().unwrap();
        self.victim.wait().unwrap();
        // SAFETY: the segment is this test's own; no pointer to it is left.
        unsafe { libc::shmctl(self.segment, libc::IPC_RMID, std::ptr::null_mut()) };
        // SAFETY: the descriptor is this test's own.
        unsafe { libc::close(self.leaked) };
    }
}

fn key() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let world = NEXT.fetch_add(1, Ordering::Relaxed);
    ((world << 24) + std::process::id()).to_string()
}

fn segment(key: &str) -> i32 {
    // SAFETY: a new segment of 64 bytes, which holds the secret.
    unsafe {
        let key = key.parse().unwrap();
        let segment = libc::shmget(key, 64, libc::IPC_CREAT | libc::IPC_EXCL | 0o600);
        assert!(segment >= 0, "{}", std::io::Error::last_os_error());
        let place = libc::shmat(segment, std::ptr::null(), 0);
        std::ptr::copy_nonoverlapping(SECRET.as_ptr(), place.cast(), SECRET.len());
        libc::shmdt(place);
        segment
    }
}

fn victim() -> Child {
    let mut victim = Command::new(attempt_program())
        .arg("be-victim")
        .env("KEY", SECRET)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(victim.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    victim
}

/// A way out.
struct Attempt {
    name: &'static str,
    words: Vec<String>,
    /// What stops it, each alone.
    defences: Vec<Defence>,
    /// Off throughout, since whether it stops this depends on the kernel.
    unsure: Vec<Defence>,
    limits: Limits,
    needs: Needs,
}

/// What an attempt needs to get anywhere even without a sandbox.
#[derive(Clone, Copy, PartialEq)]
enum Needs {
    Nothing,
    /// To be the host's root.
    Root,
    /// A host that is not configured to refuse it to everybody.
    Permission,
}

fn new(name: &'static str, words: &[&str], defences: &[Defence]) -> Attempt {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    Attempt {
        name,
        words,
        defences: defences.to_vec(),
        unsure: Vec::new(),
        limits: Limits::default(),
        needs: Needs::Nothing,
    }
}

impl Attempt {
    fn needs(mut self, needs: Needs) -> Self {
        self.needs = needs;
        self
    }

    fn unsure(mut self, defence: Defence) -> Self {
        self.unsure.push(defence);
        self
    }

    fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

fn on_files(world: &World) -> Vec<Attempt> {
    let config = world.path("home/automaton.json");
    let climbing = format!("{}{}", "../".repeat(12), world.path("home/state.db"));
    let fixture = world.path("fixture/file");
    let mut list = vec![
        new("read the configuration", &["read", &config], &[Files, Landlock]),
        new("read the database by ..", &["read", &climbing], &[Files, Landlock]),
        new("read through a link", &["read", "link"], &[Files, Landlock]),
        new("link the database", &["hard-link", &world.path("home/state.db")], &[Files, Landlock]),
        new("change the configuration", &["write-any", SECRET, &config], &[Files, Landlock]),
        new(
            "write what is read-only",
            &["write-any", SECRET, "/opt/fixture/file", &fixture],
            &[Files, Landlock],
        ),
        new("connect to a socket's path", &["connect-unix", &world.path("home/socket")], &[Files]),
        new(
            "use a leaked descriptor",
            &["read-descriptor", &world.leaked.to_string()],
            &[Descriptors],
        ),
        new(
            "read the host's environment",
            &["have-variable", "CARGO_MANIFEST_DIR"],
            &[Environment],
        ),
        new(
            "make a device",
            &["make-device"],
            &[Users, Capabilities, BoundingSet, Seccomp, Landlock],
        )
        .needs(Needs::Root),
        new(
            "open a file by its handle",
            &["open-by-handle", &handle(&world.path("home/state.db"))],
            &[Users, Capabilities, BoundingSet, Seccomp],
        )
        .unsure(Landlock)
        .needs(Needs::Root),
    ];
    let (inside, path) = (world.path("workspace/taken"), world.path("home/new"));
    for (name, what) in [
        ("make a file", "file"),
        ("make a folder", "folder"),
        ("make a link", "link"),
        ("make a pipe", "pipe"),
    ] {
        list.push(new(name, &["make", what, &path], &[Files, Landlock]));
    }
    list.extend(on_what_files_are(world, &inside));
    let disk = ["/dev/vda", "/dev/sda", "/dev/nvme0n1"].into_iter();
    if let Some(disk) = disk.into_iter().find(|path| File::open(path).is_ok()) {
        list.push(
            new("read the disk", &["open-device", disk], &[Files, Landlock]).needs(Needs::Root),
        );
    }
    list
}

/// Attempts on files that are neither read nor written.
fn on_what_files_are(world: &World, inside: &str) -> Vec<Attempt> {
    let (database, moved) = (world.path("home/state.db"), world.path("home/moved"));
    let truncate: &[Defence] = if landlock_abi() >= 3 { &[Files, Landlock] } else { &[Files] };
    let length = SECRET.len().to_string();
    vec![
        new("run a program", &["run", &world.path("home/program")], &[Files, Landlock]),
        new("list a folder", &["list", &world.path("home")], &[Files, Landlock]),
        new("see a size", &["see", &database], &[Files]),
        new("rename the database", &["rename", &database, &moved], &[Files, Landlock]),
        new("take the database", &["rename", &database, inside], &[Files, Landlock]),
        new("cut the database", &["truncate", &database, &length], truncate),
        new("change permissions", &["change-mode", &database], &[Files]),
        new("change times", &["change-time", &database], &[Files]),
        new("watch a folder", &["watch", &world.path("home")], &[Files]),
        new("send to a socket's path", &["send-unix", &world.path("home/datagrams")], &[Files]),
    ]
}

fn on_processes(world: &World) -> Vec<Attempt> {
    let pid = &world.victim.id().to_string();
    let root = format!("/proc/{pid}/root{}", world.path("home/automaton.json"));
    let environ = format!("/proc/{pid}/environ");
    let signal: &[Defence] =
        if landlock_abi() >= 6 { &[Processes, Landlock] } else { &[Processes] };
    vec![
        new("see a process", &["see-process", pid], &[Processes]),
        new("signal a process", &["signal", pid], signal),
        new("limit a process", &["limit", pid], &[Processes]),
        new("slow a process down", &["slow-down", pid], &[Processes]),
        new("pin a process", &["pin", pid], &[Processes]),
        new(
            "read a process's memory",
            &["read-memory", pid],
            &[Processes, Users, Landlock, Seccomp],
        )
        .needs(Needs::Root),
        new(
            "take a process's descriptor",
            &["take-descriptor", pid],
            &[Processes, Users, Landlock, Seccomp],
        )
        .needs(Needs::Root),
        new(
            "enter a namespace",
            &["enter", pid],
            &[Processes, Users, Capabilities, BoundingSet, Seccomp, Landlock],
        )
        .needs(Needs::Root),
        new("trace a process", &["trace", pid], &[Processes, Users, Landlock, Seccomp])
            .needs(Needs::Root),
        new("read by a process's root", &["read", &root], &[Processes, Users, Landlock])
            .needs(Needs::Root),
        new("read a process's environment", &["read", &environ], &[Processes, Users, Landlock])
            .needs(Needs::Root),
    ]
}

fn on_sockets(world: &World) -> Vec<Attempt> {
    let tcp_port = world.tcp.local_addr().unwrap().port().to_string();
    let udp_port = world.udp.local_addr().unwrap().port().to_string();
    let tcp: &[Defence] = match landlock_abi() >= 4 {
        true => &[Network, Seccomp, Landlock],
        false => &[Network, Seccomp],
    };
    let abstract_: &[Defence] = if landlock_abi() >= 6 { &[Network, Landlock] } else { &[Network] };
    let tcp6 = world.tcp6.as_ref().map(|tcp6| tcp6.local_addr().unwrap().port().to_string());
    let mut list = vec![
        new("open a packet socket", &["packet-socket"], &[Capabilities, BoundingSet, Seccomp]),
        new("connect to a local service", &["connect-tcp", &tcp_port], tcp),
        new("send a datagram", &["send-udp", &udp_port], &[Network, Seccomp]),
        new("connect to an abstract socket", &["connect-abstract", &world.key], abstract_),
        new("open a raw socket", &["raw-socket"], &[Capabilities, BoundingSet, Seccomp]),
    ];
    list.extend(tcp6.map(|port| new("connect over IPv6", &["connect-tcp6", &port], tcp)));
    list
}

fn on_the_kernel(world: &World, probe: &Probe) -> Vec<Attempt> {
    let counted = probe.cgroup.is_available();
    let privileged = &[Capabilities, BoundingSet, Seccomp];
    let mounts = &[Capabilities, BoundingSet, Seccomp, Landlock];
    // Settings of the network are also open to who administers it.
    let settings: &[Defence] = match is_root() {
        true => &[Files, Landlock],
        false => &[Files, Landlock, Capabilities, BoundingSet],
    };
    let memory: &[Defence] = if counted { &[Ipc] } else { &[Ipc, Seccomp] };
    let name = nix::unistd::gethostname().unwrap().to_string_lossy().into_owned();
    let mut list = vec![
        new("mount", &["mount"], mounts),
        new("make the system writable", &["remount"], mounts),
        new("take a mount away", &["unmount"], mounts),
        new("make a mount namespace", &["unshare-mounts"], privileged),
        new("set the domain name", &["set-domain-name"], privileged),
        new("watch all files", &["watch-everything"], &[Users, Capabilities, BoundingSet, Seccomp])
            .needs(Needs::Root),
        new("read the kernel's log", &["read-log"], &[Users, Capabilities, BoundingSet, Seccomp])
            .needs(Needs::Root),
        new("use the ports", &["use-ports"], &[Users, Capabilities, BoundingSet, Seccomp])
            .needs(Needs::Permission),
        new("make a user namespace", &["unshare-user"], &[Seccomp, Nesting]),
        new("change the root", &["change-root"], privileged),
        new("set the host name", &["set-host-name"], privileged),
        new("know the host's name", &["know-host-name", &name], &[HostName]),
        new("regain capabilities", &["have-capabilities"], &[BoundingSet, NoNewPrivileges]),
        new("use a key ring", &["add-key"], &[Seccomp]),
        new("leave a set-user-id file", &["leave-privileged"], &[Seccomp]),
        new("use io_uring", &["io-uring"], &[Seccomp]).needs(Needs::Permission),
        new("use userfaultfd", &["fault-descriptor"], &[Seccomp]).needs(Needs::Permission),
        new("use clone3", &["clone3"], &[Seccomp]),
        new("load into the kernel", &["bpf"], &[Users, Capabilities, BoundingSet, Seccomp])
            .needs(Needs::Root),
        new("read shared memory", &["shared-memory", &world.key], memory),
        new(
            "write a kernel setting",
            &["write-any", "64", "/proc/sys/net/ipv4/ip_default_ttl"],
            settings,
        ),
    ];
    if let Feature::Available(CgroupBase::V1 { memory, .. }) = &probe.cgroup {
        let members = memory.join("cgroup.procs").to_string_lossy().into_owned();
        let words = ["write-any", "0", &members];
        list.push(new("leave the control group", &words, &[Files, Landlock]).needs(Needs::Root));
    }
    list
}

fn on_limits(probe: &Probe) -> Vec<Attempt> {
    let defaults = Limits::default();
    let memory = Limits { memory_bytes: 48 << 20, ..defaults };
    // Without a control group nobody could count it.
    let hidden: &[Defence] = match probe.cgroup.is_available() {
        true => &[MemoryLimit],
        false => &[Seccomp],
    };
    vec![
        new("start many processes", &["many-processes", "60"], &[ProcessLimit])
            .limits(Limits { processes: 20, ..defaults }),
        new("use much memory", &["much-memory", "167772160"], &[MemoryLimit]).limits(memory),
        new("hide memory", &["hidden-memory", "167772160"], hidden).limits(memory),
        new("fill /tmp", &["fill", "/tmp", "40000000", "4000000"], &[TmpLimit])
            .limits(Limits { tmp_bytes: 8 << 20, ..defaults }),
        new("write a huge file", &["fill", ".", "3000000", "3000000"], &[ResourceLimits])
            .limits(Limits { file_bytes: 1 << 20, ..defaults }),
        new("open many files", &["open-files", "200"], &[ResourceLimits])
            .limits(Limits { open_files: 64, ..defaults }),
    ]
}

fn landlock_abi() -> i32 {
    match machine().landlock_abi {
        Feature::Available(abi) => abi,
        Feature::Missing(_) => 0,
    }
}

/// The kernel's handle of a file, in hexadecimal.
fn handle(path: &str) -> String {
    let path = std::ffi::CString::new(path).unwrap();
    let mut bytes = [0u8; 8 + 128];
    bytes[..4].copy_from_slice(&128u32.to_ne_bytes());
    let mut mount = 0i32;
    // SAFETY: the path is terminated, the handle's size is given in it.
    let result = unsafe {
        let handle = bytes.as_mut_ptr();
        let mount = &raw mut mount;
        libc::syscall(libc::SYS_name_to_handle_at, libc::AT_FDCWD, path.as_ptr(), handle, mount, 0)
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    let length = 8 + u32::from_ne_bytes(bytes[..4].try_into().unwrap()) as usize;
    bytes[..length].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn spec(world: &World, attempted: &Attempt, off: &[Defence]) -> Spec {
    let words: Vec<&str> = attempted.words.iter().map(String::as_str).collect();
    let mut spec = attempt(&words, &PathBuf::from(world.path("workspace")));
    let fixture = Bind { host: world.path("fixture").into(), inside: "/opt/fixture".into() };
    spec.read_only.push(fixture);
    spec.limits = attempted.limits;
    spec.defences = drill::without(&[off, &attempted.unsure].concat());
    if off.contains(&Files)
        && let Program::Argv(argv) = &mut spec.program
    {
        debug_assert_eq!(argv[0], ATTEMPT_INSIDE);
        argv[0] = attempt_program().to_string_lossy().into_owned();
    }
    spec
}

/// Tries every combination; says what was not as it should be.
fn try_all(world: &World, attempted: &Attempt, probe: &Probe) -> Vec<String> {
    let all = &attempted.defences;
    let mut wrong = Vec::new();
    let mut expect = |off: &[Defence], success: bool, what: &str| {
        let outcome = run_on(&spec(world, attempted, off), probe);
        assert_ne!(outcome.status, ExitStatus::Exited(3), "{}: called wrongly", attempted.name);
        if outcome.status.is_success() != success {
            let told = outcome.stderr.text_lossy();
            wrong.push(format!("{} {what}: {}, {told}", attempted.name, outcome.status));
        }
    };
    expect(&[], false, "under the full plan");
    expect(all, true, "with all that stops it off");
    for on in all {
        let off: Vec<Defence> = all.iter().copied().filter(|defence| defence != on).collect();
        expect(&off, false, &format!("with only {on:?} on"));
    }
    wrong
}

/// Why an attempt would fail without any sandbox.
fn pointless(attempted: &Attempt) -> Option<&'static str> {
    match attempted.needs {
        Needs::Root if !is_root() => Some("only root can take the user namespace away alone"),
        Needs::Permission => {
            let bare = Command::new(attempt_program()).args(&attempted.words).output().unwrap();
            (!bare.status.success()).then_some("this host refuses it to everybody")
        }
        Needs::Nothing | Needs::Root => None,
    }
}

fn try_list(list: &[Attempt], world: &World, probe: &Probe) {
    let mut wrong = Vec::new();
    for attempted in list {
        if let Some(reason) = pointless(attempted) {
            println!("skipped: {}: {reason}", attempted.name);
            continue;
        }
        println!("{:32} {:?}", attempted.name, attempted.defences);
        wrong.extend(try_all(world, attempted, probe));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_of_the_host_are_out_of_reach() {
    let world = World::make();
    try_list(&on_files(&world), &world, machine());
}

#[test]
fn processes_of_the_host_are_out_of_reach() {
    let world = World::make();
    try_list(&on_processes(&world), &world, machine());
}

#[test]
fn sockets_of_the_host_are_out_of_reach() {
    let world = World::make();
    try_list(&on_sockets(&world), &world, machine());
}

#[test]
fn the_kernel_is_out_of_reach() {
    let world = World::make();
    try_list(&on_the_kernel(&world, machine()), &world, machine());
}

#[test]
fn limits_hold() {
    let world = World::make();
    try_list(&on_limits(machine()), &world, machine());
}

#[test]
fn limits_hold_without_control_groups() {
    let world = World::make();
    let probe = machine_without_cgroups();
    try_list(&on_limits(&probe), &world, &probe);
    let memory = on_the_kernel(&world, &probe);
    let memory = memory.into_iter().filter(|attempted| attempted.name == "read shared memory");
    try_list(&memory.collect::<Vec<_>>(), &world, &probe);
}

#[test]
fn there_are_at_least_sixty_attempts() {
    let world = World::make();
    let lists = [
        on_files(&world),
        on_processes(&world),
        on_sockets(&world),
        on_the_kernel(&world, machine()),
        on_limits(machine()),
    ];
    let count: usize = lists.iter().map(Vec::len).sum();
    assert!(count >= 60, "{count}");
    // Every layer stops something.
    for defence in Defence::ALL {
        let used = lists.iter().flatten().any(|attempted| attempted.defences.contains(&defence));
        assert!(used, "{defence:?} stops nothing");
    }
}
