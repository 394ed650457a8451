//! Credits that change hands: transfers with their ceilings, refunds, history.

use alloy_primitives::Address;
use automaton_core::money::Microcents;
use automaton_core::time::{Span, Timestamp};
use automaton_sqlite::chain::{CanonicalRow, Hash};
use rusqlite::{Row, params};

use super::writer::DbTx;
use super::{address, ledger, optional_row};
use crate::db::error::{DbError, DbTxError};
use crate::db::{
    Ceiling, CeilingOutcome, LedgerEntry, NewTransfer, PageRange, Refund, RefundOutcome,
    RefundReceipt, TransferCeilingChange, TransferOutcome, TransferRecord, UnclaimedCredits,
};
use crate::ledger::{Account, Posting, PostingReason};

/// Over how long transfers are added up.
const CEILING_OVER: Span = Span::from_secs(24 * 3600);

pub(super) fn transfer(tx: &DbTx<'_>, new: &NewTransfer) -> Result<TransferOutcome, DbTxError> {
    let request = CanonicalRow::new("transfer").bytes(new.to.as_slice()).int(new.cents);
    let request = request.maybe(new.note.as_deref()).hash();
    if let Some((before, transfer)) = find_by_name(tx, new)? {
        // What was answered is answered again, whatever has happened since.
        return Ok(match before == request {
            true => TransferOutcome::Done(transfer),
            false => TransferOutcome::OtherName,
        });
    }
    let available = ledger::balance(tx, new.from)?.available;
    let amount = Microcents::from_cents(new.cents)?;
    if available < amount {
        return Ok(TransferOutcome::Insufficient { available });
    }
    let Ceiling { cents: ceiling, transferred, .. } = ceiling(tx, &new.key, new.usual_ceiling)?;
    if transferred.checked_add(new.cents).is_none_or(|sum| sum > ceiling) {
        return Ok(TransferOutcome::OverCeiling { ceiling, transferred });
    }
    let id = new.id.to_string();
    ledger::post(tx, &Posting::transfer(new.from, new.to, amount, format!("transfer:{id}"))?)?;
    let left = ledger::balance(tx, new.from)?;
    let balance_after = left.available.plus(left.held)?;
    tx.sql.execute(
        include_str!("sql/transfer_insert.sql"),
        params![
            id,
            new.key.as_bytes(),
            new.from.as_slice(),
            new.to.as_slice(),
            new.cents,
            new.note,
            new.name,
            request.as_bytes(),
            balance_after.units(),
            tx.now.as_millis()
        ],
    )?;
    let to = new.to;
    let cents = new.cents;
    Ok(TransferOutcome::Done(TransferRecord { id, to, cents, balance_after }))
}

/// The transfer that was made under the same name, and what was asked for then.
fn find_by_name(
    tx: &DbTx<'_>,
    new: &NewTransfer,
) -> Result<Option<(Hash, TransferRecord)>, DbTxError> {
    let before = tx.sql.query_row(
        include_str!("sql/transfer_named.sql"),
        params![new.from.as_slice(), new.name],
        |row| {
            let transfer = TransferRecord {
                id: row.get("id")?,
                to: address(row, "recipient")?,
                cents: row.get("cents")?,
                balance_after: Microcents::new(row.get("balance_after")?),
            };
            Ok((hash(row, "request")?, transfer))
        },
    );
    Ok(optional_row(before)?)
}

pub(super) fn hash(row: &Row<'_>, column: &str) -> rusqlite::Result<Hash> {
    let bytes: [u8; 32] = row.get(column)?;
    Hash::from_slice(&bytes).ok_or(rusqlite::Error::InvalidQuery)
}

/// Returns the credits of wallets that never signed in, oldest first.
pub(super) fn unclaimed(tx: &DbTx<'_>, limit: u32) -> Result<Vec<UnclaimedCredits>, DbTxError> {
    let mut select = tx.sql.prepare_cached(include_str!("sql/unclaimed.sql"))?;
    let rows = select.query_map([limit], |row| {
        Ok(UnclaimedCredits {
            wallet: address(row, "wallet")?,
            amount: Microcents::new(row.get("amount")?),
            since: Timestamp::from_millis(row.get("since")?),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns what the wallet of a key may transfer. Ceiling and transfers are those of the wallet,
/// whichever key asked for them: another key is no other ceiling.
pub(super) fn ceiling(tx: &DbTx<'_>, key: &Hash, usual: i64) -> Result<Ceiling, DbTxError> {
    let since = tx.now.before(CEILING_OVER).as_millis();
    let row = params![key.as_bytes(), since, usual];
    let read = tx.sql.query_row(include_str!("sql/ceiling.sql"), row, |row| {
        Ok(Ceiling {
            prefix: row.get("prefix")?,
            cents: row.get("ceiling")?,
            transferred: row.get("transferred")?,
            serial: row.get("serial")?,
            creator: row.get("creator_address")?,
        })
    });
    optional_row(read)?
        .ok_or_else(|| DbError::Missing { noun: "API key", id: key.to_string() }.into())
}

pub(super) fn change_ceiling(
    tx: &DbTx<'_>,
    key: &Hash,
    change: TransferCeilingChange,
    usual: i64,
) -> Result<CeilingOutcome, DbTxError> {
    let before = ceiling(tx, key, usual)?;
    let serial = match change.serial {
        Some(serial) if serial <= before.serial => return Ok(CeilingOutcome::Stale),
        Some(serial) => serial,
        None if change.cents > before.cents => return Ok(CeilingOutcome::Unsigned),
        None => before.serial,
    };
    let row = params![key.as_bytes(), change.cents, serial];
    tx.sql.execute(include_str!("sql/ceiling_change.sql"), row)?;
    Ok(CeilingOutcome::Changed)
}

/// Gives a purchase or a charge back, once: what it added is taken, or what it took
/// is added.
pub(super) fn refund(tx: &DbTx<'_>, what: Refund) -> Result<RefundOutcome, DbTxError> {
    let (key, id) = match what {
        Refund::Payment(id) => ("key = 'payment:' || ?1", id),
        Refund::Posting(seq) => ("seq = ?1", seq),
    };
    let statement = format!("{} AND {key}", include_str!("sql/refundable.sql"));
    let posting = tx.sql.query_row(&statement, [id], |row| {
        let payer: Option<[u8; 20]> = row.get("payer")?;
        let refunded = RefundReceipt {
            wallet: address(row, "wallet")?,
            amount: Microcents::new(row.get("amount")?),
            payer: payer.map(Address::from),
        };
        let is_purchase = row.get::<_, String>("kind")? == PostingReason::Purchase.name();
        Ok((refunded, is_purchase, row.get::<_, String>("key")?, row.get("again")?))
    });
    let Some((refunded, is_purchase, key, again)) = optional_row(posting)? else {
        return Ok(RefundOutcome::Unknown);
    };
    if again {
        return Ok(RefundOutcome::Again(refunded));
    }
    let RefundReceipt { wallet, amount, .. } = refunded;
    let key = format!("refund:{key}");
    let available = ledger::balance(tx, wallet)?.available;
    let posting = match is_purchase {
        true if available < amount => return Ok(RefundOutcome::Spent { refunded, available }),
        true => Posting::refund_purchase(wallet, amount, key)?,
        false => Posting::refund_charge(wallet, amount, key)?,
    };
    ledger::post(tx, &posting)?;
    Ok(RefundOutcome::Done(refunded))
}

/// Returns the changes of a wallet's balance, newest first.
pub(super) fn history(
    tx: &DbTx<'_>,
    wallet: Address,
    page: PageRange,
) -> Result<Vec<LedgerEntry>, DbTxError> {
    let of = |account: Account| ledger::existing(tx, &account);
    let own = of(Account::Wallet(wallet))?;
    let held = of(Account::Held(wallet))?;
    let offset = i64::try_from(page.offset).unwrap_or(i64::MAX);
    let mut select = tx.sql.prepare_cached(include_str!("sql/history.sql"))?;
    let rows = select.query_map(params![own, held, page.limit, offset], |row| {
        let other = |column| row.get::<_, Option<[u8; 20]>>(column);
        let others = [other("sender")?, other("recipient")?].map(|it| it.map(Address::from));
        Ok(LedgerEntry {
            posting: row.get("posting")?,
            reason: match row.get::<_, String>("kind")?.as_str() {
                "purchase" => PostingReason::Purchase,
                "transfer" => PostingReason::Transfer,
                "refund" => PostingReason::Refund,
                "machine" => PostingReason::Machine,
                _ => PostingReason::Charge,
            },
            amount: Microcents::new(row.get("amount")?),
            balance_after: Microcents::new(row.get("balance_after")?),
            counterparty: others.into_iter().flatten().find(|other| *other != wallet),
            description: row.get("description")?,
            unclaimed: row.get("unclaimed")?,
            at: Timestamp::from_millis(row.get("at")?),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
