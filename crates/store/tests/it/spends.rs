//! Payments survive whatever happens between their steps.

use automaton_core::money::MicroUsdc;
use automaton_core::spend::{NewSpend, SignedSpend, SpendState};
use automaton_core::time::Timestamp;
use automaton_store::{SpendStep, StoreError};

use super::World;

fn five_dollars() -> NewSpend {
    NewSpend {
        origin: "https://cloud.example".to_owned(),
        usd: 5,
        chain: 8453,
        asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913".parse().unwrap(),
        payer: "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266".parse().unwrap(),
        payee: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8".parse().unwrap(),
        amount: MicroUsdc::new(5_000_000),
    }
}

fn signed(byte: u8) -> SignedSpend {
    SignedSpend {
        header: "x-payment".to_owned(),
        value: format!("value {byte}"),
        nonce: [byte; 32].into(),
        valid_before: Timestamp::from_millis(600_000),
    }
}

fn refused<T: std::fmt::Debug>(outcome: &Result<T, StoreError>) {
    assert!(matches!(outcome, Err(StoreError::Unfit { .. })), "{outcome:?}");
}

#[tokio::test]
async fn one_purchase_at_a_time_and_one_signature_each() {
    let world = World::born().await;
    let store = &world.store;
    assert_eq!(store.open_spend().await.unwrap(), None);
    let id = store.propose_spend(five_dollars()).await.unwrap();
    refused(&store.propose_spend(five_dollars()).await);
    refused(&store.step_spend(id, SpendStep::Submitted).await);
    store.spend_signed(id, signed(1)).await.unwrap();
    store.spend_signed(id, signed(1)).await.unwrap();
    refused(&store.spend_signed(id, signed(2)).await);
    refused(&store.step_spend(id, SpendStep::Failed("no".to_owned())).await);
    store.step_spend(id, SpendStep::Submitted).await.unwrap();

    let open = store.open_spend().await.unwrap().unwrap();
    assert_eq!((open.id, open.state, open.signed), (id, SpendState::Submitted, Some(signed(1))));
    assert_eq!(open.spend, five_dollars());
    refused(&store.propose_spend(five_dollars()).await);
    assert_eq!(store.payee_of(five_dollars().origin).await.unwrap(), None, "nothing is settled");

    store.step_spend(id, SpendStep::Settled(Some("0xabc".to_owned()))).await.unwrap();
    refused(&store.step_spend(id, SpendStep::Expired).await);
    assert_eq!(store.open_spend().await.unwrap(), None);
    let payee = store.payee_of(five_dollars().origin).await.unwrap();
    assert_eq!(payee, Some(five_dollars().payee));
    let next = store.propose_spend(five_dollars()).await.unwrap();
    assert_eq!(store.newest_spend().await.unwrap().unwrap().id, next);
    let all = store.spends().await.unwrap();
    let all: Vec<_> = all.iter().map(|spend| (spend.id, spend.signed.is_some())).collect();
    assert_eq!(all, [(id, true), (next, false)]);
}

#[tokio::test]
async fn what_was_never_signed_may_fail() {
    let mut world = World::born().await;
    let id = world.store.propose_spend(five_dollars()).await.unwrap();
    world.crash();
    let open = world.store.open_spend().await.unwrap().unwrap();
    assert_eq!((open.id, open.state, open.signed), (id, SpendState::Proposed, None));
    world.store.step_spend(id, SpendStep::Failed("the cloud refused".to_owned())).await.unwrap();
    assert_eq!(world.store.open_spend().await.unwrap(), None);
}
