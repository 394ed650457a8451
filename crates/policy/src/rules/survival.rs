//! Pure: the rule for nearly exhausted credits.
//!
//! Below the critical threshold an automaton may look, write messages, ask for money, buy credits
//! and end what costs money. It must never be kept from any of these: each may save it.

use super::{LiftedBy, Rule, deny_if};
use crate::decision::{ReasonCode, RuleId};
use crate::intents::IntentProfile;

pub(super) const RULES: &[Rule] = &[Rule {
    id: RuleId::new("survival.critical"),
    code: ReasonCode::CreditsCritical,
    sentence: "In the last credits only what keeps it alive is done.",
    lifted_by: LiftedBy::Creator,
    check: |intent, facts| {
        let is_last = facts.tier.is_some_and(|tier| tier.is_last());
        deny_if(is_last && !IntentProfile::new(intent).keeps_alive, || {
            "The credits are nearly gone.".to_owned()
        })
    },
}];

#[cfg(test)]
mod tests {
    use automaton_core::intent::Intent;
    use automaton_core::tier::SurvivalTier;
    use automaton_core::trust::Label;

    use crate::facts::Facts;
    use crate::rules::testing::{answering, objections, samples};

    #[test]
    fn the_last_credits_are_for_staying_alive() {
        for tier in SurvivalTier::ALL.into_iter().map(Some).chain([None]) {
            let facts = Facts { tier, ..answering(Label::Creator) };
            let refused: Vec<&str> = samples()
                .iter()
                .filter(|intent| objections(intent, &facts).contains(&"survival.critical"))
                .map(Intent::kind)
                .collect();
            let last = matches!(tier, Some(SurvivalTier::Critical | SurvivalTier::Dead));
            let wanted: &[&str] = if last {
                &[
                    "exec",
                    "write_path",
                    "schedule",
                    "soul",
                    "genesis",
                    "transfer",
                    "fetch_paid",
                    "rent",
                ]
            } else {
                &[]
            };
            assert_eq!(refused, wanted, "{tier:?}");
        }
    }
}
