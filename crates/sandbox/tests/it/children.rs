//! Our own children: descriptors, lifelines, signals, locks.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use automaton_core::error::{Classified as _, ErrorClass};
use automaton_sandbox::ExitStatus;
use automaton_sandbox::process::{
    Lifeline, LockError, ProcessCommand, ProcessError, Signals, Stdio, StopSignal, lock, spawn,
    take_inherited,
};
use nix::fcntl::OFlag;
use nix::sys::signal::{Signal, raise};
use nix::unistd::pipe2;

use crate::support::attempt_program;

fn shell(line: &str) -> ProcessCommand {
    ProcessCommand::new(Path::new("/bin/sh")).arg("-c").arg(line).env("PATH", "/usr/bin:/bin")
}

fn output_of(command: ProcessCommand) -> (ExitStatus, String) {
    let (read, write) = pipe2(OFlag::O_CLOEXEC).unwrap();
    let mut child = spawn(command.stdout(Stdio::Descriptor(write))).unwrap();
    let mut text = String::new();
    File::from(read).read_to_string(&mut text).unwrap();
    (child.wait().unwrap(), text)
}

#[test]
fn a_child_gets_what_it_is_given_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| {
        std::fs::write(folder.path().join(name), name).unwrap();
        File::open(folder.path().join(name)).unwrap()
    };
    // Targets that are the numbers of other sources must not get mixed up.
    let seven = file("seven");
    let three = file("three");
    let command = shell("cat <&7; cat <&3; ls /proc/self/fd | tr '\\n' ' '; env")
        .env("GIVEN", "yes")
        .descriptor(seven.into(), 7)
        .descriptor(three.into(), 3);
    let (status, text) = output_of(command);
    assert_eq!(status, ExitStatus::Exited(0));
    // The last number is the listed directory itself.
    let (files, env) = text.split_once('\n').map_or((text.as_str(), ""), |parts| parts);
    assert!(files.starts_with("seventhree0 1 2 3 4 7"), "{text}");
    assert!(files.contains("GIVEN=yes") || env.contains("GIVEN=yes"), "{text}");
    assert!(!text.contains("CARGO"), "{text}");
}

#[test]
fn what_cannot_be_started_says_so() {
    let error = spawn(ProcessCommand::new(Path::new("/no/such/program"))).unwrap_err();
    assert!(matches!(error, ProcessError::Spawn { .. }));
    assert_eq!(error.kind(), ErrorClass::Config);
    let (read, write) = pipe2(OFlag::O_CLOEXEC).unwrap();
    let command = shell("true").descriptor(read, 5).descriptor(write, 5);
    assert!(matches!(spawn(command), Err(ProcessError::Target { target: 5 })));
    let (read, _write) = pipe2(OFlag::O_CLOEXEC).unwrap();
    assert!(matches!(
        spawn(shell("true").descriptor(read, 64)),
        Err(ProcessError::Target { target: 64 })
    ));
}

#[test]
fn a_child_can_be_waited_for_terminated_and_killed() {
    let mut child = spawn(shell("sleep 600")).unwrap();
    assert_eq!(child.wait_timeout(Duration::from_millis(20)).unwrap(), None);
    child.terminate().unwrap();
    assert_eq!(child.wait().unwrap(), ExitStatus::Signalled(15));
    assert_eq!(child.wait().unwrap(), ExitStatus::Signalled(15));
    child.kill().unwrap();
    let mut child = spawn(shell("trap '' TERM; echo; sleep 600")).unwrap();
    child.kill().unwrap();
    assert_eq!(
        child.wait_timeout(Duration::from_secs(10)).unwrap(),
        Some(ExitStatus::Signalled(9))
    );
}

#[test]
fn a_child_starts_with_usual_signals() {
    // The Rust runtime of this test ignores SIGPIPE; a child must not.
    let (status, text) = output_of(shell("grep -E 'SigIgn|SigBlk' /proc/self/status"));
    assert_eq!(status, ExitStatus::Exited(0));
    let sigpipe = 1u64 << 12;
    for line in text.lines() {
        let mask = line.split_whitespace().nth(1).unwrap();
        assert_eq!(u64::from_str_radix(mask, 16).unwrap() & sigpipe, 0, "{line}");
    }
}

#[test]
fn stop_signals_are_received() {
    // Only this thread is signalled, as only it has blocked the signals.
    let signals = Signals::receive().unwrap();
    assert_eq!(signals.next().unwrap(), None);
    raise(Signal::SIGINT).unwrap();
    raise(Signal::SIGTERM).unwrap();
    let mut received = [signals.next().unwrap(), signals.next().unwrap()];
    received.sort_by_key(|signal| *signal == Some(StopSignal::Terminate));
    assert_eq!(received, [Some(StopSignal::Interrupt), Some(StopSignal::Terminate)]);
    assert_eq!(signals.next().unwrap(), None);
}

#[test]
fn our_own_processes_can_be_hardened_and_crash_on_demand() {
    let mut child = spawn(ProcessCommand::new(&attempt_program()).arg("be-hardened")).unwrap();
    assert_eq!(child.wait().unwrap(), ExitStatus::Exited(0));
    let mut child = spawn(ProcessCommand::new(&attempt_program()).arg("end-itself")).unwrap();
    assert_eq!(child.wait().unwrap(), ExitStatus::Signalled(9));
}

#[test]
fn both_ends_of_a_lifeline_notice() {
    let (ours, theirs) = Lifeline::pair().unwrap();
    let mut child = spawn(shell("read x <&3; exit 5").descriptor(theirs, 3)).unwrap();
    assert!(!ours.is_cut());
    assert!(!ours.wait_cut(Duration::from_millis(20)));
    child.kill().unwrap();
    assert!(ours.wait_cut(Duration::from_secs(10)));
    assert!(ours.is_cut());
    child.wait().unwrap();
    let (ours, theirs) = Lifeline::pair().unwrap();
    let mut child = spawn(shell("read x <&3; exit 5").descriptor(theirs, 3)).unwrap();
    drop(ours);
    assert_eq!(child.wait().unwrap(), ExitStatus::Exited(5));
}

#[test]
fn a_descriptor_is_taken_once() {
    assert!(matches!(take_inherited(2), Err(ProcessError::Target { target: 2 })));
    assert!(matches!(take_inherited(61), Err(ProcessError::NotInherited { number: 61, .. })));
    let (read, _write) = pipe2(OFlag::O_CLOEXEC).unwrap();
    // SAFETY: the number is free in this test process.
    assert_eq!(unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&read), 61) }, 61);
    let taken = take_inherited(61).unwrap();
    assert!(matches!(take_inherited(61), Err(ProcessError::Taken { number: 61 })));
    drop(taken);
}

#[test]
fn a_lock_has_one_holder_and_dies_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    let guard = lock(&path).unwrap();
    let error = lock(&path).unwrap_err();
    let own = i32::try_from(std::process::id()).unwrap();
    assert!(matches!(error, LockError::Held { holder: Some(pid), .. } if pid == own), "{error}");
    assert_eq!(error.kind(), ErrorClass::User);
    // A child does not keep it.
    let child = spawn(shell("sleep 600")).unwrap();
    drop(guard);
    let guard = lock(&path).unwrap();
    drop(guard);
    child.kill().unwrap();
    let mut file = File::options().write(true).truncate(true).open(&path).unwrap();
    file.write_all(b"nonsense").unwrap();
    drop(lock(&path).unwrap());
    assert!(matches!(lock(Path::new("/no/such/lock")), Err(LockError::File { .. })));
}
