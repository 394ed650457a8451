//! A model of our own, in our sandbox, as an upstream.

use std::sync::{Mutex, PoisonError};

use automaton_core::wire::brain::LocalModelFailureCode;
use automaton_core::wire::chat::ChatChunk;
use automaton_core::wire::cloud::CONTEXT_LENGTH_EXCEEDED;
use automaton_inference::providers::http::ApiFormat;
use automaton_inference::providers::local::LocalModel;
use automaton_inference::providers::local::chat::{ChatResponder, question};
use automaton_inference::{InferenceError, LocalModelError, NoTokenSink, TokenSink};
use axum::http::StatusCode;

use super::health::HealthVerdict;
use super::{REFUSED, UpstreamFailure, UpstreamTry, broken, unreadable};
use crate::chat::ClientFormat;
use crate::chat::answer::Answer;
use crate::chat::request::RequestAddress;
use crate::config::TokenLimitName;
use crate::error::ApiError;

/// Has the model of our own answer.
pub(super) async fn think(
    local: &LocalModel,
    asked: &UpstreamTry<'_>,
    answer: &mut dyn Answer,
) -> Result<(), UpstreamFailure> {
    let UpstreamTry { chat, model, id, report, .. } = asked;
    if chat.format == ClientFormat::Embeddings {
        return Err(unfit(format!("the model '{}' makes no embeddings", model.id)));
    }
    let format = ApiFormat::ChatCompletions;
    let limit_name = TokenLimitName::MaxTokens;
    let to = RequestAddress { format, id, limit_name };
    let body = chat.for_upstream(model, to).map_err(UpstreamFailure::unfit)?;
    let request = question(&body).map_err(|error| unfit(error.to_string()))?;
    let speech = ChatResponder::new(answer.meta().clone());
    let internal = |error: serde_json::Error| {
        UpstreamFailure::from_verdict(HealthVerdict::Failed, ApiError::internal(report, &error))
    };
    if !chat.stream {
        let done = local.ask(&request, &NoTokenSink).await;
        let done = done.map_err(|error| failed(asked, &error))?;
        let whole = serde_json::to_vec(&speech.whole_response(&done)).map_err(internal)?;
        return answer.document(whole.into()).map_err(|what| unreadable(asked, &what));
    }
    let live = StreamingSink(Mutex::new((speech, &mut *answer, None)));
    let done = local.ask(&request, &live).await.map_err(|error| failed(asked, &error))?;
    let (speech, answer, wrong) = live.0.into_inner().unwrap_or_else(PoisonError::into_inner);
    let rest = speech.end(&done).map_err(|error| broken(asked, &error))?;
    let said = rest.iter().try_for_each(|chunk| push_chunk(answer, chunk));
    wrong.map_or(said, Err).map_err(|what| unreadable(asked, &what))
}

/// The request cannot be put to this model.
fn unfit(sentence: String) -> UpstreamFailure {
    UpstreamFailure::unfit(ApiError::new(StatusCode::BAD_REQUEST, REFUSED, sentence))
}

/// Returns the failure of the local model. The client is told about errors that it can mend.
fn failed(asked: &UpstreamTry<'_>, error: &InferenceError) -> UpstreamFailure {
    match error {
        InferenceError::TooLong { text, .. } => {
            let sentence = format!("the context window of the model is too small: {text}");
            let told = ApiError::new(StatusCode::BAD_REQUEST, CONTEXT_LENGTH_EXCEEDED, sentence);
            UpstreamFailure::mendable(told)
        }
        InferenceError::Helper(LocalModelError::Answer {
            code: LocalModelFailureCode::BadRequest | LocalModelFailureCode::BadSchema,
            message,
        }) => unfit(message.clone()),
        other => broken(asked, other),
    }
}

/// Passes the pieces of an answer on as they come, and keeps what is wrong with one. A std mutex,
/// since nothing is awaited while it is held.
struct StreamingSink<'a>(Mutex<(ChatResponder, &'a mut dyn Answer, Option<String>)>);

impl TokenSink for StreamingSink<'_> {
    fn text(&self, piece: &str) {
        let mut live = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (speech, answer, wrong) = &mut *live;
        if let Some(chunk) = speech.piece(piece)
            && let Err(what) = push_chunk(&mut **answer, &chunk)
        {
            wrong.get_or_insert(what);
        }
    }
}

fn push_chunk(answer: &mut dyn Answer, chunk: &ChatChunk) -> Result<(), String> {
    let json = serde_json::to_string(chunk).map_err(|error| error.to_string())?;
    answer.event(&json).map(drop)
}
