//! Pure: from a value to a verdict.
//!
//! Every rule looks at every intent; nothing stops early, so the record shows
//! all that objected. The gravest finding holds, and of equally grave ones the
//! first. A value without intents and a rule that fails are refusals: this
//! function must never find a reason to allow.

use automaton_core::intent::{Intent, Intentional};
use automaton_core::record::Outcome;

use crate::approved::Approved;
use crate::decision::{Decision, ReasonCode};
use crate::facts::Facts;
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

/// Judges a value by what it says that it intends.
pub fn judge<T: Intentional>(value: T, facts: &Facts) -> Verdict<T> {
    let decision = decide(rules::all(), value.intents(), facts);
    match decision.outcome {
        Outcome::Allow => Verdict::Allowed(Approved::seal(value), decision),
        Outcome::Ask => Verdict::Held(decision),
        Outcome::Deny => Verdict::Refused(decision),
    }
}

/// Asks the rules, in order, about each of the intents.
fn decide<'a>(
    rules: impl IntoIterator<Item = &'a Rule>,
    intents: Vec<Intent>,
    facts: &Facts,
) -> Decision {
    let mut decision = Decision {
        outcome: Outcome::Allow,
        code: ReasonCode::Allowed,
        reason: "No rule objects.".to_owned(),
        intents,
        rules_evaluated: Vec::new(),
        rules_triggered: Vec::new(),
    };
    if decision.intents.is_empty() {
        decision.outcome = Outcome::Deny;
        decision.code = ReasonCode::NoIntent;
        decision.reason = "The call does not say what it would do.".to_owned();
    }
    for rule in rules {
        decision.rules_evaluated.push(rule.id);
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
                    (Outcome::Deny, ReasonCode::RuleError, reason)
                }
            };
            triggered = true;
            if outcome > decision.outcome {
                (decision.outcome, decision.code, decision.reason) = (outcome, code, reason);
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
