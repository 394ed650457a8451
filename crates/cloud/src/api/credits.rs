//! Credits that change hands: `/v1/credits/transfer`, `/ceiling` and `/history`.
//!
//! A transfer is answered when the ledger has it. An API key lies where an agent
//! can be talked into using it, so what a wallet may give away is limited, by all of its keys
//! together, and only the creator's signature raises that; no key, old or new, may stand in
//! for it.

use std::sync::Arc;

use alloy_primitives::{Address, eip191_hash_message, hex};
use automaton_core::wire::cloud::{
    CeilingMessage, CeilingReply, CeilingRequest, EntryKind, ErrorDetails, HistoryEntry,
    HistoryReply, NOTE_BYTES_MAX, SaleEntry, TRANSFER_CEILING, TransferReply, TransferRequest,
    TransferStatus,
};
use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::extract::{JsonBody, RequestName};
use crate::access::Caller;
use crate::app::App;
use crate::billing::facilitator::signer;
use crate::db::{
    Ceiling, CeilingOutcome, LedgerEntry, NewTransfer, PageRange, SaleRecord,
    TransferCeilingChange, TransferOutcome, TransferRecord,
};
use crate::error::ApiError;
use crate::ledger::PostingReason;

/// The most entries of one page of a history.
const PAGE_MAX: u32 = 100;

pub(super) async fn transfer(
    State(app): State<Arc<App>>,
    caller: Caller,
    RequestName(name): RequestName,
    JsonBody(TransferRequest { to_address, amount_cents, note }): JsonBody<TransferRequest>,
) -> Result<Json<TransferReply>, ApiError> {
    if note.as_ref().is_some_and(|note| note.len() > NOTE_BYTES_MAX) {
        let sentence = format!("note is longer than {NOTE_BYTES_MAX} bytes");
        return Err(ApiError::invalid(sentence));
    }
    let to = recipient(&to_address)?;
    if to == caller.wallet {
        return Err(ApiError::invalid("to_address is the wallet that the credits come from"));
    }
    let new = NewTransfer {
        id: app.ids.id(),
        key: caller.key,
        from: caller.wallet,
        to,
        cents: amount_cents,
        note,
        name,
        usual_ceiling: app.transfer_daily_cents,
    };
    match app.db.transfer(new).await.map_err(|error| app.failed(&error))? {
        TransferOutcome::Done(transfer) => Ok(Json(done(transfer))),
        TransferOutcome::OtherName => {
            Err(ApiError::conflict("this Idempotency-Key came with another transfer"))
        }
        TransferOutcome::Insufficient { available } => {
            let needed = automaton_core::money::Microcents::from_cents(amount_cents);
            let needed = needed.map_err(|error| ApiError::internal(&app.report, &error))?;
            Err(ApiError::insufficient(needed, available))
        }
        TransferOutcome::OverCeiling { ceiling, transferred } => {
            Err(over_ceiling(amount_cents, ceiling, transferred))
        }
    }
}

fn done(transfer: TransferRecord) -> TransferReply {
    TransferReply {
        transfer_id: transfer.id,
        status: TransferStatus::Completed,
        to_address: transfer.to.to_string(),
        amount_cents: transfer.cents,
        balance_after_cents: transfer.balance_after.cents_floor(),
    }
}

fn over_ceiling(cents: i64, ceiling: i64, transferred: i64) -> ApiError {
    let sentence = format!(
        "{cents} cents after {transferred} in 24 hours are more than this wallet's ceiling \
         of {ceiling} cents, which only the automaton's creator can raise"
    );
    let mut refusal = ApiError::new(StatusCode::FORBIDDEN, TRANSFER_CEILING, sentence);
    refusal.body.details = ErrorDetails {
        required_cents: Some(cents),
        ceiling_cents: Some(ceiling),
        transferred_cents: Some(transferred),
        ..ErrorDetails::default()
    };
    refusal
}

fn address(text: &str) -> Option<Address> {
    // silent-ok: a text that is no address names no wallet.
    text.strip_prefix("0x").and_then(|digits| digits.parse().ok())
}

/// Reads the wallet that gets credits. It need not have an account yet: the credits wait for
/// its first sign-in. So a mistyped address would lose them, and a text with the mixed case
/// of EIP-55 has to be right in it.
fn recipient(text: &str) -> Result<Address, ApiError> {
    let wrong = |what: &str| Err(ApiError::invalid(format!("to_address {what}")));
    let Some(to) = address(text) else {
        return wrong("is no address such as 0x70997970…");
    };
    if to == Address::ZERO {
        return wrong("is the zero address, which nobody has");
    }
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let has = |class: fn(&char) -> bool| digits.chars().any(|digit| class(&digit));
    let is_mixed = has(char::is_ascii_uppercase) && has(char::is_ascii_lowercase);
    match is_mixed && to.to_string() != text {
        true => wrong("has a letter in the wrong case (EIP-55): it may be mistyped"),
        false => Ok(to),
    }
}

pub(super) async fn ceiling(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Json<CeilingReply>, ApiError> {
    app.ceiling(&caller).await.map(|ceiling| Json(to_reply(ceiling)))
}

pub(super) async fn change_ceiling(
    State(app): State<Arc<App>>,
    caller: Caller,
    JsonBody(asked): JsonBody<CeilingRequest>,
) -> Result<Json<CeilingReply>, ApiError> {
    let before = app.ceiling(&caller).await?;
    let serial = app.approved(&caller, &before, &asked)?;
    let change =
        TransferCeilingChange { cents: asked.ceiling_cents.into(), serial: serial.map(i64::from) };
    let changed = app.db.change_ceiling(caller.key, change, app.transfer_daily_cents).await;
    match changed.map_err(|error| app.failed(&error))? {
        CeilingOutcome::Changed => {
            app.ceiling(&caller).await.map(|ceiling| Json(to_reply(ceiling)))
        }
        CeilingOutcome::Stale => Err(ApiError::conflict(format!(
            "serial must be above {}, that of the last message",
            before.serial
        ))),
        CeilingOutcome::Unsigned => Err(app.unsigned(&caller, &before, &asked)),
    }
}

fn to_reply(ceiling: Ceiling) -> CeilingReply {
    CeilingReply {
        key_prefix: ceiling.prefix,
        ceiling_cents: ceiling.cents,
        transferred_cents: ceiling.transferred,
        serial: ceiling.serial,
    }
}

impl App {
    async fn ceiling(&self, caller: &Caller) -> Result<Ceiling, ApiError> {
        let ceiling = self.db.ceiling(caller.key, self.transfer_daily_cents).await;
        ceiling.map_err(|error| self.failed(&error))
    }

    /// The number of the message that the creator has signed, if there is one.
    fn approved(
        &self,
        caller: &Caller,
        before: &Ceiling,
        asked: &CeilingRequest,
    ) -> Result<Option<u32>, ApiError> {
        let Some(signature) = &asked.signature else { return Ok(None) };
        let serial = asked
            .serial
            .ok_or_else(|| ApiError::invalid("serial is missing: the signed message has one"))?;
        let text = self.message(caller, asked.ceiling_cents, serial);
        // silent-ok: what is no hexadecimal is nobody's signature.
        let signature = hex::decode(signature).unwrap_or_default();
        let signed = signer(&signature, eip191_hash_message(&text));
        let creator = before.creator.as_deref().and_then(address);
        if creator.is_none() || signed != creator {
            return Err(self.unsigned(caller, before, asked));
        }
        Ok(Some(serial))
    }

    fn message(&self, caller: &Caller, cents: u32, serial: u32) -> String {
        let message = CeilingMessage {
            cloud: &self.public_url,
            wallet: caller.wallet,
            ceiling_cents: cents,
            serial,
        };
        message.to_string()
    }

    /// Says what the creator would have to sign.
    fn unsigned(&self, caller: &Caller, before: &Ceiling, asked: &CeilingRequest) -> ApiError {
        let forbidden = |what| ApiError::new(StatusCode::FORBIDDEN, "CREATOR_ONLY", what);
        let Some(creator) = &before.creator else {
            return forbidden(
                "only a creator can raise this, and the wallet's automaton is not registered"
                    .to_owned(),
            );
        };
        let next = u32::try_from(before.serial).unwrap_or(u32::MAX).saturating_add(1);
        let serial = asked.serial.unwrap_or(next);
        let text = self.message(caller, asked.ceiling_cents, serial);
        forbidden(format!("only {creator} can raise this, by signing with EIP-191:\n{text}"))
    }
}

/// The query of a page.
#[derive(Deserialize, JsonSchema)]
pub(super) struct HistoryQuery {
    limit: Option<String>,
    offset: Option<String>,
}

pub(super) async fn history(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(asked): Query<HistoryQuery>,
) -> Result<Json<HistoryReply>, ApiError> {
    // silent-ok: what is no number is no page.
    let number = |text: Option<String>, usual| text.map_or(Some(usual), |text| text.parse().ok());
    let limit = number(asked.limit, 20).filter(|limit| (1..=PAGE_MAX.into()).contains(limit));
    let limit = limit.and_then(|limit| u32::try_from(limit).ok());
    let wrong = |what: String| ApiError::invalid(what);
    let limit = limit.ok_or_else(|| wrong(format!("limit is no number from 1 to {PAGE_MAX}")))?;
    let offset: Option<u64> = number(asked.offset, 0);
    let offset = offset.ok_or_else(|| wrong("offset is no number of entries".to_owned()))?;
    let rows = app.db.history(caller.wallet, PageRange { limit, offset }).await;
    let rows = rows.map_err(|error| app.failed(&error))?;
    let history = rows.into_iter().map(entry).collect();
    let sold = app.db.sales(caller.wallet, PageRange { limit, offset }).await;
    let sold = sold.map_err(|error| app.failed(&error))?;
    let sales = sold.into_iter().map(sale).collect();
    Ok(Json(HistoryReply { history, sales, limit, offset }))
}

fn sale(sold: SaleRecord) -> SaleEntry {
    SaleEntry {
        id: sold.seq,
        machine: sold.sale.machine.into(),
        port: sold.sale.port,
        amount_micro_usdc: sold.amount,
        payer: sold.payer.to_string(),
        transaction: sold.transaction.to_string(),
        at_ms: sold.at,
    }
}

fn entry(entry: LedgerEntry) -> HistoryEntry {
    HistoryEntry {
        id: entry.posting,
        kind: match entry.reason {
            PostingReason::Purchase => EntryKind::Purchase,
            PostingReason::Transfer => EntryKind::Transfer,
            PostingReason::Refund => EntryKind::Refund,
            PostingReason::Machine => EntryKind::Machine,
            PostingReason::Charge | PostingReason::Hold | PostingReason::Release => {
                EntryKind::Charge
            }
        },
        amount_cents: entry.amount.cents_towards_zero(),
        amount_microcents: entry.amount,
        balance_after_microcents: entry.balance_after,
        counterparty: entry.counterparty.map(|wallet| wallet.to_string()),
        description: entry.description,
        unclaimed: entry.unclaimed,
        at_ms: entry.at,
    }
}
