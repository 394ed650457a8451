//! Only the signer can read the key.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::fd::OwnedFd;
use std::process::Command;

use automaton_sandbox::process::{self, Stdio, spawn};

use crate::support::{World, intent, program};

/// The mask that hides each byte of the key, so that no test contains the key.
const MASK: u8 = 0xa5;

/// The key in the keystore of the tests, behind the mask.
const MASKED_KEY: &str = "66cd127b248b0454d5cc7f6410fe51781279185ce51db35aa5a909f9bced9360";

/// Returns true if readable memory of this process contains these bytes, each given masked, so
/// that the search itself does not contain them.
fn memory_holds(masked: &[u8]) -> bool {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mut memory = File::open("/proc/self/mem").unwrap();
    let mut chunk = vec![0; 1 << 20];
    maps.lines().any(|line| {
        let mut words = line.split([' ', '-']);
        let mut bound = || u64::from_str_radix(words.next().unwrap(), 16).unwrap();
        let mut at = bound();
        let end = bound();
        let readable = words.next().unwrap().starts_with('r');
        while readable && at < end {
            let size = usize::try_from(end - at).unwrap().min(chunk.len());
            let seen =
                memory.seek(SeekFrom::Start(at)).and_then(|_| memory.read(&mut chunk[..size]));
            // Some kernel pages cannot be read.
            let Ok(seen) = seen else { break };
            let matches = |window: &[u8]| window.iter().zip(masked).all(|(a, b)| a ^ MASK == *b);
            if seen == 0 {
                break;
            }
            if chunk[..seen].windows(masked.len()).any(matches) {
                return true;
            }
            // Windows overlap, so that no match hides across a border.
            let step =
                if at + u64::try_from(seen).unwrap() < end { seen - masked.len() } else { seen };
            at += u64::try_from(step).unwrap();
        }
        false
    })
}

fn masked_bytes(digits: &str) -> Vec<u8> {
    let byte = |place| u8::from_str_radix(&digits[place..place + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

#[test]
fn the_agent_never_holds_the_key() {
    let world = World::new();
    let (_process, mut client) = world.start();
    client.sign_payment(&intent(1, 5_000_000)).unwrap();
    let masked = masked_bytes(MASKED_KEY);
    assert!(!memory_holds(&masked));
    // Nor as hexadecimal digits.
    let digits = |byte: &u8| format!("{:02x}", byte ^ MASK).into_bytes();
    let masked_digits: Vec<u8> = {
        let shown = |byte: &u8| digits(byte).into_iter().map(|digit| digit ^ MASK).collect();
        masked.iter().flat_map(|byte| -> Vec<u8> { shown(byte) }).collect()
    };
    assert!(!memory_holds(&masked_digits));
    // The search finds a canary.
    let canary: Vec<u8> = masked.iter().map(|byte| byte ^ MASK ^ 0x3c).collect();
    let masked_canary: Vec<u8> = canary.iter().map(|byte| byte ^ MASK).collect();
    assert!(memory_holds(&masked_canary));
    drop(canary);
}

#[test]
fn nobody_reads_the_signers_memory() {
    let world = World::new();
    let (process, mut client) = world.start();
    client.limits().unwrap();
    let read = |pid: i32| {
        let output = Command::new(program()).args(["read", &pid.to_string()]).output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    // The system must allow a process of the same user to be read, or the refusal proves nothing.
    let (held, _hold) = std::os::unix::net::UnixStream::pair().unwrap();
    let idle = process::ProcessCommand::new(&program())
        .arg("idle")
        .stdin(Stdio::Descriptor(OwnedFd::from(held)));
    let mut idle = spawn(idle).unwrap();
    let open = read(idle.pid());
    idle.kill().unwrap();
    idle.wait().unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", process.pid())).unwrap();
    let field = |name: &str| {
        status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned()
    };
    assert_eq!(field("NoNewPrivs:"), "1");
    assert_eq!(field("Seccomp:"), "2");
    let locked: u64 = field("VmLck:").trim_end_matches(" kB").parse().unwrap();
    assert!((1..=32).contains(&locked), "{locked} kB are locked");
    let limits = fs::read_to_string(format!("/proc/{}/limits", process.pid())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    // With 1 the kernel starts no core dump handler either.
    assert_eq!(core.split_whitespace().nth(4), Some("1"), "{core}");
    if automaton_testkit::unprivileged::is_root() {
        // root may read everything. The same test runs again as an ordinary user.
        return;
    }
    assert!(open.0, "cannot read an open process here: {}", open.1);
    let (seen, error) = read(process.pid());
    assert!(!seen && error.contains("Permission denied"), "{error}");
}

#[test]
fn a_key_holder_reaches_nothing() {
    for attempt in ["connect", "bind", "udp", "unix", "program", "signal", "thread"] {
        let output = Command::new(program()).args(["confined", attempt]).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{attempt}: {error}");
    }
}
