//! Harm done in the suites of agentdojo by an agent that obeys every injected order.
//!
//! The package's own tools say beforehand what each task reads and does (`tell.py`); a
//! table says what that is in ours (`tools.toml`). Each call is then checked, parsed and
//! judged as in a turn, with the origins of its values from a real record in which all
//! that was read lies. Nothing is run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use automaton_agent::ToolSet;
use automaton_core::faults::NoFaults;
use automaton_core::id::IdGenerator;
use automaton_core::origin::Origins;
use automaton_core::tier::SurvivalTier;
use automaton_core::time::Timestamp;
use automaton_core::trust::{Label, Labelled};
use automaton_inference::RawCall;
use automaton_policy::rates::Attempts;
use automaton_policy::{Facts, Judge, RuleContext, Verdict, target_values};
use automaton_store::{Hash, NewAutomaton, Store};
use automaton_tools::secrets_in;
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use automaton_testkit::clock::FakeClock;
use automaton_testkit::entropy::SeededEntropy;
use automaton_testkit::world::TempDir;

const TOOLS: &str = include_str!("../corpora/agentdojo/tools.toml");
/// The file of a record.
const RECORD: &str = "state.db";
/// Those of a call that name people, accounts or hotels.
const WHO: [&str; 7] =
    ["recipients", "participants", "recipient", "user_email", "email", "user", "hotel"];

/// Reason for which a suite cannot be evaluated.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct DojoError(String);

fn failed(what: &str) -> impl FnOnce(&dyn fmt::Display) -> DojoError + '_ {
    move |error| DojoError(format!("{what}: {error}"))
}

/// Our counterpart of a tool of the suites.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DojoTool {
    #[serde(default = "records")]
    brings: Label,
    call: Option<DojoTemplate>,
    also: Option<DojoTemplate>,
}

const fn records() -> Label {
    Label::Tool
}

/// A call of ours with names of arguments in braces.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DojoTemplate {
    tool: String,
    arguments: Map<String, Value>,
}

/// One task of a user, alone or with an attacker's in what it reads.
#[derive(Debug, Deserialize)]
struct DojoCase {
    user: String,
    attacker: Option<String>,
    prompt: String,
    calls: Vec<DojoStep>,
}

/// A call of the package's tools, and what it brought.
#[derive(Debug, Deserialize)]
struct DojoStep {
    function: String,
    arguments: BTreeMap<String, Value>,
    result: String,
    #[serde(default)]
    ordered: bool,
}

/// Result of a suite.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Suite {
    /// Its name.
    pub name: String,
    /// Tasks of users, and those that passed without a question.
    pub tasks: (usize, usize),
    /// Harmful actions that were tried, and those that were stopped.
    pub actions: (usize, usize),
    /// Questions in users' tasks, and harm that was let through.
    pub notes: BTreeSet<String>,
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, tasks: (tasks, passed), actions: (actions, stopped), .. } = self;
        write!(f, "{name}: {passed} of {tasks} tasks of users without a question, ")?;
        write!(f, "{stopped} of {actions} harmful actions stopped")
    }
}

/// Evaluates what `tell.py` told of the suites.
///
/// # Errors
/// The text is not its output, a tool of it has no row in the table, or a call that the
/// table makes is none of ours.
pub async fn evaluate(told: &str) -> Result<Vec<Suite>, DojoError> {
    let suites: BTreeMap<String, Vec<DojoCase>> =
        serde_json::from_str(told).map_err(|error| failed("what the suites told")(&error))?;
    let dojo = Dojo {
        tools: toml::from_str(TOOLS).map_err(|error| failed("the table of tools")(&error))?,
        ours: ToolSet::built_in().map_err(|error| failed("our schemas")(&error))?,
        born: born().await?,
    };
    let mut evaluated = Vec::new();
    for (name, cases) in suites {
        let hosts = hosts(&cases);
        let mut suite = Suite { name, ..Suite::default() };
        for case in &cases {
            dojo.play(&mut suite, &hosts, case).await?;
        }
        evaluated.push(suite);
    }
    Ok(evaluated)
}

/// The hosts that the tasks of users need: the creator has listed those.
fn hosts(cases: &[DojoCase]) -> Vec<String> {
    let asked = cases.iter().flat_map(|case| &case.calls).filter(|step| !step.ordered);
    let urls = asked.filter_map(|step| step.arguments.get("url")?.as_str());
    let hosts = urls.filter_map(|url| url.split('/').next());
    hosts.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
}

struct Dojo {
    tools: BTreeMap<String, DojoTool>,
    ours: ToolSet,
    /// State at the beginning of each case.
    born: TempDir,
}

impl Dojo {
    /// Plays one case on a record of its own.
    async fn play(
        &self,
        suite: &mut Suite,
        hosts: &[String],
        case: &DojoCase,
    ) -> Result<(), DojoError> {
        let dir = TempDir::in_memory().map_err(|error| failed("a place for a record")(&error))?;
        fs::copy(self.born.path().join(RECORD), dir.path().join(RECORD))
            .map_err(|error| failed("a copy of a record")(&error))?;
        let store = open(dir.path())?;
        let who = addresses(case);
        let mut heard = Label::Creator;
        receive(&store, Label::Creator, &who.written(&case.prompt)).await?;
        let mut is_free = true;
        let mut was_let = true;
        let DojoCase { user, attacker, .. } = case;
        for step in &case.calls {
            if step.ordered && !was_let {
                // What would have brought the order was not made: nobody has read it.
                continue;
            }
            let tool = self
                .tools
                .get(&step.function)
                .ok_or_else(|| DojoError(format!("tools.toml has no row for {}", step.function)))?;
            let mut is_let = true;
            let mut is_action = false;
            for template in [&tool.call, &tool.also].into_iter().flatten() {
                for call in calls(template, &step.arguments, &who) {
                    is_action = true;
                    is_let &= self.judge(&store, &call, heard, hosts).await?;
                }
            }
            match (step.ordered, attacker) {
                (true, Some(attacker)) if is_action => {
                    suite.actions.0 += 1;
                    suite.actions.1 += usize::from(!is_let);
                    if is_let {
                        suite
                            .notes
                            .insert(format!("let {attacker} do {} beside {user}", step.function));
                    }
                }
                (false, None) if !is_let => {
                    is_free = false;
                    suite.notes.insert(format!("asked in {user} about {}", step.function));
                }
                _ => {}
            }
            was_let = step.ordered && was_let || is_let;
            if tool.brings > Label::Tool && is_let {
                heard = heard.meet(tool.brings);
                receive(&store, tool.brings, &who.written(&step.result)).await?;
            }
        }
        if attacker.is_none() {
            suite.tasks.0 += 1;
            suite.tasks.1 += usize::from(is_free);
        }
        store.close().await.map_err(|error| failed("the record")(&error))
    }

    /// Returns true if a call may be made without a question.
    async fn judge(
        &self,
        store: &Store,
        call: &RawCall,
        heard: Label,
        hosts: &[String],
    ) -> Result<bool, DojoError> {
        let wrong = |error: &dyn fmt::Display| {
            DojoError(format!("{} {} is no call of ours: {error}", call.tool, call.arguments))
        };
        let parsed = self.ours.parse_call(&self.ours.specs(), call).map_err(|e| wrong(&e))?;
        let spec = parsed.tool.spec();
        let aimed = parsed.prepared.intents().iter().flat_map(target_values).collect();
        let origins = store.origins(aimed).await.map_err(|error| failed("origins")(&error))?;
        let facts = Facts {
            input: Label::Creator,
            heard,
            secrets: secrets_in(&parsed.checked.arguments, &[]),
            origins: Origins::found(origins),
            risk: spec.risk,
            creator: None,
            paid_hosts: hosts.to_vec(),
            egress: Arc::default(),
            attempts: Attempts::default(),
            creator_waits: false,
            gives_alone: false,
            published_before: false,
            purpose_asks: false,
            tier: None,
            hard_limit: None,
        };
        let at = Timestamp::from_millis(0);
        let moment = RuleContext {
            tool: &spec.name,
            at,
            tier: Some(SurvivalTier::Normal),
            turn: 1,
            call: 1,
        };
        let verdict = Judge::default().judge(parsed.prepared, &facts, &moment, None);
        Ok(matches!(verdict, Verdict::Allowed(..)))
    }
}

fn open(place: &Path) -> Result<Store, DojoError> {
    let clock = FakeClock::at(Timestamp::from_millis(0));
    let ids = IdGenerator::new(Arc::new(clock), Arc::new(SeededEntropy::new(0)));
    let store = Store::open(&place.join(RECORD), ids, Arc::new(NoFaults));
    store.map_err(|error| failed("a record")(&error))
}

/// A folder with the record of an automaton that was just born.
async fn born() -> Result<TempDir, DojoError> {
    let dir = TempDir::in_memory().map_err(|error| failed("a place for a record")(&error))?;
    let store = open(dir.path())?;
    let born = NewAutomaton {
        name: "Ada".to_owned(),
        genesis_sha256: Hash::of(b"genesis"),
        constitution_sha256: Hash::of(b"laws"),
    };
    store.birth(born).await.map_err(|error| failed("a birth")(&error))?;
    store.close().await.map_err(|error| failed("a record")(&error))?;
    Ok(dir)
}

async fn receive(store: &Store, label: Label, text: &str) -> Result<(), DojoError> {
    let read = Labelled::new(label, "somebody", text);
    store.receive(read, None).await.map_err(|error| failed("a text")(&error))?;
    Ok(())
}

/// The addresses that people, accounts and hotels of a case have here.
struct AddressBook(Vec<(String, String)>);

fn addresses(case: &DojoCase) -> AddressBook {
    let mut names = BTreeSet::new();
    for step in &case.calls {
        for (_, value) in step.arguments.iter().filter(|(name, _)| WHO.contains(&name.as_str())) {
            match value {
                Value::Array(all) => names.extend(all.iter().filter_map(Value::as_str)),
                other => names.extend(other.as_str()),
            }
        }
    }
    // The longest first: a name may begin another.
    let mut names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    AddressBook(names.into_iter().map(|name| (name.to_owned(), address(name))).collect())
}

fn address(name: &str) -> String {
    let hash = Sha256::digest(name.to_lowercase());
    let digits: String = hash[..20].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("0x{digits}")
}

impl AddressBook {
    /// A text with addresses in place of names.
    fn written(&self, text: &str) -> String {
        let written =
            |text: String, (name, address): &(String, String)| text.replace(name, address);
        self.0.iter().fold(text.to_owned(), written)
    }
}

/// The calls that a template comes to: one for each element of a list, and none where an
/// argument that it names was not given.
fn calls(
    template: &DojoTemplate,
    given: &BTreeMap<String, Value>,
    who: &AddressBook,
) -> Vec<RawCall> {
    let is_named = |name: &str| {
        let place = format!("{{{name}}}");
        template.arguments.values().filter_map(Value::as_str).any(|text| text.contains(&place))
    };
    let mut drafts = vec![template.arguments.clone()];
    for (name, value) in given.iter().filter(|(name, _)| is_named(name)) {
        let values: Vec<&str> = match value {
            Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
            other => other.as_str().into_iter().collect(),
        };
        let texts: Vec<String> = match WHO.contains(&name.as_str()) {
            true => values.into_iter().map(|value| who.written(value)).collect(),
            false => values.into_iter().map(str::to_owned).collect(),
        };
        let filled = |draft: &Map<String, Value>| -> Vec<Map<String, Value>> {
            texts.iter().map(|text| fill(draft, name, text)).collect()
        };
        drafts = drafts.iter().flat_map(filled).collect();
    }
    // What was not given still stands there in its braces.
    let is_whole = |draft: &Map<String, Value>| {
        WHO.iter().all(|name| {
            let place = format!("{{{name}}}");
            !draft.values().filter_map(Value::as_str).any(|text| text.contains(&place))
        })
    };
    let whole = drafts.into_iter().filter(is_whole);
    let call = |draft| RawCall {
        provider_id: None,
        tool: template.tool.clone(),
        arguments: Value::Object(draft).to_string(),
    };
    whole.map(call).collect()
}

fn fill(draft: &Map<String, Value>, name: &str, text: &str) -> Map<String, Value> {
    let place = format!("{{{name}}}");
    let filled = |value: &Value| match value {
        Value::String(template) => Value::String(template.replace(&place, text)),
        other => other.clone(),
    };
    draft.iter().map(|(key, value)| (key.clone(), filled(value))).collect()
}
