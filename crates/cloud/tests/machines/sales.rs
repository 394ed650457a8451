//! Ports that cost something: paid to the owner on the chain, once for each request.

use std::time::Duration;

use alloy_primitives::{Address, U256};
use automaton_core::money::MicroUsdc;
use automaton_core::wire::x402::{self, Authorization, v1, v2};
use automaton_wallet::x402::{PaymentExpectation, PaymentRequiredParts, Price, offers, select};
use serde_json::json;

use crate::ports::{ECHO, serve};
use crate::town::{Machine, Town, run};
use crate::world::{Reply, Wallet, get, open, send, token, until};

pub(crate) const ALL: &[(&str, fn())] = &[
    ("a_request_to_a_port_with_a_price_is_paid_to_the_owner_and_passed_on_once", sold),
    ("what_is_not_exactly_the_price_reaches_no_program", refused),
    ("one_payment_is_for_one_port_and_for_nothing_else", bound),
    ("a_cloud_that_dies_owes_the_request_that_was_paid_for", died),
    ("whoever_leaves_is_owed_the_request_or_it_is_passed_on", left),
];

/// A cent.
const CENT: u64 = 10_000;

/// A shop in a machine of the first wallet, and its customer, the second.
struct Shop<'a> {
    machine: Machine<'a>,
    host: String,
}

impl<'a> Shop<'a> {
    async fn open(town: &'a Town) -> Self {
        let machine = town.machine().await;
        serve(&machine, ECHO).await;
        let host = format!("9000-{}.localhost:{}", machine.short_id, town.world.at().port());
        let shop = Self { machine, host };
        shop.price(Some("0.01")).await;
        town.world.give(&town.wallets[1], 1);
        shop
    }

    async fn price(&self, price: Option<&str>) {
        let body = json!({ "port": 9000, "price_usdc": price });
        let told = self.machine.town.post(&self.machine.path("/ports/expose"), &body).await;
        assert_eq!((told.status, told.json()["price_usdc"].as_str()), (200, price), "{told:?}");
    }

    fn customer(&self) -> &Wallet {
        &self.machine.town.wallets[1]
    }

    /// Authorizes a cent for the owner.
    fn cent(&self, nonce: u8) -> Authorization {
        let to = self.machine.town.wallets[0].address;
        Authorization { to, value: U256::from(CENT), ..self.customer().authorize(0, nonce) }
    }

    async fn pay(&self, paid: Authorization) -> Reply {
        let header = x402::encode(&self.customer().payment(paid)).unwrap();
        self.ask(&[("X-Payment", &header)]).await
    }

    async fn ask(&self, headers: &[(&str, &str)]) -> Reply {
        let headers = [&[("Host", self.host.as_str())], headers].concat();
        send(self.machine.town.world.at(), "POST /a?b=c", &headers, "the body").await
    }

    /// Returns the number of requests that the program has seen.
    async fn seen(&self) -> u32 {
        let count = self.machine.exec("grep -c 'HTTP/1' log || true").await;
        count.trim().parse().unwrap()
    }

    fn has(&self, whose: usize) -> U256 {
        let town = self.machine.town;
        town.world.chain.ledger().balances[&town.wallets[whose].address]
    }
}

fn reason(reply: &Reply) -> String {
    assert_eq!(reply.status, 402, "{reply:?}");
    let told: v1::SettlementResponse =
        x402::decode(reply.header("x-payment-response").unwrap()).unwrap();
    assert!(!told.success && told.transaction.is_empty());
    told.error_reason.unwrap()
}

fn sold() {
    run(async {
        let town = Town::new().await;
        let shop = Shop::open(&town).await;
        let listed = town.get(&shop.machine.path("/ports")).await.json();
        assert_eq!(listed["ports"][0]["price_usdc"], "0.01");

        // Our own client finds what to pay in either version.
        let asked = shop.ask(&[]).await;
        assert_eq!((asked.status, asked.header("cache-control")), (402, Some("no-store")));
        let owner = town.wallets[0].address;
        let (token, price) = (token(), Price::AtMost(MicroUsdc::new(CENT)));
        let wanted = PaymentExpectation { token: &token, payee: Some(owner), price };
        for payment_required in [None, asked.header("payment-required")] {
            let body = asked.body.as_bytes();
            let demand = PaymentRequiredParts { payment_required, x_payment_required: None, body };
            let chosen = select(offers(demand).unwrap(), &wanted).unwrap();
            assert_eq!((chosen.payee, chosen.amount), (owner, MicroUsdc::new(CENT)));
        }
        let new: v2::PaymentRequiredV2 =
            x402::decode(asked.header("payment-required").unwrap()).unwrap();
        assert_eq!(new.resource.url, format!("http://{}/a", shop.host));
        assert_eq!(shop.seen().await, 0);

        let before = shop.has(0);
        let paid = shop.pay(shop.cent(1)).await;
        assert_eq!(paid.status, 201, "{paid:?}");
        let echo = paid.body.to_ascii_lowercase();
        assert!(echo.starts_with("post /a?b=c http/1.1\n") && echo.ends_with("the body"), "{echo}");
        assert!(!echo.contains("payment"), "{echo}");
        assert_eq!(shop.has(0) - before, U256::from(CENT));
        let told: v2::SettlementResponse =
            x402::decode(paid.header("payment-response").unwrap()).unwrap();
        assert_eq!((told.success, told.amount.as_deref()), (true, Some("10000")));
        let old: v1::SettlementResponse =
            x402::decode(paid.header("x-payment-response").unwrap()).unwrap();
        assert_eq!((old.success, old.transaction.as_str()), (true, told.transaction.as_str()));

        let again = shop.pay(shop.cent(1)).await;
        assert_eq!(reason(&again), "invalid_exact_evm_nonce_already_used");
        assert_eq!(shop.seen().await, 1);
        let twice = tokio::join!(shop.pay(shop.cent(2)), shop.pay(shop.cent(2)));
        let mut both = [twice.0.status, twice.1.status];
        both.sort_unstable();
        assert!(both == [201, 402] || both == [201, 409], "{both:?}");
        assert_eq!((shop.seen().await, shop.has(0) - before), (2, U256::from(2 * CENT)));

        // The same by path and in the second version.
        let path = format!("/_at/{}/9000/x", shop.machine.short_id);
        let asked = get(town.world.at(), &path, &[]).await;
        let demand: v2::PaymentRequiredV2 =
            x402::decode(asked.header("payment-required").unwrap()).unwrap();
        assert_eq!(demand.resource.url, format!("http://{}{path}", town.world.at()));
        let payment = v2::PaymentPayloadV2 {
            version: 2,
            resource: Some(demand.resource),
            accepted: demand.accepts[0].clone(),
            payload: shop.customer().payload(shop.cent(3)),
            extensions: None,
        };
        let header = x402::encode(&payment).unwrap();
        let paid = get(town.world.at(), &path, &[("Payment-Signature", &header)]).await;
        assert_eq!(paid.status, 201, "{paid:?}");
        assert!(paid.body.starts_with("GET /x HTTP/1.1\n"), "{paid:?}");
        assert!(!paid.body.to_ascii_lowercase().contains("payment"), "{paid:?}");

        let sales = town.get("/v1/credits/history").await.json()["sales"].clone();
        assert_eq!(sales.as_array().unwrap().len(), 3, "{sales}");
        let first = &sales[2];
        assert_eq!((&first["port"], &first["amount_micro_usdc"]), (&json!(9000), &json!(CENT)));
        assert_eq!(first["transaction"], told.transaction);

        // Free again: what a program asks for itself is its own.
        shop.price(None).await;
        let free = shop.ask(&[("X-Payment", "its own")]).await;
        assert!(free.status == 201 && free.body.contains("its own"), "{free:?}");
        assert_eq!(shop.has(0) - before, U256::from(3 * CENT));
    });
}

fn refused() {
    run(async {
        let town = Town::new().await;
        let shop = Shop::open(&town).await;
        let good = shop.cent(7);
        let check = async |paid, wanted: &str| {
            assert_eq!(reason(&shop.pay(paid).await), format!("invalid_exact_evm_{wanted}"));
        };
        for value in [CENT - 1, CENT + 1] {
            let value = U256::from(value);
            check(Authorization { value, ..good.clone() }, "authorization_value").await;
        }
        let to = shop.customer().address;
        check(Authorization { to, ..good.clone() }, "recipient_mismatch").await;
        let from = Address::repeat_byte(9);
        check(Authorization { from, ..good.clone() }, "signature").await;
        let valid_before = good.valid_after + U256::from(1);
        let late = Authorization { valid_before, ..good.clone() };
        check(late, "payload_authorization_valid_before").await;
        let mut elsewhere = shop.customer().payment(good.clone());
        elsewhere.network = "base".to_owned();
        let header = x402::encode(&elsewhere).unwrap();
        let reply = shop.ask(&[("X-Payment", &header)]).await;
        assert_eq!(reason(&reply), "invalid_exact_evm_network_mismatch");
        assert_eq!(shop.ask(&[("X-Payment", "?")]).await.status, 400);
        town.world.chain.ledger().balances.insert(shop.customer().address, U256::from(CENT - 1));
        check(good.clone(), "insufficient_balance").await;
        town.world.give(shop.customer(), 1);
        // Nobody pays where nobody listens.
        for (step, status) in [("/stop", "stopped"), ("/start", "running")] {
            town.post(&shop.machine.path(step), &json!({})).await;
            shop.machine.until(status, |told| told["status"] == status).await;
        }
        assert_eq!(shop.pay(good.clone()).await.status, 502);
        assert!(town.world.chain.ledger().transfers().iter().all(|it| it.nonce != good.nonce));
        assert_eq!(shop.seen().await, 0);
        serve(&shop.machine, ECHO).await;
        assert_eq!(shop.pay(good).await.status, 201);
    });
}

fn bound() {
    run(async {
        let town = Town::new().await;
        let shop = Shop::open(&town).await;
        let second = json!({ "port": 9001, "price_usdc": "0.01" });
        let told = town.post(&shop.machine.path("/ports/expose"), &second).await;
        assert_eq!(told.status, 200, "{told:?}");
        for wrong in ["-1", "1e-2", "0.0000001", "1000.01", ""] {
            let body = json!({ "port": 9001, "price_usdc": wrong });
            let told = town.post(&shop.machine.path("/ports/expose"), &body).await;
            assert_eq!(told.status, 422, "{wrong}");
        }
        // What is settled for another seller buys nothing here, and the other way round.
        let settle = async |nonce| {
            let payment = shop.customer().payment(shop.cent(nonce));
            let demand = json!({
                "scheme": "exact", "network": payment.network, "maxAmountRequired": "10000",
                "asset": token().contract, "payTo": town.wallets[0].address, "description": "",
                "maxTimeoutSeconds": 300, "resource": "http://seller.example", "mimeType": "",
                "extra": { "name": "USD Coin", "version": "2" },
            });
            let body = json!({ "x402Version": 1, "paymentPayload": payment,
                "paymentRequirements": demand });
            send(town.world.at(), "POST /settle", &[], &body.to_string()).await.json()
        };
        assert_eq!(settle(1).await["success"], true);
        let used = "invalid_exact_evm_nonce_already_used";
        assert_eq!(reason(&shop.pay(shop.cent(1)).await), used);
        assert_eq!(shop.pay(shop.cent(2)).await.status, 201);
        assert_eq!(settle(2).await["errorReason"], used);
        // Nor is it good at the next port.
        let header = x402::encode(&shop.customer().payment(shop.cent(2))).unwrap();
        let path = format!("/_at/{}/9001/", shop.machine.short_id);
        let reply = get(town.world.at(), &path, &[("X-Payment", &header)]).await;
        assert_eq!((reason(&reply).as_str(), shop.seen().await), (used, 1));
    });
}

fn died() {
    run(async {
        let town = Town::new().await;
        let shop = Shop::open(&town).await;
        let (cent, host) = (shop.cent(7), shop.host.clone());
        let header = x402::encode(&shop.customer().payment(cent.clone())).unwrap();
        let id = shop.machine.id.clone();
        town.world.chain.ledger().still = true;
        let headers = [("Host", host.as_str()), ("X-Payment", &header)];
        let stream = open(town.world.at(), "GET /", &headers, "").await;
        let told = || town.world.chain.ledger().told.contains(&cent.nonce);
        until("it is broadcast", async || told()).await;
        drop(stream);
        let town = town.crash().await;
        town.world.chain.ledger().still = false;
        town.world.chain.mine();
        let short_id = host.split(['-', '.']).nth(1).unwrap().to_owned();
        let machine = Machine { town: &town, id, short_id };
        machine.until("it runs again", |told| told["status"] == "running").await;
        serve(&machine, ECHO).await;
        let shop = Shop { host: host.clone(), machine };
        // The price has changed, and what was taken was taken for the one before.
        shop.price(Some("0.02")).await;
        let paid = shop.ask(&[("X-Payment", &header)]).await;
        assert_eq!(paid.status, 201, "{paid:?}");
        assert_eq!(shop.ask(&[("X-Payment", &header)]).await.status, 402);
        assert_eq!(shop.seen().await, 1);
        let moved = town.world.chain.ledger().transfers();
        assert_eq!(moved.iter().filter(|it| it.nonce == cent.nonce).count(), 1);
    });
}

fn left() {
    run(async {
        let town = Town::new().await;
        let shop = Shop::open(&town).await;
        for nonce in 20..32_u8 {
            let patience = Duration::from_millis(u64::from(nonce - 20) * 4);
            // silent-ok: most leave before they hear anything.
            tokio::time::timeout(patience, shop.pay(shop.cent(nonce))).await.ok();
            let mut last = 0;
            until("it is answered, or was", async || {
                last = shop.pay(shop.cent(nonce)).await.status;
                matches!(last, 201 | 402)
            })
            .await;
            let seen = u32::from(nonce) - 19;
            until("it was passed on once", async || shop.seen().await == seen).await;
            assert_eq!(shop.pay(shop.cent(nonce)).await.status, 402, "after {last}");
            assert_eq!(shop.seen().await, seen);
        }
    });
}
