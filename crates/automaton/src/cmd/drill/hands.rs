//! `drill sandbox`: ways out of the sandbox, tried on this machine, and what many commands
//! leave behind.
//!
//! What could be lost is planted for the drill: a secret beside the workspace, a server on
//! the loopback, this process. An attempt is a script that ends well only when it got
//! something; it never harms. The tests of the sandbox try more ways than a script knows.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use automaton_agent::command_spec;
use automaton_core::time::Span;
use automaton_sandbox::{
    ExitStatus, Feature, Launcher, Limits, Outcome, Probe, Program, Spec, plan, probe,
};
use clap::Args;

use super::super::live::executable;
use super::super::{Context, mint};
use super::Tried;
use crate::error::Failure;
use crate::home::{Scratch, make_directory};

/// How long an attempt may take.
const LIMIT: Span = Span::from_secs(20);
/// How long what has ended may take to disappear.
const SETTLES: Duration = Duration::from_secs(5);
/// What is planted.
const SECRET: &str = "planted-secret";

/// Arguments of `drill sandbox`.
#[derive(Debug, Args)]
pub(crate) struct DrillSandboxArgs {
    /// How many commands run one after the other, after which nothing may be left of them
    #[arg(long, value_name = "N", default_value_t = 500)]
    commands: u32,
    /// How many sandboxes are held to their limits at once
    #[arg(long, value_name = "N", default_value_t = 100)]
    at_once: u32,
}

/// Each gets something, or nothing. `{outside}` is the folder with what is planted, `{port}`
/// that of the server, `{pid}` this process.
const ATTEMPTS: [(&str, &str); 26] = [
    ("read a file beside the workspace", "grep -q planted {outside}/secret"),
    ("read it over a link", "ln -sf {outside}/secret l; grep -q planted l"),
    ("read it over /proc/1/root", "grep -q planted /proc/1/root{outside}/secret"),
    ("read it over /proc/self/cwd", "grep -q planted /proc/self/cwd/../secret"),
    ("read the password file", "grep -q : /etc/shadow"),
    ("read what starts this machine", "ls /boot /sys/firmware 2>/dev/null | grep -q ."),
    ("see this process", "test -d /proc/{pid}/fd"),
    ("read its environment", "tr '\\0' '\\n' < /proc/{pid}/environ | grep -q ."),
    ("end it", "kill -0 {pid}"),
    ("read the environment of the first process", "grep -q . /proc/1/environ"),
    ("trace the first process", "grep -q . /proc/1/mem"),
    ("reach a server on the loopback", "(echo > /dev/tcp/127.0.0.1/{port}) 2>/dev/null"),
    ("reach it by IPv6", "(echo > /dev/tcp/::1/{port}) 2>/dev/null"),
    ("reach a metadata service", "(echo > /dev/tcp/169.254.169.254/80) 2>/dev/null"),
    ("ask a name server", "getent hosts example.com"),
    ("reach Docker or D-Bus", "ls /var/run/docker.sock /run/dbus/system_bus_socket"),
    ("mount a file system", "mount -t tmpfs none /mnt"),
    ("make more namespaces", "unshare -U true || unshare -n true"),
    ("change the host's name", "hostname drilled"),
    ("write system folders", "touch /usr/x || touch /etc/x || touch /x"),
    ("write a switch of the kernel", "echo 1 > /proc/sys/kernel/panic"),
    ("make a device", "mknod d b 8 0 || mknod d c 1 1"),
    ("leave a set-user-id program", "cp /bin/true t && chmod u+s t && test -u t"),
    ("gain rights from one", "su -c true || sudo -n true"),
    ("open a terminal or a disk", "ls /dev/tty* /dev/sd* /dev/vd* /dev/kmsg | grep -q ."),
    ("load the kernel", "insmod x.ko || modprobe dummy"),
];

struct Place<'a> {
    launcher: Launcher,
    probe: Probe,
    root: &'a Path,
}

impl Place<'_> {
    fn workspace(&self) -> PathBuf {
        self.root.join("workspace")
    }

    fn spec(&self, command: &str) -> Spec {
        command_spec(&self.workspace(), Program::Shell(command.to_owned()), LIMIT)
    }

    fn run(&self, spec: &Spec) -> Result<Outcome, Failure> {
        Ok(self.launcher.launch(&plan(spec, &self.probe)?)?.wait()?)
    }
}

/// Tries all of it, and tells each.
///
/// # Errors
/// When something cannot be tried, or not be told.
pub(super) fn tell(
    context: &Context,
    args: &DrillSandboxArgs,
    tell: &mut dyn FnMut(Tried) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let scratch = Scratch::new(context.environment.tmpdir.as_deref(), &mint())?;
    let root = scratch.home();
    let launcher = Launcher::new(executable()?);
    let probe = probe(&launcher);
    let place = Place { launcher, probe, root: &root };
    make_directory(&place.workspace()).map_err(|error| unplanted(&error))?;
    escapes(&place, tell)?;
    tell(at_once(&place, args.at_once)?)?;
    tell(leaks(&place, args.commands)?)
}

fn unplanted(error: &io::Error) -> Failure {
    Failure::internal("cannot make what the drill needs", error)
}

/// Every attempt, after one that shows that commands run at all.
fn escapes(
    place: &Place<'_>,
    tell: &mut dyn FnMut(Tried) -> Result<(), Failure>,
) -> Result<(), Failure> {
    fs::write(place.root.join("secret"), SECRET).map_err(|error| unplanted(&error))?;
    let server = TcpListener::bind("127.0.0.1:0").map_err(|error| unplanted(&error))?;
    let port = server.local_addr().map_err(|error| unplanted(&error))?.port().to_string();
    let (pid, outside) = (std::process::id().to_string(), place.root.display().to_string());
    let usual = place.run(&place.spec("echo mine > file && grep -q mine file"))?;
    let held = usual.status.is_success();
    tell(Tried { tried: "use the workspace".to_owned(), held, found: usual.status.to_string() })?;
    for (what, script) in ATTEMPTS {
        let script = script.replace("{outside}", &outside);
        let script = script.replace("{port}", &port).replace("{pid}", &pid);
        let outcome = place.run(&place.spec(&script))?;
        let held = matches!(outcome.status, ExitStatus::Exited(1..));
        let said = outcome.stderr.text_lossy();
        let said = said.lines().last().unwrap_or("nothing there").to_owned();
        let found = if held { said } else { format!("{} ({said})", outcome.status) };
        tell(Tried { tried: what.to_owned(), held, found })?;
    }
    Ok(())
}

/// Many sandboxes at once, each of which wants more than it may have.
fn at_once(place: &Place<'_>, count: u32) -> Result<Tried, Failure> {
    let limits = Limits { memory_bytes: 48 << 20, processes: 16, ..Limits::default() };
    let greedy = [
        // More memory than there is for it.
        "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo got it",
        // More processes.
        "for i in $(seq 40); do sleep 3 & done 2>/dev/null; test $(jobs -r | wc -l) -gt 16 && echo got it",
    ];
    let run = |nth: u32| -> Result<bool, Failure> {
        let command = greedy[usize::from(nth.is_multiple_of(2))];
        let outcome = place.run(&Spec { limits, ..place.spec(command) })?;
        Ok(!outcome.stdout.text_lossy().contains("got it"))
    };
    let held = thread::scope(|scope| {
        let runs: Vec<_> = (0..count).map(|nth| scope.spawn(move || run(nth))).collect();
        let broken = || Failure::user("a thread of the drill broke down");
        runs.into_iter().map(|run| run.join().map_err(|_| broken())?).collect::<Result<Vec<_>, _>>()
    })?;
    let within = held.iter().filter(|held| **held).count();
    Ok(Tried {
        tried: format!("{count} sandboxes at once, each of which wants too much"),
        held: within == held.len(),
        found: format!("{within} were held to their limits"),
    })
}

/// What a process has, and the machine for it.
#[derive(Debug, PartialEq, Eq)]
struct Had {
    descriptors: usize,
    threads: usize,
    mounts: usize,
    groups: BTreeSet<String>,
    files: BTreeSet<String>,
}

impl Had {
    fn now(place: &Place<'_>) -> Self {
        let names = |folder: &Path| -> BTreeSet<String> {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        };
        let groups = match &place.probe.cgroup {
            Feature::Available(base) => base.folders(),
            Feature::Missing(_) => Vec::new(),
        };
        // Of helpers that are gone; those that live are others'.
        let is_left = |name: &String| {
            let maker = name.strip_prefix("automaton-");
            maker.is_some_and(|pid| !Path::new("/proc").join(pid).exists())
        };
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Self {
            descriptors: names(Path::new("/proc/self/fd")).len(),
            threads: names(Path::new("/proc/self/task")).len(),
            mounts: mounts.lines().count(),
            groups: groups.into_iter().flat_map(names).filter(is_left).collect(),
            files: names(place.root),
        }
    }
}

/// Many commands, one after the other, and what is left then.
fn leaks(place: &Place<'_>, count: u32) -> Result<Tried, Failure> {
    let spec = place.spec("true & (sleep 60 &) ; echo x > /tmp/x; exit 0");
    let before = Had::now(place);
    let mut failed = 0;
    for _ in 0..count {
        failed += u32::from(!place.run(&spec)?.status.is_success());
    }
    let (mut after, mut waited) = (Had::now(place), Duration::ZERO);
    while after != before && waited < SETTLES {
        thread::sleep(Duration::from_millis(50));
        (after, waited) = (Had::now(place), waited + Duration::from_millis(50));
    }
    let children = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    // What a daemon needs is there still.
    let socket = UnixListener::bind(place.root.join("socket")).is_ok();
    let file = fs::File::create(place.root.join("file")).is_ok();
    let held = after == before && children.trim().is_empty() && socket && file && failed == 0;
    let found = match held {
        true => "nothing is left of them".to_owned(),
        false => format!("{failed} failed; before {before:?}, after {after:?}, {children:?}"),
    };
    Ok(Tried { tried: format!("{count} commands, one after the other"), held, found })
}
