//! Pure: what money may be spent on, and at whose word.
//!
//! Sums are limited by the signer, which counts every payment; here is what no
//! sum makes right. No rule may look at a balance: what is unknown buys nothing,
//! and that is found out where the purchase is made.

use automaton_core::intent::Intent;
use automaton_core::trust::Label;
use automaton_core::wire::cloud::TIERS_USD;

use super::{Rule, deny_if};
use crate::decision::{ReasonCode, RuleId};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: RuleId::new("financial.tier"),
        code: ReasonCode::ValidationFailed,
        sentence: "Credits are sold for 5, 25, 100, 500, 1000 or 2500 US dollars.",
        check: |intent, _| {
            let Intent::TopUp { usd } = intent else { return Ok(None) };
            deny_if(!TIERS_USD.contains(usd), || format!("This one asks for {usd}."))
        },
    },
    Rule {
        id: RuleId::new("financial.own_wish"),
        code: ReasonCode::UntrustedInput,
        sentence: "Money is spent for the creator or by the automaton's own wish.",
        check: |intent, facts| {
            let Intent::TopUp { .. } = intent else { return Ok(None) };
            let heard = facts.input.meet(facts.heard);
            deny_if(heard > Label::Own, || format!("This wake answers text labelled '{heard}'."))
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{answering, objections};

    #[test]
    fn only_tiers_are_bought_and_never_for_strangers() {
        for input in Label::ALL {
            let own = input <= Label::Own;
            let expected: &[&str] = if own { &[] } else { &["financial.own_wish"] };
            let before = crate::Facts { heard: input, ..answering(Label::Own) };
            for usd in TIERS_USD {
                assert_eq!(objections(&Intent::TopUp { usd }, &before), expected, "{input} before");
                assert_eq!(objections(&Intent::TopUp { usd }, &answering(input)), expected);
            }
        }
        for usd in [0, 1, 6, 2501, u32::MAX] {
            let ids = objections(&Intent::TopUp { usd }, &answering(Label::Creator));
            assert_eq!(ids, ["financial.tier"], "{usd}");
        }
    }
}
