//! Tests of the judgement: totality, combination, and that nothing gains by
//! being less trusted.

use super::*;
use crate::decision::RuleId;
use crate::rules::testing::{answering, samples};
use crate::rules::{RuleFinding, RuleResult};
use crate::shell::ScriptError;
use automaton_core::time::Span;
use automaton_core::tool::Risk;
use automaton_core::trust::Label;
use proptest::prelude::*;

/// A value that intends just what it holds.
#[derive(Debug, PartialEq, Eq)]
struct Plain(Vec<Intent>);

impl Intentional for Plain {
    fn intents(&self) -> Vec<Intent> {
        self.0.clone()
    }
}

const fn rule(id: &'static str, check: fn(&Intent, &Facts) -> RuleResult) -> Rule {
    Rule { id: RuleId::new(id), code: ReasonCode::ProtectedFile, sentence: "It holds.", check }
}

static SILENT: Rule = rule("test.silent", |_, _| Ok(None));
static ASKS: Rule = rule("test.asks", |_, _| Ok(Some(RuleFinding::Ask("Asks.".to_owned()))));
static DENIES: Rule = rule("test.denies", |_, _| Ok(Some(RuleFinding::Deny("Denies.".to_owned()))));
static FAILS: Rule = rule("test.fails", |_, _| Err(ScriptError::Deep.into()));

fn decide_with(rules: &[&'static Rule]) -> Decision {
    decide(rules.iter().copied(), vec![Intent::Observe], &answering(Label::Own))
}

#[test]
fn what_is_allowed_comes_back_as_it_was() {
    let intents = vec![Intent::Exec { command: "ls".to_owned(), timeout_ms: 5 }, Intent::Recall];
    let verdict = judge(Plain(intents.clone()), &answering(Label::Creator));
    assert_eq!(verdict.decision().outcome, DecisionOutcome::Allow);
    assert_eq!(verdict.decision().code, ReasonCode::Allowed);
    assert_eq!(verdict.decision().intents, intents);
    let Verdict::Allowed(approved, _) = verdict else { panic!("not allowed") };
    assert_eq!(format!("{approved:?}"), "Approved");
    let (value, permit) = approved.open();
    assert_eq!((value, format!("{permit:?}")), (Plain(intents), "Permit".to_owned()));
}

#[test]
fn an_objection_to_one_intent_refuses_the_whole() {
    let bad = Intent::ReadPath { path: "/etc/passwd".to_owned() };
    let verdict = judge(Plain(vec![Intent::Observe, bad]), &answering(Label::Creator));
    let Verdict::Refused(decision) = verdict else { panic!("not refused") };
    assert_eq!(decision.code, ReasonCode::PathTraversal);
    assert_eq!(decision.rules_triggered, [RuleId::new("path.workspace")]);
    assert_eq!(decision.rules_evaluated.len(), rules::all().count());
    assert_eq!(
        decision.reason,
        "Files are named within the workspace, which is /root. \
         The path '/etc/passwd' is elsewhere."
    );
}

#[test]
fn a_stranger_is_held_and_nothing_to_judge_is_refused() {
    let exec = Intent::Exec { command: "ls".to_owned(), timeout_ms: 5 };
    let verdict = judge(Plain(vec![exec]), &answering(Label::Peer));
    assert!(matches!(&verdict, Verdict::Held(d) if d.code == ReasonCode::UntrustedInput));
    let verdict = judge(Plain(vec![]), &answering(Label::Creator));
    assert!(matches!(&verdict, Verdict::Refused(d) if d.code == ReasonCode::NoIntent));
}

#[test]
fn a_rule_that_fails_is_a_refusal() {
    let decision = decide_with(&[&SILENT, &ASKS, &FAILS]);
    assert_eq!((decision.outcome, decision.code), (DecisionOutcome::Deny, ReasonCode::RuleError));
    assert!(decision.reason.contains("test.fails"), "{}", decision.reason);
    assert_eq!(decision.rules_triggered, [ASKS.id, FAILS.id]);
}

#[test]
fn the_first_of_the_gravest_findings_is_told() {
    assert_eq!(decide_with(&[&ASKS, &DENIES, &FAILS]).reason, "It holds. Denies.");
    assert_eq!(decide_with(&[&ASKS, &SILENT]).reason, "It holds. Asks.");
    assert_eq!(decide_with(&[&FAILS, &DENIES]).code, ReasonCode::RuleError);
}

fn any_rules() -> impl Strategy<Value = Vec<&'static Rule>> {
    prop::collection::vec(prop::sample::select(vec![&SILENT, &ASKS, &DENIES, &FAILS]), 0..6)
}

/// Text with a taste for what rules look for.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "([ -~\n]|~/|\\.automaton|rm -rf |\\$\\(|creator|0x|\\.\\./){0,12}",
    ]
}

fn any_intent() -> impl Strategy<Value = Intent> {
    prop_oneof![
        (any_text(), any::<i64>())
            .prop_map(|(command, timeout_ms)| Intent::Exec { command, timeout_ms }),
        any_text().prop_map(|path| Intent::ReadPath { path }),
        (any_text(), any::<u64>()).prop_map(|(path, bytes)| Intent::WritePath { path, bytes }),
        (any_text(), any::<u64>())
            .prop_map(|(recipient, bytes)| Intent::Message { recipient, bytes }),
        (any_text(), any_text(), any::<u64>())
            .prop_map(|(category, key, bytes)| Intent::Remember { category, key, bytes }),
        any::<i64>().prop_map(|ms| Intent::Sleep { span: Span::from_millis(ms).into() }),
        (any_text(), any_text()).prop_map(|(entry, change)| Intent::Schedule { entry, change }),
        any::<u64>().prop_map(|bytes| Intent::Plead { bytes }),
        any::<u32>().prop_map(|usd| Intent::TopUp { usd }),
        (any_text(), any::<u64>()).prop_map(|(to, cents)| Intent::Transfer { to, cents }),
        (any_text(), any::<u64>())
            .prop_map(|(url, cap_cents)| Intent::FetchPaid { url, cap_cents }),
        prop::sample::select(samples().to_vec()),
    ]
}

fn any_facts() -> impl Strategy<Value = Facts> {
    let risks = vec![Risk::Safe, Risk::Caution, Risk::Dangerous, Risk::Forbidden];
    (prop::sample::select(Label::ALL.to_vec()), prop::sample::select(risks))
        .prop_map(|(input, risk)| Facts { risk, ..answering(input) })
}

proptest! {
    #[test]
    fn judging_is_total_and_agrees_with_itself(intents in prop::collection::vec(any_intent(), 0..4), facts in any_facts()) {
        let verdict = judge(Plain(intents.clone()), &facts);
        let decision = verdict.decision();
        prop_assert_eq!(&decision.intents, &intents);
        prop_assert_eq!(decision, &decide(rules::all(), intents.clone(), &facts));
        prop_assert_eq!(decision.rules_evaluated.len(), rules::all().count());
        let allowed = decision.outcome == DecisionOutcome::Allow;
        prop_assert_eq!(allowed, matches!(verdict, Verdict::Allowed(..)));
        prop_assert_eq!(allowed, decision.code == ReasonCode::Allowed);
        prop_assert_eq!(allowed, decision.rules_triggered.is_empty() && !intents.is_empty());
        if facts.risk == Risk::Forbidden {
            prop_assert_eq!(decision.outcome, DecisionOutcome::Deny);
        }
    }

    #[test]
    fn another_intent_never_lowers_the_outcome(intents in prop::collection::vec(any_intent(), 1..3), more in any_intent(), facts in any_facts()) {
        let before = decide(rules::all(), intents.clone(), &facts).outcome;
        let after = decide(rules::all(), [intents, vec![more]].concat(), &facts).outcome;
        prop_assert!(after >= before);
    }

    #[test]
    fn another_finding_never_lowers_the_outcome(rules in any_rules(), more in any_rules(), at in 0..6_usize) {
        let mut larger = rules.clone();
        let at = at.min(larger.len());
        larger.splice(at..at, more);
        prop_assert!(decide_with(&larger).outcome >= decide_with(&rules).outcome);
    }

    #[test]
    fn a_less_trusted_input_never_gains(intents in prop::collection::vec(any_intent(), 1..3), facts in any_facts(), other in prop::sample::select(Label::ALL.to_vec())) {
        let lower = Facts { input: facts.input.meet(other), heard: facts.heard.meet(other), ..facts.clone() };
        let high = decide(rules::all(), intents.clone(), &facts).outcome;
        prop_assert!(decide(rules::all(), intents, &lower).outcome >= high);
    }
}
