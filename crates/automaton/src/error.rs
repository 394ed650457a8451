//! Errors of commands, and their form for people.
//!
//! Every failure ends here as one sentence, its causes, and the remedy; the
//! exit code comes from its [`ErrorClass`]. With `--json` it is a document, too, and
//! meaning must never depend on colour.

use std::error::Error;
use std::fmt;
use std::io;
use std::process::ExitCode;

use automaton_core::error::{Classified, ErrorClass};
use serde::Serialize;

use crate::ui::text::plain;
use crate::ui::{self, Format};

/// Reason for which a command failed.
#[derive(Debug)]
pub struct CliError {
    /// One sentence.
    pub(crate) what: String,
    /// Party that has to act.
    pub(crate) kind: ErrorClass,
    /// The remedy.
    pub(crate) remedy: Option<String>,
    /// Causes, the nearest first.
    pub(crate) causes: Vec<String>,
    /// Further problems, if everything was checked.
    pub(crate) others: Vec<CliError>,
    /// True if the reader of our output went away, which is no failure.
    pub(crate) broken_pipe: bool,
}

impl CliError {
    /// A failure in one sentence.
    pub fn new(kind: ErrorClass, what: impl Into<String>) -> Self {
        let what = what.into();
        let causes = Vec::new();
        let others = Vec::new();
        Self { what, kind, remedy: None, causes, others, broken_pipe: false }
    }

    /// The user's mistake.
    pub fn user(what: impl Into<String>) -> Self {
        Self::new(ErrorClass::User, what)
    }

    /// Our own failure to do `what` because of an error that carries no kind.
    pub fn internal(what: impl Into<String>, cause: &(dyn Error + 'static)) -> Self {
        Self::new(ErrorClass::Internal, what).because(cause)
    }

    /// Adds an error and all its causes.
    #[must_use]
    pub fn because(mut self, cause: &(dyn Error + 'static)) -> Self {
        self.causes.extend(causes(Some(cause)));
        self
    }

    /// Adds the remedy.
    #[must_use]
    pub fn hint(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// The failure to write our output.
    pub(crate) fn output(error: &io::Error) -> Self {
        let broken_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        Self { broken_pipe, ..Self::internal("cannot write the output", error) }
    }

    /// The exit code that tells it.
    pub(crate) fn exit_code(&self) -> ExitCode {
        let codes = self.others.iter().map(|other| other.kind.exit_code());
        let code = codes.fold(self.kind.exit_code(), u8::max);
        if self.broken_pipe { ExitCode::SUCCESS } else { ExitCode::from(code) }
    }

    /// Writes `error:`, the causes and `hint:` to stderr.
    pub(crate) fn print(&self) {
        if !self.broken_pipe {
            // What a stranger said may be among the causes.
            ui::say(&plain(&self.to_string()));
        }
    }

    /// Tells people on stderr, and whoever reads JSON on stdout: as the one document, where
    /// none has been written.
    pub(crate) fn report(&self, format: Format) {
        self.print();
        if format == Format::Json && !self.broken_pipe && ui::nothing_answered() {
            // silent-ok: without a stdout there is nobody left to tell.
            ui::json(&self.document()).ok();
        }
    }

    /// Tells it, and gives the code to end with.
    pub(crate) fn end(&self, format: Format) -> ExitCode {
        self.report(format);
        self.exit_code()
    }

    /// The failure as `--json` has it.
    pub(crate) fn document(&self) -> CliErrorDocument<'_> {
        CliErrorDocument { error: self.to_entry() }
    }

    fn to_entry(&self) -> CliErrorEntry<'_> {
        let Self { what, kind, remedy, causes, others, .. } = self;
        let others = others.iter().map(Self::to_entry).collect();
        CliErrorEntry { code: *kind, message: what, hint: remedy.as_deref(), causes, others }
    }

    /// The sentence and its causes on one line.
    pub(crate) fn line(&self) -> String {
        let mut line = self.what.clone();
        for cause in &self.causes {
            line.push_str(": ");
            line.push_str(cause);
        }
        line
    }
}

/// A failure as `--json` has it: outsiders rely on the names, which are only added to.
#[derive(Debug, Serialize)]
pub(crate) struct CliErrorDocument<'a> {
    error: CliErrorEntry<'a>,
}

#[derive(Debug, Serialize)]
struct CliErrorEntry<'a> {
    /// Party that has to act.
    code: ErrorClass,
    message: &'a str,
    hint: Option<&'a str>,
    causes: &'a [String],
    /// Further problems.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    others: Vec<CliErrorEntry<'a>>,
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.what)?;
        for cause in &self.causes {
            write!(f, "\n  caused by: {cause}")?;
        }
        if let Some(hint) = &self.remedy {
            write!(f, "\nhint: {hint}")?;
        }
        self.others.iter().try_for_each(|other| write!(f, "\n{other}"))
    }
}

/// Problems that checks have found, to be reported together.
#[derive(Debug, Default)]
pub(crate) struct CliErrors(Vec<CliError>);

impl CliErrors {
    /// Returns the value of a check, or adds its error.
    pub(crate) fn take<T>(&mut self, checked: Result<T, impl Into<CliError>>) -> Option<T> {
        let mut failure = match checked {
            Ok(found) => return Some(found),
            Err(wrong) => wrong.into(),
        };
        let others = std::mem::take(&mut failure.others);
        self.0.push(failure);
        self.0.extend(others);
        None
    }

    /// Returns true if there is no error.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The end of all checks, with what was made of what they gave.
    ///
    /// # Errors
    /// All that is wrong, in one.
    pub(crate) fn end<T>(self, made: Option<T>) -> Result<T, CliError> {
        let mut all = self.0.into_iter();
        match (all.next(), made) {
            (Some(first), _) => Err(CliError { others: all.collect(), ..first }),
            (None, Some(made)) => Ok(made),
            (None, None) => {
                Err(CliError::new(ErrorClass::Internal, "a check gave nothing and no reason"))
            }
        }
    }
}

impl<E: Classified + 'static> From<E> for CliError {
    fn from(error: E) -> Self {
        Self {
            remedy: error.hint(),
            causes: causes(error.source()).collect(),
            ..Self::new(error.kind(), error.to_string())
        }
    }
}

fn causes<'a>(first: Option<&'a (dyn Error + 'static)>) -> impl Iterator<Item = String> + 'a {
    std::iter::successors(first, |error| (*error).source()).map(ToString::to_string)
}
