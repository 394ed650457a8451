//! Pure: what an automaton says of itself at its cloud, where its creator reads it.
//!
//! A report takes the place of the one before. What is unknown is left out, and must
//! never be written as zero.

use alloy_primitives::Address;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::money::{MicroUsdc, Microcents};
use crate::state::AgentState;
use crate::tier::SurvivalTier;
use crate::time::Timestamp;

/// The longest name and version in a report, in bytes.
pub const STATUS_TEXT_BYTES_MAX: usize = 256;

/// The body of `POST /v1/automata/status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusReport {
    /// Its name.
    pub name: String,
    /// State.
    pub state: AgentState,
    /// Survival tier, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<SurvivalTier>,
    /// Its credits, if they are known, in 10⁻⁶ cents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credits_microcents: Option<Microcents>,
    /// USDC of its wallet, if that is known, in 10⁻⁶ USDC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usdc_units: Option<MicroUsdc>,
    /// Turns of its life.
    pub turns: u64,
    /// Time of its birth.
    pub born_at_ms: Timestamp,
    /// When its process began. Its uptime is the time from then to `at_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at_ms: Option<Timestamp>,
    /// Until when it means to sleep, if it sleeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sleeps_until_ms: Option<Timestamp>,
    /// Time of the report, by its own clock.
    pub at_ms: Timestamp,
    /// The version of its program.
    pub version: String,
}

/// The reply to `GET /v1/automata/status/{address}`, for a key of that wallet and for
/// one of its creator's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusReply {
    /// Address of the automaton.
    #[schemars(with = "String")]
    pub address: Address,
    /// Time of arrival, by the cloud's clock.
    pub received_at_ms: Timestamp,
    /// The report.
    pub status: StatusReport,
}
