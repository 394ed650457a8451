//! The account that pays gas, on a chain that drops, delays, reorders and forgets.

use std::sync::Arc;
use std::time::Duration;

use automaton_core::time::Span;

use crate::fake_chain::PAYER;
use crate::world::{Wallet, World, until};

const FIVE: i64 = 500_000_000;

/// A world on a chain whose blocks stay after this many more.
async fn deep(confirmations: usize) -> (World, Wallet, String) {
    let world = World::new().await;
    world.chain.ledger().confirmations = confirmations;
    let wallet = Wallet::new(1);
    let key = world.key(&wallet).await;
    world.give(&wallet, 100);
    (world, wallet, key)
}

async fn credited(world: &World, key: &str) {
    until("the payment is credited", async || world.balance(key).await == FIVE).await;
}

#[tokio::test]
async fn credits_are_booked_when_the_block_stays_and_not_before() {
    let (world, wallet, key) = deep(2).await;
    let _stream = world.begin(&wallet, wallet.authorize(5, 1)).await;
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_millis(700)).await;
        assert_eq!(world.balance(&key).await, 0);
        world.chain.mine();
    }
    credited(&world, &key).await;
}

#[tokio::test]
async fn what_a_reorganization_drops_is_sent_again_and_credited_once() {
    let (world, wallet, key) = deep(2).await;
    let _stream = world.begin(&wallet, wallet.authorize(5, 1)).await;
    world.chain.mine();
    world.chain.ledger().still = true;
    world.chain.reorg(2);
    assert!(world.chain.ledger().transfers().is_empty());
    until("it is sent again", async || world.chain.ledger().waiting() == 1).await;
    // A crash in between forgets nothing of it.
    let world = world.crash().await;
    world.chain.drop_pool();
    until("and again", async || world.chain.ledger().waiting() == 1).await;
    (0..3).for_each(|_| world.chain.mine());
    credited(&world, &key).await;
    let ledger = world.chain.ledger();
    assert_eq!((ledger.transfers().len(), ledger.signed()), (1, 1), "the same bytes");
}

#[tokio::test]
async fn a_transaction_that_is_stuck_is_replaced_under_its_own_number() {
    let (world, wallet, key) = deep(0).await;
    world.chain.ledger().fee_floor = 1300;
    let _stream = world.begin(&wallet, wallet.authorize(5, 1)).await;
    assert_eq!(world.chain.ledger().transfers().len(), 0);
    // 1000, 1125, 1266 are too little; 1425 is not.
    for signed in 2..=4 {
        world.clock.step(Span::from_secs(31));
        until("it is replaced", async || world.chain.ledger().signed() == signed).await;
    }
    credited(&world, &key).await;
    let ledger = world.chain.ledger();
    assert_eq!((ledger.transfers().len(), ledger.numbers(0), ledger.signed()), (1, 1, 4));
}

#[tokio::test]
async fn a_buyer_hears_at_once_that_nobody_can_pay_the_gas_and_is_credited_when_somebody_can() {
    let (world, wallet, key) = deep(0).await;
    world.chain.ledger().poor = true;
    let paid = wallet.authorize(5, 1);
    for _ in 0..2 {
        let soon = tokio::time::timeout(Duration::from_secs(10), world.pay(&wallet, paid.clone()));
        let told = soon.await.expect("nothing is waited for").json();
        assert_eq!(told["status"], "pending", "{told}");
        let why = told["held_up"].as_str().unwrap();
        assert!(why.contains("pays for gas") && why.contains(&PAYER.to_string()), "{why}");
    }
    world.chain.ledger().poor = false;
    credited(&world, &key).await;
    let told = world.pay(&wallet, paid).await.json();
    assert_eq!((&told["status"], told.get("held_up")), (&"settled".into(), None), "{told}");
}

#[tokio::test]
async fn nothing_is_paid_beyond_the_operators_limit() {
    let (world, wallet, _) = deep(0).await;
    world.chain.ledger().fee_floor = u64::MAX;
    let _stream = world.begin(&wallet, wallet.authorize(5, 1)).await;
    // The world's limit is 2000 wei: 1000, 1125, 1266, 1425, 1604, 1805.
    for _ in 0..12 {
        world.clock.step(Span::from_secs(31));
        let heard = world.chain.ledger().heard;
        until("it is sent again", async || world.chain.ledger().heard > heard).await;
    }
    assert_eq!(world.chain.ledger().signed(), 6);
}

#[tokio::test]
async fn a_number_is_filled_though_its_payment_is_over() {
    let (world, wallet, key) = deep(0).await;
    let other = Wallet::new(2);
    world.give(&other, 20);
    world.chain.ledger().deaf = true;
    let first = other.authorize(5, 7);
    let _gone = world.begin(&other, first.clone()).await;
    // Its payer takes it back: nobody will ever see that transfer.
    world.chain.cancel(&first);
    let _stream = world.begin(&wallet, wallet.authorize(5, 1)).await;
    let world = world.crash().await;
    world.chain.ledger().deaf = false;
    credited(&world, &key).await;
    let ledger = world.chain.ledger();
    assert_eq!((ledger.transfers().len(), ledger.numbers(0)), (1, 2), "the gap was filled");
}

#[tokio::test]
async fn many_payments_over_a_chain_that_forgets_are_each_carried_out_once() {
    let (world, _, _) = deep(1).await;
    let world = Arc::new(world);
    let wallets: Vec<Wallet> = (1..=8).map(Wallet::new).collect();
    let mut streams = Vec::new();
    world.chain.ledger().still = true;
    for wallet in &wallets {
        world.give(wallet, 20);
        streams.push(world.begin(wallet, wallet.authorize(5, 1)).await);
    }
    // Blocks come, go away with what was in them, and what waits is dropped.
    for depth in [1, 0, 2, 0, 0, 1] {
        world.chain.mine();
        world.chain.reorg(depth.min(1));
        world.chain.drop_pool();
        let heard = world.chain.ledger().heard;
        let whole = |ledger: &crate::fake_chain::Ledger| ledger.transfers().len() == wallets.len();
        until("it goes on", async || {
            let ledger = world.chain.ledger();
            ledger.heard > heard || whole(&ledger)
        })
        .await;
    }
    world.chain.ledger().still = false;
    until("all are carried out", async || {
        world.chain.mine();
        world.chain.ledger().transfers().len() == wallets.len()
    })
    .await;
    for wallet in &wallets {
        let key = world.key(wallet).await;
        credited(&world, &key).await;
        let left = world.chain.ledger().balances[&wallet.address];
        assert_eq!(left, alloy_primitives::U256::from(15_000_000));
    }
    let ledger = world.chain.ledger();
    assert_eq!(ledger.numbers(0), 8, "one number each");
    assert_eq!(ledger.transfers().len(), 8);
}

#[tokio::test]
async fn two_hundred_payments_go_on_beside_one_that_is_stuck() {
    let world = World::new().await;
    let wallets: Vec<Wallet> = (1..=200).map(Wallet::new).collect();
    for wallet in &wallets {
        world.give(wallet, 20);
    }
    let (stuck, others) = wallets.split_first().unwrap();
    world.chain.ledger().stuck = Some(stuck.address);
    let _stream = world.send_payment(stuck, stuck.authorize(5, 1)).await;
    // No more than a cloud has under way at a time.
    for some in others.chunks(90) {
        let paying = some.iter().map(|wallet| world.pay(wallet, wallet.authorize(5, 1)));
        for reply in futures_util::future::join_all(paying).await {
            assert_eq!((reply.status, &reply.json()["status"]), (200, &"settled".into()));
        }
    }
    assert_eq!(world.chain.ledger().transfers().len(), 199);
    assert_eq!(world.chain.ledger().signed(), 199, "one transaction each");
    world.chain.ledger().stuck = None;
    let world = world.crash().await;
    let key = world.key(stuck).await;
    credited(&world, &key).await;
    until("all numbers are closed", async || world.chain.ledger().numbers(0) == 200).await;
}
