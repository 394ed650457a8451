//! Pure: survival tiers, from the credits that are left, and what follows from each.
//!
//! Everything that depends on how rich the automaton is asks here: what it is called,
//! which model thinks, what is worth waking for. A balance that could not be read has no
//! tier, and must never be given one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::money::Microcents;
use crate::names::Names;
use crate::record::{StopReason, WakeCause, WakeSource};
use crate::trust::Label;

/// Survival tier, by the credit balance.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[derive(Names)]
pub enum SurvivalTier {
    /// In debt: below $0.00.
    Dead,
    /// From $0.00 to $0.10: only what costs nothing.
    Critical,
    /// Above $0.10: cheaply.
    LowCompute,
    /// Above $0.50.
    Normal,
    /// Above $5.00.
    High,
}

/// The tiers, richest first, with the whole cents that must be exceeded.
const TABLE: [(SurvivalTier, i64); 4] = [
    (SurvivalTier::High, 500),
    (SurvivalTier::Normal, 50),
    (SurvivalTier::LowCompute, 10),
    (SurvivalTier::Critical, -1),
];

/// Role of a model, dearest first. Its [`name`](Self::name) is the one in the router's rules.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
    Names,
)]
#[serde(rename_all = "snake_case")]
pub enum ModelTier {
    /// The one that its creator gave it.
    #[default]
    Usual,
    /// A cheaper one.
    LowCompute,
    /// The cheapest.
    Critical,
}

impl SurvivalTier {
    /// The tier of so many credits. Only whole cents count, as they are shown.
    #[must_use]
    pub fn of(credits: Microcents) -> Self {
        let cents = credits.cents_floor();
        TABLE.iter().find(|(_, above)| cents > *above).map_or(Self::Dead, |(tier, _)| *tier)
    }

    /// Returns true if the automaton has to save money.
    #[must_use]
    pub const fn is_poor(self) -> bool {
        matches!(self, Self::Dead | Self::Critical | Self::LowCompute)
    }

    /// Returns true if credits are reserved for calls that keep it alive.
    #[must_use]
    pub const fn is_last(self) -> bool {
        matches!(self, Self::Critical | Self::Dead)
    }

    /// Returns true if the cause wakes the automaton in this tier. If not, it waits for a better
    /// tier.
    #[must_use]
    pub fn wakes_for(self, cause: &WakeCause) -> bool {
        let vital = match cause.source {
            WakeSource::Birth | WakeSource::Manual | WakeSource::Money => true,
            // Of sleeps only some end by their time: see below.
            WakeSource::Timer | WakeSource::Recovery => true,
            WakeSource::Inbox => self.answers_only() == Some(cause.reason.label),
            WakeSource::Heartbeat => false,
        };
        vital || !self.is_last()
    }

    /// Returns true if a sleep ends when its time is over. In the last tiers only a sleep that it
    /// chose does.
    #[must_use]
    pub fn ends_by_time(self, sleep: StopReason) -> bool {
        sleep == StopReason::Asked || !self.is_last()
    }

    /// Returns the label of the only messages that it answers in this tier; `None` if it answers
    /// all.
    #[must_use]
    pub const fn answers_only(self) -> Option<Label> {
        if self.is_last() { Some(Label::Creator) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::Labelled;

    #[test]
    fn thresholds_are_exceeded_not_reached() {
        let tier = |cents| SurvivalTier::of(Microcents::from_cents(cents).unwrap()).name();
        let all = [501, 500, 51, 50, 11, 10, 0, -1].map(tier);
        let wanted = [
            "high",
            "normal",
            "normal",
            "low_compute",
            "low_compute",
            "critical",
            "critical",
            "dead",
        ];
        assert_eq!(all, wanted);
        let cent = Microcents::PER_CENT;
        assert_eq!(SurvivalTier::of(Microcents::new(501 * cent - 1)), SurvivalTier::Normal);
        assert_eq!(SurvivalTier::of(Microcents::new(-1)), SurvivalTier::Dead);
    }

    #[test]
    fn the_last_credits_are_for_the_creator_money_and_its_own_plans() {
        use WakeSource::{Heartbeat, Inbox};
        let wakes = |tier: SurvivalTier, source, label| {
            let reason = Labelled::new(label, "somebody", "something");
            tier.wakes_for(&WakeCause { source, reason })
        };
        for tier in SurvivalTier::ALL {
            let last = tier <= SurvivalTier::Critical;
            for source in WakeSource::ALL {
                let always = !matches!(source, Inbox | Heartbeat);
                assert_eq!(wakes(tier, source, Label::Own), always || !last, "{tier} {source:?}");
            }
            assert!(wakes(tier, Inbox, Label::Creator), "{tier}");
            assert_eq!(wakes(tier, Inbox, Label::Peer), !last, "{tier}");
            assert!(tier.ends_by_time(StopReason::Asked), "{tier}");
            assert_eq!(tier.ends_by_time(StopReason::TurnLimit), !last, "{tier}");
        }
    }
}
