//! `spends`: payments, from the intent to their end.
//!
//! At most one is open, so that whoever wants to buy while a purchase is under
//! way finds it instead of making a second one. Each change is durable when it
//! returns, since money follows it; a signature that is stored is never lost,
//! and must never be replaced by another one.

use alloy_primitives::Address;
use automaton_core::id::IntentId;
use automaton_core::spend::{NewSpend, SignedSpend, Spend, SpendState};
use rusqlite::{Connection, Row, params};

use crate::Store;
use crate::codec::{As, get, maybe};
use crate::error::{Halt, StoreError, missing, unfit};
use crate::thread::{Query, Sync, Tx, Write, sql};

/// How a payment ends, or that it is on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpendStep {
    /// It is about to be sent.
    Submitted,
    /// The money has moved, by this transaction where it is known.
    Settled(Option<String>),
    /// It was given up, for this reason, before anything was signed.
    Failed(String),
    /// It was never used, and its time is over.
    Expired,
}

impl SpendStep {
    const fn state(&self) -> SpendState {
        match self {
            Self::Submitted => SpendState::Submitted,
            Self::Settled(_) => SpendState::Settled,
            Self::Failed(_) => SpendState::Failed,
            Self::Expired => SpendState::Expired,
        }
    }
}

impl Store {
    /// Writes a payment down.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] while another one is open.
    pub async fn propose_spend(&self, spend: NewSpend) -> Result<IntentId, StoreError> {
        let write = Write::new("write a payment down").sync(Sync::Machine);
        self.write(write, move |tx| propose(tx, &spend)).await
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

    /// The payment that is not over, if there is one.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn open_spend(&self) -> Result<Option<Spend>, StoreError> {
        self.run("read the open payment", |db| open(&db.connection)).await
    }

    /// The payment that was written down last, if there is one.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn newest_spend(&self) -> Result<Option<Spend>, StoreError> {
        let statement = "SELECT * FROM spends ORDER BY seq DESC LIMIT 1";
        let work = |db: &mut crate::thread::Db| Ok(db.connection.one(statement, [], spend)?);
        self.run("read the newest payment", work).await
    }

    /// Every payment, oldest first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn spends(&self) -> Result<Vec<Spend>, StoreError> {
        let statement = "SELECT * FROM spends ORDER BY seq";
        let work = |db: &mut crate::thread::Db| Ok(db.connection.all(statement, [], spend)?);
        self.run("read the payments", work).await
    }

    /// Who was paid first by a settled payment to this origin.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn payee_of(&self, origin: String) -> Result<Option<Address>, StoreError> {
        let work = move |db: &mut crate::thread::Db| {
            Ok(db.connection.one(sql!("spend_payee"), [origin], |row| get(row, "payee"))?)
        };
        self.run("read whom an origin had us pay", work).await
    }
}

fn propose(tx: &Tx<'_>, spend: &NewSpend) -> Result<IntentId, Halt> {
    if let Some(other) = open(tx)? {
        return Err(unfit("payment", &other.id, "is not over; another one waits for it"));
    }
    let id: IntentId = tx.mint.id();
    let NewSpend { origin, usd, chain, asset, payer, payee, amount } = spend;
    let params = params![
        As(id),
        origin,
        usd,
        As(*chain),
        As(*asset),
        As(*payer),
        As(*payee),
        As(*amount),
        As(tx.now)
    ];
    tx.exec(sql!("spend_insert"), params)?;
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
    tx.exec(sql!("spend_sign"), params)?;
    Ok(())
}

fn go(tx: &Tx<'_>, id: IntentId, step: &SpendStep) -> Result<(), Halt> {
    let found = one(tx, id)?;
    if found.state == step.state() {
        return Ok(());
    }
    may(&found, step.state())?;
    let (transaction, reason) = match step {
        SpendStep::Settled(transaction) => (transaction.as_deref(), None),
        SpendStep::Failed(reason) => (None, Some(reason.as_str())),
        SpendStep::Submitted | SpendStep::Expired => (None, None),
    };
    tx.exec(sql!("spend_end"), params![As(id), As(step.state()), transaction, reason, As(tx.now)])?;
    Ok(())
}

fn may(found: &Spend, next: SpendState) -> Result<(), Halt> {
    if found.state.may_become(next) {
        return Ok(());
    }
    let why = format!("is {} and cannot become {}", found.state.name(), next.name());
    Err(unfit("payment", &found.id, why))
}

fn one(tx: &Tx<'_>, id: IntentId) -> Result<Spend, Halt> {
    let found = tx.one("SELECT * FROM spends WHERE id = ?1", [As(id)], spend)?;
    found.ok_or_else(|| missing("payment", &id))
}

fn open(connection: &Connection) -> Result<Option<Spend>, Halt> {
    Ok(connection.one(sql!("spend_open"), [], spend)?)
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
    Ok(Spend {
        id: get(row, "id")?,
        spend: NewSpend {
            origin: row.get("origin")?,
            usd: row.get("usd")?,
            chain: get(row, "chain")?,
            asset: get(row, "asset")?,
            payer: get(row, "payer")?,
            payee: get(row, "payee")?,
            amount: get(row, "amount")?,
        },
        state: get(row, "state")?,
        signed,
        transaction: row.get("tx")?,
        reason: row.get("reason")?,
        at: get(row, "at")?,
        changed_at: get(row, "changed_at")?,
    })
}
