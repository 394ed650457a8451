//! Parses and checks a story in TOML.
//!
//! Every error names the file and the line. A story that parses can be told to its end. Whether
//! the agent fulfils it is another matter.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::{fs, io};

use automaton_core::error::Classified;
use automaton_core::file_text;
use automaton_core::message::MESSAGE_BYTES_MAX;
use serde::Deserialize;
use toml::{Spanned, Table, Value};

use super::condition::quote;
use super::{
    Arguments, CallTemplate, CreatorTiming, IfUnknown, ModelAct, ScriptedFault, Story, StoryAction,
    StoryExpectation, StoryStep, Template,
};

/// The most steps of a story.
const STEPS_MAX: usize = 200;

/// The most calls of one answer. No agent executes more.
const CALLS_MAX: usize = 50;

/// The longest text of an answer's calls by which it can be recognised, in bytes. Agents shorten
/// long arguments in the history.
const RECOGNISED_BYTES_MAX: usize = 400;

/// The largest story, in bytes.
const STORY_BYTES_MAX: u64 = 1024 * 1024;

/// A story that cannot be told.
#[derive(Debug, thiserror::Error, Classified)]
pub enum StoryError {
    /// The file cannot be read.
    #[error("cannot read the story '{path}'")]
    #[class(User, hint = "Name a story that exists: --brain script:FILE.")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The text is not a valid story.
    #[error("{name}:{line}: {complaint}")]
    #[class(User)]
    Parse {
        /// The story's file.
        name: String,
        /// The line, from 1.
        line: usize,
        /// The defect.
        complaint: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStory {
    title: Spanned<String>,
    #[serde(default)]
    step: Vec<Spanned<RawStep>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    what: Option<String>,
    creator: Option<String>,
    after: Option<CreatorTiming>,
    say: Option<String>,
    #[serde(default)]
    call: Vec<RawStoryCall>,
    #[serde(default)]
    expect: StoryExpectation,
    if_unknown: Option<IfUnknown>,
    #[serde(default)]
    faults: Vec<ScriptedFault>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStoryCall {
    tool: String,
    arguments: Option<Table>,
    raw: Option<String>,
}

pub(super) fn read(path: &Path) -> Result<Story, StoryError> {
    let failed = |source| StoryError::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(failed)?;
    file.take(STORY_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    let defect = |defect| failed(io::Error::new(io::ErrorKind::InvalidData, defect));
    let text = file_text::decode(&bytes).map_err(defect)?;
    parse(&path.display().to_string(), text)
}

pub(super) fn parse(name: &str, text: &str) -> Result<Story, StoryError> {
    let complain = |at: usize, complaint: String| {
        let before = text.get(..at).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        StoryError::Parse { name: name.to_owned(), line, complaint }
    };
    if u64::try_from(text.len()).is_ok_and(|bytes| bytes > STORY_BYTES_MAX) {
        return Err(complain(0, format!("a story has at most {STORY_BYTES_MAX} bytes")));
    }
    let raw: RawStory = toml::from_str(text).map_err(|error| {
        let reason = file_text::with_correction(error.message().trim());
        complain(error.span().map_or(0, |span| span.start), reason)
    })?;
    if raw.title.get_ref().trim().is_empty() {
        return Err(complain(raw.title.span().start, "the title is empty".to_owned()));
    }
    if raw.step.is_empty() || raw.step.len() > STEPS_MAX {
        let count = raw.step.len();
        return Err(complain(0, format!("a story has 1 to {STEPS_MAX} steps, not {count}")));
    }
    let mut steps = Vec::new();
    let mut said = BTreeMap::new();
    let mut last_at = 0;
    for (number, raw_step) in (1_usize..).zip(raw.step) {
        last_at = raw_step.span().start;
        let step = check(raw_step.into_inner()).map_err(|why| complain(last_at, why))?;
        if let Some(first) = fingerprint(&step).and_then(|print| said.insert(print, number)) {
            let why = format!(
                "steps {first} and {number} say and call the same, so a question that is \
                 asked again could not be told from a new one; let what they `say` differ"
            );
            return Err(complain(last_at, why));
        }
        steps.push(step);
    }
    if matches!(steps.last(), Some(StoryStep { act: StoryAction::Creator { .. }, .. })) {
        let why = "a story ends with what the model says, not with the creator";
        return Err(complain(last_at, why.to_owned()));
    }
    Ok(Story { title: raw.title.into_inner(), steps })
}

/// Returns the text that identifies an answer. `None` for the creator's steps.
fn fingerprint(step: &StoryStep) -> Option<String> {
    let StoryAction::Model(model) = &step.act else { return None };
    let tools: Vec<&str> = model.calls.iter().map(|call| call.tool.as_str()).collect();
    let text = super::answer::head(&model.say.to_string());
    let arguments = if text.is_empty() { format!("{:?}", model.calls) } else { String::new() };
    Some(format!("{text}\n{}\n{arguments}", tools.join(" ")))
}

fn check(raw: RawStep) -> Result<StoryStep, String> {
    match raw.creator {
        Some(text) => {
            let mine = raw.say.is_none() && raw.call.is_empty() && raw.expect.is_empty();
            if !mine || raw.if_unknown.is_some() || !raw.faults.is_empty() {
                return Err("a step is the creator's or the model's, not both: beside `creator` \
                            stand `what` and `after` alone"
                    .to_owned());
            }
            if text.trim().is_empty() || text.len() > MESSAGE_BYTES_MAX {
                return Err(format!("the creator says 1 to {MESSAGE_BYTES_MAX} bytes"));
            }
            let what = raw.what.unwrap_or_else(|| format!("the creator says {}", quote(&text)));
            Ok(StoryStep {
                what,
                act: StoryAction::Creator { text, when: raw.after.unwrap_or_default() },
            })
        }
        None if raw.after.is_some() => {
            Err("`after` says when the creator speaks, and this step has no `creator`".to_owned())
        }
        None => check_model(raw),
    }
}

fn check_model(raw: RawStep) -> Result<StoryStep, String> {
    let said = raw.say.unwrap_or_default();
    let say = Template::parse(said.trim()).map_err(|error| format!("in `say`: {error}"))?;
    if say.is_empty() && raw.call.is_empty() {
        return Err("the step says nothing and calls nothing; give it `say` or `call`".to_owned());
    }
    if raw.call.len() > CALLS_MAX {
        return Err(format!("an answer has at most {CALLS_MAX} calls"));
    }
    let tools: Vec<&str> = raw.call.iter().map(|call| call.tool.as_str()).collect();
    let derived = match tools.as_slice() {
        [] => format!("the model says {}", quote(&said)),
        tools => format!("the model calls {}", tools.join(", ")),
    };
    let calls: Vec<CallTemplate> =
        raw.call.into_iter().map(check_call).collect::<Result<_, _>>()?;
    if say.is_empty() && !calls.iter().all(is_recognised) {
        return Err("the step needs `say`: a long call, or one with `raw`, may be shown to the \
                    model in another form, and the answer would not be recognised"
            .to_owned());
    }
    let if_unknown = raw.if_unknown.unwrap_or_default();
    let act = ModelAct { expect: raw.expect, say, calls, if_unknown, faults: raw.faults };
    Ok(StoryStep { what: raw.what.unwrap_or(derived), act: StoryAction::Model(Box::new(act)) })
}

/// Returns true if a call looks the same when an agent shows it to its model.
fn is_recognised(call: &CallTemplate) -> bool {
    match &call.arguments {
        Arguments::Raw(_) => false,
        Arguments::Table(table) => {
            serde_json::to_string(table).is_ok_and(|text| text.len() <= RECOGNISED_BYTES_MAX)
        }
    }
}

fn check_call(raw: RawStoryCall) -> Result<CallTemplate, String> {
    let tool = raw.tool;
    if tool.trim().is_empty() {
        return Err("a call names no tool".to_owned());
    }
    let arguments = match (raw.arguments, raw.raw) {
        (Some(_), Some(_)) => {
            return Err(format!("the call of {tool} has `arguments` and `raw`; give one of them"));
        }
        (_, Some(text)) => {
            let template = Template::parse(&text);
            Arguments::Raw(template.map_err(|error| format!("in `raw` of {tool}: {error}"))?)
        }
        (table, None) => {
            let table = table.unwrap_or_default();
            for value in table.values() {
                check_value(value).map_err(|why| format!("in `arguments` of {tool}: {why}"))?;
            }
            Arguments::Table(table)
        }
    };
    Ok(CallTemplate { tool, arguments })
}

/// Refuses values that JSON cannot represent, and texts that are not valid templates.
fn check_value(value: &Value) -> Result<(), String> {
    match value {
        Value::String(text) => Template::parse(text).map(drop).map_err(|error| error.to_string()),
        Value::Datetime(_) => Err("JSON has no dates; put it in quotes".to_owned()),
        Value::Float(number) if !number.is_finite() => Err("JSON has no such number".to_owned()),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => Ok(()),
        Value::Array(items) => items.iter().try_for_each(check_value),
        Value::Table(table) => table.values().try_for_each(check_value),
    }
}
