//! Tests of the operator's rules: their findings, their scope, and mistakes in the file.

use automaton_core::intent::Intentional;
use automaton_core::tool::Risk;
use automaton_core::trust::Label;
use proptest::prelude::*;

use super::load::OPERATOR_TEXT_BYTES_MAX;
use super::*;
use crate::rules::testing::{answering, samples};
use crate::{Judge, Verdict};

const DEFAULT: &str = include_str!("../../../automaton/assets/policy.cedar");
const TOOLS: [&str; 3] = ["exec", "write_file", "transfer_credits"];

fn rules(text: &str) -> OperatorRules {
    OperatorRules::read(text, TOOLS).map(|(rules, _)| rules).unwrap_or_else(|bad| panic!("{bad}"))
}

fn mistakes(text: &str) -> Vec<String> {
    let bad = OperatorRules::read(text, TOOLS).map(|(rules, _)| rules.len()).unwrap_err();
    bad.mistakes.iter().map(ToString::to_string).collect()
}

fn notes(text: &str) -> Vec<String> {
    let (_, notes) = OperatorRules::read(text, TOOLS).unwrap();
    notes.iter().map(ToString::to_string).collect()
}

struct Wants(Vec<Intent>);

impl Intentional for Wants {
    fn intents(&self) -> Vec<Intent> {
        self.0.clone()
    }
}

fn judged(text: &str, intents: Vec<Intent>, facts: &Facts, hour: i64) -> Decision {
    let tool: ToolName = "exec".parse().unwrap();
    let at = Timestamp::from_millis(hour * 3_600_000);
    let moment =
        RuleContext { tool: &tool, at, tier: Some(SurvivalTier::Normal), turn: 1, call: 2 };
    let judge = Judge::new(Some(Arc::new(rules(text))));
    judge.judge(Wants(intents), facts, &moment, None).decision().clone()
}

fn own() -> Facts {
    Facts { gives_alone: true, ..answering(Label::Own) }
}

fn transfer(cents: u64) -> Intent {
    Intent::Transfer { to: "0x2222222222222222222222222222222222222222".to_owned(), cents }
}

fn exec(command: &str) -> Intent {
    Intent::Exec { command: command.to_owned(), timeout_ms: 1000 }
}

#[test]
fn a_forbid_refuses_and_one_that_asks_asks() {
    let text = "@id(\"big\") @ask(\"it is much\") forbid (principal, action in Action::\"spend\", \
                resource) when { resource.cents > 100 };\n\
                @id(\"huge\") @reason(\"it is too much.\") forbid (principal, action, resource is \
                Transfer) when { resource.cents > 1000 };";
    let small = judged(text, vec![transfer(100)], &own(), 0);
    assert_eq!((small.outcome, small.code), (DecisionOutcome::Allow, ReasonCode::Allowed));
    assert_eq!(*small.operator.asked, ["operator.big", "operator.huge"]);
    assert!(small.operator.triggered.is_empty());
    let big = judged(text, vec![transfer(101)], &own(), 0);
    assert_eq!((big.outcome, big.code), (DecisionOutcome::Ask, ReasonCode::OperatorRule));
    assert_eq!(big.reason, "The rule operator.big asks for your creator's word: it is much.");
    let huge = judged(text, vec![transfer(101), transfer(1001)], &own(), 0);
    assert_eq!(huge.outcome, DecisionOutcome::Deny);
    assert_eq!(huge.reason, "The rule operator.huge forbids it: it is too much.");
    assert_eq!(huge.operator.triggered, ["operator.big", "operator.huge"]);
    assert_eq!(huge.triggered().collect::<Vec<_>>(), ["operator.big", "operator.huge"]);
}

#[test]
fn what_is_known_of_the_moment_counts() {
    let text = "forbid (principal, action, resource) when { context.hour >= 22 || context.hour < 6 };\n\
                forbid (principal, action, resource) when { context.heard == Label::\"web\" };\n\
                forbid (principal, action, resource) when { context.tool == Tool::\"write_file\" };\n\
                forbid (principal, action, resource) when { principal.tier == Tier::\"dead\" };\n\
                forbid (principal, action, resource) when { context.risk == Risk::\"dangerous\" };\n\
                forbid (principal, action, resource) when { context.call > 2 || context.turn > 1 };";
    let triggered =
        |facts: &Facts, hour| judged(text, vec![exec("true")], facts, hour).operator.triggered;
    assert!(triggered(&own(), 12).is_empty());
    assert_eq!(triggered(&own(), 23), ["operator.rule1"]);
    assert_eq!(triggered(&own(), 29), ["operator.rule1"]);
    let heard = Facts { heard: Label::Web, ..own() };
    assert_eq!(triggered(&heard, 12), ["operator.rule2"]);
    let dangerous = Facts { risk: Risk::Dangerous, ..own() };
    assert_eq!(triggered(&dangerous, 12), ["operator.rule5"]);
}

#[test]
fn commands_are_known_by_their_programs_and_files_by_one_name() {
    let text = "forbid (principal, action == Action::\"exec\", resource)\n\
                when { resource.programs.contains(\"curl\") };\n\
                forbid (principal, action in Action::\"files\", resource)\n\
                when { resource.path like \"accounts/*\" };";
    for command in ["curl x", "true && /usr/bin/curl x", "echo $(curl x)"] {
        assert_eq!(
            judged(text, vec![exec(command)], &own(), 0).operator.triggered.len(),
            1,
            "{command}"
        );
    }
    assert_eq!(judged(text, vec![exec("echo curl")], &own(), 0).outcome, DecisionOutcome::Allow);
    for path in ["accounts/a", "./accounts/a", "/root/accounts//a", "x/../accounts/a"] {
        let read = Intent::ReadPath { path: path.to_owned() };
        assert_eq!(
            judged(text, vec![read], &own(), 0).operator.triggered,
            ["operator.rule2"],
            "{path}"
        );
    }
}

#[test]
fn nothing_that_permits_allows_what_is_refused() {
    let text = "permit (principal, action, resource);";
    let refused = judged(text, vec![transfer(0)], &own(), 0);
    assert_eq!(
        (refused.outcome, refused.code),
        (DecisionOutcome::Deny, ReasonCode::ValidationFailed)
    );
    assert_eq!(notes(text), ["1:1: 'rule1' permits, which has no effect: rules only tighten."]);
    assert!(rules(text).is_empty());
}

#[test]
fn what_cannot_be_evaluated_is_refused() {
    // The sum exceeds the largest number of Cedar.
    let text = "forbid (principal, action == Action::\"transfer\", resource)\n\
                when { resource.cents + 1 < 0 };";
    let decision = judged(text, vec![transfer(u64::MAX)], &own(), 0);
    assert_eq!((decision.outcome, decision.code), (DecisionOutcome::Deny, ReasonCode::RuleError));
    assert_eq!(decision.operator.triggered, ["operator.rule1"]);
    let unreadable =
        judged(text, vec![exec(&format!("{}a{}", "$(".repeat(20), ")".repeat(20)))], &own(), 0);
    assert_eq!(unreadable.outcome, DecisionOutcome::Deny);
}

#[test]
fn the_creators_word_answers_a_question_and_no_refusal() {
    let ask = "@ask(\"?\") forbid (principal, action, resource);";
    let tool: ToolName = "exec".parse().unwrap();
    let moment =
        RuleContext { tool: &tool, at: Timestamp::from_millis(0), tier: None, turn: 1, call: 1 };
    let judge = Judge::new(Some(Arc::new(rules(ask))));
    let id = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().ok();
    assert!(id.is_some());
    let facts = own();
    let fine = Wants(vec![transfer(1)]);
    let wrong = Wants(vec![transfer(0)]);
    let Verdict::Allowed(_, decision) = judge.judge(fine, &facts, &moment, id) else {
        panic!("it is approved")
    };
    assert_eq!(decision.code, ReasonCode::Approved);
    assert_eq!(decision.operator.triggered, ["operator.rule1"]);
    let refused = judge.judge(wrong, &facts, &moment, id);
    assert_eq!(refused.decision().outcome, DecisionOutcome::Deny);
}

#[test]
fn what_the_operator_forbids_after_a_yes_is_not_asked_about() {
    // An approved call runs with the label of its cause.
    let text = "@id(\"ask\") @ask(\"?\") forbid (principal, action == Action::\"exec\", resource);\n\
                @id(\"web\") forbid (principal, action == Action::\"exec\", resource)\n\
                when { context.input == Label::\"web\" };";
    let read = Facts { heard: Label::Web, ..answering(Label::Creator) };
    let decision = judged(text, vec![exec("ls")], &read, 0);
    assert_eq!(
        (decision.outcome, decision.code),
        (DecisionOutcome::Deny, ReasonCode::OperatorRule)
    );
    assert_eq!(decision.reason, "The rule operator.web forbids it.");
    assert_eq!(decision.operator.triggered, ["operator.ask", "operator.web"]);
    let unread = judged(text, vec![exec("ls")], &answering(Label::Creator), 0);
    assert_eq!(unread.outcome, DecisionOutcome::Ask);
}

#[test]
fn mistakes_have_their_line_and_column() {
    for (text, expected) in [
        ("\n  forbid (principal, action, resource", "2:"),
        (
            "forbid (principal, action, resource);\nforbid (principal, action == Action::\"exce\", resource);",
            "2:",
        ),
        (
            "forbid (principal, action == Action::\"exec\", resource)\nwhen { resource.path == \"a\" };",
            "2:8: ",
        ),
        ("forbid (principal, action, resource)\nwhen { context.input == Label::\"per\" };", "2:"),
        ("forbid (principal, action, resource)\nwhen { context.tool == Tool::\"exek\" };", "2:"),
        ("forbid (principal, action, resource)\nwhen { context.hour == \"ten\" };", "2:"),
        ("@aks(\"me\")\nforbid (principal, action, resource);", "1:1: @aks means nothing here"),
        ("@id(\"a b\")\nforbid (principal, action, resource);", "1:1: 'a b' is no name of a rule"),
        ("forbid (principal, action, resource == ?resource);", "1:1: A rule has no slots"),
        (
            "@id(\"a\") forbid (principal, action, resource);\n\n @id(\"a\") forbid (principal, \
             action == Action::\"exec\", resource);",
            "3:2: The rule of line 1 is called 'a' too.",
        ),
        (
            "\nforbid (principal, action == Action::\"exec\", resource is File);",
            "2:1: This can never apply: ",
        ),
        (
            "forbid (principal, action == Action::\"exec\", resource)\nwhen { false };",
            "1:1: This can never apply: ",
        ),
    ] {
        let found = mistakes(text);
        assert!(found.iter().any(|one| one.starts_with(expected)), "{text}\n{found:?}");
    }
    let long = " ".repeat(OPERATOR_TEXT_BYTES_MAX + 1);
    assert_eq!(mistakes(&long).len(), 1);
}

#[test]
fn a_rule_that_another_one_swallows_is_told_of() {
    let text = "@id(\"all\") forbid (principal, action in Action::\"spend\", resource);\n\
                @id(\"some\") @ask(\"?\") forbid (principal, action in Action::\"spend\", resource)\n\
                when { resource.cents > 5 };\n\
                @id(\"other\") forbid (principal, action == Action::\"exec\", resource);";
    assert_eq!(notes(text), ["2:1: 'some' is never reached: 'all' refuses all of it."]);
}

#[test]
fn the_file_that_is_shipped_is_without_fault_and_does_what_it_says() {
    assert_eq!(notes(DEFAULT), [""; 0]);
    assert_eq!(rules(DEFAULT).len(), 3);
    assert_eq!(judged(DEFAULT, vec![transfer(2001)], &own(), 0).outcome, DecisionOutcome::Ask);
    assert_eq!(judged(DEFAULT, vec![exec("nc -l 1")], &own(), 0).outcome, DecisionOutcome::Deny);
    assert_eq!(judged(DEFAULT, vec![exec("ls")], &own(), 0).outcome, DecisionOutcome::Allow);
    // The examples are correct too.
    let examples = DEFAULT.split("// Examples.").nth(1).unwrap();
    let examples: Vec<&str> =
        examples.lines().skip(1).map(|line| line.trim_start_matches("// ")).collect();
    assert_eq!(rules(&examples.join("\n")).len(), 4);
}

#[test]
fn every_kind_of_intent_can_be_forbidden_and_is_told_of_in_the_file_that_is_shipped() {
    for intent in samples() {
        let action = format!("Action::\"{}\"", intent.kind());
        assert!(DEFAULT.contains(&action), "{action}");
        let text = format!("forbid (principal, action == {action}, resource);");
        let decision = judged(&text, vec![intent], &own(), 0);
        assert_eq!(decision.operator.triggered, ["operator.rule1"], "{action}");
        assert_eq!(decision.code, ReasonCode::OperatorRule, "{action}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        OperatorRules::read(&text, TOOLS).map(drop).ok();
    }

    #[test]
    fn rules_only_tighten(cents in any::<u64>(), limit in 0..10_000_u32, ask in any::<bool>()) {
        let ask = if ask { "@ask(\"?\")" } else { "" };
        let text = format!("{ask} forbid (principal, action, resource is Transfer) when {{ resource.cents > {limit} }};");
        let facts = own();
        let without = crate::judge(Wants(vec![transfer(cents)]), &facts).decision().outcome;
        prop_assert!(judged(&text, vec![transfer(cents)], &facts, 0).outcome >= without);
    }
}
