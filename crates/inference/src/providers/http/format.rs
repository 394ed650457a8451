//! Pure: the formats in which a server can be asked, and what differs between them.

use automaton_core::model::ModelId;
use automaton_core::secret::Secret;
use automaton_core::wire::chat::{
    CalledFunction, ChatCall, ChatChoice, ChatMessage, ChatResponse, ChatRole, ChatUsage,
    FunctionKind,
};
use automaton_net::{Header, Url};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::anthropic::{self, MessagesReader};
use super::asked::AskedChat;
use super::assemble::{Assembler, AssemblyError, StreamPiece};
use super::chat_completions::{self, WrittenChat};
use super::failure::ProviderErrorBody;
use super::finish::{FinishMeaning, meaning_of};
use super::foreign::UntranslatableRequest;
use super::from_chat;
use super::gemini::{self, GeminiReader};
use super::inline_thoughts::BareEnds;
use super::joined::{JoinedReply, join_value};
use super::ollama::{self, OllamaReader};
use super::responses::{self, ResponsesReader};
use super::thoughts::KeptThoughts;
use super::url;
use crate::catalogue::ModelInfo;
use crate::error::InferenceError;
use crate::provider::{CompletionRequest, FinishReason, NoTokenSink, RawCall};

/// The format that a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiFormat {
    /// Chat completions, as `OpenAI` introduced them and nearly everybody speaks.
    #[default]
    ChatCompletions,
    /// Anthropic's messages.
    AnthropicMessages,
    /// `OpenAI`'s responses.
    Responses,
    /// Ollama's own format.
    Ollama,
    /// Gemini's own format.
    Gemini,
}

/// Form of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamChoice {
    /// In pieces.
    Stream,
    /// As one document.
    Whole,
}

/// State of a conversation that is kept for its next request.
#[derive(Debug)]
pub(super) struct KeptChat {
    /// Known thoughts of the server.
    pub(super) thoughts: KeptThoughts,
    /// Written messages, in the format of chat completions.
    written: WrittenChat,
    /// Possibility that answers begin within a thought. It is known after the first words.
    pub(super) bare_ends: BareEnds,
    /// True if one of them began within a thought.
    is_thoughtful: bool,
}

impl KeptChat {
    /// A conversation with a server that speaks a format. In the formats that have no place for thoughts the first
    /// words are held back until the answer ends.
    pub(super) fn new(format: ApiFormat) -> Self {
        let bare_ends = match format {
            ApiFormat::ChatCompletions | ApiFormat::Ollama => BareEnds::HeldBack,
            ApiFormat::AnthropicMessages | ApiFormat::Responses | ApiFormat::Gemini => {
                BareEnds::Watched
            }
        };
        Self {
            thoughts: KeptThoughts::default(),
            written: WrittenChat::default(),
            bare_ends,
            is_thoughtful: false,
        }
    }

    /// Notes how the words of an answer began. From then on words are shown as they come, unless they may turn out
    /// to be a thought.
    pub(super) fn learn_bare_ends(&mut self, began_in_thought: bool, words: &str) {
        self.bare_ends = match self.bare_ends {
            _ if began_in_thought => BareEnds::HeldBack,
            BareEnds::HeldBack if self.is_thoughtful || words.is_empty() => BareEnds::HeldBack,
            _ => BareEnds::Watched,
        };
        self.is_thoughtful |= began_in_thought;
    }
}

/// Writes the body of a question.
pub(super) type BodyWriter = fn(AskedChat<'_>) -> Result<Vec<u8>, serde_json::Error>;

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

    /// Returns the path below a base URL.
    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::ChatCompletions => "chat/completions",
            Self::AnthropicMessages => "messages",
            Self::Responses => "responses",
            Self::Ollama => "chat",
            Self::Gemini => "models",
        }
    }

    /// The version that stands before that.
    pub(super) const fn version(self) -> &'static str {
        match self {
            Self::ChatCompletions | Self::AnthropicMessages | Self::Responses => "v1",
            Self::Ollama => "api",
            Self::Gemini => "v1beta",
        }
    }

    /// Returns the address of a model, from the URL that [`ApiFormat::url`] gives.
    #[must_use]
    pub fn target(self, url: &Url, model: &ModelId, how: StreamChoice) -> Url {
        let mut url = url.clone();
        if self == Self::Gemini {
            let model = model.as_str().trim_start_matches("models/");
            let (verb, query) = match how {
                StreamChoice::Stream => ("streamGenerateContent", Some("alt=sse")),
                StreamChoice::Whole => ("generateContent", None),
            };
            url.set_path(&format!("{}/{model}:{verb}", url.path()));
            url.set_query(query);
        }
        url
    }

    /// The body of a request, with what is kept of the conversation.
    pub(super) fn body(
        self,
        info: &ModelInfo,
        ask: &CompletionRequest,
        kept: &mut KeptChat,
    ) -> Result<Vec<u8>, InferenceError> {
        let body = match self.writer() {
            None => chat_completions::body(info, ask, &mut kept.written),
            Some(write) => {
                let mut asked = AskedChat::from_request(info, ask);
                kept.thoughts.put_into(&mut asked);
                // The newest models refuse one that is not theirs.
                asked.temperature = asked.temperature.filter(|_| self != Self::AnthropicMessages);
                write(asked)
            }
        };
        body.map_err(|source| InferenceError::Encode { source })
    }

    /// A request of the chat-completions format, written by anybody, to a model with a window of
    /// so many tokens.
    ///
    /// # Errors
    /// [`UntranslatableRequest`] when it is no request, or asks for what the format does not have.
    pub fn body_from_chat(
        self,
        body: Vec<u8>,
        window: u32,
    ) -> Result<Vec<u8>, UntranslatableRequest> {
        match self.writer() {
            None => Ok(body),
            Some(write) => from_chat::translated(self, write, &body, window),
        }
    }

    /// Returns the writer of a request body, for every format but chat completions.
    fn writer(self) -> Option<BodyWriter> {
        match self {
            Self::ChatCompletions => None,
            Self::AnthropicMessages => Some(anthropic::body),
            Self::Responses => Some(|asked| responses::body(&asked)),
            Self::Ollama => Some(|asked| ollama::body(&asked)),
            Self::Gemini => Some(|asked| gemini::body(&asked)),
        }
    }

    /// Returns the reader of one reply.
    #[must_use]
    pub fn reader(self) -> FormatReader {
        let reading = match self {
            Self::ChatCompletions => ReplyReading::ChatCompletions,
            Self::AnthropicMessages => ReplyReading::Anthropic(MessagesReader::default()),
            Self::Responses => ReplyReading::Responses(ResponsesReader::default()),
            Self::Ollama => ReplyReading::Ollama(OllamaReader::default()),
            Self::Gemini => ReplyReading::Gemini(GeminiReader::default()),
        };
        FormatReader { reading, joined: JoinedReply::default() }
    }
}

/// Reads one reply.
#[derive(Debug)]
pub struct FormatReader {
    reading: ReplyReading,
    joined: JoinedReply,
}

#[derive(Debug)]
enum ReplyReading {
    ChatCompletions,
    Anthropic(MessagesReader),
    Responses(ResponsesReader),
    Ollama(OllamaReader),
    Gemini(GeminiReader),
}

impl FormatReader {
    /// Reads the data of an event or a whole reply.
    pub(super) fn piece(&mut self, data: &str) -> Result<StreamPiece, AssemblyError> {
        let piece = match &mut self.reading {
            ReplyReading::ChatCompletions => chat_completions::piece(data),
            ReplyReading::Anthropic(reader) => reader.piece(data),
            ReplyReading::Responses(reader) => reader.piece(data),
            ReplyReading::Ollama(reader) => reader.piece(data),
            ReplyReading::Gemini(reader) => reader.piece(data),
        };
        let mut piece = self.joined.join(piece?)?;
        if let StreamPiece::Chunk(chunk) | StreamPiece::Last(chunk) = &mut piece {
            for word in chunk.choices.iter_mut().filter_map(|it| it.finish_reason.as_mut()) {
                read_finish(word)?;
            }
        }
        Ok(piece)
    }

    /// Returns the model's thoughts before its calls, for its server only.
    pub(super) fn into_thoughts(self) -> Vec<Value> {
        let mut thoughts = match self.reading {
            ReplyReading::ChatCompletions | ReplyReading::Ollama(_) => Vec::new(),
            ReplyReading::Anthropic(reader) => reader.thoughts.finish(),
            ReplyReading::Responses(reader) => reader.thoughts.finish(),
            ReplyReading::Gemini(reader) => reader.thoughts.finish(),
        };
        thoughts.iter_mut().for_each(join_value);
        thoughts
    }

    /// The same for a server that passes replies on in the chat-completions format.
    ///
    /// # Errors
    /// What the server says went wrong, or that it is no reply.
    pub fn passed_on(&mut self, data: &str) -> Result<StreamPiece, String> {
        let mut piece = self.piece(data).map_err(AssemblyError::into_text)?;
        if let StreamPiece::Chunk(chunk) | StreamPiece::Last(chunk) = &mut piece {
            // Clients of the format take no word for an end but its own.
            for word in chunk.choices.iter_mut().filter_map(|it| it.finish_reason.as_mut()) {
                if meaning_of(word) == FinishMeaning::Unknown && !word.is_empty() {
                    "stop".clone_into(word);
                }
            }
        }
        Ok(piece)
    }

    /// A whole reply in the chat-completions format, for a server that passes it on.
    ///
    /// # Errors
    /// As [`FormatReader::passed_on`].
    pub fn document(mut self, body: &str) -> Result<ChatResponse, String> {
        let mut assembler = Assembler::default();
        let piece = self.passed_on(body)?;
        let id = match &piece {
            StreamPiece::Chunk(chunk) | StreamPiece::Last(chunk) => chunk.id.clone(),
            StreamPiece::Done => String::new(),
        };
        let rest = self.joined.join(StreamPiece::Done);
        for piece in [Ok(piece), rest] {
            let added = piece.and_then(|piece| assembler.add_piece(piece, &NoTokenSink));
            added.map_err(AssemblyError::into_text)?;
        }
        let reply = assembler.finish().map_err(AssemblyError::into_text)?;
        let calls: Vec<ChatCall> = reply.calls.into_iter().map(chat_call).collect();
        let message = ChatMessage {
            role: ChatRole::Assistant,
            content: Some(reply.text).filter(|text| !text.is_empty() || calls.is_empty()),
            tool_calls: (!calls.is_empty()).then_some(calls),
            tool_call_id: None,
        };
        let finish_reason = Some(match reply.finish {
            FinishReason::Stop => "stop",
            FinishReason::ToolCalls => "tool_calls",
            FinishReason::Length | FinishReason::Repetition => "length",
            FinishReason::Filtered => "content_filter",
        });
        let finish_reason = finish_reason.map(str::to_owned);
        Ok(ChatResponse {
            id,
            object: "chat.completion".to_owned(),
            created: 0,
            model: reply.model,
            choices: vec![ChatChoice { index: 0, message, finish_reason }],
            usage: reply.usage,
        })
    }
}

/// Replaces the word for an end by the one that chat completions have. A word that is not known stays.
///
/// # Errors
/// When it says that the answer is none.
fn read_finish(word: &mut String) -> Result<(), AssemblyError> {
    if word.is_empty() {
        return Ok(());
    }
    let meaning = meaning_of(word);
    if meaning == FinishMeaning::Unknown {
        return Ok(());
    }
    let known = meaning.chat_word().ok_or_else(|| {
        let text = format!("it ended with '{word}'");
        AssemblyError::Failed(ProviderErrorBody { text, ..ProviderErrorBody::default() })
    })?;
    known.clone_into(word);
    Ok(())
}

/// Reads the token counts in an event or whole reply of chat completions, for a program that
/// passes the reply on unchanged.
///
/// # Errors
/// The words of the server, when it says that it failed.
pub fn inspect_chat(data: &str) -> Result<Option<ChatUsage>, String> {
    match ApiFormat::ChatCompletions.reader().piece(data) {
        Ok(StreamPiece::Chunk(chunk) | StreamPiece::Last(chunk)) => Ok(chunk.usage),
        Err(failed @ AssemblyError::Failed(_)) => Err(failed.into_text()),
        Ok(StreamPiece::Done) | Err(AssemblyError::Cut | AssemblyError::NoReply(_)) => Ok(None),
    }
}

fn chat_call(call: RawCall) -> ChatCall {
    ChatCall {
        id: call.provider_id.unwrap_or_default(),
        kind: FunctionKind::Function,
        function: CalledFunction { name: call.tool, arguments: call.arguments },
    }
}

/// Authentication of requests.
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
    /// `x-goog-api-key: KEY`, as Gemini wants it.
    Gemini(Secret),
}

impl ApiAuth {
    /// The version of Anthropic's format that is spoken here.
    pub const ANTHROPIC_VERSION: &str = "2023-06-01";

    /// Returns the default authentication of a format with a key.
    #[must_use]
    pub fn usual(format: ApiFormat, key: Option<Secret>) -> Self {
        match (format, key) {
            (ApiFormat::AnthropicMessages, key) => Self::Anthropic { key, version: None },
            (_, None) => Self::None,
            (ApiFormat::Gemini, Some(key)) => Self::Gemini(key),
            (_, Some(key)) => Self::Bearer(key),
        }
    }

    /// With another version of Anthropic's format than the usual one, where somebody names one.
    #[must_use]
    pub fn with_version(mut self, named: Option<&str>) -> Self {
        if let Self::Anthropic { version, .. } = &mut self {
            *version = named.map(str::to_owned);
        }
        self
    }

    /// The key, if any is sent.
    pub(crate) const fn key(&self) -> Option<&Secret> {
        match self {
            Self::None => None,
            Self::Bearer(key) | Self::Raw(key) | Self::Gemini(key) => Some(key),
            Self::Anthropic { key, .. } => key.as_ref(),
        }
    }

    /// The headers that prove it, if any do.
    #[must_use]
    pub fn headers(&self) -> Vec<Header> {
        match self {
            Self::None => Vec::new(),
            Self::Raw(key) => vec![Header::Secret("authorization", key.clone())],
            Self::Gemini(key) => vec![Header::Secret("x-goog-api-key", key.clone())],
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_model_is_asked_names_it_only_in_geminis_format() {
        let url = ApiFormat::Gemini.url("https://host/v1beta").unwrap();
        let at = |model: &str, how| ApiFormat::Gemini.target(&url, &model.into(), how).to_string();
        let place = "https://host/v1beta/models";
        let streamed = at("models/gemini-x", StreamChoice::Stream);
        assert_eq!(streamed, format!("{place}/gemini-x:streamGenerateContent?alt=sse"));
        assert_eq!(at("g?k#h", StreamChoice::Whole), format!("{place}/g%3Fk%23h:generateContent"));
        let url = ApiFormat::Ollama.url("http://127.0.0.1:9").unwrap();
        assert_eq!(ApiFormat::Ollama.target(&url, &"m".into(), StreamChoice::Whole), url);
    }
}
