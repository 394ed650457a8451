//! Pure: the operator's own rules, in Cedar, beside those that are built in.
//!
//! A file of Cedar policies (<https://docs.cedarpolicy.com/policies/syntax-policy.html>)
//! over the intents and facts that every rule sees. A `forbid` is a refusal; one that is
//! annotated `@ask("why")` asks the creator instead. Nothing here may ever allow: what no
//! policy forbids is left as the built-in rules have it, a `permit` has no say, and a
//! policy that cannot be evaluated is a refusal.

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

/// What is known of the moment of a call, besides the facts of its turn.
#[derive(Debug, Clone, Copy)]
pub struct RuleContext<'a> {
    /// The tool that is called.
    pub tool: &'a ToolName,
    /// When, by the injected clock.
    pub at: Timestamp,
    /// How well off the automaton is; `None` where nobody could say.
    pub tier: Option<SurvivalTier>,
    /// The number of the turn in its wake, from 1.
    pub turn: u32,
    /// The number of the call in its turn, from 1.
    pub call: u32,
}

/// The operator's rules, read and checked, ready to be asked.
#[derive(Debug)]
pub struct OperatorRules {
    policies: PolicySet,
    rules: HashMap<PolicyId, OperatorRule>,
    names: CedarNames,
    /// The ids of all of them, in the order of the file.
    ids: Arc<[String]>,
}

/// What one policy does when it applies.
#[derive(Debug)]
struct OperatorRule {
    place: usize,
    outcome: DecisionOutcome,
    /// Why, in the operator's words.
    why: Option<String>,
}

/// What the operator's rules said of a call: their ids as they are recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OperatorFindings {
    /// All that were asked, in the order of the file; empty where there are none.
    pub asked: Arc<[String]>,
    /// Those that objected, or could not be evaluated.
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
    /// How many rules there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Adds to a decision what the rules object to, which can only make it graver. A rule that
    /// asks has nothing against an approved call; one that forbids has.
    pub(crate) fn object(
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
                Ok(asker) => self.look(asker, intent, &mut places),
                Err(error) => Some(unable(error)),
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

    /// What the rules object to one intent; the places of those that do are added.
    fn look(
        &self,
        asker: &OperatorQuery<'_>,
        intent: &Intent,
        places: &mut Vec<usize>,
    ) -> Option<(DecisionOutcome, ReasonCode, String)> {
        let (request, entities) = match asker.about(intent) {
            Ok(asked) => asked,
            Err(error) => return Some(unable(&error)),
        };
        let response = Authorizer::new().is_authorized(&request, &self.policies, &entities);
        let diagnostics = response.diagnostics();
        if let Some(error) = diagnostics.errors().next() {
            let cedar_policy::AuthorizationError::PolicyEvaluationError(error) = error;
            places.extend(self.rules.get(error.policy_id()).map(|rule| rule.place));
            return Some(unable(error));
        }
        // A policy that nobody knows is the one that permits everything.
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

/// A refusal, since nobody could say what the rules would.
fn unable(error: &dyn fmt::Display) -> (DecisionOutcome, ReasonCode, String) {
    let reason = format!("The operator's rules could not judge it: {error}.");
    (DecisionOutcome::Deny, ReasonCode::RuleError, reason)
}

#[cfg(test)]
mod tests;
