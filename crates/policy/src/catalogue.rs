//! Pure: what the rules are and what they come to, as lists for people.
//!
//! Everything here is read off the rules themselves. Nothing may be written down twice:
//! a list that differs from what is judged is worse than none.

use crate::decision::{ReasonCode, RuleId};
use crate::explain::advice;
use crate::rules;
pub use crate::rules::LiftedBy;
pub use crate::rules::authority::{AuthorityNeeds, TABLE};

/// A rule, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleDescription {
    /// Its name.
    pub id: RuleId,
    /// The code of its objections.
    pub code: ReasonCode,
    /// What holds, in one sentence.
    pub sentence: &'static str,
    /// What to do about an objection, as the model is told.
    pub advice: &'static str,
    /// Whose approval of a call lifts an objection.
    pub lifted_by: LiftedBy,
}

/// Every rule, in the order in which they are asked.
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
