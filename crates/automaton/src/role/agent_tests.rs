//! Limits of a wake, by the file's values.

use automaton_agent::UnattendedBudget;

use super::*;

fn resolved(keys: &str) -> ResolvedConfig {
    let brain = r#"{"kind": "http", "url": "http://127.0.0.1:9"}"#;
    let text = format!(r#"{{"name": "a", "genesisPrompt": "b", "brain": {brain}{keys}}}"#);
    let file = file::parse(Path::new("automaton.json"), &text).unwrap();
    let flags = BrainFlags::default();
    let none = Environment::default();
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
    let limits = limits(&resolved, turns_max);
    let budgets = budgets(&resolved, turns_max);
    let shown = |UnattendedBudget { answers, cost }: UnattendedBudget| {
        let answers = answers.map_or_else(String::new, |answers| answers.to_string());
        format!("{answers}/{}", cost.map_or_else(String::new, |cost| cost.to_string()))
    };
    assert_eq!((limits.turns_per_wake, limits.turns_of_creator), turns, "{keys}");
    let own = budgets.envelope_for(false);
    let creators = budgets.envelope_for(true);
    assert_eq!((shown(own).as_str(), shown(creators).as_str()), envelopes, "{keys}");
    limits
}

#[test]
fn a_wake_of_the_creator_has_the_budget_of_the_day_and_others_their_envelope() {
    let usual = "30/$0.25";
    let limits = check("", None, (25, 1000), (usual, "/"));
    assert_eq!((limits.turns_free, limits.turns_weak, limits.answer_within), (200, 25, None));
    assert_eq!(
        resolved("").treasury_policy.inference_per_day(),
        Microcents::new(500 * Microcents::PER_CENT)
    );
    // Whether the file names the day's budget changes nothing but the budget.
    let day = r#", "treasuryPolicy": {"maxInferenceDailyCents": 2000}"#;
    for keys in [r#", "treasuryPolicy": {}"#, day] {
        let limits = check(keys, None, (25, 1000), (usual, "/"));
        assert_eq!((limits.turns_free, limits.turns_weak), (200, 25));
    }
    let limits = check(r#", "maxTurnsPerCycle": 40"#, None, (40, 40), (usual, "/"));
    assert_eq!((limits.turns_free, limits.turns_weak), (40, 40));
    let answers = r#", "wakeEnvelope": {"answers": 60}"#;
    check(answers, None, (25, 1000), ("60/$0.25", "60/"));
    let cents = r#", "wakeEnvelope": {"cents": 40}"#;
    check(cents, None, (25, 1000), ("30/$0.40", "/$0.40"));
    let none = r#", "wakeEnvelope": {"answers": 0, "cents": 0}"#;
    check(none, None, (25, 1000), ("/", "/"));
    let limits = check("", Some(60), (25, 1000), ("/", "/"));
    assert_eq!((limits.turns_free, limits.turns_weak), (1000, 1000));
}

#[test]
fn a_question_waits_as_long_as_the_file_says() {
    let limits =
        check(r#", "approvals": {"waitMinutes": 90}"#, None, (25, 1000), ("30/$0.25", "/"));
    assert_eq!(limits.answer_within, Some(Span::from_secs(90 * 60)));
}

#[test]
fn the_usual_limits_are_those_of_a_file_that_says_nothing_of_them() {
    let (usual, budgets) = usual_limits().unwrap();
    assert_eq!((usual.turns_per_wake, usual.turns_of_creator), (25, 1000));
    assert_eq!(budgets.envelope_for(true), UnattendedBudget::default());
    let day = budgets.ceilings.per_day.unwrap();
    assert_eq!(day, Microcents::new(500 * Microcents::PER_CENT));
}
