//! Tests of the judgement: it always decides, combines findings, and a less trusted label never
//! gains anything.

use super::*;
use crate::decision::RuleId;
use crate::facts::HardLimit;
use crate::rates::{Attempts, LIMITS};
use crate::rules::testing::{answering, samples};
use crate::rules::{LiftedBy, RuleFinding, RuleResult};
use crate::shell::ScriptError;
use automaton_core::origin::{Origins, ValueOrigin};
use automaton_core::tier::SurvivalTier;
use automaton_core::time::{Span, Timestamp};
use automaton_core::tool::{Risk, ToolName};
use automaton_core::trust::Label;
use proptest::prelude::*;

/// A value with exactly these intents.
#[derive(Debug, PartialEq, Eq)]
struct Plain(Vec<Intent>);

impl Intentional for Plain {
    fn intents(&self) -> Vec<Intent> {
        self.0.clone()
    }
}

const fn rule(id: &'static str, check: fn(&Intent, &Facts) -> RuleResult) -> Rule {
    let lifted_by = LiftedBy::Creator;
    let code = ReasonCode::ProtectedFile;
    Rule { id: RuleId::new(id), code, sentence: "It holds.", lifted_by, check }
}

static SILENT: Rule = rule("test.silent", |_, _| Ok(None));
static ASKS: Rule = rule("test.asks", |_, _| Ok(Some(RuleFinding::Ask("Asks.".to_owned()))));
static DENIES: Rule = rule("test.denies", |_, _| Ok(Some(RuleFinding::Deny("Denies.".to_owned()))));
static LASTS: Rule = Rule {
    lifted_by: LiftedBy::Nobody,
    ..rule("test.lasts", |_, _| Ok(Some(RuleFinding::Ask("Lasts.".to_owned()))))
};
static FAILS: Rule = rule("test.fails", |_, _| Err(ScriptError::Deep.into()));

fn decide_with(rules: &[&'static Rule]) -> Decision {
    decide_at(rules, Stage::Asked)
}

fn decide_at(rules: &[&'static Rule], stage: Stage) -> Decision {
    decide(rules.iter().copied(), vec![Intent::Observe], &answering(Label::Own), stage)
}

/// Judges a call before and after the creator's approval.
fn before_and_after(intent: &Intent, facts: &Facts) -> [Decision; 2] {
    let tool: ToolName = "exec".parse().unwrap();
    let at = Timestamp::from_millis(0);
    let moment = RuleContext { tool: &tool, at, tier: None, turn: 1, call: 1 };
    let approval = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
    [None, Some(approval)].map(|approval| {
        let call = Plain(vec![intent.clone()]);
        Judge::default().judge(call, facts, &moment, approval).decision().clone()
    })
}

#[test]
fn an_approval_lifts_what_the_creator_lifts_and_nothing_else() {
    let at = |rules: &[&'static Rule]| decide_at(rules, Stage::Approved).outcome;
    assert_eq!(at(&[&ASKS, &DENIES, &SILENT]), DecisionOutcome::Allow);
    assert_eq!(at(&[&ASKS, &LASTS]), DecisionOutcome::Deny);
    assert_eq!(at(&[&FAILS]), DecisionOutcome::Deny, "a rule that fails is lifted by nobody");
    assert_eq!(decide_with(&[&LASTS]).outcome, DecisionOutcome::Deny, "and it never asks");
}

#[test]
fn an_approved_call_is_made_whatever_the_label_of_its_turn() {
    let dangerous = |input| Facts { risk: Risk::Dangerous, ..answering(input) };
    for intent in samples() {
        for input in Label::ALL {
            let facts = Facts {
                origins: Origins::assumed(ValueOrigin::Outside(Label::Web)),
                attempts: Attempts::new([u32::MAX; LIMITS.len()]),
                tier: Some(SurvivalTier::Critical),
                purpose_asks: true,
                ..dangerous(input)
            };
            let [_, approved] = before_and_after(&intent, &facts);
            assert_eq!(
                approved.outcome,
                DecisionOutcome::Allow,
                "{intent:?} {input}: {approved:?}"
            );
        }
    }
}

#[test]
fn what_nobody_lifts_is_refused_and_never_asked_about() {
    let cases = [
        (
            Intent::Exec { command: "kill 1".to_owned(), timeout_ms: 1 },
            ReasonCode::ForbiddenCommand,
        ),
        (Intent::ReadPath { path: "/etc/passwd".to_owned() }, ReasonCode::PathTraversal),
        (Intent::Transfer { to: "nobody".to_owned(), cents: 1 }, ReasonCode::ValidationFailed),
    ];
    for (intent, code) in cases {
        for input in Label::ALL {
            let [asked, approved] = before_and_after(&intent, &answering(input));
            assert_ne!(asked.outcome, DecisionOutcome::Ask, "{intent:?} {input}");
            assert_eq!((approved.outcome, approved.code), (DecisionOutcome::Deny, code), "{input}");
        }
    }
}

#[test]
fn a_question_that_the_treasury_would_refuse_is_not_asked() {
    let gift = Intent::Transfer { to: format!("0x{}", "2".repeat(40)), cents: 1_500 };
    let unnamed = Facts {
        origins: Origins::assumed(ValueOrigin::Own),
        risk: Risk::Dangerous,
        creator_waits: true,
        ..answering(Label::Creator)
    };
    let [asked, approved] = before_and_after(&gift, &unnamed);
    assert_eq!((asked.outcome, approved.outcome), (DecisionOutcome::Ask, DecisionOutcome::Allow));
    let code = ReasonCode::MinimumReserve;
    let reason = "$5.00 are there.".to_owned();
    let poor = Facts { hard_limit: Some(HardLimit { code, reason: reason.clone() }), ..unnamed };
    let [asked, _] = before_and_after(&gift, &poor);
    assert_eq!((asked.outcome, asked.code), (DecisionOutcome::Deny, code));
    assert_eq!(asked.reason, reason);
    let named = Facts { origins: Origins::assumed(ValueOrigin::Creator), ..poor };
    let [asked, _] = before_and_after(&gift, &named);
    assert_eq!(asked.outcome, DecisionOutcome::Allow, "the treasury says so itself");
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

/// Generates text that resembles what rules look for.
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
        prop_assert_eq!(decision, &decide(rules::all(), intents.clone(), &facts, Stage::Asked));
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
    fn a_question_is_asked_only_where_a_yes_is_good_for_the_call(intent in any_intent(), facts in any_facts()) {
        let [asked, approved] = before_and_after(&intent, &facts);
        if asked.outcome == DecisionOutcome::Ask {
            prop_assert_eq!(approved.outcome, DecisionOutcome::Allow);
        }
        prop_assert!(approved.outcome <= asked.outcome);
    }

    #[test]
    fn another_intent_never_lowers_the_outcome(intents in prop::collection::vec(any_intent(), 1..3), more in any_intent(), facts in any_facts()) {
        let before = decide(rules::all(), intents.clone(), &facts, Stage::Asked).outcome;
        let after = decide(rules::all(), [intents, vec![more]].concat(), &facts, Stage::Asked).outcome;
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
        let high = decide(rules::all(), intents.clone(), &facts, Stage::Asked).outcome;
        prop_assert!(decide(rules::all(), intents, &lower, Stage::Asked).outcome >= high);
    }
}
