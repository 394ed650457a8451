//! Tests of sandboxes that stay open: programs beside each other, and the end of a session.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use automaton_sandbox::drill::WORD;
use automaton_sandbox::{
    Bind, Enforcement, ExitStatus, Feature, LaunchError, Network, PlanRefusal, Program, RunLimits,
    RunOutcome, SandboxSpec, Session, SessionProgram, converse, plan,
};

use crate::support::{ATTEMPT_INSIDE, alone, attempt_program, launcher, machine};

const LONG: Duration = Duration::from_secs(20);
/// Ends when nothing else runs inside: the first process and this shell.
const ALONE: &str = "while set -- /proc/[0-9]*; [ $# -gt 2 ]; do :; done";

fn spec(workspace: &Path) -> SandboxSpec {
    SandboxSpec {
        workspace: Some(workspace.to_owned()),
        network: Network::Loopback,
        read_only: vec![Bind { host: attempt_program(), inside: ATTEMPT_INSIDE.into() }],
        limits: RunLimits::service(),
        ..SandboxSpec::new(Program::Later)
    }
}

fn open(spec: &SandboxSpec) -> Session {
    launcher().open(&plan(spec, machine()).unwrap()).unwrap()
}

fn shell(line: &str) -> SessionProgram {
    SessionProgram { wall: Some(LONG), ..SessionProgram::new(Program::Shell(line.to_owned())) }
}

fn run(session: &Session, line: &str) -> RunOutcome {
    session.run(&shell(line)).unwrap().wait().unwrap()
}

fn text(session: &Session, line: &str) -> String {
    let outcome = run(session, line);
    assert!(outcome.status.is_success(), "{line}: {outcome:?}");
    outcome.stdout.text_lossy()
}

fn await_file(path: &Path) {
    let deadline = Instant::now() + LONG;
    while !path.exists() {
        assert!(Instant::now() < deadline, "there is no {}", path.display());
        thread::sleep(Duration::from_millis(5));
    }
}

/// Reads a connection to its end.
fn heard(connection: TcpStream) -> String {
    connection.set_nonblocking(false).unwrap();
    connection.set_read_timeout(Some(LONG)).unwrap();
    let mut heard = String::new();
    (&connection).read_to_string(&mut heard).unwrap();
    heard
}

#[test]
fn programs_share_files_and_processes_and_outlive_their_call() {
    let workspace = tempfile::tempdir().unwrap();
    let session = open(&spec(workspace.path()));
    // A process that stays behind holds the outputs open. The call ends anyway.
    let asked = Instant::now();
    assert_eq!(text(&session, "echo one > /tmp/x; sleep 300 & echo $!"), "3\n");
    assert!(asked.elapsed() < LONG);
    assert_eq!(text(&session, "cat /tmp/x; test -d /proc/3 && echo there"), "one\nthere\n");
    assert_eq!(text(&session, "kill 3 && while test -d /proc/3; do :; done; echo gone"), "gone\n");
    let failed = run(&session, "echo out; echo err >&2; exit 7");
    assert_eq!(failed.status, ExitStatus::Exited(7));
    let said = (failed.stdout.text_lossy(), failed.stderr.text_lossy());
    assert_eq!(said, ("out\n".to_owned(), "err\n".to_owned()));
    let fed = SessionProgram { stdin: b"fed".to_vec(), ..shell("cat") };
    assert_eq!(session.run(&fed).unwrap().wait().unwrap().stdout.text_lossy(), "fed");
    let named =
        SessionProgram { env: vec![("WORD".into(), "w".into())], ..shell("echo $WORD $HOME") };
    let outcome = session.run(&named).unwrap().wait().unwrap();
    assert_eq!(outcome.stdout.text_lossy(), "w /root\n");
}

#[test]
fn a_task_that_takes_too_long_or_is_killed_ends_alone() {
    let workspace = tempfile::tempdir().unwrap();
    let session = open(&spec(workspace.path()));
    let task = "echo begun; (sleep 300; echo late) & sleep 300";
    let task = SessionProgram { wall: Some(Duration::from_millis(300)), ..shell(task) };
    let outcome = session.run(&task).unwrap().wait().unwrap();
    assert_eq!(outcome.status, ExitStatus::TimedOut);
    assert_eq!(outcome.stdout.text_lossy(), "begun\n");
    text(&session, ALONE);
    let running = session.run(&shell("sleep 300")).unwrap();
    running.kill();
    assert_eq!(running.wait().unwrap().status, ExitStatus::Killed);
    drop(session.run(&shell("sleep 300")).unwrap());
    text(&session, ALONE);
}

#[test]
fn what_runs_inside_keeps_no_newborn_from_starting_for_ever() {
    let workspace = tempfile::tempdir().unwrap();
    let session = open(&spec(workspace.path()));
    // It stops whatever is born, before that can be confined.
    let stop = "(while :; do for p in /proc/[0-9]*; do p=${p#/proc/}; \
        [ $p -gt 2 ] && [ $p != $BASHPID ] && kill -STOP $p; done; done) 2>/dev/null & ";
    run(&session, stop);
    let mut started = 0;
    for _ in 0..3 {
        let asked = Instant::now();
        if let Ok(running) = session.run(&SessionProgram { wall: Some(LONG), ..shell("true") }) {
            started += 1;
            running.kill();
            assert!(running.wait().is_ok(), "what is stopped can be ended");
        }
        assert!(asked.elapsed() < LONG, "the session answers");
    }
    println!("{started} of 3 were started");
    assert!(!session.is_over());
}

#[test]
fn nothing_inside_ends_the_session_and_each_task_is_confined() {
    let workspace = tempfile::tempdir().unwrap();
    let session = open(&spec(workspace.path()));
    run(&session, "kill -9 1; kill -TERM 1; kill -9 -1");
    run(&session, "kill -9 0");
    let line = format!(
        "{ATTEMPT_INSIDE} {WORD} mount; {ATTEMPT_INSIDE} {WORD} bpf; {ATTEMPT_INSIDE} {WORD} trace 1; \
                        cat /proc/1/environ; echo still"
    );
    assert_eq!(text(&session, &line), "still\n");
    assert!(!session.is_over());
    let refused = session.run(&SessionProgram::new(Program::Argv(vec!["no-such-program".into()])));
    assert!(matches!(refused, Err(LaunchError::Exec(_))), "{refused:?}");
    let refused = session.run(&shell(""));
    assert!(matches!(refused, Err(LaunchError::Task(PlanRefusal::NoProgram))), "{refused:?}");
    let refused = session.run(&SessionProgram::new(Program::Later));
    assert!(matches!(refused, Err(LaunchError::Task(PlanRefusal::NoProgram))), "{refused:?}");
}

#[test]
fn a_server_inside_is_reached_from_inside_and_by_the_owner() {
    let workspace = tempfile::tempdir().unwrap();
    let session = open(&spec(workspace.path()));
    let refused = session.connect(8000).map(drop);
    assert!(matches!(refused, Err(LaunchError::Setup { .. })), "{refused:?}");
    run(&session, &format!("{ATTEMPT_INSIDE} serve 8000 hello /root/ready & "));
    await_file(&workspace.path().join("ready"));
    for _ in 0..5 {
        assert_eq!(heard(session.connect(8000).unwrap()), "hello");
    }
    assert_eq!(text(&session, "cat < /dev/tcp/127.0.0.1/8000"), "hello");
    let other = tempfile::tempdir().unwrap();
    assert!(open(&spec(other.path())).connect(8000).is_err());
}

#[test]
fn the_way_out_is_the_owners_listener() {
    let workspace = tempfile::tempdir().unwrap();
    let mut session = open(&SandboxSpec { network: Network::Proxied, ..spec(workspace.path()) });
    let listener = session.take_proxy().unwrap();
    assert!(session.take_proxy().is_none());
    listener.set_nonblocking(false).unwrap();
    let serving = thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.write_all(b"from outside").unwrap();
    });
    let port = "${http_proxy##*:}; cat < /dev/tcp/127.0.0.1/$P; env | grep -ic _proxy=";
    assert_eq!(text(&session, &format!("P={port}")), "from outside6\n");
    serving.join().unwrap();
    // The same for a program with a sandbox of its own; without it there is none.
    let only = shell_spec("echo $HTTPS_PROXY", workspace.path(), Network::Proxied);
    let mut running = launcher().launch(&plan(&only, machine()).unwrap()).unwrap();
    assert!(running.take_proxy().is_some());
    assert_eq!(running.wait().unwrap().stdout.text_lossy(), "http://127.0.0.1:3128\n");
    let without = shell_spec("echo $HTTPS_PROXY", workspace.path(), Network::Loopback);
    let mut running = launcher().launch(&plan(&without, machine()).unwrap()).unwrap();
    assert!(running.take_proxy().is_none());
    assert_eq!(running.wait().unwrap().stdout.text_lossy(), "\n");
}

fn shell_spec(line: &str, workspace: &Path, network: Network) -> SandboxSpec {
    let workspace = Some(workspace.to_owned());
    SandboxSpec { workspace, network, ..SandboxSpec::new(Program::Shell(line.to_owned())) }
}

#[test]
fn what_is_kept_is_there_in_the_next_session() {
    let folder = tempfile::tempdir().unwrap();
    let kept: Vec<Bind> = [("local", "/usr/local"), ("opt", "/opt"), ("lib", "/var/lib")]
        .map(|(name, inside)| {
            let host = folder.path().join(name);
            fs::create_dir(&host).unwrap();
            Bind { host, inside: inside.into() }
        })
        .to_vec();
    let workspace = folder.path().join("root");
    fs::create_dir(&workspace).unwrap();
    let spec = SandboxSpec { kept, ..spec(&workspace) };
    let line = "mkdir /usr/local/bin; printf '#!/bin/sh\\necho kept' > /usr/local/bin/told; \
                chmod +x /usr/local/bin/told; cp /usr/local/bin/told /opt/told; \
                echo x > /usr/bin/x || ls /var/lib";
    run(&open(&spec), line);
    assert_eq!(text(&open(&spec), "told; /opt/told"), "kept\nkept\n");
    assert!(folder.path().join("local/bin/told").exists());
    for inside in ["/usr", "/usr/bin", "/etc", "/proc", "/root", "/var", "/tmp/x", "/usr/local/x"] {
        let kept = vec![Bind { host: folder.path().to_owned(), inside: inside.into() }];
        let refusal = plan(&SandboxSpec { kept, ..spec.clone() }, machine()).unwrap_err();
        assert!(matches!(refusal, PlanRefusal::BindTarget(_)), "{inside}");
    }
}

#[test]
fn the_end_of_a_session_is_the_end_of_all_that_ran_in_it() {
    let workspace = tempfile::tempdir().unwrap();
    let session = open(&spec(workspace.path()));
    let running = session.run(&shell("sleep 300")).unwrap();
    run(&session, "(while :; do date >> /root/tick; sleep 0.01; done) & ");
    session.killer().kill();
    assert_eq!(running.wait().unwrap().status, ExitStatus::Killed);
    let deadline = Instant::now() + LONG;
    while !session.is_over() {
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(2));
    }
    let size = || fs::metadata(workspace.path().join("tick")).map_or(0, |file| file.len());
    let before = size();
    thread::sleep(Duration::from_millis(100));
    assert_eq!(size(), before);
    assert!(matches!(session.run(&shell("true")), Err(LaunchError::Over)));
    assert!(matches!(session.connect(1), Err(LaunchError::Over)));
}

#[test]
fn memory_is_counted_together_and_its_lack_ends_one_task() {
    let workspace = tempfile::tempdir().unwrap();
    let limits = RunLimits { memory_bytes: 64 << 20, ..RunLimits::service() };
    let session = open(&SandboxSpec { limits, ..spec(workspace.path()) });
    let running = session.run(&shell("sleep 300")).unwrap();
    let Enforcement::Cgroup { .. } = plan(&spec(workspace.path()), machine()).unwrap().enforcement
    else {
        return;
    };
    let outcome = run(&session, &format!("{ATTEMPT_INSIDE} {WORD} much-memory 200000000"));
    assert_eq!(outcome.status.code(), 137, "{outcome:?}");
    assert!(!running.is_over() && !session.is_over());
    let usage = session.usage();
    assert!(usage.processes.unwrap() >= 2 && usage.memory_bytes.unwrap() <= 64 << 20, "{usage:?}");
}

#[test]
fn processors_are_shared_by_all_that_runs_and_their_time_is_counted() {
    let workspace = tempfile::tempdir().unwrap();
    let Feature::Available(base) = &machine().cgroup else { return };
    if !base.limits_cpus() {
        println!("processors are not limited here");
        return;
    }
    let limits = RunLimits { cpus: Some(1), ..RunLimits::service() };
    let session = open(&SandboxSpec { limits, ..spec(workspace.path()) });
    let begun = Instant::now();
    let before = session.usage().cpu.unwrap();
    let busy = "timeout 2 sh -c 'while :; do :; done'";
    run(&session, &format!("{busy} & {busy} & {busy} & wait"));
    let spent = session.usage().cpu.unwrap() - before;
    let wall = begun.elapsed();
    println!("three loops in {wall:?} used {spent:?}");
    // One processor, and a period's worth that was begun.
    assert!(spent <= wall.mul_f32(1.2), "{spent:?} of {wall:?}");
    assert!(spent >= Duration::from_millis(100), "{spent:?}");
}

#[test]
fn a_thousand_tasks_leave_nothing_behind() {
    alone("sessions::a_thousand_tasks");
}

#[test]
#[ignore = "counts what its process has; the test above starts it alone"]
fn a_thousand_tasks() {
    let workspace = tempfile::tempdir().unwrap();
    let session = open(&spec(workspace.path()));
    text(&session, "true");
    let count = |folder: &str| fs::read_dir(folder).unwrap().count();
    let before = (count("/proc/self/fd"), count("/proc/self/task"));
    let begun = Instant::now();
    for _ in 0..1000 {
        assert!(run(&session, "true").status.is_success());
    }
    println!("a task takes {:?}", begun.elapsed() / 1000);
    assert_eq!((count("/proc/self/fd"), count("/proc/self/task")), before);
    text(&session, ALONE);
}

#[test]
fn an_operator_has_a_terminal_inside() {
    let workspace = tempfile::tempdir().unwrap();
    let session = open(&spec(workspace.path()));
    let folder = tempfile::tempdir().unwrap();
    let typed = folder.path().join("typed");
    fs::write(&typed, "test -t 0 && echo a $TERM terminal\nexit 5\n").unwrap();
    let shown_at = folder.path().join("shown");
    let program = Program::Argv(["/bin/sh", "-i"].map(str::to_owned).to_vec());
    let task = SessionProgram {
        env: vec![("TERM".into(), "vt100".into())],
        ..SessionProgram::new(program)
    };
    let keyboard = fs::File::open(&typed);
    let screen = fs::File::create(&shown_at);
    let status = converse(&session, &task, keyboard.unwrap(), screen.unwrap()).unwrap();
    assert_eq!(status, ExitStatus::Exited(5));
    let shown = fs::read_to_string(&shown_at).unwrap();
    assert!(shown.contains("a vt100 terminal\r\n"), "{shown}");
    // An input that ends is an end for the shell.
    let keyboard = fs::File::open("/dev/null");
    let screen = fs::File::create("/dev/null");
    let status = converse(&session, &task, keyboard.unwrap(), screen.unwrap()).unwrap();
    assert_eq!(status, ExitStatus::Exited(0));
    // Neither side waits for the other, however much is typed and shown.
    fs::write(&typed, "all work and no play\n".repeat(20_000)).unwrap();
    let conversed = |argv: &[&str]| {
        let task =
            SessionProgram::new(Program::Argv(argv.iter().map(|it| (*it).to_owned()).collect()));
        let keyboard = fs::File::open(&typed);
        let screen = fs::File::create(&shown_at);
        converse(&session, &task, keyboard.unwrap(), screen.unwrap()).unwrap()
    };
    assert_eq!(conversed(&["/usr/bin/wc", "-c"]), ExitStatus::Exited(0));
    let shown = fs::read_to_string(&shown_at).unwrap();
    assert!(shown.trim_end().ends_with("420000"), "{}", &shown[shown.len() - 80..]);
    // Nor is a program that lets go of its terminal followed no more.
    let lets_go = "exec < /dev/null > /dev/null 2>&1; sleep 1; exit 7";
    assert_eq!(conversed(&["/bin/sh", "-c", lets_go]), ExitStatus::Exited(7));
}

#[test]
fn a_plan_is_launched_or_opened_as_it_says() {
    let workspace = tempfile::tempdir().unwrap();
    let later = plan(&spec(workspace.path()), machine()).unwrap();
    assert!(matches!(launcher().launch(&later), Err(LaunchError::Plan(_))));
    let once = shell_spec("true", workspace.path(), Network::None);
    let once = plan(&once, machine()).unwrap();
    assert!(matches!(launcher().open(&once), Err(LaunchError::Plan(_))));
}
