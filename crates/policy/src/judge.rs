//! Pure: the judgement of a value.
//!
//! Every rule looks at every intent, and nothing stops early, so the record shows all objections.
//! The most severe finding decides, and among equals the first. An approval of the creator lifts
//! only findings of rules that say so, and only for this call. A value without intents and a rule
//! that fails are refusals: this function must never find a reason to allow.

use std::borrow::Cow;
use std::sync::Arc;

use automaton_core::id::ApprovalId;
use automaton_core::intent::{Intent, Intentional};
use automaton_core::record::DecisionOutcome;

use crate::approved::Approved;
use crate::decision::{Decision, ReasonCode};
use crate::facts::Facts;
use crate::operator::{OperatorFindings, OperatorRules, RuleContext};
use crate::rules::{self, Rule};

/// The result of a judgement.
#[derive(Debug)]
#[must_use = "an unread verdict means that the call is lost"]
pub enum Verdict<T> {
    /// The value may run. It is sealed.
    Allowed(Approved<T>, Decision),
    /// The value may run only if the creator approves. The value is dropped.
    Held(Decision),
    /// The value may not run. The value is dropped.
    Refused(Decision),
}

impl<T> Verdict<T> {
    /// Returns the decision.
    pub const fn decision(&self) -> &Decision {
        match self {
            Self::Allowed(_, decision) | Self::Held(decision) | Self::Refused(decision) => decision,
        }
    }
}

/// Judges a value by its stated intents, with the built-in rules only.
pub fn judge<T: Intentional>(value: T, facts: &Facts) -> Verdict<T> {
    let decision = decide_built_in(value.intents(), facts, Stage::Asked);
    verdict(value, decision)
}

/// The stage at which a call is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The model has just made the call.
    Asked,
    /// The creator has approved the call. Findings that the creator lifts no longer count.
    Approved,
}

/// A judge with the built-in rules and the operator's rules, if there are any.
#[derive(Debug, Clone, Default)]
pub struct Judge {
    operator: Option<Arc<OperatorRules>>,
}

impl Judge {
    /// Creates a judge that also asks the operator's rules.
    #[must_use]
    pub const fn new(operator: Option<Arc<OperatorRules>>) -> Self {
        Self { operator }
    }

    /// Judges a value by its stated intents.
    ///
    /// A call that the creator approved runs, whatever the label of the turn that makes it,
    /// unless a rule refuses it that the creator does not lift. Such a rule refuses the call
    /// before the creator is asked, and so does a limit of the treasury.
    pub fn judge<T: Intentional>(
        &self,
        value: T,
        facts: &Facts,
        moment: &RuleContext<'_>,
        approval: Option<ApprovalId>,
    ) -> Verdict<T> {
        let Some(approval) = approval else {
            let mut decision = self.decide(value.intents(), facts, moment, Stage::Asked);
            if decision.outcome == DecisionOutcome::Ask {
                self.refuse_vain_question(&mut decision, facts, moment);
            }
            return verdict(value, decision);
        };
        let mut decision = self.decide(value.intents(), facts, moment, Stage::Approved);
        let is_lifted = decision.triggered().next().is_some();
        if decision.outcome == DecisionOutcome::Allow && is_lifted {
            decision.code = ReasonCode::Approved;
            decision.reason = format!("The creator approved this call: {approval}.").into();
        }
        verdict(value, decision)
    }

    /// Returns the joint decision of the built-in rules and the operator's.
    fn decide(
        &self,
        intents: Vec<Intent>,
        facts: &Facts,
        moment: &RuleContext<'_>,
        stage: Stage,
    ) -> Decision {
        let mut decision = decide_built_in(intents, facts, stage);
        if let Some(operator) = &self.operator {
            operator.add_findings(&mut decision, facts, moment, stage);
        }
        decision
    }

    /// Turns a question into a refusal if an approval would change nothing: the treasury would
    /// not pay, or a rule would refuse the approved call.
    fn refuse_vain_question(
        &self,
        decision: &mut Decision,
        facts: &Facts,
        moment: &RuleContext<'_>,
    ) {
        if let Some(limit) = &facts.hard_limit {
            decision.refuse(limit.code, limit.reason.clone());
            return;
        }
        let approved = facts.once_approved();
        let then = self.decide(decision.intents.clone(), &approved, moment, Stage::Approved);
        if then.outcome == DecisionOutcome::Deny {
            decision.refuse(then.code, then.reason.into_owned());
            decision.operator.merge(then.operator);
        }
    }
}

/// Judges by the built-in rules.
fn decide_built_in(intents: Vec<Intent>, facts: &Facts, stage: Stage) -> Decision {
    // Nearly always nothing objects, and then no reasons are needed.
    match !intents.is_empty() && intents.iter().all(|i| rules::none_objects(i, facts)) {
        true => allowed(intents),
        false => decide(rules::all(), intents, facts, stage),
    }
}

fn verdict<T>(value: T, decision: Decision) -> Verdict<T> {
    match decision.outcome {
        DecisionOutcome::Allow => Verdict::Allowed(Approved::seal(value), decision),
        DecisionOutcome::Ask => Verdict::Held(decision),
        DecisionOutcome::Deny => Verdict::Refused(decision),
    }
}

fn allowed(intents: Vec<Intent>) -> Decision {
    Decision {
        outcome: DecisionOutcome::Allow,
        code: ReasonCode::Allowed,
        reason: Cow::Borrowed("No rule objects."),
        intents,
        rules_evaluated: &rules::IDS,
        rules_triggered: Vec::new(),
        operator: OperatorFindings::default(),
    }
}

/// Evaluates the rules, in order, for each intent.
fn decide<'a>(
    rules: impl IntoIterator<Item = &'a Rule>,
    intents: Vec<Intent>,
    facts: &Facts,
    stage: Stage,
) -> Decision {
    let approved = stage == Stage::Approved;
    let mut decision = allowed(intents);
    if decision.intents.is_empty() {
        decision.outcome = DecisionOutcome::Deny;
        decision.code = ReasonCode::NoIntent;
        decision.reason = Cow::Borrowed("The call does not say what it would do.");
    }
    for rule in rules {
        let mut triggered = false;
        for intent in &decision.intents {
            let (outcome, code, reason) = match (rule.check)(intent, facts) {
                Ok(None) => continue,
                Ok(Some(finding)) => {
                    let reason = format!("{} {}", rule.sentence, finding.detail());
                    (rule.outcome(&finding, approved), rule.code, reason)
                }
                Err(error) => {
                    let reason = format!("The rule {} could not judge it: {error}.", rule.id);
                    (DecisionOutcome::Deny, ReasonCode::RuleError, reason)
                }
            };
            triggered = true;
            if outcome > decision.outcome {
                (decision.outcome, decision.code) = (outcome, code);
                decision.reason = Cow::Owned(reason);
            }
        }
        if triggered {
            decision.rules_triggered.push(rule.id);
        }
    }
    decision
}

#[cfg(test)]
mod tests;
