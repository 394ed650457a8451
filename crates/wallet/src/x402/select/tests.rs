//! Offers that are refused, and offers that are paid.

use automaton_core::wire::x402::{ExactPayload, PaymentPayload, encode};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::x402::offer::{PaymentRequiredParts, offers};

const USDC: &str = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";
const SHOP: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const FIVE: MicroUsdc = MicroUsdc::new(5_000_000);

fn token() -> TokenDomain {
    TokenDomain::usdc(ChainId::BASE, USDC.parse().unwrap())
}

fn way_v1() -> Value {
    json!({
        "scheme": "exact", "network": "base", "maxAmountRequired": "5000000", "asset": USDC,
        "payTo": SHOP, "resource": "https://shop/pay", "description": "", "mimeType": "",
        "maxTimeoutSeconds": 300, "extra": { "name": "USD Coin", "version": "2" },
    })
}

fn body(ways: &[Value]) -> Vec<u8> {
    json!({ "x402Version": 1, "error": "pay", "accepts": ways }).to_string().into_bytes()
}

fn choose_from(body: &[u8], price: Price) -> Result<SelectedOffer, OfferRefusal> {
    let token = token();
    let wanted = PaymentExpectation { token: &token, payee: SHOP.parse().ok(), price };
    select(
        offers(PaymentRequiredParts { body, ..PaymentRequiredParts::default() }).unwrap(),
        &wanted,
    )
}

/// The refusal of the offer with one field changed.
fn with(key: &str, value: Value) -> OfferRefusal {
    let mut way = way_v1();
    way[key] = value;
    choose_from(&body(&[way]), Price::Exactly(FIVE)).unwrap_err()
}

#[test]
fn an_honest_offer_is_taken_in_both_versions() {
    let chosen = choose_from(&body(&[way_v1()]), Price::Exactly(FIVE)).unwrap();
    assert_eq!((chosen.amount, chosen.seconds, chosen.payee), (FIVE, 300, SHOP.parse().unwrap()));

    let mut way = way_v1();
    way["network"] = json!("eip155:8453");
    way["amount"] = json!("5000000");
    let required = json!({
        "x402Version": 2, "resource": { "url": "https://shop/pay" }, "accepts": [way],
        "extensions": {
            "payment-identifier": { "info": { "required": false } }, "other": { "info": 7 },
        },
    });
    let header = encode(&required).unwrap();
    let demand = PaymentRequiredParts {
        payment_required: Some(&header),
        body: b"{}",
        ..PaymentRequiredParts::default()
    };
    let token = token();
    let wanted = PaymentExpectation { token: &token, payee: None, price: Price::AtMost(FIVE) };
    let chosen = select(offers(demand).unwrap(), &wanted).unwrap();
    let payload: ExactPayload = serde_json::from_value(json!({
        "signature": "0x00",
        "authorization": {
            "from": SHOP, "to": SHOP, "value": "5000000", "validAfter": "1", "validBefore": "2",
            "nonce": format!("0x{}", "ab".repeat(32)),
        },
    }))
    .unwrap();
    let (name, value) = chosen.offer.payment(payload, "an-id-of-16-chars").unwrap();
    assert_eq!(name, "payment-signature");
    let PaymentPayload::V2(sent) = automaton_core::wire::x402::decode(&value).unwrap() else {
        panic!("another version")
    };
    // A server that knows payments by an identifier is told it; the rest is echoed.
    let extensions = sent.extensions.unwrap();
    let info = json!({ "required": false, "id": "an-id-of-16-chars" });
    assert_eq!(extensions["payment-identifier"]["info"], info);
    assert_eq!(extensions["other"], required["extensions"]["other"]);
    assert_eq!(sent.accepted.amount, "5000000");
}

/// A demand in the header of version 2, with this changed in its one way to pay.
fn header_v2(change: impl FnOnce(&mut Value)) -> Value {
    let mut required = json!({
        "x402Version": 2, "resource": { "url": "https://shop/pay" }, "accepts": [{
            "scheme": "exact", "network": "eip155:8453", "amount": "5000000", "asset": USDC,
            "payTo": SHOP, "maxTimeoutSeconds": 300,
            "extra": { "name": "USD Coin", "version": "2" },
        }],
    });
    change(&mut required);
    required
}

fn choose(parts: PaymentRequiredParts<'_>) -> Result<SelectedOffer, OfferRefusal> {
    let token = token();
    let wanted = PaymentExpectation { token: &token, payee: None, price: Price::AtMost(FIVE) };
    select(offers(parts).unwrap(), &wanted)
}

fn choose_from_header(header: &str) -> Result<SelectedOffer, OfferRefusal> {
    let payment_required = Some(header);
    choose(PaymentRequiredParts { payment_required, ..PaymentRequiredParts::default() })
}

fn paid_v2(chosen: &SelectedOffer) -> Value {
    let payload: ExactPayload = serde_json::from_value(json!({
        "signature": "0x00",
        "authorization": {
            "from": SHOP, "to": SHOP, "value": "5000000", "validAfter": "1", "validBefore": "2",
            "nonce": format!("0x{}", "ab".repeat(32)),
        },
    }))
    .unwrap();
    let (name, value) = chosen.offer.payment(payload, "an-id-of-16-chars").unwrap();
    assert_eq!(name, "payment-signature");
    automaton_core::wire::x402::decode(&value).unwrap()
}

#[test]
fn an_entry_that_cannot_be_read_does_not_spoil_the_others() {
    for odd in [
        json!({ "scheme": "upto", "network": "eip155:8453", "maxAmount": "50000" }),
        json!({ "scheme": "exact", "network": "lightning", "invoice": "x" }),
        json!({ "scheme": "exact", "network": "eip155:8453", "amount": { "usd": 1 } }),
        json!({ "network": "base" }),
        json!({}),
        json!("exact"),
        json!(null),
        json!([1]),
    ] {
        let v1 = body(&[odd.clone(), way_v1()]);
        assert_eq!(choose_from(&v1, Price::Exactly(FIVE)).unwrap().amount, FIVE, "{odd}");
        let v2 = header_v2(|it| it["accepts"].as_array_mut().unwrap().insert(0, odd.clone()));
        assert_eq!(choose_from_header(&encode(&v2).unwrap()).unwrap().amount, FIVE, "{odd}");
        let v2 = header_v2(|it| {
            it["accepts"] = json!(vec![odd.clone(); 40]);
            it["accepts"].as_array_mut().unwrap().push(header_v2(|_| ())["accepts"][0].clone());
        });
        assert_eq!(choose_from_header(&encode(&v2).unwrap()).unwrap().amount, FIVE, "{odd}");
    }
}

#[test]
fn the_field_that_an_entry_lacks_is_told() {
    let told = |change: &dyn Fn(&mut Value)| {
        let mut way = way_v1();
        change(&mut way);
        choose_from(&body(&[way]), Price::Exactly(FIVE)).unwrap_err().to_string()
    };
    for key in ["maxAmountRequired", "payTo", "asset", "maxTimeoutSeconds", "scheme", "network"] {
        let missing = told(&|way| drop(way.as_object_mut().unwrap().remove(key)));
        assert!(missing.contains(&format!("missing field `{key}`")), "{missing}");
        let null = told(&|way| way[key] = Value::Null);
        assert!(null.contains(&format!("cannot be read: {key}: ")), "{null}");
    }
    let fraction = told(&|way| way["maxAmountRequired"] = json!(5000000.5));
    assert!(fraction.contains("expected a whole number, found 5000000.5"), "{fraction}");
}

#[test]
fn what_is_only_described_may_be_null_or_missing() {
    for key in ["resource", "description", "mimeType", "extra"] {
        let mut way = way_v1();
        way[key] = Value::Null;
        assert!(choose_from(&body(&[way.clone()]), Price::Exactly(FIVE)).is_ok(), "{key}");
        way.as_object_mut().unwrap().remove(key);
        assert!(choose_from(&body(&[way]), Price::Exactly(FIVE)).is_ok(), "{key}");
    }
    let nulls = json!({ "x402Version": 1, "error": null, "accepts": [way_v1()], "resource": 7 });
    assert!(choose_from(nulls.to_string().as_bytes(), Price::Exactly(FIVE)).is_ok());
    let resources = [
        (json!(null), json!(null)),
        (json!("https://shop/pay"), json!({ "url": "https://shop/pay" })),
        (json!({ "url": null, "more": 1 }), json!({ "url": null, "more": 1 })),
    ];
    for (resource, echoed) in resources {
        let demand = header_v2(|it| {
            it["resource"] = resource.clone();
            it["error"] = Value::Null;
            it["extensions"] = Value::Null;
        });
        let paid = paid_v2(&choose_from_header(&encode(&demand).unwrap()).unwrap());
        assert_eq!(paid["resource"], echoed, "{resource}");
        assert!(paid.get("extensions").is_none(), "{resource}");
    }
}

#[test]
fn numbers_are_read_in_both_spellings_and_sent_back_as_they_came() {
    let demand = header_v2(|it| {
        let way = &mut it["accepts"][0];
        way["amount"] = json!(5_000_000);
        way["maxTimeoutSeconds"] = json!("300");
        way["extra"] = json!({ "name": "USD Coin", "version": 2, "more": [1] });
        it["x402Version"] = json!("2");
    });
    let chosen = choose_from_header(&encode(&demand).unwrap()).unwrap();
    assert_eq!((chosen.amount, chosen.seconds), (FIVE, 300));
    let paid = paid_v2(&chosen);
    assert_eq!((&paid["accepted"], &paid["x402Version"]), (&demand["accepts"][0], &json!(2)));
    for amount in [json!(5_000_000.0), json!(-5), json!("5e6"), json!(true), json!([5_000_000])] {
        let demand = header_v2(|it| it["accepts"][0]["amount"] = amount.clone());
        let refused = choose_from_header(&encode(&demand).unwrap()).unwrap_err();
        let is_named = matches!(refused, OfferRefusal::NoAmount(_) | OfferRefusal::Unreadable(_));
        assert!(is_named, "{amount}: {refused}");
    }
    let other = header_v2(|it| it["accepts"][0]["extra"]["version"] = json!(1));
    let refused = choose_from_header(&encode(&other).unwrap()).unwrap_err();
    assert!(matches!(refused, OfferRefusal::Domain { .. }), "{refused}");
}

#[test]
fn a_demand_is_read_in_each_spelling_and_in_each_place() {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
    // Its base64 has letters in which the alphabets differ, and needs padding.
    let demand = header_v2(|it| it["error"] = json!("\u{3fb}\u{fff}?>~ pay"));
    let json = demand.to_string();
    let marked = format!("\u{feff}{json}");
    let spellings = [
        STANDARD.encode(&json),
        STANDARD_NO_PAD.encode(&json),
        URL_SAFE.encode(&json),
        URL_SAFE_NO_PAD.encode(&json),
        STANDARD.encode(&marked),
        format!("  {json} "),
        marked,
    ];
    for text in &spellings {
        assert_eq!(choose_from_header(text).unwrap().amount, FIVE, "{text}");
        for header in [None, Some("see-the-body"), Some(""), Some("eyJhIjoxfQ==")] {
            let parts = PaymentRequiredParts {
                payment_required: header,
                body: text.as_bytes(),
                ..PaymentRequiredParts::default()
            };
            let paid = paid_v2(&choose(parts).unwrap());
            assert_eq!(paid["accepted"], demand["accepts"][0], "{header:?} {text}");
        }
        let last = PaymentRequiredParts {
            x_payment_required: Some(text),
            body: b"{}",
            ..PaymentRequiredParts::default()
        };
        assert_eq!(choose(last).unwrap().amount, FIVE, "{text}");
    }
    let unnamed = header_v2(|it| drop(it.as_object_mut().unwrap().remove("x402Version")));
    let body = unnamed.to_string();
    let parts = PaymentRequiredParts { body: body.as_bytes(), ..PaymentRequiredParts::default() };
    assert_eq!(paid_v2(&choose(parts).unwrap())["accepted"], demand["accepts"][0]);
}

#[test]
fn the_first_place_with_a_demand_counts_and_the_first_that_is_none_is_told() {
    let dear = encode(&header_v2(|it| it["accepts"][0]["amount"] = json!("9000000"))).unwrap();
    let good = body(&[way_v1()]);
    let parts = PaymentRequiredParts {
        payment_required: Some(&dear),
        body: &good,
        ..PaymentRequiredParts::default()
    };
    assert!(matches!(choose(parts), Err(OfferRefusal::TooMuch { .. })));
    let future = encode(&header_v2(|it| it["x402Version"] = json!(3))).unwrap();
    let parts = PaymentRequiredParts { payment_required: Some(&future), ..parts };
    assert_eq!(choose(parts).unwrap().amount, FIVE, "a version that is not known here");
    let told = |parts| offers(parts).unwrap_err().to_string();
    let parts = PaymentRequiredParts { payment_required: Some(&future), ..Default::default() };
    assert!(told(parts).contains("version 3 of x402 in its payment-required"), "{}", told(parts));
    let parts =
        PaymentRequiredParts { payment_required: Some("?"), body: b"{}", ..Default::default() };
    assert!(told(parts).contains("its payment-required cannot be read"), "{}", told(parts));
    let parts = PaymentRequiredParts { body: b"<html>", ..Default::default() };
    assert!(told(parts).contains("its body cannot be read"), "{}", told(parts));
    let parts = PaymentRequiredParts { body: &[0xff], ..Default::default() };
    assert!(told(parts).contains("its body is not UTF-8"), "{}", told(parts));
}

#[test]
fn only_a_success_names_its_transaction() {
    use super::super::transaction;
    let hash = format!("0x{}", "ab".repeat(32));
    let said = |success: bool, transaction: &str| {
        let response = json!({
            "success": success, "transaction": transaction, "network": "base",
        });
        encode(&response).unwrap()
    };
    for (value, expected) in [
        (said(true, &hash), Some(hash.clone())),
        (said(false, &hash), None),
        (said(true, ""), None),
        (said(true, "paid, promised"), None),
        ("what?".to_owned(), None),
        (encode(&json!({ "success": true, "transaction": null })).unwrap(), None),
        (encode(&json!({ "success": true })).unwrap(), None),
        (
            json!({ "success": true, "transaction": hash, "network": null, "errorReason": 7 })
                .to_string(),
            Some(hash.clone()),
        ),
    ] {
        for header in ["payment-response", "x-payment-response"] {
            let found = transaction(|name| (name == header).then_some(value.as_str()));
            assert_eq!(found, expected, "{header} {value}");
        }
        let found = transaction(|name| match name {
            "payment-response" => Some("broken"),
            _ => Some(value.as_str()),
        });
        assert_eq!(found, expected, "after a header that is broken: {value}");
    }
}

#[test]
fn every_lie_is_refused_by_its_name() {
    assert!(matches!(with("maxAmountRequired", json!("900000000")), OfferRefusal::Amount { .. }));
    // Seven digits or six: base units, never whole dollars.
    assert!(matches!(with("maxAmountRequired", json!("5")), OfferRefusal::Amount { .. }));
    for amount in ["", "5.0", "-5000000", "0x4c4b40", "5e6", " 5000000"] {
        assert!(
            matches!(with("maxAmountRequired", json!(amount)), OfferRefusal::NoAmount(_)),
            "{amount}"
        );
    }
    assert!(matches!(with("asset", json!(SHOP)), OfferRefusal::Asset { .. }));
    assert!(matches!(with("asset", json!("USDC")), OfferRefusal::Asset { .. }));
    assert!(matches!(with("payTo", json!(USDC)), OfferRefusal::Payee { .. }));
    assert!(matches!(with("payTo", json!("alice")), OfferRefusal::NoPayee(_)));
    assert!(matches!(with("network", json!("base-sepolia")), OfferRefusal::Network { .. }));
    assert!(matches!(with("network", json!("solana")), OfferRefusal::Network { .. }));
    assert_eq!(with("maxTimeoutSeconds", json!(315_360_000)), OfferRefusal::Seconds(315_360_000));
    assert_eq!(with("maxTimeoutSeconds", json!(0)), OfferRefusal::Seconds(0));
    assert_eq!(with("scheme", json!("upto")), OfferRefusal::Scheme("upto".to_owned()));
    assert!(matches!(with("extra", json!({ "name": "USDC" })), OfferRefusal::Domain { .. }));
    let permit = json!({ "assetTransferMethod": "permit2" });
    assert_eq!(with("extra", permit), OfferRefusal::Method("permit2".to_owned()));
    assert_eq!(choose_from(&body(&[]), Price::Exactly(FIVE)), Err(OfferRefusal::NoWay));
}

#[test]
fn an_unknown_scheme_is_passed_over_and_never_signed_as_exact() {
    let mut other = way_v1();
    other["scheme"] = json!("upto");
    let chosen = choose_from(&body(&[other.clone(), way_v1()]), Price::Exactly(FIVE)).unwrap();
    assert_eq!(chosen.offer.scheme(), Some("exact"));
    let mut dear = way_v1();
    dear["maxAmountRequired"] = json!("5000001");
    let refused = choose_from(&body(&[other, dear]), Price::Exactly(FIVE)).unwrap_err();
    assert!(matches!(refused, OfferRefusal::Amount { .. }), "{refused}");
}

#[test]
fn the_first_refusal_that_is_of_an_exact_offer_is_told() {
    let changed = |key: &str, value: Value| {
        let mut way = way_v1();
        way[key] = value;
        way
    };
    let upto = changed("scheme", json!("upto"));
    let free = changed("scheme", json!("free"));
    let dear = changed("maxAmountRequired", json!("5000001"));
    let slow = changed("maxTimeoutSeconds", json!(315_360_000));
    let told = |ways: &[&Value]| {
        let ways: Vec<Value> = ways.iter().copied().cloned().collect();
        choose_from(&body(&ways), Price::Exactly(FIVE)).unwrap_err()
    };
    let amount = OfferRefusal::Amount { asked: MicroUsdc::new(5_000_001), wanted: FIVE };
    assert_eq!(told(&[&upto, &free]), OfferRefusal::Scheme("upto".to_owned()));
    assert_eq!(told(&[&dear, &upto]), amount);
    assert_eq!(told(&[&dear, &slow]), amount);
    assert_eq!(told(&[&upto, &dear, &slow]), amount);
}

#[test]
fn a_cap_is_paid_up_to_and_nothing_is_never_paid() {
    let asked = |units: &str, price| {
        let mut way = way_v1();
        way["maxAmountRequired"] = json!(units);
        choose_from(&body(&[way]), price).map(|chosen| chosen.amount)
    };
    let cap = Price::AtMost(FIVE);
    assert_eq!(asked("4999999", cap), Ok(MicroUsdc::new(4_999_999)));
    assert_eq!(asked("5000000", cap), Ok(FIVE));
    let dear = MicroUsdc::new(5_000_001);
    assert_eq!(asked("5000001", cap), Err(OfferRefusal::TooMuch { asked: dear, cap: FIVE }));
    let most = MicroUsdc::new(u64::MAX);
    assert_eq!(
        asked(&"9".repeat(30), cap),
        Err(OfferRefusal::TooMuch { asked: most, cap: FIVE }),
        "more than fits"
    );
    for price in [cap, Price::Exactly(MicroUsdc::ZERO)] {
        assert_eq!(asked("0", price), Err(OfferRefusal::NoAmount("0".to_owned())));
    }
}

#[test]
fn nobody_is_paid_by_burning() {
    let zero = Address::ZERO.to_string();
    let mut way = way_v1();
    way["payTo"] = json!(zero);
    let token = token();
    let ways = body(&[way]);
    for payee in [None, Some(Address::ZERO)] {
        let wanted = PaymentExpectation { token: &token, payee, price: Price::Exactly(FIVE) };
        let offers =
            offers(PaymentRequiredParts { body: &ways, ..PaymentRequiredParts::default() })
                .unwrap();
        assert_eq!(select(offers, &wanted), Err(OfferRefusal::NoPayee(zero.clone())));
    }
}

proptest! {
    #[test]
    fn nothing_above_the_price_is_ever_chosen(
        amount in "[0-9]{0,40}",
        seconds in any::<u64>(),
        cap in 0_u64..20_000_000,
    ) {
        let mut way = way_v1();
        way["maxAmountRequired"] = json!(amount);
        way["maxTimeoutSeconds"] = json!(seconds);
        let cap = MicroUsdc::new(cap);
        if let Ok(chosen) = choose_from(&body(&[way]), Price::AtMost(cap)) {
            prop_assert!(chosen.amount <= cap && chosen.amount > MicroUsdc::ZERO);
            prop_assert!(chosen.seconds <= SECONDS_MAX);
            prop_assert_eq!(chosen.amount.units().to_string(), amount.trim_start_matches('0'));
        }
    }

    #[test]
    fn any_reply_is_read_to_its_end(body in proptest::collection::vec(any::<u8>(), 0..300), header in ".{0,80}") {
        let demand = PaymentRequiredParts { payment_required: None, x_payment_required: Some(&header), body: &body };
        let _read = offers(demand).is_ok();
        let demand = PaymentRequiredParts { payment_required: Some(&header), x_payment_required: None, body: &body };
        prop_assert!(offers(demand).is_err());
    }
}
