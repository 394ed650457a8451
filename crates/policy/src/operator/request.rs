//! Pure: a call as Cedar is asked about it.
//!
//! The names are those of `schema.cedarschema`, and every kind of intent has its place
//! there. What is asked must be the intent itself, made plain where the same thing can
//! be written in several ways; what cannot be made plain is an error, never a blank.

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

/// Where the sandbox shows the workspace.
const WORKSPACE: &str = "/root/";

/// Why the rules could not be asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum OperatorQueryError {
    /// Cedar takes a name or a value for none of its own.
    #[error("{0}")]
    Cedar(String),
    #[error("the schema has no action '{0}'")]
    Action(&'static str),
    #[error("the command cannot be read: {0}")]
    Command(#[from] ScriptError),
}

/// What Cedar says, in its words: its errors are many, large, and come to the same here.
fn cedar(error: impl Display) -> OperatorQueryError {
    OperatorQueryError::Cedar(error.to_string())
}

/// What never changes from one question to the next.
#[derive(Debug)]
pub(super) struct CedarNames {
    /// The kinds of entities, by their names in the schema.
    kinds: HashMap<&'static str, EntityTypeName>,
    /// Each action with the groups that it is in, and nothing else: what is gone through
    /// for each question is kept small.
    actions: HashMap<String, Entities>,
}

/// Every kind of entity that a question is made of.
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
    pub(super) fn of(schema: &Schema) -> Result<Self, OperatorQueryError> {
        let named = |kind| Ok((kind, EntityTypeName::from_str(kind).map_err(cedar)?));
        let kinds = KINDS.into_iter().map(named).collect::<Result<_, OperatorQueryError>>()?;
        let all = schema.action_entities().map_err(cedar)?;
        let mut actions = HashMap::new();
        for action in all.iter() {
            let uid = action.uid();
            let groups = all.ancestors(&uid).into_iter().flatten();
            let groups = groups.filter_map(|group| all.get(group)).cloned();
            let alone =
                Entities::from_entities(groups.chain([action.clone()]), None).map_err(cedar)?;
            actions.insert(uid.id().unescaped().to_owned(), alone);
        }
        Ok(Self { kinds, actions })
    }

    fn uid(&self, kind: &'static str, id: &str) -> Result<EntityUid, OperatorQueryError> {
        let kind = match self.kinds.get(kind) {
            Some(kind) => kind.clone(),
            None => EntityTypeName::from_str(kind).map_err(cedar)?,
        };
        Ok(EntityUid::from_type_name_and_id(kind, EntityId::new(id)))
    }
}

/// Asks about the intents of one call.
pub(super) struct OperatorQuery<'a> {
    names: &'a CedarNames,
    facts: &'a Facts,
    principal: EntityUid,
    context: Context,
    /// Who acts.
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
            .map_err(cedar)?;
        let tier = one_of("Tier", moment.tier.map_or("unknown", |tier| tier.name()))?;
        let principal = names.uid("Automaton", "self")?;
        let who = entity(principal.clone(), vec![("tier", tier)])?;
        Ok(Self { names, facts, principal, context, who })
    }

    /// The question about one intent, with what it speaks of.
    pub(super) fn about(&self, intent: &Intent) -> Result<(Request, Entities), OperatorQueryError> {
        let (kind, id, attributes) = self.object(intent)?;
        let resource = self.names.uid(kind, &id)?;
        let object = entity(resource.clone(), attributes)?;
        let action = self.names.uid("Action", intent.kind())?;
        let (who, context) = (self.principal.clone(), self.context.clone());
        let request = Request::new(who, action, resource, context, None).map_err(cedar)?;
        let action = self.names.actions.get(intent.kind()).cloned();
        let action = action.ok_or(OperatorQueryError::Action(intent.kind()))?;
        let entities = action.add_entities([self.who.clone(), object], None).map_err(cedar)?;
        Ok((request, entities))
    }

    /// What an intent is about: its kind, its name and what is known of it.
    fn object(
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
                let (host, cents) = (("host", text(&host_of(url))), ("cents", number(*cap_cents)));
                ("Request", url.clone(), vec![("url", text(url)), host, cents])
            }
            Intent::Egress { method, url, origin } => {
                let (host, method) = (("host", text(&host_of(url))), ("method", text(method)));
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
    Entity::new(uid, attributes.collect(), HashSet::new()).map_err(cedar)
}

/// A file of the workspace, and the size of what is written into it.
fn file(path: &str, bytes: u64) -> (&'static str, String, Attributes) {
    let path = plain_path(path);
    ("File", path.clone(), vec![("path", text(&path)), ("bytes", number(bytes))])
}

/// A section of a soul, and what it says then.
fn soul(section: &str, change: &str) -> (&'static str, String, Attributes) {
    let all = vec![("section", text(section)), ("change", text(change))];
    ("Soul", section.to_owned(), all)
}

fn text(text: &str) -> RestrictedExpression {
    RestrictedExpression::new_string(text.to_owned())
}

/// A number; one that Cedar cannot hold is the greatest that it can.
fn number(number: impl TryInto<i64>) -> RestrictedExpression {
    RestrictedExpression::new_long(number.try_into().unwrap_or(i64::MAX))
}

/// The hour of the day in UTC, 0 to 23.
fn hour_of(at: Timestamp) -> i64 {
    const HOUR_MS: i64 = 60 * 60 * 1000;
    at.as_millis().div_euclid(HOUR_MS).rem_euclid(24)
}

/// The programs that a command runs, by the last part of their paths.
fn programs(command: &str) -> Result<Vec<RestrictedExpression>, ScriptError> {
    let named =
        |one: &shell::ShellCommand| text(one.program().rsplit('/').next().unwrap_or_default());
    Ok(shell::commands(command)?.iter().map(named).collect())
}

/// A path relative to the workspace, without `.` and `..`. One that leads out of the
/// workspace stays as it is: the built-in rules refuse it.
fn plain_path(path: &str) -> String {
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

/// The host of a URL, in small letters and without a port; nothing where there is none,
/// which is paid for nowhere.
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
            assert_eq!(plain_path(path), plain, "{path}");
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
