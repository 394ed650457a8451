//! The signer's ledger: what was signed, and what may be.
//!
//! A payment is counted, signed and stored in one transaction, which is on the
//! disk before its signature can leave. What was signed once is only ever read
//! again. The caller must never release a signature that did not come from here.

mod transactions;

use std::path::Path;
use std::sync::Arc;

use alloy_primitives::{Address, B256, U256};
use automaton_core::faults::{FaultPoint, Faults};
use automaton_core::id::IntentId;
use automaton_core::money::MicroUsdc;
use automaton_core::time::Timestamp;
use automaton_core::wire::x402::{Authorization, ExactPayload};
use automaton_sqlite::{Migration, SqliteError, open, with_full_sync};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, TransactionBehavior, params};

use crate::ceiling::{Change, DAY, Limits, Spent, Standing, ledger_time};
use crate::error::{Code, Refusal};
use crate::payload::PaymentIntent;

const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, name: "init", sql: include_str!("../../migrations/0001_init.sql") },
    Migration {
        version: 2,
        name: "transactions",
        sql: include_str!("../../migrations/0002_transactions.sql"),
    },
];

/// The ledger.
pub(crate) struct Journal {
    connection: Connection,
    faults: Arc<dyn Faults>,
}

impl Journal {
    /// Opens the ledger, makes or migrates it.
    pub(crate) fn open(path: &Path, faults: Arc<dyn Faults>) -> Result<Self, SqliteError> {
        Ok(Self { connection: open(path, MIGRATIONS)?, faults })
    }

    /// The payment of an intent: the stored one if there is one, else counted
    /// at `now` and made by `sign`, which is called only when it fits under
    /// every ceiling.
    pub(crate) fn pay(
        &mut self,
        payer: Address,
        intent: &PaymentIntent,
        now: Timestamp,
        sign: impl FnOnce() -> Result<ExactPayload, Refusal>,
    ) -> Result<ExactPayload, Refusal> {
        with_full_sync(&mut self.connection, |connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            if let Some((stored, payment)) = find(&transaction, intent.intent)? {
                if stored != *intent || payment.authorization.from != payer {
                    let reason =
                        format!("intent: {} was signed before with other content", intent.intent);
                    return Err(Refusal::new(Code::Conflict, reason));
                }
                return Ok(payment);
            }
            let at = now_in_ledger(&transaction, now)?;
            limits(&transaction)?.permit(spent(&transaction, at)?, intent.amount)?;
            let payment = sign()?;
            insert(&transaction, intent, &payment, at)?;
            self.faults.reach(FaultPoint::SignerSigned);
            transaction.commit()?;
            Ok(payment)
        })
    }

    /// The ceilings, and what counts towards them.
    pub(crate) fn standing(&mut self, now: Timestamp) -> Result<Standing, Refusal> {
        let transaction = self.connection.transaction()?;
        let spent = spent(&transaction, now_in_ledger(&transaction, now)?)?;
        Ok(Standing { limits: limits(&transaction)?, spent })
    }

    /// Changes the ceilings, if that is asked, and tells what holds then.
    pub(crate) fn change(&mut self, to: Change, now: Timestamp) -> Result<Standing, Refusal> {
        if to != Change::default() {
            let units = |amount: Option<MicroUsdc>| amount.map(MicroUsdc::units);
            let row = params![units(to.per_payment), units(to.per_day), to.payments_max];
            with_full_sync(&mut self.connection, |connection| {
                connection.execute(include_str!("sql/change_limits.sql"), row)
            })?;
        }
        self.standing(now)
    }
}

fn now_in_ledger(transaction: &Transaction<'_>, now: Timestamp) -> rusqlite::Result<Timestamp> {
    let last: Option<i64> =
        transaction.query_row("SELECT MAX(counted_at) FROM payments", [], |row| row.get(0))?;
    Ok(last.map_or(now, |last| ledger_time(now, Timestamp::from_millis(last))))
}

fn limits(transaction: &Transaction<'_>) -> rusqlite::Result<Limits> {
    let columns = "SELECT per_payment, per_day, payments_max FROM limits";
    transaction.query_row(columns, [], |row| {
        Ok(Limits {
            per_payment: MicroUsdc::new(row.get(0)?),
            per_day: MicroUsdc::new(row.get(1)?),
            payments_max: row.get(2)?,
        })
    })
}

fn spent(transaction: &Transaction<'_>, at: Timestamp) -> rusqlite::Result<Spent> {
    let since = at.before(DAY).as_millis();
    transaction.query_row(include_str!("sql/spent.sql"), [since], |row| {
        Ok(Spent {
            day: MicroUsdc::new(row.get(0)?),
            ever: MicroUsdc::new(row.get(1)?),
            payments: row.get(2)?,
        })
    })
}

fn find(
    transaction: &Transaction<'_>,
    intent: IntentId,
) -> rusqlite::Result<Option<(PaymentIntent, ExactPayload)>> {
    let read = |row: &Row<'_>| {
        let stored = PaymentIntent {
            intent,
            chain_id: row.get(0)?,
            asset: row.get::<_, [u8; 20]>(1)?.into(),
            payee: row.get::<_, [u8; 20]>(3)?.into(),
            amount: MicroUsdc::new(row.get(4)?),
            deadline_s: row.get(5)?,
        };
        let authorization = Authorization {
            from: row.get::<_, [u8; 20]>(2)?.into(),
            to: stored.payee,
            value: U256::from(stored.amount.units()),
            valid_after: U256::from(row.get::<_, u64>(6)?),
            valid_before: U256::from(row.get::<_, u64>(7)?),
            nonce: B256::new(row.get(8)?),
        };
        let signature = row.get::<_, Vec<u8>>(9)?.into();
        Ok((stored, ExactPayload { authorization, signature }))
    };
    let query = include_str!("sql/find_payment.sql");
    transaction.query_row(query, [intent.to_string()], read).optional()
}

fn insert(
    transaction: &Transaction<'_>,
    intent: &PaymentIntent,
    payment: &ExactPayload,
    at: Timestamp,
) -> rusqlite::Result<()> {
    let ExactPayload { authorization, signature } = payment;
    transaction.execute(
        include_str!("sql/insert_payment.sql"),
        params![
            intent.intent.to_string(),
            intent.chain_id,
            intent.asset.as_slice(),
            authorization.from.as_slice(),
            authorization.to.as_slice(),
            intent.amount.units(),
            intent.deadline_s,
            // Seconds that were made from 64 bits.
            authorization.valid_after.saturating_to::<u64>(),
            authorization.valid_before.saturating_to::<u64>(),
            authorization.nonce.as_slice(),
            &signature[..],
            at.as_millis(),
        ],
    )?;
    Ok(())
}

#[cfg(test)]
mod tests;
