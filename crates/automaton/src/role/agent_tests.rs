//! How the limits of a wake follow what the file says.

use automaton_agent::UnattendedBudget;

use super::*;
use crate::args::{BrainFlags, RemoteFlags};
use crate::config::env::Environment;
use crate::config::{file, resolve};

fn resolved(keys: &str) -> ResolvedConfig {
    let brain = r#"{"kind": "http", "url": "http://127.0.0.1:9"}"#;
    let text = format!(r#"{{"name": "a", "genesisPrompt": "b", "brain": {brain}{keys}}}"#);
    let file = file::parse(Path::new("automaton.json"), &text).unwrap();
    let (flags, none) = (BrainFlags::default(), Environment::default());
    resolve::resolve(Path::new("/h"), &file, &flags, &RemoteFlags::default(), &none).unwrap()
}

/// Turns of a wake and of the creator's, and the envelopes of both.
fn check(
    keys: &str,
    turns_max: Option<u32>,
    turns: (u32, u32),
    envelopes: (&str, &str),
) -> AgentLimits {
    let resolved = resolved(keys);
    let (limits, budgets) = (limits(&resolved, turns_max), budgets(&resolved, turns_max));
    let shown = |UnattendedBudget { answers, cost }: UnattendedBudget| {
        let answers = answers.map_or_else(String::new, |answers| answers.to_string());
        format!("{answers}/{}", cost.map_or_else(String::new, |cost| cost.to_string()))
    };
    assert_eq!((limits.turns_per_wake, limits.turns_of_creator), turns, "{keys}");
    let (own, creators) = (budgets.envelope_of(false), budgets.envelope_of(true));
    assert_eq!((shown(own).as_str(), shown(creators).as_str()), envelopes, "{keys}");
    limits
}

#[test]
fn a_days_budget_in_the_file_frees_the_creators_wakes_of_what_the_file_does_not_say() {
    let day = r#", "treasuryPolicy": {"maxInferenceDailyCents": 2000}"#;
    let usual = "30/$0.25";
    let limits = check("", None, (25, 25), (usual, usual));
    assert_eq!((limits.turns_free, limits.turns_weak, limits.answer_within), (200, 25, None));
    assert_eq!(
        resolved("").treasury_policy.inference_per_day(),
        Microcents::new(500 * Microcents::PER_CENT)
    );
    check(r#", "treasuryPolicy": {}"#, None, (25, 25), (usual, usual));
    // What a day may cost bounds no model that costs nothing, so it frees none.
    let limits = check(day, None, (25, 1000), (usual, "/"));
    assert_eq!((limits.turns_free, limits.turns_weak), (200, 25));
    let with = |more: &str| format!("{day}{more}");
    let limits = check(&with(r#", "maxTurnsPerCycle": 40"#), None, (40, 40), (usual, "/"));
    assert_eq!((limits.turns_free, limits.turns_weak), (40, 40));
    let answers = r#", "wakeEnvelope": {"answers": 60}"#;
    check(&with(answers), None, (25, 1000), ("60/$0.25", "60/"));
    check(answers, None, (25, 25), ("60/$0.25", "60/$0.25"));
    let none = r#", "wakeEnvelope": {"answers": 0, "cents": 0}"#;
    check(none, None, (25, 25), ("/", "/"));
    let limits = check("", Some(60), (25, 1000), ("/", "/"));
    assert_eq!((limits.turns_free, limits.turns_weak), (1000, 1000));
}

#[test]
fn a_question_waits_as_long_as_the_file_says() {
    let limits =
        check(r#", "approvals": {"waitMinutes": 90}"#, None, (25, 25), ("30/$0.25", "30/$0.25"));
    assert_eq!(limits.answer_within, Some(Span::from_secs(90 * 60)));
}
