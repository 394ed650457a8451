//! Pure: lists of the rules and their effects, for people.
//!
//! Everything here is derived from the rules themselves. Nothing may be written down twice, since
//! a list that differs from the judgement is worse than none.

use crate::decision::{ReasonCode, RuleId};
use crate::explain::advice;
use crate::rules;
pub use crate::rules::LiftedBy;
pub use crate::rules::authority::{AuthorityNeeds, TABLE};

/// The description of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleDescription {
    /// The rule's name.
    pub id: RuleId,
    /// The code of its objections.
    pub code: ReasonCode,
    /// The rule's statement, in one sentence.
    pub sentence: &'static str,
    /// The advice about an objection, as the model gets it.
    pub advice: &'static str,
    /// The party whose approval of a call lifts an objection.
    pub lifted_by: LiftedBy,
}

/// Returns every rule, in the order of evaluation.
pub fn rules() -> impl Iterator<Item = RuleDescription> {
    rules::all().map(|rule| RuleDescription {
        id: rule.id,
        code: rule.code,
        sentence: rule.sentence,
        advice: advice(rule.code),
        lifted_by: rule.lifted_by,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_in_the_list_with_its_advice() {
        assert_eq!(rules().count(), rules::IDS.len());
        assert!(rules().all(|about| !about.advice.is_empty()));
    }
}
