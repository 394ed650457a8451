//! Credits for USDC, both versions, with clients that hang up and a cloud that dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use alloy_primitives::{Address, B256, U256, hex};
use automaton_core::faults::{FaultPoint, Faults};
use automaton_core::time::Span;
use automaton_core::wire::x402::{self, v1, v2};

use crate::world::{ASSET, PAYEE, Reply, Wallet, World, get, open, post, until};

const FIVE: i64 = 500_000_000;

#[tokio::test]
async fn the_demand_speaks_both_versions() {
    let world = World::new().await;
    let path = format!("/pay/5/{}", Address::repeat_byte(1));
    let reply = get(world.at(), &path, &[("Content-Type", "application/json")]).await;
    assert_eq!((reply.status, reply.header("cache-control")), (402, Some("no-store")));
    let old: v1::PaymentRequiredV1 = serde_json::from_str(&reply.body).unwrap();
    let one = &old.accepts[0];
    assert_eq!((old.version, one.max_amount_required.as_str()), (1, "5000000"));
    assert_eq!((one.network.as_str(), one.max_timeout_seconds), ("eip155:31337", 300));
    assert_eq!(one.resource, format!("{}{path}", world.cloud.url()));
    let new: v2::PaymentRequiredV2 =
        x402::decode(reply.header("payment-required").unwrap()).unwrap();
    assert_eq!((new.version, new.accepts[0].amount.as_str()), (2, "5000000"));
    assert_eq!(new.accepts[0].extra.as_ref().unwrap().name.as_deref(), Some("USD Coin"));
    assert_eq!(reply.header("x-payment-required"), None);
    for bad in ["/pay/6/0x7099", "/pay/7/0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "/pay/5/you"]
    {
        assert_eq!(get(world.at(), bad, &[]).await.status, 422, "{bad}");
    }
    assert_eq!(get(world.at(), &path, &[("X-PAYMENT", "?")]).await.status, 400);
}

#[tokio::test]
async fn a_payment_is_credited_once_however_often_it_comes() {
    let world = World::new().await;
    let wallet = Wallet::new(1);
    let key = world.key(&wallet).await;
    world.give(&wallet, 20);
    let authorization = wallet.authorize(5, 1);
    let first = world.pay(&wallet, authorization.clone()).await;
    assert_eq!(first.status, 200, "{first:?}");
    let json = first.json();
    assert_eq!(
        (json["credits_cents"].as_i64(), json["balance_cents"].as_i64()),
        (Some(500), Some(500))
    );
    assert_eq!(json["status"], "settled");
    let old: v1::SettlementResponse =
        x402::decode(first.header("x-payment-response").unwrap()).unwrap();
    let new: v2::SettlementResponse =
        x402::decode(first.header("payment-response").unwrap()).unwrap();
    assert!(old.success && new.success && json["transaction"] == old.transaction.as_str());
    assert_eq!(new.amount.as_deref(), Some("5000000"));
    let again = world.pay(&wallet, authorization.clone()).await;
    assert_eq!(again.json(), json);
    world.clock.step(Span::from_secs(1000));
    assert_eq!(world.pay(&wallet, authorization.clone()).await.json(), json, "even when it is old");
    assert_eq!(world.balance(&key).await, FIVE);
    assert_eq!(world.chain.ledger().transfers().len(), 1);
    // The same authorization for somebody else is no second purchase.
    let header = x402::encode(&wallet.payment(authorization)).unwrap();
    let path = format!("/pay/5/{PAYEE}");
    assert_eq!(get(world.at(), &path, &[("X-Payment", &header)]).await.status, 409);
}

#[tokio::test]
async fn version_2_and_every_spelling_are_taken() {
    let world = World::new().await;
    let wallet = Wallet::new(1);
    world.give(&wallet, 100);
    let path = format!("/pay/5/{}", wallet.address.to_string().to_lowercase());
    let demand = get(world.at(), &path, &[]).await;
    let demand: v2::PaymentRequiredV2 =
        x402::decode(demand.header("payment-required").unwrap()).unwrap();
    let pay = |nonce| v2::PaymentPayloadV2 {
        version: 2,
        resource: Some(demand.resource.clone()),
        accepted: demand.accepts[0].clone(),
        payload: wallet.payload(wallet.authorize(5, nonce)),
        extensions: None,
    };
    let header = x402::encode(&pay(1)).unwrap();
    let reply = get(world.at(), &path, &[("payment-signature", &header)]).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let odd = v1::PaymentPayloadV1 {
        version: 2,
        network: "EIP155:31337".to_owned(),
        ..wallet.payment(wallet.authorize(5, 2))
    };
    let header = x402::encode(&odd).unwrap();
    assert_eq!(get(world.at(), &path, &[("X-PAYMENT", &header)]).await.status, 200);
    let mut bad = pay(3);
    bad.accepted.amount = "1".to_owned();
    let header = x402::encode(&bad).unwrap();
    assert_eq!(get(world.at(), &path, &[("payment-signature", &header)]).await.status, 402);
    assert_eq!(world.chain.ledger().transfers().len(), 2);
}

fn reason(reply: &Reply) -> String {
    assert_eq!(reply.status, 402, "{reply:?}");
    let told: v1::SettlementResponse =
        x402::decode(reply.header("x-payment-response").unwrap()).unwrap();
    assert!(!told.success && told.transaction.is_empty());
    told.error_reason.unwrap()
}

#[tokio::test]
async fn what_is_not_exactly_what_we_ask_is_refused() {
    let world = World::new().await;
    let (wallet, thief) = (Wallet::new(1), Wallet::new(2));
    world.give(&wallet, 20);
    let good = wallet.authorize(5, 1);
    let now = U256::from(world_now());
    let check = async |authorization, wanted: &str| {
        let reply = world.pay(&wallet, authorization).await;
        assert_eq!(reason(&reply), format!("invalid_exact_evm_{wanted}"));
    };
    check(wallet.authorize(4, 1), "authorization_value").await;
    check(wallet.authorize(6, 1), "authorization_value").await;
    let other = x402::Authorization { to: thief.address, ..good.clone() };
    check(other, "recipient_mismatch").await;
    let late = x402::Authorization { valid_before: now + U256::from(5), ..good.clone() };
    check(late, "payload_authorization_valid_before").await;
    let early = x402::Authorization { valid_after: now + U256::from(1), ..good.clone() };
    check(early, "payload_authorization_valid_after").await;
    let stolen = x402::Authorization { from: thief.address, ..good.clone() };
    check(stolen, "signature").await;
    let mut elsewhere = wallet.payment(good);
    elsewhere.network = "base".to_owned();
    let header = x402::encode(&elsewhere).unwrap();
    let path = format!("/pay/5/{}", wallet.address);
    let reply = get(world.at(), &path, &[("X-PAYMENT", &header)]).await;
    assert_eq!(reason(&reply), "invalid_exact_evm_network_mismatch");
    let poor = thief.authorize(5, 1);
    assert_eq!(reason(&world.pay(&thief, poor).await), "invalid_exact_evm_insufficient_balance");
    let spent = wallet.authorize(5, 9);
    world.chain.front_run(&spent);
    assert_eq!(reason(&world.pay(&wallet, spent).await), "invalid_exact_evm_nonce_already_used");
    world.chain.ledger().down = true;
    assert_eq!(world.pay(&wallet, wallet.authorize(5, 2)).await.status, 503);
}

fn world_now() -> u64 {
    crate::world::NOW.unsigned_abs() / 1000
}

#[tokio::test]
async fn a_client_that_hangs_up_and_signs_again_pays_once() {
    let world = World::new().await;
    let wallet = Wallet::new(1);
    let key = world.key(&wallet).await;
    world.give(&wallet, 20);
    world.chain.ledger().still = true;
    let stream = world.begin(&wallet, wallet.authorize(5, 1)).await;
    drop(stream);
    tokio::time::sleep(Duration::from_millis(100)).await;
    world.chain.ledger().still = false;
    world.chain.mine();
    until("the payment is credited", async || world.balance(&key).await == FIVE).await;
    let second = world.pay(&wallet, wallet.authorize(5, 2)).await;
    assert_eq!((second.status, second.json()["balance_cents"].as_i64()), (200, Some(500)));
    assert_eq!(world.chain.ledger().transfers().len(), 1, "the second was not broadcast");
    // That reply was delivered, so a third purchase is meant.
    until("the delivery is noted", async || {
        world.pay(&wallet, wallet.authorize(5, 3)).await;
        world.chain.ledger().transfers().len() == 2
    })
    .await;
    assert_eq!(world.balance(&key).await, 2 * FIVE);
}

#[tokio::test]
async fn a_cloud_that_dies_credits_what_it_took() {
    for lost in [false, true] {
        let world = World::new().await;
        let wallet = Wallet::new(1);
        let key = world.key(&wallet).await;
        world.give(&wallet, 20);
        world.chain.ledger().still = true;
        world.chain.ledger().deaf = lost;
        let _stream = world.begin(&wallet, wallet.authorize(5, 1)).await;
        world.chain.ledger().deaf = false;
        let world = world.crash().await;
        assert_eq!(world.balance(&key).await, 0);
        world.chain.ledger().still = false;
        world.chain.mine();
        until("the payment is credited", async || world.balance(&key).await == FIVE).await;
        let world = world.crash().await;
        let reply = world.pay(&wallet, wallet.authorize(5, 1)).await;
        assert_eq!(reply.json()["status"], "settled", "{reply:?}");
        assert_eq!(world.balance(&key).await, FIVE, "lost: {lost}");
        assert_eq!(world.chain.ledger().transfers().len(), 1);
    }
}

/// Ends whoever comes to a point, in the middle of what it does.
struct Ending {
    point: FaultPoint,
    reached: AtomicBool,
}

impl Faults for Ending {
    fn reach(&self, point: FaultPoint) {
        if point == self.point {
            self.reached.store(true, Ordering::SeqCst);
            panic!("this is where it ends: {point}");
        }
    }
}

#[tokio::test]
async fn wherever_a_payment_is_cut_off_the_next_start_credits_it_once() {
    for point in FaultPoint::CLOUD {
        let ending = Arc::new(Ending { point, reached: AtomicBool::new(false) });
        let world = World::new().await.crash_with(Arc::clone(&ending) as Arc<dyn Faults>).await;
        let wallet = Wallet::new(1);
        let key = world.key(&wallet).await;
        world.give(&wallet, 20);
        let _stream = world.send_payment(&wallet, wallet.authorize(5, 1)).await;
        until("it ends there", async || ending.reached.load(Ordering::SeqCst)).await;
        let credited = if point == FaultPoint::SettlementBooked { FIVE } else { 0 };
        assert_eq!(world.balance(&key).await, credited, "{point}");
        let world = world.crash().await;
        until("the payment is credited", async || world.balance(&key).await == FIVE).await;
        let reply = world.pay(&wallet, wallet.authorize(5, 1)).await;
        assert_eq!(reply.json()["status"], "settled", "{point}: {reply:?}");
        assert_eq!(world.balance(&key).await, FIVE, "{point}");
        assert_eq!(world.chain.ledger().transfers().len(), 1, "{point}");
    }
}

#[tokio::test]
async fn a_transaction_whose_number_was_taken_is_replaced() {
    let world = World::new().await;
    let wallet = Wallet::new(1);
    let key = world.key(&wallet).await;
    world.give(&wallet, 20);
    world.chain.ledger().deaf = true;
    let _stream = world.begin(&wallet, wallet.authorize(5, 1)).await;
    world.chain.take_number();
    world.chain.ledger().deaf = false;
    until("the payment is credited", async || world.balance(&key).await == FIVE).await;
}

#[tokio::test]
async fn a_payment_that_somebody_else_carried_out_is_credited() {
    let world = World::new().await;
    let wallet = Wallet::new(1);
    let key = world.key(&wallet).await;
    world.give(&wallet, 20);
    world.chain.ledger().deaf = true;
    let authorization = wallet.authorize(5, 1);
    let _stream = world.begin(&wallet, authorization.clone()).await;
    world.chain.front_run(&authorization);
    until("the payment is credited", async || world.balance(&key).await == FIVE).await;
    assert_ne!(world.chain.ledger().transfers()[0].nonce, B256::ZERO);
}

#[tokio::test]
async fn a_payment_that_was_cancelled_is_given_up_and_one_that_ran_out_too() {
    let world = World::new().await;
    let wallet = Wallet::new(1);
    let key = world.key(&wallet).await;
    world.give(&wallet, 20);
    world.chain.ledger().deaf = true;
    let cancelled = wallet.authorize(5, 1);
    let _stream = world.begin(&wallet, cancelled.clone()).await;
    world.chain.cancel(&cancelled);
    world.clock.step(Span::from_secs(601));
    let reply = world.pay(&wallet, cancelled).await;
    assert_eq!(reason(&reply), "invalid_exact_evm_nonce_already_used");
    let late = x402::Authorization {
        valid_before: U256::from(world_now() + 1000),
        ..wallet.authorize(5, 2)
    };
    let _stream = world.begin(&wallet, late.clone()).await;
    // Our own clock, wherever it is, ends nothing that was sent.
    world.clock.step(Span::from_secs(4600));
    let heard = world.chain.ledger().heard;
    until("it is sent again", async || world.chain.ledger().heard > heard).await;
    world.chain.ledger().time_s = world_now() + 1000;
    let reply = world.pay(&wallet, late.clone()).await;
    assert_eq!(reason(&reply), "invalid_exact_evm_payload_authorization_valid_before");
    assert_eq!(world.balance(&key).await, 0);
    // A node had it wrong, and the client comes back.
    world.chain.front_run(&late);
    let reply = world.pay(&wallet, late).await.json();
    assert_eq!(reply["status"], "settled", "{reply}");
    assert_eq!(world.balance(&key).await, FIVE);
}

/// A payment of version 2 with a name in its extensions.
fn named(wallet: &Wallet, nonce: u8, id: &str) -> String {
    let version_1 = wallet.payment(wallet.authorize(5, nonce));
    let accepted = serde_json::json!({
        "scheme": "exact", "network": version_1.network, "amount": "5000000", "asset": ASSET,
        "payTo": PAYEE, "maxTimeoutSeconds": 300,
    });
    let extensions = serde_json::json!({
        "payment-identifier": { "info": { "required": false, "id": id }, "schema": {} },
    });
    let payment = serde_json::json!({
        "x402Version": 2, "accepted": accepted, "payload": version_1.payload,
        "extensions": extensions,
    });
    x402::encode(&payment).unwrap()
}

#[tokio::test]
async fn a_name_is_for_one_payment_in_a_header_and_in_an_extension() {
    let world = World::new().await;
    let wallet = Wallet::new(1);
    let key = world.key(&wallet).await;
    world.give(&wallet, 100);
    let path = format!("/pay/5/{}", wallet.address);
    let asked = get(world.at(), &path, &[]).await;
    let demand: v2::PaymentRequiredV2 =
        x402::decode(asked.header("payment-required").unwrap()).unwrap();
    let info = &demand.extensions.unwrap()["payment-identifier"]["info"];
    assert_eq!(*info, serde_json::json!({ "required": false }));

    let buy =
        async |payment: &str| post(world.at(), &path, &[("Payment-Signature", payment)], "").await;
    let first = named(&wallet, 1, "pay_0123456789abcdef");
    let bought = buy(&first).await;
    assert_eq!(bought.status, 200, "{bought:?}");
    assert_eq!(buy(&first).await.body, bought.body);
    world.clock.step(Span::from_secs(1));
    let other = buy(&named(&wallet, 2, "pay_0123456789abcdef")).await;
    assert_eq!((other.status, other.header("cache-control")), (409, Some("no-store")));
    assert_eq!(buy(&named(&wallet, 2, "short")).await.status, 400);

    let keyed = async |nonce: u8, name: &str| {
        let payment = x402::encode(&wallet.payment(wallet.authorize(5, nonce))).unwrap();
        let headers = [("X-Payment", payment.as_str()), ("Idempotency-Key", name)];
        post(world.at(), &path, &headers, "").await
    };
    let second = keyed(3, "k").await;
    assert_eq!(second.status, 200, "{second:?}");
    assert_eq!(keyed(3, "k").await.body, second.body);
    assert_eq!(keyed(4, "k").await.status, 409);
    assert_eq!(keyed(4, "").await.status, 422);
    assert_eq!(world.balance(&key).await, 2 * FIVE);
    assert_eq!(world.chain.ledger().transfers().len(), 2);
}

#[tokio::test]
async fn somebody_else_may_be_paid_for() {
    let world = World::new().await;
    let (payer, friend) = (Wallet::new(1), Wallet::new(2));
    let key = world.key(&friend).await;
    world.give(&payer, 5);
    let payment = x402::encode(&payer.payment(payer.authorize(5, 1))).unwrap();
    let path = format!("/pay/5/{}", friend.address);
    let paid = get(world.at(), &path, &[("X-Payment", &payment)]).await;
    assert_eq!((paid.status, world.balance(&key).await), (200, FIVE));
}

#[tokio::test]
async fn each_payment_that_one_transaction_carries_out_is_credited() {
    let world = World::new().await;
    let wallets = [Wallet::new(1), Wallet::new(2)];
    let keys = [world.key(&wallets[0]).await, world.key(&wallets[1]).await];
    world.chain.ledger().deaf = true;
    let mut streams = Vec::new();
    // The second wallet pays twice: the two transfers have the same payer, payee and amount.
    let mut paid = Vec::new();
    for (at, nonce) in [(0, 1), (1, 2), (1, 3)] {
        world.give(&wallets[at], 10);
        paid.push(wallets[at].authorize(5, nonce));
        streams.push(world.begin(&wallets[at], wallets[at].authorize(5, nonce)).await);
        world.clock.step(Span::from_secs(121));
    }
    world.chain.front_run_all(&paid);
    until("all are credited", async || {
        (world.balance(&keys[0]).await, world.balance(&keys[1]).await) == (FIVE, 2 * FIVE)
    })
    .await;
    let world = world.crash().await;
    for (wallet, paid) in [(0, &paid[0]), (1, &paid[1]), (1, &paid[2])] {
        let again = world.pay(&wallets[wallet], paid.clone()).await;
        assert_eq!(again.json()["status"], "settled", "{again:?}");
    }
    assert_eq!(world.balance(&keys[1]).await, 2 * FIVE);
}

/// A payment under an Idempotency-Key.
async fn pay_as(
    world: &World,
    wallet: &Wallet,
    payment: &v1::PaymentPayloadV1,
    name: &str,
) -> Reply {
    let header = x402::encode(payment).unwrap();
    let headers = [("X-Payment", header.as_str()), ("Idempotency-Key", name)];
    get(world.at(), &format!("/pay/5/{}", wallet.address), &headers).await
}

#[tokio::test]
async fn a_stranger_with_what_the_chain_shows_takes_no_name_and_learns_no_balance() {
    let world = World::new().await;
    let wallet = Wallet::new(1);
    let key = world.key(&wallet).await;
    world.give(&wallet, 50);
    let first = wallet.payment(wallet.authorize(5, 1));
    assert_eq!(pay_as(&world, &wallet, &first, "order-1").await.status, 200);
    // All fields of the authorization, and a signature of nobody.
    let mut forged = first.clone();
    forged.payload.signature = hex::decode("11".repeat(65)).unwrap().into();
    for name in ["order-1", "order-2"] {
        let told = pay_as(&world, &wallet, &forged, name).await;
        assert_eq!(reason(&told), "invalid_exact_evm_signature", "{name}");
    }
    world.clock.step(Span::from_secs(121));
    let second = wallet.payment(wallet.authorize(5, 2));
    assert_eq!(pay_as(&world, &wallet, &second, "order-2").await.status, 200);
    // The signature stands in the transaction, too: it gets the answer of then, and no name.
    let told = pay_as(&world, &wallet, &first, "order-3").await;
    assert_eq!((told.status, told.json()["balance_cents"].as_i64()), (200, Some(500)));
    world.clock.step(Span::from_secs(121));
    let third = wallet.payment(wallet.authorize(5, 3));
    assert_eq!(pay_as(&world, &wallet, &third, "order-3").await.status, 200);
    assert_eq!(world.balance(&key).await, 3 * FIVE);
}

#[tokio::test]
async fn a_stranger_ends_no_guard_and_the_client_does() {
    let world = World::new().await;
    let wallet = Wallet::new(1);
    let key = world.key(&wallet).await;
    world.give(&wallet, 50);
    world.chain.ledger().still = true;
    let first = wallet.payment(wallet.authorize(5, 1));
    let header = x402::encode(&first).unwrap();
    let headers = [("X-Payment", header.as_str()), ("Idempotency-Key", "order-1")];
    let line = format!("GET /pay/5/{}", wallet.address);
    let stream = open(world.at(), &line, &headers, "").await;
    until("it is broadcast", async || world.chain.ledger().waiting() == 1).await;
    // The cloud dies, so that its client hears nothing.
    let world = world.crash().await;
    drop(stream);
    world.chain.ledger().still = false;
    world.chain.mine();
    until("the payment is credited", async || world.balance(&key).await == FIVE).await;
    // Somebody who read the transaction asks, and hears the whole answer.
    let heard = world.pay(&wallet, wallet.authorize(5, 1)).await;
    assert_eq!(heard.json()["status"], "settled");
    // Its client heard nothing and signs again: it is given the first purchase.
    assert_eq!(world.pay(&wallet, wallet.authorize(5, 2)).await.status, 200);
    assert_eq!(world.chain.ledger().transfers().len(), 1, "a second purchase is kept away");
    // Now it has heard, so a third one is meant.
    assert_eq!(world.pay(&wallet, wallet.authorize(5, 3)).await.status, 200);
    assert_eq!(world.chain.ledger().transfers().len(), 2);
}

#[tokio::test]
async fn the_other_spelling_of_a_signature_is_none_and_spoils_nothing() {
    let world = World::new().await;
    let wallet = Wallet::new(1);
    let key = world.key(&wallet).await;
    world.give(&wallet, 20);
    let good = wallet.payment(wallet.authorize(5, 1));
    let mut twin = good.clone();
    twin.payload.signature = Wallet::twin_of(&good.payload.signature).into();
    let path = format!("/pay/5/{}", wallet.address);
    let send = async |payment: &v1::PaymentPayloadV1| {
        let header = x402::encode(payment).unwrap();
        get(world.at(), &path, &[("X-Payment", &header)]).await
    };
    assert_eq!(reason(&send(&twin).await), "invalid_exact_evm_signature");
    assert_eq!(send(&good).await.status, 200);
    assert_eq!(reason(&send(&twin).await), "invalid_exact_evm_signature", "nor afterwards");
    // A signature of some wallets has 0 or 1 for 27 or 28, and is the same one.
    let mut short = good.clone();
    let mut bytes = short.payload.signature.to_vec();
    bytes[64] -= 27;
    short.payload.signature = bytes.into();
    assert_eq!(send(&short).await.json()["status"], "settled");
    // Nobody signs in by it either.
    let message = world.message(&wallet, &world.nonce().await).to_string();
    let signature = wallet.sign(alloy_primitives::eip191_hash_message(&message));
    let signature = hex::encode_prefixed(Wallet::twin_of(&signature));
    let body = serde_json::json!({ "message": message, "signature": signature }).to_string();
    let json = [("Content-Type", "application/json")];
    assert_eq!(post(world.at(), "/v1/auth/verify", &json, &body).await.status, 401);
    assert_eq!(world.verify(&wallet, &message).await.status, 200);
    assert_eq!(world.balance(&key).await, FIVE);
}
