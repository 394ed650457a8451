//! Pure: from a value to a verdict.
//!
//! Every rule looks at every intent; nothing stops early, so the record shows
//! all that objected. The gravest finding holds, and of equally grave ones the
//! first. An approval of the creator lifts the findings of the rules that say so, of this very
//! call, and nothing else. A value without intents and a rule that fails are refusals: this
//! function must never find a reason to allow.

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

/// What a judgement gives back.
#[derive(Debug)]
#[must_use = "an unread verdict means that the call is lost"]
pub enum Verdict<T> {
    /// It may run: the value, sealed.
    Allowed(Approved<T>, Decision),
    /// It may run only when the creator approves. The value is gone.
    Held(Decision),
    /// It may not run. The value is gone.
    Refused(Decision),
}

impl<T> Verdict<T> {
    /// How the value was judged.
    pub const fn decision(&self) -> &Decision {
        match self {
            Self::Allowed(_, decision) | Self::Held(decision) | Self::Refused(decision) => decision,
        }
    }
}

/// Judges a value by what it says that it intends, by the built-in rules alone.
pub fn judge<T: Intentional>(value: T, facts: &Facts) -> Verdict<T> {
    let decision = built_in(value.intents(), facts, Stage::Asked);
    verdict(value, decision)
}

/// At which point of its way a call is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The model has just made it.
    Asked,
    /// The creator has approved it: what the creator lifts does not count any more.
    Approved,
}

/// Who judges: the built-in rules, with the operator's beside them where there are any.
#[derive(Debug, Clone, Default)]
pub struct Judge {
    operator: Option<Arc<OperatorRules>>,
}

impl Judge {
    /// One that asks the operator's rules, too.
    #[must_use]
    pub const fn with(operator: Option<Arc<OperatorRules>>) -> Self {
        Self { operator }
    }

    /// Judges a value by what it says that it intends.
    ///
    /// A call that the creator approved is made, whatever the label of the turn that makes it,
    /// unless a rule refuses it that the creator does not lift. Such a rule refuses the call
    /// before the creator is asked about it, and so does a limit of the treasury.
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

    /// What the built-in rules and the operator's come to together.
    fn decide(
        &self,
        intents: Vec<Intent>,
        facts: &Facts,
        moment: &RuleContext<'_>,
        stage: Stage,
    ) -> Decision {
        let mut decision = built_in(intents, facts, stage);
        if let Some(operator) = &self.operator {
            operator.object(&mut decision, facts, moment, stage);
        }
        decision
    }

    /// Turns a question into a refusal where the creator's yes would change nothing: the
    /// treasury would not pay, or a rule would refuse the approved call.
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

/// Asks the built-in rules.
fn built_in(intents: Vec<Intent>, facts: &Facts, stage: Stage) -> Decision {
    // Nearly always nothing objects, and then there is nothing to be told.
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

/// Asks the rules, in order, about each of the intents.
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
