//! Pure: the formats in which a server can be asked, and what differs between them.

use automaton_core::secret::Secret;
use automaton_net::{Header, Url};
use serde::{Deserialize, Serialize};

use super::anthropic::{self, MessagesReader};
use super::assemble::{AssemblyError, StreamPiece};
use super::{chat_completions, url};
use crate::catalogue::ModelInfo;
use crate::error::InferenceError;
use crate::provider::CompletionRequest;

/// The format that a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiFormat {
    /// Chat completions, as `OpenAI` introduced them and nearly everybody speaks.
    #[default]
    ChatCompletions,
    /// Anthropic's messages.
    AnthropicMessages,
}

impl ApiFormat {
    /// The URL that is asked below a base URL. A bare host gets the format's version; the full
    /// URL is taken, too.
    ///
    /// # Errors
    /// [`InferenceError::BaseUrl`] when it is no http or https URL, or holds
    /// credentials or a query.
    pub fn url(self, base_url: &str) -> Result<Url, InferenceError> {
        url::below(base_url, self)
    }

    /// What is asked below a base.
    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::ChatCompletions => "chat/completions",
            Self::AnthropicMessages => "messages",
        }
    }

    /// The body of a request.
    pub(super) fn body(
        self,
        info: &ModelInfo,
        ask: &CompletionRequest,
    ) -> Result<Vec<u8>, InferenceError> {
        match self {
            Self::ChatCompletions => chat_completions::body(info, ask),
            Self::AnthropicMessages => anthropic::body(info, ask),
        }
    }

    /// What reads one reply.
    pub(super) fn reader(self) -> FormatReader {
        match self {
            Self::ChatCompletions => FormatReader::ChatCompletions,
            Self::AnthropicMessages => FormatReader::Anthropic(MessagesReader::default()),
        }
    }
}

/// Reads one reply.
pub(super) enum FormatReader {
    ChatCompletions,
    Anthropic(MessagesReader),
}

impl FormatReader {
    /// What the data of an event, or a whole reply, says.
    pub(super) fn piece(&mut self, data: &str) -> Result<StreamPiece, AssemblyError> {
        match self {
            Self::ChatCompletions => chat_completions::piece(data),
            Self::Anthropic(reader) => reader.piece(data),
        }
    }
}

/// How requests prove who sends them.
#[derive(Debug, Clone)]
pub enum ApiAuth {
    /// Not at all.
    None,
    /// `Authorization: Bearer KEY`, as nearly everybody wants it.
    Bearer(Secret),
    /// `Authorization: KEY`, as Conway wants it.
    Raw(Secret),
    /// `x-api-key: KEY`, as Anthropic wants it, with the version of its format.
    Anthropic {
        /// The key, where there is one.
        key: Option<Secret>,
        /// The version; by default [`ApiAuth::ANTHROPIC_VERSION`].
        version: Option<String>,
    },
}

impl ApiAuth {
    /// The version of Anthropic's format that is spoken here.
    pub const ANTHROPIC_VERSION: &str = "2023-06-01";

    /// How a key is sent to a server that speaks a format, unless the server wants it otherwise.
    #[must_use]
    pub fn usual(format: ApiFormat, key: Option<Secret>) -> Self {
        match (format, key) {
            (ApiFormat::AnthropicMessages, key) => Self::Anthropic { key, version: None },
            (ApiFormat::ChatCompletions, None) => Self::None,
            (ApiFormat::ChatCompletions, Some(key)) => Self::Bearer(key),
        }
    }

    /// The key, if any is sent.
    pub(super) const fn key(&self) -> Option<&Secret> {
        match self {
            Self::None => None,
            Self::Bearer(key) | Self::Raw(key) => Some(key),
            Self::Anthropic { key, .. } => key.as_ref(),
        }
    }

    /// The headers that prove it, if any do.
    #[must_use]
    pub fn headers(&self) -> Vec<Header> {
        match self {
            Self::None => Vec::new(),
            Self::Raw(key) => vec![Header::Secret("authorization", key.clone())],
            Self::Bearer(key) => {
                let value = Secret::new(format!("Bearer {}", key.reveal()));
                vec![Header::Secret("authorization", value)]
            }
            Self::Anthropic { key, version } => {
                let version = version.as_deref().unwrap_or(Self::ANTHROPIC_VERSION);
                let version = Header::Open("anthropic-version", version.to_owned());
                let key = key.clone().map(|key| Header::Secret("x-api-key", key));
                [version].into_iter().chain(key).collect()
            }
        }
    }
}
