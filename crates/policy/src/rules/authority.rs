//! Pure: what may be caused by whom.
//!
//! The label of what a turn answers sets which effects it may have alone. Text
//! of a peer or of the net may make the automaton look, think, rest and tell
//! its creator; whatever changes something waits for the creator's approval.
//! The label itself is worked out before; no rule may raise it.

use automaton_core::intent::Intent;
use automaton_core::trust::Label;

use super::{Finding, Rule, deny_if};
use crate::decision::{ReasonCode, RuleId};

/// The category of facts that the creator alone may cause: others would put
/// words into the creator's mouth, for every later turn to read.
const CREATOR_CATEGORY: &str = "creator";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: RuleId::new("authority.untrusted_input"),
        code: ReasonCode::UntrustedInput,
        sentence: "What a peer or a page asks for changes nothing without the creator's approval.",
        check: |intent, facts| {
            let outside = match facts.input {
                Label::Creator | Label::Own | Label::Tool => false,
                Label::Peer | Label::Web => true,
            };
            let effect = match intent {
                Intent::Exec { .. } => "run a command",
                Intent::WritePath { .. } => "write a file",
                Intent::Remember { .. } => "change the memory",
                Intent::FetchPaid { .. } => "pay for a request",
                Intent::Message { recipient, .. } if !facts.is_creator(recipient) => {
                    "write to somebody else than the creator"
                }
                Intent::Message { .. }
                | Intent::ReadPath { .. }
                | Intent::Recall
                | Intent::Sleep { .. }
                | Intent::Observe
                // Refused altogether, by the rules of money.
                | Intent::TopUp { .. }
                | Intent::Transfer { .. } => return Ok(None),
            };
            let detail = || format!("A '{}' text would have it {effect}.", facts.input);
            Ok(outside.then(|| Finding::Ask(detail())))
        },
    },
    Rule {
        id: RuleId::new("authority.creator_facts"),
        code: ReasonCode::CreatorOnly,
        sentence: "Facts of the category 'creator' are stored only when the creator is answered.",
        check: |intent, facts| {
            let Intent::Remember { category, .. } = intent else { return Ok(None) };
            let wrong = category.trim().eq_ignore_ascii_case(CREATOR_CATEGORY)
                && facts.input != Label::Creator;
            deny_if(wrong, || format!("This turn answers text labelled '{}'.", facts.input))
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{answering, objections};
    use automaton_core::time::Span;

    fn remember(category: &str) -> Intent {
        Intent::Remember { category: category.to_owned(), key: "k".to_owned(), bytes: 1 }
    }

    #[test]
    fn strangers_change_nothing_alone_and_the_rest_may_go_on() {
        let changes = [
            Intent::Exec { command: "ls".to_owned(), timeout_ms: 1 },
            Intent::WritePath { path: "a".to_owned(), bytes: 1 },
            remember("self"),
        ];
        let looks = [
            Intent::Message { recipient: "creator".to_owned(), bytes: 1 },
            Intent::ReadPath { path: "a".to_owned() },
            Intent::Recall,
            Intent::Observe,
            Intent::Sleep { span: Span::from_secs(1).into() },
        ];
        for input in Label::ALL {
            let stranger = matches!(input, Label::Peer | Label::Web);
            let expected: &[&str] = if stranger { &["authority.untrusted_input"] } else { &[] };
            for intent in &changes {
                assert_eq!(objections(intent, &answering(input)), expected, "{input} {intent:?}");
            }
            for intent in &looks {
                assert!(objections(intent, &answering(input)).is_empty(), "{input} {intent:?}");
            }
        }
        let other = Intent::Message { recipient: "0xbad".to_owned(), bytes: 1 };
        let ids = objections(&other, &answering(Label::Peer));
        assert_eq!(ids, ["validation.recipient", "authority.untrusted_input"]);
    }

    #[test]
    fn facts_about_the_creator_come_from_the_creator() {
        for input in Label::ALL {
            for category in ["creator", "Creator ", "CREATOR"] {
                let ids = objections(&remember(category), &answering(input));
                let refused = ids.contains(&"authority.creator_facts");
                assert_eq!(refused, input != Label::Creator, "{input} {category}");
            }
        }
    }
}
