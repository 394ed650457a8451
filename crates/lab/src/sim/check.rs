//! Properties that every history must have, whatever went wrong in it.
//!
//! The chain's transfers and what was seen to leave the signer are taken for the
//! truth; everybody's books are compared with them. Nothing is corrected here.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::Duration;

use alloy_primitives::{B256, U256};
use automaton_core::money::MicroUsdc;
use automaton_core::payment::{Payment, PaymentState, Purpose};
use automaton_core::time::Span;
use automaton_core::time::{DAY, HOUR};
use automaton_wallet::nonce;

use super::baseline::{LIMITS, SimBaseline};
use super::history::HistoryStop;
use super::life::SignatureRecord;
use super::world::SimWorld;
use super::{CHAIN_ID, SimError};

/// Time for which a client leaves a failing server alone.
const LEFT_ALONE: Duration = Duration::from_secs(61);
/// Number of further reads of books with gaps.
const READS_MAX: u32 = 3;
/// Microcents of a base unit of USDC.
const MICROCENTS: i64 = 100;

fn broken<T>(what: impl Into<String>) -> Result<T, HistoryStop> {
    Err(HistoryStop::Broken(what.into()))
}

fn dead() -> HistoryStop {
    HistoryStop::Broken("somebody died although nothing fails any more".to_owned())
}

fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> HistoryStop {
    HistoryStop::Sim(SimError::setup("books", error))
}

/// Describes the open work; empty at rest.
pub(super) async fn open(world: &SimWorld<'_>) -> Result<String, HistoryStop> {
    let agent = world.agent.as_ref().ok_or_else(dead)?;
    let cloud = world.cloud.as_ref().ok_or_else(dead)?;
    let mut open = Vec::new();
    for payment in agent.store.open_payments().await.map_err(unreadable)? {
        open.push(format!("{} is {:?}", payment.id, payment.state));
    }
    for payment in cloud.backend.db.unfinished_payments().await.map_err(unreadable)? {
        open.push(format!("the cloud's payment {} is {:?}", payment.id, payment.state));
    }
    if !world.net.chain.is_quiet() {
        open.push("a transaction waits for a block".to_owned());
    }
    Ok(open.join("; "))
}

/// Compares all books; gives how many payments there are, and how many are settled.
pub(super) async fn books(
    world: &SimWorld<'_>,
    seedling: &SimBaseline,
) -> Result<(u64, u64), HistoryStop> {
    let agent = world.agent.as_ref().ok_or_else(dead)?;
    let payments = agent.store.payments().await.map_err(unreadable)?;
    let signed = world.log.lock().unwrap_or_else(PoisonError::into_inner).clone();
    signatures(&signed, &payments, seedling)?;
    ceilings(&signed)?;
    transfers(world, &payments)?;
    credits(world, seedling, &payments).await?;
    let mut books = agent.treasury.books().await.map_err(unreadable)?;
    for _ in 0..READS_MAX {
        if books.has_gaps() {
            // Whoever failed too often is left alone for a while.
            tokio::time::sleep(LEFT_ALONE).await;
            books = agent.treasury.books().await.map_err(unreadable)?;
        }
    }
    if !books.agree() {
        return broken(format!("the books do not agree: {books:?}"));
    }
    let settled = payments.iter().filter(|payment| payment.state == PaymentState::Settled).count();
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    Ok((count(payments.len()), count(settled)))
}

/// An intent has one signature, its nonce is the intent's, and the agent knows of
/// it or has given it up.
fn signatures(
    signed: &[SignatureRecord],
    payments: &[Payment],
    seedling: &SimBaseline,
) -> Result<(), HistoryStop> {
    let mut known = BTreeMap::new();
    for SignatureRecord { intent, authorization, .. } in signed {
        let Some(payment) = payments.iter().find(|payment| payment.id.to_string() == *intent)
        else {
            return broken(format!("{intent} was signed and is not in the record"));
        };
        if authorization.nonce != nonce(seedling.wallet, CHAIN_ID, payment.id) {
            return broken(format!("the nonce of {intent} is not derived from it"));
        }
        if known.insert(payment.id, authorization).is_some_and(|before| before != authorization) {
            return broken(format!("{intent} was signed twice, not alike"));
        }
        if payment.signed.is_none() && payment.state != PaymentState::Failed {
            return broken(format!("{intent} was signed, and is {:?}", payment.state));
        }
    }
    match payments
        .iter()
        .find(|payment| payment.signed.is_some() && !known.contains_key(&payment.id))
    {
        Some(payment) => broken(format!("{} is recorded as signed and was not", payment.id)),
        None => Ok(()),
    }
}

/// No window of true time holds more than its ceiling.
fn ceilings(signed: &[SignatureRecord]) -> Result<(), HistoryStop> {
    let mut first: BTreeMap<B256, &SignatureRecord> = BTreeMap::new();
    for left in signed {
        first.entry(left.authorization.nonce).or_insert(left);
    }
    for newest in first.values() {
        let sum = |window: Span, counts: &dyn Fn(&SignatureRecord) -> bool| {
            let within = |left: &&&SignatureRecord| {
                left.at <= newest.at && newest.at.since(left.at) < window && counts(left)
            };
            first.values().filter(within).map(|left| left.authorization.value).sum::<U256>()
        };
        let to_it = |left: &SignatureRecord| left.authorization.to == newest.authorization.to;
        let any = |_: &SignatureRecord| true;
        for (sum, most, what) in [
            (newest.authorization.value, LIMITS.per_payment, "a payment"),
            (sum(HOUR, &any), LIMITS.per_hour, "an hour"),
            (sum(DAY, &any), LIMITS.per_day, "a day"),
            (sum(DAY, &to_it), LIMITS.per_payee, "a day to one payee"),
        ] {
            if sum > U256::from(most.units()) {
                return broken(format!("{sum} was signed within {what}, whose ceiling is {most}"));
            }
        }
    }
    Ok(())
}

/// Checks payment by payment that the chain moved what the record calls settled.
fn transfers(world: &SimWorld<'_>, payments: &[Payment]) -> Result<(), HistoryStop> {
    let moved = world.net.chain.transfers();
    let is_settled = |payment: &&Payment| {
        payment.state == PaymentState::Settled && payment.terms.purpose == Purpose::TopUp
    };
    let settled: Vec<&Payment> = payments.iter().filter(is_settled).collect();
    for transfer in &moved {
        let is = |payment: &&&Payment| {
            payment.signed.as_ref().is_some_and(|signed| signed.nonce == transfer.nonce)
        };
        let mut of = payments.iter().filter(|payment| is(&payment));
        match (of.next(), of.next()) {
            (Some(payment), None) if payment.state != PaymentState::Settled => {
                return broken(format!("{} moved, and is {:?}", payment.id, payment.state));
            }
            (Some(payment), None)
                if U256::from(payment.terms.money.usdc().units()) != transfer.value =>
            {
                return broken(format!("{} moved {} units", payment.id, transfer.value));
            }
            (Some(_), None) => {}
            _ => return broken(format!("a transfer of {} units is of no intent", transfer.value)),
        }
    }
    if moved.len() != settled.len() {
        return broken(format!(
            "{} payments are recorded as settled, and {} moved",
            settled.len(),
            moved.len()
        ));
    }
    Ok(())
}

/// The cloud has credited what moved, and given on what the record says was given; its
/// ledger is sound.
async fn credits(
    world: &SimWorld<'_>,
    seedling: &SimBaseline,
    payments: &[Payment],
) -> Result<(), HistoryStop> {
    let cloud = world.cloud.as_ref().ok_or_else(dead)?;
    let books = cloud.backend.db.check_books().await.map_err(unreadable)?;
    if books.sum.units() != 0 || books.faults > 0 {
        return broken(format!("the cloud's ledger is not sound: {books:?}"));
    }
    let credits = async |wallet| {
        let balance = cloud.backend.db.balance(wallet).await.map_err(unreadable)?;
        Ok::<_, HistoryStop>(balance.available.units().saturating_add(balance.held.units()))
    };
    let left = credits(seedling.wallet).await?;
    let given = credits(seedling.other).await?;
    let moved: U256 = world.net.chain.transfers().iter().map(|transfer| transfer.value).sum();
    let moved = MicroUsdc::new(moved.saturating_to());
    let bought = i64::try_from(moved.units()).unwrap_or(i64::MAX).saturating_mul(MICROCENTS);
    if left.saturating_add(given) != bought {
        return broken(format!(
            "{moved} moved, and the cloud has {left} microcents and {given} that were given on"
        ));
    }
    let is_gift = |payment: &&Payment| {
        payment.state == PaymentState::Settled && payment.terms.purpose == Purpose::Transfer
    };
    let recorded = payments.iter().filter(is_gift).try_fold(0_i64, |sum, payment| {
        Ok::<_, HistoryStop>(
            sum.saturating_add(payment.terms.money.worth().map_err(unreadable)?.units()),
        )
    })?;
    if recorded != given {
        return broken(format!("{recorded} microcents are recorded as given, and {given} were"));
    }
    Ok(())
}
