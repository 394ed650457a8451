//! Pure: reads and checks the operator's rule file before it is used.
//!
//! Anything that would make a rule weaker than its author meant is a mistake, reported with line
//! and column: syntax errors, names missing in the schema, a `forbid` that can never apply, a
//! misspelt annotation, two rules of one name. Harmless rules without effect are notes. A file
//! with a mistake must never be used in part.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use automaton_core::error::Classified;
use automaton_core::record::DecisionOutcome;
use cedar_policy::{
    ActionConstraint, Effect, Policy, PolicyId, PolicySet, PrincipalConstraint, ResourceConstraint,
    Schema, ValidationMode, ValidationWarning, Validator,
};
use miette::Diagnostic;

use super::{CedarNames, OperatorRule, OperatorRules};

/// The largest file, in bytes.
pub const OPERATOR_TEXT_BYTES_MAX: usize = 256 * 1024;
/// The most rules. Each is evaluated for each intent.
const RULES_MAX: usize = 500;
/// The longest name of a rule, in characters.
const NAME_CHARS_MAX: usize = 64;
/// The known annotations.
const ANNOTATIONS: [&str; 3] = ["id", "ask", "reason"];

const SCHEMA: &str = include_str!("schema.cedarschema");
/// Cedar refuses everything that is not permitted. Here the built-in rules decide about that.
const PERMIT_ALL: &str = "permit (principal, action, resource);";
/// A name that no rule of a file can have.
const PERMIT_ALL_ID: &str = "(everything else)";

/// A message about a place in the file.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
#[display("{line}:{column}: {text}")]
pub struct RuleDiagnostic {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The message, in one sentence.
    pub text: String,
}

/// The rule file cannot be used.
#[derive(Debug, thiserror::Error, Classified)]
#[class(
    Config,
    hint = "correct the file, then `automaton policy check`; without the file only the built-in \
            rules hold"
)]
pub struct OperatorRulesError {
    /// All mistakes, in the order of the file. At least one.
    pub mistakes: Vec<RuleDiagnostic>,
}

impl fmt::Display for OperatorRulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the operator's rules cannot be used")?;
        self.mistakes.iter().try_for_each(|mistake| write!(f, "\n  {mistake}"))
    }
}

impl OperatorRules {
    /// Reads a rule file for a program with these tools. Also returns the notes that are not
    /// mistakes.
    ///
    /// # Errors
    /// Returns every mistake with its place.
    pub fn read<'a>(
        text: &str,
        tools: impl IntoIterator<Item = &'a str>,
    ) -> Result<(Self, Vec<RuleDiagnostic>), OperatorRulesError> {
        let mut reading = RulesParser { text, mistakes: Vec::new(), notes: Vec::new() };
        let read = reading.read(tools);
        match read {
            Some(rules) if reading.mistakes.is_empty() => Ok((rules, in_order(reading.notes))),
            _ => Err(OperatorRulesError { mistakes: in_order(reading.mistakes) }),
        }
    }
}

fn in_order(mut notes: Vec<RuleDiagnostic>) -> Vec<RuleDiagnostic> {
    notes.sort_by_key(|note| (note.line, note.column));
    notes
}

/// A file that is being read.
struct RulesParser<'a> {
    text: &'a str,
    mistakes: Vec<RuleDiagnostic>,
    notes: Vec<RuleDiagnostic>,
}

/// A policy of the file, with its name and position.
struct NamedPolicy {
    name: String,
    policy: Policy,
    at: usize,
}

impl RulesParser<'_> {
    fn read<'a>(&mut self, tools: impl IntoIterator<Item = &'a str>) -> Option<OperatorRules> {
        if self.text.len() > OPERATOR_TEXT_BYTES_MAX {
            let bytes = self.text.len();
            let most = OPERATOR_TEXT_BYTES_MAX;
            self.mistake(0, format!("The file has {bytes} bytes; {most} are the most."));
            return None;
        }
        let policies = self.parse()?;
        let named = self.name_policies(&policies);
        let schema = self.schema(tools)?;
        let set = self.policy_set(&named)?;
        self.validate(&named, schema.clone(), &set);
        self.note_unreachable(&named);
        self.compile(named, &schema)
    }

    fn mistake(&mut self, at: usize, text: String) {
        let note = self.note(at, text);
        self.mistakes.push(note);
    }

    fn remark(&mut self, at: usize, text: String) {
        let note = self.note(at, text);
        self.notes.push(note);
    }

    fn note(&self, at: usize, text: String) -> RuleDiagnostic {
        let before = self.text.get(..at).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        RuleDiagnostic { line, column, text }
    }

    fn parse(&mut self) -> Option<PolicySet> {
        let errors = match PolicySet::from_str(self.text) {
            Ok(policies) => return Some(policies),
            Err(errors) => errors,
        };
        for error in errors.iter() {
            self.mistake(position_of(error).unwrap_or(0), message_of(error));
        }
        None
    }

    /// Returns the policies in the order of the file, under their names in the file.
    fn name_policies(&mut self, policies: &PolicySet) -> Vec<NamedPolicy> {
        let mut from = 0;
        let mut named: Vec<NamedPolicy> = Vec::new();
        for number in 0..policies.num_of_policies() + policies.num_of_templates() {
            // Cedar numbers policies in file order and keeps the text of each.
            let id = PolicyId::new(format!("policy{number}"));
            let template = policies.template(&id);
            let policy = policies.policy(&id);
            let text =
                policy.and_then(Policy::to_cedar).or_else(|| template.map(|one| one.to_cedar()));
            let text = text.unwrap_or_default();
            let at = self
                .text
                .get(from..)
                .and_then(|rest| rest.find(&text))
                .map_or(from, |at| from + at);
            from = at + text.len();
            let Some(policy) = policy else {
                self.mistake(at, "A rule has no slots (`?principal`, `?resource`).".to_owned());
                continue;
            };
            let name = policy
                .annotation("id")
                .map_or_else(|| format!("rule{}", number + 1), str::to_owned);
            self.check_annotations(policy, &name, at);
            if let Some(before) = named.iter().find(|before| before.name == name) {
                let line = self.note(before.at, String::new()).line;
                self.mistake(at, format!("The rule of line {line} is called '{name}' too."));
                continue;
            }
            named.push(NamedPolicy { policy: policy.new_id(PolicyId::new(&name)), name, at });
        }
        if named.len() > RULES_MAX {
            self.mistake(0, format!("There are {} rules; {RULES_MAX} are the most.", named.len()));
        }
        named
    }

    fn check_annotations(&mut self, policy: &Policy, name: &str, at: usize) {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(plain) {
            let rule = "letters, digits, '_', '-' and '.', 64 at most";
            self.mistake(at, format!("'{name}' is no name of a rule ({rule})."));
        }
        for (key, _) in policy.annotations() {
            if !ANNOTATIONS.contains(&key) {
                let known = ANNOTATIONS.join(", @");
                self.mistake(at, format!("@{key} means nothing here; there are @{known}."));
            }
        }
        if policy.effect() == Effect::Permit {
            let text = format!("'{name}' permits, which has no effect: rules only tighten.");
            self.remark(at, text);
        }
    }

    fn schema<'a>(&mut self, tools: impl IntoIterator<Item = &'a str>) -> Option<Schema> {
        let tools: Vec<String> = tools.into_iter().map(|tool| format!("\"{tool}\"")).collect();
        let text = format!("{SCHEMA}\nentity Tool enum [{}];\n", tools.join(", "));
        match Schema::from_cedarschema_str(&text) {
            Ok((schema, _)) => Some(schema),
            Err(error) => {
                self.mistake(0, format!("This program's own schema cannot be read: {error}."));
                None
            }
        }
    }

    fn policy_set(&mut self, named: &[NamedPolicy]) -> Option<PolicySet> {
        match PolicySet::from_policies(named.iter().map(|one| one.policy.clone())) {
            Ok(set) => Some(set),
            Err(error) => {
                self.mistake(0, format!("The rules do not fit together: {error}."));
                None
            }
        }
    }

    fn validate(&mut self, named: &[NamedPolicy], schema: Schema, set: &PolicySet) {
        let found = Validator::new(schema).validate(set, ValidationMode::Strict);
        let of = |id: &PolicyId| named.iter().find(|one| PolicyId::new(&one.name) == *id);
        for error in found.validation_errors() {
            let at = of(error.policy_id()).map_or(0, |one| one.at);
            self.mistake(position_of(error).unwrap_or(at), message_of(error));
        }
        for warning in found.validation_warnings() {
            let (at, forbids) = of(warning.policy_id())
                .map_or((0, true), |one| (one.at, one.policy.effect() == Effect::Forbid));
            match warning {
                ValidationWarning::ImpossiblePolicy(_)
                | ValidationWarning::InvalidActionApplication(_)
                    if forbids =>
                {
                    let text = format!("This can never apply: {}", message_of(warning));
                    self.mistake(at, text);
                }
                _ => self.remark(position_of(warning).unwrap_or(at), message_of(warning)),
            }
        }
    }

    /// Notes rules that never decide, since an unconditional rule refuses everything in their
    /// scope. Conditions are not compared, so the notes are certain.
    fn note_unreachable(&mut self, named: &[NamedPolicy]) {
        let refuses = |one: &&NamedPolicy| {
            outcome_of(&one.policy) == DecisionOutcome::Deny
                && !one.policy.has_non_scope_constraint()
        };
        for general in named.iter().filter(refuses) {
            for special in named.iter().filter(|one| one.policy.effect() == Effect::Forbid) {
                let other = special.name != general.name;
                if other && covers(&general.policy, &special.policy) {
                    let name = &special.name;
                    let by = &general.name;
                    self.remark(
                        special.at,
                        format!("'{name}' is never reached: '{by}' refuses all of it."),
                    );
                }
            }
        }
    }

    fn compile(&mut self, named: Vec<NamedPolicy>, schema: &Schema) -> Option<OperatorRules> {
        let mut rules = HashMap::new();
        let mut policies = PolicySet::new();
        let mut ids = Vec::new();
        let everything = Policy::parse(Some(PolicyId::new(PERMIT_ALL_ID)), PERMIT_ALL);
        let mut failed = everything.map(|all| policies.add(all).is_err()).unwrap_or(true);
        for NamedPolicy { name, policy, .. } in named {
            if policy.effect() == Effect::Permit {
                continue;
            }
            let said = |key| policy.annotation(key).filter(|text| !text.trim().is_empty());
            let why = said("ask")
                .or_else(|| said("reason"))
                .map(|text| text.trim_end_matches('.').to_owned());
            let rule = OperatorRule { place: ids.len(), outcome: outcome_of(&policy), why };
            rules.insert(policy.id().clone(), rule);
            ids.push(format!("operator.{name}"));
            failed |= policies.add(policy).is_err();
        }
        match CedarNames::from_schema(schema) {
            Ok(names) if !failed => Some(OperatorRules { policies, rules, names, ids: ids.into() }),
            _ => {
                self.mistake(0, "The rules could not be put together.".to_owned());
                None
            }
        }
    }
}

/// Returns the outcome of a policy that applies.
fn outcome_of(policy: &Policy) -> DecisionOutcome {
    match (policy.effect(), policy.annotation("ask")) {
        (Effect::Permit, _) => DecisionOutcome::Allow,
        (Effect::Forbid, Some(_)) => DecisionOutcome::Ask,
        (Effect::Forbid, None) => DecisionOutcome::Deny,
    }
}

/// Returns true if the scope of `general` contains the scope of `special`.
fn covers(general: &Policy, special: &Policy) -> bool {
    let principals = (general.principal_constraint(), special.principal_constraint());
    let actions = (general.action_constraint(), special.action_constraint());
    let resources = (general.resource_constraint(), special.resource_constraint());
    let principal =
        matches!(principals.0, PrincipalConstraint::Any) || principals.0 == principals.1;
    let action = match (&actions.0, &actions.1) {
        (ActionConstraint::Any, _) => true,
        (ActionConstraint::In(all), ActionConstraint::Eq(one)) => all.contains(one),
        (all, some) => all == some,
    };
    let resource = matches!(resources.0, ResourceConstraint::Any) || resources.0 == resources.1;
    principal && action && resource
}

/// Returns the position of a Cedar diagnostic, in bytes from the beginning of the file.
fn position_of(diagnostic: &impl Diagnostic) -> Option<usize> {
    diagnostic.labels()?.next().map(|label| label.offset())
}

/// Returns Cedar's message in one sentence, with its advice.
fn message_of(diagnostic: &impl Diagnostic) -> String {
    let label = diagnostic.labels().and_then(|mut labels| labels.next());
    let label = label.and_then(|label| label.label().map(|text| format!(" ({text})")));
    let help = diagnostic.help().map(|help| format!("; {help}"));
    format!("{diagnostic}{}{}.", label.unwrap_or_default(), help.unwrap_or_default())
}
