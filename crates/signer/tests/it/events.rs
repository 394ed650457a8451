//! Four events that broke the caps of other wallets, against the real process. Whatever happens,
//! exactly $150 are signed.

use std::io::{Read as _, pipe};
use std::os::unix::net::UnixStream;

use alloy_primitives::Address;
use automaton_core::money::MicroUsdc;
use automaton_sandbox::process::{ProcessCommand, Stdio, spawn};
use automaton_signer::payload::PaymentIntent;
use automaton_signer::{
    CreatorAction, SignerConnection, SignerConnectionError, SignerRefusalCode, SigningLimitsChange,
};

use crate::creator::at_rest;
use crate::support::{PASSPHRASE, Process, World, intent, passphrase, program};

const DOLLAR: u64 = 1_000_000;
const ALL: u64 = 150 * DOLLAR;

/// Creates a home whose ceilings are all at $150.
fn world() -> World {
    let world = World::new();
    let all = Some(MicroUsdc::new(ALL));
    let to = SigningLimitsChange {
        per_payment: all,
        per_hour: all,
        per_day: all,
        per_payee: all,
        lifetime: None,
        payments_max: None,
    };
    let proof = automaton_signer::CreatorProof::Passphrase(passphrase());
    at_rest(&world, &CreatorAction::Set(to), Some(&proof)).unwrap();
    world
}

/// Returns the total signed, as the next signer reads it from the ledger.
fn signed(world: &World, mut process: Process) -> u64 {
    process.kill();
    let (_process, mut client) = world.start();
    let spent = client.limits().unwrap().spent;
    assert_eq!((spent.hour, spent.day, spent.payee), (spent.ever, spent.ever, spent.ever));
    spent.ever.units()
}

fn refused(client: &mut SignerConnection, asked: &PaymentIntent) -> SignerRefusalCode {
    match client.sign_payment(asked).unwrap_err() {
        SignerConnectionError::Refused(refusal) => refusal.code,
        other => panic!("{other}"),
    }
}

#[test]
fn a_restart_frees_nothing() {
    let world = world();
    let (mut process, mut client) = world.start();
    client.sign_payment(&intent(1, ALL)).unwrap();
    process.kill();
    let (process, mut client) = world.start();
    assert_eq!(refused(&mut client, &intent(2, DOLLAR)), SignerRefusalCode::PerDay);
    assert_eq!(refused(&mut client, &intent(3, 1)), SignerRefusalCode::PerDay);
    assert_eq!(signed(&world, process), ALL);
}

/// Ten processes, each with its own socket, ask at once.
fn ten_at_once(words: &[&str]) {
    let world = world();
    let (process, sockets) = world.start_for(10, words, PASSPHRASE);
    let ask = |(number, socket): (usize, UnixStream)| {
        let (said, stdout) = pipe().unwrap();
        let command = ProcessCommand::new(&program())
            .arg("pay")
            .arg(number.to_string())
            .arg(ALL.to_string())
            .descriptor(socket.into(), 3)
            .stdout(Stdio::Descriptor(stdout.into()));
        (spawn(command).unwrap(), said)
    };
    let asking: Vec<_> = sockets.into_iter().enumerate().map(ask).collect();
    let mut answers = Vec::new();
    for (mut client, mut said) in asking {
        let mut text = String::new();
        said.read_to_string(&mut text).unwrap();
        assert!(client.wait().unwrap().is_success());
        answers.push(text);
    }
    answers.sort();
    assert_eq!((answers[..9].iter().all(|it| it == "PerDay"), &*answers[9]), (true, "signed"));
    assert_eq!(signed(&world, process), ALL);
}

#[test]
fn ten_processes_at_once_get_it_once() {
    ten_at_once(&[]);
}

#[test]
fn nor_do_they_get_more_while_the_disk_is_slow() {
    ten_at_once(&["slow"]);
}

#[test]
fn a_second_token_has_no_ceiling_of_its_own() {
    let world = world();
    let (process, stream) = world.start_as(&["second-token"], PASSPHRASE);
    let mut client = SignerConnection::connect(stream).unwrap();
    client.sign_payment(&intent(1, ALL)).unwrap();
    let other = PaymentIntent { asset: Address::repeat_byte(0x22), ..intent(2, DOLLAR) };
    assert_eq!(refused(&mut client, &other), SignerRefusalCode::PerDay);
    assert_eq!(signed(&world, process), ALL);
}

#[test]
fn a_full_disk_costs_no_signature_and_no_restart() {
    let folder = tempfile::tempdir().unwrap();
    let keystore = folder.path().join("keystore.json");
    std::fs::write(&keystore, crate::support::KEYSTORE).unwrap();
    let script = "umask 077\nmkdir \"$2/small\"\n\
                  mount -t tmpfs -o size=1m,mode=700 tmpfs \"$2/small\" && mkdir \"$2/small/home\"\n\
                  mv \"$2/keystore.json\" \"$2/small/home\"\n\
                  head -c 500k /dev/zero > \"$2/small/ballast\"\n\
                  exec \"$1\" full \"$2/small/home\" \"$2/small/ballast\"\n";
    let output = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-euc", script, "sh"])
        .args([program().as_path(), folder.path()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let error = &output.stderr;
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(error));
    let words: Vec<&str> = said.split([' ', ',']).collect();
    let [refused_after, signed, then] = [2, 4, 7].map(|place| words[place].trim_end_matches(':'));
    let [refused_after, signed, then] =
        [refused_after, signed, then].map(|it| it.parse::<u32>().unwrap());
    assert_eq!((refused_after, then), (signed, signed + 1), "{said}");
    assert!(said.contains("the signer's ledger has no room"), "{said}");
}

#[test]
fn an_agent_that_breaks_the_protocol_ends_alone() {
    let world = World::new();
    let (mut process, mut sockets) = world.start_for(2, &[], PASSPHRASE);
    let mut client = SignerConnection::connect(sockets.pop().unwrap()).unwrap();
    let mut broken = sockets.pop().unwrap();
    // silent-ok: the signer may hang up before all of it is sent.
    std::io::Write::write_all(&mut broken, &vec![b'x'; 600 * 1024]).ok();
    let mut said = Vec::new();
    // silent-ok: unread bytes at the other end may cut the reply off.
    broken.read_to_end(&mut said).ok();
    client.sign_payment(&intent(1, 1)).unwrap();
    drop(client);
    assert!(!process.ended_well(), "the end tells of it");
}
