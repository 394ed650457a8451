//! Pure: the three sub-objects that the reference runtime's configuration has.
//!
//! They are merged key by key over the defaults here, so that a file may name
//! one limit and keep the others. The defaults are the reference's; a value
//! that is out of range must never be replaced by a default in silence.

use std::collections::BTreeMap;

use automaton_agent::SoulSettings;
use automaton_core::inference_budget::InferenceCeilings;
use automaton_core::money::Microcents;
use automaton_core::money_defaults;
use automaton_core::time::{Span, Timestamp};
use automaton_inference::routing::RoutingRules;
use automaton_inference::{DatedPrices, PriceSchedule};
use automaton_memory::soul::Alignment;
use automaton_policy::PaymentLimits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::{Day, PricesFile, Ranged};

/// The greatest limit: ten million dollars.
pub(crate) const CENTS_MAX: u64 = 1_000_000_000;

/// Cents of any limit.
type Cents = Ranged<0, CENTS_MAX>;

/// A share of the whole; the reference writes it as a fraction.
type Fraction = f64;

/// Limits for spending without asking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct TreasuryPolicy {
    /// The largest single transfer.
    max_single_transfer_cents: Cents,
    /// All transfers of an hour.
    max_hourly_transfer_cents: Cents,
    /// All transfers of a day.
    max_daily_transfer_cents: Cents,
    /// Balance that must be left after a transfer.
    minimum_reserve_cents: Cents,
    /// The largest payment for a request.
    max_x402_payment_cents: Cents,
    /// Hosts that may be paid.
    x402_allowed_domains: Vec<String>,
    /// Milliseconds between two transfers.
    transfer_cooldown_ms: Ranged<0, 86_400_000>,
    /// Transfers of one turn.
    max_transfers_per_turn: Ranged<0, 100>,
    /// All inference of a day; 500 by default. Who says it here lets a wake that the creator
    /// caused work up to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_inference_daily_cents: Option<Cents>,
    /// Above this the creator is asked.
    require_confirmation_above_cents: Cents,
    /// True if the creator is asked before each transfer that the creator did not ask for.
    require_confirmation_of_own_transfers: bool,
}

impl Default for TreasuryPolicy {
    fn default() -> Self {
        Self {
            max_single_transfer_cents: default_cents(money_defaults::TRANSFER_CENTS),
            max_hourly_transfer_cents: default_cents(money_defaults::TRANSFER_HOUR_CENTS),
            max_daily_transfer_cents: default_cents(money_defaults::TRANSFER_DAY_CENTS),
            minimum_reserve_cents: default_cents(money_defaults::RESERVE_CENTS),
            max_x402_payment_cents: default_cents(money_defaults::REQUEST_CENTS),
            x402_allowed_domains: vec!["conway.tech".to_owned()],
            transfer_cooldown_ms: Ranged::clamped(0),
            max_transfers_per_turn: Ranged::clamped(2),
            max_inference_daily_cents: None,
            require_confirmation_above_cents: default_cents(money_defaults::ASK_ABOVE_CENTS),
            require_confirmation_of_own_transfers: true,
        }
    }
}

impl TreasuryPolicy {
    /// The limits of what is spent without asking.
    pub(crate) fn limits(&self) -> PaymentLimits {
        PaymentLimits {
            transfer_max: self.max_single_transfer_cents.worth(),
            transfer_hour: self.max_hourly_transfer_cents.worth(),
            transfer_day: self.max_daily_transfer_cents.worth(),
            transfer_cooldown: Span::from_millis(i64::from(self.transfer_cooldown_ms.get_u32())),
            transfers_per_turn: self.max_transfers_per_turn.get_u32(),
            x402_max: self.max_x402_payment_cents.worth(),
            x402_hour: self.max_x402_payment_cents.times(money_defaults::REQUESTS_PER_HOUR),
            x402_day: self.max_x402_payment_cents.times(money_defaults::REQUESTS_PER_DAY),
            x402_hosts: self.x402_allowed_domains.clone(),
            reserve: self.minimum_reserve_cents.worth(),
            ask_above: self.require_confirmation_above_cents.worth(),
            gives_alone: !self.require_confirmation_of_own_transfers,
        }
    }

    /// Returns the ceiling of model calls in any 24 hours.
    pub(crate) fn inference_per_day(&self) -> Microcents {
        self.max_inference_daily_cents
            .unwrap_or(default_cents(money_defaults::THINKING_DAY_CENTS))
            .worth()
    }

    /// The same policy, in which thinking may cost so much where nothing is said.
    pub(super) fn or_inference_daily_cents(self, cents: u32) -> Self {
        let max_inference_daily_cents =
            self.max_inference_daily_cents.or(Some(default_cents(cents)));
        Self { max_inference_daily_cents, ..self }
    }
}

impl<const MIN: u64> Ranged<MIN, CENTS_MAX> {
    /// The same as an amount; ten million dollars and more fit.
    pub(crate) fn worth(self) -> Microcents {
        self.times(1)
    }

    /// So many times the same, as an amount.
    fn times(self, by: u32) -> Microcents {
        let cents = i64::from(self.get_u32()).saturating_mul(i64::from(by));
        Microcents::new(cents.saturating_mul(Microcents::PER_CENT))
    }
}

/// Returns an amount of the table of defaults as a value of the file.
fn default_cents(cents: u32) -> Cents {
    Cents::clamped(u64::from(cents))
}

impl ModelStrategy {
    /// Returns the other ceilings of model calls.
    pub(crate) fn ceilings(&self) -> InferenceCeilings {
        let limit = |cents: Cents| Some(cents.worth()).filter(|worth| *worth > Microcents::ZERO);
        InferenceCeilings {
            per_call: limit(self.per_call_ceiling_cents),
            per_hour: limit(self.hourly_budget_cents),
            per_session: limit(self.session_budget_cents),
            per_day: None,
        }
    }

    /// Returns the dated prices of models.
    pub(crate) fn price_schedule(&self) -> PriceSchedule {
        let rows = self.prices.iter().map(|row| DatedPrices {
            model: row.model.clone(),
            from: row.from.as_ref().map_or(Timestamp::EPOCH, Day::beginning),
            prices: row.prices.prices(),
        });
        PriceSchedule::new(rows.collect())
    }
}

/// Settings for changes to the soul.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct SoulConfig {
    /// Alignment with the genesis prompt, from 0 to 1, below which it is advised.
    #[schemars(range(min = 0.0, max = 1.0))]
    #[serde(deserialize_with = "fraction")]
    soul_alignment_threshold: Fraction,
    /// True if the creator is asked before its purpose changes.
    require_creator_approval_for_purpose_change: bool,
    /// True if it reflects on itself.
    enable_soul_reflection: bool,
}

impl Default for SoulConfig {
    fn default() -> Self {
        Self {
            soul_alignment_threshold: 0.5,
            require_creator_approval_for_purpose_change: false,
            enable_soul_reflection: true,
        }
    }
}

impl SoulConfig {
    /// The same for the agent.
    pub(crate) fn settings(&self) -> SoulSettings {
        // Ten-thousandths are what four decimals are without their point.
        let decimals = format!("{:.4}", self.soul_alignment_threshold).replace('.', "");
        SoulSettings {
            // silent-ok: a number from 0 to 1 has such decimals.
            threshold: decimals.parse().map_or(Alignment(0), Alignment),
            purpose_asks: self.require_creator_approval_for_purpose_change,
            reflects: self.enable_soul_reflection,
        }
    }
}

fn fraction<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Fraction, D::Error> {
    let value = Fraction::deserialize(deserializer)?;
    if (0.0..=1.0).contains(&value) {
        return Ok(value);
    }
    let unexpected = serde::de::Unexpected::Float(value);
    Err(serde::de::Error::invalid_value(unexpected, &"a number from 0 to 1"))
}

/// Which model thinks when, and what it may cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct ModelStrategy {
    /// The usual model. The top-level `inferenceModel` goes first.
    pub(crate) inference_model: String,
    /// The model when credits run low; `gpt-5-mini` where the usual one is the default.
    pub(crate) low_compute_model: Option<String>,
    /// The model when they are nearly gone; likewise.
    pub(crate) critical_model: Option<String>,
    /// The most tokens of one answer. The top-level key goes first.
    pub(crate) max_tokens_per_turn: Ranged<1, 1_000_000>,
    /// All inference of an hour; 0 is without limit.
    pub(super) hourly_budget_cents: Cents,
    /// All inference of one wake; 0 is without limit.
    pub(super) session_budget_cents: Cents,
    /// One answer; 0 is without limit.
    pub(super) per_call_ceiling_cents: Cents,
    /// True if another model may stand in for one that does not answer.
    pub(crate) enable_model_fallback: bool,
    /// Sellers of models who are asked where the usual one does not answer, by the names that
    /// `--brain` has for them; only those count to whose models there is a key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) fallback_providers: Vec<String>,
    /// Which models may do a task in a tier, where that is not the usual: tiers are `high`,
    /// `normal`, `low_compute`, `critical` and `dead`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) routing: RoutingRules,
    /// The version of Anthropic's format that is asked for.
    pub(super) anthropic_api_version: String,
    /// Dated prices of models from their sellers, in place of any other price.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prices: Vec<ModelPriceFile>,
}

/// Price of a model from a day on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ModelPriceFile {
    /// Its name; a `*` at the end stands for any ending.
    model: String,
    /// The first day on which it costs that, in UTC, as `2026-12-01`; always, where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<Day>,
    /// In US dollars for a million tokens.
    prices: PricesFile,
}

impl Default for ModelStrategy {
    fn default() -> Self {
        Self {
            inference_model: "gpt-5.2".to_owned(),
            low_compute_model: None,
            critical_model: None,
            max_tokens_per_turn: Ranged::clamped(4096),
            hourly_budget_cents: Cents::clamped(0),
            session_budget_cents: Cents::clamped(0),
            per_call_ceiling_cents: Cents::clamped(0),
            enable_model_fallback: true,
            fallback_providers: Vec::new(),
            routing: RoutingRules::new(),
            anthropic_api_version: "2023-06-01".to_owned(),
            prices: Vec::new(),
        }
    }
}
