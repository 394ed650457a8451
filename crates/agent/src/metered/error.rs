//! Reasons why no model answered a request.

use automaton_core::error::{Classified, ErrorClass};
use automaton_core::inference_budget::{CeilingScope, OverCeiling};
use automaton_core::time::{DAY, Span};
use automaton_inference::InferenceError;
use automaton_store::StoreError;

/// No model answered a request, and nothing of it took effect.
#[derive(Debug, thiserror::Error, Classified)]
pub(crate) enum NotAnswered {
    /// The model gave no answer.
    #[error("the model gave no answer")]
    Inference(#[source] InferenceError),
    /// The server takes no prompt of this size.
    #[error(
        "the model refused a prompt of about {tokens} tokens as too long; its window is taken \
         to be {window}{}",
        named(source)
    )]
    TooLong {
        /// Estimated tokens of the prompt.
        tokens: u32,
        /// Assumed window of the model.
        window: u32,
        /// Answer of the server.
        source: InferenceError,
    },
    /// The model's answer may cost more than is left for it.
    #[error(transparent)]
    #[class(
        Denied,
        hint = "{}; raise `{}` if it should go on sooner",
        goes_on(_0.scope),
        _0.scope.key()
    )]
    OverCeiling(OverCeiling),
    /// The answer should cost less in this tier, and the request can wait.
    #[error("an answer for {} is too dear now", _0.most)]
    #[class(Denied)]
    OverSoftLimit(OverCeiling),
    /// The route has no model.
    #[error("no model may think in this tier")]
    #[class(
        Config,
        hint = "add credits, give it a model that costs nothing, or name one for this tier in \
                `modelStrategy.routing`"
    )]
    NoModel,
    /// The process or this wake is ending.
    #[error("the turn was interrupted")]
    #[class(Transient)]
    Interrupted,
    /// A table could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Returns when the agent goes on after a ceiling.
const fn goes_on(scope: CeilingScope) -> &'static str {
    match scope {
        CeilingScope::Call => "it tries again with a shorter conversation",
        CeilingScope::Session => "it goes on in another wake",
        CeilingScope::Hour => "it goes on when what it spent is an hour old",
        CeilingScope::Day => "it goes on when what it spent is a day old",
    }
}

/// Returns the window that a server names, as the end of a sentence.
fn named(error: &InferenceError) -> String {
    let named = error.named_window();
    named.map_or_else(String::new, |tokens| format!(", and its server says {tokens}"))
}

impl NotAnswered {
    /// Creates the failure of a model that was sent a prompt of about `tokens` tokens.
    pub(super) fn from_model(source: InferenceError, tokens: u32, window: u32) -> Self {
        match source.is_too_long() {
            true => Self::TooLong { tokens, window, source },
            false => Self::Inference(source),
        }
    }

    /// Returns a short description that holds no words of a server.
    pub(crate) fn brief(&self) -> String {
        match self {
            Self::Inference(InferenceError::Status { status, .. }) => {
                format!("Its server answered with status {status}.")
            }
            Self::Inference(error) => error.outline().to_owned(),
            error => format!("{error}."),
        }
    }

    /// Returns true if the failure lasts until a person acts.
    pub(crate) fn is_lasting(&self) -> bool {
        match self {
            Self::Inference(error) => {
                error.kind() == ErrorClass::Config
                    || matches!(error, InferenceError::NoCredits { .. })
            }
            _ => false,
        }
    }

    /// Returns true if a retry may help sooner than after the other failure.
    pub(crate) fn passes_sooner_than(&self, other: &Self) -> bool {
        let rank = |error: &Self| match error {
            Self::TooLong { .. } => 4,
            error if error.is_rejection() => 0,
            error if error.is_lasting() => 1,
            Self::OverCeiling(_) => 2,
            _ => 3,
        };
        rank(self) > rank(other)
    }

    /// Returns true if another model may answer the same request.
    pub(crate) const fn fails_over(&self) -> bool {
        matches!(self, Self::Inference(error) if error.fails_over())
    }

    /// Returns true if the server will never accept this very request.
    pub(crate) const fn is_rejection(&self) -> bool {
        matches!(self, Self::Inference(error) if error.is_rejection())
    }

    /// Returns the number of such failures in a row after which the wake ends.
    pub(crate) const fn tries_max(&self) -> u32 {
        match self {
            Self::Inference(error) | Self::TooLong { source: error, .. } => error.tries_max(),
            Self::NoModel => 1,
            _ => u32::MAX,
        }
    }

    /// Returns the wait that the server asks for, at most a day.
    pub(crate) fn asked_wait(&self) -> Option<Span> {
        let Self::Inference(error) = self else { return None };
        let asked = i64::try_from(error.wait()?.as_secs()).unwrap_or(i64::MAX);
        Some(Span::from_secs(asked.min(DAY.as_millis() / 1000)))
    }

    /// Returns the failure and its remedy for the record, without words of a server.
    pub(crate) fn note(&self) -> Option<String> {
        let outline = match self {
            Self::Inference(error) => error.outline().to_owned(),
            // The numbers are our own, or nothing but a number.
            Self::TooLong { .. } => format!("{self}."),
            _ => return None,
        };
        let remedy = match self {
            // The names of a server's models are the server's words.
            Self::Inference(InferenceError::NoModel { remedy, .. }) => remedy.clone(),
            _ => self.hint(),
        };
        Some(match remedy {
            Some(remedy) => format!("{outline} To do: {remedy}."),
            None => outline,
        })
    }

    /// Returns true if the server says that the credits do not suffice.
    pub(crate) const fn is_broke(&self) -> bool {
        matches!(self, Self::Inference(InferenceError::NoCredits { .. }))
    }
}
