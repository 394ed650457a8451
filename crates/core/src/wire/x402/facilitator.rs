//! Pure: what a seller asks a facilitator, in both versions.
//!
//! Source: the x402 specification, facilitator interface. A payment that is not
//! good is an answer like any other; a status must never be read in its place.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Extra, PaymentPayload, lenient, v1, v2};

/// The body of `POST /verify` and `POST /settle`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FacilitatorRequest {
    /// The version that the seller speaks.
    #[serde(rename = "x402Version", deserialize_with = "lenient::whole")]
    pub version: u32,
    /// What the buyer sent.
    pub payment_payload: PaymentPayload,
    /// What the seller asked for.
    pub payment_requirements: PaymentRequirements,
}

/// What a seller asks for: what has an `amount` is version 2.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PaymentRequirements {
    /// Version 2.
    V2(v2::PaymentRequirementsV2),
    /// Version 1.
    V1(v1::PaymentRequirementsV1),
}

/// The reply to `POST /verify`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerifyResponse {
    /// Whether the payment can be settled now.
    pub is_valid: bool,
    /// Why not: a code of x402's SDKs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid_reason: Option<String>,
    /// Who pays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payer: Option<String>,
}

/// The reply to `GET /supported`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SupportedResponse {
    /// What can be settled.
    pub kinds: Vec<SupportedKind>,
    /// Extensions of the facilitator.
    pub extensions: Vec<String>,
    /// By a pattern of chains, the accounts that send the transactions.
    pub signers: BTreeMap<String, Vec<String>>,
}

/// One kind of payment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SupportedKind {
    /// The version.
    #[serde(rename = "x402Version")]
    pub version: u32,
    /// The scheme.
    pub scheme: String,
    /// The chain, as the version writes it.
    pub network: String,
    /// The token's domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Extra>,
}
