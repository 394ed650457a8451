//! `policy show`, `policy explain`: what the automaton may do, and why it might not.
//!
//! Everything is read off what judges at run time. Showing it needs no home; explaining
//! a decision reads the record of one.

use std::fmt::Write as _;

use automaton_core::record::DecisionOutcome;
use automaton_core::time::RateWindow;
use automaton_core::tool::ToolSpec;
use automaton_core::trust::Label;
use automaton_policy::catalogue::{self, AuthorityNeeds, LiftedBy, RuleDescription, TABLE};
use automaton_policy::rates::{LIMITS, Limit};
use automaton_store::{DecisionRecord, NewDecision};
use automaton_tools::list;
use serde_json::json;

use super::super::CommandContext;
use crate::error::CliError;
use crate::ui::{phrases, text::short};
use crate::view::policy::{
    AuthorityView, ExplainedDecisionView, PolicyExplainOutput, PolicyToolView, PolicyView,
    RateLimitView, RuleListView, RuleView,
};

impl From<RuleDescription> for RuleView {
    fn from(about: RuleDescription) -> Self {
        let RuleDescription { id, code, sentence, advice, lifted_by } = about;
        let approval = approval(lifted_by);
        let id = id.as_str();
        let code = code.name();
        Self { id, code, sentence, advice, lifted_by: lifted_by.name(), approval }
    }
}

pub(super) fn show(context: &CommandContext) -> Result<(), CliError> {
    let tools = list::specs();
    let by = |row: &AuthorityNeeds, wanted: DecisionOutcome| -> Vec<Label> {
        let found = Label::ALL.into_iter().zip(row.answering);
        found.filter(|(_, outcome)| *outcome == wanted).map(|(label, _)| label).collect()
    };
    let rules: Vec<RuleView> = catalogue::rules().map(RuleView::from).collect();
    let tool = |tool: &ToolSpec| PolicyToolView {
        name: tool.name.to_string(),
        category: tool.category,
        risk: tool.risk,
    };
    let authority = |row: &AuthorityNeeds| AuthorityView {
        kind: row.kind,
        effect: row.effect,
        having_read: row.having_read,
        alone: by(row, DecisionOutcome::Allow),
        asks: by(row, DecisionOutcome::Ask),
        never: by(row, DecisionOutcome::Deny),
    };
    let limit = |limit: &Limit| RateLimitView {
        rule: limit.rule,
        kind: limit.kind,
        max: limit.max,
        window_ms: match limit.window {
            RateWindow::Last(span) => Some(span.as_millis()),
            RateWindow::Wake => None,
        },
    };
    let view = PolicyView {
        tools: tools.iter().map(tool).collect(),
        authority: TABLE.iter().map(authority).collect(),
        rules,
        limits: LIMITS.iter().map(limit).collect(),
    };
    context.format.answer(&view, || page(&tools, &view.rules))
}

/// The same for people.
fn page(tools: &[ToolSpec], rules: &[RuleView]) -> String {
    let mut text = "Tools, their families, and how much harm they can do".to_owned();
    for ToolSpec { name, category, risk, .. } in tools {
        let family = json!(category);
        let name = name.as_str();
        let family = family.as_str().unwrap_or_default();
        add(&mut text, format_args!("\n  {name:<20} {family:<10} {}", risk.name()));
    }
    text.push_str(
        "\n\nWhat it may do for whom: alone, when you approve (asks), or never; and what it may do \
         for\nanybody after it has read text of a peer or of the web since it woke\n",
    );
    add(&mut text, format_args!("  {:<11}", ""));
    for name in Label::ALL.map(Label::name).into_iter().chain(["after reading"]) {
        add(&mut text, format_args!(" {name:<7}"));
    }
    for row in TABLE {
        add(&mut text, format_args!("\n  {:<11}", row.kind));
        for outcome in row.answering.into_iter().chain([row.having_read]) {
            add(&mut text, format_args!(" {:<7}", word(outcome)));
        }
        text.truncate(text.trim_end().len());
    }
    text.push_str("\n\nRules");
    for RuleView { id, code, sentence, approval, .. } in rules {
        add(&mut text, format_args!("\n  {id}  {code}\n    {sentence} {approval}"));
    }
    text
}

/// Returns the effect of the creator's approval on a rule.
const fn approval(lifted_by: LiftedBy) -> &'static str {
    match lifted_by {
        LiftedBy::Creator => "Your approval of a call lifts it.",
        LiftedBy::Nobody => "No approval lifts it.",
    }
}

const fn word(outcome: DecisionOutcome) -> &'static str {
    match outcome {
        DecisionOutcome::Allow => "alone",
        DecisionOutcome::Ask => "asks",
        DecisionOutcome::Deny => "never",
    }
}

pub(super) fn explain(context: &CommandContext, id: &str) -> Result<(), CliError> {
    let named = rules_named(id);
    if let [rule] = named.as_slice() {
        return context.format.answer(&PolicyExplainOutput::Rule(rule.clone()), || in_words(rule));
    }
    if !named.is_empty() {
        let words = || named.iter().map(in_words).collect::<Vec<_>>().join("\n");
        let view = RuleListView { rules: named.clone() };
        return context.format.answer(&PolicyExplainOutput::Rules(view), words);
    }
    if id.contains('.') {
        let none = CliError::user(format!("there is no rule '{}'", short(id, 60)));
        return Err(none.hint("`automaton policy show` lists the rules"));
    }
    let (.., reader) = context.record()?;
    let Some(found) = reader.decision(id)? else {
        let none = CliError::user(format!("there is no decision '{}' on record", short(id, 60)));
        return Err(none.hint("`automaton turn --json` shows their ids"));
    };
    let objected: Vec<RuleView> = catalogue::rules()
        .filter(|about| found.decision.rules_triggered.iter().any(|id| id == about.id.as_str()))
        .map(RuleView::from)
        .collect();
    let view = ExplainedDecisionView { decision: (&found).into(), rules: objected.clone() };
    context.format.answer(&PolicyExplainOutput::Decision(Box::new(view)), || {
        let DecisionRecord { id, call, tool, decision, at } = &found;
        let NewDecision { outcome, code, reason, risk, .. } = decision;
        let tool = short(tool, 64);
        let reason = short(reason, 600);
        let mut text = format!(
            "{tool} at {}: {} ({code})\n  {reason}\n  risk of the tool: {}\n  decision {id}, call \
             {call}",
            context.clock().with_age(*at),
            phrases::verdict(*outcome),
            risk.name()
        );
        for rule in &objected {
            add(&mut text, format_args!("\n{}\n  {}\n  {}", rule.id, rule.sentence, rule.advice));
        }
        text
    })
}

/// The rules of a name: of an id such as `risk.dangerous`, or of the code that the screen shows,
/// such as `EXTERNAL_DANGEROUS_TOOL`, which several rules may have.
fn rules_named(name: &str) -> Vec<RuleView> {
    let name = name.trim().trim_start_matches("rule ");
    let is_it = |about: &RuleDescription| {
        about.id.as_str() == name || about.code.name().eq_ignore_ascii_case(name)
    };
    catalogue::rules().filter(is_it).map(RuleView::from).collect()
}

fn in_words(rule: &RuleView) -> String {
    let RuleView { id, code, sentence, advice, approval, .. } = rule;
    format!("{id} ({code})\n  {sentence}\n  {advice}\n  {approval}")
}

fn add(text: &mut String, more: std::fmt::Arguments<'_>) {
    // silent-ok: a String takes whatever is written to it.
    text.write_fmt(more).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_found_by_its_id_and_by_the_name_on_the_screen() {
        for about in catalogue::rules() {
            let id = about.id.as_str();
            assert!(rules_named(id).iter().any(|rule| rule.id == id), "{id}");
            let code = about.code.name();
            for spelled in [code.to_owned(), code.to_lowercase(), format!("rule {code}")] {
                assert!(rules_named(&spelled).iter().any(|rule| rule.id == id), "{spelled}");
            }
        }
        assert!(rules_named("NO_SUCH_RULE").is_empty() && rules_named("").is_empty());
    }

    #[test]
    fn the_document_has_the_whole_table_and_every_rule() {
        let document = include_str!("../../../../../docs/judgement.md");
        let page = page(&[], &[]);
        let table = page.split("\n\n").find(|part| part.starts_with("What it may do")).unwrap();
        assert!(document.contains(table), "docs/judgement.md: {table}");
        let rows: Vec<&str> = document
            .lines()
            .filter(|line| line.starts_with("| `") && !line.starts_with("| `automaton "))
            .collect();
        let rules = catalogue::rules().map(|rule| {
            let yes = if rule.lifted_by == LiftedBy::Creator { "yes" } else { "no" };
            format!("| `{}` | {} | {yes} |", rule.id, rule.sentence)
        });
        assert_eq!(rows, rules.collect::<Vec<_>>(), "docs/judgement.md");
    }
}
