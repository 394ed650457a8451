//! The local model: a helper in our sandbox, asked over a Unix socket.
//!
//! The helper parses files that strangers wrote, in C++. So it runs without
//! network, sees nothing but itself and the model's file, and is believed
//! nothing: every line is bounded, every wait has an end. A helper that died
//! or hung is started again with the next question, a few times an hour. It
//! must never be sent anything secret, and never be started outside the
//! sandbox.

pub mod chat;
mod connection;
pub(super) mod convert;
mod process;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use automaton_core::time::{Clock, Span, Timestamp};
use automaton_core::wire::brain::{
    LocalModelCompletion, LocalModelCompletionRequest, LocalModelFailureCode, LocalModelHello,
};
use automaton_net::redact;
use automaton_sandbox::{Launcher, Probe};
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::catalogue::{self, ModelInfo};
use crate::conversation;
use crate::cost::ModelPrices;
use crate::error::{InferenceError, LocalModelError};
use crate::provider::{BoxFuture, Completion, CompletionRequest, Provider, TokenSink};

use connection::LocalModelConnectionError;
use process::LocalModelProcess;

/// Starts of the helper that are allowed within an hour.
const STARTS_PER_HOUR_MAX: usize = 6;

/// A model below this many parameters needs leading by the hand, whatever it is
/// called: none of that size was ever seen to plan.
const WEAK_PARAMETERS: u64 = 1_000_000_000;

/// The smallest window in which a question has room, in tokens.
const CONTEXT_TOKENS_MIN: u32 = 256;

/// The window that a model is given where nobody says another, in tokens, if it
/// has one so large. More costs memory, and a small model makes nothing of it.
pub const CONTEXT_TOKENS: u32 = 8192;

/// Memory that the helper needs besides twice the model's file, in bytes.
const HELPER_BYTES: u64 = 768 * 1024 * 1024;

/// Memory that a token of the window needs beyond [`CONTEXT_TOKENS`], in bytes: as much as
/// in a model of 70 billion parameters.
const TOKEN_BYTES: u64 = 320 * 1024;

/// Threads of a local model at most; more of them only wait for memory.
const THREADS_MAX: usize = 8;

/// The files of a local model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalModelFiles {
    /// The model, a GGUF file.
    pub model: PathBuf,
    /// The program that runs it.
    pub helper: PathBuf,
    /// The SHA-256 that the model must have, in hex.
    pub sha256: Option<String>,
    /// The window that is wanted, in tokens; [`CONTEXT_TOKENS`] where nobody says.
    #[serde(default, alias = "contextTokens")]
    pub context_tokens: Option<u32>,
}

/// Configuration of the local model.
#[derive(Debug, Clone)]
pub struct LocalModelConfig {
    /// Starts sandboxes.
    pub launcher: Launcher,
    /// Capabilities of the machine.
    pub probe: Probe,
    /// The helper's executable.
    pub helper: PathBuf,
    /// The model, a GGUF file.
    pub model: PathBuf,
    /// Threads that compute.
    pub threads: u32,
    /// The window that is wanted, in tokens; the model may have a smaller one.
    pub context_tokens: u32,
    /// The memory that the helper may use, in bytes.
    pub memory_bytes: u64,
    /// The SHA-256 that the file must have, in hex; without it the file's own
    /// at the start, so that it cannot be exchanged under a running agent.
    pub sha256: Option<String>,
    /// Deadlines of the helper.
    pub deadlines: LocalModelDeadlines,
}

impl LocalModelConfig {
    /// A model with what this machine gives to one: threads, memory, and the
    /// usual window.
    ///
    /// # Errors
    /// [`LocalModelError::Unreadable`] when there is no such model.
    pub fn of_machine(
        launcher: Launcher,
        probe: Probe,
        files: LocalModelFiles,
    ) -> Result<Self, InferenceError> {
        let LocalModelFiles { model, helper, sha256, context_tokens } = files;
        let context_tokens = context_tokens.unwrap_or(CONTEXT_TOKENS);
        let beyond = u64::from(context_tokens.saturating_sub(CONTEXT_TOKENS));
        let unreadable = |source| LocalModelError::Unreadable { path: model.clone(), source };
        let bytes = std::fs::metadata(&model).map_err(unreadable)?.len();
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
        Ok(Self {
            launcher,
            probe,
            helper,
            model,
            threads: u32::try_from(threads).unwrap_or(1),
            context_tokens,
            memory_bytes: bytes
                .saturating_mul(2)
                .saturating_add(HELPER_BYTES)
                .saturating_add(beyond.saturating_mul(TOKEN_BYTES)),
            sha256,
            deadlines: LocalModelDeadlines::default(),
        })
    }
}

/// Deadlines of the helper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalModelDeadlines {
    /// To load the model.
    pub hello: Duration,
    /// Between two pieces of an answer, and to read the prompt.
    pub idle: Duration,
    /// For a whole answer.
    pub total: Duration,
}

impl Default for LocalModelDeadlines {
    /// A busy machine reads a full window of 4096 tokens in some three minutes
    /// before the first piece comes.
    fn default() -> Self {
        Self {
            hello: Duration::from_secs(120),
            idle: Duration::from_secs(300),
            total: Duration::from_secs(600),
        }
    }
}

/// The local model.
pub struct LocalModel {
    config: Arc<LocalModelConfig>,
    sha256: String,
    info: ModelInfo,
    clock: Arc<dyn Clock>,
    /// Held for a whole answer, across its awaits: the helper answers one
    /// question at a time, and this lock is the queue before it.
    helper: Mutex<ProcessSlot>,
}

/// The helper, when there is one, and when it was started.
struct ProcessSlot {
    process: Option<LocalModelProcess>,
    starts: VecDeque<Timestamp>,
    /// Time of the last request; `None` if it is not loaded.
    asked: Option<Instant>,
}

impl LocalModel {
    /// Checks the model's file, starts the helper and waits until the model is
    /// loaded.
    ///
    /// # Errors
    /// [`InferenceError::Helper`] when the file cannot be read or is another,
    /// when the sandbox refuses, or when the helper does not get ready.
    pub async fn start(
        config: LocalModelConfig,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, InferenceError> {
        let sha256 = process::checked_sha256(&config).await?;
        let config = Arc::new(config);
        let starts = VecDeque::from([clock.now()]);
        let process = LocalModelProcess::start(&config, &sha256).await?;
        let info = model_info(process.hello(), &config)?;
        let asked = Some(Instant::now());
        let helper = Mutex::new(ProcessSlot { process: Some(process), starts, asked });
        Ok(Self { config, sha256, info, clock, helper })
    }

    /// Checks the model's file, and loads nothing before the first question. Until then nobody
    /// knows what it can do: it is trusted with no more than a weak one.
    ///
    /// # Errors
    /// [`InferenceError::Helper`] when the file cannot be read or is another.
    pub async fn on_demand(
        config: LocalModelConfig,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, InferenceError> {
        let sha256 = process::checked_sha256(&config).await?;
        let name = config.model.file_stem().unwrap_or_default().to_string_lossy();
        let known = catalogue::own_model(&name)?;
        // Nothing was seen of it yet, and a file's name proves nothing.
        let context_tokens = config.context_tokens;
        let prices = ModelPrices::default();
        let weak = true;
        let info = ModelInfo { context_tokens, weak, compact: true, prices, ..known };
        let helper =
            Mutex::new(ProcessSlot { process: None, starts: VecDeque::new(), asked: None });
        Ok(Self { config: Arc::new(config), sha256, info, clock, helper })
    }

    /// Ends the helper where nobody has asked for so long, so that an automaton that sleeps holds
    /// no memory for its model; whether it did. The next question loads it again.
    pub async fn unload_after(&self, idle: Duration) -> bool {
        let mut slot = self.helper.lock().await;
        if slot.asked.is_none_or(|asked| asked.elapsed() < idle) {
            return false;
        }
        slot.asked = None;
        // What was ended on purpose is no failure: it does not count as a start.
        slot.starts.pop_back();
        let Some(process) = slot.process.take() else { return false };
        process.stop().await;
        true
    }

    /// Ends the helper, after the answer that it is giving. The next question
    /// starts it again.
    pub async fn stop(&self) {
        let process = self.helper.lock().await.process.take();
        if let Some(process) = process {
            process.stop().await;
        }
    }

    /// Asks the helper in its own terms, for somebody who has no [`CompletionRequest`]; see
    /// [`chat::question`]. One question at a time: the others wait.
    ///
    /// # Errors
    /// [`InferenceError::TooLong`], or [`InferenceError::Helper`] when the
    /// helper refuses, fails or dies.
    pub async fn ask(
        &self,
        request: &LocalModelCompletionRequest,
        sink: &dyn TokenSink,
    ) -> Result<LocalModelCompletion, InferenceError> {
        let mut slot = self.helper.lock().await;
        // Taken out of its place: when this future is dropped in the middle of
        // an answer, the process goes with it, and nobody reads the rest of
        // that answer as the beginning of the next.
        let mut process = self.alive(&mut slot).await?;
        slot.asked = Some(Instant::now());
        match process.link().complete(request, sink, self.config.deadlines).await {
            Ok(done) => {
                slot.process = Some(process);
                Ok(done)
            }
            Err(LocalModelConnectionError::Answer {
                code: LocalModelFailureCode::TooLong,
                message,
            }) => {
                slot.process = Some(process);
                Err(InferenceError::TooLong { text: message, window: None, remedy: None })
            }
            Err(LocalModelConnectionError::Answer { code, message }) => {
                slot.process = Some(process);
                Err(LocalModelError::Answer { code, message }.into())
            }
            Err(error) => Err(process.post_mortem(error).await.into()),
        }
    }

    async fn answer(
        &self,
        ask: &CompletionRequest,
        sink: &dyn TokenSink,
    ) -> Result<Completion, InferenceError> {
        conversation::check(&ask.messages)?;
        let done = self.ask(&convert::complete(ask), sink).await?;
        Ok(convert::reply(&self.info, done))
    }

    /// A helper that lives: the one there is, or a new one.
    async fn alive(&self, slot: &mut ProcessSlot) -> Result<LocalModelProcess, InferenceError> {
        if let Some(process) = slot.process.take().filter(|process| !process.is_over()) {
            return Ok(process);
        }
        let now = self.clock.now();
        let hour_ago = now.before(Span::from_secs(3600));
        // Starts of the future are those of a clock that was set back.
        slot.starts.retain(|start| (hour_ago..=now).contains(start));
        if slot.starts.len() >= STARTS_PER_HOUR_MAX {
            return Err(LocalModelError::GivenUp { starts: slot.starts.len() }.into());
        }
        slot.starts.push_back(now);
        Ok(LocalModelProcess::start(&self.config, &self.sha256).await?)
    }
}

impl Provider for LocalModel {
    fn model(&self) -> &ModelInfo {
        &self.info
    }

    fn complete<'a>(
        &'a self,
        ask: &'a CompletionRequest,
        sink: &'a dyn TokenSink,
    ) -> BoxFuture<'a, Result<Completion, InferenceError>> {
        Box::pin(self.answer(ask, sink))
    }

    fn unload(&self, idle: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.unload_after(idle).await;
        })
    }
}

/// Merges the catalogue's properties of the model with the helper's. It runs on the creator's
/// machine and costs nothing.
fn model_info(
    hello: &LocalModelHello,
    config: &LocalModelConfig,
) -> Result<ModelInfo, InferenceError> {
    let name = redact::text(&hello.model, &[], 100);
    let context_tokens = hello.context_tokens.min(config.context_tokens);
    if context_tokens < CONTEXT_TOKENS_MIN {
        let what = format!("its window has {context_tokens} tokens");
        return Err(LocalModelError::Protocol { what }.into());
    }
    let known = catalogue::own_model(&name)?;
    let weak = known.weak || hello.parameters < WEAK_PARAMETERS;
    let note = weak.then(|| {
        format!(
            "a model of {} million parameters: it shows that everything works, it is no worker, \
             and a guide in its helper chooses its tools",
            hello.parameters.saturating_add(500_000) / 1_000_000
        )
    });
    Ok(ModelInfo {
        context_tokens,
        weak,
        compact: true,
        prices: ModelPrices::default(),
        note,
        ..known
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use automaton_core::wire::brain::VERSION;

    #[test]
    fn a_small_model_is_weak_whatever_it_is_called() {
        let config = LocalModelConfig {
            launcher: Launcher::new(PathBuf::new()),
            probe: Probe::nothing("a test"),
            helper: PathBuf::new(),
            model: PathBuf::new(),
            threads: 1,
            context_tokens: 4096,
            memory_bytes: 0,
            sha256: None,
            deadlines: LocalModelDeadlines::default(),
        };
        let hello = |model: &str, parameters, context_tokens| LocalModelHello {
            version: VERSION,
            model: model.to_owned(),
            parameters,
            context_tokens,
            load_ms: 1,
        };
        let info = model_info(&hello("gpt-5.2\u{7}", 134_515_008, 8192), &config).unwrap();
        assert!(info.weak && info.note.is_some_and(|note| note.contains("135 million")));
        assert_eq!((info.id.as_str(), info.context_tokens), ("gpt-5.2", 4096));
        assert_eq!(info.prices, ModelPrices::default());
        let info = model_info(&hello("Qwen3 8B", 8_000_000_000, 2048), &config).unwrap();
        assert_eq!((info.weak, info.note, info.context_tokens), (false, None, 2048));
        assert!(model_info(&hello("m", 1, 0), &config).is_err());
    }
}
