//! A signer that says something else than it was asked, and one that does not.

use std::io::Write as _;

use alloy_primitives::{B256, address, b256, bytes, keccak256};
use automaton_core::wire::x402::{ChainId, v1};

use super::*;
use crate::x402::PaymentOffer;

const WALLET: Address = address!("f39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
const SHOP: Address = address!("70997970C51812dc3A010C7d01b50e0d17dc79C8");

/// A purse whose signer answers this whatever it is asked, and the signer's end.
async fn client(answer: &str) -> (SignerClient, UnixStream) {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    writeln!(theirs, r#"{{"hello":{{"version":2,"address":"{WALLET}"}}}}"#).unwrap();
    writeln!(theirs, "{answer}").unwrap();
    (SignerClient::open(ours).await.unwrap(), theirs)
}

#[tokio::test]
async fn a_registration_is_the_one_that_was_asked_for() {
    let asked = RegistrationFields {
        automaton_id: "auto-1".to_owned(),
        creator_address: SHOP.to_string(),
        name: "Ada".to_owned(),
        bio: String::new(),
        genesis_prompt_hash: None,
        nonce: "7f8f5c1e-1c1d-4c0e-9b39-2d0f7a2f1b11".to_owned(),
    };
    let hash = b256!("7e86c0721e51da713361c03f0916529c1a92c7bbdbf023d6515b4546b5785479");
    let signature = format!("0x{}", "11".repeat(65));
    for (said, is_good) in [(hash, true), (B256::ZERO, false)] {
        let answer =
            format!(r#"{{"registered":{{"payload_hash":"{said}","signature":"{signature}"}}}}"#);
        let (client, _signer) = client(&answer).await;
        match client.register(asked.clone()).await {
            Ok(body) => {
                assert!(is_good && body.computed_hash().unwrap() == hash, "{body:?}");
                assert_eq!(
                    (body.automaton_address, body.signature),
                    (WALLET.to_string(), signature.clone())
                );
            }
            Err(error) => assert!(!is_good && matches!(error, SignerClientError::Other), "{error}"),
        }
    }
}

#[tokio::test]
async fn a_payment_is_the_one_that_was_asked_for() {
    let token =
        TokenDomain::usdc(ChainId::BASE, address!("833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"));
    let offer = PaymentOffer::V1(v1::PaymentRequirementsV1 {
        scheme: "exact".to_owned(),
        network: "base".to_owned(),
        max_amount_required: "5000000".to_owned(),
        asset: token.contract.to_string(),
        pay_to: SHOP.to_string(),
        resource: String::new(),
        description: String::new(),
        mime_type: String::new(),
        max_timeout_seconds: 300,
        extra: None,
    });
    let amount = automaton_core::money::MicroUsdc::new(5_000_000);
    let chosen = SelectedOffer { payee: SHOP, amount, seconds: 300, offer };
    let intent = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
    let nonce = payload::nonce(WALLET, ChainId::BASE.0, intent);
    let other = payload::nonce(WALLET, 1, intent);
    let until = 1_767_323_405;
    for (from, to, value, nonce, after, is_good) in [
        (WALLET, SHOP, 5_000_000, nonce, until - 900, true),
        (SHOP, SHOP, 5_000_000, nonce, until - 900, false),
        (WALLET, WALLET, 5_000_000, nonce, until - 900, false),
        (WALLET, SHOP, 5_000_001, nonce, until - 900, false),
        (WALLET, SHOP, 5_000_000, other, until - 900, false),
        (WALLET, SHOP, 5_000_000, nonce, until - 901, false),
        (WALLET, SHOP, 5_000_000, nonce, until + 1, false),
    ] {
        let answer = serde_json::json!({ "paid": {
            "signature": "0x11",
            "authorization": {
                "from": from, "to": to, "value": value.to_string(), "validAfter": after.to_string(),
                "validBefore": until.to_string(), "nonce": nonce,
            },
        }});
        let (client, _signer) = client(&answer.to_string()).await;
        match client.pay(intent, &chosen, &token).await {
            Ok(paid) => {
                assert!(is_good, "{paid:?}");
                assert_eq!(paid.valid_before, Timestamp::from_millis(1_767_323_405_000));
            }
            Err(error) => assert!(!is_good && matches!(error, SignerClientError::Other), "{error}"),
        }
    }
}

#[tokio::test]
async fn a_transaction_is_the_one_that_was_asked_for() {
    let call = TransactionCall {
        chain_id: 8453,
        to: SHOP,
        data: vec![0xe3, 0xee, 0x16, 0x0e].into(),
        gas: 21_000,
        max_fee: 7,
        priority_fee: None,
        nonce_hint: 3,
    };
    // [3, 7, 21000, SHOP, 0, 0xe3ee160e, 37, 1, 1], as RLP.
    let raw = bytes!("e303078252089470997970c51812dc3a010c7d01b50e0d17dc79c88084e3ee160e250101");
    let hash = keccak256(&raw);
    let intent = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
    for (hash, nonce, to, is_good) in [
        (hash, 3, SHOP, true),
        (B256::ZERO, 3, SHOP, false),
        (hash, 4, SHOP, false),
        (hash, 3, WALLET, false),
    ] {
        let answer = serde_json::json!({ "transacted": {
            "hash": hash, "raw": raw, "nonce": nonce, "max_fee": 7, "priority_fee": null,
        }});
        let (client, _signer) = client(&answer.to_string()).await;
        match client.transact(intent, &TransactionCall { to, ..call.clone() }).await {
            Ok(signed) => assert!(is_good, "{signed:?}"),
            Err(error) => assert!(!is_good && matches!(error, SignerClientError::Other), "{error}"),
        }
    }
}

#[tokio::test]
async fn what_was_signed_is_told_to_the_unit() {
    let limits =
        r#"{"per_payment":1,"per_hour":2,"per_day":2,"per_payee":2,"lifetime":2,"payments_max":3}"#;
    let spent = r#"{"hour":1,"day":1,"payee":1,"ever":9007199254740993,"payments":2}"#;
    let rules = r#""creator":null,"serial":0,"permits":[],"asked_for":[],"asked":null"#;
    let wallet = format!(r#""wallet":"{WALLET}""#);
    let hash = B256::ZERO;
    let standing = format!(
        r#"{wallet},"limits":{limits},"spent":{spent},"window":1,"rules":"{hash}",{rules}"#
    );
    let (client, signer) = client(&format!(r#"{{"limits":{{{standing}}}}}"#)).await;
    assert_eq!(client.standing().await.unwrap().spent.ever.units(), 9_007_199_254_740_993);
    drop(signer);
    assert!(matches!(
        client.standing().await,
        Err(SignerClientError::Signer(SignerConnectionError::Gone(_)))
    ));
}
