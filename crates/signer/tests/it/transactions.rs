//! Own transactions of a real signer: their nonces and their cost.

use automaton_core::faults::FaultPoint;
use automaton_signer::payload::{TransactionCall, TransactionIntent};
use automaton_signer::{SignerConnection, SignerConnectionError, SignerRefusalCode};

use crate::support::{PASSPHRASE, World, call, is_gone};

fn asked(number: u32, call: TransactionCall) -> TransactionIntent {
    let intent = format!("0000000000000000000000{number:04}").parse().unwrap();
    TransactionIntent { intent, call }
}

fn refused(client: &mut SignerConnection, asked: &TransactionIntent) -> SignerRefusalCode {
    match client.transact(asked).unwrap_err() {
        SignerConnectionError::Refused(refusal) | SignerConnectionError::Conflict(refusal) => {
            refusal.code
        }
        other => panic!("{other}"),
    }
}

#[test]
fn an_intent_keeps_its_nonce_and_only_raises_what_it_offers() {
    let world = World::new();
    let (mut process, mut client) = world.start();
    let first = client.transact(&asked(1, call(100))).unwrap();
    assert_eq!((first.nonce, first.matches_call(&call(100))), (5, true));
    let second = client.transact(&asked(2, call(100))).unwrap();
    assert_eq!(second.nonce, 6, "the ledger's own count goes on");
    let far = client.transact(&asked(3, TransactionCall { nonce_hint: 9, ..call(100) })).unwrap();
    assert_eq!(far.nonce, 9, "the account was used elsewhere");

    let raised = client.transact(&asked(1, call(112))).unwrap();
    assert_eq!((raised.nonce, raised.max_fee), (5, 112));
    assert_ne!(raised.hash, first.hash);
    process.kill();
    let (_process, mut client) = world.start();
    for same in
        [call(112), call(100), call(1), TransactionCall { priority_fee: Some(0), ..call(500) }]
    {
        assert_eq!(client.transact(&asked(1, same.clone())).unwrap(), raised, "{same:?}");
    }
    let other_data = TransactionCall { data: vec![0xe3, 0xee, 0x16, 0x0e, 8].into(), ..call(100) };
    assert_eq!(refused(&mut client, &asked(1, other_data)), SignerRefusalCode::Conflict);
    assert_eq!(
        refused(&mut client, &asked(1, TransactionCall { priority_fee: None, ..call(200) })),
        SignerRefusalCode::Conflict
    );
    let spent = client.limits().unwrap().spent;
    assert_eq!(spent.payments, 0, "gas is no payment");
}

fn hinted(number: u32, nonce_hint: u64) -> TransactionIntent {
    asked(number, TransactionCall { nonce_hint, ..call(1) })
}

#[test]
fn a_number_that_no_account_can_have_is_refused_and_stops_nothing() {
    let world = World::new();
    let (mut process, mut client) = world.start();
    let mut number = 0;
    let mut next = |hint: u64| {
        number += 1;
        hinted(number, hint)
    };
    for lie in [u64::MAX, 1 << 63, (1 << 63) - 1, 1 << 53, 1 << 32] {
        assert_eq!(refused(&mut client, &next(lie)), SignerRefusalCode::Nonce, "{lie}");
    }
    assert_eq!(client.transact(&next(0)).unwrap().nonce, 0);
    // Far beyond the last signed nonce.
    assert_eq!(refused(&mut client, &next(100_001)), SignerRefusalCode::Nonce);
    assert_eq!(client.transact(&next(100_000)).unwrap().nonce, 100_000);
    assert_eq!(client.transact(&next(1)).unwrap().nonce, 1);
    process.kill();
    let (_process, mut client) = world.start();
    assert_eq!(client.transact(&next(1)).unwrap().nonce, 2);
}

#[test]
fn the_gap_that_a_hint_left_is_filled_by_the_next_ones() {
    let world = World::new();
    let (_process, mut client) = world.start();
    // The first hint is wrong: the account has no transactions yet.
    assert_eq!(client.transact(&hinted(1, 3)).unwrap().nonce, 3);
    let honest: Vec<u64> =
        (2..=6).map(|number| client.transact(&hinted(number, 0)).unwrap().nonce).collect();
    assert_eq!(honest, [0, 1, 2, 4, 5]);
    // Two are in final blocks by now. The nonces before are not looked at.
    assert_eq!(client.transact(&hinted(7, 2)).unwrap().nonce, 6);
    let again = client.transact(&hinted(1, 0)).unwrap();
    assert_eq!(again.nonce, 3, "an intent keeps its number");
}

#[test]
fn a_ledger_whose_highest_number_was_a_lie_goes_on() {
    let world = World::new();
    let (mut process, mut client) = world.start();
    assert_eq!(client.transact(&hinted(1, 0)).unwrap().nonce, 0);
    assert_eq!(client.transact(&hinted(2, 1)).unwrap().nonce, 1);
    process.kill();
    // As a signer without an upper bound has stored it.
    let keystore = world.home().keystore();
    let path = keystore.parent().unwrap().join("ledger.db");
    let ledger = rusqlite::Connection::open(path).unwrap();
    let lie = "UPDATE transactions SET account_nonce = 9223372036854775807 WHERE account_nonce = 1";
    assert_eq!(ledger.execute(lie, []).unwrap(), 1);
    drop(ledger);
    let (_process, mut client) = world.start();
    // At another price than the one signed for this nonce, so the bytes differ.
    let next = |number, nonce_hint| asked(number, TransactionCall { nonce_hint, ..call(2) });
    assert_eq!(client.transact(&next(3, 1)).unwrap().nonce, 1);
    assert_eq!(client.transact(&next(4, 0)).unwrap().nonce, 2);
    assert_eq!(refused(&mut client, &next(5, (1 << 63) - 1)), SignerRefusalCode::Nonce);
}

#[test]
fn what_is_not_listed_is_not_called_and_costs_are_capped() {
    let world = World::new();
    let (_process, mut client) = world.start();
    let transfer = TransactionCall { data: vec![0xa9, 0x05, 0x9c, 0xbb].into(), ..call(1) };
    assert_eq!(refused(&mut client, &asked(1, transfer)), SignerRefusalCode::Contract);
    assert_eq!(
        refused(&mut client, &asked(1, TransactionCall { chain_id: 1, ..call(1) })),
        SignerRefusalCode::Contract
    );
    assert_eq!(refused(&mut client, &asked(1, call(1_001))), SignerRefusalCode::Gas);
    // 300,000,000 wei a day: exactly three of these.
    for number in 1..=3 {
        client.transact(&asked(number, call(1_000))).unwrap();
    }
    assert_eq!(
        refused(&mut client, &asked(4, TransactionCall { gas: 1, ..call(1) })),
        SignerRefusalCode::PerDay
    );
    // A replacement counts in place of the transaction that it replaces.
    let again = client.transact(&asked(3, call(1_000))).unwrap();
    assert_eq!(again.nonce, 7);
}

#[test]
fn a_transaction_has_one_nonce_whenever_the_signer_dies() {
    let world = World::new();
    for (point, number) in FaultPoint::SIGNER.into_iter().zip(1..) {
        let asked = asked(number, TransactionCall { nonce_hint: 0, ..call(1) });
        let (mut process, stream) = world.start_with(PASSPHRASE, Some(point));
        let answer = SignerConnection::connect(stream).unwrap().transact(&asked);
        let left = (point == FaultPoint::SignerAnswered).then(|| answer.as_ref().unwrap().clone());
        assert!(left.is_some() || is_gone(&answer.unwrap_err()), "{point}");
        assert!(!process.ended_well(), "{point}");
        let (_process, mut client) = world.start();
        let again = client.transact(&asked).unwrap();
        assert_eq!(again.nonce, u64::from(number) - 1, "{point}");
        assert!(left.is_none_or(|left| left == again), "{point}");
    }
}
