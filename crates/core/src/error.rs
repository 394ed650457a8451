//! Pure: what kind of failure an error is, and how to print it.
//!
//! Every error type of the workspace answers [`Classified::kind`]; the exit
//! code, the retry decision and the words shown to a user derive from the kind,
//! never from matching on text. `Display` of an error must never include its
//! source: [`chain`] prints the causes.

use std::error::Error;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use automaton_derive::Classified;

/// Party that has to act for the operation to succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// The person who gave the command or the input.
    User,
    /// The person who wrote the configuration.
    Config,
    /// Nobody: a guard refused, and may be right.
    Denied,
    /// Nobody: the same thing may work later.
    Transient,
    /// The operator of a service that we called.
    Upstream,
    /// We: a defect, a damaged state or a full disk.
    Internal,
}

impl ErrorClass {
    /// The exit code of a command that ends with this kind of failure: 1 for
    /// the user's mistake or a refusal, 2 for a failure of ours or upstream's.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::User | Self::Config | Self::Denied => 1,
            Self::Transient | Self::Upstream | Self::Internal => 2,
        }
    }

    /// Returns true if the same call may succeed when it is repeated unchanged.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Transient)
    }
}

/// An error that knows its kind and, where there is one, the remedy: derive it, and say
/// both at each variant.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no class, so an error with it as its cause needs a #[class(…)]"
)]
pub trait Classified: Error {
    /// The kind of this failure.
    fn kind(&self) -> ErrorClass;

    /// One sentence that tells the user what to do about it.
    fn hint(&self) -> Option<String> {
        None
    }
}

/// Prints an error and its causes on one line, outermost first.
#[must_use]
pub fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl fmt::Display + 'a {
    ErrorChain(error)
}

struct ErrorChain<'a>(&'a (dyn Error + 'static));

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
