//! Pure: the rules, as data.
//!
//! A rule looks at one intent and says nothing, objects, or fails. Failing is an objection too.
//! Rules do not know each other, and their order only determines whose words are shown. A rule
//! must never allow: it can only not object.

pub(crate) mod authority;
mod command;
mod egress;
mod financial;
mod outbound;
mod path;
mod rate;
mod risk;
mod survival;
mod validation;

use automaton_core::intent::Intent;
use automaton_core::names::Names;
use automaton_core::record::DecisionOutcome;

pub use self::egress::Reachable;
pub use self::path::may_be_read;

use crate::decision::{ReasonCode, RuleId};
use crate::facts::Facts;
use crate::shell::ScriptError;

/// A rule.
#[derive(Debug)]
pub(crate) struct Rule {
    /// The rule's name.
    pub(crate) id: RuleId,
    /// The code of its objections.
    pub(crate) code: ReasonCode,
    /// The rule's statement, in one sentence.
    pub(crate) sentence: &'static str,
    /// The party whose approval of a call lifts its objections.
    pub(crate) lifted_by: LiftedBy,
    /// The check of one intent.
    pub(crate) check: RuleCheck,
}

/// The party whose approval of a call lifts the objections of a rule.
///
/// Every rule has one of the two values, and nothing else determines the effect of an approval. A
/// rule that nobody lifts never asks, since it would refuse even after an approval. Its
/// objections depend only on the call and the configuration, so they are the same when the
/// question is asked and when the approved call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Names)]
#[names(rename_all = "snake_case")]
pub enum LiftedBy {
    /// The creator: an approved call runs in spite of the objection, whatever the label of the
    /// turn that makes it.
    Creator,
    /// Nobody: the objection is a refusal, before and after an approval.
    Nobody,
}

/// The check of a rule.
pub(crate) type RuleCheck = fn(&Intent, &Facts) -> RuleResult;

/// The result of a check.
pub(crate) type RuleResult = Result<Option<RuleFinding>, RuleError>;

/// An objection, with the particulars in one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RuleFinding {
    /// The creator has to approve it.
    Ask(String),
    /// It is refused.
    Deny(String),
}

impl RuleFinding {
    pub(crate) const fn outcome(&self) -> DecisionOutcome {
        match self {
            Self::Ask(_) => DecisionOutcome::Ask,
            Self::Deny(_) => DecisionOutcome::Deny,
        }
    }

    pub(crate) fn detail(&self) -> &str {
        match self {
            Self::Ask(detail) | Self::Deny(detail) => detail,
        }
    }
}

/// The reason why a rule could not judge an intent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RuleError {
    /// The origin of a value is unknown.
    #[error("nobody looked where its {0} was read")]
    Origin(&'static str),
    /// The command cannot be read to its end.
    #[error(transparent)]
    Shell(#[from] ScriptError),
}

/// The families, in the order of evaluation.
const FAMILIES: [&[Rule]; 10] = [
    risk::RULES,
    validation::RULES,
    path::RULES,
    command::RULES,
    financial::RULES,
    authority::RULES,
    rate::RULES,
    outbound::RULES,
    egress::RULES,
    survival::RULES,
];

/// The index of the family that parses scripts.
const OF_COMMANDS: usize = 3;

/// The number of rules.
const COUNT: usize = {
    let mut count = 0;
    let mut family = 0;
    while family < FAMILIES.len() {
        count += FAMILIES[family].len();
        family += 1;
    }
    count
};

/// The ids of all rules, in the order of evaluation.
pub(crate) static IDS: [RuleId; COUNT] = {
    let mut ids = [RuleId::new(""); COUNT];
    let mut family = 0;
    let mut at = 0;
    while family < FAMILIES.len() {
        let mut place = 0;
        while place < FAMILIES[family].len() {
            ids[at] = FAMILIES[family][place].id;
            (place, at) = (place + 1, at + 1);
        }
        family += 1;
    }
    ids
};

/// Returns all rules, in the order of evaluation.
pub(crate) fn all() -> impl Iterator<Item = &'static Rule> {
    FAMILIES.into_iter().flatten()
}

/// Returns true if no rule objects to an intent. The answer equals that of the single rules, but
/// the script of a command is parsed only once.
pub(crate) fn none_objects(intent: &Intent, facts: &Facts) -> bool {
    let mut others = FAMILIES.iter().enumerate().filter(|(place, _)| *place != OF_COMMANDS);
    others
        .all(|(_, rules)| rules.iter().all(|rule| matches!((rule.check)(intent, facts), Ok(None))))
        && command::none_objects(intent)
}

impl Rule {
    /// Returns the outcome of an objection, before or after the creator's approval of the call. A
    /// rule that nobody lifts always refuses.
    pub(crate) const fn outcome(&self, finding: &RuleFinding, approved: bool) -> DecisionOutcome {
        match self.lifted_by {
            LiftedBy::Creator if approved => DecisionOutcome::Allow,
            LiftedBy::Creator => finding.outcome(),
            LiftedBy::Nobody => DecisionOutcome::Deny,
        }
    }
}

/// Returns a refusal with its particulars if `wrong` is true.
fn deny_if(wrong: bool, detail: impl FnOnce() -> String) -> RuleResult {
    Ok(wrong.then(|| RuleFinding::Deny(detail())))
}

/// Quotes a text of the model for a sentence: shortened, on one line.
fn quoted(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    let mut kept: String =
        text.chars().take(CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(CHARS_MAX).is_some() {
        kept.push('…');
    }
    format!("'{kept}'")
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use automaton_core::origin::{Origins, ValueOrigin};
    use automaton_core::time::Span;
    use automaton_core::tool::Risk;
    use automaton_core::trust::Label;
    use std::sync::Arc;

    /// Returns the facts of an ordinary turn that answers a text with this label.
    pub(crate) fn answering(input: Label) -> Facts {
        let creator = "0x1111111111111111111111111111111111111111".parse().ok();
        let paid_hosts = vec!["pay.example".to_owned(), "127.0.0.1:4021".to_owned()];
        let origins = Origins::assumed(ValueOrigin::Creator);
        let attempts = crate::rates::Attempts::default();
        let secrets = Vec::new();
        let risk = Risk::Caution;
        let hosts = vec!["pypi.org".to_owned()];
        let egress = Arc::new(Reachable { hosts, origins: Vec::new() });
        Facts {
            input,
            heard: input,
            origins,
            risk,
            creator,
            paid_hosts,
            attempts,
            secrets,
            egress,
            creator_waits: false,
            gives_alone: false,
            published_before: false,
            purpose_asks: false,
            tier: None,
            hard_limit: None,
        }
    }

    /// Returns an intent of every kind, in the order of [`Intent::KINDS`].
    pub(crate) fn samples() -> [Intent; Intent::KINDS.len()] {
        let text = |text: &str| text.to_owned();
        let url = text("https://pypi.org/x");
        let origin = text("https://pypi.org");
        [
            Intent::Exec { command: text("ls"), timeout_ms: 1 },
            Intent::ReadPath { path: text("a") },
            Intent::WritePath { path: text("a"), bytes: 1 },
            Intent::Message { recipient: text("creator"), bytes: 1 },
            Intent::Remember { category: text("self"), key: text("k"), bytes: 1 },
            Intent::Recall,
            Intent::Sleep { span: Span::from_secs(1).into() },
            Intent::Observe,
            Intent::Plead { bytes: 1 },
            Intent::Economise,
            Intent::SwitchModel { model: text("gpt-5-mini") },
            Intent::Schedule { entry: text("nightly"), change: text("off") },
            Intent::ChangeSoul { section: text("strategy"), change: text("Earn.") },
            Intent::ChangeGenesis { change: text("Earn.") },
            Intent::TopUp { usd: 5 },
            Intent::Transfer { to: format!("0x{}", "2".repeat(40)), cents: 1 },
            Intent::FetchPaid { url: text("https://pay.example/a"), cap_cents: 1 },
            Intent::Egress { method: text("GET"), url, origin },
            Intent::Rent { memory_mb: 512, disk_gb: 5 },
            Intent::EndMachine { machine: text("m") },
            Intent::Publish { port: 8080, price: text("0.01"), open: true },
        ]
    }

    /// Returns the ids of the rules that object to an intent.
    pub(crate) fn objections(intent: &Intent, facts: &Facts) -> Vec<&'static str> {
        let objects = |rule: &&Rule| !matches!((rule.check)(intent, facts), Ok(None));
        all().filter(objects).map(|rule| rule.id.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use automaton_core::tier::SurvivalTier;
    use automaton_core::trust::Label;
    use std::collections::BTreeSet;

    #[test]
    fn every_rule_has_a_name_of_its_own_with_its_family_and_a_whole_sentence() {
        let ids: BTreeSet<&str> = all().map(|rule| rule.id.as_str()).collect();
        assert_eq!(ids.len(), all().count());
        assert!(all().map(|rule| rule.id).eq(IDS));
        assert_eq!(FAMILIES[OF_COMMANDS][0].id.as_str(), "command.syntax");
        for rule in all() {
            let family = rule.id.as_str().split_once('.').unwrap().0;
            let families = [
                "risk",
                "validation",
                "path",
                "command",
                "financial",
                "authority",
                "transfer",
                "rate",
                "outbound",
                "egress",
                "survival",
            ];
            assert!(families.contains(&family), "{family}");
            assert!(rule.sentence.ends_with('.'), "{}", rule.id);
            assert_ne!(rule.code, ReasonCode::Allowed);
        }
    }

    #[test]
    fn an_approval_lifts_what_depends_on_the_turn_and_nothing_that_depends_on_the_call_alone() {
        let mut lifted: Vec<&str> = Vec::new();
        let mut lasting: Vec<&str> = Vec::new();
        for rule in all() {
            match rule.lifted_by {
                LiftedBy::Creator => lifted.push(rule.id.as_str()),
                LiftedBy::Nobody => lasting.push(rule.id.as_str()),
            }
        }
        let family = |id: &str| id.split_once('.').unwrap().0.to_owned();
        let families =
            |ids: &[&str]| -> BTreeSet<String> { ids.iter().map(|id| family(id)).collect() };
        let of_turn = ["authority", "rate", "risk", "survival", "transfer"].map(str::to_owned);
        assert_eq!(families(&lifted), BTreeSet::from(of_turn));
        let of_call = ["command", "egress", "financial", "outbound", "path", "risk", "validation"];
        assert_eq!(families(&lasting), BTreeSet::from(of_call.map(str::to_owned)));
        assert!(lasting.contains(&"risk.forbidden") && lifted.contains(&"risk.dangerous"));
    }

    #[test]
    fn a_rule_that_nobody_lifts_looks_at_the_call_and_the_configuration_alone() {
        let intents = testing::samples();
        for rule in all().filter(|rule| rule.lifted_by == LiftedBy::Nobody) {
            for intent in &intents {
                let answers = Label::ALL.map(|label| {
                    let facts = testing::answering(label);
                    let poor = Facts { tier: Some(SurvivalTier::Dead), ..facts.clone() };
                    ((rule.check)(intent, &facts), (rule.check)(intent, &poor))
                });
                assert!(
                    answers.iter().all(|answer| *answer == answers[0]),
                    "{} {intent:?}",
                    rule.id
                );
                assert_eq!(answers[0].0, answers[0].1, "{} {intent:?}", rule.id);
            }
        }
    }

    #[test]
    fn there_is_a_sample_of_every_kind() {
        assert_eq!(testing::samples().map(|intent| intent.kind()), Intent::KINDS);
    }

    #[test]
    fn a_text_of_the_model_is_shown_short_and_on_one_line() {
        assert_eq!(quoted("a\nb\u{1b}c"), "'a b c'");
        assert_eq!(quoted(&"ä".repeat(61)).chars().count(), 60 + 3);
        assert_eq!(quoted(&"ä".repeat(60)).chars().count(), 60 + 2);
    }
}
