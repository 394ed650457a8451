//! The creator's socket of a running signer, and its ledger while none runs.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use alloy_primitives::{Address, B256, Bytes, address, eip191_hash_message};
use automaton_core::faults::NoFaults;
use automaton_core::money::MicroUsdc;
use automaton_core::secret::Secret;
use automaton_core::time::SystemClock;
use automaton_sandbox::SystemBootClock;
use automaton_signer::{
    CreatorAction, CreatorConnection, CreatorProof, SignerConnection, SignerConnectionError,
    SignerDeps, SignerError, SignerRefusalCode, SignerStatus, SigningLimitsChange, SpendingTotals,
    act_on_stopped_signer, message,
};
use k256::ecdsa::SigningKey;

use crate::support::{PASSPHRASE, World, intent, passphrase};

/// The creator: the second account of the golden vectors, whose key is public.
const CREATOR: Address = address!("70997970C51812dc3A010C7d01b50e0d17dc79C8");
const CREATORS_KEY: &str = "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";

fn words(text: &str) -> Option<CreatorProof> {
    Some(CreatorProof::Passphrase(Secret::new(text.to_owned())))
}

fn right() -> Option<CreatorProof> {
    Some(CreatorProof::Passphrase(passphrase()))
}

/// Returns the creator's signature of a text.
fn signed(text: &str) -> Option<CreatorProof> {
    let key = SigningKey::from_slice(&hex::decode(CREATORS_KEY).unwrap()).unwrap();
    let digest = eip191_hash_message(text);
    let (signature, recovery) = key.sign_prehash_recoverable(digest.as_slice()).unwrap();
    let v = 27 + u8::from(recovery.is_y_odd());
    Some(CreatorProof::Signature(Bytes::from([&signature.to_bytes()[..], &[v]].concat())))
}

fn code<T: std::fmt::Debug>(answer: Result<T, SignerConnectionError>) -> SignerRefusalCode {
    match answer.unwrap_err() {
        SignerConnectionError::Refused(refusal) => refusal.code,
        other => panic!("{other}"),
    }
}

/// Returns a daily ceiling in dollars.
fn per_day(usdc: u64) -> SigningLimitsChange {
    let day = Some(MicroUsdc::new(usdc * 1_000_000));
    SigningLimitsChange { per_day: day, ..SigningLimitsChange::default() }
}

pub(crate) fn at_rest(
    world: &World,
    ask: &CreatorAction,
    proof: Option<&CreatorProof>,
) -> Result<SignerStatus, SignerError> {
    let parts = SignerDeps {
        clock: Arc::new(SystemClock),
        boot: Arc::new(SystemBootClock),
        faults: Arc::new(NoFaults),
    };
    act_on_stopped_signer(&world.home(), ask, proof, parts)
}

#[test]
fn only_the_creator_raises_a_ceiling_and_anybody_lowers_one() {
    let world = World::new();
    let (_process, mut client) = world.start();
    let dear = intent(1, 30_000_000);
    assert_eq!(code(client.sign_payment(&dear)), SignerRefusalCode::PerPayment);

    let socket = world.home().creator_socket();
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let mut creator = CreatorConnection::connect(&world.home()).unwrap();
    let shown = creator.ask(&CreatorAction::Show {}, None).unwrap();
    assert_eq!((shown.limits, shown.serial), (client.limits().unwrap().limits, 0));
    assert_eq!(shown.wallet, Some(client.address()));

    let raise = CreatorAction::Set(SigningLimitsChange {
        per_payment: Some(MicroUsdc::new(30_000_000)),
        ..SigningLimitsChange::default()
    });
    assert_eq!(code(creator.ask(&raise, None)), SignerRefusalCode::Authority);
    assert_eq!(code(creator.ask(&raise, words("wrong horse"))), SignerRefusalCode::Passphrase);
    assert_eq!(code(creator.ask(&raise, signed("anything"))), SignerRefusalCode::Authority);
    assert!(client.sign_payment(&dear).is_err());

    let raised = creator.ask(&raise, right()).unwrap();
    assert_eq!(raised.limits.per_payment, MicroUsdc::new(30_000_000));
    assert_eq!((raised.limits.per_day, raised.serial), (shown.limits.per_day, 1));
    assert_ne!(raised.rules, shown.rules);
    client.sign_payment(&dear).unwrap();

    let lower = SigningLimitsChange { payments_max: Some(1), ..SigningLimitsChange::default() };
    creator.ask(&CreatorAction::Set(lower), None).unwrap();
    assert_eq!(code(client.sign_payment(&intent(2, 1))), SignerRefusalCode::Count);
    // Lower in one and higher in another is a raise.
    let both =
        SigningLimitsChange { per_payment: Some(MicroUsdc::ZERO), payments_max: Some(2), ..lower };
    assert_eq!(code(creator.ask(&CreatorAction::Set(both), None)), SignerRefusalCode::Authority);
}

#[test]
fn peers_that_say_nothing_or_little_keep_no_creator_out() {
    let world = World::new();
    let (_process, _client) = world.start();
    let socket = world.home().creator_socket();
    let stop = Arc::new(AtomicBool::new(false));
    // More than there are seats: some are silent, some send a byte now and then.
    let idle: Vec<_> = (0..6).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    let slow: Vec<_> = (0..6)
        .map(|_| {
            let mut stream = UnixStream::connect(&socket).unwrap();
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                while !stop.load(Ordering::SeqCst) && stream.write_all(b" ").is_ok() {
                    std::thread::sleep(Duration::from_millis(50));
                }
            })
        })
        .collect();
    let (told, heard) = std::sync::mpsc::sync_channel(1);
    let home = world.home();
    std::thread::spawn(move || {
        let mut creator = CreatorConnection::connect(&home).unwrap();
        told.send(creator.ask(&CreatorAction::Set(per_day(1)), None).unwrap()).unwrap();
    });
    let lowered = heard.recv_timeout(Duration::from_secs(9)).expect("the creator is let in");
    assert_eq!(lowered.limits.per_day, MicroUsdc::new(1_000_000));
    stop.store(true, Ordering::SeqCst);
    slow.into_iter().for_each(|thread| thread.join().unwrap());
    drop(idle);
}

#[test]
fn a_message_of_the_creator_raises_once() {
    let world = World::new();
    let (_process, _client) = world.start();
    let mut creator = CreatorConnection::connect(&world.home()).unwrap();
    let raise = |usdc| CreatorAction::Set(per_day(usdc));
    let SignerStatus { wallet, serial, .. } = creator.ask(&CreatorAction::Show {}, None).unwrap();
    let wallet = wallet.unwrap();
    let text = message(wallet, serial, &per_day(100));
    assert_eq!(
        code(creator.ask(&raise(100), signed(&text))),
        SignerRefusalCode::Authority,
        "nobody is known"
    );

    assert_eq!(
        code(creator.ask(&CreatorAction::Creator(CREATOR), None)),
        SignerRefusalCode::Authority
    );
    assert_eq!(
        code(creator.ask(&CreatorAction::Creator(CREATOR), signed(&text))),
        SignerRefusalCode::Authority
    );
    let known = creator.ask(&CreatorAction::Creator(CREATOR), right()).unwrap();
    assert_eq!((known.creator, known.serial), (Some(CREATOR), 1));
    assert_eq!(
        code(creator.ask(&raise(100), signed(&text))),
        SignerRefusalCode::Authority,
        "of before"
    );

    let text = message(wallet, 1, &per_day(100));
    assert_eq!(
        text,
        format!(
            "Set the ceilings of an automaton's wallet.\n\nWallet: {wallet}\nSerial: 1\n\
             Per day: 100.00 USDC"
        )
    );
    assert_eq!(
        code(creator.ask(&raise(101), signed(&text))),
        SignerRefusalCode::Authority,
        "another amount"
    );
    let elsewhere = message(CREATOR, 1, &per_day(100));
    assert_eq!(code(creator.ask(&raise(100), signed(&elsewhere))), SignerRefusalCode::Authority);
    let garbage = Some(CreatorProof::Signature(vec![7; 65].into()));
    assert_eq!(code(creator.ask(&raise(100), garbage)), SignerRefusalCode::Authority);
    let raised = creator.ask(&raise(100), signed(&text)).unwrap();
    assert_eq!((raised.limits.per_day.to_string().as_str(), raised.serial), ("100.00 USDC", 2));
    // After anybody has lowered it, the same message does not raise it again.
    creator.ask(&raise(1), None).unwrap();
    assert_eq!(code(creator.ask(&raise(100), signed(&text))), SignerRefusalCode::Authority);
}

#[test]
fn what_the_creators_socket_cannot_read_it_refuses_without_repeating_it() {
    let world = World::new();
    let (_process, mut client) = world.start();
    let mut stream = UnixStream::connect(world.home().creator_socket()).unwrap();
    let mut replies = BufReader::new(stream.try_clone().unwrap()).lines();
    assert!(replies.next().unwrap().unwrap().contains("hello"));
    let bad = [
        "{}",
        r#"{"limits":{}}"#,
        r#"{"proof":{"passphrase":"sesame"},"ask":{"set":{"per_day":-1}}}"#,
        r#"{"proof":{"passphrase":"sesame"},"ask":{"set":{"per_week":1}}}"#,
        r#"{"proof":{"passphrase":"sesame"},"ask":{"show":{}},"export":true}"#,
        r#"{"proof":{"password":"sesame"},"ask":{"show":{}}}"#,
        r#"{"proof":null,"ask":{"export":{}}}"#,
    ];
    for line in bad {
        writeln!(stream, "{line}").unwrap();
        let reply = replies.next().unwrap().unwrap();
        let start = r#"{"refused":{"code":"malformed","reason":"the line is no request: see"#;
        assert!(reply.starts_with(start) && !reply.contains("sesame"), "{line}: {reply}");
    }
    // The agent is served while the creator's connection stays open.
    client.sign_payment(&intent(1, 1)).unwrap();
}

#[test]
fn without_a_signer_there_is_nobody_to_ask() {
    let world = World::new();
    let Err(error) = CreatorConnection::connect(&world.home()) else { panic!("connected") };
    assert!(matches!(error, SignerConnectionError::Gone(_)), "{error}");
    // A socket that a killed signer left behind is replaced.
    let (mut process, _client) = world.start();
    process.kill();
    let (_process, _client) = world.start();
    CreatorConnection::connect(&world.home())
        .unwrap()
        .ask(&CreatorAction::Show {}, right())
        .unwrap();
}

#[test]
fn the_ceilings_of_a_signer_at_rest_are_set_in_its_ledger() {
    let world = World::new();
    let raise = CreatorAction::Set(per_day(200));
    let wrong = at_rest(&world, &raise, words("wrong horse").as_ref()).unwrap_err();
    assert!(matches!(wrong, SignerError::Keystore(_)), "{wrong}");
    let none = at_rest(&world, &raise, None).unwrap_err();
    assert!(matches!(none, SignerError::Refused(it) if it.code == SignerRefusalCode::Authority));
    let lowered = at_rest(&world, &CreatorAction::Set(per_day(1)), None).unwrap();
    assert_eq!(lowered.limits.per_day, MicroUsdc::new(1_000_000));
    at_rest(&world, &CreatorAction::Creator(CREATOR), right().as_ref()).unwrap();
    // This keystore contains no address.
    assert_eq!(lowered.wallet, None);
    let text = message(Address::ZERO, 2, &per_day(200));
    let unknown = at_rest(&world, &raise, signed(&text).as_ref()).unwrap_err();
    assert!(matches!(unknown, SignerError::Refused(it) if it.code == SignerRefusalCode::Authority));
    let wallet = world.start().1.address();
    let text = message(wallet, 2, &per_day(200));
    let set = at_rest(&world, &raise, signed(&text).as_ref()).unwrap();
    assert_eq!(
        (set.limits.per_day, set.spent),
        (MicroUsdc::new(200_000_000), SpendingTotals::default())
    );

    let (_process, mut client) = world.start();
    let running = client.limits().unwrap();
    assert_eq!((running.limits, running.creator), (set.limits, Some(CREATOR)));
    let running = at_rest(&world, &CreatorAction::Show {}, None).unwrap_err();
    assert!(matches!(running, SignerError::Lock(_)), "{running}");
}

#[test]
fn a_signer_with_other_rules_is_locked_until_they_are_accepted() {
    let world = World::new();
    let (mut process, mut client) = world.start();
    let before = client.limits().unwrap();
    assert_eq!(before.permits.len(), 2, "{:?}", before.permits);
    process.kill();

    let second = || {
        let (process, stream) = world.start_as(&["second-token"], PASSPHRASE);
        (process, SignerConnection::connect(stream))
    };
    let told = match second().1 {
        Err(SignerConnectionError::Locked { reason, kind, hint }) => {
            assert_eq!((kind, hint), (automaton_core::error::ErrorClass::Config, None));
            reason
        }
        other => panic!("{:?}", other.err()),
    };
    assert!(told.contains("has not accepted: token 8453 0x2222"), "{told}");
    let shown = at_rest(&world, &CreatorAction::Show {}, None).unwrap();
    let hash = shown.asked.unwrap();
    assert!(told.contains(&format!("`automaton limits accept {hash} --signer ")), "{told}");
    assert_eq!(shown.rules, before.rules, "nothing holds that was not accepted");
    for (hash, proof) in [(hash, None), (B256::ZERO, right())] {
        at_rest(&world, &CreatorAction::Accept(hash), proof.as_ref()).unwrap_err();
    }
    assert!(second().1.is_err());
    at_rest(&world, &CreatorAction::Accept(hash), right().as_ref()).unwrap();
    let (process, client) = second();
    assert_eq!(client.unwrap().limits().unwrap().permits.len(), 3);
    drop(process);
    // A start with fewer permits than accepted serves as well.
    world.start();
}
