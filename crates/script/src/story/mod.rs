//! A story: a scripted model's answers, and the conditions for them.
//!
//! A story is a TOML file, because most of it is text that people read and
//! write: scripts over several lines need no escapes, and comments may say why.
//! It holds a `title` and a list of steps; a step is one of two kinds.
//!
//! A step of the model holds its next answer, in words, calls or both:
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
//! A step of the creator holds a text, which the host of the story sends:
//!
//! ```toml
//! [[step]]
//! creator = "What did the script print?"
//! after = "asleep"                       # or "now", which is the default
//! ```
//!
//! A creator's step is done when a request to the model holds its text. The
//! conditions of a model's step are checked against the request it answers:
//!
//! | key | the part of the request it is checked against |
//! |---|---|
//! | `news` | the user's messages since the model's last answer: the wake's cause, messages, status, memory |
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
//! `arguments`, to test calls that are not JSON.
//!
//! A story must never be told by looking at anything but the conversation: a
//! fact that the agent does not show its model must not affect the story.

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

/// The default story.
const FIRST_RUN: &str = include_str!("../../stories/first-run.toml");

/// A parsed and checked story. It ends with an answer of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Story {
    title: String,
    steps: Vec<StoryStep>,
}

impl Story {
    /// Returns the built-in story of a first run.
    ///
    /// # Errors
    /// Never fails in a program whose tests pass.
    pub fn first_run() -> Result<Self, StoryError> {
        Self::parse("first-run.toml", FIRST_RUN)
    }

    /// Reads a story from a file.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is not a valid story. The error names the line.
    pub fn read(path: &Path) -> Result<Self, StoryError> {
        parse::read(path)
    }

    /// Parses a story. Errors call it `name`.
    ///
    /// # Errors
    /// Fails if the text is not a valid story. The error names the line.
    pub fn parse(name: &str, text: &str) -> Result<Self, StoryError> {
        parse::parse(name, text)
    }

    /// Returns the title.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Returns the steps in order. There is at least one.
    #[must_use]
    pub fn steps(&self) -> &[StoryStep] {
        &self.steps
    }
}

/// A step of a story.
#[derive(Debug, Clone, PartialEq)]
pub struct StoryStep {
    /// The description of the step.
    pub what: String,
    /// The action of the step.
    pub act: StoryAction,
}

/// The action of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum StoryAction {
    /// The model answers.
    Model(Box<ModelAct>),
    /// The creator writes.
    Creator {
        /// The text.
        text: String,
        /// The time.
        when: CreatorTiming,
    },
}

/// An answer of the model, given once its expectations hold.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelAct {
    /// The expectations of the request.
    pub expect: StoryExpectation,
    pub(crate) say: Template,
    pub(crate) calls: Vec<CallTemplate>,
    /// The reaction if a crash left a call's outcome unknown.
    pub if_unknown: IfUnknown,
    /// The failures of the first requests, one after the other.
    pub faults: Vec<ScriptedFault>,
}

/// A call with placeholders.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallTemplate {
    pub(crate) tool: String,
    pub(crate) arguments: Arguments,
}

/// The arguments of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Arguments {
    /// Values that become a JSON object. Every text in them is a template.
    Table(toml::Table),
    /// Literal text, JSON or not.
    Raw(Template),
}

/// The time at which the creator writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CreatorTiming {
    /// At once.
    #[default]
    Now,
    /// As soon as the automaton has fallen asleep.
    Asleep,
}

/// The model's reaction to a call whose outcome a crash left unknown. A call that was not started
/// is repeated in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IfUnknown {
    /// Continue. The next step's expectations say what is acceptable.
    #[default]
    GoOn,
    /// Repeat the call, since that does no harm.
    Again,
}

/// A failure of the server to give an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum ScriptedFault {
    /// Begins to answer and falls silent. Written `hang`.
    Hang,
    /// Begins to answer and closes the connection. Written `cut`.
    Cut,
    /// Answers with an invalid reply. Written `garbage`.
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
