//! Payments survive whatever happens between their steps.

use automaton_core::money::Microcents;
use automaton_core::payment::{
    Money, NewPayment, PaymentReason, PaymentState, Purpose, SignedPayment,
};
use automaton_core::time::{DAY, HOUR, Span, Timestamp};
use automaton_core::window::{ClockReadings, WindowAnchor};
use automaton_core::wire::control::ApprovalVerdict;
use automaton_store::{
    ApprovalAuthor, ApprovalRequest, ApprovalState, ApprovalSubject, PaymentStep, RecentPayments,
    RefusedDemand, StoreError, TurnRef,
};

use super::{World, five_dollars};

fn a_dollar_for(name: &str) -> NewPayment {
    NewPayment {
        purpose: Purpose::Transfer,
        request: format!("transfer to {name}"),
        money: Money::Credits { amount: Microcents::from_cents(100).unwrap() },
        why: PaymentReason {
            goal: Some("friends".to_owned()),
            ..PaymentReason::auto_topup("a gift")
        },
        ..five_dollars()
    }
}

fn signed(byte: u8) -> SignedPayment {
    SignedPayment {
        header: "x-payment".to_owned(),
        value: format!("value {byte}"),
        nonce: [byte; 32].into(),
        valid_before: Timestamp::from_millis(600_000),
    }
}

fn question(expires_at: i64) -> ApprovalRequest {
    ApprovalRequest {
        summary: "give $1 away".to_owned(),
        code: "CONFIRMATION_REQUIRED".to_owned(),
        reason: "It is more than may be given unasked.".to_owned(),
        expires_at: Timestamp::from_millis(expires_at),
    }
}

fn refused<T: std::fmt::Debug>(outcome: &Result<T, StoreError>) {
    assert!(matches!(outcome, Err(StoreError::Unfit { .. })), "{outcome:?}");
}

/// The bookings, oldest first.
fn booked(world: &World) -> Vec<i64> {
    let raw = world.raw();
    let mut statement = raw.prepare("SELECT amount FROM ledger ORDER BY seq").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[tokio::test]
async fn one_purchase_at_a_time_and_one_signature_each() {
    let world = World::born().await;
    let store = &world.store;
    assert_eq!(store.open_payment("top_up").await.unwrap(), None);
    let id = store.propose_payment(five_dollars(), None).await.unwrap();
    refused(&store.propose_payment(five_dollars(), None).await);
    refused(&store.advance_payment(id, PaymentStep::Submitted).await);
    store.store_signed_payment(id, signed(1)).await.unwrap();
    store.store_signed_payment(id, signed(1)).await.unwrap();
    refused(&store.store_signed_payment(id, signed(2)).await);
    refused(&store.advance_payment(id, PaymentStep::Failed("no".to_owned())).await);
    store.advance_payment(id, PaymentStep::Submitted).await.unwrap();
    store.advance_payment(id, PaymentStep::Unknown).await.unwrap();
    refused(&store.advance_payment(id, PaymentStep::Failed("no".to_owned())).await);
    store.advance_payment(id, PaymentStep::Submitted).await.unwrap();

    let open = store.open_payment("top_up").await.unwrap().unwrap();
    assert_eq!((open.id, open.state, open.signed), (id, PaymentState::Submitted, Some(signed(1))));
    assert_eq!(open.terms, five_dollars());
    refused(&store.propose_payment(five_dollars(), None).await);
    assert_eq!(store.payee_of(five_dollars().origin).await.unwrap(), None, "nothing is settled");

    store.advance_payment(id, PaymentStep::Settled(Some("0xabc".to_owned()))).await.unwrap();
    refused(&store.advance_payment(id, PaymentStep::Expired).await);
    assert_eq!(store.open_payment("top_up").await.unwrap(), None);
    let payee = store.payee_of(five_dollars().origin).await.unwrap();
    assert_eq!(payee, Some(five_dollars().payee));
    let next = store.propose_payment(five_dollars(), None).await.unwrap();
    assert_eq!(store.newest_payment(Purpose::TopUp).await.unwrap().unwrap().id, next);
    let all = store.payments().await.unwrap();
    let all: Vec<_> = all.iter().map(|payment| (payment.id, payment.signed.is_some())).collect();
    assert_eq!(all, [(id, true), (next, false)]);
    assert!(booked(&world).is_empty(), "what was bought is still ours");
    assert!(store.verify_chain().await.unwrap().is_whole());
}

#[tokio::test]
async fn what_was_never_signed_may_fail() {
    let mut world = World::born().await;
    let id = world.store.propose_payment(five_dollars(), None).await.unwrap();
    world.crash();
    let open = world.store.open_payment("top_up").await.unwrap().unwrap();
    assert_eq!((open.id, open.state, open.signed), (id, PaymentState::Approved, None));
    world
        .store
        .advance_payment(id, PaymentStep::Failed("the cloud refused".to_owned()))
        .await
        .unwrap();
    assert_eq!(world.store.open_payment("top_up").await.unwrap(), None);
}

#[tokio::test]
async fn credits_are_booked_when_they_may_be_gone_and_come_back_once() {
    let world = World::born().await;
    let store = &world.store;
    let (ann, bob) = (a_dollar_for("ann"), a_dollar_for("bob"));
    let first = store.propose_payment(ann.clone(), None).await.unwrap();
    let second = store.propose_payment(bob, None).await.unwrap();
    refused(&store.propose_payment(ann, None).await);
    assert!(booked(&world).is_empty());
    store.advance_payment(first, PaymentStep::Submitted).await.unwrap();
    store.advance_payment(first, PaymentStep::Unknown).await.unwrap();
    store.advance_payment(first, PaymentStep::Submitted).await.unwrap();
    assert_eq!(booked(&world), [-100_000_000]);
    store
        .advance_payment(first, PaymentStep::Failed("nobody has that address".to_owned()))
        .await
        .unwrap();
    assert_eq!(booked(&world), [-100_000_000, 100_000_000]);
    let recent = store.recently(Purpose::Transfer, None).await.unwrap();
    assert_eq!(recent.day, Microcents::from_cents(100).unwrap(), "what came to nothing is free");
    store.advance_payment(second, PaymentStep::Submitted).await.unwrap();
    store.advance_payment(second, PaymentStep::Settled(None)).await.unwrap();
    assert_eq!(booked(&world), [-100_000_000, 100_000_000, -100_000_000]);
    refused(&store.advance_payment(second, PaymentStep::Expired).await);
}

#[tokio::test]
async fn the_creator_answers_once_and_silence_is_a_no() {
    let world = World::born().await;
    let store = &world.store;
    let late = Some(question(i64::MAX));
    let ids = [
        store.propose_payment(a_dollar_for("ann"), late.clone()).await.unwrap(),
        store.propose_payment(a_dollar_for("bob"), late).await.unwrap(),
        store.propose_payment(a_dollar_for("cy"), Some(question(0))).await.unwrap(),
    ];
    for id in ids {
        refused(&store.advance_payment(id, PaymentStep::Submitted).await);
    }
    let asked = store.approvals(9).await.unwrap();
    let of = |id| asked.iter().find(|one| one.subject == ApprovalSubject::Payment(id)).unwrap().id;
    refused(&store.answer(of(ids[2]), ApprovalVerdict::Approve, ApprovalAuthor::Home).await);
    assert_eq!(store.expire_approvals().await.unwrap(), 1);
    assert_eq!(store.expire_approvals().await.unwrap(), 0);
    for _ in 0..2 {
        let yes =
            store.answer(of(ids[0]), ApprovalVerdict::Approve, ApprovalAuthor::Home).await.unwrap();
        assert_eq!(yes.state, ApprovalState::Approved);
        store.answer(of(ids[1]), ApprovalVerdict::Deny, ApprovalAuthor::Home).await.unwrap();
    }
    refused(&store.answer(of(ids[0]), ApprovalVerdict::Deny, ApprovalAuthor::Home).await);
    refused(&store.answer(of(ids[1]), ApprovalVerdict::Approve, ApprovalAuthor::Home).await);
    let mut states = Vec::new();
    for id in ids {
        states.push(store.payment(id).await.unwrap().state);
    }
    assert_eq!(states, [PaymentState::Approved, PaymentState::Failed, PaymentState::Failed]);
}

#[tokio::test]
async fn a_refused_demand_is_on_record_and_books_nothing() {
    let world = World::born().await;
    let detail = "amount: 900.00 USDC is not the price of 5.00 USDC".to_owned();
    let origin = "https://evil.example".to_owned();
    world.store.refuse_demand(RefusedDemand { origin, detail }).await.unwrap();
    let report = world.store.verify_chain().await.unwrap();
    assert!(report.is_whole() && report.links == 1);
    assert!(world.store.payments().await.unwrap().is_empty() && booked(&world).is_empty());
    world.raw().execute_batch("DROP TRIGGER payment_steps_fixed").unwrap();
    world.raw().execute("UPDATE payment_steps SET detail = 'nothing'", []).unwrap();
    assert!(!world.store.verify_chain().await.unwrap().is_whole(), "an edit is found");
}

#[tokio::test]
async fn hours_and_days_are_those_of_the_window_time_that_is_kept() {
    let world = World::born().await;
    let store = &world.store;
    let keep = async |millis| {
        let said = ClockReadings { wall: Timestamp::from_millis(millis / 2), chain: None };
        let at = WindowAnchor { window: Timestamp::from_millis(millis), said };
        store.keep_window(at).await.unwrap();
        at
    };
    let first = keep(1_000).await;
    keep(999).await;
    assert_eq!(store.window().await.unwrap(), first, "it never goes back");
    store.propose_payment(a_dollar_for("ann"), None).await.unwrap();
    let dollar = Microcents::from_cents(100).unwrap();
    let (hour, day) = (HOUR.as_millis(), DAY.as_millis());
    for (passed, of_hour, of_day) in [
        (0, dollar, dollar),
        (hour - 1, dollar, dollar),
        (hour, Microcents::ZERO, dollar),
        (day - 1, Microcents::ZERO, dollar),
        (day, Microcents::ZERO, Microcents::ZERO),
    ] {
        keep(1_000 + passed).await;
        let recent = store.recently(Purpose::Transfer, None).await.unwrap();
        let since = Some(Span::from_millis(passed));
        assert_eq!((recent.hour, recent.day, recent.since_last), (of_hour, of_day, since));
        assert_eq!(store.recently(Purpose::X402, None).await.unwrap(), RecentPayments::default());
    }
}

#[tokio::test]
async fn a_turn_shows_its_payments_without_what_was_signed() {
    let world = World::born().await;
    let turn = world.answer(world.session().await).await;
    let payment = five_dollars();
    let payment =
        NewPayment { why: PaymentReason { turn: Some(turn), ..payment.why.clone() }, ..payment };
    let id = world.store.propose_payment(payment, None).await.unwrap();
    world.store.store_signed_payment(id, signed(3)).await.unwrap();
    let dossier = world.reader().turn_details(TurnRef::Id(turn)).unwrap().unwrap();
    let payment = &dossier.payments[0];
    assert_eq!((payment.id, payment.state, payment.units), (id, PaymentState::Signed, 5_000_000));
    let shown = serde_json::to_string(&dossier).unwrap();
    assert!(!shown.contains(&signed(3).value) && !shown.contains("nonce"), "{shown}");
}
