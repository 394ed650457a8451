//! Reasons for which a model did not answer.
//!
//! Text of a server or of the helper is bounded and without credentials before
//! it gets here. A failure must never be turned into an answer: the agent acts
//! on answers only.

use std::path::PathBuf;
use std::time::Duration;

use automaton_core::error::{Classified, ErrorClass};
use automaton_core::model::ModelId;
use automaton_core::money::MoneyError;
use automaton_core::tool::ToolName;
use automaton_core::wire::brain::LocalModelFailureCode;
use automaton_net::{DeadlineKind, NetError, OriginError};
use automaton_sandbox::{LaunchError, PlanRefusal};

const CHECK_MODEL: &str = "check the base URL and the model's name in the configuration";

/// A model did not answer.
#[derive(Debug, thiserror::Error, Classified)]
pub enum InferenceError {
    /// The server could not be reached.
    #[error(transparent)]
    #[class(Transient, hint = "see that the model's server runs and that its URL is right")]
    Unreachable {
        /// Cause.
        source: NetError,
    },
    /// The server was too slow.
    #[error("the model's server took too long")]
    #[class(Transient)]
    TimedOut {
        /// Which deadline passed.
        #[source]
        source: NetError,
    },
    /// The request was not sent, or what came back was not taken.
    #[error("the request to the model's server was refused on our side")]
    Refused {
        /// Cause.
        #[source]
        source: NetError,
    },
    /// The server answered with an error.
    #[error("{endpoint} answered with status {status}: {text}")]
    #[class(kind = match status {
        408 | 409 | 425 | 429 | 500..=599 => ErrorClass::Transient,
        405 => ErrorClass::Config,
        _ => ErrorClass::Upstream,
    }, hint = (*status == 405).then(|| CHECK_MODEL.to_owned()))]
    Status {
        /// The server.
        endpoint: String,
        /// The status.
        status: u16,
        /// Message of the server.
        text: String,
    },
    /// The server wants money first.
    #[error("{endpoint} says that there are no credits left: {text}")]
    #[class(Upstream, hint = "add credits to the account that the key belongs to")]
    NoCredits {
        /// The server.
        endpoint: String,
        /// Message of the server.
        text: String,
    },
    /// The server has too much to do, and says when to come again.
    #[error("{endpoint} is busy ({status}) and asks to wait {} seconds: {text}", wait.as_secs())]
    #[class(Transient, hint = "wait, or ask whoever runs the server for a higher limit")]
    Busy {
        /// The server.
        endpoint: String,
        /// The status.
        status: u16,
        /// Message of the server.
        text: String,
        /// Requested wait, of any length.
        wait: Duration,
    },
    /// The server will not have these words answered.
    #[error("{endpoint} refuses what it is asked ({status}): {text}")]
    #[class(Upstream, hint = "ask for it in other words, or choose another model")]
    ContentRefused {
        /// The server.
        endpoint: String,
        /// The status.
        status: u16,
        /// Message of the server.
        text: String,
    },
    /// The server does not take our key.
    #[error("{endpoint} does not accept the key ({status}): {text}")]
    #[class(Config, hint = "{}", remedy.as_deref().unwrap_or("check the API key in the configuration"))]
    Unauthorised {
        /// The server.
        endpoint: String,
        /// The status.
        status: u16,
        /// Message of the server.
        text: String,
        /// Place where the key is changed.
        remedy: Option<String>,
    },
    /// The server has no such model, or nothing at all at this address.
    #[error("{endpoint} has no model '{model}': {text}")]
    #[class(Config, hint = "{}; {}", remedy.as_deref().unwrap_or(CHECK_MODEL), match listed[..] {
        [] => "if the name is right, the server's address is not".to_owned(),
        _ => format!("the server has: {}", listed.join(", ")),
    })]
    NoModel {
        /// The server.
        endpoint: String,
        /// The model.
        model: ModelId,
        /// Message of the server.
        text: String,
        /// Models that it has, the most alike first.
        listed: Vec<String>,
        /// Place where another model is named.
        remedy: Option<String>,
    },
    /// The model, or its server, cannot call tools.
    #[error("{endpoint} does not let '{model}' call tools: {text}")]
    #[class(
        Config,
        hint = "choose a model that calls tools, or switch them on in its server{}",
        remedy.as_ref().map_or(String::new(), |remedy| format!(": {remedy}"))
    )]
    NoTools {
        /// The server.
        endpoint: String,
        /// The model.
        model: ModelId,
        /// Message of the server.
        text: String,
        /// Place where another model is named.
        remedy: Option<String>,
    },
    /// The conversation does not fit into the model's window.
    #[error("the conversation is too long for the model: {text}")]
    #[class(User, hint = "{}", remedy.as_deref().unwrap_or(
        "set `brain.contextTokens` to what the server takes, or use a model with a larger window"
    ))]
    TooLong {
        /// Message of the provider.
        text: String,
        /// The window that it names there, in tokens.
        window: Option<u32>,
        /// Place where the window is set.
        remedy: Option<String>,
    },
    /// The server failed in the middle of its answer, and said so.
    #[error("{endpoint} failed while it answered: {text}")]
    #[class(Transient)]
    Failed {
        /// The server.
        endpoint: String,
        /// Message of the server.
        text: String,
    },
    /// The answer broke off. What came of it is worth nothing.
    #[error("the answer of {endpoint} broke off")]
    #[class(Transient)]
    Cut {
        /// The server.
        endpoint: String,
        /// Error of the connection, if it broke.
        #[source]
        source: Option<NetError>,
    },
    /// The response is no reply.
    #[error("{endpoint} sent what is no reply of a model: {what}")]
    #[class(Upstream)]
    Malformed {
        /// The server.
        endpoint: String,
        /// Description of the fault.
        what: String,
    },
    /// The base URL is none.
    #[error("'{text}' is no base URL of a model's server")]
    #[class(Config, hint = "write it like http://127.0.0.1:8080 or https://host/v1")]
    BaseUrl {
        /// The text, without credentials.
        text: String,
        /// Cause.
        #[source]
        source: Option<OriginError>,
    },
    /// The request could not be written.
    #[error("the request to the model cannot be written as JSON")]
    #[class(Internal)]
    Encode {
        /// Cause.
        #[source]
        source: serde_json::Error,
    },
    /// The history is out of order.
    #[error("message {place} of the conversation is out of place: {what}")]
    #[class(Internal)]
    Conversation {
        /// Its number, from 0.
        place: usize,
        /// Description of the fault.
        what: &'static str,
    },
    /// A tool's schema is none.
    #[error("the schema of the tool {tool} is no JSON Schema")]
    #[class(Internal)]
    Schema {
        /// The tool.
        tool: ToolName,
        /// Cause.
        #[source]
        source: Box<jsonschema::ValidationError<'static>>,
    },
    /// The built-in catalogue cannot be read.
    #[error("the catalogue of models is damaged")]
    #[class(Internal)]
    Catalogue {
        /// Cause.
        #[source]
        source: serde_json::Error,
    },
    /// The price cannot be counted.
    #[error("the price of the answer cannot be counted")]
    #[class(Internal)]
    Cost {
        /// Cause.
        #[source]
        source: MoneyError,
    },
    /// The local model failed.
    #[error("the local model failed")]
    Helper(#[from] LocalModelError),
}

impl InferenceError {
    /// Returns true if a shorter conversation may be answered.
    #[must_use]
    pub const fn is_too_long(&self) -> bool {
        matches!(self, Self::TooLong { .. })
    }

    /// The window that a server names which takes no prompt of this length, in tokens.
    #[must_use]
    pub const fn named_window(&self) -> Option<u32> {
        match self {
            Self::TooLong { window, .. } => *window,
            _ => None,
        }
    }

    /// Returns true if the request is at fault, so that the model's health is not affected.
    #[must_use]
    pub const fn is_of_request(&self) -> bool {
        self.is_rejection()
            || matches!(
                self,
                Self::TooLong { .. }
                    | Self::Encode { .. }
                    | Self::Conversation { .. }
                    | Self::Schema { .. }
                    | Self::Cost { .. }
            )
    }

    /// Returns true if another model may answer the same request.
    #[must_use]
    pub const fn fails_over(&self) -> bool {
        self.is_rejection() || !self.is_of_request()
    }

    /// Returns true if the server will never accept this request.
    #[must_use]
    pub const fn is_rejection(&self) -> bool {
        matches!(self, Self::Status { status: 400 | 413 | 422, .. } | Self::ContentRefused { .. })
    }

    /// After how many failures in a row it is asked no more: what the creator has to mend
    /// is tried once, and what a shorter conversation may mend with three shorter ones.
    #[must_use]
    pub const fn tries_max(&self) -> u32 {
        match self {
            Self::Unauthorised { .. } | Self::NoModel { .. } | Self::NoTools { .. } => 1,
            Self::TooLong { .. } => 4,
            _ => u32::MAX,
        }
    }

    /// Returns the wait that the server asks for.
    #[must_use]
    pub const fn wait(&self) -> Option<Duration> {
        match self {
            Self::Busy { wait, .. } => Some(*wait),
            _ => None,
        }
    }

    /// Returns the failure in our own words, for readers that must not see the server's.
    #[must_use]
    pub const fn outline(&self) -> &'static str {
        match self {
            Self::ContentRefused { .. } => "The model's server refuses what it is asked.",
            Self::Unauthorised { .. } => "The model's server does not accept the key.",
            Self::NoModel { .. } => "The model's server has no such model.",
            Self::NoTools { .. } => "The model cannot call tools.",
            Self::TooLong { .. } => "The conversation is too long for the model's window.",
            Self::NoCredits { .. } => "The model's server says that there are no credits left.",
            Self::Busy { .. } => {
                "The model's server is busy and asks to be left alone for a while."
            }
            Self::Unreachable { .. } => "The model's server cannot be reached.",
            Self::TimedOut { .. } => "The model's server took too long.",
            _ => "The model gave no answer.",
        }
    }

    /// Returns true if nothing is charged: the server was not asked, or refused before it
    /// thought. A broken, late or malformed answer may be charged.
    #[must_use]
    pub fn costs_nothing(&self) -> bool {
        match self {
            Self::Status { .. }
            | Self::Busy { .. }
            | Self::NoCredits { .. }
            | Self::ContentRefused { .. }
            | Self::Unauthorised { .. }
            | Self::NoModel { .. }
            | Self::NoTools { .. }
            | Self::TooLong { .. }
            | Self::Encode { .. }
            | Self::Conversation { .. } => true,
            Self::Refused { source } => !matches!(source, NetError::TooLarge { .. }),
            Self::Unreachable { source: NetError::Unreachable { source, .. } } => {
                source.is_connect()
            }
            Self::TimedOut { source } => {
                matches!(source, NetError::TimedOut { late: DeadlineKind::Connect, .. })
            }
            _ => false,
        }
    }

    /// Sorts what can happen on the way.
    pub(crate) fn on_the_way(endpoint: &str, source: NetError) -> Self {
        match source {
            NetError::Unreachable { .. } => Self::Unreachable { source },
            NetError::TimedOut { .. } => Self::TimedOut { source },
            NetError::BrokenOff { .. } => {
                Self::Cut { endpoint: endpoint.to_owned(), source: Some(source) }
            }
            _ => Self::Refused { source },
        }
    }
}

/// The local model's helper failed.
#[derive(Debug, thiserror::Error, Classified)]
pub enum LocalModelError {
    /// The model's file cannot be read.
    #[error("the model file {} cannot be read", path.display())]
    #[class(Config, hint = "name a GGUF file that this user can read")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// The model's file is another than the configuration names.
    #[error("the model file {} has the SHA-256 {found}, not {wanted}", path.display())]
    #[class(Config, hint = "obtain the file again, or change the checksum if you meant to")]
    Changed {
        /// The file.
        path: PathBuf,
        /// Expected value.
        wanted: String,
        /// Actual value.
        found: String,
    },
    /// A path that cannot be an argument.
    #[error("the path {} is not text", path.display())]
    #[class(Config, hint = "name a GGUF file that this user can read")]
    PathNotText {
        /// The path.
        path: PathBuf,
    },
    /// The sandbox refuses to run it.
    #[error("the sandbox cannot hold the helper")]
    Sandbox {
        /// Cause.
        #[source]
        source: PlanRefusal,
    },
    /// The helper could not be started.
    #[error("the helper could not be started")]
    Launch {
        /// Cause.
        #[source]
        source: LaunchError,
    },
    /// The channel to it could not be made.
    #[error("the channel to the helper could not be made")]
    #[class(Internal)]
    Channel {
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// It ended before it was ready: the model could not be loaded.
    #[error("the model could not be loaded ({status}): {said}")]
    #[class(
        Config,
        hint = "the file may be cut off, damaged or too large for the memory limit: obtain it \
                again, or name another one"
    )]
    NotReady {
        /// Exit status.
        status: String,
        /// Its last words.
        said: String,
    },
    /// It ended while it was needed.
    #[error("the helper died ({status}): {said}")]
    #[class(Transient)]
    Died {
        /// Exit status and last output.
        status: String,
        /// Its last words.
        said: String,
    },
    /// It said nothing for too long and was ended.
    #[error("the helper said nothing for {limit:?} and was ended")]
    #[class(Transient)]
    Hung {
        /// Limit.
        limit: Duration,
    },
    /// It talked for too long and was ended.
    #[error("the helper had not finished after {limit:?} and was ended")]
    #[class(Transient)]
    Slow {
        /// Limit.
        limit: Duration,
    },
    /// It speaks another version.
    #[error("the helper speaks version {found} of the protocol, not {wanted}")]
    #[class(Config, hint = "build the helper from the same sources as the program")]
    Version {
        /// Its version.
        found: u32,
        /// Ours.
        wanted: u32,
    },
    /// It said what it must not say, and was ended.
    #[error("the helper broke the protocol: {what}")]
    #[class(Upstream)]
    Protocol {
        /// Description of the violation.
        what: String,
    },
    /// It could not answer this request; it lives on.
    #[error("the helper could not answer: {message}")]
    #[class(kind = match code {
        LocalModelFailureCode::Model => ErrorClass::Transient,
        _ => ErrorClass::Internal,
    })]
    Answer {
        /// Kind of the failure.
        code: LocalModelFailureCode,
        /// Message.
        message: String,
    },
    /// It died too often.
    #[error("the helper had to be started {starts} times within an hour")]
    #[class(
        Transient,
        hint = "the model may need more memory than its limit; it is tried again later"
    )]
    GivenUp {
        /// Number of starts.
        starts: usize,
    },
}
