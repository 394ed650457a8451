//! Pure: rules for the risk of the tool itself.
//!
//! They apply to every intent of a tool, whatever its subject. They must never make an exception
//! for a name.

use automaton_core::tool::Risk;
use automaton_core::trust::Label;

use super::{LiftedBy, Rule, deny_if};
use crate::decision::{ReasonCode, RuleId};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: RuleId::new("risk.forbidden"),
        code: ReasonCode::ForbiddenTool,
        sentence: "This tool is forbidden.",
        lifted_by: LiftedBy::Nobody,
        check: |_, facts| {
            deny_if(facts.risk == Risk::Forbidden, || "Nobody may use it.".to_owned())
        },
    },
    Rule {
        id: RuleId::new("risk.dangerous"),
        code: ReasonCode::ExternalDangerousTool,
        sentence: "A dangerous tool runs only for the creator or by the automaton's own wish.",
        lifted_by: LiftedBy::Creator,
        check: |_, facts| {
            let wrong = facts.risk >= Risk::Dangerous && facts.input > Label::Own;
            deny_if(wrong, || format!("This turn answers text labelled '{}'.", facts.input))
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{answering, objections};
    use automaton_core::intent::Intent;

    #[test]
    fn forbidden_is_always_refused_and_dangerous_for_outsiders() {
        for input in Label::ALL {
            let ids =
                |risk| objections(&Intent::Observe, &crate::Facts { risk, ..answering(input) });
            assert!(ids(Risk::Forbidden).contains(&"risk.forbidden"), "{input}");
            assert_eq!(ids(Risk::Dangerous).is_empty(), input <= Label::Own, "{input}");
            assert!(ids(Risk::Caution).is_empty() && ids(Risk::Safe).is_empty(), "{input}");
        }
    }
}
