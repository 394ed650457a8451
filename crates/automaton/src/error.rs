//! What a command fails with, and how it is told to a person.
//!
//! Every failure ends here as one sentence, its causes, and the remedy; the
//! exit code comes from its [`Kind`]. Nothing here may print to stdout, and
//! meaning must never depend on colour.

use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use automaton_core::error::{Classified, Kind};

/// Why a command ends without having done what it should.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something failed, and a person is told.
    Told(Box<Told>),
    /// Whoever read our output went away, which is no failure at all.
    PipeClosed,
}

/// A failure in words.
#[derive(Debug)]
pub(crate) struct Told {
    what: String,
    kind: Kind,
    hint: Option<String>,
    causes: Vec<String>,
}

impl Failure {
    /// A failure in one sentence.
    pub(crate) fn new(kind: Kind, what: impl Into<String>) -> Self {
        Self::Told(Box::new(Told { what: what.into(), kind, hint: None, causes: Vec::new() }))
    }

    /// The user's mistake.
    pub(crate) fn user(what: impl Into<String>) -> Self {
        Self::new(Kind::User, what)
    }

    /// Our own failure to do `what` because of an error that carries no kind.
    pub(crate) fn internal(what: impl Into<String>, cause: &(dyn Error + 'static)) -> Self {
        Self::new(Kind::Internal, what).because(cause)
    }

    /// Adds an error and all its causes.
    pub(crate) fn because(mut self, cause: &(dyn Error + 'static)) -> Self {
        if let Self::Told(told) = &mut self {
            told.causes.extend(causes(Some(cause)));
        }
        self
    }

    /// Adds the remedy.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        if let Self::Told(told) = &mut self {
            told.hint = Some(hint.into());
        }
        self
    }

    /// The failure to write our output.
    pub(crate) fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::PipeClosed;
        }
        Self::internal("cannot write the output", error)
    }

    /// The exit code that tells it.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Told(told) => ExitCode::from(told.kind.exit_code()),
            Self::PipeClosed => ExitCode::SUCCESS,
        }
    }

    /// What is told, unless there is nothing to tell.
    pub(crate) fn told(&self) -> Option<&Told> {
        match self {
            Self::Told(told) => Some(told),
            Self::PipeClosed => None,
        }
    }

    /// Writes `error:`, the causes and `hint:` to stderr.
    pub(crate) fn print(&self) {
        if let Some(told) = self.told() {
            // silent-ok: without a stderr there is nobody left to tell.
            writeln!(io::stderr().lock(), "{told}").ok();
        }
    }
}

impl Told {
    /// Who has to act.
    pub(crate) const fn kind(&self) -> Kind {
        self.kind
    }

    /// The remedy.
    pub(crate) fn remedy(&self) -> Option<&str> {
        self.hint.as_deref()
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

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.what)?;
        for cause in &self.causes {
            write!(f, "\n  caused by: {cause}")?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl<E: Classified + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Told(Box::new(Told {
            what: error.to_string(),
            kind: error.kind(),
            hint: error.hint(),
            causes: causes(error.source()).collect(),
        }))
    }
}

fn causes<'a>(first: Option<&'a (dyn Error + 'static)>) -> impl Iterator<Item = String> + 'a {
    std::iter::successors(first, |error| (*error).source()).map(ToString::to_string)
}
