//! Collects an answer in the format of its client, whatever its upstream speaks.

use std::mem;

use automaton_core::wire::chat::{ChatChunk, ChatResponse, ChunkDelta};
use automaton_inference::providers::http::anthropic::messages_writer;
use automaton_inference::providers::http::responses::{ResponseHeading, responses_writer};
use automaton_inference::providers::http::{ApiFormat, FormatReader, StreamPiece};
use automaton_inference::providers::local::chat::ResponseMeta;
use bytes::Bytes;

use super::answer_stream::AnswerStream;
use super::embeddings::EmbeddingsAnswer;
use super::relayed_answer::RelayedAnswer;
use super::request::ClientFormat;
use super::translated_answer::TranslatedAnswer;
use super::{ChatBody, Recording};
use crate::billing::price::{BilledTokens, Charge, Metering, TokenBounds};

/// An answer as it comes.
pub(super) trait Answer: Send {
    /// Returns whether anything was passed on.
    fn is_shown(&self) -> bool;

    /// Returns the recording of the answer.
    fn recording(&self) -> &Recording;

    /// Returns the answer's id, model and time.
    fn meta(&self) -> &ResponseMeta;

    /// The data of an event of a stream; gives whether it was the last.
    ///
    /// # Errors
    /// Fails if it is none, or says that the upstream failed.
    fn event(&mut self, data: &str) -> Result<bool, String>;

    /// A whole answer.
    ///
    /// # Errors
    /// Fails if it is none, or says that the upstream failed.
    fn document(&mut self, body: Bytes) -> Result<(), String>;

    /// Returns whether the answer came to its end.
    fn is_whole(&self) -> bool;

    /// Returns the tokens that are charged, for a question of this size.
    fn billed(&self, prompt_bytes: usize) -> (BilledTokens, Metering);

    /// Shows what was held back until the charge.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    fn finish(self: Box<Self>, charge: &Charge) -> Result<(), String>;
}

/// An answer to this question, by an upstream that speaks so.
pub(super) fn answer<'a>(
    recording: &'a Recording,
    chat: &ChatBody,
    from: ApiFormat,
    (bounds, meta): (TokenBounds, ResponseMeta),
) -> Box<dyn Answer + 'a> {
    if chat.format == ClientFormat::Embeddings {
        return Box::new(EmbeddingsAnswer::new(recording, chat.vectors, bounds, meta));
    }
    let id = meta.id.clone();
    let model = meta.model.to_string();
    let writer = match chat.format {
        ClientFormat::AnthropicMessages if from == ApiFormat::AnthropicMessages => {
            return Box::new(RelayedAnswer::new(recording, chat.stream, bounds, meta));
        }
        ClientFormat::AnthropicMessages => Some(messages_writer(id, model)),
        ClientFormat::Responses => {
            let created = meta.created;
            let told_back = chat.echoed_fields();
            Some(responses_writer(ResponseHeading { id, model, created, told_back }))
        }
        ClientFormat::ChatCompletions | ClientFormat::Embeddings => None,
    };
    let answer: Box<dyn Answer> = match writer {
        Some(writer) => {
            let meta = (bounds, meta);
            Box::new(TranslatedAnswer::new(recording, chat.stream, meta, writer))
        }
        None => Box::new(AnswerStream::new(recording, chat.wants_usage, bounds, meta)),
    };
    match from {
        ApiFormat::ChatCompletions => answer,
        other => Box::new(ChatOfOther { answer, reader: Some(other.reader()), format: other }),
    }
}

/// Another format than chat completions, heard as these.
struct ChatOfOther<'a> {
    answer: Box<dyn Answer + 'a>,
    /// The reader of a whole document; gone once it has read it.
    reader: Option<FormatReader>,
    format: ApiFormat,
}

impl Answer for ChatOfOther<'_> {
    fn is_shown(&self) -> bool {
        self.answer.is_shown()
    }

    fn recording(&self) -> &Recording {
        self.answer.recording()
    }

    fn meta(&self) -> &ResponseMeta {
        self.answer.meta()
    }

    fn event(&mut self, data: &str) -> Result<bool, String> {
        let reader = self.reader.get_or_insert_with(|| self.format.reader());
        let (chunk, is_last) = match reader.passed_on(data)? {
            StreamPiece::Chunk(chunk) => (chunk, false),
            StreamPiece::Last(chunk) => (chunk, true),
            StreamPiece::Done => return Ok(true),
        };
        pass_on(&mut *self.answer, chunk)?;
        Ok(is_last)
    }

    fn document(&mut self, body: Bytes) -> Result<(), String> {
        let reader = self.reader.take().unwrap_or_else(|| self.format.reader());
        let reply = reader.document(&String::from_utf8_lossy(&body))?;
        let reply = ChatResponse { created: self.meta().created, ..reply };
        let body = serde_json::to_vec(&reply).map_err(|error| error.to_string())?;
        self.answer.document(body.into())
    }

    fn is_whole(&self) -> bool {
        self.answer.is_whole()
    }

    fn billed(&self, prompt_bytes: usize) -> (BilledTokens, Metering) {
        self.answer.billed(prompt_bytes)
    }

    fn finish(self: Box<Self>, charge: &Charge) -> Result<(), String> {
        self.answer.finish(charge)
    }
}

/// Passes a piece on that was another format's; its count of tokens is a piece of its own.
fn pass_on(answer: &mut dyn Answer, mut chunk: ChatChunk) -> Result<(), String> {
    let usage = mem::take(&mut chunk.usage);
    let is_news = |it: &ChatChunk| {
        let of = it.choices.iter();
        of.clone().any(|it| it.delta != ChunkDelta::default() || it.finish_reason.is_some())
    };
    let ResponseMeta { id, model, created } = answer.meta().clone();
    let whole = ChatChunk {
        id,
        object: "chat.completion.chunk".to_owned(),
        created,
        model: model.to_string(),
        ..ChatChunk::default()
    };
    let pieces = [
        is_news(&chunk).then(|| ChatChunk { choices: chunk.choices, ..whole.clone() }),
        usage.is_some().then_some(ChatChunk { usage, ..whole }),
    ];
    for piece in pieces.into_iter().flatten() {
        answer.event(&serde_json::to_string(&piece).map_err(|error| error.to_string())?)?;
    }
    Ok(())
}
