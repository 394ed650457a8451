//! Transfers in the cloud's ledger: the database alone, on the disk, without a network.
//!
//! Each is a transaction of its own, with its ceiling looked up and its four entries on
//! the disk before the next one begins.

use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U256};
use automaton::cmd::{CommandContext, id_generator};
use automaton::error::CliError;
use automaton::home::make_directory;
use automaton::process;
use automaton_cloud::DATABASE;
use automaton_cloud::db::{
    BeginPaymentOutcome, CreditPurchase, Db, NewIncomingPayment, NewKey, NewTransfer, SettledBy,
    SignInAttempt, TransferOutcome,
};
use automaton_core::money::MicroUsdc;
use automaton_core::time::{Span, SystemClock, Timestamp};
use automaton_core::wire::x402::Authorization;
use automaton_store::Hash;
use tokio::time::Instant;

use super::{BenchRate, LASTS, forget_peak, own_pid};

/// Sender and recipient.
pub(super) const GIVER: Address = Address::repeat_byte(1);
const TAKER: Address = Address::repeat_byte(2);
/// The giver's API key.
pub(super) const KEY: &str = "key";
/// First balance of the sender, in US dollars.
const USD: u32 = 2500;

/// Measures transfers of a cent.
///
/// # Errors
/// When the database cannot be made, or refuses.
pub(super) fn measure(context: &CommandContext) -> Result<BenchRate, CliError> {
    let scratch = context.scratch()?;
    let home = scratch.home();
    let failed = |error| CliError::internal("cannot make a ledger to measure", &error);
    make_directory(&home).map_err(failed)?;
    forget_peak();
    process::runtime()?.block_on(async {
        let db = Db::open(&home.join(DATABASE), Arc::new(SystemClock))?;
        let key = account(&db).await?;
        for wallet in [GIVER, TAKER] {
            buy(&db, wallet).await?;
        }
        let ids = id_generator();
        let began = Instant::now();
        let mut done = 0;
        while began.elapsed() < LASTS {
            let transfer = NewTransfer {
                id: ids.id(),
                key,
                from: GIVER,
                to: TAKER,
                cents: 1,
                note: None,
                name: None,
                usual_ceiling: i64::MAX,
            };
            match db.transfer(transfer).await? {
                TransferOutcome::Done(_) => done += 1,
                refused => {
                    return Err(CliError::user(format!("a transfer was refused: {refused:?}")));
                }
            }
        }
        Ok(BenchRate::new(done, began, &[own_pid()]))
    })
}

/// Makes the giver's key.
pub(super) async fn account(db: &Db) -> Result<Hash, CliError> {
    let lives = Span::from_secs(60);
    let nonce = "bench".to_owned();
    let token = Hash::of(b"token");
    let hash = Hash::of(KEY.as_bytes());
    let proof = Hash::of(b"proof");
    let nonce_ends = Timestamp::from_millis(i64::MAX);
    let attempt =
        SignInAttempt { nonce, nonce_ends, proof, wallet: GIVER, token, lives, replay: lives };
    db.sign_in(attempt).await?;
    let prefix = "bench".to_owned();
    let name = "bench".to_owned();
    db.create_api_key(NewKey { token, hash, prefix, name }).await?;
    Ok(hash)
}

/// Books a purchase.
pub(super) async fn buy(db: &Db, wallet: Address) -> Result<(), CliError> {
    let nonce = B256::left_padding_from(wallet.as_slice());
    let value = MicroUsdc::new(u64::from(USD) * 1_000_000);
    let payment = NewIncomingPayment {
        chain: 1,
        asset: Address::repeat_byte(3),
        authorization: Authorization {
            from: wallet,
            to: Address::repeat_byte(4),
            value: U256::from(value.units()),
            valid_after: U256::ZERO,
            valid_before: U256::MAX,
            nonce,
        },
        value,
        signature: Bytes::from_static(&[7; 65]),
        purchase: Some(CreditPurchase { recipient: wallet, usd: USD }),
        sale: None,
        guard: Span::ZERO,
        names: Vec::new(),
        request: Hash::of(wallet.as_slice()),
    };
    let BeginPaymentOutcome::New(id) = db.begin_payment(payment).await? else {
        return Err(CliError::user("the ledger to measure is not new"));
    };
    db.mark_settled(id, SettledBy::transaction(nonce)).await?;
    Ok(())
}
