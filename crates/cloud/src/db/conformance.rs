//! The specification of every use case of the database, as one suite of tests.
//!
//! Each test opens its own [`DbHome`]. Opening it again finds the stored rows, as after a crash.

mod credits;
mod machines;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U256};
use automaton_core::entropy::Entropy;
use automaton_core::id::{HoldId, IdGenerator};
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::time::{Clock, Span, Timestamp};
use automaton_core::wire::cloud::RegistrationRequest;
use automaton_core::wire::x402::Authorization;
use automaton_sqlite::chain::Hash;
use automaton_testkit::clock::FakeClock;
use automaton_testkit::entropy::SeededEntropy;
use proptest::prelude::*;

use super::*;
use crate::billing::price::{BilledTokens, Charge, Metering};

/// A directory with one database.
pub(crate) struct DbHome(tempfile::TempDir);

impl DbHome {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Opens the database, again or for the first time.
    fn open(&self, clock: &FakeClock) -> Db {
        Db::open(&self.0.path().join("cloud.db"), Arc::new(clock.clone())).unwrap()
    }
}

/// Runs everything but the random histories.
pub(crate) async fn suite() {
    access(&DbHome::new()).await;
    registrations(&DbHome::new()).await;
    status::statuses(&DbHome::new()).await;
    holds(&DbHome::new()).await;
    payments(&DbHome::new()).await;
    guard(&DbHome::new()).await;
    credits::transfers(&DbHome::new()).await;
    credits::ceilings(&DbHome::new()).await;
    credits::refunds(&DbHome::new()).await;
    credits::names(&DbHome::new()).await;
    credits::nonces(&DbHome::new()).await;
    machines::lives(&DbHome::new()).await;
    machines::charges(&DbHome::new()).await;
    machines::executions(&DbHome::new()).await;
    machines::ports(&DbHome::new()).await;
}

const START: Timestamp = Timestamp::from_millis(1_767_323_105_000);

fn wallet(n: u8) -> Address {
    Address::repeat_byte(n)
}

async fn access(home: &DbHome) {
    let clock = FakeClock::at(START);
    let db = home.open(&clock);
    let secret = db.secret([1; 32]).await.unwrap();
    assert_eq!((secret, db.secret([2; 32]).await.unwrap()), ([1; 32], [1; 32]));
    let attempt = |proof: &[u8]| SignInAttempt {
        nonce: "n".to_owned(),
        nonce_ends: START.after(Span::from_secs(300)),
        proof: Hash::of(proof),
        wallet: wallet(1),
        token: Hash::of(b"token"),
        lives: Span::from_secs(900),
        replay: Span::from_secs(60),
    };
    let key = |hash: &[u8]| NewKey {
        token: Hash::of(b"token"),
        hash: Hash::of(hash),
        prefix: "k".to_owned(),
        name: "n".to_owned(),
    };
    assert_eq!(db.create_api_key(key(b"k")).await.unwrap(), KeyOutcome::BadToken);
    for (proof, outcome) in [
        (b"a", SignInOutcome::Granted),
        (b"a", SignInOutcome::Granted),
        (b"b", SignInOutcome::BadNonce),
    ] {
        assert_eq!(db.sign_in(attempt(proof)).await.unwrap(), outcome);
    }
    assert_eq!(db.key_owner(Hash::of(b"k")).await.unwrap(), None);
    for (hash, outcome) in
        [(b"k", KeyOutcome::Made), (b"o", KeyOutcome::Spent), (b"k", KeyOutcome::Again)]
    {
        assert_eq!(db.create_api_key(key(hash)).await.unwrap(), outcome);
    }
    assert_eq!(db.create_api_key(key(b"k")).await.unwrap(), KeyOutcome::Spent);
    drop(db);
    let db = home.open(&clock);
    assert_eq!(db.key_owner(Hash::of(b"k")).await.unwrap(), Some(wallet(1)));
    assert_eq!(db.key_owner(Hash::of(b"o")).await.unwrap(), None);
    clock.step(Span::from_secs(61));
    assert_eq!(db.sign_in(attempt(b"a")).await.unwrap(), SignInOutcome::BadNonce);
    clock.step(Span::from_secs(240));
    let late = SignInAttempt { nonce: "m".to_owned(), ..attempt(b"m") };
    assert_eq!(db.sign_in(late).await.unwrap(), SignInOutcome::BadNonce, "it was good until then");
}

async fn registrations(home: &DbHome) {
    let db = home.open(&FakeClock::at(START));
    let row = |id: &str, name: &str| RegistrationRequest {
        automaton_id: id.to_owned(),
        automaton_address: wallet(1).to_string(),
        creator_address: wallet(2).to_string(),
        name: name.to_owned(),
        bio: String::new(),
        genesis_prompt_hash: None,
        nonce: "n".to_owned(),
        payload_hash: B256::repeat_byte(1),
        signature: String::new(),
        chain_type: None,
    };
    let registered = |id: &str| RegisterOutcome::Registered(id.to_owned());
    for (who, id, name, outcome) in [
        (1, "a", "Ada", registered("a")),
        (1, "a", "Ada", registered("a")),
        // It has lost its id, and gets it back.
        (1, "b", "Ada", registered("a")),
        (1, "a", "Eve", RegisterOutcome::Conflict),
        (2, "b", "Ada", registered("b")),
    ] {
        assert_eq!(db.register(wallet(who), row(id, name)).await.unwrap(), outcome);
    }
}

pub(crate) fn payment(nonce: u8, usd: u32) -> NewIncomingPayment {
    NewIncomingPayment {
        chain: 31337,
        asset: wallet(0xA5),
        authorization: Authorization {
            from: wallet(1),
            to: wallet(0xEE),
            value: U256::from(usd) * U256::from(1_000_000),
            valid_after: U256::ZERO,
            valid_before: U256::MAX,
            nonce: B256::repeat_byte(nonce),
        },
        value: MicroUsdc::new(u64::from(usd) * 1_000_000),
        signature: Bytes::from(vec![7; 65]),
        purchase: Some(CreditPurchase { recipient: wallet(1), usd }),
        sale: None,
        guard: Span::from_secs(120),
        names: Vec::new(),
        request: Hash::of(&[nonce]),
    }
}

fn hold(ids: &IdGenerator, amount: i64, minimum: i64) -> NewHold {
    NewHold {
        name: None,
        id: ids.id(),
        wallet: wallet(1),
        model: "m".into(),
        amount: Microcents::new(amount),
        minimum: Microcents::new(minimum),
    }
}

fn charge(cost: i64) -> Charge {
    Charge {
        cost: Microcents::new(cost),
        tokens: BilledTokens::default(),
        metering: Metering::Reported,
    }
}

fn ids(clock: &FakeClock) -> IdGenerator {
    let entropy: Arc<dyn Entropy> = Arc::new(SeededEntropy::new(3));
    IdGenerator::new(Arc::new(clock.clone()) as Arc<dyn Clock>, entropy)
}

async fn balance(db: &Db) -> (i64, i64) {
    let balance = db.balance(wallet(1)).await.unwrap();
    (balance.available.units(), balance.held.units())
}

async fn fund(db: &Db) {
    let BeginPaymentOutcome::New(id) = db.begin_payment(payment(1, 5)).await.unwrap() else {
        panic!("known")
    };
    assert!(db.mark_settled(id, SettledBy::transaction(B256::repeat_byte(0xFF))).await.unwrap());
}

async fn holds(home: &DbHome) {
    let clock = FakeClock::at(START);
    let db = home.open(&clock);
    let ids = ids(&clock);
    assert_eq!(balance(&db).await, (0, 0));
    let short = db.open_hold(hold(&ids, 1, 0)).await.unwrap();
    assert_eq!(short, HoldOutcome::Insufficient { available: Microcents::ZERO });
    assert_eq!(db.open_hold(hold(&ids, 0, 0)).await.unwrap(), HoldOutcome::Held, "free");
    fund(&db).await;
    let all = 500_000_000;
    let one = hold(&ids, 300, 0);
    let two = hold(&ids, all - 300, 0);
    for hold in [&one, &two] {
        assert_eq!(db.open_hold(hold.clone()).await.unwrap(), HoldOutcome::Held);
    }
    assert_eq!(balance(&db).await, (0, all));
    assert!(matches!(
        db.open_hold(hold(&ids, 0, 1)).await.unwrap(),
        HoldOutcome::Insufficient { .. }
    ));
    for _ in 0..2 {
        let charged = db.settle_hold(one.id, charge(120)).await.unwrap();
        assert_eq!(charged, Microcents::new(120));
        assert_eq!(balance(&db).await, (180, all - 300));
    }
    db.release_hold(one.id).await.unwrap();
    let charged = db.settle_hold(two.id, charge(i64::MAX)).await.unwrap();
    assert_eq!(charged.units(), all - 300, "never more than was set aside");
    let three = hold(&ids, 180, 0);
    db.open_hold(three.clone()).await.unwrap();
    drop(db);
    let db = home.open(&clock);
    assert_eq!(db.release_open_holds().await.unwrap(), 2);
    assert_eq!(balance(&db).await, (180, 0));
    assert_eq!(db.settle_hold(three.id, charge(9)).await.unwrap(), Microcents::ZERO);
    assert!(db.settle_hold(ids.id::<HoldId>(), charge(1)).await.is_err());
    let books = db.check_books().await.unwrap();
    let owed = Microcents::new(180);
    let revenue = Microcents::new(all - 180);
    assert_eq!(books, LedgerTotals { sum: Microcents::ZERO, owed, revenue, faults: 0 });
}

async fn payments(home: &DbHome) {
    let clock = FakeClock::at(START);
    let db = home.open(&clock);
    let new = payment(1, 5);
    assert_eq!(find(&db, &new).await, None);
    let BeginPaymentOutcome::New(id) = db.begin_payment(new.clone()).await.unwrap() else {
        panic!("known")
    };
    assert_eq!(db.begin_payment(new.clone()).await.unwrap(), BeginPaymentOutcome::Known(id));
    let gift = Some(CreditPurchase { recipient: wallet(2), usd: 5 });
    let other = NewIncomingPayment { purchase: gift, ..new.clone() };
    assert_eq!(db.begin_payment(other).await.unwrap(), BeginPaymentOutcome::Conflict);
    let stored = find(&db, &new).await.unwrap();
    assert_eq!(
        (&stored.authorization, &stored.state),
        (&new.authorization, &IncomingPaymentState::Begun)
    );
    drop(db);
    let db = home.open(&clock);
    assert!(db.mark_settled(id, SettledBy::transaction(B256::repeat_byte(4))).await.unwrap());
    assert!(
        !db.mark_settled(id, SettledBy::transaction(B256::repeat_byte(4))).await.unwrap(),
        "only once"
    );
    assert!(db.mark_failed(id, "late".to_owned()).await.is_err());
    assert_eq!(balance(&db).await, (500_000_000, 0));
    assert_eq!(db.unfinished_payments().await.unwrap(), []);
    assert!(db.mark_delivered(id).await.unwrap());
    assert!(!db.mark_delivered(id).await.unwrap(), "only once");
    // A transaction of ours settles one payment.
    let BeginPaymentOutcome::New(next) = db.begin_payment(payment(2, 5)).await.unwrap() else {
        panic!("known")
    };
    assert!(db.mark_settled(next, SettledBy::transaction(B256::repeat_byte(4))).await.is_err());
    db.mark_failed(next, "why".to_owned()).await.unwrap();
    assert_eq!(balance(&db).await, (500_000_000, 0));
    // What was given up can still turn out to be paid.
    assert!(db.mark_settled(next, SettledBy::transaction(B256::repeat_byte(6))).await.unwrap());
    assert_eq!(db.check_books().await.unwrap().faults, 0);
    // One of somebody else settles as many as it has logs, and each log one.
    let log = |log| SettledBy { transaction: B256::repeat_byte(7), log: Some(log) };
    let mut credited = 1_000_000_000;
    for (nonce, at, is_fresh) in [(3, 1, true), (4, 3, true), (5, 3, false), (5, 5, true)] {
        clock.step(Span::from_secs(121));
        let begun = db.begin_payment(payment(nonce, 5)).await.unwrap();
        let (BeginPaymentOutcome::New(id) | BeginPaymentOutcome::Known(id)) = begun else {
            panic!("{begun:?}")
        };
        assert_eq!(db.mark_settled(id, log(at)).await.is_ok(), is_fresh, "{nonce} by {at}");
        credited += if is_fresh { 500_000_000 } else { 0 };
        assert_eq!(balance(&db).await, (credited, 0));
    }
    // The balance that is told is that of the payment's time.
    let told = [id, next].map(async |id| db.payment(id).await.unwrap().balance.units());
    let [first, second] = told;
    assert_eq!((first.await, second.await), (500_000_000, 1_000_000_000));
    assert_eq!(db.check_books().await.unwrap().faults, 0);
}

async fn find(db: &Db, new: &NewIncomingPayment) -> Option<IncomingPayment> {
    db.find_payment(new.chain, new.asset, new.authorization.clone()).await.unwrap()
}

async fn guard(home: &DbHome) {
    let clock = FakeClock::at(START);
    let db = home.open(&clock);
    let BeginPaymentOutcome::New(first) = db.begin_payment(payment(1, 5)).await.unwrap() else {
        panic!("known")
    };
    assert_eq!(db.begin_payment(payment(2, 5)).await.unwrap(), BeginPaymentOutcome::Guarded(first));
    assert!(
        matches!(db.begin_payment(payment(3, 25)).await.unwrap(), BeginPaymentOutcome::New(_)),
        "another tier"
    );
    clock.step(Span::from_secs(121));
    let BeginPaymentOutcome::New(second) = db.begin_payment(payment(2, 5)).await.unwrap() else {
        panic!("late")
    };
    assert_eq!(
        db.begin_payment(payment(4, 5)).await.unwrap(),
        BeginPaymentOutcome::Guarded(second)
    );
    db.mark_delivered(second).await.unwrap();
    let BeginPaymentOutcome::New(third) = db.begin_payment(payment(4, 5)).await.unwrap() else {
        panic!("seen")
    };
    db.mark_failed(third, "why".to_owned()).await.unwrap();
    assert!(
        matches!(db.begin_payment(payment(5, 5)).await.unwrap(), BeginPaymentOutcome::New(_)),
        "failed"
    );
}

/// Something that happens to a ledger.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    Pay(u8),
    Settle(u8),
    Fail(u8),
    Hold(i64),
    Charge(usize, i64),
    Release(usize),
    /// Amount in cents, and one of a few names.
    Transfer(i64, u8),
    Refund(u8),
    Crash,
}

/// Any history.
pub(crate) fn history() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        (0_u8..6).prop_map(Event::Pay),
        (0_u8..6).prop_map(Event::Settle),
        (0_u8..6).prop_map(Event::Fail),
        (0_i64..700_000_000).prop_map(Event::Hold),
        (0_usize..8, 0_i64..700_000_000).prop_map(|(at, cost)| Event::Charge(at, cost)),
        (0_usize..8).prop_map(Event::Release),
        (1_i64..700, 0_u8..4).prop_map(|(cents, name)| Event::Transfer(cents, name)),
        (0_u8..6).prop_map(Event::Refund),
        Just(Event::Crash),
    ];
    proptest::collection::vec(event, 0..25)
}

/// The transfer of a transaction of ours.
fn own(n: u8) -> SettledBy {
    SettledBy::transaction(B256::repeat_byte(n))
}

/// Lets a history happen and compares the ledger with a model of it.
pub(crate) async fn play(home: &DbHome, history: Vec<Event>) {
    let clock = FakeClock::at(START);
    let mut db = home.open(&clock);
    let ids = ids(&clock);
    credits::keys(&db).await;
    let mut payments: BTreeMap<u8, (i64, bool)> = BTreeMap::new();
    // What was given away under each name, in cents, and which payments were given back.
    let mut sent: BTreeMap<u8, TransferRecord> = BTreeMap::new();
    let mut refunded: BTreeSet<i64> = BTreeSet::new();
    // Amount, and what was charged once it is closed.
    let mut holds: Vec<(HoldId, i64, Option<i64>)> = Vec::new();
    for event in history {
        match event {
            Event::Pay(n) => match db.begin_payment(payment(n, 5)).await.unwrap() {
                BeginPaymentOutcome::New(id) => {
                    db.mark_delivered(id).await.unwrap();
                    assert!(payments.insert(n, (id, false)).is_none());
                }
                begun => assert_eq!(begun, BeginPaymentOutcome::Known(payments[&n].0)),
            },
            Event::Settle(n) => {
                if let Some((id, credited)) = payments.get_mut(&n) {
                    let now = db.mark_settled(*id, own(n + 1)).await.unwrap();
                    assert_eq!(now, !*credited, "each payment is credited once");
                    *credited = true;
                }
            }
            Event::Fail(n) => {
                if let Some((id, _)) = payments.get(&n) {
                    drop(db.mark_failed(*id, "why".to_owned()).await);
                }
            }
            Event::Hold(amount) => {
                let new = hold(&ids, amount, 0);
                if db.open_hold(new.clone()).await.unwrap() == HoldOutcome::Held {
                    holds.push((new.id, amount, None));
                }
            }
            Event::Charge(at, cost) => {
                if let Some((id, amount, closed)) = holds.get_mut(at) {
                    let charged = db.settle_hold(*id, charge(cost)).await.unwrap().units();
                    assert_eq!(charged, closed.unwrap_or(cost.min(*amount)));
                    *closed = Some(charged);
                }
            }
            Event::Release(at) => {
                if let Some((id, _, closed)) = holds.get_mut(at) {
                    db.release_hold(*id).await.unwrap();
                    closed.get_or_insert(0);
                }
            }
            Event::Transfer(cents, name) => give(&db, &ids, &mut sent, (cents, name)).await,
            Event::Refund(n) => {
                if let Some((id, credited)) = payments.get(&n) {
                    give_back(&db, *id, *credited, &mut refunded).await;
                }
            }
            Event::Crash => {
                drop(db);
                db = home.open(&clock);
                let open = holds.iter().filter(|(_, _, closed)| closed.is_none()).count();
                assert_eq!(db.release_open_holds().await.unwrap(), open as u64);
                for (_, _, closed) in &mut holds {
                    closed.get_or_insert(0);
                }
            }
        }
        let bought = payments.values().filter(|(_, credited)| *credited).count() - refunded.len();
        compare(&db, bought as i64 * 500_000_000, &sent, &holds).await;
    }
}

/// Gives credits away under a name, and compares with what was given under it.
async fn give(db: &Db, ids: &IdGenerator, sent: &mut BTreeMap<u8, TransferRecord>, new: (i64, u8)) {
    let (cents, name) = new;
    let before = balance(db).await.0;
    let new = NewTransfer {
        id: ids.id(),
        key: Hash::of(&[1, 2]),
        from: wallet(1),
        to: wallet(2),
        cents,
        note: None,
        name: Some(name.to_string()),
        usual_ceiling: i64::MAX,
    };
    match (db.transfer(new).await.unwrap(), sent.get(&name)) {
        (TransferOutcome::Done(done), Some(known)) => assert_eq!(done, *known),
        (TransferOutcome::OtherName, Some(known)) => assert_ne!(cents, known.cents),
        (TransferOutcome::Done(done), None) => drop(sent.insert(name, done)),
        (TransferOutcome::Insufficient { available }, None) => {
            assert!(available.units() == before && before < cents * 1_000_000);
        }
        other => panic!("{other:?}"),
    }
}

/// Gives a payment's credits back, and compares with whether it has some.
async fn give_back(db: &Db, id: i64, credited: bool, refunded: &mut BTreeSet<i64>) {
    let before = balance(db).await.0;
    match db.refund(Refund::Payment(id)).await.unwrap() {
        RefundOutcome::Done(_) => assert!(credited && refunded.insert(id)),
        RefundOutcome::Again(_) => assert!(refunded.contains(&id)),
        RefundOutcome::Spent { .. } => assert!(credited && before < 500_000_000),
        RefundOutcome::Unknown => assert!(!credited),
    }
}

/// The books say what the model says, and no account is below nothing.
async fn compare(
    db: &Db,
    bought: i64,
    sent: &BTreeMap<u8, TransferRecord>,
    holds: &[(HoldId, i64, Option<i64>)],
) {
    let given: i64 = sent.values().map(|transfer| transfer.cents * 1_000_000).sum();
    let charged: i64 = holds.iter().filter_map(|(_, _, closed)| *closed).sum();
    let held: i64 =
        holds.iter().filter(|(_, _, closed)| closed.is_none()).map(|(_, amount, _)| amount).sum();
    assert_eq!(balance(db).await, (bought - given - charged - held, held));
    assert_eq!(db.balance(wallet(2)).await.unwrap().available.units(), given);
    let books = db.check_books().await.unwrap();
    let unit = Microcents::new;
    let wanted = LedgerTotals {
        sum: unit(0),
        owed: unit(bought - charged),
        revenue: unit(charged),
        faults: 0,
    };
    assert_eq!(books, wanted);
    assert!(bought - given - charged - held >= 0);
}
