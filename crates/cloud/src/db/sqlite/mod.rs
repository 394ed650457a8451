//! The cloud's database in a file: SQLite, one writer, synced at each commit.
//!
//! Each file here has the statements of some use cases; which transaction is
//! which is written down once, below. No connection may be opened elsewhere.

mod access;
mod credits;
mod holds;
mod ledger;
mod machines;
mod nonces;
mod payments;
mod status;
mod writer;

use std::path::Path;
use std::sync::Arc;

use alloy_primitives::{Address, B256};
use automaton_core::id::{HoldId, TransactionId};
use automaton_core::money::Microcents;
use automaton_core::time::Clock;
use automaton_core::wire::cloud::{CallReply, RegistrationRequest, StatusReply, StatusReport};
use automaton_core::wire::x402::Authorization;
use automaton_sqlite::chain::Hash;
use automaton_sqlite::{CommitHook, Migration, Schema, Writer, WriterHooks};
use rusqlite::{Connection, Row};

use super::{
    Balance, BeginPaymentOutcome, Ceiling, CeilingOutcome, DbError, Fees, HoldOutcome,
    IncomingPayment, KeyOutcome, LedgerEntry, LedgerTotals, NewHold, NewIncomingPayment, NewKey,
    NewNonceReservation, NewTransfer, NonceReservation, PageRange, Refund, RefundOutcome,
    RegisterOutcome, SaleRecord, SettledBy, SignInAttempt, SignInOutcome, Submission,
    TransactionEnd, TransferCeilingChange, TransferOutcome, UnclaimedCredits,
};
use crate::billing::price::Charge;
use writer::DbWriter;

/// The schema, step by step, of databases with the id `AUTC`.
const SCHEMA: Schema = Schema::new(
    0x4155_5443,
    &[Migration::new(1, "init", include_str!("../../../migrations/0001_init.sql"))],
);

/// The database in a file. Cheap to clone.
#[derive(Clone)]
pub struct Db {
    writer: DbWriter,
    was_closed_cleanly: bool,
}

impl Db {
    /// Opens the database, makes or migrates it. Blocks while it is checked, which it is
    /// after an end that was none of its own.
    ///
    /// # Errors
    /// [`DbError::Database`] when the file is damaged, foreign or out of reach.
    pub fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, DbError> {
        let was_closed_cleanly = automaton_sqlite::ended_well(path);
        let writer = Writer::start(connect(path)?, "cloud-writer", WriterHooks::default())?;
        Ok(Self { writer: DbWriter { writer, clock }, was_closed_cleanly })
    }

    /// The same without a thread, for a simulation: each transaction runs where it
    /// is asked for, and blocks there. Tells `synced` whenever everything that was
    /// committed is on the disk.
    ///
    /// # Errors
    /// As [`Db::open`].
    pub fn open_here(
        path: &Path,
        clock: Arc<dyn Clock>,
        synced: CommitHook,
    ) -> Result<Self, DbError> {
        let was_closed_cleanly = automaton_sqlite::ended_well(path);
        let hooks = WriterHooks { faults: None, synced: Some(synced) };
        let writer = Writer::in_caller(connect(path)?, hooks);
        Ok(Self { writer: DbWriter { writer, clock }, was_closed_cleanly })
    }
}

fn connect(path: &Path) -> Result<Connection, DbError> {
    let connection = automaton_sqlite::open(path, &SCHEMA)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

impl Db {
    /// Returns the server's own secret. Stores `fresh` as the secret if there is none yet.
    pub async fn secret(&self, fresh: [u8; 32]) -> Result<[u8; 32], DbError> {
        self.writer.run("read the server's secret", move |tx| access::secret(tx, fresh)).await
    }

    /// Uses up a nonce that this cloud issued and stores the token granted for it, or does neither.
    pub async fn sign_in(&self, attempt: SignInAttempt) -> Result<SignInOutcome, DbError> {
        self.writer.run("sign a wallet in", move |tx| access::sign_in(tx, &attempt)).await
    }

    /// Stores the one API key of an access token.
    pub async fn create_api_key(&self, key: NewKey) -> Result<KeyOutcome, DbError> {
        self.writer.run("store an API key", move |tx| access::create_api_key(tx, &key)).await
    }

    /// Returns the wallet whose API key has this hash.
    pub async fn key_owner(&self, hash: Hash) -> Result<Option<Address>, DbError> {
        self.writer.run("find an API key", move |tx| access::key_owner(tx, &hash)).await
    }

    /// Registers an automaton whose registration has been verified.
    pub async fn register(
        &self,
        wallet: Address,
        row: RegistrationRequest,
    ) -> Result<RegisterOutcome, DbError> {
        self.writer.run("register an automaton", move |tx| access::register(tx, wallet, &row)).await
    }

    /// Stores the status that an automaton reports, replacing the one before.
    pub async fn report_status(
        &self,
        wallet: Address,
        report: StatusReport,
    ) -> Result<(), DbError> {
        self.writer.run("store a status", move |tx| status::report(tx, wallet, &report)).await
    }

    /// Returns the last status of an automaton, to its own wallet and to its registered creator's.
    pub async fn status(&self, of: Address, by: Address) -> Result<Option<StatusReply>, DbError> {
        self.writer.run("read a status", move |tx| status::read(tx, of, by)).await
    }

    /// Returns the balance of a wallet, zero for one that was never seen.
    pub async fn balance(&self, wallet: Address) -> Result<Balance, DbError> {
        self.writer.run("read a balance", move |tx| ledger::balance(tx, wallet)).await
    }

    /// Sets credits aside before a call.
    pub async fn open_hold(&self, hold: NewHold) -> Result<HoldOutcome, DbError> {
        self.writer.run("set credits aside", move |tx| holds::open(tx, &hold)).await
    }

    /// Returns the newest call of a wallet that its client gave this name.
    pub async fn call(&self, wallet: Address, name: String) -> Result<Option<CallReply>, DbError> {
        self.writer.run("find a call", move |tx| holds::find(tx, wallet, &name)).await
    }

    /// Ends a hold with the cost of the call, capped at the amount set aside. Returns the
    /// amount charged. Repeating it changes nothing.
    pub async fn settle_hold(&self, id: HoldId, charge: Charge) -> Result<Microcents, DbError> {
        self.writer.run("charge a call", move |tx| holds::settle(tx, id, &charge)).await
    }

    /// Ends a hold without a charge. Repeating it changes nothing.
    pub async fn release_hold(&self, id: HoldId) -> Result<(), DbError> {
        self.writer.run("give credits back", move |tx| holds::release(tx, &id.to_string())).await
    }

    /// Ends every open hold without a charge after a crash, since no client got an answer to those
    /// calls. Returns their number.
    pub async fn release_open_holds(&self) -> Result<u64, DbError> {
        self.writer.run("give credits back", holds::release_open).await
    }

    /// Gives credits to another wallet, once for each request name.
    pub async fn transfer(&self, transfer: NewTransfer) -> Result<TransferOutcome, DbError> {
        self.writer.run("transfer credits", move |tx| credits::transfer(tx, &transfer)).await
    }

    /// Returns the 24-hour transfer ceiling of a key's wallet: `usual` cents if no other was set.
    pub async fn ceiling(&self, key: Hash, usual: i64) -> Result<Ceiling, DbError> {
        self.writer.run("read a ceiling", move |tx| credits::ceiling(tx, &key, usual)).await
    }

    /// Changes the 24-hour transfer ceiling that all keys of a key's wallet share.
    pub async fn change_ceiling(
        &self,
        key: Hash,
        to: TransferCeilingChange,
        usual: i64,
    ) -> Result<CeilingOutcome, DbError> {
        self.writer
            .run("change a ceiling", move |tx| credits::change_ceiling(tx, &key, to, usual))
            .await
    }

    /// Gives a purchase or a charge back, once.
    pub async fn refund(&self, what: Refund) -> Result<RefundOutcome, DbError> {
        self.writer.run("give a payment back", move |tx| credits::refund(tx, what)).await
    }

    /// Returns the changes of a wallet's balance, newest first.
    pub async fn history(
        &self,
        wallet: Address,
        page: PageRange,
    ) -> Result<Vec<LedgerEntry>, DbError> {
        self.writer.run("read a history", move |tx| credits::history(tx, wallet, page)).await
    }

    /// Returns the credits of wallets that never signed in, oldest first, at most `limit` of them.
    pub async fn unclaimed(&self, limit: u32) -> Result<Vec<UnclaimedCredits>, DbError> {
        self.writer.run("read unclaimed credits", move |tx| credits::unclaimed(tx, limit)).await
    }

    /// Returns the paid requests to the ports of a wallet's machines, newest first.
    pub async fn sales(
        &self,
        wallet: Address,
        page: PageRange,
    ) -> Result<Vec<SaleRecord>, DbError> {
        self.writer.run("read sales", move |tx| payments::sales(tx, wallet, page)).await
    }

    /// Returns the stored payment with this authorization's payer and nonce.
    pub async fn find_payment(
        &self,
        chain: u64,
        asset: Address,
        authorization: Authorization,
    ) -> Result<Option<IncomingPayment>, DbError> {
        self.writer
            .run("find a payment", move |tx| payments::find(tx, chain, &asset, &authorization))
            .await
    }

    /// Stores a verified payment, unless it is known or guarded against.
    pub async fn begin_payment(
        &self,
        payment: NewIncomingPayment,
    ) -> Result<BeginPaymentOutcome, DbError> {
        self.writer.run("store a payment", move |tx| payments::begin(tx, &payment)).await
    }

    /// Returns the payment with this id.
    pub async fn payment(&self, id: i64) -> Result<IncomingPayment, DbError> {
        self.writer.run("read a payment", move |tx| payments::read(tx, id)).await
    }

    /// Returns the payments that are neither settled nor failed, oldest first. There are never more
    /// than may be under way at a time.
    pub async fn unfinished_payments(&self) -> Result<Vec<IncomingPayment>, DbError> {
        self.writer.run("list payments", payments::unfinished).await
    }

    /// Records that the payment is on the chain and credits the recipient, once. Returns whether this
    /// call did it.
    pub async fn mark_settled(&self, id: i64, by: SettledBy) -> Result<bool, DbError> {
        self.writer.run("credit a payment", move |tx| payments::settled(tx, id, by)).await
    }

    /// Records that the payment can never be on the chain any more.
    pub async fn mark_failed(&self, id: i64, reason: String) -> Result<(), DbError> {
        self.writer.run("give a payment up", move |tx| payments::failed(tx, id, &reason)).await
    }

    /// Records that the client has its reply, or that its request is passed on. Returns whether this
    /// call did it.
    pub async fn mark_delivered(&self, id: i64) -> Result<bool, DbError> {
        self.writer.run("note a delivery", move |tx| payments::delivered(tx, id)).await
    }

    /// Reserves a nonce of the gas account for a payment that has no other open one, before anything
    /// is signed.
    pub async fn reserve_nonce(&self, reservation: NewNonceReservation) -> Result<(), DbError> {
        self.writer.run("take a nonce for gas", move |tx| nonces::open(tx, &reservation)).await
    }

    /// Notes that the reservation's transaction is to be signed again, with these fees.
    pub async fn raise_nonce_fees(&self, intent: TransactionId, fees: Fees) -> Result<(), DbError> {
        self.writer
            .run("raise the fees of a transaction", move |tx| nonces::raise(tx, intent, fees))
            .await
    }

    /// Stores a signed transaction before it is broadcast. All transactions of a reservation have the
    /// nonce of the first.
    pub async fn mark_signed(
        &self,
        intent: TransactionId,
        submission: Submission,
    ) -> Result<(), DbError> {
        self.writer
            .run("store a transaction", move |tx| nonces::signed(tx, intent, &submission))
            .await
    }

    /// Records that the nonce is in a block that stays. Repeating it changes nothing.
    pub async fn close_nonce(
        &self,
        intent: TransactionId,
        end: TransactionEnd,
    ) -> Result<(), DbError> {
        self.writer.run("close a nonce for gas", move |tx| nonces::close(tx, intent, end)).await
    }

    /// Returns the reservations whose nonce is in no block that stays, lowest nonce first, at most a
    /// hundred.
    pub async fn open_nonces(&self) -> Result<Vec<NonceReservation>, DbError> {
        self.writer.run("list numbers for gas", nonces::all_open).await
    }

    /// Adds up the ledger from its entries.
    pub async fn check_books(&self) -> Result<LedgerTotals, DbError> {
        self.writer.run("check the books", ledger::check).await
    }

    /// Returns whether the process before this one closed the database in good order. If not, the
    /// books have to be checked.
    pub const fn was_closed_cleanly(&self) -> bool {
        self.was_closed_cleanly
    }

    /// Marks the end of this process as clean, provided that nothing is written afterwards.
    pub async fn mark_clean_shutdown(&self) -> Result<(), DbError> {
        Ok(self.writer.writer.checkpoint().await?)
    }
}

/// Twenty bytes of a column.
fn address(row: &Row<'_>, column: &str) -> rusqlite::Result<Address> {
    row.get(column).map(|bytes: [u8; 20]| Address::from(bytes))
}

/// Thirty-two bytes of a column.
fn word(row: &Row<'_>, column: &str) -> rusqlite::Result<B256> {
    row.get(column).map(|bytes: [u8; 32]| B256::from(bytes))
}

/// The value of a query that may find nothing.
fn optional_row<T>(result: rusqlite::Result<T>) -> rusqlite::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(rusqlite::Error::QueryReturnedNoRows) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use automaton_core::error::Classified as _;
    use automaton_core::time::Span;
    use automaton_testkit::clock::FakeClock;
    use proptest::prelude::*;

    use super::*;
    use crate::db::conformance::{self, DbHome};

    fn block(future: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future);
    }

    #[test]
    fn keeps_what_an_engine_has_to_keep() {
        block(conformance::suite());
    }

    #[test]
    fn what_is_posted_stays() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("cloud.db");
        let clock = FakeClock::at(automaton_core::time::Timestamp::EPOCH);
        drop(Db::open(&path, Arc::new(clock)).unwrap());
        let connection = automaton_sqlite::open(&path, &SCHEMA).unwrap();
        let post = "INSERT INTO postings (account, key, kind, at) VALUES (1, 'k', 'hold', 0)";
        connection.execute(post, []).unwrap();
        assert!(connection.execute(post, []).is_err(), "a key is there once");
        for change in ["UPDATE postings SET at = 1", "DELETE FROM postings"] {
            let error = connection.execute(change, []).unwrap_err().to_string();
            assert_eq!(error, "the ledger is only appended to");
        }
    }

    #[test]
    fn who_pays_for_somebody_else_is_flagged() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("cloud.db");
        let clock = FakeClock::at(automaton_core::time::Timestamp::EPOCH);
        block(async {
            let db = Db::open(&path, Arc::new(clock)).unwrap();
            let own = conformance::payment(1, 5);
            let recipient = Address::repeat_byte(2);
            let gift = Some(crate::db::CreditPurchase { recipient, usd: 5 });
            let gift = NewIncomingPayment { purchase: gift, ..conformance::payment(2, 5) };
            let other = NewIncomingPayment { purchase: None, ..conformance::payment(3, 5) };
            for payment in [own, gift, other] {
                assert!(matches!(
                    db.begin_payment(payment).await.unwrap(),
                    BeginPaymentOutcome::New(_)
                ));
            }
        });
        let connection = automaton_sqlite::open(&path, &SCHEMA).unwrap();
        let mut select = connection.prepare("SELECT gift FROM payments ORDER BY id").unwrap();
        let flags: rusqlite::Result<Vec<Option<bool>>> =
            select.query_map([], |row| row.get(0)).unwrap().collect();
        assert_eq!(flags.unwrap(), [Some(false), Some(true), None]);
    }

    #[test]
    fn a_database_of_the_old_form_is_refused_and_left_as_it_is() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("cloud.db");
        let clock = Arc::new(FakeClock::at(automaton_core::time::Timestamp::EPOCH));
        drop(Db::open(&path, Arc::clone(&clock) as Arc<dyn Clock>).unwrap());
        let old = automaton_sqlite::open(&path, &SCHEMA).unwrap();
        // What the last of the old form looked like, from outside.
        old.execute_batch("PRAGMA application_id = 0; PRAGMA user_version = 8").unwrap();
        old.close().unwrap();
        let before = std::fs::read(&path).unwrap();
        let error = Db::open(&path, clock).err().unwrap();
        let text = automaton_core::error::chain(&error).to_string();
        assert!(text.contains("has the old form 8, from before the first release"), "{text}");
        assert!(error.hint().unwrap().contains("To begin anew, move "), "{:?}", error.hint());
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }

    #[test]
    fn who_signs_in_too_often_makes_the_oldest_give_way_and_nobody_else_wait() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("cloud.db");
        let start = automaton_core::time::Timestamp::from_millis(1_000_000);
        let clock = Arc::new(FakeClock::at(start));
        let db = Db::open(&path, clock).unwrap();
        let connection = automaton_sqlite::open(&path, &SCHEMA).unwrap();
        // Ten thousand strangers, each a millisecond after the one before; 10 are over.
        let crowd =
            "WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 9999) ";
        for row in [
            "INSERT INTO used_nonces SELECT 'old' || n, 999990 + n, zeroblob(32), 0 FROM n",
            "INSERT INTO access_tokens SELECT unhex(printf('%064x', n)), zeroblob(20), 999990 + n FROM n",
        ] {
            connection.execute(&format!("{crowd}{row}"), []).unwrap();
        }
        let attempt = |n: u8| SignInAttempt {
            nonce: format!("new{n}"),
            nonce_ends: start.after(Span::from_secs(300)),
            proof: Hash::of(&[n]),
            wallet: Address::repeat_byte(n),
            token: Hash::of(&[n]),
            lives: Span::from_secs(900),
            replay: Span::from_secs(60),
        };
        block(async {
            for n in 0..12 {
                assert_eq!(db.sign_in(attempt(n)).await.unwrap(), SignInOutcome::Granted, "{n}");
            }
        });
        for (table, oldest) in [("used_nonces", 1_000_002), ("access_tokens", 1_000_002)] {
            let kept = format!("SELECT count(*), min(expires_at) FROM {table}");
            let kept: (i64, i64) =
                connection.query_row(&kept, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
            assert_eq!(kept, (10_000, oldest), "{table}");
        }
    }

    #[test]
    fn strangers_tunnels_give_way_and_a_customers_stays() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("cloud.db");
        let clock = Arc::new(FakeClock::at(automaton_core::time::Timestamp::from_millis(1 << 40)));
        let db = Db::open(&path, clock).unwrap();
        let connection = automaton_sqlite::open(&path, &SCHEMA).unwrap();
        let crowd = "WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 9999) \
                     INSERT INTO machines (id, short_id, owner, name, tier, monthly, state, since, \
                     created_at, request, is_tunnel) SELECT printf('%026d', n), printf('%d', n), \
                     unhex(printf('%040x', n)), 'tunnel', 'nano', 1, 'deleted', n, n, zeroblob(32), 1 FROM n";
        connection.execute(crowd, []).unwrap();
        // The oldest of all is a customer's; the next has a port.
        let customer = "INSERT INTO accounts (kind, wallet) VALUES ('wallet', zeroblob(20))";
        connection.execute(customer, []).unwrap();
        let port = "INSERT INTO ports (machine, port, at) VALUES (printf('%026d', 1), 80, 0)";
        connection.execute(port, []).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(FakeClock::at(automaton_core::time::Timestamp::EPOCH));
        let entropy = Arc::new(automaton_testkit::entropy::SeededEntropy::new(1));
        let ids = automaton_core::id::IdGenerator::new(clock, entropy);
        block(async {
            let owner = Address::repeat_byte(7);
            let made = db.tunnel(owner, ids.id()).await.unwrap().unwrap();
            let again = db.tunnel(owner, ids.id()).await.unwrap().unwrap();
            assert_eq!((made.owner, made.id == again.id), (owner, true));
        });
        let there = |n: i64| {
            let statement = "SELECT count(*) FROM machines WHERE id = printf('%026d', ?1)";
            connection.query_row(statement, [n], |row| row.get::<_, i64>(0)).unwrap()
        };
        assert_eq!((there(0), there(1), there(2)), (1, 0, 1), "one made room");
    }

    #[test]
    fn keys_of_strangers_and_of_one_wallet_are_bounded_and_a_customer_keeps_its_own() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("cloud.db");
        let clock = Arc::new(FakeClock::at(automaton_core::time::Timestamp::from_millis(1 << 40)));
        let db = Db::open(&path, clock).unwrap();
        let connection = automaton_sqlite::open(&path, &SCHEMA).unwrap();
        let key = |n: u8, wallet: u8| {
            let token = Hash::of(&[n]);
            let hash = Hash::of(&[n, 1]);
            let row = "INSERT OR REPLACE INTO access_tokens VALUES (?1, ?2, 1 << 50)";
            let wallet = Address::repeat_byte(wallet);
            connection.execute(row, (token.as_bytes(), wallet.as_slice())).unwrap();
            NewKey { token, hash, prefix: "k".to_owned(), name: "n".to_owned() }
        };
        let count = |of: &str| {
            let statement = format!("SELECT count(*) FROM api_keys WHERE {of}");
            connection.query_row(&statement, [], |row| row.get::<_, i64>(0)).unwrap()
        };
        // The first key of all is a customer's: its wallet has bought.
        block(async { assert_eq!(db.create_api_key(key(1, 1)).await.unwrap(), KeyOutcome::Made) });
        assert_eq!(count("is_strangers = 1"), 1);
        let bought = "INSERT INTO accounts (kind, wallet) VALUES ('wallet', ?1)";
        connection.execute(bought, [Address::repeat_byte(1).as_slice()]).unwrap();
        assert_eq!(count("is_strangers = 1"), 0);
        let crowd = "WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 9999) \
                     INSERT INTO api_keys SELECT unhex(printf('%064x', n)), unhex(printf('%040x', n)), \
                     'k', 'n', unhex(printf('%064x', n)), 1, n, 1 FROM n";
        connection.execute(crowd, []).unwrap();
        let said =
            "INSERT INTO statuses SELECT wallet, '{}', 0 FROM api_keys WHERE made_at IN (0, 1)";
        connection.execute(said, []).unwrap();
        block(async { assert_eq!(db.create_api_key(key(2, 2)).await.unwrap(), KeyOutcome::Made) });
        assert_eq!(
            (count("is_strangers = 1"), count("made_at = 0"), count("made_at = 1")),
            (10_000, 0, 1)
        );
        let kept = connection.query_row("SELECT count(*) FROM statuses", [], |row| row.get(0));
        assert_eq!(kept, Ok(1), "what the forgotten one said is gone with it");
        let own = "wallet = x'0101010101010101010101010101010101010101'";
        assert_eq!(count(own), 1, "a customer's stays");
        // A customer has a thousand, of which the oldest goes.
        let many = "WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 999) \
                    INSERT INTO api_keys SELECT unhex(printf('ff%062x', n)), ?1, \
                    'k', 'n', unhex(printf('ff%062x', n)), 1, n, 0 FROM n";
        connection.execute(many, [Address::repeat_byte(3).as_slice()]).unwrap();
        connection.execute(bought, [Address::repeat_byte(3).as_slice()]).unwrap();
        block(async { assert_eq!(db.create_api_key(key(3, 3)).await.unwrap(), KeyOutcome::Made) });
        let own = "wallet = x'0303030303030303030303030303030303030303'";
        assert_eq!((count(own), count(&format!("{own} AND made_at = 0"))), (1_000, 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn no_history_breaks_the_books(history in conformance::history()) {
            block(async { conformance::play(&DbHome::new(), history).await });
        }
    }
}
