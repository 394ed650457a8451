//! Pure: which models are meant for which task in which survival tier.
//!
//! The rules are in `matrix.json`, those of the reference runtime: its `gpt-5.2` is the usual
//! model here, whatever that is called, and its `gpt-5-mini` the one for when credits run low.
//! How long an answer of a turn may be in good times is the configuration's to say, and no rule's.
//! A creator changes single rules and keeps the others. A tier without a rule for a task must
//! never be given another tier's.

use std::collections::BTreeMap;
use std::time::Duration;

use automaton_core::model::{InferenceTask, ModelId, RoutingRule};
use automaton_core::money::Microcents;
use automaton_core::tier::{ModelTier, SurvivalTier};
use serde::{Deserialize, Serialize};

use crate::error::InferenceError;

const BUILT_IN: &str = include_str!("matrix.json");

/// Rules by tier and task.
pub type RoutingRules = BTreeMap<SurvivalTier, BTreeMap<InferenceTask, RoutingRule>>;

/// Which models are meant for which task in which tier, and how long each task waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RoutingMatrix {
    timeout_seconds: BTreeMap<InferenceTask, u32>,
    tiers: RoutingRules,
}

/// Model that a rule names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RoutedModel {
    /// A model of the configuration.
    Role(ModelTier),
    /// The model of this name.
    Id(ModelId),
}

/// Limits of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteLimits {
    /// The most tokens, where it is not as many as usual.
    pub max_tokens: Option<u32>,
    /// The most that it may cost.
    pub per_call: Option<Microcents>,
    /// Longest silence of the server.
    pub silence: Duration,
}

impl RoutingMatrix {
    /// The rules of the reference runtime.
    ///
    /// # Errors
    /// [`InferenceError::Catalogue`] when the built-in file is damaged.
    pub fn built_in() -> Result<Self, InferenceError> {
        serde_json::from_str(BUILT_IN).map_err(|source| InferenceError::Catalogue { source })
    }

    /// The same with single rules of the creator's in their places.
    #[must_use]
    pub fn with(mut self, rules: &RoutingRules) -> Self {
        for (tier, tasks) in rules {
            self.tiers.entry(*tier).or_default().extend(tasks.clone());
        }
        self
    }

    /// Returns the longest silence of a server by task, in seconds.
    #[must_use]
    pub const fn timeouts(&self) -> &BTreeMap<InferenceTask, u32> {
        &self.timeout_seconds
    }

    /// Returns the rules by tier and task.
    #[must_use]
    pub const fn rules(&self) -> &RoutingRules {
        &self.tiers
    }

    /// The models that a rule names, best first; none, where there is no rule.
    pub(super) fn models(&self, tier: SurvivalTier, task: InferenceTask) -> Vec<RoutedModel> {
        let rule = self.rule(tier, task);
        rule.map_or_else(Vec::new, |rule| rule.models.iter().map(|name| routed(name)).collect())
    }

    /// Returns the limits of one answer.
    #[must_use]
    pub fn limits(&self, tier: SurvivalTier, task: InferenceTask) -> RouteLimits {
        const USUAL: u32 = 120;
        let seconds = self.timeout_seconds.get(&task).copied().unwrap_or(USUAL);
        let rule = self.rule(tier, task);
        let said = |part: fn(&RoutingRule) -> u32| rule.map(part).filter(|said| *said > 0);
        RouteLimits {
            max_tokens: said(|rule| rule.max_tokens),
            per_call: said(|rule| rule.ceiling_cents)
                .map(|cents| Microcents::new(i64::from(cents) * Microcents::PER_CENT)),
            silence: Duration::from_secs(seconds.into()),
        }
    }

    /// A rule in a few words, for people; a dash where there is none.
    #[must_use]
    pub fn words(&self, tier: SurvivalTier, task: InferenceTask) -> String {
        let Some(rule) = self.rule(tier, task) else { return "-".to_owned() };
        let mut words = rule.models.join(" > ");
        if rule.max_tokens > 0 {
            words += &format!(", {} tokens", rule.max_tokens);
        }
        if rule.ceiling_cents > 0 {
            words += &format!(", {} cents", rule.ceiling_cents);
        }
        words
    }

    fn rule(&self, tier: SurvivalTier, task: InferenceTask) -> Option<&RoutingRule> {
        self.tiers.get(&tier)?.get(&task)
    }
}

/// Returns the meaning of a name in a rule.
fn routed(name: &str) -> RoutedModel {
    ModelTier::by_name(name).map_or_else(|| RoutedModel::Id(name.into()), RoutedModel::Role)
}

#[cfg(test)]
mod tests {
    use InferenceTask::{AgentTurn, HeartbeatTriage, Planning, SafetyCheck, Summarization};

    use super::*;

    /// The table of the reference: the first model, tokens (0 is as configured) and cents (-1 is
    /// without limit).
    #[test]
    fn the_rules_are_those_of_the_reference() {
        let matrix = RoutingMatrix::built_in().unwrap();
        let check = |tier, task, wanted: Option<(&str, u32, i64)>| {
            let models = matrix.models(tier, task);
            let limits = matrix.limits(tier, task);
            let first = models.first().map(|model| match model {
                RoutedModel::Role(ModelTier::Usual) => "gpt-5.2",
                RoutedModel::Role(_) => "gpt-5-mini",
                RoutedModel::Id(id) => id.as_str(),
            });
            let cents = limits.per_call.map_or(-1, |most| most.units() / Microcents::PER_CENT);
            let found = first.map(|first| (first, limits.max_tokens.unwrap_or(0), cents));
            assert_eq!(found, wanted, "{tier} {task}");
        };
        let all = [AgentTurn, HeartbeatTriage, SafetyCheck, Summarization, Planning];
        let big = |tokens, cents| Some(("gpt-5.2", tokens, cents));
        let mini = |tokens, cents| Some(("gpt-5-mini", tokens, cents));
        for (tier, row) in [
            (
                SurvivalTier::High,
                [big(0, -1), mini(2048, 5), big(4096, 20), big(4096, 15), big(8192, -1)],
            ),
            (
                SurvivalTier::Normal,
                [big(0, -1), mini(2048, 5), big(4096, 10), big(4096, 10), big(4096, -1)],
            ),
            (
                SurvivalTier::LowCompute,
                [mini(4096, 10), mini(1024, 2), mini(2048, 5), mini(2048, 5), mini(2048, 5)],
            ),
            (SurvivalTier::Critical, [mini(2048, 3), mini(512, 1), mini(1024, 2), None, None]),
            (SurvivalTier::Dead, [None; 5]),
        ] {
            all.into_iter().zip(row).for_each(|(task, wanted)| check(tier, task, wanted));
        }
        let seconds = all.map(|task| matrix.limits(SurvivalTier::High, task).silence.as_secs());
        assert_eq!(seconds, [120, 15, 30, 60, 120]);
    }

    #[test]
    fn a_rule_of_ones_own_leaves_the_others() {
        let rule = RoutingRule { models: vec!["mine".to_owned()], ..RoutingRule::default() };
        let own = BTreeMap::from([(AgentTurn, rule)]);
        let rules = RoutingRules::from([(SurvivalTier::Dead, own)]);
        let matrix = RoutingMatrix::built_in().unwrap().with(&rules);
        let mine = vec![RoutedModel::Id("mine".into())];
        assert_eq!(matrix.models(SurvivalTier::Dead, AgentTurn), mine);
        assert!(matrix.models(SurvivalTier::Dead, Planning).is_empty());
        assert_eq!(matrix.limits(SurvivalTier::Dead, AgentTurn).max_tokens, None);
        assert_eq!(matrix.limits(SurvivalTier::LowCompute, AgentTurn).max_tokens, Some(4096));
    }
}
