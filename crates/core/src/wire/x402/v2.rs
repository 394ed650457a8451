//! Pure: x402 version 2: everything in headers, chains as CAIP-2.
//!
//! Source: the x402 specification, version 2, transport HTTP. The extensions of
//! a demand are echoed by the client and must never be interpreted here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ExactPayload, Extra, lenient};

/// The number of this version.
pub const VERSION: u32 = 2;

/// What `PAYMENT-REQUIRED` holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PaymentRequiredV2 {
    /// The version.
    #[serde(rename = "x402Version", deserialize_with = "lenient::whole")]
    pub version: u32,
    /// Why a payment is asked for, or was not taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What is paid for.
    pub resource: ResourceInfo,
    /// The ways to pay.
    pub accepts: Vec<PaymentRequirementsV2>,
    /// Extensions of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Value>,
}

/// What is paid for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceInfo {
    /// Its URL.
    pub url: String,
    /// What it is, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// One way to pay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PaymentRequirementsV2 {
    /// How: `exact`.
    pub scheme: String,
    /// Where, as CAIP-2.
    pub network: String,
    /// How much, in base units, as decimal digits.
    #[serde(deserialize_with = "lenient::digits")]
    pub amount: String,
    /// The token's contract.
    pub asset: String,
    /// The payee.
    pub pay_to: String,
    /// How long the authorization should be valid, in seconds.
    #[serde(deserialize_with = "lenient::whole")]
    pub max_timeout_seconds: u64,
    /// The token's domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Extra>,
}

/// What `PAYMENT-SIGNATURE` holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PaymentPayloadV2 {
    /// The version.
    #[serde(rename = "x402Version", deserialize_with = "lenient::whole")]
    pub version: u32,
    /// What is paid for. It is only passed on, so any other form counts as missing.
    #[serde(
        default,
        deserialize_with = "lenient::if_readable",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<ResourceInfo>")]
    pub resource: Option<ResourceInfo>,
    /// The way that the client chose.
    pub accepted: PaymentRequirementsV2,
    /// The authorization.
    pub payload: ExactPayload,
    /// The server's extensions, echoed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Value>,
}

/// What `PAYMENT-RESPONSE` holds, for success and failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SettlementResponse {
    /// Whether the payment was taken.
    pub success: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_reason: Option<String>,
    /// Who paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payer: Option<String>,
    /// The transaction; empty when there is none.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub transaction: String,
    /// The chain.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub network: String,
    /// How much was taken, in base units.
    #[serde(
        default,
        deserialize_with = "lenient::optional_digits",
        skip_serializing_if = "Option::is_none"
    )]
    pub amount: Option<String>,
}
