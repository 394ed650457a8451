//! `payments`: money that goes out, from the intent to its end.
//!
//! Of two equal requests at most one is open, so that whoever wants the same
//! while a payment is under way finds it instead of making a second one. Each
//! change is durable when it returns, since money follows it, and is a link of the
//! audit chain; a signature that is stored is never lost, and must never be
//! replaced by another one.

use alloy_primitives::Address;
use automaton_core::id::{CallId, IntentId, TurnId};
use automaton_core::money::Microcents;
use automaton_core::spend::{Money, NewSpend, Purpose, Rail, SignedSpend, Spend, SpendState, Why};
use automaton_core::time::{DAY, Span};
use automaton_core::trust::Label;
use automaton_core::window::HOUR;
use rusqlite::{Connection, Row, params};

use crate::Store;
use crate::audit::{self, LinkKind};
use crate::codec::{As, Stored, get, maybe};
use crate::error::{Halt, StoreError, missing, unfit};
use crate::ledger::{Booking, Category, book, cost, take_back};
use crate::questions::{Question, ask};
use crate::thread::{Db, Query, Sync, Tx, Write, sql};

/// How a payment goes on, or ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpendStep {
    /// It may be made.
    Approved,
    /// It is about to be sent.
    Submitted,
    /// What became of it is not known.
    Unknown,
    /// The money has moved, by this transaction where it is known.
    Settled(Option<String>),
    /// It came to nothing, for this reason.
    Failed(String),
    /// It was never used, and its time is over.
    Expired,
}

impl SpendStep {
    const fn state(&self) -> SpendState {
        match self {
            Self::Approved => SpendState::Approved,
            Self::Submitted => SpendState::Submitted,
            Self::Unknown => SpendState::Unknown,
            Self::Settled(_) => SpendState::Settled,
            Self::Failed(_) => SpendState::Failed,
            Self::Expired => SpendState::Expired,
        }
    }
}

/// What was spent on a purpose, and is not known to have come to nothing, as of the
/// window time that was kept last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recent {
    /// In the last hour.
    pub hour: Microcents,
    /// In the last 24 hours.
    pub day: Microcents,
    /// How long ago the last payment was written down.
    pub since_last: Option<Span>,
    /// How many payments one turn has asked for.
    pub in_turn: u32,
}

/// A demand that was refused before it became a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedDemand {
    /// Who asked to be paid.
    pub origin: String,
    /// What was refused and why, with field, value and rule.
    pub detail: String,
}

impl Store {
    /// Writes a payment down: one that may be made, or one that waits for the answer
    /// to a question.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] while an equal one is open.
    pub async fn propose_spend(
        &self,
        spend: NewSpend,
        question: Option<Question>,
    ) -> Result<IntentId, StoreError> {
        let write = Write::new("write a payment down").sync(Sync::Machine);
        self.write(write, move |tx| propose(tx, &spend, question.as_ref())).await
    }

    /// Records a demand that was refused.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn refuse_demand(&self, refused: RefusedDemand) -> Result<(), StoreError> {
        let write = Write::new("record a refused demand");
        self.write(write, move |tx| {
            let RefusedDemand { origin, detail } = &refused;
            let id: IntentId = tx.mint.id();
            log(tx, id, "refused", detail, (Label::Web, origin))
        })
        .await
    }

    /// Stores what was signed for a payment. The same again changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] when something else was signed for it.
    pub async fn spend_signed(&self, id: IntentId, by: SignedSpend) -> Result<(), StoreError> {
        let write = Write::new("store a payment's signature").sync(Sync::Machine);
        self.write(write, move |tx| sign(tx, id, &by)).await
    }

    /// Brings a payment a step further. The same step again changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] when it cannot come to that.
    pub async fn step_spend(&self, id: IntentId, step: SpendStep) -> Result<(), StoreError> {
        let write = Write::new("bring a payment further").sync(Sync::Machine);
        self.write(write, move |tx| go(tx, id, &step)).await
    }

    /// The payment of such a request that is not over, if there is one.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn open_spend(&self, request: &str) -> Result<Option<Spend>, StoreError> {
        let request = request.to_owned();
        self.run("read the open payment", move |db| open(&db.connection, &request)).await
    }

    /// Every payment that is not over, oldest first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn open_spends(&self) -> Result<Vec<Spend>, StoreError> {
        let work = |db: &mut Db| Ok(db.connection.all(sql!("payments_open"), [], spend)?);
        self.run("read the open payments", work).await
    }

    /// The payment for a purpose that was written down last, if there is one.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn newest_spend(&self, purpose: Purpose) -> Result<Option<Spend>, StoreError> {
        let statement = "SELECT * FROM payments WHERE purpose = ?1 ORDER BY seq DESC LIMIT 1";
        let work = move |db: &mut Db| Ok(db.connection.one(statement, [As(purpose)], spend)?);
        self.run("read the newest payment", work).await
    }

    /// One payment.
    ///
    /// # Errors
    /// [`StoreError::Missing`].
    pub async fn spend(&self, id: IntentId) -> Result<Spend, StoreError> {
        self.run("read a payment", move |db| one(&db.connection, id)).await
    }

    /// The payment of such a request that went through in the last 24 hours without
    /// whoever asked for it having been told, if there is one.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn untold_spend(&self, request: &str) -> Result<Option<Spend>, StoreError> {
        let request = request.to_owned();
        let work = move |db: &mut Db| {
            let params = params![request, As(db.now().before(DAY))];
            Ok(db.connection.one(sql!("payment_untold"), params, spend)?)
        };
        self.run("read what was paid unheard", work).await
    }

    /// Notes that whoever asked for a payment was told of it: an equal request is
    /// another one from now on.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn spend_told(&self, id: IntentId) -> Result<(), StoreError> {
        self.write(Write::new("note that a payment was told"), move |tx| {
            tx.exec(sql!("payment_told"), params![As(id), format!(" {id}")])?;
            Ok(())
        })
        .await
    }

    /// What payments that are not over have promised already, of what they are made
    /// with. Those that wait for an answer count, too.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn promised(&self, rail: Rail) -> Result<Microcents, StoreError> {
        let work = move |db: &mut Db| {
            let sum =
                db.connection.one(sql!("payments_promised"), [As(rail)], |row| get(row, "sum"));
            Ok(sum?.unwrap_or_default())
        };
        self.run("add up what is promised", work).await
    }

    /// Whether the creator has approved a payment.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn is_confirmed(&self, id: IntentId) -> Result<bool, StoreError> {
        let statement = "SELECT 1 FROM approvals WHERE subject = ?1 AND state = 'approved'";
        let work =
            move |db: &mut Db| Ok(db.connection.one(statement, [As(id)], |_| Ok(()))?.is_some());
        self.run("read an approval", work).await
    }

    /// Every payment, oldest first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn spends(&self) -> Result<Vec<Spend>, StoreError> {
        let statement = "SELECT * FROM payments ORDER BY seq";
        let work = |db: &mut Db| Ok(db.connection.all(statement, [], spend)?);
        self.run("read the payments", work).await
    }

    /// Who was paid first by a settled purchase from this origin.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn payee_of(&self, origin: String) -> Result<Option<Address>, StoreError> {
        let work = move |db: &mut Db| {
            Ok(db.connection.one(sql!("payment_payee"), [origin], |row| get(row, "payee"))?)
        };
        self.run("read whom an origin had us pay", work).await
    }

    /// What was spent on a purpose lately, and how many payments the turn of a call
    /// has asked for. Hours and days are those of window time, as of the moment that
    /// was kept last: a clock that is set frees nothing.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn recently(
        &self,
        purpose: Purpose,
        call: Option<CallId>,
    ) -> Result<Recent, StoreError> {
        let work = move |db: &mut Db| {
            let turn = call.map(|call| turn_of(&db.connection, call)).transpose()?.flatten();
            let params = params![As(purpose), As(HOUR), As(DAY), turn.map(As)];
            let read = |row: &Row<'_>| {
                Ok(Recent {
                    hour: get(row, "hour")?,
                    day: get(row, "day")?,
                    since_last: maybe(row, "since_last")?,
                    in_turn: get(row, "in_turn")?,
                })
            };
            Ok(db.connection.one(sql!("payments_spent"), params, read)?.unwrap_or_default())
        };
        self.run("add up the payments", work).await
    }
}

fn propose(tx: &Tx<'_>, spend: &NewSpend, question: Option<&Question>) -> Result<IntentId, Halt> {
    if let Some(other) = open(tx, &spend.request)? {
        return Err(unfit("payment", &other.id, "is not over; an equal one waits for it"));
    }
    let id: IntentId = tx.mint.id();
    let NewSpend { purpose, request, origin, payee, money, why } = spend;
    let (chain, asset, payer, units) = match *money {
        Money::Usdc { chain, asset, payer, amount } => {
            (Some(chain), Some(asset), Some(payer), amount.encode())
        }
        Money::Credits { amount } => (None, None, None, amount.encode()),
    };
    let worth = money.worth().map_err(StoreError::Amount)?;
    let Why { turn, call, goal, label, note } = why;
    let turn = match (turn, call) {
        (None, Some(call)) => turn_of(tx, *call)?,
        (turn, _) => *turn,
    };
    let state = if question.is_some() { SpendState::Proposed } else { SpendState::Approved };
    let reason = question.map(|question| question.reason.as_str());
    let (rail, label_now) = (money.rail(), As(*label));
    let params = params![
        As(id),
        As(*purpose),
        As(rail),
        request,
        origin,
        As(*payee),
        chain.map(As),
        asset.map(As),
        payer.map(As),
        units,
        As(worth),
        turn.map(As),
        call.map(As),
        goal,
        note,
        As(state),
        reason,
        label_now,
        As(tx.now)
    ];
    tx.exec(sql!("payment_insert"), params)?;
    let shown = format!("{} {worth} to {payee} for {note}", purpose.name());
    log(tx, id, SpendState::Proposed.name(), &shown, (*label, origin))?;
    match question {
        Some(question) => ask(tx, id, question, (*label, origin))?,
        None => {
            log(tx, id, SpendState::Approved.name(), "no rule objects", (Label::Own, "policy"))?
        }
    }
    Ok(id)
}

fn sign(tx: &Tx<'_>, id: IntentId, by: &SignedSpend) -> Result<(), Halt> {
    let found = one(tx, id)?;
    if found.signed.as_ref() == Some(by) {
        return Ok(());
    }
    may(&found, SpendState::Signed)?;
    let SignedSpend { header, value, nonce, valid_before } = by;
    let params = params![As(id), header, value, As(*nonce), As(*valid_before), As(tx.now)];
    tx.exec(sql!("payment_sign"), params)?;
    log(tx, id, SpendState::Signed.name(), &nonce.to_string(), (Label::Own, "signer"))?;
    // Whoever has the signature can take the money: it is spent from here on.
    charge(tx, &found)
}

pub(crate) fn go(tx: &Tx<'_>, id: IntentId, step: &SpendStep) -> Result<(), Halt> {
    let (found, next) = (one(tx, id)?, step.state());
    if found.state == next {
        return Ok(());
    }
    may(&found, next)?;
    let (transaction, reason) = match step {
        SpendStep::Settled(transaction) => (transaction.as_deref(), None),
        SpendStep::Failed(reason) => (None, Some(reason.as_str())),
        SpendStep::Approved | SpendStep::Submitted | SpendStep::Unknown | SpendStep::Expired => {
            (None, None)
        }
    };
    tx.exec(sql!("payment_step"), params![As(id), As(next), transaction, reason, As(tx.now)])?;
    let detail = transaction.or(reason).unwrap_or_default();
    log(tx, id, next.name(), detail, (Label::Own, "treasury"))?;
    match (next, found.spend.money.rail()) {
        (SpendState::Submitted, Rail::Credits) => charge(tx, &found),
        (SpendState::Failed | SpendState::Expired, _) => take_back(tx, &key_of(id)),
        _ => Ok(()),
    }
}

/// Books what a payment costs. Credits that are bought are still ours.
fn charge(tx: &Tx<'_>, spend: &Spend) -> Result<(), Halt> {
    let category = match spend.spend.purpose {
        Purpose::TopUp => return Ok(()),
        Purpose::X402 => Category::X402,
        Purpose::Transfer => Category::Transfer,
    };
    let worth = spend.spend.money.worth().and_then(cost).map_err(StoreError::Amount)?;
    let Why { turn, goal, .. } = &spend.spend.why;
    let (key, goal) = (key_of(spend.id), goal.as_deref());
    let (turn, source) = (*turn, spend.spend.origin.as_str());
    book(tx, &Booking { key: &key, category, amount: worth, turn, goal, source })
}

fn key_of(id: IntentId) -> String {
    format!("payment:{id}")
}

/// Records a step of a payment, as a link of the chain.
fn log(
    tx: &Tx<'_>,
    payment: IntentId,
    step: &str,
    detail: &str,
    (label, source): (Label, &str),
) -> Result<(), Halt> {
    let id: IntentId = tx.mint.id();
    let params = params![As(id), As(payment), step, detail, As(label), source, As(tx.now)];
    tx.exec(sql!("payment_log"), params)?;
    audit::append(tx, LinkKind::Payment, &id.to_string())
}

fn turn_of(connection: &Connection, call: CallId) -> rusqlite::Result<Option<TurnId>> {
    let statement = "SELECT turn FROM tool_calls WHERE id = ?1";
    connection.one(statement, [As(call)], |row| get(row, "turn"))
}

fn may(found: &Spend, next: SpendState) -> Result<(), Halt> {
    if found.state.may_become(next, found.spend.money.rail()) {
        return Ok(());
    }
    let why = format!("is {} and cannot become {}", found.state.name(), next.name());
    Err(unfit("payment", &found.id, why))
}

fn one(connection: &Connection, id: IntentId) -> Result<Spend, Halt> {
    let found = connection.one("SELECT * FROM payments WHERE id = ?1", [As(id)], spend)?;
    found.ok_or_else(|| missing("payment", &id))
}

fn open(connection: &Connection, request: &str) -> Result<Option<Spend>, Halt> {
    Ok(connection.one(sql!("payment_open"), [request], spend)?)
}

fn spend(row: &Row<'_>) -> rusqlite::Result<Spend> {
    let signed = match maybe(row, "nonce")? {
        None => None,
        Some(nonce) => Some(SignedSpend {
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
    Ok(Spend {
        id: get(row, "id")?,
        spend: NewSpend {
            purpose: get(row, "purpose")?,
            request: row.get("request")?,
            origin: row.get("origin")?,
            payee: get(row, "payee")?,
            money,
            why: Why {
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
