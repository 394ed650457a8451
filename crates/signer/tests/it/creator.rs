//! The creator's socket of a running signer.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;

use automaton_core::money::MicroUsdc;
use automaton_core::secret::Secret;
use automaton_core::time::{Clock as _, SystemClock};
use automaton_signer::{Change, ClientError, Code, Creator, SignerError, Spent, limits_at_rest};

use crate::support::{World, intent, passphrase};

#[test]
fn only_the_creator_raises_a_ceiling() {
    let world = World::new();
    let (_process, mut client) = world.start();
    let dear = intent(1, 30_000_000);
    let refused = client.sign_payment(&dear).unwrap_err();
    assert!(matches!(refused, ClientError::Refused(it) if it.code == Code::PerPayment));

    let socket = world.home().creator_socket();
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let mut creator = Creator::connect(&world.home()).unwrap();
    let shown = creator.limits(&passphrase(), Change::default()).unwrap();
    assert_eq!(shown, client.limits().unwrap());

    let raise = Change { per_payment: Some(MicroUsdc::new(30_000_000)), ..Change::default() };
    let wrong = creator.limits(&Secret::new("wrong horse".to_owned()), raise).unwrap_err();
    assert!(matches!(wrong, ClientError::Refused(it) if it.code == Code::Passphrase));
    assert!(client.sign_payment(&dear).is_err());

    let raised = creator.limits(&passphrase(), raise).unwrap();
    assert_eq!(raised.limits.per_payment, MicroUsdc::new(30_000_000));
    assert_eq!(raised.limits.per_day, shown.limits.per_day);
    client.sign_payment(&dear).unwrap();

    let lower = Change { payments_max: Some(1), ..Change::default() };
    creator.limits(&passphrase(), lower).unwrap();
    let refused = client.sign_payment(&intent(2, 1)).unwrap_err();
    assert!(matches!(refused, ClientError::Refused(it) if it.code == Code::Count));
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
        r#"{"passphrase":"sesame","set":{"per_payment":1,"per_day":-1,"payments_max":1}}"#,
        r#"{"passphrase":"sesame","set":{"per_week":1}}"#,
        r#"{"passphrase":"sesame","set":{},"export":true}"#,
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
    let Err(error) = Creator::connect(&world.home()) else { panic!("connected") };
    assert!(matches!(error, ClientError::Gone(_)), "{error}");
    // A socket that a killed signer left behind is replaced.
    let (mut process, _client) = world.start();
    process.kill();
    let (_process, _client) = world.start();
    Creator::connect(&world.home()).unwrap().limits(&passphrase(), Change::default()).unwrap();
}

#[test]
fn the_ceilings_of_a_signer_at_rest_are_set_in_its_ledger() {
    let world = World::new();
    let change = Change { per_day: Some(MicroUsdc::new(1)), ..Change::default() };
    let at_rest = |words: Secret| limits_at_rest(&world.home(), &words, change, SystemClock.now());
    let wrong = at_rest(Secret::new("wrong horse".to_owned())).unwrap_err();
    assert!(matches!(wrong, SignerError::Keystore(_)), "{wrong}");
    let set = at_rest(passphrase()).unwrap();
    assert_eq!((set.limits.per_day, set.spent), (MicroUsdc::new(1), Spent::default()));
    let (_process, mut client) = world.start();
    assert_eq!(client.limits().unwrap(), set);
    let running = at_rest(passphrase()).unwrap_err();
    assert!(matches!(running, SignerError::Lock(_)), "{running}");
}
