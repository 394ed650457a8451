//! Pure: survival tiers, from the credits that are left.
//!
//! One table, which everything that depends on how rich the automaton is asks. A
//! balance that could not be read has no tier, and must never be given one.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::money::Microcents;

/// How well off the automaton is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

impl SurvivalTier {
    /// The tier of so many credits. Only whole cents count, as they are shown.
    #[must_use]
    pub fn of(credits: Microcents) -> Self {
        let cents = credits.cents_floor();
        TABLE.iter().find(|(_, above)| cents > *above).map_or(Self::Dead, |(tier, _)| *tier)
    }

    /// Whether the automaton has to mind what it spends.
    #[must_use]
    pub const fn is_poor(self) -> bool {
        matches!(self, Self::Dead | Self::Critical | Self::LowCompute)
    }

    /// The tier's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dead => "dead",
            Self::Critical => "critical",
            Self::LowCompute => "low_compute",
            Self::Normal => "normal",
            Self::High => "high",
        }
    }
}

impl fmt::Display for SurvivalTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
