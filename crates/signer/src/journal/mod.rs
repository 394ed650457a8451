//! The signer's ledger: the payments signed so far, and the rules.
//!
//! A payment is counted, signed and stored in one transaction. That transaction is on disk before
//! the signature can leave. A payment that was signed once is only read again. The caller must
//! never release a signature that did not come from here.

mod authority;
mod restored;
mod time;
mod transactions;

use std::path::Path;
use std::sync::Arc;

use alloy_primitives::{Address, B256, U256};
use automaton_core::faults::{FaultPoint, Faults};
use automaton_core::id::PaymentId;
use automaton_core::money::MicroUsdc;
use automaton_core::time::{DAY, HOUR, Timestamp};
use automaton_core::wire::x402::{Authorization, ExactPayload};
use automaton_sqlite::{Migration, Schema, open, write_synced};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};

use crate::ceiling::{SignerStatus, SigningLimits, SigningLimitsChange, SpendingTotals};
use crate::creator::message;
use crate::error::{SignerError, SignerRefusal, SignerRefusalCode};
use crate::payload::PaymentIntent;
use crate::rules;
use authority::SignerRuleState;
pub(crate) use time::ClockStart;
use time::{WindowClock, store_anchor};

/// The schema migrations of ledgers with the id `AUTS`. A ledger of the last old form has the
/// same tables and is carried over, since a new ledger would reset every ceiling.
const SCHEMA: Schema = Schema::new(
    0x4155_5453,
    &[
        Migration::new(1, "init", include_str!("../../migrations/0001_init.sql")),
        Migration::new(2, "restored", include_str!("../../migrations/0002_restored.sql")),
    ],
)
.carrying(5);

/// The signer's ledger.
pub(crate) struct SignerLedger {
    connection: Connection,
    faults: Arc<dyn Faults>,
    time: WindowClock,
}

impl SignerLedger {
    /// Opens the ledger, creates or migrates it, and resumes its window clock.
    pub(crate) fn open(
        path: &Path,
        faults: Arc<dyn Faults>,
        beginning: ClockStart,
    ) -> Result<Self, SignerError> {
        let connection = open(path, &SCHEMA)?;
        let time = WindowClock::resume(&connection, beginning).map_err(SignerRefusal::from)?;
        Ok(Self { connection, faults, time })
    }

    /// Returns the payment of an intent. A stored payment is returned as it is. Otherwise the
    /// payment is counted and made by `sign`, which is called only if the payment fits under
    /// every ceiling. `wall` is the wall clock's time.
    pub(crate) fn pay(
        &mut self,
        payer: Address,
        intent: &PaymentIntent,
        wall: Timestamp,
        sign: impl FnOnce() -> Result<ExactPayload, SignerRefusal>,
    ) -> Result<ExactPayload, SignerRefusal> {
        let at = self.time.now(wall)?;
        write_synced(&mut self.connection, |transaction| {
            if let Some((stored, payment)) = find_payment(transaction, intent.intent)? {
                if stored != *intent || payment.authorization.from != payer {
                    let reason =
                        format!("intent: {} was signed before with other content", intent.intent);
                    return Err(SignerRefusal::new(SignerRefusalCode::Conflict, reason));
                }
                return Ok(payment);
            }
            let spent = totals_at(transaction, at.window, Some(intent.payee))?;
            limits(transaction)?.permit(spent, intent.amount)?;
            let payment = sign()?;
            insert_payment(transaction, intent, &payment, at.window)?;
            store_anchor(transaction, at)?;
            self.faults.reach(FaultPoint::SignerSigned);
            Ok(payment)
        })
    }

    /// Returns the rules and the totals counted against the ceilings.
    pub(crate) fn status(&mut self, wall: Timestamp) -> Result<SignerStatus, SignerRefusal> {
        let at = self.time.now(wall)?;
        let transaction = self.connection.transaction()?;
        let SignerRuleState { wallet, creator, serial, accepted, asked } =
            SignerRuleState::read(&transaction)?;
        let limits = limits(&transaction)?;
        Ok(SignerStatus {
            wallet,
            limits,
            spent: totals_at(&transaction, at.window, None)?,
            window: at.window,
            creator,
            serial,
            rules: rules::hash_of_all(&accepted, &limits, creator),
            asked: (!asked.is_empty()).then(|| rules::hash(&asked)),
            permits: accepted.into_iter().collect(),
            asked_for: asked.into_iter().collect(),
        })
    }

    /// Returns the creator's address and the text that it has to sign for this change now.
    /// Returns `None` if the creator or the wallet is unknown.
    pub(crate) fn message(
        &self,
        to: &SigningLimitsChange,
    ) -> Result<Option<(Address, String)>, SignerRefusal> {
        let SignerRuleState { wallet, creator, serial, .. } =
            SignerRuleState::read(&self.connection)?;
        let known = wallet.zip(creator);
        Ok(known.map(|(wallet, creator)| (creator, message(wallet, serial, to))))
    }
}

fn limits(transaction: &Transaction<'_>) -> rusqlite::Result<SigningLimits> {
    let columns =
        "SELECT per_payment, per_hour, per_day, per_payee, lifetime, payments_max FROM limits";
    transaction.query_row(columns, [], |row| {
        Ok(SigningLimits {
            per_payment: MicroUsdc::new(row.get(0)?),
            per_hour: MicroUsdc::new(row.get(1)?),
            per_day: MicroUsdc::new(row.get(2)?),
            per_payee: MicroUsdc::new(row.get(3)?),
            lifetime: MicroUsdc::new(row.get(4)?),
            payments_max: row.get(5)?,
        })
    })
}

fn set_limits(transaction: &Transaction<'_>, to: SigningLimits) -> rusqlite::Result<()> {
    let SigningLimits { per_payment, per_hour, per_day, per_payee, lifetime, payments_max } = to;
    let amounts = [per_payment, per_hour, per_day, per_payee, lifetime].map(MicroUsdc::units);
    let row = amounts.into_iter().chain([payments_max]);
    let row = rusqlite::params_from_iter(row);
    transaction.execute(include_str!("sql/change_limits.sql"), row).map(drop)
}

/// Returns the totals at a moment: to `payee`, or to the payee that got most.
fn totals_at(
    transaction: &Transaction<'_>,
    at: Timestamp,
    payee: Option<Address>,
) -> rusqlite::Result<SpendingTotals> {
    let payee = payee.as_ref().map(|payee| payee.as_slice());
    let known = sums(transaction, at.before(HOUR), at.before(DAY), payee)?;
    restored::add_unknown_payments(transaction, at, payee, known)
}

/// Returns the sums of the payments signed after `hour` and after `day`.
fn sums(
    transaction: &Transaction<'_>,
    hour: Timestamp,
    day: Timestamp,
    payee: Option<&[u8]>,
) -> rusqlite::Result<SpendingTotals> {
    let hour = hour.as_millis();
    let day = day.as_millis();
    transaction.query_row(include_str!("sql/spent.sql"), params![hour, day, payee], |row| {
        Ok(SpendingTotals {
            hour: MicroUsdc::new(row.get(0)?),
            day: MicroUsdc::new(row.get(1)?),
            payee: MicroUsdc::new(row.get(2)?),
            ever: MicroUsdc::new(row.get(3)?),
            payments: row.get(4)?,
        })
    })
}

fn find_payment(
    transaction: &Transaction<'_>,
    intent: PaymentId,
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

fn insert_payment(
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
            // These were built from 64-bit seconds.
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
