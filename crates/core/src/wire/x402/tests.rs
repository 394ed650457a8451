//! The bytes that other programs pay with.

use alloy_primitives::{address, b256};
use proptest::prelude::*;

use super::*;

const GOLDEN: &str = "eyJ4NDAyVmVyc2lvbiI6MSwic2NoZW1lIjoiZXhhY3QiLCJuZXR3b3JrIjoiZWlwMTU1Ojg0NTMiLCJwYXlsb2FkIjp7InNpZ25hdHVyZSI6IjB4NjA5MGJlNmE0YzA1MDA3NmY1NzhjNGE4NzhkNjc2ZWJjY2Y0NGZjOTY5YzFlYmUzMTM3YzFkNzcwNTMwN2RkMDA4NWZmNjcyNDE2MWMyOTZkMWU2YmJiMjYzZDE3ZmI4MDg1Y2I5NjM3NjJiYjhhZDg0MWY1MmYwNzU2OWFmNTkxYiIsImF1dGhvcml6YXRpb24iOnsiZnJvbSI6IjB4ZjM5RmQ2ZTUxYWFkODhGNkY0Y2U2YUI4ODI3Mjc5Y2ZmRmI5MjI2NiIsInRvIjoiMHg3MDk5Nzk3MEM1MTgxMmRjM0EwMTBDN2QwMWI1MGUwZDE3ZGM3OUM4IiwidmFsdWUiOiI1MDAwMDAwIiwidmFsaWRBZnRlciI6IjE3NjczMjMwNDUiLCJ2YWxpZEJlZm9yZSI6IjE3NjczMjM0MDUiLCJub25jZSI6IjB4MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMSJ9fX0=";

fn usdc(chain: ChainId, name: &str, contract: Address) -> TokenDomain {
    TokenDomain { name: name.to_owned(), version: "2".to_owned(), chain, contract }
}

#[test]
fn reads_and_writes_the_payment_of_other_programs() {
    let payment: PaymentPayload = decode(GOLDEN).unwrap();
    let PaymentPayload::V1(v1) = &payment else { panic!("{payment:?}") };
    assert_eq!((v1.version, ChainId::parse(&v1.network)), (1, Some(ChainId::BASE)));
    let base = address!("833589fCD6eDb6E08f4c7C32D4f71b54bdA02913");
    let domain = usdc(ChainId::BASE, "USD Coin", base);
    assert_eq!(
        domain.separator(),
        b256!("02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f")
    );
    assert_eq!(
        domain.transfer_digest(&payment.payload().authorization),
        b256!("66fe89d47eaf7521261092c5f1a525b80879fd42b8b070342c50f3f11eaaa73d")
    );
    assert_eq!(encode(&payment).unwrap(), GOLDEN);
}

#[test]
fn the_name_in_the_domain_differs_between_deployments() {
    let contract = address!("036CbD53842c5426634e7929541eC2318f3dCF7e");
    assert_eq!(
        usdc(ChainId::BASE_SEPOLIA, "USDC", contract).separator(),
        b256!("71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818")
    );
}

#[test]
fn a_payment_that_says_what_it_accepted_is_version_2() {
    let PaymentPayload::V1(v1) = decode::<PaymentPayload>(GOLDEN).unwrap() else {
        panic!("not version 1")
    };
    let accepted = v2::PaymentRequirementsV2 {
        scheme: EXACT.to_owned(),
        network: "eip155:8453".to_owned(),
        amount: "5000000".to_owned(),
        asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913".to_owned(),
        pay_to: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8".to_owned(),
        max_timeout_seconds: 300,
        extra: None,
    };
    let payload = v1.payload;
    let sent =
        v2::PaymentPayloadV2 { version: 2, resource: None, accepted, payload, extensions: None };
    let header = encode(&sent).unwrap();
    assert_eq!(decode::<PaymentPayload>(&header).unwrap(), PaymentPayload::V2(Box::new(sent)));
}

#[test]
fn a_request_to_a_facilitator_may_leave_out_what_is_only_described() {
    use facilitator::{FacilitatorRequest, PaymentRequirements};
    use serde_json::json;
    let payment: serde_json::Value = decode(GOLDEN).unwrap();
    let demand = json!({
        "scheme": "exact", "network": "base", "maxAmountRequired": 5_000_000,
        "asset": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
        "payTo": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "maxTimeoutSeconds": "300",
        "resource": null, "description": null, "mimeType": null,
        "extra": { "name": "USD Coin", "version": 2 },
    });
    let asked = json!({
        "x402Version": "1", "paymentPayload": payment, "paymentRequirements": demand,
    });
    let request: FacilitatorRequest = serde_json::from_value(asked.clone()).unwrap();
    let PaymentRequirements::V1(read) = request.payment_requirements else { panic!("{asked}") };
    assert_eq!((request.version, read.max_amount_required.as_str()), (1, "5000000"));
    assert_eq!((read.description.as_str(), read.max_timeout_seconds), ("", 300));
    assert_eq!(read.extra.unwrap().version.as_deref(), Some("2"));
    // A payment needs each of these.
    for key in ["scheme", "network", "maxAmountRequired", "asset", "payTo", "maxTimeoutSeconds"] {
        for value in [json!(null), json!({}), json!(0.5), json!(-1)] {
            let mut asked = asked.clone();
            asked["paymentRequirements"][key] = value.clone();
            let read = serde_json::from_value::<FacilitatorRequest>(asked);
            assert!(read.is_err(), "{key}: {value}");
        }
    }
    let mut v2 = asked;
    v2["paymentPayload"] = json!({
        "x402Version": 2, "resource": null, "extensions": null,
        "payload": decode::<serde_json::Value>(GOLDEN).unwrap()["payload"],
        "accepted": { "scheme": "exact", "network": "base", "amount": 5, "asset": "a", "payTo": "b",
            "maxTimeoutSeconds": 60, "extra": null },
    });
    for resource in [json!(null), json!("https://shop"), json!({ "url": null })] {
        v2["paymentPayload"]["resource"] = resource;
        let request: FacilitatorRequest = serde_json::from_value(v2.clone()).unwrap();
        let PaymentPayload::V2(read) = request.payment_payload else { panic!("{v2}") };
        assert_eq!((read.accepted.amount.as_str(), read.resource), ("5", None));
    }
}

#[test]
fn numbers_of_an_authorization_are_whole_and_nothing_else() {
    let mut payment: serde_json::Value = decode(GOLDEN).unwrap();
    payment["payload"]["authorization"]["value"] = serde_json::json!(5_000_000);
    let read: PaymentPayload = serde_json::from_value(payment.clone()).unwrap();
    assert_eq!(read, decode(GOLDEN).unwrap());
    for value in ["5e6", "5.0", "-5", "0x5", ""] {
        payment["payload"]["authorization"]["value"] = value.into();
        assert!(serde_json::from_value::<PaymentPayload>(payment.clone()).is_err(), "{value}");
    }
}

#[test]
fn networks_have_two_spellings() {
    let check = |text: &str, wanted: Option<u64>| {
        assert_eq!(ChainId::parse(text), wanted.map(ChainId), "{text}");
    };
    check("base", Some(8453));
    check(" Base-Sepolia ", Some(84532));
    check("EIP155:31337", Some(31337));
    check("eip155:", None);
    check("eip155:-1", None);
    check("solana:5eykt4", None);
    assert_eq!(ChainId(31337).v1_name(), "eip155:31337");
    assert_eq!(ChainId::BASE.v1_name(), "base");
}

proptest! {
    #[test]
    fn no_header_makes_it_panic(header in "\\PC{0,60}", bytes in any::<Vec<u8>>()) {
        drop(decode::<PaymentPayload>(&header));
        drop(decode::<PaymentPayload>(&STANDARD.encode(bytes)));
    }

    #[test]
    fn amounts_are_digits_and_nothing_else(text in "[0-9.+_ x-]{0,12}", number in any::<u128>()) {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        prop_assert_eq!(atomic(&text).is_some(), digits);
        prop_assert_eq!(atomic(&number.to_string()), Some(U256::from(number)));
    }
}
