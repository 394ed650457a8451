//! A story: what a scripted model says, and what must have happened before.
//!
//! A story is a TOML file, because most of it is text that people read and
//! write: scripts over several lines need no escapes, and comments may say why.
//! It holds a `title` and a list of steps; a step is one of two kinds.
//!
//! What the model says when it is asked next, in words, calls or both:
//!
//! ```toml
//! [[step]]
//! what = "remembers what came out"       # shown to people; optional
//! expect.result.exec = "is 5050"         # the last result of exec holds this
//! expect.news = { any = ["a", "b"], none = "c" }
//! say = "I keep that."
//! if_unknown = "again"                   # these calls may be repeated after a crash
//! faults = ["status:503", "cut"]         # what goes wrong at the first asks
//! [[step.call]]
//! tool = "remember_fact"
//! arguments = { key = "sum", value = "{{exec after 'is ' before ','}}" }
//! ```
//!
//! What the creator says, which the host of the story sends for them:
//!
//! ```toml
//! [[step]]
//! creator = "What did the script print?"
//! after = "asleep"                       # or "now", which is the default
//! ```
//!
//! A creator's step is met when the model is shown their words. What a step
//! expects is looked for in the request that it answers:
//!
//! | key | where it is looked for |
//! |---|---|
//! | `news` | what the user's side said since the model's last answer: the wake's cause, messages, status, memory |
//! | `history` | the whole conversation |
//! | `rules` | the system messages that open the conversation |
//! | `result.TOOL` | the result of the last call of that tool |
//! | `tools` | the names of the offered tools; a list |
//! | `messages_min`, `messages_max` | how many messages there are |
//!
//! A text, a list of texts (all of them), or `{ all, any, none }`. In `say` and in
//! `arguments`, `{{TOOL}}` stands for the last result of a tool and
//! `{{TOOL after 'a' before 'b'}}` for a part of it, by default up to the end of
//! the line; `{{{{` stands for two braces. A call may give `raw` text instead of
//! `arguments`, for what is no JSON.
//!
//! A story must never be told by looking at anything but the conversation: what
//! the agent does not show its model has not happened.

mod answer;
mod condition;
mod parse;
mod runner;
mod template;
mod view;

use std::path::Path;

use serde::Deserialize;

pub use answer::{ScriptedAnswer, ScriptedCall};
pub use condition::{Condition, StoryExpectation};
pub use parse::StoryError;
pub use runner::{StoryProgress, StoryRunner, TellerReply};
pub(crate) use template::Template;

/// The story that is told when no other is named.
const FIRST_RUN: &str = include_str!("../../stories/first-run.toml");

/// A story, parsed and checked. It ends with something that the model says.
#[derive(Debug, Clone, PartialEq)]
pub struct Story {
    title: String,
    steps: Vec<StoryStep>,
}

impl Story {
    /// The built-in story of a first run.
    ///
    /// # Errors
    /// Never in a program whose tests pass.
    pub fn first_run() -> Result<Self, StoryError> {
        Self::parse("first-run.toml", FIRST_RUN)
    }

    /// The story in a file.
    ///
    /// # Errors
    /// The file cannot be read or is no story; the error tells the line.
    pub fn read(path: &Path) -> Result<Self, StoryError> {
        parse::read(path)
    }

    /// The story in a text; `name` is what errors call it.
    ///
    /// # Errors
    /// The text is no story; the error tells the line.
    pub fn parse(name: &str, text: &str) -> Result<Self, StoryError> {
        parse::parse(name, text)
    }

    /// What the story is called.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The steps in order; at least one.
    #[must_use]
    pub fn steps(&self) -> &[StoryStep] {
        &self.steps
    }
}

/// One step of a story.
#[derive(Debug, Clone, PartialEq)]
pub struct StoryStep {
    /// The step in words.
    pub what: String,
    /// What happens in it.
    pub act: StoryAction,
}

/// What happens in a step.
#[derive(Debug, Clone, PartialEq)]
pub enum StoryAction {
    /// The model answers.
    Model(Box<ModelAct>),
    /// The creator speaks.
    Creator {
        /// Their words.
        text: String,
        /// When.
        when: CreatorTiming,
    },
}

/// What the model says when it is asked, once its expectations hold.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelAct {
    /// What must hold of the request.
    pub expect: StoryExpectation,
    pub(crate) say: Template,
    pub(crate) calls: Vec<CallTemplate>,
    /// What to do when a crash left a call's outcome unknown.
    pub if_unknown: IfUnknown,
    /// What goes wrong at the first asks, one after the other.
    pub faults: Vec<ScriptedFault>,
}

/// A call with places to fill in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallTemplate {
    pub(crate) tool: String,
    pub(crate) arguments: Arguments,
}

/// The arguments of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Arguments {
    /// Values that become a JSON object; every text in them is a template.
    Table(toml::Table),
    /// Text as it is, JSON or not.
    Raw(Template),
}

/// When the creator speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CreatorTiming {
    /// At once.
    #[default]
    Now,
    /// As soon as the automaton has fallen asleep.
    Asleep,
}

/// What the model does about a call of which a crash left the outcome unknown.
/// A call that was not started is made again in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IfUnknown {
    /// Goes on; the next step's expectations say what is acceptable.
    #[default]
    GoOn,
    /// Makes the call again, since repeating it does no harm.
    Again,
}

/// How the server fails to give an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum ScriptedFault {
    /// Begins to answer and falls silent. Written `hang`.
    Hang,
    /// Begins to answer and closes the connection. Written `cut`.
    Cut,
    /// Answers with what is no answer. Written `garbage`.
    Garbage,
    /// Answers with an error. Written `status:503`; 400 to 599.
    Status(u16),
}

impl TryFrom<String> for ScriptedFault {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match (text.as_str(), text.strip_prefix("status:").map(str::parse)) {
            ("hang", _) => Ok(Self::Hang),
            ("cut", _) => Ok(Self::Cut),
            ("garbage", _) => Ok(Self::Garbage),
            (_, Some(Ok(code @ 400..600))) => Ok(Self::Status(code)),
            _ => Err(format!("'{text}' is no fault (hang, cut, garbage, status:400 to 599)")),
        }
    }
}

#[cfg(test)]
mod tests;
