//! Tests of running programs: output, input, exit codes, limits, the death of the tree.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use automaton_core::error::{Classified as _, ErrorClass};
use automaton_sandbox::drill::WORD;
use automaton_sandbox::process::{ProcessCommand, Stdio, spawn};
use automaton_sandbox::{
    Capture, Enforcement, ExitStatus, Feature, Inherit, LaunchError, Launcher, Network,
    PlanRefusal, Probe, Program, RunLimits, SandboxSpec, plan, probe,
};
use automaton_testkit::unprivileged::is_root;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{
    alone, attempt, copy_program, helper, launcher, machine, machine_without_cgroups, run, run_on,
    shell,
};

fn limited(spec: SandboxSpec, limits: RunLimits) -> SandboxSpec {
    SandboxSpec { limits, ..spec }
}

fn seconds(count: u64) -> RunLimits {
    RunLimits { wall: Some(Duration::from_secs(count)), ..RunLimits::default() }
}

/// Returns true if a file stops growing, so that no process writes it any more.
fn is_abandoned(path: &Path) -> bool {
    let size = || fs::metadata(path).map_or(0, |metadata| metadata.len());
    let before = size();
    thread::sleep(Duration::from_millis(150));
    size() == before
}

#[test]
fn a_command_has_its_workspace_and_a_small_world() {
    let workspace = tempfile::tempdir().unwrap();
    let line = "echo $HOME $PWD $LANG $TERM; id -u; hostname; ls -A /home /opt /tmp; \
                echo kept > ~/file; ls /proc | grep -c '^[0-9]'; python3 -V >/dev/null 2>&1; \
                (echo x > /usr/x || echo x > /x || echo x > /etc/x) 2>/dev/null || echo sealed; \
                echo talk >&2; exit 3";
    let outcome = run(&shell(line, workspace.path()));
    assert_eq!(outcome.status, ExitStatus::Exited(3));
    let text = outcome.stdout.text_lossy();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..3], ["/root /root C.UTF-8 dumb", "0", "automaton"], "{text}");
    assert!(lines.ends_with(&["sealed"]), "{text}");
    assert_eq!(outcome.stderr.text_lossy(), "talk\n");
    assert_eq!(fs::read_to_string(workspace.path().join("file")).unwrap(), "kept\n");
    // The created file belongs to the caller.
    fs::remove_file(workspace.path().join("file")).unwrap();
}

#[test]
fn of_the_machine_programs_see_what_they_need() {
    let workspace = tempfile::tempdir().unwrap();
    let needed = "cpuinfo meminfo stat uptime loadavg version filesystems self/maps sys/vm/overcommit_memory \
                  sys/kernel/osrelease sys/kernel/random/uuid";
    let line = format!(
        "cd /proc; for name in {needed}; do test -n \"$(head -c 1 $name)\" || echo no $name; done; \
         cat cmdline interrupts; ls bus fs"
    );
    let outcome = run(&shell(&line, workspace.path()));
    assert_eq!(outcome.stdout.text_lossy(), "bus:\n\nfs:\n", "{outcome:?}");
}

#[test]
fn programs_end_as_they_end() {
    let workspace = tempfile::tempdir().unwrap();
    let status = |line: &str| run(&shell(line, workspace.path())).status;
    assert_eq!(status("true"), ExitStatus::Exited(0));
    assert_eq!(status("exit 255"), ExitStatus::Exited(255));
    assert_eq!(status("kill -TERM $$"), ExitStatus::Signalled(15));
    assert_eq!(status("kill -9 1; exit 7"), ExitStatus::Exited(7));
    let spec = SandboxSpec::new(Program::Argv(vec!["echo".into(), "a b".into()]));
    assert_eq!(run(&spec).stdout.text_lossy(), "a b\n");
}

#[test]
fn a_program_that_is_not_there_is_the_callers_mistake() {
    for name in ["no-such-program", "/usr/no-such-program", "/etc/passwd"] {
        let spec = SandboxSpec::new(Program::Argv(vec![name.into()]));
        let error = launcher().launch(&plan(&spec, machine()).unwrap()).unwrap_err();
        assert!(matches!(error, LaunchError::Exec { .. }), "{error}");
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(error.kind(), ErrorClass::User);
    }
}

#[test]
fn a_workspace_that_is_not_there_is_an_error() {
    let spec = shell("true", Path::new("/no/such/workspace"));
    let error = launcher().launch(&plan(&spec, machine()).unwrap()).unwrap_err();
    assert!(matches!(error, LaunchError::Setup { .. }), "{error}");
    assert!(error.to_string().contains("/no/such/workspace"), "{error}");
}

#[test]
fn a_start_that_fails_leaves_no_child() {
    let folder = tempfile::tempdir().unwrap();
    let helper = folder.path().join("helper");
    // The program ends the first process before its report. The helper continues for a while,
    // since it has a group to remove.
    let said = "#!/bin/sh\nprintf '{\"Usage\":{\"memory_kills\":0}}' >&4\n/bin/sleep 0.3\n";
    let script = folder.path().join("script");
    fs::write(&script, said).unwrap();
    copy_program(&script, &helper);
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).unwrap();
    let planned = plan(&shell("true", folder.path()), machine()).unwrap();
    let error = Launcher::new(helper).launch(&planned).unwrap_err();
    assert!(matches!(error, LaunchError::Lost), "{error}");
    assert_eq!(fs::read_to_string("/proc/thread-self/children").unwrap(), "");
}

#[test]
fn input_is_read_and_output_is_cut_in_the_middle() {
    let workspace = tempfile::tempdir().unwrap();
    // Far more than a pipe holds, both ways at once.
    let stdin: Vec<u8> = (0..3_000_000u32).map(|n| b'a' + (n % 26) as u8).collect();
    let capture = Capture { stdout_bytes_max: 1000, stderr_bytes_max: 10 };
    let line = "cat; echo; printf 0123456789abcdef >&2";
    let spec = SandboxSpec { stdin: stdin.clone(), capture, ..shell(line, workspace.path()) };
    let outcome = run(&spec);
    assert_eq!(outcome.status, ExitStatus::Exited(0));
    assert_eq!(outcome.stdout.head, stdin[..500]);
    assert_eq!(outcome.stdout.tail[..499], stdin[stdin.len() - 499..]);
    assert_eq!(outcome.stdout.omitted_bytes, 3_000_001 - 1000);
    assert_eq!(outcome.stderr.text_lossy(), "01234\n[… 6 bytes omitted …]\nbcdef");
}

#[test]
fn a_program_that_ignores_its_input_is_no_obstacle() {
    let spec = SandboxSpec {
        stdin: vec![b'x'; 1 << 20],
        ..SandboxSpec::new(Program::Shell("exit 4".into()))
    };
    assert_eq!(run(&spec).status, ExitStatus::Exited(4));
    let spec = SandboxSpec {
        stdin: vec![b'x'; 1 << 20],
        ..SandboxSpec::new(Program::Shell("sleep 60".into()))
    };
    let outcome = run(&limited(spec, seconds(1)));
    assert_eq!(outcome.status, ExitStatus::TimedOut);
}

#[test]
fn the_environment_is_made_not_inherited() {
    let variable = ("COLOUR".to_owned(), "blue".to_owned());
    let spec =
        SandboxSpec { env: vec![variable], ..SandboxSpec::new(Program::Argv(vec!["env".into()])) };
    let mut names: Vec<String> =
        run(&spec).stdout.text_lossy().lines().map(str::to_owned).collect();
    names.sort();
    let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let [leaks, tar] = ["LSAN_OPTIONS=detect_leaks=0", "TAR_OPTIONS=--no-same-permissions"];
    let expected = ["COLOUR=blue", "HOME=/root", "LANG=C.UTF-8", leaks, path, tar, "TERM=dumb"];
    assert_eq!(names, expected);
}

#[test]
fn the_time_limit_ends_the_whole_tree() {
    for machine in [machine().clone(), machine_without_cgroups()] {
        let workspace = tempfile::tempdir().unwrap();
        let spec = attempt(&["linger", "/root/tick", "stay"], workspace.path());
        let started = Instant::now();
        let outcome = run_on(&limited(spec, seconds(1)), &machine);
        assert_eq!(outcome.status, ExitStatus::TimedOut);
        assert!(started.elapsed() < Duration::from_secs(5));
        assert!(fs::metadata(workspace.path().join("tick")).unwrap().len() > 10);
        assert!(is_abandoned(&workspace.path().join("tick")));
    }
}

#[test]
fn daemons_end_with_the_command() {
    let workspace = tempfile::tempdir().unwrap();
    let outcome = run(&attempt(&["linger", "/root/tick", "leave"], workspace.path()));
    assert_eq!(outcome.status, ExitStatus::Exited(0));
    assert!(is_abandoned(&workspace.path().join("tick")));
}

#[test]
fn the_owner_can_end_a_run_from_another_thread() {
    let spec = limited(SandboxSpec::new(Program::Shell("sleep 600".into())), RunLimits::service());
    let running = launcher().launch(&plan(&spec, machine()).unwrap()).unwrap();
    assert!(!running.is_over());
    let killer = running.killer();
    let thread = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        killer.kill();
        killer
    });
    let outcome = running.wait().unwrap();
    assert_eq!(outcome.status, ExitStatus::Killed);
    assert!(outcome.duration < Duration::from_secs(5));
    thread.join().unwrap().kill();
}

#[test]
fn a_dropped_run_is_over() {
    let workspace = tempfile::tempdir().unwrap();
    let spec = attempt(&["linger", "/root/tick", "stay"], workspace.path());
    let running = launcher().launch(&plan(&spec, machine()).unwrap()).unwrap();
    while fs::metadata(workspace.path().join("tick")).is_err() {
        thread::sleep(Duration::from_millis(5));
    }
    drop(running);
    assert!(is_abandoned(&workspace.path().join("tick")));
}

/// Run by the next test in a process of its own, which is then killed.
#[test]
#[ignore = "runs until it is killed; the next test starts it"]
fn a_launcher_to_be_killed() {
    let workspace = Path::new("workspace").canonicalize().unwrap();
    let spec = attempt(&["linger", "/root/tick", "stay"], &workspace);
    let outcome = run(&limited(spec, RunLimits::service()));
    panic!("the run ended before the launcher: {}", outcome.status);
}

#[test]
fn the_tree_dies_with_a_killed_launcher() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("workspace")).unwrap();
    let mut launching = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "runs::a_launcher_to_be_killed", "--ignored"])
        .current_dir(folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let tick = folder.path().join("workspace/tick");
    let deadline = Instant::now() + Duration::from_secs(20);
    while fs::metadata(&tick).is_err() {
        assert!(Instant::now() < deadline, "the run did not begin");
        thread::sleep(Duration::from_millis(5));
    }
    assert!(!is_abandoned(&tick));
    launching.kill().unwrap();
    launching.wait().unwrap();
    // The kernel closes the lifeline and the first process notices.
    thread::sleep(Duration::from_millis(200));
    assert!(is_abandoned(&tick));
}

/// Run by the next test in a process of its own, which is then killed.
#[test]
#[ignore = "runs until it is killed; the next test starts it"]
fn a_prober_to_be_killed() {
    loop {
        drop(probe(&launcher()));
    }
}

/// The children of a process, of whichever thread.
fn children(pid: i32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let told = tasks.map(|task| fs::read_to_string(task.path().join("children")));
    let told: Vec<String> = told.map(Result::unwrap_or_default).collect();
    told.iter().flat_map(|line| line.split_whitespace()).flat_map(str::parse).collect()
}

/// Returns the kernel's state of a process, or `None` if there is none.
fn state(pid: i32) -> Option<char> {
    let told = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    told.rsplit_once(") ")?.1.chars().next()
}

#[test]
fn a_probe_dies_with_a_killed_launcher_even_if_it_hangs() {
    let mut probing = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "runs::a_prober_to_be_killed", "--ignored"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let pid = i32::try_from(probing.id()).unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    // A helper in the middle of a trial, which then goes on no more.
    let (helper, trial) = loop {
        assert!(Instant::now() < deadline, "no trial was met");
        let Some(helper) = children(pid).into_iter().next() else { continue };
        if children(helper).is_empty() || kill(Pid::from_raw(helper), Signal::SIGSTOP).is_err() {
            continue;
        }
        // It has said what it found and waits for the helper, which cannot answer.
        if let [trial] = *children(helper)
            && (0..200).any(|_| {
                thread::sleep(Duration::from_millis(1));
                state(trial) == Some('S')
            })
            && kill(Pid::from_raw(trial), Signal::SIGSTOP).is_ok()
        {
            break (helper, trial);
        }
        kill(Pid::from_raw(helper), Signal::SIGCONT).unwrap();
    };
    probing.kill().unwrap();
    probing.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    let lives = |pid: i32| state(pid).is_some_and(|state| !['Z', 'X'].contains(&state));
    while lives(helper) || lives(trial) {
        let stays = Instant::now() >= deadline;
        if stays {
            let ended = [helper, trial].map(|pid| kill(Pid::from_raw(pid), Signal::SIGKILL));
            panic!("they outlived the launcher: {ended:?}");
        }
        thread::sleep(Duration::from_millis(10));
    }
    // Its control group is removed by the next probe.
    drop(probe(&launcher()));
    assert_eq!(our_groups().iter().find(|name| name.ends_with(&format!("-{helper}"))), None);
}

#[test]
fn a_lost_helper_is_told_and_leaves_nobody() {
    let workspace = tempfile::tempdir().unwrap();
    let spec = limited(attempt(&["linger", "/root/tick", "stay"], workspace.path()), seconds(60));
    let running = launcher().launch(&plan(&spec, machine()).unwrap()).unwrap();
    while fs::metadata(workspace.path().join("tick")).is_err() {
        thread::sleep(Duration::from_millis(5));
    }
    // This thread has started the helper and nothing else.
    let children = fs::read_to_string("/proc/thread-self/children").unwrap();
    let helper = Pid::from_raw(children.trim().parse().unwrap());
    kill(helper, Signal::SIGKILL).unwrap();
    let error = running.wait().unwrap_err();
    assert!(matches!(error, LaunchError::Lost), "{error}");
    thread::sleep(Duration::from_millis(200));
    assert!(is_abandoned(&workspace.path().join("tick")));
    // Its control group is removed by the next probe.
    drop(probe(&launcher()));
    assert_eq!(our_groups().iter().find(|name| name.ends_with(&format!("-{helper}"))), None);
}

#[test]
fn memory_is_limited() {
    let limits = RunLimits { memory_bytes: 64 << 20, ..seconds(20) };
    for machine in [machine().clone(), machine_without_cgroups()] {
        let workspace = tempfile::tempdir().unwrap();
        // Each of three processes stays below the limit of one.
        let line =
            "for n in 1 2 3; do /opt/attempt sandbox-attempt much-memory 41943040 & done; wait";
        let mut spec = attempt(&["unused"], workspace.path());
        spec.program = Program::Shell(line.to_owned());
        let outcome = run_on(&limited(spec, limits), &machine);
        assert_eq!(outcome.status, ExitStatus::MemoryExceeded, "{}", outcome.enforcement);
        let counted = machine.cgroup.is_available();
        assert_eq!(outcome.enforcement != Enforcement::Rlimits, counted);
        // Files in memory count too.
        let spec = attempt(&[WORD, "fill", "/tmp", "100000000", "4000000"], workspace.path());
        let outcome = run_on(&limited(spec, limits), &machine);
        assert_eq!(outcome.status, ExitStatus::MemoryExceeded, "{}", outcome.enforcement);
    }
}

#[test]
fn processes_are_limited() {
    let limits = RunLimits { processes: 20, ..seconds(20) };
    for machine in [machine().clone(), machine_without_cgroups()] {
        let workspace = tempfile::tempdir().unwrap();
        let spec = limited(attempt(&[WORD, "many-processes", "60"], workspace.path()), limits);
        let outcome = run_on(&spec, &machine);
        // The kernel does not limit the processes of root but by a group.
        let is_roots = is_root() && !machine.own_user.is_available();
        let expected = match (outcome.enforcement, is_roots) {
            (Enforcement::Rlimits, true) => ExitStatus::ProcessesExceeded,
            _ => ExitStatus::Exited(1),
        };
        assert_eq!(outcome.status, expected, "{}", outcome.stderr.text_lossy());
    }
}

#[test]
fn processor_time_is_limited() {
    let workspace = tempfile::tempdir().unwrap();
    let limits = RunLimits { cpu: Duration::from_millis(500), ..seconds(20) };
    let outcome = run(&limited(attempt(&["spin"], workspace.path()), limits));
    assert!(matches!(outcome.status, ExitStatus::Signalled(9 | 24)), "{}", outcome.status);
}

#[test]
fn a_service_talks_over_a_passed_descriptor() {
    let workspace = tempfile::tempdir().unwrap();
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let inherit = vec![Inherit { descriptor: Arc::new(theirs.into()), target: 3 }];
    let limits = RunLimits::service();
    let spec = SandboxSpec {
        inherit,
        workspace: None,
        ..attempt(&["echo-descriptor", "3"], workspace.path())
    };
    let spec = limited(spec, limits);
    let planned = plan(&spec, machine()).unwrap();
    let running = launcher().launch(&planned).unwrap();
    drop((spec, planned));
    let mut byte = [0];
    for value in 0..200u8 {
        ours.write_all(&[value]).unwrap();
        ours.read_exact(&mut byte).unwrap();
        assert_eq!(byte, [value]);
    }
    assert!(!running.is_over());
    drop(ours);
    assert_eq!(running.wait().unwrap().status, ExitStatus::Exited(0));
}

#[test]
fn a_peer_notices_the_death_of_a_service() {
    let workspace = tempfile::tempdir().unwrap();
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let inherit = vec![Inherit { descriptor: Arc::new(theirs.into()), target: 63 }];
    let spec = SandboxSpec { inherit, ..attempt(&["echo-descriptor", "63"], workspace.path()) };
    let planned = plan(&spec, machine()).unwrap();
    let running = launcher().launch(&planned).unwrap();
    drop((spec, planned));
    running.kill();
    assert_eq!(ours.read(&mut [0]).unwrap(), 0);
    assert_eq!(running.wait().unwrap().status, ExitStatus::Killed);
}

#[test]
fn output_can_be_read_while_a_service_lives() {
    let workspace = tempfile::tempdir().unwrap();
    let spec = shell("echo ready; echo warm >&2; sleep 600", workspace.path());
    let running = launcher().launch(&plan(&spec, machine()).unwrap()).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let (stdout, stderr) = running.output();
        if (stdout.head.as_slice(), stderr.head.as_slice()) == (b"ready\n", b"warm\n") {
            break;
        }
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn loopback_is_there_when_asked_for() {
    let workspace = tempfile::tempdir().unwrap();
    let spec = attempt(&["loopback"], workspace.path());
    assert_eq!(run(&spec).status, ExitStatus::Exited(1));
    let spec = SandboxSpec { network: Network::Loopback, ..spec };
    assert_eq!(run(&spec).status, ExitStatus::Exited(0));
}

#[test]
fn runs_do_not_disturb_each_other() {
    let threads: Vec<_> = (0..8)
        .map(|number| {
            thread::spawn(move || {
                let workspace = tempfile::tempdir().unwrap();
                for round in 0..5 {
                    let line = format!("echo {number} {round} > /tmp/x; sleep 0.02; cat /tmp/x");
                    let outcome = run(&shell(&line, workspace.path()));
                    assert_eq!(outcome.stdout.text_lossy(), format!("{number} {round}\n"));
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn a_hundred_runs_leave_nothing_behind() {
    alone("runs::a_hundred_runs");
}

#[test]
#[ignore = "counts what its process has; the test above starts it alone"]
fn a_hundred_runs() {
    let workspace = tempfile::tempdir().unwrap();
    let spec = shell("true & true", workspace.path());
    let planned = plan(&spec, machine()).unwrap();
    let count = |folder: &str| fs::read_dir(folder).unwrap().count();
    let mounts = || fs::read_to_string("/proc/self/mountinfo").unwrap().lines().count();
    let before = (count("/proc/self/fd"), count("/proc/self/task"), mounts());
    let mut times = Vec::new();
    for _ in 0..100 {
        let outcome = launcher().launch(&planned).unwrap().wait().unwrap();
        assert!(outcome.status.is_success());
        times.push(outcome.duration);
    }
    assert_eq!((count("/proc/self/fd"), count("/proc/self/task"), mounts()), before);
    let children = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    assert_eq!(children.trim(), "");
    for group in our_groups() {
        assert!(!group.contains(&format!("automaton-{}", std::process::id())), "{group}");
    }
    times.sort();
    println!("a run takes {:?} (median), {:?} (p95)", times[50], times[95]);
}

/// The names of groups that helpers which are gone have left.
fn our_groups() -> Vec<String> {
    let folders = match &machine().cgroup {
        Feature::Available(base) => base.folders(),
        Feature::Missing(_) => Vec::new(),
    };
    let names = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap()).flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names
        .filter(|name| {
            let maker = name.strip_prefix("automaton-");
            maker.is_some_and(|pid| !Path::new("/proc").join(pid).exists())
        })
        .collect()
}

#[test]
fn missing_features_are_refusals_with_a_remedy() {
    let spec = SandboxSpec::new(Program::Shell("true".into()));
    let missing = || Feature::Missing("not today".to_owned());
    let machines = [
        Probe { user_namespace: missing(), ..machine().clone() },
        Probe { mount_namespace: missing(), ..machine().clone() },
        Probe { mount_interface: missing(), ..machine().clone() },
        Probe { process_namespace: missing(), ..machine().clone() },
        Probe { private_proc: missing(), ..machine().clone() },
        Probe { network_namespace: missing(), ..machine().clone() },
        Probe { ipc_namespace: missing(), ..machine().clone() },
        Probe { host_name_namespace: missing(), ..machine().clone() },
        Probe { landlock_abi: Feature::Missing("not today".into()), ..machine().clone() },
        Probe { seccomp: missing(), ..machine().clone() },
    ];
    for machine in machines {
        let refusal = plan(&spec, &machine).unwrap_err();
        assert!(matches!(refusal, PlanRefusal::MissingFeature { .. }));
        assert!(refusal.to_string().ends_with("not today"), "{refusal}");
        assert!(refusal.hint().is_some());
        assert_eq!(refusal.kind(), ErrorClass::Config);
    }
}

#[test]
fn without_a_helper_nothing_is_available() {
    let launcher = Launcher::new("/no/such/helper".into());
    let machine = probe(&launcher);
    let refusal = plan(&SandboxSpec::new(Program::Shell("true".into())), &machine).unwrap_err();
    assert!(refusal.to_string().contains("/no/such/helper"), "{refusal}");
    // A program that is no helper does not become one.
    let machine = probe(&Launcher::new("/bin/true".into()));
    assert!(!machine.user_namespace.is_available());
}

#[test]
#[ignore = "the next test starts it, where there are no network namespaces"]
fn a_machine_that_lacks_one_thing() {
    let found = machine();
    assert!(!found.network_namespace.is_available(), "{found:?}");
    let others = [&found.user_namespace, &found.mount_namespace, &found.mount_interface];
    assert!(others.into_iter().all(Feature::is_available), "{found:?}");
    let others = [&found.process_namespace, &found.ipc_namespace, &found.host_name_namespace];
    assert!(others.into_iter().all(Feature::is_available), "{found:?}");
}

#[test]
fn where_one_feature_is_missing_it_alone_is_told() {
    let limited = "echo 0 > /proc/sys/user/max_net_namespaces && exec \"$0\" \"$@\"";
    let output = std::process::Command::new("/usr/bin/unshare")
        .args(["--user", "--map-root-user", "/bin/sh", "-c", limited])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "runs::a_machine_that_lacks_one_thing", "--ignored"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
}

#[test]
fn the_helper_does_nothing_when_it_is_started_by_hand() {
    let command = ProcessCommand::new(&helper()).arg0("automaton-sandbox").stdin(Stdio::Null);
    let status = spawn(command).unwrap().wait().unwrap();
    assert_eq!(status, ExitStatus::Exited(1));
}
