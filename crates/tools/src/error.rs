//! Errors of a call, and their audience.
//!
//! A failure whose kind is [`ErrorClass::Internal`] ends the turn; every other is a
//! result that the model reads and may react to. The text of a failure can
//! repeat what others wrote, so it must never be more trusted than a result.

use automaton_core::error::{Classified, ErrorClass, chain};
use automaton_core::trust::{Label, Labelled};
use automaton_sandbox::PathError;
use thiserror::Error;

use crate::result;

/// Longest text of a failure that the model is shown, in characters.
const CHARS_MAX: usize = 1_000;

/// The arguments of a call are not what the tool takes.
#[derive(Debug, Clone, PartialEq, Eq, Error, Classified)]
#[error("{tool} does not take these arguments: {fault}")]
#[class(User)]
pub struct ArgumentError {
    tool: String,
    fault: String,
}

impl ArgumentError {
    /// Makes the error of a tool, with the beginning of what is wrong.
    #[must_use]
    pub fn new(tool: &str, fault: &str) -> Self {
        Self { tool: tool.to_owned(), fault: result::cap(fault, CHARS_MAX) }
    }
}

/// A handle could not do what a tool asked of it.
#[derive(Debug, Clone, PartialEq, Eq, Error, Classified)]
#[error("{message}")]
#[class(kind = *kind, hint = hint.clone())]
pub struct HandleError {
    /// Party that has to act. [`ErrorClass::Internal`] ends the turn.
    pub kind: ErrorClass,
    /// Failure with its causes, for the model.
    pub message: String,
    /// Remedy.
    pub hint: Option<String>,
}

impl HandleError {
    /// Takes over the kind, the chain of causes and the hint of another error.
    #[must_use]
    pub fn from_error(error: &(impl Classified + 'static)) -> Self {
        Self { kind: error.kind(), message: chain(error).to_string(), hint: error.hint() }
    }
}

/// A call ran and failed.
#[derive(Debug, Clone, PartialEq, Eq, Error, Classified)]
pub enum ToolError {
    /// The command did not run, or how it ended is not known.
    #[error("the command did not run, or how it ended is not known")]
    Exec(#[source] HandleError),
    /// The process was not asked or ended.
    #[error("there is nothing to tell of that process")]
    Process(#[source] HandleError),
    /// The cloud did not do with a machine what was wanted, or did not say so.
    #[error("the cloud did not do that with a machine, or did not say so")]
    Machine(#[source] HandleError),
    /// The port is as it was, or that is not known.
    #[error("the port is as it was, or that is not known")]
    Port(#[source] HandleError),
    /// The path names nothing in the workspace.
    #[error("'{path}' cannot be used")]
    Path {
        /// The path as the model wrote it.
        path: String,
        /// Fault of the path.
        source: PathError,
    },
    /// The file was not read.
    #[error("'{path}' was not read")]
    Read {
        /// The file.
        path: String,
        /// Cause.
        source: HandleError,
    },
    /// The file does not hold text.
    #[error("'{path}' is no text ({bytes} bytes)")]
    #[class(User, hint = "Look at it with exec: `file`, `xxd` or `strings`.")]
    NotText {
        /// The file.
        path: String,
        /// Its size.
        bytes: u64,
    },
    /// The file is too long to be edited as a whole.
    #[error("'{path}' is too long to be edited ({bytes} bytes)")]
    #[class(User, hint = "Edit it with exec: `sed -i`.")]
    TooLong {
        /// The file.
        path: String,
        /// Its size.
        bytes: u64,
    },
    /// The piece that should be replaced is not there, or more than once.
    #[error("'{path}' was not changed: the piece is there {found} times")]
    #[class(User, hint = "{}", match found {
        0 => "Read the file; the piece has to be the same to the last space.",
        _ => "Give more of its lines, or set `all`.",
    })]
    Piece {
        /// The file.
        path: String,
        /// Number of occurrences.
        found: usize,
    },
    /// The pattern is no regular expression, or too large a one.
    #[error("the pattern cannot be used: {0}")]
    #[class(User, hint = "Put a backslash before what stands for itself.")]
    Pattern(String),
    /// The file was not written.
    #[error("'{path}' was not written")]
    Write {
        /// The file.
        path: String,
        /// Cause.
        source: HandleError,
    },
    /// The fact was not stored.
    #[error("the fact '{key}' was not stored")]
    Remember {
        /// Its key.
        key: String,
        /// Cause.
        source: HandleError,
    },
    /// The memory was left unchanged.
    #[error("{id} was left as it is: {why}")]
    #[class(User, hint = "`review_memory` and `recall_facts` show ids, as in m12.")]
    MemoryChange {
        /// The item, as the model named it.
        id: String,
        /// Reason.
        why: &'static str,
    },
    /// The memory was not read.
    #[error("the memory was not read")]
    Recall(#[source] HandleError),
    /// The soul was not read, or not changed.
    #[error("your soul is as it was")]
    Soul(#[source] HandleError),
    /// The message was not stored for sending.
    #[error("the message was not sent")]
    Send(#[source] HandleError),
    /// The automaton's own state was not read.
    #[error("your own state was not read")]
    Synopsis(#[source] HandleError),
    /// The automaton's money was not looked at.
    #[error("your balances were not read")]
    Balances(#[source] HandleError),
    /// The status was not posted.
    #[error("the cloud was not told how you are")]
    Ping(#[source] HandleError),
    /// The plea did not go out.
    #[error("your plea did not go out")]
    Plead(#[source] HandleError),
    /// It does not live cheaply.
    #[error("you do not live cheaply")]
    Economise(#[source] HandleError),
    /// The models were not looked at.
    #[error("your models were not read")]
    Models(#[source] HandleError),
    /// Another model does not think.
    #[error("you go on thinking with the model that you have")]
    SwitchModel(#[source] HandleError),
    /// The schedule was not changed.
    #[error("the schedule was not changed")]
    Schedule(#[source] HandleError),
    /// Credits were not bought, or it is not known yet whether they were.
    #[error("the credits were not bought, or that is not known yet")]
    TopUp(#[source] HandleError),
    /// The credits were not given, or it is not known whether they were.
    #[error("the credits were not given, or that is not known yet")]
    Transfer(#[source] HandleError),
    /// The request was not answered, or not paid for.
    #[error("the request failed")]
    Fetch(#[source] HandleError),
}

impl ToolError {
    /// Returns true if the turn cannot continue after it.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        self.kind() == ErrorClass::Internal
    }

    /// Returns the text for the model: the failure, its causes, and the remedy.
    #[must_use]
    pub fn to_model(&self) -> Labelled {
        let hint = self.hint().map_or(String::new(), |hint| format!("\nhint: {hint}"));
        let text = result::cap(&format!("error: {}{hint}", chain(self)), CHARS_MAX);
        Labelled::new(Label::Tool, "runtime", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(kind: ErrorClass, hint: Option<&str>) -> ToolError {
        let message = "no such file: a cause".to_owned();
        let source = HandleError { kind, message, hint: hint.map(str::to_owned) };
        ToolError::Read { path: "a".to_owned(), source }
    }

    #[test]
    fn only_our_own_failures_are_fatal() {
        for kind in [
            ErrorClass::User,
            ErrorClass::Config,
            ErrorClass::Denied,
            ErrorClass::Transient,
            ErrorClass::Upstream,
        ] {
            assert!(!failure(kind, None).is_fatal(), "{kind:?}");
        }
        assert!(failure(ErrorClass::Internal, None).is_fatal());
    }

    #[test]
    fn the_model_reads_causes_and_hint_and_not_too_much() {
        let text = failure(ErrorClass::User, Some("List the folder.")).to_model();
        assert_eq!(text.label, Label::Tool);
        let text = text.text;
        assert_eq!(text, "error: 'a' was not read: no such file: a cause\nhint: List the folder.");
        let long = ToolError::NotText { path: "x".repeat(5_000), bytes: 1 };
        assert!(long.to_model().text.chars().count() <= CHARS_MAX);
    }

    #[test]
    fn a_handle_takes_over_what_another_error_knows() {
        let error = PathError::Outside { path: "/etc".to_owned() };
        let taken = HandleError::from_error(&error);
        assert_eq!((taken.kind, taken.hint.clone()), (error.kind(), error.hint()));
        assert_eq!(taken.to_string(), error.to_string());
    }
}
