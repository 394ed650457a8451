//! Replies to an agent that is broken or hostile.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use alloy_primitives::{Address, B256, U256, eip191_hash_message, keccak256};
use automaton_core::error::ErrorClass;
use automaton_core::time::{Clock as _, Span, SystemClock};
use automaton_signer::payload::{
    AgentWalletSet, Audience, AuditHead, CONTENT_BYTES_MAX, RegistrationFields, RelaySend,
    SignInFields,
};
use automaton_signer::{SignerConnection, SignerConnectionError, SignerRefusalCode};

use crate::support::{PASSPHRASE, World, intent};

fn lines(stream: &UnixStream) -> impl Iterator<Item = String> + use<> {
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok)
}

#[test]
fn what_is_no_request_is_refused_and_the_next_is_answered() {
    let world = World::new();
    let (mut process, mut stream) = world.start_with(PASSPHRASE, None);
    let mut replies = lines(&stream);
    assert!(replies.next().unwrap().starts_with(r#"{"hello":{"version":2,"address":"0x"#));
    let pay = serde_json::to_string(&intent(1, 5_000_000)).unwrap();
    let bad: [String; 15] = [
        String::new(),
        "{".to_owned(),
        "null".to_owned(),
        r#"{"sign_hash":"0x1111"}"#.to_owned(),
        r#"{"export":{}}"#.to_owned(),
        // Requests that only the creator's socket accepts.
        r#"{"proof":{"passphrase":"correct horse"},"ask":{"show":{}}}"#.to_owned(),
        r#"{"limits":{"per_day":1}}"#.to_owned(),
        format!(r#"{{"pay":{}}}"#, pay.replace("5000000", "5000000.0")),
        format!(r#"{{"pay":{}}}"#, pay.replace("5000000", "-1")),
        format!(
            r#"{{"pay":{}}}"#,
            pay.replace("\"deadline_s\"", "\"nonce\":\"0x11\",\"deadline_s\"")
        ),
        r#"{"relay_send":{"hash":"0x1111"}}"#.to_owned(),
        r#"{"audit_head":{"entries":1,"head":"0x11","at":0}}"#.to_owned(),
        r#"{"transact":{"raw":"0x02"}}"#.to_owned(),
        r#"{"relay_read":{"at":1,"path":"/v1"}}"#.to_owned(),
        "[".repeat(5000),
    ];
    for line in bad {
        writeln!(stream, "{line}").unwrap();
        let reply = replies.next().unwrap();
        assert!(reply.starts_with(r#"{"refused":{"code":"malformed""#), "{line}: {reply}");
    }
    stream.write_all(b"\xff\xfe\n").unwrap();
    assert!(replies.next().unwrap().contains("malformed"));
    writeln!(stream, r#"{{"pay":{pay}}}"#).unwrap();
    assert!(replies.next().unwrap().starts_with(r#"{"paid":"#));
    // Half a line, then the end.
    write!(stream, r#"{{"pay":"#).unwrap();
    drop(replies);
    drop(stream);
    assert!(process.ended_well(), "{}", world.log());
}

#[test]
fn a_line_that_is_too_long_ends_the_signer() {
    let world = World::new();
    let (mut process, mut stream) = world.start_with(PASSPHRASE, None);
    let mut replies = lines(&stream);
    replies.next().unwrap();
    // silent-ok: the signer may hang up before all of it is sent.
    stream.write_all(&vec![b'x'; 512 * 1024 + 1]).ok();
    assert!(replies.next().unwrap().contains("a line has more than 524288 bytes"));
    assert_eq!(replies.next(), None);
    assert!(!process.ended_well());
    assert!(!world.log().contains("xxxx"));
}

#[test]
fn rules_are_kept_at_the_other_end_of_the_socket() {
    let world = World::new();
    let (_process, mut client) = world.start();
    let refused = |answer: Result<(), SignerConnectionError>,
                   expected: SignerRefusalCode,
                   words: &str| match answer {
        Err(SignerConnectionError::Refused(refusal)) => {
            assert_eq!(refusal.code, expected, "{refusal}");
            assert!(refusal.reason.contains(words), "{refusal}");
        }
        other => panic!("{other:?}"),
    };
    let mut pay = |change: fn(&mut automaton_signer::payload::PaymentIntent)| {
        let mut asked = intent(1, 5_000_000);
        change(&mut asked);
        client.sign_payment(&asked).map(drop)
    };
    refused(pay(|it| it.chain_id = 84532), SignerRefusalCode::Asset, "on chain 84532");
    refused(pay(|it| it.deadline_s = 315_360_000), SignerRefusalCode::Deadline, "315360000");
    refused(pay(|it| it.payee = Address::ZERO), SignerRefusalCode::Payee, "payee: 0x0000");
}

#[test]
fn signs_in_and_registers() {
    let world = World::new();
    let (_process, mut client) = world.start();
    let now = SystemClock.now();
    let fields = SignInFields {
        audience: Audience {
            domain: "cloud.example".to_owned(),
            uri: "https://cloud.example/v1/auth/verify".to_owned(),
            chain_id: 8453,
        },
        nonce: "0123456789abcdef".to_owned(),
        issued_at: now,
        expires_at: Some(now.after(Span::from_secs(300))),
    };
    let (message, signature) = client.sign_in(&fields).unwrap();
    assert!(message.contains(&client.address().to_string()));
    assert_eq!(client.sign_in(&fields).unwrap(), (message, signature));
    let mut elsewhere = fields;
    elsewhere.audience.domain = "conway.tech".to_owned();
    let error = client.sign_in(&elsewhere).unwrap_err();
    assert!(
        matches!(error, SignerConnectionError::Refused(it) if it.code == SignerRefusalCode::Audience)
    );

    let ada = RegistrationFields {
        automaton_id: "auto-1".to_owned(),
        creator_address: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8".to_owned(),
        name: "Ada \u{1} ✓ \"/\"".to_owned(),
        bio: String::new(),
        genesis_prompt_hash: None,
        nonce: "n".to_owned(),
    };
    let registered = client.register(&ada).unwrap();
    assert_eq!(client.register(&ada).unwrap(), registered);
    let counted = client.limits().unwrap().spent.payments;
    assert_eq!(counted, 0, "only payments count");
}

/// Returns true if the wallet signed these 32 bytes.
fn is_by(client: &SignerConnection, signature: &automaton_signer::Signature, digest: B256) -> bool {
    let signature = alloy_primitives::Signature::from_raw(&signature[..]).unwrap();
    signature.recover_address_from_prehash(&digest).unwrap() == client.address()
}

#[test]
fn signs_for_a_relay_a_registry_and_the_record() {
    let world = World::new();
    let (_process, mut client) = world.start();
    let wallet = client.address();
    let now = SystemClock.now();
    // With every byte escaped, this is the longest line.
    let content = "\u{1}".repeat(CONTENT_BYTES_MAX);
    let hash = keccak256(&content);
    let to = Address::repeat_byte(0xab);
    let message = RelaySend { to, content, signed_at: now };
    let text = format!("Conway:send:{to:#x}:{hash}:{now}");
    let signature = client.relay_send(&message).unwrap();
    assert!(is_by(&client, &signature, eip191_hash_message(text)));
    let text = format!("Conway:poll:{wallet:#x}:{now}");
    let signature = client.relay_read(now).unwrap();
    assert!(is_by(&client, &signature, eip191_hash_message(text)));
    let head = AuditHead { entries: 3, head: B256::repeat_byte(9), at: now };
    client.audit_head(&head).unwrap();

    let asked = AgentWalletSet {
        chain_id: 8453,
        registry: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913".parse().unwrap(),
        agent_id: U256::from(1),
        owner: to,
        deadline: now.as_millis().unsigned_abs() / 1000 + 100,
    };
    client.agent_wallet(&asked).unwrap();
    let refused = |answer: Result<_, SignerConnectionError>| match answer.unwrap_err() {
        SignerConnectionError::Refused(refusal) => refusal.code,
        other => panic!("{other}"),
    };
    let elsewhere = AgentWalletSet { registry: to, ..asked };
    assert_eq!(refused(client.agent_wallet(&elsewhere)), SignerRefusalCode::Contract);
    let later = now.after(Span::from_secs(3600));
    assert_eq!(refused(client.relay_read(later)), SignerRefusalCode::Field);
    assert_eq!(
        refused(client.audit_head(&AuditHead { at: later, ..head })),
        SignerRefusalCode::Field
    );
    let old = RelaySend { signed_at: now.before(Span::from_secs(3600)), ..message };
    assert_eq!(refused(client.relay_send(&old)), SignerRefusalCode::Field);
    assert_eq!(client.limits().unwrap().spent.payments, 0);
}

#[test]
fn a_wrong_passphrase_locks() {
    let world = World::new();
    let (mut process, stream) = world.start_with("wrong horse", None);
    match SignerConnection::connect(stream) {
        Err(SignerConnectionError::Locked { reason, kind, .. }) => {
            assert_eq!(kind, ErrorClass::User);
            assert!(reason.contains("the passphrase does not open"), "{reason}");
            assert!(!reason.contains("wrong horse"));
        }
        other => panic!("{:?}", other.err()),
    }
    assert!(!process.ended_well());
    assert!(!world.log().contains("wrong horse"));
}

#[test]
fn a_second_signer_of_one_home_is_locked() {
    let world = World::new();
    let (_process, mut client) = world.start();
    let (mut second, stream) = world.start_with(PASSPHRASE, None);
    match SignerConnection::connect(stream) {
        Err(SignerConnectionError::Locked { reason, .. }) => {
            assert!(reason.contains("is locked by"), "{reason}");
        }
        other => panic!("{:?}", other.err()),
    }
    assert!(!second.ended_well());
    client.limits().unwrap();
}
