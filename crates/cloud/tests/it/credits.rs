//! Credits that change hands over HTTP, and what a mistaken or repeated request gets.

use std::sync::Arc;

use alloy_primitives::{Address, eip191_hash_message, hex};
use automaton_cloud::CloudError;
use automaton_core::time::Span;
use automaton_core::wire::cloud::{CeilingMessage, RegistrationRequest};
use serde_json::{Value, json};

use crate::world::{Reply, Wallet, World, get, post, until};

const FIVE: i64 = 500_000_000;
const CENT: i64 = 1_000_000;

/// A world in which the first wallet has five dollars and the second an account.
async fn two() -> (World, [Wallet; 2], [String; 2]) {
    let world = World::new().await;
    let wallets = [Wallet::new(1), Wallet::new(2)];
    let keys = [world.key(&wallets[0]).await, world.key(&wallets[1]).await];
    world.give(&wallets[0], 5);
    assert_eq!(world.pay(&wallets[0], wallets[0].authorize(5, 1)).await.status, 200);
    (world, wallets, keys)
}

async fn send(world: &World, key: &str, name: Option<&str>, body: &Value) -> Reply {
    let mut headers = vec![("Authorization", key), ("Content-Type", "application/json")];
    headers.extend(name.map(|name| ("Idempotency-Key", name)));
    post(world.at(), "/v1/credits/transfer", &headers, &body.to_string()).await
}

#[tokio::test]
async fn a_transfer_is_answered_when_it_is_booked_and_again_the_same() {
    let (world, [_, to], [from_key, to_key]) = two().await;
    let body = json!({ "to_address": to.address, "amount_cents": 120, "note": "for you" });
    let first = send(&world, &from_key, Some("one"), &body).await;
    assert_eq!(first.status, 200, "{first:?}");
    let told = first.json();
    assert_eq!((&told["status"], &told["amount_cents"]), (&json!("completed"), &json!(120)));
    assert_eq!(
        (&told["balance_after_cents"], &told["to_address"]),
        (&json!(380), &json!(to.address.to_string()))
    );
    assert_eq!(told["transfer_id"].as_str().unwrap().len(), 26);
    assert_eq!(
        (world.balance(&from_key).await, world.balance(&to_key).await),
        (380_000_000, 120_000_000)
    );
    // The other spelling, after a crash, much later: the same.
    let world = world.crash().await;
    world.clock.step(Span::from_secs(25 * 3600));
    let camel = json!({ "toAddress": to.address.to_string().to_lowercase(), "amountCents": 120, "note": "for you" });
    assert_eq!(send(&world, &from_key, Some("one"), &camel).await.body, first.body);
    let other = json!({ "to_address": to.address, "amount_cents": 121, "note": "for you" });
    assert_eq!(send(&world, &from_key, Some("one"), &other).await.status, 409);
    assert_eq!(world.balance(&to_key).await, 120_000_000);

    let history = async |key: &str, page: &str| {
        let path = format!("/v1/credits/history{page}");
        get(world.at(), &path, &[("Authorization", key)]).await
    };
    let all = history(&from_key, "").await.json();
    let [sent, bought] = &all["history"].as_array().unwrap()[..] else { panic!("{all}") };
    assert_eq!((&sent["type"], &sent["amount_cents"]), (&json!("transfer"), &json!(-120)));
    assert_eq!(
        (&sent["counterparty"], &sent["description"]),
        (&json!(to.address.to_string()), &json!("for you"))
    );
    assert_eq!(sent["balance_after_microcents"], json!(380_000_000));
    assert_eq!((&bought["type"], &bought["amount_microcents"]), (&json!("purchase"), &json!(FIVE)));
    let got = history(&to_key, "?limit=1").await.json();
    assert_eq!(got["history"][0]["amount_cents"], json!(120));
    assert_eq!(
        history(&from_key, "?limit=1&offset=1").await.json()["history"][0]["id"],
        bought["id"]
    );
    for bad in ["?limit=0", "?limit=101", "?limit=x", "?offset=-1"] {
        assert_eq!(history(&from_key, bad).await.status, 422, "{bad}");
    }
}

#[tokio::test]
async fn what_is_no_transfer_moves_nothing_and_is_named() {
    let (world, [from, to], [key, _]) = two().await;
    let check = async |body: Value, status: u16, word: &str| {
        let reply = send(&world, &key, None, &body).await;
        assert_eq!(reply.status, status, "{body}: {reply:?}");
        assert!(reply.body.contains(word), "{body}: {reply:?}");
    };
    let to_other = |amount: Value| json!({ "to_address": to.address, "amount_cents": amount });
    for bad in [json!(33.3), json!(-5), json!(0), json!("5"), json!("5 USD"), json!(null)] {
        check(to_other(bad), 422, "amount_cents is").await;
    }
    check(json!({ "to_address": to.address }), 422, "amount_cents").await;
    check(json!({ "amount_cents": 5 }), 422, "to_address").await;
    check(json!({ "to_address": "you", "amount_cents": 5 }), 422, "to_address").await;
    check(json!({ "to_address": from.address, "amount_cents": 5 }), 422, "come from").await;
    check(json!({ "to_address": Address::ZERO, "amount_cents": 5 }), 422, "zero address").await;
    let mistyped = to.address.to_string().replacen(char::is_lowercase, "B", 1);
    check(json!({ "to_address": mistyped, "amount_cents": 5 }), 422, "to_address").await;
    let long = "x".repeat(501);
    check(json!({ "to_address": to.address, "amount_cents": 5, "note": long }), 422, "note").await;
    let short = send(&world, &key, None, &to_other(json!(501))).await;
    let told = short.json();
    assert_eq!((short.status, &told["code"]), (402, &json!("INSUFFICIENT_CREDITS")));
    assert_eq!(told["details"], json!({ "required_cents": 501, "current_balance_cents": 500 }));
    assert_eq!(send(&world, "cnwy_k_nobody", None, &to_other(json!(5))).await.status, 401);
    assert_eq!(world.balance(&key).await, FIVE);
}

#[tokio::test]
async fn credits_for_a_wallet_without_an_account_wait_until_it_signs_in() {
    let (world, _, [key, _]) = two().await;
    let child = Wallet::new(9);
    let lower = child.address.to_string().to_lowercase();
    let gift = json!({ "to_address": lower, "amount_cents": 100, "note": "fund child" });
    let given = send(&world, &key, Some("once"), &gift).await;
    assert_eq!(given.status, 200, "{given:?}");
    let again = send(&world, &key, Some("once"), &gift).await;
    assert_eq!(again.json()["transfer_id"], given.json()["transfer_id"], "once for ever");
    assert_eq!(world.balance(&key).await, FIVE - 100 * CENT);
    // The giver sees that nobody has taken them, and so does the operator.
    let newest = async || {
        let headers = [("Authorization", key.as_str())];
        get(world.at(), "/v1/credits/history", &headers).await.json()["history"][0].clone()
    };
    let waiting = async || {
        let clock = Arc::new(world.clock.clone());
        let found = automaton_cloud::unclaimed_credits(&world.config(), clock).await.unwrap();
        found.into_iter().map(|it| (it.wallet, it.amount.units())).collect::<Vec<_>>()
    };
    let entry = newest().await;
    assert_eq!((&entry["unclaimed"], &entry["amount_cents"]), (&json!(true), &json!(-100)));
    assert_eq!(waiting().await, [(child.address, 100 * CENT)]);
    let child_key = world.key(&child).await;
    assert_eq!(world.balance(&child_key).await, 100 * CENT);
    assert_eq!(newest().await.get("unclaimed"), None);
    assert_eq!(waiting().await, []);
}

#[tokio::test]
async fn whoever_asks_at_once_gives_no_more_than_there_is() {
    let (world, [_, to], [from_key, to_key]) = two().await;
    let body = json!({ "to_address": to.address, "amount_cents": 60 });
    let names: Vec<String> = (0..20).map(|at| (at / 2).to_string()).collect();
    let asked = names.iter().map(|name| send(&world, &from_key, Some(name), &body));
    let replies = futures_util::future::join_all(asked).await;
    let done = replies.iter().filter(|reply| reply.status == 200).count();
    assert_eq!(done, 16, "eight of ten names, each asked twice");
    assert!(replies.iter().all(|reply| matches!(reply.status, 200 | 402)));
    assert_eq!(
        (world.balance(&from_key).await, world.balance(&to_key).await),
        (20_000_000, 480_000_000)
    );
}

async fn register(world: &World, key: &str, wallet: &Wallet, creator: Address) {
    let mut row = RegistrationRequest {
        automaton_id: "a".to_owned(),
        automaton_address: wallet.address.to_string(),
        creator_address: creator.to_string(),
        name: "Ada".to_owned(),
        bio: String::new(),
        genesis_prompt_hash: None,
        nonce: "n".to_owned(),
        payload_hash: Default::default(),
        signature: String::new(),
        chain_type: None,
    };
    row.payload_hash = row.computed_hash().unwrap();
    row.signature = hex::encode_prefixed(wallet.sign(row.digest()));
    let body = serde_json::to_string(&row).unwrap();
    let headers = [("Authorization", key), ("Content-Type", "application/json")];
    assert_eq!(post(world.at(), "/v1/automatons/register", &headers, &body).await.status, 200);
}

#[tokio::test]
async fn only_the_creator_raises_what_a_key_may_give_away() {
    let (world, [wallet, to], [key, _]) = two().await;
    let creator = Wallet::new(8);
    let ask = async |body: Value| {
        let headers = [("Authorization", key.as_str()), ("Content-Type", "application/json")];
        post(world.at(), "/v1/credits/ceiling", &headers, &body.to_string()).await
    };
    let unregistered = ask(json!({ "ceiling_cents": 30000 })).await;
    assert_eq!((unregistered.status, &unregistered.json()["code"]), (403, &json!("CREATOR_ONLY")));
    register(&world, &key, &wallet, creator.address).await;
    // Who may lower it is whoever has the key.
    let lowered = ask(json!({ "ceiling_cents": 100 })).await;
    assert_eq!((lowered.status, &lowered.json()["ceiling_cents"]), (200, &json!(100)));
    let body = |cents: i64| json!({ "to_address": to.address, "amount_cents": cents });
    assert_eq!(send(&world, &key, None, &body(60)).await.status, 200);
    let over = send(&world, &key, None, &body(41)).await;
    let told = over.json();
    assert_eq!((over.status, &told["code"]), (403, &json!("TRANSFER_CEILING")));
    let details = json!({ "required_cents": 41, "ceiling_cents": 100, "transferred_cents": 60 });
    assert_eq!(told["details"], details);

    // A key that is made after it has the same ceiling, the same sum, and no way to raise it.
    let other = world.key(&wallet).await;
    let shown = get(world.at(), "/v1/credits/ceiling", &[("Authorization", &other)]).await.json();
    assert_eq!((&shown["ceiling_cents"], &shown["transferred_cents"]), (&json!(100), &json!(60)));
    assert_eq!(send(&world, &other, None, &body(41)).await.json()["details"], details);
    let headers = [("Authorization", other.as_str()), ("Content-Type", "application/json")];
    let raised = json!({ "ceiling_cents": 25_000 }).to_string();
    assert_eq!(post(world.at(), "/v1/credits/ceiling", &headers, &raised).await.status, 403);

    let refused = ask(json!({ "ceiling_cents": 200 })).await;
    assert_eq!(refused.status, 403);
    let message = CeilingMessage {
        cloud: world.cloud.url(),
        wallet: wallet.address,
        ceiling_cents: 200,
        serial: 1,
    };
    let text = message.to_string();
    assert!(refused.json()["error"].as_str().unwrap().ends_with(&text), "it says what to sign");
    let signed = |by: &Wallet, text: &str| hex::encode_prefixed(by.sign(eip191_hash_message(text)));
    let raise = |cents: u32, serial: u32, signature: String| json!({ "ceiling_cents": cents, "serial": serial, "signature": signature });
    let good = signed(&creator, &text);
    for (cents, serial, signature) in [
        (200, 1, signed(&wallet, &text)),
        (201, 1, good.clone()),
        (200, 2, good.clone()),
        (200, 1, "0x12".to_owned()),
    ] {
        assert_eq!(ask(raise(cents, serial, signature)).await.status, 403, "{cents} {serial}");
    }
    assert_eq!(ask(raise(200, 1, good.clone())).await.json()["ceiling_cents"], json!(200));
    assert_eq!(send(&world, &other, None, &body(41)).await.status, 200, "for all of its keys");
    assert_eq!(ask(json!({ "ceiling_cents": 10 })).await.status, 200);
    assert_eq!(ask(raise(200, 1, good)).await.status, 409, "a message counts once");
}

#[tokio::test]
async fn the_operator_gives_back_while_the_cloud_runs() {
    let (world, [wallet, _], [key, _]) = two().await;
    let give_back = async |what: &str| {
        let clock = Arc::new(world.clock.clone());
        automaton_cloud::refund(&world.config(), clock, what.parse().unwrap()).await
    };
    let refunded = give_back("payment:1").await.unwrap();
    assert_eq!((refunded.wallet, refunded.amount.units()), (wallet.address, FIVE));
    let (payer, usdc) = refunded.owed().unwrap();
    assert_eq!((payer, usdc.units()), (wallet.address, 5_000_000));
    assert_eq!(give_back("posting:1").await.unwrap(), refunded, "once, however it is named");
    until("the cloud sees it", async || world.balance(&key).await == 0).await;
    let unknown = give_back("payment:7").await.unwrap_err().to_string();
    assert!(unknown.contains("no purchase and no charge payment:7"), "{unknown}");
    for bad in ["7", "payment:", "payment:x", "wallet:7"] {
        assert!(bad.parse::<automaton_cloud::db::Refund>().is_err(), "{bad}");
    }
}

#[tokio::test]
async fn the_books_are_checked_after_an_end_that_was_none_and_only_then() {
    let forged = "INSERT INTO postings (account, key, kind, at) VALUES (1, 'forged', 'hold', 0); \
                  INSERT INTO entries (posting, account, amount, balance_after) \
                  VALUES (last_insert_rowid(), 1, 5, 5);";
    assert!(
        World::new().await.tampered(true, "UPDATE server SET made_at = made_at").await.is_ok(),
        "nothing is wrong"
    );
    let refused = World::new().await.tampered(true, forged).await;
    assert!(matches!(refused.err(), Some(CloudError::Books(_))));
    assert!(World::new().await.tampered(false, forged).await.is_ok(), "nobody looked");
}
