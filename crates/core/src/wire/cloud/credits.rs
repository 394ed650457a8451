//! Pure: credits that move between wallets, and the account's history.
//!
//! An amount that a client sends is whole cents and nothing else: a point, a sign,
//! an exponent or a unit is a mistake that must never be rounded into a payment.
//! Requests are read in both spellings that clients use, and written in one.

use alloy_primitives::Address;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::id::RemoteMachineId;
use crate::money::{MicroUsdc, Microcents};
use crate::time::Timestamp;

/// The header by which a client says that a request is the same as before.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The code of the refusal of a transfer beyond its key's ceiling.
pub const TRANSFER_CEILING: &str = "TRANSFER_CEILING";
/// The longest note of a transfer, in bytes.
pub const NOTE_BYTES_MAX: usize = 500;

/// The body of `POST /v1/credits/transfer`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TransferRequest {
    /// The wallet that gets the credits.
    #[serde(alias = "toAddress")]
    pub to_address: String,
    /// Amount in whole cents, at least one.
    #[serde(alias = "amountCents", deserialize_with = "amount")]
    pub amount_cents: i64,
    /// Note, at most 500 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The reply to it, which is sent when the ledger has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TransferReply {
    /// Its id.
    pub transfer_id: String,
    /// State of the transfer. A state that is not named here is no success.
    pub status: TransferStatus,
    /// Recipient.
    pub to_address: String,
    /// Amount in cents.
    pub amount_cents: i64,
    /// Balance of the sender afterwards, in whole cents, rounded down.
    #[serde(alias = "new_balance_cents")]
    pub balance_after_cents: i64,
}

/// State of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TransferStatus {
    /// Done.
    Completed,
}

/// The reply to `GET /v1/credits/history`, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryReply {
    /// Changes of the balance.
    #[serde(alias = "transactions")]
    pub history: Vec<HistoryEntry>,
    /// The same page of what the wallet sold: USDC on the chain, no credits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sales: Vec<SaleEntry>,
    /// Requested number of entries.
    pub limit: u32,
    /// Number of newer entries that are left out.
    pub offset: u64,
}

/// One change of what a wallet has, set aside or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryEntry {
    /// Its number in the ledger.
    pub id: i64,
    /// Reason of the change.
    #[serde(rename = "type")]
    pub kind: EntryKind,
    /// By how much, in whole cents, rounded towards zero.
    pub amount_cents: i64,
    /// By how much, exactly.
    pub amount_microcents: Microcents,
    /// Exact balance afterwards.
    pub balance_after_microcents: Microcents,
    /// The other wallet of a transfer, or who bought credits for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counterparty: Option<String>,
    /// The note of a transfer, the model of a call, or what was given back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// True if the recipient's wallet has not signed in yet; the credits wait for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unclaimed: bool,
    /// Time, in milliseconds since the Unix epoch.
    pub at_ms: Timestamp,
}

/// A request to a port of the wallet's machines that is paid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SaleEntry {
    /// Its number among the cloud's sales.
    pub id: i64,
    /// The machine.
    pub machine: RemoteMachineId,
    /// Its port.
    pub port: u16,
    /// Price, in base units of USDC.
    pub amount_micro_usdc: MicroUsdc,
    /// Address of the payer.
    pub payer: String,
    /// The transaction.
    pub transaction: String,
    /// Time, in milliseconds since the Unix epoch.
    pub at_ms: Timestamp,
}

/// Reason for a change of a balance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// Credits were bought.
    Purchase,
    /// A call of a model was paid.
    Charge,
    /// Credits went to another wallet, or came from it.
    Transfer,
    /// A purchase or a charge was given back.
    Refund,
    /// A machine ran.
    Machine,
}

/// The body of `POST /v1/credits/ceiling`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CeilingRequest {
    /// Ceiling for transfers of the wallet in any 24 hours, by all of its keys, in whole cents.
    #[serde(alias = "ceilingCents")]
    pub ceiling_cents: u32,
    /// The number of the message, higher than that of any before; without one the
    /// ceiling may only fall.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<u32>,
    /// The creator's signature (EIP-191) of the message that a refusal shows, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// The reply to it, and to `GET /v1/credits/ceiling`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CeilingReply {
    /// The beginning of the key that asks.
    pub key_prefix: String,
    /// Ceiling for transfers of the wallet in any 24 hours, by all of its keys, in whole cents.
    pub ceiling_cents: i64,
    /// Transfers of the wallet in the last 24 hours, by all of its keys, in whole cents.
    pub transferred_cents: i64,
    /// The number of the last message.
    pub serial: i64,
}

/// The text that a creator signs so that a wallet may transfer more, without a line's end at its
/// end.
#[derive(Debug, Clone, Copy, derive_more::Display)]
#[display(
    "I allow my automaton's wallet to transfer this much of its credits in 24 hours, by all of \
     its API keys.\n\nCloud: {cloud}\nWallet: {wallet}\n\
     Ceiling: {ceiling_cents} cents\nSerial: {serial}"
)]
pub struct CeilingMessage<'a> {
    /// Scheme, host and port of the cloud.
    pub cloud: &'a str,
    /// The wallet.
    pub wallet: Address,
    /// The new ceiling, in cents.
    pub ceiling_cents: u32,
    /// The number of the message.
    pub serial: u32,
}

/// Whole cents, at least one, as JSON's plain digits.
fn amount<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    let text = Box::<RawValue>::deserialize(from)?;
    cents(text.get()).ok_or_else(|| {
        let shown: String = text.get().chars().take(40).collect();
        serde::de::Error::custom(format!(
            "amount_cents is {shown}, and must be a whole number of cents of at least 1, in \
             digits alone: no sign, point, exponent, quotes or unit"
        ))
    })
}

fn cents(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // silent-ok: a number beyond 64 bits is no amount.
    let cents: i64 = digits.then(|| text.parse().ok()).flatten()?;
    // What cannot be counted in microcents cannot be anybody's.
    (cents > 0 && Microcents::from_cents(cents).is_ok()).then_some(cents)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(amount: &str) -> Result<TransferRequest, serde_json::Error> {
        serde_json::from_str(&format!(r#"{{"to_address":"0x1","amount_cents":{amount}}}"#))
    }

    #[test]
    fn an_amount_is_whole_cents_and_nothing_else() {
        assert_eq!(read("1").unwrap().amount_cents, 1);
        assert_eq!(read(" 250 ").unwrap().amount_cents, 250);
        for bad in [
            "33.3",
            "1.0",
            "-5",
            "0",
            "-0",
            "1e3",
            "\"5\"",
            "\"5c\"",
            "\"$5\"",
            "null",
            "true",
            "[5]",
            "9223372036854775807",
            "99999999999999999999",
        ] {
            let error = read(bad).unwrap_err().to_string();
            assert!(error.starts_with(&format!("amount_cents is {bad}, and must be")), "{error}");
        }
    }

    #[test]
    fn both_spellings_are_read_and_one_is_written() {
        let text = r#"{"toAddress":"0x1","amountCents":7,"note":"n"}"#;
        let read: TransferRequest = serde_json::from_str(text).unwrap();
        let text = r#"{"to_address":"0x1","amount_cents":7,"note":"n"}"#;
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        // Two amounts are no amount.
        let twice = r#"{"to_address":"0x1","amount_cents":7,"amountCents":8}"#;
        assert!(serde_json::from_str::<TransferRequest>(twice).is_err());
    }

    proptest! {
        #[test]
        fn every_number_of_cents_survives(cents in 1_i64..9_000_000_000_000) {
            prop_assert_eq!(read(&cents.to_string()).unwrap().amount_cents, cents);
        }
    }
}
