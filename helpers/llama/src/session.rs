//! The evaluated prefix of the conversation, kept over requests.
//!
//! A prompt that begins like the one before costs only its new tail: the tokens
//! that are in llama.cpp's key-value cache are remembered here, and the longest
//! common prefix stays. It must never report logits of anything but the last
//! token that was evaluated, and after any failure it holds nothing.

use std::num::NonZeroU32;

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use thiserror::Error;

use crate::sample::log_probability;

/// Tokens that are evaluated in one call; bounds the memory of the computation.
const BATCH_TOKENS: u32 = 512;
/// Alternatives that are scored side by side, each in a sequence of its own.
const BRANCHES: u32 = 16;

/// Why the model could not be run. The cache is empty afterwards.
#[derive(Debug, Error)]
pub enum Broken {
    /// No context could be made, mostly for want of memory.
    #[error("no context of {tokens} tokens could be made: {reason}")]
    Context {
        /// Tokens asked for.
        tokens: u32,
        /// What the library says.
        reason: String,
    },
    /// A batch of tokens was not evaluated.
    #[error("{tokens} tokens could not be evaluated: {reason}")]
    Decode {
        /// Tokens in the batch.
        tokens: usize,
        /// What the library says.
        reason: String,
    },
    /// The context has no room for more tokens.
    #[error("the context of {0} tokens is full")]
    Full(u32),
}

/// How a [`Session`] is set up.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Size of the context window, in tokens.
    pub context_tokens: u32,
    /// Threads that compute.
    pub threads: u16,
}

/// One conversation in the key-value cache.
pub struct Session<'model> {
    context: LlamaContext<'model>,
    batch: LlamaBatch<'static>,
    tokens: Vec<LlamaToken>,
    limit: u32,
}

impl<'model> Session<'model> {
    /// Sets up an empty context.
    ///
    /// # Errors
    /// [`Broken::Context`] when the library cannot.
    pub fn open(
        backend: &LlamaBackend,
        model: &'model LlamaModel,
        shape: Shape,
    ) -> Result<Self, Broken> {
        let threads = i32::from(shape.threads);
        let params = LlamaContextParams::default()
            .with_n_ctx(NonZeroU32::new(shape.context_tokens))
            .with_n_batch(BATCH_TOKENS)
            .with_n_ubatch(BATCH_TOKENS)
            .with_n_seq_max(1 + BRANCHES)
            .with_kv_unified(true)
            .with_n_threads(threads)
            .with_n_threads_batch(threads);
        let context = model.new_context(backend, params).map_err(|error| Broken::Context {
            tokens: shape.context_tokens,
            reason: error.to_string(),
        })?;
        let batch = LlamaBatch::new(BATCH_TOKENS as usize, 1);
        Ok(Self { context, batch, tokens: Vec::new(), limit: shape.context_tokens })
    }

    /// Size of the context window, in tokens.
    #[must_use]
    pub fn context_tokens(&self) -> u32 {
        self.limit
    }

    /// The tokens that are evaluated.
    #[must_use]
    pub fn tokens(&self) -> &[LlamaToken] {
        &self.tokens
    }

    /// How many tokens at the beginning of `prompt` are already evaluated.
    #[must_use]
    pub fn common(&self, prompt: &[LlamaToken]) -> usize {
        self.tokens.iter().zip(prompt).take_while(|(old, new)| old == new).count()
    }

    /// Makes `prompt` what is evaluated. At least its last token is evaluated again,
    /// since the logits of it are wanted.
    ///
    /// # Errors
    /// [`Broken`] when the prompt is too long or evaluation fails.
    pub fn feed(&mut self, prompt: &[LlamaToken]) -> Result<(), Broken> {
        let common = self.common(prompt).min(prompt.len().saturating_sub(1));
        let kept = self.cut(common);
        self.extend(&prompt[kept..])
    }

    /// Evaluates more tokens behind those that are there.
    ///
    /// # Errors
    /// [`Broken`] when they do not fit or evaluation fails.
    pub fn extend(&mut self, tokens: &[LlamaToken]) -> Result<(), Broken> {
        if self.tokens.len() + tokens.len() > self.limit as usize {
            return Err(Broken::Full(self.limit));
        }
        for chunk in tokens.chunks(BATCH_TOKENS as usize) {
            self.batch.clear();
            for (index, token) in chunk.iter().enumerate() {
                let last = index + 1 == chunk.len();
                self.add(*token, self.tokens.len() + index, 0, last)?;
            }
            self.decode()?;
            self.tokens.extend_from_slice(chunk);
        }
        Ok(())
    }

    /// Logits of the token that would come next, one for each of the vocabulary.
    #[must_use]
    pub fn logits(&self) -> &[f32] {
        self.context.get_logits_ith(-1)
    }

    /// The log-probability of each continuation, in nats, summed over its tokens.
    /// What is evaluated stays as it is, but the logits are lost: feed or extend
    /// before asking for them again.
    ///
    /// # Errors
    /// [`Broken`] when they do not fit or evaluation fails.
    pub fn score(&mut self, branches: &[Vec<LlamaToken>]) -> Result<Vec<f64>, Broken> {
        let next = self.logits();
        let first = |branch: &Vec<LlamaToken>| {
            branch.first().map_or(0.0, |token| log_probability(next, *token))
        };
        let mut scores: Vec<f64> = branches.iter().map(first).collect();
        for (chunk, scores) in
            branches.chunks(BRANCHES as usize).zip(scores.chunks_mut(BRANCHES as usize))
        {
            self.score_tails(chunk, scores)?;
        }
        Ok(scores)
    }

    /// Adds the log-probability of all tokens but the first of each branch.
    fn score_tails(
        &mut self,
        branches: &[Vec<LlamaToken>],
        scores: &mut [f64],
    ) -> Result<(), Broken> {
        let base = self.tokens.len();
        let longest = branches.iter().map(Vec::len).max().unwrap_or(0);
        if branches.iter().map(Vec::len).sum::<usize>() > BATCH_TOKENS as usize
            || base + longest * branches.len() > self.limit as usize
        {
            return Err(Broken::Full(self.limit));
        }
        self.batch.clear();
        for (sequence, branch) in (1_u32..).zip(branches) {
            let copied = self.context.copy_kv_cache_seq(0, sequence.cast_signed(), None, None);
            copied.map_err(|error| self.broken(0, &error))?;
            for (index, token) in branch.iter().enumerate().take(branch.len().saturating_sub(1)) {
                self.add(*token, base + index, sequence, true)?;
            }
        }
        if self.batch.n_tokens() == 0 {
            return Ok(());
        }
        self.decode()?;
        let mut row = 0;
        for (branch, score) in branches.iter().zip(scores) {
            for token in branch.iter().skip(1) {
                *score += log_probability(self.context.get_logits_ith(row), *token);
                row += 1;
            }
        }
        for sequence in (1_u32..).take(branches.len()) {
            self.remove(sequence, 0);
        }
        Ok(())
    }

    /// Forgets everything behind the first `kept` tokens; how many really stayed
    /// (recurrent models cannot forget a part).
    fn cut(&mut self, kept: usize) -> usize {
        if kept == self.tokens.len() {
            return kept;
        }
        let kept = if self.remove(0, kept) { kept } else { 0 };
        if kept == 0 {
            self.context.clear_kv_cache();
        }
        self.tokens.truncate(kept);
        kept
    }

    /// Removes a sequence from a position on; false when the model cannot.
    fn remove(&mut self, sequence: u32, from: usize) -> bool {
        let from = u32::try_from(from).ok();
        self.context.clear_kv_cache_seq(Some(sequence), from, None).unwrap_or(false)
    }

    fn add(
        &mut self,
        token: LlamaToken,
        position: usize,
        sequence: u32,
        logits: bool,
    ) -> Result<(), Broken> {
        let position = i32::try_from(position).map_err(|_| Broken::Full(self.limit))?;
        let added = self.batch.add(token, position, &[sequence.cast_signed()], logits);
        added.map_err(|error| self.broken(1, &error))
    }

    fn decode(&mut self) -> Result<(), Broken> {
        let decoded = self.context.decode(&mut self.batch);
        let tokens = usize::try_from(self.batch.n_tokens()).unwrap_or(0);
        decoded.map_err(|error| self.broken(tokens, &error))
    }

    /// Empties the cache, of which nothing is known after a failure.
    fn broken(&mut self, tokens: usize, error: &dyn std::error::Error) -> Broken {
        self.context.clear_kv_cache();
        self.tokens.clear();
        Broken::Decode { tokens, reason: error.to_string() }
    }
}
