//! Pure: rules for what must not leave.
//!
//! A key in a message, a request or the arguments of a command is known to others from then on.
//! The secrets of a call are found before the judgement. These rules only decide what a finding
//! means. No rule may ever repeat a secret.

use super::{LiftedBy, Rule, deny_if};
use crate::decision::{ReasonCode, RuleId};
use crate::intents::IntentProfile;

pub(super) const RULES: &[Rule] = &[Rule {
    id: RuleId::new("outbound.secrets"),
    code: ReasonCode::SecretLeaves,
    sentence: "Keys, seed phrases and tokens are in no message, request or command.",
    lifted_by: LiftedBy::Nobody,
    check: |intent, facts| {
        let leaves = IntentProfile::new(intent).leaves;
        deny_if(leaves && !facts.secrets.is_empty(), || {
            let kinds: Vec<&str> = facts.secrets.iter().map(|kind| kind.name()).collect();
            format!("This call holds one ({}).", kinds.join(", "))
        })
    },
}];

#[cfg(test)]
mod tests {
    use crate::guard::secrets::SecretKind;
    use crate::rules::testing::{answering, objections};
    use automaton_core::intent::Intent;
    use automaton_core::trust::Label;

    #[test]
    fn what_holds_a_secret_does_not_leave_and_may_be_kept() {
        let holding = crate::Facts { secrets: vec![SecretKind::Pem], ..answering(Label::Creator) };
        let command = "echo hello".to_owned();
        let leaves = [
            Intent::Exec { command, timeout_ms: 1 },
            Intent::Message { recipient: "creator".to_owned(), bytes: 1 },
            Intent::FetchPaid { url: "https://pay.example/a".to_owned(), cap_cents: 1 },
            Intent::Plead { bytes: 1 },
        ];
        for intent in leaves {
            assert_eq!(objections(&intent, &holding), ["outbound.secrets"], "{intent:?}");
            assert!(objections(&intent, &answering(Label::Creator)).is_empty(), "{intent:?}");
        }
        let kept = Intent::WritePath { path: "notes.md".to_owned(), bytes: 1 };
        assert!(objections(&kept, &holding).is_empty());
    }
}
