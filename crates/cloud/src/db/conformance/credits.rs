//! Transfers with their names and ceilings, refunds, history; gas numbers.

use super::*;

const DAY: Span = Span::from_secs(24 * 3600);

/// An API key of a wallet, and its hash.
async fn key(db: &Db, n: u8) -> Hash {
    another_key(db, n, n).await
}

/// A key of a wallet, drawn from `seed`.
async fn another_key(db: &Db, n: u8, seed: u8) -> Hash {
    let token = Hash::of(&[seed, 1]);
    let nonce = format!("nonce {seed}");
    let nonce_ends = START.after(Span::from_secs(300));
    let proof = Hash::of(&[seed]);
    let lives = Span::from_secs(900);
    let replay = Span::from_secs(60);
    let attempt =
        SignInAttempt { nonce, nonce_ends, proof, wallet: wallet(n), token, lives, replay };
    assert_eq!(db.sign_in(attempt).await.unwrap(), SignInOutcome::Granted);
    let hash = Hash::of(&[seed, 2]);
    let new = NewKey { token, hash, prefix: format!("k{seed}"), name: "n".to_owned() };
    assert_eq!(db.create_api_key(new).await.unwrap(), KeyOutcome::Made);
    hash
}

/// Makes both wallets known.
pub(super) async fn keys(db: &Db) {
    key(db, 1).await;
    key(db, 2).await;
}

fn transfer(ids: &IdGenerator, from: u8, key: Hash, to: u8, cents: i64) -> NewTransfer {
    NewTransfer {
        id: ids.id(),
        key,
        from: wallet(from),
        to: wallet(to),
        cents,
        note: None,
        name: None,
        usual_ceiling: 400,
    }
}

pub(super) async fn transfers(home: &DbHome) {
    let clock = FakeClock::at(START);
    let db = home.open(&clock);
    let ids = ids(&clock);
    fund(&db).await;
    let one = key(&db, 1).await;
    let two = key(&db, 2).await;
    let send = |to, cents| transfer(&ids, 1, one, to, cents);
    let done = |outcome| match outcome {
        TransferOutcome::Done(transfer) => transfer,
        other => panic!("{other:?}"),
    };
    let available = Microcents::new(500_000_000);
    let too_much = db.transfer(send(2, 501)).await.unwrap();
    assert_eq!(too_much, TransferOutcome::Insufficient { available });
    let over = db.transfer(send(2, 401)).await.unwrap();
    assert_eq!(over, TransferOutcome::OverCeiling { ceiling: 400, transferred: 0 });
    assert_eq!(balance(&db).await, (500_000_000, 0));

    let named = |cents, note: Option<&str>| NewTransfer {
        name: Some("n".to_owned()),
        note: note.map(str::to_owned),
        ..send(2, cents)
    };
    let first = done(db.transfer(named(300, Some("x"))).await.unwrap());
    assert_eq!((first.cents, first.balance_after.cents_floor()), (300, 200));
    drop(db);
    let db = home.open(&clock);
    // The same again is the same, and whatever differs is something else.
    assert_eq!(done(db.transfer(named(300, Some("x"))).await.unwrap()), first);
    for other in [named(301, Some("x")), named(300, None)] {
        assert_eq!(db.transfer(other).await.unwrap(), TransferOutcome::OtherName);
    }
    // A name is its wallet's own.
    let back = NewTransfer { name: Some("n".to_owned()), ..transfer(&ids, 2, two, 1, 50) };
    done(db.transfer(back).await.unwrap());
    let over = db.transfer(send(2, 101)).await.unwrap();
    assert_eq!(over, TransferOutcome::OverCeiling { ceiling: 400, transferred: 300 });
    done(db.transfer(send(2, 100)).await.unwrap());
    clock.step(Span::from_millis(DAY.as_millis() - 1));
    let over = db.transfer(send(2, 1)).await.unwrap();
    assert_eq!(over, TransferOutcome::OverCeiling { ceiling: 400, transferred: 400 });
    clock.step(Span::from_millis(1));
    done(db.transfer(send(2, 100)).await.unwrap());
    assert_eq!(balance(&db).await, (50_000_000, 0));
    for (of, other) in [(1, 2), (2, 1)] {
        let newest = &db.history(wallet(of), PageRange { limit: 1, offset: 0 }).await.unwrap()[0];
        assert_eq!(
            (newest.reason, newest.counterparty),
            (PostingReason::Transfer, Some(wallet(other)))
        );
    }
    let short = db.transfer(send(2, 51)).await.unwrap();
    let available = Microcents::new(50_000_000);
    assert_eq!(short, TransferOutcome::Insufficient { available });
    done(db.transfer(send(2, 50)).await.unwrap());
    assert_eq!(balance(&db).await, (0, 0), "to the last cent");
    assert_eq!(db.check_books().await.unwrap().faults, 0);
}

pub(super) async fn ceilings(home: &DbHome) {
    let clock = FakeClock::at(START);
    let db = home.open(&clock);
    let ids = ids(&clock);
    fund(&db).await;
    let one = key(&db, 1).await;
    let two = key(&db, 2).await;
    let change = async |cents, serial| {
        db.change_ceiling(one, TransferCeilingChange { cents, serial }, 400).await.unwrap()
    };
    assert_eq!(change(401, None).await, CeilingOutcome::Unsigned);
    assert_eq!(change(100, None).await, CeilingOutcome::Changed);
    assert_eq!(change(400, None).await, CeilingOutcome::Unsigned, "it may fall and not rise");
    assert_eq!(change(500, Some(7)).await, CeilingOutcome::Changed);
    assert_eq!(change(900, Some(7)).await, CeilingOutcome::Stale, "a message counts once");
    assert_eq!(change(900, Some(6)).await, CeilingOutcome::Stale);
    for _ in 0..2 {
        assert_eq!(change(450, None).await, CeilingOutcome::Changed, "the same is no raise");
    }
    assert_eq!(change(900, Some(7)).await, CeilingOutcome::Stale, "even after it fell");
    let sent = db.transfer(transfer(&ids, 1, one, 2, 450)).await.unwrap();
    assert!(matches!(sent, TransferOutcome::Done(_)));
    let told = db.ceiling(one, 400).await.unwrap();
    assert_eq!((told.cents, told.transferred, told.serial), (450, 450, 7));
    assert_eq!((told.prefix.as_str(), told.creator), ("k1", None));
    let other = db.ceiling(two, 400).await.unwrap();
    assert_eq!((other.cents, other.transferred, other.serial), (400, 0, 0), "of a wallet alone");
    // A key that the wallet makes later has the ceiling, the sum and the serial of the wallet.
    let later = another_key(&db, 1, 9).await;
    let told = db.ceiling(later, 400).await.unwrap();
    assert_eq!((told.cents, told.transferred, told.serial), (450, 450, 7));
    let over = db.transfer(transfer(&ids, 1, later, 2, 1)).await.unwrap();
    assert_eq!(over, TransferOutcome::OverCeiling { ceiling: 450, transferred: 450 });
    let raise = TransferCeilingChange { cents: 900, serial: Some(7) };
    let raised = db.change_ceiling(later, raise, 400).await.unwrap();
    assert_eq!(raised, CeilingOutcome::Stale, "the message was another key's");
    let lower = TransferCeilingChange { cents: 3, serial: None };
    assert_eq!(db.change_ceiling(later, lower, 400).await.unwrap(), CeilingOutcome::Changed);
    assert_eq!(db.ceiling(one, 400).await.unwrap().cents, 3, "whichever key lowers it");
    assert!(db.ceiling(Hash::of(b"?"), 400).await.is_err());
}

pub(super) async fn refunds(home: &DbHome) {
    let clock = FakeClock::at(START);
    let db = home.open(&clock);
    let ids = ids(&clock);
    fund(&db).await;
    let call = hold(&ids, 300, 0);
    db.open_hold(call.clone()).await.unwrap();
    db.settle_hold(call.id, charge(300)).await.unwrap();
    let history = db.history(wallet(1), PageRange { limit: 10, offset: 0 }).await.unwrap();
    let [charged, bought] = &history[..] else { panic!("{history:?}") };
    assert_eq!((charged.reason, charged.amount.units()), (PostingReason::Charge, -300));
    assert_eq!(charged.description.as_deref(), Some("m"));
    assert_eq!((bought.reason, bought.amount.units()), (PostingReason::Purchase, 500_000_000));

    let spent = db.refund(Refund::Payment(1)).await.unwrap();
    assert!(matches!(spent, RefundOutcome::Spent { .. }), "{spent:?}");
    let back = RefundReceipt { wallet: wallet(1), amount: Microcents::new(300), payer: None };
    let which = Refund::Posting(charged.posting);
    assert_eq!(db.refund(which).await.unwrap(), RefundOutcome::Done(back));
    assert_eq!(db.refund(which).await.unwrap(), RefundOutcome::Again(back));
    assert_eq!(balance(&db).await, (500_000_000, 0));
    let payer = Some(wallet(1));
    let all = RefundReceipt { wallet: wallet(1), amount: Microcents::new(500_000_000), payer };
    assert_eq!(db.refund(Refund::Payment(1)).await.unwrap(), RefundOutcome::Done(all));
    let by_posting = db.refund(Refund::Posting(bought.posting)).await.unwrap();
    assert_eq!(by_posting, RefundOutcome::Again(all));
    // Neither a hold, nor a refund, nor what is not there is given back.
    for unknown in [Refund::Payment(2), Refund::Posting(2), Refund::Posting(4), Refund::Posting(99)]
    {
        assert_eq!(db.refund(unknown).await.unwrap(), RefundOutcome::Unknown, "{unknown}");
    }
    assert_eq!(balance(&db).await, (0, 0));
    let history = db.history(wallet(1), PageRange { limit: 2, offset: 0 }).await.unwrap();
    let amounts: Vec<_> = history.iter().map(|it| (it.reason, it.amount.units())).collect();
    assert_eq!(amounts, [(PostingReason::Refund, -500_000_000), (PostingReason::Refund, 300)]);
    let rest = db.history(wallet(1), PageRange { limit: 9, offset: 2 }).await.unwrap();
    assert_eq!(rest.len(), 2);
    assert_eq!(db.history(wallet(8), PageRange { limit: 9, offset: 0 }).await.unwrap(), []);
    assert_eq!(
        db.check_books().await.unwrap(),
        LedgerTotals {
            sum: Microcents::ZERO,
            owed: Microcents::ZERO,
            revenue: Microcents::ZERO,
            faults: 0,
        }
    );
}

pub(super) async fn names(home: &DbHome) {
    let clock = FakeClock::at(START);
    let db = home.open(&clock);
    let named = |nonce, name: &str| NewIncomingPayment {
        names: vec![name.to_owned()],
        ..payment(nonce, 5)
    };
    let BeginPaymentOutcome::New(id) = db.begin_payment(named(1, "a")).await.unwrap() else {
        panic!("known")
    };
    assert_eq!(db.begin_payment(named(1, "a")).await.unwrap(), BeginPaymentOutcome::Named(id));
    // Who repeats what is known may be anybody: its name is not taken.
    assert_eq!(db.begin_payment(named(1, "b")).await.unwrap(), BeginPaymentOutcome::Known(id));
    clock.step(Span::from_secs(500));
    let other = db.begin_payment(named(2, "a")).await.unwrap();
    assert_eq!(other, BeginPaymentOutcome::OtherName);
    let BeginPaymentOutcome::New(id) = db.begin_payment(named(2, "b")).await.unwrap() else {
        panic!("the name was free")
    };
    // A payer that signs again within the guard adds names, and not without bound.
    for n in 0..15 {
        let guarded = db.begin_payment(named(100 + n, &n.to_string())).await.unwrap();
        assert_eq!(guarded, BeginPaymentOutcome::Guarded(id));
    }
    let more = db.begin_payment(named(200, "one more")).await.unwrap();
    assert_eq!(more, BeginPaymentOutcome::Busy);
    assert_eq!(db.begin_payment(named(2, "b")).await.unwrap(), BeginPaymentOutcome::Named(id));
    // Somebody else's names are their own.
    let mut other = named(3, "a");
    other.authorization.from = wallet(7);
    assert!(matches!(db.begin_payment(other).await.unwrap(), BeginPaymentOutcome::New(_)));
}

pub(super) async fn nonces(home: &DbHome) {
    let clock = FakeClock::at(START);
    let db = home.open(&clock);
    let ids = ids(&clock);
    let BeginPaymentOutcome::New(id) = db.begin_payment(payment(1, 5)).await.unwrap() else {
        panic!("known")
    };
    let fees = |max| Fees { max, priority: 1 };
    let new = || NewNonceReservation { intent: ids.id(), payment: id, gas: 70_000, fees: fees(10) };
    let first = new();
    db.reserve_nonce(first).await.unwrap();
    assert!(db.reserve_nonce(new()).await.is_err(), "one at a time");
    assert!(db.payment(id).await.unwrap().has_open_nonce);
    let sent = |n: u8, gas_nonce| {
        let hash = B256::repeat_byte(n);
        let raw = Bytes::from(vec![n]);
        Submission { hash, raw, gas_nonce }
    };
    drop(db);
    let db = home.open(&clock);
    let reservation = &db.open_nonces().await.unwrap()[0].transaction;
    assert_eq!(
        (reservation.intent, reservation.nonce, &reservation.raw, reservation.gas),
        (first.intent, None, &None, 70_000)
    );
    db.mark_signed(first.intent, sent(1, 7)).await.unwrap();
    assert!(db.mark_signed(first.intent, sent(2, 7)).await.is_err(), "nothing asked for it");
    clock.step(Span::from_secs(40));
    db.raise_nonce_fees(first.intent, fees(12)).await.unwrap();
    let reservation = &db.open_nonces().await.unwrap()[0].transaction;
    assert_eq!(
        (reservation.fees, reservation.since, &reservation.raw),
        (fees(12), clock.now(), &None)
    );
    assert!(db.mark_signed(first.intent, sent(2, 8)).await.is_err(), "its number stays");
    db.mark_signed(first.intent, sent(2, 7)).await.unwrap();
    let hashes = vec![B256::repeat_byte(1), B256::repeat_byte(2)];
    let stored = db.payment(id).await.unwrap();
    assert_eq!(stored.state, IncomingPaymentState::Submitted(hashes.clone()));
    assert_eq!(db.open_nonces().await.unwrap()[0].transaction.hashes, hashes);
    for _ in 0..2 {
        db.close_nonce(first.intent, TransactionEnd::Lost).await.unwrap();
    }
    assert_eq!(db.open_nonces().await.unwrap(), []);
    let second = new();
    db.reserve_nonce(second).await.unwrap();
    db.mark_signed(second.intent, sent(3, 9)).await.unwrap();
    // What is over keeps its number all the same.
    db.mark_failed(id, "why".to_owned()).await.unwrap();
    assert_eq!(db.open_nonces().await.unwrap()[0].transaction.nonce, Some(9));
}
