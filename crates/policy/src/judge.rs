//! Pure: from a value to a verdict.
//!
//! Every rule looks at every intent; nothing stops early, so the record shows
//! all that objected. The gravest finding holds, and of equally grave ones the
//! first. A value without intents and a rule that fails are refusals: this
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
    let decision = built_in(value.intents(), facts);
    verdict(value, decision)
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

    /// Judges a value by what it says that it intends. What the creator was asked about and
    /// approved, this very call, is not asked about again; what is refused stays so.
    pub fn judge<T: Intentional>(
        &self,
        value: T,
        facts: &Facts,
        moment: &RuleContext<'_>,
        approval: Option<ApprovalId>,
    ) -> Verdict<T> {
        let mut decision = built_in(value.intents(), facts);
        if let Some(operator) = &self.operator {
            operator.object(&mut decision, facts, moment);
        }
        if let Some(approval) = approval.filter(|_| decision.outcome == DecisionOutcome::Ask) {
            (decision.outcome, decision.code) = (DecisionOutcome::Allow, ReasonCode::Approved);
            decision.reason = format!("The creator approved this call: {approval}.").into();
        }
        verdict(value, decision)
    }
}

/// Asks the built-in rules.
fn built_in(intents: Vec<Intent>, facts: &Facts) -> Decision {
    // Nearly always nothing objects, and then there is nothing to be told.
    match !intents.is_empty() && intents.iter().all(|i| rules::none_objects(i, facts)) {
        true => allowed(intents),
        false => decide(rules::all(), intents, facts),
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
) -> Decision {
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
                    (finding.outcome(), rule.code, reason)
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
