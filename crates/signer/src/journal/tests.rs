//! Tests of the ledger with a real file.

use std::cell::Cell;

use std::sync::atomic::{AtomicI64, Ordering};

use alloy_primitives::address;
use automaton_core::error::Classified as _;
use automaton_core::faults::NoFaults;
use automaton_core::time::{Clock, Span};
use automaton_core::window::{BootClock, CHAIN_STRAY_MAX};

use super::*;
use crate::process::SignerDeps;

mod histories;

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

/// Returns a payment whose bytes depend on the time, so that a second one differs.
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

/// The true time and the clocks in a test: a boot clock that nobody can set, a wall clock that
/// anybody can set, and a chain whose last block has an age.
#[derive(Default)]
struct Clocks {
    true_ms: AtomicI64,
    wall_is_ahead: AtomicI64,
}

impl Clocks {
    fn now(&self) -> i64 {
        self.true_ms.load(Ordering::Relaxed)
    }

    fn pass(&self, span: Span) {
        self.true_ms.fetch_add(span.as_millis(), Ordering::Relaxed);
    }

    fn set_wall(&self, ahead: i64) {
        self.wall_is_ahead.store(ahead, Ordering::Relaxed);
    }

    fn wall(&self) -> Timestamp {
        let ahead = self.wall_is_ahead.load(Ordering::Relaxed);
        Timestamp::from_millis(NOON.as_millis() + self.now() + ahead)
    }

    /// Returns the chain's time if its last block is that old.
    fn chain(&self, age: Span) -> Option<Timestamp> {
        Some(Timestamp::from_millis(NOON.as_millis() + self.now()).before(age))
    }
}

impl BootClock for Clocks {
    fn since_boot(&self) -> Option<Span> {
        Some(Span::from_millis(self.now() + 77_777))
    }
}

impl Clock for Clocks {
    fn now(&self) -> Timestamp {
        self.wall()
    }
}

fn open_in(
    folder: &tempfile::TempDir,
    clocks: &Arc<Clocks>,
    chain: Option<Timestamp>,
) -> Result<SignerLedger, SignerError> {
    let clock = Arc::clone(clocks);
    let boot = Arc::clone(clocks);
    let parts = SignerDeps { clock, boot, faults: Arc::new(NoFaults) };
    let beginning = ClockStart::now(&parts, chain).unwrap();
    SignerLedger::open(&folder.path().join("ledger.db"), parts.faults, beginning)
}

fn usdc(units: u64) -> MicroUsdc {
    MicroUsdc::new(units)
}

/// Returns a change of all ceilings.
fn all(limits: SigningLimits) -> SigningLimitsChange {
    SigningLimitsChange {
        per_payment: Some(limits.per_payment),
        per_hour: Some(limits.per_hour),
        per_day: Some(limits.per_day),
        per_payee: Some(limits.per_payee),
        lifetime: Some(limits.lifetime),
        payments_max: Some(limits.payments_max),
    }
}

fn set(journal: &mut SignerLedger, to: SigningLimitsChange) -> Result<(), SignerRefusal> {
    journal.change(to, |_| Ok(()))
}

struct Bench {
    folder: tempfile::TempDir,
    clocks: Arc<Clocks>,
    journal: SignerLedger,
    signed: Cell<u32>,
}

impl Bench {
    /// Opens a ledger with one ceiling for hour, day and payee.
    fn new(per_payment: u64, per_day: u64, payments_max: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clocks = Arc::<Clocks>::default();
        let mut journal = open_in(&folder, &clocks, clocks.chain(Span::ZERO)).unwrap();
        let day = usdc(per_day);
        let limits = SigningLimits {
            per_payment: usdc(per_payment),
            per_hour: day,
            per_day: day,
            per_payee: day,
            lifetime: usdc(1_000_000),
            payments_max,
        };
        set(&mut journal, all(limits)).unwrap();
        Self { folder, clocks, journal, signed: Cell::new(0) }
    }

    fn restart(&mut self, chain: Option<Timestamp>) {
        self.journal = open_in(&self.folder, &self.clocks, chain).unwrap();
    }

    fn pay(&mut self, intent: &PaymentIntent) -> Result<ExactPayload, SignerRefusal> {
        let signed = &self.signed;
        let now = self.clocks.wall();
        self.journal.pay(PAYER, intent, now, || {
            signed.set(signed.get() + 1);
            Ok(payment(intent, now))
        })
    }

    fn code(&mut self, number: u32, amount: u64) -> Option<SignerRefusalCode> {
        self.pay(&intent(number, amount)).err().map(|refusal| refusal.code)
    }

    fn spent(&mut self) -> SpendingTotals {
        self.journal.status(self.clocks.wall()).unwrap().spent
    }
}

#[test]
fn a_new_ledger_has_cautious_ceilings() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open_in(&folder, &Arc::default(), None).unwrap();
    let SignerStatus { limits, spent, .. } = journal.status(NOON).unwrap();
    assert_eq!(limits.per_payment.to_string(), "25.00 USDC");
    let fifty = usdc(50_000_000);
    assert_eq!((limits.per_hour, limits.per_day, limits.per_payee), (fifty, fifty, fifty));
    assert_eq!(limits.lifetime.to_string(), "250000.00 USDC");
    assert_eq!(limits.payments_max, 10_000);
    assert_eq!(spent, SpendingTotals::default());
}

#[test]
fn a_ledger_is_for_one_chain_when_all_that_it_may_sign_for_is_there() {
    let mut bench = Bench::new(100, 100, 10);
    let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
    bench.journal.admit(bench.folder.path(), &lines(&["token 31337 0xaa \"a b\" \"2\""])).unwrap();
    assert!(bench.journal.permits_only_chain(31337) && !bench.journal.permits_only_chain(8453));
    let other = lines(&["call 8453 0xbb 0x00"]);
    bench.journal.admit(bench.folder.path(), &other).unwrap_err();
    bench.journal.accept(rules::hash(&other)).unwrap();
    assert!(!bench.journal.permits_only_chain(31337));
}

#[test]
fn a_restored_ledger_counts_its_ceilings_as_used_for_an_hour_and_a_day() {
    let mut bench = Bench::new(100, 100, 10);
    assert_eq!(bench.code(1, 60), None);
    // The backup is three days old, and nobody knows the payments signed since.
    bench.clocks.pass(Span::from_secs(3 * 86_400));
    let wall = bench.clocks.wall();
    bench.journal.mark_ceilings_used(wall).unwrap();
    bench.clocks.pass(Span::from_secs(600));
    bench.restart(bench.clocks.chain(Span::ZERO));
    assert_eq!(bench.code(2, 1), Some(SignerRefusalCode::PerDay));
    let spent = bench.spent();
    assert_eq!((spent.hour, spent.day, spent.payee), (usdc(100), usdc(100), usdc(100)));
    assert_eq!((spent.ever, spent.payments), (usdc(60), 1), "what is for ever is not guessed");
    assert_eq!(bench.pay(&intent(1, 60)).unwrap().authorization.value, U256::from(60));

    // The creator can raise the ceilings at once. New payments count on top.
    let more = SigningLimitsChange {
        per_hour: Some(usdc(150)),
        per_day: Some(usdc(150)),
        per_payee: Some(usdc(150)),
        ..SigningLimitsChange::default()
    };
    set(&mut bench.journal, more).unwrap();
    assert_eq!(bench.code(3, 50), None);
    assert_eq!(bench.code(4, 1), Some(SignerRefusalCode::PerDay));
    bench.clocks.pass(Span::from_secs(3700));
    assert_eq!(bench.spent().hour, MicroUsdc::ZERO);
    assert_eq!(bench.code(5, 1), Some(SignerRefusalCode::PerDay));
    bench.clocks.pass(Span::from_secs(86_400));
    assert_eq!(bench.code(6, 100), None);
    assert_eq!(bench.spent().ever, usdc(210));
}

#[expect(clippy::disallowed_methods, reason = "an older program opened it so")]
fn raw(path: &Path) -> Connection {
    Connection::open(path).unwrap()
}

/// Returns the tables and columns of a ledger, and its other objects.
fn shape(path: &Path) -> Vec<(String, String)> {
    let connection = open(path, &SCHEMA).unwrap();
    let mut select = connection
        .prepare(
            "SELECT m.name, coalesce(group_concat(c.name || c.type || c.\"notnull\" || c.pk), '') \
             FROM sqlite_schema AS m LEFT JOIN pragma_table_info(m.name) AS c \
             GROUP BY m.name ORDER BY m.name",
        )
        .unwrap();
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

#[test]
fn a_ledger_of_the_old_form_is_carried_over_with_its_ceilings_and_all_it_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    raw(&path).execute_batch(include_str!("../../tests/ledger_5.sql")).unwrap();
    let clocks = Arc::<Clocks>::default();
    // Once with the old form, once with the current one.
    for _ in 0..2 {
        let mut journal = open_in(&folder, &clocks, clocks.chain(Span::ZERO)).unwrap();
        let SignerStatus { limits, spent, serial, permits, .. } =
            journal.status(clocks.wall()).unwrap();
        assert_eq!((limits.per_payment, limits.per_hour), (usdc(300), usdc(500)));
        assert_eq!((limits.per_day, limits.per_payee), (usdc(700), usdc(600)));
        assert_eq!((limits.lifetime, limits.payments_max), (usdc(900), 9));
        assert_eq!((spent.ever, spent.day, spent.payments), (usdc(70), usdc(70), 1));
        assert_eq!((serial, permits.len()), (4, 1));
    }
    let new = folder.path().join("new.db");
    drop(open(&new, &SCHEMA).unwrap());
    assert_eq!(shape(&path), shape(&new), "its tables are those of today");
}

#[test]
fn an_older_ledger_is_refused_and_nobody_is_told_to_delete_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    raw(&path).execute_batch("CREATE TABLE limits (id); PRAGMA user_version = 4").unwrap();
    let error = open_in(&folder, &Arc::default(), None).err().unwrap();
    let hint = error.hint().unwrap();
    assert!(hint.contains("writes version 5") && hint.contains("Do not delete it"), "{hint}");
}

#[test]
fn the_same_intent_gets_the_same_bytes_and_counts_once() {
    let mut bench = Bench::new(100, 100, 1);
    let first = bench.pay(&intent(1, 100)).unwrap();
    for hours in [0, 1, 48] {
        bench.clocks.pass(Span::from_secs(hours * 3600));
        bench.restart(None);
        assert_eq!(bench.pay(&intent(1, 100)).unwrap(), first);
    }
    assert_eq!(bench.signed.get(), 1);
    let counted =
        SpendingTotals { hour: HUNDRED, day: HUNDRED, payee: HUNDRED, ever: HUNDRED, payments: 1 };
    assert_eq!(bench.spent(), counted);
}

#[test]
fn the_same_intent_with_other_content_is_a_conflict() {
    let mut bench = Bench::new(100, 1000, 10);
    bench.pay(&intent(1, 100)).unwrap();
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
        assert_eq!(bench.pay(&other).unwrap_err().code, SignerRefusalCode::Conflict, "{other:?}");
    }
    // The key of another wallet in the same home.
    let same = intent(1, 100);
    let other = bench.journal.pay(PAYEE, &same, NOON, || Ok(payment(&same, NOON)));
    assert_eq!(other.unwrap_err().code, SignerRefusalCode::Conflict);
    assert_eq!(bench.signed.get(), 1);
}

#[test]
fn each_ceiling_holds_to_the_unit() {
    let mut bench = Bench::new(100, 150, 3);
    assert_eq!(bench.code(1, 101), Some(SignerRefusalCode::PerPayment));
    assert_eq!(bench.code(2, 100), None);
    assert_eq!(bench.code(3, 51), Some(SignerRefusalCode::PerDay));
    assert_eq!(bench.code(4, 50), None);
    assert_eq!(bench.code(5, 1), Some(SignerRefusalCode::PerDay));
    bench.clocks.pass(Span::from_millis(DAY.as_millis() - 1));
    assert_eq!(bench.code(6, 1), Some(SignerRefusalCode::PerDay));
    bench.clocks.pass(Span::from_millis(1));
    assert_eq!(bench.code(7, 100), None);
    assert_eq!(bench.code(8, 1), Some(SignerRefusalCode::Count));
    assert_eq!(bench.signed.get(), 3, "what is refused must not be signed");
}

#[test]
fn an_hour_a_payee_and_a_life_have_ceilings_of_their_own() {
    let mut bench = Bench::new(100, 1000, 100);
    let to = SigningLimitsChange { per_hour: Some(usdc(150)), ..SigningLimitsChange::default() };
    set(&mut bench.journal, to).unwrap();
    assert_eq!((bench.code(1, 100), bench.code(2, 51)), (None, Some(SignerRefusalCode::PerHour)));
    bench.clocks.pass(Span::from_millis(HOUR.as_millis() - 1));
    assert_eq!(bench.code(3, 51), Some(SignerRefusalCode::PerHour));
    bench.clocks.pass(Span::from_millis(1));
    assert_eq!(bench.code(4, 100), None);

    let to = SigningLimitsChange { per_payee: Some(usdc(210)), ..SigningLimitsChange::default() };
    set(&mut bench.journal, to).unwrap();
    assert_eq!(bench.code(5, 11), Some(SignerRefusalCode::PerPayee));
    let other = PaymentIntent { payee: PAYER, ..intent(6, 11) };
    bench.pay(&other).unwrap();
    assert_eq!((bench.spent().payee, bench.spent().day), (usdc(200), usdc(211)));
    assert_eq!(bench.code(7, 10), None);

    let to = SigningLimitsChange { lifetime: Some(usdc(230)), ..SigningLimitsChange::default() };
    set(&mut bench.journal, to).unwrap();
    bench.clocks.pass(Span::from_secs(10 * 86_400));
    assert_eq!(bench.code(8, 10), Some(SignerRefusalCode::Lifetime));
    assert_eq!((bench.code(9, 9), bench.code(10, 1)), (None, Some(SignerRefusalCode::Lifetime)));
}

#[test]
fn two_tokens_share_the_ceilings_at_face_value() {
    let mut bench = Bench::new(150, 150, 10);
    assert_eq!(bench.code(1, 150), None);
    let other = PaymentIntent { asset: PAYEE, ..intent(2, 1) };
    assert_eq!(bench.pay(&other).unwrap_err().code, SignerRefusalCode::PerDay);
}

#[test]
fn no_clock_that_is_set_frees_anything() {
    let mut bench = Bench::new(100, 100, 10);
    assert_eq!(bench.code(1, 100), None);
    for days in [-400, -1, 1, 2, 400] {
        bench.clocks.set_wall(days * DAY.as_millis());
        assert_eq!(bench.code(2, 1), Some(SignerRefusalCode::PerDay), "{days} days");
        // A restart does not help either: the chain reports that no time has passed, or nothing.
        for chain in [bench.clocks.chain(Span::ZERO), None] {
            bench.restart(chain);
            assert_eq!(bench.code(2, 1), Some(SignerRefusalCode::PerDay), "{days} days, {chain:?}");
        }
    }
}

#[test]
fn a_restart_adds_what_both_witnesses_confirm() {
    let almost = CHAIN_STRAY_MAX.as_millis() - 1;
    for (chain_stands, wall_back, more, freed) in [
        (false, 0, almost + 1, true),
        // A difference that a block may have from true time is not counted.
        (false, 0, almost, false),
        (true, 0, DAY.as_millis(), false),
        (false, 1, CHAIN_STRAY_MAX.as_millis(), true),
        (false, DAY.as_millis(), DAY.as_millis(), true),
        (false, DAY.as_millis(), DAY.as_millis() - 1, false),
    ] {
        let mut bench = Bench::new(100, 100, 10);
        assert_eq!(bench.code(1, 100), None);
        let then = bench.clocks.chain(Span::ZERO);
        bench.clocks.pass(Span::from_millis(DAY.as_millis() + more));
        bench.clocks.set_wall(-wall_back);
        bench.restart(if chain_stands { then } else { bench.clocks.chain(Span::ZERO) });
        let expected = (!freed).then_some(SignerRefusalCode::PerDay);
        assert_eq!(bench.code(2, 1), expected, "{chain_stands} {wall_back} {more}");
    }
}

#[test]
fn a_first_chain_is_a_witness_for_the_next_start() {
    let mut bench = Bench::new(100, 100, 10);
    bench.restart(None);
    assert_eq!(bench.code(1, 100), None);
    bench.clocks.pass(Span::from_secs(3 * 86_400));
    bench.restart(bench.clocks.chain(Span::ZERO));
    assert_eq!(bench.code(2, 1), Some(SignerRefusalCode::PerDay));
    bench.clocks.pass(Span::from_secs(2 * 86_400));
    bench.restart(bench.clocks.chain(Span::ZERO));
    assert_eq!(bench.code(2, 1), None);
}

#[test]
fn starts_between_two_payments_lose_no_time() {
    let mut bench = Bench::new(100, 100, 10);
    assert_eq!(bench.code(1, 100), None);
    for _ in 0..4 {
        bench.clocks.pass(Span::from_secs(6 * 3600));
        bench.restart(bench.clocks.chain(Span::ZERO));
    }
    assert_eq!(bench.code(2, 1), Some(SignerRefusalCode::PerDay));
    bench.clocks.pass(CHAIN_STRAY_MAX);
    assert_eq!(bench.code(2, 1), None, "a block's stray counts once");
}

#[test]
fn a_message_is_the_creators_for_the_wallet_and_its_next_serial() {
    let mut bench = Bench::new(100, 100, 10);
    let to = SigningLimitsChange { per_day: Some(usdc(700)), ..SigningLimitsChange::default() };
    assert_eq!(bench.journal.message(&to).unwrap(), None);
    bench.journal.set_wallet(PAYER).unwrap();
    assert_eq!(bench.journal.message(&to).unwrap(), None, "nobody may sign it");
    bench.journal.set_creator(PAYEE).unwrap();
    let serial = bench.journal.status(NOON).unwrap().serial;
    let text = message(PAYER, serial, &to);
    assert_eq!(bench.journal.message(&to).unwrap(), Some((PAYEE, text)));
}

#[test]
fn ceilings_can_be_lowered_below_what_is_spent() {
    let mut bench = Bench::new(100, 100, 10);
    assert_eq!(bench.code(1, 60), None);
    let limits = bench.journal.status(NOON).unwrap().limits;
    let fifty = MicroUsdc::new(50);
    let lower = SigningLimitsChange { per_day: Some(fifty), ..SigningLimitsChange::default() };
    set(&mut bench.journal, lower).unwrap();
    let changed = bench.journal.status(NOON).unwrap();
    assert_eq!(changed.limits, SigningLimits { per_day: fifty, ..limits }, "the others stay");
    assert_eq!(bench.code(2, 1), Some(SignerRefusalCode::PerDay));
    let absurd =
        SigningLimitsChange { payments_max: Some(u64::MAX), ..SigningLimitsChange::default() };
    assert_eq!(set(&mut bench.journal, absurd).unwrap_err().code, SignerRefusalCode::Ledger);
    bench.restart(None);
    assert_eq!(bench.journal.status(NOON).unwrap(), changed);
}

#[test]
fn a_payment_that_cannot_be_signed_is_not_counted() {
    let mut bench = Bench::new(100, 100, 10);
    let refuse = || Err(SignerRefusal::new(SignerRefusalCode::Asset, "unknown"));
    let refused = bench.journal.pay(PAYER, &intent(1, 100), NOON, refuse);
    assert_eq!(refused.unwrap_err().code, SignerRefusalCode::Asset);
    assert_eq!(bench.journal.status(NOON).unwrap().spent, SpendingTotals::default());
    assert_eq!(bench.code(1, 100), None);
}

#[test]
fn a_ledger_that_cannot_be_written_signs_nothing_that_leaves() {
    let mut bench = Bench::new(100, 100, 10);
    bench.journal.connection.pragma_update(None, "query_only", true).unwrap();
    assert_eq!(bench.code(1, 1), Some(SignerRefusalCode::Ledger));
    bench.journal.connection.pragma_update(None, "query_only", false).unwrap();
    assert_eq!(bench.journal.status(NOON).unwrap().spent, SpendingTotals::default());
    assert_eq!(bench.code(1, 1), None);
}

#[test]
fn a_full_disk_is_a_refusal_and_passes() {
    let mut bench = Bench::new(100, 100_000, 10_000);
    let pages: u32 =
        bench.journal.connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    bench.journal.connection.pragma_update(None, "max_page_count", pages).unwrap();
    let refused = (1..9999).map(|number| (number, bench.code(number, 1)));
    let (number, code) = { refused }.find(|(_, code)| code.is_some()).unwrap();
    assert_eq!(code, Some(SignerRefusalCode::NoRoom));
    bench.journal.connection.pragma_update(None, "max_page_count", pages + 100).unwrap();
    assert_eq!(bench.code(number, 1), None);
    let spent = bench.spent();
    assert_eq!((spent.day.units(), spent.payments), (number.into(), number.into()));
}

#[test]
fn only_accepted_rules_are_admitted() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open_in(&folder, &Arc::default(), None).unwrap();
    let lines =
        |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect::<rules::RuleLines>();
    let home = Path::new("/h");
    // A start without permits pins nothing.
    journal.admit(home, &lines(&[])).unwrap();
    journal.admit(home, &lines(&["token a", "token b"])).unwrap();
    for fewer in [&["token a"][..], &[], &["token a", "token b"]] {
        journal.admit(home, &lines(fewer)).unwrap();
    }
    let more = lines(&["token a", "token c", "token d"]);
    let refusal = journal.admit(home, &more).unwrap_err();
    assert_eq!(refusal.code, SignerRefusalCode::Rules);
    let hash = rules::hash(&lines(&["token c", "token d"]));
    let told = format!("token c, token d; `automaton limits accept {hash} --signer /h` accepts it");
    assert!(refusal.reason.ends_with(&told), "{refusal}");
    let standing = journal.status(NOON).unwrap();
    assert_eq!((standing.asked, standing.asked_for.len()), (Some(hash), 2));

    // A hash that was not shown is not accepted.
    assert_eq!(journal.accept(rules::hash(&more)).unwrap_err().code, SignerRefusalCode::Rules);
    assert!(journal.admit(home, &more).is_err());
    journal.accept(hash).unwrap();
    journal.admit(home, &more).unwrap();
    assert_eq!(journal.accept(hash).unwrap_err().code, SignerRefusalCode::Rules);
    let after = journal.status(NOON).unwrap();
    assert_eq!((after.permits.len(), after.asked), (4, None));
    assert_ne!(after.rules, standing.rules);
    // Permits that are no longer asked for are forgotten.
    journal.admit(home, &lines(&["token e"])).unwrap_err();
    journal.admit(home, &more).unwrap();
    assert!(journal.accept(rules::hash(&lines(&["token e"]))).is_err());
}
