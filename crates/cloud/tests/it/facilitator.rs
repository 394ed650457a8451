//! Payments between others: `/verify`, `/settle`, `/supported`, in both versions.

use alloy_primitives::{Address, U256};
use automaton_core::time::{Clock as _, Span};
use automaton_core::wire::x402::{Authorization, v2};
use serde_json::{Value, json};

use crate::fake_chain::PAYER;
use crate::world::{ASSET, CHAIN, Reply, Wallet, World, get, post, until};

/// A seller that is nobody here.
const SELLER: Address = Address::repeat_byte(0x5E);

/// A quarter of a dollar for the seller.
fn authorize(wallet: &Wallet, nonce: u8) -> Authorization {
    Authorization { to: SELLER, value: U256::from(250_000), ..wallet.authorize(5, nonce) }
}

fn demand(version: u32) -> Value {
    let amount = if version == 1 { "maxAmountRequired" } else { "amount" };
    json!({
        "scheme": "exact", "network": format!("eip155:{CHAIN}"), amount: "250000",
        "asset": ASSET, "payTo": SELLER, "maxTimeoutSeconds": 300,
        "resource": "http://seller.example/report", "description": "", "mimeType": "text/plain",
        "extra": { "name": "USD Coin", "version": "2" },
    })
}

fn request(version: u32, wallet: &Wallet, paid: Authorization) -> Value {
    let payload = wallet.payload(paid);
    let payment = match version {
        1 => json!({ "x402Version": 1, "scheme": "exact", "network": format!("eip155:{CHAIN}"),
            "payload": payload }),
        _ => json!({ "x402Version": 2, "accepted": demand(2), "payload": payload }),
    };
    json!({ "x402Version": version, "paymentPayload": payment,
        "paymentRequirements": demand(version) })
}

async fn ask(world: &World, path: &str, request: &Value) -> Reply {
    let json = [("Content-Type", "application/json")];
    let reply = post(world.at(), path, &json, &request.to_string()).await;
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    reply
}

#[tokio::test]
async fn a_payment_for_another_seller_is_verified_and_settled_and_credits_nobody() {
    let world = World::new().await;
    let wallet = Wallet::new(1);
    let key = world.key(&wallet).await;
    world.give(&wallet, 20);
    for version in [1, 2] {
        let nonce = u8::try_from(version).unwrap();
        let request = request(version, &wallet, authorize(&wallet, nonce));
        let verified = ask(&world, "/verify", &request).await;
        let payer = wallet.address.to_string();
        assert_eq!(verified.json(), json!({ "isValid": true, "payer": payer }), "{version}");
        let before = world.chain.ledger().transfers().len();
        let settled = ask(&world, "/settle", &request).await;
        let told: v2::SettlementResponse = serde_json::from_str(&settled.body).unwrap();
        assert!(settled.status == 200 && told.success, "{settled:?}");
        assert_eq!((told.payer, told.amount.as_deref()), (Some(payer), Some("250000")));
        assert_eq!(told.network, format!("eip155:{CHAIN}"));
        assert_eq!(told.transaction.len(), 66);
        assert_eq!(world.chain.ledger().transfers().len(), before + 1);
        // Whoever asks again gets the same answer, and the chain is not asked again.
        assert_eq!(ask(&world, "/settle", &request).await.body, settled.body);
        assert_eq!(world.chain.ledger().transfers().len(), before + 1);
        let again = ask(&world, "/verify", &request).await.json();
        assert_eq!(again["invalidReason"], "invalid_exact_evm_nonce_already_used");
    }
    assert_eq!(world.balance(&key).await, 0);
}

#[tokio::test]
async fn what_is_supported_names_both_versions_and_who_sends() {
    let world = World::new().await;
    let reply = get(world.at(), "/supported", &[]).await.json();
    let kinds = reply["kinds"].as_array().unwrap();
    let named: Vec<_> = kinds.iter().map(|kind| kind["x402Version"].as_u64().unwrap()).collect();
    assert_eq!(named, [1, 2]);
    for kind in kinds {
        assert_eq!((&kind["scheme"], &kind["network"]), (&json!("exact"), &json!("eip155:31337")));
        assert_eq!(kind["extra"], json!({ "name": "USD Coin", "version": "2" }));
    }
    assert_eq!(reply["signers"], json!({ "eip155:*": [PAYER.to_string()] }));
}

#[tokio::test]
async fn every_lie_of_a_seller_or_buyer_has_its_code() {
    let world = World::new().await;
    let wallet = Wallet::new(1);
    world.give(&wallet, 20);
    let check = async |request: &Value, wanted: &str| {
        let verified = ask(&world, "/verify", request).await;
        let told = verified.json();
        assert_eq!((&told["isValid"], &told["invalidReason"]), (&json!(false), &json!(wanted)));
        let settled = ask(&world, "/settle", request).await;
        assert_eq!(settled.status, verified.status);
        assert_eq!(
            (settled.json()["success"].as_bool(), &settled.json()["errorReason"]),
            (Some(false), &json!(wanted))
        );
        assert_eq!(settled.json()["transaction"], "");
    };
    let field = async |name: &str, value: Value, wanted: &str| {
        for version in [1, 2] {
            let mut request = request(version, &wallet, authorize(&wallet, 1));
            let name = if version == 1 && name == "amount" { "maxAmountRequired" } else { name };
            request["paymentRequirements"][name] = value.clone();
            check(&request, wanted).await;
        }
    };
    let exact = |code: &str| format!("invalid_exact_evm_{code}");
    field("scheme", json!("upto"), &exact("scheme")).await;
    field("network", json!("base"), &exact("network_mismatch")).await;
    field("asset", json!(SELLER), &exact("eip3009_not_supported")).await;
    field("payTo", json!(PAYER), &exact("recipient_mismatch")).await;
    field("payTo", json!("me"), "invalid_payment_requirements").await;
    field("amount", json!("250001"), &exact("authorization_value")).await;
    for bad in ["0.25", "-250000", "0", "", "99999999999999999999"] {
        field("amount", json!(bad), "invalid_payment_requirements").await;
    }
    field("extra", json!({}), &exact("missing_eip712_domain")).await;
    field("extra", json!({ "name": "USDC", "version": "2" }), &exact("token_name_mismatch")).await;
    let wrong = json!({ "name": "USD Coin", "version": "1" });
    field("extra", wrong, &exact("token_version_mismatch")).await;
    let permit = json!({ "name": "USD Coin", "version": "2", "assetTransferMethod": "permit2" });
    field("extra", permit, "unsupported_payload_type").await;

    let mut other = request(2, &wallet, authorize(&wallet, 1));
    other["paymentPayload"]["accepted"]["amount"] = json!("1");
    check(&other, &exact("authorization_value")).await;
    let mut mixed = request(1, &wallet, authorize(&wallet, 1));
    mixed["paymentRequirements"] = demand(2);
    check(&mixed, "invalid_x402_version").await;
    let more = Authorization { value: U256::from(250_001), ..authorize(&wallet, 1) };
    check(&request(1, &wallet, more), &exact("authorization_value")).await;
    let stolen = Authorization { from: SELLER, ..authorize(&wallet, 1) };
    check(&request(2, &wallet, stolen), &exact("signature")).await;
    let poor = Wallet::new(9);
    check(&request(2, &poor, authorize(&poor, 1)), &exact("insufficient_balance")).await;
    check(&json!({ "x402Version": 2 }), "invalid_payload").await;
    assert!(world.chain.ledger().transfers().is_empty());

    world.chain.ledger().down = true;
    let good = request(2, &wallet, authorize(&wallet, 1));
    let verified = ask(&world, "/verify", &good).await;
    assert_eq!((verified.status, &verified.json()["isValid"]), (503, &json!(false)));
    let settled = ask(&world, "/settle", &good).await;
    assert_eq!(
        (settled.status, &settled.json()["errorReason"]),
        (503, &json!("unexpected_settle_error"))
    );
}

/// Checks the facilitator's refusal, which is never a claim that anything was paid.
async fn refused(world: &World, request: &Value, wanted: &str) {
    let told = ask(world, "/settle", request).await.json();
    assert_eq!((&told["success"], &told["errorReason"]), (&json!(false), &json!(wanted)));
    assert_eq!((&told["transaction"], &told["amount"]), (&json!(""), &Value::Null));
}

#[tokio::test]
async fn only_the_very_payment_that_was_settled_is_told_as_settled() {
    let exact = |code: &str| format!("invalid_exact_evm_{code}");
    let (signature, used) = (exact("signature"), exact("nonce_already_used"));
    for version in [1, 2] {
        let world = World::new().await;
        let wallet = Wallet::new(1);
        world.give(&wallet, 20);
        // A cent for an account of the payer's own.
        let own = Address::repeat_byte(0x0A);
        let cent = Authorization { to: own, value: U256::ONE, ..wallet.authorize(5, 1) };
        let for_own = |paid: Authorization| {
            let amount = if version == 1 { "maxAmountRequired" } else { "amount" };
            let mut request = request(version, &wallet, paid);
            let mut asked = vec!["/paymentRequirements"];
            asked.extend((version == 2).then_some("/paymentPayload/accepted"));
            for at in asked {
                let demand = request.pointer_mut(at).unwrap();
                (demand["payTo"], demand[amount]) = (json!(own), json!("1"));
            }
            request
        };
        let settled = ask(&world, "/settle", &for_own(cent.clone())).await;
        assert_eq!(settled.json()["success"], json!(true), "{settled:?}");
        assert_eq!(settled.json()["amount"], json!("1"));

        // The same nonce, made out to the seller: signed by nobody, by somebody else, by the
        // payer, and by the payer for a time that is over.
        let big = authorize(&wallet, 1);
        let mut forged = request(version, &wallet, big.clone());
        let at = "/paymentPayload/payload/signature";
        *forged.pointer_mut(at).unwrap() = json!(format!("0x{}1b", "11".repeat(64)));
        refused(&world, &forged, &signature).await;
        refused(&world, &request(version, &Wallet::new(2), big.clone()), &signature).await;
        refused(&world, &request(version, &wallet, big.clone()), &used).await;
        let short = world.clock.now().as_millis().unsigned_abs() / 1000 + 8;
        let late = Authorization { valid_before: U256::from(short), ..big.clone() };
        world.clock.step(Span::from_secs(4));
        refused(
            &world,
            &request(version, &wallet, late),
            &exact("payload_authorization_valid_before"),
        )
        .await;
        let mut elsewhere = request(version, &wallet, big);
        elsewhere["paymentRequirements"]["network"] = json!("base");
        refused(&world, &elsewhere, &exact("network_mismatch")).await;

        // The very authorization, for a seller that asks for another payee or amount.
        let mut other = for_own(cent.clone());
        other["paymentRequirements"] = demand(version);
        let wanted =
            if version == 1 { exact("recipient_mismatch") } else { exact("authorization_value") };
        refused(&world, &other, &wanted).await;
        let unsigned = {
            let mut it = for_own(cent.clone());
            *it.pointer_mut(at).unwrap() = json!("0x");
            it
        };
        refused(&world, &unsigned, &signature).await;

        // What was settled is told again, although it is too old by now.
        world.clock.step(Span::from_secs(1000));
        refused(&world, &unsigned, &signature).await;
        assert_eq!(ask(&world, "/settle", &for_own(cent)).await.body, settled.body);
        assert_eq!(world.chain.ledger().transfers().len(), 1);
    }
}

#[tokio::test]
async fn an_authorization_buys_credits_or_is_settled_for_another_and_never_both() {
    let world = World::new().await;
    let wallet = Wallet::new(1);
    let key = world.key(&wallet).await;
    world.give(&wallet, 20);
    // To the house itself, of a tier: good for both.
    let request = |nonce| {
        let paid = wallet.authorize(5, nonce);
        let mut request = request(1, &wallet, paid.clone());
        request["paymentRequirements"]["payTo"] = json!(paid.to);
        request["paymentRequirements"]["maxAmountRequired"] = json!("5000000");
        request
    };
    assert_eq!(world.pay(&wallet, wallet.authorize(5, 1)).await.status, 200);
    let settled = ask(&world, "/settle", &request(1)).await.json();
    assert_eq!(settled["errorReason"], "invalid_exact_evm_nonce_already_used");
    assert_eq!(ask(&world, "/settle", &request(2)).await.json()["success"], json!(true));
    assert_eq!(world.pay(&wallet, wallet.authorize(5, 2)).await.status, 409);
    assert_eq!(world.balance(&key).await, 500_000_000);
    assert_eq!(world.chain.ledger().transfers().len(), 2);
}

#[tokio::test]
async fn duplicates_join_and_a_seller_that_hangs_up_changes_nothing() {
    let world = World::new().await;
    let wallet = Wallet::new(1);
    world.give(&wallet, 20);
    world.chain.ledger().still = true;
    let request = request(2, &wallet, authorize(&wallet, 1));
    let (first, second, _) =
        tokio::join!(ask(&world, "/settle", &request), ask(&world, "/settle", &request), async {
            until("it is sent", async || world.chain.ledger().waiting() == 1).await;
            world.chain.ledger().still = false;
            world.chain.mine();
        });
    assert_eq!((first.json()["success"].as_bool(), first.body == second.body), (Some(true), true));
    assert_eq!(world.chain.ledger().signed(), 1);
}
