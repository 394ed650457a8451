//! Nonces, tokens, keys and registrations.

use alloy_primitives::Address;
use automaton_core::time::Timestamp;
use automaton_core::wire::cloud::RegistrationRequest;
use automaton_sqlite::chain::Hash;
use rusqlite::params;

use super::optional_row;
use super::writer::DbTx;
use crate::db::error::DbTxError;
use crate::db::{KeyOutcome, NewKey, RegisterOutcome, SignInAttempt, SignInOutcome};

/// Sign-ins that are remembered at a time. Anybody with an account of its own may sign in, so
/// the oldest makes room: its token is exchanged long ago, or was never wanted.
const SIGN_INS_MAX: i64 = 10_000;
/// Keys of wallets that were never in the ledger, and keys of one wallet: beyond these the oldest
/// makes room. A client that lost its key that way signs in again.
const STRANGERS_KEYS_MAX: i64 = 10_000;
const WALLET_KEYS_MAX: i64 = 1_000;
/// The most times that the key of one access token is shown: once, and once more for a client whose
/// first reply was lost.
const SHOWN_MAX: i64 = 2;

pub(super) fn secret(tx: &DbTx<'_>, fresh: [u8; 32]) -> Result<[u8; 32], DbTxError> {
    let statement = "INSERT INTO server (one, secret, made_at) VALUES (1, ?1, ?2) \
                     ON CONFLICT DO NOTHING";
    tx.sql.execute(statement, params![fresh, tx.now.as_millis()])?;
    Ok(tx.sql.query_row("SELECT secret FROM server", [], |row| row.get(0))?)
}

/// Forgets the sign-ins that are over, and the oldest where there are too many.
fn forget_sign_ins(tx: &DbTx<'_>) -> Result<(), DbTxError> {
    for (table, key) in [("used_nonces", "nonce"), ("access_tokens", "hash")] {
        let over = format!("DELETE FROM {table} WHERE expires_at < ?1");
        tx.sql.prepare_cached(&over)?.execute([tx.now.as_millis()])?;
        let oldest = format!(
            "DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} ORDER BY expires_at \
             LIMIT max(0, (SELECT count(*) FROM {table}) - ?1))"
        );
        tx.sql.prepare_cached(&oldest)?.execute([SIGN_INS_MAX - 1])?;
    }
    Ok(())
}

pub(super) fn sign_in(tx: &DbTx<'_>, attempt: &SignInAttempt) -> Result<SignInOutcome, DbTxError> {
    let now = tx.now.as_millis();
    if attempt.nonce_ends < tx.now {
        return Ok(SignInOutcome::BadNonce);
    }
    let statement = "SELECT proof, used_at FROM used_nonces WHERE nonce = ?1";
    let used = optional_row(tx.sql.query_row(statement, [&attempt.nonce], |row| {
        Ok((row.get::<_, [u8; 32]>(0)?, row.get::<_, i64>(1)?))
    }))?;
    if let Some((proof, at)) = used {
        let same = proof == *attempt.proof.as_bytes();
        let recent = tx.now.since(Timestamp::from_millis(at)) <= attempt.replay;
        return Ok(match same && recent {
            true => SignInOutcome::Granted,
            false => SignInOutcome::BadNonce,
        });
    }
    forget_sign_ins(tx)?;
    let statement = include_str!("sql/nonce_used.sql");
    let nonce_ends = attempt.nonce_ends.as_millis();
    tx.sql.execute(statement, params![attempt.nonce, nonce_ends, attempt.proof.as_bytes(), now])?;
    let statement = include_str!("sql/access_token_insert.sql");
    let ends = tx.now.after(attempt.lives).as_millis();
    tx.sql
        .execute(statement, params![attempt.token.as_bytes(), attempt.wallet.as_slice(), ends])?;
    Ok(SignInOutcome::Granted)
}

pub(super) fn create_api_key(tx: &DbTx<'_>, key: &NewKey) -> Result<KeyOutcome, DbTxError> {
    let now = tx.now.as_millis();
    let statement = "SELECT wallet FROM access_tokens WHERE hash = ?1 AND expires_at >= ?2";
    let wallet = tx
        .sql
        .query_row(statement, params![key.token.as_bytes(), now], |row| row.get::<_, [u8; 20]>(0));
    let Some(wallet) = optional_row(wallet)? else {
        return Ok(KeyOutcome::BadToken);
    };
    let statement = "SELECT hash, shown FROM api_keys WHERE token = ?1";
    let made = optional_row(tx.sql.query_row(statement, [key.token.as_bytes()], |row| {
        Ok((row.get::<_, [u8; 32]>(0)?, row.get::<_, i64>(1)?))
    }))?;
    match made {
        Some((hash, shown)) if hash == *key.hash.as_bytes() && shown < SHOWN_MAX => {
            tx.sql.execute("UPDATE api_keys SET shown = shown + 1 WHERE hash = ?1", [hash])?;
            Ok(KeyOutcome::Again)
        }
        Some(_) => Ok(KeyOutcome::Spent),
        None => {
            let statement = include_str!("sql/api_key_insert.sql");
            let hash = key.hash.as_bytes();
            let token = key.token.as_bytes();
            make_room(tx, &wallet)?;
            tx.sql.execute(statement, params![hash, wallet, key.prefix, key.name, token, now])?;
            Ok(KeyOutcome::Made)
        }
    }
}

/// Makes room for one more key of a wallet: of its own, and of all strangers, with what those
/// said of themselves.
fn make_room(tx: &DbTx<'_>, wallet: &[u8; 20]) -> Result<(), DbTxError> {
    let own = include_str!("sql/wallet_oldest.sql");
    tx.sql.prepare_cached(own)?.execute(params![wallet, WALLET_KEYS_MAX - 1])?;
    let mut select = tx.sql.prepare_cached(include_str!("sql/strangers_oldest.sql"))?;
    let oldest = select.query_map([STRANGERS_KEYS_MAX - 1], |row| {
        Ok((row.get::<_, [u8; 32]>("hash")?, row.get::<_, [u8; 20]>("wallet")?))
    })?;
    let oldest: Vec<_> = oldest.collect::<Result<_, _>>()?;
    for (hash, stranger) in oldest {
        tx.sql.execute("DELETE FROM api_keys WHERE hash = ?1", [hash])?;
        for table in ["registrations", "statuses", "ceilings"] {
            let statement = format!(
                "DELETE FROM {table} WHERE wallet = ?1 \
                 AND NOT EXISTS (SELECT 1 FROM api_keys WHERE api_keys.wallet = ?1)"
            );
            tx.sql.prepare_cached(&statement)?.execute([stranger])?;
        }
    }
    Ok(())
}

pub(super) fn key_owner(tx: &DbTx<'_>, hash: &Hash) -> Result<Option<Address>, DbTxError> {
    let mut statement = tx.sql.prepare_cached("SELECT wallet FROM api_keys WHERE hash = ?1")?;
    let owner = statement.query_row([hash.as_bytes()], |row| super::address(row, "wallet"));
    Ok(optional_row(owner)?)
}

pub(super) fn register(
    tx: &DbTx<'_>,
    wallet: Address,
    row: &RegistrationRequest,
) -> Result<RegisterOutcome, DbTxError> {
    let before = tx.sql.query_row(
        include_str!("sql/registration.sql"),
        params![wallet.as_slice(), row.creator_address, row.name, row.bio, row.genesis_prompt_hash],
        |row| Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?)),
    );
    Ok(match optional_row(before)? {
        Some((id, true)) => RegisterOutcome::Registered(id),
        Some((_, false)) => RegisterOutcome::Conflict,
        None => {
            tx.sql.execute(
                include_str!("sql/registration_insert.sql"),
                params![
                    wallet.as_slice(),
                    row.automaton_id,
                    row.creator_address,
                    row.name,
                    row.bio,
                    row.genesis_prompt_hash,
                    row.nonce,
                    row.payload_hash.0,
                    tx.now.as_millis()
                ],
            )?;
            RegisterOutcome::Registered(row.automaton_id.clone())
        }
    })
}
