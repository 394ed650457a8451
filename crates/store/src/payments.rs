//! `payments`: money that goes out, from the intent to its end.
//!
//! Of two equal requests at most one is open, so that whoever wants the same
//! while a payment is under way finds it instead of making a second one. Each
//! change is durable when it returns, since money follows it, and is a link of the
//! audit chain; a signature that is stored is never lost, and must never be
//! replaced by another one.

use alloy_primitives::Address;
use automaton_core::id::{CallId, PaymentId, TurnId};
use automaton_core::money::Microcents;
use automaton_core::payment::{
    Money, NewPayment, Payment, PaymentReason, PaymentState, Purpose, Rail, SignedPayment,
};
use automaton_core::time::{DAY, HOUR, Span, Timestamp};
use automaton_core::trust::Label;
use rusqlite::{Connection, Row, params};

use crate::Store;
use crate::approval_requests::{ApprovalRequest, ask};
use crate::audit::{self, LinkKind};
use crate::codec::{Sql, SqlText, get, maybe};
use crate::error::{StoreError, TxError, missing, unfit};
use crate::ledger::{LedgerBooking, LedgerCategory, book, correct, cost};
use crate::thread::{CommitDurability, ConnectionExt, Tx, WriteOptions, sql};

/// Next step of a payment, or its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaymentStep {
    /// It may be made.
    Approved,
    /// It is about to be sent.
    Submitted,
    /// The outcome is not known.
    Unknown,
    /// The money has moved, by this transaction where it is known.
    Settled(Option<String>),
    /// It came to nothing, for this reason.
    Failed(String),
    /// It was never used, and its time is over.
    Expired,
}

impl PaymentStep {
    const fn state(&self) -> PaymentState {
        match self {
            Self::Approved => PaymentState::Approved,
            Self::Submitted => PaymentState::Submitted,
            Self::Unknown => PaymentState::Unknown,
            Self::Settled(_) => PaymentState::Settled,
            Self::Failed(_) => PaymentState::Failed,
            Self::Expired => PaymentState::Expired,
        }
    }
}

/// Recent payments for a purpose that did not fail, as of the window time that was stored last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecentPayments {
    /// In the last hour.
    pub hour: Microcents,
    /// In the last 24 hours.
    pub day: Microcents,
    /// Time since the last payment.
    pub since_last: Option<Span>,
    /// Payments that one turn has asked for.
    pub in_turn: u32,
}

/// A demand that was refused before it became a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedDemand {
    /// Origin that asked for the payment.
    pub origin: String,
    /// Refused demand and the reason, with field, value and rule.
    pub detail: String,
}

impl Store {
    /// Writes a payment down: one that may be made, or one that waits for the answer
    /// to a question.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] while an equal one is open.
    pub async fn propose_payment(
        &self,
        payment: NewPayment,
        question: Option<ApprovalRequest>,
    ) -> Result<PaymentId, StoreError> {
        let write = WriteOptions::new("write a payment down").sync(CommitDurability::Machine);
        self.write(write, move |tx| propose(tx, &payment, question.as_ref())).await
    }

    /// Records a demand that was refused.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn refuse_demand(&self, refused: RefusedDemand) -> Result<(), StoreError> {
        let write = WriteOptions::new("record a refused demand");
        self.write(write, move |tx| {
            let RefusedDemand { origin, detail } = &refused;
            let id: PaymentId = tx.ids.id();
            log(tx, id, "refused", detail, Label::Web, origin)
        })
        .await
    }

    /// Stores what was signed for a payment. The same again changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] when something else was signed for it.
    pub async fn store_signed_payment(
        &self,
        id: PaymentId,
        by: SignedPayment,
    ) -> Result<(), StoreError> {
        let write =
            WriteOptions::new("store a payment's signature").sync(CommitDurability::Machine);
        self.write(write, move |tx| sign(tx, id, &by)).await
    }

    /// Brings a payment a step further. The same step again changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] when it cannot come to that.
    pub async fn advance_payment(
        &self,
        id: PaymentId,
        step: PaymentStep,
    ) -> Result<(), StoreError> {
        let write = WriteOptions::new("bring a payment further").sync(CommitDurability::Machine);
        self.write(write, move |tx| advance(tx, id, &step)).await
    }

    /// The payment of such a request that is not over, if there is one.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn open_payment(&self, request: &str) -> Result<Option<Payment>, StoreError> {
        let request = request.to_owned();
        self.run("read the open payment", move |tx| open(tx, &request)).await
    }

    /// Every payment that is not over, oldest first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn open_payments(&self) -> Result<Vec<Payment>, StoreError> {
        let work = |tx: &Tx<'_>| Ok(tx.all(sql!("payments_open"), [], payment)?);
        self.run("read the open payments", work).await
    }

    /// The payment for a purpose that was written down last, if there is one.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn newest_payment(&self, purpose: Purpose) -> Result<Option<Payment>, StoreError> {
        let statement = "SELECT * FROM payments WHERE purpose = ?1 ORDER BY seq DESC LIMIT 1";
        let work = move |tx: &Tx<'_>| Ok(tx.one(statement, [Sql(purpose)], payment)?);
        self.run("read the newest payment", work).await
    }

    /// The payment for a purpose that ended last, if one has ended since then.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn ended_payment(
        &self,
        purpose: Purpose,
        since: Timestamp,
    ) -> Result<Option<Payment>, StoreError> {
        let statement = "SELECT * FROM payments WHERE purpose = ?1 AND changed_at > ?2 AND state \
                         IN ('settled', 'failed', 'expired') ORDER BY changed_at DESC LIMIT 1";
        let work =
            move |tx: &Tx<'_>| Ok(tx.one(statement, params![Sql(purpose), Sql(since)], payment)?);
        self.run("read how the last payment ended", work).await
    }

    /// One payment.
    ///
    /// # Errors
    /// [`StoreError::Missing`].
    pub async fn payment(&self, id: PaymentId) -> Result<Payment, StoreError> {
        self.run("read a payment", move |tx| read_payment(tx, id)).await
    }

    /// The payment of such a request that went through in the last 24 hours without
    /// whoever asked for it having been told, if there is one. Who was told by a call whose own
    /// outcome was lost has not heard.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn unreported_payment(&self, request: &str) -> Result<Option<Payment>, StoreError> {
        let request = request.to_owned();
        let work = move |tx: &Tx<'_>| {
            let params = params![request, Sql(tx.now.before(DAY))];
            Ok(tx.one(sql!("payment_untold"), params, payment)?)
        };
        self.run("read what was paid unheard", work).await
    }

    /// Notes that whoever asked for a payment was told of it, by a call if it was one: an
    /// equal request is another one from now on, once that call's outcome is on record.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn mark_payment_reported(
        &self,
        id: PaymentId,
        by: Option<CallId>,
    ) -> Result<(), StoreError> {
        self.write(WriteOptions::new("note that a payment was told"), move |tx| {
            tx.exec(sql!("payment_told"), params![Sql(id), format!(" {id}"), by.map(Sql)])?;
            Ok(())
        })
        .await
    }

    /// Returns the sum that open payments on a rail have promised. Payments that wait for an
    /// answer count too.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn committed_amount(&self, rail: Rail) -> Result<Microcents, StoreError> {
        let work = move |tx: &Tx<'_>| {
            let sum = tx.one(sql!("payments_promised"), [Sql(rail)], |row| get(row, "sum"));
            Ok(sum?.unwrap_or_default())
        };
        self.run("add up what is promised", work).await
    }

    /// Returns true if the creator has approved a payment.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn is_confirmed(&self, id: PaymentId) -> Result<bool, StoreError> {
        let statement = "SELECT 1 FROM approvals WHERE subject = ?1 AND state = 'approved'";
        let work = move |tx: &Tx<'_>| Ok(tx.one(statement, [Sql(id)], |_| Ok(()))?.is_some());
        self.run("read an approval", work).await
    }

    /// Returns true if the creator approved the very call that asks for a payment.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn is_approved_call(&self, call: CallId) -> Result<bool, StoreError> {
        let statement = "SELECT 1 FROM tool_calls WHERE id = ?1 AND approval IS NOT NULL";
        let work = move |tx: &Tx<'_>| Ok(tx.one(statement, [Sql(call)], |_| Ok(()))?.is_some());
        self.run("read whether a call was approved", work).await
    }

    /// Every payment, oldest first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn payments(&self) -> Result<Vec<Payment>, StoreError> {
        let statement = "SELECT * FROM payments ORDER BY seq";
        let work = |tx: &Tx<'_>| Ok(tx.all(statement, [], payment)?);
        self.run("read the payments", work).await
    }

    /// Returns the recipient of the first settled purchase from this origin.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn payee_of(&self, origin: String) -> Result<Option<Address>, StoreError> {
        let work = move |tx: &Tx<'_>| {
            Ok(tx.one(sql!("payment_payee"), [origin], |row| get(row, "payee"))?)
        };
        self.run("read whom an origin had us pay", work).await
    }

    /// Returns the recent payments for a purpose, and the number that the turn of a call has
    /// asked for. Hours and days are those of window time, as of the moment that was stored last:
    /// a clock that is set frees nothing.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn recently(
        &self,
        purpose: Purpose,
        call: Option<CallId>,
    ) -> Result<RecentPayments, StoreError> {
        let work = move |tx: &Tx<'_>| {
            let turn = call.map(|call| turn_of(tx, call)).transpose()?.flatten();
            let params = params![Sql(purpose), Sql(HOUR), Sql(DAY), turn.map(Sql)];
            let read = |row: &Row<'_>| {
                Ok(RecentPayments {
                    hour: get(row, "hour")?,
                    day: get(row, "day")?,
                    since_last: maybe(row, "since_last")?,
                    in_turn: get(row, "in_turn")?,
                })
            };
            Ok(tx.one(sql!("payments_spent"), params, read)?.unwrap_or_default())
        };
        self.run("add up the payments", work).await
    }
}

fn propose(
    tx: &Tx<'_>,
    payment: &NewPayment,
    question: Option<&ApprovalRequest>,
) -> Result<PaymentId, TxError> {
    if let Some(other) = open(tx, &payment.request)? {
        return Err(unfit("payment", &other.id, "is not over; an equal one waits for it"));
    }
    let id: PaymentId = tx.ids.id();
    let NewPayment { purpose, request, origin, payee, money, why } = payment;
    let (chain, asset, payer, units) = match *money {
        Money::Usdc { chain, asset, payer, amount } => {
            (Some(chain), Some(asset), Some(payer), amount.encode())
        }
        Money::Credits { amount } => (None, None, None, amount.encode()),
    };
    let worth = money.worth().map_err(StoreError::Amount)?;
    let PaymentReason { turn, call, goal, label, note } = why;
    let turn = match (turn, call) {
        (None, Some(call)) => turn_of(tx, *call)?,
        (turn, _) => *turn,
    };
    let state = if question.is_some() { PaymentState::Proposed } else { PaymentState::Approved };
    let reason = question.map(|question| question.reason.as_str());
    let rail = money.rail();
    let label_now = Sql(*label);
    let params = params![
        Sql(id),
        Sql(*purpose),
        Sql(rail),
        request,
        origin,
        Sql(*payee),
        chain.map(Sql),
        asset.map(Sql),
        payer.map(Sql),
        units,
        Sql(worth),
        turn.map(Sql),
        call.map(Sql),
        goal,
        note,
        Sql(state),
        reason,
        label_now,
        Sql(tx.now)
    ];
    tx.exec(sql!("payment_insert"), params)?;
    let shown = format!("{} {worth} to {payee} for {note}", purpose.name());
    log(tx, id, PaymentState::Proposed.name(), &shown, *label, origin)?;
    match question {
        Some(question) => ask(tx, id, question, *label, origin)?,
        None => {
            log(tx, id, PaymentState::Approved.name(), "no rule objects", Label::Own, "policy")?
        }
    }
    Ok(id)
}

fn sign(tx: &Tx<'_>, id: PaymentId, by: &SignedPayment) -> Result<(), TxError> {
    let found = read_payment(tx, id)?;
    if found.signed.as_ref() == Some(by) {
        return Ok(());
    }
    may(&found, PaymentState::Signed)?;
    let SignedPayment { header, value, nonce, valid_before } = by;
    let params = params![Sql(id), header, value, Sql(*nonce), Sql(*valid_before), Sql(tx.now)];
    tx.exec(sql!("payment_sign"), params)?;
    log(tx, id, PaymentState::Signed.name(), &nonce.to_string(), Label::Own, "signer")?;
    // Whoever has the signature can take the money: it is spent from here on.
    charge(tx, &found)
}

pub(crate) fn advance(tx: &Tx<'_>, id: PaymentId, step: &PaymentStep) -> Result<(), TxError> {
    let found = read_payment(tx, id)?;
    let next = step.state();
    if found.state == next {
        return Ok(());
    }
    may(&found, next)?;
    let (transaction, reason) = match step {
        PaymentStep::Settled(transaction) => (transaction.as_deref(), None),
        PaymentStep::Failed(reason) => (None, Some(reason.as_str())),
        PaymentStep::Approved
        | PaymentStep::Submitted
        | PaymentStep::Unknown
        | PaymentStep::Expired => (None, None),
    };
    tx.exec(sql!("payment_step"), params![Sql(id), Sql(next), transaction, reason, Sql(tx.now)])?;
    let detail = transaction.or(reason).unwrap_or_default();
    log(tx, id, next.name(), detail, Label::Own, "treasury")?;
    match (next, found.terms.money.rail()) {
        (PaymentState::Submitted, Rail::Credits) => charge(tx, &found),
        (PaymentState::Failed | PaymentState::Expired, _) => correct(tx, &key_of(id), None),
        _ => Ok(()),
    }
}

/// Books what a payment costs. Credits that are bought are still ours.
fn charge(tx: &Tx<'_>, payment: &Payment) -> Result<(), TxError> {
    let category = match payment.terms.purpose {
        Purpose::TopUp => return Ok(()),
        Purpose::X402 => LedgerCategory::X402,
        Purpose::Transfer => LedgerCategory::Transfer,
    };
    let worth = payment.terms.money.worth().and_then(cost).map_err(StoreError::Amount)?;
    let PaymentReason { turn, goal, .. } = &payment.terms.why;
    let key = key_of(payment.id);
    let goal = goal.as_deref();
    let turn = *turn;
    let source = payment.terms.origin.as_str();
    book(tx, &LedgerBooking { key: Some(&key), category, amount: worth, turn, goal, source })
}

fn key_of(id: PaymentId) -> String {
    format!("payment:{id}")
}

/// Records a step of a payment, as a link of the chain.
fn log(
    tx: &Tx<'_>,
    payment: PaymentId,
    step: &str,
    detail: &str,
    label: Label,
    source: &str,
) -> Result<(), TxError> {
    let id: PaymentId = tx.ids.id();
    let params = params![Sql(id), Sql(payment), step, detail, Sql(label), source, Sql(tx.now)];
    tx.exec(sql!("payment_log"), params)?;
    audit::append(tx, LinkKind::Payment, &id.to_string())
}

fn turn_of(connection: &Connection, call: CallId) -> rusqlite::Result<Option<TurnId>> {
    let statement = "SELECT t.id AS turn FROM tool_calls AS c JOIN turns AS t ON t.seq = c.turn WHERE c.id = ?1";
    connection.one(statement, [Sql(call)], |row| get(row, "turn"))
}

fn may(found: &Payment, next: PaymentState) -> Result<(), TxError> {
    if found.state.may_become(next, found.terms.money.rail()) {
        return Ok(());
    }
    let why = format!("is {} and cannot become {}", found.state.name(), next.name());
    Err(unfit("payment", &found.id, why))
}

fn read_payment(connection: &Connection, id: PaymentId) -> Result<Payment, TxError> {
    let found = connection.one("SELECT * FROM payments WHERE id = ?1", [Sql(id)], payment)?;
    found.ok_or_else(|| missing("payment", &id))
}

fn open(connection: &Connection, request: &str) -> Result<Option<Payment>, TxError> {
    Ok(connection.one(sql!("payment_open"), [request], payment)?)
}

fn payment(row: &Row<'_>) -> rusqlite::Result<Payment> {
    let signed = match maybe(row, "nonce")? {
        None => None,
        Some(nonce) => Some(SignedPayment {
            header: row.get("header")?,
            value: row.get("value")?,
            nonce,
            valid_before: get(row, "valid_before")?,
        }),
    };
    let money = match get(row, "rail")? {
        Rail::Credits => Money::Credits { amount: get(row, "units")? },
        Rail::Usdc => Money::Usdc {
            chain: get(row, "chain")?,
            asset: get(row, "asset")?,
            payer: get(row, "payer")?,
            amount: get(row, "units")?,
        },
    };
    Ok(Payment {
        id: get(row, "id")?,
        terms: NewPayment {
            purpose: get(row, "purpose")?,
            request: row.get("request")?,
            origin: row.get("origin")?,
            payee: get(row, "payee")?,
            money,
            why: PaymentReason {
                turn: maybe(row, "turn")?,
                call: maybe(row, "call")?,
                goal: row.get("goal")?,
                label: get(row, "label")?,
                note: row.get("note")?,
            },
        },
        state: get(row, "state")?,
        signed,
        transaction: row.get("tx")?,
        reason: row.get("reason")?,
        at: get(row, "at")?,
        changed_at: get(row, "changed_at")?,
    })
}
