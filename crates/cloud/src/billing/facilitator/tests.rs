//! The payment of other programs, byte for byte, against our terms.

use alloy_primitives::address;
use automaton_core::wire::x402::{decode, encode};
use proptest::prelude::*;

use super::*;

/// A payment of $5 on Base to the second account of the well-known test keys.
const GOLDEN: &str = "eyJ4NDAyVmVyc2lvbiI6MSwic2NoZW1lIjoiZXhhY3QiLCJuZXR3b3JrIjoiZWlwMTU1Ojg0NTMiLCJwYXlsb2FkIjp7InNpZ25hdHVyZSI6IjB4NjA5MGJlNmE0YzA1MDA3NmY1NzhjNGE4NzhkNjc2ZWJjY2Y0NGZjOTY5YzFlYmUzMTM3YzFkNzcwNTMwN2RkMDA4NWZmNjcyNDE2MWMyOTZkMWU2YmJiMjYzZDE3ZmI4MDg1Y2I5NjM3NjJiYjhhZDg0MWY1MmYwNzU2OWFmNTkxYiIsImF1dGhvcml6YXRpb24iOnsiZnJvbSI6IjB4ZjM5RmQ2ZTUxYWFkODhGNkY0Y2U2YUI4ODI3Mjc5Y2ZmRmI5MjI2NiIsInRvIjoiMHg3MDk5Nzk3MEM1MTgxMmRjM0EwMTBDN2QwMWI1MGUwZDE3ZGM3OUM4IiwidmFsdWUiOiI1MDAwMDAwIiwidmFsaWRBZnRlciI6IjE3NjczMjMwNDUiLCJ2YWxpZEJlZm9yZSI6IjE3NjczMjM0MDUiLCJub25jZSI6IjB4MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMSJ9fX0=";

fn terms(name: &str) -> PaymentTerms {
    PaymentTerms {
        token: TokenDomain {
            name: name.to_owned(),
            version: "2".to_owned(),
            chain: ChainId::BASE,
            contract: address!("833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"),
        },
        pay_to: address!("70997970C51812dc3A010C7d01b50e0d17dc79C8"),
        timeout_secs: 300,
    }
}

fn offer() -> SaleOffer {
    SaleOffer {
        url: "u".to_owned(),
        description: "d".to_owned(),
        mime_type: "application/json",
        pay_to: terms("USD Coin").pay_to,
        price: SaleOffer::price_of(5),
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

#[test]
fn the_payment_of_other_programs_is_taken_within_its_window() {
    let payment: PaymentPayload = decode(GOLDEN).unwrap();
    let check = |now| terms("USD Coin").check(&payment, &offer(), at(now));
    assert_eq!(
        check(1_767_323_044),
        Err(PaymentRefusal("invalid_exact_evm_payload_authorization_valid_after"))
    );
    assert_eq!(check(1_767_323_045), Ok(()));
    assert_eq!(check(1_767_323_399), Ok(()));
    assert_eq!(check(1_767_323_400), Err(VALID_BEFORE));
    // The same signature means nothing for a token with another name.
    let other = terms("USDC").check(&payment, &offer(), at(1_767_323_100));
    assert_eq!(other, Err(PaymentRefusal("invalid_exact_evm_signature")));
}

#[test]
fn the_demand_has_the_amount_in_at_least_seven_digits() {
    for usd in automaton_core::wire::cloud::TIERS_USD {
        let demand = terms("USD Coin")
            .demand_v1(&SaleOffer { price: SaleOffer::price_of(usd), ..offer() }, "");
        assert!(demand.accepts[0].max_amount_required.len() >= 7);
        assert_eq!(demand.accepts[0].network, "base");
    }
}

proptest! {
    #[test]
    fn a_changed_payment_is_refused(at_byte in 0_usize..400, to in any::<u8>()) {
        let good: PaymentPayload = decode(GOLDEN).unwrap();
        let mut json = serde_json::to_vec(&good).unwrap();
        let at_byte = at_byte % json.len();
        json[at_byte] = to;
        let Ok(changed) = serde_json::from_slice::<PaymentPayload>(&json) else { return Ok(()) };
        let PaymentPayload::V1(v1) = &changed else { return Ok(()) };
        let PaymentPayload::V1(before) = &good else { return Ok(()) };
        let same = v1.payload == before.payload
            && (&v1.scheme, ChainId::parse(&v1.network)) == (&before.scheme, Some(ChainId::BASE));
        let taken = terms("USD Coin").check(&changed, &offer(), at(1_767_323_100)).is_ok();
        prop_assert_eq!(taken, same, "{}", encode(&changed).unwrap());
    }
}

/// A request of a seller to settle the golden payment.
fn settle_request() -> FacilitatorRequest {
    let demand = terms("USD Coin").demand_v1(&offer(), "").accepts.remove(0);
    FacilitatorRequest {
        version: v1::VERSION,
        payment_payload: decode(GOLDEN).unwrap(),
        payment_requirements: PaymentRequirements::V1(demand),
    }
}

#[test]
fn a_signature_has_one_spelling() {
    let good: PaymentPayload = decode(GOLDEN).unwrap();
    let terms = terms("USD Coin");
    let digest = terms.token.transfer_digest(&good.payload().authorization);
    let signature = Signature::from_raw(&good.payload().signature).unwrap();
    let payer = Some(good.payload().authorization.from);
    assert_eq!(signer(&signature.as_bytes(), digest), payer);
    let order = "FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141";
    let order = U256::from_str_radix(order, 16).unwrap();
    let twin = Signature::new(signature.r(), order - signature.s(), !signature.v());
    assert_eq!(twin.recover_address_from_prehash(&digest).ok(), payer, "it recovers the same");
    assert_eq!(signer(&twin.as_bytes(), digest), None);
}

proptest! {
    #[test]
    fn only_the_signed_authorization_is_settled_for_its_payee_and_amount(
        at_byte in 0_usize..3000,
        to in any::<u8>(),
    ) {
        let good = settle_request();
        let terms = terms("USD Coin");
        prop_assert_eq!(terms.check_for(&good), Ok(MicroUsdc::new(5_000_000)));
        let mut json = serde_json::to_vec(&good).unwrap();
        let at_byte = at_byte % json.len();
        json[at_byte] = to;
        let Ok(changed) = serde_json::from_slice::<FacilitatorRequest>(&json) else { return Ok(()) };
        let Ok(amount) = terms.check_for(&changed) else { return Ok(()) };
        let signed = changed.payment_payload.payload();
        let wanted = good.payment_payload.payload();
        prop_assert_eq!((signed, amount), (wanted, MicroUsdc::new(5_000_000)));
        let PaymentRequirements::V1(demand) = &changed.payment_requirements else {
            return Err(TestCaseError::fail("another version"));
        };
        prop_assert_eq!(demand.pay_to.parse::<Address>().ok(), Some(wanted.authorization.to));
    }
}
