//! The ledger against what it promises, over a real file.

use std::cell::Cell;

use alloy_primitives::address;
use automaton_core::faults::NoFaults;
use automaton_core::time::Span;
use proptest::prelude::*;

use super::*;

const PAYER: Address = address!("f39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
const PAYEE: Address = address!("70997970C51812dc3A010C7d01b50e0d17dc79C8");
const HUNDRED: MicroUsdc = MicroUsdc::new(100);
const NOON: Timestamp = Timestamp::from_millis(1_767_355_200_000);

fn intent(number: u32, amount: u64) -> PaymentIntent {
    PaymentIntent {
        intent: format!("0000000000000000000000{number:04}").parse().unwrap(),
        chain_id: 8453,
        asset: crate::payload::usdc().contract,
        payee: PAYEE,
        amount: MicroUsdc::new(amount),
        deadline_s: 300,
    }
}

/// A payment whose bytes tell when it was made, so that a second one differs.
fn payment(intent: &PaymentIntent, now: Timestamp) -> ExactPayload {
    let stamp = now.as_millis().unsigned_abs();
    let mut signature = [7; 65];
    signature[..8].copy_from_slice(&stamp.to_be_bytes());
    ExactPayload {
        authorization: Authorization {
            from: PAYER,
            to: intent.payee,
            value: U256::from(intent.amount.units()),
            valid_after: U256::from(stamp / 1000),
            valid_before: U256::from(stamp / 1000 + u64::from(intent.deadline_s)),
            nonce: crate::payload::nonce(PAYER, intent.chain_id, intent.intent),
        },
        signature: signature.into(),
    }
}

fn open_in(folder: &tempfile::TempDir) -> Result<Journal, SqliteError> {
    Journal::open(&folder.path().join("ledger.db"), Arc::new(NoFaults))
}

/// A change of all ceilings.
fn all(limits: Limits) -> Change {
    let Limits { per_payment, per_day, payments_max } = limits;
    Change {
        per_payment: Some(per_payment),
        per_day: Some(per_day),
        payments_max: Some(payments_max),
    }
}

struct Bench {
    folder: tempfile::TempDir,
    journal: Journal,
    signed: Cell<u32>,
}

impl Bench {
    fn new(per_payment: u64, per_day: u64, payments_max: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = open_in(&folder).unwrap();
        let (per_payment, per_day) = (MicroUsdc::new(per_payment), MicroUsdc::new(per_day));
        journal.change(all(Limits { per_payment, per_day, payments_max }), NOON).unwrap();
        Self { folder, journal, signed: Cell::new(0) }
    }

    fn restart(&mut self) {
        self.journal = open_in(&self.folder).unwrap();
    }

    fn pay(&mut self, intent: &PaymentIntent, now: Timestamp) -> Result<ExactPayload, Refusal> {
        let signed = &self.signed;
        self.journal.pay(PAYER, intent, now, || {
            signed.set(signed.get() + 1);
            Ok(payment(intent, now))
        })
    }

    fn code(&mut self, number: u32, amount: u64, now: Timestamp) -> Option<Code> {
        self.pay(&intent(number, amount), now).err().map(|refusal| refusal.code)
    }
}

#[test]
fn a_new_ledger_has_cautious_ceilings() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open_in(&folder).unwrap();
    let standing = journal.standing(NOON).unwrap();
    assert_eq!(standing.limits.per_payment.to_string(), "25.00 USDC");
    assert_eq!(standing.limits.per_day.to_string(), "50.00 USDC");
    assert_eq!(standing.limits.payments_max, 10_000);
    assert_eq!(standing.spent, Spent::default());
}

#[test]
fn the_same_intent_gets_the_same_bytes_and_counts_once() {
    let mut bench = Bench::new(100, 100, 1);
    let first = bench.pay(&intent(1, 100), NOON).unwrap();
    for hours in [0, 1, 48] {
        bench.restart();
        let later = NOON.after(Span::from_secs(hours * 3600));
        assert_eq!(bench.pay(&intent(1, 100), later).unwrap(), first);
    }
    assert_eq!(bench.signed.get(), 1);
    let standing = bench.journal.standing(NOON).unwrap();
    assert_eq!(standing.spent, Spent { day: HUNDRED, ever: HUNDRED, payments: 1 });
}

#[test]
fn the_same_intent_with_other_content_is_a_conflict() {
    let mut bench = Bench::new(100, 1000, 10);
    bench.pay(&intent(1, 100), NOON).unwrap();
    let changes: [fn(&mut PaymentIntent); 5] = [
        |it| it.amount = MicroUsdc::new(99),
        |it| it.payee = PAYER,
        |it| it.asset = PAYER,
        |it| it.chain_id = 1,
        |it| it.deadline_s = 301,
    ];
    for change in changes {
        let mut other = intent(1, 100);
        change(&mut other);
        assert_eq!(bench.pay(&other, NOON).unwrap_err().code, Code::Conflict, "{other:?}");
    }
    // The key of another wallet in the same home.
    let same = intent(1, 100);
    let other = bench.journal.pay(PAYEE, &same, NOON, || Ok(payment(&same, NOON)));
    assert_eq!(other.unwrap_err().code, Code::Conflict);
    assert_eq!(bench.signed.get(), 1);
}

#[test]
fn each_ceiling_holds_to_the_unit() {
    let mut bench = Bench::new(100, 150, 3);
    assert_eq!(bench.code(1, 101, NOON), Some(Code::PerPayment));
    assert_eq!(bench.code(2, 100, NOON), None);
    assert_eq!(bench.code(3, 51, NOON), Some(Code::PerDay));
    assert_eq!(bench.code(4, 50, NOON), None);
    assert_eq!(bench.code(5, 1, NOON), Some(Code::PerDay));
    let tomorrow = NOON.after(DAY);
    assert_eq!(bench.code(6, 1, tomorrow.before(Span::from_millis(1))), Some(Code::PerDay));
    assert_eq!(bench.code(7, 100, tomorrow), None);
    assert_eq!(bench.code(8, 1, tomorrow), Some(Code::Count));
    assert_eq!(bench.signed.get(), 3, "what is refused must not be signed");
}

#[test]
fn two_tokens_share_the_ceilings_at_face_value() {
    let mut bench = Bench::new(150, 150, 10);
    assert_eq!(bench.code(1, 150, NOON), None);
    let other = PaymentIntent { asset: PAYEE, ..intent(2, 1) };
    assert_eq!(bench.pay(&other, NOON).unwrap_err().code, Code::PerDay);
}

#[test]
fn a_clock_set_back_frees_nothing() {
    let mut bench = Bench::new(100, 100, 10);
    assert_eq!(bench.code(1, 100, NOON), None);
    for days in [1, 2, 400] {
        let back = NOON.before(Span::from_secs(days * 86_400));
        assert_eq!(bench.code(2, 1, back), Some(Code::PerDay), "{days} days back");
    }
    // Counted while the clock is back, a payment counts from the ledger's time on.
    let mut bench = Bench::new(100, 100, 10);
    assert_eq!(bench.code(1, 50, NOON), None);
    assert_eq!(bench.code(2, 50, NOON.before(DAY)), None);
    assert_eq!(bench.code(3, 1, NOON.after(Span::from_secs(3600))), Some(Code::PerDay));
}

#[test]
fn ceilings_can_be_lowered_below_what_is_spent() {
    let mut bench = Bench::new(100, 100, 10);
    assert_eq!(bench.code(1, 60, NOON), None);
    let limits = bench.journal.standing(NOON).unwrap().limits;
    let fifty = MicroUsdc::new(50);
    let lower = Change { per_day: Some(fifty), ..Change::default() };
    let changed = bench.journal.change(lower, NOON).unwrap();
    assert_eq!(changed.limits, Limits { per_day: fifty, ..limits }, "the others stay");
    assert_eq!(bench.code(2, 1, NOON), Some(Code::PerDay));
    let absurd = Change { payments_max: Some(u64::MAX), ..Change::default() };
    assert_eq!(bench.journal.change(absurd, NOON).unwrap_err().code, Code::Ledger);
    bench.restart();
    assert_eq!(bench.journal.standing(NOON).unwrap(), changed);
}

#[test]
fn a_payment_that_cannot_be_signed_is_not_counted() {
    let mut bench = Bench::new(100, 100, 10);
    let refuse = || Err(Refusal::new(Code::Asset, "unknown"));
    let refused = bench.journal.pay(PAYER, &intent(1, 100), NOON, refuse);
    assert_eq!(refused.unwrap_err().code, Code::Asset);
    assert_eq!(bench.journal.standing(NOON).unwrap().spent, Spent::default());
    assert_eq!(bench.code(1, 100, NOON), None);
}

#[test]
fn a_ledger_that_cannot_be_written_signs_nothing_that_leaves() {
    let mut bench = Bench::new(100, 100, 10);
    bench.journal.connection.pragma_update(None, "query_only", true).unwrap();
    assert_eq!(bench.code(1, 1, NOON), Some(Code::Ledger));
    bench.journal.connection.pragma_update(None, "query_only", false).unwrap();
    assert_eq!(bench.journal.standing(NOON).unwrap().spent, Spent::default());
    assert_eq!(bench.code(1, 1, NOON), None);
}

#[test]
fn a_full_disk_is_a_refusal_and_passes() {
    let mut bench = Bench::new(100, 100_000, 10_000);
    let pages: u32 =
        bench.journal.connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    bench.journal.connection.pragma_update(None, "max_page_count", pages).unwrap();
    let refused = (1..9999).map(|number| (number, bench.code(number, 1, NOON)));
    let (number, code) = { refused }.find(|(_, code)| code.is_some()).unwrap();
    assert_eq!(code, Some(Code::Ledger));
    bench.journal.connection.pragma_update(None, "max_page_count", pages + 100).unwrap();
    assert_eq!(bench.code(number, 1, NOON), None);
    let spent = bench.journal.standing(NOON).unwrap().spent;
    assert_eq!((spent.day.units(), spent.payments), (number.into(), number.into()));
}

#[derive(Debug, Clone)]
enum Step {
    Pay { number: u32, amount: u64 },
    Clock { minutes: i64 },
    Limits(Limits),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let limits = (0..120_u64, 0..300_u64, 0..40_u64).prop_map(|(per_payment, per_day, max)| {
        let (per_payment, per_day) = (MicroUsdc::new(per_payment), MicroUsdc::new(per_day));
        Step::Limits(Limits { per_payment, per_day, payments_max: max })
    });
    prop_oneof![
        8 => (0..30_u32, 1..100_u64).prop_map(|(number, amount)| Step::Pay { number, amount }),
        3 => (-3000..3000_i64).prop_map(|minutes| Step::Clock { minutes }),
        1 => limits,
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The ledger against a list: what it permits is what fits, whatever happens.
    #[test]
    fn no_ceiling_is_ever_exceeded(steps in prop::collection::vec(step(), 1..60)) {
        let mut bench = Bench::new(80, 200, 20);
        let mut limits = bench.journal.standing(NOON).unwrap().limits;
        let mut clock = NOON;
        let mut paid: Vec<(PaymentIntent, ExactPayload, Timestamp)> = Vec::new();
        for step in steps {
            match step {
                Step::Restart => bench.restart(),
                Step::Clock { minutes } => {
                    clock = Timestamp::from_millis(clock.as_millis() + minutes * 60_000);
                }
                Step::Limits(to) => {
                    bench.journal.change(all(to), clock).unwrap();
                    limits = to;
                }
                Step::Pay { number, amount } => {
                    let asked = intent(number, amount);
                    let at = paid.iter().map(|it| it.2).max().map_or(clock, |last| clock.max(last));
                    let counted = paid.iter().filter(|it| it.2 > at.before(DAY));
                    let day: u64 = counted.map(|it| it.0.amount.units()).sum();
                    let fits = amount <= limits.per_payment.units()
                        && day + amount <= limits.per_day.units()
                        && u64::try_from(paid.len()).unwrap() < limits.payments_max;
                    let before = paid.iter().find(|it| it.0.intent == asked.intent);
                    match (bench.pay(&asked, clock), before) {
                        (Ok(got), Some((same, first, _))) => {
                            prop_assert_eq!(&got, first);
                            prop_assert_eq!(same, &asked);
                        }
                        (Err(refusal), Some((other, ..))) => {
                            prop_assert_eq!(refusal.code, Code::Conflict);
                            prop_assert_ne!(other, &asked);
                        }
                        (Ok(got), None) => {
                            prop_assert!(fits, "{} over {:?} after {}", amount, limits, day);
                            paid.push((asked, got, at));
                        }
                        (Err(_), None) => prop_assert!(!fits),
                    }
                }
            }
        }
        let ever = MicroUsdc::new(paid.iter().map(|it| it.0.amount.units()).sum());
        prop_assert_eq!(bench.journal.standing(clock).unwrap().spent.ever, ever);
        prop_assert_eq!(usize::try_from(bench.signed.get()).unwrap(), paid.len());
    }
}
