//! Credits that are set aside before a call and charged or given back after it.

use alloy_primitives::Address;
use automaton_core::id::HoldId;
use automaton_core::money::Microcents;
use automaton_core::wire::cloud::{CallReply, CallState};
use rusqlite::params;

use super::writer::DbTx;
use super::{address, ledger, optional_row};
use crate::billing::price::{Charge, Metering};
use crate::db::error::{DbError, DbTxError};
use crate::db::{HoldOutcome, NewHold};
use crate::ledger::Posting;

pub(super) fn open(tx: &DbTx<'_>, hold: &NewHold) -> Result<HoldOutcome, DbTxError> {
    let available = ledger::balance(tx, hold.wallet)?.available;
    if available < hold.amount.max(hold.minimum) {
        return Ok(HoldOutcome::Insufficient { available });
    }
    let id = hold.id.to_string();
    let statement = "INSERT INTO holds (id, wallet, model, amount, state, opened_at, name) \
                     VALUES (?1, ?2, ?3, ?4, 'open', ?5, ?6)";
    let wallet = hold.wallet.as_slice();
    let amount = hold.amount.units();
    let now = tx.now.as_millis();
    tx.sql.execute(statement, params![id, wallet, hold.model.as_str(), amount, now, hold.name])?;
    ledger::post(tx, &Posting::hold(hold.wallet, hold.amount, format!("hold:{id}"))?)?;
    Ok(HoldOutcome::Held)
}

pub(super) fn settle(tx: &DbTx<'_>, id: HoldId, charge: &Charge) -> Result<Microcents, DbTxError> {
    let id = id.to_string();
    let hold = read(tx, &id)?;
    if let Some(charged) = hold.charged {
        return Ok(charged);
    }
    if !hold.open {
        return Ok(Microcents::ZERO);
    }
    let charged = charge.cost.min(hold.amount);
    tx.sql.execute(
        include_str!("sql/hold_settle.sql"),
        params![
            id,
            charge.cost.units(),
            charged.units(),
            charge.tokens.prompt,
            charge.tokens.cached,
            charge.tokens.cache_write,
            charge.tokens.completion,
            charge.metering.name(),
            tx.now.as_millis()
        ],
    )?;
    ledger::post(tx, &Posting::close(hold.wallet, hold.amount, charged, format!("close:{id}"))?)?;
    Ok(charged)
}

pub(super) fn release(tx: &DbTx<'_>, id: &str) -> Result<(), DbTxError> {
    let hold = read(tx, id)?;
    if !hold.open {
        return Ok(());
    }
    let statement = "UPDATE holds SET state = 'released', closed_at = ?2 WHERE id = ?1";
    tx.sql.execute(statement, params![id, tx.now.as_millis()])?;
    let nothing = Microcents::ZERO;
    ledger::post(tx, &Posting::close(hold.wallet, hold.amount, nothing, format!("close:{id}"))?)
}

pub(super) fn release_open(tx: &DbTx<'_>) -> Result<u64, DbTxError> {
    let mut select = tx.sql.prepare("SELECT id FROM holds WHERE state = 'open'")?;
    let open: Vec<String> = select.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for id in &open {
        release(tx, id)?;
    }
    Ok(u64::try_from(open.len()).unwrap_or(u64::MAX))
}

/// The newest call of a wallet with this name.
pub(super) fn find(
    tx: &DbTx<'_>,
    wallet: Address,
    name: &str,
) -> Result<Option<CallReply>, DbTxError> {
    let statement = include_str!("sql/call.sql");
    let call = tx.sql.query_row(statement, params![wallet.as_slice(), name], |row| {
        let tokens = |name| row.get::<_, Option<u32>>(name).map(Option::unwrap_or_default);
        Ok(CallReply {
            state: match row.get::<_, String>("state")?.as_str() {
                "open" => CallState::Open,
                "settled" => CallState::Settled,
                _ => CallState::Released,
            },
            charged_microcents: Microcents::new(row.get::<_, Option<i64>>("charged")?.unwrap_or(0)),
            prompt_tokens: tokens("prompt_tokens")?,
            cached_tokens: tokens("cached_tokens")?,
            completion_tokens: tokens("completion_tokens")?,
            estimated: row.get::<_, Option<String>>("metering")?.as_deref()
                == Some(Metering::Estimated.name()),
        })
    });
    Ok(optional_row(call)?)
}

/// A stored hold.
struct Hold {
    wallet: Address,
    amount: Microcents,
    open: bool,
    charged: Option<Microcents>,
}

fn read(tx: &DbTx<'_>, id: &str) -> Result<Hold, DbTxError> {
    let statement = "SELECT wallet, amount, state = 'open' AS open, charged FROM holds \
                     WHERE id = ?1";
    let hold = tx.sql.query_row(statement, [id], |row| {
        Ok(Hold {
            wallet: address(row, "wallet")?,
            amount: Microcents::new(row.get("amount")?),
            open: row.get("open")?,
            charged: row.get::<_, Option<i64>>("charged")?.map(Microcents::new),
        })
    });
    optional_row(hold)?.ok_or_else(|| DbError::Missing { noun: "hold", id: id.to_owned() }.into())
}
