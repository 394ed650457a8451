//! The automaton's own transactions in the ledger: the nonce of each intent, and every signed
//! transaction.

use alloy_primitives::{Address, B256, keccak256};
use automaton_core::faults::FaultPoint;
use automaton_core::time::DAY;
use automaton_core::time::Timestamp;
use automaton_sqlite::write_synced;
use rusqlite::{OptionalExtension as _, Row, Transaction, params};

use super::{SignerLedger, store_anchor};
use crate::error::{SignerRefusal, SignerRefusalCode};
use crate::payload::{PermittedTransaction, SignedTransaction, TransactionCall, TransactionIntent};

/// The highest nonce that the ledger accepts. No account has sent as many transactions.
const NONCE_MAX: u64 = u32::MAX as u64;
/// The largest distance of a nonce hint from the highest nonce in the ledger. The account may
/// have been used elsewhere, or the ledger may come from a backup.
const NONCES_AHEAD_MAX: u64 = 100_000;
/// The most wei that the ledger counts.
const WEI_MAX: u64 = i64::MAX.unsigned_abs();

/// The identity of a call: chain, account, contract and hash of the call data.
type IntentKey = (u64, Address, Address, B256);

impl SignerLedger {
    /// Returns the transaction of an intent, for an account that pays at most `per_day` wei a
    /// day. If one was signed and the call does not raise the gas price, that one is returned.
    /// Otherwise `sign` makes one with the intent's nonce.
    pub(crate) fn transact(
        &mut self,
        payer: Address,
        per_day: u64,
        asked: &TransactionIntent,
        wall: Timestamp,
        permitted: &PermittedTransaction<'_>,
        sign: impl FnOnce(u64) -> Result<SignedTransaction, SignerRefusal>,
    ) -> Result<SignedTransaction, SignerRefusal> {
        let TransactionIntent { intent, call } = asked;
        let place = (call.chain_id, payer, call.to, keccak256(&call.data));
        let at = self.time.now(wall)?;
        write_synced(&mut self.connection, |transaction| {
            let id = intent.to_string();
            let query = include_str!("sql/find_transaction.sql");
            let last = transaction.query_row(query, [&id], read).optional()?;
            let nonce = match last {
                Some((stored, last)) => {
                    let is_legacy = |fee: Option<u64>| fee.is_none();
                    if stored != place
                        || is_legacy(last.priority_fee) != is_legacy(call.priority_fee)
                    {
                        let reason =
                            format!("intent: {intent} was signed before with other content");
                        return Err(SignerRefusal::new(SignerRefusalCode::Conflict, reason));
                    }
                    if !raises_gas_price(call, &last) {
                        return Ok(last);
                    }
                    last.nonce
                }
                None => next_nonce(transaction, place, call.nonce_hint)?,
            };
            let since = at.window.before(DAY).as_millis();
            let spent: u64 =
                transaction.query_row(include_str!("sql/fees.sql"), params![since, id], |row| {
                    row.get(0)
                })?;
            let fee = permitted.fee;
            let most = per_day.min(WEI_MAX);
            if spent.checked_add(fee).is_none_or(|sum| sum > most) {
                let rule = format!("is more than the ceiling of {most} wei a day");
                let reason = format!("gas: {fee} wei after {spent} wei in 24 hours {rule}");
                return Err(SignerRefusal::new(SignerRefusalCode::PerDay, reason));
            }
            let signed = sign(nonce)?;
            let (chain, payer, callee, data) = place;
            let row = params![
                id,
                chain,
                payer.as_slice(),
                callee.as_slice(),
                data.as_slice(),
                nonce,
                fee,
                at.window.as_millis(),
            ];
            transaction.execute(include_str!("sql/count_transaction.sql"), row)?;
            let SignedTransaction { hash, raw, max_fee, priority_fee, .. } = &signed;
            let row = params![id, hash.as_slice(), &raw[..], max_fee, priority_fee];
            transaction.execute(include_str!("sql/insert_signed.sql"), row)?;
            store_anchor(transaction, at)?;
            self.faults.reach(FaultPoint::SignerSigned);
            Ok(signed)
        })
    }
}

/// Returns true if a call raises the gas price of the last signed one. Nodes accept a replacement
/// only then.
fn raises_gas_price(call: &TransactionCall, last: &SignedTransaction) -> bool {
    call.max_fee > last.max_fee && call.priority_fee >= last.priority_fee
}

/// Returns the nonce for a new intent: the first one at or above the hint that was not signed.
///
/// A hint that was too high leaves no lasting gap, since the next correct hint fills it.
fn next_nonce(
    transaction: &Transaction<'_>,
    place: IntentKey,
    hint: u64,
) -> Result<u64, SignerRefusal> {
    let (chain, payer, ..) = place;
    let payer = payer.as_slice();
    let query = include_str!("sql/highest_nonce.sql");
    let highest: Option<u64> =
        transaction.query_row(query, params![chain, payer, NONCE_MAX], |row| row.get(0))?;
    let most = highest.map_or(NONCE_MAX, |highest| NONCE_MAX.min(highest + NONCES_AHEAD_MAX));
    if hint > most {
        let reason = format!(
            "nonce_hint: {hint} is more than {most}, the highest number that the account can \
             have; ask another node for the account's transaction count"
        );
        return Err(SignerRefusal::new(SignerRefusalCode::Nonce, reason));
    }
    let query = include_str!("sql/next_nonce.sql");
    Ok(transaction.query_row(query, params![chain, payer, hint, NONCE_MAX], |row| row.get(0))?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<(IntentKey, SignedTransaction)> {
    let payer = row.get::<_, [u8; 20]>(1)?.into();
    let callee = row.get::<_, [u8; 20]>(2)?.into();
    let place = (row.get(0)?, payer, callee, B256::new(row.get(3)?));
    let signed = SignedTransaction {
        nonce: row.get(4)?,
        hash: B256::new(row.get(5)?),
        raw: row.get::<_, Vec<u8>>(6)?.into(),
        max_fee: row.get(7)?,
        priority_fee: row.get(8)?,
    };
    Ok((place, signed))
}
