//! Asks a model server whether it works, before anything is made or bought.
//!
//! Its list of models costs nothing. Where it has none, one short question to the model tells: that
//! costs next to nothing. What may pass by itself, such as a server that is busy, stops no start.

use std::sync::Arc;
use std::time::Duration;

use automaton_core::error::ErrorClass;
use automaton_core::model::ModelId;
use automaton_core::time::SystemClock;
use automaton_inference::providers::http::ApiFormat;
use automaton_inference::providers::http::model_list::{ModelList, ask_for_models};
use automaton_inference::providers::http::probe::ModelListing;
use automaton_inference::{CompletionRequest, InferenceError, Message, NoTokenSink};

use super::provider;
use crate::config::resolve::{Brain, HttpBrain, KeyScheme, ResolvedConfig, ValueSource};
use crate::error::CliError;
use crate::http::client;

/// Time for the answer to the short question; a model may have to be loaded first.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// Tokens of that answer: the fewest that every format takes.
const ANSWER_TOKENS: u32 = 16;

/// Depth of the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckDepth {
    /// For its models, and where it does not list them for a short answer. The brain is named for
    /// the first time, so that a server that fails is refused: nothing is lost by trying again.
    NewBrain,
    /// The same for a brain that was named before: a server that fails now may have answered then.
    KnownBrain,
    /// For its models alone: nothing is made or bought, so that the first turn tells the rest.
    List,
}

/// Result of a check that passed.
#[derive(Debug, Default)]
pub(crate) struct CheckedBrain {
    /// The model to ask it for, where nobody named one.
    pub(crate) only_model: Option<ModelId>,
    /// Answer that is missing for now, and may come later.
    pub(crate) unknown: Option<CliError>,
}

/// Checks the server of an automaton's brain. A model file, and a cloud that sells what it thinks
/// with, are looked at elsewhere.
///
/// # Errors
/// When the server is not there, is no model server, does not take the key, or does not have the
/// model.
pub(crate) async fn check_brain(
    resolved: &ResolvedConfig,
    depth: CheckDepth,
) -> Result<CheckedBrain, CliError> {
    let Brain::Http(http) = &resolved.brain else { return Ok(CheckedBrain::default()) };
    if http.scheme == KeyScheme::Raw {
        return Ok(CheckedBrain::default());
    }
    let checked = check_server(http, resolved, depth).await;
    let has_others = !resolved.other_sellers.is_empty() || resolved.local_fallback.is_some();
    match checked {
        // Another model thinks until this one answers.
        Err(failure) if has_others && failure.kind == ErrorClass::Transient => {
            Ok(CheckedBrain { unknown: Some(failure), ..CheckedBrain::default() })
        }
        checked => checked,
    }
}

async fn check_server(
    http: &HttpBrain,
    resolved: &ResolvedConfig,
    depth: CheckDepth,
) -> Result<CheckedBrain, CliError> {
    let net = client([http.url.as_str()])?;
    let list = ask_for_models(&net, &http.url, http.format, &provider::auth(http)).await?;
    match &list {
        ModelList::Listed(listing) if listing.has(&http.model) => Ok(CheckedBrain::default()),
        ModelList::Listed(listing) if !http.unlisted => match listing.only_model() {
            Some(only) if !http.is_named => {
                Ok(CheckedBrain { only_model: Some(only), unknown: None })
            }
            _ => Err(not_listed(http, listing, &resolved.brain_origin)),
        },
        ModelList::Unknown if depth == CheckDepth::List => Ok(CheckedBrain::default()),
        _ => check_answer(http, resolved, depth).await,
    }
}

/// Asks the model a short question.
async fn check_answer(
    http: &HttpBrain,
    resolved: &ResolvedConfig,
    depth: CheckDepth,
) -> Result<CheckedBrain, CliError> {
    let model = provider::http_provider(http, &http.model, resolved, Arc::new(SystemClock))?;
    let question = CompletionRequest {
        messages: vec![Arc::new(Message::user("Reply with OK."))],
        tools: Arc::default(),
        left_out: Vec::new(),
        max_tokens: ANSWER_TOKENS,
        seed: 0,
        temperature_milli: 0,
        name: None,
        silence: Some(ANSWER_WITHIN),
    };
    let answer = model.complete(&question, &NoTokenSink);
    match tokio::time::timeout(ANSWER_WITHIN, answer).await {
        Ok(Ok(_)) => Ok(CheckedBrain::default()),
        Ok(Err(error)) => judge(http, error, depth),
        Err(_) => {
            let what = format!("the model at {} did not answer in {ANSWER_WITHIN:?}", http.url);
            let late = CliError::new(ErrorClass::Transient, what);
            Ok(CheckedBrain { unknown: Some(late), ..CheckedBrain::default() })
        }
    }
}

/// Tells a server that cannot be used from one that may answer later, or that answers other
/// questions.
fn judge(
    http: &HttpBrain,
    error: InferenceError,
    depth: CheckDepth,
) -> Result<CheckedBrain, CliError> {
    let url = &http.url;
    match error {
        InferenceError::Unreachable { source } => {
            let what = format!("no model server can be reached at {url}");
            Err(CliError::new(ErrorClass::Transient, what)
                .because(&InferenceError::Unreachable { source })
                .hint("start the server, or correct its address (--brain URL, or `brain.url` in automaton.json)"))
        }
        InferenceError::Malformed { what, .. } if what.contains("html") => {
            let what = format!("{url} answers with a web page: it is no model server");
            Err(CliError::new(ErrorClass::Config, what).hint(ADDRESS))
        }
        InferenceError::NoModel { model, text, listed, .. }
            if listed.is_empty() && !text.contains(model.as_str()) =>
        {
            let what = format!(
                "the model server at {url} has no route for {} (status 404)",
                format_name(http.format)
            );
            Err(CliError::new(ErrorClass::Config, what).hint(ADDRESS))
        }
        wrong @ (InferenceError::Unauthorised { .. }
        | InferenceError::NoModel { .. }
        | InferenceError::NoTools { .. }
        | InferenceError::BaseUrl { .. }
        | InferenceError::Refused { .. }
        | InferenceError::Status { status: 405, .. }) => Err(wrong.into()),
        failed @ (InferenceError::Status { status: 500..=502 | 504..=528, .. }
        | InferenceError::Malformed { .. }
        | InferenceError::Failed { .. })
            if depth == CheckDepth::NewBrain =>
        {
            Err(CliError::from(failed).hint(
                "nothing was made or changed: see that the server works, and run it again; or name \
                 another with --brain URL",
            ))
        }
        later @ (InferenceError::TimedOut { .. }
        | InferenceError::Busy { .. }
        | InferenceError::NoCredits { .. }
        | InferenceError::Failed { .. }
        | InferenceError::Cut { .. }
        | InferenceError::Malformed { .. }
        | InferenceError::Status { status: 408 | 409 | 425 | 429 | 500..=599, .. }) => {
            Ok(CheckedBrain { unknown: Some(later.into()), ..CheckedBrain::default() })
        }
        // It understood the question and did not like it: a real one may please it.
        _ => Ok(CheckedBrain::default()),
    }
}

/// Remedy for an address without a model.
const ADDRESS: &str = "check the address and the port: many servers want /v1 at the end; `brain.format` in \
     automaton.json names another format than chat completions";

const fn format_name(format: ApiFormat) -> &'static str {
    match format {
        ApiFormat::ChatCompletions => "chat completions",
        ApiFormat::AnthropicMessages => "Anthropic's messages",
        ApiFormat::Responses => "OpenAI's responses",
        ApiFormat::Ollama => "Ollama's chat",
        ApiFormat::Gemini => "Gemini's answers",
    }
}

/// Explains that a server does not list the model, with the names that it lists.
fn not_listed(http: &HttpBrain, listing: &ModelListing, origin: &ValueSource) -> CliError {
    let (names, left) = listing.excerpt(&http.model);
    let more = if left > 0 { format!(", and {left} more") } else { String::new() };
    let place = match origin {
        ValueSource::Key(_) => "`brain.model` in automaton.json, or --brain-model",
        _ => "--brain-model",
    };
    let what = match http.is_named {
        true => format!("the model server at {} has no model '{}'", http.url, http.model),
        false => format!("the model server at {} has several models, and none is named", http.url),
    };
    let unlisted = match http.is_named {
        true => {
            "; if the server takes a name that it does not list, put \"unlisted\": true into \
                 `brain` of automaton.json"
        }
        false => "",
    };
    CliError::new(ErrorClass::Config, what)
        .hint(format!("name one with {place}: it has {}{more}{unlisted}", names.join(", ")))
}
