//! Pure: the operator's own rules, in Cedar, beside the built-in ones.
//!
//! They are a file of Cedar policies (<https://docs.cedarpolicy.com/policies/syntax-policy.html>)
//! over the intents and facts that every rule sees. A `forbid` is a refusal. With the annotation
//! `@ask("why")` it asks the creator instead. Nothing here may ever allow: without a `forbid` the
//! built-in rules decide, a `permit` has no effect, and a policy that cannot be evaluated is a
//! refusal.

mod load;
mod request;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use automaton_core::intent::Intent;
use automaton_core::record::DecisionOutcome;
use automaton_core::tier::SurvivalTier;
use automaton_core::time::Timestamp;
use automaton_core::tool::ToolName;
use cedar_policy::{Authorizer, PolicyId, PolicySet};

pub use self::load::{OPERATOR_TEXT_BYTES_MAX, OperatorRulesError, RuleDiagnostic};
use self::request::{CedarNames, OperatorQuery};
use crate::decision::{Decision, ReasonCode};
use crate::facts::Facts;
use crate::judge::Stage;

/// The context of a call, besides the facts of its turn.
#[derive(Debug, Clone, Copy)]
pub struct RuleContext<'a> {
    /// The called tool.
    pub tool: &'a ToolName,
    /// The time, by the injected clock.
    pub at: Timestamp,
    /// The survival tier, or `None` if it is unknown.
    pub tier: Option<SurvivalTier>,
    /// The number of the turn in its wake, from 1.
    pub turn: u32,
    /// The number of the call in its turn, from 1.
    pub call: u32,
}

/// The operator's rules, checked and ready for evaluation.
#[derive(Debug)]
pub struct OperatorRules {
    policies: PolicySet,
    rules: HashMap<PolicyId, OperatorRule>,
    names: CedarNames,
    /// The ids of all rules, in the order of the file.
    ids: Arc<[String]>,
}

/// The effect of one policy.
#[derive(Debug)]
struct OperatorRule {
    place: usize,
    outcome: DecisionOutcome,
    /// The reason, in the operator's words.
    why: Option<String>,
}

/// The ids of the operator's rules that were evaluated and that objected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OperatorFindings {
    /// All evaluated rules, in the order of the file. Empty if there are none.
    pub asked: Arc<[String]>,
    /// The rules that objected or could not be evaluated.
    pub triggered: Vec<String>,
}

impl OperatorFindings {
    /// Adds the rules that objected in another judgement of the same call.
    pub(crate) fn merge(&mut self, other: Self) {
        let is_new = |rule: &String| !self.triggered.contains(rule);
        let more: Vec<String> = other.triggered.into_iter().filter(is_new).collect();
        self.triggered.extend(more);
    }
}

impl OperatorRules {
    /// Returns the number of rules.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Returns true if there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Adds the rules' objections to a decision, which can only make it more severe. For an
    /// approved call, rules that ask have no effect, but rules that forbid do.
    pub(crate) fn add_findings(
        &self,
        decision: &mut Decision,
        facts: &Facts,
        moment: &RuleContext<'_>,
        stage: Stage,
    ) {
        decision.operator.asked = Arc::clone(&self.ids);
        let asker = OperatorQuery::new(&self.names, facts, moment);
        let mut places = Vec::new();
        let mut gravest: Option<(DecisionOutcome, ReasonCode, String)> = None;
        for intent in &decision.intents {
            let found = match &asker {
                Ok(asker) => self.judge_intent(asker, intent, &mut places),
                Err(error) => Some(evaluation_failed(error)),
            };
            let graver = |found: &(DecisionOutcome, _, _)| {
                gravest.as_ref().is_none_or(|(so_far, ..)| found.0 > *so_far)
            };
            gravest = found.filter(graver).or(gravest);
        }
        places.sort_unstable();
        places.dedup();
        let id = |place: usize| self.ids.get(place).cloned();
        decision.operator.triggered = places.into_iter().filter_map(id).collect();
        let gravest = gravest.filter(|(outcome, ..)| match stage {
            Stage::Asked => true,
            Stage::Approved => *outcome == DecisionOutcome::Deny,
        });
        if let Some((outcome, code, reason)) = gravest
            && outcome > decision.outcome
        {
            (decision.outcome, decision.code, decision.reason) = (outcome, code, reason.into());
        }
    }

    /// Returns the most severe objection to one intent, and adds the places of the objecting
    /// rules.
    fn judge_intent(
        &self,
        asker: &OperatorQuery<'_>,
        intent: &Intent,
        places: &mut Vec<usize>,
    ) -> Option<(DecisionOutcome, ReasonCode, String)> {
        let (request, entities) = match asker.about(intent) {
            Ok(asked) => asked,
            Err(error) => return Some(evaluation_failed(&error)),
        };
        let response = Authorizer::new().is_authorized(&request, &self.policies, &entities);
        let diagnostics = response.diagnostics();
        if let Some(error) = diagnostics.errors().next() {
            let cedar_policy::AuthorizationError::PolicyEvaluationError(error) = error;
            places.extend(self.rules.get(error.policy_id()).map(|rule| rule.place));
            return Some(evaluation_failed(error));
        }
        // The only unknown policy is the one that permits everything.
        let applied = diagnostics.reason().filter_map(|id| self.rules.get(id));
        let mut worst: Option<&OperatorRule> = None;
        for rule in applied.filter(|rule| rule.outcome > DecisionOutcome::Allow) {
            places.push(rule.place);
            let before =
                |worst: &OperatorRule| (rule.outcome, worst.place) > (worst.outcome, rule.place);
            worst = Some(worst.filter(|worst| !before(worst)).unwrap_or(rule));
        }
        worst.map(|rule| {
            let id = self.ids.get(rule.place).map_or("", String::as_str);
            let verdict = match rule.outcome {
                DecisionOutcome::Ask => "asks for your creator's word",
                DecisionOutcome::Allow | DecisionOutcome::Deny => "forbids it",
            };
            let why = rule.why.as_deref().map_or_else(String::new, |why| format!(": {why}"));
            (rule.outcome, ReasonCode::OperatorRule, format!("The rule {id} {verdict}{why}."))
        })
    }
}

/// Returns a refusal because the rules could not be evaluated.
fn evaluation_failed(error: &dyn fmt::Display) -> (DecisionOutcome, ReasonCode, String) {
    let reason = format!("The operator's rules could not judge it: {error}.");
    (DecisionOutcome::Deny, ReasonCode::RuleError, reason)
}

#[cfg(test)]
mod tests;
