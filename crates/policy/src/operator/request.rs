//! Pure: converts a call to a Cedar request.
//!
//! The names are those of `schema.cedarschema`, which covers every kind of intent. A request must
//! describe the intent itself, normalised where it can be written in several ways. A value that
//! cannot be normalised is an error, never empty.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::str::FromStr;

use automaton_core::intent::Intent;
use automaton_core::time::Timestamp;
use cedar_policy::{
    Context, Entities, Entity, EntityId, EntityTypeName, EntityUid, Request, RestrictedExpression,
    Schema,
};

use super::RuleContext;
use crate::facts::Facts;
use crate::shell::{self, ScriptError};

/// The path of the workspace in the sandbox.
const WORKSPACE: &str = "/root/";

/// The reason why the rules could not be evaluated.
#[derive(Debug, thiserror::Error)]
pub(super) enum OperatorQueryError {
    /// Cedar rejects a name or a value.
    #[error("{0}")]
    Cedar(String),
    #[error("the schema has no action '{0}'")]
    Action(&'static str),
    #[error("the command cannot be read: {0}")]
    Command(#[from] ScriptError),
}

/// Converts a Cedar error to its message, since its many large errors are all treated alike.
fn cedar_error(error: impl Display) -> OperatorQueryError {
    OperatorQueryError::Cedar(error.to_string())
}

/// The names that are the same in all requests.
#[derive(Debug)]
pub(super) struct CedarNames {
    /// The entity types, by their names in the schema.
    kinds: HashMap<&'static str, EntityTypeName>,
    /// Each action with its groups only, so that each request evaluates few entities.
    actions: HashMap<String, Entities>,
}

/// Every entity type of a request.
const KINDS: [&str; 22] = [
    "Action",
    "Label",
    "Risk",
    "Tier",
    "Tool",
    "Automaton",
    "Command",
    "File",
    "Message",
    "Fact",
    "Entry",
    "Model",
    "Soul",
    "Rest",
    "Plea",
    "Credits",
    "Transfer",
    "Request",
    "Egress",
    "Machine",
    "Port",
    "Itself",
];

impl CedarNames {
    pub(super) fn from_schema(schema: &Schema) -> Result<Self, OperatorQueryError> {
        let named = |kind| Ok((kind, EntityTypeName::from_str(kind).map_err(cedar_error)?));
        let kinds = KINDS.into_iter().map(named).collect::<Result<_, OperatorQueryError>>()?;
        let all = schema.action_entities().map_err(cedar_error)?;
        let mut actions = HashMap::new();
        for action in all.iter() {
            let uid = action.uid();
            let groups = all.ancestors(&uid).into_iter().flatten();
            let groups = groups.filter_map(|group| all.get(group)).cloned();
            let alone = Entities::from_entities(groups.chain([action.clone()]), None)
                .map_err(cedar_error)?;
            actions.insert(uid.id().unescaped().to_owned(), alone);
        }
        Ok(Self { kinds, actions })
    }

    fn uid(&self, kind: &'static str, id: &str) -> Result<EntityUid, OperatorQueryError> {
        let kind = match self.kinds.get(kind) {
            Some(kind) => kind.clone(),
            None => EntityTypeName::from_str(kind).map_err(cedar_error)?,
        };
        Ok(EntityUid::from_type_name_and_id(kind, EntityId::new(id)))
    }
}

/// Builds the requests about the intents of one call.
pub(super) struct OperatorQuery<'a> {
    names: &'a CedarNames,
    facts: &'a Facts,
    principal: EntityUid,
    context: Context,
    /// The acting entity.
    who: Entity,
}

type Attributes = Vec<(&'static str, RestrictedExpression)>;

impl<'a> OperatorQuery<'a> {
    pub(super) fn new(
        names: &'a CedarNames,
        facts: &'a Facts,
        moment: &RuleContext<'_>,
    ) -> Result<Self, OperatorQueryError> {
        let one_of = |kind, id: &str| {
            Ok::<_, OperatorQueryError>(RestrictedExpression::new_entity_uid(names.uid(kind, id)?))
        };
        let pairs = [
            ("tool", one_of("Tool", moment.tool.as_str())?),
            ("risk", one_of("Risk", facts.risk.name())?),
            ("input", one_of("Label", facts.input.name())?),
            ("heard", one_of("Label", facts.heard.name())?),
            ("hour", number(hour_of(moment.at))),
            ("turn", number(moment.turn)),
            ("call", number(moment.call)),
        ];
        let context = Context::from_pairs(pairs.map(|(name, value)| (name.to_owned(), value)))
            .map_err(cedar_error)?;
        let tier = one_of("Tier", moment.tier.map_or("unknown", |tier| tier.name()))?;
        let principal = names.uid("Automaton", "self")?;
        let who = entity(principal.clone(), vec![("tier", tier)])?;
        Ok(Self { names, facts, principal, context, who })
    }

    /// Returns the request about one intent, with its entities.
    pub(super) fn about(&self, intent: &Intent) -> Result<(Request, Entities), OperatorQueryError> {
        let (kind, id, attributes) = self.describe_object(intent)?;
        let resource = self.names.uid(kind, &id)?;
        let object = entity(resource.clone(), attributes)?;
        let action = self.names.uid("Action", intent.kind())?;
        let who = self.principal.clone();
        let context = self.context.clone();
        let request = Request::new(who, action, resource, context, None).map_err(cedar_error)?;
        let action = self.names.actions.get(intent.kind()).cloned();
        let action = action.ok_or(OperatorQueryError::Action(intent.kind()))?;
        let entities =
            action.add_entities([self.who.clone(), object], None).map_err(cedar_error)?;
        Ok((request, entities))
    }

    /// Returns the object of an intent: its type, its id and its attributes.
    fn describe_object(
        &self,
        intent: &Intent,
    ) -> Result<(&'static str, String, Attributes), OperatorQueryError> {
        let bytes = |bytes: &u64| ("bytes", number(*bytes));
        Ok(match intent {
            Intent::Exec { command, timeout_ms } => {
                let programs = RestrictedExpression::new_set(programs(command)?);
                let timeout = ("timeout_ms", number(*timeout_ms));
                let all = vec![("text", text(command)), ("programs", programs), timeout];
                ("Command", command.clone(), all)
            }
            Intent::ReadPath { path } => file(path, 0),
            Intent::WritePath { path, bytes } => file(path, *bytes),
            Intent::Message { recipient, bytes: size } => {
                let to = ("recipient", text(recipient));
                ("Message", recipient.clone(), vec![to, self.to_creator(recipient), bytes(size)])
            }
            Intent::Remember { category, key, bytes: size } => {
                let all = vec![("category", text(category)), ("key", text(key)), bytes(size)];
                ("Fact", key.clone(), all)
            }
            Intent::Recall | Intent::Observe | Intent::Economise => {
                ("Itself", "self".to_owned(), Vec::new())
            }
            Intent::SwitchModel { model } => ("Model", model.clone(), vec![("name", text(model))]),
            Intent::Sleep { span } => {
                ("Rest", "self".to_owned(), vec![("ms", number(span.span().as_millis()))])
            }
            Intent::Plead { bytes: size } => ("Plea", "self".to_owned(), vec![bytes(size)]),
            Intent::Schedule { entry, change } => {
                ("Entry", entry.clone(), vec![("name", text(entry)), ("change", text(change))])
            }
            Intent::ChangeSoul { section, change } => soul(section, change),
            Intent::ChangeGenesis { change } => soul("genesis_prompt", change),
            Intent::TopUp { usd } => {
                ("Credits", usd.to_string(), vec![("cents", number(u64::from(*usd) * 100))])
            }
            Intent::Transfer { to, cents } => {
                let all = vec![("to", text(to)), self.to_creator(to), ("cents", number(*cents))];
                ("Transfer", to.clone(), all)
            }
            Intent::FetchPaid { url, cap_cents } => {
                let host = ("host", text(&host_of(url)));
                let cents = ("cents", number(*cap_cents));
                ("Request", url.clone(), vec![("url", text(url)), host, cents])
            }
            Intent::Egress { method, url, origin } => {
                let host = ("host", text(&host_of(url)));
                let method = ("method", text(method));
                let all = vec![method, ("url", text(url)), ("origin", text(origin)), host];
                ("Egress", url.clone(), all)
            }
            Intent::Rent { memory_mb, disk_gb } => {
                let all = vec![("memory_mb", number(*memory_mb)), ("disk_gb", number(*disk_gb))];
                ("Machine", "new".to_owned(), all)
            }
            Intent::EndMachine { machine } => {
                let all = vec![("memory_mb", number(0)), ("disk_gb", number(0))];
                ("Machine", machine.clone(), all)
            }
            Intent::Publish { port, price, open } => {
                let open = ("open", RestrictedExpression::new_bool(*open));
                let all = vec![("number", number(*port)), ("price", text(price)), open];
                ("Port", port.to_string(), all)
            }
        })
    }

    fn to_creator(&self, recipient: &str) -> (&'static str, RestrictedExpression) {
        ("to_creator", RestrictedExpression::new_bool(self.facts.is_creator(recipient)))
    }
}

fn entity(uid: EntityUid, attributes: Attributes) -> Result<Entity, OperatorQueryError> {
    let attributes = attributes.into_iter().map(|(name, value)| (name.to_owned(), value));
    Entity::new(uid, attributes.collect(), HashSet::new()).map_err(cedar_error)
}

/// Returns the object of a file access: the workspace file and the size written to it.
fn file(path: &str, bytes: u64) -> (&'static str, String, Attributes) {
    let path = normalize_path(path);
    ("File", path.clone(), vec![("path", text(&path)), ("bytes", number(bytes))])
}

/// Returns the object of a change to a section of the soul.
fn soul(section: &str, change: &str) -> (&'static str, String, Attributes) {
    let all = vec![("section", text(section)), ("change", text(change))];
    ("Soul", section.to_owned(), all)
}

fn text(text: &str) -> RestrictedExpression {
    RestrictedExpression::new_string(text.to_owned())
}

/// Converts a number. One that is too large for Cedar becomes the largest possible.
fn number(number: impl TryInto<i64>) -> RestrictedExpression {
    RestrictedExpression::new_long(number.try_into().unwrap_or(i64::MAX))
}

/// Returns the hour of the day in UTC, 0 to 23.
fn hour_of(at: Timestamp) -> i64 {
    const HOUR_MS: i64 = 60 * 60 * 1000;
    at.as_millis().div_euclid(HOUR_MS).rem_euclid(24)
}

/// Returns the programs that a command runs, by the last part of their paths.
fn programs(command: &str) -> Result<Vec<RestrictedExpression>, ScriptError> {
    let named =
        |one: &shell::ShellCommand| text(one.program().rsplit('/').next().unwrap_or_default());
    Ok(shell::commands(command)?.iter().map(named).collect())
}

/// Returns a path relative to the workspace, without `.` and `..`. A path that leads outside is
/// unchanged: the built-in rules refuse it.
fn normalize_path(path: &str) -> String {
    let within = path.strip_prefix(WORKSPACE).unwrap_or(path);
    let mut names: Vec<&str> = Vec::new();
    for name in within.split('/') {
        match name {
            "" | "." => {}
            ".." if names.pop().is_none() => return path.to_owned(),
            ".." => {}
            name => names.push(name),
        }
    }
    if within.starts_with('/') { path.to_owned() } else { names.join("/") }
}

/// Returns the host of a URL, in lower case and without a port. Empty if there is none, which no
/// rule permits to be paid.
fn host_of(url: &str) -> String {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    host.split(':').next().unwrap_or_default().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_path_has_one_name() {
        for (path, plain) in [
            ("a/b", "a/b"),
            ("/root/a/b", "a/b"),
            ("./a//./b/../b", "a/b"),
            ("/root/../root/a", "/root/../root/a"),
            ("../a", "../a"),
            ("/etc/passwd", "/etc/passwd"),
            ("/root/", ""),
        ] {
            assert_eq!(normalize_path(path), plain, "{path}");
        }
    }

    #[test]
    fn one_host_has_one_name() {
        for (url, host) in [
            ("https://Pay.Example:443/x", "pay.example"),
            ("https://a@evil.example/", "evil.example"),
            ("http://127.0.0.1:4021?x=https://pay.example", "127.0.0.1"),
            ("pay.example", ""),
        ] {
            assert_eq!(host_of(url), host, "{url}");
        }
    }

    #[test]
    fn hours_are_of_the_day_and_never_below_zero() {
        let hours = [0, 3_599_999, 3_600_000, 86_399_999, 86_400_000, -1];
        let hours = hours.map(|ms| hour_of(Timestamp::from_millis(ms)));
        assert_eq!(hours, [0, 0, 1, 23, 0, 23]);
    }
}
